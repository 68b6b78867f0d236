//! The triad of the slides, by number of domains.

use super::published::{Published, column, predicted};
use super::rounds::{Case, CaseRuns, failures};
use super::{Claim, Drawing, Effect, Reproduction, ResultCell, ResultRow, ResultTable, Results, Runner, Source};
use crate::Result;
use firsttouch_model::format_bytes;
use firsttouch_model::topology::format_list;
use firsttouch_predict::experiments::Kernel;
use firsttouch_predict::machine::MachineModel;
use firsttouch_predict::model::Seat;
use firsttouch_predict::runs::{self, Memory};
use firsttouch_predict::seats;

const RUNS: u32 = 5;
const ARRAYS: u64 = 3;
const DEFAULT_BYTES: u64 = ARRAYS * (128 << 20);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    Parallel,
    OneDomain,
    Interleaved,
}

const PLACEMENTS: [Placement; 3] = [Placement::Parallel, Placement::OneDomain, Placement::Interleaved];

impl Placement {
    fn name(self) -> &'static str {
        match self {
            Self::Parallel => "parallel initialisation",
            Self::OneDomain => "all in one domain",
            Self::Interleaved => "interleaved",
        }
    }

    fn memory(self, domains: usize) -> Memory {
        match self {
            Self::Parallel => Memory::Own,
            Self::OneDomain => Memory::Node(0),
            Self::Interleaved => Memory::Interleaved(domains),
        }
    }

    /// The option of `firsttouch run` on these nodes.
    fn option(self, nodes: &[u32]) -> Option<String> {
        match self {
            _ if nodes.len() < 2 => None,
            Self::Parallel => None,
            Self::OneDomain => nodes.first().map(|node| format!("--membind={node}")),
            Self::Interleaved => Some(format!("--interleave={}", format_list(nodes))),
        }
    }
}

/// A placement, and the number of domains it uses.
type PlacedOn = (Placement, usize);

pub fn run(runner: &Runner<'_>) -> Result<Reproduction> {
    let published = Published::find("triad-domains", "epyc-7451x2")?;
    let (bytes, mut notes) = runner.array_bytes(DEFAULT_BYTES)?;
    let most = runner.host.nodes.len();
    let rounds = runner.rounds(RUNS);
    // On one domain all three placements are the same.
    let ways: Vec<PlacedOn> = domains(most).into_iter().flat_map(|count| PLACEMENTS.map(|placement| (placement, count))).collect();
    let case_runs = rounds.run(&ways.iter().map(|way| case(runner, bytes, *way)).collect::<Vec<Case>>())?;
    notes.extend(failures(&case_runs));
    notes.extend(disagreement(&published)?);
    Ok(runner.reproduction(Results {
        title: "triad by number of domains: parallel initialisation, all data in one domain, interleaved",
        sources: vec![published.source()],
        settings: vec![format!(
            "Arrays of {}, one thread per core, {}; {} runs of each, in turn; stores bypass the caches.",
            format_bytes(bytes / ARRAYS),
            runner.host.node_words(),
            rounds.runs
        )],
        tables: vec![speeds(&published, &ways, &case_runs)?],
        effects: effects(runner, &ways, &case_runs, most),
        said: published.said(runner.name),
        notes,
    }))
}

/// 1 to 8, then doubled, and `most`.
fn domains(most: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(16usize), |count| count.checked_mul(2)).take_while(|count| *count < most);
    let mut domains: Vec<usize> = (1..=most.min(8)).chain(doubled).collect();
    if most > 8 {
        domains.push(most);
    }
    domains
}

fn case(runner: &Runner<'_>, bytes: u64, (placement, count): PlacedOn) -> Case {
    let used = &runner.host.nodes[..count];
    let cpus: Vec<u32> = used.iter().flat_map(|node| node.cpus.iter().copied()).collect();
    let nodes: Vec<u32> = used.iter().map(|node| node.node).collect();
    let options = Runner::pinned(&cpus).into_iter().chain(placement.option(&nodes)).collect();
    let kernel = format!("triad --elements {} --threads {} --iterations 2 --repetitions 3", bytes / (ARRAYS * 8), cpus.len());
    Case::new(format!("{}, {count} domains", placement.name()), options, &kernel)
}

