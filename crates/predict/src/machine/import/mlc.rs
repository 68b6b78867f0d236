//! The text of Intel's Memory Latency Checker, as `mlc` prints it without options (versions 2 to 3): idle latencies and bandwidths of pairs,
//! and peak bandwidth by mix of reads and writes. Loaded latencies and transfers between caches are not used.
//!
//! MLC counts what passes the controllers, including cache lines that stores read first: a mix of 3:1 is three reads for each write,
//! whatever the program does. Its rows are the node of the cores, and its megabytes have 10^6 bytes.

use super::super::assumed::typical;
use super::super::file::{Bandwidth, Controller, Curve, File, Interconnect, Nodes, SCHEMA};
use super::super::{MachineError, MachineModel, Streams, build};
use super::{FILE, assumed_link, matrix, number};
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, MachineError>;

/// The first words of the sections.
const LATENCIES: &str = "Measuring idle latencies";
const PEAKS: &str = "Measuring Peak";
const PAIRS: &str = "Measuring Memory Bandwidths";

/// Whether a text is the output of MLC.
#[must_use]
pub fn is_mlc(text: &str) -> bool {
    text.lines().any(|line| line.contains("Memory Latency Checker") || [LATENCIES, PEAKS, PAIRS].iter().any(|start| starts(line, start)))
}

fn starts(line: &str, words: &str) -> bool {
    line.trim_start().get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words))
}

/// A machine from MLC's text.
///
/// # Errors
/// Names the invalid line or the missing section.
pub fn mlc(name: &str, text: &str) -> Result<MachineModel> {
    build::build(&Sections::read(text)?.description(name)?)
}

fn refused<T>(line: usize, reason: impl Into<String>) -> Result<T> {
    Err(MachineError { place: format!("line {line}"), reason: reason.into() })
}

/// A matrix from the text; `None` for figures that were not measured (`-`, `N/A`).
struct Pairs {
    line: usize,
    /// A row for each node of the cores.
    rows: Vec<Vec<Option<f64>>>,
}

#[derive(Default)]
struct Sections {
    latencies: Option<Pairs>,
    pairs: Option<Pairs>,
    /// (reads and writes of the mix, MB/s of all nodes together).
    peaks: Vec<(f64, f64, f64)>,
}

impl Sections {
    fn read(text: &str) -> Result<Self> {
        let mut sections = Self::default();
        let mut lines = text.lines().zip(1..).peekable();
        while let Some((line, number)) = lines.next() {
            if starts(line, LATENCIES) || starts(line, PAIRS) {
                let is_latency = starts(line, LATENCIES);
                let found = pairs(&mut lines, number)?;
                let (slot, what) = if is_latency { (&mut sections.latencies, "latencies") } else { (&mut sections.pairs, "bandwidths") };
                if let Some(first) = slot {
                    return refused(
                        number,
                        format!("a second table of {what}; the first is at line {}. Give one run's output", first.line),
                    );
                }
                *slot = Some(found);
            } else if starts(line, PEAKS) {
                if !sections.peaks.is_empty() {
                    return refused(number, "a second list of peak bandwidths. Give one run's output");
                }
                while let Some((line, number)) = lines.next_if(|(line, _)| !starts(line, "Measuring")) {
                    sections.peaks.extend(peak(line, number)?);
                }
            }
        }
        Ok(sections)
    }

    /// The numbers of nodes with cores and memory: rows and columns that were measured.
    fn nodes(&self) -> Result<Vec<usize>> {
        let Some(table) = self.pairs.as_ref().or(self.latencies.as_ref()) else {
            let reason = "neither a table of bandwidths nor one of idle latencies tells how many nodes there are (`mlc` without options prints both)";
            return Err(MachineError { place: "the text of mlc".to_owned(), reason: reason.to_owned() });
        };
        if let (Some(one), Some(other)) = (&self.pairs, &self.latencies)
            && one.rows.len() != other.rows.len()
        {
            return refused(
                one.line,
                format!("{} nodes; the latencies at line {} are of {}", one.rows.len(), other.line, other.rows.len()),
            );
        }
        let nodes: Vec<usize> = (0..table.rows.len()).filter(|node| table.rows[*node][*node].is_some()).collect();
        if nodes.is_empty() {
            return refused(table.line, "no node has both cores and memory");
        }
        Ok(nodes)
    }

