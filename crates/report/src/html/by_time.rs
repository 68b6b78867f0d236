//! The accesses of each stretch of time as a table for the script: with it, views show the figures of a selected stretch.
//!
//! The table is sparse and bounded: where it would be larger, stretches get longer, maps coarser, and objects with few accesses are summed up.

use super::markup::rounded;
use super::{Page, matrices};
use firsttouch_analysis::ObjectView;
use firsttouch_analysis::pictures::{Accessed, TimedAccesses};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The largest table, bytes of JSON.
const MOST_BYTES: usize = 300_000;
/// A piece of a map is not coarser than this part of it.
const LEAST_PIECES: usize = 32;
/// What the mean weight of an object's cells is rounded to: a step is less than the error of any sample.
const STEPS: f64 = 500.0;
/// A figure that differs this much from the sums comes from more than the samples: it has no figure by time.
const DIFFERENT: f64 = 0.005;

/// Which figures the accesses of a row count in, as bits.
const SHARES: u8 = 1;
const OBJECT: u8 = 2;
const MATRIX: u8 = 4;

/// How coarse a table is.
#[derive(Clone, Copy)]
struct Scale {
    /// Stretches of the timeline that are one here.
    bins: usize,
    /// Pieces of a map, if maps are shown by time.
    pieces: Option<usize>,
    /// Objects with sums of their own, those with the most accesses.
    objects: usize,
    /// Whether threads have sums of their own.
    has_threads: bool,
}

/// From fine to coarse; each can be made from the one before it.
const SCALES: [Scale; 7] = [
    Scale { bins: 1, pieces: Some(2 * LEAST_PIECES), objects: 400, has_threads: true },
    Scale { bins: 2, pieces: Some(2 * LEAST_PIECES), objects: 400, has_threads: true },
    Scale { bins: 4, pieces: Some(LEAST_PIECES), objects: 400, has_threads: true },
    Scale { bins: 4, pieces: None, objects: 200, has_threads: true },
    Scale { bins: 4, pieces: None, objects: 60, has_threads: true },
    Scale { bins: 12, pieces: None, objects: 60, has_threads: false },
    Scale { bins: 12, pieces: None, objects: 24, has_threads: false },
];

/// What cells of one series have in common; `None`: no matter which.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    /// The index of the object in the report.
    object: Option<usize>,
    counts_in: u8,
    thread: Option<usize>,
    node: Option<usize>,
    home: Option<usize>,
    piece: usize,
}

/// Weight and samples, by series and stretch.
type Table = BTreeMap<(Series, usize), (f64, f64)>;

/// The table and how it reads, or null if even the coarsest would be too large.
#[must_use]
pub fn data(page: &Page<'_>) -> Value {
    let mut table = whole(page);
    let shares = table.iter().filter(|((series, _), _)| series.counts_in & SHARES != 0);
    let all: f64 = shares.map(|(_, (weight, _))| weight).sum();
    if table.is_empty() || all.is_nan() || all <= 0.0 {
        return Value::Null;
    }
    let elsewhere = from_elsewhere(page, &table);
    let coarseness = Coarseness::of(page);
    let mut bins = 1;
    for scale in &SCALES {
        table = coarseness.of_table(table, scale, scale.bins / bins);
        bins = scale.bins;
        let cells = cells(&table, all);
        if cells.to_string().len() <= MOST_BYTES {
            let maps = coarseness.maps(scale);
            return json!({ "bins": bins, "objects": scale.objects, "maps": maps, "elsewhere": elsewhere, "cells": cells });
        }
    }
    Value::Null
}

/// What the page shows of objects, and so how fine their sums have to be.
struct Coarseness {
    /// By the index of an object with a map: its id, and its pieces.
    maps: BTreeMap<usize, (i64, usize)>,
    /// The objects that are shown by thread.
    by_thread: BTreeSet<usize>,
}

impl Coarseness {
    fn of(page: &Page<'_>) -> Self {
        let with_map = |(index, object): (usize, &ObjectView)| Some((index, (object.id, page.map(object)?.pieces.len())));
        Self { maps: page.mapped().into_iter().filter_map(with_map).collect(), by_thread: matrices::by_thread(page).into_iter().collect() }
    }

    /// How many pieces of an object's map are one: a power of two, so that each scale can be made from a finer one.
    fn joined(&self, object: usize, scale: &Scale) -> Option<usize> {
        let (_, pieces) = self.maps.get(&object).filter(|_| object < scale.objects)?;
        Some(pieces.div_ceil(scale.pieces?).next_power_of_two())
    }

    /// The same by the object's id, for the script.
    fn maps(&self, scale: &Scale) -> BTreeMap<String, usize> {
        let one = |(object, (id, _)): (&usize, &(i64, usize))| Some((id.to_string(), self.joined(*object, scale)?));
        self.maps.iter().filter_map(one).collect()
    }

    fn of_table(&self, table: Table, scale: &Scale, bins: usize) -> Table {
        let mut next = Table::new();
        for ((series, bin), (weight, samples)) in table {
            let series = self.of_series(series, scale);
            if series.counts_in != 0 {
                let sum = next.entry((series, bin / bins)).or_insert((0.0, 0.0));
                *sum = (sum.0 + weight, sum.1 + samples);
            }
        }
        next
    }

