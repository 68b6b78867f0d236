//! Max-min fair sharing by progressive filling: all rates rise together; whoever meets a limit stays there, the rest go on.

use super::demand::Demand;

/// A resource is full, a rate at its cap, within this part of it.
const CLOSE: f64 = 1e-12;

/// The rate of each thread, bytes a second. No resource carries more than its capacity.
pub fn rates(demands: &[&Demand], capacities: &[f64]) -> Vec<f64> {
    let mut rates = vec![f64::NAN; demands.len()];
    // Of each resource in use: what frozen threads take, what all rising ones take for each byte a second, and who they are.
    let mut frozen = vec![0.0; capacities.len()];
    let mut rising = vec![0.0; capacities.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); capacities.len()];
    for (thread, demand) in demands.iter().enumerate() {
        for &(resource, share) in &demand.uses {
            rising[resource] += share;
            users[resource].push(thread);
        }
    }
    let mut in_use: Vec<usize> = (0..capacities.len()).filter(|resource| !users[*resource].is_empty()).collect();
    let mut by_cap: Vec<usize> = (0..demands.len()).collect();
    by_cap.sort_by(|a, b| demands[*a].cap.total_cmp(&demands[*b].cap));
    let mut next = 0;
    let mut level = 0.0;
    let mut left = demands.len();
    while left > 0 {
        while next < by_cap.len() && !rates[by_cap[next]].is_nan() {
            next += 1;
        }
        let cap = by_cap.get(next).map_or(f64::INFINITY, |thread| demands[*thread].cap);
        let full_at = |resource: usize| ((capacities[resource] - frozen[resource]) / rising[resource]).max(0.0);
        level = in_use.iter().map(|resource| full_at(*resource)).fold(cap, f64::min).max(level);
        let mut stopped: Vec<usize> = by_cap[next..].iter().copied().take_while(|thread| demands[*thread].cap <= level).collect();
        for &resource in in_use.iter().filter(|resource| full_at(**resource) <= level * (1.0 + CLOSE)) {
            stopped.extend(&users[resource]);
        }
        for thread in stopped {
            if rates[thread].is_nan() {
                rates[thread] = level;
                left -= 1;
                for &(resource, share) in &demands[thread].uses {
                    frozen[resource] += share * level;
                    rising[resource] -= share;
                }
            }
        }
        // What rounding leaves of a sum is no thread.
        in_use.retain(|resource| users[*resource].iter().any(|thread| rates[*thread].is_nan()));
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(cap: f64, uses: &[(usize, f64)]) -> Demand {
        Demand { cap, uses: uses.to_vec() }
    }

    fn shared(demands: &[Demand], capacities: &[f64]) -> Vec<f64> {
        rates(&demands.iter().collect::<Vec<_>>(), capacities)
    }

    /// Check the text-book cases: an equal share, a small one that leaves room, one long way against two short ones.
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

    /// Check on many machines and teams that nothing is overfull, that each rate is held by something, and that more of any
    /// capacity never lowers the least rate.
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
