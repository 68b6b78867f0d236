//! Converts samples to bytes: how much each worker moves from and to each node.

use firsttouch_model::traffic::{Division, ObjectTraffic, Traffic, TrafficSample};
use std::collections::BTreeMap;

/// The weight of each sample.
pub enum Weights {
    Same,
    /// By object and sample.
    Drawn(Vec<Vec<f64>>),
}

impl Weights {
    fn of(&self, object: usize, sample: usize) -> f64 {
        match self {
            Self::Same => 1.0,
            Self::Drawn(weights) => weights.get(object).and_then(|own| own.get(sample)).copied().unwrap_or(1.0),
        }
    }
}

/// With fewer samples per thread, a thread without samples may still use the object.
const ENOUGH: usize = 5;

/// The nodes of a sample.
pub enum Mix<'a> {
    Node(usize),
    /// Nodes with shares that sum to 1.
    Spread(&'a [(usize, f64)]),
}

/// A part of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    All,
    /// The traffic while one thread works alone.
    Serial,
    Team,
    /// The team's traffic to parts with an owner; and the team's other traffic, which follows the work.
    TeamOwned,
    TeamPool,
}

impl Phase {
    fn has(self, object: &ObjectTraffic, sample: &TrafficSample) -> bool {
        let is_owned = object.division == Division::Owned;
        match self {
            Self::All => true,
            Self::Serial => sample.serial,
            Self::Team => !sample.serial,
            Self::TeamOwned => !sample.serial && is_owned,
            Self::TeamPool => !sample.serial && !is_owned,
        }
    }
}

/// Bytes by worker and node. Workers whose shares of an object do not differ significantly get equal shares, because the noise of few
/// samples would otherwise delay one of them.
pub fn volumes<'m>(
    traffic: &Traffic,
    weights: &Weights,
    mix: impl Fn(usize, &TrafficSample) -> Mix<'m>,
    nodes: usize,
    phase: Phase,
) -> Vec<Vec<f64>> {
    let mut volumes = vec![vec![0.0; nodes]; traffic.workers.len()];
    let mut factors = Factors::new(traffic);
    for (index, object) in traffic.objects.iter().enumerate() {
        factors.set(traffic, object, index, weights);
        for (number, sample) in object.samples.iter().enumerate() {
            let weight = weights.of(index, number);
            if weight <= 0.0 || !phase.has(object, sample) {
                continue;
            }
            let mix = mix(index, sample);
            for &(worker, bytes) in &sample.bytes {
                // Shares are equalised only within the team.
                let bytes = weight * bytes * if sample.serial { 1.0 } else { factors.of[worker] };
                match mix {
                    Mix::Node(node) => volumes[worker][node] += bytes,
                    Mix::Spread(shares) => shares.iter().for_each(|(node, share)| volumes[worker][*node] += bytes * share),
                }
            }
        }
        factors.clear(object);
    }
    volumes
}

/// By worker: the factor that equalises shares that count as equal; 1 for all others.
struct Factors {
    of: Vec<f64>,
    sums: Vec<f64>,
    /// The number of workers that use any object, by node.
    team: BTreeMap<u32, usize>,
    members: usize,
}

impl Factors {
    fn new(traffic: &Traffic) -> Self {
        let samples = traffic.objects.iter().flat_map(ObjectTraffic::of_team);
        let mut works = vec![false; traffic.workers.len()];
        samples.flat_map(|sample| &sample.bytes).for_each(|(worker, _)| works[*worker] = true);
        let mut team = BTreeMap::new();
        for (worker, _) in traffic.workers.iter().zip(&works).filter(|(_, works)| **works) {
            *team.entry(worker.node).or_insert(0) += 1;
        }
        Self { of: vec![1.0; works.len()], sums: vec![0.0; works.len()], members: team.values().sum(), team }
    }

    fn set(&mut self, traffic: &Traffic, object: &ObjectTraffic, index: usize, weights: &Weights) {
        if object.even.is_empty() {
            return;
        }
        for (number, sample) in object.samples.iter().enumerate().filter(|(_, sample)| !sample.serial) {
            for &(worker, bytes) in &sample.bytes {
                self.sums[worker] += weights.of(index, number) * bytes;
            }
        }
        let users = || object.even.iter().copied().filter(|worker| self.sums[*worker] > 0.0);
        let all: f64 = users().map(|worker| self.sums[worker]).sum();
        let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
        users().for_each(|worker| *seen.entry(traffic.workers[worker].node).or_default() += 1);
        let count: usize = seen.values().sum();
        // Count all threads of a node, not only those with samples.
        let unseen = object.samples.len() < ENOUGH * self.members && seen.keys().eq(self.team.keys());
        for worker in object.even.iter().copied().filter(|worker| self.sums[*worker] > 0.0) {
            let node = traffic.workers[worker].node;
            let share = match (self.team.get(&node), seen.get(&node)) {
                (Some(team), Some(seen)) if unseen => *team as f64 / self.members as f64 / *seen as f64,
                _ => 1.0 / count as f64,
            };
            self.of[worker] = all * share / self.sums[worker];
        }
    }

    fn clear(&mut self, object: &ObjectTraffic) {
        if !object.even.is_empty() {
            for (worker, _) in object.samples.iter().flat_map(|sample| &sample.bytes) {
                (self.of[*worker], self.sums[*worker]) = (1.0, 0.0);
            }
        }
    }
}
