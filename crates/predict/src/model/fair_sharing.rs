//! Max-min fair sharing by progressive filling: all rates rise together; a thread that reaches a limit keeps its rate, and the others
//! continue.
//!
//! The sums over all threads' demands on each resource are kept from one call to the next, so that a thread that begins or ends costs only
//! as much as it uses. A round stops all threads whose cap lies below the level at which the next resource is full (stopping them can only
//! raise that level), or else all threads that use that resource. A round costs as much as the stopped threads use; the last round costs
//! nothing.

use super::demand::Demand;

/// Relative tolerance for a full resource, or a rate at its cap.
const CLOSE: f64 = 1e-12;
/// After this many subtractions, the sums are computed anew, because rounding errors accumulate.
const SUBTRACTIONS: usize = 256;

/// Threads that share resources.
pub struct Filling {
    demands: Vec<Option<Demand>>,
    /// For each resource: the sum of what all working threads use of it per byte they move, and the number of these threads.
    total: Vec<f64>,
    users: Vec<u32>,
    /// What each resource would carry if only caps limited the threads, bytes per second; and the written part of it.
    asked: Vec<f64>,
    written: Vec<f64>,
    subtracted: usize,
    /// The state of one call, kept to reuse its memory.
    round: Round,
}

#[derive(Default)]
struct Round {
    rising: Vec<f64>,
    users: Vec<u32>,
    frozen: Vec<f64>,
    is_full: Vec<bool>,
    /// Resources that could become full.
    scarce: Vec<usize>,
    threads: Vec<usize>,
}

impl Filling {
    /// `threads` idle threads on `resources` resources.
    pub fn new(threads: usize, resources: usize) -> Self {
        let nothing = || vec![0.0; resources];
        Self {
            demands: vec![None; threads],
            total: nothing(),
            users: vec![0; resources],
            asked: nothing(),
            written: nothing(),
            subtracted: 0,
            round: Round::default(),
        }
    }

    /// Changes a thread's demand: it begins, goes on to another stretch, or ends (`None`).
    pub fn set(&mut self, thread: usize, demand: Option<Demand>) {
        if let Some(before) = self.demands[thread].take() {
            self.subtracted += 1;
            self.add(&before, -1.0);
        }
        if let Some(demand) = demand {
            self.add(&demand, 1.0);
            self.demands[thread] = Some(demand);
        }
        if self.subtracted >= SUBTRACTIONS {
            self.subtracted = 0;
            for sums in [&mut self.total, &mut self.asked, &mut self.written] {
                sums.fill(0.0);
            }
            self.users.fill(0);
            let demands = std::mem::take(&mut self.demands);
            demands.iter().flatten().for_each(|demand| self.add(demand, 1.0));
            self.demands = demands;
        }
    }

    fn add(&mut self, demand: &Demand, sign: f64) {
        for &(resource, share) in &demand.uses {
            let users = &mut self.users[resource];
            *users = if sign > 0.0 { *users + 1 } else { users.saturating_sub(1) };
            // Without users, what is left of a sum is a rounding error.
            let keep = if *users == 0 { 0.0 } else { 1.0 };
            let asked = sign * share * demand.cap;
            self.total[resource] = keep * (self.total[resource] + sign * share);
            self.asked[resource] = keep * (self.asked[resource] + asked);
            self.written[resource] = keep * (self.written[resource] + asked * demand.write_share);
        }
    }

    pub fn demand(&self, thread: usize) -> Option<&Demand> {
        self.demands[thread].as_ref()
    }

    /// What each resource would carry if only caps limited the threads, bytes per second; and the written part of it.
    pub fn offered(&self) -> (&[f64], &[f64]) {
        (&self.asked, &self.written)
    }

    /// Writes the rate of each working thread in bytes per second to `rates`. No resource carries more than its capacity.
    pub fn rates(&mut self, capacities: &[f64], rates: &mut [f64]) {
        let Self { demands, total, users, asked, round, .. } = self;
        round.begin(total, users, capacities, asked);
        round.threads.clear();
        round.threads.extend((0..demands.len()).filter(|thread| demands[*thread].is_some()));
        let mut level = 0.0_f64;
        while !round.threads.is_empty() {
            level = round.next_full(capacities).max(level);
            let cap = |thread: usize| demands[thread].as_ref().map_or(0.0, |demand| demand.cap);
            // If no scarce resource is left, all threads run at their caps.
            let capped = level.is_infinite() || round.threads.iter().any(|thread| cap(*thread) <= level);
            if !capped {
                round.fill(capacities, level);
            }
            let stops = |round: &Round, thread: usize| match &demands[thread] {
                Some(demand) if !capped => round.uses_full(demand),
                _ => level.is_infinite() || cap(thread) <= level,
            };
            let before = round.threads.len();
            let (stopped, going): (Vec<usize>, Vec<usize>) = round.threads.iter().partition(|thread| stops(round, **thread));
            for &thread in &stopped {
                rates[thread] = if capped { cap(thread) } else { level };
            }
            debug_assert!(going.len() < before, "a round stops someone");
            if going.len() == before {
                going.iter().for_each(|thread| rates[*thread] = level.min(cap(*thread)));
                return;
            }
            round.threads = going;
            if !round.threads.is_empty() {
                let stopped = stopped.into_iter().filter_map(|thread| Some((demands[thread].as_ref()?, rates[thread])));
                stopped.for_each(|(demand, rate)| round.stop(demand, rate));
            }
        }
    }
}

