//! From a profile file to its analysis on the machine asked for.

use crate::arguments::Judge;
use crate::commands::usage;
use crate::described::{Named, own};
use crate::forecast::add_to_report;
use anyhow::{Context as _, Result, anyhow};
use firsttouch_analysis::{Analysis, REPORT_SCHEMA, Target, study, variables};
use firsttouch_capture::symbolize::symbolize_profile;
use firsttouch_model::Pin;
use firsttouch_model::metadata::Entry;
use firsttouch_model::rows::{Machine as Recorded, Profile};
use firsttouch_model::topology::{Node, format_list};
use firsttouch_model::traffic::Traffic;
use firsttouch_predict::machine::Machine;
use firsttouch_profile::Writer;
use firsttouch_report::{Context, FileSources};
use firsttouch_system::TargetMachine;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// An analysis, and what the text report needs besides.
pub struct Judged {
    pub analysis: Analysis,
    pub recorded_nodes: usize,
    /// What a model of the machine needs.
    pub traffic: Traffic,
    /// The machine's numbers, where they are known.
    pub described: Option<Machine>,
    /// Nodes of the machine that have memory.
    pub memory_nodes: Vec<usize>,
    /// Whether the user said where threads sit.
    pub pin_was_named: bool,
    /// How the user said both, as options.
    pub options: Vec<String>,
}

impl Judged {
    pub fn context(&self, profile: &Path, heading: bool) -> Context {
        Context {
            profile: profile.display().to_string(),
            options: self.options.clone(),
            recorded_nodes: self.recorded_nodes,
            heading,
            more: true,
            prefix: if heading { "" } else { "firsttouch: " },
        }
    }
}

/// What the user asked to judge on, understood.
pub struct Question {
    machine: Option<Named>,
    pin: Option<Pin>,
    options: Vec<String>,
}

impl Question {
    /// # Errors
    /// When the machine or the pinning cannot be understood, or do not fit each other: a wrong command line.
    pub fn parse(arguments: &Judge) -> Result<Self> {
        let machine = arguments.machine.as_deref().map(Named::parse).transpose()?;
        let pin = arguments.pin.as_deref().map(parse_pin).transpose()?;
        if let (Some(machine), Some(pin), Some(text)) = (&machine, &pin, &arguments.pin) {
            let seats = Seats::of(&machine.nodes);
            seats.map_or(Ok(()), |seats| seats.check(pin)).map_err(|reason| anyhow!("cannot use pin '{text}': {reason}"))?;
        }
        let given = [("--machine", &arguments.machine), ("--pin", &arguments.pin)];
        let options = given.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value.clone()?])).flatten().collect();
        Ok(Self { machine, pin, options })
    }

    /// Whether a machine was named of which only the nodes are known.
    pub fn is_bare(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.described.is_none())
    }

    /// The machine's numbers, where they are known: of the one named, or of the profile's own.
    ///
    /// # Errors
    /// A description of the user's own that cannot be used.
    fn described(&self, recorded: &Recorded) -> Result<Option<Machine>> {
        match &self.machine {
            Some(machine) => Ok(machine.described.clone()),
            None => {
                let nodes = node_numbers(recorded.node_cpus.keys());
                Ok(own(&recorded.hostname)?.filter(|machine| nodes >= 2 && machine.nodes.len() == nodes))
            }
        }
    }

    /// Nodes with memory of the machine that is judged on.
    fn memory_nodes(&self, recorded: &Recorded, target: &Target) -> Vec<usize> {
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
    fn target(&self, recorded: &Recorded) -> Result<Target> {
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
                return Err(anyhow!(
                    "cannot use --pin on {}: its threads sit where they were seen; name a virtual machine, such as --machine virtual:{nodes}",
                    recorded.hostname
                ));
            }
            TargetMachine::Recorded => {
                (target.name, target.virtual_machine) = (recorded.hostname.clone(), false);
                target.nodes = node_numbers(recorded.node_cpus.keys());
                target.slow_nodes = slow_nodes(recorded);
            }
        }
        if let Some(seats) = Seats::of(&machine) {
            seats.check(&target.pin).map_err(|reason| anyhow!("cannot use --pin on {}: {reason}", target.name))?;
            (target.nodes, target.cpu_nodes) = (seats.nodes, seats.cpu_nodes);
        }
        if let Some(machine) = self.machine.as_ref().and_then(|machine| machine.described.as_ref()) {
            target.name.clone_from(&machine.name);
            target.cores_per_node = machine.nodes.iter().map(|node| node.cores).max().unwrap_or(1);
        }
        Ok(target)
    }
}

