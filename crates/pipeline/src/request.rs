//! The machine and the pinning on which the user wants to judge a profile.

use crate::machine::own_description;
use crate::{ErrorKind, PipelineError, RequestedMachine, Result};
use firsttouch_analysis::Target;
use firsttouch_model::Pin;
use firsttouch_model::rows::Machine;
use firsttouch_model::topology::{Node, format_list};
use firsttouch_predict::machine::MachineModel;
use firsttouch_system::TargetMachine;
use std::fmt;

/// The requested machine and pinning. The defaults are the profile's own machine (two virtual nodes if it has one node) and the default
/// pinning.
#[derive(Default)]
pub struct AnalysisRequest {
    machine: Option<RequestedMachine>,
    pin: Option<Pin>,
    options: Vec<String>,
}

impl AnalysisRequest {
    /// # Errors
    /// When the machine or the pinning is invalid, or they do not fit each other: a usage error.
    pub fn parse(machine: Option<&str>, pin: Option<&str>) -> Result<Self> {
        let given = [("--machine", machine), ("--pin", pin)];
        let options = given.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?.to_owned()])).flatten().collect();
        let machine = machine.map(RequestedMachine::parse).transpose().map_err(|error| error.with_kind(ErrorKind::Request))?;
        let text = pin.unwrap_or_default();
        let pin = pin.map(parse_pin).transpose()?;
        if let (Some(machine), Some(pin)) = (&machine, &pin) {
            let seats = Seats::of(&machine.nodes);
            seats.map_or(Ok(()), |seats| seats.check(pin)).map_err(|reason| request(format!("cannot use pin '{text}': {reason}")))?;
        }
        Ok(Self { machine, pin, options })
    }

    /// The request as options of a command.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.options
    }

    #[must_use]
    pub fn names_pin(&self) -> bool {
        self.pin.is_some()
    }

    /// Whether the requested machine is one of which only the nodes are known.
    #[must_use]
    pub fn names_only_nodes(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.description.is_none())
    }

    /// The numbers of the requested machine, or of the profile's own, if they are known.
    ///
    /// # Errors
    /// When the user's own description cannot be used.
    pub(crate) fn description(&self, recorded: &Machine) -> Result<Option<MachineModel>> {
        match &self.machine {
            Some(machine) => Ok(machine.description.clone()),
            None => {
                let nodes = node_numbers(recorded.node_cpus.keys());
                Ok(own_description(&recorded.hostname)?.filter(|machine| nodes >= 2 && machine.nodes.len() == nodes))
            }
        }
    }

    /// The nodes with memory of the machine that is judged on.
    pub(crate) fn memory_nodes(&self, recorded: &Machine, target: &Target) -> Vec<usize> {
        match self.machine.as_ref().map(|machine| &machine.nodes) {
            Some(TargetMachine::Imported(machine)) => {
                let has_memory = |node: &&Node| node.memory.is_none_or(|memory| memory.total_bytes > 0);
                machine.topology.nodes.iter().filter(has_memory).map(|node| node.id as usize).collect()
            }
            None if !target.virtual_machine => recorded.node_cpus.keys().map(|node| *node as usize).collect(),
            _ => (0..target.nodes).collect(),
        }
    }

    /// # Errors
    /// When the pinning does not fit the machine of the profile.
    pub(crate) fn target(&self, recorded: &Machine) -> Result<Target> {
        let nodes = recorded.node_cpus.len();
        let machine = self.machine.as_ref().map_or_else(|| TargetMachine::default_for(nodes), |machine| machine.nodes.clone());
        let cores = recorded.node_cpus.values().map(Vec::len).max().unwrap_or(1).max(1);
        let pin = self.pin.clone().unwrap_or(Pin::Spread);
        let mut target = Target {
            name: String::new(),
            nodes,
            virtual_machine: true,
            pin,
            cores_per_node: cores,
            cpu_nodes: Vec::new(),
            slow_nodes: Vec::new(),
            private_cache_bytes: recorded.private_cache_bytes,
        };
        match &machine {
            TargetMachine::Virtual(nodes) => (target.name, target.nodes) = (format!("virtual:{nodes}"), *nodes),
            TargetMachine::Imported(machine) => {
                target.name.clone_from(&machine.name);
                target.cores_per_node = machine.topology.nodes.iter().map(|node| node.cpus.len()).max().unwrap_or(1).max(1);
                target.private_cache_bytes = machine.private_cache_bytes().unwrap_or(recorded.private_cache_bytes);
            }
            TargetMachine::Recorded if self.pin.is_some() => {
                return Err(request(format!(
                    "cannot use --pin on {}: its threads keep their recorded nodes; name a virtual machine, such as --machine virtual:{nodes}",
                    recorded.hostname
                )));
            }
            TargetMachine::Recorded => {
                (target.name, target.virtual_machine) = (recorded.hostname.clone(), false);
                target.nodes = node_numbers(recorded.node_cpus.keys());
                target.slow_nodes = slow_nodes(recorded);
            }
        }
        if let Some(seats) = Seats::of(&machine) {
            seats.check(&target.pin).map_err(|reason| request(format!("cannot use --pin on {}: {reason}", target.name)))?;
            (target.nodes, target.cpu_nodes) = (seats.nodes, seats.cpu_nodes);
        }
        if let Some(machine) = self.machine.as_ref().and_then(|machine| machine.description.as_ref()) {
            target.name.clone_from(&machine.name);
            target.cores_per_node = machine.nodes.iter().map(|node| node.cores).max().unwrap_or(1);
        }
        Ok(target)
    }
}

