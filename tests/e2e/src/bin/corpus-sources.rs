// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles the corpus with each source of evidence alone, and prints how many defects each one finds:
//! `corpus-sources [--passes N] [--by sample,watch,docker,paranoid] [--keep FOLDER] [PROGRAM...]`. `--keep` keeps the profiles without the right
//! verdict. Each pass profiles 61 programs four times, for 1.2 seconds each.

use firsttouch_e2e::corpus::programs;
use firsttouch_e2e::expected::{Expected, Verdict};
use firsttouch_e2e::process::run;
use firsttouch_e2e::programs::program;
use firsttouch_e2e::tool::{Firsttouch, temporary_directory};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The only evidence of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// Samples of registers; page faults show first touches.
    Sample,
    /// Watchpoints; page faults show first touches.
    Watch,
    /// Samples by the agent's timers where perf is forbidden as by Docker's default filter: no page faults either.
    Docker,
    /// The same where it is forbidden as by kernel.perf_event_paranoid = 4, which forbids nothing else.
    Paranoid,
}

const SOURCES: [(&str, Source, &str); 4] = [
    ("sample", Source::Sample, "`sample`, no watchpoints"),
    ("watch", Source::Watch, "`watch`, no samples"),
    ("docker", Source::Docker, "agent's timers, Docker's default filter"),
    ("paranoid", Source::Paranoid, "agent's timers, perf refused as by paranoid 4"),
];

/// One profile.
struct Run {
    name: String,
    has_defect: bool,
    verdict: Verdict,
}

struct Options {
    passes: usize,
    sources: Vec<Source>,
    kept: Option<PathBuf>,
    programs: Vec<String>,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("corpus-sources: {error}");
            return ExitCode::from(2);
        }
    };
    let (Some(forbid), Some(firsttouch)) = (program("corpus-sources", "noharm/forbid"), Firsttouch::find("corpus-sources")) else {
        return ExitCode::FAILURE;
    };
    let folder = temporary_directory();
    let mut verdicts: BTreeMap<Source, Vec<Run>> = BTreeMap::new();
    for pass in 1..=options.passes {
        for expected in programs().into_iter().map(Expected::new) {
            let name = expected.program.name.clone();
            if !options.programs.is_empty() && !options.programs.contains(&name) {
                continue;
            }
            let Some(command) = expected.program.command() else { continue };
            for &source in &options.sources {
                // Its runtime handles SIGTRAP, or its words are too many for watchpoints.
                if source == Source::Watch && expected.get("watch").is_some_and(|word| word.starts_with("none")) {
                    continue;
                }
                let file = folder.path().join(format!("{name}.{source:?}.{pass}.ftp"));
                record(&firsttouch, source, &forbid, &file, &command);
                let verdict = expected.verdict(&firsttouch.report_json(&file));
                if !matches!(verdict, Verdict::Found | Verdict::Clear) {
                    println!("pass {pass}, {source:?}, {name}: {verdict:?}");
                    if let Some(kept) = &options.kept {
                        std::fs::create_dir_all(kept).expect("a folder for profiles");
                        std::fs::copy(&file, kept.join(file.file_name().expect("a name"))).expect("a copy of the profile");
                    }
                }
                std::fs::remove_file(&file).expect("a profile that can be removed");
                verdicts.entry(source).or_default().push(Run { name: name.clone(), has_defect: expected.has_defect(), verdict });
            }
        }
    }
    print_table(&verdicts);
    if verdicts.values().flatten().any(|run| run.verdict.is_false()) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { passes: 1, sources: SOURCES.map(|(_, source, _)| source).to_vec(), kept: None, programs: Vec::new() };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--passes" => options.passes = value()?.parse().map_err(|_| "--passes needs a number")?,
            "--keep" => options.kept = Some(value()?.into()),
            "--by" => {
                let of = |name: &str| {
                    let found = SOURCES.iter().find(|one| one.0 == name).map(|one| one.1);
                    found.ok_or(format!("there is no source '{name}': choose from sample, watch, docker, paranoid"))
                };
                options.sources = value()?.split(',').map(of).collect::<Result<_, _>>()?;
            }
            _ if word.starts_with('-') => return Err(format!("there is no option '{word}'")),
            _ => options.programs.push(word),
        }
    }
    let known: Vec<String> = programs().into_iter().map(|program| program.name).collect();
    match options.programs.iter().find(|name| !known.contains(name)) {
        Some(name) => Err(format!("there is no program '{name}' in corpus/")),
        None => Ok(options),
    }
}

/// Profiles a program so that the profile has one source only.
fn record(firsttouch: &Firsttouch, source: Source, forbid: &Path, file: &Path, command: &[String]) {
    let mut profile = firsttouch.profile(file, &["--quiet"], command);
    let mut command = match source {
        Source::Sample => {
            profile.env("FIRSTTOUCH_WATCHPOINTS", "never");
            profile
        }
        Source::Watch => {
            profile.env("FIRSTTOUCH_WATCHPOINTS_REST", "never");
            profile
        }
        Source::Docker | Source::Paranoid => {
            let how = if source == Source::Docker { ["EPERM", "perf,memory"] } else { ["EACCES", "perf"] };
            let mut inside = Command::new(forbid);
            inside.args(how).arg(profile.get_program()).args(profile.get_args());
            inside
        }
    };
    // Idle threads of OpenBLAS would count as threads of a NumPy program.
    let outcome = run(command.env("OPENBLAS_NUM_THREADS", "1"));
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ok\n"), "{}: {outcome:?}", file.display());
    if source == Source::Watch {
        let profile = rusqlite::Connection::open(file).expect("a profile");
        for table in ["sampled_accesses", "samples"] {
            assert!(profile.execute(&format!("DELETE FROM {table}"), []).is_ok(), "{table}");
        }
    }
}

fn print_table(verdicts: &BTreeMap<Source, Vec<Run>>) {
    println!("\n| alone | runs with a defect | found | not judged | wrong | well-placed runs | clear | not judged | false alarms |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for (_, source, words) in SOURCES {
        let Some(all) = verdicts.get(&source) else { continue };
        let count = |has_defect: bool, is: &dyn Fn(&Verdict) -> bool| {
            all.iter().filter(|run| run.has_defect == has_defect && is(&run.verdict)).count()
        };
        let unjudged = |verdict: &Verdict| matches!(verdict, Verdict::NotJudged(_));
        println!(
            "| {words} | {} | {} | {} | {} | {} | {} | {} | {} |",
            count(true, &|_| true),
            count(true, &|verdict| *verdict == Verdict::Found),
            count(true, &unjudged),
            count(true, &Verdict::is_false),
            count(false, &|_| true),
            count(false, &|verdict| *verdict == Verdict::Clear),
            count(false, &unjudged),
            count(false, &Verdict::is_false),
        );
    }
    for (_, source, words) in SOURCES {
        let mut unjudged: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for run in verdicts.get(&source).into_iter().flatten() {
            if let Verdict::NotJudged(reason) = &run.verdict {
                *unjudged.entry((&run.name, reason.clone())).or_default() += 1;
            }
        }
        for ((name, reason), times) in unjudged {
            println!("{words}: {name}: {times} times not judged: {reason}");
        }
    }
}
