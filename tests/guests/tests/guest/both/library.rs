//! libfirsttouch: every partition puts its pages on the nodes where it says, and `profile` finds nothing in a program that uses it.

use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{temporary_directory, text};
use firsttouch_guests::{first_two_with_cpus, firsttouch, guest_program, json, nodes, said, sampled};
use firsttouch_oracles::list;
use std::process::Command;

const PARTITIONS: [&str; 8] = ["blocked", "blocked-over-nodes", "cyclic", "cyclic-pages", "by-bounds", "weighted", "interleaved", "bind"];

/// Check that at least 99 % of the pages are on target, whoever touches them first: for new memory, memory that is moved, memory that
/// `read` fills, and memory that threads of the library set to zero; that small pages are at borders only; and that copies are local.
#[test]
fn pages_are_on_target() {
    let said = said(Command::new(guest_program("library")).arg("check").env("OMP_PROC_BIND", "true"));
    let line = |start: &str| said.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start}: {said}"));
    let share = |start: &str| line(start).split(' ').nth(2).and_then(|share| share.parse::<f64>().ok()).unwrap_or_else(|| panic!("{said}"));
    for partition in PARTITIONS {
        for way in ["alloc", "place", "localise", "zero-parallel"] {
            assert!(share(&format!("{way} {partition}:")) >= 0.99, "{way} {partition}: {said}");
        }
        assert!(line(&format!("place {partition}:")).contains(", moved"), "{said}");
    }
    for also in [
        "localise fine:",
        "zero-parallel nobody:",
        "split cyclic:",
        "split interleaved:",
        "alloc huge:",
        "realloc huge:",
        "replicate table:",
    ] {
        assert!(share(also) >= 0.99, "{also} {said}");
    }
    // Pages in turn begin with the node that the address decides: memory that exists may begin with another.
    let doubts = said.lines().filter(|line| line.contains("DOUBT") && !line.starts_with("place cyclic-pages:"));
    assert_eq!(doubts.count(), 0, "{said}");
    let threads = said.lines().last().and_then(|line| line.strip_prefix("local copies: ")).unwrap_or_default().to_owned();
    assert!(threads.ends_with(" of 4 threads") && threads.starts_with("4 "), "{said}");
    let huge: Vec<u32> = line("alloc huge:").split([' ', ',']).filter_map(|word| word.parse().ok()).skip(1).collect();
    assert!(huge.len() == 2 && huge.iter().all(|kib| *kib == 8192), "both halves consist of huge pages: {huge:?} {said}");
}

/// Check that a program whose arrays one thread fills, and two threads on two nodes use, has no remote accesses and no finding, and that
/// its arrays have the names and lines of the calls of the library. (Two threads, so that the recorder has a CPU.)
#[test]
fn nothing_is_found() {
    sampled(|| {
        let folder = temporary_directory();
        let file = folder.path().join("library.ftp");
        let program = guest_program("library");
        let places = first_two_with_cpus().map(|node| format!("{{{}}}", node.cpus[0])).join(",");
        let mut profile = firsttouch().profile(&file, &["-q"], &[text(&program), "use", "3"]);
        let profiled = run(profile.env("OMP_PLACES", places).env("OMP_NUM_THREADS", "2"));
        assert_eq!(profiled.status, 0, "{profiled:?}");
        let said = profiled.stdout_text();
        assert!(said.contains("use field: 1.0000") && said.contains("use table: 1.0000"), "{said}");
        let report = json(&["report", text(&file)]);
        assert_eq!(report["machine"]["nodes"].as_u64(), Some(nodes().len() as u64), "{report:#}");
        assert_eq!(list(&report, "findings").len(), 0, "{report:#}");
        assert!(report["remote_fraction"].as_f64() < Some(0.03), "{report:#}");
        let field = list(&report, "objects").iter().find(|object| object["name"] == "field").unwrap_or_else(|| panic!("{report:#}"));
        assert_eq!(field["judged"], true, "{report:#}");
        let site = &field["allocated_at"];
        assert!(site["file"].as_str().is_some_and(|file| file.ends_with("/library.c")), "{field:#}");
        assert!(site["text"].as_str().is_some_and(|text| text.contains("ft_alloc(")), "{field:#}");
    });
}
