//! What limits a thread besides memory. A program that computes more than it moves loses less by a bad placement.

use crate::units::{Bandwidth, Seconds};
use firsttouch_model::traffic::Traffic;
use serde::Serialize;

/// A program counts as compute-bound if it moved its bytes this many times slower than the machine could.
const SLOWER: f64 = 4.0;

/// What limits a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Caps {
    /// Whichever the recorded speed suggests.
    Auto,
    /// What a core of the machine can draw: the program waits for memory.
    Machine,
    /// What the thread moved in a second of CPU time when it was recorded: the program computes.
    Recorded,
}

/// The limits of each worker that moves `works`, by node. `time` is what the machine needs, with its own limits, for the program as it is.
pub fn decide(asked: Caps, traffic: &Traffic, works: &[Vec<f64>], time: Seconds) -> (Caps, Vec<Bandwidth>) {
    let free = || vec![Bandwidth::UNLIMITED; traffic.workers.len()];
    let bytes: Vec<f64> = works.iter().map(|nodes| nodes.iter().sum()).collect();
    let times = traffic.workers.iter().zip(&bytes).filter(|(_, bytes)| **bytes > 0.0).map(|(worker, _)| worker.cpu_s);
    // The longest CPU time of a worker: a worker that waits for no other needs this long.
    let computed = times.collect::<Option<Vec<f64>>>().map(|times| times.into_iter().fold(0.0, f64::max)).filter(|time| *time > 0.0);
    let recorded = |computed: f64| {
        let of = |bytes: &f64| if *bytes > 0.0 { Bandwidth(bytes / computed) } else { Bandwidth::UNLIMITED };
        bytes.iter().map(of).collect()
    };
    match (asked, computed) {
        (Caps::Machine, _) | (_, None) => (Caps::Machine, free()),
        (Caps::Recorded, Some(computed)) => (Caps::Recorded, recorded(computed)),
        (Caps::Auto, Some(computed)) if computed > SLOWER * time.0 => (Caps::Recorded, recorded(computed)),
        (Caps::Auto, Some(_)) => (Caps::Machine, free()),
    }
}