/// Nodes without CPUs, or of a slower tier than the fastest with CPUs.
fn slow_nodes(machine: &Recorded) -> Vec<u32> {
    let has_cpus = |node: &u32| machine.node_cpus.get(node).is_some_and(|cpus| !cpus.is_empty());
    let fastest = machine.node_tiers.iter().filter(|(node, _)| has_cpus(node)).map(|(_, tier)| *tier).min();
    let slower = |node: &u32| machine.node_tiers.get(node).zip(fastest).is_some_and(|(tier, fastest)| *tier > fastest);
    machine.node_cpus.keys().copied().filter(|node| !has_cpus(node) || slower(node)).collect()
}

/// One more than the highest node number: numbers may have holes.
fn node_numbers<'a>(nodes: impl Iterator<Item = &'a u32>) -> usize {
    nodes.max().map_or(1, |last| *last as usize + 1)
}

/// Where a pinning may put threads on a machine that is not the profile's own.
struct Seats {
    nodes: usize,
    /// Nodes with CPUs; empty when all have some.
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

    fn check(&self, pin: &Pin) -> Result<(), String> {
        pin.check(self.nodes)?;
        if let Pin::Nodes(list) = pin
            && !self.cpu_nodes.is_empty()
            && let Some(node) = list.iter().find(|node| !self.cpu_nodes.contains(&node.0))
        {
            return Err(format!("node {} has no CPUs; nodes with CPUs are {}", node.0, format_list(&self.cpu_nodes)));
        }
        Ok(())
    }
}

fn parse_pin(text: &str) -> Result<Pin> {
    text.parse::<Pin>().map_err(|error| {
        let place = text.get(..error.offset).map_or(0, |before| before.chars().count()) + 1;
        anyhow!("cannot use pin '{text}': {} at character {place}", error.reason)
    })
}

/// Reads and judges a profile.
///
/// # Errors
/// When the file is not a readable profile, or the pinning does not fit its machine.
pub fn judge(path: &Path, question: &Question) -> Result<Judged> {
    judge_profile(&read(path)?, question)
}

/// Reads a profile, and gives its frames their lines where it has none.
///
/// # Errors
/// When the file is not a readable profile.
pub fn read(path: &Path) -> Result<Profile> {
    let mut profile = firsttouch_profile::open(path)?;
    symbolize_profile(&mut profile);
    Ok(profile)
}

/// Judges a profile that was read.
///
/// # Errors
/// When the pinning does not fit its machine.
pub fn judge_profile(profile: &Profile, question: &Question) -> Result<Judged> {
    let target = usage(question.target(&profile.machine))?;
    let mut sources = FileSources::new(firsttouch_native::SOURCES);
    if let Some(start) = profile.meta.start_unix_s {
        // The start is known to the second.
        sources = sources.until(SystemTime::UNIX_EPOCH + Duration::from_secs(start.saturating_add(1).min(u64::from(u32::MAX))));
    }
    let (mut analysis, traffic) = study(profile, &target, &sources);
    analysis.notes.extend(sources.notes());
    let mut judged = Judged {
        analysis,
        recorded_nodes: profile.machine.node_cpus.len(),
        traffic,
        described: question.described(&profile.machine)?,
        memory_nodes: question.memory_nodes(&profile.machine, &target),
        pin_was_named: question.pin.is_some(),
        options: question.options.clone(),
    };
    add_to_report(profile, &mut judged)?;
    Ok(judged)
}

/// Judges a profile that was just recorded, and keeps in it the variables' names: sources change.
///
/// # Errors
/// As [`judge`]. That names cannot be kept is none.
pub fn judge_first(path: &Path, question: &Question) -> Result<Judged> {
    let profile = read(path)?;
    let judged = judge_profile(&profile, question)?;
    let variables = variables(&profile, &judged.analysis);
    if !variables.is_empty() {
        let _ = Writer::reopen(path).and_then(|writer| {
            writer.meta(Entry::Variables(&variables))?;
            writer.finish()
        });
    }
    Ok(judged)
}

/// Whether a file is a database of SQLite, as profiles are.
pub fn is_database(path: &Path) -> bool {
    let mut start = [0; 16];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start == SQLITE
}

