//! `tune` on two nodes: a program that asks the kernel itself where its pages are says what was achieved.

use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::tool::{temporary_directory, text};
use firsttouch_guests::{Setting, balancing_off, firsttouch, guest_program, sampled};
use firsttouch_oracles::list;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// One thread on each node. The other two CPUs are free for the recorder, which would starve beside busy threads on emulated CPUs.
const CPUS: &str = "0,2";

/// What the program `misplaced` counted.
type Counts = BTreeMap<String, f64>;

fn counts(output: &str) -> Counts {
    let line = output.lines().find(|line| line.starts_with("sweeps=")).unwrap_or_else(|| panic!("no counts: {output}"));
    line.split(' ').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

/// Runs `tune -- misplaced WORDS`, and returns its JSON with the program's own counts.
fn tuned(words: &[&str], options: &[&str], folder: &Path) -> (Value, Counts) {
    let file = folder.join("tune.json");
    let (program, json) = (guest_program("misplaced"), format!("--json={}", text(&file)));
    let mut command = firsttouch().command([&["tune", &json], options, &["--", text(&program)]].concat());
    let outcome = run(command.args(words));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let json: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let counts = counts(&outcome.stdout_text());
    println!(
        "{words:?}: {counts:?}; {} pages moved, {} to {}",
        process(&json)["moved_pages"],
        process(&json)["remote_before"],
        process(&json)["remote_after"]
    );
    (json, counts)
}

fn process(outcome: &Value) -> &Value {
    list(outcome, "processes").first().unwrap_or_else(|| panic!("no process: {outcome:#}"))
}

/// The part of the pages that are on another node than their users at the end.
fn misplaced(counts: &Counts) -> f64 {
    counts["misplaced_end"] / counts["pages"]
}

/// Check that the matrix of a serial initialisation is repaired: at least 95 % of its pages are at their users' at the end, no page moved twice, and the share
/// of remote accesses before and after is that of the truth. And that the plan names the matrix.
#[test]
#[ignore = "takes 25 to 45 s: scripts/test-guests two_nodes -- --ignored two::tune::serial_initialisation"]
fn serial_initialisation() {
    sampled(|| {
        let (_off, folder) = (balancing_off(), temporary_directory());
        let plan = folder.path().join("learnt.toml");
        let (outcome, counts) = tuned(&["rows", "until:60", "16", CPUS, "serial"], &["--save-plan", text(&plan)], folder.path());
        assert!(misplaced(&counts) <= 0.05, "{counts:?}: {outcome:#}");
        let (moved, pages) = (process(&outcome)["moved_pages"].as_f64().unwrap(), counts["pages"]);
        assert!(moved <= 0.55 * pages && counts["page_moves"] <= 0.55 * pages, "{moved} {counts:?}");
        assert_eq!(process(&outcome)["astray_pages"], 0, "{outcome:#}");
        let share = |name: &str| process(&outcome)[name]["share"].as_f64().unwrap_or(f64::NAN);
        // Where the guest is slow, pages may be moved before there are enough samples for a share, and the program may end before there are enough after.
        assert!(share("remote_before").is_nan() || (share("remote_before") - 0.5).abs() < 0.2, "{outcome:#}");
        assert!(share("remote_after").is_nan() || share("remote_after") < 0.15, "{outcome:#}");
        let objects = list(process(&outcome), "objects");
        assert!(
            objects[0]["name"] == "data" && objects[0]["line"].as_str().is_some_and(|line| line.starts_with("misplaced.c:")),
            "{outcome:#}"
        );
        let plan = fs::read_to_string(&plan).unwrap();
        assert!(plan.contains("schema = \"firsttouch.plan/1\"") && plan.contains("data"), "{plan}");
    });
}

/// Check that no page of a well-placed program is moved, and that a process that ran before is tuned as well.
#[test]
#[ignore = "takes 60 s"]
fn well_placed_and_attached() {
    sampled(|| {
        let (_off, folder) = (balancing_off(), temporary_directory());
        let (outcome, counts) = tuned(&["triad", "15", "6", CPUS, "parallel"], &[], folder.path());
        assert_eq!((process(&outcome)["moved_pages"].as_u64(), counts["page_moves"]), (Some(0), 0.0), "{outcome:#}");

        let running = Running::start(Command::new(guest_program("misplaced")).args(["triad", "until:90", "6", CPUS, "serial"]), b"");
        running.wait_for_stdout("ready\n");
        let attached = run(&mut firsttouch().command(["tune", &running.pid().to_string(), "--json"]));
        let counts = self::counts(&running.wait().stdout_text());
        println!("attached: {counts:?}");
        assert_eq!(attached.status, 0, "{attached:?}");
        assert!(misplaced(&counts) <= 0.05, "{counts:?}: {}", attached.stdout_text());
    });
}

/// Compares three ways to run programs: alone, with the kernel's balancing, and with `tune`. Prints a table (docs/tune.md).
#[test]
#[ignore = "a measurement of some minutes: scripts/test-guests two_nodes -- --ignored two::tune::beside_balancing"]
fn beside_balancing() {
    let seconds = "30";
    for (kernel, mib, period) in [("rows", "48", None), ("triad", "16", None), ("stencil", "24", None), ("rows", "48", Some("10"))] {
        let words: Vec<&str> = [kernel, seconds, mib, CPUS, "serial"].into_iter().chain(period).collect();
        for way in ["alone", "balancing", "tune"] {
            let _setting = Setting::set("/proc/sys/kernel/numa_balancing", if way == "balancing" { "1" } else { "0" });
            let folder = temporary_directory();
            let counts = if way == "tune" {
                tuned(&words, &[], folder.path()).1
            } else {
                counts(&run(Command::new(guest_program("misplaced")).args(&words)).stdout_text())
            };
            println!(
                "| {kernel}{} | {way} | {:.0} | {:.1} % | {:.0} | {:.2} |",
                period.map_or_else(String::new, |period| format!(", changing each {period} s")),
                counts["misplaced_page_s"],
                100.0 * misplaced(&counts),
                counts["page_moves"],
                counts["sweeps"]
            );
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}
