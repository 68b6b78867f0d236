//! Metadata of a profile: the keys and values of the table `meta`, typed.
//!
//! The file contains text. [`Entry`] is the only place that converts a value to text, and [`Metadata::set`] the only place that reads it. A
//! value that cannot be read counts as absent.

use super::{Id, Owner, RankPlace};
use std::collections::BTreeMap;

/// Whether firsttouch started the program or attached to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Launch,
    Attach,
}

/// Where the functions and lines of frames come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symbols {
    /// Frames have addresses only.
    #[default]
    None,
    /// `profile` resolved them when the program had ended.
    InFile,
    /// The command that read the file resolved them in memory.
    InMemory,
}

/// The metadata of a profile. Times are CLOCK_MONOTONIC nanoseconds. `None` if the file lacks the key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    pub command: Vec<String>,
    /// The program's exit status as a shell gives it (128+N for a signal); `None` while it runs, or after `kill -9` of firsttouch.
    pub exit_code: Option<i32>,
    /// The signal that ended the program, if one did.
    pub signal: Option<i32>,
    /// The status with which the program, a rank of an MPI job, called `MPI_Abort`, if it did.
    pub abort_status: Option<i32>,
    /// Start of the program.
    pub start_ns: Option<u64>,
    /// End of the observation; updated while the program runs.
    pub end_ns: Option<u64>,
    /// Wall-clock start, seconds since the epoch.
    pub start_unix_s: Option<u64>,
    /// Smaller allocations were not recorded, bytes.
    pub min_size_bytes: Option<u64>,
    pub symbols: Symbols,
    /// Version of firsttouch that wrote the file.
    pub tool_version: Option<String>,
    pub mode: Option<Mode>,
    /// Cost of one watchpoint trap as calibrated at the start, ns.
    pub trap_ns: Option<f64>,
    /// Time that one sample of a burst takes from the thread, as calibrated at the start, ns.
    pub tick_ns: Option<f64>,
    /// The error that all estimates from windows that were cut off have in common, as a fraction of the estimate.
    pub hot_error: Option<f64>,
    /// When watching began; `None` without watch evidence.
    pub watch_start_ns: Option<u64>,
    /// The number of child processes that were started and not profiled (without `--follow`).
    pub children_left: u64,
    /// Processes of the program, recorded or not, that still ran when the recording ended with the first process.
    pub processes_left: u64,
    /// The recording was to last until all processes had ended (`--wait`).
    pub has_waited: bool,
    /// CPU time of the program's first process, and of the processes that it started and waited for, at its end; `None` if not known.
    pub own_cpu_ns: Option<u64>,
    pub children_cpu_ns: Option<u64>,
    /// CPU time that firsttouch used while the program ran.
    pub profiler_cpu_ns: Option<u64>,
    /// How long the profiled threads ran, and waited for a CPU while they could have run, as last seen, ns.
    pub threads_ran_ns: u64,
    pub threads_delayed_ns: u64,
    /// The largest amount of the profiled processes' memory seen in swap, bytes.
    pub swapped_bytes: u64,
    /// The samples of registers that performance events took from outside the program; the agent took the others.
    pub samples_outside: u64,
    /// The variables that allocated memory is assigned to, by site, as in the sources when the profile was first judged.
    pub variables: BTreeMap<Id, String>,
    /// Doubts about the measurement.
    pub notes: Vec<String>,
    /// Why the profile could not be written to its end (full disk).
    pub write_failure: Option<String>,
    /// Rows that could not be written then.
    pub missing_rows: u64,
    /// The place of the program in a job; `None` if no launcher of ranks started it.
    pub rank: Option<RankPlace>,
    /// Whose the program was, or the profiles that this one was merged from; `None` if that is root or was not recorded.
    pub made_by: Option<Owner>,
}

