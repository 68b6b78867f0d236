//! The arguments of `firsttouch top`.

use super::{Judge, parse_count};
use clap::{Args, ValueEnum};
use firsttouch_model::quantity::parse_duration;
use firsttouch_system::process::Subject;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Watch nodes, processes, threads and objects live, with the share of remote accesses
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "firsttouch top [OPTIONS] [PID]\n       firsttouch top [OPTIONS] -- PROGRAM [ARGUMENT]...\n       firsttouch top [OPTIONS] --replay FILE",
    long_about = "Shows the nodes and processes of this machine while they run: CPU, memory by node, and which share of a process's accesses goes to \
        another node than its threads run on, with its 95 % interval. Enter shows the threads and objects of a process, and which node accesses which. \
        It needs no root, no hardware counters and nothing from the programs: the few processes that use most CPU are sampled from outside, in turn.\n\n\
        On a machine with one node, remote shares are those of a machine with two (--machine): a page's node is that of the thread that touched it \
        first. So only programs that 'top' starts have one there, and memory that a process touches while 'top' looks.\n\n\
        With -b, or where the output is no terminal, it prints a log instead. With a PROGRAM, it starts the program and shows this one and its \
        children; what the program prints goes to a file.",
    after_help = "Examples:\n  \
        firsttouch top\n  \
        firsttouch top 4711\n  \
        firsttouch top -- ./solver input.dat\n  \
        firsttouch top -b -n 3 -d 2\n  \
        firsttouch top --json -n 1 | jq '.processes[] | {pid, name, remote}'\n  \
        firsttouch top -b --record night.fttop > /dev/null\n  \
        firsttouch top --replay night.fttop\n\n\
        Keys: h or F1 lists them.\n\n\
        Exit status: 0; with PROGRAM its own, 128+N if signal N ended it, 127 if it was not found, 126 if it cannot be executed."
)]
pub struct Top {
    /// Print a log instead of a screen (the default where the output is no terminal)
    #[arg(short, long)]
    pub batch: bool,
    /// Stop after N snapshots
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_count)]
    pub count: Option<u64>,
    /// Time between two snapshots (seconds, or with a unit: 500ms, 1m), at least 100ms [default: 2]
    #[arg(short, long, value_name = "TIME", value_parser = parse_delay)]
    pub delay: Option<Duration>,
    /// Take rates and remote shares over the last 1, 10 or 60 seconds
    #[arg(short, long, value_name = "SECONDS", value_enum, default_value = "10")]
    pub window: WindowArgument,
    /// Print each snapshot as JSON in one line (schema firsttouch.top/1); implies -b
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print one line of comma-separated values for each process and snapshot; implies -b
    #[arg(long)]
    pub csv: bool,
    /// Record the snapshots in FILE too, which must be a new file or an older record; that is kept as FILE.1, FILE.2, ...
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Show what was recorded in FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pid", "program", "machine", "pin", "output"])]
    pub replay: Option<PathBuf>,
    /// Append the output of PROGRAM to FILE [default: PROGRAM.out in this directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Judge remote shares on this machine, as 'firsttouch report' does [default: this machine, or virtual:2 if it has one node]
    #[arg(long, value_name = "NAME|virtual:N|FILE")]
    pub machine: Option<String>,
    /// Where threads run on a virtual machine, as in 'firsttouch report' [default: spread]
    #[arg(long, value_name = "EXPR")]
    pub pin: Option<String>,
    /// The number of a process
    #[arg(value_name = "PID", value_parser = parse_pid, conflicts_with = "program")]
    pub pid: Option<i32>,
    /// A program to start, and its arguments
    #[arg(value_name = "PROGRAM", last = true)]
    pub program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WindowArgument {
    #[value(name = "1")]
    One,
    #[value(name = "10")]
    Ten,
    #[value(name = "60")]
    Sixty,
}

/// Record a process or a program for a live view, or for tuning: what `top` and `tune` start
#[derive(Clone, Debug, Args)]
pub struct RecordLive {
    #[arg(long)]
    pub output: PathBuf,
    #[arg(long)]
    pub period_us: u64,
    #[arg(long)]
    pub parent: Option<i32>,
    #[arg(long)]
    pub tuning: bool,
    #[arg(long, conflicts_with = "program")]
    pub pid: Option<i32>,
    #[arg(trailing_var_arg = true, required_unless_present = "pid")]
    pub program: Vec<OsString>,
}

impl Top {
    /// The judge's options.
    pub fn judge(&self) -> Judge {
        Judge { machine: self.machine.clone(), pin: self.pin.clone(), ..Judge::default() }
    }
}

fn parse_pid(text: &str) -> Result<i32, String> {
    match Subject::parse(text) {
        Subject::Pid(pid) => Ok(pid),
        Subject::Name(_) => Err(format!("expected the number of a process; to start a program: firsttouch top -- {text}")),
    }
}

/// The shortest delay: reading takes a millisecond.
const LEAST_DELAY: Duration = Duration::from_millis(100);

fn parse_delay(text: &str) -> Result<Duration, String> {
    let delay = parse_duration(text).map_err(|error| error.to_string())?;
    if delay < LEAST_DELAY { Err("expected at least 100ms".to_owned()) } else { Ok(delay) }
}
