//! The classifier on partitions known by construction, over seeds, sample sizes and disturbances.

mod ran_apart;

use super::*;

struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ (mixed >> 29)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        ((self.next() * n as f64) as usize).min(n - 1)
    }
}

const RANGE: u64 = 64 << 20;

/// `n` units at random positions; `workers_at` gives the workers at a position.
fn sample(seed: u64, n: usize, mut workers_at: impl FnMut(u64, &mut Random) -> Vec<usize>) -> Sample {
    let mut random = Random(seed);
    let mut weights: BTreeMap<usize, f64> = BTreeMap::new();
    let units = (0..n as u64).map(|round| {
        let position = (random.next() * RANGE as f64) as u64 & !7;
        let seen = workers_at(position, &mut random);
        let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
        for worker in &seen {
            *counts.entry(*worker).or_default() += 1;
            *weights.entry(*worker).or_default() += 1.0;
        }
        let shares = counts.iter().map(|(&worker, &count)| (worker, count as f64 / seen.len() as f64)).collect();
        Unit { position, shares, counts: counts.into_iter().collect(), rate: seen.len() as f64, cut: false, round, running: Vec::new() }
    });
    let units = units.collect();
    Sample { units, weights, stride: RANGE, rows: 1, cpus: 8, sight: Sight::All }
}

/// The number of 20 seeds that are recognised as `kind`.
fn rate(kind: PartitionKind, make: impl Fn(u64) -> Sample) -> usize {
    (0..20).filter(|&seed| classify(&make(seed * 7 + 1)).kind == kind).count()
}

fn block(position: u64, workers: u64) -> usize {
    (position * workers / RANGE) as usize
}

/// Check in which order blocks follow each other: a few threads that were numbered otherwise make no difference, and a scrambled order is neither.
#[test]
fn orders_of_blocks() {
    let order = |owners: &[usize]| classify(&sample(3, 400, |x, _| vec![owners[block(x, owners.len() as u64)]])).order();
    assert_eq!(order(&[0, 1, 2, 3]), Order::Ascending);
    assert_eq!(order(&[0, 1, 2, 3, 4, 6, 5, 7]), Order::Ascending);
    assert_eq!(order(&[3, 2, 1, 0]), Order::Descending);
    assert_eq!(order(&[7, 6, 5, 4, 3, 1, 2, 0]), Order::Descending);
    assert_eq!(order(&[0, 3, 6, 1, 4, 7, 2, 5]), Order::Mixed);
    assert_eq!(order(&[2, 3, 0, 1]), Order::Mixed);
    assert_eq!(Partition::shared().order(), Order::Ascending, "no blocks");
}

