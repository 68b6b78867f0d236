//! The sources of a run: which of them work, and what they cost.

use crate::source::{Account, Drain, NEVER, Occasion, Source, Target};
use crate::timeline::{Fault, Timeline};
use crate::track::Tracker;
use firsttouch_model::rows::Evidence;
use firsttouch_system::clock::monotonic_ns;

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
    Missing(String),
}

impl Member {
    pub(super) fn new(source: impl Source + 'static) -> Self {
        Self { source: Box::new(source), state: State::Untried, own_ns: 0 }
    }

    /// A source that was probed before it was needed elsewhere.
    pub(super) fn probed(source: impl Source + 'static, outcome: Result<(), String>) -> Self {
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
            State::Missing(reason) => Some(Account::missing(0, reason)),
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
    pub(super) fn take(&mut self, fault: &Fault, tracker: &mut Tracker) -> Option<usize> {
        let mut user = None;
        for (index, member) in self.0.iter_mut().enumerate() {
            if matches!(member.state, State::Running) && member.source.take(fault, tracker) {
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

    pub(super) fn descriptors(&self) -> Vec<i32> {
        self.0.iter().filter(|member| matches!(member.state, State::Running)).flat_map(|member| member.source.descriptors()).collect()
    }

    /// What each source observed, what was lost, and what it cost: the only place where this is put together.
    pub(super) fn accounts(&self, tracker: &Tracker) -> Vec<SourceAccount> {
        let account = |member: &Member| {
            let name = member.source.name();
            let lost = tracker.sink.losses().iter().filter(|((source, _), _)| *source == name).map(|(_, count)| count).sum();
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
