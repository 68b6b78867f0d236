// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a new user meets in the first hour: verdicts without evidence, policies, short threads, children, attaching, progress, and what is left
//! behind. docs/first-hour.md says which test is for which promise.

use firsttouch_e2e::paths::{find_tool, workspace_root};
use firsttouch_e2e::process::{Outcome, Running, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::skip::skipped;
use firsttouch_e2e::terminal::run_on_terminal;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, temporary_directory, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The samples of a short run can miss by chance.
const ATTEMPTS: usize = 3;

fn source_line(source: &str, mark: &str) -> u64 {
    let text = fs::read_to_string(workspace_root().join("tests/programs").join(source)).expect("a source");
    let line = text.lines().position(|line| line.contains(mark)).unwrap_or_else(|| panic!("{mark} in {source}"));
    line as u64 + 1
}

fn list<'v>(report: &'v Value, key: &str) -> &'v [Value] {
    report[key].as_array().map_or(&[], Vec::as_slice)
}

/// Profiles a command until the report on it has no problems.
fn until_right(firsttouch: &Firsttouch, file: &Path, command: &[&str], problem: impl Fn(&Value) -> Option<String>) -> Value {
    let mut problems = Vec::new();
    for _ in 0..ATTEMPTS {
        let outcome = run(&mut firsttouch.profile(file, &["--quiet"], command));
        assert_eq!((outcome.status, outcome.program_stderr().as_str()), (0, ""), "{outcome:?}");
        let report = firsttouch.report_json(file);
        match problem(&report) {
            None => return report,
            Some(problem) => problems.push(problem),
        }
    }
    panic!("{command:?}: {}", problems.join("\n"));
}

/// Check that the report of README's DGEMV fits a screen of 80 x 24 without its fix, begins with the verdict, and ends with the next command.
#[test]
fn dgemv_fits_a_screen() {
    let name = "dgemv_fits_a_screen";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let bench = ["firsttouch", "bench", "dgemv", "--init", "serial", "--iterations", "12", "--threads", "4"];
    let folder = firsttouch.binary().parent().expect("a folder").display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let report = (0..ATTEMPTS)
        .map(|_| {
            let mut profile = firsttouch.profile(Path::new("dgemv.ftp"), &["--quiet"], &bench);
            let outcome = run(profile.current_dir(directory.path()).env("PATH", &path));
            assert_eq!(outcome.status, 0, "{outcome:?}");
            run(firsttouch.command(["report", "dgemv.ftp"]).current_dir(directory.path()).env("COLUMNS", "80")).stdout_text()
        })
        .find(|report| report.contains("MISPLACED"))
        .expect("a finding in one of three runs");
    // Rows that say what to change, and doubts, which depend on the machine (other programs had the CPUs).
    let mut is_left_out = false;
    let mut shown: Vec<&str> = report
        .lines()
        .filter(|line| {
            let continues = line.starts_with("            ") || line.starts_with("  ") && !line.starts_with("   ");
            is_left_out = line.starts_with("   fix ")
                || line.starts_with("   or ")
                || line.starts_with("   plan ")
                || line.starts_with("- ")
                || (is_left_out && continues);
            !is_left_out
        })
        .collect();
    shown.dedup();
    assert!(shown.len() <= 23, "{} rows\n{}", shown.len(), shown.join("\n"));
    assert!(shown.iter().all(|line| line.chars().count() <= 80), "{report}");
    let order = ["MISPLACED: ", "\n1. ", "\n   allocated ", "\nMore: firsttouch report "].map(|text| report.find(text));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}\n{report}");
}