/// Check that arrays side by side that two threads divide alike are no two blocks, although two blocks explain five of six units: of fields of which one
/// gets twice the accesses, and of arrays of which one is twice as long. A plan has the parts of both.
#[test]
fn arrays_side_by_side() {
    let heavy = |x: u64| {
        [0, 1, 0, 1]
            [((x as f64 / RANGE as f64 * 1.5).min(1.0).mul_add(2.0, (x as f64 / RANGE as f64 - 2.0 / 3.0).max(0.0) * 6.0) as usize).min(3)]
    };
    for n in [100, 400, 2000] {
        assert!(rate(PartitionKind::BlockCyclic, |s| sample(s, n, |x, _| vec![heavy(x)])) >= 19, "{n} units of arrays");
        let foreign = |x: u64, r: &mut Random| vec![if r.next() < 0.03 { 0 } else { heavy(x) }];
        assert!(rate(PartitionKind::BlockCyclic, |s| sample(s, n, foreign)) >= 19, "{n} units of arrays, some by another thread");
    }
    let found = classify(&sample(3, 400, |x, _| vec![heavy(x)]));
    let [second, third] = [RANGE / 3, RANGE * 5 / 6].map(|at| found.owner(at + RANGE / 30).unwrap());
    assert_eq!((second, third, found.owner(RANGE * 3 / 4).unwrap()), (1, 1, 0));
    let thinner = |s: u64| {
        let mut fields = sample(s, 900, |x, _| vec![(x * 4 / RANGE) as usize % 2]);
        let mut at = 0;
        fields.units.retain(|unit| {
            at += 1;
            unit.position < RANGE / 2 || at % 2 == 0
        });
        fields
    };
    assert!(rate(PartitionKind::BlockCyclic, thinner) == 20);
    let fields = thinner(5);
    let seen: Vec<(u64, usize)> = fields.units.iter().map(|unit| (unit.position, unit.main_worker())).collect();
    let team = [0, 1].into();
    let parts = classify(&fields).parts(&Divided { extent: RANGE, rows: 1, seen: &seen, team: &team }).unwrap();
    assert_eq!((parts.period_bytes, parts.ends, parts.workers), (None, vec![0.25, 0.5, 0.75, 1.0], vec![0, 1, 0, 1]));
    // A small second run of one of several workers leaves them blocks, and their order.
    let descending = classify(&sample(3, 2000, |x, _| vec![if x > RANGE / 50 * 49 { 3 } else { 3 - block(x, 4) }]));
    assert_eq!((descending.kind, descending.order()), (PartitionKind::Block, Order::Descending));
    // With equal use no two blocks are found: a period is, which so few turns do not show exactly.
    let even = sample(4, 900, |x, _| vec![(x * 4 / RANGE) as usize % 2]);
    let seen: Vec<(u64, usize)> = even.units.iter().map(|unit| (unit.position, unit.main_worker())).collect();
    let parts = classify(&even).parts(&Divided { extent: RANGE, rows: 1, seen: &seen, team: &team }).unwrap();
    assert_eq!((parts.period_bytes, parts.ends, parts.workers), (Some(RANGE as f64 / 2.0), vec![0.5, 1.0], vec![0, 1]));
}

/// Check that blocks are recognised with few and many units, equal or not, with halos and with a tenth of foreign accesses.
#[test]
fn blocks() {
    for (n, workers) in [(25, 2), (25, 4), (32, 8), (64, 16), (400, 8), (600, 64)] {
        assert!(rate(PartitionKind::Block, |s| sample(s, n, |x, _| vec![block(x, workers)])) >= 19, "{n} units, {workers} workers");
    }
    let triangular = |x: u64| ((x as f64 / RANGE as f64).sqrt() * 8.0) as usize;
    assert!(rate(PartitionKind::Block, |s| sample(s, 60, |x, _| vec![triangular(x)])) >= 19);
    let halo = |x: u64, r: &mut Random| vec![block(x, 8), block((x + RANGE / 200).min(RANGE - 1), 8), r.below(8).min(block(x, 8))];
    assert!(rate(PartitionKind::Block, |s| sample(s, 200, |x, r| halo(x, r)[..2].to_vec())) >= 19);
    let foreign = |x: u64, r: &mut Random| vec![if r.next() < 0.1 { 0 } else { block(x, 8) }];
    assert!(rate(PartitionKind::Block, |s| sample(s, 200, foreign)) >= 19);
    let permuted = |x: u64| [3, 7, 0, 5, 1, 6, 2, 4][block(x, 8)];
    assert!(rate(PartitionKind::Block, |s| sample(s, 64, |x, _| vec![permuted(x)])) >= 19);
}

