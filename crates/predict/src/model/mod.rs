//! Threads at work: what each moves from and to which nodes, and how long that takes together.

mod demand;
mod fill;
mod simulate;

pub use simulate::{Outcome, simulate, simulate_pool};

use crate::units::{Bandwidth, Volume};
use std::fmt;

/// Where a thread runs. Threads of one core share what it can draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat {
    pub node: usize,
    pub core: usize,
}

/// A piece of a thread's work, done at one rate: bytes of several nodes in a fixed mix.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// Bytes of each node; a node once at most.
    pub parts: Vec<(usize, Volume)>,
}

impl Stretch {
    #[must_use]
    pub fn volume(&self) -> Volume {
        self.parts.iter().fold(Volume(0.0), |sum, (_, volume)| sum + *volume)
    }
}

/// A thread's work, one stretch after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    pub seat: Seat,
    pub work: Vec<Stretch>,
    /// The part of its traffic that is written.
    pub write_share: f64,
    /// What it would move if memory were infinitely fast.
    pub compute: Bandwidth,
}

/// Who does which part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Each thread its own; the last to end ends all.
    Static,
    /// Whoever is free takes the next piece: all work in one pool, in its mean mix, and all end together.
    Dynamic,
}

/// A team that cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamError(pub String);

impl fmt::Display for TeamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot predict: {}", self.0)
    }
}

impl std::error::Error for TeamError {}