/// Check that each test that docs/first-hour.md names exists, in the module that it names, and that it has all numbers.
#[test]
fn the_table_is_true() {
    let root = workspace_root();
    let table = fs::read_to_string(root.join("docs/first-hour.md")).expect("the page");
    let mut folders = vec![root.join("tests/e2e/tests"), root.join("tests/e2e/src")];
    folders.extend(
        fs::read_dir(root.join("crates")).expect("crates/").flatten().flat_map(|one| ["src", "tests"].map(|sub| one.path().join(sub))),
    );
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    let is_module = |path: &Path, module: &str| {
        let folder = path.parent().and_then(Path::file_name);
        path.file_stem().is_some_and(|stem| stem == module || (stem == "mod" && folder.is_some_and(|folder| folder == module)))
    };
    let is_test = |module: &str, test: &str| {
        let start = format!("#[test]\nfn {test}() {{");
        let own = files.iter().filter(|path| is_module(path, module));
        own.filter_map(|path| fs::read_to_string(path).ok()).any(|text| text.replace("    ", "").contains(&start))
    };
    let named: BTreeSet<&str> = table.split('`').skip(1).step_by(2).filter(|name| name.len() > 2 && name.contains("::")).collect();
    let missing: Vec<&str> =
        named.iter().copied().filter(|name| name.split_once("::").is_none_or(|(module, test)| !is_test(module, test))).collect();
    assert!(named.len() > 50 && missing.is_empty(), "no such tests: {missing:?}");
    let numbers: Vec<u32> = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok()).collect();
    assert_eq!(numbers, (1..=16).collect::<Vec<_>>());
}

// ------------------------------------------------------------------------------------------------------------- verdicts

/// Check that no command passes a profile without threads, without objects, or without any evidence of accesses.
#[test]
fn empty_profiles_are_not_judged() {
    let Some(firsttouch) = Firsttouch::find("empty_profiles_are_not_judged") else { return };
    let folder = temporary_directory();
    let accesses = ["samples", "sampled_accesses", "windows", "accesses"];
    let all = [&accesses[..], &["objects", "threads", "first_touches"]].concat();
    for (name, emptied) in [("threads", &["threads"][..]), ("objects", &["objects"]), ("accesses", &accesses), ("all", &all)] {
        let file = folder.path().join(format!("{name}.ftp"));
        fs::copy(fixture("dgemv_parallel"), &file).expect("a copy");
        let profile = rusqlite::Connection::open(&file).expect("a profile");
        for table in emptied {
            // Profiles of earlier versions have no samples of registers.
            let done = profile.execute(&format!("DELETE FROM {table}"), []);
            assert!(done.as_ref().is_ok_and(|rows| *rows > 0) || table.starts_with("sample"), "{table}: {done:?}");
        }
        drop(profile);
        let report = firsttouch.report_json(&file);
        let causes = list(&report["verdict"], "causes");
        assert_eq!(report["verdict"]["outcome"], "not-judged", "without {name}: {}", report["verdict"]);
        assert!(causes.iter().any(|cause| cause.as_str().is_some_and(|text| text.len() > 10)), "without {name}: {causes:?}");
        let shown = firsttouch.report(&file, &[]).stdout_text();
        assert!(shown.contains("NOT JUDGED: ") && !shown.contains("No finding"), "without {name}: {shown}");
        let checked = run(&mut firsttouch.command(["check", text(&file)]));
        assert!(checked.status == 1 && checked.stdout_text().contains("NOT JUDGED"), "without {name}: {checked:?}");
        let planned = run(&mut firsttouch.command(["plan", text(&file), "-o", "-"]));
        let said = planned.stdout_text() + &planned.stderr_text();
        assert!(!said.contains("well placed"), "without {name}: {planned:?}");
    }
}

/// Check that a recording that ends while a program still has one thread is no all-clear.
#[test]
fn recordings_that_end_early_are_not_judged() {
    let Some(firsttouch) = Firsttouch::find("recordings_that_end_early_are_not_judged") else { return };
    let folder = temporary_directory();
    let file = folder.path().join("early.ftp");
    let script = "i=0; while [ $i -lt 4000000 ]; do i=$((i+1)); done";
    let outcome = run(&mut firsttouch.profile(&file, &["--duration", "0.5"], &["sh", "-c", script]));
    let said = outcome.stderr_text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(outcome.status == 0 && said.contains("NOT JUDGED: the recording ended before the program did, which had one thread"), "{said}");
    assert_eq!(firsttouch.report_json(&file)["verdict"]["outcome"], "not-judged");
}

