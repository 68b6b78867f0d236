//! The command line: one module per command or group of commands.

mod balancing;
mod bench;
mod check;
mod clean;
mod diff;
mod doctor;
mod export;
mod map;
mod merge;
mod migrate;
mod plan;
mod predict;
mod process;
mod profile;
mod reproduce;
mod run;
mod serve_metrics;
mod stat;
mod top;
mod topology;
mod tune;

pub use balancing::{Balancing, BalancingAction, BalancingMeasure};
pub use bench::{Bench, Init, Kernel, KernelOptions, Simd, Stream};
pub use check::{Check, Format};
pub use clean::{Clean, Completions};
pub use diff::Diff;
pub use doctor::Doctor;
pub use export::{Export, Table, To, Value};
pub use map::Map;
pub use merge::Merge;
pub use migrate::Migrate;
pub use plan::Plan;
pub use predict::{CapsFrom, Machines, MachinesAction, Predict, Validate};
pub use process::{Maps, Ps};
pub use profile::{Distribution, Judge, Profile, Ranks, Report};
pub use reproduce::Reproduce;
pub use run::{Run, Segment};
pub use serve_metrics::{Addresses, ServeMetrics};
pub use stat::Stat;
pub use top::{RecordLive, Top, WindowArgument};
pub use topology::Topology;
pub use tune::{Tune, TuneOptions};

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Printed for `firsttouch` without arguments.
pub const OVERVIEW: &str = "\
firsttouch finds memory that lives on the wrong NUMA node and names the line that put it there.

  firsttouch demo                      see it work on a bundled program, in under 30 s
  firsttouch run --membind 0 ./program run a program with memory and threads placed, like numactl and likwid-pin
  firsttouch profile -- ./program      run a program, record it, and report
  firsttouch report program.ftp        report again, also for other machines
  firsttouch report program.ftp --html program.html
                                       write the report as a page with pictures, in one file
  firsttouch predict program.ftp --machine epyc-7451x2
                                       predict what each placement would cost on a machine
  firsttouch plan program.ftp -o program.toml
                                       choose a policy for each misplaced object, by the line that allocates it
  firsttouch run --plan program.toml -- ./program
                                       run with memory placed by the plan, without changing the source
  firsttouch check -- ./program        fail continuous integration when placement gets worse
  firsttouch diff before.ftp after.ftp compare two profiles, with the uncertainty of each difference
  firsttouch merge program.ftp.d -o program.ftp
                                       merge the profiles of the ranks of a job
  firsttouch export program.ftp --to pprof -o program.pb
                                       write the samples for pprof, flame graphs, KCachegrind, the Firefox Profiler
  firsttouch topology                  show this machine's nodes, CPUs, caches, memory and distances
  firsttouch doctor                    list settings of this system that hurt placement
  firsttouch top                       watch nodes, processes and remote shares live
  firsttouch serve-metrics             serve nodes, containers and processes as metrics to Prometheus
  firsttouch stat -- ./program         count misses, hinting faults and migrations while a program runs
  firsttouch ps PID                    show a process's threads, their CPUs and nodes
  firsttouch maps PID                  show a process's memory by mapping and node
  firsttouch migrate PID --to 1        move a running program's pages
  firsttouch tune PID                  move its pages to where they are used, while it runs
  firsttouch balancing                 show or switch the kernel's NUMA balancing, or measure its effect
  firsttouch map                       measure bandwidth and latency between all pairs of nodes
  firsttouch bench dgemv --init serial run a bundled kernel
  firsttouch reproduce                 list published placement experiments that can be repeated here
  firsttouch machines list             list machines that predictions can be made for
  firsttouch validate                  compare the model with published measurements
  firsttouch clean                     remove what was left in temporary and cache directories

It needs no root, no hardware counters and no second node. More: firsttouch --help, firsttouch COMMAND --help
";