impl Round {
    fn begin(&mut self, total: &[f64], users: &[u32], capacities: &[f64], asked: &[f64]) {
        self.rising.clear();
        self.rising.extend_from_slice(total);
        self.users.clear();
        self.users.extend_from_slice(users);
        self.frozen.clear();
        self.frozen.resize(total.len(), 0.0);
        self.is_full.clear();
        self.is_full.resize(total.len(), false);
        self.scarce.clear();
        self.scarce
            .extend((0..total.len()).filter(|resource| users[*resource] > 0 && asked[*resource] > capacities[*resource] * (1.0 - 1e-9)));
    }

    fn full_at(&self, capacities: &[f64], resource: usize) -> f64 {
        ((capacities[resource] - self.frozen[resource]) / self.rising[resource]).max(0.0)
    }

    /// The level (a rate in bytes per second) at which the next resource is full.
    fn next_full(&self, capacities: &[f64]) -> f64 {
        let used = self.scarce.iter().filter(|resource| self.users[**resource] > 0);
        used.map(|resource| self.full_at(capacities, *resource)).fold(f64::INFINITY, f64::min)
    }

    /// Marks the resources that are full at this level.
    fn fill(&mut self, capacities: &[f64], level: f64) {
        for index in 0..self.scarce.len() {
            let resource = self.scarce[index];
            self.is_full[resource] = self.users[resource] > 0 && self.full_at(capacities, resource) <= level * (1.0 + CLOSE);
        }
    }

    fn uses_full(&self, demand: &Demand) -> bool {
        demand.uses.iter().any(|(resource, _)| self.is_full[*resource])
    }

    /// Fixes the rate of a thread.
    fn stop(&mut self, demand: &Demand, rate: f64) {
        for &(resource, share) in &demand.uses {
            self.frozen[resource] += share * rate;
            self.users[resource] -= 1;
            // Without users, what is left of a sum is a rounding error.
            self.rising[resource] = if self.users[resource] == 0 { 0.0 } else { self.rising[resource] - share };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(cap: f64, uses: &[(usize, f64)]) -> Demand {
        Demand { cap, write_share: 0.0, uses: uses.to_vec() }
    }

    fn shared(demands: &[Demand], capacities: &[f64]) -> Vec<f64> {
        let mut filling = Filling::new(demands.len(), capacities.len());
        demands.iter().enumerate().for_each(|(thread, demand)| filling.set(thread, Some(demand.clone())));
        let mut rates = vec![0.0; demands.len()];
        filling.rates(capacities, &mut rates);
        rates
    }

    /// Check the textbook cases: equal shares, a small demand that leaves room, one long route against two short ones.
    #[test]
    fn shares_are_max_min_fair() {
        let all = |cap| demand(cap, &[(0, 1.0)]);
        assert_eq!(shared(&[all(9.0), all(9.0)], &[10.0]), [5.0, 5.0]);
        assert_eq!(shared(&[all(2.0), all(9.0)], &[10.0]), [2.0, 8.0]);
        assert_eq!(shared(&[all(2.0), all(3.0)], &[10.0]), [2.0, 3.0]);
        let parking = [demand(99.0, &[(0, 1.0), (1, 1.0)]), demand(99.0, &[(0, 1.0)]), demand(99.0, &[(1, 1.0)])];
        assert_eq!(shared(&parking, &[1.0, 10.0]), [0.5, 0.5, 9.5]);
    }

    /// Check that shares of bytes count: a thread with half its bytes elsewhere takes half of its rate here.
    #[test]
    fn mixes_are_coupled() {
        let mixed = [demand(99.0, &[(0, 0.5), (1, 0.5)]), demand(99.0, &[(0, 1.0)])];
        let rates = shared(&mixed, &[9.0, 100.0]);
        assert!((rates[0] - 6.0).abs() < 1e-9 && (rates[1] - 6.0).abs() < 1e-9, "{rates:?}");
    }

    /// Check on many machines and teams that no resource is overfull, that something limits each rate, and that more of any capacity never
    /// lowers the least rate.
    #[test]
    fn every_rate_is_held_by_something() {
        let mut state = 7_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..300 {
            let capacities: Vec<f64> = (0..6).map(|_| 1.0 + 9.0 * random()).collect();
            let demands: Vec<Demand> = (0..12)
                .map(|_| {
                    let uses: Vec<(usize, f64)> =
                        (0..6).filter_map(|resource| (random() < 0.4).then_some((resource, 0.1 + random()))).collect();
                    demand(0.2 + 4.0 * random(), &uses)
                })
                .collect();
            let rates = shared(&demands, &capacities);
            let carried = |resource: usize| -> f64 {
                let of = |(demand, rate): (&Demand, &f64)| {
                    demand.uses.iter().filter(|(at, _)| *at == resource).map(|(_, share)| share * rate).sum::<f64>()
                };
                demands.iter().zip(&rates).map(of).sum()
            };
            assert!((0..6).all(|resource| carried(resource) <= capacities[resource] * (1.0 + 1e-9)));
            for (demand, rate) in demands.iter().zip(&rates) {
                let full = demand.uses.iter().any(|(resource, _)| carried(*resource) >= capacities[*resource] * (1.0 - 1e-9));
                assert!(full || *rate >= demand.cap * (1.0 - 1e-9), "nothing holds {rate} of {demand:?}");
            }
            let least = |rates: &[f64]| rates.iter().copied().fold(f64::INFINITY, f64::min);
            for wider in 0..6 {
                let mut more = capacities.clone();
                more[wider] *= 1.0 + 3.0 * random();
                assert!(least(&shared(&demands, &more)) >= least(&rates) * (1.0 - 1e-9));
            }
        }
    }
}
