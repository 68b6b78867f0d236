// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every program of the corpus: firsttouch finds its defect on the right object and lines, and finds nothing in well-placed programs.
//! The header and the markers of each program define its expected result (corpus/README.md).
//!
//! The evidence is a sample of about 1.2 seconds, so a program may be profiled up to three times. Each failed attempt is reported on
//! stderr.

use firsttouch_e2e::agreement::{contradictions_on, machines};
use firsttouch_e2e::corpus::{plan_of, programs};
use firsttouch_e2e::expected::{Expected, Verdict};
use firsttouch_e2e::process::run;
use firsttouch_e2e::programs::program;
use firsttouch_e2e::side_by_side::side_by_side;
use firsttouch_e2e::tool::{Firsttouch, temporary_directory};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const ATTEMPTS: usize = 3;
/// Watchpoints alone see few accesses of some runs, and say so. Programs of which none of the attempts shows enough: at most so many.
const TOO_FEW_WATCHED: &str = "by watch alone: too few samples";
const MOST_TOO_FEW: usize = 2;
/// Each source of evidence must find the defect, and nothing else, on its own: the tables of the other one are emptied.
const ALONE: [(&str, [&str; 2]); 2] = [("sample", ["accesses", "windows"]), ("watch", ["sampled_accesses", "samples"])];
/// Machines on which the report on a program and its plan are compared, each program on others of them; with `FIRSTTOUCH_WHOLE_CORPUS`, on all.
const COMPARED_ON: usize = 2;
/// Machines on which plans are compared with all combinations, and the limit on a plan's time relative to the best combination. The first
/// two are real, with two and eight nodes. On the third, an assumed one, four threads do not saturate a memory controller: there, memory that
/// any thread may use is best (by 6 %) on a single node, whose threads then do more of the work. No plan does that, because with more
/// threads it would be by far the worst.
const RANKED_ON: [(&str, f64); 3] = [("xeon-e5620x2", 1.05), ("epyc-7451x2", 1.05), ("virtual:2", 1.07)];

/// The errors in the plan. A plan must place only the objects of findings, and place each thread's part on the thread's node if parts
/// have owners.
fn plan_problems(expected: &Expected, plan: &Value) -> Vec<String> {
    let entries = plan["entries"].as_array().expect("entries");
    let ratio = plan["outlook"]["time_ratio"].as_f64();
    let mut problems: Vec<String> =
        ratio.filter(|ratio| *ratio > 1.01).map(|ratio| format!("the plan costs {ratio}")).into_iter().collect();
    let policy = expected.program.policy();
    if policy == "none" {
        problems.extend(entries.iter().map(|entry| format!("unplanned entry {} {}", entry["what"], entry["policy"])));
    } else {
        let object = expected.get("object").unwrap_or_default();
        let planned = entries.iter().find(|entry| entry["what"] == object).map(|entry| entry["policy"].as_str().unwrap_or_default());
        if planned != Some(policy) {
            problems.push(format!("the plan for {object} is {planned:?}, not {policy}: {}", plan["left_alone"]));
        }
    }
    problems
}

