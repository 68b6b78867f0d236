//! `profile` and `report` on real nodes: the nodes of pages are the kernel's answers, not derived.

use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{temporary_directory, text};
use firsttouch_guests::{first_two_with_cpus, firsttouch, guest_program, json, nodes, said, sampled};
use firsttouch_oracles::list;
use std::collections::BTreeSet;
use std::process::Command;
use std::thread;
use std::time::Duration;

const ARRAY_BYTES: u64 = 8 << 20;

/// Check a program whose two threads use what they touched first: in a report for this machine, each array's pages are on the node of
/// its thread, all accesses are local, and there is no finding. (In one guest; two::dgemv checks it in the other.)
#[test]
fn well_placed() {
    if nodes().len() == 2 {
        return;
    }
    sampled(|| {
        let [first, second] = first_two_with_cpus();
        let folder = temporary_directory();
        let file = folder.path().join("own.ftp");
        let cpus = [&first, &second].map(|node| node.cpus[0].to_string());
        let program = guest_program("own_arrays");
        let profiled = run(&mut firsttouch().profile(&file, &["-q"], &[text(&program), &cpus[0], &cpus[1], "8"]));
        assert_eq!(profiled.status, 0, "{profiled:?}");
        let arrays: Vec<u64> = profiled.stdout_text().split_whitespace().map(|word| word.parse().unwrap()).collect();

        let profile = firsttouch_profile::open(&file).unwrap();
        for (array, node) in arrays.iter().zip([&first, &second]) {
            // The main thread touched the page with malloc's own data before the array.
            let inside = array.next_multiple_of(4096)..array + ARRAY_BYTES;
            let asked = profile.pages.iter().filter(|page| inside.contains(&page.address) && page.node >= 0);
            let reported: BTreeSet<u32> = asked.map(|page| page.node.unsigned_abs()).collect();
            assert_eq!(reported, [node.id].into(), "pages of {array:x}");
        }

        let report = json(&["report", text(&file)]);
        let machine = &report["machine"];
        assert_eq!((machine["virtual"].as_bool(), machine["nodes"].as_u64()), (Some(false), Some(nodes().len() as u64)), "{machine:#}");
        assert_eq!(list(&report, "findings").len(), 0, "{report:#}");
        let seats: Vec<u64> = list(&report, "threads").iter().skip(1).map(|thread| thread["node"].as_u64().unwrap()).collect();
        assert_eq!(seats, [u64::from(first.id), u64::from(second.id)], "{report:#}");
        let remote = report["remote_fraction"].as_f64().unwrap();
        assert!(remote < 0.03, "{remote}: {report:#}");
        // Both threads have a share of the observed accesses.
        for node in [&first, &second] {
            let share = report["matrix"][node.id as usize][node.id as usize].as_f64().unwrap();
            assert!(share > 0.2, "node {}: {report:#}", node.id);
        }

        // The same with the XML file of this machine.
        let xml = folder.path().join("a-machine.xml");
        said(firsttouch().command(["topology", "--xml"]).arg(&xml));
        let there = json(&["report", text(&file), "--machine", text(&xml)]);
        assert_eq!((there["machine"]["name"].as_str(), &there["machine"]["nodes"]), (Some("a-machine"), &machine["nodes"]), "{there:#}");
        assert_eq!(list(&there, "threads").len(), list(&report, "threads").len());
    });
}

/// Check that a profile does not depend on the wall clock, which is set forward by a day and back by two while the program runs.
#[test]
fn wall_clock_is_set() {
    let [first, second] = first_two_with_cpus();
    let folder = temporary_directory();
    let file = folder.path().join("own.ftp");
    let cpus = [&first, &second].map(|node| node.cpus[0].to_string());
    let program = guest_program("own_arrays");
    let set = |seconds: i64| {
        let now = said(Command::new("date").arg("+%s")).trim().parse::<i64>().unwrap();
        said(Command::new("date").arg("-s").arg(format!("@{}", now + seconds)));
    };
    let day = 86_400;
    let profiled = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(600));
            set(day);
            thread::sleep(Duration::from_millis(600));
            set(-2 * day);
        });
        run(&mut firsttouch().profile(&file, &["-q"], &[text(&program), &cpus[0], &cpus[1], "2"]))
    });
    set(day);
    assert_eq!(profiled.status, 0, "{profiled:?}");
    let profile = firsttouch_profile::open(&file).unwrap();
    let (start, end) = profile.meta.start_ns.zip(profile.meta.end_ns).unwrap();
    let seconds = (end - start) as f64 / 1e9;
    assert!((1.5..60.0).contains(&seconds), "{seconds} s");
    assert!(profile.first_touches.iter().all(|touch| (start..=end).contains(&touch.time_ns)));
    let report = json(&["report", text(&file)]);
    assert!(report["unfinished"].is_null() && report["wall_s"].as_f64().is_some_and(|wall| wall < 60.0), "{report:#}");
}
