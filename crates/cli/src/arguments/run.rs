//! The options of `firsttouch run`: numactl's, pinning, and what is done instead of running.

use super::TuneOptions;
use clap::{ArgAction, ArgGroup, Args};
use firsttouch_model::quantity::parse_size;
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a program with its memory and threads placed, like numactl and likwid-pin
#[derive(Debug, Args)]
#[command(
    override_usage = "firsttouch run [PLACEMENT] [--] PROGRAM [ARGUMENT]...\n       \
        firsttouch run --pin EXPR|POLICY --explain [[--] PROGRAM [ARGUMENT]...]\n       \
        firsttouch run --plan PLAN.toml [--] PROGRAM [ARGUMENT]...\n       \
        firsttouch run --tune [--] PROGRAM [ARGUMENT]...\n       \
        firsttouch run --quick-test [--] PROGRAM [ARGUMENT]...\n       \
        firsttouch run --file PATH|--shm PATH [--length SIZE] [--offset SIZE] POLICY [--touch] [--dump]\n       \
        firsttouch run --hardware|--show",
    long_about = "Starts a program under a memory policy, on chosen CPUs, with its threads pinned. firsttouch becomes the program, so \
        signals, exit status and terminal are the program's own. The options, also the short ones, are those of numactl, so 'firsttouch run' can \
        replace numactl.\n\n\
        NODES and CPUS are lists such as 0-3,6 | all | !1 (all others) | +0-1 (by position among the allowed ones) | same (those of the CPU options); \
        nodes also as netdev:eth0, block:sda, file:PATH, pci:01:00.0, ip:HOST.\n\
        EXPR gives each thread a CPU: 0,2,4-7 | S0:0-3@S1:0-3, E:N:8:1:2, M:scatter (likwid) | package:0.core:0-3 (hwloc) | \
        nodes:0,0,1,1 (the node of each thread) | compact, scatter, spread, each also with a number of threads (spread:8). 'report', 'profile' \
        and 'check' take the same.\n\n\
        --plan gives each planned object its own placement, by the line that allocates it, without changing the program's source or results. \
        Objects that cannot be placed cause a warning, and the program runs.\n\n\
        Other placements that do not exist, are not allowed, or are forbidden by the kernel or a container are an error before the program \
        starts. With --best-effort they are a warning, and the program runs without them.",
    after_help = "Examples:\n  \
        firsttouch run --cpunodebind 0 --membind 0 -- ./solver input.dat\n  \
        firsttouch run --interleave all ./solver input.dat\n  \
        firsttouch run --pin spread:8 -- ./solver input.dat\n  \
        firsttouch run --pin E:N:8:1:2 --explain\n  \
        firsttouch run --plan solver.toml -- ./solver input.dat\n  \
        firsttouch run --plan solver.toml --explain -- ./solver\n  \
        firsttouch run --openmp-allocators -- ./solver input.dat\n  \
        firsttouch run --tune -- ./solver input.dat\n  \
        firsttouch run --quick-test -- ./solver input.dat\n  \
        firsttouch run --file /dev/shm/table --length 1G --interleave all\n\n\
        Exit status: the program's own; 127 if it was not found, 126 if it cannot be executed; 1 if the kernel refuses the placement; \
        2 for a usage error, also for nodes or CPUs that do not exist.",
    group = ArgGroup::new("policy").args(["membind", "preferred", "preferred_many", "interleave", "weighted_interleave", "localalloc"]),
    group = ArgGroup::new("places").args(["cpunodebind", "physcpubind", "pin"]),
    group = ArgGroup::new("segment").args(["shm", "file"]),
    group = ArgGroup::new("instead").args(["hardware", "show", "explain", "quick_test", "shm", "file"]).multiple(true)
)]
pub struct Run {
    /// Take memory from these nodes only
    #[arg(short, long, value_name = "NODES", help_heading = "Memory policy")]
    pub membind: Option<String>,
    /// Take memory from this node, and from others when it is full
    #[arg(short, long, value_name = "NODE", help_heading = "Memory policy")]
    pub preferred: Option<String>,
    /// Take memory from these nodes, and from others when they are full (Linux 5.15)
    #[arg(short = 'P', long, value_name = "NODES", help_heading = "Memory policy")]
    pub preferred_many: Option<String>,
    /// Interleave pages over these nodes
    #[arg(short, long, value_name = "NODES", help_heading = "Memory policy")]
    pub interleave: Option<String>,
    /// Interleave pages by the weights in /sys/kernel/mm/mempolicy/weighted_interleave (Linux 6.9)
    #[arg(short, long, value_name = "NODES", help_heading = "Memory policy")]
    pub weighted_interleave: Option<String>,
    /// Take memory from the node that the thread runs on, whatever the inherited policy
    #[arg(short, long, visible_alias = "local", help_heading = "Memory policy")]
    pub localalloc: bool,
    /// With --membind: the kernel's balancing may move pages between these nodes (Linux 5.12)
    #[arg(short, long, requires = "membind", conflicts_with_all = ["preferred", "preferred_many", "interleave", "weighted_interleave", "localalloc"], help_heading = "Memory policy")]
    pub balancing: bool,
    /// With --shm or --file, and --membind or --preferred-many: start with the nodes nearest to this one (Linux 5.17)
    #[arg(long, value_name = "NODE", help_heading = "Memory policy")]
    pub home_node: Option<String>,

