//! The command line.

mod bench;
mod check;
mod diff;
mod map;
mod migrate;
mod plan;
mod predict;
mod reproduce;
mod run;

pub use bench::{Bench, How, Init, Kernel, Simd, Stream};
pub use check::{Check, Format};
pub use diff::Diff;
pub use map::{Map, MapKernel};
pub use migrate::Migrate;
pub use plan::Plan;
pub use predict::{CapsFrom, Machines, MachinesAction, Predict, Validate};
pub use reproduce::{Experiment, Reproduce};
pub use run::{Run, Segment};

use clap::{Args, Parser, Subcommand};
use firsttouch_model::quantity::{parse_duration, parse_size};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Printed for `firsttouch` alone.
pub const OVERVIEW: &str = "\
firsttouch finds memory that lives on the wrong NUMA node and names the line that put it there.

  firsttouch demo                      see it work on a bundled program, in under 30 s
  firsttouch run --membind 0 ./program run a program with memory and threads placed, as numactl and likwid-pin do
  firsttouch profile -- ./program      run a program, record, and report
  firsttouch report program.ftp        the report again, also for other machines
  firsttouch predict program.ftp --machine epyc-7451x2
                                       what each placement would cost there
  firsttouch plan program.ftp -o program.toml
                                       a policy for each misplaced object, by the line that allocates it
  firsttouch run --plan program.toml -- ./program
                                       run with memory placed by the plan, the source untouched
  firsttouch check -- ./program        a gate for continuous integration
  firsttouch diff before.ftp after.ftp what changed between two profiles, and what may be chance
  firsttouch topology                  this machine's nodes, CPUs, caches, memory, distances
  firsttouch doctor                    what on this system spoils placement
  firsttouch stat -- ./program         what the kernel counted meanwhile: misses, hint faults, migrations
  firsttouch ps PID                    a process's threads, their CPUs and nodes
  firsttouch maps PID                  a process's memory by mapping and node
  firsttouch migrate PID --to 1        move a running program's pages
  firsttouch balancing                 the kernel's NUMA balancing: state, and what it costs or gains
  firsttouch map                       bandwidth and latency between all pairs of nodes
  firsttouch bench dgemv --init serial a bundled kernel by itself
  firsttouch reproduce --list          published experiments on placement, repeated on this machine
  firsttouch machines list             machines that predictions can be made for
  firsttouch validate                  the model against published measurements

No root, no hardware counters, no second node needed. More: firsttouch --help, firsttouch COMMAND --help
";

#[derive(Debug, Parser)]
#[command(
    name = "firsttouch",
    version,
    about = "Finds memory that lives on the wrong NUMA node and names the line that put it there",
    long_about = "Finds memory that lives on the wrong NUMA node and names the line that put it there.\n\n\
        Linux places a page on the node of the thread that first touches it. When one thread initialises what many \
        threads use, most of them work on remote memory. firsttouch records who first touched and who uses each object \
        of a running program, on any Linux machine, and judges the placement on this machine or on one you do not have.",
    after_help = "Examples:\n  \
        firsttouch demo\n  \
        firsttouch profile -- ./solver input.dat\n  \
        firsttouch report solver.ftp --machine virtual:4\n\n\
        Exit status: 0 done, 1 failed, 2 usage, 3 a limit of 'check' was exceeded; 'run', 'profile' and 'stat' pass the program's own status on."
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
    Topology(Topology),
    Doctor(Doctor),
    Stat(Stat),
    Ps(Ps),
    Maps(Maps),
    Migrate(Migrate),
    Balancing(Balancing),
    Bench(Bench),
    Map(Map),
    Reproduce(Reproduce),
    Machines(Machines),
    Validate(Validate),
    /// Write the manual pages into a directory
    #[command(hide = true)]
    HelpMan {
        directory: PathBuf,
    },
}

/// Show the whole story on a bundled program: the defect, its line, and the repaired program
#[derive(Debug, Args)]
#[command(
    long_about = "Shows the whole story on a bundled matrix-vector product with 8 threads, in under 30 s: profiles it with \
        its data initialised by one thread, shows how much of its memory access is remote, plans where its memory should go and what that gains (with \
        several nodes it also runs it so), profiles it initialised in parallel, and shows that the defect is gone. Writes to a temporary directory only.",
    after_help = "Examples:\n  firsttouch demo\n  firsttouch demo --json > demo.json"
)]
pub struct Demo {
    /// Print the results as JSON on stdout; the steps are told on stderr
    #[arg(long)]
    pub json: bool,
}

