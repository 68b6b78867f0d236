//! What stands against calling a program well placed (`verdict.rs`), in words.

use crate::findings::{NEAR_BAR, REMOTE_BAR};
use crate::{Interval, Lack, NotJudgedReason};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::{UNOBSERVED, counted, signal_words};
use std::fmt;

/// What stands against an all-clear.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The profile could not be written to its end: why, how many rows are missing, and until when it holds.
    NotWritten {
        cause: String,
        rows: u64,
        held_s: f64,
    },
    /// The recording was ended before it could complete the profile (`kill -9`, a crash, a power failure), or it still goes on. The profile holds
    /// so many seconds.
    Unfinished {
        held_s: f64,
    },
    /// Nothing was recorded: [`UNOBSERVED`].
    Unobserved,
    /// The profile has no threads.
    NoThreads,
    /// The recording ended before the program did, which had one thread until then.
    EndedEarly,
    /// The program, which had one thread until then, was ended by a signal, or as if by one.
    Killed {
        exit_code: i32,
        signal: Option<i32>,
    },
    /// A signal ended the program before accesses of its threads were seen.
    CutShort {
        exit_code: i32,
    },
    /// So many processes of the program outlive its first one, and were no longer recorded.
    Outlived {
        processes: u64,
        /// With `--wait`.
        has_waited: bool,
    },
    /// The kernel was not asked where pages are, in these ranks or at all.
    Unasked(Option<String>),
    /// This part of the touched memory belongs to no recorded object.
    Unrecorded(f64),
    /// Processes that were started and not profiled used this part of the CPU time.
    Children(f64),
    /// The program, which has one thread, did nothing that a sample could see in this time.
    NothingSeen {
        missing: Option<String>,
        wall_s: f64,
    },
    /// firsttouch attached, and the threads ran for so short a time of this one.
    Idle {
        ran_s: f64,
        wall_s: f64,
    },
    /// No accesses were seen, because sources are missing (the sentence of one of them), or the run was short.
    NoAccesses {
        missing: Option<String>,
        is_attached: bool,
    },
    /// The judged objects receive so little of the accesses seen. The object of the others with the most, and why it was not judged.
    Uncovered {
        judged: f64,
        largest: Option<(String, NotJudgedReason)>,
    },
    /// These objects were not judged, each of which may have many remote accesses: their shares of the accesses, and the reason of the first.
    HeavyOpen {
        named: Vec<(String, f64)>,
        reason: NotJudgedReason,
    },
    /// So much is remote, most of it in objects that were not judged. That of them with the most accesses, and why it was not judged.
    RemoteElsewhere {
        interval: Interval,
        largest: Option<(String, NotJudgedReason)>,
    },
    /// So much is remote, most of it in so many objects of which each has too little for a finding, and in objects that were not judged.
    RemoteScattered {
        interval: Interval,
        objects: usize,
    },
    TooFewSamples {
        samples: u64,
        source: Option<EvidenceSource>,
        is_attached: bool,
    },
    /// So many samples give the remote share this interval only.
    TooUncertain {
        interval: Interval,
        samples: u64,
        source: Option<EvidenceSource>,
        is_attached: bool,
        lack: Lack,
    },
    /// The finding of an object means more remote accesses than the share of all accesses has: its first touches are not known, so it is left out
    /// there. Its remote accesses, as part of all.
    LeftOut {
        name: String,
        share: f64,
    },
    /// The finding of an object whose first touches are known means more remote accesses than the share of all accesses has, which is by another
    /// source. Its remote accesses, as part of all.
    MoreInOne {
        name: String,
        share: f64,
    },
    /// An object would be misplaced, but for the width of the interval of its remote share.
    UncertainObject {
        name: String,
        interval: Interval,
        is_attached: bool,
        lack: Lack,
    },
    /// Of an object, more is remote than of a well-placed one, but no finding is certain: another run may find it misplaced.
    NearBar {
        name: String,
        value: f64,
        interval: Interval,
        is_attached: bool,
        /// Whether a longer run would decide, and how much longer, if that is known.
        is_helped: bool,
        more_s: Option<u64>,
    },
    /// By another source, so much is remote.
    Contradicted {
        by: EvidenceSource,
        interval: Interval,
        samples: u64,
        is_attached: bool,
    },
}