/// Check halves that two groups of threads use two to one: no thread has a part for itself, but parts are not used alike. Parts that change hands are.
#[test]
fn leaning_use() {
    let two_to_one = |position: u64, random: &mut Random| {
        let own = block(position, 2);
        let group = if random.below(3) < 2 { own } else { 1 - own };
        vec![group * 4 + random.below(4)]
    };
    let found = |make: &dyn Fn(u64) -> Sample| (0..20).map(|seed| classify(&make(seed * 7 + 1))).collect::<Vec<_>>();
    let leaning = found(&|seed| sample(seed, 400, two_to_one));
    assert!(leaning.iter().all(|one| one.kind == PartitionKind::Irregular));
    assert!(leaning.iter().filter(|one| one.leans).count() >= 15, "{leaning:?}");
    let dealt = found(&|seed| sample(seed, 400, |_, random| vec![random.below(8)]));
    assert!(dealt.iter().all(|one| one.kind == PartitionKind::Irregular));
    assert!(dealt.iter().filter(|one| one.leans).count() <= 1, "{dealt:?}");
}

/// Check that chunks dealt out round-robin are recognised, from large to small ones.
#[test]
fn block_cyclic() {
    for (n, workers, chunk) in
        [(60, 4, 4u64 << 20), (36, 8, 65_536), (100, 2, 1 << 20), (200, 8, 8192), (400, 8, 100_000), (700, 64, 65_536)]
    {
        let at = |x: u64| (x / chunk % workers) as usize;
        let found = rate(PartitionKind::BlockCyclic, |s| sample(s, n, |x, _| vec![at(x)]));
        assert!(found >= 19, "{n} units, {workers} workers, chunk {chunk}: {found}");
    }
}

/// Check recorded first touches of chunks of eight pages, by two threads in turn: stretches page by page, and one page in 15 to 60 of the rest. Of a quarter
/// of the records, other periods explain nearly as much; all of them show the true one, 16 pages.
#[test]
fn chunks_by_records_of_several_densities() {
    let unit = |line: &str| {
        let (page, worker) = line.split_once(' ').expect("a page and a worker");
        let (position, worker) = (page.parse::<u64>().expect("a page") * 4096 + 2048, worker.parse().expect("a worker"));
        Unit { position, shares: vec![(worker, 1.0)], counts: vec![(worker, 1)], rate: 0.0, cut: false, round: 0, running: Vec::new() }
    };
    let units: Vec<Unit> = include_str!("tests/recorded/chunks_of_eight_pages.txt").lines().map(unit).collect();
    let weights = [(0, 1.0), (1, 1.0)].into();
    let found = classify(&Sample { units, weights, stride: 0, rows: 1, cpus: 1, sight: Sight::Only });
    assert_eq!(found.kind, PartitionKind::BlockCyclic);
    let Owners::Periodic(period, _) = &found.owners else { panic!("{found:?}") };
    assert!((period / 65_536.0 - 1.0).abs() < 0.001 && found.is_sure_period(), "{period}, kappa {}", found.kappa);
}

/// Check work by rows and by columns in turn: each thread has a half of the rows, and a half of each row. Half of the parts have two users, so no part is
/// one thread's.
#[test]
fn rows_and_columns() {
    for (n, row) in [(400, 32_768), (2000, 32_768), (2000, 8192)] {
        let used = |x: u64, r: &mut Random| vec![if r.below(2) == 0 { block(x, 2) } else { (x % row * 2 / row) as usize }];
        let found = rate(PartitionKind::Irregular, |s| sample(s, n, used));
        assert!(found >= if n < 1000 { 15 } else { 19 }, "{n} units, rows of {row}: {found}");
    }
}

/// Check that the owner found for a position is the true one.
#[test]
fn owners_are_right() {
    let chunk = 65_536u64;
    let at = |x: u64| (x / chunk % 8) as usize;
    let cyclic = classify(&sample(3, 400, |x, _| vec![at(x)]));
    let blocks = classify(&sample(3, 400, |x, _| vec![block(x, 8)]));
    let mut random = Random(9);
    let (mut right_cyclic, mut right_block) = (0, 0);
    for _ in 0..1000 {
        let x = (random.next() * RANGE as f64) as u64;
        right_cyclic += usize::from(cyclic.owner(x) == Some(at(x)));
        right_block += usize::from(blocks.owner(x) == Some(block(x, 8)));
    }
    assert!(right_cyclic > 950 && right_block > 950, "{right_cyclic} {right_block}");
}

