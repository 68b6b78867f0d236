//! What an analysis says of the program as a whole. Reports, `check`, `plan` and `predict` take it from here, so that they agree.
//!
//! Without findings, a program is well placed only if nothing stands against that: the judged memory receives most of the accesses seen, their
//! number suffices, and most of the touched memory is known. Else it is not judged, for the causes that are listed.

use crate::cause::Cause;
use crate::duration::{Lack, RemoteShare};
use crate::findings::{REMOTE_BAR, WIDEST, WORTH_BAR};
use crate::{Analysis, Coverage, CrossCheck, EvidenceView, Interval, NotJudgedReason, ObjectView, ThreadView};
use firsttouch_model::UNOBSERVED;
use firsttouch_model::evidence::EvidenceSource;
use serde::Serialize;
use std::ops::RangeInclusive;

/// With fewer samples or a wider interval, the remote fraction gives no verdict.
pub(crate) const LEAST_SAMPLES: u64 = 16;
/// With so many samples, an interval that is too wide is not so by chance if the numbers of most accesses are guesses.
const MANY_SAMPLES: u64 = 1000;
pub(crate) const WIDEST_INTERVAL: f64 = 0.3;
/// An interval from at most the bar of findings up to more than this gives no verdict either: nothing may be remote, or what is worth a repair.
pub(crate) const SUBSTANTIAL: f64 = 0.2;

/// If more than this is remote for certain, there is an all-clear only if judged objects explain it (an interleaved table, say).
const MUCH_REMOTE: f64 = 0.1;

/// An object with this share of the accesses is named by itself if it is not judged.
const HEAVY: f64 = 0.05;

/// A program to which firsttouch attached, and whose threads ran for less than this part of the time, all together, did nothing that a verdict could
/// rest on.
const IDLE: f64 = 0.05;

/// Exit statuses of programs that a signal ended, as shells give them.
const BY_SIGNALS: RangeInclusive<i32> = 129..=192;

/// The verdict on a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Objects, threads or the whole program are misplaced.
    Findings,
    WellPlaced(Why),
    NotJudged(Vec<Cause>),
}

/// Why a program is well placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// The machine has one node.
    OneNode,
    /// The program, or each process, has one thread, and shares memory with no other.
    OneThread { processes: usize },
    /// The judged objects are, and receive this share of the accesses seen.
    Judged { share: f64 },
    /// Nearly all accesses seen are to objects that fit in a core's cache.
    Cached { share: f64 },
}

fn shows_accesses(source: &EvidenceSource) -> bool {
    matches!(source, EvidenceSource::Sample | EvidenceSource::Watch | EvidenceSource::Hint)
}

/// The verdict as JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictView {
    /// `findings`, `well-placed` or `not-judged`.
    pub outcome: &'static str,
    /// What stands against an all-clear, if there are findings too.
    pub causes: Vec<String>,
}