impl Cause {
    /// What is missing to know the remote share of all accesses, and what would help, if its interval is too wide.
    #[must_use]
    pub fn lacking(&self) -> Option<String> {
        if let Self::LeftOut { .. } | Self::MoreInOne { .. } = self {
            return Some(self.to_string());
        }
        let Self::TooUncertain { samples, source, is_attached, lack, .. } = self else { return None };
        Some(lacking(*lack, &format!("{} are too few", seen(*samples, source.as_ref())), *is_attached))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        match self {
            Self::NotWritten { cause, rows, held_s } => {
                let rows = match rows {
                    0 => String::new(),
                    1 => ", 1 row is missing".to_owned(),
                    rows => format!(", {rows} rows are missing"),
                };
                let held = format!("the profile holds the first {held_s:.1} s");
                write!(f, "the recording was not completed{rows}: {cause}; {held}; profile again where there is space (-o)")
            }
            Self::Unfinished { held_s } => write!(
                f,
                "the profile is not whole: its recording still goes on, or firsttouch was killed; it holds the first {held_s:.1} s; wait until it \
                 has ended, or profile again"
            ),
            Self::Unobserved => f.write_str(UNOBSERVED),
            Self::LeftOut { name, share } => write!(
                f,
                "that share leaves out {name}, whose first touches are not known, and whose remote accesses alone are {} of all",
                percent(*share)
            ),
            Self::MoreInOne { name, share } => write!(
                f,
                "the sources of evidence disagree about that share: the remote accesses of {name} alone are {} of all; profile it again with less \
                 else running",
                percent(*share)
            ),
            Self::NoThreads => {
                write!(f, "the profile has no threads: the recording ended before the program began, or could not be written")
            }
            Self::EndedEarly => {
                write!(f, "the recording ended before the program did, which had one thread until then; record it for longer")
            }
            Self::Killed { signal: Some(signal), .. } => write!(
                f,
                "the program, which had one thread until then, was ended by {}: what it would have done is not known{}",
                signal_words(*signal),
                of_memory(Some(*signal))
            ),
            Self::Killed { exit_code, signal: None } => write!(
                f,
                "the program, which had one thread until then, ended as by a signal (exit status {exit_code}): what it would have done is not known{}",
                of_memory(exit_code.checked_sub(128))
            ),
            Self::CutShort { exit_code } => {
                let signal = exit_code - 128;
                write!(
                    f,
                    "the program was ended by {} before accesses to its objects were seen{}",
                    signal_words(signal),
                    of_memory(Some(signal))
                )
            }
            Self::Outlived { processes, has_waited } => {
                let (processes, run, are) =
                    if *processes == 1 { ("1 process", "runs", "is") } else { (&*format!("{processes} processes"), "run", "are") };
                write!(f, "{processes} of the program still {run} and {are} no longer recorded; ")?;
                match has_waited {
                    true => write!(f, "the recording ended before they did, in spite of --wait: a longer --duration, or none"),
                    false => write!(f, "to record until all have ended: --wait"),
                }
            }
            Self::Unasked(ranks) => write!(
                f,
                "{}the kernel was not asked where pages are, so a memory policy or a full node would not show; profile a longer run, with a CPU \
                 free for the recorder",
                ranks.as_ref().map_or_else(String::new, |ranks| format!("in {ranks}, "))
            ),
            Self::Unrecorded(part) => write!(f, "{} of the touched memory belongs to no recorded object", percent(*part)),
            Self::Children(part) => write!(
                f,
                "processes that the program started and that were not profiled used {} of the CPU time; to profile them: --follow",
                percent(*part)
            ),
            Self::NothingSeen { missing: Some(missing), .. } => write!(f, "no accesses were seen: {missing}"),
            Self::NothingSeen { missing: None, wall_s } => {
                write!(f, "no accesses were seen in {wall_s:.1} s; profile the program at its usual work")
            }
            Self::Idle { ran_s, wall_s } => write!(
                f,
                "the program was idle: its threads ran for {:.0} ms of the {wall_s:.1} s; record it while it does its usual work, or for longer",
                ran_s * 1e3
            ),
            Self::NoAccesses { missing: Some(missing), .. } => write!(f, "no accesses were seen: {missing}"),
            Self::NoAccesses { missing: None, is_attached: true } => write!(
                f,
                "no accesses to objects of known placement were seen; record for longer, or start the program under 'firsttouch profile'"
            ),
            Self::NoAccesses { missing: None, is_attached: false } => {
                write!(f, "no accesses to objects of known placement were seen; profile a longer run, or with a smaller --min-size")
            }
            Self::Uncovered { judged, largest } => {
                write!(f, "the judged objects receive {} of the accesses seen", percent(*judged))?;
                match largest {
                    Some((name, reason)) => write!(f, "; of the others, {name} receives the most: {reason}"),
                    None => Ok(()),
                }
            }
            Self::HeavyOpen { named, reason } => {
                let list: Vec<String> =
                    named.iter().map(|(name, share)| format!("{name} ({} of the accesses seen)", percent(*share))).collect();
                let was = if named.len() == 1 { "was" } else { "were" };
                write!(f, "{} {was} not judged: {reason}", list.join(" and "))
            }
            Self::RemoteElsewhere { interval: [low, high], largest } => {
                write!(
                    f,
                    "[{:.0}, {:.0}] % of the accesses would be remote, most of them to objects that were not judged",
                    low * 100.0,
                    high * 100.0
                )?;
                match largest {
                    Some((name, reason)) => write!(f, "; of these, {name} receives the most: {reason}"),
                    None => Ok(()),
                }
            }
            Self::RemoteScattered { interval: [low, high], objects } => write!(
                f,
                "[{:.0}, {:.0}] % of the accesses would be remote, most of them to {} too small for a finding each; --verbose lists the objects",
                low * 100.0,
                high * 100.0,
                counted(*objects as u64, "object")
            ),
            Self::TooUncertain { interval: [low, high], .. } => write!(
                f,
                "the 95 % interval of the remote share, [{:.0}, {:.0}], is too wide: {}",
                low * 100.0,
                high * 100.0,
                self.lacking().unwrap_or_default()
            ),
            Self::UncertainObject { name, interval: [low, high], is_attached, lack } => write!(
                f,
                "{name} may be misplaced, but the 95 % interval of its remote share, [{:.0}, {:.0}], is too wide: {}",
                low * 100.0,
                high * 100.0,
                lacking(*lack, "too few samples", *is_attached)
            ),
            Self::NearBar { name, value, interval: [low, high], is_attached, is_helped, more_s } => {
                let bar = REMOTE_BAR * 100.0;
                write!(
                    f,
                    "{name} {}: {:.1} % of its accesses are remote [{:.1}, {}], ",
                    if *value <= NEAR_BAR || *low <= REMOTE_BAR { "is near the limit" } else { "may be misplaced" },
                    value * 100.0,
                    low * 100.0,
                    // As reports print it: one digit behind the point below 10.
                    if high * 100.0 < 9.95 { format!("{:.1}", high * 100.0) } else { format!("{:.0}", high * 100.0) }
                )?;
                match *low > REMOTE_BAR {
                    true => write!(
                        f,
                        "more than the {bar:.0} % of a well-placed object, but for too few of them the node of the page is certain"
                    ),
                    false => write!(f, "and memory counts as misplaced if more than {bar:.0} % are for certain"),
                }?;
                match is_helped {
                    true => write!(f, "; {}{}", longer(*is_attached), by_seconds(*more_s)),
                    false => f.write_str("; more samples alone do not decide it, because the width of the interval is not from chance"),
                }
            }
            Self::Contradicted { by, interval: [low, high], samples, is_attached } => write!(
                f,
                "the sources disagree: by '{by}', [{:.0}, {:.0}] % of the accesses would be remote ({}); {}",
                low * 100.0,
                high * 100.0,
                seen(*samples, Some(by)),
                longer(*is_attached)
            ),
            Self::TooFewSamples { samples, source, is_attached } => {
                write!(f, "too few accesses were seen ({}); {}", seen(*samples, source.as_ref()), longer(*is_attached))
            }
        }
    }
}

