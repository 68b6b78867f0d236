//! Whether the evidence is enough to judge a group, and why not: the conditions, and the words for them.
//!
//! A group is **judged** if it
//! - does not stay in a core's private cache, counting the memory alive at the same time (`cache.rs`);
//! - has at least 16 windows with hits that count as use;
//! - has first touches that identify the toucher: 8 records, or one for at least every second page, or records of one thread without gaps
//!   (`touches.rs`), or the kernel on behalf of a known thread; and if they are a sample, most of its accesses are not far from all of them;
//! - has a known home for at least half of its sampled accesses;
//! - has a known partition of use;
//! - is not used by threads that follow each other, one at a time, after another one touched it first: on which node they run is chance.

use crate::evidence::{Hit, missing};
use crate::findings::percent;
use crate::groups::Group;
use crate::homes::Home;
use crate::judge::{Judge, Subject};
use crate::partition::{MIN_UNITS, PartitionKind};
use crate::touch_record::BASE_PAGE;
use crate::touch_summary::TouchSummary;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::format_bytes;
use firsttouch_model::remedy::PERF;
use firsttouch_model::rows::{ObjectKind, SharedMemory};
use serde::{Deserialize, Serialize};
use std::fmt;

/// With so many threads for each that is alive at the same time, threads follow each other.
const FOLLOWERS: usize = 4;
/// Records of first touches that identify the threads that made them.
const LEAST_TOUCHES: u64 = 8;
/// The part of a pool's accesses that decides how much of it is in use.
const NEARLY_ALL: f64 = 0.95;

