//! Loops whose memory is not each thread's own: parts are dealt out to whichever thread is free (`schedule(dynamic)`), or each thread goes through all.
//!
//! Between two entries of such a loop, a thread's place in memory also passes the parts that the others took meanwhile. So its way shows from its own
//! rounds only (if each thread goes through all) up to those of all threads at once. Which of both it is, samples do not tell.

use super::loops::Loop;
use super::times::is_for_rates;
use firsttouch_model::rows::{Id, Profile, SampledAccess, TimerSample};
use hashbrown::HashMap;

/// Samples of an operand that show whether the threads have parts of their own.
const LEAST: usize = 16;
/// The threads of neighbours in memory differ at least this part as often as by chance, if they have none. In parts of their own, they differ at the
/// borders only.
const MIXED: f64 = 0.5;

type Operand = (Loop, Option<Id>, Id, i64);

/// A sample of an operand: the address, the thread, and when.
type Seen = (u64, Id, u64);

/// The loops, each with the mean number of threads that are in it at once. `usual_ns`: CPU time between two timer samples of a thread.
pub(super) fn dealt(
    profile: &Profile,
    accesses: &[&[SampledAccess]],
    usual_ns: f64,
    key_of: impl Fn(&TimerSample) -> Option<Loop>,
) -> HashMap<Loop, f64> {
    let mut operands: HashMap<Operand, Vec<Seen>> = HashMap::new();
    let mut times: HashMap<Loop, Vec<(u64, Id)>> = HashMap::new();
    for (sample, own) in profile.samples.iter().zip(accesses).filter(|(sample, _)| !is_for_rates(sample)) {
        let Some(key) = key_of(sample) else { continue };
        times.entry(key).or_default().push((sample.time_ns, sample.thread));
        for access in *own {
            if let Some(stride) = access.stride.filter(|stride| *stride != 0) {
                let seen = operands.entry((key, access.site, access.object, stride)).or_default();
                seen.push((access.address, sample.thread, sample.time_ns));
            }
        }
    }
    // The operand with the most samples is that of most rounds.
    let mut largest: HashMap<Loop, Vec<Seen>> = HashMap::new();
    for ((key, ..), seen) in operands {
        let own = largest.entry(key).or_default();
        if (seen.len(), seen.iter().min()) > (own.len(), own.iter().min()) {
            *own = seen;
        }
    }
    let of_loop = |(key, seen): (Loop, Vec<Seen>)| is_mixed(seen).then(|| (key, at_once(times.remove(&key).unwrap_or_default(), usual_ns)));
    largest.into_iter().filter_map(of_loop).collect()
}

/// Whether neighbours in memory are as often of different threads as by chance. Threads that follow each other in time do not count.
fn is_mixed(mut seen: Vec<Seen>) -> bool {
    let (mut counts, mut spans): (HashMap<Id, f64>, HashMap<Id, (u64, u64)>) = (HashMap::new(), HashMap::new());
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
fn at_once(mut times: Vec<(u64, Id)>, usual_ns: f64) -> f64 {
    times.sort_unstable();
    let half = (usual_ns / 2.0) as u64;
    let mut others = 0;
    for (at, &(time, thread)) in times.iter().enumerate() {
        let is_near = |other: &&(u64, Id)| other.0.abs_diff(time) <= half;
        let count = |near: &mut dyn Iterator<Item = &(u64, Id)>| near.filter(|other| other.1 != thread).count();
        others += count(&mut times[..at].iter().rev().take_while(is_near)) + count(&mut times[at + 1..].iter().take_while(is_near));
    }
    1.0 + others as f64 / times.len().max(1) as f64
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
        let ticks = |thread: Id, from: u64| (0..100).map(move |at| (from + at * 4_000_000, thread));
        let two = at_once(ticks(1, 0).chain(ticks(2, 1_000_000)).collect(), 4e6);
        assert!((two - 2.0).abs() < 0.05, "{two}");
        assert!((at_once(ticks(1, 0).collect(), 4e6) - 1.0).abs() < 1e-9);
    }
}