    /// Run on the CPUs of these nodes
    #[arg(short = 'N', long, value_name = "NODES", alias = "cpubind", short_alias = 'c', help_heading = "CPUs and threads")]
    pub cpunodebind: Option<String>,
    /// Run on these CPUs
    #[arg(short = 'C', long, value_name = "CPUS", help_heading = "CPUs and threads")]
    pub physcpubind: Option<String>,
    /// Pin each thread to a CPU: a new thread takes the first place in the list that no living thread holds
    #[arg(long, value_name = "EXPR", help_heading = "CPUs and threads")]
    pub pin: Option<String>,
    /// With --pin: do not pin these threads, by order of creation (the first that the main thread creates is 1), such as a library's helpers
    #[arg(long, value_name = "NUMBERS", requires = "pin", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65535), help_heading = "CPUs and threads")]
    pub skip: Vec<u32>,
    /// Place memory and threads by a plan (see 'firsttouch plan')
    #[arg(long, value_name = "PLAN.toml", conflicts_with_all = ["policy", "places", "segment", "hardware", "show", "quick_test"], help_heading = "Plan")]
    pub plan: Option<PathBuf>,
    /// Place what OpenMP's allocators return as their trait omp_atk_partition asks (nearest, blocked, interleaved), which runtimes ignore
    #[arg(long, conflicts_with_all = ["segment", "hardware", "show", "quick_test"], help_heading = "Memory policy")]
    pub openmp_allocators: bool,
    /// Move the program's pages to where they are used, while it runs (see 'firsttouch tune'); firsttouch then stays beside the program, and passes its status on
    #[arg(long, conflicts_with_all = ["plan", "policy", "places", "segment", "hardware", "show", "explain", "quick_test", "best_effort", "openmp_allocators"], help_heading = "Tuning")]
    pub tune: bool,
    #[command(flatten, next_help_heading = "Tuning")]
    pub tuning: TuneOptions,
    /// Let lists name all existing nodes and CPUs, not only those of this process's cpuset and affinity
    #[arg(short, long, help_heading = "CPUs and threads")]
    pub all: bool,