/// Check that a program that leaves the work to children which are not profiled is not called well placed, and that --follow judges them.
#[test]
fn children_that_were_not_profiled() {
    let name = "children_that_were_not_profiled";
    let (Some(firsttouch), Some(worker)) = (Firsttouch::find(name), program(name, "first_hour/short_threads")) else { return };
    let folder = temporary_directory();
    let file = folder.path().join("parent.ftp");
    let script = format!("{}; exit 0", text(&worker));
    let outcome = run(&mut firsttouch.profile(&file, &[], &["sh", "-c", &script]));
    let said = outcome.stderr_text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        outcome.status == 0 && said.contains("NOT JUDGED: processes that the program started and that were not profiled used"),
        "{said}"
    );
    assert!(said.contains("to profile them: --follow"), "{said}");
    let checked = run(&mut firsttouch.command(["check", text(&file)]));
    assert!(checked.status == 1 && checked.stdout_text().contains("NOT JUDGED"), "{checked:?}");
    let checked = run(&mut firsttouch.command(["check", "--follow", "--", "sh", "-c", &script]));
    assert!(!checked.messages().contains("--follow") && !checked.messages().contains("not profiled"), "{checked:?}");
    let refused = run(&mut firsttouch.command(["check", "--follow", text(&file)]));
    assert!(refused.status == 2 && refused.messages().contains("--follow says how a program is recorded"), "{refused:?}");
    let followed = run(&mut firsttouch.profile(&file, &["--follow", "--quiet"], &["sh", "-c", &script]));
    assert_eq!(followed.status, 0, "{followed:?}");
    let report = firsttouch.report_json(&file);
    assert!(list(&report["verdict"], "causes").iter().all(|cause| !cause.as_str().unwrap_or_default().contains("--follow")), "{report}");
}

// ------------------------------------------------------------------------------------------------------ reasons and remedies

/// Check that threads which live for a few milliseconds are judged by their place among those of a step.
#[test]
fn short_threads_are_judged() {
    let name = "short_threads_are_judged";
    let (Some(firsttouch), Some(program)) = (Firsttouch::find(name), program(name, "first_hour/short_threads")) else { return };
    let folder = temporary_directory();
    let line = source_line("first_hour/short_threads.cpp", "@first-touch");
    let report = until_right(&firsttouch, &folder.path().join("short.ftp"), &[text(&program)], |report| {
        let finding = list(report, "findings").iter().find(|finding| finding["object_name"] == "field");
        let Some(object) = list(report, "objects").iter().find(|object| object["name"] == "field") else {
            return Some("no object field".to_owned());
        };
        let is_right = finding.is_some_and(|finding| finding["id"] == "serial-first-touch")
            && object["partition"] == "block"
            && object["first_touch"]["at"][0]["line"] == line;
        (!is_right).then(|| format!("{} {finding:?}", object["reason"]))
    });
    assert!(list(&report, "threads").len() > 40, "the program creates threads all the time");
    let shown = firsttouch.report(&folder.path().join("short.ftp"), &[]).stdout_text();
    assert!(shown.contains("4 threads, each its own block") && !shown.contains("profile a longer run"), "{shown}");
}

/// Check that the first touches of regions that end with a jump to memset have the line of the jump: those of the thread that began the region, and those
/// of the others, whose stacks have no frame of the program.
#[test]
fn regions_that_end_with_memset() {
    let name = "regions_that_end_with_memset";
    let (Some(firsttouch), Some(program)) = (Firsttouch::find(name), program(name, "first_hour/memset_regions")) else { return };
    let folder = temporary_directory();
    let lines = ["right", "wrong"].map(|array| (array, source_line("first_hour/memset_regions.c", &format!("@{array}"))));
    until_right(&firsttouch, &folder.path().join("regions.ftp"), &["env", "OMP_NUM_THREADS=4", text(&program)], |report| {
        let problems = lines.iter().filter_map(|(array, line)| {
            let Some(object) = list(report, "objects").iter().find(|object| object["name"] == *array) else {
                return Some(format!("no object {array}"));
            };
            let touch = &object["first_touch"];
            let at = list(touch, "at");
            let is_right = at.len() == 1 && at[0]["line"] == *line && touch["partition"] == "block" && touch["cause"] == "memset";
            (!is_right).then(|| format!("{array}: {touch}"))
        });
        let problems: Vec<String> = problems.collect();
        (!problems.is_empty()).then(|| problems.join("\n"))
    });
}