    fn of_series(&self, series: Series, scale: &Scale) -> Series {
        let object = series.object.filter(|object| *object < scale.objects);
        let counts_in = if object.is_some() { series.counts_in } else { series.counts_in & !OBJECT };
        let joined = object.filter(|_| counts_in & OBJECT != 0).and_then(|object| self.joined(object, scale));
        let is_by_thread = |object: usize| joined.is_some() || self.by_thread.contains(&object);
        let needs_thread = scale.has_threads && counts_in & OBJECT != 0 && object.is_some_and(is_by_thread);
        let needs_nodes = counts_in & (OBJECT | MATRIX) != 0;
        Series {
            object,
            counts_in,
            thread: series.thread.filter(|_| needs_thread),
            node: series.node.filter(|_| needs_nodes),
            home: series.home.filter(|_| needs_nodes),
            // Pieces are those of the page's map.
            piece: joined.map_or(0, |joined| series.piece / joined * joined),
        }
    }
}

/// The analysis's sums, with the objects of the report by index.
fn whole(page: &Page<'_>) -> Table {
    let index: BTreeMap<i64, usize> = page.analysis.objects.iter().enumerate().map(|(index, object)| (object.id, index)).collect();
    let mut table = Table::new();
    for TimedAccesses { of, accesses, samples } in &page.pictures.by_time {
        let Accessed { object, counts_in, thread, node, home, piece, bin } = *of;
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let series = Series {
            object: object.and_then(|id| index.get(&id).copied()),
            counts_in: bit(counts_in.shares, SHARES) | bit(counts_in.object, OBJECT) | bit(counts_in.matrix, MATRIX),
            thread: Some(thread),
            node: Some(node),
            home,
            piece,
        };
        let sum = table.entry((series, bin)).or_insert((0.0, 0.0));
        *sum = (sum.0 + accesses, sum.1 + samples);
    }
    table
}

/// Objects whose remote part is not that of the samples' nodes: on another machine, for example, where it is the same wherever the pages are.
fn from_elsewhere(page: &Page<'_>, table: &Table) -> Vec<usize> {
    let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for ((series, _), (weight, _)) in table {
        let Some((object, _)) = series.object.zip(series.home).filter(|_| series.counts_in & OBJECT != 0) else { continue };
        let sum = sums.entry(object).or_default();
        *sum = (sum.0 + weight, sum.1 + if series.node == series.home { 0.0 } else { *weight });
    }
    let objects = page.analysis.objects.iter().enumerate();
    let differs = |(index, of_report): (usize, f64)| {
        let own = sums.get(&index).filter(|sum| sum.0 > 0.0).map(|sum| sum.1 / sum.0);
        own.is_none_or(|own| (own - of_report).abs() > DIFFERENT).then_some(index)
    };
    objects.filter_map(|(index, object)| Some((index, object.remote_fraction?))).filter_map(differs).collect()
}

/// `[[object, bits, unit, [[thread, node, home, piece, stretch, weight, samples, stretch, ...], ...]], ...]`: weights are whole numbers of units, and
/// -1 stands for what is not known or does not matter.
fn cells(table: &Table, all: f64) -> Value {
    let number = |value: Option<usize>| value.map_or(-1, |value| i64::try_from(value).unwrap_or(-1));
    // A table of each object: (weight, cells), and its series.
    let mut totals: BTreeMap<(Option<usize>, u8), (f64, usize)> = BTreeMap::new();
    for ((series, _), (weight, _)) in table {
        let total = totals.entry((series.object, series.counts_in)).or_default();
        *total = (total.0 + weight, total.1 + 1);
    }
    let mut list: Vec<Value> = Vec::with_capacity(totals.len());
    for (&(object, counts_in), &(weight, count)) in &totals {
        let unit = (weight / (STEPS * count as f64)).max(f64::MIN_POSITIVE);
        let mut series: Vec<(Series, Vec<Value>)> = Vec::new();
        for ((one, bin), (weight, samples)) in table.range((first(object, counts_in), 0)..) {
            if (one.object, one.counts_in) != (object, counts_in) {
                break;
            }
            if series.last().is_none_or(|(last, _)| last != one) {
                let of = [number(one.thread), number(one.node), number(one.home), number(Some(one.piece))];
                series.push((*one, of.into_iter().map(Value::from).collect()));
            }
            if let Some((_, values)) = series.last_mut() {
                let samples = (samples * 100.0).round() / 100.0;
                let samples = if samples.fract() == 0.0 { json!(samples as u64) } else { json!(samples) };
                values.extend([json!(bin), json!((weight / unit).round() as u64), samples]);
            }
        }
        let series: Vec<Vec<Value>> = series.into_iter().map(|(_, values)| values).collect();
        list.push(json!([number(object), counts_in, rounded(unit / all), series]));
    }
    json!(list)
}

/// The first series of an object in the order of the table.
const fn first(object: Option<usize>, counts_in: u8) -> Series {
    Series { object, counts_in, thread: None, node: None, home: None, piece: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each scale can be made from the one before it.
    #[test]
    fn scales_get_coarser() {
        for pair in SCALES.windows(2) {
            assert_eq!(pair[1].bins % pair[0].bins, 0);
            assert!(pair[1].objects <= pair[0].objects && pair[1].pieces <= pair[0].pieces && pair[1].has_threads <= pair[0].has_threads);
        }
    }

    /// Check that weights keep their proportions, and that stretches of one series are in one list.
    #[test]
    fn cells_are_grouped() {
        let series = |node| Series { node: Some(node), ..first(Some(7), SHARES | OBJECT) };
        let table: Table = [((series(0), 3), (1e9, 2.0)), ((series(0), 5), (3e9, 1.5)), ((series(1), 3), (2e9, 1.0))].into_iter().collect();
        let unit = rounded(1.0 / 1500.0);
        assert_eq!(cells(&table, 6e9), json!([[7, 3, unit, [[-1, 0, -1, 0, 3, 250, 2, 5, 750, 1.5], [-1, 1, -1, 0, 3, 500, 1]]]]));
    }
}
