//! Makes a machine from a description: checks every number, infers links from a matrix, and keeps the source of each number.

use super::curve::Curve;
use super::file::{File, Matrix, Number, Value};
use super::interconnect::interconnect;
use super::routes::routes;
use super::{Fact, MachineError, MachineModel, Node, peak, writes};
use crate::units::{Bandwidth, Volume};
use std::collections::BTreeMap;

/// The largest number of nodes: a larger machine is probably a mistake, and every pair of nodes is stored.
const MOST_NODES: usize = 1024;
const MOST_CORES: usize = 4096;

type Result<T> = std::result::Result<T, MachineError>;

pub fn refused<T>(place: impl Into<String>, reason: impl std::fmt::Display) -> Result<T> {
    Err(MachineError { place: place.into(), reason: reason.to_string() })
}

pub fn build(file: &File) -> Result<MachineModel> {
    let mut facts = Facts { list: Vec::new(), sources: &file.sources };
    let count = one("nodes.count", &file.nodes.count, MOST_NODES, &mut facts)?;
    let per_package = one("nodes.per_package", &file.nodes.per_package, MOST_NODES, &mut facts)?;
    let cores = counts("nodes.cores", &file.nodes.cores, count, MOST_CORES, &mut facts)?;
    let smt = counts("nodes.smt", &file.nodes.smt, count, 64, &mut facts)?;
    let memory = sizes("nodes.memory_mib", file.nodes.memory_mib.as_ref(), count, &mut facts)?;
    let free = sizes("nodes.free_mib", file.nodes.free_mib.as_ref(), count, &mut facts)?;
    if let Some(flag) = &file.controller.write_allocate {
        facts.add("controller.write_allocate", flag.value.to_string(), &flag.source)?;
    }
    if let Some(pairs) = &file.bandwidth {
        square("bandwidth.gb_per_s", &pairs.gb_per_s, count)?;
        pairs.streams.check().or_else(|reason| refused("bandwidth.streams", reason))?;
        facts.add("bandwidth.gb_per_s", format!("{count} x {count}"), &pairs.source)?;
    }
    let mut curves = curves(file, count, &cores, &mut facts)?;
    let writes = writes::derate(file, &mut curves, &mut facts)?;
    peak::check(file, count, &mut facts)?;
    let remote = match &file.core.remote_gb_per_s {
        Some(number) => each("core.remote_gb_per_s", number, count, &mut facts)?,
        None => {
            facts.add("core.remote_gb_per_s", "as local".to_owned(), "assumed")?;
            vec![f64::INFINITY; count]
        }
    };
    let in_package = match &file.core.within_package_gb_per_s {
        Some(number) => each("core.within_package_gb_per_s", number, count, &mut facts)?,
        None => remote.clone(),
    };
    let controller: Vec<f64> = curves.iter().map(|curves| curves[0].limit / 1e9).collect();
    let connected = interconnect(file, count, per_package, &controller, &mut facts)?;
    let routes = routes(count, &connected.edges).or_else(|why| refused("links", why))?;
    for (place, matrix) in [("latency.values", &file.latency), ("distances.values", &file.distances)] {
        if let Some(Matrix { values, source }) = matrix {
            square(place, values, count)?;
            facts.add(place.trim_end_matches(".values"), rows(values), source)?;
        }
    }
    let nodes = (0..count)
        .zip(curves)
        .map(|(index, curves)| Node {
            package: index / per_package,
            cores: cores[index],
            smt: smt[index],
            memory: memory.as_ref().map(|sizes| sizes[index]),
            free: free.as_ref().map(|sizes| sizes[index]),
            curves,
            core_remote: Bandwidth::from_gb_per_s(remote[index]),
            core_in_package: Bandwidth::from_gb_per_s(in_package[index]),
        })
        .collect();
    Ok(MachineModel {
        name: file.name.clone(),
        title: file.title.clone(),
        nodes,
        links: connected.links,
        routes,
        uncertain: connected.uncertain.into_iter().chain(writes).collect(),
        latencies: file.latency.as_ref().map(|matrix| matrix.values.clone()),
        write_allocate: file.controller.write_allocate.as_ref().is_none_or(|flag| flag.value),
        fitted: file.fit.rows.clone(),
        facts: facts.list,
        sources: file.sources.clone(),
    })
}

/// Every number with its source. Sources without an explanation are refused.
pub struct Facts<'a> {
    list: Vec<Fact>,
    sources: &'a BTreeMap<String, String>,
}

impl Facts<'_> {
    pub fn add(&mut self, what: &str, value: String, source: &str) -> Result<()> {
        // `assumed: why` and `inferred: from what` explain themselves; other sources are explained under [sources].
        let known = ["assumed", "inferred", "fitted"].iter().any(|word| source.split(':').next() == Some(word));
        if !known && !self.sources.contains_key(source) {
            return refused(what, format!("the source '{source}' is not explained under [sources]"));
        }
        self.list.push(Fact { what: what.to_owned(), value, source: source.to_owned() });
        Ok(())
    }
}

