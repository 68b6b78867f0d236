//! Accesses seen by watchpoints.

use super::Id;

/// One watched address over one window of time. Windows without hits are stored too.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub id: Id,
    /// Windows of one round are held at the same time.
    pub round: u64,
    pub object: Id,
    /// The watched 8-byte word.
    pub address: u64,
    pub start_ns: u64,
    /// How long the window was held.
    pub held_ns: u64,
    /// The time that the round represents: from its start to the start of the next round.
    pub round_ns: u64,
    /// Expected number of windows on this object in this round, known when the round was drawn.
    pub inclusion: f64,
}

/// Accesses to a window's address by one thread from one site in the code.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub window: Id,
    pub thread: Id,
    pub site: Option<Id>,
    /// The number of traps.
    pub hits: u64,
    /// The estimated number of accesses in the whole `held_ns`: equals `hits` unless the hit limit ended the window early.
    pub estimate: f64,
    /// Time until the hit limit ended the window for this thread (or `held_ns`).
    pub watched_ns: u64,
    pub cut: bool,
    /// The CPU on which the thread made most of these accesses.
    pub cpu: Option<u32>,
    /// CPU time that the thread had while the window was held; `None` in profiles of earlier versions.
    pub cpu_ns: Option<u64>,
}
