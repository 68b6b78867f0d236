//! The machine that a profile is judged on: the requested one, else the profile's own, or two virtual nodes if that has one node.

use crate::pinnable_nodes::{PinnableNodes, node_numbers};
use crate::request::refused;
use crate::requested_machine::own_description;
use crate::requested_pin::Cpus;
use crate::{AnalysisRequest, Result};
use firsttouch_analysis::{RankLayout, Target};
use firsttouch_model::Pin;
use firsttouch_model::rows::{Host, Machine, Profile};
use firsttouch_model::topology::Node;
use firsttouch_predict::machine::MachineModel;
use firsttouch_system::TargetMachine;

impl AnalysisRequest {
    /// Whether a profile of this machine can be judged as requested: for commands that check their options before they run a program.
    ///
    /// # Errors
    /// When the pinning does not fit the machine, or the user's own description of it cannot be used.
    pub fn check(&self, recorded: &Machine) -> Result<()> {
        self.target(recorded)?;
        self.description(recorded).map(|_| ())
    }

    /// Whether the bandwidths of the machine are known that a profile of this machine is judged on.
    #[must_use]
    pub fn knows_bandwidths(&self, recorded: &Machine) -> bool {
        self.description(recorded).is_ok_and(|description| description.is_some())
    }

    /// The name of the machine that a profile of this machine is judged on.
    ///
    /// # Errors
    /// As [`AnalysisRequest::check`].
    pub fn machine_name(&self, recorded: &Machine) -> Result<String> {
        Ok(self.target(recorded)?.name)
    }

    /// The name of the machine that a profile of this machine is judged on, its nodes, and whether it is another one than that.
    ///
    /// # Errors
    /// As [`AnalysisRequest::check`].
    pub fn judged_machine(&self, recorded: &Machine) -> Result<(String, usize, bool)> {
        let target = self.target(recorded)?;
        Ok((target.name, target.nodes, target.virtual_machine))
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

    /// The CPUs of the machine that is judged on. A node of a virtual machine has as many as the largest node of the recorded machine.
    fn cpus<'a>(&self, machine: &'a TargetMachine, recorded_cores: usize) -> Cpus<'a> {
        match (machine, self.machine.as_ref().and_then(|machine| machine.description.as_ref())) {
            (TargetMachine::Imported(machine), _) => Cpus::Known(&machine.topology),
            (_, Some(described)) => Cpus::Counted(described.nodes.iter().map(|node| (node.cores, node.package)).collect()),
            (TargetMachine::Virtual(nodes), None) => Cpus::Counted((0..*nodes).map(|node| (recorded_cores.max(1), node)).collect()),
            (TargetMachine::Recorded, None) => Cpus::Counted(Vec::new()),
        }
    }

    /// # Errors
    /// When the pinning does not fit the machine of the profile.
    pub(crate) fn target(&self, recorded: &Machine) -> Result<Target> {
        let nodes = recorded.node_cpus.len();
        let machine = self.machine.as_ref().map_or_else(|| TargetMachine::default_for(nodes), |machine| machine.nodes.clone());
        let cores = Target::cores_per_node(recorded.node_cpus.values().map(Vec::len));
        let mut target = Target {
            name: String::new(),
            nodes,
            virtual_machine: true,
            pin: Pin::Spread,
            place_all_threads: self.place_all_threads,
            cores_per_node: cores,
            cpu_nodes: Vec::new(),
            slow_nodes: Vec::new(),
            private_cache_bytes: recorded.private_cache_bytes,
            ranks: self.ranks.clone(),
        };
        match &machine {
            TargetMachine::Virtual(nodes) => (target.name, target.nodes) = (format!("virtual:{nodes}"), *nodes),
            TargetMachine::Imported(machine) => {
                target.name.clone_from(&machine.name);
                target.cores_per_node = Target::cores_per_node(machine.topology.nodes.iter().map(|node| node.cpus.len()));
                target.private_cache_bytes = machine.private_cache_bytes().unwrap_or(recorded.private_cache_bytes);
            }
            TargetMachine::Recorded if self.pin.is_some() => {
                return Err(refused(format!(
                    "cannot use --pin on {}: its threads keep their recorded nodes; name a virtual machine, such as --machine virtual:{nodes}",
                    recorded.hostname
                )));
            }
            TargetMachine::Recorded if self.ranks.is_given() => {
                return Err(refused(format!(
                    "cannot place ranks on {}: they keep their recorded nodes; name a virtual machine, such as --machine virtual:{nodes}",
                    recorded.hostname
                )));
            }
            TargetMachine::Recorded => {
                (target.name, target.virtual_machine) = (recorded.hostname.clone(), false);
                target.nodes = node_numbers(recorded.node_cpus.keys());
                target.slow_nodes = slow_nodes(recorded);
            }
        }
        if let Some(pin) = &self.pin {
            target.pin = pin.on(&self.cpus(&machine, target.cores_per_node))?;
        }
        if let Some(seats) = PinnableNodes::of(&machine) {
            seats.check(&target.pin).map_err(|reason| refused(format!("cannot use --pin on {}: {reason}", target.name)))?;
            (target.nodes, target.cpu_nodes) = (seats.nodes, seats.cpu_nodes);
        }
        if let Some(machine) = self.machine.as_ref().and_then(|machine| machine.description.as_ref()) {
            target.name.clone_from(&machine.name);
            target.cores_per_node = Target::cores_per_node(machine.nodes.iter().map(|node| node.cores));
        }
        Ok(target)
    }
}

