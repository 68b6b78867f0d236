//! The sources of a run: which of them work, and what they cost.

use crate::source::{Account, Drain, NEVER, Occasion, Source, Target, Unavailable};
use crate::timeline::{Record, Timeline};
use crate::track::Tracker;
use firsttouch_model::rows::Evidence;
use firsttouch_system::calls::clock::monotonic_ns;

/// A source, and how far it got.
pub(super) struct Member {
    source: Box<dyn Source>,
    state: State,
    /// Time that firsttouch spent in it, ns.
    own_ns: u64,
}

enum State {
    Untried,
    Probed,
    Running,
    Missing(Unavailable),
}

impl Member {
    pub(super) fn new(source: impl Source + 'static) -> Self {
        Self { source: Box::new(source), state: State::Untried, own_ns: 0 }
    }

    /// A source that was probed before it was needed elsewhere.
    pub(super) fn probed(source: impl Source + 'static, outcome: Result<(), Unavailable>) -> Self {
        Self { source: Box::new(source), state: outcome.map_or_else(State::Missing, |()| State::Probed), own_ns: 0 }
    }

    fn start(&mut self, target: &Target<'_>, tracker: &mut Tracker) {
        if let State::Untried = self.state {
            self.state = self.source.probe().map_or_else(State::Missing, |()| State::Probed);
        }
        if let State::Probed = self.state {
            self.state = self.source.start(target, tracker).map_or_else(State::Missing, |()| State::Running);
        }
    }

    /// The source while it runs, with its time counted.
    fn timed<T>(&mut self, call: impl FnOnce(&mut dyn Source) -> T) -> Option<T> {
        let State::Running = self.state else { return None };
        let began = monotonic_ns();
        let result = call(&mut *self.source);
        self.own_ns += monotonic_ns().saturating_sub(began);
        Some(result)
    }

    fn account(&self, tracker: &Tracker) -> Option<Account> {
        match &self.state {
            State::Missing(reason) => Some(Account::missing(0, reason.to_string())),
            _ => self.source.account(tracker),
        }
    }
}

/// All sources of a run.
pub(super) struct Members(Vec<Member>);

impl Members {
    /// The sources are asked, and their messages printed, in this order.
    pub(super) fn new(members: Vec<Member>) -> Self {
        Self(members)
    }

    pub(super) fn start(&mut self, target: &Target<'_>, tracker: &mut Tracker) {
        for member in &mut self.0 {
            member.start(target, tracker);
        }
    }

    pub(super) fn drain(&mut self, drain: &Drain, tracker: &mut Tracker, timeline: &mut Timeline) {
        for member in &mut self.0 {
            member.timed(|source| source.drain(drain, tracker, timeline));
        }
    }

    /// Offers a record to every source; one record may be evidence of several kinds. Its cost is counted by [`Members::charge`],
    /// because reading the clock twice a record would cost as much as handling some records.
    pub(super) fn take(&mut self, record: &Record, tracker: &mut Tracker) -> Option<usize> {
        let mut user = None;
        for (index, member) in self.0.iter_mut().enumerate() {
            if matches!(member.state, State::Running) && member.source.take(record, tracker) {
                user = Some(index);
            }
        }
        user
    }

    /// Adds time that was spent on the records of a source.
    pub(super) fn charge(&mut self, index: usize, ns: u64) {
        if let Some(member) = self.0.get_mut(index) {
            member.own_ns += ns;
        }
    }

    /// Returns when the first source wants to act again.
    pub(super) fn act(&mut self, occasion: Occasion, now: u64, tracker: &mut Tracker) -> u64 {
        let times = self.0.iter_mut().filter_map(|member| member.timed(|source| source.act(occasion, now, tracker)));
        times.fold(NEVER, u64::min)
    }

    pub(super) fn stop(&mut self) {
        for member in &mut self.0 {
            member.timed(|source| source.stop());
        }
    }

    /// As [`Source::children`]; one source knows any.
    pub(super) fn children(&self) -> (Vec<i32>, (u32, u32)) {
        let running = self.0.iter().filter(|member| matches!(member.state, State::Running));
        running.map(|member| member.source.children()).find(|(_, (forks, _))| *forks > 0).unwrap_or_default()
    }

    fn running(&self) -> impl Iterator<Item = &dyn Source> {
        self.0.iter().filter(|member| matches!(member.state, State::Running)).map(|member| &*member.source)
    }

    pub(super) fn descriptors(&self) -> Vec<i32> {
        self.running().flat_map(Source::descriptors).collect()
    }

    pub(super) fn are_polled(&self) -> bool {
        self.running().all(Source::is_polled)
    }

    pub(super) fn fill(&self) -> bool {
        self.running().any(Source::fills)
    }