/// Check that dynamic schedules (one worker per window, never the same) are irregular, and never recognised as a regular division.
#[test]
fn irregular() {
    for (n, workers) in [(25, 2), (30, 4), (60, 8), (100, 8), (1000, 8), (600, 64)] {
        let found = rate(PartitionKind::Irregular, |s| sample(s, n, |_, r| vec![r.below(workers)]));
        assert!(found >= 19, "{n} units, {workers} workers: {found}");
        // Several hits a window, all of one sweep.
        let found = rate(PartitionKind::Irregular, |s| sample(s, n, |_, r| vec![r.below(workers); 3]));
        assert!(found >= 19, "{n} units, {workers} workers, 3 hits: {found}");
    }
    // Windows that span three sweeps of a dynamic schedule.
    let found = rate(PartitionKind::Irregular, |s| sample(s, 100, |_, r| (0..3).map(|_| r.below(8)).collect()));
    assert!(found >= 19, "{found}");
}

/// Check that parts below a page are irregular, because nobody owns a page, with the period that shows that they have owners; in all sources, also
/// those that show one of several users. Use by chance, by blocks, or by all workers has no such period.
#[test]
fn parts_below_a_page() {
    let seeds = || (0..20).map(|seed| seed * 7 + 1);
    for (n, workers, row) in [(100, 2, 960_u64), (150, 4, 960), (400, 4, 112), (400, 8, 8), (800, 16, 400), (400, 4, 2040)] {
        let at = |x: u64| (x / row % workers) as usize;
        let found = |sight| {
            let make = |seed| Sample { sight, ..sample(seed, n, |x, _| vec![at(x)]) };
            seeds().filter(|seed| classify(&make(*seed)).fine == Some(row * workers)).count()
        };
        for sight in [Sight::All, Sight::One] {
            assert!(found(sight) >= 19, "{n} units, {workers} workers, rows of {row}, {sight:?}: {}", found(sight));
        }
        assert!(rate(PartitionKind::Irregular, |s| sample(s, n, |x, _| vec![at(x)])) >= 19);
    }
    // A second use of the whole object by one of the threads, such as a check of the result.
    let checked = |x: u64, r: &mut Random| vec![if r.next() < 0.1 { 0 } else { (x / 960 % 4) as usize }];
    assert!(seeds().filter(|seed| classify(&sample(*seed, 600, checked)).fine == Some(3840)).count() >= 19);
    for (n, workers) in [(25, 2), (60, 8), (400, 4), (2000, 4)] {
        let chance = seeds().filter(|seed| classify(&sample(*seed, n, |_, r| vec![r.below(workers)])).fine.is_some()).count();
        assert_eq!(chance, 0, "{n} units, {workers} workers");
    }
}

/// Check that use of the whole object by all workers is shared: full sweeps, also if a window sees only a few threads.
#[test]
fn shared() {
    for (n, workers) in [(25, 2), (25, 8), (200, 8), (100, 64)] {
        let found = rate(PartitionKind::Shared, |s| sample(s, n, |_, _| (0..workers).collect()));
        assert!(found >= 19, "{n} units, {workers} workers: {found}");
        // Windows that span several sweeps, in which some workers have passed once more; each pass reads and writes.
        let sweeps = |r: &mut Random| {
            let passes = 1 + r.below(6);
            let ahead = r.below(workers);
            (0..workers).flat_map(|worker| vec![worker; 2 * (passes + usize::from(worker < ahead))]).collect()
        };
        let found = rate(PartitionKind::Shared, |s| sample(s, n, |_, r| sweeps(r)));
        assert!(found >= 19, "{n} units, {workers} workers, sweeps: {found}");
    }
    // Threads that run at different times: a window sees some of them.
    let some = |r: &mut Random| {
        let mut seen: Vec<usize> = (0..4).filter(|_| r.next() < 0.5).collect();
        seen.extend(seen.is_empty().then(|| r.below(4)));
        seen
    };
    assert!(rate(PartitionKind::Shared, |s| sample(s, 120, |_, r| some(r))) >= 18);
}

