//! `firsttouch export`.

use super::Judge;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Write the samples of a profile in the format of another tool: flame graphs, pprof, the Firefox Profiler, KCachegrind, Parquet
#[derive(Debug, Args)]
#[command(
    long_about = "Writes the accesses of a profile, and which of them are remote, in the format of another tool. Each sample stands for an estimated \
        number of accesses of 8 bytes; the sums are those of the profile. Uncertainty is in comments and labels, never in values. The same profile \
        gives the same bytes.\n\n\
        folded: folded stacks, a line each, for flamegraph.pl, inferno and speedscope. pprof: for go tool pprof; object, home node, using node and \
        thread are labels. firefox: for profiler.firefox.com, with a track for each thread and counters for each node. callgrind: local and remote \
        accesses as events of each line, for KCachegrind and callgrind_annotate. csv and parquet: a row for each sample; \
        parquet with --table objects: a row for each object of the report. sqlite: a copy of the profile, which is an \
        SQLite database.",
    after_help = "Examples:\n  \
        firsttouch export solver.ftp --to folded --value remote-accesses > solver.folded\n  \
        firsttouch export solver.ftp --to pprof -o solver.pb\n  \
        firsttouch export solver.ftp --to firefox -o solver.json\n  \
        firsttouch export solver.ftp --to callgrind -o callgrind.out.solver\n  \
        firsttouch export solver.ftp --to csv --machine virtual:4 -o solver.csv\n  \
        firsttouch export solver.ftp --to parquet --table objects -o objects.parquet\n\n\
        Exit status: 0; 1 if the profile cannot be read or the file cannot be written; 2 for a usage error."
)]
pub struct Export {
    /// The profile, or a directory with the profiles of ranks (*.ftp.d) [default: the newest in this directory]
    #[arg(value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// The format
    #[arg(long, value_name = "FORMAT")]
    pub to: To,
    /// Write to this file, which replaces an older one of the same format [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What the numbers of folded stacks count
    #[arg(long, value_name = "VALUE", default_value = "accesses")]
    pub value: Value,
    /// What the rows of Parquet are
    #[arg(long, value_name = "TABLE", default_value = "samples")]
    pub table: Table,
    #[command(flatten)]
    pub judge: Judge,
}

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum To {
    Folded,
    Pprof,
    Firefox,
    Callgrind,
    Csv,
    Parquet,
    Sqlite,
}

/// What folded stacks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Value {
    Accesses,
    RemoteAccesses,
    Bytes,
    RemoteBytes,
}

/// Tables of Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Table {
    Samples,
    Objects,
}