/// One row of the table `meta`.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    Command(&'a [String]),
    ExitCode(i32),
    Signal(i32),
    AbortStatus(i32),
    StartNs(u64),
    EndNs(u64),
    StartUnixS(u64),
    MinSizeBytes(u64),
    /// The frames in the file have functions and lines.
    Symbolized,
    ToolVersion(&'a str),
    Mode(Mode),
    TrapNs(f64),
    TickNs(f64),
    HotError(f64),
    WatchStartNs(u64),
    ChildrenLeft(u64),
    ProcessesLeft(u64),
    /// Written with `ProcessesLeft` under `--wait`.
    Waited,
    OwnCpuNs(u64),
    ChildrenCpuNs(u64),
    ProfilerCpuNs(u64),
    ThreadsRanNs(u64),
    ThreadsDelayedNs(u64),
    SwappedBytes(u64),
    SamplesOutside(u64),
    Variables(&'a BTreeMap<Id, String>),
    Notes(&'a [String]),
    WriteFailure(&'a str),
    MissingRows(u64),
    Rank(&'a RankPlace),
    MadeBy(Owner),
}

impl Entry<'_> {
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::ExitCode(_) => "exit_code",
            Self::Signal(_) => "signal",
            Self::AbortStatus(_) => "abort_status",
            Self::StartNs(_) => "start_ns",
            Self::EndNs(_) => "end_ns",
            Self::StartUnixS(_) => "start_unix_s",
            Self::MinSizeBytes(_) => "min_size",
            Self::Symbolized => "symbolized",
            Self::ToolVersion(_) => "tool_version",
            Self::Mode(_) => "mode",
            Self::TrapNs(_) => "trap_ns",
            Self::TickNs(_) => "tick_ns",
            Self::HotError(_) => "hot_error",
            Self::WatchStartNs(_) => "watch_start_ns",
            Self::ChildrenLeft(_) => "children_left",
            Self::ProcessesLeft(_) => "processes_left",
            Self::Waited => "waited",
            Self::OwnCpuNs(_) => "own_cpu_ns",
            Self::ChildrenCpuNs(_) => "children_cpu_ns",
            Self::ProfilerCpuNs(_) => "profiler_cpu_ns",
            Self::ThreadsRanNs(_) => "threads_ran_ns",
            Self::ThreadsDelayedNs(_) => "threads_delayed_ns",
            Self::SwappedBytes(_) => "swapped_bytes",
            Self::SamplesOutside(_) => "samples_outside",
            Self::Variables(_) => "variables",
            Self::Notes(_) => "notes",
            Self::WriteFailure(_) => "write_failure",
            Self::MissingRows(_) => "missing_rows",
            Self::Rank(_) => "rank",
            Self::MadeBy(_) => "made_by",
        }
    }

    /// The value as text for the file.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            // Strings always have a JSON form.
            Self::Command(arguments) => serde_json::to_string(arguments).unwrap_or_default(),
            Self::Rank(place) => serde_json::to_string(place).unwrap_or_default(),
            Self::ExitCode(number) | Self::Signal(number) | Self::AbortStatus(number) => number.to_string(),
            Self::StartNs(value)
            | Self::EndNs(value)
            | Self::StartUnixS(value)
            | Self::MinSizeBytes(value)
            | Self::WatchStartNs(value)
            | Self::ChildrenLeft(value)
            | Self::ProcessesLeft(value)
            | Self::OwnCpuNs(value)
            | Self::ChildrenCpuNs(value)
            | Self::ProfilerCpuNs(value)
            | Self::ThreadsRanNs(value)
            | Self::ThreadsDelayedNs(value)
            | Self::SwappedBytes(value)
            | Self::SamplesOutside(value)
            | Self::MissingRows(value) => value.to_string(),
            Self::Symbolized | Self::Waited => "yes".to_owned(),
            Self::ToolVersion(text) | Self::WriteFailure(text) => (*text).to_owned(),
            Self::Mode(Mode::Launch) => "launch".to_owned(),
            Self::Mode(Mode::Attach) => "attach".to_owned(),
            Self::TrapNs(value) | Self::TickNs(value) => format!("{value:.0}"),
            Self::HotError(value) => format!("{value:.3}"),
            Self::Variables(names) => names.iter().map(|(site, name)| format!("{site}\t{name}\n")).collect(),
            Self::Notes(notes) => notes.join("\n"),
            Self::MadeBy(owner) => owner.text(),
        }
    }
}

