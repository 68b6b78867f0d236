//! What part of the time of a loop its own code takes: what it calls, and loops inside it, take the rest.
//!
//! Samples in a function that a loop calls do not show the loop. But of two samples of a thread in one entry of a loop, between which the loop went straight
//! on, those in between are in the loop's own code, in what it calls, or in a loop inside it. At a given number of ticks between the two, which of these a
//! sample in between shows does not depend on them, so that short entries do not bias the part. A loop that is entered again with the same registers seems to be
//! in one entry all the time: then most pairs of samples show other speeds, because laps and other code lie between them, and nothing is said.

use super::loops::Loop;
use super::pairs::ADJACENT;
use super::rated::NORMAL;
use super::times::is_for_rates;
use firsttouch_model::rows::{Id, Profile, TimerSample};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// The most ticks between two samples.
const FAR: u8 = 16;
/// A loop went straight on between two samples if its progress is that at its median speed, up to this part.
const STRAIGHT: f64 = 0.3;
/// At least this part of all pairs of samples must show that.
const MOST: f64 = 0.8;
/// So many pairs of samples show the speed, and so many samples between them the part.
const SHOW_SPEED: usize = 6;
const SHOW_PART: usize = 12;
/// A loop with more of its entries' time has no calls that matter. (Where it has nearly all, its rates may be those of all of its thread's time already.)
const MOSTLY_OWN: f64 = 0.8;
/// Pairs of a loop that are looked at, of all its threads.
const MOST_PAIRS: usize = 50_000;

/// The part of the time of a loop's entries that its own code takes, and its relative error as half a 95 % interval, beyond that of the number of the loop's
/// samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnPart {
    pub part: f64,
    pub error: f64,
}

/// Two samples in one entry of a loop, by their numbers among the ticks of their thread.
struct Apart {
    thread: u32,
    from: u32,
    apart: u8,
    /// Those of the samples between them that are in the loop's own code.
    own: u8,
    /// Rounds a ns.
    speed: f64,
}

/// What the samples of a loop show. The pairs are ordered by their threads and first samples.
#[derive(Default)]
struct OfLoop {
    samples: usize,
    pairs: Vec<Apart>,
}

impl OfLoop {
    fn own_part(&self) -> Option<OwnPart> {
        let mut speeds: Vec<f64> = self.pairs.iter().map(|pair| pair.speed).collect();
        if speeds.len() < SHOW_SPEED {
            return None;
        }
        let middle = speeds.len() / 2;
        let usual = *speeds.select_nth_unstable_by(middle, f64::total_cmp).1;
        let is_straight = |pair: &&Apart| (pair.speed - usual).abs() <= STRAIGHT * usual;
        if usual <= 0.0 || (self.pairs.iter().filter(is_straight).count() as f64) < MOST * self.pairs.len() as f64 {
            return None;
        }
        // `between`: the samples that lie between those of any pair.
        let (mut all, mut own, mut between, mut reached) = (0, 0, 0, (0, 0));
        for pair in self.pairs.iter().filter(is_straight) {
            all += usize::from(pair.apart) - 1;
            own += usize::from(pair.own);
            let end = pair.from + u32::from(pair.apart);
            let from = if reached.0 == pair.thread { (pair.from + 1).max(reached.1) } else { pair.from + 1 };
            between += end.saturating_sub(from) as usize;
            reached = (pair.thread, if reached.0 == pair.thread { end.max(reached.1) } else { end });
        }
        if between < SHOW_PART {
            return None;
        }
        let part = (own as f64 + 1.0) / (all as f64 + 1.0);
        // The number of the loop's samples has this error too, and it is the same chance as far as the samples are the same.
        let of_between = (1.0 - part) / (part * between as f64);
        let of_samples = (1.0 - part) / self.samples as f64;
        Some(OwnPart { part, error: NORMAL * (of_between - of_samples).max(0.0).sqrt() })
    }
}

/// The parts of all loops whose samples show them. `usual_ns`: CPU time between two timer samples.
pub fn own_parts(profile: &Profile, usual_ns: f64, key_of: impl Fn(&TimerSample) -> Option<Loop>) -> HashMap<Loop, OwnPart> {
    let mut threads: BTreeMap<Id, Vec<(&TimerSample, Option<Loop>)>> = BTreeMap::new();
    for sample in profile.samples.iter().filter(|sample| !is_for_rates(sample)) {
        threads.entry(sample.thread).or_default().push((sample, key_of(sample)));
    }
    let mut loops: HashMap<Loop, OfLoop> = HashMap::new();
    let most = (MOST_PAIRS / threads.len().max(1)).max(SHOW_SPEED);
    for (thread, ticks) in (0..).zip(threads.values()) {
        let mut pairs: HashMap<Loop, usize> = HashMap::new();
        for (from, (first, key)) in (0..).zip(ticks) {
            let Some(key) = *key else { continue };
            let of_loop = loops.entry(key).or_default();
            of_loop.samples += 1;
            let of_thread = pairs.entry(key).or_default();
            if *of_thread >= most {
                continue;
            }
            let (mut own, mut last) = (0, first.cpu_ns);
            for (apart, (sample, other)) in (1..=FAR).zip(&ticks[from as usize + 1..]) {
                if sample.cpu_ns.saturating_sub(last) as f64 > ADJACENT * usual_ns {
                    break;
                }
                last = sample.cpu_ns;
                if *other != Some(key) {
                    continue;
                }
                let pair = speed(first, sample).map(|speed| Apart { thread, from, apart, own, speed });
                *of_thread += usize::from(pair.is_some());
                of_loop.pairs.extend(pair);
                own += 1;
            }
        }
    }
    loops.into_iter().filter_map(|(key, of_loop)| Some((key, of_loop.own_part().filter(|own| own.part < MOSTLY_OWN)?))).collect()
}