/// What also ends a program by this signal.
fn of_memory(signal: Option<i32>) -> &'static str {
    if signal == Some(SIGKILL) { " (the kernel does this where memory runs out: see dmesg, and memory.events of its cgroup)" } else { "" }
}

/// Nobody can catch it.
const SIGKILL: i32 = 9;

/// Each page has one first touch, however long the program runs.
const FEW_TOUCHES: &str = "too few first touches were recorded to know the nodes of its pages, and a longer run has no more of them";

/// `38 samples`. One sample of registers shows several accesses, and those are counted.
fn seen(samples: u64, source: Option<&EvidenceSource>) -> String {
    if source == Some(&EvidenceSource::Sample) {
        return format!("{samples} access{} seen by samples of registers", if samples == 1 { "" } else { "es" });
    }
    counted(samples, if source == Some(&EvidenceSource::Hint) { "hinting fault" } else { "sample" })
}

fn longer(is_attached: bool) -> &'static str {
    if is_attached { "record for longer" } else { "profile a longer run" }
}

/// What is missing, and what would help. `samples`: the words if samples are.
fn lacking(lack: Lack, samples: &str, is_attached: bool) -> String {
    match lack {
        Lack::Samples { more_s } => format!("{samples}; {}{}", longer(is_attached), by_seconds(more_s)),
        Lack::FirstTouches if is_attached => {
            "most first touches were made before firsttouch attached; start the program under 'firsttouch profile'".to_owned()
        }
        Lack::FirstTouches => format!("{FEW_TOUCHES}; profile it again with less else running, or with a larger input"),
        Lack::Speeds => {
            "the samples do not show how fast the loops go that make most of the accesses (such as loops over linked lists, or short ones), so these cannot \
             be weighed; a longer run helps only if it shows the speeds of more loops, and the remote shares of single objects depend less on it"
                .to_owned()
        }
        Lack::Addresses => {
            "the samples do not show the addresses of some loads, whose registers the code overwrites at once: which object these use is not known; \
             a longer run does not help"
                .to_owned()
        }
        Lack::LastingThreads => {
            "threads that follow each other use memory that another one touched first, and each of them may run on any node: threads that stay can be judged"
                .to_owned()
        }
        Lack::Agreement => "the sources of evidence disagree; profile it again with less else running".to_owned(),
    }
}

