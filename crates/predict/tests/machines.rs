//! Checks that malformed descriptions are errors with a position.

use firsttouch_predict::experiments::{Kernel, Ratio, Unit, Use};
use firsttouch_predict::machine::{self, MachineModel, UncertainNumber};
use firsttouch_predict::runs;

const GOOD: &str = r#"
schema = "firsttouch.machine/1"
name = "test"
title = "test"
[sources]
us = "measured by us"
[nodes]
count = { value = 2, source = "us" }
per_package = { value = 1, source = "us" }
cores = { value = [4, 2], source = "us" }
smt = { value = 1, source = "assumed: no matter" }
memory_mib = { value = 1024, source = "us" }
[bandwidth]
gb_per_s = [[30.0, 10.0], [12.0, 31.0]]
streams = { read = 1, write = 0, allocate = 0 }
source = "us"
[latency]
values = [[80, 130], [130, 80]]
source = "us"
"#;

/// Check that a matrix alone is sufficient for a machine: controllers come from its diagonal, links from the rest, marked as inferred.
#[test]
fn a_matrix_is_enough() {
    let machine = MachineModel::parse(GOOD).unwrap();
    assert_eq!(machine.nodes[0].curve(0.0).limit, 30e9);
    assert_eq!(machine.nodes[1].cores, 2);
    assert_eq!(machine.links[machine.route(1, 0)[0]].capacity.gb_per_s(), 12.0);
    let links = machine.facts.iter().find(|fact| fact.what == "links").unwrap();
    assert!(links.source.starts_with("inferred"));
}

