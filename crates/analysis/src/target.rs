//! The machine that a profile is judged on, and the interface for questions about source code.

use firsttouch_model::rows::Frame;
use firsttouch_model::{Pin, TouchCause};

/// The machine a profile is judged on.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// As the user wrote it: `virtual:2`, a catalogue name, or the host's name.
    pub name: String,
    pub nodes: usize,
    /// `true`: homes are derived from first touches. `false`: they are read from the kernel's answers in the profile.
    pub virtual_machine: bool,
    pub pin: Pin,
    /// Whether threads that did nothing take places too, and each process is spread over the nodes by itself.
    pub place_all_threads: bool,
    pub cores_per_node: usize,
    /// Nodes with CPUs, on which `pin` puts threads; empty if all nodes have CPUs.
    pub cpu_nodes: Vec<u32>,
    /// Nodes without CPUs, or with a slower kind of memory than nodes with CPUs; known only for the recorded machine.
    pub slow_nodes: Vec<u32>,
    /// Objects up to this size stay in a core's own cache and are not judged, bytes.
    pub private_cache_bytes: u64,
    /// Where the ranks of a job are.
    pub ranks: RankLayout,
}

/// Where the ranks of a job are on a virtual machine, and the hosts of a merged profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankLayout {
    /// Ranks on each node (`--ranks-per-node`).
    pub per_node: Option<usize>,
    /// How ranks follow each other on the nodes (`--distribution`).
    pub distribution: Option<Distribution>,
    /// The nodes of each host: the number of the first, and how many; empty if all nodes are those of one host.
    pub hosts: Vec<(u32, usize)>,
}

/// How ranks follow each other on the nodes of a host, in Slurm's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Successive ranks on one node.
    Block,
    /// Successive ranks on successive nodes.
    Cyclic,
}

impl RankLayout {
    /// Whether the user says where ranks are.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.per_node.is_some() || self.distribution.is_some()
    }
}

impl Target {
    /// The number of cores of a node for `compact`: as many as the largest node has, at least one.
    #[must_use]
    pub fn cores_per_node(nodes: impl IntoIterator<Item = usize>) -> usize {
        nodes.into_iter().max().unwrap_or(1).max(1)
    }

    /// The number of nodes on which `pin` puts threads, at least one.
    #[must_use]
    pub fn places(&self) -> usize {
        if self.cpu_nodes.is_empty() { self.nodes.max(1) } else { self.cpu_nodes.len() }
    }

    /// The hosts whose nodes these are.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.ranks.hosts.len().max(1)
    }

    /// The machine of one host, with its nodes counted from 0, and the number of its first node.
    #[must_use]
    pub fn of_host(&self, host: usize) -> (Self, u32) {
        let (first, nodes) = self.ranks.hosts.get(host).copied().unwrap_or((0, self.nodes));
        let own = |nodes: &[u32]| -> Vec<u32> { nodes.iter().filter_map(|node| node.checked_sub(first)).collect() };
        let is_own = |node: &u32| (*node as usize) < nodes;
        let kept = |list: &[u32]| own(list).into_iter().filter(is_own).collect();
        (Self { nodes, cpu_nodes: kept(&self.cpu_nodes), slow_nodes: kept(&self.slow_nodes), ..self.clone() }, first)
    }

    /// The number of the node with CPUs that is the `place`th of these.
    #[must_use]
    pub fn cpu_node(&self, place: usize) -> u32 {
        let place = u32::try_from(place % self.places()).unwrap_or(0);
        if self.cpu_nodes.is_empty() { place } else { self.cpu_nodes.get(place as usize).copied().unwrap_or(0) }
    }

    /// The node of place `slot` of `slots`, according to the pinning.
    #[must_use]
    pub fn seat(&self, slot: usize, slots: usize) -> u32 {
        if self.cpu_nodes.is_empty() || matches!(self.pin, Pin::Nodes(_)) {
            return self.pin.node(slot, slots, self.nodes, self.cores_per_node).0;
        }
        let place = self.pin.node(slot, slots, self.cpu_nodes.len(), self.cores_per_node).0;
        self.cpu_nodes.get(place as usize).copied().unwrap_or(0)
    }
}

