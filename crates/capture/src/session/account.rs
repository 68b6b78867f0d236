//! Writes how the run was started, what each source observed, lost and cost, and how the run ended.

use super::{Recording, Session, SourceAccount};
use crate::source::{Account, Occasion};
use firsttouch_model::RecordingSummary;
use firsttouch_model::rows::Owner;
use firsttouch_model::rows::metadata::{Entry, Mode};
use firsttouch_profile::Created;
use firsttouch_system::calls::clock::{monotonic_ns, process_cpu_ns};
use firsttouch_system::calls::identity::effective_user;
use firsttouch_system::proc;
use firsttouch_system::proc::stat::{TICKS_PER_S, of_process};
use firsttouch_system::proc::status::Status;
use std::collections::BTreeMap;
use std::path::Path;

/// The CPU times of processes are known to 10 ms.
const NOTED_CPU_S: f64 = 0.1;
const HIDDEN: &str = "the program is setuid or setgid or has file capabilities, and the kernel lets no ordinary user observe such a program: \
                      run firsttouch as root, or profile a copy without them";

/// Whose profile it is: root may record another user's process, which says what its source files are.
fn maker(pid: i32) -> Owner {
    let user = Status::of_process(Path::new("/"), pid).as_ref().and_then(Status::effective_user);
    user.map_or(Owner::Unknown, Owner::User).and(Owner::User(effective_user()))
}

impl Session<'_> {
    pub(super) fn write_head(&mut self, mode: Mode) {
        let command: Vec<String> = self.options.command.iter().map(|c| c.to_string_lossy().into_owned()).collect();
        let command = if command.is_empty() { vec![format!("pid {}", self.pid)] } else { command };
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let entries = [
            Entry::Command(&command),
            Entry::StartNs(monotonic_ns()),
            Entry::StartUnixS(unix),
            Entry::MinSizeBytes(self.options.min_size),
            Entry::ToolVersion(env!("CARGO_PKG_VERSION")),
            Entry::Mode(mode),
        ];
        let maker = maker(self.pid);
        let (machine, notes, rank) = (&self.options.machine, &self.options.notes, &self.options.rank);
        self.tracker.sink.write(|w| {
            w.machine(machine)?;
            for entry in entries {
                w.meta(entry)?;
            }
            if !notes.is_empty() {
                w.meta(Entry::Notes(notes))?;
            }
            if maker != Owner::ROOT {
                w.meta(Entry::MadeBy(maker))?;
            }
            rank.as_ref().map_or(Ok(()), |place| w.meta(Entry::Rank(place)))
        });
        self.write_evidence();
        self.counters.read(&mut self.tracker, monotonic_ns(), false);
        self.tracker.sink.flush();
    }

    pub(super) fn write_evidence(&mut self) -> Vec<SourceAccount> {
        let mut accounts = self.sources.accounts(&self.tracker);
        let is_blind =
            |source: &&mut SourceAccount| ["sample", "watch", "touch", "hint"].contains(&source.name) && source.account.samples == 0;
        if self.is_hidden {
            accounts.iter_mut().filter(is_blind).for_each(|source| source.account = Account::missing(0, HIDDEN));
        }
        self.tracker.sink.write(|w| accounts.iter().try_for_each(|account| w.evidence(&account.evidence())));
        if let Some(evidence) = self.bandwidth.evidence() {
            self.tracker.sink.write(|w| w.evidence(&evidence));
        }
        accounts
    }

    /// Takes the last records and closes the file. The sources live on in the returned session.
    pub(super) fn finish(&mut self, exit_code: Option<i32>) -> Recording {
        let used_ns = process_cpu_ns().saturating_sub(self.start_cpu_ns);
        self.tracker.sink.write(|w| w.meta(Entry::ProfilerCpuNs(used_ns)));
        self.sources.stop();
        if let Some(observed) = &self.options.observed {
            observed(None);
        }
        self.drain(u64::MAX, false);
        self.tracker.add_waiting_statics(usize::MAX);
        self.act(Occasion::End, monotonic_ns());
        let end = self.end_ns;
        self.tracker.finish();
        let losses = self.tracker.sink.losses().clone();
        self.tracker.sink.write(|w| losses.iter().try_for_each(|((source, reason), count)| w.lost(source, reason, *count)));
        self.counters.read(&mut self.tracker, end, true);
        self.bandwidth.read(&mut self.tracker, end, true);
        let sources = self.write_evidence();
        self.tracker.sink.write(|w| w.meta(Entry::EndNs(end)));
        if self.tracker.family.children > 0 {
            let children = self.tracker.family.children;
            self.tracker.sink.write(|w| w.meta(Entry::ChildrenLeft(children)));
        }
        let behind = self.behind;
        if behind.processes > 0 {
            self.tracker.sink.write(|w| w.meta(Entry::ProcessesLeft(behind.processes)));
            if self.options.wait {
                self.tracker.sink.write(|w| w.meta(Entry::Waited));
            }
        }
        if let Some(before) = &self.cpu_before {
            let spent = |&(pid, ticks): &(i32, u64)| ticks.saturating_sub(before.get(&pid).copied().unwrap_or(0));
            let (own, children): (Vec<_>, Vec<_>) = cpu_times(self.pid).into_iter().partition(|&(pid, _)| pid == self.pid);
            let ns = |list: &[(i32, u64)]| list.iter().map(spent).sum::<u64>().saturating_mul(1_000_000_000 / TICKS_PER_S);
            self.own_cpu_ns = ns(&own);
            let entries = [Entry::OwnCpuNs(self.own_cpu_ns), Entry::ChildrenCpuNs(ns(&children))];
            self.tracker.sink.write(|w| entries.into_iter().try_for_each(|entry| w.meta(entry)));
        }
        if let Some(stat) = &self.last_stat {
            let ns = |ticks: u64| ticks.saturating_mul(1_000_000_000 / TICKS_PER_S);
            let entries = [
                Entry::OwnCpuNs(ns(stat.cpu_ticks)),
                Entry::ChildrenCpuNs(ns(stat.children_ticks.saturating_add(behind.unrecorded_ticks))),
            ];
            self.tracker.sink.write(|w| entries.into_iter().try_for_each(|entry| w.meta(entry)));
        }
        if let Some(code) = exit_code {
            self.tracker.sink.write(|w| w.meta(Entry::ExitCode(code)));
        }
        if let Some(signal) = self.signal {
            self.tracker.sink.write(|w| w.meta(Entry::Signal(signal)));
        }
        if let Some(status) = self.tracker.activity.abort_status {
            self.tracker.sink.write(|w| w.meta(Entry::AbortStatus(status)));
        }
        self.tracker.sink.write(|w| w.meta(Entry::StartNs(self.start_ns)));
        self.write_notes();
        self.tracker.sink.finish();
        let samples = |name| sources.iter().find(|source| source.name == name).map_or(0, |source| source.account.samples);
        Recording {
            file: Created::default(),
            exit_code: None,
            signal: self.signal,
            abort_status: self.tracker.activity.abort_status,
            is_cut: self.tracker.sink.failure().is_some(),
            profile_error: self.tracker.sink.failure().map(|error| format!("{error:#}")),
            messages: messages(&sources),
            summary: RecordingSummary {
                threads: self.tracker.threads.count(),
                wall_s: end.saturating_sub(self.start_ns) as f64 / 1e9,
                register_samples: samples("sample"),
                watch_hits: samples("watch"),
                first_touches: samples("touch"),
                touch_weight: self.tracker.activity.faults,
                lost: losses.values().fold(0, |sum: u64, lost| sum.saturating_add(*lost)),
            },
            sources,
            profile: None,
        }
    }

    /// See [`unfollowed`].
    fn unfollowed(&self) -> Option<String> {
        self.cpu_before.as_ref()?;
        unfollowed(self.own_cpu_ns as f64 / 1e9, self.tracker.threads_ran_ns() as f64 / 1e9)
    }

    fn write_notes(&mut self) {
        let replaced = self.tracker.modules.replaced();
        let replaced = replaced
            .iter()
            .map(|path| format!("{path} was replaced while the program ran, so its code has no names and lines: profile again"));
        let has_one_node = self.options.machine.node_cpus.len() == 1;
        let places = (has_one_node && self.tracker.modules.has(LIBRARY)).then(|| PLACES_NOTHING.to_owned());
        let added: Vec<String> = replaced.chain(self.unfollowed()).chain(places).collect();
        if !added.is_empty() {
            let notes: Vec<String> = self.options.notes.iter().cloned().chain(added).collect();
            self.tracker.sink.write(|w| w.meta(Entry::Notes(&notes)));
        }
    }
}

