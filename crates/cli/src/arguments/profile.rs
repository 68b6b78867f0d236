//! The arguments of `firsttouch profile` and `firsttouch report`.

use clap::Args;
use firsttouch_model::quantity::{parse_duration, parse_size};
use firsttouch_report::View;
use firsttouch_system::parse_list;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Run a program (or attach to one), record its first touches and accesses, and report
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "firsttouch profile [OPTIONS] [--] PROGRAM [ARGUMENT]...\n       firsttouch profile [OPTIONS] --pid PID",
    long_about = "Runs a program unchanged, records which thread first touches and which threads use each of its objects, \
        writes a profile, and reports on stderr when the program has ended (stdout belongs to the program).\n\n\
        Of a program that mpirun, mpiexec, srun or flux run starts, each rank has a profile of its own in PROGRAM.ftp.d, and these are merged into \
        PROGRAM.ftp. firsttouch may stand before the launcher or behind it.\n\n\
        With --pid, attaches to a running program until it ends, until --duration, or until Ctrl-C. Allocations made before \
        are unknown then, and objects are named by mapping.",
    after_help = "Examples:\n  \
        firsttouch profile -- ./solver input.dat\n  \
        firsttouch profile -o run1.ftp --min-size 1M -- python3 train.py\n  \
        firsttouch profile --follow -- make -j8\n  \
        firsttouch profile --pid 4711 --duration 10\n  \
        firsttouch profile -- mpirun -n 4 ./solver\n  \
        mpirun -n 4 firsttouch profile -- ./solver\n  \
        mpirun -n 4 firsttouch profile -o 'solver-%h-%p.ftp' -- ./solver\n\n\
        Environment:\n  \
        FIRSTTOUCH_WATCHPOINTS=always|guarded|never: watch all threads, only those that a hit without a cause cannot end, or none \
        [default: always; guarded under KVM on Intel processors]\n  \
        FIRSTTOUCH_WATCHPOINTS_REST=never: keep watchpoints armed where samples of registers show the accesses too\n\n\
        Exit status: the program's own; 128+N if signal N ended it; 127 if it was not found, 126 if it cannot be \
        executed; 1 if firsttouch failed before the program ran; 2 for a usage error."
)]
pub struct Profile {
    /// Write the profile to FILE, which replaces an older profile of that name. In FILE, %p stands for the process number, %h for the
    /// host, %q{VAR} for an environment variable and %% for a percent sign; of ranks, each then writes a file of its own. For ranks, FILE is the merged
    /// profile beside FILE.d, or the directory of their profiles if it ends with .ftp.d or / [default: PROGRAM.ftp or pid-PID.ftp here, or in
    /// ~/.cache/firsttouch if nothing can be written here; an older profile is kept as PROGRAM.ftp.1, .2, ...]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Do not record allocations below this size (K, M, G: powers of 1024)
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = parse_size)]
    pub min_size: u64,
    /// Profile child processes as well
    #[arg(long)]
    pub follow: bool,
    /// Record until all processes of the program have ended, not only the first; implies --follow
    #[arg(long)]
    pub wait: bool,
    /// Stop recording after this time (seconds, or with a unit: 500ms, 90s, 5m); the program continues
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Attach to the running process PID instead of starting a program
    #[arg(short, long, value_parser = parse_pid, conflicts_with = "program")]
    pub pid: Option<i32>,
    /// Record only these ranks of an MPI job, such as 0,5-8
    #[arg(long, value_name = "LIST", value_parser = parse_ranks, conflicts_with = "pid")]
    pub ranks: Option<Ranks>,
    /// Take a seat in this directory of a job: from a firsttouch that stands before a launcher
    #[arg(long, hide = true, value_name = "DIR", conflicts_with_all = ["pid", "output"])]
    pub job_directory: Option<PathBuf>,
    /// Print only errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Say in sentences what the tables show (why each finding is one), and list the notes that change no verdict
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    #[command(flatten)]
    pub judge: Judge,
    /// Print the report as JSON on stdout, after the program's own output; or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write the report with pictures to this file as well, as one page that loads nothing from anywhere
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, required_unless_present = "pid")]
    pub program: Vec<OsString>,
}