/// Sources for tests: of native code, what lies below /home/me is the program's own; nothing else is known.
#[cfg(test)]
pub(crate) struct OwnHome;

#[cfg(test)]
impl Sources for OwnHome {
    fn line(&self, _: &str, _: u32) -> Option<String> {
        None
    }

    fn cause(&self, _: &[Frame], _: Option<&str>) -> TouchCause {
        TouchCause::Loop
    }

    fn user_frame(&self, _: &[Frame]) -> Option<usize> {
        None
    }

    fn variable(&self, _: &str, _: u32, _: &str, _: usize) -> Option<String> {
        None
    }

    fn is_own_module(&self, module: &str) -> bool {
        module.starts_with("/home/me/")
    }
}

/// What is known about the source code of call stacks. Other crates implement it with files and debug information.
pub trait Sources {
    /// The text of a source line.
    fn line(&self, file: &str, line: u32) -> Option<String>;
    /// The construct of a first-touching stack, for an object that `call` allocated.
    fn cause(&self, frames: &[Frame], call: Option<&str>) -> TouchCause;
    /// The index of the innermost frame of the user's own code.
    fn user_frame(&self, frames: &[Frame]) -> Option<usize>;
    /// The variable that the `nth` call of `call` (from 0) on this line is assigned to. The call `std::vector` stands for the allocations that
    /// containers make for their elements.
    fn variable(&self, file: &str, line: u32, call: &str, nth: usize) -> Option<String>;
    /// As [`Sources::variable`], of the call at this column (in bytes from 1) of the line; `None` if it is not certain.
    fn variable_at(&self, _file: &str, _line: u32, _call: &str, _column: u32) -> Option<String> {
        None
    }
    /// Whether a file of native code is the program's own: neither installed, nor an interpreter's or a language's.
    fn is_own_module(&self, _module: &str) -> bool {
        false
    }
    /// The library that allocated memory at this stack for buffers of its own, which no program can place.
    fn library_buffer(&self, _frames: &[Frame]) -> Option<String> {
        None
    }
    /// What becomes of the value of the Python expression that begins at this byte (from 0) of a line; `None` if it is not certain.
    fn python_value(&self, _file: &str, _line: u32, _column: usize) -> Option<PythonValue> {
        None
    }
}

/// What becomes of the value of a Python expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PythonValue {
    /// It is assigned to this variable.
    Assigned(String),
    /// It has no variable of its own. The text of the expression.
    Unassigned(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that threads are put only on nodes with CPUs, whatever the numbers of the nodes.
    #[test]
    fn threads_sit_where_cpus_are() {
        let mut target = Target {
            name: "holes".into(),
            nodes: 8,
            virtual_machine: true,
            pin: Pin::Spread,
            place_all_threads: false,
            cores_per_node: 2,
            cpu_nodes: vec![1, 4, 7],
            slow_nodes: vec![],
            private_cache_bytes: 0,
            ranks: RankLayout::default(),
        };
        let seats = |target: &Target| (0..6).map(|slot| target.seat(slot, 6)).collect::<Vec<u32>>();
        assert_eq!(seats(&target), [1, 1, 4, 4, 7, 7]);
        target.pin = Pin::Compact;
        assert_eq!(seats(&target), [1, 1, 4, 4, 7, 7]);
        target.pin = "7,1".parse().unwrap();
        assert_eq!(seats(&target), [7, 1, 7, 1, 7, 1]);
        (target.pin, target.cpu_nodes, target.nodes) = (Pin::Spread, vec![], 2);
        assert_eq!(seats(&target), [0, 0, 0, 1, 1, 1]);
    }
}