#[derive(Debug, Parser)]
#[command(
    name = "firsttouch",
    version,
    about = "Finds memory that lives on the wrong NUMA node and names the line that put it there",
    long_about = "Finds memory that lives on the wrong NUMA node and names the line that put it there.\n\n\
        Linux places a page on the node of the thread that first touches it. When one thread initialises what many \
        threads use, most of them work on remote memory. firsttouch records which threads first touch and which threads use each object \
        of a running program, on any Linux machine, and judges the placement on this machine or on one you do not have.",
    after_help = "Examples:\n  \
        firsttouch demo\n  \
        firsttouch profile -- ./solver input.dat\n  \
        firsttouch report solver.ftp --machine virtual:4\n\n\
        Exit status: 0 success; 1 failure; 2 usage error; 3 a limit of 'check' was exceeded. 'run', 'profile' and 'stat' end with the \
        program's own status."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(Demo),
    Run(Box<Run>),
    Profile(Profile),
    Report(Report),
    Predict(Predict),
    Plan(Plan),
    Check(Check),
    Diff(Diff),
    Merge(Merge),
    Export(Export),
    Top(Box<Top>),
    ServeMetrics(Box<ServeMetrics>),
    Topology(Topology),
    Doctor(Doctor),
    Stat(Stat),
    Ps(Ps),
    Maps(Maps),
    Migrate(Migrate),
    Tune(Tune),
    Balancing(Balancing),
    Bench(Bench),
    Map(Map),
    Reproduce(Reproduce),
    Machines(Machines),
    Validate(Validate),
    Clean(Clean),
    Completions(Completions),
    #[command(hide = true)]
    RecordLive(RecordLive),
    /// Write the manual pages to a directory
    #[command(hide = true)]
    HelpMan {
        directory: PathBuf,
    },
}

/// Show the whole workflow on a bundled program: the defect, its line, and the fix
#[derive(Debug, Args)]
#[command(
    long_about = "Shows the whole workflow on a bundled matrix-vector product with 8 threads, in under 30 s. It profiles the program with \
        data initialised by one thread and shows how much of its memory access is remote. It makes a plan and predicts the gain; on a machine \
        with several nodes it also runs the program under the plan. Then it profiles the program with parallel initialisation and shows that \
        the defect is gone. It writes to a temporary directory only.",
    after_help = "Examples:\n  firsttouch demo\n  firsttouch demo --json > demo.json"
)]
pub struct Demo {
    /// Print the results as JSON on stdout, and the steps on stderr
    #[arg(long)]
    pub json: bool,
}

/// How many times: at least once.
fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| format!("expected a whole number from 1, found '{text}'"))
}

