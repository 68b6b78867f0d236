//! Loops whose memory is not each thread's own: parts are dealt out to whichever thread is free (`schedule(dynamic)`), or each thread goes through all.
//!
//! Between two entries of such a loop, a thread's place in memory also passes the parts that the others took meanwhile. So its way shows from its own
//! rounds only (if each thread goes through all) up to those of all threads at once. Which of both it is, samples seldom tell.

use super::loops::Loop;
use super::times::is_for_rates;
use firsttouch_model::rows::{Id, Profile, SampledAccess, TimerSample};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Samples of an operand that show whether the threads have parts of their own.
const LEAST: usize = 16;
/// The threads of neighbours in memory differ at least this part as often as by chance, if they have none. In parts of their own, they differ at the
/// borders only.
const MIXED: f64 = 0.5;

/// Operands of a sample that are looked at.
const MOST_OPERANDS: usize = 64;

/// The process, the object, and the stride. (Each thread has another call stack at the same instruction.)
type Operand = (Id, Id, i64);

/// A sample of an operand: the address, the thread, and when.
type Seen = (u64, Id, u64);

/// A loop whose memory is not each thread's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dealt {
    /// The mean number of threads of a process that are in it at once.
    pub at_once: f64,
    /// The source says of most samples that parts go to whichever thread is free.
    pub by_source: bool,
}

/// The loops. `usual_ns`: CPU time between two timer samples of a thread. `goes_to_any_thread`: what the source says of a place in the code.
pub(super) fn dealt(
    profile: &Profile,
    accesses: &[&[SampledAccess]],
    usual_ns: f64,
    key_of: impl Fn(&TimerSample) -> Option<Loop>,
    goes_to_any_thread: &dyn Fn(Id) -> bool,
) -> HashMap<Loop, Dealt> {
    let process_of: HashMap<Id, Id> = profile.threads.iter().map(|thread| (thread.id, thread.process)).collect();
    let mut operands: BTreeMap<(Loop, Operand), Vec<Seen>> = BTreeMap::new();
    let mut times: HashMap<(Loop, Id), Vec<u64>> = HashMap::new();
    for (sample, own) in profile.samples.iter().zip(accesses).filter(|(sample, _)| !is_for_rates(sample)) {
        let (Some(key), Some(process)) = (key_of(sample), process_of.get(&sample.thread)) else { continue };
        times.entry((key, *process)).or_default().push(sample.time_ns);
        // A sample is one place of its thread: of a load and a store there, or of several rounds of an unrolled loop, the first counts.
        let mut known: Vec<(Id, i64)> = Vec::new();
        for access in own.iter().take(MOST_OPERANDS) {
            if let Some(stride) = access.stride.filter(|stride| *stride != 0 && !known.contains(&(access.object, *stride))) {
                known.push((access.object, stride));
                let seen = operands.entry((key, (*process, access.object, stride))).or_default();
                seen.push((access.address, sample.thread, sample.time_ns));
            }
        }
    }
    // Progress is measured by the operand with the longest lap (`pairs.rs`).
    let rounds = |stride: i64, seen: &[Seen]| {
        let addresses = || seen.iter().map(|one| one.0);
        (addresses().max().unwrap_or(0) - addresses().min().unwrap_or(0)) / stride.unsigned_abs().max(1)
    };
    let mut longest: BTreeMap<(Loop, Id), (u64, Vec<Seen>)> = BTreeMap::new();
    for ((key, (process, _, stride)), seen) in operands {
        let rounds = rounds(stride, &seen);
        let own = longest.entry((key, process)).or_default();
        if own.1.is_empty() || rounds > own.0 {
            *own = (rounds, seen);
        }
    }
    let mut dealt: HashMap<Loop, Dealt> = HashMap::new();
    for ((key, process), (_, seen)) in longest {
        if is_mixed(seen) {
            let at_once = at_once(times.remove(&(key, process)).unwrap_or_default(), usual_ns);
            let most = dealt.entry(key).or_insert(Dealt { at_once: 1.0, by_source: false });
            most.at_once = most.at_once.max(at_once);
        }
    }
    if dealt.is_empty() {
        return dealt;
    }
    // Samples of which the source says so, less the others.
    let mut more: HashMap<Loop, i64> = HashMap::new();
    for sample in &profile.samples {
        if let Some((key, site)) = key_of(sample).filter(|key| dealt.contains_key(key)).zip(sample.site) {
            *more.entry(key).or_default() += if goes_to_any_thread(site) { 1 } else { -1 };
        }
    }
    for (key, dealt) in &mut dealt {
        dealt.by_source = more.get(key).is_some_and(|more| *more > 0);
    }
    dealt
}