/// Nodes without CPUs, or of a slower tier than the fastest node with CPUs.
fn slow_nodes(machine: &Machine) -> Vec<u32> {
    let has_cpus = |node: &u32| machine.node_cpus.get(node).is_some_and(|cpus| !cpus.is_empty());
    let fastest = machine.node_tiers.iter().filter(|(node, _)| has_cpus(node)).map(|(_, tier)| *tier).min();
    let slower = |node: &u32| machine.node_tiers.get(node).zip(fastest).is_some_and(|(tier, fastest)| *tier > fastest);
    machine.node_cpus.keys().copied().filter(|node| !has_cpus(node) || slower(node)).collect()
}

/// One more than the highest node number, because node numbers may have gaps.
fn node_numbers<'a>(nodes: impl Iterator<Item = &'a u32>) -> usize {
    nodes.max().map_or(1, |last| *last as usize + 1)
}

/// Why a pinning does not fit a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SeatFault {
    /// The pinning names a node that does not exist.
    Pin(String),
    NoCpus {
        node: u32,
        cpu_nodes: Vec<u32>,
    },
}

impl fmt::Display for SeatFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(why) => f.write_str(why),
            Self::NoCpus { node, cpu_nodes } => write!(f, "node {node} has no CPUs; nodes with CPUs are {}", format_list(cpu_nodes)),
        }
    }
}

fn request(message: String) -> PipelineError {
    PipelineError::new(ErrorKind::Request, message)
}

/// The nodes on which a pinning may put threads, on a machine other than the profile's own.
struct Seats {
    nodes: usize,
    /// Nodes with CPUs; empty if all nodes have CPUs.
    cpu_nodes: Vec<u32>,
}

impl Seats {
    /// `None` for the profile's own machine.
    fn of(machine: &TargetMachine) -> Option<Self> {
        match machine {
            TargetMachine::Recorded => None,
            TargetMachine::Virtual(nodes) => Some(Self { nodes: *nodes, cpu_nodes: Vec::new() }),
            TargetMachine::Imported(machine) => {
                Some(Self { nodes: node_numbers(machine.topology.nodes.iter().map(|node| &node.id)), cpu_nodes: machine.cpu_nodes() })
            }
        }
    }

    fn check(&self, pin: &Pin) -> std::result::Result<(), SeatFault> {
        pin.check(self.nodes).map_err(|why| SeatFault::Pin(why.to_string()))?;
        if let Pin::Nodes(list) = pin
            && !self.cpu_nodes.is_empty()
            && let Some(node) = list.iter().find(|node| !self.cpu_nodes.contains(&node.0))
        {
            return Err(SeatFault::NoCpus { node: node.0, cpu_nodes: self.cpu_nodes.clone() });
        }
        Ok(())
    }
}

