//! Lists of nodes and CPUs, affinity expressions: the printed form parses to an equal one, and resolves to allowed CPUs and nodes.
#![no_main]

use firsttouch_model::ExpressionError;
use firsttouch_model::topology::{Cache, CacheKind, Core, CpuLists, Node, Package, ProcessLimits, Topology};
use firsttouch_placement::{Affinity, CpuList, Layout, NodeList, Numbered};
use libfuzzer_sys::fuzz_target;
use std::fmt::{Debug, Display};
use std::str::FromStr;

fuzz_target!(|text: &str| {
    let topology = machine();
    let (nodes, cpus) = (Numbered::nodes(&topology), Numbered::cpus(&topology));
    if let Some(list) = round_trip::<NodeList>(text) {
        check_answer(text, &nodes, list.resolve(&nodes, Some(&[0]), &|_| Ok(vec![2])));
    }
    if let Some(list) = round_trip::<CpuList>(text) {
        check_answer(text, &cpus, list.resolve(&cpus));
    }
    if let Some(affinity) = round_trip::<Affinity>(text) {
        check_answer(text, &cpus, affinity.resolve(&Layout::new(&topology), Some(5)));
    }
});

fn round_trip<T: FromStr<Err = ExpressionError> + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    match text.parse::<T>() {
        Ok(parsed) => {
            let printed = parsed.to_string();
            assert_eq!(printed.parse::<T>().as_ref(), Ok(&parsed), "{printed}");
            Some(parsed)
        }
        Err(error) => {
            assert!(error.offset <= text.len() && !error.to_string().is_empty());
            None
        }
    }
}

fn check_answer(text: &str, known: &Numbered, answer: Result<Vec<u32>, ExpressionError>) {
    match answer {
        Ok(numbers) => assert!(!numbers.is_empty() && numbers.iter().all(|number| known.allowed().contains(number))),
        Err(error) => assert!(error.offset <= text.len(), "{error:?}"),
    }
}

/// Two packages of two cores with two CPUs each, two nodes, and a node without CPUs; CPU 7 is not allowed.
fn machine() -> Topology {
    let halves = [vec![0, 1, 4, 5], vec![2, 3, 6, 7]];
    let node = |id: u32, cpus: &[u32]| Node { id, cpus: cpus.to_vec(), ..Node::default() };
    let cache =
        |cpus: &Vec<u32>| Cache { level: 3, kind: CacheKind::Unified, size_bytes: 1, line_bytes: None, ways: None, cpus: cpus.clone() };
    Topology {
        cpus: CpuLists { online: (0..8).collect(), offline: vec![8] },
        packages: halves.iter().zip(0..).map(|(cpus, id)| Package { id, cpus: cpus.clone(), nodes: vec![] }).collect(),
        cores: (0..4).map(|id| Core { id: Some(id), package: None, cpus: vec![id, id + 4] }).collect(),
        caches: halves.iter().map(cache).collect(),
        nodes: vec![node(0, &halves[0]), node(2, &halves[1]), node(3, &[])],
        process: Some(ProcessLimits { allowed_cpus: Some((0..7).collect()), ..ProcessLimits::default() }),
        ..Topology::default()
    }
}
