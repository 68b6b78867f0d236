//! Runs a program in four placements in turn, to see whether placement matters to it.

use crate::Result;
use crate::error::{Context, Error, ErrorKind};
use crate::host::usable_nodes;
use firsttouch_model::launch::{Tried, WAYS, Way};
use firsttouch_model::system::Spread;
use firsttouch_model::topology::{Topology, format_list};
use firsttouch_system::launch::Commands;
use firsttouch_system::topology;
use std::ffi::OsString;
use std::path::Path;

/// A shell adds this to the number of the signal that ended a program.
const SIGNALLED: i32 = 128;

/// The outcome of the test.
#[derive(Clone, Debug, PartialEq)]
pub enum QuickTest {
    /// This machine has no placements to compare.
    NothingToTest {
        nodes: Vec<u32>,
        why: String,
    },
    /// A run failed, or the user stopped it.
    Stopped {
        exit_code: i32,
    },
    Done {
        nodes: Vec<u32>,
        tried: Vec<Tried>,
    },
}

/// Runs the program `rounds` times in each placement.
///
/// # Errors
/// When the topology cannot be read or the program cannot be executed.
pub fn run(program: &[OsString], rounds: u32) -> Result<QuickTest> {
    let topology = topology::read_outline(Path::new("/")).of_kind(ErrorKind::System)?;
    let nodes = usable_nodes(&topology);
    if nodes.len() < 2 {
        let why = why_nothing(&nodes, &topology);
        return Ok(QuickTest::NothingToTest { nodes, why });
    }
    let firsttouch = std::env::current_exe().context(ErrorKind::System, "cannot find firsttouch's own file, which starts the program")?;
    let commands = Commands::new().of_kind(ErrorKind::System)?;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); WAYS.len()];
    for _ in 0..rounds {
        for (way, times) in WAYS.into_iter().zip(&mut times) {
            let placed = |options| placed_program(firsttouch.as_os_str().to_owned(), options, program);
            let started: Vec<Vec<OsString>> = placements(way, &nodes).into_iter().map(placed).collect();
            let ran = commands.run_together(&started).map_err(|error| {
                let kind = error.not_executed().map_or(ErrorKind::System, |errno| ErrorKind::NotExecuted { errno });
                Error::from_source(kind, error)
            })?;
            let stop = ran.interrupted.map(|signal| SIGNALLED + signal).or((ran.exit_code != 0).then_some(ran.exit_code));
            if let Some(exit_code) = stop {
                return Ok(QuickTest::Stopped { exit_code });
            }
            times.push(ran.wall_s);
        }
    }
    let tried = WAYS.into_iter().zip(times).map(|(way, runs)| Tried { way, wall_s: Spread::of(runs.clone()), runs }).collect();
    Ok(QuickTest::Done { nodes, tried })
}

fn why_nothing(nodes: &[u32], topology: &Topology) -> String {
    let all = topology.nodes.len();
    if all < 2 {
        return "Nothing to test: this machine has one node, so every page is local. What placement would cost on a machine with several \
                nodes: firsttouch profile, which judges on virtual ones."
            .to_owned();
    }
    format!(
        "Nothing to test: of {all} nodes this process may use CPUs and memory of {} only (its cpuset, or taskset).",
        if nodes.is_empty() { "none".to_owned() } else { format!("node {}", format_list(nodes)) }
    )
}

/// The options of `firsttouch run` for each process of a way to start the program.
fn placements(way: Way, nodes: &[u32]) -> Vec<Vec<String>> {
    let at_home = |node: &u32| vec![format!("--cpunodebind={node}"), format!("--membind={node}")];
    let all = format_list(nodes);
    match way {
        Way::OneNode => nodes.iter().take(1).map(at_home).collect(),
        Way::AllNodes => vec![vec![format!("--cpunodebind={all}")]],
        Way::Interleaved => vec![vec![format!("--cpunodebind={all}"), format!("--interleave={all}")]],
        Way::OneProcessANode => nodes.iter().map(at_home).collect(),
    }
}

fn placed_program(firsttouch: OsString, options: Vec<String>, program: &[OsString]) -> Vec<OsString> {
    let options = options.into_iter().chain(["--".to_owned()]).map(OsString::from);
    [firsttouch, "run".into()].into_iter().chain(options).chain(program.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the processes of each way on nodes 0 and 2.
    #[test]
    fn each_way_has_its_processes() {
        for (way, options) in [
            (Way::OneNode, &["--cpunodebind=0 --membind=0"][..]),
            (Way::AllNodes, &["--cpunodebind=0,2"]),
            (Way::Interleaved, &["--cpunodebind=0,2 --interleave=0,2"]),
            (Way::OneProcessANode, &["--cpunodebind=0 --membind=0", "--cpunodebind=2 --membind=2"]),
        ] {
            let words: Vec<String> = placements(way, &[0, 2]).iter().map(|options| options.join(" ")).collect();
            assert_eq!(words, options, "{way:?}");
        }
    }
}
