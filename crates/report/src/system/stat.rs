//! `firsttouch stat`: counters with their meanings.

use super::{Lines, row};
use crate::text::Style;
use crate::text::layout::wrap;
use crate::text::words::thousands;
use crate::topology::table::Align::{Left, Right};
use firsttouch_model::system::{Counters, meaning};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The number of nodes side by side; further nodes follow in another table below.
const NODES_ABREAST: usize = 4;
/// The number of numastat's counters. They come first, and are shown even if they are zero.
const NUMASTAT: usize = 6;

/// The time that the counters cover.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    SinceBoot,
    Interval { wall_s: f64 },
    Command { command: Vec<String>, wall_s: f64, exit_code: i32 },
}

/// The JSON of `firsttouch stat`.
#[derive(Serialize)]
pub struct StatJson<'a> {
    pub schema: &'static str,
    /// `since_boot`, `interval` or `command`.
    pub span: &'static str,
    pub wall_s: Option<f64>,
    pub command: Option<&'a [String]>,
    pub exit_code: Option<i32>,
    #[serde(flatten)]
    pub counters: &'a Counters,
    pub meanings: BTreeMap<&'a str, &'static str>,
}

impl<'a> StatJson<'a> {
    #[must_use]
    pub fn new(counters: &'a Counters, span: &'a Span) -> Self {
        let names = counters.nodes.iter().flat_map(|node| node.counters.keys()).chain(counters.system.keys());
        let meanings = names.filter_map(|name| Some((name.as_str(), meaning(name)?.1))).collect();
        let (word, wall_s, command, exit_code) = match span {
            Span::SinceBoot => ("since_boot", None, None, None),
            Span::Interval { wall_s } => ("interval", Some(*wall_s), None, None),
            Span::Command { command, wall_s, exit_code } => ("command", Some(*wall_s), Some(command.as_slice()), Some(*exit_code)),
        };
        Self { schema: "firsttouch.stat/1", span: word, wall_s, command, exit_code, counters, meanings }
    }
}

/// The counters as text, lines of about `style.width` columns, ending in a newline.
#[must_use]
pub fn stat_text(counters: &Counters, span: &Span, style: Style) -> String {
    let mut out = Lines::new(style);
    out.sentence(&match span {
        Span::SinceBoot => "Counts since boot, of the whole machine.".to_owned(),
        Span::Interval { wall_s } => format!("Counts of {wall_s:.1} s, of the whole machine."),
        Span::Command { command, wall_s, exit_code } => {
            let name = command.first().map_or("the command", String::as_str);
            // A shell gives the same status for a program that a signal ended; which of both it was is not recorded.
            let signal = exit_code.checked_sub(128).filter(|signal| (1..=64).contains(signal));
            let signal = signal.map_or(String::new(), |signal| format!(", as for a program that signal {signal} ended"));
            format!(
                "Counts while {name} ran ({wall_s:.2} s, exit status {exit_code}{signal}), of the whole machine: other programs are counted too."
            )
        }
    });
    nodes(&mut out, counters);
    system(&mut out, counters);
    out.doubts(&counters.doubts);
    out.text()
}

/// The columns of `stat --watch`: the heading, and the counter that it shows.
const WATCHED: [(&str, &str); 9] = [
    ("hit", "numa_hit"),
    ("miss", "numa_miss"),
    ("foreign", "numa_foreign"),
    ("interlv", "interleave_hit"),
    ("local", "local_node"),
    ("other", "other_node"),
    ("hints", "numa_hint_faults"),
    ("h-local", "numa_hint_faults_local"),
    ("moved", "numa_pages_migrated"),
];
/// The number of lines after which the headings are repeated on a terminal.
const LINES: usize = 20;
/// A terminal has so many.
const COLUMNS: usize = 80;

/// `stat --watch`: explanations once, then a line an interval, as vmstat prints them.
#[derive(Debug, Default)]
pub struct WatchTable {
    lines: usize,
}

