// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch plan` and `run --plan` on any machine: the content of plans, the sites that a run matches, invalid plans. The tests in
//! guests check where the pages go (tests/guests/tests/guest/both/plan.rs).

use firsttouch_e2e::corpus::KERNELS;
use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::recorded::recorded;
use firsttouch_e2e::skip::lacks_tools;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, assert_no_panic, temporary_directory, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a copy of corpus/serial_loop.c that runs for `RUN_S` seconds (an environment variable, default 1.2), and profiles it long enough
/// that the profile has the finding even if other tests use the CPUs. Returns the source, the program and the profile.
fn profiled(firsttouch: &Firsttouch, folder: &Path) -> (PathBuf, PathBuf, PathBuf) {
    let (source, program, file) = (folder.join("serial_loop.c"), folder.join("serial_loop"), folder.join("a.ftp"));
    let words = fs::read_to_string(workspace_root().join("corpus/serial_loop.c")).expect("a source");
    let fixed = "static const double RUN_S = 1.2;";
    assert!(words.contains(fixed), "{words}");
    let words = words.replace(fixed, "#define RUN_S (getenv(\"RUN_S\") ? atof(getenv(\"RUN_S\")) : 1.2)");
    fs::write(&source, words).expect("a source");
    let built = run(Command::new("gcc").args(["-O2", "-g", "-fopenmp"]).arg(&source).arg("-o").arg(&program));
    assert_eq!(built.status, 0, "{built:?}");
    let outcome = run(firsttouch.profile(&file, &["-q"], &[&program]).env("RUN_S", "5"));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report = firsttouch.report_json(&file);
    assert!(report["findings"].as_array().is_some_and(|findings| !findings.is_empty()), "{report:#}");
    (source, program, file)
}

fn planned(firsttouch: &Firsttouch, file: &Path, plan: &Path) -> String {
    let outcome = run(firsttouch.command(["plan"]).arg(file).arg("-o").arg(plan));
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, ""), "{outcome:?}");
    fs::read_to_string(plan).expect("the plan")
}

fn under(firsttouch: &Firsttouch, plan: &Path, program: &[&str]) -> Outcome {
    let outcome = run(firsttouch.command(["run", "--plan"]).arg(plan).arg("--").args(program));
    assert_no_panic(&outcome);
    outcome
}

/// Files by which firsttouch hands plans to programs.
fn handed_over() -> Vec<PathBuf> {
    let all = fs::read_dir("/dev/shm").expect("/dev/shm").flatten().map(|entry| entry.path());
    all.filter(|path| path.to_string_lossy().contains("/firsttouch-plan-")).collect()
}

