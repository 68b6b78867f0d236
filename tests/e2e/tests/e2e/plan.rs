// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch plan` and `run --plan` on any machine: what is planned, which sites a run finds again, what is refused. Where pages go is
//! seen on several nodes (tests/guests/tests/both/plan.rs).

use firsttouch_e2e::corpus::{KERNELS, Kernel, plan_of};
use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::programs::build;
use firsttouch_e2e::skip::{lacks_tools, skipped};
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, assert_no_panic, temporary_directory, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A profile of a program of the corpus, and the program.
fn profiled(test: &str, firsttouch: &Firsttouch, name: &str, folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let program = match build(&workspace_root().join("corpus").join(name)) {
        Ok(built) => built.path,
        Err(error) => {
            skipped(test, &format!("{name}: {error:?}"));
            return None;
        }
    };
    let file = folder.join("a.ftp");
    // The evidence is a sample of two seconds.
    for _ in 0..3 {
        let _ = fs::remove_file(&file);
        let outcome = run(&mut firsttouch.profile(&file, &["-q"], &[&program]));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        if firsttouch.report_json(&file)["findings"].as_array().is_some_and(|findings| !findings.is_empty()) {
            return Some((program, file));
        }
    }
    panic!("{name}: no finding in three profiles");
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

/// Check the way of a plan: planned as found, met in the same build, and by its lines in another; not in other programs.
#[test]
fn sites_are_found_again() {
    const TEST: &str = "sites_are_found_again";
    let Some(firsttouch) = Firsttouch::find(TEST) else { return };
    if lacks_tools(TEST, &["gcc"]) {
        return;
    }
    let folder = temporary_directory();
    let Some((program, file)) = profiled(TEST, &firsttouch, "serial_loop.c", folder.path()) else { return };
    let plan = folder.path().join("a.toml");
    let words = planned(&firsttouch, &file, &plan);
    assert!(words.contains("policy = \"blocked\"") && words.contains("pin = \"spread\""), "{words}");

    let plain = run(&mut Command::new(&program));
    let same = under(&firsttouch, &plan, &[text(&program)]);
    assert_eq!((same.status, same.stdout_text()), (plain.status, plain.stdout_text()), "{same:?}");
    assert!(same.stderr_text().contains("plan: 1 of 1 site matched 1 allocation\n"), "{}\n{words}", same.stderr_text());

    let again = folder.path().join(program.file_name().expect("a name"));
    let source = workspace_root().join("corpus/serial_loop.c");
    let built = run(Command::new("gcc").args(["-O1", "-g", "-fopenmp", "-Wl,--build-id=sha1"]).arg(&source).arg("-o").arg(&again));
    assert_eq!(built.status, 0, "{built:?}");
    let rebuilt = under(&firsttouch, &plan, &[text(&again)]);
    assert!(rebuilt.stderr_text().contains("plan: 1 of 1 site matched 1 allocation\n"), "{}\n{words}", rebuilt.stderr_text());

    // What would be is told, and nothing runs.
    let explained = |program: &str| -> Value {
        let mut command = firsttouch.command(["run", "--explain", "--json", "--plan"]);
        let outcome = run(command.arg(&plan).args(["--", program]));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        serde_json::from_slice::<Value>(&outcome.stdout).expect("JSON")["plan"][0].clone()
    };
    let told = explained(text(&program));
    assert_eq!((&told["what"], &told["policy"], &told["found"]), (&"a".into(), &"blocked".into(), &true.into()), "{told}");

    // The same program, its lines moved.
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
    let left: Vec<_> = fs::read_dir("/dev/shm").expect("/dev/shm").flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("firsttouch-plan-")), "{left:?}");
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
    for name in ["serial_loop.c", "dynamic_schedule.c"] {
        let folder = temporary_directory();
        let Some((_, file)) = profiled(TEST, &firsttouch, name, folder.path()) else { return };
        let all = machines.iter().filter_map(|machine| machine["name"].as_str()).chain(["virtual:2", "virtual:4", "virtual:8"]);
        // The first on all, the second on every third.
        let step = if name == "serial_loop.c" { 1 } else { 3 };
        for machine in all.step_by(step) {
            let outcome = run(firsttouch.command(["plan"]).arg(&file).args(["--json", "--machine", machine]));
            assert_eq!(outcome.status, 0, "{machine}: {outcome:?}");
            let planned: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
            let ratio = planned["outlook"]["time_ratio"].as_f64().expect("a ratio");
            assert!(ratio <= 1.01, "{name} on {machine}: {planned:#}");
        }
    }
}