impl WatchTable {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The line of an interval that ended `elapsed_s` after the start. Before the first line come the explanations; on a terminal, the
    /// headings are repeated.
    pub fn line(&mut self, counters: &Counters, elapsed_s: f64, on_terminal: bool) -> String {
        let mut text = String::new();
        if self.lines == 0 {
            let about = "Counts of each interval, of the whole machine, all nodes together. - means that this kernel does not count it; \
                         k, M, G and T are thousands, millions, billions and trillions.";
            wrap(about, COLUMNS).iter().for_each(|line| text.push_str(&format!("{line}\n")));
            for (heading, name) in WATCHED {
                for (at, line) in wrap(&format!("{name}: {}", explained(name)), COLUMNS - 10).iter().enumerate() {
                    text.push_str(&format!("  {:<7} {line}\n", if at == 0 { heading } else { "" }));
                }
            }
        }
        if self.lines == 0 || (on_terminal && self.lines.is_multiple_of(LINES)) {
            text.push_str(&format!("{:>7}", "seconds"));
            WATCHED.iter().for_each(|(heading, _)| text.push_str(&format!(" {heading:>7}")));
            text.push('\n');
        }
        text.push_str(&format!("{elapsed_s:>7.1}"));
        for (_, name) in WATCHED {
            let is_known = counters.system.contains_key(name) || counters.nodes.iter().any(|node| node.counters.contains_key(name));
            let sum = counters.system.get(name).copied().unwrap_or_else(|| counters.sum(name));
            text.push_str(&format!(" {:>7}", if is_known { short(sum) } else { "-".to_owned() }));
        }
        text.push('\n');
        self.lines += 1;
        text
    }
}

/// In at most seven columns.
fn short(count: u64) -> String {
    match count {
        0..=9_999_999 => count.to_string(),
        10_000_000..=999_999_499 => format!("{}k", (count + 500) / 1000),
        999_999_500..=999_999_999_999 => format!("{}M", count / 1_000_000),
        1_000_000_000_000..=999_999_999_999_999 => format!("{}G", count / 1_000_000_000),
        _ => format!("{}T", count / 1_000_000_000_000),
    }
}

/// Known counters in the order of display, then the others by name.
fn ordered<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut names: Vec<&String> = names.collect::<BTreeSet<_>>().into_iter().collect();
    names.sort_by_key(|name| meaning(name).map_or(usize::MAX, |(place, _)| place));
    names
}

fn explained(name: &str) -> String {
    meaning(name).map_or(String::new(), |(_, text)| text.to_owned())
}

fn nodes(out: &mut Lines, counters: &Counters) {
    // Without slow memory, the counters of memory tiers are zero on all nodes; leave them out.
    let is_shown = |name: &&String| meaning(name).is_some_and(|(place, _)| place < NUMASTAT) || counters.sum(name) > 0;
    let names = ordered(counters.nodes.iter().flat_map(|node| node.counters.keys()).filter(is_shown));
    for (part, nodes) in counters.nodes.chunks(NODES_ABREAST).enumerate() {
        if part == 0 {
            out.heading("By node");
        } else {
            out.gap();
        }
        let mut header = row(["counter"]);
        header.extend(nodes.iter().map(|node| format!("node {}", node.id)));
        header.push(if part == 0 { "meaning" } else { "" }.to_owned());
        let mut rows = vec![header];
        for name in &names {
            let mut cells = vec![(*name).clone()];
            cells.extend(nodes.iter().map(|node| node.counters.get(*name).map_or("-".to_owned(), |value| thousands(*value))));
            cells.push(if part == 0 { explained(name) } else { String::new() });
            rows.push(cells);
        }
        let aligns = [vec![Left], vec![Right; nodes.len()], vec![Left]].concat();
        out.table(&rows, &aligns);
    }
}

fn system(out: &mut Lines, counters: &Counters) {
    if counters.system.is_empty() {
        return;
    }
    out.heading("Balancing and migration, all nodes");
    let mut rows = vec![row(["counter", "count", "meaning"])];
    let mut zero = Vec::new();
    for name in ordered(counters.system.keys()) {
        match counters.system[name] {
            0 if !name.starts_with("numa_") => zero.push(name.as_str()),
            value => rows.push(vec![name.clone(), thousands(value), explained(name)]),
        }
    }
    out.table(&rows, &[Left, Right, Left]);
    if !zero.is_empty() {
        out.sentence(&format!("Zero: {}.", zero.join(", ")));
    }
    let count = |name: &str| counters.system.get(name).copied().unwrap_or(0);
    let (faults, local) = (count("numa_hint_faults"), count("numa_hint_faults_local"));
    if faults > 0 {
        out.sentence(&format!("{:.0} % of the accesses that the balancing caught were local.", 100.0 * local as f64 / faults as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the table of `--watch` fits a terminal, also with large counts.
    #[test]
    fn watch_fits_a_terminal() {
        let mut table = WatchTable::new();
        for count in [0, 9_999_999, 10_000_000, 999_999_499, 999_999_500, u64::from(u32::MAX) * 1000, 999_999 * 1_000_000_000_000] {
            let counters =
                Counters { system: WATCHED.iter().map(|(_, name)| ((*name).to_owned(), count)).collect(), ..Counters::default() };
            let text = table.line(&counters, 12_345.6, true);
            assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        }
        let shown = [9_999_999, 10_000_499, 1_999_999_999, 4_294_967_295_000].map(short);
        assert_eq!(shown, ["9999999", "10000k", "1999M", "4294G"]);
    }
}
