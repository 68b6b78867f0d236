//! How long a round lasts and how often objects are drawn: decided from earlier rounds only.

use firsttouch_model::rows::Id;
use hashbrown::HashMap;

/// At most this part of one core goes into moving watchpoints, and this part while there are so many samples of registers in the last seconds.
const ARM_BUDGET: f64 = 0.01;
const SAMPLED_ARM_BUDGET: f64 = 0.005;
const SOME_SAMPLES: f64 = 50.0;
/// At most this part of the target's time goes into traps.
const TRAP_BUDGET: f64 = 0.01;
/// At most these parts of the target's time go into what armed watchpoints add to page faults and to waits.
const FAULT_BUDGET: f64 = 0.004;
const WAIT_BUDGET: f64 = 0.005;
/// After a burst of faults its load fades in this time; slower once half of the budget, and all of it, is used up, ns.
const FADES: [f64; 3] = [3e6, 2e8, 1e9];
/// If armed watchpoints add less than this to a fault, they may stay armed in bursts of faults, ns.
const CHEAP_FAULT_NS: f64 = 100.0;
const LEAST_DUTY: f64 = 0.004;
/// Part of the time in which watchpoints are armed once samples show the accesses: as a cross-check.
const CHECK_DUTY: f64 = 0.1;
/// Samples show the accesses if there are so many that show every address of a loop and its progress, and they are this part of all, in the last
/// seconds: older ones count less and less.
const ENOUGH_SAMPLES: f64 = 100.0;
const FORGET_NS: f64 = 2e9;
const RATED_SHARE: f64 = 0.8;
/// The cross-check needs so many hits first, or this time, or so much CPU time of moving watchpoints.
const ENOUGH_HITS: u64 = 300;
const CHECKED_NS: u64 = 4_000_000_000;
const CHECKED_MOVING_NS: f64 = 5e6;
/// Of a cross-check, moving watchpoints may take this part of one core. Each round moves them twice.
const CHECK_ARM_BUDGET: f64 = 0.0005;
const LONGEST_REST_NS: f64 = 1e9;
const SHORTEST_NS: f64 = 4e6;
const LONGEST_NS: f64 = 250e6;
/// Hits a window is to see on the memory that matters most.
const HITS_WANTED: f64 = 1.6;

/// What earlier windows on the objects of one group (allocated at one site) showed.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    windows: f64,
    held_ns: f64,
    accesses: f64,
    trap_ns: f64,
}

/// What armed watchpoints cost a program besides hits. On bare metal next to nothing. In a virtual machine every page fault and
/// every context switch may move the debug registers through the hypervisor. Measured at start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ArmedCost {
    /// ns a page fault takes longer.
    pub fault_ns: f64,
    /// ns a wait (a switch away and one back) takes longer.
    pub wait_ns: f64,
}

/// Learns from closed windows.
#[derive(Debug, Default)]
pub struct Pace {
    groups: HashMap<Id, History>,
    cost: ArmedCost,
    /// The part of the budgets for moving watchpoints and for traps that is this recorder's: less than 1 where ranks share a host.
    part: f64,
    /// (time, faults), and (time, waits), when the loads were last taken.
    observed: (u64, f64),
    observed_waits: (u64, f64),
    /// What watchpoints would cost by faults, and by waits, if they were always armed, in budgets.
    fault_load: f64,
    wait_load: f64,
    /// What faults cost while they were armed, CPU ns.
    spent_ns: f64,
    arm_ns: f64,
    moved_ns: u64,
    trapped_ns: f64,
    started_ns: u64,
    /// When samples were last taken, and their numbers then; and the numbers of the last seconds.
    sampled: (u64, [u64; 2]),
    recent: [f64; 2],
    /// Samples show the accesses.
    is_check: bool,
}

impl Pace {
    /// `recorders`: how many share the budgets.
    #[must_use]
    pub fn new(now_ns: u64, cost: ArmedCost, recorders: u32) -> Self {
        let part = 1.0 / f64::from(recorders.max(1));
        Self { started_ns: now_ns, cost, part, observed: (now_ns, 0.0), observed_waits: (now_ns, 0.0), ..Self::default() }
    }

