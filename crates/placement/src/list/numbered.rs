//! The existing nodes or CPUs, and those this process may use.

use firsttouch_model::Error;
use firsttouch_model::topology::{Topology, format_list};

/// Sorted numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// `node` or `CPU`.
    noun: &'static str,
    existing: Vec<u32>,
    offline: Vec<u32>,
    allowed: Vec<u32>,
}

impl Numbered {
    #[must_use]
    pub fn nodes(topology: &Topology) -> Self {
        let existing: Vec<u32> = topology.nodes.iter().map(|node| node.id).collect();
        let limits = topology.process.as_ref().and_then(|limits| limits.allowed_nodes.as_deref());
        Self { noun: "node", allowed: within(&existing, limits), offline: Vec::new(), existing }
    }

    /// Nodes to run on: those whose memory may be used, and those with a CPU that may be used.
    #[must_use]
    pub fn nodes_to_run_on(topology: &Topology) -> Self {
        let (nodes, cpus) = (Self::nodes(topology), Self::cpus(topology));
        let is_allowed = |node: &u32| nodes.check(*node).is_ok() || topology.node(*node).is_some_and(|node| cpus.has_any(&node.cpus));
        Self { allowed: nodes.existing.iter().copied().filter(is_allowed).collect(), ..nodes }
    }

    #[must_use]
    pub fn cpus(topology: &Topology) -> Self {
        let existing = topology.cpus.online.clone();
        let limits = topology.process.as_ref().and_then(|limits| limits.allowed_cpus.as_deref());
        Self { noun: "CPU", allowed: within(&existing, limits), offline: topology.cpus.offline.clone(), existing }
    }

    /// The same without the process's limits, for `--all`.
    #[must_use]
    pub fn without_limits(self) -> Self {
        Self { allowed: self.existing.clone(), ..self }
    }

    #[must_use]
    pub fn allowed(&self) -> &[u32] {
        &self.allowed
    }

    fn has_any(&self, numbers: &[u32]) -> bool {
        numbers.iter().any(|number| self.allowed.binary_search(number).is_ok())
    }

    /// # Errors
    /// Says why the number cannot be used.
    pub fn check(&self, number: u32) -> Result<(), Error> {
        let Self { noun, .. } = self;
        if self.allowed.binary_search(&number).is_ok() {
            return Ok(());
        }
        Err(if self.offline.binary_search(&number).is_ok() {
            Error::invalid_input(format!("{noun} {number} is offline; online are {}", format_list(&self.existing)))
        } else if self.existing.binary_search(&number).is_ok() {
            Error::permission_denied(format!("{noun} {number} is not allowed here: this process may use {}", self.counted(&self.allowed)))
        } else {
            Error::not_found(format!("{noun} {number} does not exist: this machine has {}", self.counted(&self.existing)))
        })
    }

    /// The n-th allowed one, counted from 0.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn nth(&self, n: u32) -> Result<u32, Error> {
        let Self { noun, allowed, .. } = self;
        usize::try_from(n).ok().and_then(|n| allowed.get(n).copied()).ok_or_else(|| {
            let (count, last) = (allowed.len(), allowed.len().saturating_sub(1));
            Error::not_found(format!("+{n} does not exist: this process may use {count} {noun}s, +0 to +{last}"))
        })
    }

    /// `node 0`, `CPUs 0-3`
    fn counted(&self, numbers: &[u32]) -> String {
        match numbers {
            [] => format!("no {}", self.noun),
            [number] => format!("{} {number}", self.noun),
            _ => format!("{}s {}", self.noun, format_list(numbers)),
        }
    }

    pub(super) fn noun(&self) -> &'static str {
        self.noun
    }
}

/// The kernel lists nodes and CPUs as allowed that do not exist.
fn within(existing: &[u32], limits: Option<&[u32]>) -> Vec<u32> {
    existing.iter().copied().filter(|number| limits.is_none_or(|limits| limits.binary_search(number).is_ok())).collect()
}