    /// What each source observed, what was lost, and what it cost: the only place where this is put together.
    pub(super) fn accounts(&self, tracker: &Tracker) -> Vec<SourceAccount> {
        let account = |member: &Member| {
            let name = member.source.name();
            // A damaged ring may count the largest number.
            let own = tracker.sink.losses().iter().filter(|((source, _), _)| *source == name);
            let lost = own.fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
            Some(SourceAccount { name, lost, own_ns: member.own_ns, account: member.account(tracker)? })
        };
        self.0.iter().filter_map(account).collect()
    }
}

/// What a source observed, lost and cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAccount {
    pub name: &'static str,
    pub account: Account,
    /// Evidence that was lost.
    pub lost: u64,
    /// Time that firsttouch spent in the source, ns.
    pub own_ns: u64,
}

impl SourceAccount {
    pub(super) fn evidence(&self) -> Evidence {
        let Account { samples, is_available, detail, .. } = &self.account;
        Evidence { source: self.name.to_owned(), available: *is_available, samples: *samples, detail: detail.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::records::Sample;
    use crate::sink::Sink;
    use crate::timeline::Fault;
    use crate::track::scope::Scope;
    use firsttouch_profile::Writer;
    use std::path::Path;

    /// A source with given answers that counts its samples.
    #[derive(Default)]
    struct Fake {
        name: &'static str,
        probe: Option<&'static str>,
        start: Option<&'static str>,
        wants_ns: u64,
        samples: u64,
    }

    impl Source for Fake {
        fn name(&self) -> &'static str {
            self.name
        }

        fn probe(&mut self) -> Result<(), Unavailable> {
            self.probe.map_or(Ok(()), |reason| Err(reason.into()))
        }

        fn start(&mut self, _target: &Target<'_>, _tracker: &mut Tracker) -> Result<(), Unavailable> {
            assert!(self.probe.is_none(), "a source that cannot work is not started");
            self.start.map_or(Ok(()), |reason| Err(reason.into()))
        }

        fn drain(&mut self, _drain: &Drain, tracker: &mut Tracker, timeline: &mut Timeline) {
            timeline.push_fault(Fault { sample: Box::new(Sample { time: self.wants_ns, ..Sample::default() }), weight: 1 });
            tracker.sink.lose(self.name, "by design", 2);
        }

        fn take(&mut self, record: &Record, _tracker: &mut Tracker) -> bool {
            let Record::Fault(fault) = record else { return false };
            self.samples += fault.weight;
            true
        }

        fn act(&mut self, _occasion: Occasion, _now: u64, _tracker: &mut Tracker) -> u64 {
            self.wants_ns
        }

        fn account(&self, _tracker: &Tracker) -> Option<Account> {
            Some(Account::available(self.samples))
        }
    }

    fn tracker(directory: &Path) -> Tracker {
        let scope = Scope::of_test(directory.to_owned(), 10);
        Tracker::new(scope, Sink::new(Writer::create(&directory.join("a.ftp")).expect("a profile")))
    }

    /// Check that a source that cannot work is left out and reported with its reason, while the others observe, lose and want to act.
    #[test]
    fn sources_fail_one_by_one() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut tracker = tracker(directory.path());
        let mut members = Members::new(vec![
            Member::new(Fake { name: "a", wants_ns: 70, ..Fake::default() }),
            Member::new(Fake { name: "b", probe: Some("no permission"), wants_ns: 1, ..Fake::default() }),
            Member::new(Fake { name: "c", start: Some("no such thread"), wants_ns: 1, ..Fake::default() }),
            Member::probed(Fake { name: "d", wants_ns: 50, ..Fake::default() }, Ok(())),
            Member::probed(Fake { name: "e", wants_ns: 1, ..Fake::default() }, Err("no program".into())),
        ]);
        members.start(&Target { pid: 10, tids: &[10], is_launched: false }, &mut tracker);
        let mut timeline = Timeline::default();
        let drain = Drain { now: 0, elapsed_s: 0.0, is_tick: true, is_first: true };
        members.drain(&drain, &mut tracker, &mut timeline);
        let mut times = Vec::new();
        while let Some(record) = timeline.next(u64::MAX) {
            assert_eq!(members.take(&record, &mut tracker), Some(3));
            if let Record::Fault(fault) = record {
                times.push(fault.sample.time);
            }
        }
        assert_eq!(times, [50, 70]);
        assert_eq!(members.act(Occasion::Tick, 0, &mut tracker), 50);
        let accounts = members.accounts(&tracker);
        let seen: Vec<(&str, bool, u64, u64, &str)> =
            accounts.iter().map(|a| (a.name, a.account.is_available, a.account.samples, a.lost, a.account.detail.as_str())).collect();
        assert_eq!(
            seen,
            [
                ("a", true, 2, 2, ""),
                ("b", false, 0, 0, "no permission"),
                ("c", false, 0, 0, "no such thread"),
                ("d", true, 2, 2, ""),
                ("e", false, 0, 0, "no program"),
            ]
        );
    }
}
