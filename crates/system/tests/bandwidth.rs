//! Counters of memory bandwidth, found in constructed trees and in damaged copies of them, and read by a fake counter.

use crate::tree::files;
use firsttouch_model::facts::BandwidthCounters;
use firsttouch_system::bandwidth::{ControllerEvent, Count, Value, open_with, recorded};
use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const DEVICES: &str = "sys/bus/event_source/devices";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bandwidth").join(name)
}

/// A copy of a fixture that the tests can damage.
fn copy(name: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in files(&fixture(name)) {
        let to = copy.path().join(file.strip_prefix(fixture(name)).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&file, to).unwrap();
    }
    copy
}

/// The events that are opened, and why there is no meter.
fn opened(root: &Path) -> (Vec<ControllerEvent>, Result<&'static str, BandwidthCounters>) {
    let events = RefCell::new(Vec::new());
    let opener = |event: &ControllerEvent| -> io::Result<Box<dyn Count>> {
        events.borrow_mut().push(event.clone());
        Ok(Box::new(Value::default()))
    };
    let source = open_with(root, &opener).map(|meter| meter.source());
    (events.into_inner(), source)
}

fn refuse(_: &ControllerEvent) -> io::Result<Box<dyn Count>> {
    Err(io::Error::from_raw_os_error(13))
}

/// Check the events of Intel's controllers: each once on each package, with its encoding, node and bytes; and not the free-running counters beside them.
#[test]
fn controllers_of_intel() {
    let (events, source) = opened(&fixture("constructed-intel-2-nodes"));
    assert_eq!(source, Ok("uncore"));
    let found: Vec<_> = events.iter().map(|e| (e.unit.as_str(), e.event.as_str(), e.kind, e.config[0], e.cpu, e.node)).collect();
    let of = |unit: &'static str, kind| {
        let (read, write) = ("cas_count_read", "cas_count_write");
        [
            (unit, read, kind, 0x304, 0, 0),
            (unit, read, kind, 0x304, 2, 1),
            (unit, write, kind, 0xc04, 0, 0),
            (unit, write, kind, 0xc04, 2, 1),
        ]
    };
    assert_eq!(found, [of("uncore_imc_0", 20), of("uncore_imc_1", 21)].concat());
    assert!(events.iter().all(|event| event.bytes_per_count == 64.0 && event.is_read == (event.event == "cas_count_read")));
    // Without the named events, the free-running counters are used.
    let copy = copy("constructed-intel-2-nodes");
    for unit in ["uncore_imc_0", "uncore_imc_1"] {
        fs::remove_dir_all(copy.path().join(DEVICES).join(unit).join("events")).unwrap();
    }
    let (events, source) = opened(copy.path());
    assert!(source == Ok("uncore") && events.len() == 4 && events.iter().all(|e| e.unit == "uncore_imc_free_running_0"));
    assert!((events[0].bytes_per_count - 4.0).abs() < 1e-6 && events[0].config == [0x20ff, 0, 0]);
}

/// Check the events of AMD's controllers, which have no names, and that they are preferred to resctrl.
#[test]
fn controllers_of_amd() {
    let (events, source) = opened(&fixture("constructed-amd-2-nodes"));
    assert_eq!(source, Ok("uncore"));
    let found: Vec<_> = events.iter().map(|e| (e.unit.as_str(), e.config[0], e.cpu, e.node, e.is_read)).collect();
    assert_eq!(
        found,
        [
            ("amd_umc_0", 0x10a, 0, 0, true),
            ("amd_umc_0", 0x20a, 0, 0, false),
            ("amd_umc_1", 0x10a, 4, 1, true),
            ("amd_umc_1", 0x20a, 4, 1, false)
        ]
    );
}

