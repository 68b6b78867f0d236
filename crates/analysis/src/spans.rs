//! Ranges of addresses, and which of them others overlap: without looking at all of them.

use crate::work;
use std::collections::BTreeMap;

/// Ranges with a value each. They may overlap each other.
///
/// A range is found among those of about its length (within a factor of two), which are sorted by address: those that overlap an address begin
/// at most twice their length before it. A search looks at the ranges that overlap, and for each power of two at some beside them.
#[derive(Debug)]
pub struct Spans<T> {
    /// By the binary logarithm of the length.
    by_length: BTreeMap<u32, Ranges<T>>,
    next: usize,
}

/// By address and number: the end and the value.
type Ranges<T> = BTreeMap<(u64, usize), (u64, T)>;

/// A range of [`Spans`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    length: u32,
    at: (u64, usize),
    end: u64,
}

impl Span {
    /// Its address and its end.
    #[must_use]
    pub fn addresses(&self) -> (u64, u64) {
        (self.at.0, self.end)
    }
}

impl<T> Default for Spans<T> {
    fn default() -> Self {
        Self { by_length: BTreeMap::new(), next: 0 }
    }
}

impl<T> Spans<T> {
    pub fn insert(&mut self, (start, end): (u64, u64), value: T) -> Span {
        let span = Span { length: end.saturating_sub(start).max(1).ilog2(), at: (start, self.next), end };
        self.next += 1;
        self.by_length.entry(span.length).or_default().insert(span.at, (end, value));
        span
    }

    pub fn remove(&mut self, span: Span) -> Option<T> {
        let ranges = self.by_length.get_mut(&span.length)?;
        let (_, value) = ranges.remove(&span.at)?;
        if ranges.is_empty() {
            self.by_length.remove(&span.length);
        }
        Some(value)
    }

    /// The ranges that begin before `end` and end behind `start`, in no order. (A range without bytes lies in those around it.)
    pub fn overlapping(&self, (start, end): (u64, u64)) -> impl Iterator<Item = (Span, &T)> {
        self.by_length.iter().flat_map(move |(&length, ranges)| {
            let longest = u64::MAX >> (63 - length);
            let from = (start.saturating_sub(longest), 0);
            let near = ranges.range(from..(end, 0).max(from));
            near.filter_map(move |(&at, (last, value))| {
                work::step();
                (*last > start).then_some((Span { length, at, end: *last }, value))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;

    /// Check that those found are those that a look at all ranges finds, of all lengths, also at the ends of the addresses and after removals.
    #[test]
    fn finds_what_overlaps() {
        let mut draws = Draws::new(1);
        let (mut spans, mut all) = (Spans::default(), Vec::new());
        for number in 0..400 {
            let start = draws.below(1000);
            let range = (start, start + [0, 1, 5, 64, 700][draws.below(5) as usize]);
            all.push((spans.insert(range, number), range, number));
        }
        for range in [(0, u64::MAX), (u64::MAX - 3, u64::MAX)] {
            all.push((spans.insert(range, all.len()), range, all.len()));
        }
        for _ in 0..200 {
            let gone = all.swap_remove(draws.below(all.len() as u64) as usize);
            assert_eq!(spans.remove(gone.0), Some(gone.2));
            assert_eq!(spans.remove(gone.0), None);
            let start = draws.below(1100);
            let wanted = (start, start + draws.below(90));
            let mut found: Vec<usize> = spans.overlapping(wanted).map(|(_, number)| *number).collect();
            found.sort_unstable();
            let overlaps = all.iter().filter(|(_, range, _)| range.0 < wanted.1 && range.1 > wanted.0);
            let mut expected: Vec<usize> = overlaps.map(|(_, _, number)| *number).collect();
            expected.sort_unstable();
            assert_eq!(found, expected, "{wanted:?}");
        }
    }

    /// Check that the steps of a search do not grow with the ranges beside the one that is wanted.
    #[test]
    fn steps_grow_with_what_is_found() {
        work::assert_growth(
            "ranges beside each other, and one around them",
            work::LINEAR,
            |count| {
                let mut spans = Spans::default();
                spans.insert((0, 1 << 40), 0);
                for number in 0..count as u64 {
                    spans.insert((number * 64, number * 64 + 32), 0);
                }
                work::steps(|| {
                    (0..count as u64).for_each(|number| assert_eq!(spans.overlapping((number * 64, number * 64 + 1)).count(), 2));
                })
            },
            1000,
        );
    }
}