impl Judge<'_> {
    /// Whether it stays in a core's cache. `indices`: those of its groups.
    pub(crate) fn is_cached(&self, group: &Group, indices: &[usize]) -> bool {
        let stays = |index: &usize| !self.pushed_out.get(*index).copied().unwrap_or(false);
        group.extent() <= self.target.private_cache_bytes && indices.iter().any(stays)
    }

    /// The bytes that were touched, at most, of an object that is larger than a core's cache, if they fit in it: memory that was never
    /// touched is not on any node. Its samples must lie as close together.
    pub(crate) fn cached_part(&self, group: &Group, hits: &[Hit]) -> Option<u64> {
        let [object] = group.members[..] else { return None };
        if group.extent() <= self.target.private_cache_bytes {
            return None;
        }
        let touched = self.residents.touched_at_most(&self.profile.objects[object])?;
        let offsets = || hits.iter().map(|hit| hit.offset);
        let span = offsets().max().unwrap_or(0) - offsets().min().unwrap_or(0);
        (touched <= self.target.private_cache_bytes && span <= self.target.private_cache_bytes && hits.len() >= MIN_UNITS)
            .then_some(touched)
    }

    /// The bytes of a pool that nearly all of its accesses go to, if they fit in a core's cache: the blocks of a line lie among those of a whole
    /// program, of which it may use one.
    fn used_part(&self, group: &Group, hits: &[Hit]) -> Option<u64> {
        if group.pool.is_none() || hits.len() < MIN_UNITS {
            return None;
        }
        let mut positions: Vec<u64> = hits.iter().map(|hit| hit.position).collect();
        positions.sort_unstable();
        let most = ((positions.len() as f64 * NEARLY_ALL).ceil() as usize).clamp(2, positions.len());
        let part = positions.windows(most).map(|part| part[most - 1] - part[0]).min()?;
        (part <= self.target.private_cache_bytes / 2).then_some(part)
    }

    /// How many page faults a record stood for, at most, while the group lived.
    fn longest_period(&self, group: &Group) -> f64 {
        let object = &self.profile.objects[group.representative];
        let life = object.born_ns..=object.died_ns.unwrap_or(u64::MAX);
        let during = self.profile.first_touches.iter().filter(|touch| touch.process == object.process && life.contains(&touch.time_ns));
        during.map(|touch| touch.weight).filter(|weight| weight.is_finite()).fold(1.0, f64::max)
    }

    /// First touches do not place its pages: they are those of the kernel's page cache.
    pub(crate) fn is_file(&self, group: &Group) -> bool {
        self.profile.objects[group.representative].kind == ObjectKind::File
    }

    /// So few faults were recorded while the group lived that its own hardly show.
    fn is_sparse(&self, group: &Group, pages: u64) -> bool {
        let period = self.longest_period(group);
        period > 1.0 && (pages as f64) < LEAST_TOUCHES as f64 * period
    }

    /// The number and size of the pages that its first touches had to show. Without any record or answer, they may be huge: then one fault places
    /// many base pages, and few faults were there to be recorded.
    fn pages(&self, group: &Group, touch: &TouchSummary) -> (u64, u64) {
        let machine = &self.profile.machine;
        let is_unknown = touch.records == 0 && self.residents.of(&self.profile.objects[group.representative]).page_bytes.is_none();
        let has_huge_pages = matches!(machine.transparent_huge_pages.as_str(), "always" | "madvise");
        let may_be_huge = is_unknown && has_huge_pages && group.extent() >= machine.huge_page_bytes;
        let page_bytes = if may_be_huge { touch.page_bytes.max(machine.huge_page_bytes) } else { touch.page_bytes };
        (group.extent() / page_bytes.max(1), page_bytes)
    }

    /// What part of its accesses is far from all records of its first touches, if these are a sample.
    pub(crate) fn beyond(&self, hits: &[Hit], touch: &TouchSummary) -> f64 {
        let Some(shown) = &touch.shown else { return 0.0 };
        let weight = |hit: &Hit| self.design.weight(hit.draw) * hit.rate();
        let (beyond, all) = hits.iter().fold((0.0, 0.0), |(beyond, all), hit| {
            let weight = weight(hit);
            (beyond + if shown.contains(&hit.position) { 0.0 } else { weight }, all + weight)
        });
        if all > 0.0 { beyond / all } else { 0.0 }
    }

    /// It was seen when its pages appeared.
    fn has_appeared(&self, group: &Group) -> bool {
        let object = &self.profile.objects[group.representative];
        let end = object.address.saturating_add(object.bytes);
        self.profile.appeared.iter().any(|row| {
            row.process == object.process
                && row.address < end
                && object.address < row.address.saturating_add(row.bytes)
                && row.to_ns >= object.born_ns
        })
    }

    /// Why the group cannot be judged; `None` if it can.
    pub(crate) fn reason(&self, group: &Group, indices: &[usize], hits: &[Hit], subject: &Subject) -> Option<NotJudgedReason> {
        let touch = &subject.touch;
        let (seen, source) = (hits.len() as u64, self.source.name());
        if self.is_cached(group, indices) {
            return Some(NotJudgedReason::Cached { cache_bytes: self.target.private_cache_bytes });
        }
        if let Some(touched_bytes) = self.cached_part(group, hits) {
            return Some(NotJudgedReason::TouchedPartCached { touched_bytes, cache_bytes: self.target.private_cache_bytes });
        }
        if let Some(used_bytes) = self.used_part(group, hits) {
            return Some(NotJudgedReason::UsedPartCached { used_bytes, cache_bytes: self.target.private_cache_bytes });
        }
        if hits.is_empty() {
            return Some(self.source.unseen(self.profile, self.design.windows(subject.group) as u64));
        }
        if hits.len() < MIN_UNITS {
            return Some(NotJudgedReason::TooFewSamples { seen, source, needed: MIN_UNITS as u64 });
        }
        if self.is_file(group) {
            return Some(NotJudgedReason::MappedFile);
        }
        if let Some(pool) = group.pool.as_ref().filter(|pool| pool.sites.is_empty()) {
            return Some(NotJudgedReason::ManyLines { lines: pool.places });
        }
        if touch.kernel_unknown {
            return Some(NotJudgedReason::KernelTouched);
        }
        let is_clear = subject.partition.kind != PartitionKind::Unknown;
        if subject.is_same_anywhere && is_clear {
            return None;
        }
        let known: f64 = hits.iter().filter(|h| matches!(h.home, Home::Known { .. })).map(|h| self.design.weight(h.draw) * h.rate()).sum();
        let observed = !self.target.virtual_machine && subject.remote.is_some();
        if !touch.enough && !observed {
            let attached = self.profile.meta.is_attached();
            let missing = || if attached { Missing::Attached } else { missing(self.profile, EvidenceSource::Touch) };
            let (pages, page_bytes) = self.pages(group, touch);
            if let Some(present) = group.filled_before() {
                return Some(NotJudgedReason::FilledBefore { present });
            }
            return Some(match touch.records {
                _ if touch.incomplete => NotJudgedReason::TouchesLost,
                // Where firsttouch attached, they were made before.
                records if !(attached && records == 0) && self.is_sparse(group, pages) => {
                    let (records, period) = (records as u64, self.longest_period(group) as u64);
                    NotJudgedReason::TouchesSparse { records, period, pages, page_bytes }
                }
                0 if self.has_appeared(group) => NotJudgedReason::TouchersUnclear(missing()),
                0 => NotJudgedReason::TouchesNotSeen(missing()),
                records => NotJudgedReason::TooFewTouches { records: records as u64, pages, missing: missing() },
            });
        }
        if !observed && self.beyond(hits, touch) > 0.5 {
            return Some(NotJudgedReason::TouchesElsewhere { records: touch.records as u64 });
        }
        if known < subject.accesses / 2.0 {
            return Some(NotJudgedReason::UnknownNodes);
        }
        if let Some(threads) = self.in_turn(group, hits, touch).filter(|_| self.target.virtual_machine) {
            return Some(NotJudgedReason::InTurn { threads });
        }
        if subject.partition.ran_apart {
            return Some(NotJudgedReason::RanApart { threads: subject.users(self.threads).len() });
        }
        if subject.partition.kind == PartitionKind::Unknown {
            let threads = self.threads.beside(self.profile.objects[group.representative].process).count();
            let users = subject.users(self.threads).len();
            if threads > FOLLOWERS * users.max(1) {
                return Some(NotJudgedReason::ShortThreads { threads, seen, source });
            }
            return Some(NotJudgedReason::UnclearPartition { threads: subject.users(self.threads).len(), seen, source });
        }
        None
    }
}

