//! The whole way on real nodes: profile -> plan -> run --plan. The pages are where their users are, a new profile agrees, and the
//! program says what it said before.

use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{temporary_directory, text};
use firsttouch_guests::{Setting, balancing_off, firsttouch, json, json_of, nodes, said, sampled};
use firsttouch_oracles::list;
use serde_json::Value;
use std::path::Path;

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const THREADS: &str = "4";

/// A kernel initialised by one thread, all of it on the first node, with threads spread over the nodes.
fn profiled(file: &Path, kernel: &[&str]) -> Value {
    let ours = firsttouch();
    let program = [&[text(ours.binary()), "bench"], kernel, &["--init", "serial", "--threads", THREADS, "--repetitions", "1"]].concat();
    let mut command = ours.profile(file, &["-q"], &program);
    let outcome = run(command.envs([("OMP_PROC_BIND", "spread"), ("OMP_PLACES", "cores")]));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    json(&["report", text(file)])
}

/// The node of each of 64 pages at equal distances in the kernel's main array, and what the plan's library said.
fn under_plan(plan: &Path, kernel: &[&str]) -> (Vec<u64>, String) {
    let ours = firsttouch();
    let mut command = ours.command(["run", "--plan"]);
    command.arg(plan).arg("--").arg(ours.binary()).arg("bench").args(kernel);
    let outcome = run(command.args(["--init", "serial", "--threads", THREADS, "--repetitions", "1", "--json"]));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let bench: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let pages = list(&bench, "page_nodes").iter().filter_map(Value::as_u64).collect();
    (pages, outcome.stderr_text())
}

/// Profile, plan, run: of a block partition by thread, each page is on the node of its part.
fn mended(kernel: &[&str]) {
    let _settings = (balancing_off(), Setting::set(HUGE_PAGES, "madvise"));
    let folder = temporary_directory();
    let (file, plan, after) = (folder.path().join("a.ftp"), folder.path().join("a.toml"), folder.path().join("b.ftp"));
    let report = profiled(&file, kernel);
    assert!(!list(&report, "findings").is_empty(), "{report:#}");
    said(firsttouch().command(["plan"]).arg(&file).arg("-o").arg(&plan));
    let (pages, words) = under_plan(&plan, kernel);
    let text_of_plan = std::fs::read_to_string(&plan).unwrap();
    assert!(words.contains("sites matched") || words.contains("site matched"), "{words}\n{text_of_plan}");
    assert!(!words.contains("never seen") && !words.contains("refused"), "{words}\n{text_of_plan}");
    let with_cpus: Vec<u64> = nodes().iter().filter(|node| !node.cpus.is_empty()).map(|node| u64::from(node.id)).collect();
    assert!(pages.len() >= 60, "{pages:?}");
    let wanted = |page: usize| with_cpus[page * with_cpus.len() / pages.len()];
    // A page at a border may be either side's.
    let right = pages.iter().enumerate().filter(|(page, node)| **node == wanted(*page)).count();
    assert!(right * 100 >= pages.len() * 97, "{right} of {}: {pages:?}\n{text_of_plan}", pages.len());

    let ours = firsttouch();
    let program = [
        &[text(ours.binary()), "run", "--plan", text(&plan), "--", text(ours.binary()), "bench"],
        kernel,
        &["--init", "serial", "--threads", THREADS, "--repetitions", "1"],
    ];
    let outcome = run(&mut ours.profile(&after, &["-q"], &program.concat()));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report = json_of(ours.command(["report"]).arg(&after).arg("--json"));
    let remote = report["remote_fraction"].as_f64().unwrap_or(1.0);
    assert!(remote < 0.05, "{remote} of {:?}: {report:#}", report["remote_interval"]);
}

/// Check DGEMV.
#[test]
fn dgemv_goes_to_its_users() {
    sampled(|| mended(&["dgemv", "--m", "2000", "--n", "2000", "--iterations", "100"]));
}

/// Check that a plan of another program and one without room are said, and that the program runs.
#[test]
fn stale_plans_do_no_harm() {
    let folder = temporary_directory();
    let plan = folder.path().join("other.toml");
    let text_of_plan = "schema = 'firsttouch.plan/1'\nnodes = 9\n[[module]]\nname = 'other'\npath = '/none/other'\n\
        [[place]]\nwhat = 'x'\nat = 'x.c:1'\npolicy = 'preferred'\nnodes = [8]\nsymbol = { module = 'other', name = 'x' }\n";
    std::fs::write(&plan, text_of_plan).unwrap();
    let mut command = firsttouch().command(["run", "--plan"]);
    let outcome = run(command.arg(&plan).args(["--", "sh", "-c", "echo works"]));
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "works\n"), "{outcome:?}");
    let words = outcome.stderr_text();
    for part in ["no logical node 8 here", "none of its sites", "0 of 1 site matched", "not in this program: x (x.c:1)"] {
        assert!(words.contains(part), "{part}: {words}");
    }
}
