//! `balancing` and `balancing measure`, with a program that reliably triggers the kernel's balancing.

use firsttouch_e2e::process::run;
use firsttouch_guests::{Setting, first_two_with_cpus, firsttouch, guest_program, json, read_number};
use firsttouch_oracles::list;
use serde_json::Value;

pub const SWITCH: &str = "/proc/sys/kernel/numa_balancing";
const TUNABLES: &str = "/sys/kernel/debug/sched/numa_balancing";

fn switch() -> u64 {
    read_number(SWITCH)
}

/// Check the state, the switch, and the tunables against the kernel's files.
#[test]
fn state_and_switch() {
    let _before = Setting::set(SWITCH, "0");
    for (arguments, value, state) in [(&["balancing"][..], 0, "off"), (&["balancing", "on"], 1, "on"), (&["balancing", "off"], 0, "off")] {
        let reported = json(arguments);
        assert_eq!((reported["value"].as_u64(), reported["state"].as_str()), (Some(value), Some(state)), "{reported:#}");
        assert_eq!(switch(), value, "{arguments:?}");
        assert!(reported["nodes"].as_u64() > Some(1) && list(&reported, "doubts").is_empty(), "{reported:#}");
        for name in ["scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms", "scan_size_mb"] {
            let tunable =
                list(&reported, "tunables").iter().find(|tunable| tunable["name"] == name).unwrap_or_else(|| panic!("{reported:#}"));
            assert_eq!(tunable["value"], read_number(format!("{TUNABLES}/{name}")), "{name}");
        }
    }
}

fn most(measured: &Value, key: &str) -> f64 {
    measured[key]["max"].as_f64().unwrap()
}

/// Check that for memory used from another node, many faults and migrations are counted with balancing on and few with it off, and that
/// the previous state is restored.
#[test]
fn measured() {
    let _before = Setting::set(SWITCH, "0");
    let _soon = ["scan_delay_ms", "scan_period_min_ms"].map(|name| Setting::set(&format!("{TUNABLES}/{name}"), "20"));
    let [first, second] = first_two_with_cpus().map(|node| node.cpus[0].to_string());
    let mut command = firsttouch().command(["balancing", "measure", "--rounds", "1", "--json", "--"]);
    command.arg(guest_program("far_use")).args([&first, &second, "8", "3"]);
    let outcome = run(&mut command);
    assert_eq!((outcome.status, switch()), (0, 0), "{outcome:?}");
    let reported: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    assert_eq!(reported["schema"], "firsttouch.balancing-measure/1");
    let [on, off] = list(&reported, "measured").as_slice() else { panic!("{reported:#}") };
    assert_eq!((on["balancing"].as_str(), off["balancing"].as_str()), (Some("on"), Some("off")));
    // All 2,048 pages of the program are on the wrong node. Each has at least one hinting fault before it is moved.
    assert!(most(on, "pages_migrated") > 1024.0 && most(on, "hint_faults") >= most(on, "pages_migrated"), "{reported:#}");
    // Pages of other processes that were marked while balancing was on still fault, one by one: 0 to 5 were observed.
    assert!(most(off, "hint_faults") < 0.01 * most(on, "hint_faults") && most(off, "pages_migrated") < 20.0, "{reported:#}");
}
