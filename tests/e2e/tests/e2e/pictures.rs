// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SVG pictures of all commands that draw one: no text is cut or overlaps another, and captions name only what is drawn.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::picture::Picture;
use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{Firsttouch, temporary_directory, text};
use std::fs;

/// Runs a command that writes a picture, and checks its texts.
fn drawn(firsttouch: &Firsttouch, arguments: &[&str]) -> Picture {
    let directory = temporary_directory();
    let file = directory.path().join("picture.svg");
    let outcome = run(firsttouch.command(arguments).args(["--svg", text(&file)]));
    assert_eq!(outcome.status, 0, "{arguments:?}: {outcome:?}");
    let picture = Picture::read(&fs::read_to_string(&file).expect("the picture"));
    let faults = picture.faults();
    assert!(!picture.texts.is_empty() && faults.is_empty(), "{arguments:?}:\n{}", faults.join("\n"));
    picture
}

/// Check the pictures of all recorded machines.
#[test]
fn topologies() {
    let Some(firsttouch) = Firsttouch::find("topologies") else { return };
    let machines = fs::read_dir(workspace_root().join("fixtures/machines")).expect("machines");
    let machines: Vec<_> = machines.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    assert!(machines.len() > 10);
    for machine in machines {
        let picture = drawn(&firsttouch, &["topology", "--input", text(&machine)]);
        assert_eq!(picture.says("this process may not use it"), picture.count("rect", &["#e08f8f"]) > 1, "{}", machine.display());
        assert_eq!(picture.says("memory in use"), picture.count("rect", &["#f2b880"]) > 1, "{}", machine.display());
    }
}

/// Check that a picture of one measurement has no caption for lines and ranges that it lacks, and that one of several has both.
#[test]
fn speeds() {
    let Some(firsttouch) = Firsttouch::find("speeds") else { return };
    let triad = ["bench", "triad", "--elements", "100000", "--iterations", "1", "--repetitions"];
    let alone = drawn(&firsttouch, &[&triad[..], &["1", "--threads", "1"]].concat());
    assert!(!alone.says("perfect scaling") && !alone.says("bars") && !alone.says("median"), "{:?}", alone.texts);
    let several = drawn(&firsttouch, &[&triad[..], &["3", "--scaling", "1,2"]].concat());
    assert!(several.says("median of 3 repetitions, bars"), "{:?}", several.texts);
    // Where the second column would be higher than the picture, no line is drawn.
    assert_eq!(several.says("perfect scaling"), several.count("line", &["#bbb"]) > 0, "{:?}", several.texts);
    drawn(&firsttouch, &["bench", "dgemv", "--m", "300", "--n", "300", "--iterations", "1", "--repetitions", "2", "--threads", "2"]);
}

/// Check the heat maps of this machine: with its name as the title, and the words below each map.
#[test]
fn maps() {
    let Some(firsttouch) = Firsttouch::find("maps") else { return };
    for kernels in ["read", "read,write,triad"] {
        let picture = drawn(&firsttouch, &["map", "--runs", "3", "--spread", "50%", "--size", "1M", "--kernels", kernels]);
        assert!(picture.says("Bandwidth and latency") || !picture.says("latency"), "{:?}", picture.texts);
    }
}

/// Check the figures of all experiments: each name of the legend belongs to a curve, and each title to a drawing.
#[test]
fn figures_of_experiments() {
    let Some(firsttouch) = Firsttouch::find("figures_of_experiments") else { return };
    for name in ["dgemv-scaling", "dgemv-first-touch", "one-socket-two-sockets", "map-scan"] {
        drawn(&firsttouch, &["reproduce", name, "--size", "1M", "--runs", "2"]);
    }
}