/// Rounds a ns between two samples in one entry of a loop, below 0 if it began anew; `None` if they are not in one entry.
fn speed(first: &TimerSample, last: &TimerSample) -> Option<f64> {
    let (then, now) = first.around.zip(last.around).filter(|(then, now)| (then.end, then.entry) == (now.end, now.entry))?;
    let (then, now) = then.progress.zip(now.progress).filter(|(then, now)| then.step == now.step && now.step != 0)?;
    let rounds = now.value.wrapping_sub(then.value).cast_signed() as f64 / now.step as f64;
    let ns = last.cpu_ns.saturating_sub(first.cpu_ns) as f64;
    (ns > 0.0).then_some(rounds / ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;
    use firsttouch_model::rows::{Progress, SampleState, SampledLoop};

    const TICK: u64 = 4_000_000;
    const ROUND_NS: u64 = 20;

    /// The ticks of two threads in entries of so many ticks of one loop, which is in its own code in so many of 100 ticks by chance.
    fn profile(entry_ticks: u64, own: u64, ticks: u64) -> Profile {
        let mut draws = Draws::new(own + entry_ticks);
        let mut profile = Profile::default();
        for thread in 0..2 {
            for tick in 0..ticks {
                let (number, at) = (tick / entry_ticks, tick % entry_ticks);
                let progress = Progress { value: (at * TICK + draws.below(1000)) / ROUND_NS, step: 1 };
                let around = SampledLoop { end: 0x10, entry: number, progress: Some(progress), left: None };
                profile.samples.push(TimerSample {
                    id: 0,
                    thread,
                    time_ns: tick * TICK,
                    cpu: 0,
                    cpu_ns: tick * TICK,
                    weight: 1.0,
                    site: None,
                    state: SampleState::Computing,
                    around: (draws.below(100) < own).then_some(around),
                    unknown: 0,
                    elsewhere: 0.0,
                });
            }
        }
        profile
    }

    fn part(profile: &Profile) -> Option<OwnPart> {
        let key = Loop::InProcess(1, 0x10);
        own_parts(profile, TICK as f64, |sample| sample.around.map(|_| key)).get(&key).copied()
    }

    /// Check the part of loops with calls, in entries of about the time between two samples in their own code and in longer ones, and that its error holds it.
    #[test]
    fn samples_between_two_show_the_part() {
        for (entry_ticks, own, ticks) in [(8, 12, 8000), (30, 10, 2000), (1000, 10, 1000), (1000, 50, 400)] {
            let found = part(&profile(entry_ticks, own, ticks)).expect("a part");
            let truth = own as f64 / 100.0;
            // Half a 95 % interval of the number of samples, which counts by itself.
            let of_samples = NORMAL * ((1.0 - truth) / (truth * 2.0 * ticks as f64)).sqrt();
            let error = 0.01 + found.error.hypot(of_samples);
            assert!((found.part / truth - 1.0).abs() <= 1.5 * error, "{entry_ticks} ticks, {truth}: {found:?}");
            assert!(found.error < 0.35, "{found:?}");
        }
    }

    /// Check that a loop that is entered again and again with the same registers, with other code between, shows nothing, and that lost samples do not either.
    #[test]
    fn entries_that_look_like_one_show_nothing() {
        let mut again = profile(1000, 50, 1000);
        let mut draws = Draws::new(7);
        for progress in again.samples.iter_mut().filter_map(|sample| sample.around.as_mut()?.progress.as_mut()) {
            progress.value = draws.below(1_000_000);
        }
        assert_eq!(part(&again), None);
        let mut lost = profile(1000, 50, 1000);
        lost.samples.iter_mut().for_each(|sample| sample.cpu_ns *= 2);
        assert_eq!(part(&lost), None);
    }

    /// Check that entries of one tick, and few samples, show nothing.
    #[test]
    fn too_little_shows_nothing() {
        assert_eq!(part(&profile(1000, 100, 200)), None, "it calls nothing");
        assert_eq!(part(&profile(1, 50, 1000)), None);
        assert_eq!(part(&profile(1000, 10, 8)), None);
    }
}
