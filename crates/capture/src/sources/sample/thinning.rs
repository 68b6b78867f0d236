//! Samples are left out where they would cost too much, or make the profile of a long run too large.
//!
//! Time is divided into windows; each is sampled with the probability 1 / 2^n, and its samples stand for 2^n. Pairs of successive
//! samples remain. A window is short, because a program may do the same all the time in it, and drawn, because a program may be in step.

use crate::options::LiveEffort;
use crate::random::Random;

/// Samples taken without thinning for size; after each further so many, half of the time is left out.
const FULL: u64 = 100_000;
const HALVED: u64 = 50_000;
const WINDOW_NS: u64 = 20_000_000;
/// How often the part of the time that is sampled changes, windows.
const CHANGES: u64 = 5;
/// firsttouch spends at most this part of one CPU on samples, apart from a time at the start, when code is decoded for the first time.
const BUDGET: f64 = 0.02;
const START_NS: u64 = 50_000_000;
/// The start of tuning is longer; samples may take this part of one CPU in it.
const TUNING_START_NS: u64 = 1_000_000_000;
const TUNING_START_BUDGET: f64 = 0.5;
/// What a sample costs is the mean over about so many of the last ones: the first ones of a loop cost many times what the later ones do, and
/// must not be held against these.
const RECENT: f64 = 20.0;
/// More samples are taken again if they would take at most this part of the budget.
const SURELY: f64 = 0.8;
/// The user is told if more than this part of the samples is left out.
const LEFT_OUT_NAMED: f64 = 0.2;
/// At least one window of 2^4 is sampled whatever it costs, so that a sample's cost is measured anew each 0.3 s.
const MOST_BY_COST: u32 = 4;

#[derive(Debug, Default)]
pub struct Thinning {
    /// Of a live recording. Old samples are removed: their number is no reason to leave any out.
    live: Option<LiveEffort>,
    taken: u64,
    /// CPU time in all, and samples taken since it was last added to.
    spent_ns: u64,
    unpaid: u64,
    /// Mean CPU time of the last samples, ns; samples offered per ns of late.
    cost_ns: f64,
    rate: f64,
    /// When the samples that give the rate began, and their number.
    since_ns: Option<u64>,
    recent: u64,
    /// Halvings because of the cost.
    by_cost: u32,
    /// Samples that were offered, and those that were left out because of the cost.
    offered: u64,
    left_out: u64,
}

impl Thinning {
    /// Leaves no samples out for their number: for live recordings.
    pub fn unlimited(&mut self, effort: LiveEffort) {
        self.live = Some(effort);
    }

    fn budget(&self) -> f64 {
        self.live.map_or(BUDGET, LiveEffort::share)
    }

    /// At the start more, but not so much that samples wait for each other: late ones are of no use to tuning.
    fn budget_now(&self) -> f64 {
        match self.live {
            Some(LiveEffort::Tuning) if self.spent_ns <= TUNING_START_NS => TUNING_START_BUDGET,
            _ if self.spent_ns <= START_NS => f64::INFINITY,
            _ => self.budget(),
        }
    }

    /// The number of samples that one at this time stands for; `None` if it is left out.
    pub fn weight(&mut self, time_ns: u64) -> Option<f64> {
        let window = time_ns / WINDOW_NS;
        let since = *self.since_ns.get_or_insert(time_ns);
        if time_ns.saturating_sub(since) >= CHANGES * WINDOW_NS {
            self.rate = self.recent as f64 / (time_ns - since) as f64;
            (self.since_ns, self.recent) = (Some(time_ns), 0);
            self.adapt();
        }
        self.recent += 1;
        let by_size =
            if self.live.is_some() || self.taken < FULL { 0 } else { 1 + u32::try_from((self.taken - FULL) / HALVED).unwrap_or(u32::MAX) };
        let one_of = 1u64 << by_size.max(self.by_cost).min(20);
        self.offered += 1;
        if !Random::new(window).word().is_multiple_of(one_of) {
            self.left_out += u64::from(self.by_cost > by_size);
            return None;
        }
        self.taken += 1;
        self.unpaid += 1;
        Some(one_of as f64)
    }

    /// Which part of the samples was left out because of their cost, if that is much.
    pub fn sentence(&self) -> Option<String> {
        let part = self.left_out as f64 / self.offered.max(1) as f64;
        (part > LEFT_OUT_NAMED).then(|| {
            format!(
                "{:.0} % of the samples were left out, because all of them would take more than {:.0} % of a CPU; the others count for them",
                100.0 * part,
                100.0 * self.budget()
            )
        })
    }

