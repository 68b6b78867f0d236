//! From samples to bytes: what each worker moves from and to each node.

use firsttouch_domain::traffic::{ObjectTraffic, Traffic, TrafficSample};

/// How often each sample counts.
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

/// Bytes by worker and node. Workers whose shares of an object cannot be told from equal ones get equal ones: the noise of few samples would
/// else make one of them late.
pub fn volumes(
    traffic: &Traffic,
    weights: &Weights,
    mix: impl Fn(usize, &TrafficSample) -> Vec<(usize, f64)>,
    nodes: usize,
) -> Vec<Vec<f64>> {
    let mut volumes = vec![vec![0.0; nodes]; traffic.workers.len()];
    for (index, object) in traffic.objects.iter().enumerate() {
        let factors = factors(object, index, weights, traffic.workers.len());
        for (number, sample) in object.samples.iter().enumerate() {
            let weight = weights.of(index, number);
            if weight <= 0.0 {
                continue;
            }
            let mix = mix(index, sample);
            for &(worker, bytes) in &sample.bytes {
                for &(node, share) in &mix {
                    volumes[worker][node] += weight * factors[worker] * bytes * share;
                }
            }
        }
    }
    volumes
}

/// What makes the shares equal that are taken as equal.
fn factors(object: &ObjectTraffic, index: usize, weights: &Weights, workers: usize) -> Vec<f64> {
    let mut factors = vec![1.0; workers];
    let mut sums = vec![0.0; workers];
    for (number, sample) in object.samples.iter().enumerate() {
        for &(worker, bytes) in &sample.bytes {
            sums[worker] += weights.of(index, number) * bytes;
        }
    }
    let users: Vec<usize> = object.even.iter().copied().filter(|worker| sums[*worker] > 0.0).collect();
    let mean = users.iter().map(|worker| sums[*worker]).sum::<f64>() / users.len().max(1) as f64;
    users.into_iter().for_each(|worker| factors[worker] = mean / sums[worker]);
    factors
}