/// What a profile is judged to be, or what an earlier `report --json` printed.
///
/// # Errors
/// A file that is neither; a report that would have to be judged anew.
pub fn analysed(path: &Path, question: &Question) -> Result<Box<Analysis>> {
    let cannot = || format!("cannot use {}", path.display());
    if is_database(path) {
        return Ok(Box::new(judge(path, question)?.analysis));
    }
    let text = std::fs::read(path).with_context(cannot)?;
    let analysis: Analysis = serde_json::from_slice(&text)
        .context("neither a profile nor a report as 'firsttouch report --json' writes it")
        .with_context(cannot)?;
    if analysis.schema != REPORT_SCHEMA {
        return Err(anyhow!("its schema is '{}', expected '{REPORT_SCHEMA}'", analysis.schema)).with_context(cannot);
    }
    Ok(Box::new(analysis))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(machine: Option<&str>, pin: Option<&str>) -> Result<Question> {
        Question::parse(&Judge { machine: machine.map(str::to_owned), pin: pin.map(str::to_owned) })
    }

    fn recorded(nodes: u32) -> Recorded {
        let node_cpus = (0..nodes).map(|node| (node, vec![2 * node, 2 * node + 1])).collect();
        Recorded { hostname: "nine".into(), node_cpus, ..Recorded::default() }
    }

    /// Check the default machine: the profile's own if it has two nodes, else two virtual ones.
    #[test]
    fn the_default_machine() {
        let nothing = question(None, None).unwrap();
        let one = nothing.target(&recorded(1)).unwrap();
        assert_eq!((one.name.as_str(), one.nodes, one.virtual_machine), ("virtual:2", 2, true));
        let two = nothing.target(&recorded(2)).unwrap();
        assert_eq!((two.name.as_str(), two.nodes, two.virtual_machine, two.cores_per_node), ("nine", 2, false, 2));
        let mut tiered = recorded(3);
        tiered.node_cpus.insert(3, Vec::new());
        tiered.node_tiers = [(0, 4), (1, 4), (2, 22)].into();
        assert_eq!(nothing.target(&tiered).unwrap().slow_nodes, [2, 3]);
    }

    /// A machine of four nodes of one CPU each in holes of numbers, and a node without CPUs, as an hwloc XML file.
    fn imported(folder: &tempfile::TempDir) -> String {
        let node = |id: u32, cpus: &str| format!("<object type='NUMANode' os_index='{id}' cpuset='{cpus}' local_memory='4096'/>");
        let cpu = |id: u32| format!("<object type='PU' os_index='{id}' cpuset='{:#x}'/>", 1 << id);
        let objects = [cpu(0), cpu(2), node(0, "0x1"), node(3, "0x4"), node(5, "0x5")].concat();
        let path = folder.path().join("big.iron.xml");
        std::fs::write(&path, format!("<topology version='2.0'><object type='Machine' cpuset='0x5'>{objects}</object></topology>"))
            .unwrap();
        path.display().to_string()
    }

    /// Check that threads are put on the nodes with CPUs of a machine from hwloc's XML, and on no other.
    #[test]
    fn machines_are_imported() {
        let folder = tempfile::tempdir().unwrap();
        let file = imported(&folder);
        let target = question(Some(&file), None).unwrap().target(&recorded(1)).unwrap();
        assert_eq!((target.name.as_str(), target.nodes, target.virtual_machine), ("big.iron", 6, true));
        assert_eq!((target.cpu_nodes.as_slice(), target.cores_per_node), (&[0, 3][..], 1));
        assert_eq!((0..4).map(|slot| target.seat(slot, 4)).collect::<Vec<_>>(), [0, 0, 3, 3]);

        let error = question(Some(&file), Some("0,5")).err().unwrap().to_string();
        assert_eq!(error, "cannot use pin '0,5': node 5 has no CPUs; nodes with CPUs are 0,3");
        assert!(question(Some(&file), Some("3,0")).is_ok());
        let error = question(Some(&file), Some("7")).err().unwrap().to_string();
        assert_eq!(error, "cannot use pin '7': node 7 does not exist: the machine has nodes 0-5");
    }

    /// Check that a wrong machine or pinning is refused and named.
    #[test]
    fn refusals_name_the_cause() {
        for (machine, pin, message) in [
            (Some("virtual:65"), None, "cannot use machine 'virtual:65': virtual machines have 1 to 64 nodes"),
            (None, Some("0,x"), "cannot use pin '0,x': expected spread, compact, or node numbers such as 0,0,1,1 or 0-3 at character 3"),
            (Some("virtual:2"), Some("0,7"), "cannot use pin '0,7': node 7 does not exist: the machine has nodes 0-1"),
        ] {
            assert_eq!(question(machine, pin).err().unwrap().to_string(), message);
        }
        let pinned = question(None, Some("spread")).unwrap();
        let error = pinned.target(&recorded(2)).err().unwrap().to_string();
        assert!(error.starts_with("cannot use --pin on nine: its threads sit where they were seen"), "{error}");
    }
}
