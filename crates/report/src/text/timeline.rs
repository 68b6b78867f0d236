//! The run over time as text: remote accesses and estimated bandwidth by stretches of time, and how long the run had which bandwidth.
//! Beside it, the bandwidth that the system's counters say, where there are any.

use super::Style;
use super::words::{interval, percent};
use crate::system::Lines;
use crate::topology::table::Align::{Left, Right};
use firsttouch_analysis::pictures::{Bin, MeasuredBandwidth, Stretch, Timeline};
use firsttouch_model::format_bytes;

/// Rows of the table: stretches of the run.
const ROWS: usize = 24;
/// Rows of the histogram.
const CLASSES: usize = 8;
/// Columns of the longest bar.
const BAR: usize = 30;
/// Nodes with a column of their own.
const MOST_NODES: usize = 8;

/// The timeline as text. Without one, or without samples in it, the text says NOT JUDGED and why; what the system's counters say is shown in any case.
#[must_use]
pub fn timeline_text(timeline: Option<&Timeline>, style: Style) -> String {
    let mut out = Lines::new(style);
    match timeline.filter(|timeline| timeline.bins.iter().any(|bin| bin.samples > 0)) {
        Some(timeline) => estimated(&mut out, timeline),
        None => out.sentence("NOT JUDGED: no accesses over time: the profile has no samples whose memory has a known node."),
    }
    if let Some((timeline, counters)) = timeline.and_then(|timeline| Some((timeline, timeline.measured.as_ref()?))) {
        measured(&mut out, timeline, counters);
    }
    out.text()
}

/// What the samples say.
fn estimated(out: &mut Lines, timeline: &Timeline) {
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
    let speeds: Vec<f64> = timeline.bins.iter().filter_map(|bin| bin.gb_per_s.filter(|_| bin.samples > 0)).collect();
    histogram(out, "Time by bandwidth", &speeds, timeline.bins.len());
}