/// Check that each malformed description is an error that names the position.
#[test]
fn nonsense_is_refused_with_its_place() {
    let matrix = "[[30.0, 10.0], [12.0, 31.0]]";
    for (from, to, place) in [
        (matrix, "[[30.0, -10.0], [12.0, 31.0]]", "bandwidth.gb_per_s[0][1]"),
        (matrix, "[[30.0, 10.0], [nan, 31.0]]", "bandwidth.gb_per_s[1][0]"),
        (matrix, "[[30.0, 10.0], [inf, 31.0]]", "bandwidth.gb_per_s[1][0]"),
        (matrix, "[[30.0, 10.0], [0.0, 31.0]]", "bandwidth.gb_per_s[1][0]"),
        (matrix, "[[30.0, 10.0]]", "bandwidth.gb_per_s"),
        (matrix, "[[30.0], [12.0, 31.0]]", "bandwidth.gb_per_s[0]"),
        (matrix, "\"fast\"", "line 14"),
        ("value = 2,", "value = 0,", "nodes.count"),
        ("value = 2,", "value = 2.5,", "nodes.count"),
        ("value = 2,", "value = 1e9,", "nodes.count"),
        ("[4, 2]", "[4]", "nodes.cores"),
        ("[4, 2]", "[4, -2]", "nodes.cores"),
        ("value = 1024", "value = nan", "nodes.memory_mib"),
        ("cores =", "coers =", "line 10"),
        ("machine/1", "machine/2", "schema"),
        ("value = 1024, source = \"us\"", "value = 1024", "line 12"),
        ("value = 1024, source = \"us\"", "value = 1024, source = \"hearsay\"", "nodes.memory_mib"),
        ("read = 1", "read = 0", "bandwidth.streams"),
        ("read = 1", "read = -1", "bandwidth.streams"),
        ("[[80, 130], [130, 80]]", "[[80, 130]]", "latency.values"),
        ("[latency]", "[[links]]\nfrom = 0\nto = 1\ngb_per_s = { value = 9, source = \"us\" }\n[latency]", "links"),
        ("[latency]", "[[links]]\nfrom = 0\nto = 2\ngb_per_s = { value = 9, source = \"us\" }\n[latency]", "links[0]"),
        ("[latency]", "[[links]]\nfrom = 0\nto = 1\ngb_per_s = { value = 0, source = \"us\" }\n[latency]", "links[0] 0->1 gb_per_s"),
        ("[latency]", "[interconnect]\ngb_per_s = { value = -1, source = \"us\" }\n[latency]", "interconnect.gb_per_s"),
        ("[latency]", "[core]\nremote_gb_per_s = { value = [1, 2, 3], source = \"us\" }\n[latency]", "core.remote_gb_per_s"),
        (
            "[latency]",
            "[[controller.curves]]\nstreams = { read = 1, write = 0, allocate = 0 }\npoints = [[1, 5], [1, 6]]\nsource = \"us\"\n[latency]",
            "controller.curves[0].points",
        ),
        ("[bandwidth]", "[bandwidth", "line 13"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = MachineModel::parse(&GOOD.replacen(from, to, 1)).expect_err(to);
        assert_eq!(error.place, place, "{to}: {error}");
    }
    assert!(MachineModel::parse("").is_err());
}

/// Check that a machine with one node needs no links, and that several nodes without links are an error.
#[test]
fn nodes_are_connected() {
    let curves = "[[controller.curves]]\nstreams = { read = 1, write = 0, allocate = 0 }\npoints = [[1, 5], [4, 9]]\nsource = \"us\"\n";
    let start = GOOD.split("[bandwidth]").next().unwrap();
    let error = MachineModel::parse(&format!("{start}{curves}")).unwrap_err();
    assert!(error.to_string().contains("no way leads from node 0 to node 1"), "{error}");
    let single = start.replace("value = 2,", "value = 1,").replace("[4, 2]", "4");
    assert!(MachineModel::parse(&format!("{single}{curves}")).unwrap().links.is_empty());
}

/// Four nodes in two packages, whose links are known by generation only.
fn by_generation(generation: &str) -> String {
    let start = GOOD
        .split("[bandwidth]")
        .next()
        .unwrap()
        .replace("value = 2,", "value = 4,")
        .replace("value = 1, source = \"us\"", "value = 2, source = \"us\"");
    let curves = "[[controller.curves]]\nstreams = { read = 1, write = 0, allocate = 0 }\npoints = [[1, 5], [4, 40]]\nsource = \"us\"\n";
    format!("{}{curves}[interconnect]\ngeneration = \"{generation}\"\n", start.replace("[4, 2]", "4"))
}

/// Check that all pairs of nodes of two packages share one link each way, that nodes of a package do not pass it, and that its range is
/// known.
#[test]
fn nodes_of_two_packages_share_a_link() {
    let machine = MachineModel::parse(&by_generation("upi-10.4x2")).unwrap();
    let shared = machine.route(2, 0).to_vec();
    assert_eq!(machine.links[shared[0]].capacity.gb_per_s(), 34.3);
    for (from, to) in [(2, 1), (3, 0), (3, 1)] {
        assert_eq!(machine.route(from, to), shared);
    }
    assert_ne!(machine.route(0, 2), shared, "the other direction is a link of its own");
    assert!(!machine.route(1, 0).contains(&shared[0]));
    let range = machine.uncertain.iter().find(|one| matches!(&one.number, UncertainNumber::Links(links) if links.contains(&shared[0])));
    let range = range.unwrap();
    assert!((range.low * 34.3 - 33.5).abs() < 1e-9 && (range.high * 34.3 - 34.5).abs() < 1e-9);
    let slower = machine.with(range, 0.5);
    assert_eq!(slower.links[shared[0]].capacity.gb_per_s(), 34.3 / 2.0);
    assert!(machine.facts.iter().any(|fact| fact.what == "links between packages" && fact.source.starts_with("assumed: the generation")));
}

/// Check that the largest machine, whose packages have a node each, is described in a time that does not grow with the square of its links.
#[test]
fn many_packages_are_connected() {
    let large = by_generation("upi-10.4x2")
        .replace("count = { value = 4", "count = { value = 512")
        .replace("per_package = { value = 2", "per_package = { value = 1");
    let started = std::time::Instant::now();
    let machine = MachineModel::parse(&large).unwrap();
    assert_eq!((machine.nodes.len(), machine.links.len()), (512, 512 * 511));
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

/// Check that a wrong generation and a figure outside its range are refused by their keys.
#[test]
fn links_by_generation_are_checked() {
    assert_eq!(MachineModel::parse(&by_generation("upi-9")).unwrap_err().place, "interconnect.generation");
    let one_package = by_generation("upi-10.4x2").replace("per_package = { value = 2", "per_package = { value = 4");
    assert_eq!(MachineModel::parse(&one_package).unwrap_err().place, "interconnect.generation");
    let odd = by_generation("upi-10.4x2") + "within_package_gb_per_s = { value = 9, range = [10, 20], source = \"us\" }\n";
    assert_eq!(MachineModel::parse(&odd).unwrap_err().place, "interconnect.within_package_gb_per_s");
}

/// Check that a figure above what the channels deliver is refused by its key, that streaming stores are suggested where they explain it,
/// and that one of the two numbers alone is refused.
#[test]
fn nothing_exceeds_its_channels() {
    let channels = "smt = { value = 1, source = \"assumed: no matter\" }\nchannels = { value = 2, source = \"us\" }\n";
    let peak = |transfers: u32| {
        let text = format!("{channels}mega_transfers_per_s = {{ value = {transfers}, source = \"us\" }}");
        GOOD.replacen("smt = { value = 1, source = \"assumed: no matter\" }", &text, 1)
    };
    assert!(MachineModel::parse(&peak(2666)).is_ok());
    let error = MachineModel::parse(&peak(1600)).unwrap_err();
    assert_eq!(error.place, "bandwidth.streams");
    assert!(error.reason.contains("25.6 GB/s") && error.reason.contains("nodes.channels"), "{error}");
    assert!(!error.reason.contains("streaming"));
    let stores = peak(2133).replace("read = 1, write = 0, allocate = 0", "read = 2, write = 1, allocate = 1");
    let error = MachineModel::parse(&stores).unwrap_err();
    assert!(error.reason.contains("streaming stores") && error.reason.contains("allocate = 0"), "{error}");
    let alone = GOOD.replacen("smt = { value = 1, source = \"assumed: no matter\" }", channels, 1);
    assert_eq!(MachineModel::parse(&alone).unwrap_err().place, "nodes.mega_transfers_per_s");
}

/// Check that the catalogue's machines give their channels, so that reading the catalogue checks them, and that the EPYC 7451 would be
/// refused with stores that read their lines.
#[test]
fn the_catalogue_is_checked_against_its_channels() {
    let known = |name: &&str| machine::find(name).unwrap().facts.iter().any(|fact| fact.what == "nodes.channels");
    let without: Vec<&str> = machine::names().filter(|name| !known(name)).collect();
    assert_eq!(without, ["a64fx", "kunpeng-920-6426x2"], "high-bandwidth memory, and a machine whose channels are not published");
    let text = include_str!("../machines/epyc-7451x2.toml");
    assert!(MachineModel::parse(text).is_ok());
    let error = MachineModel::parse(&text.replacen("allocate = 0", "allocate = 1", 1)).unwrap_err();
    assert_eq!(error.place, "bandwidth.streams", "{error}");
}

/// Check that two Skylake pairs, one with a measured link and one with a link by generation, give the same advice on interleaving.
#[test]
fn advice_does_not_depend_on_who_measured_the_link() {
    let slowdown = |name: &str, each: usize| {
        let run = Ratio {
            machine: name.to_owned(),
            name: "36 threads".to_owned(),
            purpose: Use::Fit,
            kernel: Kernel::Stream,
            threads: vec![each; 2],
            node: None,
            interleave: Some(vec![0, 1]),
            thread_gb_per_s: None,
            measured: [1.0; 2],
            unit: Unit::Seconds,
        };
        runs::ratio(&machine::find(name).unwrap(), &run).unwrap()
    };
    let (described, measured) = (slowdown("xeon-gold-6148x2", 18), slowdown("xeon-skylake-sp-x2-breniac", 14));
    assert!(described > 1.2 && measured > 1.2, "{described} {measured}");
    assert!((described / measured).ln().abs() < 0.15, "{described} {measured}");
}
