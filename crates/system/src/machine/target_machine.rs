//! The machine a profile is judged on.

use firsttouch_model::Error;
use firsttouch_model::pairs::PairFigure;
use firsttouch_model::topology::Topology;
use std::fmt;
use std::path::Path;

/// The most nodes of a virtual machine.
const MOST_NODES: usize = 64;
/// Nodes of the virtual machine that replaces a machine with one node.
const DEFAULT_NODES: usize = 2;
/// No kernel has node numbers this large (CONFIG_NODES_SHIFT ends at 10); they would make huge matrices.
const MOST_NODE_NUMBER: u32 = 1024;

/// A machine to judge placement on.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetMachine {
    /// The machine the profile was taken on: pages and threads are where they were seen.
    Recorded,
    /// `virtual:N`: N equal nodes; `--pin` places threads, and pages are where their first toucher runs.
    Virtual(usize),
    /// An hwloc XML file: its nodes and CPUs; threads and pages are placed as on a virtual machine.
    Imported(Box<ImportedMachine>),
}

/// A machine read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedMachine {
    /// The file's name without its extension.
    pub name: String,
    pub topology: Topology,
    /// Bandwidths and latencies of pairs of nodes, if the file has them.
    pub figures: Vec<PairFigure>,
}

/// Why a machine was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetError {
    pub text: String,
    pub reason: String,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use machine '{}': {}", self.text, self.reason)
    }
}

impl std::error::Error for TargetError {}

impl TargetMachine {
    /// Parses `virtual:N`, or reads the hwloc XML file of that name.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let fail = |reason: String| TargetError { text: text.to_owned(), reason };
        let Some(count) = text.strip_prefix("virtual:") else {
            let path = Path::new(text);
            let names_a_file = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("xml")) || path.is_file();
            if !names_a_file {
                return Err(fail("expected virtual:N, for example virtual:4, or an hwloc XML file (lstopo --of xml FILE.xml)".to_owned()));
            }
            return ImportedMachine::read(path)
                .map(|machine| Self::Imported(Box::new(machine)))
                .map_err(|error| fail(format!("{error:#}")));
        };
        if count.is_empty() || !count.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(fail(format!("expected a number of nodes after 'virtual:', found '{count}'")));
        }
        match count.parse::<usize>() {
            Ok(nodes) if (1..=MOST_NODES).contains(&nodes) => Ok(Self::Virtual(nodes)),
            _ => Err(fail(format!("virtual machines have 1 to {MOST_NODES} nodes"))),
        }
    }

    /// The default for a profile taken on a machine with `recorded_nodes` nodes: that machine if it has two or more.
    #[must_use]
    pub fn default_for(recorded_nodes: usize) -> Self {
        if recorded_nodes >= 2 { Self::Recorded } else { Self::Virtual(DEFAULT_NODES) }
    }
}

impl ImportedMachine {
    fn read(path: &Path) -> Result<Self, Error> {
        let (topology, figures) = crate::hwloc::read_file_with_figures(path)?;
        if let Some(node) = topology.nodes.iter().find(|node| node.id >= MOST_NODE_NUMBER) {
            return Err(Error::invalid_data(format!(
                "{} has node {}; machines with node numbers below {MOST_NODE_NUMBER} can be judged",
                path.display(),
                node.id
            )));
        }
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, topology, figures })
    }

    /// Nodes with CPUs, where threads can run.
    #[must_use]
    pub fn cpu_nodes(&self) -> Vec<u32> {
        self.topology.nodes.iter().filter(|node| !node.cpus.is_empty()).map(|node| node.id).collect()
    }

    /// The level 2 cache of a core, bytes; `None` if the file does not have it.
    #[must_use]
    pub fn private_cache_bytes(&self) -> Option<u64> {
        self.topology.caches.iter().find(|cache| cache.level == 2).map(|cache| cache.size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that virtual machines are read from 1 to 64 nodes.
    #[test]
    fn virtual_machines_are_read() {
        for nodes in [1, 2, 64] {
            assert_eq!(TargetMachine::parse(&format!("virtual:{nodes}")), Ok(TargetMachine::Virtual(nodes)));
        }
        assert_eq!(TargetMachine::default_for(1), TargetMachine::Virtual(2));
        assert_eq!(TargetMachine::default_for(0), TargetMachine::Virtual(2));
        assert_eq!(TargetMachine::default_for(2), TargetMachine::Recorded);
    }

    /// Check that every refusal names the text and the reason.
    #[test]
    fn refusals_name_the_text() {
        for (text, message) in [
            ("virtual:65", "cannot use machine 'virtual:65': virtual machines have 1 to 64 nodes"),
            ("virtual:0", "cannot use machine 'virtual:0': virtual machines have 1 to 64 nodes"),
            (
                "virtual:99999999999999999999999",
                "cannot use machine 'virtual:99999999999999999999999': virtual machines have 1 to 64 nodes",
            ),
            ("virtual:", "cannot use machine 'virtual:': expected a number of nodes after 'virtual:', found ''"),
            ("virtual:-1", "cannot use machine 'virtual:-1': expected a number of nodes after 'virtual:', found '-1'"),
            ("virtual:+2", "cannot use machine 'virtual:+2': expected a number of nodes after 'virtual:', found '+2'"),
            ("virtual:2x", "cannot use machine 'virtual:2x': expected a number of nodes after 'virtual:', found '2x'"),
            (
                "virtual",
                "cannot use machine 'virtual': expected virtual:N, for example virtual:4, or an hwloc XML file (lstopo --of xml FILE.xml)",
            ),
            ("", "cannot use machine '': expected virtual:N, for example virtual:4, or an hwloc XML file (lstopo --of xml FILE.xml)"),
            (
                "epyc-7451x2",
                "cannot use machine 'epyc-7451x2': expected virtual:N, for example virtual:4, or an hwloc XML file (lstopo --of xml FILE.xml)",
            ),
            ("/none/a.xml", "cannot use machine '/none/a.xml': cannot read /none/a.xml: No such file or directory (os error 2)"),
        ] {
            assert_eq!(TargetMachine::parse(text).expect_err(text).to_string(), message);
        }
    }
}
