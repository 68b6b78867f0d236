//! Tests the estimator with a simulated sampler and known truth: bias and coverage over 120 repetitions; in debug builds, which
//! `make check` uses, over 20.

use crate::simulated::*;

const REPETITIONS: u64 = if cfg!(debug_assertions) { 20 } else { 80 };

#[derive(Default)]
struct Tally {
    name: String,
    truth: f64,
    sum: f64,
    square: f64,
    inside: u64,
    worst: f64,
}

impl Tally {
    fn add(&mut self, value: f64, interval: [f64; 2]) {
        self.sum += value;
        self.square += value * value;
        self.worst = self.worst.max((value - self.truth).abs());
        self.inside += u64::from(interval[0] - 1e-9 <= self.truth && self.truth <= interval[1] + 1e-9);
    }

    /// Coverage of at least 90 %, and a mean within three of its standard errors (and half a point) of the truth.
    fn check(&self) {
        let n = REPETITIONS as f64;
        let mean = self.sum / n;
        let deviation = (self.square / n - mean * mean).max(0.0).sqrt();
        let coverage = self.inside as f64 / n;
        println!(
            "{:28} truth {:.4} mean {:.4} deviation {:.4} worst {:.4} coverage {:.3}",
            self.name, self.truth, mean, deviation, self.worst, coverage
        );
        assert!(coverage >= 0.90, "{}: coverage {coverage}", self.name);
        assert!((mean - self.truth).abs() <= 3.0 * deviation / n.sqrt() + 0.005, "{}: biased", self.name);
    }
}

/// Runs the repetitions and checks shares, users and the remote fraction.
fn check(label: &str, world: &World, nodes: usize, within: f64) {
    let truth = world.truth();
    let workers = world.threads.len();
    let remote_truth = world.remote(MIB, |t| (t * nodes / workers) as u32);
    let mut shares: Vec<Tally> = truth
        .share
        .iter()
        .zip(&world.things)
        .map(|(&truth, thing)| Tally { name: format!("{label} share {}", thing.name), truth, ..Tally::default() })
        .collect();
    let mut users = Vec::new();
    for (i, thing) in world.things.iter().enumerate() {
        for t in [0, 1, workers - 1] {
            users.push((i, t, Tally { name: format!("{label} {} by {t}", thing.name), truth: truth.used_by[i][t], ..Tally::default() }));
        }
    }
    let mut remote = Tally { name: format!("{label} remote"), truth: remote_truth, ..Tally::default() };
    for seed in 0..REPETITIONS {
        let analysis = judge(world, seed * 1_000_003 + 17, nodes);
        let object = |i: usize| analysis.objects.iter().find(|o| o.id == i as i64);
        for (i, tally) in shares.iter_mut().enumerate() {
            let object = object(i).unwrap();
            tally.add(object.access_share.unwrap(), object.access_share_interval.unwrap());
        }
        for (i, t, tally) in &mut users {
            let object = object(*i).unwrap();
            tally.add(object.used_by_thread[*t], object.used_by_thread_interval[*t]);
        }
        remote.add(analysis.remote_fraction.unwrap(), analysis.remote_interval.unwrap());
        let sum: f64 = analysis.matrix.iter().flatten().sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
    shares.iter().for_each(Tally::check);
    users.iter().for_each(|u| u.2.check());
    remote.check();
    let typical =
        shares.iter().map(|t| (t.square / REPETITIONS as f64 - (t.sum / REPETITIONS as f64).powi(2)).max(0.0).sqrt()).fold(0.0, f64::max);
    assert!(1.96 * typical <= within, "{label}: shares spread by {typical}");
}

/// Check the 3:1 program: two arrays, eight threads in blocks, one array touched serially.
#[test]
fn three_to_one() {
    let mut a = Thing::new("a", 64, Who::One(0), Who::Block(0, 8));
    a.reps = 3;
    let b = Thing::new("b", 64, Who::Block(0, 8), Who::Block(0, 8));
    let world = World::new(8, vec![a, b]);
    for nodes in if cfg!(debug_assertions) { &[4][..] } else { &[2, 4, 8] }.iter().copied() {
        check(&format!("3:1 on {nodes}"), &world, nodes, 0.03);
    }
}

/// Check a mix: blocks, cyclic, shared and irregular users, a small hot object, and a rarely used object.
#[test]
fn all_kinds_of_users() {
    let mut hot = Thing::new("hot", 2, Who::One(0), Who::All(0, 8));
    hot.sweep = 19_370_000;
    let mut cold = Thing::new("cold", 128, Who::Block(0, 8), Who::Block(0, 8));
    cold.sweep = 3_971_000_000;
    let cyclic = Thing::new("cyclic", 64, Who::Cyclic(0, 8, 65_536), Who::Cyclic(0, 8, 65_536));
    let mut dynamic = Thing::new("dynamic", 32, Who::One(0), Who::Dynamic(0, 8, 65_536));
    dynamic.reps = 2;
    let world = World::new(8, vec![Thing::new("block", 64, Who::One(0), Who::Block(0, 8)), hot, cold, cyclic, dynamic]);
    check("mix", &world, 2, 0.06);
}

/// Check objects that are allocated and freed during the run, phases, and threads that start later.
#[test]
fn births_and_deaths() {
    let mut early = Thing::new("early", 64, Who::One(0), Who::Block(0, 4));
    early.died = Some(3 * S);
    let mut late = Thing::new("late", 32, Who::Block(0, 8), Who::Block(0, 8));
    (late.born, late.from) = (5 * S, 5 * S + 200 * MS);
    let mut phased = Thing::new("phased", 32, Who::One(0), Who::Block(0, 8));
    (phased.from, phased.until, phased.reps) = (6 * S, 8 * S, 4);
    let mut world = World::new(8, vec![early, late, phased]);
    for thread in &mut world.threads[4..] {
        thread.0 = 4 * S;
    }
    check("births", &world, 2, 0.08);
}

/// Check few windows with rare hits: a short run, one sweep per second, one of 64 page faults sampled.
#[test]
fn few_hits() {
    let mut a = Thing::new("a", 256, Who::One(0), Who::Block(0, 4));
    a.sweep = 393_170_000;
    let mut b = Thing::new("b", 64, Who::Block(0, 4), Who::Block(0, 4));
    (b.sweep, b.reps) = (393_170_000, 4);
    let mut world = World::new(4, vec![a, b]);
    (world.seconds, world.period) = (5, 64);
    check("few", &world, 2, 0.35);
}
