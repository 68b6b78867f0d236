//! The profile file: one SQLite database a user can open. Written while the target runs, readable after a crash.

mod model;
mod reader;
mod writer;

pub use model::*;
pub use reader::open;
pub use writer::Writer;

/// The schema of the file; readers refuse others by name.
pub const SCHEMA: &str = include_str!("schema.sql");
/// `PRAGMA application_id`: "FTP1".
pub const APPLICATION_ID: i32 = 0x4654_5031;
/// `PRAGMA user_version`.
pub const SCHEMA_VERSION: i32 = 2;

/// Keys of the `meta` table.
pub mod meta {
    /// The command, as a JSON array of strings.
    pub const COMMAND: &str = "command";
    /// The program's exit status as a shell gives it (128+N for a signal); absent while it runs or after `kill -9` of firsttouch.
    pub const EXIT_CODE: &str = "exit_code";
    /// CLOCK_MONOTONIC at the start of the program, ns.
    pub const START_NS: &str = "start_ns";
    /// CLOCK_MONOTONIC at the end of what was observed, ns; updated while the target runs.
    pub const END_NS: &str = "end_ns";
    /// Wall-clock start, seconds since the epoch.
    pub const START_UNIX_S: &str = "start_unix_s";
    /// Allocations below this were not recorded, bytes.
    pub const MIN_SIZE: &str = "min_size";
    /// `yes` once frames carry functions and lines.
    pub const SYMBOLIZED: &str = "symbolized";
    /// Version of firsttouch that wrote the file.
    pub const TOOL_VERSION: &str = "tool_version";
    /// `launch` or `attach`.
    pub const MODE: &str = "mode";
    /// Cost of one watchpoint trap as calibrated at start, ns.
    pub const TRAP_NS: &str = "trap_ns";
    /// By how much estimates of cut windows may all be wrong together, as a part of them; absent where no address was hot.
    pub const HOT_ERROR: &str = "hot_error";
    /// CLOCK_MONOTONIC when watching began, ns (absent without watch evidence).
    pub const WATCH_START_NS: &str = "watch_start_ns";
    /// Child processes that were started and not profiled (without `--follow`); absent when there were none.
    pub const CHILDREN_LEFT: &str = "children_left";
    /// The most that was seen of the profiled processes' memory in swap, bytes; absent when none was.
    pub const SWAPPED: &str = "swapped_bytes";
    /// Variables that allocated memory is assigned to, as the sources had them when the profile was first judged: site, a tab and the name, one a line.
    pub const VARIABLES: &str = "variables";
    /// Doubts about the measurement, one a line.
    pub const NOTES: &str = "notes";
}