    fn description(&self, name: &str) -> Result<File> {
        let nodes = self.nodes()?;
        let typical = typical()?;
        let cores = typical.cores as f64;
        let left_out = self.pairs.as_ref().or(self.latencies.as_ref()).map_or(0, |table| table.rows.len()) - nodes.len();
        let count = match left_out {
            0 => number(nodes.len() as f64, FILE),
            _ => number(nodes.len() as f64, "inferred: the nodes with cores and memory, numbered anew"),
        };
        let not_told = "assumed: mlc does not tell; all cores of a node ran in every row";
        let curves = self.peaks.iter().map(|(reads, writes, rate)| Curve {
            streams: Streams { read: *reads, write: *writes, allocate: 0.0 },
            points: vec![(cores, rate / 1e3 / nodes.len() as f64)],
            source: FILE.to_owned(),
        });
        let curves: Vec<Curve> = curves.collect();
        let bandwidth = self.pairs.as_ref().map(|pairs| {
            let rates = complete(pairs, &nodes, "bandwidth")?;
            // A description has a row for each node of the memory, MLC one for each node of the cores.
            let gb_per_s = (0..nodes.len()).map(|memory| rates.iter().map(|row| row[memory] / 1e3).collect()).collect();
            Ok(Bandwidth { gb_per_s, streams: Streams { read: 1.0, write: 0.0, allocate: 0.0 }, source: FILE.to_owned() })
        });
        let bandwidth = bandwidth.transpose()?;
        let Some(controller) = curves
            .first()
            .and_then(|curve| curve.points.first())
            .map(|(_, rate)| *rate)
            .or_else(|| Some(bandwidth.as_ref()?.gb_per_s[0][0]))
        else {
            let reason = "it has neither peak nor pairs' bandwidths (`mlc` without options prints both)";
            return Err(MachineError { place: "the text of mlc".to_owned(), reason: reason.to_owned() });
        };
        let interconnect = (bandwidth.is_none() && nodes.len() > 1).then(|| Interconnect {
            gb_per_s: Some(number(
                assumed_link(&typical, controller),
                "assumed: no table of bandwidths; compares to the controller as on the median machine of the catalogue",
            )),
            ..Default::default()
        });
        Ok(File {
            schema: SCHEMA.to_owned(),
            name: name.to_owned(),
            title: format!("{} nodes measured by mlc", nodes.len()),
            vendor: None,
            sources: BTreeMap::from([(FILE.to_owned(), "Intel Memory Latency Checker, its output".to_owned())]),
            fit: Default::default(),
            nodes: Nodes {
                count,
                per_package: number(1.0, "assumed: mlc does not tell of packages"),
                cores: number(cores, &format!("{not_told}. The median of the catalogue")),
                smt: number(1.0, not_told),
                memory_mib: None,
                free_mib: None,
                channels: None,
                mega_transfers_per_s: None,
            },
            controller: Controller { write_allocate: None, curves },
            core: Default::default(),
            interconnect,
            links: Vec::new(),
            bandwidth,
            latency: self.latencies.as_ref().map(|table| complete(table, &nodes, "latency").map(matrix)).transpose()?,
            distances: None,
        })
    }
}

/// The table of these nodes; an error if it has gaps.
fn complete(table: &Pairs, nodes: &[usize], what: &str) -> Result<Vec<Vec<f64>>> {
    let cell = |from: usize, to: usize| {
        let value = table.rows[from][to];
        value.map_or_else(|| refused(table.line, format!("there is no {what} from node {from} to node {to}")), Ok)
    };
    nodes.iter().map(|from| nodes.iter().map(|to| cell(*from, *to)).collect()).collect()
}