/// Check two arrays in one buffer, of which one gets twice the accesses: the finding names the line that misplaces the other one and not the variable that
/// came first, `check` shows that line, and a plan has the halves of both.
#[test]
fn arrays_of_an_arena() {
    let name = "arrays_of_an_arena";
    let (Some(firsttouch), Some(program)) = (Firsttouch::find(name), program(name, "first_hour/arena")) else { return };
    let folder = temporary_directory();
    let file = folder.path().join("arena.ftp");
    let line = source_line("first_hour/arena.cpp", "@serial");
    until_right(&firsttouch, &file, &[text(&program)], |report| {
        let Some(finding) = list(report, "findings").first() else { return Some(format!("no finding: {}", report["verdict"])) };
        let is_named = finding["object_name"].as_str().is_some_and(|name| name.starts_with("memory of a monotonic_buffer_resource"));
        let is_right = finding["id"] == "mismatched-partition" && finding["misplaced_at"]["line"] == line;
        let fix = finding["fix"].as_str().unwrap_or_default();
        let plan = run(&mut firsttouch.command(["plan", text(&file)])).stdout_text();
        let is_planned = plan.contains("threads = [1, 2, 1, 2]  # equal parts");
        (!is_named || !is_right || !is_planned || !fix.contains(&format!("arena.cpp:{line}"))).then(|| format!("{finding} {plan}"))
    });
    let checked = run(&mut firsttouch.command(["check", "--max-remote", "5", text(&file)]));
    assert!(checked.status == 3 && checked.stdout_text().contains(&format!("arena.cpp:{line}")), "{checked:?}");
}