    /// Takes the page faults so far, the number of CPUs that the program can be using, and whether watchpoints were armed.
    pub fn observe(&mut self, now_ns: u64, faults: f64, cpus: usize, armed: bool) {
        let (then, old) = self.observed;
        let passed = now_ns.saturating_sub(then) as f64;
        if passed < 1e6 {
            return;
        }
        let cost = (faults - old).max(0.0) * self.cost.fault_ns;
        self.spent_ns += if armed { cost } else { 0.0 };
        let load = cost / FAULT_BUDGET / (passed * cpus.max(1) as f64);
        let elapsed = now_ns.saturating_sub(self.started_ns) as f64 * cpus.max(1) as f64;
        let fade = match self.spent_ns / (FAULT_BUDGET * elapsed).max(1.0) {
            used if used < 0.5 => FADES[0],
            used if used < 1.0 => FADES[1],
            _ => FADES[2],
        };
        // Rises at once, falls slowly.
        let fade = (-passed / fade).exp();
        self.fault_load = load.max(self.fault_load * fade + load * (1.0 - fade));
        self.observed = (now_ns, faults);
    }

    /// Faults were not counted for a while: their load is unknown.
    pub fn skip(&mut self, now_ns: u64, faults: f64) {
        self.observed = (now_ns, faults);
    }

    /// Takes the waits so far. Must not be called more often than they are counted.
    pub fn observe_waits(&mut self, now_ns: u64, waits: f64, cpus: usize) {
        let (then, old) = self.observed_waits;
        let passed = now_ns.saturating_sub(then) as f64;
        if passed < 1e6 {
            return;
        }
        let load = (waits - old).max(0.0) * self.cost.wait_ns / WAIT_BUDGET / (passed * cpus.max(1) as f64);
        self.wait_load = if load > self.wait_load { load } else { 0.5 * (self.wait_load + load) };
        self.observed_waits = (now_ns, waits);
    }

    /// Takes the samples of registers so far, in code that computes and of them those in loops that they show completely, and the hits.
    pub fn observe_samples(&mut self, now_ns: u64, computing: u64, rated: u64, hits: u64) {
        let (then, before) = std::mem::replace(&mut self.sampled, (now_ns, [computing, rated]));
        let keep = (-(now_ns.saturating_sub(then) as f64) / FORGET_NS).exp();
        for (recent, (now, then)) in self.recent.iter_mut().zip([computing, rated].into_iter().zip(before)) {
            *recent = *recent * keep + now.saturating_sub(then) as f64;
        }
        let has_spent = self.moved_ns as f64 >= self.part * CHECKED_MOVING_NS || now_ns.saturating_sub(self.started_ns) >= CHECKED_NS;
        let is_checked = hits >= ENOUGH_HITS || has_spent;
        let [computing, rated] = self.recent;
        self.is_check = is_checked && rated >= ENOUGH_SAMPLES && rated >= RATED_SHARE * computing;
    }

    /// Samples show the accesses: watchpoints are a cross-check, and rest most of the time.
    #[must_use]
    pub fn is_check(&self) -> bool {
        self.is_check
    }

    /// Part of the time in which watchpoints may be armed.
    #[must_use]
    pub fn duty(&self) -> f64 {
        (1.0 / (self.fault_load + self.wait_load).max(1e-9)).clamp(LEAST_DUTY, 1.0)
    }

    /// Armed watchpoints make page faults so expensive that they must be disarmed at once in a burst of faults.
    #[must_use]
    pub fn disarms_in_bursts(&self) -> bool {
        self.cost.fault_ns > CHEAP_FAULT_NS
    }

    /// The shortest rest after `armed` ns that keeps within the budget for waits.
    #[must_use]
    pub fn wait_rest(&self, armed: f64) -> f64 {
        (armed * (self.wait_load.clamp(1.0, 1.0 / LEAST_DUTY) - 1.0)).min(LONGEST_REST_NS)
    }