impl Metadata {
    /// Reads one row of the table. Keys of later versions are ignored.
    pub fn set(&mut self, key: &str, value: &str) {
        fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
            text.parse().ok()
        }
        match key {
            // A command that is not a JSON array is kept as one word.
            "command" => self.command = serde_json::from_str(value).unwrap_or_else(|_| vec![value.to_owned()]),
            "exit_code" => self.exit_code = number(value),
            "signal" => self.signal = number(value),
            "abort_status" => self.abort_status = number(value),
            "start_ns" => self.start_ns = number(value),
            "end_ns" => self.end_ns = number(value),
            "start_unix_s" => self.start_unix_s = number(value),
            "min_size" => self.min_size_bytes = number(value),
            "symbolized" => self.symbols = Symbols::InFile,
            "tool_version" => self.tool_version = Some(value.to_owned()),
            "mode" => {
                self.mode = match value {
                    "launch" => Some(Mode::Launch),
                    "attach" => Some(Mode::Attach),
                    _ => None,
                }
            }
            "trap_ns" => self.trap_ns = number(value),
            "tick_ns" => self.tick_ns = number(value),
            "hot_error" => self.hot_error = number(value).filter(|error| (0.0..=1.0).contains(error)),
            "watch_start_ns" => self.watch_start_ns = number(value),
            "children_left" => self.children_left = number(value).unwrap_or(0),
            "processes_left" => self.processes_left = number(value).unwrap_or(0),
            "waited" => self.has_waited = true,
            "own_cpu_ns" => self.own_cpu_ns = number(value),
            "children_cpu_ns" => self.children_cpu_ns = number(value),
            "profiler_cpu_ns" => self.profiler_cpu_ns = number(value),
            "threads_ran_ns" => self.threads_ran_ns = number(value).unwrap_or(0),
            "threads_delayed_ns" => self.threads_delayed_ns = number(value).unwrap_or(0),
            "swapped_bytes" => self.swapped_bytes = number(value).unwrap_or(0),
            "samples_outside" => self.samples_outside = number(value).unwrap_or(0),
            "variables" => {
                let pairs = lines(value).filter_map(|line| line.split_once('\t'));
                self.variables = pairs.filter_map(|(site, name)| Some((number(site)?, name.to_owned()))).collect();
            }
            "notes" => self.notes = lines(value).filter(|line| !line.trim().is_empty()).map(str::to_owned).collect(),
            "write_failure" => self.write_failure = Some(value.to_owned()),
            "missing_rows" => self.missing_rows = number(value).unwrap_or(0),
            "rank" => self.rank = serde_json::from_str(value).ok(),
            // A value that cannot be read must not count as absent: files would be shown.
            "made_by" => self.made_by = Some(Owner::parse(value)),
            _ => {}
        }
    }

    /// The rows of the table for what is known; [`Metadata::set`] makes the same of them.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let counted = |count: u64| (count > 0).then_some(count);
        let all = [
            (!self.command.is_empty()).then_some(Entry::Command(&self.command)),
            self.exit_code.map(Entry::ExitCode),
            self.signal.map(Entry::Signal),
            self.abort_status.map(Entry::AbortStatus),
            self.start_ns.map(Entry::StartNs),
            self.end_ns.map(Entry::EndNs),
            self.start_unix_s.map(Entry::StartUnixS),
            self.min_size_bytes.map(Entry::MinSizeBytes),
            (self.symbols == Symbols::InFile).then_some(Entry::Symbolized),
            self.tool_version.as_deref().map(Entry::ToolVersion),
            self.mode.map(Entry::Mode),
            self.trap_ns.map(Entry::TrapNs),
            self.tick_ns.map(Entry::TickNs),
            self.hot_error.map(Entry::HotError),
            self.watch_start_ns.map(Entry::WatchStartNs),
            counted(self.children_left).map(Entry::ChildrenLeft),
            counted(self.processes_left).map(Entry::ProcessesLeft),
            self.has_waited.then_some(Entry::Waited),
            self.own_cpu_ns.map(Entry::OwnCpuNs),
            self.children_cpu_ns.map(Entry::ChildrenCpuNs),
            self.profiler_cpu_ns.map(Entry::ProfilerCpuNs),
            counted(self.threads_ran_ns).map(Entry::ThreadsRanNs),
            counted(self.threads_delayed_ns).map(Entry::ThreadsDelayedNs),
            counted(self.swapped_bytes).map(Entry::SwappedBytes),
            counted(self.samples_outside).map(Entry::SamplesOutside),
            (!self.variables.is_empty()).then_some(Entry::Variables(&self.variables)),
            (!self.notes.is_empty()).then_some(Entry::Notes(&self.notes)),
            self.write_failure.as_deref().map(Entry::WriteFailure),
            counted(self.missing_rows).map(Entry::MissingRows),
            self.rank.as_ref().map(Entry::Rank),
            self.made_by.map(Entry::MadeBy),
        ];
        all.into_iter().flatten().collect()
    }

    /// Adds one who could have changed the profile.
    pub fn add_maker(&mut self, owner: Owner) {
        self.made_by = Some(owner.and(self.made_by.unwrap_or(Owner::ROOT))).filter(|owner| *owner != Owner::ROOT);
    }

    /// Whether firsttouch attached to a program that was already running.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.mode == Some(Mode::Attach)
    }

    /// Whether the profile has no end: the last things that a recording stores are the names of its frames. A recording of `--pid` or `--duration`
    /// has them, and no exit status; a profile that somebody made without frames has an exit status.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.symbols != Symbols::InFile && self.exit_code.is_none() && self.write_failure.is_none()
    }

    /// The observed time in seconds; 0 if start or end is missing.
    #[must_use]
    pub fn wall_s(&self) -> f64 {
        self.start_ns.zip(self.end_ns).map_or(0.0, |(start, end)| end.saturating_sub(start) as f64 / 1e9)
    }
}