/// Check that an allocation has the name of its own variable where others on its line are too small to be recorded.
#[test]
fn small_and_large_allocations_on_a_line() {
    let name = "small_and_large_allocations_on_a_line";
    for source in ["first_hour/one_line", "first_hour/one_line_clang"] {
        let (Some(firsttouch), Some(program)) = (Firsttouch::find(name), program(name, source)) else { return };
        let folder = temporary_directory();
        let file = folder.path().join("line.ftp");
        assert_eq!(run(&mut firsttouch.profile(&file, &["--quiet"], &[text(&program)])).status, 0);
        let report = firsttouch.report_json(&file);
        let large = list(&report, "objects").iter().filter(|object| object["bytes"].as_u64().is_some_and(|bytes| bytes > 16 << 20));
        let mut names: Vec<&str> = large.filter_map(|object| object["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["broad", "many", "wide"], "{source}: {}", report["objects"]);
    }
}

/// Check that processes which live for a few milliseconds, and which a server forks anew for each step, are judged by their place among those of a step:
/// on memory that they share, and on memory that each allocates for itself.
#[test]
fn short_processes_are_judged() {
    let name = "short_processes_are_judged";
    let (Some(firsttouch), Some(server)) = (Firsttouch::find(name), program(name, "first_hour/fork_server")) else { return };
    let folder = temporary_directory();
    let file = folder.path().join("server.ftp");
    let line = source_line("first_hour/fork_server.c", "@first-touch");
    let mut problems = Vec::new();
    for _ in 0..ATTEMPTS {
        let outcome = run(&mut firsttouch.profile(&file, &["--quiet", "--follow"], &[text(&server)]));
        assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ok\n"), "{outcome:?}");
        let report = firsttouch.report_json(&file);
        let shown = firsttouch.report(&file, &[]).stdout_text();
        let problem = problem_of_short_processes(&report, line);
        if problem.is_none() && shown.contains("4 threads, each its own block") && !shown.contains("each all over it") {
            return;
        }
        problems.push(format!("{problem:?} {shown}"));
    }
    panic!("{}", problems.join("\n"));
}

fn problem_of_short_processes(report: &Value, line: u64) -> Option<String> {
    let finding = list(report, "findings").iter().find(|finding| finding["object_name"] == "table");
    let Some(table) = list(report, "objects").iter().find(|object| object["name"] == "table") else {
        return Some("no object table".to_owned());
    };
    let own = || list(report, "objects").iter().filter(|object| object["name"].as_str().is_some_and(|name| name.starts_with("own")));
    let is_right = finding.is_some_and(|finding| finding["id"] == "serial-first-touch")
        && table["partition"] == "block"
        && table["first_touch"]["at"][0]["line"] == line
        && list(report, "threads").len() > 40
        && (1..=4).contains(&own().filter(|own| own["count"].as_u64() > Some(3)).count())
        && own().count() < 10;
    (!is_right).then(|| format!("{} {finding:?} {} times own", table["reason"], own().count()))
}

/// Check that of several arrays in one mapping of a static program, the one that a thread initialised alone is the finding, at its line.
#[test]
fn arrays_of_a_static_program() {
    let name = "arrays_of_a_static_program";
    let (Some(firsttouch), Some(arrays)) = (Firsttouch::find(name), program(name, "first_hour/static_arrays")) else { return };
    let folder = temporary_directory();
    let line = source_line("first_hour/static_arrays.c", "@first-touch");
    until_right(&firsttouch, &folder.path().join("static.ftp"), &[text(&arrays)], |report| {
        let [finding] = list(report, "findings") else { return Some(format!("findings: {}", report["findings"])) };
        let Some(object) = list(report, "objects").iter().find(|object| object["id"] == finding["object"]) else {
            return Some(format!("a finding on no object: {finding}"));
        };
        let touch = &object["first_touch"];
        let is_right = finding["id"] == "serial-first-touch" && touch["at"][0]["line"] == line && touch["of_misplaced_part"] == true;
        (!is_right).then(|| format!("{finding} {touch}"))
    });
    let shown = firsttouch.report(&folder.path().join("static.ftp"), &[]).stdout_text();
    assert!(
        shown.contains("its misplaced part, ") && shown.contains(" by thread 0") && shown.contains(&format!("static_arrays.c:{line}")),
        "{shown}"
    );
}

/// Check that attaching shows which thread uses which part, and where the part should be, also if the first touches are not known.
#[test]
fn attaching_shows_owners() {
    let name = "attaching_shows_owners";
    let (Some(firsttouch), Some(arrays)) = (Firsttouch::find(name), program(name, "first_hour/static_arrays")) else { return };
    let folder = temporary_directory();
    let file = folder.path().join("attached.ftp");
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let running = Running::start(Command::new(&arrays).arg("5"), b"");
        running.wait_for_stdout("ready");
        let pid = running.pid().to_string();
        // The number of a thread stands for its process.
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads").flatten();
        let thread =
            threads.filter_map(|thread| thread.file_name().into_string().ok()).find(|thread| *thread != pid).unwrap_or(pid.clone());
        let attached = run(firsttouch.command(["profile", "--pid", &thread, "--duration", "3", "-o"]).arg(&file));
        assert_eq!((attached.status, running.wait().status), (0, 0), "{attached:?}");
        let said = attached.stderr_text();
        assert!(said.contains(&format!("recording process {pid} ")), "{said}");
        let row = |label: &str| {
            let line = said.lines().find(|line| line.trim_start().trim_start_matches("map").trim_start().starts_with(label));
            let cells = line.and_then(|line| line.split(label).nth(1)).unwrap_or_default();
            cells.split_whitespace().filter_map(|cell| cell.parse::<i64>().ok()).collect::<BTreeSet<i64>>()
        };
        let are_owners_shown = (row("thread "), row("wanted ")) == ((0..4).collect(), (0..2).collect());
        if are_owners_shown && said.contains("firsttouch attached after they") && !said.contains("profile a longer run") {
            return;
        }
        seen.push(said);
    }
    panic!("{}", seen.join("\n"));
}

/// Check that a program's own policies (set_mempolicy, mbind) and numactl's are modelled on a virtual machine, or that the report says that they are not;
/// and that the fix tells to take the policy away first.
#[test]
fn policies_of_programs() {
    let name = "policies_of_programs";
    let (Some(firsttouch), Some(policies)) = (Firsttouch::find(name), program(name, "first_hour/policies")) else { return };
    let folder = temporary_directory();
    let file = folder.path().join("policy.ftp");
    for how in ["set", "bind"] {
        if run(Command::new(&policies).arg(how)).status == 77 {
            skipped(name, &format!("{how}: memory policies are forbidden here"));
            continue;
        }
        until_right(&firsttouch, &file, &[text(&policies), how], |report| {
            let Some(object) = list(report, "objects").iter().find(|object| object["name"] == "field") else {
                return Some("no object field".to_owned());
            };
            let homes: BTreeSet<i64> = list(&object["map"], "homes").iter().filter_map(Value::as_i64).collect();
            let fixes = || list(report, "findings").iter().filter_map(|finding| finding["fix"].as_str());
            let is_right = object["policy"].as_str().is_some_and(|policy| policy.starts_with("interleave"))
                && homes.iter().any(|home| *home != 0)
                && fixes().all(|fix| fix.starts_with("take the policy interleave"));
            (!is_right).then(|| format!("{} {homes:?} {}", object["policy"], report["findings"]))
        });
    }
    if find_tool("numactl").is_none() {
        return skipped(name, "numactl is not installed");
    }
    let command = ["numactl", "--membind=0", text(&policies), "none"];
    assert_eq!(run(&mut firsttouch.profile(&file, &["--quiet"], &command)).status, 0);
    let shown = firsttouch.report(&file, &["--machine", "virtual:2"]).stdout_text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("sets the memory policy bind:0, which says nothing about nodes that this machine does not have"), "{shown}");
}