/// What the system's counters say, beside the estimate from samples.
fn measured(out: &mut Lines, timeline: &Timeline, counters: &MeasuredBandwidth) {
    let step = timeline.bins.len().div_ceil(ROWS).max(1);
    let by_node = if counters.nodes.len() <= MOST_NODES { counters.nodes.as_slice() } else { &[] };
    let by_cpus = counters.sources.contains("resctrl");
    let of_counters = if by_cpus { "remote" } else { "reads" };
    out.heading("Bandwidth by the system's counters, GB/s");
    let mut heading: Vec<String> = ["from", "all", of_counters].map(str::to_owned).into();
    heading.extend(by_node.iter().map(|node| format!("node {node}")));
    heading.push("by samples".to_owned());
    let mut rows = vec![heading];
    for (index, (stretch, bins)) in counters.stretches.chunks(step).map(Stretch::sum).zip(timeline.bins.chunks(step)).enumerate() {
        let speed = |value: Option<f64>| value.map_or_else(String::new, gigabytes);
        let part = if by_cpus { stretch.remote() } else { stretch.reads() };
        let mut row = vec![format!("{:.2} s", index as f64 * step as f64 * timeline.bin_s), speed(stretch.total_gb_per_s())];
        row.push(part.map_or_else(String::new, percent));
        row.extend((0..by_node.len()).map(|node| speed(stretch.gb_per_s(node))));
        row.push(speed(Some(Bin::sum(bins)).filter(|bin| bin.samples > 0).and_then(|bin| bin.gb_per_s)));
        rows.push(row);
    }
    let aligns: Vec<_> = std::iter::repeat_n(Right, rows.first().map_or(0, Vec::len)).collect();
    out.headed_table(&rows, &aligns);
    out.gap();
    let where_counted = match (by_cpus, counters.sources.contains("uncore")) {
        (true, true) => "Some hosts count it by the node of the memory (memory controllers), others by that of the CPUs (resctrl)",
        (true, false) => {
            "It is counted by the node of the CPUs, wherever the memory is (resctrl); remote is the part from memory of other nodes"
        }
        (false, _) => "It is counted by the node of the memory, whoever uses it (memory controllers)",
    };
    out.sentence(&format!(
        "{where_counted}. Counters are of the whole system: other programs, prefetches and lines that are fetched and not used are in it; accesses that a cache \
         serves are not."
    ));
    let speeds: Vec<f64> = counters.stretches.iter().filter_map(Stretch::total_gb_per_s).collect();
    histogram(out, "Time by bandwidth of the counters", &speeds, counters.stretches.len());
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

/// How long the run had which bandwidth. `known`: those of the stretches in which it is known, of `all` that there are.
fn histogram(out: &mut Lines, heading: &str, known: &[f64], all: usize) {
    let Some(most) = known.iter().copied().reduce(f64::max).filter(|most| *most > 0.0) else { return };
    let width = most / CLASSES as f64;
    let mut counts = [0_usize; CLASSES];
    for value in known {
        counts[((value / width) as usize).min(CLASSES - 1)] += 1;
    }
    let unknown = all.saturating_sub(known.len());
    let all = all.max(1) as f64;
    let largest = counts.iter().copied().max().unwrap_or(1).max(1);
    out.heading(heading);
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

    /// Check that counters are shown by node beside the estimate, with the time by their bandwidth, and also where no samples are.
    #[test]
    fn counters_stand_beside_the_estimate() {
        use firsttouch_analysis::pictures::Transferred;
        // 120 stretches of 0.1 s: 20 and 4 GB/s in half of them, unknown on one node in the rest.
        let node = |gb_per_s: f64, local: bool| {
            let bytes = gb_per_s * 0.1e9;
            Transferred { known_s: 0.1, bytes, read_bytes: (!local).then_some(bytes * 0.75), local_bytes: local.then_some(bytes * 0.75) }
        };
        let stretch = |second: Transferred, local: bool| Stretch { length_s: 0.1, nodes: vec![node(20.0, local), second] };
        let counters = |source: &str, local: bool| MeasuredBandwidth {
            sources: [source.to_owned()].into(),
            nodes: vec![0, 2],
            stretches: [vec![stretch(node(4.0, local), local); 60], vec![stretch(Transferred::default(), local); 60]].concat(),
        };
        let bin = Bin { share: 1.0 / 120.0, gb_per_s: Some(17.0), samples: 10, by_home: vec![1.0], ..Bin::default() };
        let mut timeline =
            Timeline { wall_s: 12.0, bin_s: 0.1, bins: vec![bin; 120], measured: Some(counters("uncore", false)), ..Timeline::default() };
        let style = Style { width: 100, colour: false };
        let cells = |text: &str, start: &str| {
            let own = text.split("Bandwidth by the system's counters").nth(1).unwrap_or_else(|| panic!("{text}"));
            let line = own.lines().find(|line| line.trim().starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}"));
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        let text = timeline_text(Some(&timeline), style);
        assert_eq!(cells(&text, "from"), "from all reads node 0 node 2 by samples");
        assert_eq!(cells(&text, "0.00 s"), "0.00 s 24 75 % 20 4.0 17");
        assert_eq!(cells(&text, "11.50 s"), "11.50 s 75 % 20 17");
        assert!(cells(&text, "21 to 24 GB/s").contains("50 %") && cells(&text, "not known").contains("50 %"), "{text}");
        assert!(text.contains("by the node of the memory") && text.contains("other programs"), "{text}");
        (timeline.bins, timeline.measured) = (vec![Bin::default(); 120], Some(counters("resctrl", true)));
        let text = timeline_text(Some(&timeline), style);
        assert!(text.starts_with("NOT JUDGED") && text.contains("by the node of the CPUs"), "{text}");
        assert_eq!(cells(&text, "0.00 s"), "0.00 s 24 25 % 20 4.0");
    }
}
