//! A contingency table: whether two classifications of samples depend on each other.

use std::collections::{BTreeMap, BTreeSet};

/// They do if Pearson's chi-squared exceeds its mean by this many standard deviations: by chance in one of a hundred tables of two by two, and
/// in fewer of larger ones.
const FAR: f64 = 4.0;

/// Counts by two classes.
#[derive(Debug, Default)]
pub struct Contingency {
    counts: BTreeMap<(usize, usize), f64>,
}

impl Contingency {
    pub fn add(&mut self, row: usize, column: usize, count: f64) {
        *self.counts.entry((row, column)).or_default() += count;
    }

    #[must_use]
    pub fn is_dependent(&self) -> bool {
        let by = |class: &dyn Fn(&(usize, usize)) -> usize| {
            let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
            self.counts.iter().for_each(|(key, count)| *sums.entry(class(key)).or_default() += count);
            sums
        };
        let (rows, columns) = (by(&|key| key.0), by(&|key| key.1));
        let all: f64 = rows.values().sum();
        let degrees = rows.len().saturating_sub(1) as f64 * columns.len().saturating_sub(1) as f64;
        if degrees < 1.0 || all <= 0.0 {
            return false;
        }
        let keys: BTreeSet<(usize, usize)> = rows.keys().flat_map(|row| columns.keys().map(|column| (*row, *column))).collect();
        let squared: f64 = keys
            .iter()
            .map(|key| {
                let expected = rows[&key.0] * columns[&key.1] / all;
                (self.counts.get(key).copied().unwrap_or(0.0) - expected).powi(2) / expected.max(f64::MIN_POSITIVE)
            })
            .sum();
        squared > degrees + FAR * (2.0 * degrees).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that classes which determine each other depend, that those by turns do not, and that four samples prove nothing.
    #[test]
    fn dependence_is_recognised() {
        let table = |samples: usize, column: &dyn Fn(usize) -> usize| {
            let mut table = Contingency::default();
            (0..samples).for_each(|index| table.add(index % 2, column(index), 1.0));
            table.is_dependent()
        };
        assert!(table(40, &|index| index % 2) && !table(4, &|index| index % 2));
        assert!(!table(40, &|index| index / 2 % 2) && !table(40, &|_| 0));
        // Three in four.
        assert!(table(64, &|index| if index % 8 < 6 { index % 2 } else { 1 - index % 2 }));
    }
}