// ------------------------------------------------------------------------------------------------------------- progress

/// Check that a recording shows a verdict while it lasts, on a terminal, and leaves the output of the program alone.
#[test]
fn a_first_verdict_while_recording() {
    let name = "a_first_verdict_while_recording";
    let (Some(firsttouch), Some(arrays)) = (Firsttouch::find(name), program(name, "first_hour/static_arrays")) else { return };
    let folder = temporary_directory();
    let (file, output) = (folder.path().join("live.ftp"), folder.path().join("output"));
    // The program writes to a file, firsttouch's messages go to the terminal.
    let script = format!("exec {} profile -o {} -- {} 40 > {}", text(firsttouch.binary()), text(&file), text(&arrays), text(&output));
    let (screen, status) = run_on_terminal(Command::new("sh").args(["-c", &script]), "% remote [", b"\x03");
    assert!(screen.contains("so far MISPLACED, "), "with how much, although the recording goes on: {screen}");
    assert_eq!(status, 130, "Ctrl-C ends the program: {screen}");
    assert_eq!(fs::read_to_string(&output).expect("the program's output"), "ready\n");
    let lines = screen.split(['\r', '\n']).filter(|line| line.contains("recording: "));
    assert!(lines.clone().count() > 1 && lines.clone().all(|line| line.chars().count() < 100), "{screen}");
    assert!(screen.contains("MISPLACED: "), "the report follows: {screen}");
    // Neither in pipes nor with --quiet.
    let command = [text(&arrays), "3"];
    let piped = run(&mut firsttouch.profile(&file, &[], &command));
    assert!(!piped.stderr_text().contains("recording: ") && piped.stdout_text() == "ready\nok\n", "{piped:?}");
    let script = script.replace("profile -o", "profile --quiet -o").replace(" 40 >", " 3 >");
    let (screen, status) = run_on_terminal(Command::new("sh").args(["-c", &script]), "", b"");
    assert_eq!((status, screen.as_str()), (0, ""));
}