/// Check that addresses dealt out by chance are irregular, however many sweeps a window spans and however many hits a pass makes.
#[test]
fn dealt_out_is_not_shared() {
    // Debug builds, which `make check` uses, leave out the large cases.
    let cases = [(25, 2), (25, 4), (60, 8), (250, 4), (400, 64)];
    for (n, workers) in cases.into_iter().filter(|(n, _)| *n < 100 || !cfg!(debug_assertions)) {
        for hits in [1, 2, 3] {
            for sweeps in [2, 40] {
                let dealt = |r: &mut Random| {
                    let sweeps = 1 + r.below(2 * sweeps - 1);
                    (0..sweeps).flat_map(|_| vec![r.below(workers); hits]).collect()
                };
                let found = rate(PartitionKind::Shared, |s| sample(s, n, |_, r| dealt(r)));
                assert!(found <= 1, "{n} units, {workers} workers, {sweeps} sweeps, {hits} hits a pass: {found} of 20 shared");
            }
        }
    }
}

/// Units in rounds of `together`: `seen(position, random, round's random)` gives the workers; the round's random numbers are the same for
/// all units of a round.
fn in_rounds(seed: u64, n: usize, together: u64, seen: impl Fn(u64, &mut Random, &mut Random) -> Vec<usize>) -> Sample {
    let mut unit = 0;
    let mut sample = sample(seed, n, |x, r| {
        let workers = seen(x, r, &mut Random(seed.wrapping_mul(1000) + unit / together));
        unit += 1;
        workers
    });
    sample.units.iter_mut().for_each(|u| u.round /= together);
    sample
}

/// Check that workers which run unevenly but pass all addresses alike share them, and that addresses dealt out within rounds are not
/// shared, for any chunk size, and are known to be dealt out.
#[test]
fn rounds_tell_how_addresses_are_shared() {
    for (n, workers, together) in [(80, 2, 2), (80, 4, 2), (200, 8, 4)] {
        let in_full = |x: u64, r: &mut Random, round: &mut Random| {
            let ran: Vec<usize> = (0..workers).map(|_| round.below(12)).collect();
            let seen: Vec<usize> = (0..workers).flat_map(|worker| vec![worker; ran[worker] + r.below(2)]).collect();
            if seen.is_empty() { vec![x as usize % workers] } else { seen }
        };
        let found = rate(PartitionKind::Shared, |s| in_rounds(s, n, together, in_full));
        assert!(found >= 19, "{n} units, {workers} workers: {found} of 20 shared");
        for chunks in [RANGE / 4096, 4 * workers as u64] {
            let dealt = |x: u64, _: &mut Random, round: &mut Random| {
                let chunk = x / (RANGE / chunks);
                let seed = (round.next() * 1e12) as u64;
                (0..6).map(|sweep| Random(seed + chunk * 977 + sweep).below(workers)).collect()
            };
            let shared = rate(PartitionKind::Shared, |s| in_rounds(s, n, together, dealt));
            let known = (0..20).filter(|&s| classify(&in_rounds(s, n, together, dealt)).dealt_out).count();
            assert!(shared == 0 && known >= 15, "{n} units, {workers} workers, {chunks} chunks: {shared} shared, {known} dealt out");
        }
    }
}

/// Check that counts which the hit limit made equal do not count as even, but that very hot addresses used by all workers are shared.
#[test]
fn cut_windows() {
    let cut = |sample: Sample| Sample { units: sample.units.into_iter().map(|u| Unit { cut: true, ..u }).collect(), ..sample };
    let two_of_four = |r: &mut Random| [vec![r.below(2); 32], vec![2 + r.below(2); 32]].concat();
    assert_eq!(rate(PartitionKind::Shared, |s| cut(sample(s, 100, |_, r| two_of_four(r)))), 0);
    assert_eq!(rate(PartitionKind::Shared, |s| cut(sample(s, 100, |_, _| (0..4).flat_map(|worker| vec![worker; 32]).collect()))), 20);
}

