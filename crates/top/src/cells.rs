//! Figures as short texts. What is not known is `-`.

use firsttouch_model::format_bytes;
use firsttouch_monitor::Remote;
use std::collections::BTreeMap;

pub const UNKNOWN: &str = "-";

/// CPUs as top and htop have them: 100 is one CPU.
#[must_use]
pub fn cpu(cpus: Option<f64>) -> String {
    cpus.map_or_else(unknown, |cpus| format!("{:.1}", 100.0 * cpus))
}

/// A rate: `0`, `3.5`, `1200`, `1.2M`.
#[must_use]
pub fn rate(a_second: Option<f64>) -> String {
    match a_second {
        None => unknown(),
        Some(rate) if rate >= 1e6 => format!("{:.1}M", rate / 1e6),
        Some(rate) if rate >= 1e4 => format!("{:.0}k", rate / 1e3),
        Some(rate) if rate >= 10.0 || rate == 0.0 => format!("{rate:.0}"),
        Some(rate) => format!("{rate:.1}"),
    }
}

/// `1.2G` as htop has it.
#[must_use]
pub fn size(bytes: u64) -> String {
    let units = ["K", "M", "G", "T", "P"];
    let (mut value, mut unit) = (bytes as f64 / 1024.0, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    if value < 9.95 && unit > 0 { format!("{value:.1}{}", units[unit]) } else { format!("{value:.0}{}", units[unit]) }
}

/// As [`size`], if it is known.
#[must_use]
pub fn known_size(bytes: Option<u64>) -> String {
    bytes.map_or_else(unknown, size)
}

/// `1.2 GiB`.
#[must_use]
pub fn long_size(bytes: Option<u64>) -> String {
    bytes.map_or_else(unknown, format_bytes)
}

/// `12.5%`.
#[must_use]
pub fn share(share: Option<f64>) -> String {
    share.map_or_else(unknown, |share| format!("{:.0}%", 100.0 * share))
}

/// `49% [46,52]`. If the share leaves out a large part of the accesses, these may all be remote or all local: `0% [0,45]`.
#[must_use]
pub fn remote(remote: &Remote) -> String {
    let (Some(share), Some([low, high])) = (remote.share, remote.interval) else { return unknown() };
    let covers = remote.covers.filter(|_| remote.leaves_much_out()).unwrap_or(1.0);
    let (low, high) = (covers * low, covers * high + 1.0 - covers);
    format!("{:.0}% [{:.0},{:.0}]", 100.0 * share, 100.0 * low, 100.0 * high)
}

/// Bytes by node: `0:1.2G 1:3M`, the nodes with memory.
#[must_use]
pub fn by_node(nodes: Option<&BTreeMap<u32, u64>>) -> String {
    let Some(nodes) = nodes else { return unknown() };
    let texts: Vec<String> =
        nodes.iter().filter(|(_, bytes)| **bytes > 0).map(|(node, bytes)| format!("{node}:{}", size(*bytes))).collect();
    if texts.is_empty() { "0".to_owned() } else { texts.join(" ") }
}

/// Shares by node: `0:75% 1:25%`.
#[must_use]
pub fn shares_by_node(shares: &[f64]) -> String {
    let texts: Vec<String> = shares
        .iter()
        .enumerate()
        .filter(|(_, share)| **share >= 0.005)
        .map(|(node, share)| format!("{node}:{:.0}%", 100.0 * share))
        .collect();
    if texts.is_empty() { unknown() } else { texts.join(" ") }
}

#[must_use]
pub fn unknown() -> String {
    UNKNOWN.to_owned()
}

/// A table with columns as wide as their widest cell; numbers to the right.
pub struct Table {
    /// Title, and whether its cells are aligned to the right.
    pub columns: Vec<(&'static str, bool)>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The lines, indented.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| (*title).to_owned()).collect();
        let all = || std::iter::once(&titles).chain(&self.rows);
        let width = |at: usize| all().filter_map(|row| Some(row.get(at)?.chars().count())).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&self.columns).zip(&widths).map(|((cell, (_, right)), width)| match right {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
            format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
        };
        all().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check figures of all sizes, and unknown ones.
    #[test]
    fn figures_are_short() {
        assert_eq!([cpu(Some(1.234)), cpu(Some(0.0)), cpu(None)], ["123.4", "0.0", "-"]);
        let rates = [Some(0.0), Some(0.25), Some(12.3), Some(12_345.0), Some(2.5e6), None].map(rate);
        assert_eq!(rates, ["0", "0.2", "12", "12k", "2.5M", "-"]);
        let sizes = [0, 5 << 10, 1023 << 10, 1 << 20, 10 << 20, 3 << 30, 5 << 40].map(size);
        assert_eq!(sizes, ["0K", "5K", "1.0M", "1.0M", "10M", "3.0G", "5.0T"]);
        let known = Remote { share: Some(0.491), interval: Some([0.46, 0.523]), ..Remote::default() };
        assert_eq!([remote(&known), remote(&Remote::unknown("why"))], ["49% [46,52]", "-"]);
        let of_part = |covers| remote(&Remote { share: Some(0.0), interval: Some([0.0, 0.06]), covers: Some(covers), ..Remote::default() });
        assert_eq!([of_part(0.9), of_part(0.58)], ["0% [0,6]", "0% [0,45]"]);
        assert_eq!(by_node(Some(&BTreeMap::from([(0, 2 << 30), (1, 0), (3, 5 << 20)]))), "0:2.0G 3:5.0M");
        assert_eq!([by_node(None), by_node(Some(&BTreeMap::new()))], ["-", "0"]);
        assert_eq!([shares_by_node(&[0.75, 0.25]), shares_by_node(&[])], ["0:75% 1:25%", "-"]);
    }
}