/// Check that a plan places the object of the finding, that it matches in the same build and, by its lines, in another build, and that it
/// matches nothing in other programs.
#[test]
fn sites_are_found_again() {
    const TEST: &str = "sites_are_found_again";
    let before = handed_over();
    let Some(firsttouch) = Firsttouch::find(TEST) else { return };
    if lacks_tools(TEST, &["gcc"]) {
        return;
    }
    let folder = temporary_directory();
    let (source, program, file) = profiled(&firsttouch, folder.path());
    let plan = folder.path().join("a.toml");
    let words = planned(&firsttouch, &file, &plan);
    assert!(words.contains("policy = \"blocked\"") && words.contains("pin = \"spread\""), "{words}");

    let plain = run(&mut Command::new(&program));
    let same = under(&firsttouch, &plan, &[text(&program)]);
    assert_eq!((same.status, same.stdout_text()), (plain.status, plain.stdout_text()), "{same:?}");
    assert!(same.stderr_text().contains("plan: 1 of 1 site matched 1 allocation\n"), "{}\n{words}", same.stderr_text());

    let rebuild = folder.path().join("rebuild");
    fs::create_dir(&rebuild).expect("a folder");
    let again = rebuild.join(program.file_name().expect("a name"));
    let built = run(Command::new("gcc").args(["-O1", "-g", "-fopenmp", "-Wl,--build-id=sha1"]).arg(&source).arg("-o").arg(&again));
    assert_eq!(built.status, 0, "{built:?}");
    let rebuilt = under(&firsttouch, &plan, &[text(&again)]);
    assert!(rebuilt.stderr_text().contains("plan: 1 of 1 site matched 1 allocation\n"), "{}\n{words}", rebuilt.stderr_text());

    // `--explain` shows what the run would do, and runs nothing.
    let explained = |program: &str| -> Value {
        let mut command = firsttouch.command(["run", "--explain", "--json", "--plan"]);
        let outcome = run(command.arg(&plan).args(["--", program]));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        serde_json::from_slice::<Value>(&outcome.stdout).expect("JSON")["plan"][0].clone()
    };
    let reported = explained(text(&program));
    assert_eq!((&reported["what"], &reported["policy"], &reported["found"]), (&"a".into(), &"blocked".into(), &true.into()), "{reported}");

    // The same program with its lines moved.
    let moved = folder.path().join("moved");
    fs::create_dir(&moved).expect("a folder");
    let text_of_source = fs::read_to_string(&source).expect("a source");
    fs::write(moved.join("serial_loop.c"), format!("\n\n\n{text_of_source}")).expect("a source");
    let program_moved = moved.join(program.file_name().expect("a name"));
    let built = run(Command::new("gcc").args(["-O2", "-g", "-fopenmp"]).arg(moved.join("serial_loop.c")).arg("-o").arg(&program_moved));
    assert_eq!(built.status, 0, "{built:?}");
    let stale = under(&firsttouch, &plan, &[text(&program_moved)]);
    assert_eq!((stale.status, stale.stdout_text()), (plain.status, plain.stdout_text()), "{stale:?}");
    assert!(stale.stderr_text().contains("none of its sites is in the program"), "{}", stale.stderr_text());
    assert_eq!(explained(text(&program_moved))["found"], false);
    assert!(stale.stderr_text().contains("0 of 1 site matched 0 allocations; not in this program: "), "{}", stale.stderr_text());

    let other = under(&firsttouch, &plan, &["sh", "-c", "echo out; exit 7"]);
    assert_eq!((other.status, other.stdout_text().as_str()), (7, "out\n"), "{other:?}");
    assert!(other.stderr_text().contains("0 of 1 site matched 0 allocations; never seen: "), "{}", other.stderr_text());
    // scripts/e2e runs this test alone, so no other program has a plan at the same time.
    let left: Vec<PathBuf> = handed_over().into_iter().filter(|file| !before.contains(file)).collect();
    assert!(left.is_empty(), "{left:?} were left behind");

    // A service that goes on in the background: what it allocates later is not known, and the table stays for the programs that it starts.
    let service = under(&firsttouch, &plan, &["sh", "-c", "sleep 2 & exit 3"]);
    assert_eq!(service.status, 3, "{service:?}");
    let words = service.stderr_text();
    assert!(words.contains("; not seen until the first process ended: ") && words.contains("left behind still run"), "{words}");
    let left: Vec<PathBuf> = handed_over().into_iter().filter(|file| !before.contains(file)).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    left.iter().for_each(|file| fs::remove_file(file).expect("the table is removed"));
}

/// Check that of three like processes, whose arrays one entry of a plan places, the report says so for each of them, and that the plan leaves none
/// of them alone.
#[test]
fn like_processes_are_placed_alike() {
    const TEST: &str = "like_processes_are_placed_alike";
    let Some(firsttouch) = Firsttouch::find(TEST) else { return };
    if lacks_tools(TEST, &["gcc"]) {
        return;
    }
    let folder = temporary_directory();
    let (_, program, _) = profiled(&firsttouch, folder.path());
    let file = folder.path().join("three.ftp");
    let script = format!("{0} & {0} & {0} & wait", text(&program));
    let findings = || {
        let mut profile = firsttouch.profile(&file, &["-q", "--follow"], &["sh", "-c", &script]);
        let outcome = run(profile.env("RUN_S", "5").env("OMP_NUM_THREADS", "8"));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        // With so many threads, no process fits a node.
        let report = firsttouch.report(&file, &["--json", "--machine", "virtual:8"]);
        let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        report["findings"].as_array().expect("findings").clone()
    };
    // Beside other tests, a process may get too few samples for a finding of its own.
    let tries = std::iter::repeat_with(findings).take(3);
    let findings = tries.inspect(|found| eprintln!("{TEST}: {} findings", found.len())).find(|found| found.len() >= 2);
    let findings = findings.expect("findings of two processes in one of three runs");
    // Blocked or interleaved: which is predicted to be faster depends on the run.
    let policy = |finding: &Value| finding["recommendation"]["plan"]["objects"][0]["policy"].clone();
    let first = policy(&findings[0]);
    for finding in &findings {
        let plan = &finding["recommendation"]["plan"];
        assert!(policy(finding).is_string() && policy(finding) == first, "{first}: {plan:#}");
        assert_eq!(plan["objects"][0]["left_alone"], Value::Null, "{plan:#}");
    }
    let plan = folder.path().join("three.toml");
    let outcome = run(firsttouch.command(["plan", "--machine", "virtual:8"]).arg(&file).arg("-o").arg(&plan));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let words = fs::read_to_string(&plan).expect("the plan");
    assert_eq!((words.matches("policy = ").count(), words.contains("left_alone")), (1, false), "{words}");
}

