//! The pinning that the user asks for: an affinity expression, as `firsttouch run --pin` takes it, for the machine that is judged on.

use crate::Result;
use crate::request::refused;
use firsttouch_model::topology::{CpuLists, Node, Package, Topology};
use firsttouch_model::{NodeId, Pin};
use firsttouch_placement::{Affinity, Layout};

/// The pinning given with `--pin`.
pub(crate) struct RequestedPin {
    text: String,
    wanted: Wanted,
}

enum Wanted {
    /// Does not depend on the machine's CPUs.
    Pin(Pin),
    Expression(Affinity),
}

/// The CPUs of the machine that is judged on.
pub(crate) enum Cpus<'a> {
    Known(&'a Topology),
    /// Only the number of CPUs of each node, and its package, are known.
    Counted(Vec<(usize, usize)>),
}

impl RequestedPin {
    pub fn parse(text: &str) -> Result<Self> {
        let wanted = match text {
            "spread" => Wanted::Pin(Pin::Spread),
            "compact" => Wanted::Pin(Pin::Compact),
            _ => {
                let expression: Affinity = text.parse().map_err(|error: firsttouch_model::ExpressionError| {
                    let place = text.get(..error.offset).map_or(0, |before| before.chars().count()) + 1;
                    refused(format!("cannot use --pin '{text}': {} at character {place}", error.reason))
                })?;
                match expression.nodes() {
                    Some(nodes) => Wanted::Pin(Pin::Nodes(nodes.into_iter().map(NodeId).collect())),
                    None => Wanted::Expression(expression),
                }
            }
        };
        Ok(Self { text: text.to_owned(), wanted })
    }

    /// The pinning, if it does not depend on the machine's CPUs.
    pub fn fixed(&self) -> Option<&Pin> {
        match &self.wanted {
            Wanted::Pin(pin) => Some(pin),
            Wanted::Expression(_) => None,
        }
    }

    /// The pinning on a machine.
    ///
    /// # Errors
    /// When the expression names CPUs or objects that the machine does not have.
    pub fn on(&self, cpus: &Cpus<'_>) -> Result<Pin> {
        let expression = match &self.wanted {
            Wanted::Pin(pin) => return Ok(pin.clone()),
            Wanted::Expression(expression) => expression,
        };
        let cannot = |why: String| refused(format!("cannot use --pin '{}': {why}", self.text));
        let made;
        let topology = match cpus {
            Cpus::Known(topology) => *topology,
            Cpus::Counted(_) if expression.names_cpus() => {
                return Err(cannot(
                    "these are numbers of CPUs, as in 'firsttouch run', and the CPUs of this machine have no numbers. Write nodes:0,0,1,1 for \
                     the node of each thread"
                        .to_owned(),
                ));
            }
            Cpus::Counted(nodes) => {
                made = counted(nodes);
                &made
            }
        };
        let of_threads = expression.resolve(&Layout::new(topology), None).map_err(|error| cannot(error.reason))?;
        Ok(Pin::Nodes(of_threads.into_iter().filter_map(|cpu| topology.node_of_cpu(cpu)).map(NodeId).collect()))
    }
}

/// A machine with consecutive CPUs: of each node, the number of its CPUs and its package.
fn counted(nodes: &[(usize, usize)]) -> Topology {
    let mut topology = Topology::default();
    let mut next = 0u32;
    for ((count, package), id) in nodes.iter().zip(0u32..) {
        let cpus: Vec<u32> = (next..).take(*count).collect();
        next += u32::try_from(*count).unwrap_or(0);
        let package = u32::try_from(*package).unwrap_or(0);
        match topology.packages.iter_mut().find(|known| known.id == package) {
            Some(known) => {
                known.cpus.extend(&cpus);
                known.nodes.push(id);
            }
            None => topology.packages.push(Package { id: package, cpus: cpus.clone(), nodes: vec![id] }),
        }
        topology.nodes.push(Node { id, cpus, memory: None, huge_pages: Vec::new(), access: Vec::new(), memory_side_caches: Vec::new() });
    }
    topology.cpus = CpuLists { online: (0..next).collect(), ..CpuLists::default() };
    topology
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(text: &str) -> Vec<u32> {
        let cpus = Cpus::Counted(vec![(2, 0), (2, 1)]);
        match RequestedPin::parse(text).unwrap().on(&cpus).unwrap() {
            Pin::Nodes(nodes) => nodes.into_iter().map(|node| node.0).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Check that expressions mean the nodes of the CPUs that they name, on two nodes of two CPUs.
    #[test]
    fn expressions_become_nodes() {
        for (text, expected) in [
            ("nodes:0,0,1,1", &[0, 0, 1, 1][..]),
            ("nodes:1-0", &[1, 0]),
            ("scatter", &[0, 1, 0, 1]),
            ("compact:3", &[0, 0, 1]),
            ("spread:6", &[0, 0, 0, 1, 1, 1]),
            ("M1:0-1@M0:0", &[1, 1, 0]),
            ("S:scatter:2", &[0, 1]),
            ("package:1.core:0", &[1]),
        ] {
            assert_eq!(nodes(text), expected, "{text}");
        }
        assert_eq!(RequestedPin::parse("spread").unwrap().fixed(), Some(&Pin::Spread));
    }

    /// Check that numbers of CPUs are refused where CPUs have no numbers, and that other mistakes are named.
    #[test]
    fn refusals_name_the_cause() {
        let cpus = Cpus::Counted(vec![(2, 0), (2, 1)]);
        for (text, cause) in [("0,0,1,1", "Write nodes:0,0,1,1"), ("S2:0", "S2"), ("package:7", "7")] {
            let error = RequestedPin::parse(text).unwrap().on(&cpus).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot use --pin '{text}': ")) && error.contains(cause), "{error}");
        }
        assert!(RequestedPin::parse("nodes:").is_err() && RequestedPin::parse("nodes:0,x").is_err());
    }
}