/// Whether neighbours in memory are as often of different threads as by chance. Threads that follow each other in time do not count.
fn is_mixed(mut seen: Vec<Seen>) -> bool {
    let (mut counts, mut spans): (BTreeMap<Id, f64>, HashMap<Id, (u64, u64)>) = (BTreeMap::new(), HashMap::new());
    for &(_, thread, time) in &seen {
        *counts.entry(thread).or_default() += 1.0;
        let span = spans.entry(thread).or_insert((time, time));
        *span = (span.0.min(time), span.1.max(time));
    }
    let all = seen.len() as f64;
    let by_chance = 1.0 - counts.values().map(|count| (count / all).powi(2)).sum::<f64>();
    if seen.len() < LEAST || by_chance <= 0.0 {
        return false;
    }
    seen.sort_unstable();
    let is_at_once = |one: &Seen, other: &Seen| {
        let is_within = |time: u64, thread: Id| spans.get(&thread).is_some_and(|(from, to)| (*from..=*to).contains(&time));
        is_within(one.2, other.1) && is_within(other.2, one.1)
    };
    let differ = seen.windows(2).filter(|two| two[0].1 != two[1].1 && is_at_once(&two[0], &two[1])).count();
    differ as f64 >= MIXED * by_chance * (all - 1.0)
}

/// How many threads are at work at once: each has about one sample in the time between two of one thread.
fn at_once(mut times: Vec<u64>, usual_ns: f64) -> f64 {
    times.sort_unstable();
    let half = (usual_ns / 2.0) as u64;
    let (mut from, mut to, mut near) = (0, 0, 0);
    for &time in &times {
        from += times[from..].iter().take_while(|other| **other + half < time).count();
        to += times[to..].iter().take_while(|other| **other < time + half).count();
        near += to - from;
    }
    (near as f64 / times.len().max(1) as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(owner: impl Fn(u64) -> Id) -> Vec<Seen> {
        (0..400)
            .map(|at: u64| (at.wrapping_mul(0x9E37_79B9) % 100_000, at))
            .map(|(address, at)| (address, owner(address + (at << 32)), at))
            .collect()
    }

    /// Check that parts which change hands are mixed, and that blocks, chunks in turn that samples resolve, and threads one after the other are not.
    #[test]
    fn only_parts_that_change_hands_are_mixed() {
        let address = |x: u64| x & 0xFFFF_FFFF;
        let at = |x: u64| x >> 32;
        assert!(is_mixed(seen(|x| (at(x) % 4) as Id)));
        assert!(!is_mixed(seen(|x| (address(x) / 25_000) as Id)));
        assert!(!is_mixed(seen(|x| (address(x) / 5_000 % 4) as Id)));
        assert!(!is_mixed(seen(|x| (at(x) / 50) as Id)));
        assert!(!is_mixed(seen(|_| 1)) && !is_mixed(Vec::new()));
    }

    /// Check the number of threads at once: of two that tick in turn, and of one alone.
    #[test]
    fn threads_at_once() {
        let ticks = |from: u64| (0..100).map(move |at| from + at * 4_000_000);
        let two = at_once(ticks(0).chain(ticks(1_000_000)).collect(), 4e6);
        assert!((two - 2.0).abs() < 0.05, "{two}");
        let one = at_once(ticks(0).collect(), 4e6);
        assert!((one - 1.0).abs() < 0.05, "{one}");
    }
}