/// The errors in the plan's rank among all combinations of placements: on machines of several kinds, its predicted time must be near the
/// best. For a program without a defect, whose plan is empty, the interval of the samples must include that. Excludes programs whose
/// memory a plan cannot place, or cannot place in the best way (as their header says), and Python programs, which have few windows.
fn ranking_problems(expected: &Expected, firsttouch: &Firsttouch, file: &Path) -> Vec<String> {
    let is_planned = expected.program.policy() != "none";
    let is_plannable =
        (is_planned && expected.get("plan").is_none()) || (expected.get("finding") == Some("none") && !expected.program.is_python());
    let on = |(machine, most): &(&str, f64)| {
        let outcome = run(firsttouch.command(["predict", "--exhaustive", "--json", "--machine", machine]).arg(file));
        if outcome.status != 0 {
            // If everything fits in caches, there is nothing to predict.
            let reported = outcome.stderr_text();
            return (!reported.contains("no accesses to memory larger than a core's cache"))
                .then(|| format!("predict on {machine}: {reported}"));
        }
        let json: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
        let placements = json["placements"].as_array().expect("placements");
        let of = |name: &str, key: &str| {
            let placement = placements.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {json:#}"));
            let number = placement.pointer(key).and_then(Value::as_f64);
            number.unwrap_or_else(|| panic!("{name} {key}: {json:#}"))
        };
        let (plan, as_is, best) = (of("plan", "/slowdown"), of("as-is", "/slowdown"), of("exhaustive", "/slowdown"));
        let held = if is_planned { plan } else { of("plan", "/interval_of_samples/0") };
        let words = || format!("on {machine} the plan takes {plan:.3}, as it is {as_is:.3}, the best combination {best:.3}");
        (held > *most || plan > 1.011 * as_is || best > 1.0 + 1e-6).then(words)
    };
    // Check each program on one of the machines only: all machines would take a minute more.
    let turn = expected.program.name.bytes().map(usize::from).sum::<usize>() % RANKED_ON.len();
    let asked = if std::env::var_os("FIRSTTOUCH_RANK_ALL").is_some() { &RANKED_ON[..] } else { &RANKED_ON[turn..=turn] };
    asked.iter().filter(|_| is_plannable).filter_map(on).collect()
}

/// Machines on which the plan made for them is predicted to cost more than 1 %.
fn costly_plans(expected: &Expected, firsttouch: &Firsttouch, file: &Path) -> Vec<String> {
    let listed = run(&mut firsttouch.command(["machines", "list", "--json"]));
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let machines = listed["machines"].as_array().expect("machines").iter().filter_map(|machine| machine["name"].as_str());
    let costly = |machine: &str| {
        let outcome = run(firsttouch.command(["plan", "--json", "--machine", machine]).arg(file));
        assert_eq!(outcome.status, 0, "{} on {machine}: {outcome:?}", expected.program.name);
        let plan: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
        let ratio = plan["outlook"]["time_ratio"].as_f64().filter(|ratio| *ratio > 1.01)?;
        Some(format!("the plan for {machine} costs {ratio}"))
    };
    machines.chain(["virtual:2", "virtual:4", "virtual:8"]).filter_map(costly).collect()
}

/// The contradictions between reports on the program and their plans.
fn contradictions(expected: &Expected, firsttouch: &Firsttouch, file: &Path, machines: &[String]) -> Vec<String> {
    let is_whole = std::env::var_os("FIRSTTOUCH_WHOLE_CORPUS").is_some();
    let step = if is_whole { 1 } else { machines.len().div_ceil(COMPARED_ON) };
    let turn = expected.program.name.bytes().map(usize::from).sum::<usize>() % step;
    machines.iter().skip(turn).step_by(step).flat_map(|machine| contradictions_on(firsttouch, file, machine)).collect()
}

/// The errors in the reports on one source of evidence alone.
fn problems_of_each_source(expected: &Expected, firsttouch: &Firsttouch, file: &Path) -> Vec<String> {
    let of_one = |(source, emptied): &(&str, [&str; 2])| -> Vec<String> {
        let alone = file.with_extension(format!("{source}.ftp"));
        std::fs::copy(file, &alone).expect("a copy of the profile");
        let profile = rusqlite::Connection::open(&alone).expect("a profile");
        emptied.iter().for_each(|table| assert!(profile.execute(&format!("DELETE FROM {table}"), []).is_ok(), "{table}"));
        drop(profile);
        let report = firsttouch.report_json(&alone);
        // Watchpoints need threads that run at once. If other work takes the CPUs, nothing may be said, but nothing false either.
        if *source == "watch"
            && let Verdict::NotJudged(reason) = expected.verdict(&report)
            && reason.contains("hardly ran at the same time")
        {
            eprintln!("corpus: {}: by watch alone: not judged: {reason}", expected.program.name);
            return Vec::new();
        }
        if *source == "watch"
            && let Verdict::NotJudged(reason) = expected.verdict(&report)
            && reason.starts_with("too few samples")
        {
            return vec![TOO_FEW_WATCHED.to_owned()];
        }
        // The lines of Python code are in the samples.
        let has_lines = *source == "sample" || !expected.program.is_python();
        let problems = if has_lines { expected.problems(&report) } else { expected.problems_but_lines(&report) };
        problems.into_iter().map(|problem| format!("by {source} alone: {problem}")).collect()
    };
    // On KVM with an Intel processor, programs that handle SIGTRAP are not watched: Fortran's runtime does.
    let profile = rusqlite::Connection::open(file).expect("a profile");
    let watched: String = profile
        .query_row("SELECT available || detail FROM evidence WHERE source = 'watch'", [], |row| row.get(0))
        .expect("evidence of watchpoints");
    let is_unguarded = watched.starts_with('0') && watched.contains("KVM on Intel") && expected.program.is_fortran();
    if is_unguarded {
        eprintln!("corpus: {}: not watched on this machine, so not judged by watchpoints alone", expected.program.name);
    }
    let by_watch = !is_unguarded && !expected.get("watch").is_some_and(|word| word.starts_with("none"));
    ALONE.iter().filter(|(source, _)| *source != "watch" || by_watch).flat_map(of_one).collect()
}

/// A program of the corpus, and what is wrong with its last profile.
struct Asked {
    expected: Expected,
    command: Vec<String>,
    file: PathBuf,
    problems: Vec<String>,
}

impl Asked {
    /// If NumPy uses OpenBLAS, the idle threads of OpenBLAS would count as threads of the program.
    /// Each source must be able to judge alone, so watchpoints do not leave it to the samples.
    fn profile(&self, firsttouch: &Firsttouch) {
        let mut profile = firsttouch.profile(&self.file, &["--quiet"], &self.command);
        let outcome = run(profile.env("OPENBLAS_NUM_THREADS", "1").env("FIRSTTOUCH_WATCHPOINTS_REST", "never"));
        assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ok\n"), "{}: {outcome:?}", self.expected.program.name);
    }

    /// The errors in the reports on its profile, and, if there are none, in its plan.
    fn judge(&self, firsttouch: &Firsttouch, machines: &[String]) -> Vec<String> {
        let Self { expected, file, .. } = self;
        let report = firsttouch.report_json(file);
        let mut problems = expected.problems(&report);
        let own = report["findings"]
            .as_array()
            .and_then(|all| all.iter().find(|one| one["object_name"] == expected.get("object").unwrap_or_default()));
        problems.extend(own.filter(|_| expected.get("finding") != Some("none")).and_then(|own| expected.program.fix_problem(own)));
        problems.extend(problems_of_each_source(expected, firsttouch, file));
        // The plan rests on all sources.
        if problems.iter().all(|one| one == TOO_FEW_WATCHED) {
            problems.extend(self.judge_plan(firsttouch, machines));
        }
        problems
    }

    fn judge_plan(&self, firsttouch: &Firsttouch, machines: &[String]) -> Vec<String> {
        let Self { expected, file, .. } = self;
        // The guests run the program under this plan (scripts/test-guests).
        let plan = plan_of(&expected.program.name);
        std::fs::create_dir_all(plan.parent().expect("a folder")).expect("a folder for plans");
        let planned = run(firsttouch.command(["plan", "--json", "--machine", "virtual:2"]).arg(file).arg("-o").arg(&plan));
        assert_eq!(planned.status, 0, "{}: {planned:?}", expected.program.name);
        let mut problems = plan_problems(expected, &serde_json::from_slice(&planned.stdout).expect("JSON"));
        problems.extend(contradictions(expected, firsttouch, file, machines));
        let ranks_all = std::env::var_os("FIRSTTOUCH_RANK_ALL").is_some();
        if expected.get("finding") != Some("none") || ranks_all {
            problems.extend(ranking_problems(expected, firsttouch, file));
        }
        if ranks_all {
            problems.extend(costly_plans(expected, firsttouch, file));
        }
        problems
    }
}

/// The programs are profiled one after another, with nothing beside them, and then judged several at a time.
#[test]
fn every_defect_is_found_and_nothing_else() {
    let Some(firsttouch) = Firsttouch::find("corpus") else { return };
    let directory = temporary_directory();
    let machines = machines(&firsttouch);
    let ask = |expected: Expected| {
        let (command, file) = (expected.program.command()?, directory.path().join(format!("{}.ftp", expected.program.name)));
        Some(Asked { expected, command, file, problems: Vec::new() })
    };
    let only = std::env::var("FIRSTTOUCH_CORPUS").unwrap_or_default();
    let wanted = programs().into_iter().filter(|program| only.is_empty() || only.split(' ').any(|name| name == program.name));
    let all: Vec<Asked> = wanted.map(Expected::new).filter_map(ask).collect();
    let well_placed = all.iter().filter(|one| one.expected.get("finding") == Some("none")).count();
    let defects = all.len() - well_placed;
    let mut left = all;
    for attempt in 1..=ATTEMPTS {
        left.iter().for_each(|one| one.profile(&firsttouch));
        let judged = side_by_side(&left, |one| one.judge(&firsttouch, &machines));
        left =
            left.into_iter().zip(judged).map(|(one, problems)| Asked { problems, ..one }).filter(|one| !one.problems.is_empty()).collect();
        left.iter().for_each(|one| eprintln!("corpus: {} attempt {attempt}: {}", one.expected.program.name, one.problems.join("; ")));
    }
    let (too_few, left): (Vec<Asked>, Vec<Asked>) = left.into_iter().partition(|one| one.problems == [TOO_FEW_WATCHED]);
    assert!(too_few.len() <= MOST_TOO_FEW, "watchpoints alone see too little of {} programs", too_few.len());
    let failures: Vec<String> =
        left.iter().flat_map(|one| one.problems.iter().map(|problem| format!("{}: {problem}", one.expected.program.name))).collect();
    eprintln!("corpus: {defects} programs with a defect, {well_placed} well placed, {} problems", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(!only.is_empty() || (defects >= 16 && well_placed >= 8), "the corpus has shrunk: {defects} defects, {well_placed} well placed");
}

/// Programs of several kinds that are profiled without perf if not all are asked for: one thread fills memory, large or in small blocks, by code or
/// by a system call; several threads fill it; it was filled before; its place makes no difference; and a well-placed program.
const WITHOUT_PERF: [&str; 9] = [
    "serial_memset",
    "array_assignment",
    "recycled_malloc",
    "linked_list",
    "team_size",
    "read_into_malloc",
    "random_gather",
    "small_rows",
    "well_placed_recycled",
];
/// Of the eight defects among these, so many at least are found: how often firsttouch gets to look depends on what else runs.
const LEAST_FOUND: usize = 5;

/// Check that the samples of the agent's timers give no wrong verdict where perf is forbidden, as by Docker's default profile and by
/// `kernel.perf_event_paranoid` = 4, and find the defects that they can show. All programs take five minutes: `FIRSTTOUCH_WHOLE_CORPUS`.
#[test]
fn no_wrong_verdict_without_perf() {
    let name = "no_wrong_verdict_without_perf";
    let (Some(forbid), Some(firsttouch)) = (program(name, "noharm/forbid"), Firsttouch::find(name)) else { return };
    let is_whole = std::env::var_os("FIRSTTOUCH_WHOLE_CORPUS").is_some();
    let directory = temporary_directory();
    let (mut problems, mut found, mut unjudged) = (Vec::new(), 0, Vec::new());
    let filters: &[[&str; 2]] = if is_whole { &[["EPERM", "perf,memory"], ["EACCES", "perf"]] } else { &[["EPERM", "perf,memory"]] };
    let mut profiles = Vec::new();
    for expected in programs().into_iter().filter(|one| is_whole || WITHOUT_PERF.contains(&one.name.as_str())).map(Expected::new) {
        let Some(command) = expected.program.command() else { continue };
        let expected = Arc::new(expected);
        for filter in filters {
            let file = directory.path().join(format!("{}.{}.ftp", expected.program.name, filter[0]));
            let profile = firsttouch.profile(&file, &["--quiet"], &command);
            let mut inside = Command::new(&forbid);
            inside.args(filter).arg(profile.get_program()).args(profile.get_args()).env("OPENBLAS_NUM_THREADS", "1");
            let outcome = run(&mut inside);
            assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ok\n"), "{}: {outcome:?}", expected.program.name);
            profiles.push((Arc::clone(&expected), filter, file));
        }
    }
    for ((expected, filter, _), report) in profiles.iter().zip(side_by_side(&profiles, |(.., file)| firsttouch.report_json(file))) {
        match expected.verdict(&report) {
            Verdict::Found => found += 1,
            Verdict::Clear => {}
            Verdict::NotJudged(reason) => unjudged.push(format!("{}: {reason}", expected.program.name)),
            wrong => problems.push(format!("{} {filter:?}: {wrong:?}", expected.program.name)),
        }
    }
    eprintln!("without perf: {found} runs with findings; not judged: {unjudged:#?}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(found >= LEAST_FOUND, "too little is found without perf");
}
