//! Meanings of expressions on every recorded machine, compared with numactl, hwloc-calc and likwid-pin on that machine
//! (scripts/record-peers). Every difference needs a rule, and every rule a difference; docs/expressions.md has the same rules.

use firsttouch_model::ExpressionError;
use firsttouch_model::topology::Topology;
use firsttouch_placement::{Affinity, CpuList, Layout, NodeList, Numbered};
use firsttouch_system::topology;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// One expression on one machine.
struct Case {
    machine: String,
    topology: Topology,
    expression: String,
    theirs: Answer,
    ours: Result<Vec<u32>, ExpressionError>,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Numbers(Vec<u32>),
    /// An error.
    Refused,
    /// The tool printed a warning, and this answer.
    Complained(String),
}

impl Answer {
    fn parse(text: &str) -> Self {
        let numbers = text.split(',').filter(|word| !word.is_empty()).map(str::parse).collect();
        match (numbers, text.strip_prefix("warned ")) {
            (Ok(numbers), _) => Self::Numbers(numbers),
            (_, Some(answer)) if answer != "refused" => Self::Complained(answer.to_owned()),
            _ => Self::Refused,
        }
    }
}

impl Case {
    fn agrees(&self, same: impl Fn(&[u32], &[u32]) -> bool) -> bool {
        match (&self.theirs, &self.ours) {
            (Answer::Numbers(theirs), Ok(ours)) => same(theirs, ours),
            (Answer::Refused, Err(_)) => true,
            _ => false,
        }
    }

    fn we_refuse(&self, reason: &str) -> bool {
        self.ours.as_ref().is_err_and(|error| error.reason.contains(reason))
    }

    fn they_refuse(&self) -> bool {
        self.theirs == Answer::Refused && self.ours.is_ok()
    }

    /// Whether the process may use only a part of the machine.
    fn is_limited(&self) -> bool {
        self.nodes_left_out() || Numbered::cpus(&self.topology).allowed() != self.topology.cpus.online
    }

    fn nodes_left_out(&self) -> bool {
        Numbered::nodes(&self.topology).allowed().len() < self.topology.nodes.len()
    }

    /// Whether the numbers of nodes or CPUs have holes.
    fn has_holes(&self) -> bool {
        let dense = |numbers: &[u32]| numbers.iter().copied().eq(0..u32::try_from(numbers.len()).unwrap());
        let nodes: Vec<u32> = self.topology.nodes.iter().map(|node| node.id).collect();
        !dense(&nodes) || !dense(&self.topology.cpus.online)
    }

    fn has_offline_cpus(&self) -> bool {
        !self.topology.cpus.offline.is_empty()
    }

    /// Whether the threads of a core have consecutive numbers.
    fn siblings_in_a_row(&self) -> bool {
        self.topology.cores.iter().any(|core| core.cpus.windows(2).any(|pair| pair[1] == pair[0] + 1))
    }

    fn has_node_without(&self, what: impl Fn(&firsttouch_model::topology::Node) -> bool) -> bool {
        self.topology.nodes.iter().any(what)
    }
}

