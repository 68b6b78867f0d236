//! Checks how often each finding is correct, over many seeds, program speeds and sampling periods. Well-placed programs must never have a
//! finding. A defect may be missed only if there are few hits, and must not be reported as another defect.

use crate::simulated::*;

/// Repetitions of each program. Fewer without optimisation, because each then takes seven times as long.
const SEEDS: u64 = if cfg!(debug_assertions) { 2 } else { 10 };

struct Score {
    right: u64,
    silent: u64,
    wrong: Vec<(u64, String)>,
}

fn score(touch: &Who, user: &Who, sweep: u64, period: u64, page: u64, expected: &str) -> Score {
    let mut score = Score { right: 0, silent: 0, wrong: Vec::new() };
    for seed in 0..SEEDS {
        let mut thing = Thing::new("A", 128, touch.clone(), user.clone());
        (thing.sweep, thing.page) = (sweep, page);
        let mut other = Thing::new("B", 64, Who::Block(0, 8), Who::Block(0, 8));
        other.sweep = sweep;
        let mut world = World::new(8, vec![thing, other]);
        world.period = period;
        let analysis = judge(&world, seed * 7919 + 3, [2, 4, 8, 3][(seed % 4) as usize]);
        // With one record per 32 pages, the borders of 64-page chunks are unknown.
        let borders_known = period == 1 || matches!(touch, Who::Block(..));
        if expected.is_empty() && page == 4096 && borders_known {
            assert!(analysis.remote_fraction.unwrap() < 0.05, "{touch:?} 1/{period}: {:?}", analysis.remote_fraction);
        }
        let found = found(&analysis);
        match found.as_slice() {
            [] => score.silent += 1,
            [(name, finding)] if name == "A" && finding == expected => score.right += 1,
            others => score.wrong.push((seed, format!("{others:?}"))),
        }
    }
    score
}

/// Check defects and well-placed programs at three speeds (hits in about one window of 10, 30 and 80) and three sampling periods.
#[test]
fn findings_hold_over_seeds() {
    let block = Who::Block(0, 8);
    let cyclic = Who::Cyclic(0, 8, 256 << 10);
    let dynamic = Who::Dynamic(0, 8, 65_536);
    let cases: [(&str, Who, &Who, u64); 11] = [
        ("serial-first-touch", Who::One(0), &block, 4096),
        ("serial-first-touch", Who::One(3), &cyclic, 4096),
        ("mismatched-partition", cyclic.clone(), &block, 4096),
        ("mismatched-partition", Who::Block(0, 4), &block, 4096),
        ("no-stable-partition", Who::One(0), &dynamic, 4096),
        ("no-stable-partition", block.clone(), &dynamic, 4096),
        ("shared-read", Who::One(0), &Who::All(0, 8), 4096),
        ("huge-page-sharing", cyclic.clone(), &cyclic, 2 * MIB),
        ("", block.clone(), &block, 4096),
        ("", cyclic.clone(), &cyclic, 4096),
        ("", block.clone(), &block, 2 * MIB),
    ];
    // Distribute the cases over the processors.
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let shares: Vec<_> = (0..processors)
            .map(|first| {
                let of_it = cases.iter().skip(first).step_by(processors);
                scope.spawn(move || of_it.for_each(|(expected, touch, user, page)| check(expected, touch, user, *page)))
            })
            .collect();
        shares.into_iter().for_each(|share| share.join().unwrap());
    });
}

fn check(expected: &str, touch: &Who, user: &Who, page: u64) {
    for sweep in [97_310_000, 311_700_000, 803_900_000] {
        for period in [1, 32] {
            if page > 4096 && period > 1 {
                continue;
            }
            let s = score(touch, user, sweep, period, page, expected);
            println!(
                "{expected:22} {touch:?} -> {user:?} sweep {} ms 1/{period}: right {} silent {} wrong {:?}",
                sweep / MS,
                s.right,
                s.silent,
                s.wrong
            );
            if expected.is_empty() {
                assert_eq!(s.silent, SEEDS, "{touch:?}: {:?}", s.wrong);
            } else {
                assert!(s.wrong.is_empty(), "{expected} {touch:?}: {:?}", s.wrong);
                let least = if sweep < 200 * MS {
                    SEEDS
                } else if sweep < 500 * MS {
                    SEEDS * 4 / 5
                } else {
                    0
                };
                assert!(s.right >= least, "{expected} {touch:?} {sweep}: right {} silent {}", s.right, s.silent);
            }
        }
    }
}
