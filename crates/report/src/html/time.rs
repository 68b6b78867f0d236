//! The run over time: remote share, accesses and bandwidth by the node of the memory, first touches, moved pages, parallel regions.

use super::markup::{Markup, across, node_class};
use crate::text::place::place;
use crate::text::words::percent;
use firsttouch_analysis::pictures::{Bin, MeasuredBandwidth, Stretch, Timeline};
use firsttouch_model::format_bytes;
use serde_json::{Value, json};

/// The height of a chart, px.
const HEIGHT: f64 = 64.0;

/// Whether anything happened that a chart shows.
#[must_use]
pub fn has_charts(timeline: &Timeline) -> bool {
    let is_shown = |bin: &Bin| bin.remote.is_some() || bin.touched_bytes.iter().any(|bytes| *bytes > 0.0);
    timeline.has_regions || timeline.bins.iter().any(is_shown)
}

pub fn draw(html: &mut Markup, timeline: &Timeline) {
    html.element("p", &[("class", "readout"), ("id", "stretch"), ("aria-live", "polite"), ("hidden", "hidden")], "");
    let label =
        "Time. Left and right move a mark, with Shift they select a stretch, which the other views then show. Escape shows the whole run.";
    html.within("div", &[("class", "time"), ("id", "time"), ("tabindex", "0"), ("role", "group"), ("aria-label", label)], |html| {
        let bins = &timeline.bins;
        if bins.iter().any(|bin| bin.remote.is_some()) {
            chart(html, "t-remote", "Remote part of the accesses", &remote_words(bins), ("100 %", "0 %"), |html| remote(html, bins));
            let words = "Accesses of each stretch by the node of the memory; the height is their number.";
            let most = bins.iter().map(|bin| bin.share).fold(0.0, f64::max);
            chart(html, "t-home", "Accesses by the node of the memory", words, ("most", "0"), |html| {
                stacked(html, bins, |bin| bin.by_home.iter().map(|part| part * bin.share / most).collect());
            });
        }
        estimated_bandwidth(html, bins);
        if let Some(measured) = &timeline.measured {
            counted_bandwidth(html, measured);
        }
        let touched = |bin: &Bin| bin.touched_bytes.iter().sum::<f64>();
        let most = bins.iter().map(touched).fold(0.0, f64::max);
        if most > 0.0 {
            let all: f64 = bins.iter().map(touched).sum();
            let words = format!("{} first touched, by the node that the pages came to.", format_bytes(all as u64));
            chart(html, "t-touch", "First touches by node", &words, (&format_bytes(most as u64), "0"), |html| {
                stacked(html, bins, |bin| bin.touched_bytes.iter().map(|bytes| bytes / most).collect());
            });
        }
        if timeline.sees_moves {
            let most = bins.iter().map(|bin| bin.moved_pages).max().unwrap_or(0);
            let all: u64 = bins.iter().map(|bin| bin.moved_pages).sum();
            let words = format!("{all} pages of those asked about were on another node than before.");
            chart(html, "t-moved", "Pages seen to have moved", &words, (&most.max(1).to_string(), "0"), |html| {
                bars(html, bins, "remote", |bin| bin.moved_pages as f64 / most.max(1) as f64);
            });
        }
        if timeline.has_regions {
            let words = "The part of each stretch in which a parallel region ran.";
            chart(html, "t-parallel", "Parallel regions", words, ("100 %", "0 %"), |html| bars(html, bins, "phase", |bin| bin.parallel));
        }
        axis(html, timeline);
    });
    phases(html, timeline);
}

/// What samples say: the speed of the loops that they show.
fn estimated_bandwidth(html: &mut Markup, bins: &[Bin]) {
    let speed = |bin: &Bin| bin.gb_per_s.filter(|_| bin.samples > 0);
    let most = bins.iter().filter_map(speed).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let seen = bins.iter().filter(|bin| bin.samples > 0).count();
    let known = bins.iter().filter_map(speed).count();
    let words = format!(
        "Up to {most:.1} GB/s, estimated from samples: accesses of 8 bytes to memory larger than a core's cache. Known in {known} of the {seen} stretches with samples."
    );
    chart(html, "t-speed", "Estimated bandwidth by the node of the memory", &words, (&format!("{most:.1} GB/s"), "0"), |html| {
        let is_unknown = |bin: &Bin| if bin.samples > 0 && bin.gb_per_s.is_none() { 1.0 } else { 0.0 };
        bars(html, bins, "unseen", is_unknown);
        stacked(html, bins, |bin| bin.by_home.iter().map(|part| part * speed(bin).unwrap_or(0.0) / most).collect());
    });
}