    /// The samples since the call before took firsttouch so long.
    pub fn spend(&mut self, ns: u64) {
        let samples = std::mem::take(&mut self.unpaid) as f64;
        self.spent_ns += ns;
        if samples > 0.0 {
            let kept = (1.0 - 1.0 / RECENT).powf(samples);
            let kept = if self.cost_ns > 0.0 { kept } else { 0.0 };
            self.cost_ns = kept * self.cost_ns + (1.0 - kept) * ns as f64 / samples;
        }
    }

    /// Takes as many samples as the budget allows, by what the last ones cost and how many there are.
    fn adapt(&mut self) {
        let all = self.rate * self.cost_ns;
        let at = |halvings: u32| all / f64::from(1u32 << halvings);
        let budget = self.budget_now();
        if at(self.by_cost) > budget {
            self.by_cost = (self.by_cost + 1).min(MOST_BY_COST);
        } else if self.by_cost > 0 && at(self.by_cost - 1) < SURELY * budget {
            self.by_cost -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that weights add up to all samples, within the windows that a change falls into, while few of them are taken.
    #[test]
    fn weights_stand_for_all() {
        let mut thinning = Thinning::default();
        let all = 4_000_000u64;
        let taken: Vec<f64> = (0..all).filter_map(|i| thinning.weight(i * 2_000_000)).collect();
        assert!(taken.len() < 400_000, "{}", taken.len());
        let sum: f64 = taken.iter().sum();
        assert!((sum / all as f64 - 1.0).abs() < 0.05, "{sum}");
    }

    /// Check that a program which does something else every 0.3 s is sampled in all of its states alike, where one sample in 32 is taken.
    #[test]
    fn programs_are_not_in_step() {
        let mut thinning = Thinning { taken: FULL + 4 * HALVED, ..Thinning::default() };
        let mut of_state = [0.0; 2];
        for i in 0..50_000_u64 {
            let time = i * 4_000_000;
            of_state[(time / 300_000_000 % 2) as usize] += thinning.weight(time).unwrap_or(0.0);
        }
        let part = of_state[0] / (of_state[0] + of_state[1]);
        assert!((part - 0.5).abs() < 0.1, "{of_state:?}");
    }

    /// Check that expensive samples keep within the budget, and still stand for all.
    #[test]
    fn cost_is_bounded() {
        let mut thinning = Thinning::default();
        let (tick, cost, all) = (1_000_000u64, 300_000u64, 100_000u64);
        let mut sum = 0.0;
        let mut spent = 0;
        for i in 0..all {
            if let Some(weight) = thinning.weight(i * tick) {
                sum += weight;
                spent += cost;
                thinning.spend(cost);
            }
        }
        assert!((spent as f64) < 1.5 * BUDGET * (all * tick) as f64, "{spent}");
        assert!((sum / all as f64 - 1.0).abs() < 0.2, "{sum}");
        assert!(thinning.sentence().is_some_and(|sentence| sentence.starts_with("9") && sentence.contains("2 % of a CPU")));
        assert_eq!(Thinning::default().sentence(), None);
    }

    /// Check that tuning takes all samples at its start, whatever they cost, and a view does not; and that tuning keeps its budget afterwards.
    #[test]
    fn tuning_begins_with_all_samples() {
        let run = |effort: LiveEffort| {
            let mut thinning = Thinning::default();
            thinning.unlimited(effort);
            let (tick_ns, cost_ns, all) = (10_000_000u64, 1_000_000u64, 20_000u64);
            let taken: Vec<u64> = (0..all)
                .filter(|i| {
                    let is_taken = thinning.weight(i * tick_ns).is_some();
                    thinning.spend(u64::from(is_taken) * cost_ns);
                    is_taken
                })
                .collect();
            let first = taken.iter().filter(|i| **i < 500).count();
            (first, (taken.len() as u64 * cost_ns) as f64 / (all * tick_ns) as f64)
        };
        let ((first, share), (first_of_view, share_of_view)) = (run(LiveEffort::Tuning), run(LiveEffort::View));
        assert_eq!(first, 500);
        // One second at the start, and the budget of 200 s.
        assert!(share < 1.0 / 200.0 + LiveEffort::Tuning.share(), "{share}");
        assert!(first_of_view < 200 && share_of_view < share / 2.0, "{first_of_view} {share_of_view}");
    }

    /// Check that samples which were expensive at the start, when their code was decoded, are not held against the later ones.
    #[test]
    fn expensive_starts_are_forgotten() {
        let mut thinning = Thinning::default();
        let mut late = 0;
        for i in 0..20_000_u64 {
            if thinning.weight(i * 1_000_000).is_some() {
                let is_late = i >= 2_000;
                late += u64::from(is_late);
                thinning.spend(if is_late { 10_000 } else { 2_000_000 });
            }
        }
        assert!(late > 15_000, "{late}");
    }
}