/// The lines of a text, which can be written as a text and read again.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').map(|line| line.trim_end_matches('\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each entry is read back as it was written.
    #[test]
    fn entries_are_read_as_written() {
        let command = vec!["./a \"b\"".to_owned(), "c\n".to_owned()];
        let variables = BTreeMap::from([(3, "A".to_owned()), (-1, "m.pressure".to_owned())]);
        let notes = vec!["one".to_owned(), "two".to_owned()];
        let rank = RankPlace { rank: 3, size: 8, local_rank: Some(1), launcher: "Slurm".to_owned(), ..RankPlace::default() };
        let entries = [
            Entry::Command(&command),
            Entry::ExitCode(-1),
            Entry::Signal(6),
            Entry::AbortStatus(5),
            Entry::StartNs(1),
            Entry::EndNs(u64::MAX),
            Entry::StartUnixS(3),
            Entry::MinSizeBytes(65536),
            Entry::Symbolized,
            Entry::ToolVersion("0.1.0"),
            Entry::Mode(Mode::Attach),
            Entry::TrapNs(6000.4),
            Entry::TickNs(25_000.3),
            Entry::HotError(0.125),
            Entry::WatchStartNs(4),
            Entry::ChildrenLeft(5),
            Entry::ProcessesLeft(11),
            Entry::Waited,
            Entry::OwnCpuNs(8),
            Entry::ChildrenCpuNs(9),
            Entry::ProfilerCpuNs(10),
            Entry::ThreadsRanNs(8),
            Entry::ThreadsDelayedNs(9),
            Entry::SwappedBytes(6),
            Entry::SamplesOutside(7),
            Entry::Variables(&variables),
            Entry::Notes(&notes),
            Entry::WriteFailure("disk is full"),
            Entry::MissingRows(12),
            Entry::Rank(&rank),
            Entry::MadeBy(Owner::User(1000)),
        ];
        let mut read = Metadata::default();
        for entry in &entries {
            read.set(entry.key(), &entry.text());
        }
        let expected = Metadata {
            command,
            exit_code: Some(-1),
            signal: Some(6),
            abort_status: Some(5),
            start_ns: Some(1),
            end_ns: Some(u64::MAX),
            start_unix_s: Some(3),
            min_size_bytes: Some(65536),
            symbols: Symbols::InFile,
            tool_version: Some("0.1.0".to_owned()),
            mode: Some(Mode::Attach),
            trap_ns: Some(6000.0),
            tick_ns: Some(25_000.0),
            hot_error: Some(0.125),
            watch_start_ns: Some(4),
            children_left: 5,
            processes_left: 11,
            has_waited: true,
            own_cpu_ns: Some(8),
            children_cpu_ns: Some(9),
            profiler_cpu_ns: Some(10),
            threads_ran_ns: 8,
            threads_delayed_ns: 9,
            swapped_bytes: 6,
            samples_outside: 7,
            variables,
            notes,
            write_failure: Some("disk is full".to_owned()),
            missing_rows: 12,
            rank: Some(rank.clone()),
            made_by: Some(Owner::User(1000)),
        };
        assert_eq!(read, expected);
        let mut again = Metadata::default();
        expected.entries().iter().for_each(|entry| again.set(entry.key(), &entry.text()));
        assert_eq!(again, expected);
        assert!(Metadata::default().entries().is_empty());
        assert!(read.is_attached() && read.wall_s() > 1e9);
    }

    /// Check that an unreadable value is absent, and that a command that is not an array is kept as it is.
    #[test]
    fn unreadable_values_are_absent() {
        let mut read = Metadata::default();
        for key in [
            "exit_code",
            "start_ns",
            "end_ns",
            "min_size",
            "mode",
            "trap_ns",
            "tick_ns",
            "hot_error",
            "children_left",
            "variables",
            "rank",
            "later",
        ] {
            read.set(key, "[1");
        }
        read.set("notes", "\r\r\n");
        read.set("hot_error", "7");
        read.set("notes", " \n");
        assert_eq!(read, Metadata::default());
        read.set("command", "[1");
        assert_eq!(read.command, ["[1"]);
    }
}
