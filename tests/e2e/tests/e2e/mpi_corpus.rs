// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every program of corpus/mpi, with Open MPI and MPICH, and with firsttouch before the launcher and behind it: its defect is found in the ranks, on the object and
//! at the lines that its header and markers promise (corpus/README.md), and nothing else is; nothing is found in well-placed programs, and they are judged.
//!
//! As in `corpus`, a job may be profiled up to three times.

use firsttouch_e2e::corpus::{Program, mpi_programs};
use firsttouch_e2e::expected::Expected;
use firsttouch_e2e::mpi::{MPIS, Mpi, WAYS, Way};
use firsttouch_e2e::process::run;
use firsttouch_e2e::programs::{BuildError, build_with};
use firsttouch_e2e::skip::{lacks_tools, skipped};
use firsttouch_e2e::tool::{Firsttouch, temporary_directory, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

const TEST: &str = "mpi_corpus";
const ATTEMPTS: usize = 3;
/// UCX hides from the agent how MPICH maps the memory of its windows, so that it has neither a variable nor a line, only this name.
const WINDOW_OF_MPICH: &str = "/dev/shm/mpich_shar_";

/// A program of the corpus, built with an MPI.
struct Job {
    expected: Expected,
    mpi: Mpi,
    program: PathBuf,
    /// Number of ranks, and the machine that it is judged on.
    ranks: String,
    machine: String,
}

impl Job {
    /// Reports a skip and returns `None` if this MPI is not installed.
    fn new(program: &Program, mpi: Mpi) -> Option<Self> {
        if lacks_tools(TEST, &[&mpi.launcher()]) {
            return None;
        }
        let built = match build_with(&program.source, mpi.suffix()) {
            Ok(built) => built.path,
            Err(BuildError::MissingTool(tool)) => {
                skipped(TEST, &format!("{}: {tool} is not installed", program.name));
                return None;
            }
            Err(error) => panic!("{}: {error:?}", program.name),
        };
        let (ranks, machine) = program.get("job").and_then(|job| job.split_once(" ranks on ")).expect("job = N ranks on MACHINE");
        let expected = Expected::new(Program::read(&program.source));
        Some(Self { expected, mpi, program: built, ranks: ranks.to_owned(), machine: machine.to_owned() })
    }

    fn record(&self, firsttouch: &Firsttouch, way: Way, file: &Path) {
        let profile = firsttouch.command(["profile", "-q", "-o", text(file), "--"]);
        let outcome = run(&mut self.mpi.command(way, &self.ranks, &profile, &self.program));
        assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ok\n"), "{self} {way:?}: {outcome:?}");
    }

    fn report(&self, firsttouch: &Firsttouch, file: &Path) -> Value {
        let printed = firsttouch.report(file, &["--json", "--machine", &self.machine]);
        let report = serde_json::from_slice(&printed.stdout).unwrap_or_else(|error| panic!("{self}: {error}: {printed:?}"));
        self.with_variables(report)
    }

    /// What is wrong with the plan of the job: it places the object of each rank that has the finding, whichever rank works most.
    fn plan_problem(&self, firsttouch: &Firsttouch, file: &Path) -> Option<String> {
        // What a run can do with a window depends on the MPI.
        if !self.expected.has_defect() || self.is_window() {
            return None;
        }
        let planned =
            run(firsttouch.command(["plan", "--json", "--machine", &self.machine, "-o"]).arg(file.with_extension("toml")).arg(file));
        let plan: Value = serde_json::from_slice(&planned.stdout).unwrap_or_else(|error| panic!("{self}: {error}: {planned:?}"));
        let (object, policy) = (self.expected.get("object").unwrap_or_default(), self.expected.program.policy());
        let mut entries = plan["entries"].as_array().expect("entries").iter();
        let is_planned = entries.any(|entry| entry["what"] == object && entry["policy"] == policy);
        (!is_planned).then(|| format!("no entry {policy} for {object} in the plan: {plan}"))
    }

    fn is_window(&self) -> bool {
        self.expected.program.name.ends_with("window")
    }

    /// The report with the variable's name for the window of MPICH.
    fn with_variables(&self, mut report: Value) -> Value {
        for (list, key) in [("objects", "name"), ("findings", "object_name")] {
            for one in report[list].as_array_mut().expect("a list") {
                if one[key].as_str().is_some_and(|name| name.starts_with(WINDOW_OF_MPICH)) && self.mpi == Mpi::Mpich {
                    one[key] = self.expected.get("object").into();
                }
            }
        }
        report
    }

    /// The errors in a report.
    fn problems(&self, report: &Value) -> Vec<String> {
        let is_hidden = self.mpi == Mpi::Mpich && self.is_window();
        let is_unknown = |problem: &String| is_hidden && problem.starts_with("allocated is null:null");
        let mut problems: Vec<String> = self.expected.problems(report).into_iter().filter(|problem| !is_unknown(problem)).collect();
        let wanted = if self.expected.has_defect() { "findings" } else { "well-placed" };
        let verdict = &report["verdict"];
        if verdict["outcome"] != wanted {
            problems.push(format!("the outcome is {}, not {wanted}: {}", verdict["outcome"], verdict["causes"]));
        }
        let findings = report["findings"].as_array().expect("findings");
        let ids: Vec<&Value> = findings.iter().map(|finding| &finding["id"]).collect();
        if self.expected.has_defect() && ids != [self.expected.get("finding").unwrap_or_default()] {
            problems.push(format!("the findings are {ids:?}"));
        }
        let ranks: Vec<u64> =
            self.expected.get("ranks").unwrap_or_default().split_whitespace().map(|rank| rank.parse().expect("a rank")).collect();
        problems.extend(
            findings
                .iter()
                .filter(|one| one["ranks"] != Value::from(ranks.clone()))
                .map(|one| format!("the finding is of ranks {}", one["ranks"])),
        );
        // The one of four ranks that has a finding differs from the others.
        if let ([one], "4") = (ranks.as_slice(), self.ranks.as_str()) {
            let object = self.expected.get("object").unwrap_or_default();
            let across = report["across_ranks"].as_array().and_then(|all| all.iter().find(|over| over["name"] == object));
            let outlier = across.map(|over| &over["remote_fraction"]["outlier"]);
            if outlier.and_then(Value::as_u64) != Some(*one) {
                problems.push(format!("the outlier is rank {outlier:?}"));
            }
        }
        problems
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.expected.program.name, self.mpi)
    }
}