/// Windows of four workers that the limit of 12 hits cuts off. `passes_until(random)` is the number of sweeps in which a worker makes 12
/// passes.
fn limited(seed: u64, passes_until: impl Fn(&mut Random) -> f64) -> Sample {
    let all = in_rounds(seed, 160, 4, |_, _, _| (0..4).flat_map(|worker| vec![worker; 12]).collect());
    let mut random = Random(seed);
    let unit = |unit: Unit| {
        let rates: Vec<f64> = (0..4).map(|_| 12.0 / passes_until(&mut random)).collect();
        let rate = rates.iter().sum::<f64>();
        Unit { cut: true, rate, shares: rates.iter().map(|one| one / rate).enumerate().collect(), ..unit }
    };
    Sample { cpus: 2, units: all.units.into_iter().map(unit).collect(), ..all }
}

/// Check that hot addresses which are dealt out are not shared, though each window shows all workers, and that those used in full are, with
/// rates that differ by a few per cent.
#[test]
fn hot_addresses_dealt_out() {
    // Of two threads that run at a time, either may pass.
    let dealt = |random: &mut Random| {
        let (mut sweeps, mut passes) = (0.0, 0);
        while passes < 12 {
            (sweeps, passes) = (sweeps + 1.0, passes + usize::from(random.next() < 0.5));
        }
        sweeps
    };
    assert_eq!(rate(PartitionKind::Shared, |seed| limited(seed, dealt)), 0);
    assert_eq!(rate(PartitionKind::Shared, |seed| limited(seed, |random| 12.0 * (0.94 + 0.12 * random.next()))), 20);
}

/// Check that one thread counts as single with up to 3 % of accesses by others, and that few units are unknown.
#[test]
fn single_and_unknown() {
    assert_eq!(rate(PartitionKind::Single, |s| sample(s, 40, |_, _| vec![3])), 20);
    assert_eq!(rate(PartitionKind::Unknown, |s| sample(s, 15, |x, _| vec![block(x, 4)])), 20);
    assert_eq!(classify(&Sample::default()).kind, PartitionKind::Unknown);
}

/// Check that rows assigned to threads permanently are stable, in any order.
#[test]
fn rows_with_owners() {
    let owner = |x: u64| (((x >> 20) * 2_654_435_761) >> 7) as usize % 8;
    let rows = |s| Sample { stride: 1 << 20, rows: 64, ..sample(s, 300, |x, _| vec![owner(x)]) };
    assert!(rate(PartitionKind::BlockCyclic, rows) >= 19);
    let round_robin = |s| Sample { stride: 1 << 16, rows: 1024, ..sample(s, 60, |x, _| vec![(x >> 16) as usize % 8]) };
    assert!(rate(PartitionKind::BlockCyclic, round_robin) >= 19);
}

/// Hinting faults of 18 scans: each catches every 31st page from a start page that differs from scan to scan; `worker_at` gives the worker
/// of each.
fn scans(seed: u64, worker_at: impl Fn(u64, u64) -> usize) -> Sample {
    let mut random = Random(seed);
    let mut all = sample(seed, 0, |_, _| Vec::new());
    for scan in 0..18u64 {
        let first = scan * 3 + random.below(3) as u64;
        for page in (first % 31..3072).step_by(31) {
            let worker = worker_at(page, scan);
            *all.weights.entry(worker).or_default() += 1.0;
            all.units.push(Unit {
                position: page * 4096,
                shares: vec![(worker, 1.0)],
                counts: vec![(worker, 1)],
                rate: 0.0,
                cut: false,
                round: scan * 4,
                running: Vec::new(),
            });
        }
    }
    Sample { stride: 3072 * 4096, sight: Sight::One, ..all }
}