impl Analysis {
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if !self.findings.is_empty() {
            return Verdict::Findings;
        }
        let mut causes = self.doubts();
        // How much is remote is known: limits on that can be checked. That a recording goes on does not explain it.
        let is_open = causes.iter().all(|cause| matches!(cause, Cause::Unfinished { .. }));
        causes.extend(self.object_near_bar().filter(|_| is_open));
        if !causes.is_empty() {
            return Verdict::NotJudged(causes);
        }
        let share = self.coverage.as_ref().map_or(1.0, |coverage| coverage.judged);
        Verdict::WellPlaced(match () {
            () if self.machine.nodes < 2 => Why::OneNode,
            () if !self.has_teams() => Why::OneThread { processes: self.threads.len() },
            () if self.objects.iter().any(|object| object.judged) => Why::Judged { share },
            () => Why::Cached { share: self.coverage.as_ref().map_or(1.0, |coverage| coverage.cached) },
        })
    }

    #[must_use]
    pub fn verdict_view(&self) -> VerdictView {
        let outcome = match self.verdict() {
            Verdict::Findings => "findings",
            Verdict::WellPlaced(_) => "well-placed",
            Verdict::NotJudged(_) => "not-judged",
        };
        VerdictView { outcome, causes: self.causes().iter().map(ToString::to_string).collect() }
    }

    /// What stands against the verdict, or against an all-clear.
    #[must_use]
    pub fn causes(&self) -> Vec<Cause> {
        if let Verdict::NotJudged(causes) = self.verdict() { causes } else { self.doubts() }
    }

    /// Why the profile holds a part of the run only: it could not be written to its end, or firsttouch was killed or still records.
    #[must_use]
    pub fn not_whole(&self) -> Option<Cause> {
        let not_written = |(cause, rows): (String, u64)| match cause == UNOBSERVED {
            true => Cause::Unobserved,
            false => Cause::NotWritten { cause, rows, held_s: self.wall_s },
        };
        self.write_failure.clone().map(not_written).or_else(|| self.unfinished.then_some(Cause::Unfinished { held_s: self.wall_s }))
    }

    /// What stands against calling the program well placed, apart from findings.
    #[must_use]
    pub fn doubts(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        let unfinished = self.not_whole();
        if let Some(cause) = unfinished.clone().filter(|_| self.write_failure.is_some()) {
            return vec![cause];
        }
        if self.threads.is_empty() {
            return vec![unfinished.unwrap_or(Cause::NoThreads)];
        }
        if self.machine.nodes < 2 {
            return causes;
        }
        if let Some(ran_s) =
            self.ran_s.filter(|ran_s| self.is_attached() && *ran_s < IDLE * self.wall_s && self.missing_accesses().is_none())
        {
            // The parent of a server waits, and its children work.
            let works = |part: &f64| ran_s * part >= IDLE * self.wall_s * (1.0 - part);
            return vec![self.unprofiled.filter(works).map_or(Cause::Idle { ran_s, wall_s: self.wall_s }, Cause::Children)];
        }
        causes.extend(unfinished);
        // What a launcher leaves behind does the work. So may the recorded processes that go on.
        if self.processes_left > 0 && (!self.has_teams() || self.has_processes()) {
            causes.push(Cause::Outlived { processes: self.processes_left, has_waited: self.has_waited });
        } else {
            causes.extend(self.unprofiled.map(Cause::Children));
        }
        if !self.has_teams() {
            // Children explain why nothing was seen, and an early end too.
            if !causes.is_empty() {
                return causes;
            }
            let has_ended_early = self.exit_code.is_none() && !self.is_attached();
            if has_ended_early {
                return vec![Cause::EndedEarly];
            }
            if let Some(exit_code) = self.exit_code.filter(|code| BY_SIGNALS.contains(code)) {
                return vec![Cause::Killed { exit_code, signal: self.signal }];
            }
            let sources = || self.evidence.iter().filter(|evidence| shows_accesses(&evidence.source));
            // Where firsttouch attached, a parent or sibling that is gone may have touched the memory.
            if let Some(open) = self.open_objects(|_| true).filter(|_| self.is_attached() && self.has_processes()) {
                return vec![open];
            }
            // Another process may have filled what several can share, also one that had ended before.
            if let Some(open) = self.open_objects(|object| object.is_shareable) {
                return vec![open];
            }
            if let Some(unasked) = &self.unasked {
                return vec![Cause::Unasked(unasked.ranks.clone())];
            }
            let is_seen = self.coverage.is_some() || sources().any(|evidence| evidence.samples > 0);
            let nothing = || Cause::NothingSeen { missing: self.missing_accesses(), wall_s: self.wall_s };
            return (!is_seen).then(nothing).into_iter().collect();
        }
        causes.extend(self.unasked.clone().map(|unasked| Cause::Unasked(unasked.ranks)));
        causes.extend(self.unrecorded.map(Cause::Unrecorded));
        match &self.coverage {
            None if self.remote_fraction.is_none() => causes.push(self.no_accesses(self.missing_accesses())),
            // Hinting faults show no volumes.
            None if !self.objects.iter().any(|object| object.judged) => {
                causes.push(Cause::Uncovered { judged: 0.0, largest: self.largest_not_judged() });
            }
            Some(coverage) if coverage.judged + coverage.cached + coverage.not_judged <= 0.0 => causes.push(self.no_accesses(None)),
            Some(coverage) if coverage.is_too_small() || coverage.judged + coverage.cached <= 0.0 => {
                causes.push(Cause::Uncovered { judged: coverage.judged, largest: self.largest_not_judged() });
            }
            _ if self.remote_fraction.is_some() && self.remote_samples < LEAST_SAMPLES => {
                let (samples, source) = (self.remote_samples, self.remote_evidence.clone());
                causes.push(Cause::TooFewSamples { samples, source, is_attached: self.is_attached() });
            }
            // The interval covers both figures.
            _ if self.contradiction().is_some() => {}
            _ if self.remote_fraction.is_some() && self.wide_interval().is_some() => {
                let (samples, source) = (self.remote_samples, self.remote_evidence.clone());
                let is_attached = self.is_attached();
                let lack = self.remote_share().and_then(|share| share.lack(self.wall_s)).unwrap_or(Lack::Samples { more_s: None });
                // So many samples leave little to chance.
                let are_guesses = samples >= MANY_SAMPLES && self.traffic.is_guess();
                let lack = if are_guesses && matches!(lack, Lack::Samples { .. }) { Lack::Speeds } else { lack };
                causes.extend(self.wide_interval().map(|interval| Cause::TooUncertain { interval, samples, source, is_attached, lack }));
            }
            // Nearly all of the accesses are to objects that fit in a cache.
            Some(coverage) if self.remote_fraction.is_none() && self.samples_of(&coverage.evidence) < LEAST_SAMPLES => {
                let (samples, source) = (self.samples_of(&coverage.evidence), Some(coverage.evidence.clone()));
                causes.push(Cause::TooFewSamples { samples, source, is_attached: self.is_attached() });
            }
            _ => {}
        }
        causes.extend(self.left_out());
        if causes.is_empty() && self.findings.is_empty() {
            causes.extend(self.unexplained().or_else(|| self.contradiction()));
        }
        causes.extend(self.uncertain_object().filter(|_| causes.is_empty() && self.findings.is_empty()));
        causes.extend(self.open_objects(|_| true).filter(|_| causes.is_empty() && self.findings.is_empty()));
        causes
    }

    /// Why no accesses were seen: what is missing, else the signal that ended the program.
    fn no_accesses(&self, missing: Option<String>) -> Cause {
        let killed = self.exit_code.filter(|code| missing.is_none() && BY_SIGNALS.contains(code));
        killed.map_or(Cause::NoAccesses { missing, is_attached: self.is_attached() }, |exit_code| Cause::CutShort { exit_code })
    }

    /// A finding on an object whose remote accesses alone are more than all are said to be. Objects without known first touches can have findings
    /// (memory that all threads read is remote wherever it lies), but do not count in the remote share. The others do, so the share of all is by a
    /// source that disagrees.
    fn left_out(&self) -> Option<Cause> {
        let known = self.remote_interval.map_or(0.0, |[_, high]| high);
        let largest = self.findings.iter().filter(|one| one.object.is_some()).max_by(|a, b| a.remote_share.total_cmp(&b.remote_share))?;
        let is_more = largest.remote_share > MUCH_REMOTE && largest.remote_share > known;
        let (name, share) = (largest.object_name.clone(), largest.remote_share);
        let is_left_out = self.objects.iter().any(|object| object.is_same_anywhere && largest.objects().any(|id| id == object.id));
        is_more.then_some(if is_left_out { Cause::LeftOut { name, share } } else { Cause::MoreInOne { name, share } })
    }

    /// The objects that receive a substantial share of the accesses and are not judged, although their node matters; the one with the most first.
    #[must_use]
    pub fn heavy_not_judged(&self) -> Vec<&ObjectView> {
        let is_open = |object: &&ObjectView| !object.judged && object.reason.as_ref().is_some_and(|reason| !Coverage::is_cached(reason));
        let share = |object: &ObjectView| object.access_share.unwrap_or(0.0);
        let mut list: Vec<&ObjectView> = self.objects.iter().filter(is_open).filter(|object| share(object) >= HEAVY).collect();
        list.sort_by(|a, b| share(b).total_cmp(&share(a)));
        list
    }

    /// If an object that was not judged, of those that count, may have so many remote accesses by itself that an all-clear would be wrong: all such objects.
    fn open_objects(&self, counts: impl Fn(&ObjectView) -> bool) -> Option<Cause> {
        let mut heavy = self.heavy_not_judged();
        heavy.retain(|object| counts(object));
        let share = |object: &ObjectView| object.access_share.unwrap_or(0.0);
        // What was there before its only thread came is where another process put it.
        let is_unknown = |object: &ObjectView| object.is_shareable && !self.has_teams();
        let most = |object: &ObjectView| {
            let high = object.remote_interval.filter(|_| !is_unknown(object)).map_or(1.0, |[_, high]| high);
            share(object) * high
        };
        let reason = heavy.iter().find(|object| most(object) > MUCH_REMOTE)?.reason.clone()?;
        let open: Vec<&&ObjectView> = heavy.iter().filter(|object| most(object) > MUCH_REMOTE).collect();
        // Their shares are those of the accesses to recorded objects; the cause names parts of all that were seen.
        let recorded = 1.0 - self.coverage.as_ref().and_then(|coverage| coverage.elsewhere).unwrap_or(0.0);
        let named = open.iter().map(|object| (object.name.clone(), share(object) * recorded)).collect();
        Some(Cause::HeavyOpen { named, reason })
    }

    /// The object with the most remote accesses of those whose remote share is too uncertain for a finding.
    fn uncertain_object(&self) -> Option<Cause> {
        let part = |object: &ObjectView| object.access_share.unwrap_or(0.0) * object.remote_fraction.unwrap_or(0.0);
        let is_wide = |object: &&ObjectView| object.remote_interval.is_some_and(|[low, high]| high - low > WIDEST);
        let open = self.objects.iter().filter(|object| object.judged && part(object) >= WORTH_BAR).filter(is_wide);
        let object = open.max_by(|a, b| part(a).total_cmp(&part(b)))?;
        let lack = RemoteShare::of(object)?.lack(self.wall_s).unwrap_or(Lack::Samples { more_s: None });
        let (name, interval) = (object.name.clone(), object.remote_interval?);
        Some(Cause::UncertainObject { name, interval, is_attached: self.is_attached(), lack })
    }

    /// The object with the most remote accesses of those that are near the limit of findings: misplaced by the value, but not for certain, so that
    /// one run would have a finding, and the next one an all-clear. Objects of which nearly nothing may be remote are not near it.
    fn object_near_bar(&self) -> Option<Cause> {
        let part = |object: &ObjectView| object.access_share.unwrap_or(0.0) * object.remote_fraction.unwrap_or(0.0);
        // Little is remote in all if the share of the program says so, by another source maybe.
        let is_much_remote = self.remote_interval.is_some_and(|[low, _]| low > MUCH_REMOTE);
        let is_open = |object: &ObjectView| object.is_near_bar() || (is_much_remote && object.is_remote_without_need());
        let is_near = |object: &&ObjectView| object.judged && is_open(object) && part(object) >= WORTH_BAR;
        let object = self.objects.iter().filter(is_near).max_by(|a, b| part(a).total_cmp(&part(b)))?;
        let share = RemoteShare::of(object)?;
        let (is_helped, more_s) = (share.is_helped_by_time(), share.seconds_above_bar(self.wall_s));
        let (name, value, interval) = (object.name.clone(), object.remote_fraction?, object.remote_interval?);
        Some(Cause::NearBar { name, value, interval, is_attached: self.is_attached(), is_helped, more_s })
    }

    /// Another source that disagrees, if by one of them so much is remote that an all-clear may be wrong.
    fn contradiction(&self) -> Option<Cause> {
        let remote = self.remote_fraction?;
        let contradicts = |check: &&CrossCheck| {
            let is_more = check.interval[1] > SUBSTANTIAL && check.interval[0] > remote;
            !check.agrees && CrossCheck::is_precise(check.interval) && (is_more || remote > MUCH_REMOTE)
        };
        let CrossCheck { evidence, interval, samples, .. } = self.cross_checks.iter().find(contradicts)?;
        let is_attached = self.is_attached();
        Some(Cause::Contradicted { by: evidence.clone(), interval: *interval, samples: *samples, is_attached })
    }

    /// If much is remote for certain, and at least half of it in objects that were not judged, or are too small for a finding each.
    fn unexplained(&self) -> Option<Cause> {
        let interval = self.remote_interval.filter(|[low, _]| *low > MUCH_REMOTE)?;
        let half = self.remote_fraction? / 2.0;
        let part = |object: &ObjectView| object.access_share.unwrap_or(0.0) * object.remote_fraction.unwrap_or(0.0);
        let sum = |objects: &[&ObjectView]| objects.iter().map(|object| part(object)).sum::<f64>();
        let (judged, others): (Vec<&ObjectView>, Vec<&ObjectView>) = self.objects.iter().partition(|object| object.judged);
        if sum(&others) >= half {
            return Some(Cause::RemoteElsewhere { interval, largest: self.largest_not_judged() });
        }
        let is_misplaced = |object: &&ObjectView| object.remote_interval.is_some_and(|[low, _]| low > REMOTE_BAR);
        let small: Vec<&ObjectView> = judged.into_iter().filter(|object| is_misplaced(object) && part(object) < WORTH_BAR).collect();
        (sum(&small) + sum(&others) >= half).then_some(Cause::RemoteScattered { interval, objects: small.len() })
    }

    fn samples_of(&self, source: &EvidenceSource) -> u64 {
        self.evidence.iter().filter(|evidence| evidence.source == *source).map(|evidence| evidence.samples).sum()
    }

    /// Whether any process has two threads, or shares memory with another one.
    #[must_use]
    pub fn has_teams(&self) -> bool {
        let key = |thread: &ThreadView| (thread.team.unwrap_or(thread.turn()), thread.turn(), thread.slot, thread.process);
        let mut teams: Vec<(i64, i64, usize, i64)> = self.threads.iter().map(key).collect();
        teams.sort_unstable();
        // A process that follows another one in its place does not run beside it.
        let follows = |pair: &[(i64, i64, usize, i64)]| (pair[0].1, pair[0].2) == (pair[1].1, pair[1].2) && pair[0].3 != pair[1].3;
        teams.is_empty() || teams.windows(2).any(|pair| pair[0].0 == pair[1].0 && !follows(pair))
    }

    /// Whether several processes were recorded.
    fn has_processes(&self) -> bool {
        self.threads.windows(2).any(|pair| pair[0].process != pair[1].process)
    }

    /// The interval of the remote share, if it is too wide to say how much is remote, or, without findings, whether anything is misplaced.
    #[must_use]
    pub fn wide_interval(&self) -> Option<Interval> {
        let reaches_down = |low: f64, high: f64| self.findings.is_empty() && low <= REMOTE_BAR && high > SUBSTANTIAL;
        self.remote_interval.filter(|[low, high]| high - low > WIDEST_INTERVAL || reaches_down(*low, *high))
    }

    /// The remote share of all accesses.
    fn remote_share(&self) -> Option<RemoteShare> {
        let (value, interval) = self.remote_fraction.zip(self.remote_interval)?;
        let by_samples = self.remote_interval_by_samples.unwrap_or(interval);
        let (guessed, speeds) = (self.guessed_homes, self.speed_error);
        let (addresses, turns) = (self.missing_addresses, self.used_in_turn);
        Some(RemoteShare { value, interval, by_samples, guessed, speeds, addresses, turns, widest: WIDEST_INTERVAL })
    }

    /// Why no accesses could be seen, if no source of them was available.
    fn missing_accesses(&self) -> Option<String> {
        let sources = || self.evidence.iter().filter(|evidence| shows_accesses(&evidence.source));
        let is_missing = sources().all(|evidence| !evidence.available);
        let words = |evidence: &EvidenceView| match evidence.detail.trim() {
            "" => format!("no {} evidence on this system", evidence.source),
            detail => detail.to_owned(),
        };
        sources().find(|_| is_missing).map(words)
    }

    fn largest_not_judged(&self) -> Option<(String, NotJudgedReason)> {
        let open = |object: &&ObjectView| !object.judged && object.reason.as_ref().is_some_and(|reason| !Coverage::is_cached(reason));
        let share = |object: &ObjectView| object.access_share.unwrap_or(0.0);
        let largest = self.objects.iter().filter(open).max_by(|a, b| share(a).total_cmp(&share(b)))?;
        Some((largest.name.clone(), largest.reason.clone()?))
    }
}