    /// If a placement is refused, warn and run the program without it
    #[arg(long)]
    pub best_effort: bool,
    /// Show where every thread and page would go, without running the program
    #[arg(long, conflicts_with_all = ["segment", "quick_test"], help_heading = "Instead of running")]
    pub explain: bool,
    /// Time the program on one node, on all nodes, interleaved, and with one process per node, to see whether placement matters
    #[arg(long, conflicts_with_all = ["policy", "places", "segment"], help_heading = "Instead of running")]
    pub quick_test: bool,
    /// With --quick-test, the number of runs in each placement
    #[arg(long, value_name = "N", requires = "quick_test", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "Instead of running")]
    pub rounds: u32,
    /// With --explain, --quick-test, --hardware or --show: print JSON on stdout, or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", requires = "instead", help_heading = "Instead of running")]
    pub json: Option<PathBuf>,
    /// With --explain, --quick-test, --hardware or --show: write the result to FILE (- for stdout)
    #[arg(long, value_name = "FILE", requires = "instead", help_heading = "Instead of running")]
    pub output: Option<PathBuf>,
    /// Show the machine, like 'firsttouch topology'
    #[arg(short = 'H', long, conflicts_with_all = ["policy", "places", "segment", "explain", "quick_test", "program"], help_heading = "Instead of running")]
    pub hardware: bool,
    /// Show this process's policy, CPUs and nodes, at the end of 'firsttouch topology'
    #[arg(short, long, conflicts_with_all = ["policy", "places", "segment", "explain", "quick_test", "program"], help_heading = "Instead of running")]
    pub show: bool,

    #[command(flatten)]
    pub segment: Segment,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, required_unless_present = "instead", conflicts_with = "segment")]
    pub program: Vec<OsString>,
}

/// Shared memory that gets the policy instead of a process.
#[derive(Debug, Args)]
#[command(next_help_heading = "Shared memory")]
pub struct Segment {
    /// Set the policy of a System V segment, by its key file (ftok); create it if --length is given
    #[arg(short = 'S', long, value_name = "PATH")]
    pub shm: Option<PathBuf>,
    /// Set the policy of a file in tmpfs or hugetlbfs; create it if --length is given
    #[arg(short, long, value_name = "PATH")]
    pub file: Option<PathBuf>,
    /// The project number of the key file (ftok)
    #[arg(short = 'I', long, value_name = "ID", default_value = "0", value_parser = parse_integer, requires = "shm")]
    pub shmid: i32,
    /// Start at this offset (K, M, G: powers of 1024)
    #[arg(short, long, value_name = "SIZE", default_value = "0", value_parser = parse_size, requires = "segment")]
    pub offset: u64,
    /// Number of bytes [default: to the end]
    #[arg(short = 'L', long, value_name = "SIZE", value_parser = parse_size, requires = "segment")]
    pub length: Option<u64>,
    /// The mode of a created segment or file
    #[arg(short = 'M', long, value_name = "OCTAL", default_value = "600", value_parser = parse_mode, requires = "segment")]
    pub shmmode: u32,
    /// Create the System V segment with huge pages
    #[arg(short = 'u', long, requires = "shm")]
    pub huge: bool,
    /// Fail if a page is already on another node
    #[arg(short = 't', long, requires = "segment")]
    pub strict: bool,
    /// Touch every page, so that the policy takes effect now
    #[arg(short = 'T', long, requires = "segment")]
    pub touch: bool,
    /// Print the policy of each range
    #[arg(short, long, requires = "segment")]
    pub dump: bool,
    /// Print the node of each range; untouched pages are touched
    #[arg(short = 'D', long, requires = "segment", action = ArgAction::SetTrue)]
    pub dump_nodes: bool,
}

/// A number in C notation: `12`, `0xc`, `014`.
fn parse_integer(text: &str) -> Result<i32, String> {
    let number = match (text.strip_prefix("0x"), text.strip_prefix('0').filter(|rest| !rest.is_empty())) {
        (Some(digits), _) => i32::from_str_radix(digits, 16),
        (None, Some(digits)) => i32::from_str_radix(digits, 8),
        _ => text.parse(),
    };
    number.map_err(|_| format!("expected a number such as 12 or 0xc, found '{text}'"))
}

fn parse_mode(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| format!("expected an octal mode such as 600, found '{text}'"))
}