/// What the system's counters say.
fn counted_bandwidth(html: &mut Markup, measured: &MeasuredBandwidth) {
    let most = measured.stretches.iter().filter_map(Stretch::total_gb_per_s).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let (side, source) = if measured.sources.contains("resctrl") { ("CPUs", "resctrl") } else { ("memory", "memory controllers") };
    let title = format!("Bandwidth by the node of the {side}, counted by {source}");
    let words = format!("Up to {most:.1} GB/s of the whole system, other programs included.");
    // Nodes without counters have no part.
    let parts = |stretch: &Stretch| -> Vec<f64> {
        let last = measured.nodes.iter().max().map_or(0, |node| *node as usize + 1);
        let mut parts = vec![0.0; last];
        for (index, node) in measured.nodes.iter().enumerate() {
            parts[*node as usize] = stretch.gb_per_s(index).unwrap_or(0.0) / most;
        }
        parts
    };
    chart(html, "t-counted", &title, &words, (&format!("{most:.1} GB/s"), "0"), |html| stacked(html, &measured.stretches, parts));
}

fn chart(html: &mut Markup, id: &str, title: &str, words: &str, (top, bottom): (&str, &str), contents: impl FnOnce(&mut Markup)) {
    let (label, desc) = (format!("{id}-t"), format!("{id}-d"));
    let labelled = format!("{label} {desc}");
    html.element("p", &[("class", "chart-name")], title);
    html.within("div", &[("class", "chart")], |html| {
        html.within("div", &[("class", "scale"), ("aria-hidden", "true")], |html| {
            html.element("span", &[], top);
            html.element("span", &[], bottom);
        });
        let height = HEIGHT.to_string();
        html.within("svg", &[("width", "100%"), ("height", &height), ("role", "img"), ("aria-labelledby", &labelled)], |html| {
            html.element("title", &[("id", &label)], title);
            html.element("desc", &[("id", &desc)], words);
            html.empty("rect", &[("class", "track"), ("width", "100%"), ("height", "100%")]);
            contents(html);
            html.within("g", &[("class", "brush")], |_| {});
        });
    });
}

fn remote_words(bins: &[Bin]) -> String {
    let known: Vec<f64> = bins.iter().filter_map(|bin| bin.remote).collect();
    let (low, high) = (known.iter().copied().fold(1.0, f64::min), known.iter().copied().fold(0.0, f64::max));
    format!("From {} to {} in {} stretches of time with samples.", percent(low), percent(high), known.len())
}

/// A bar with the interval behind a line for each stretch.
fn remote(html: &mut Markup, bins: &[Bin]) {
    let all = bins.len() as f64;
    let width = across(1.0 / all);
    html.within("g", &[("class", "cells")], |html| {
        for (index, bin) in bins.iter().enumerate() {
            let (Some(value), Some([low, high])) = (bin.remote, bin.remote_interval) else { continue };
            let x = across(index as f64 / all);
            let y = |part: f64| format!("{:.1}", (1.0 - part) * HEIGHT);
            let tall = format!("{:.1}", ((high - low) * HEIGHT).max(1.0));
            html.empty("rect", &[("class", "band"), ("x", &x), ("y", &y(high)), ("width", &width), ("height", &tall)]);
            let top = format!("{:.1}", ((1.0 - value) * HEIGHT - 1.0).clamp(0.0, HEIGHT - 2.0));
            html.empty("rect", &[("class", "remote"), ("x", &x), ("y", &top), ("width", &width), ("height", "2")]);
        }
    });
}