impl AnalysisRequest {
    /// The machine that a profile is judged on: of a merged one, one machine for each of its hosts.
    ///
    /// # Errors
    /// When the pinning does not fit the machine of the profile.
    pub(crate) fn target_of(&self, profile: &Profile) -> Result<Target> {
        if profile.hosts.len() < 2 {
            return self.target(&profile.machine);
        }
        let of_host = |host: &Host| profile.parts.iter().find(|part| part.host == host.id).map(|part| &part.machine);
        let largest = profile.hosts.iter().filter_map(of_host).max_by_key(|machine| machine.node_cpus.len());
        let one = self.target(largest.unwrap_or(&profile.machine))?;
        if !one.virtual_machine {
            let hosts = profile.hosts.iter().map(|host| (host.first_node, host.nodes as usize)).collect();
            let all = self.target(&profile.machine)?;
            return Ok(Target { ranks: RankLayout { hosts, ..all.ranks.clone() }, ..all });
        }
        let each = u32::try_from(one.nodes).unwrap_or(u32::MAX);
        let first = |host: usize| u32::try_from(host).unwrap_or(u32::MAX).saturating_mul(each);
        let hosts: Vec<(u32, usize)> = (0..profile.hosts.len()).map(|host| (first(host), one.nodes)).collect();
        let on_all = |list: &[u32]| hosts.iter().flat_map(|(first, _)| list.iter().map(move |node| first + node)).collect();
        Ok(Target {
            name: format!("{} x {}", profile.hosts.len(), one.name),
            nodes: one.nodes * hosts.len(),
            cpu_nodes: on_all(&one.cpu_nodes),
            slow_nodes: on_all(&one.slow_nodes),
            ranks: RankLayout { hosts, ..one.ranks.clone() },
            ..one
        })
    }
}

/// Nodes without CPUs, or of a slower tier than the fastest node with CPUs.
fn slow_nodes(machine: &Machine) -> Vec<u32> {
    let has_cpus = |node: &u32| machine.node_cpus.get(node).is_some_and(|cpus| !cpus.is_empty());
    let fastest = machine.node_tiers.iter().filter(|(node, _)| has_cpus(node)).map(|(_, tier)| *tier).min();
    let slower = |node: &u32| machine.node_tiers.get(node).zip(fastest).is_some_and(|(tier, fastest)| *tier > fastest);
    machine.node_cpus.keys().copied().filter(|node| !has_cpus(node) || slower(node)).collect()
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

        let error = request(Some(&file), Some("nodes:0,5")).err().unwrap().to_string();
        assert_eq!(error, "cannot use --pin 'nodes:0,5': node 5 has no CPUs; nodes with CPUs are 0,3");
        assert!(request(Some(&file), Some("nodes:3,0")).is_ok());
        let error = request(Some(&file), Some("nodes:7")).err().unwrap().to_string();
        assert_eq!(error, "cannot use --pin 'nodes:7': node 7 does not exist: the machine has nodes 0-5");
    }

    /// Check that the recorded machine takes no pinning, and that the error names the machine.
    #[test]
    fn the_recorded_machine_has_no_pinning() {
        let pinned = request(None, Some("spread")).unwrap();
        let error = pinned.target(&recorded(2)).err().unwrap().to_string();
        assert!(error.starts_with("cannot use --pin on nine: its threads keep their recorded nodes"), "{error}");
    }
}
