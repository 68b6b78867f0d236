//! The doctor's input: settings of the kernel, control groups, meminfo, the process's limits, and the environment (the file
//! `environment`, one variable per line).
#![no_main]

use firsttouch_fuzz::{Tree, mutate};
use firsttouch_report::{DoctorJson, Style, doctor_text};
use firsttouch_system::facts;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const ALWAYS: [(&str, &[u8]); 3] = [
    ("sys/devices/system/cpu/online", b"0-3\n"),
    ("sys/devices/system/node/node0/cpulist", b"0-1\n"),
    ("sys/devices/system/node/node1/cpulist", b"2-3\n"),
];

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|input: &[u8]| {
    let tree = Tree::new(&ALWAYS, input);
    let Ok(mut facts) = facts::read(tree.path()) else { return };
    let environment = std::fs::read(tree.path().join("environment")).unwrap_or_default();
    let environment = String::from_utf8_lossy(&environment);
    facts.environment = Some(
        environment.lines().filter_map(|line| line.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    );
    let diagnosis = firsttouch_doctor::examine(&facts);
    assert!(!doctor_text(&diagnosis, Style { width: 80, colour: false }).is_empty());
    serde_json::to_string(&DoctorJson::new(&diagnosis)).expect("JSON");
});
