// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The formats of other tools, read by these tools. Sums are compared in firsttouch-report's own tests; here, the tools have to agree.

use firsttouch_e2e::process::run;
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::skip::lacks_tools;
use firsttouch_e2e::tool::{Firsttouch, temporary_directory, text};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Exports a recorded profile, and returns what was written.
fn export(firsttouch: &Firsttouch, format: &str, file: &Path) -> Vec<u8> {
    let profile = fixture("dgemv_serial");
    let outcome = run(&mut firsttouch.command(["export", text(&profile), "--to", format, "-o", text(file)]));
    assert_eq!((outcome.status, outcome.stdout.len()), (0, 0), "{format}: {outcome:?}");
    fs::read(file).expect("the export")
}

/// Check that the same profile gives the same bytes in a file and on stdout, that exports replace exports only, and the errors.
#[test]
fn files() {
    let Some(firsttouch) = Firsttouch::find("files") else { return };
    let folder = temporary_directory();
    let profile = fixture("dgemv_serial");
    for format in ["folded", "pprof", "firefox", "callgrind", "csv", "sqlite"] {
        let file = folder.path().join(format!("out.{format}"));
        let first = export(&firsttouch, format, &file);
        assert_eq!(export(&firsttouch, format, &file), first, "{format}");
        let printed = run(&mut firsttouch.command(["export", text(&profile), "--to", format]));
        assert_eq!((printed.status, printed.stdout), (0, first), "{format}");
        let source = folder.path().join("a.c");
        fs::write(&source, "int main(void) {}\n").expect("a file");
        let refused = run(&mut firsttouch.command(["export", text(&profile), "--to", format, "-o", text(&source)]));
        assert!(refused.status == 1 && refused.stderr_text().contains("another kind of file"), "{format}: {refused:?}");
    }
    let table = fs::read_to_string(folder.path().join("out.csv")).expect("a table");
    assert!(table.starts_with("time_s,") && table.lines().next().is_some_and(|names| names.ends_with(",line")), "{table:.200}");
    assert!(table.lines().skip(1).all(|row| row.rsplit(',').next().is_some_and(|line| line.parse::<u32>().is_ok())), "{table:.400}");
    assert_eq!(fs::read(folder.path().join("out.sqlite")).expect("a copy"), fs::read(&profile).expect("the profile"));
    let unused = run(&mut firsttouch.command(["export", text(&profile), "--to", "csv", "--value", "bytes"]));
    assert!(unused.status == 2 && unused.stderr_text().contains("--value is for --to folded"), "{unused:?}");
    let remote = run(&mut firsttouch.command(["export", text(&profile), "--to", "folded", "--value", "remote-accesses"]));
    let stacks = remote.stdout_text();
    assert!(!stacks.is_empty() && stacks.lines().all(|line| line.contains(";[A];remote (node 1 to 0) ")), "{stacks}");
}

/// Check that callgrind_annotate reads the lines and their sums.
#[test]
fn callgrind_annotate() {
    if lacks_tools("callgrind_annotate", &["callgrind_annotate"]) {
        return;
    }
    let Some(firsttouch) = Firsttouch::find("callgrind_annotate") else { return };
    let folder = temporary_directory();
    let file = folder.path().join("callgrind.out.dgemv");
    let written = String::from_utf8(export(&firsttouch, "callgrind", &file)).expect("text");
    let totals: Vec<&str> = written.lines().find_map(|line| line.strip_prefix("totals: ")).expect("totals").split(' ').collect();
    let shown = run(Command::new("callgrind_annotate").args(["--auto=no", "--threshold=100"]).arg(&file));
    let shown = shown.stdout_text();
    let digits = |line: &str| line.replace([',', '(', ')'], "");
    let of_all = shown.lines().find(|line| line.contains("PROGRAM TOTALS")).map(digits).expect("totals");
    assert!(totals[..2].iter().all(|total| of_all.split_whitespace().any(|word| word == *total)), "{totals:?}: {shown}");
    assert!(shown.contains("dgemv.c:product"), "{shown}");
}
