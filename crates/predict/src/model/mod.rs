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
#[derive(Clone, Debug, PartialEq)]
pub enum TeamError {
    /// No accesses to memory larger than a core's cache, on pages of known nodes, were seen.
    NoTraffic,
    /// A page is on a node that the machine does not have.
    PageNode {
        node: usize,
        machine: String,
        nodes: usize,
    },
    /// A thread sits on a node that the machine does not have.
    ThreadNode {
        node: usize,
        machine: String,
        nodes: usize,
    },
    /// The program as it is would take no time, or for ever.
    Time {
        seconds: f64,
    },
    NoThreads,
    /// One thread of the team, by its index.
    Thread {
        index: usize,
        fault: ThreadFault,
    },
}

/// What is wrong with a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadFault {
    Seat(Seat),
    /// Its share of writes or its speed is no possible one.
    Speed,
    /// It uses memory of a node that does not exist.
    Node(usize),
    /// It moves no possible volume.
    Volume(f64),
}

impl fmt::Display for ThreadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seat(seat) => write!(f, "sits on core {} of node {}, which does not exist", seat.core, seat.node),
            Self::Speed => write!(f, "has no possible share of writes or speed"),
            Self::Node(node) => write!(f, "uses memory of node {node}, which does not exist"),
            Self::Volume(bytes) => write!(f, "moves {bytes} bytes"),
        }
    }
}

impl fmt::Display for TeamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot predict: ")?;
        match self {
            Self::NoTraffic => write!(f, "no accesses to memory larger than a core's cache, on pages of known nodes, were seen"),
            Self::PageNode { node, machine, nodes } => write!(f, "a page is on node {node}; {machine} has {nodes} nodes"),
            Self::ThreadNode { node, machine, nodes } => write!(f, "a thread sits on node {node}; {machine} has {nodes} nodes"),
            Self::Time { seconds } => write!(f, "the program as it is would take {seconds} s"),
            Self::NoThreads => write!(f, "a team of no threads"),
            Self::Thread { index, fault } => write!(f, "thread {index} {fault}"),
        }
    }
}

impl std::error::Error for TeamError {}
