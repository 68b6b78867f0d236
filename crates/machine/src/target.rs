//! The machine a profile is judged on.

use std::fmt;

/// Most nodes of a virtual machine.
const MOST_NODES: usize = 64;
/// Nodes of the virtual machine that stands in for a machine with one node.
const DEFAULT_NODES: usize = 2;

/// A machine to judge placement on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetMachine {
    /// The machine the profile was taken on: pages and threads sit where they were seen.
    Recorded,
    /// `virtual:N`: N equal nodes; threads sit by `--pin`, pages where their first toucher sits.
    Virtual(usize),
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
    /// Reads `virtual:N`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let fail = |reason: String| TargetError { text: text.to_owned(), reason };
        let Some(count) = text.strip_prefix("virtual:") else {
            return Err(fail("expected virtual:N, for example virtual:4".to_owned()));
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

    /// Check that every refusal names the place and the reason.
    #[test]
    fn refusals_name_the_place() {
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
            ("virtual", "cannot use machine 'virtual': expected virtual:N, for example virtual:4"),
            ("", "cannot use machine '': expected virtual:N, for example virtual:4"),
            ("epyc-7451x2", "cannot use machine 'epyc-7451x2': expected virtual:N, for example virtual:4"),
        ] {
            assert_eq!(TargetMachine::parse(text).expect_err(text).to_string(), message);
        }
    }
}