/// Run a program (or attach to one), record its first touches and accesses, and report
#[derive(Debug, Args)]
#[command(
    override_usage = "firsttouch profile [OPTIONS] [--] PROGRAM [ARGUMENT]...\n       firsttouch profile [OPTIONS] --pid PID",
    long_about = "Runs a program unchanged, records which thread first touches and which threads use each of its objects, \
        writes a profile, and reports on stderr when it has ended (stdout stays the program's own).\n\n\
        With --pid, attaches to a running program until it ends, until --duration, or until Ctrl-C; allocations made \
        before are not known then, and objects are named by mapping.",
    after_help = "Examples:\n  \
        firsttouch profile -- ./solver input.dat\n  \
        firsttouch profile -o run1.ftp --min-size 1M -- python3 train.py\n  \
        firsttouch profile --follow -- make -j8\n  \
        firsttouch profile --pid 4711 --duration 10\n\n\
        Exit status: the program's own; 128+N when signal N ended it; 127 when it was not found, 126 when it cannot be \
        executed; 1 when firsttouch failed before it ran; 2 for a wrong command line."
)]
pub struct Profile {
    /// The profile to write; an older profile there is replaced [default: ./PROGRAM.ftp, or ./pid-PID.ftp]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Do not record allocations below this size (K, M, G: powers of 1024)
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = parse_size)]
    pub min_size: u64,
    /// Profile child processes as well
    #[arg(long)]
    pub follow: bool,
    /// Stop recording after this time (seconds, or with unit: 500ms, 90s, 5m); the program goes on
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Attach to the running process PID instead of starting a program
    #[arg(long, value_parser = parse_pid, conflicts_with = "program")]
    pub pid: Option<i32>,
    /// Print only errors
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub judge: Judge,
    /// Print the report as JSON on stdout, after the program's own output
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, required_unless_present = "pid")]
    pub program: Vec<OsString>,
}

/// Report what a profile holds: misplaced objects, the lines behind them, and the fix
#[derive(Debug, Args)]
#[command(
    long_about = "Reports which objects of a profile are, or would be, on the wrong node: the line that allocated them, the \
        line that first touched them, the lines that use them, and the fix. Figures are given with their 95 % interval.",
    after_help = "Examples:\n  \
        firsttouch report solver.ftp\n  \
        firsttouch report solver.ftp --machine virtual:8 --pin compact\n  \
        firsttouch report solver.ftp --machine cluster-node.xml\n  \
        firsttouch report solver.ftp --json | jq '.findings[].message'"
)]
pub struct Report {
    /// The profile
    #[arg(value_name = "FILE")]
    pub profile: PathBuf,
    #[command(flatten)]
    pub judge: Judge,
    /// Print the report as JSON (schema firsttouch.report/1)
    #[arg(long)]
    pub json: bool,
}

/// What to judge a profile on.
#[derive(Clone, Debug, Default, Args)]
pub struct Judge {
    /// Judge on a machine of the catalogue (firsttouch machines list), one with N equal nodes (virtual:N), or that of a file: a
    /// description (.toml, as map --save writes), hwloc XML (lstopo --of xml FILE.xml), the output of Intel's mlc [default: the machine
    /// of the profile, or virtual:2 if that has one node]
    #[arg(long, value_name = "NAME|virtual:N|FILE")]
    pub machine: Option<String>,
    /// Where threads sit on a virtual machine: spread (equal blocks of thread numbers a node), compact (fill a node first), or a
    /// node for each thread, such as 0,0,1,1 or 0-3 [default: spread]
    #[arg(long, value_name = "spread|compact|LIST")]
    pub pin: Option<String>,
}

/// Show the machine: nodes, CPUs, caches, memory, distances, and where this process may run
#[derive(Debug, Default, Args)]
#[command(
    long_about = "Shows the nodes with their CPUs, memory, huge pages and distances, the packages, SMT siblings and caches, the \
        firmware's bandwidth and latency where it tells them (HMAT), scheduling domains where they are readable, and this \
        process's own memory policy, allowed CPUs and allowed nodes: what numactl --hardware, numactl --show and lscpu show together. \
        Sub-NUMA modes (CoD, SNC, NPS) are recognised. What cannot be read, or contradicts itself, is named.",
    after_help = "Examples:\n  \
        firsttouch topology\n  \
        firsttouch topology --json | jq '.nodes[].cpus'\n  \
        firsttouch topology --svg machine.svg\n  \
        firsttouch topology --xml machine.xml && lstopo -i machine.xml\n  \
        firsttouch topology -i other-machine.xml"
)]
pub struct Topology {
    /// Show another machine: an hwloc XML file, or a directory with a copy of its /proc and /sys
    #[arg(short, long, value_name = "FILE|DIRECTORY")]
    pub input: Option<PathBuf>,
    /// Print JSON (schema firsttouch.topology/1)
    #[arg(long)]
    pub json: bool,
    /// Write a picture instead of text (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write hwloc's XML instead of text (- for stdout): lstopo and firsttouch --machine read it
    #[arg(long, value_name = "FILE")]
    pub xml: Option<PathBuf>,
}