// ----------------------------------------------------------------------------------------------------------- one language

/// Check that an expression of --pin means the same in all commands that take one.
#[test]
fn one_language_for_pin() {
    let Some(firsttouch) = Firsttouch::find("one_language_for_pin") else { return };
    let folder = temporary_directory();
    let profile = folder.path().join("dgemv.ftp");
    fs::copy(fixture("dgemv_serial"), &profile).expect("a copy");
    let profile = text(&profile);
    let commands: [&[&str]; 6] = [
        &["report", profile],
        &["check", profile],
        &["plan", profile, "-o", "-"],
        &["predict", profile],
        &["diff", profile, profile],
        &["profile", "--quiet", "-o", "/dev/null", "--", "true"],
    ];
    let with = |command: &[&str], pin: &str| -> Outcome {
        let (name, rest) = command.split_first().expect("a name");
        let machine = ["--machine", "epyc-7451x2"];
        run(firsttouch.command([*name]).args(machine).args(["--pin", pin]).args(rest).current_dir(folder.path()))
    };
    for command in commands {
        for good in ["spread", "compact", "scatter", "nodes:0,1", "S0:0-3@S1:0-3"] {
            let outcome = with(command, good);
            let is_understood = !outcome.messages().contains("--pin") && outcome.status != 2;
            assert!(is_understood, "{command:?} --pin {good}: {outcome:?}");
        }
        for wrong in ["sideways", "nodes:0,99", "S0:0-"] {
            assert_clear_error(&with(command, wrong), &[1, 2], &["error: "]);
        }
    }
}

// ------------------------------------------------------------------------------------------------------- what is left behind

/// Check that `clean` leaves the directory of a run alone whose processes it cannot see, as in another container, until they have ended.
#[test]
fn clean_in_another_container() {
    let name = "clean_in_another_container";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let folder = temporary_directory();
    let here = folder.path();
    let inside = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).arg(firsttouch.binary()).args(arguments);
        command.envs(["TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"].map(|name| (name, here))).current_dir(here);
        command
    };
    if find_tool("unshare").is_none() || run(&mut inside(&["--version"])).status != 0 {
        return skipped(name, "no PID namespace can be made here");
    }
    let run_directories = || -> Vec<PathBuf> {
        let all = fs::read_dir(here).expect("the directory").map(|entry| entry.expect("an entry").path());
        all.filter(|path| path.is_dir() && text(path).contains("/firsttouch-")).collect()
    };
    let start = || {
        let mut command = firsttouch.command(["profile", "--", "/bin/sh", "-c", "echo ready; sleep 100; true"]);
        command.envs(["TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"].map(|name| (name, here))).current_dir(here);
        let running = Running::start(&mut command, b"");
        running.wait_for_stdout("ready");
        running
    };
    // The first: firsttouch lives. Then it is killed, and the program that it started still has the agent.
    let mut running = start();
    for step in ["with firsttouch", "without firsttouch"] {
        let outcome = run(&mut inside(&["clean"]));
        let said = outcome.stdout_text();
        assert!(outcome.status == 0 && said.contains("a process of another container or host uses it"), "{step}: {outcome:?}");
        assert_eq!(run_directories().len(), 1, "{step}");
        if step == "with firsttouch" {
            running.signal(libc::SIGKILL);
            assert_eq!(running.wait_for_exit(), 137);
        }
    }
    running.signal_group(libc::SIGKILL);
    let is_gone = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        run(&mut inside(&["clean"])).status == 0 && run_directories().is_empty()
    });
    assert!(is_gone, "{:?}", run_directories());
}