/// Check that resctrl is read where controllers are forbidden: the domains and groups of each node together, and nothing while one has no value.
#[test]
fn resctrl_by_node() {
    let copy = copy("constructed-amd-2-nodes");
    let mut meter = open_with(copy.path(), &refuse).unwrap();
    assert!(meter.source() == "resctrl" && meter.detail().contains("sys/fs/resctrl"), "{}", meter.detail());
    assert!(meter.read(1).is_empty(), "the first reading has no growth");
    let set = |file: &str, text: &str| fs::write(copy.path().join("sys/fs/resctrl").join(file), text).unwrap();
    set("mon_data/mon_L3_00/mbm_total_bytes", "1500\n");
    set("batch/mon_data/mon_L3_01/mbm_total_bytes", "17\n");
    set("mon_data/mon_L3_01/mbm_local_bytes", "1201\n");
    set("mon_data/mon_L3_02/mbm_total_bytes", "Unavailable\n");
    let found = |meter: &mut firsttouch_system::bandwidth::Meter, now| {
        meter.read(now).into_iter().map(|one| (one.node, one.from_ns, one.bytes, one.local_bytes, one.read_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(found(&mut meter, 2), [(0, 1, 510, Some(1), None)]);
    set("mon_data/mon_L3_02/mbm_total_bytes", "3001\n");
    assert_eq!(found(&mut meter, 3), [(0, 2, 0, Some(0), None), (1, 1, 1, Some(0), None)]);
    fs::remove_dir_all(copy.path().join("sys/fs/resctrl/batch")).unwrap();
    assert_eq!(found(&mut meter, 4), []);
}

/// Check that domains with a folder for each node (sub-NUMA clusters) count by these.
#[test]
fn resctrl_with_sub_numa_clusters() {
    let copy = copy("constructed-amd-2-nodes");
    fs::remove_dir_all(copy.path().join("sys/fs/resctrl")).unwrap();
    for node in [0, 1] {
        let folder = copy.path().join(format!("sys/fs/resctrl/mon_data/mon_L3_00/mon_sub_L3_0{node}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("mbm_total_bytes"), "0\n").unwrap();
    }
    let mut meter = open_with(copy.path(), &refuse).unwrap();
    meter.read(1);
    assert_eq!(meter.read(2).iter().map(|one| (one.node, one.local_bytes)).collect::<Vec<_>>(), [(0, None), (1, None)]);
}

/// Check what is said where nothing can be read: the cause and what would help, or nothing where there are no counters.
#[test]
fn refusals_say_what_helps() {
    let refused = |root: &Path, why: &str, help: &str| match open_with(root, &refuse).map(|meter| meter.source()) {
        Err(BandwidthCounters::Refused { why: found, remedy }) => {
            assert!(found.contains(why) && remedy.contains(help) && help.is_empty() == remedy.is_empty(), "{found}; {remedy}");
        }
        other => panic!("{why}: {other:?}"),
    };
    let intel = fixture("constructed-intel-2-nodes");
    refused(&intel, "uncore_imc_0: perf_event_open: Permission denied", "kernel.perf_event_paranoid=0");
    assert!(matches!(recorded(&intel, Some(2)), BandwidthCounters::Refused { .. }));
    assert_eq!(recorded(&intel, Some(0)), BandwidthCounters::Readable("uncore_imc_0 and 1 more memory controllers".to_owned()));
    assert_eq!(recorded(Path::new("/nonexistent"), Some(0)), BandwidthCounters::Missing);
    let unmounted = copy("constructed-amd-2-nodes");
    fs::remove_dir_all(unmounted.path().join(DEVICES)).unwrap();
    for name in fs::read_dir(unmounted.path().join("sys/fs/resctrl")).unwrap() {
        fs::remove_dir_all(name.unwrap().path()).unwrap();
    }
    assert_eq!(recorded(unmounted.path(), Some(0)), BandwidthCounters::Missing);
    fs::write(unmounted.path().join("proc/cpuinfo"), "flags\t\t: fpu cqm_llc cqm_mbm_total cqm_mbm_local\n").unwrap();
    refused(unmounted.path(), "resctrl is not mounted", "sudo mount -t resctrl resctrl /sys/fs/resctrl");
}

/// Check that damaged files are named, and that a part of the controllers or caches is not taken for all of them.
#[test]
fn damage_names_its_file() {
    let damaged = |machine: &str, file: &str, text: Option<&str>, why: &str| {
        let copy = copy(machine);
        let path = copy.path().join(file);
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        match opened(copy.path()).1 {
            Err(BandwidthCounters::Refused { why: found, remedy }) => {
                let name = file.rsplit('/').next().unwrap().trim_end_matches(".unit");
                assert!(found.contains(why) && found.contains(name) && remedy.is_empty(), "{file}: {found}");
            }
            other => panic!("{file}: {other:?}"),
        }
    };
    let intel = |file: &str, text, why| damaged("constructed-intel-2-nodes", &format!("{DEVICES}/uncore_imc_1/{file}"), text, why);
    intel("type", Some("imc"), "expected a number");
    intel("type", None, "it is missing");
    intel("cpumask", Some("0,x"), "expected a number");
    intel("cpumask", Some("0-3\u{fffd}"), "expected a number");
    intel("events/cas_count_read", Some("event=0x104,umask=3"), "does not fit");
    intel("events/cas_count_read", Some("event="), "expected terms");
    intel("events/cas_count_read", Some("event=4,channel=1"), "\"channel\"");
    intel("events/cas_count_write.scale", Some("-1"), "expected a scale");
    intel("events/cas_count_write.unit", Some("Joules"), "expected a unit");
    intel("format/umask", Some("config:a"), "expected bits");
    // A package with two nodes: no one says which of them a controller belongs to.
    let copy = copy("constructed-intel-2-nodes");
    for cpu in [2, 3] {
        fs::write(copy.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id")), "0\n").unwrap();
    }
    for unit in ["uncore_imc_0", "uncore_imc_1", "uncore_imc_free_running_0"] {
        fs::write(copy.path().join(format!("{DEVICES}/{unit}/cpumask")), "0\n").unwrap();
    }
    assert!(matches!(opened(copy.path()).1, Err(BandwidthCounters::Refused { why, .. }) if why.contains("node 1 would have none")));
}