/// Why an object is not judged, and what the user can do about it. The JSON holds its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum NotJudgedReason {
    /// It fits in a core's private cache.
    Cached {
        cache_bytes: u64,
    },
    /// The part of it that was touched fits in a core's private cache.
    TouchedPartCached {
        touched_bytes: u64,
        cache_bytes: u64,
    },
    /// Nearly all accesses go to a part that fits in a core's private cache.
    UsedPartCached {
        used_bytes: u64,
        cache_bytes: u64,
    },
    /// The profile has no evidence of accesses.
    NoAccessEvidence(Missing),
    /// No sample was drawn on it.
    NotSampled,
    /// Its samples saw no access.
    NoAccess {
        samples: u64,
    },
    TooFewSamples {
        seen: u64,
        source: EvidenceSource,
        needed: u64,
    },
    /// A mapped file: its pages are those of the kernel's page cache.
    MappedFile,
    /// A pool whose blocks are allocated in so many places between each other that no advice would fit all of them.
    ManyLines {
        lines: usize,
    },
    /// The kernel touched it on behalf of several threads.
    KernelTouched,
    /// Most records of its first touches were lost.
    TouchesLost,
    TouchesNotSeen(Missing),
    /// Memory that processes share, of which so much was present before the program mapped it ([`SharedMemory::ALL_PRESENT`]).
    FilledBefore {
        present: u32,
    },
    /// Its pages were seen to appear, but not by whom.
    TouchersUnclear(Missing),
    /// They fell into a burst of page faults, of which one in `period` was recorded.
    TouchesSparse {
        records: u64,
        period: u64,
        pages: u64,
        page_bytes: u64,
    },
    TooFewTouches {
        records: u64,
        pages: u64,
        missing: Missing,
    },
    /// The records of its first touches, so many, are far from most of its accesses.
    TouchesElsewhere {
        records: u64,
    },
    UnknownNodes,
    /// The samples do not show how threads divide it.
    UnclearPartition {
        threads: usize,
        seen: u64,
        source: EvidenceSource,
    },
    /// All threads pass all of it, but they hardly ran at the same time: parts may be dealt out to the one that runs.
    RanApart {
        threads: usize,
    },
    /// Threads that follow each other, one at a time, use what another one touched first.
    InTurn {
        threads: usize,
    },
    /// Threads that follow each other use it, and nothing shows which of them do the same.
    ShortThreads {
        threads: usize,
        seen: u64,
        source: EvidenceSource,
    },
    /// A sentence from an earlier report.
    Recorded(String),
}

