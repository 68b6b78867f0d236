//! Measures the time to analyse a profile with a million rows. Run by hand:
//! `cargo test --release -p firsttouch-analysis -- --ignored --nocapture million_rows`.

use crate::recorded_machine::{faults, host, recorded};
use crate::simulated::*;
use firsttouch_analysis::analyse;
use firsttouch_model::TouchCause;
use firsttouch_model::rows::*;
use std::time::Instant;

fn rows(profile: &Profile) -> usize {
    profile.windows.len() + profile.accesses.len() + profile.first_touches.len() + profile.pages.len() + profile.objects.len()
}

fn things() -> Vec<Thing> {
    let uses = [Who::Block(0, 8), Who::Cyclic(0, 8, 256 << 10), Who::All(0, 8), Who::Dynamic(0, 8, 65_536)];
    let thing = |i: usize| {
        let touch = if i.is_multiple_of(3) { Who::One(0) } else { Who::Block(0, 8) };
        let mut thing = Thing::new(["A", "B", "C", "D"][i % 4], 32, touch, uses[i % 4].clone());
        thing.sweep = 3_011_000;
        thing
    };
    (0..40).map(thing).collect()
}

fn measure(label: &str, profile: &Profile) {
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        let analysis = analyse(profile, &host(), &FakeSources(TouchCause::Loop));
        times.push(start.elapsed().as_secs_f64() * 1e3);
        assert!(!analysis.objects.is_empty());
    }
    times.sort_by(f64::total_cmp);
    println!("{label:24} {:9} rows: {:7.0} ms (median of 3)", rows(profile), times[1]);
}

/// Windows, first touches, both with hinting faults, and memory that is freed and allocated again.
#[test]
#[ignore = "a measurement"]
fn million_rows() {
    let mut world = World::new(8, things());
    (world.seconds, world.round_ns) = (100, 1_000_000);
    let mut all = recorded(&world, 3);
    measure("windows and touches", &all);
    for scan in 1..20 {
        faults(&mut all, &world, 1, scan * S, &Who::Block(0, 8), |_| {});
    }
    measure("with hinting faults", &all);
    let lost = Lost { source: "touch".into(), reason: "ring".into(), count: 1 };
    let mut answered = all.clone();
    answered.lost.push(lost);
    for (i, thing) in world.things.iter().enumerate() {
        for page in (0..thing.bytes / 4096).step_by(8) {
            let address = world.address(i) + page * 4096;
            answered.pages.push(Page { process: 1, object: Some(i as i64), address, time_ns: S, node: 0, page_bytes: 4096 });
        }
    }
    measure("with answers and losses", &answered);
    measure("memory handed out again", &handed_out_again());
}

/// 300 arrays of one site, one after another in the same memory, each touched by its own thread.
fn handed_out_again() -> Profile {
    let things = (0..300u64).map(|i| {
        let mut thing = Thing::new("T", 2, Who::Block(0, 8), Who::Block(0, 8));
        (thing.born, thing.from, thing.touch_ns, thing.sweep) = (i * 10 * MS, i * 10 * MS + 2 * MS, MS, MS);
        (thing.died, thing.address, thing.site) = (Some((i + 1) * 10 * MS), Some(0x7000_0000_0000), 77);
        thing
    });
    let mut world = World::new(8, things.collect());
    (world.seconds, world.round_ns) = (3, 100_000);
    recorded(&world, 3)
}
