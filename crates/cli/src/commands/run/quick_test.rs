//! `firsttouch run --quick-test`: the same program in four placements.

use super::unless_not_executed;
use crate::arguments::Run;
use crate::commands::{exit_status, words};
use crate::output::{message, print_json, style, tell};
use anyhow::{Context, Result};
use firsttouch_model::launch::{Tried, WAYS, Way};
use firsttouch_model::system::Spread;
use firsttouch_model::topology::{Topology, format_list};
use firsttouch_placement::Numbered;
use firsttouch_report::{QuickTestJson, quick_test_text};
use firsttouch_system::launch::Commands;
use firsttouch_system::topology;
use std::ffi::OsString;
use std::io::stderr;
use std::path::Path;

/// What a shell says of a program that signal N ended.
const SIGNALLED: i32 = 128;

pub fn run(arguments: &Run) -> Result<u8> {
    let topology = topology::read_outline(Path::new("/"))?;
    let (command, nodes) = (words(&arguments.program), whole_nodes(&topology));
    if nodes.len() < 2 {
        return nothing(arguments, &command, &nodes, &topology);
    }
    let own = std::env::current_exe().context("cannot find firsttouch's own file, which starts the program")?;
    let commands = Commands::new()?;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); WAYS.len()];
    for _ in 0..arguments.rounds {
        for (way, times) in WAYS.into_iter().zip(&mut times) {
            let started: Vec<Vec<OsString>> =
                placements(way, &nodes).into_iter().map(|options| launched(own.as_os_str().to_owned(), options, arguments)).collect();
            let ran = match commands.run_together(&started) {
                Ok(ran) => ran,
                Err(error) => return unless_not_executed(error),
            };
            let stop = ran.interrupted.map(|signal| SIGNALLED + signal).or((ran.exit_code != 0).then_some(ran.exit_code));
            if let Some(exit_code) = stop {
                message(&format!("nothing measured: a run ended with status {exit_code}"));
                return Ok(exit_status(exit_code));
            }
            times.push(ran.wall_s);
        }
    }
    let tried: Vec<Tried> = WAYS.into_iter().zip(times).map(|(way, runs)| Tried { way, wall_s: Spread::of(runs.clone()), runs }).collect();
    if arguments.json {
        print_json(&QuickTestJson::new(&command, &nodes, &tried))?;
    } else {
        tell(&quick_test_text(&command, &nodes, &tried, style(&stderr())));
    }
    Ok(0)
}

/// Nodes with CPUs and memory, both of which may be used.
pub fn whole_nodes(topology: &Topology) -> Vec<u32> {
    let (nodes, cpus) = (Numbered::nodes(topology), Numbered::cpus(topology));
    let is_whole = |node: &u32| {
        topology.node(*node).is_some_and(|node| {
            let has_memory = node.memory.is_none_or(|memory| memory.total_bytes > 0);
            has_memory && node.cpus.iter().any(|cpu| cpus.check(*cpu).is_ok())
        })
    };
    nodes.allowed().iter().copied().filter(is_whole).collect()
}

fn nothing(arguments: &Run, command: &[String], nodes: &[u32], topology: &Topology) -> Result<u8> {
    let all = topology.nodes.len();
    let why = if all < 2 {
        "Nothing to test: this machine has one node, so every page is at home wherever it is. What placement would cost on a machine \
         with several nodes: firsttouch profile, which judges on virtual ones."
            .to_owned()
    } else {
        format!(
            "Nothing to test: of {all} nodes this process may use CPUs and memory of {} only (its cpuset, or taskset).",
            if nodes.is_empty() { "none".to_owned() } else { format!("node {}", format_list(nodes)) }
        )
    };
    if arguments.json {
        print_json(&QuickTestJson::nothing(command, nodes, &why))?;
    } else {
        message(&why);
    }
    Ok(0)
}

/// The options of each process of a way.
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

fn launched(own: OsString, options: Vec<String>, arguments: &Run) -> Vec<OsString> {
    let options = options.into_iter().chain(["--".to_owned()]).map(OsString::from);
    [own, "run".into()].into_iter().chain(options).chain(arguments.program.iter().cloned()).collect()
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
