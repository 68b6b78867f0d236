//! Lines of memory that stay in a core's cache although their object is larger than it: the accumulators of a loop in the heap of a virtual machine, the
//! counters beside an array in one mapping, the root of a tree. Which node has them hardly matters, and they may receive most of the accesses.
//!
//! Each sample shows the lines of one round of a loop. If k samples show a line, and all samples n lines in sum, the program passes about n / k lines
//! between two rounds that use it, so it stays in a cache of [`LINES`] if n / k is at most half of that. Of an object that is twice as large as the
//! cache and used all over, a line has n / (2 `LINES`) samples on average, where 2 n / `LINES` are needed, and [`LEAST`].
//!
//! A line may also be used for a while only, by one thread (an accumulator of each task): then it is in [`LEAST_IN_TURN`] samples of a thread that show
//! [`IN_TURN`] lines in turn. Of an object as above, chance shows one access in 10,000 so.
//!
//! Operands that move with the loop are left out: loops are sampled at the beginning of their entries more often than elsewhere. So are lines that several
//! threads write: they move from core to core.

use super::{Reader, times};
use crate::partition::MIN_UNITS;
use firsttouch_model::rows::{Id, SampledAccess};
use hashbrown::{HashMap, HashSet};

const LINE_BYTES: u64 = 64;
/// A core's cache of its own on most machines has this and more, 256 KiB.
const LINES: u64 = 4096;
/// Fewer samples of a line may be chance.
const LEAST: usize = 4;
const IN_TURN: u64 = 64;
const LEAST_IN_TURN: usize = 3;
/// The rest of a group shows how it is used if this part of its samples is not to such lines.
const REST: f64 = 0.05;

type Line = (Id, u64);

/// A line in a sample.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    line: Line,
    thread: Id,
    /// The number of lines that the thread's samples showed before.
    number: u64,
    sample: Id,
    group: usize,
    writes: bool,
}

#[derive(Default)]
pub(super) struct HotLines {
    /// The sample and the line.
    seen: HashSet<(Id, Line)>,
}

impl HotLines {
    /// `accesses`: those of each sample, in the order of the samples.
    pub(super) fn of(reader: &Reader<'_>, accesses: &[&[SampledAccess]]) -> Self {
        let samples = || reader.profile.samples.iter().zip(accesses).filter(|(sample, _)| !times::is_for_rates(sample));
        let is_large: Vec<bool> = reader.groups.iter().map(|group| group.extent() > 2 * LINES * LINE_BYTES).collect();
        let large = |access: &SampledAccess| reader.object(access.object).map(|(_, group)| group).filter(|group| is_large[*group]);
        // Most lines are seen once.
        let mut counts: HashMap<Line, u32> = HashMap::new();
        for access in samples().flat_map(|(_, own)| own.iter()).filter(|access| stays(access) && large(access).is_some()) {
            *counts.entry(line(access)).or_default() += 1;
        }
        let (mut seen, mut all, mut numbers, mut of_groups) = (Vec::new(), 0, HashMap::<Id, u64>::new(), vec![0_usize; is_large.len()]);
        for (sample, own) in samples() {
            let number = numbers.entry(sample.thread).or_default();
            // Operands of an unrolled loop are side by side.
            let mut lines: Vec<(Line, Option<usize>)> = Vec::with_capacity(own.len());
            for access in *own {
                let (line, group) = (line(access), large(access));
                let may_stay = stays(access) && counts.get(&line).is_some_and(|count| *count as usize >= LEAST_IN_TURN);
                let writes = access.kind.writes();
                if let Some(group) = group.filter(|_| may_stay) {
                    seen.push(Seen { line, thread: sample.thread, number: *number, sample: sample.id, group, writes });
                }
                if !lines.iter().any(|(known, _)| *known == line) {
                    lines.push((line, group));
                }
            }
            lines.iter().filter_map(|(_, group)| *group).for_each(|group| of_groups[group] += 1);
            let passed = lines.len() as u64 + if sample.elsewhere.is_finite() { sample.elsewhere.max(0.0) as u64 } else { 0 };
            *number += passed;
            all += passed;
        }
        seen.sort_unstable();
        // One of several accesses to a line in a sample, as a write if one of them is.
        seen.dedup_by(|next, one| {
            let is_same = (one.line, one.sample) == (next.line, next.sample);
            one.writes |= is_same && next.writes;
            is_same
        });
        let least = (LEAST as u64).max((2 * all).div_ceil(LINES)) as usize;
        let mut hot: Vec<Seen> = Vec::new();
        for of_line in seen.chunk_by(|one, next| one.line == next.line).filter(|of_line| !moves(of_line)) {
            if of_line.len() >= least {
                hot.extend(of_line);
            } else {
                of_line.chunk_by(|one, next| one.thread == next.thread).for_each(|of_thread| hot.extend(in_turn(of_thread)));
            }
        }
        let mut hot_of_groups = vec![0_usize; is_large.len()];
        hot.iter().for_each(|one| hot_of_groups[one.group] += 1);
        let is_shown_by_rest = |group: usize| {
            let rest = of_groups[group].saturating_sub(hot_of_groups[group]);
            rest >= MIN_UNITS && rest as f64 >= REST * of_groups[group] as f64
        };
        Self { seen: hot.into_iter().filter(|one| is_shown_by_rest(one.group)).map(|one| (one.sample, one.line)).collect() }
    }

    pub(super) fn has(&self, access: &SampledAccess) -> bool {
        !self.seen.is_empty() && stays(access) && self.seen.contains(&(access.sample, line(access)))
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

/// Whether several threads write a line.
fn moves(of_line: &[Seen]) -> bool {
    let mut writers = of_line.iter().filter(|one| one.writes).map(|one| one.thread);
    writers.next().is_some_and(|first| writers.any(|other| other != first))
}

/// Whether an operand is at one place in all rounds, as far as is known.
fn stays(access: &SampledAccess) -> bool {
    access.stride.is_none_or(|stride| stride == 0)
}

fn line(access: &SampledAccess) -> Line {
    (access.object, access.address / LINE_BYTES)
}
