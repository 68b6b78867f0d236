//! Working threads: how much each moves from and to each node, and how long they take together.

mod demand;
mod fair_sharing;
mod simulate;

pub use simulate::{Simulation, remote_fraction, simulate, simulate_pool};

use crate::units::{Bandwidth, Volume};
use std::fmt;

/// Where a thread runs. Threads on one core share its bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat {
    pub node: usize,
    pub core: usize,
}

/// A piece of a thread's work, done at one rate: bytes on several nodes in a fixed mix.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// Bytes by node; each node at most once.
    pub parts: Vec<(usize, Volume)>,
}

impl Stretch {
    #[must_use]
    pub fn volume(&self) -> Volume {
        self.parts.iter().fold(Volume(0.0), |sum, (_, volume)| sum + *volume)
    }
}

/// A thread's work: its stretches, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    pub seat: Seat,
    pub work: Vec<Stretch>,
    /// The fraction of its traffic that is written.
    pub write_share: f64,
    /// The rate at which it would move data if memory were infinitely fast.
    pub compute: Bandwidth,
}

/// How work is divided among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Each thread does its own work; the last thread determines the time.
    Static,
    /// A free thread takes the next piece: all work is in one pool with its mean mix, and all threads end at the same time.
    Dynamic,
}

/// Why the model refuses a team.
#[derive(Clone, Debug, PartialEq)]
pub enum TeamError {
    /// No accesses were observed to memory larger than a core's cache on known nodes.
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
    /// The program as it is would take no time, or infinite time.
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

/// Why the model refuses a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadFault {
    Seat(Seat),
    /// Its share of writes or its speed is out of range.
    Speed,
    /// It uses memory of a node that the machine does not have.
    Node(usize),
    /// Its volume is out of range, bytes.
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