/// A part of a whole: `20%`, `20` (numbers above 1 are per cents) or `0.2` (numbers below 1 are parts). `1` could be either.
fn parse_part(text: &str) -> Result<f64, String> {
    let error = || format!("expected a part such as 20%, 20 or 0.2 (all mean 20 %), found '{text}'");
    let number = |text: &str| text.trim().parse::<f64>().map_err(|_| error());
    let part = match text.trim().strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => match number(text)? {
            1.0 => return Err("1 could mean 1 % or all of it: write 1% or 100%".to_owned()),
            percent if percent > 1.0 => percent / 100.0,
            part => part,
        },
    };
    match part {
        0.0..=1.0 => Ok(part),
        _ if part > 1.0 => Err(format!("'{text}' is more than 100 %")),
        _ => Err(error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Check clap's own invariants.
    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// Check that counts begin at 1.
    #[test]
    fn counts_are_read() {
        assert_eq!(parse_count("12"), Ok(12));
        for text in ["0", "-1", "", "two", "1.5", "18446744073709551616"] {
            assert_eq!(parse_count(text), Err(format!("expected a whole number from 1, found '{text}'")));
        }
    }

    /// Check the ways to write a part, and a table of malformed ones.
    #[test]
    fn parts_are_read() {
        for (text, part) in [
            ("20%", 0.2),
            ("20", 0.2),
            ("0.2", 0.2),
            ("1%", 0.01),
            ("0.5%", 0.005),
            ("1.5", 0.015),
            ("0", 0.0),
            ("100", 1.0),
            ("100 %", 1.0),
        ] {
            assert!((parse_part(text).unwrap() - part).abs() < 1e-12, "{text}");
        }
        for text in ["", "%", "1", "1.0", "101", "-1", "-0.5%", "150%", "nan", "inf", "many", "20%%"] {
            assert!(parse_part(text).is_err(), "{text}");
        }
        assert!(parse_part("1").unwrap_err().contains("1% or 100%"));
        assert_eq!(parse_part("130%").unwrap_err(), "'130%' is more than 100 %");
    }

    /// Check that a letter means the same option in all commands. `run` has the letters of numactl, which it replaces, and `top` those of top.
    #[test]
    fn a_letter_has_one_meaning() {
        fn letters(command: &clap::Command, found: &mut std::collections::BTreeMap<char, String>) {
            for argument in command.get_arguments() {
                if let (Some(letter), Some(long)) = (argument.get_short(), argument.get_long()) {
                    let known = found.entry(letter).or_insert_with(|| long.to_owned());
                    assert_eq!(known, long, "-{letter} of {}", command.get_name());
                }
            }
            command.get_subcommands().filter(|one| !["run", "top"].contains(&one.get_name())).for_each(|one| letters(one, found));
        }
        let mut command = Arguments::command();
        command.build();
        letters(&command, &mut std::collections::BTreeMap::new());
    }

    /// Check that a program keeps its own options, with and without `--`.
    #[test]
    fn programs_keep_their_options() {
        for line in
            [&["firsttouch", "profile", "-q", "--", "ls", "-q", "--json"][..], &["firsttouch", "profile", "-q", "ls", "-q", "--json"]]
        {
            let Command::Profile(profile) = Arguments::try_parse_from(line).unwrap().command else { panic!("profile") };
            assert_eq!(profile.program, ["ls", "-q", "--json"]);
            assert!(profile.quiet && profile.json.is_none());
        }
    }

    /// Check that `top` takes options on both sides of a process, and leaves those of a program to it.
    #[test]
    fn top_takes_options_around_a_process() {
        let top = |line: &[&str]| match Arguments::try_parse_from([&["firsttouch", "top"], line].concat()).map(|all| all.command) {
            Ok(Command::Top(top)) => Some(top),
            _ => None,
        };
        for line in [&["4711", "-b", "-n", "1"][..], &["-b", "-n", "1", "4711"], &["-b", "4711", "-n1"]] {
            let top = top(line).unwrap();
            assert_eq!((top.pid, top.batch, top.count, top.program.len()), (Some(4711), true, Some(1), 0), "{line:?}");
        }
        let started = top(&["-b", "--", "ls", "-n", "7"]).unwrap();
        assert_eq!((started.pid, started.count), (None, None));
        assert_eq!(started.program, ["ls", "-n", "7"]);
        assert!(top(&["ls"]).is_none() && top(&["4711", "--", "ls"]).is_none() && top(&["--replay", "a", "4711"]).is_none());
    }

    /// Check that `run` takes numactl's spellings before a program with options of its own.
    #[test]
    fn run_takes_the_options_of_numactl() {
        for line in [
            &["-N", "0,1", "-m", "same", "ls", "-l", "-m", "9"][..],
            &["-N0,1", "-msame", "--", "ls", "-l", "-m", "9"],
            &["--cpunodebind=0,1", "--membind=same", "ls", "-l", "-m", "9"],
            &["--cpubind", "0,1", "--membind", "same", "ls", "-l", "-m", "9"],
        ] {
            let Command::Run(run) = Arguments::try_parse_from([&["firsttouch", "run"], line].concat()).unwrap().command else {
                panic!("run")
            };
            assert_eq!((run.cpunodebind.as_deref(), run.membind.as_deref()), (Some("0,1"), Some("same")), "{line:?}");
            assert_eq!(run.program, ["ls", "-l", "-m", "9"]);
            assert!(!run.localalloc);
        }
    }
}
