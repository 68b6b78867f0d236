//! Properties of every plan: its printed form parses to an equal plan, and it applies to any nodes.

use firsttouch_model::{NodeId, Pin};
use firsttouch_plan::{Blocks, Entry, Frame, Gain, KernelPolicy, Module, Origin, Plan, Policy, RankNodes, RunNodes, Site, Threads, apply};

/// A small random generator (xorshift64), so that a failure can be reproduced.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % u64::from(limit)) as u32
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 9] = ["A", "grid::cells", "\"q\"", "back\\slash", "é", "\n", "\u{1}", "# no comment", " 'x' "];
        (0..self.below(4)).map(|_| PIECES[self.below(9) as usize]).collect()
    }

    fn gain(&mut self) -> Option<Gain> {
        let number = |random: &mut Self| f64::from(random.below(1_000_000)) / 3e5;
        (self.below(2) == 0).then(|| Gain { value: number(self), low: number(self), high: number(self) })
    }

    fn nodes(&mut self, nodes: u32) -> Vec<u32> {
        (0..self.below(3)).map(|_| self.below(nodes)).collect()
    }

    fn place(&mut self, nodes: u32, threads: u32) -> Policy {
        match self.below(6) {
            0 => Policy::Bind([self.nodes(nodes), vec![0]].concat()),
            1 => Policy::Preferred(self.below(nodes)),
            2 => Policy::Interleave(self.nodes(nodes)),
            3 => Policy::Weighted(self.nodes(nodes)),
            4 => Policy::Leave,
            _ => {
                let list: Vec<u32> = (0..1 + self.below(9)).map(|_| self.below(threads)).collect();
                let count = list.len();
                let until = (1..=count).map(|part| (part as f64 / count as f64).powi(2)).collect();
                Policy::Blocked(Blocks {
                    threads: list,
                    until: if self.below(2) == 0 { Vec::new() } else { until },
                    period_bytes: (self.below(2) == 0).then(|| 4096.0 + f64::from(self.below(1 << 20)) / 7.0),
                    rows: 1 + self.below(9),
                })
            }
        }
    }

    fn origin(&mut self) -> Origin {
        if self.below(3) == 0 {
            return Origin::Symbol { module: "m".into(), name: self.text() };
        }
        let mut frames = vec![Frame { module: "libstdc++.so.6".into(), ..Frame::default() }];
        for _ in 0..1 + self.below(3) {
            let offset = Some(u64::from(self.below(1 << 30)));
            let frame = |random: &mut Self, inlined| Frame {
                module: "m".into(),
                offset,
                copies: (0..random.below(3)).map(|at| (u64::from(at), u64::from(at + 1 + random.below(9)))).collect(),
                inlined,
                function: random.text(),
                file: random.text(),
                line: random.below(99),
            };
            if self.below(3) == 0 {
                frames.push(frame(self, true));
            }
            frames.push(frame(self, false));
        }
        let ordinal = (self.below(2) == 0).then(|| (self.below(3), 3));
        let shares_lines = self.below(2) == 1;
        Origin::Site(Site { call: self.text(), frames, ordinal, shares_lines })
    }

    fn entry_of(&mut self, policy: Policy) -> Entry {
        Entry {
            what: self.text(),
            at: self.text(),
            bytes: u64::from(self.below(1 << 31)) << 8,
            policy,
            small_pages: self.below(2) == 0,
            reason: self.text(),
            gain: self.gain(),
            origin: self.origin(),
        }
    }

    fn plan(&mut self) -> Plan {
        let (nodes, count) = (1 + self.below(8), 1 + self.below(16));
        let pin = match self.below(3) {
            0 => None,
            1 => Some(Pin::Spread),
            _ => Some(Pin::Nodes((0..count).map(|_| NodeId(self.below(nodes))).collect())),
        };
        // Not all threads are idle.
        let idle = (1..count).filter(|_| self.below(4) == 0).collect();
        let module = |name: &str| Module { name: name.into(), path: format!("/a \"b\"/{name}"), build_id: "00ff".into() };
        let entries = (0..self.below(5)).map(|_| {
            let policy = self.place(nodes, count);
            self.entry_of(policy)
        });
        let entries = entries.collect();
        let of_rank = (0..self.below(4)).map(|rank| if rank == 1 { vec![0, nodes - 1] } else { vec![0] }).collect::<Vec<_>>();
        Plan {
            ranks: (!of_rank.is_empty()).then_some(RankNodes { nodes, of_rank }),
            made_from: self.text(),
            judged_on: self.text(),
            command: (0..self.below(3)).map(|_| self.text()).collect(),
            nodes,
            least_bytes: u64::from(self.below(1 << 20)),
            gain: self.gain(),
            threads: Threads { count, idle, pin },
            modules: vec![module("m"), module("libstdc++.so.6")],
            entries,
            left_alone: (0..self.below(3)).map(|_| self.text()).collect(),
        }
    }
}