/// A mix and its bandwidth; `None` for mixes with non-temporal stores, which the model has no kernel for.
fn peak(line: &str, number: usize) -> Result<Option<(f64, f64, f64)>> {
    let Some((label, value)) = line.split_once(" :").or_else(|| line.rsplit_once(':')) else { return Ok(None) };
    let label = label.trim();
    let mix = if label.eq_ignore_ascii_case("ALL Reads") { Some((1.0, 0.0)) } else { ratio(label) };
    let Some((reads, writes)) = mix else { return Ok(None) };
    let rate = positive(value.trim_start_matches(':').trim(), number)?;
    let Some(rate) = rate else { return Ok(None) };
    Ok(Some((reads, writes, rate)))
}

/// The numbers in `3:1 Reads-Writes`.
fn ratio(label: &str) -> Option<(f64, f64)> {
    let (ratio, words) = label.split_once(char::is_whitespace)?;
    let (reads, writes) = ratio.split_once(':')?;
    let small = |text: &str| text.parse::<u8>().ok().filter(|count| *count > 0).map(f64::from);
    let both = small(reads).zip(small(writes))?;
    words.trim().eq_ignore_ascii_case("Reads-Writes").then_some(both)
}

/// A number; `None` if it was not measured.
fn positive(word: &str, line: usize) -> Result<Option<f64>> {
    if matches!(word, "-" | "N/A" | "n/a") {
        return Ok(None);
    }
    match word.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(Some(value)),
        Ok(value) => refused(line, format!("{value} is not a positive number")),
        Err(_) => refused(line, format!("expected a number, found '{word:.20}'")),
    }
}

/// The table after a section's first line: headings, a line with the nodes of the columns, and a row per node.
fn pairs<'a>(lines: &mut std::iter::Peekable<impl Iterator<Item = (&'a str, usize)>>, start: usize) -> Result<Pairs> {
    let whole = |word: &str| word.parse::<usize>().ok();
    let mut columns = None;
    while let Some((line, number)) = lines.next_if(|(line, _)| !starts(line, "Measuring")) {
        if line.contains("traffic type") && !line.contains("Read-only") {
            return refused(number, "the bandwidths are of other traffic than reads; run mlc --bandwidth_matrix without -W");
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        // `Numa node 0 1`; in older versions `Socket 0 1`.
        let numbers: Vec<usize> = words.iter().filter_map(|word| whole(word)).collect();
        let named = words.len() - numbers.len();
        if (1..=2).contains(&named) && !numbers.is_empty() && ["numa", "socket", "memory"].contains(&words[0].to_ascii_lowercase().as_str())
        {
            if !numbers.iter().copied().eq(0..numbers.len()) {
                return refused(number, "the columns are not nodes 0, 1, 2, ... in order");
            }
            columns = Some(numbers.len());
            break;
        }
    }
    let Some(columns) = columns else { return refused(start, "no line with the columns' nodes follows, such as 'Numa node 0 1'") };
    let mut rows = Vec::new();
    while rows.len() < columns {
        let Some((line, number)) = lines.next_if(|(line, _)| !starts(line, "Measuring")) else { break };
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { if rows.is_empty() { continue } else { break } };
        if whole(first) != Some(rows.len()) {
            return refused(number, format!("expected the row of node {}, found '{first:.20}'", rows.len()));
        }
        let row = words.map(|word| positive(word, number)).collect::<Result<Vec<_>>>()?;
        if row.len() != columns {
            return refused(number, format!("{} values for {columns} nodes", row.len()));
        }
        rows.push(row);
    }
    if rows.len() < columns {
        // Nodes without cores have no row.
        if rows.is_empty() {
            return refused(start, "the table has no rows");
        }
        rows.resize(columns, vec![None; columns]);
    }
    Ok(Pairs { line: start, rows })
}
