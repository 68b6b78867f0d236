//! Segments, budget and worth by themselves.

use crate::pattern::Pattern;
use crate::worth::{Distances, Rate, earns, expected_s};
use crate::{Budget, ObjectUses, Target, Use, segments, taken_over};
use std::collections::BTreeMap;

const PAGE: u64 = 4096;

/// An object of `pages` pages with accesses at equal distances; `node` of each page.
fn object(pages: u64, accesses: u64, node: impl Fn(u64, u64) -> u32) -> ObjectUses {
    let uses = (0..accesses).map(|number| {
        let page = number * pages / accesses;
        Use { time_ns: number, address: page * PAGE, thread: 0, node: node(page, number), home: None, cpu_ns: 1.0 }
    });
    ObjectUses { id: 1, start: 0, bytes: pages * PAGE, grain_bytes: PAGE, uses: uses.collect(), ..ObjectUses::default() }
}

fn found(mut object: ObjectUses) -> Vec<(u64, u64, Target)> {
    segments(&mut object).into_iter().map(|part| (part.start / PAGE, part.end / PAGE, part.target)).collect()
}

/// Check one part, blocks, blocks in turn and shared use, with strays.
#[test]
fn partitions_are_found() {
    let node = Target::Node;
    assert_eq!(found(object(1000, 500, |_, _| 3)), [(0, 1000, node(3))]);
    let blocks = found(object(1000, 500, |page, _| (page / 500) as u32));
    assert_eq!(blocks.iter().map(|part| part.2.clone()).collect::<Vec<_>>(), [node(0), node(1)]);
    assert!(blocks[0].1.abs_diff(500) <= 2 && blocks[0].1 == blocks[1].0 && blocks[1].1 == 1000, "{blocks:?}");
    // Three arrays of four blocks in one mapping, with one stray in 50.
    let arrays =
        found(object(1200, 600, |page, number| if number % 50 == 7 { 3 - (page / 100 % 4) as u32 } else { (page / 100 % 4) as u32 }));
    assert_eq!(arrays.iter().map(|part| part.2.clone()).collect::<Vec<_>>(), (0..12).map(|part| node(part % 4)).collect::<Vec<_>>());
    assert!(arrays.iter().zip(1u64..).all(|(part, number)| part.1.abs_diff(100 * number) <= 2), "{arrays:?}");
    assert_eq!(found(object(1000, 500, |_, number| (number % 2) as u32)), [(0, 1000, Target::Several(vec![0, 1]))]);
    // The first half is shared, the second one is node 1's.
    let mixed = found(object(1000, 500, |page, number| if page < 500 { (number % 2) as u32 } else { 1 }));
    assert_eq!(mixed.iter().map(|part| part.2.clone()).collect::<Vec<_>>(), [Target::Several(vec![0, 1]), node(1)]);
    assert!(mixed[0].1.abs_diff(500) <= 10, "{mixed:?}");
    assert_eq!(found(object(1000, 7, |_, _| 0)), []);
    // Rarer strays than are expected: still one node's.
    assert_eq!(found(object(1000, 1500, |_, number| u32::from(number % 500 != 7))), [(0, 1000, node(1))]);
    // Each of forty nodes makes fewer accesses than strays do.
    let all = Target::Several((0..40).collect());
    assert_eq!(found(object(1000, 4000, |_, number| (number % 40) as u32)), [(0, 1000, all)]);
}

/// Check that parts of huge pages do not overlap, and hold the whole object, where each sample shows several accesses side by side.
#[test]
fn accesses_side_by_side() {
    for grain in [PAGE, 512 * PAGE] {
        let pages = 64 * 512;
        let mut seed = 7_u64;
        let mut random = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        let uses = (0..300_u64).flat_map(|number| {
            let page = random() % pages;
            let node = u32::from(page >= pages / 2);
            (0..8).map(move |word| Use { time_ns: number, address: page * PAGE + word * 64, thread: 0, node, home: Some(0), cpu_ns: 1.0 })
        });
        let mut object =
            ObjectUses { id: 1, start: 0, bytes: pages * PAGE, grain_bytes: grain, uses: uses.collect(), ..ObjectUses::default() };
        let parts = segments(&mut object);
        assert!(parts.windows(2).all(|two| two[0].end <= two[1].start), "{parts:?}");
        let of_one: u64 = parts.iter().filter(|part| part.target == Target::Node(1)).map(|part| part.sure.end - part.sure.start).sum();
        let half = pages * PAGE / 2;
        assert!(of_one <= half + 4 * 512 * PAGE && of_one + 4 * 512 * PAGE >= half, "{of_one} of {half}: {parts:?}");
    }
}

/// Check that a part which one node took over is told from one that several nodes use, with strays; and when it was taken over.
#[test]
fn parts_are_taken_over() {
    let when = |count: u64, node: &dyn Fn(u64) -> u32| taken_over(&object(1000, count, |_, number| node(number)).uses);
    assert_eq!(when(140, &|number| u32::from(number >= 100)), Some(100));
    assert!(when(140, &|number| u32::from(number >= 100 || number % 40 == 7)).is_some_and(|time| (100..103).contains(&time)));
    assert_eq!(when(30, &|number| u32::from(number >= 20)), Some(20));
    // Shared, one node's, and taken over by so few accesses that they may be strays.
    assert_eq!(
        [when(200, &|number| u32::from(number % 3 == 0)), when(200, &|_| 1), when(105, &|number| u32::from(number >= 100))],
        [None; 3]
    );
    let mut state = 1u64;
    let drawn: Vec<u32> = (0..400)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::from(state >> 40 & 3 == 0)
        })
        .collect();
    assert!((20..400).all(|count| when(count, &|number| drawn[number as usize]).is_none()));
}