/// Check that `clean --profiles` removes profiles with SQLite's side files, but none that is being written, and side files that were left alone.
#[test]
fn clean_removes_profiles() {
    let Some(firsttouch) = Firsttouch::find("clean_removes_profiles") else { return };
    let folder = temporary_directory();
    let here = folder.path();
    let cache = here.join("firsttouch");
    fs::create_dir(&cache).expect("a directory");
    let live = cache.join("live.ftp");
    let with = |mut command: Command| {
        command.envs(["TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"].map(|name| (name, here))).current_dir(here);
        command
    };
    for name in ["old.ftp", "old.ftp-wal", "old.ftp.1", "gone.ftp-wal", "gone.ftp-shm", "notes.txt"] {
        fs::write(cache.join(name), "x").expect("a file");
    }
    let running = Running::start(&mut with(firsttouch.profile(&live, &["--quiet"], &["sh", "-c", "echo ready; sleep 2"])), b"");
    running.wait_for_stdout("ready");
    let left = || {
        let all =
            fs::read_dir(&cache).expect("the directory").map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
        all.filter(|name| !name.starts_with("live.ftp-")).collect::<BTreeSet<String>>()
    };
    let plain = run(&mut with(firsttouch.command(["clean"])));
    assert_eq!(plain.status, 0, "{plain:?}");
    assert_eq!(left(), ["live.ftp", "notes.txt", "old.ftp", "old.ftp-wal", "old.ftp.1"].map(str::to_owned).into(), "{plain:?}");
    let profiles = run(&mut with(firsttouch.command(["clean", "--profiles"])));
    assert_eq!(profiles.status, 0, "{profiles:?}");
    assert_eq!(left(), ["live.ftp", "notes.txt"].map(str::to_owned).into(), "{profiles:?}");
    assert_eq!(running.wait().status, 0);
    assert_eq!(firsttouch.report_json(&live)["exit_code"], 0, "the profile is whole");
}

/// Check that a program is neither called well placed nor blamed if it reads memory that another process filled before: the memory is where that one
/// ran, and not where the first thread to read it here does.
#[test]
fn shared_memory_filled_by_another_process() {
    let test = "shared_memory_filled_by_another_process";
    let (Some(firsttouch), Some(program)) = (Firsttouch::find(test), program(test, "first_hour/filled_before")) else { return };
    let folder = temporary_directory();
    let memory = Path::new("/dev/shm").join(format!("firsttouch-test-{}", std::process::id()));
    let filled = run(Command::new(&program).arg("fill").arg(&memory));
    assert_eq!(filled.status, 0, "{filled:?}");
    for threads in ["1", "4"] {
        let file = folder.path().join(threads);
        let command = [program.as_os_str(), "read".as_ref(), memory.as_os_str(), threads.as_ref()];
        let outcome = run(&mut firsttouch.profile(&file, &["-q"], &command));
        assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ok\n"), "{outcome:?}");
        let report = firsttouch.report_json(&file);
        assert_eq!(report["verdict"]["outcome"], "not-judged", "{:#} {:#}", report["verdict"], report["objects"]);
        let reason = report["objects"][0]["reason"].as_str().unwrap_or_default();
        assert!(threads == "1" || reason.contains("was there before the program mapped it"), "{:#}", report["objects"]);
        assert_eq!(run(firsttouch.command(["check"]).arg(&file)).status, 1);
    }
    let _ = fs::remove_file(&memory);
}

/// Check that a program with threads of its own is advised to use these, also if a program that is linked to OpenMP starts it.
#[test]
fn a_wrapper_with_openmp() {
    let test = "a_wrapper_with_openmp";
    let (Some(firsttouch), Some(program)) = (Firsttouch::find(test), program(test, "../../corpus/pthreads_main_init")) else { return };
    let folder = temporary_directory();
    let file = folder.path().join("a.ftp");
    let command = [firsttouch.binary().as_os_str(), "run".as_ref(), "--".as_ref(), program.as_os_str()];
    let outcome = run(&mut firsttouch.profile(&file, &["-q"], &command));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report = firsttouch.report_json(&file);
    let findings = report["findings"].as_array().expect("findings");
    assert!(!findings.is_empty(), "{report:#}");
    let advised: Vec<&str> = findings.iter().filter_map(|finding| finding["fix"].as_str()).collect();
    assert!(advised.len() == findings.len() && advised.iter().all(|fix| !fix.to_lowercase().contains("omp")), "{advised:#?}");
}
