//! The ranks of a merged profile, and the objects that they have in common.

use super::markup::{Document, Figure, Markup};
use crate::text::place::place;
use firsttouch_analysis::Analysis;
use firsttouch_analysis::job::{OverRanks, RankView};
use firsttouch_model::topology::format_list;
use firsttouch_model::{format_bytes, signal_words};

/// Rows of each table; more are counted.
const MOST_RANKS: usize = 256;
const MOST_OBJECTS: usize = 24;
/// Smaller parts of a rank on a node are not named.
const LEAST: f64 = 0.01;

pub fn draw(html: &mut Markup, analysis: &Analysis) {
    if !analysis.missing_ranks.is_empty() {
        let words = format!("These ranks of the job have no profile here: {}.", format_list(&analysis.missing_ranks));
        html.within("p", &[("class", "open-note")], |html| html.element("b", &[], &words));
    }
    table(html, analysis);
    let more = analysis.ranks.len().saturating_sub(MOST_RANKS);
    if more > 0 {
        html.element("p", &[("class", "hint")], &format!("{more} more ranks: firsttouch report --json has all."));
    }
    if !analysis.across_ranks.is_empty() {
        across(html, analysis);
    }
}

fn table(html: &mut Markup, analysis: &Analysis) {
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Table of ranks")];
    html.within("div", &region, |html| {
        html.within("table", &[("class", "sortable")], |html| {
            html.element("caption", &[], "Ranks, with 95 % intervals");
            html.within("thead", &[], |html| {
                html.within("tr", &[], |html| {
                    for (name, class) in [
                        ("rank", "n"),
                        ("host", ""),
                        ("threads", "n"),
                        ("runs on", ""),
                        ("memory on", ""),
                        ("remote", "n"),
                        ("accesses", "n"),
                        ("findings", "n"),
                        ("run time", "n"),
                        ("end", ""),
                    ] {
                        html.element("th", &[("scope", "col"), ("class", class)], name);
                    }
                });
            });
            html.within("tbody", &[], |html| {
                for (index, rank) in analysis.ranks.iter().enumerate().take(MOST_RANKS) {
                    row(html, analysis, (index, rank));
                }
            });
        });
    });
}

fn row(html: &mut Markup, analysis: &Analysis, (index, rank): (usize, &RankView)) {
    let at = |key: &str| format!("/ranks/{index}/{key}");
    html.within("tr", &[], |html| {
        let number = rank.rank.map_or_else(|| "-1".to_owned(), |rank| rank.to_string());
        html.within("th", &[("scope", "row"), ("class", "n"), ("data-v", &number)], |html| match rank.rank {
            Some(rank) => html.figure(Document::Report, &at("rank"), Figure::Count(rank.into())),
            None => html.text("\u{2013}"),
        });
        html.element("td", &[], analysis.hosts.get(rank.host).map_or("", |host| host.name.as_str()));
        html.figure_cell(&at("threads"), Some(Figure::Count(rank.threads as u64)), rank.threads as f64);
        html.element("td", &[], &nodes(analysis, &rank.thread_nodes));
        html.element("td", &[], &nodes(analysis, &rank.memory_nodes));
        let number = format!("{:.6}", rank.remote_fraction.unwrap_or(-1.0));
        html.within("td", &[("class", "n"), ("data-v", &number)], |html| match rank.remote_fraction {
            Some(remote) => html.with_interval((&at("remote_fraction"), remote), (&at("remote_interval"), rank.remote_interval)),
            None => html.text("not known"),
        });
        html.figure_cell(&at("access_share"), rank.access_share.map(Figure::Percent), rank.access_share.unwrap_or(-1.0));
        html.element("td", &[("class", "n")], &rank.findings.len().to_string());
        html.figure_cell(&at("wall_s"), Some(Figure::Seconds(rank.wall_s)), rank.wall_s);
        html.element("td", &[], &end(rank));
    });
}

/// `node 0`, or `node 0 52 %, node 1 48 %`.
fn nodes(analysis: &Analysis, shares: &[f64]) -> String {
    let name = |node: usize| format!("node {}", analysis.node_name(node));
    if let Some((node, _)) = shares.iter().enumerate().find(|(_, share)| **share > 1.0 - LEAST) {
        return name(node);
    }
    let named = shares.iter().enumerate().filter(|(_, share)| **share >= LEAST);
    let words: Vec<String> = named.map(|(node, share)| format!("{} {}", name(node), Figure::Percent(*share).text())).collect();
    words.join(", ")
}

fn end(rank: &RankView) -> String {
    match (rank.signal, rank.exit_code) {
        _ if rank.unfinished => "recorder died".to_owned(),
        _ if rank.abort_status.is_some() => "MPI_Abort".to_owned(),
        (Some(signal), _) => signal_words(signal),
        (None, Some(0)) => "done".to_owned(),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => String::new(),
    }
}

fn across(html: &mut Markup, analysis: &Analysis) {
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Objects over ranks")];
    html.within("div", &region, |html| {
        html.within("table", &[], |html| {
            html.element("caption", &[], "The same object in all ranks: least, median and most");
            html.within("tr", &[], |html| {
                for (name, class) in
                    [("object", ""), ("allocated at", ""), ("ranks", ""), ("bytes in a rank", ""), ("remote", ""), ("differs", "")]
                {
                    html.element("th", &[("scope", "col"), ("class", class)], name);
                }
            });
            for (index, object) in analysis.across_ranks.iter().enumerate().take(MOST_OBJECTS) {
                let at = |key: &str| format!("/across_ranks/{index}/{key}");
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], &object.name);
                    html.element("td", &[], &object.allocated_at.as_ref().map_or_else(String::new, place));
                    html.element("td", &[], &format_list(&object.ranks));
                    let bytes = |value: f64| format_bytes(value as u64);
                    html.element(
                        "td",
                        &[],
                        &format!("{} / {} / {}", bytes(object.bytes.min), bytes(object.bytes.median), bytes(object.bytes.max)),
                    );
                    html.within("td", &[], |html| {
                        if let Some(remote) = &object.remote_fraction {
                            spread(html, &at("remote_fraction"), remote);
                        }
                    });
                    let outlier = object.remote_fraction.and_then(|remote| remote.outlier);
                    html.element("td", &[], &outlier.map_or_else(String::new, |rank| format!("rank {rank}")));
                });
            }
        });
    });
}

fn spread(html: &mut Markup, pointer: &str, over: &OverRanks) {
    for (key, value) in [("min", over.min), ("median", over.median), ("max", over.max)] {
        html.figure(Document::Report, &format!("{pointer}/{key}"), Figure::Percent(value));
        if key != "max" {
            html.text(" / ");
        }
    }
}
