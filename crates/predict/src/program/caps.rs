//! What limits a thread besides memory. A bad placement costs a program less if it computes more than it moves.

use crate::units::{Bandwidth, Seconds};
use firsttouch_model::traffic::Traffic;
use serde::Serialize;

/// A program counts as compute-bound if it moved its bytes this many times more slowly than the machine could: the machine that it was recorded on is
/// not that slow.
const SLOWER: f64 = 8.0;
/// It counts as waiting for memory only if it moved them at most this many times more slowly. In between, its speed does not tell.
const NEARLY_AS_FAST: f64 = 2.0;

/// The limit of a thread's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Caps {
    /// Chosen according to the recorded speed.
    Auto,
    /// The bandwidth of a core of the machine: the program waits for memory.
    Machine,
    /// The bytes per second of CPU time that the thread moved when it was recorded: the program computes.
    Recorded,
}

/// The limit that was chosen.
#[derive(Clone, Debug)]
pub struct Decided {
    pub caps: Caps,
    /// Each worker's.
    pub bandwidths: Vec<Bandwidth>,
    /// Whether the other limit is as likely.
    pub is_doubtful: bool,
    /// Why the placement may not matter at all.
    pub moot: Option<Moot>,
}

/// Why a placement may not matter, although accesses to large objects were seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moot {
    /// The number of this part of the accesses is a guess.
    Guessed(f64),
    /// Threads accessed so many bytes a second of their CPU time: caches probably served some of them.
    Cached(Bandwidth),
}

/// More than a core usually draws from memory: the measured ones of the catalogue draw up to 37 GB/s.
const MOST_OF_A_CORE: f64 = 45e9;

/// Why the placement may not matter. `bytes`: each worker's; `at_memory`: the part of their CPU time in loops over large objects.
fn moot(traffic: &Traffic, bytes: &[f64], at_memory: f64) -> Option<Moot> {
    if traffic.is_guess() {
        return Some(Moot::Guessed(traffic.guessed));
    }
    let (mut moved, mut time) = (0.0, 0.0);
    for (worker, bytes) in traffic.workers.iter().zip(bytes).filter(|(_, bytes)| **bytes > 0.0) {
        moved += bytes;
        time += worker.cpu_s? * at_memory;
    }
    (time > 0.0 && moved / time > MOST_OF_A_CORE).then(|| Moot::Cached(Bandwidth(moved / time)))
}

/// Chooses the limit. `works`: each worker's bytes by node. `time`: how long the accesses of the program as it is take on the
/// machine with the machine's limits. They are compared with the recorded time less that in which the program only computed.
pub fn decide(asked: Caps, traffic: &Traffic, works: &[Vec<f64>], time: Seconds) -> Decided {
    let free = || vec![Bandwidth::UNLIMITED; traffic.workers.len()];
    let bytes: Vec<f64> = works.iter().map(|nodes| nodes.iter().sum()).collect();
    let times = traffic.workers.iter().zip(&bytes).filter(|(_, bytes)| **bytes > 0.0).map(|(worker, _)| worker.cpu_s);
    // The longest CPU time of a worker: a worker that waits for no other takes this long.
    let computed = times.collect::<Option<Vec<f64>>>().map(|times| times.into_iter().fold(0.0, f64::max)).filter(|time| *time > 0.0);
    let recorded = |computed: f64| {
        let of = |bytes: &f64| if *bytes > 0.0 { Bandwidth(bytes / computed) } else { Bandwidth::UNLIMITED };
        bytes.iter().map(of).collect()
    };
    let at_memory = 1.0 - traffic.computing.map_or(0.0, |computing| computing.share);
    let moot = moot(traffic, &bytes, at_memory).filter(|_| asked == Caps::Auto);
    let decided = |caps, bandwidths| Decided { caps, bandwidths, is_doubtful: false, moot };
    match (asked, computed) {
        // How much the program moved is not known, so neither is how fast.
        _ if moot.is_some() => decided(Caps::Machine, free()),
        (Caps::Machine, _) | (_, None) => decided(Caps::Machine, free()),
        (Caps::Recorded, Some(computed)) => decided(Caps::Recorded, recorded(computed)),
        (Caps::Auto, Some(computed)) if computed * at_memory > SLOWER * time.0 => decided(Caps::Recorded, recorded(computed)),
        (Caps::Auto, Some(computed)) => {
            Decided { is_doubtful: computed * at_memory > NEARLY_AS_FAST * time.0, ..decided(Caps::Machine, free()) }
        }
    }
}