/// Check that threads which use the whole object in turns own no part of it, though each scan shows one of them at a regular distance of
/// pages, and that owners of chunks are recognised in the same scans.
#[test]
fn turns_are_no_chunks() {
    let in_turns = |seed: u64| scans(seed, |_, scan| (scan / 2 % 2) as usize);
    // The remaining seeds have turns that match the regular distance in both halves.
    let found = rate(PartitionKind::Irregular, in_turns);
    assert!(found >= 17, "{found}");
    for chunk in [16, 64, 300] {
        let owned = rate(PartitionKind::BlockCyclic, |seed| scans(seed, |page, _| (page / chunk % 4) as usize));
        assert!(owned >= 19, "chunks of {chunk} pages: {owned}");
    }
}

/// Check that of three arrays from one place in the code, each divided alike, each is divided by itself, not all three as one.
#[test]
fn arrays_divided_alike() {
    let stride = RANGE / 3 / 4096 * 4096;
    let worker = |x: u64| ((x % stride) * 4 / stride) as usize;
    let right = (0..20).filter(|&seed| {
        let arrays = Sample { stride, rows: 3, ..sample(seed * 7 + 1, 300, |x, _| vec![worker(x)]) };
        let seen: Vec<(u64, usize)> = arrays.units.iter().map(|unit| (unit.position, worker(unit.position))).collect();
        let team = (0..4).collect();
        let parts = classify(&arrays).parts(&parts::Divided { extent: 3 * stride, rows: 3, seen: &seen, team: &team });
        parts.is_some_and(|parts| {
            parts.workers == [0, 1, 2, 3] && parts.period_bytes.is_some_and(|period| (period / stride as f64 - 1.0).abs() < 0.001)
        })
    });
    let right = right.count();
    assert!(right >= 19, "{right} of 20");
}

/// Check what a dynamic schedule leaves of the kinds that samples seem to show: few samples show owners of rows by chance, and what is only read need not be read in
/// full; but many samples, and windows that show full use, hold.
#[test]
fn dynamic_schedules_have_no_owners() {
    let of = |kind, assumed, units| Partition { assumed, ..Partition::new(kind, Owners::Nobody) }.of_dynamic_loop(units);
    for (kind, assumed, units, expected, changes) in [
        (PartitionKind::BlockCyclic, false, 43, PartitionKind::Irregular, true),
        (PartitionKind::BlockCyclic, false, 400, PartitionKind::BlockCyclic, false),
        (PartitionKind::Shared, true, 139, PartitionKind::Irregular, false),
        (PartitionKind::Shared, false, 139, PartitionKind::Shared, false),
        (PartitionKind::Irregular, false, 139, PartitionKind::Irregular, true),
        (PartitionKind::Block, false, 43, PartitionKind::Block, false),
    ] {
        let found = of(kind, assumed, units);
        assert_eq!((found.kind, found.changes), (expected, changes), "{kind:?} {assumed} {units}");
    }
}

/// Check that of threads whose samples follow each other in turn all are looked at alike, whatever part of the samples is.
#[test]
fn a_part_of_the_samples_is_of_all_threads() {
    assert_eq!(thinned(0..2000, 2000).count(), 2000);
    for count in [2001, 4000, 6000, 7808, 16_000, 200_000] {
        for threads in [2, 3, 4, 6, 8] {
            let mut by_thread = vec![0; threads];
            thinned(0..count, count).for_each(|at| by_thread[at % threads] += 1);
            let all: usize = by_thread.iter().sum();
            assert!((900..=2000).contains(&all), "{all} of {count}");
            let even = all as f64 / threads as f64;
            assert!(
                by_thread.iter().all(|own| (*own as f64 - even).abs() < 0.3 * even),
                "{count} samples of {threads} threads: {by_thread:?}"
            );
        }
    }
}