/// Check that memory far from all accesses is in no part, and that borders are those of huge pages.
#[test]
fn borders_are_near_accesses() {
    let mut dense = object(1000, 500, |_, _| 1);
    dense.bytes = 100_000 * PAGE;
    dense.uses.iter_mut().for_each(|one| one.address += 50_000 * PAGE);
    let parts = found(dense);
    assert!(parts[0].0 > 45_000 && parts[0].1 < 56_000, "{parts:?}");
    // A heap: an array in its lower part, and a few accesses at its end, by the threads of the array's second half.
    let mut heap = object(1000, 500, |page, _| (page / 500) as u32);
    heap.bytes = 10_000 * PAGE;
    let other = Use { node: 1, ..heap.uses[0] };
    heap.uses.extend((9990..10_000).map(|page| Use { time_ns: page, address: page * PAGE, ..other }));
    let parts = found(heap);
    let most = |part: &(u64, u64, Target), from: u64, to: u64| part.0.abs_diff(from) <= 20 && part.1.abs_diff(to) <= 20;
    assert!(most(&parts[0], 0, 500) && most(&parts[1], 500, 1000) && most(&parts[2], 9990, 10_000), "{parts:?}");
    assert_eq!(parts.len(), 3);
    let mut huge = object(4096, 400, |page, _| (page / 2048) as u32);
    huge.grain_bytes = 512 * PAGE;
    let ranges: Vec<(u64, u64)> = found(huge).into_iter().map(|part| (part.0, part.1)).collect();
    assert_eq!(ranges, [(0, 2048), (2048, 4096)]);
}

/// Check that the budget holds over any time, and that a unit larger than it still moves, but then nothing for as long as it should take.
#[test]
fn budgets_hold() {
    let mut budget = Budget::new(10e6);
    let mut moved = 0;
    for turn in 0..2000u64 {
        let allowed = budget.allowed(turn * 1_000_000, PAGE);
        assert!(allowed <= 1_000_000 && allowed.is_multiple_of(PAGE));
        budget.spend(allowed);
        moved += allowed;
    }
    assert!((20_000_000 - 1_000_000..=21_000_000).contains(&moved), "{moved}");
    let mut slow = Budget::new(1e6);
    let huge = 2 << 20;
    let times: Vec<u64> = (0..100u64)
        .filter(|turn| {
            let allowed = slow.allowed(turn * 100_000_000, huge);
            slow.spend(allowed);
            allowed == huge
        })
        .collect();
    // In 10 s, 10 MB.
    assert!((4..=5).contains(&times.len()), "{times:?}");
}

/// Check the gain of each distance, what is expected of the future, and the margin, which grows with what was undone.
#[test]
fn moves_earn_their_cost() {
    let distances = Distances(BTreeMap::from([((0, 1), 20), ((0, 2), 10)]));
    assert_eq!([(0, 0), (0, 1)].map(|(thread, page)| distances.saved(thread, page)), [0.0, 0.5]);
    // A distance of 10, which only a node to itself can have, or one that the table lacks.
    assert!([(0, 2), (1, 0)].iter().all(|(thread, page)| (distances.saved(*thread, *page) - 11.0 / 21.0).abs() < 1e-9));
    assert_eq!(
        [None, Some(10.0)].map(|usual| [3.0, 6.0, 12.0, 300.0].map(|age| expected_s(age, usual, 0))),
        [[3.0, 6.0, 12.0, 60.0], [4.0, 0.0, 0.0, 60.0]]
    );
    assert_eq!([0, 1, 2, 99].map(|undone| expected_s(2.0, Some(10.0), undone)), [6.0, 4.0, 0.0, 0.0]);
    assert!(earns(0.5, 10.0, 2.4, 0) && !earns(0.5, 10.0, 2.6, 0));
    assert!(earns(0.5, 10.0, 1.2, 1) && !earns(0.5, 10.0, 1.3, 1) && !earns(0.5, 10.0, 1e-3, 99));
    let mut rate = Rate::default();
    assert!((rate.cost_s((1u64 << 30) as f64) - 1.0).abs() < 1e-9);
    rate.measured(1 << 10, 5.0);
    (0..40).for_each(|_| rate.measured(1 << 30, 4.0));
    assert!((rate.cost_s((1u64 << 30) as f64) - 4.0).abs() < 0.01);
}

/// Check that a change of partition is noticed, and how long the one before lasted.
#[test]
fn changes_are_noticed() {
    let uses = |from: u64, second: u32| -> Vec<Use> {
        (0..40)
            .map(|number| Use {
                time_ns: from + number * 10_000_000,
                address: number * PAGE,
                thread: 0,
                node: if number < 20 { 1 - second } else { second },
                home: None,
                cpu_ns: 1.0,
            })
            .collect()
    };
    let mut pattern = Pattern::default();
    let mut seen = uses(1_000_000_000, 1);
    assert!(!pattern.changed(&seen));
    pattern.set_parts(segments(&mut ObjectUses {
        id: 1,
        bytes: 40 * PAGE,
        grain_bytes: PAGE,
        uses: seen.clone(),
        ..ObjectUses::default()
    }));
    pattern.moved();
    seen.extend(uses(4_000_000_000, 1));
    assert!(!pattern.changed(&seen) && pattern.undone == 0);
    seen.extend(uses(5_000_000_000, 0));
    assert!(pattern.changed(&seen));
    assert_eq!((pattern.undone, pattern.changes()), (1, 1));
    assert!((pattern.usual_s().unwrap() - 3.39).abs() < 0.01);
    assert_eq!(seen.iter().filter(|one| pattern.is_present(one)).count(), 40);
}
