#![allow(clippy::unwrap_used)]
mod simulated;
use simulated::*;
#[test]
fn scale() {
    for (things, threads, seconds, round) in [(2usize, 8usize, 1000u64, 10 * MS), (2000, 64, 100, 10*MS), (20, 1000, 200, 10 * MS)] {
        let list = (0..things).map(|i| { let mut t = Thing::new("x", 1 + (i as u64 * 7) % 64, Who::One(0), Who::Cyclic(0, threads, 65_536)); t.site = 0; t }).collect();
        let mut w = World::new(threads, list); w.seconds = seconds; w.round_ns = round; w.period = if things > 100 { 64 } else { 1 };
        let p = w.profile(1);
        let t = std::time::Instant::now();
        let a = firsttouch_analysis::analyse(&p, &target(4), &FakeSources("loop"));
        println!("{things} things {threads} threads {} windows {} accesses {} touches: {:?}, {} findings", p.windows.len(), p.accesses.len(), p.first_touches.len(), t.elapsed(), a.findings.len());
    }
}
