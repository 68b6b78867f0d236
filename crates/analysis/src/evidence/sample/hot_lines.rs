//! Lines of memory that stay in a core's cache although their object is larger than it: the accumulators of a loop in the heap of a virtual machine, the
//! counters beside an array in one mapping, the root of a tree. Which node has them hardly matters, and they may receive most of the accesses.
//!
//! Each sample shows the lines of one round of a loop. If k samples show a line, and all samples n lines in sum, the program passes about n / k lines
//! between two rounds that use it, so it stays in a cache of [`LINES`] if n / k is at most half of that. Chance hardly shows such a line where there is
//! none: of an object that is twice as large as the cache and used all over, a line has n / (2 `LINES`) samples on average, where 2 n / `LINES` are
//! needed.
//!
//! A line may also be used for a while only, by one thread (an accumulator of each task): [`LEAST_IN_TURN`] samples of a thread, of [`IN_TURN`] in turn,
//! show it. Of an object as above, chance shows one in 30,000 so.

use super::{Reader, by_sample, times};
use crate::partition::MIN_UNITS;
use firsttouch_model::rows::{Id, SampledAccess};
use hashbrown::{HashMap, HashSet};

const LINE_BYTES: u64 = 64;
/// A core's cache of its own on most machines has this and more, 256 KiB.
const LINES: usize = 4096;
/// Fewer samples of a line may be chance.
const LEAST: usize = 4;
const IN_TURN: usize = 64;
const LEAST_IN_TURN: usize = 3;
/// The rest of a group shows how it is used if this part of its samples is not to such lines.
const REST: f64 = 0.05;

type Line = (Id, u64);

/// A line in a sample.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    line: Line,
    thread: Id,
    /// The number of the sample among those of its thread, and its id.
    number: usize,
    sample: Id,
    group: usize,
}

#[derive(Default)]
pub(super) struct HotLines {
    /// Of these samples only.
    in_samples: HashSet<(Id, Line)>,
}

impl HotLines {
    pub(super) fn of(reader: &Reader<'_>) -> Self {
        let (mut seen, mut all, mut numbers) = (Vec::new(), 0, HashMap::<Id, usize>::new());
        for (sample, own) in reader.profile.samples.iter().zip(by_sample(reader.profile)) {
            if times::is_for_rates(sample) {
                continue;
            }
            let number = numbers.entry(sample.thread).or_default();
            *number += 1;
            // Operands of an unrolled loop are side by side.
            let mut lines: Vec<Line> = Vec::with_capacity(own.len());
            for access in own {
                let line = line(access);
                if lines.contains(&line) {
                    continue;
                }
                lines.push(line);
                if let Some((_, group)) = reader.object(access.object).filter(|(_, group)| is_large(reader, *group)) {
                    seen.push(Seen { line, thread: sample.thread, number: *number, sample: sample.id, group });
                }
            }
            all += lines.len();
        }
        seen.sort_unstable();
        let least = LEAST.max((2 * all).div_ceil(LINES));
        let mut hot: Vec<Seen> = Vec::new();
        for of_line in seen.chunk_by(|one, next| one.line == next.line) {
            if of_line.len() >= least {
                hot.extend(of_line);
            } else {
                of_line.chunk_by(|one, next| one.thread == next.thread).for_each(|of_thread| hot.extend(in_turn(of_thread)));
            }
        }
        let count = |seen: &[Seen]| {
            let mut counts: HashMap<usize, usize> = HashMap::new();
            seen.iter().for_each(|one| *counts.entry(one.group).or_default() += 1);
            counts
        };
        let (of_groups, hot_of_groups) = (count(&seen), count(&hot));
        let is_shown_by_rest = |group: usize| {
            let (count, hot) = (of_groups.get(&group).copied().unwrap_or(0), hot_of_groups.get(&group).copied().unwrap_or(0));
            let rest = count.saturating_sub(hot);
            rest >= MIN_UNITS && rest as f64 >= REST * count as f64
        };
        let of_shown = hot.into_iter().filter(|one| is_shown_by_rest(one.group));
        Self { in_samples: of_shown.map(|one| (one.sample, one.line)).collect() }
    }

    pub(super) fn has(&self, access: &SampledAccess) -> bool {
        !self.in_samples.is_empty() && self.in_samples.contains(&(access.sample, line(access)))
    }
}

/// Those samples of a thread, of all that show a line, that are close together.
fn in_turn(seen: &[Seen]) -> impl Iterator<Item = Seen> {
    let is_close = |from: usize| seen[from + LEAST_IN_TURN - 1].number - seen[from].number < IN_TURN;
    let starts = (0..(seen.len() + 1).saturating_sub(LEAST_IN_TURN)).filter(move |&from| is_close(from));
    let mut is_in = vec![false; seen.len()];
    starts.for_each(|from| is_in[from..from + LEAST_IN_TURN].fill(true));
    seen.iter().zip(is_in).filter(|(_, is_in)| *is_in).map(|(one, _)| *one)
}

fn is_large(reader: &Reader<'_>, group: usize) -> bool {
    reader.groups[group].extent() > 2 * LINES as u64 * LINE_BYTES
}

fn line(access: &SampledAccess) -> Line {
    (access.object, access.address / LINE_BYTES)
}