/// ` (about 12 s more would decide)`
fn by_seconds(more_s: Option<u64>) -> String {
    more_s.map_or_else(String::new, |more| format!(" (about {more} s more would decide)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(cause: &Cause) -> usize {
        match cause {
            Cause::NoThreads => 0,
            Cause::EndedEarly => 1,
            Cause::Unrecorded(_) => 2,
            Cause::Children(_) => 3,
            Cause::NothingSeen { .. } => 4,
            Cause::NoAccesses { .. } | Cause::CutShort { .. } => 5,
            Cause::Uncovered { .. } => 6,
            Cause::TooFewSamples { .. } => 7,
            Cause::TooUncertain { .. } => 8,
            Cause::NotWritten { .. } => 9,
            Cause::RemoteElsewhere { .. } => 10,
            Cause::Contradicted { .. } => 11,
            Cause::Killed { .. } => 12,
            Cause::RemoteScattered { .. } => 13,
            Cause::Outlived { .. } => 14,
            Cause::UncertainObject { .. } => 15,
            Cause::HeavyOpen { .. } => 16,
            Cause::Idle { .. } => 17,
            Cause::Unobserved => 18,
            Cause::LeftOut { .. } => 19,
            Cause::Unfinished { .. } => 20,
            Cause::Unasked(_) => 21,
            Cause::MoreInOne { .. } => 22,
            Cause::NearBar { .. } => 23,
        }
    }

    /// Check that no cause is empty or ends within a sentence.
    #[test]
    fn every_cause_has_words() {
        let missing = || [None, Some("perf is forbidden".to_owned())];
        let mut all = vec![Cause::NoThreads, Cause::EndedEarly, Cause::Unrecorded(0.8), Cause::Children(0.9)];
        all.extend([None, Some(9)].map(|signal| Cause::Killed { exit_code: 137, signal }));
        all.push(Cause::CutShort { exit_code: 137 });
        all.push(Cause::Idle { ran_s: 0.002, wall_s: 1.0 });
        all.extend(missing().map(|missing| Cause::NothingSeen { missing, wall_s: 0.1 }));
        for is_attached in [false, true] {
            all.extend(missing().map(|missing| Cause::NoAccesses { missing, is_attached }));
        }
        all.extend([(1, false), (4, true)].map(|(processes, has_waited)| Cause::Outlived { processes, has_waited }));
        all.push(Cause::Unobserved);
        all.extend([None, Some("rank 1 of 2".to_owned())].map(Cause::Unasked));
        all.push(Cause::Unfinished { held_s: 1.0 });
        all.extend([0, 1, 40].map(|rows| Cause::NotWritten { cause: "the disk is full".to_owned(), rows, held_s: 1.0 }));
        for largest in [None, Some(("A".to_owned(), NotJudgedReason::NotSampled))] {
            all.push(Cause::RemoteElsewhere { interval: [0.25, 0.32], largest: largest.clone() });
            all.push(Cause::Uncovered { judged: 0.0, largest });
        }
        for source in [None, Some(EvidenceSource::Hint), Some(EvidenceSource::Sample)] {
            for is_attached in [false, true] {
                all.push(Cause::TooFewSamples { samples: 0, source: source.clone(), is_attached });
                let samples = [None, Some(12)].map(|more_s| Lack::Samples { more_s });
                for lack in
                    samples.into_iter().chain([Lack::FirstTouches, Lack::Agreement, Lack::Speeds, Lack::Addresses, Lack::LastingThreads])
                {
                    let (interval, source, name) = ([0.1, 0.6], source.clone(), "A".to_owned());
                    all.push(Cause::TooUncertain { interval, samples: 1000, source, is_attached, lack });
                    all.push(Cause::UncertainObject { name, interval, is_attached, lack });
                }
            }
        }
        for count in [1, 2] {
            all.push(Cause::HeavyOpen { named: vec![("A".to_owned(), 0.15); count], reason: NotJudgedReason::UnknownNodes });
        }
        all.push(Cause::LeftOut { name: "A".to_owned(), share: 0.47 });
        all.push(Cause::MoreInOne { name: "A".to_owned(), share: 0.47 });
        all.extend([(None, 0.06, true), (Some(3), 0.04, true), (None, 0.04, false)].map(|(more_s, low, is_helped)| {
            let interval = [low, 0.12];
            Cause::NearBar { name: "A".to_owned(), value: 0.08, interval, is_attached: false, is_helped, more_s }
        }));
        all.push(Cause::RemoteScattered { interval: [0.15, 0.19], objects: 20 });
        all.push(Cause::Contradicted { by: EvidenceSource::Watch, interval: [0.61, 0.67], samples: 25, is_attached: false });
        for cause in &all {
            let text = cause.to_string();
            assert!(text.trim().len() > 15 && !text.trim_end().ends_with([':', ',', ';']), "{cause:?}: '{text}'");
        }
        let mut kinds: Vec<usize> = all.iter().map(number).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds, (0..24).collect::<Vec<_>>());
    }
}
