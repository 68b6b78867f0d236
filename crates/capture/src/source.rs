//! The interface of an evidence source. Each source is a folder of `sources/`; the session drives a list of them.

use crate::timeline::{Record, Timeline};
use crate::track::Tracker;
use std::fmt;

/// A source that does not want to act at a certain time.
pub const NEVER: u64 = u64::MAX;

/// Why a source cannot observe here: what is missing, and the least privileged way to get it, as one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(String);

impl<T: Into<String>> From<T> for Unavailable {
    fn from(sentence: T) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// A way to observe the target.
///
/// The session calls `probe` before the target exists and `start` once it does. Then it calls `drain`, `take` and `act` while the target
/// runs, `stop` when it has ended, and `account` whenever the profile is flushed. If `probe` or `start` fails, the session calls nothing but
/// `account` afterwards.
pub trait Source {
    /// Its name in the profile's tables `evidence` and `lost`.
    fn name(&self) -> &'static str;

    /// Finds out whether the source can work here. A source that can only find out on the target itself reports it from `start`.
    ///
    /// # Errors
    /// What is missing here.
    fn probe(&mut self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Begins to observe the target. Threads that are born later are the source's own business.
    ///
    /// # Errors
    /// As for `probe`.
    fn start(&mut self, target: &Target<'_>, tracker: &mut Tracker) -> Result<(), Unavailable>;

    /// Moves what its rings hold to the timeline.
    fn drain(&mut self, drain: &Drain, tracker: &mut Tracker, timeline: &mut Timeline) {
        let _ = (drain, tracker, timeline);
    }

    /// Makes rows of a record whose turn has come, if the source uses this kind of record. Returns whether it does. Each source is
    /// offered every record that is evidence.
    fn take(&mut self, record: &Record, tracker: &mut Tracker) -> bool {
        let _ = (record, tracker);
        false
    }

    /// Does what is due on this occasion. Returns when the source wants to act again ([`Occasion::Due`]), at the latest.
    fn act(&mut self, occasion: Occasion, now: u64, tracker: &mut Tracker) -> u64 {
        let _ = (occasion, now, tracker);
        NEVER
    }

    /// What it observed so far, and what that cost the target. `None` if this machine has no such evidence.
    fn account(&self, tracker: &Tracker) -> Option<Account>;

    /// Makes no new events. What its rings hold is drained once more, then it acts on [`Occasion::End`].
    fn stop(&mut self) {}

    /// Child processes that it knows by other means than records; and how many forks began, and how many children are known of these.
    fn children(&self) -> (Vec<i32>, (u32, u32)) {
        (Vec::new(), (0, 0))
    }

    /// Descriptors that become readable when a ring fills: those that are to be polled now ([`Source::is_polled`]).
    fn descriptors(&self) -> Vec<i32> {
        Vec::new()
    }

    /// Whether its rings are to be polled now. If not, [`Source::fills`] is asked every [`UNPOLLED_NS`].
    fn is_polled(&self) -> bool {
        true
    }

    /// Whether a ring holds so much that whoever polls it would be woken.
    fn fills(&self) -> bool {
        false
    }
}

/// How often rings are looked at that are not polled.
pub const UNPOLLED_NS: u64 = 1_000_000;

/// What is to be observed.
pub struct Target<'a> {
    pub pid: i32,
    pub tids: &'a [i32],
    /// The target was forked, and executes its program after the start of all sources.
    pub is_launched: bool,
}

/// One pass over the rings.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    pub now: u64,
    /// Time since the start of the run.
    pub elapsed_s: f64,
    /// The rings are read because a tick is due, and not because one fills.
    pub is_tick: bool,
    /// Handling records takes longer than writing them: rings that fill quickly are read again between two batches. Such passes
    /// are neither a tick nor the first.
    pub is_first: bool,
}

/// Why a source is asked to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Records up to the horizon were taken.
    Drained,
    /// A tick is due: its records were taken.
    Tick,
    /// A ring filled: its records were taken.
    RingFilled,
    /// The source asked for this time. All records were taken.
    Due,
    /// The profile is about to be flushed.
    Flush,
    /// The run is over, and the last records were taken.
    End,
}

/// What a source observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub samples: u64,
    pub is_available: bool,
    /// What it did not see, why, and what would help; or empty.
    pub detail: String,
    /// The user should read the detail when the run ends.
    pub is_warning: bool,
    /// Time that it took from the target's threads, as far as the source knows, ns.
    pub target_ns: u64,
}

impl Account {
    #[must_use]
    pub fn available(samples: u64) -> Self {
        Self { samples, is_available: true, ..Self::default() }
    }

    #[must_use]
    pub fn missing(samples: u64, reason: impl Into<String>) -> Self {
        Self { samples, detail: reason.into(), is_warning: true, ..Self::default() }
    }
}