fn parse_pin(text: &str) -> Result<Pin> {
    text.parse::<Pin>().map_err(|error| {
        let place = text.get(..error.offset).map_or(0, |before| before.chars().count()) + 1;
        request(format!("cannot use pin '{text}': {} at character {place}", error.reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(machine: Option<&str>, pin: Option<&str>) -> Result<AnalysisRequest> {
        AnalysisRequest::parse(machine, pin)
    }

    fn recorded(nodes: u32) -> Machine {
        let node_cpus = (0..nodes).map(|node| (node, vec![2 * node, 2 * node + 1])).collect();
        Machine { hostname: "nine".into(), node_cpus, ..Machine::default() }
    }

    /// Check the default machine: the profile's own if it has two nodes, else two virtual ones.
    #[test]
    fn the_default_machine() {
        let nothing = request(None, None).unwrap();
        let one = nothing.target(&recorded(1)).unwrap();
        assert_eq!((one.name.as_str(), one.nodes, one.virtual_machine), ("virtual:2", 2, true));
        let two = nothing.target(&recorded(2)).unwrap();
        assert_eq!((two.name.as_str(), two.nodes, two.virtual_machine, two.cores_per_node), ("nine", 2, false, 2));
        let mut tiered = recorded(3);
        tiered.node_cpus.insert(3, Vec::new());
        tiered.node_tiers = [(0, 4), (1, 4), (2, 22)].into();
        assert_eq!(nothing.target(&tiered).unwrap().slow_nodes, [2, 3]);
    }

    /// A machine with four nodes of one CPU each whose numbers have gaps, and a node without CPUs, as an hwloc XML file.
    fn imported(folder: &tempfile::TempDir) -> String {
        let node = |id: u32, cpus: &str| format!("<object type='NUMANode' os_index='{id}' cpuset='{cpus}' local_memory='4096'/>");
        let cpu = |id: u32| format!("<object type='PU' os_index='{id}' cpuset='{:#x}'/>", 1 << id);
        let objects = [cpu(0), cpu(2), node(0, "0x1"), node(3, "0x4"), node(5, "0x5")].concat();
        let path = folder.path().join("big.iron.xml");
        std::fs::write(&path, format!("<topology version='2.0'><object type='Machine' cpuset='0x5'>{objects}</object></topology>"))
            .unwrap();
        path.display().to_string()
    }

    /// Check that threads are put only on nodes with CPUs of a machine from hwloc XML.
    #[test]
    fn machines_are_imported() {
        let folder = tempfile::tempdir().unwrap();
        let file = imported(&folder);
        let target = request(Some(&file), None).unwrap().target(&recorded(1)).unwrap();
        assert_eq!((target.name.as_str(), target.nodes, target.virtual_machine), ("big.iron", 6, true));
        assert_eq!((target.cpu_nodes.as_slice(), target.cores_per_node), (&[0, 3][..], 1));
        assert_eq!((0..4).map(|slot| target.seat(slot, 4)).collect::<Vec<_>>(), [0, 0, 3, 3]);

        let error = request(Some(&file), Some("0,5")).err().unwrap().to_string();
        assert_eq!(error, "cannot use pin '0,5': node 5 has no CPUs; nodes with CPUs are 0,3");
        assert!(request(Some(&file), Some("3,0")).is_ok());
        let error = request(Some(&file), Some("7")).err().unwrap().to_string();
        assert_eq!(error, "cannot use pin '7': node 7 does not exist: the machine has nodes 0-5");
    }

    /// Check that a wrong machine or pinning is refused, and that the error names it.
    #[test]
    fn refusals_name_the_cause() {
        for (machine, pin, message) in [
            (Some("virtual:65"), None, "cannot use machine 'virtual:65': virtual machines have 1 to 64 nodes"),
            (None, Some("0,x"), "cannot use pin '0,x': expected spread, compact, or node numbers such as 0,0,1,1 or 0-3 at character 3"),
            (Some("virtual:2"), Some("0,7"), "cannot use pin '0,7': node 7 does not exist: the machine has nodes 0-1"),
        ] {
            assert_eq!(request(machine, pin).err().unwrap().to_string(), message);
        }
        let pinned = request(None, Some("spread")).unwrap();
        let error = pinned.target(&recorded(2)).err().unwrap().to_string();
        assert!(error.starts_with("cannot use --pin on nine: its threads keep their recorded nodes"), "{error}");
    }
}
