//! `firsttouch validate`: published and predicted figures, as text and as docs/validation.md.

use super::{Lines, row};
use crate::text::Style;
use crate::topology::table::Align::{Left, Right};
use firsttouch_predict::experiments::Use;
use firsttouch_predict::validate::{FAR, Summary, Validation, ValidationRow};
use std::fmt::Write;

fn figure(value: f64) -> String {
    // Four significant digits, as in most publications.
    let decimals = (3 - value.abs().max(1e-3).log10().floor() as i32).clamp(0, 4);
    format!("{value:.*}", decimals as usize)
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1} %", 100.0 * value))
}

fn cells(row: &ValidationRow) -> [String; 5] {
    let range = row.interval.or(row.range).filter(|[low, high]| high - low > 0.001 * row.predicted);
    [
        row.row.clone(),
        format!("{} {}", figure(row.published), row.unit),
        figure(row.predicted) + &range.map_or_else(String::new, |[low, high]| format!(" [{}, {}]", figure(low), figure(high))),
        format!("{:+.1} %", 100.0 * row.error),
        [row.fitted.then_some("fitted"), (!row.fitted && row.error.abs() > FAR).then_some("far"), judges(row)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", "),
    ]
}

/// A ratio that was set aside to judge the model.
fn judges(row: &ValidationRow) -> Option<&'static str> {
    (row.purpose == Some(Use::Validate)).then_some("validates")
}

/// Ratios of placements, with the coverage of their intervals.
fn ratio_counts(summary: &Summary) -> [String; 7] {
    let part = |covered: Option<usize>| covered.map_or_else(|| "-".to_owned(), |covered| format!("{covered} of {}", summary.predicted));
    [
        summary.of.clone(),
        summary.rows.to_string(),
        summary.fitted.to_string(),
        percent(summary.median),
        percent(summary.percentile_90),
        part(summary.covered),
        summary.better.map_or_else(|| "-".to_owned(), |better| format!("{} of {}", better.as_published, better.rows)),
    ]
}

fn counts(summary: &Summary) -> [String; 7] {
    [
        summary.of.clone(),
        summary.rows.to_string(),
        summary.fitted.to_string(),
        percent(summary.median),
        percent(summary.percentile_90),
        percent(summary.worst),
        summary.far.to_string(),
    ]
}

const SUMMARY: [&str; 7] = ["experiment", "rows", "of them fitted to", "median error", "90th percentile", "worst", "above 15 %"];
const RATIOS: [&str; 7] = ["placement ratios", "rows", "fitted", "median error", "90th percentile", "in the interval", "ranked right"];
const ROWS: [&str; 5] = ["row", "published", "predicted", "error", ""];

/// Every row, then the summary.
#[must_use]
pub fn validation_text(validation: &Validation, style: Style) -> String {
    let mut out = Lines::new(style);
    for summary in validation.summary.iter().skip(1) {
        out.heading(&summary.of);
        let mut rows = vec![row(ROWS)];
        rows.extend(validation.rows.iter().filter(|row| row.experiment == summary.of).map(|row| cells(row).to_vec()));
        out.table(&rows, &[Left, Right, Left, Right, Left]);
    }
    if !validation.left_out.is_empty() {
        out.heading("Published, but not predicted");
        for left in &validation.left_out {
            out.sentence(&format!("{}, {}: {}", left.experiment, left.rows, left.why));
        }
    }
    out.heading("Errors of rows that nothing was fitted to");
    let mut rows = vec![row(SUMMARY)];
    rows.extend(validation.summary.iter().map(|summary| counts(summary).to_vec()));
    out.table(&rows, &[Left, Right, Right, Right, Right, Right, Right]);
    out.heading("Ratios of placements");
    let mut rows = vec![row(RATIOS)];
    rows.extend(validation.ratios.iter().map(|summary| ratio_counts(summary).to_vec()));
    out.table(&rows, &[Left, Right, Right, Right, Right, Right, Right]);
    out.text()
}

/// The same as a Markdown page.
#[must_use]
pub fn validation_markdown(validation: &Validation) -> String {
    let mut out = "# The model against published measurements\n\n\
        Made by `firsttouch validate --markdown`; a test compares it. [model.md](model.md) explains the model, and every row that is \
        off by more than 15 %.\nThe error is predicted / published - 1. A row marked *fitted* gave its machine numbers (see its file in \
        `machines/`), and does not count in the summary.\nThreads that were not pinned are drawn at random: the mean, and in brackets where 95 % \
        of the draws lie.\nThe first summary row has no ratios of placements, which have a table of their own: how many times as long a loop takes with \
        its memory elsewhere as with each thread's own node. In brackets is the 95 % interval as `predict` has it, from the ranges of the machine's assumed numbers and \
        the errors of ratios of its kind (threads of one node, or of several) on all other machines. Rows that *validate* were set aside before any error of a single row was known. The last column of that table counts the rows whose two placements differ by more than 10 %, and those of them \
        in which the predicted better placement is the published one.\n\n## Errors of rows that nothing was fitted to\n\n"
        .to_owned();
    table(&mut out, &SUMMARY, validation.summary.iter().map(counts));
    out += "\n## Ratios of placements\n\n";
    table(&mut out, &RATIOS, validation.ratios.iter().map(ratio_counts));
    if !validation.left_out.is_empty() {
        out += "\n## Published, but not predicted\n\n";
        let left = |left: &firsttouch_predict::validate::LeftOut| [left.experiment.clone(), left.rows.clone(), left.why.clone()];
        table(&mut out, &["experiment", "rows", "why"], validation.left_out.iter().map(left));
    }
    for summary in validation.summary.iter().skip(1) {
        let _ = write!(out, "\n## {}\n\n", summary.of);
        table(&mut out, &ROWS, validation.rows.iter().filter(|row| row.experiment == summary.of).map(cells));
    }
    out
}

fn table<const N: usize>(out: &mut String, header: &[&str; N], rows: impl Iterator<Item = [String; N]>) {
    let _ = writeln!(out, "| {} |\n|{}", header.join(" | "), "---|".repeat(N));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
}