/// Report what a profile shows: misplaced objects, the lines that cause them, and the fix
#[derive(Debug, Args)]
#[command(
    long_about = "Reports which objects of a profile are, or would be, on the wrong node: the line that allocates each object, the \
        lines that touch it first, the lines that use it, and the fix. Figures have a 95 % interval.",
    after_help = "Examples:\n  \
        firsttouch report\n  \
        firsttouch report solver.ftp\n  \
        firsttouch report solver.ftp --machine virtual:8 --pin compact\n  \
        firsttouch report solver.ftp --machine cluster-node.xml\n  \
        firsttouch report ci.ftp --source-root ~/src/solver\n  \
        firsttouch report solver.ftp --html solver.html\n  \
        firsttouch report solver.ftp --timeline\n  \
        firsttouch report solver.ftp --json | jq '.findings[].message'"
)]
pub struct Report {
    /// The profile, or a directory with the profiles of ranks (*.ftp.d) [default: the newest in this directory]
    #[arg(value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Say in sentences what the tables show (why each finding is one), and list the notes that change no verdict
    #[arg(short, long)]
    pub verbose: bool,
    #[command(flatten)]
    pub judge: Judge,
    /// Print the report as JSON (schema firsttouch.report/1); or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write the report with pictures to this file, as one page that loads nothing from anywhere; it replaces an older page of that name. - is stdout
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,
    /// Print the run over time instead: remote accesses and estimated bandwidth by node, and how long the run had which bandwidth
    #[arg(long, conflicts_with_all = ["json", "html"])]
    pub timeline: bool,
    /// Write one picture of the page as SVG instead: map (or map:OBJECT, an object's address range), objects, remote (areas by bytes, by remote
    /// accesses), time, machine
    #[arg(long, value_name = "VIEW", value_parser = view, conflicts_with_all = ["json", "html", "timeline"])]
    pub svg: Option<View>,
    /// With --svg: write to this file, which replaces an older picture of that name [default: stdout]
    #[arg(short, long, value_name = "FILE", requires = "svg")]
    pub output: Option<PathBuf>,
    /// Show no lines of source files, and so no changes to them: for a report that is passed on
    #[arg(long)]
    pub no_source: bool,
    /// Look for source files in this directory first: the one whose path ends as the recorded path does, however much of its beginning differs;
    /// with PREFIX=DIR, files below PREFIX only, at the same place below DIR. Shown are regular files below DIR that are named as source files and
    /// as large as when the program was profiled. May be given several times
    #[arg(long, value_name = "[PREFIX=]DIR")]
    pub source_root: Vec<String>,
}

/// The machine that a profile is judged on.
#[derive(Clone, Debug, Default, Args)]
pub struct Judge {
    /// Judge the profile on this machine: one of the catalogue (firsttouch machines list), N equal nodes (virtual:N), or a file with a
    /// description (.toml, as map --save writes), hwloc XML (lstopo --of xml FILE.xml), or the output of Intel's mlc [default: the
    /// machine of the profile, or virtual:2 if it has one node]
    #[arg(long, value_name = "NAME|virtual:N|FILE")]
    pub machine: Option<String>,
    /// Where threads run on a virtual machine, as in 'firsttouch run': spread (equal blocks of thread numbers on each node), compact (fill
    /// one node first), scatter, nodes:0,0,1,1 (the node of each thread in the order of creation, also of those that only wait; where several
    /// processes run at the same time, of each of their threads that do something), S0:0-3@S1:0-3, package:0.core:0-3 [default: spread]
    #[arg(long, value_name = "EXPR")]
    pub pin: Option<String>,
    /// Give every thread a place on the nodes of a virtual machine, also threads that did nothing (helper threads, a main thread that only
    /// waits), and spread each process over all nodes, also if several processes run at the same time
    #[arg(long)]
    pub place_all_threads: bool,
    /// On a virtual machine, put so many ranks of an MPI job on each node [default: as the launcher bound them when they were recorded, else
    /// equal blocks of ranks on each node]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks_per_node: Option<u32>,
    /// On a virtual machine, put successive ranks of an MPI job on one node (block), or on successive nodes (cyclic)
    #[arg(long, value_name = "ORDER")]
    pub distribution: Option<Distribution>,
}

/// The order of ranks on nodes, in the words of Slurm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Distribution {
    Block,
    Cyclic,
}

/// The numbers of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// As the user wrote them.
    pub text: String,
    pub list: Vec<u32>,
}

pub fn parse_ranks(text: &str) -> Result<Ranks, String> {
    let list = parse_list(text).map_err(|error| error.to_string())?;
    if list.is_empty() { Err("expected the numbers of ranks, such as 0,5-8".to_owned()) } else { Ok(Ranks { text: text.to_owned(), list }) }
}

fn parse_pid(text: &str) -> Result<i32, String> {
    text.parse().ok().filter(|&pid| pid >= 1).ok_or_else(|| format!("expected the number of a process, such as 4711, found '{text}'"))
}

fn view(name: &str) -> Result<View, String> {
    View::parse(name).ok_or_else(|| format!("there is no view '{name}': choose from {}", View::NAMES))
}
