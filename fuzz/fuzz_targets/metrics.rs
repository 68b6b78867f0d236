//! What `serve-metrics` reads: nodes, counters, pressure, control groups; in both formats, every line is one of the format.
#![no_main]

use firsttouch_fuzz::{Tree, mutate};
use firsttouch_metrics::{Batch, Cgroups, Collector, Format, Options, render};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::collections::BTreeSet;

const ALWAYS: [(&str, &[u8]); 1] = [("sys/fs/cgroup/cgroup.controllers", b"cpuset memory\n")];

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|input: &[u8]| {
    let tree = Tree::new(&ALWAYS, input);
    let options = Options { root: tree.path().to_owned(), cgroups: Cgroups::All, max_series: 1_000, version: "0" };
    let exposition = Collector::new(options, None).collect(Batch::default());
    for format in [Format::OpenMetrics, Format::Text] {
        let text = render(&exposition, format);
        let mut series = BTreeSet::new();
        for line in text.lines().filter(|line| !line.starts_with("# ")) {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            assert!(name.starts_with("firsttouch_") && value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            assert!(series.insert(name), "{line} twice");
        }
    }
});