    /// No burst of faults is going on.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.fault_load < 1.0
    }

    /// Divides a round of `round_ns`: time armed, then time at rest.
    #[must_use]
    pub fn divide(&self, round_ns: f64) -> (f64, f64) {
        let duty = self.duty();
        let armed = (round_ns * duty.max(0.1)).max(SHORTEST_NS).min(round_ns.max(SHORTEST_NS));
        let rest = armed * (1.0 / duty - 1.0);
        (armed, rest.max(self.check_rest(armed)).min(LONGEST_REST_NS))
    }

    /// The shortest rest after `armed` ns for a cross-check.
    #[must_use]
    pub fn check_rest(&self, armed: f64) -> f64 {
        if !self.is_check {
            return 0.0;
        }
        let affordable = 2.0 * self.arm_ns / (self.part * CHECK_ARM_BUDGET) - armed;
        (armed * (1.0 / CHECK_DUTY - 1.0)).max(affordable).min(LONGEST_REST_NS)
    }

    /// A window on an object of `group` closed: accesses estimated in `held_ns`, time its traps took.
    pub fn learn(&mut self, group: Id, held_ns: u64, accesses: f64, trap_ns: f64) {
        // Old rounds fade, so that phases of the program are followed.
        let h = self.groups.entry(group).or_default();
        let keep = if h.windows > 64.0 { 0.98 } else { 1.0 };
        h.windows = h.windows * keep + 1.0;
        h.held_ns = h.held_ns * keep + held_ns as f64;
        h.accesses = h.accesses * keep + accesses;
        h.trap_ns = h.trap_ns * keep + trap_ns;
        self.trapped_ns += trap_ns;
    }

    pub fn forget(&mut self, group: Id) {
        self.groups.remove(&group);
    }

    /// Time that traps and more expensive page faults took from the program so far, ns.
    #[must_use]
    pub fn cost_ns(&self) -> u64 {
        (self.trapped_ns + self.spent_ns) as u64
    }

    /// Moving all watchpoints took `ns`: the rounds get longer.
    pub fn armed(&mut self, ns: u64) {
        self.moved_ns += ns;
        self.arm_ns = if self.arm_ns == 0.0 { ns as f64 } else { 0.8 * self.arm_ns + 0.2 * ns as f64 };
    }

    /// Accesses a ns and word of a group; `None` before enough windows.
    fn word_rate(&self, group: Id) -> Option<f64> {
        self.groups.get(&group).filter(|h| h.windows >= 4.0 && h.held_ns > 0.0).map(|h| h.accesses / h.held_ns)
    }

    /// Drawing weight of all objects of a group, `bytes` together. It grows slowly with size (a small hot object matters as much as a
    /// large one) and with the share of accesses that they seem to have, and falls with the time that their traps take. A thousand
    /// rows of an array weigh as much as the array would in one piece.
    #[must_use]
    pub fn weight(&self, group: Id, bytes: u64, all_accesses_per_ns: f64, round_ns: f64) -> f64 {
        let share = match self.word_rate(group) {
            Some(rate) if all_accesses_per_ns > 0.0 => (rate * bytes as f64 / 8.0 / all_accesses_per_ns).min(1.0),
            _ => 0.5,
        };
        let trap = self.groups.get(&group).map_or(0.0, |h| h.trap_ns / h.windows);
        let overload = trap / (self.part * TRAP_BUDGET * round_ns).max(1.0);
        (bytes as f64).powf(0.25) * (0.3 + share.sqrt()) / (1.0 + overload).sqrt()
    }

    /// Sum over groups of words x rate: all accesses a ns. `alive`: the live bytes of each group.
    #[must_use]
    pub fn all_accesses(&self, alive: &HashMap<Id, u64>) -> f64 {
        alive.iter().filter_map(|(&id, &bytes)| Some(self.word_rate(id)? * bytes as f64 / 8.0)).sum()
    }

    /// Length of the next round. `alive`: the live bytes of each group.
    #[must_use]
    pub fn round_ns(&self, now_ns: u64, alive: &HashMap<Id, u64>) -> f64 {
        let elapsed = now_ns.saturating_sub(self.started_ns) as f64;
        let budget = if self.recent[0] < SOME_SAMPLES { ARM_BUDGET } else { SAMPLED_ARM_BUDGET };
        let least = (self.arm_ns / (self.part * budget)).clamp(SHORTEST_NS, LONGEST_NS);
        let most = (elapsed / 16.0).clamp(least, LONGEST_NS.max(least));
        // The memory with the most traffic by bytes: its placement matters most.
        let reference = alive
            .iter()
            .filter_map(|(&id, &bytes)| Some((self.word_rate(id)?, bytes)))
            .max_by(|a, b| (a.0.sqrt() * a.1 as f64).total_cmp(&(b.0.sqrt() * b.1 as f64)));
        let wanted = match reference {
            Some((rate, _)) if rate > 0.0 => HITS_WANTED / rate,
            _ => most,
        };
        wanted.clamp(least, most)
    }

    /// Hit limit a thread and window: smaller while traps took more than their budget.
    #[must_use]
    pub fn hit_limit(&self, now_ns: u64, cpus: usize) -> u32 {
        let elapsed = now_ns.saturating_sub(self.started_ns) as f64 * cpus.max(1) as f64;
        let spent = self.trapped_ns / (self.part * TRAP_BUDGET * elapsed).max(1.0);
        match spent {
            s if s < 0.5 => 32,
            s if s < 1.0 => 20,
            _ => 12,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the bounds: never shorter than what moving the watchpoints costs allows, never longer than a quarter second.
    #[test]
    fn rounds_stay_within_bounds() {
        let mut pace = Pace::new(0, ArmedCost::default(), 1);
        assert!(pace.round_ns(1, &HashMap::new()) >= SHORTEST_NS);
        pace.armed(300_000);
        assert!(pace.round_ns(10_000_000_000, &HashMap::new()) >= 30e6);
        for _ in 0..10 {
            pace.learn(1, 30_000_000, 0.0, 0.0);
            pace.learn(2, 30_000_000, 3e6, 2e6);
        }
        let objects = HashMap::from([(1, 1u64 << 30), (2, 1 << 16)]);
        let length = pace.round_ns(10_000_000_000, &objects);
        assert!((30e6..=250e6).contains(&length), "{length}");
        let all = pace.all_accesses(&objects);
        assert!(pace.weight(1, 1 << 30, all, length) > 0.0 && pace.weight(2, 1 << 16, all, length) > 0.0);
        assert_eq!(pace.hit_limit(10_000_000_000, 2), 32);
    }

    /// Check that watchpoints rest in a burst of page faults, and are armed again after it.
    #[test]
    fn storms_are_waited_out() {
        let mut pace = Pace::new(0, ArmedCost { fault_ns: 1000.0, wait_ns: 4000.0 }, 1);
        assert_eq!(pace.divide(25e6), (25e6, 0.0));
        pace.observe(10_000_000, 5_000.0, 1, false);
        let (armed, rest) = pace.divide(25e6);
        assert!(armed / (armed + rest) < 0.03 && !pace.is_calm(), "{armed} {rest}");
        for step in 2..20 {
            pace.observe(step * 10_000_000, 5_000.0, 1, false);
        }
        assert!(pace.is_calm() && pace.duty() == 1.0);
        // Once the budget is spent, the load fades slowly.
        for step in 20..40 {
            pace.observe(step * 10_000_000, 5_000.0 * step as f64, 1, true);
        }
        for step in 40..60 {
            pace.observe(step * 10_000_000, 200_000.0, 1, true);
        }
        assert!(!pace.is_calm());
    }

    /// Check that the load of waits counts over the time in which they were counted.
    #[test]
    fn waits_make_the_watchpoints_rest() {
        let mut pace = Pace::new(0, ArmedCost { fault_ns: 0.0, wait_ns: 5000.0 }, 1);
        for step in 1..10 {
            pace.observe_waits(step * 100_000_000, 300.0 * step as f64, 1);
        }
        // 3,000 waits a second cost 1.5 %: three times the budget.
        assert!((pace.duty() - 1.0 / 3.0).abs() < 0.01, "{}", pace.duty());
        assert!((pace.wait_rest(1e6) - 2e6).abs() < 2e4);
        assert!(!pace.disarms_in_bursts());
    }

    /// Check that the first part of a cross-check ends when it has cost enough, however few hits it had.
    #[test]
    fn a_check_is_bounded() {
        let mut pace = Pace::new(0, ArmedCost::default(), 1);
        for tenth in 1..=10 {
            pace.observe_samples(tenth * 100_000_000, tenth * 50, tenth * 50, 3);
        }
        assert!(!pace.is_check());
        for _ in 0..17 {
            pace.armed(300_000);
        }
        pace.observe_samples(1_100_000_000, 550, 550, 3);
        assert!(pace.is_check());
    }

    /// Check that watchpoints rest most of the time once they have checked the samples, and only while samples show the accesses.
    #[test]
    fn a_check_rests() {
        let mut pace = Pace::new(0, ArmedCost::default(), 1);
        let (mut now, mut computing, mut rated) = (0, 0, 0);
        // Two threads, 250 samples a second each, for some tenths of a second.
        let mut run = |pace: &mut Pace, tenths: u64, rated_of_50: u64, hits: u64| {
            for _ in 0..tenths {
                (now, computing, rated) = (now + 100_000_000, computing + 50, rated + rated_of_50);
                pace.observe_samples(now, computing, rated, hits);
            }
            pace.is_check()
        };
        pace.armed(300_000);
        assert_eq!(pace.round_ns(1, &HashMap::new()), 30e6);
        assert!(!run(&mut pace, 10, 50, 10), "not checked yet");
        assert_eq!(pace.round_ns(1, &HashMap::new()), 60e6, "samples show accesses, too");
        assert!(run(&mut pace, 1, 50, 300));
        assert_eq!(pace.divide(25e6), (25e6, LONGEST_REST_NS), "0.05 % of a core for two moves of 0.3 ms would be a rest of 1.2 s");
        let cheap = Pace { is_check: true, arm_ns: 30_000.0, ..Pace::new(0, ArmedCost::default(), 1) };
        assert!((cheap.divide(25e6).1 - 225e6).abs() < 1.0, "a tenth of the time");
        assert!((cheap.divide(4e6).1 - 116e6).abs() < 1.0, "0.05 % of a core");
        assert_eq!(cheap.divide(250e6).1, LONGEST_REST_NS);
        assert!(run(&mut pace, 300, 50, 300));
        assert!(!run(&mut pace, 10, 0, 300), "a phase whose loops cannot be rated, after a long one of others");
        assert_eq!(pace.divide(25e6), (25e6, 0.0));
        assert!(run(&mut pace, 100, 45, 10), "checked by now");
        assert!(!run(&mut pace, 100, 35, 300));
    }

    /// Check that the recorders of four ranks on a host together move watchpoints no more often than the recorder of one program.
    #[test]
    fn ranks_divide_the_budgets() {
        let (mut alone, mut shared) = (Pace::new(0, ArmedCost::default(), 1), Pace::new(0, ArmedCost::default(), 4));
        for pace in [&mut alone, &mut shared] {
            pace.armed(100_000);
            pace.trapped_ns = 5e6;
        }
        let round = |pace: &Pace| pace.round_ns(1, &HashMap::new());
        assert_eq!((round(&alone), round(&shared)), (10e6, 40e6));
        assert_eq!((alone.hit_limit(1_000_000_000, 1), shared.hit_limit(1_000_000_000, 1)), (20, 12));
        (alone.is_check, shared.is_check) = (true, true);
        assert!(shared.check_rest(40e6) > alone.check_rest(40e6));
    }
}