type Rule = (&'static str, fn(&Case) -> bool);

/// Compares all answers in `file`: every difference needs a rule, and every rule a case.
fn compare(
    file: &str,
    rules: &[Rule],
    same: fn(&[u32], &[u32]) -> bool,
    ask: impl Fn(&Topology, &str) -> Result<Vec<u32>, ExpressionError>,
) {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let (mut used, mut agreed, mut unexplained) = (BTreeSet::new(), 0, Vec::new());
    for entry in fs::read_dir(machines).unwrap() {
        let path = entry.unwrap().path();
        let Ok(answers) = fs::read_to_string(path.join("tools").join(file)) else { continue };
        let topology = topology::read(&path).unwrap();
        let machine = path.file_name().unwrap().to_string_lossy().into_owned();
        for line in answers.lines() {
            let (expression, answer) = line.split_once('\t').unwrap();
            let case = Case {
                machine: machine.clone(),
                topology: topology.clone(),
                expression: expression.to_owned(),
                theirs: Answer::parse(answer),
                ours: ask(&topology, expression),
            };
            if case.agrees(same) {
                agreed += 1;
            } else if let Some((name, _)) = rules.iter().find(|(_, holds)| holds(&case)) {
                used.insert(*name);
            } else {
                let ours = case.ours.as_ref().map_err(|error| &error.reason);
                unexplained.push(format!("{} {expression}: ours {ours:?}, theirs {:?}", case.machine, case.theirs));
            }
        }
    }
    assert!(unexplained.is_empty(), "{file}: no rule explains\n{}", unexplained.join("\n"));
    let unused: Vec<_> = rules.iter().map(|(name, _)| *name).filter(|name| !used.contains(name)).collect();
    assert!(unused.is_empty(), "{file}: rules without a difference: {unused:?}");
    assert!(agreed > 150, "{file}: {agreed} answers agree");
}

fn equal(theirs: &[u32], ours: &[u32]) -> bool {
    theirs == ours
}

fn equal_sets(theirs: &[u32], ours: &[u32]) -> bool {
    theirs.iter().collect::<BTreeSet<_>>() == ours.iter().collect::<BTreeSet<_>>()
}

const NUMACTL: &[Rule] = &[
    ("nothing left: numactl goes on with an empty list", |case| {
        case.theirs == Answer::Numbers(vec![]) && case.we_refuse("this selects no")
    }),
    ("numactl takes the first number of a range that runs downwards", |case| case.we_refuse("a range must run upwards")),
    ("numactl's ! counts to the number of nodes or CPUs, allowed or not, also where numbers have holes or nodes no memory", |case| {
        let odd = case.is_limited()
            || case.has_holes()
            || case.has_node_without(|node| node.memory.is_some_and(|memory| memory.total_bytes == 0));
        case.expression.starts_with('!') && odd
    }),
];

/// The additional rules for CPUs.
const NUMACTL_CPUS: &[Rule] = &[
    NUMACTL[0],
    NUMACTL[1],
    NUMACTL[2],
    ("numactl counts CPUs that are offline: the kernel then takes what is left, or refuses", Case::has_offline_cpus),
];

/// Check lists of nodes against numactl.
#[test]
fn nodes_as_numactl() {
    compare("numactl-nodes.txt", NUMACTL, equal, |topology, text| {
        text.parse::<NodeList>()?.resolve(&Numbered::nodes(topology), None, &|device| panic!("{device:?} in a list of nodes"))
    });
}

/// Check lists of CPUs against numactl.
#[test]
fn cpus_as_numactl() {
    compare("numactl-cpus.txt", NUMACTL_CPUS, equal, |topology, text| text.parse::<CpuList>()?.resolve(&Numbered::cpus(topology)));
}

/// Check objects against hwloc-calc, as sets, because hwloc's have no order. hwloc-calc ran for whole machines.
#[test]
fn objects_as_hwloc() {
    let rules: &[Rule] = &[
        ("hwloc leaves dies out that are whole packages", |case| case.expression.starts_with("die") && case.they_refuse()),
        ("hwloc begins anew where a wrapped range begins past the end", |case| {
            case.expression.contains(':') && case.we_refuse("there is no")
        }),
        ("nothing left: hwloc has an empty set", |case| case.theirs == Answer::Numbers(vec![]) && case.we_refuse("this selects no CPU")),
        ("nodes of memory only: hwloc counts them, and gives them the CPUs nearby", |case| {
            case.has_node_without(|node| node.cpus.is_empty()) && (case.expression.contains("numa") || case.expression.contains("node"))
        }),
    ];
    compare("hwloc-calc.txt", rules, equal_sets, |topology, text| {
        text.parse::<Affinity>()?.resolve(&Layout::with(topology, Numbered::cpus(topology).without_limits()), None)
    });
}

/// Check threads against likwid-pin.
#[test]
fn threads_as_likwid() {
    let rules: &[Rule] = &[
        ("likwid-pin crashes where CPU numbers have holes", |case| case.has_holes() && case.theirs == Answer::Refused),
        ("likwid-pin complains, and goes on with the rest", |case| matches!(case.theirs, Answer::Complained(_)) && case.ours.is_err()),
        ("likwid-pin cuts a list of CPUs off at the number of all CPUs", |case| {
            case.expression == "0-3" && case.we_refuse("does not exist")
        }),
        ("likwid-pin starts again past the last position", |case| case.we_refuse("has no position")),
        ("likwid-pin cuts short, or goes on with garbage, where more threads than CPUs are asked for", |case| {
            case.we_refuse("this asks for") || case.we_refuse("the offset is past")
        }),
        ("a stride of 0 pins all threads to one CPU", |case| case.we_refuse("expected the stride")),
        ("in a cpuset likwid-pin counts the CPUs of a list by place", |case| {
            let is_list = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b',' || byte == b'-');
            case.is_limited() && case.expression.split('@').any(is_list)
        }),
        ("likwid-pin lists a domain again up to the number of all CPUs for E: without a number", |case| {
            case.expression == "E:S0"
                && matches!((&case.theirs, &case.ours), (Answer::Numbers(theirs), Ok(ours)) if theirs.chunks(ours.len()).all(|chunk| chunk == ours))
        }),
        ("likwid-pin documents L:0-1, and refuses it", |case| case.expression == "L:0-1" && case.they_refuse()),
        ("likwid-pin does not end for a range down to 0", |case| case.expression == "3-0" && case.they_refuse()),
        ("nodes of memory only: likwid-pin counts them, and gives them the CPUs nearby", |case| {
            case.has_node_without(|node| node.cpus.is_empty()) && case.expression.contains('M')
        }),
        ("likwid-pin takes SMT siblings with numbers in a row for cores, and half an L3 for the whole", |case| {
            case.siblings_in_a_row() && matches!((&case.theirs, &case.ours), (Answer::Numbers(_), Ok(_)))
        }),
        ("likwid-pin crashes for cbalanced with fewer threads than domains", |case| {
            case.expression.contains("cbalanced:") && case.they_refuse()
        }),
        ("likwid-pin's cbalanced gives more threads than asked for on many domains", |case| {
            case.expression.contains("cbalanced:")
                && matches!((&case.theirs, &case.ours), (Answer::Numbers(theirs), Ok(ours)) if theirs.len() > ours.len())
        }),
    ];
    compare("likwid-pin.txt", rules, equal, |topology, text| text.parse::<Affinity>()?.resolve(&Layout::new(topology), None));
}