/// Check that a printed plan parses to an equal plan, in which no name controls a terminal.
#[test]
fn plans_print_back() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..3000 {
        let mut plan = random.plan();
        let text = plan.to_string();
        let read: Plan = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        plan.make_names_safe();
        assert_eq!(read, plan, "{text}");
    }
}

/// Check that on any nodes, each part gets one of these nodes, and that the ends of the parts ascend to the end of the object.
#[test]
fn plans_go_onto_any_nodes() {
    let mut random = Random(77);
    for _ in 0..3000 {
        let plan = random.plan();
        let nodes: Vec<u32> = (0..random.below(9)).map(|node| node * 2 + 1).collect();
        let applied = apply(&plan, &RunNodes { nodes: nodes.clone(), ..RunNodes::default() });
        assert_eq!(applied.policies.len(), plan.entries.len());
        assert!(applied.threads.iter().all(|node| nodes.contains(node)));
        for policies in &applied.policies {
            match policies {
                KernelPolicy::Leave => {}
                KernelPolicy::Whole { nodes: own, .. } => assert!(!own.is_empty() && own.iter().all(|node| nodes.contains(node))),
                KernelPolicy::Parts { parts, .. } => {
                    assert!(parts.iter().all(|(_, node)| nodes.contains(node)), "{parts:?}");
                    assert!(parts.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1), "{parts:?}");
                    assert!((parts.last().unwrap().0 - 1.0).abs() < 1e-12);
                }
            }
        }
    }
}

/// Check that a damaged plan either parses or is an error with its line.
#[test]
fn damaged_plans_do_no_harm() {
    let mut random = Random(5);
    for _ in 0..3000 {
        let mut bytes = random.plan().to_string().into_bytes();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len().max(1) as u32) as usize;
            match random.below(3) {
                0 if at < bytes.len() => bytes[at] = random.below(256) as u8,
                1 if at < bytes.len() => drop(bytes.drain(at..(at + random.below(40) as usize).min(bytes.len()))),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match text.parse::<Plan>() {
            Ok(plan) => drop(apply(&plan, &RunNodes { nodes: vec![0, 1], ..RunNodes::default() })),
            Err(error) => assert!(error.line <= text.lines().count() + 1 && !error.kind.to_string().is_empty(), "{error}"),
        }
    }
}

/// Check that ranks with nodes that do not exist, or without any, are refused with their line, and that a rank on one node spreads over all nodes what
/// the plan spreads over all.
#[test]
fn ranks_have_nodes() {
    let plan = |ranks: &str| format!("schema = \"firsttouch.plan/1\"\nnodes = 2\n{ranks}\n").parse::<Plan>();
    assert!(plan("[ranks]\nnodes = 2\nof_rank = [[0], [1]]").is_ok_and(|plan| plan.ranks.is_some()));
    for wrong in ["nodes = 2\nof_rank = [[0], [2]]", "nodes = 2\nof_rank = [[]]", "nodes = 0\nof_rank = [[0]]", "nodes = 2\nof_rank = []"] {
        let error = plan(&format!("[ranks]\n{wrong}")).unwrap_err();
        assert!(error.line == 3 && error.to_string().contains("of_rank lists the nodes of each rank"), "{wrong}: {error}");
    }
    let mut random = Random(7);
    let mut shared = random.plan();
    let entry = Entry { policy: Policy::Interleave(vec![]), ..random.entry_of(Policy::Leave) };
    shared.entries = vec![entry.clone(), Entry { policy: Policy::Bind(vec![0]), ..entry }];
    let applied = apply(&shared, &RunNodes { nodes: vec![3], all: vec![1, 3] });
    assert!(matches!(&applied.policies[0], KernelPolicy::Whole { nodes, .. } if nodes == &[1, 3]), "{applied:?}");
    assert_eq!((&applied.policies[1], applied.threads.len()), (&KernelPolicy::Leave, 0));
}