/// The errors in the last report of a job.
fn checked(firsttouch: &Firsttouch, job: &Job, way: Way) -> Vec<String> {
    let mut problems = Vec::new();
    for attempt in 1..=ATTEMPTS {
        let folder = temporary_directory();
        let file = folder.path().join("job.ftp");
        job.record(firsttouch, way, &file);
        problems = job.problems(&job.report(firsttouch, &file));
        problems.extend(job.plan_problem(firsttouch, &file));
        if problems.is_empty() {
            break;
        }
        eprintln!("{TEST}: {job} {way:?} attempt {attempt}: {}", problems.join("; "));
    }
    problems
}

/// Each program runs one way with one MPI, and the first one both ways, so that all pairs occur; with `FIRSTTOUCH_WHOLE_CORPUS`, all run both ways with
/// both (a minute and a half).
#[test]
fn both_ways_find_what_is_there() {
    let Some(firsttouch) = Firsttouch::find(TEST) else { return };
    let is_whole = std::env::var_os("FIRSTTOUCH_WHOLE_CORPUS").is_some();
    let (mut failures, mut defects, mut well_placed) = (Vec::new(), 0, 0);
    for (turn, program) in mpi_programs().iter().enumerate() {
        for job in MPIS.iter().filter_map(|mpi| Job::new(program, *mpi)) {
            let (is_this, has_both) = (is_whole || job.mpi == MPIS[turn % 2], is_whole || turn == 0);
            for way in WAYS.into_iter().filter(|way| is_this && (has_both || *way == WAYS[turn / 2 % 2])) {
                let problems = checked(&firsttouch, &job, way);
                failures.extend(problems.iter().map(|problem| format!("{job} {way:?}: {problem}")));
            }
        }
        *(if program.get("finding") == Some("none") { &mut well_placed } else { &mut defects }) += 1;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(defects >= 5 && well_placed >= 3, "the corpus has shrunk: {defects} defects, {well_placed} well placed");
}

/// Check that the plan for a window that Open MPI's ranks share reaches it: the ranks map a file in memory, each by itself.
#[test]
fn plans_reach_shared_windows() {
    let test = "mpi_corpus_window";
    let Some(firsttouch) = Firsttouch::find(test) else { return };
    let programs = mpi_programs();
    let window = programs.iter().find(|program| program.name.ends_with("shared_window")).expect("corpus/mpi/shared_window.c");
    let Some(job) = Job::new(window, Mpi::Open) else { return };
    let folder = temporary_directory();
    let plan = folder.path().join("job.toml");
    // Ranks that get less of the CPUs than others in their second make fewer of the accesses. Where those on one node make most, no placement pays.
    for attempt in 1..=ATTEMPTS {
        let file = folder.path().join(format!("job{attempt}.ftp"));
        let _ = std::fs::remove_file(&plan);
        job.record(&firsttouch, Way::Inside, &file);
        let planned = run(firsttouch.command(["plan", "--machine", &job.machine, "-o"]).args([&plan, &file]));
        assert_eq!(planned.status, 0, "{planned:?}");
        let is_placed = std::fs::read_to_string(&plan).expect("a plan").contains("[[place]]");
        if is_placed {
            break;
        }
        eprintln!("{test} attempt {attempt}: {planned:?}");
        assert!(attempt < ATTEMPTS, "{planned:?}");
    }
    let run_plan = firsttouch.command(["run", "--plan", text(&plan), "--"]);
    let outcome = run(&mut job.mpi.command(Way::Inside, &job.ranks, &run_plan, &job.program));
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ok\n"), "{outcome:?}");
    let matched = outcome.stderr_text().matches("1 of 1 site matched").count();
    assert_eq!(matched.to_string(), job.ranks, "{outcome:?}");
}