impl NotJudgedReason {
    /// Says why evidence of first touches is missing, where that is not known yet.
    pub fn explain(&mut self, why: &Missing) {
        if let Self::TouchesNotSeen(missing) | Self::TouchersUnclear(missing) | Self::TooFewTouches { missing, .. } = self
            && *missing == Missing::Unknown
        {
            *missing = why.clone();
        }
    }

    /// Whether it is not known who touched the memory first.
    #[must_use]
    pub fn is_about_touches(&self) -> bool {
        matches!(
            self,
            Self::KernelTouched
                | Self::TouchesLost
                | Self::TouchesNotSeen(_)
                | Self::TouchersUnclear(_)
                | Self::TouchesSparse { .. }
                | Self::TooFewTouches { .. }
                | Self::TouchesElsewhere { .. }
                | Self::FilledBefore { .. }
                | Self::UnknownNodes
        )
    }
}

/// Why evidence is missing. Its text continues a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// firsttouch attached after the first touches were made.
    Attached,
    /// The explanation in the profile.
    Detail(String),
    Unavailable(EvidenceSource),
    /// Processes share the memory, and each of them was judged alone: which of them touched it first is not known.
    SharedMemory,
    Unknown,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached => write!(f, "; firsttouch attached after they were made (start the program with firsttouch to see them)"),
            Self::Detail(detail) => write!(f, ": {detail}"),
            Self::Unavailable(source) => write!(f, ": no {source} evidence on this system"),
            Self::SharedMemory => write!(f, ": other processes share the memory, and each process is judged alone here"),
            Self::Unknown => write!(f, ", and the profile does not say why"),
        }
    }
}

/// `12 samples`, `12 hinting faults`.
fn sampled(count: u64, source: &EvidenceSource) -> String {
    let what = if *source == EvidenceSource::Hint { "hinting fault" } else { "sample" };
    firsttouch_model::counted(count, what)
}