fn stacked<T>(html: &mut Markup, bins: &[T], parts: impl Fn(&T) -> Vec<f64>) {
    let all = bins.len() as f64;
    let width = across(1.0 / all);
    html.within("g", &[("class", "cells")], |html| {
        for (index, bin) in bins.iter().enumerate() {
            let x = across(index as f64 / all);
            let mut top = HEIGHT;
            for (node, part) in parts(bin).into_iter().enumerate() {
                let tall = part * HEIGHT;
                if tall.is_nan() || tall < 0.05 {
                    continue;
                }
                top -= tall;
                let (y, tall) = (format!("{:.1}", top.max(0.0)), format!("{tall:.1}"));
                html.empty("rect", &[("class", &node_class(node)), ("x", &x), ("y", &y), ("width", &width), ("height", &tall)]);
            }
        }
    });
}

fn bars(html: &mut Markup, bins: &[Bin], class: &str, part: impl Fn(&Bin) -> f64) {
    let all = bins.len() as f64;
    let width = across(1.0 / all);
    html.within("g", &[("class", "cells")], |html| {
        for (index, bin) in bins.iter().enumerate() {
            let tall = part(bin).clamp(0.0, 1.0) * HEIGHT;
            if tall >= 0.05 {
                let (x, y, tall) = (across(index as f64 / all), format!("{:.1}", HEIGHT - tall), format!("{tall:.1}"));
                html.empty("rect", &[("class", class), ("x", &x), ("y", &y), ("width", &width), ("height", &tall)]);
            }
        }
    });
}

fn axis(html: &mut Markup, timeline: &Timeline) {
    html.within("div", &[("class", "chart axis"), ("aria-hidden", "true")], |html| {
        html.element("div", &[("class", "scale")], "");
        html.within("svg", &[("width", "100%"), ("height", "16"), ("focusable", "false")], |html| {
            for (part, anchor) in [(0.0, "start"), (0.25, "middle"), (0.5, "middle"), (0.75, "middle"), (1.0, "end")] {
                let text = format!("{:.1} s", timeline.wall_s * part);
                html.element("text", &[("class", "tick"), ("x", &across(part)), ("y", "12"), ("text-anchor", anchor)], &text);
            }
        });
    });
}

fn phases(html: &mut Markup, timeline: &Timeline) {
    if timeline.phases.is_empty() {
        return;
    }
    html.within("div", &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Parallel regions")], |html| {
        html.within("table", &[], |html| {
            html.element("caption", &[], "Parallel regions by place in the code, those that take the most time first");
            html.within("tr", &[], |html| {
                for name in ["place", "regions", "threads", "total time", "from", "to"] {
                    html.element("th", &[("scope", "col"), ("class", if name == "place" { "" } else { "n" })], name);
                }
            });
            for phase in &timeline.phases {
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], &phase.at.as_ref().map_or_else(|| "unknown code".to_owned(), place));
                    let cells = [
                        phase.regions.to_string(),
                        phase.team_size.to_string(),
                        format!("{:.2} s", phase.total_s),
                        format!("{:.2} s", phase.first_s),
                        format!("{:.2} s", phase.last_s),
                    ];
                    cells.iter().for_each(|cell| html.element("td", &[("class", "n")], cell));
                });
            }
        });
    });
}

/// What the script shows of each stretch.
#[must_use]
pub fn data(timeline: &Timeline) -> Value {
    let short = |value: f64| (value * 1e5).round() / 1e5;
    let bin = |bin: &Bin| {
        json!([
            short(bin.share),
            bin.remote.map(short),
            bin.samples,
            bin.touched_bytes.iter().map(|bytes| bytes.round()).collect::<Vec<f64>>(),
            bin.moved_pages,
            short(bin.parallel),
            bin.gb_per_s.filter(|_| bin.samples > 0).zip(bin.gb_per_s_interval).map(|(value, [low, high])| [
                short(value),
                short(low),
                short(high)
            ])
        ])
    };
    json!({ "bin_s": timeline.bin_s, "bins": timeline.bins.iter().map(bin).collect::<Vec<_>>(), "moves": timeline.sees_moves })
}