fn speeds(published: &Published, ways: &[PlacedOn], case_runs: &[CaseRuns]) -> Result<ResultTable> {
    let machine = &published.machine;
    let mut speeds = ResultTable::new("triad", "GB/s", &["placement", "domains"], Drawing::Lines);
    speeds.columns = vec![column(Source::Model, "2x AMD EPYC 7451"), column(Source::Measured, "")];
    let most = ways.iter().map(|(_, count)| *count).max().unwrap_or(0).max(machine.nodes.len());
    for placement in PLACEMENTS {
        for count in domains(most) {
            let here = ways.iter().position(|way| *way == (placement, count)).and_then(|index| case_runs.get(index));
            let model = if count <= machine.nodes.len() { Some(model(machine, placement, count)?) } else { None };
            let cells = vec![model, here.and_then(|case_runs| ResultCell::measured(&case_runs.figures("gb_per_s")))];
            speeds.rows.push(ResultRow { labels: vec![placement.name().to_owned(), count.to_string()], cells });
        }
    }
    Ok(speeds)
}

/// The predicted speed of all cores of `count` domains.
fn model(machine: &MachineModel, placement: Placement, count: usize) -> Result<ResultCell> {
    let cores = |node: usize| machine.nodes.get(node).map_or(0, |node| node.cores);
    let team: Vec<Seat> = (0..count).flat_map(|node| seats::on_node(machine, node, cores(node))).collect();
    predicted(runs::bandwidth(machine, Kernel::Stream, &team, placement.memory(count)))
}

/// Speeds with a ratio above this count as equal.
const EQUAL: f64 = 0.97;

/// A sentence about a contradiction between model and slides, if there is one.
fn disagreement(published: &Published) -> Result<Option<String>> {
    let all = published.machine.nodes.len();
    let speed = |placement| model(&published.machine, placement, all).map(|cell| cell.value());
    let part = speed(Placement::Interleaved)? / speed(Placement::Parallel)?;
    Ok((part > EQUAL).then(|| {
        format!(
            "On {all} domains the model predicts {part:.2} of the speed of parallel initialisation for interleaving, but the slides find interleaving slower: \
             the model's links come from a matrix of pairs and share nothing when all pairs are busy (docs/model.md)."
        )
    }))
}

/// On all domains: the gain of parallel initialisation over interleaving, and over one domain.
fn effects(runner: &Runner<'_>, ways: &[PlacedOn], case_runs: &[CaseRuns], most: usize) -> Vec<Effect> {
    let runs = |placement: Placement| {
        let index = ways.iter().position(|way| *way == (placement, most));
        index.and_then(|index| case_runs.get(index)).map_or_else(Vec::new, |case_runs| case_runs.figures("gb_per_s"))
    };
    let claim = |faster, one, slower, other| {
        let (faster_runs, slower_runs) = (&runs(one)[..], &runs(other)[..]);
        Claim { faster, slower, faster_runs, slower_runs, published: None, impossible: runner.host.impossible() }.judged()
    };
    vec![
        claim("triad after parallel initialisation", Placement::Parallel, "with its data interleaved", Placement::Interleaved),
        claim("triad with its data interleaved", Placement::Interleaved, "with all of them in one domain", Placement::OneDomain),
    ]
}

#[cfg(test)]
mod tests {
    use super::domains;

    /// Check the numbers of domains.
    #[test]
    fn numbers_of_domains() {
        assert_eq!(domains(1), [1]);
        assert_eq!(domains(8), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(domains(24), [1, 2, 3, 4, 5, 6, 7, 8, 16, 24]);
    }
}
