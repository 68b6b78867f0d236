//! From a profile file to its analysis on the machine asked for.

use crate::arguments::Judge;
use crate::commands::usage;
use anyhow::{Result, anyhow};
use firsttouch_analysis::{Analysis, Target, analyse};
use firsttouch_capture::symbolize::symbolize_profile;
use firsttouch_domain::Pin;
use firsttouch_machine::TargetMachine;
use firsttouch_profile::{Machine, meta};
use firsttouch_report::{Context, FileSources};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// An analysis, and what the text report needs besides.
pub struct Judged {
    pub analysis: Analysis,
    pub recorded_nodes: usize,
}

impl Judged {
    pub fn context(&self, profile: &Path, heading: bool) -> Context {
        Context {
            profile: profile.display().to_string(),
            recorded_nodes: self.recorded_nodes,
            heading,
            more: true,
            prefix: if heading { "" } else { "firsttouch: " },
        }
    }
}

/// What the user asked to judge on, understood.
pub struct Question {
    machine: Option<TargetMachine>,
    pin: Option<Pin>,
}

impl Question {
    /// # Errors
    /// When the machine or the pinning cannot be understood, or do not fit each other: a wrong command line.
    pub fn parse(arguments: &Judge) -> Result<Self> {
        let machine = arguments.machine.as_deref().map(TargetMachine::parse).transpose()?;
        let pin = arguments.pin.as_deref().map(parse_pin).transpose()?;
        if let (Some(TargetMachine::Virtual(nodes)), Some(pin), Some(text)) = (machine, &pin, &arguments.pin) {
            pin.check(nodes).map_err(|reason| anyhow!("cannot use pin '{text}': {reason}"))?;
        }
        Ok(Self { machine, pin })
    }

    /// # Errors
    /// When the pinning does not fit the machine of the profile.
    fn target(&self, recorded: &Machine) -> Result<Target> {
        let nodes = recorded.node_cpus.len();
        let machine = self.machine.unwrap_or_else(|| TargetMachine::default_for(nodes));
        let cores = recorded.node_cpus.values().map(Vec::len).max().unwrap_or(1).max(1);
        let (name, nodes) = match machine {
            TargetMachine::Virtual(nodes) => (format!("virtual:{nodes}"), nodes),
            TargetMachine::Recorded if self.pin.is_some() => {
                return Err(anyhow!(
                    "cannot use --pin on {}: its threads sit where they were seen; name a virtual machine, such as --machine virtual:{nodes}",
                    recorded.hostname
                ));
            }
            // Node numbers may have holes.
            TargetMachine::Recorded => (recorded.hostname.clone(), recorded.node_cpus.keys().max().map_or(1, |last| *last as usize + 1)),
        };
        let pin = self.pin.clone().unwrap_or(Pin::Spread);
        pin.check(nodes).map_err(|reason| anyhow!("cannot use --pin on {name}: {reason}"))?;
        Ok(Target {
            name,
            nodes,
            virtual_machine: machine != TargetMachine::Recorded,
            pin,
            cores_per_node: cores,
            private_cache_bytes: recorded.private_cache_bytes,
        })
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
    let mut profile = firsttouch_profile::open(path)?;
    symbolize_profile(&mut profile);
    let target = usage(question.target(&profile.machine))?;
    let mut sources = FileSources::new(firsttouch_native::SOURCES);
    if let Some(start) = profile.meta.get(meta::START_UNIX_S).and_then(|text| text.parse::<u64>().ok()) {
        // The start is known to the second.
        sources = sources.until(SystemTime::UNIX_EPOCH + Duration::from_secs(start.saturating_add(1).min(u64::from(u32::MAX))));
    }
    let mut analysis = analyse(&profile, &target, &sources);
    analysis.notes.extend(sources.notes());
    Ok(Judged { analysis, recorded_nodes: profile.machine.node_cpus.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(machine: Option<&str>, pin: Option<&str>) -> Result<Question> {
        Question::parse(&Judge { machine: machine.map(str::to_owned), pin: pin.map(str::to_owned) })
    }

    fn recorded(nodes: u32) -> Machine {
        let node_cpus = (0..nodes).map(|node| (node, vec![2 * node, 2 * node + 1])).collect();
        Machine { hostname: "nine".into(), node_cpus, ..Machine::default() }
    }

    /// Check the default machine: the profile's own if it has two nodes, else two virtual ones.
    #[test]
    fn the_default_machine() {
        let nothing = question(None, None).unwrap();
        let one = nothing.target(&recorded(1)).unwrap();
        assert_eq!((one.name.as_str(), one.nodes, one.virtual_machine), ("virtual:2", 2, true));
        let two = nothing.target(&recorded(2)).unwrap();
        assert_eq!((two.name.as_str(), two.nodes, two.virtual_machine, two.cores_per_node), ("nine", 2, false, 2));
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