impl fmt::Display for NotJudgedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cached { cache_bytes } => write!(f, "fits in a core's cache ({})", format_bytes(*cache_bytes)),
            Self::TouchedPartCached { touched_bytes, cache_bytes } => write!(
                f,
                "at most {} of it were touched, which fit in a core's cache ({})",
                format_bytes(*touched_bytes),
                format_bytes(*cache_bytes)
            ),
            Self::UsedPartCached { used_bytes, cache_bytes } => write!(
                f,
                "nearly all of its accesses go to {} of it, which fit in a core's cache ({})",
                format_bytes(*used_bytes),
                format_bytes(*cache_bytes)
            ),
            Self::NoAccessEvidence(missing) => write!(f, "no accesses were sampled{missing}"),
            Self::NotSampled => write!(f, "no sample was taken on it: too small a part of the memory, or too short-lived"),
            Self::NoAccess { samples } => write!(f, "no access was seen in {}", firsttouch_model::counted(*samples, "sample")),
            Self::TooFewSamples { seen, source, needed } => {
                write!(f, "too few samples: {} seen, {needed} are needed; profile a longer run", sampled(*seen, source))
            }
            Self::MappedFile => write!(
                f,
                "the pages of a mapped file lie where a thread first read or wrote the file, which may have been another program: read the file \
                 into memory that its users touch first"
            ),
            Self::ManyLines { lines } => {
                write!(f, "{lines} lines allocate its blocks in turn, so samples do not show which line's blocks are used")
            }
            Self::KernelTouched => {
                write!(
                    f,
                    "the kernel touched its pages on behalf of several threads (I/O), which cannot be distinguished without privilege"
                )
            }
            Self::TouchesLost => write!(f, "records of most of its first touches were lost: profile it again, with less else running"),
            Self::TouchersUnclear(missing) => {
                write!(
                    f,
                    "several threads touched memory while its pages appeared, and neither samples nor counts of page faults show which of \
                     them touched which page. Performance events would"
                )?;
                match missing {
                    // What firsttouch did without them is of no interest here.
                    Missing::Detail(detail) => write!(f, "; firsttouch {}", detail.split("; continuing").next().unwrap_or(detail)),
                    _ => write!(f, ": {PERF}"),
                }
            }
            Self::TouchesNotSeen(missing) => write!(f, "its first touches were not seen{missing}"),
            Self::FilledBefore { present } => write!(
                f,
                "{} of it was there before the program mapped it: another process, an earlier run or `write` filled it, so its first touches were not \
                 seen, and those by `write` never are; profile the program together with one that fills it through a mapping, or on a machine \
                 with several nodes, where the kernel names the node of each page",
                percent(f64::from(*present) / f64::from(SharedMemory::ALL_PRESENT))
            ),
            Self::TouchesSparse { records, period, pages, page_bytes } => {
                let (pages, size) = (firsttouch_model::counted(*pages, "page"), format_bytes(*page_bytes));
                // A smaller input has fewer faults, of which more are recorded; of few huge pages, it leaves fewer still.
                let has_huge_pages = *page_bytes > BASE_PAGE;
                let has = if *records == 0 && has_huge_pages { "may have only" } else { "has" };
                write!(
                    f,
                    "too few of its first touches were recorded ({records}): they fell into a burst of page faults, of which one in {period} \
                     was recorded, and it {has} {pages} of {size}; "
                )?;
                write!(f, "profile it again, {}", if has_huge_pages { "or with a larger input" } else { "or with a smaller input" })
            }
            // So many would do, if they stood for more.
            Self::TooFewTouches { records, pages, missing: Missing::Unknown } if *records >= LEAST_TOUCHES => write!(
                f,
                "its first touches are known in part only: its {records} records stand for less than a quarter of its memory ({pages} pages), or hardly any \
                 of them for most of it; profile it again with less else running, or with fewer allocations"
            ),
            Self::TooFewTouches { records, pages, missing } => {
                write!(f, "too few first touches seen: {records} records for {pages} pages{missing}")
            }
            Self::TouchesElsewhere { records } => write!(
                f,
                "the {records} records of its first touches lie in one part of it, and most of its accesses go to other parts; profile it again with less \
                 else running"
            ),
            Self::UnknownNodes => write!(f, "the node of most of its accessed pages is not known"),
            Self::UnclearPartition { threads, seen, source } => {
                write!(f, "too few samples to show how {threads} threads divide it: {} seen", sampled(*seen, source))
            }
            Self::RanApart { threads } => write!(
                f,
                "its {threads} threads hardly ran at the same time, so samples do not show whether each of them uses all of it, or parts are \
                 dealt out to the one that runs; if they do not wait for each other by design, profile it again with less else running, or with a CPU \
                 for each thread"
            ),
            Self::InTurn { threads } => write!(
                f,
                "{threads} threads use it one after the other, and another one touched it first: a kernel may run each of them on any node; threads that stay can be \
                 judged"
            ),
            Self::ShortThreads { threads, seen, source } => write!(
                f,
                "{threads} threads that follow each other use it, and {} do not show which of them have the same part",
                sampled(*seen, source)
            ),
            Self::Recorded(text) => f.write_str(text),
        }
    }
}

impl From<String> for NotJudgedReason {
    fn from(text: String) -> Self {
        Self::Recorded(if text.trim().is_empty() { "no reason was recorded".to_owned() } else { text })
    }
}

