//! What the profile is judged on, and who answers questions about source code.

use firsttouch_model::Pin;
use firsttouch_model::rows::Frame;

/// The machine a profile is judged on.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// As the user wrote it: `virtual:2`, a catalogue name, or the host's name.
    pub name: String,
    pub nodes: usize,
    /// Homes are derived from first touches (`true`), or read from the kernel's answers in the profile.
    pub virtual_machine: bool,
    pub pin: Pin,
    pub cores_per_node: usize,
    /// Nodes with CPUs, where `pin` puts threads; empty when all have some.
    pub cpu_nodes: Vec<u32>,
    /// Nodes without CPUs, or of a slower kind of memory than those with; known of the recorded machine only.
    pub slow_nodes: Vec<u32>,
    /// Objects not larger than this stay in a core's own cache and are not judged, bytes.
    pub private_cache_bytes: u64,
}

impl Target {
    /// The node of placement slot `slot` of `slots`, by the pinning.
    #[must_use]
    pub fn seat(&self, slot: usize, slots: usize) -> u32 {
        if self.cpu_nodes.is_empty() || matches!(self.pin, Pin::Nodes(_)) {
            return self.pin.node(slot, slots, self.nodes, self.cores_per_node).0;
        }
        let place = self.pin.node(slot, slots, self.cpu_nodes.len(), self.cores_per_node).0;
        self.cpu_nodes.get(place as usize).copied().unwrap_or(0)
    }
}

/// What is known about the source code behind call stacks. Implemented over files and debug information elsewhere.
pub trait Sources {
    /// The text of a source line.
    fn line(&self, file: &str, line: u32) -> Option<String>;
    /// What a first-touching stack was doing: `loop`, `memset`, `calloc`, `std::vector`, `fortran-assignment`, `memcpy`,
    /// `realloc`, `numpy`, `io`, ...
    fn cause(&self, frames: &[Frame], call: Option<&str>) -> String;
    /// The innermost frame that is the user's own code.
    fn user_frame(&self, frames: &[Frame]) -> Option<usize>;
    /// The variable that the `nth` call of `call` on this line is assigned to.
    fn variable(&self, file: &str, line: u32, call: &str, nth: usize) -> Option<String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that threads sit on nodes with CPUs only, whatever their numbers.
    #[test]
    fn threads_sit_where_cpus_are() {
        let mut target = Target {
            name: "holes".into(),
            nodes: 8,
            virtual_machine: true,
            pin: Pin::Spread,
            cores_per_node: 2,
            cpu_nodes: vec![1, 4, 7],
            slow_nodes: vec![],
            private_cache_bytes: 0,
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