/// The library that programs call to place their memory.
const LIBRARY: &str = "libfirsttouch.so";
const PLACES_NOTHING: &str = "The program uses libfirsttouch, which places memory only where there are several nodes: a finding on memory that it places stays here \
                              after the repair. Profile it on a machine or in a guest with several nodes to see the effect";

/// Says that threads ended before firsttouch, attached to their process, could follow them. Below [`NOTED_CPU_S`], and unless most of the CPU time
/// is theirs, it makes no difference.
fn unfollowed(own_s: f64, followed_s: f64) -> Option<String> {
    (own_s >= NOTED_CPU_S && followed_s < own_s / 2.0).then(|| {
        format!(
            "The process used {own_s:.1} s of CPU time, {followed_s:.1} s of it in threads that lived long enough to be looked at again: of threads that \
             end within some milliseconds, few samples can be taken from outside. Start the program with firsttouch (profile -- COMMAND) to see all of them"
        )
    })
}

/// CPU ticks of a process and of its descendants.
pub(super) fn cpu_times(pid: i32) -> BTreeMap<i32, u64> {
    let root = Path::new("/");
    let children = proc::descendants(root, pid).into_iter().map(|(child, _)| child);
    let all = children.filter(|child| child.unsigned_abs() != std::process::id()).chain([pid]);
    all.filter_map(|pid| Some((pid, of_process(root, pid)?.cpu_ticks))).collect()
}

/// What the user should know of the sources, each sentence once.
fn messages(sources: &[SourceAccount]) -> Vec<String> {
    let warnings = sources.iter().map(|source| &source.account).filter(|account| account.is_warning);
    let mut messages: Vec<String> = warnings.map(|account| account.detail.clone()).collect();
    messages.dedup();
    messages
}

#[cfg(test)]
mod tests {
    use super::unfollowed;

    /// Check that threads that end soon are named where most of the CPU time is theirs.
    #[test]
    fn unfollowed_threads_are_named() {
        assert!(unfollowed(2.92, 0.096).is_some_and(|note| note.contains("2.9 s of CPU time, 0.1 s of it")));
        assert_eq!([(2.92, 2.8), (0.05, 0.0), (0.0, 0.0)].map(|(own, followed)| unfollowed(own, followed)), [None, None, None]);
    }
}