impl From<&str> for NotJudgedReason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<NotJudgedReason> for String {
    fn from(reason: NotJudgedReason) -> Self {
        reason.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number for each kind of reason: a new kind does not compile until it is in the test.
    fn number(reason: &NotJudgedReason) -> usize {
        match reason {
            NotJudgedReason::Cached { .. } => 0,
            NotJudgedReason::TouchedPartCached { .. } => 1,
            NotJudgedReason::UsedPartCached { .. } => 2,
            NotJudgedReason::NoAccessEvidence(_) => 3,
            NotJudgedReason::NotSampled => 4,
            NotJudgedReason::NoAccess { .. } => 5,
            NotJudgedReason::TooFewSamples { .. } => 6,
            NotJudgedReason::ManyLines { .. } => 7,
            NotJudgedReason::KernelTouched => 8,
            NotJudgedReason::TouchesLost => 9,
            NotJudgedReason::TouchesNotSeen(_) => 10,
            NotJudgedReason::TouchersUnclear(_) => 11,
            NotJudgedReason::TouchesSparse { .. } => 12,
            NotJudgedReason::TooFewTouches { .. } => 13,
            NotJudgedReason::UnknownNodes => 14,
            NotJudgedReason::UnclearPartition { .. } => 15,
            NotJudgedReason::ShortThreads { .. } => 16,
            NotJudgedReason::RanApart { .. } => 18,
            NotJudgedReason::Recorded(_) => 17,
            NotJudgedReason::MappedFile => 19,
            NotJudgedReason::FilledBefore { .. } => 20,
            NotJudgedReason::TouchesElsewhere { .. } => 21,
            NotJudgedReason::InTurn { .. } => 22,
        }
    }

    /// Check that no reason is empty or ends within a sentence, also in a report that is read back.
    #[test]
    fn every_reason_has_words() {
        use NotJudgedReason as Reason;
        let source = || EvidenceSource::Sample;
        let missing = || {
            [
                Missing::Attached,
                Missing::Detail("perf is forbidden".into()),
                Missing::Unavailable(source()),
                Missing::SharedMemory,
                Missing::Unknown,
            ]
        };
        let mut all = vec![
            Reason::Cached { cache_bytes: 1 << 20 },
            Reason::TouchedPartCached { touched_bytes: 1, cache_bytes: 2 },
            Reason::UsedPartCached { used_bytes: 1, cache_bytes: 2 },
            Reason::NotSampled,
            Reason::NoAccess { samples: 0 },
            Reason::TooFewSamples { seen: 0, source: source(), needed: 16 },
            Reason::ManyLines { lines: 17 },
            Reason::KernelTouched,
            Reason::MappedFile,
            Reason::TouchesLost,
            Reason::TouchesSparse { records: 0, period: 100, pages: 50, page_bytes: 4096 },
            Reason::TouchesSparse { records: 2, period: 31, pages: 31, page_bytes: 2 << 20 },
            Reason::UnknownNodes,
            Reason::UnclearPartition { threads: 2, seen: 1, source: source() },
            Reason::ShortThreads { threads: 2, seen: 1, source: source() },
            Reason::RanApart { threads: 4 },
            Reason::InTurn { threads: 200 },
            Reason::FilledBefore { present: 6_000 },
            Reason::TouchesElsewhere { records: 11 },
            Reason::from(""),
            Reason::from(" "),
        ];
        all.extend(missing().map(Reason::NoAccessEvidence));
        all.extend(missing().map(Reason::TouchesNotSeen));
        all.extend(missing().map(Reason::TouchersUnclear));
        all.extend(missing().map(|missing| Reason::TooFewTouches { records: 0, pages: 1, missing }));
        for reason in &all {
            let text = reason.to_string();
            assert!(text.trim().len() > 15 && !text.trim_end().ends_with([':', ',', ';']), "{reason:?}: '{text}'");
        }
        let forbidden = "cannot open performance events (the system call is forbidden): allow it; continuing without first-touch evidence";
        let unclear = Reason::TouchersUnclear(Missing::Detail(forbidden.into())).to_string();
        assert!(unclear.ends_with("(the system call is forbidden): allow it") && !unclear.contains("paranoid"), "{unclear}");
        let mut kinds: Vec<usize> = all.iter().map(number).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds, (0..23).collect::<Vec<_>>());
    }
}