/// Find what on this system or in this environment spoils placement, with evidence and remedy
#[derive(Debug, Args)]
#[command(
    override_usage = "firsttouch doctor [OPTIONS] [[--] PROGRAM [ARGUMENT]...]",
    long_about = "Finds what on this system or in this environment spoils the placement of memory, or what firsttouch can see of it: the \
        kernel's balancing of nodes, threads that are not bound, more threads than CPUs, limits of control groups, calls that a \
        container forbids, nodes without memory or nearly full, swap, huge pages, sub-NUMA modes, missing runtimes, preloaded \
        allocators. Each finding has its severity, the file and value that show it, and what to do. Nothing is changed.\n\n\
        With a program, looks at its file and libraries as well (is it an OpenMP program, and whose runtime is it?); the program is not run. \
        What matters on machines with several nodes only is left out where there is one node.",
    after_help = "Examples:\n  \
        firsttouch doctor\n  \
        OMP_NUM_THREADS=16 firsttouch doctor -- ./solver input.dat\n  \
        firsttouch doctor --json | jq -r '.findings[] | .id + \": \" + .remedy'\n  \
        firsttouch doctor -i recorded-machine/\n\n\
        Exit status: 0 whatever was found; 1 when the machine or the program cannot be read; 2 for a wrong command line."
)]
pub struct Doctor {
    /// Examine a directory with a copy of another machine's /proc and /sys; its environment and permissions are unknown
    #[arg(short, long, value_name = "DIRECTORY", conflicts_with = "program")]
    pub input: Option<PathBuf>,
    /// Print JSON (schema firsttouch.doctor/1)
    #[arg(long)]
    pub json: bool,
    /// A program that would be started here, and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    pub program: Vec<OsString>,
}

/// Show what the kernel counts of placement: hits, misses, hinting faults, migrations
#[derive(Debug, Args)]
#[command(
    override_usage = "firsttouch stat [OPTIONS] [[--] PROGRAM [ARGUMENT]...]",
    long_about = "Shows numastat's six counters of each node and the kernel's counters of balancing and migration, each explained: \
        since boot, over an interval, or while a program runs. The counters are those of the whole machine. With a program, the text goes to stderr (stdout \
        stays the program's own).",
    after_help = "Examples:\n  \
        firsttouch stat\n  \
        firsttouch stat -- ./solver input.dat\n  \
        firsttouch stat --interval 10\n  \
        firsttouch stat --watch --interval 2\n  \
        firsttouch stat --json | jq '.nodes[] | {id, miss: .counters.numa_miss}'\n\n\
        Exit status: with a program its own; 128+N when signal N ended it; 127 when it was not found, 126 when it cannot be executed."
)]
pub struct Stat {
    /// Show what was counted in this time (seconds, or with unit: 500ms, 5m)
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "program")]
    pub interval: Option<Duration>,
    /// Show what was counted in each interval (1 s unless --interval says otherwise), until Ctrl-C
    #[arg(short, long, conflicts_with = "program")]
    pub watch: bool,
    /// With --watch, stop after so many intervals
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print JSON (schema firsttouch.stat/1); with --watch, one line an interval
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    pub program: Vec<OsString>,
}

/// Show a process's threads: where each last ran, where it may run, migrations; and its memory by node
#[derive(Debug, Args)]
#[command(
    long_about = "Shows the threads of a process with name, state, the CPU and node each last ran on, CPU time, the times the scheduler moved \
        it, and the CPUs it may run on; and the process's memory by node. Where the kernel balances, also the node it prefers \
        for the thread, and the hinting faults by node. A program's name shows all processes of that name.",
    after_help = "Examples:\n  \
        firsttouch ps 4711\n  \
        firsttouch ps solver\n  \
        firsttouch ps 4711 --json | jq '.processes[].threads[] | {tid, node}'"
)]
pub struct Ps {
    /// The number of a process, or the whole name of its program
    #[arg(value_name = "PID|CMD")]
    pub process: String,
    /// Print JSON (schema firsttouch.ps/1)
    #[arg(long)]
    pub json: bool,
}

