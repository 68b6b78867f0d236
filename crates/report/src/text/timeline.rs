//! The run over time as text: remote accesses and estimated bandwidth by stretches of time, and how long the run had which bandwidth.

use super::Style;
use super::words::{interval, percent};
use crate::system::Lines;
use crate::topology::table::Align::{Left, Right};
use firsttouch_analysis::pictures::{Bin, Timeline};
use firsttouch_model::format_bytes;

/// Rows of the table: stretches of the run.
const ROWS: usize = 24;
/// Rows of the histogram.
const CLASSES: usize = 8;
/// Columns of the longest bar.
const BAR: usize = 30;
/// Nodes with a column of their own.
const MOST_NODES: usize = 8;

/// The timeline as text. Without one, or without samples in it, the text says NOT JUDGED and why.
#[must_use]
pub fn timeline_text(timeline: Option<&Timeline>, style: Style) -> String {
    let mut out = Lines::new(style);
    let Some(timeline) = timeline.filter(|timeline| timeline.bins.iter().any(|bin| bin.samples > 0)) else {
        out.sentence("NOT JUDGED: no accesses over time: the profile has no samples whose memory has a known node.");
        return out.text();
    };
    let step = timeline.bins.len().div_ceil(ROWS).max(1);
    let stretches: Vec<Bin> = timeline.bins.chunks(step).map(Bin::sum).collect();
    let nodes = timeline.bins.iter().map(|bin| bin.by_home.len()).max().unwrap_or(0);
    let shown = if nodes <= MOST_NODES { nodes } else { 0 };
    out.heading(&format!("Time, in stretches of {:.2} s", timeline.bin_s * step as f64));
    let mut rows = vec![heading(shown)];
    for (index, stretch) in stretches.iter().enumerate() {
        rows.push(row(stretch, index as f64 * step as f64 * timeline.bin_s, shown));
    }
    let aligns: Vec<_> = std::iter::repeat_n(Right, rows.first().map_or(0, Vec::len)).collect();
    out.headed_table(&rows, &aligns);
    out.gap();
    out.sentence(
        "GB/s are estimated from samples: accesses of 8 bytes to memory larger than a core's cache, in brackets with the 95 % interval of the sampling. \
         Lines that are fetched and not used, and prefetches, are not in it; accesses that a shared cache serves are.",
    );
    let is_guess = |bin: &Bin| bin.samples > 0 && bin.gb_per_s.is_none();
    let guessed = timeline.bins.iter().filter(|bin| is_guess(bin)).count();
    if guessed > 0 {
        out.sentence(&format!(
            "NOT JUDGED: the bandwidth in {} of the time: the samples do not show how fast the loops go there.",
            percent(guessed as f64 / timeline.bins.len() as f64)
        ));
    }
    histogram(&mut out, timeline);
    out.text()
}

fn heading(nodes: usize) -> Vec<String> {
    let fixed = ["from", "samples", "remote", "", "GB/s", ""].map(str::to_owned);
    let homes = (0..nodes).map(|node| format!("node {node}"));
    fixed.into_iter().chain(homes).chain(["first touched".to_owned()]).collect()
}

fn row(bin: &Bin, from_s: f64, nodes: usize) -> Vec<String> {
    let speed = bin.gb_per_s.filter(|_| bin.samples > 0);
    let touched: f64 = bin.touched_bytes.iter().sum();
    let mut cells = vec![
        format!("{from_s:.2} s"),
        bin.samples.to_string(),
        bin.remote.map_or_else(String::new, percent),
        bin.remote_interval.map_or_else(String::new, interval),
        speed.map_or_else(String::new, gigabytes),
        bin.gb_per_s_interval
            .filter(|_| speed.is_some())
            .map_or_else(String::new, |[low, high]| format!("[{}, {}]", gigabytes(low), gigabytes(high))),
    ];
    cells.extend((0..nodes).map(|node| {
        let part = bin.by_home.get(node).copied().unwrap_or(0.0);
        speed.map_or_else(String::new, |speed| gigabytes(speed * part))
    }));
    cells.push(if touched > 0.0 { format_bytes(touched as u64) } else { String::new() });
    cells
}

fn gigabytes(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// How long the run had which bandwidth, in all of memory and on each node's.
fn histogram(out: &mut Lines, timeline: &Timeline) {
    let known: Vec<f64> = timeline.bins.iter().filter_map(|bin| bin.gb_per_s.filter(|_| bin.samples > 0)).collect();
    let Some(most) = known.iter().copied().reduce(f64::max).filter(|most| *most > 0.0) else { return };
    let width = most / CLASSES as f64;
    let mut counts = [0_usize; CLASSES];
    for value in &known {
        counts[((value / width) as usize).min(CLASSES - 1)] += 1;
    }
    let unknown = timeline.bins.len() - known.len();
    let all = timeline.bins.len().max(1) as f64;
    let largest = counts.iter().copied().max().unwrap_or(1).max(1);
    out.heading("Time by bandwidth");
    let class = |index: usize| format!("{} to {} GB/s", gigabytes(index as f64 * width), gigabytes((index + 1) as f64 * width));
    let mut rows: Vec<Vec<String>> = counts
        .iter()
        .enumerate()
        .map(|(index, count)| vec![class(index), percent(*count as f64 / all), "#".repeat((count * BAR).div_ceil(largest))])
        .collect();
    if unknown > 0 {
        rows.push(vec!["not known".to_owned(), percent(unknown as f64 / all), String::new()]);
    }
    out.table(&rows, &[Right, Right, Left]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that stretches are summed by their accesses, that each class of bandwidth has its part of the time, and that nothing seen is said to be so.
    #[test]
    fn stretches_and_classes() {
        let bin = |gb_per_s: f64, remote: f64| Bin {
            // 60 bins of 8 and 30 of 16 GB/s.
            share: gb_per_s / 960.0,
            gb_per_s: Some(gb_per_s),
            gb_per_s_interval: Some([gb_per_s * 0.9, gb_per_s * 1.1]),
            remote: Some(remote),
            samples: 10,
            by_home: vec![0.75, 0.25],
            ..Bin::default()
        };
        let bins = [vec![bin(8.0, 0.5); 60], vec![bin(16.0, 0.0); 30], vec![Bin::default(); 30]].concat();
        let timeline = Timeline { wall_s: 12.0, bin_s: 0.1, bins, ..Timeline::default() };
        let text = timeline_text(Some(&timeline), Style { width: 100, colour: false });
        let line =
            |start: &str| text.lines().find(|line| line.trim().starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}")).to_owned();
        assert!(line("0.00 s").contains("8.0") && line("0.00 s").contains("6.0") && line("0.00 s").contains("50"), "{text}");
        assert!(line("14 to 16 GB/s").contains("25") && line("not known").contains("25"), "{text}");
        assert!(timeline_text(None, Style { width: 100, colour: false }).starts_with("NOT JUDGED"));
    }
}