/// A positive number for each of `nodes` nodes.
pub fn each(place: &str, number: &Number, nodes: usize, facts: &mut Facts<'_>) -> Result<Vec<f64>> {
    let list = match &number.value {
        Value::Same(value) => vec![*value; nodes],
        Value::Each(list) if list.len() == nodes => list.clone(),
        Value::Each(list) => return refused(place, format!("{} values for {nodes} nodes", list.len())),
    };
    if let Some(value) = list.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
        return refused(place, format!("{value} is not a positive number"));
    }
    let mut text = match &number.value {
        Value::Same(value) => value.to_string(),
        Value::Each(list) => list.iter().map(f64::to_string).collect::<Vec<_>>().join(", "),
    };
    if let Some([low, high]) = number.range {
        if !list.iter().all(|value| 0.0 < low && low <= *value && *value <= high && high.is_finite()) {
            return refused(place, format!("{text} is not in its range [{low}, {high}]"));
        }
        text += &format!(" [{low}, {high}]");
    }
    facts.add(place, text, &number.source)?;
    Ok(list)
}

fn counts(place: &str, number: &Number, nodes: usize, most: usize, facts: &mut Facts<'_>) -> Result<Vec<usize>> {
    let list = each(place, number, nodes, facts)?;
    if let Some(value) = list.iter().find(|value| value.fract() != 0.0 || **value > most as f64) {
        return refused(place, format!("{value} is not a whole number up to {most}"));
    }
    Ok(list.iter().map(|value| *value as usize).collect())
}

fn one(place: &str, number: &Number, most: usize, facts: &mut Facts<'_>) -> Result<usize> {
    Ok(counts(place, number, 1, most, facts)?[0])
}

fn sizes(place: &str, number: Option<&Number>, nodes: usize, facts: &mut Facts<'_>) -> Result<Option<Vec<Volume>>> {
    let Some(number) = number else { return Ok(None) };
    Ok(Some(each(place, number, nodes, facts)?.into_iter().map(Volume::from_mib).collect()))
}

fn square(place: &str, rows: &[Vec<f64>], nodes: usize) -> Result<()> {
    if rows.len() != nodes {
        return refused(place, format!("{} rows for {nodes} nodes", rows.len()));
    }
    for (index, row) in rows.iter().enumerate() {
        if row.len() != nodes {
            return refused(format!("{place}[{index}]"), format!("{} values for {nodes} nodes", row.len()));
        }
        if let Some(column) = row.iter().position(|value| !(value.is_finite() && *value > 0.0)) {
            return refused(format!("{place}[{index}][{column}]"), format!("{} is not a positive number", row[column]));
        }
    }
    Ok(())
}

/// The curves of each node: as described, else the matrix's figure for the node itself as a limit.
fn curves(file: &File, nodes: usize, cores: &[usize], facts: &mut Facts<'_>) -> Result<Vec<Vec<Curve>>> {
    let mut list = Vec::new();
    for (index, curve) in file.controller.curves.iter().enumerate() {
        let place = format!("controller.curves[{index}]");
        curve.streams.check().or_else(|reason| refused(format!("{place}.streams"), reason))?;
        let points: Vec<(f64, f64)> = curve.points.iter().map(|(cores, rate)| (*cores, rate * 1e9)).collect();
        let made = Curve::through(curve.streams, &points).or_else(|reason| refused(format!("{place}.points"), reason))?;
        let text: Vec<String> = curve.points.iter().map(|(cores, rate)| format!("{rate} GB/s by {cores}")).collect();
        facts.add(&format!("{place} ({:.0} % writes)", 100.0 * made.write_share), text.join(", "), &curve.source)?;
        list.push(made);
    }
    list.sort_by(|a, b| a.write_share.total_cmp(&b.write_share));
    if list.windows(2).any(|pair| pair[0].write_share == pair[1].write_share) {
        return refused("controller.curves", "two curves of one mix of reads and writes");
    }
    if !list.is_empty() {
        return Ok(vec![list; nodes]);
    }
    let Some(pairs) = &file.bandwidth else {
        return refused("controller", "neither curves nor a [bandwidth] matrix tell its bandwidth");
    };
    facts.add("controller", "the matrix's diagonal".to_owned(), "inferred: from the matrix")?;
    facts.add("core.local_gb_per_s", "as the controller".to_owned(), "assumed: the matrix tells of all cores together only")?;
    (0..nodes)
        .map(|node| {
            let curve = Curve::through(pairs.streams, &[(cores[node] as f64, pairs.gb_per_s[node][node] * 1e9)]);
            curve.map(|curve| vec![curve]).or_else(|reason| refused(format!("bandwidth.gb_per_s[{node}][{node}]"), reason))
        })
        .collect()
}

fn rows(values: &[Vec<f64>]) -> String {
    let row = |row: &Vec<f64>| row.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
    values.iter().map(row).collect::<Vec<_>>().join(" | ")
}