/// Check that no plan is predicted to cost more than 1 % on any machine of the catalogue.
#[test]
fn plans_are_never_worse() {
    const TEST: &str = "plans_are_never_worse";
    let Some(firsttouch) = Firsttouch::find(TEST) else { return };
    let machines = run(&mut firsttouch.command(["machines", "list", "--json"]));
    let machines: Value = serde_json::from_slice(&machines.stdout).expect("JSON");
    let machines = machines["machines"].as_array().expect("machines");
    assert!(machines.len() >= 5, "{machines:?}");
    for name in ["serial_loop", "dynamic_schedule"] {
        let folder = temporary_directory();
        let file = recorded(&firsttouch, name, folder.path());
        let all = machines.iter().filter_map(|machine| machine["name"].as_str()).chain(["virtual:2", "virtual:4", "virtual:8"]);
        // The first profile on all machines, the second on every third.
        let step = if name == "serial_loop" { 1 } else { 3 };
        for machine in all.step_by(step) {
            let outcome = run(firsttouch.command(["plan"]).arg(&file).args(["--json", "--machine", machine]));
            assert_eq!(outcome.status, 0, "{machine}: {outcome:?}");
            let planned: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
            let ratio = planned["outlook"]["time_ratio"].as_f64().expect("a ratio");
            assert!(ratio <= 1.01, "{name} on {machine}: {planned:#}");
        }
    }
}

/// Check that plans for the kernels are as good as any combination of placements, on machines of several kinds: at most 5 % slower than the
/// best, and no slower than no plan.
#[test]
fn plans_for_kernels_are_near_the_best() {
    let Some(firsttouch) = Firsttouch::find("plans_for_kernels_are_near_the_best") else { return };
    for kernel in &KERNELS {
        let folder = temporary_directory();
        let file = recorded(&firsttouch, &format!("kernel_{}", kernel.name), folder.path());
        for machine in ["xeon-e5620x2", "epyc-7451x2", "virtual:2"] {
            let outcome = run(firsttouch.command(["predict", "--exhaustive", "--json", "--machine", machine]).arg(&file));
            assert_eq!(outcome.status, 0, "{machine}: {outcome:?}");
            let json: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
            let placements = json["placements"].as_array().expect("placements");
            let slowdown = |name: &str| {
                let placement = placements.iter().find(|one| one["name"] == name).expect(name);
                placement["slowdown"].as_f64().expect("a number")
            };
            let (plan, as_is) = (slowdown("plan"), slowdown("as-is"));
            assert!(plan <= 1.05 && plan <= 1.011 * as_is, "{} on {machine}: {plan}, without a plan {as_is}", kernel.name);
        }
    }
}

/// Check that blocks which several threads allocate are not placed by the order of their allocation: it changes from run to run.
#[test]
fn blocks_of_tasks_have_no_order() {
    const TEST: &str = "blocks_of_tasks_have_no_order";
    let (Some(firsttouch), Some(program)) = (Firsttouch::find(TEST), program(TEST, "first_hour/tiles_of_tasks")) else { return };
    let folder = temporary_directory();
    let (file, plan) = (folder.path().join("a.ftp"), folder.path().join("p.toml"));
    let outcome = run(firsttouch.profile(&file, &["-q"], &[&program]).env("OMP_NUM_THREADS", "4"));
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ok\n"), "{outcome:?}");
    let findings = firsttouch.report_json(&file)["findings"].as_array().map_or(0, Vec::len);
    assert!(findings > 0, "half of the tiles are on the wrong node");
    let text = planned(&firsttouch, &file, &plan);
    assert!(!text.contains("blocked"), "{text}");
    assert!(text.contains("in an order that changes from run to run"), "{text}");
}

/// Check that an error in a plan is reported with its line, and that the program does not run.
#[test]
fn broken_plans_are_refused() {
    let Some(firsttouch) = Firsttouch::find("broken_plans_are_refused") else { return };
    let folder = temporary_directory();
    let plan = folder.path().join("broken.toml");
    for (content, word) in [
        ("", "schema"),
        ("schema = 'other'\nnodes = 2\n", "broken.toml:1: this is not a plan"),
        ("schema = 'firsttouch.plan/1'\nnodes = 0\n", "broken.toml:2: nodes must be"),
        ("schema = 'firsttouch.plan/1'\nnodes = 2\nnode = 3\n", "broken.toml:3: "),
    ] {
        fs::write(&plan, content).expect("a file");
        let outcome = under(&firsttouch, &plan, &["echo", "ran"]);
        assert_clear_error(&outcome, &[1], &[word]);
    }
    assert_clear_error(
        &under(&firsttouch, &folder.path().join("none.toml"), &["echo", "ran"]),
        &[1],
        &["cannot read the plan", "none.toml"],
    );
    let both = run(firsttouch.command(["run", "--pin", "0", "--plan"]).arg(&plan).args(["--", "echo", "ran"]));
    assert_clear_error(&both, &[2], &["cannot be used with"]);
    let none = run(firsttouch.command(["plan", "/none.ftp"]).args(["-o", "-"]));
    assert_clear_error(&none, &[1], &["/none.ftp"]);
}