/// How far from the best combination of placements the plan for a kernel is, on machines of several kinds; none where it is within 5 %, and no
/// slower than without.
fn far_from_best(firsttouch: &Firsttouch, kernel: &Kernel) -> Option<String> {
    let folder = temporary_directory();
    let file = folder.path().join("kernel.ftp");
    let program = [&[text(firsttouch.binary())], &kernel.arguments(kernel.iterations)[..]].concat();
    let outcome = run(&mut firsttouch.profile(&file, &["-q"], &program));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let machines = ["xeon-e5620x2", "epyc-7451x2", "virtual:2"];
    let far = machines.into_iter().find_map(|machine| {
        let outcome = run(firsttouch.command(["predict", "--exhaustive", "--json", "--machine", machine]).arg(&file));
        assert_eq!(outcome.status, 0, "{machine}: {outcome:?}");
        let json: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
        let placements = json["placements"].as_array().expect("placements");
        let slowdown = |name: &str| {
            let placement = placements.iter().find(|one| one["name"] == name).expect(name);
            placement["slowdown"].as_f64().expect("a number")
        };
        let (plan, as_is) = (slowdown("plan"), slowdown("as-is"));
        (plan > 1.05 || plan > 1.011 * as_is).then(|| format!("{} on {machine}: {plan}, as it is {as_is}", kernel.name))
    });
    if far.is_none() {
        // The guests run the kernel under this plan (scripts/test-guests).
        let plan = plan_of(kernel.name);
        fs::create_dir_all(plan.parent().expect("a folder")).expect("a folder for plans");
        let planned = run(firsttouch.command(["plan", "--machine", "virtual:2"]).arg(&file).arg("-o").arg(&plan));
        assert_eq!(planned.status, 0, "{planned:?}");
    }
    far
}

/// Check that plans for the kernels are as good as any combination of placements. (The evidence is a sample of some seconds: up to three.)
#[test]
fn plans_for_kernels_are_near_the_best() {
    let Some(firsttouch) = Firsttouch::find("plans_for_kernels_are_near_the_best") else { return };
    for kernel in &KERNELS {
        let far: Vec<String> = (0..3).map_while(|_| far_from_best(&firsttouch, kernel)).collect();
        assert!(far.len() < 3, "{far:?}");
        far.iter().for_each(|words| eprintln!("plan not near the best: {words}"));
    }
}

/// Check that what is wrong with a plan is said with its line, and that nothing runs then.
#[test]
fn broken_plans_are_refused() {
    let Some(firsttouch) = Firsttouch::find("broken_plans_are_refused") else { return };
    let folder = temporary_directory();
    let plan = folder.path().join("broken.toml");
    for (content, word) in [
        ("", "schema"),
        ("schema = 'other'\nnodes = 2\n", "broken.toml:1: this is no plan"),
        ("schema = 'firsttouch.plan/1'\nnodes = 0\n", "broken.toml:2: nodes must be"),
        ("schema = 'firsttouch.plan/1'\nnodes = 2\nnode = 3\n", "broken.toml:3: "),
    ] {
        fs::write(&plan, content).expect("a file");
        let outcome = under(&firsttouch, &plan, &["echo", "ran"]);
        assert_clear_error(&outcome, &[2], &[word]);
    }
    assert_clear_error(
        &under(&firsttouch, &folder.path().join("none.toml"), &["echo", "ran"]),
        &[2],
        &["cannot read the plan", "none.toml"],
    );
    let both = run(firsttouch.command(["run", "--pin", "0", "--plan"]).arg(&plan).args(["--", "echo", "ran"]));
    assert_clear_error(&both, &[2], &["cannot be used with"]);
    let none = run(firsttouch.command(["plan", "/none.ftp"]).args(["-o", "-"]));
    assert_clear_error(&none, &[1], &["/none.ftp"]);
}
