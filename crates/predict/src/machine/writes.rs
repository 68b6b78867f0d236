//! What a controller delivers of writes where only reads were measured (hwloc, HMAT, MLC without its mixes): the median ratio of the
//! catalogue's machines of the same vendor, as an assumption with a range.

use super::build::Facts;
use super::curve::Curve;
use super::file::{self, File};
use super::{MachineError, Uncertain, UncertainNumber, catalogue};
use std::sync::OnceLock;

/// The fraction of writes at which machines are compared: a loop that updates an array. It is the largest fraction that programs which
/// read what they write can have.
const WRITES: f64 = 0.5;

/// With fewer machines of a vendor, take all machines.
const LEAST_MACHINES: usize = 3;

/// The bandwidth of half writes over that of reads.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratio {
    median: f64,
    low: f64,
    high: f64,
    machines: usize,
}

impl Ratio {
    fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (*ratios.first()?, *ratios.last()?);
        Some(Self { median: ratios[ratios.len() / 2], low, high, machines: ratios.len() })
    }
}

/// The measured curves of a description, by rising fraction of writes.
fn measured(file: &File) -> Vec<Curve> {
    let of = |curve: &file::Curve| {
        let points: Vec<(f64, f64)> = curve.points.iter().map(|(cores, rate)| (*cores, rate * 1e9)).collect();
        Curve::through(curve.streams, &points).ok()
    };
    let mut curves: Vec<Curve> = file.controller.curves.iter().filter_map(of).collect();
    curves.sort_by(|a, b| a.write_share.total_cmp(&b.write_share));
    curves
}

/// By machine of the catalogue that measured both: its vendor, and the ratio of its bandwidths.
fn of_the_catalogue() -> Result<Vec<(Option<String>, f64)>, MachineError> {
    let mut ratios = Vec::new();
    for text in catalogue::texts() {
        let file = file::parse(text)?;
        let curves = measured(&file);
        let at = |share: f64| curves.iter().find(|curve| (curve.write_share - share).abs() < 0.01);
        if let (Some(reads), Some(writes)) = (at(0.0), at(WRITES)) {
            ratios.push((file.vendor.clone(), writes.limit / reads.limit));
        }
    }
    Ok(ratios)
}

fn ratio(vendor: Option<&str>) -> Result<Option<Ratio>, MachineError> {
    type Known = Result<Vec<(Option<String>, f64)>, MachineError>;
    static KNOWN: OnceLock<Known> = OnceLock::new();
    let known = KNOWN.get_or_init(of_the_catalogue).as_ref().map_err(Clone::clone)?;
    let of = |keep: &dyn Fn(Option<&str>) -> bool| -> Vec<f64> {
        known.iter().filter(|(vendor, _)| keep(vendor.as_deref())).map(|(_, ratio)| *ratio).collect()
    };
    let own = of(&|other| vendor.is_some() && other == vendor);
    Ok(Ratio::of(if own.len() >= LEAST_MACHINES { own } else { of(&|_| true) }))
}

/// Adds a curve of writes to nodes of which only reads are known. Returns the assumption.
pub fn derate(file: &File, nodes: &mut [Vec<Curve>], facts: &mut Facts<'_>) -> Result<Option<Uncertain>, MachineError> {
    let reads_only = |curves: &Vec<Curve>| matches!(&curves[..], [only] if only.write_share <= 0.0);
    if !nodes.iter().all(reads_only) {
        return Ok(None);
    }
    let Some(ratio) = ratio(file.vendor.as_deref())? else { return Ok(None) };
    for curves in nodes.iter_mut() {
        let reads = curves[0];
        curves.push(Curve { write_share: WRITES, core: reads.core * ratio.median, limit: reads.limit * ratio.median, ..reads });
    }
    let Ratio { median, low, high, machines } = ratio;
    facts.add(
        "controller (50 % writes)",
        format!("{median:.2} [{low:.2}, {high:.2}] of its reads"),
        &format!("assumed: only reads are described; the median of {machines} machines of the catalogue"),
    )?;
    let what = "bandwidth of writes".to_owned();
    Ok(Some(Uncertain { what, number: UncertainNumber::Writes, low: low / median, high: high / median }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine;

    /// Check that a description of reads alone gets slower writes with a range, that one with writes stays as it is, and that a vendor with
    /// few machines takes all.
    #[test]
    fn writes_are_derated_where_only_reads_are_known() {
        let reads = machine::find("xeon-skylake-sp-x2-breniac").unwrap();
        let node = &reads.nodes[0];
        let factor = node.curve(0.5).limit / node.curve(0.0).limit;
        assert!((0.7..1.0).contains(&factor), "{factor}");
        let assumed = reads.uncertain.iter().find(|one| one.number == UncertainNumber::Writes).unwrap();
        assert!(assumed.low < 1.0 && assumed.high >= 1.0);
        let slower = reads.with(assumed, assumed.low);
        assert!(slower.nodes[0].curve(0.5).limit < node.curve(0.5).limit);
        assert_eq!(slower.nodes[0].curve(0.0), node.curve(0.0));
        let described = machine::find("xeon-gold-6148x2").unwrap();
        assert!(described.uncertain.iter().all(|one| one.number != UncertainNumber::Writes));
        assert_eq!(ratio(Some("nobody")).unwrap(), ratio(None).unwrap());
        assert_ne!(ratio(Some("intel")).unwrap(), ratio(None).unwrap());
    }
}