/// Show a process's memory by mapping and node, with page sizes and policies
#[derive(Debug, Args)]
#[command(
    long_about = "Shows the mappings of a process, largest first: resident memory by node, page size, the part in huge pages, and memory \
        policy. Huge pages count as the bytes they are, transparent ones and those of hugetlbfs of any size. With --profile, also \
        the objects of a profile taken of this process, and on which nodes a sample of their pages is.",
    after_help = "Examples:\n  \
        firsttouch maps 4711\n  \
        firsttouch maps solver --all\n  \
        firsttouch maps 4711 --profile pid-4711.ftp\n  \
        firsttouch maps 4711 --json | jq '.processes[].mappings[] | select(.policy != \"default\")'"
)]
pub struct Maps {
    /// The number of a process, or the whole name of its program
    #[arg(value_name = "PID|CMD")]
    pub process: String,
    /// Show all mappings, by address
    #[arg(short, long)]
    pub all: bool,
    /// Name the objects of a profile that was taken of this process
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Print JSON (schema firsttouch.maps/1)
    #[arg(long)]
    pub json: bool,
}

/// Show or switch the kernel's NUMA balancing, or measure what it does to a program
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    long_about = "Shows whether the kernel moves pages to the threads that use them (NUMA balancing), and its tunables, wherever this \
        kernel keeps them. on and off switch it, for the whole machine; that takes root with CAP_SYS_ADMIN. measure runs a program with it on and off in turn.",
    after_help = "Examples:\n  \
        firsttouch balancing\n  \
        sudo firsttouch balancing off\n  \
        sudo firsttouch balancing measure -- ./solver input.dat"
)]
pub struct Balancing {
    #[command(subcommand)]
    pub action: Option<BalancingAction>,
    /// Print JSON (schema firsttouch.balancing/1)
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum BalancingAction {
    On(BalancingSwitch),
    Off(BalancingSwitch),
    Measure(BalancingMeasure),
}

/// Switch NUMA balancing on or off, for the whole machine, until the next boot
#[derive(Debug, Args)]
#[command(
    long_about = "Switches NUMA balancing for the whole machine, until the next boot. It takes root with CAP_SYS_ADMIN: in a container, run it on the host.",
    after_help = "Examples:\n  sudo firsttouch balancing on\n  sudo firsttouch balancing off"
)]
pub struct BalancingSwitch {
    /// Print the new state as JSON (schema firsttouch.balancing/1)
    #[arg(long)]
    pub json: bool,
}

/// Run a program with NUMA balancing on and off in turn, and compare
#[derive(Debug, Args)]
#[command(
    override_usage = "firsttouch balancing measure [OPTIONS] [--] PROGRAM [ARGUMENT]...",
    long_about = "Runs a program several times with NUMA balancing on and off in turn, and shows time, hinting faults and migrated \
        pages of both, with median, least and most. The state from before is put back, also after Ctrl-C. The text goes to stderr (stdout stays \
        the program's own). It takes root with CAP_SYS_ADMIN.",
    after_help = "Examples:\n  \
        sudo firsttouch balancing measure -- ./solver input.dat\n  \
        sudo firsttouch balancing measure --rounds 10 -- ./solver input.dat\n\n\
        Exit status: 0 when all runs ended with 0; else that of the run that failed, after which nothing more is run."
)]
pub struct BalancingMeasure {
    /// Runs with balancing on, and off
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Print JSON (schema firsttouch.balancing-measure/1) on stdout, after the program's own output
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, required = true)]
    pub program: Vec<OsString>,
}

/// `20%` or `0.2`: a part of a whole.
fn parse_part(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let part = text.strip_suffix('%').map_or_else(|| number(text), |percent| number(percent).map(|percent| percent / 100.0));
    part.filter(|part| (0.0..=1.0).contains(part)).ok_or_else(|| format!("expected a part such as 20% or 0.2, found '{text}'"))
}

fn parse_pid(text: &str) -> Result<i32, String> {
    text.parse().ok().filter(|&pid| pid >= 1).ok_or_else(|| format!("expected the number of a process, such as 4711, found '{text}'"))
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

    /// Check that a program's options stay its own, with and without `--`.
    #[test]
    fn programs_keep_their_options() {
        for line in
            [&["firsttouch", "profile", "-q", "--", "ls", "-q", "--json"][..], &["firsttouch", "profile", "-q", "ls", "-q", "--json"]]
        {
            let Command::Profile(profile) = Arguments::try_parse_from(line).unwrap().command else { panic!("profile") };
            assert_eq!(profile.program, ["ls", "-q", "--json"]);
            assert!(profile.quiet && !profile.json);
        }
    }

    /// Check that `run` takes numactl's spellings in front of a program, whose own options follow.
    #[test]
    fn run_stands_where_numactl_stood() {
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
