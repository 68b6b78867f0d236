//! The numbers of rows that were taken. Asked for each row of another table, so a bit a number is faster than a hash table.

use firsttouch_model::rows::Id;
use hashbrown::HashSet;

/// Numbers with wider gaps, on average, are kept in a hash table: the bits would take more memory.
const WIDEST_GAP: u64 = 256;

pub enum Kept {
    Bits { first: Id, words: Vec<u64> },
    Set(HashSet<Id>),
}

impl Kept {
    pub fn new(ids: impl ExactSizeIterator<Item = Id> + Clone) -> Self {
        let (Some(first), Some(last)) = (ids.clone().min(), ids.clone().max()) else { return Self::Set(HashSet::new()) };
        let span = last.abs_diff(first);
        if span / WIDEST_GAP > ids.len() as u64 {
            return Self::Set(ids.collect());
        }
        let mut words = vec![0; usize::try_from(span / 64).unwrap_or(0) + 1];
        for id in ids {
            let (word, bit) = place(first, id);
            words[word] |= bit;
        }
        Self::Bits { first, words }
    }

    pub fn contains(&self, id: Id) -> bool {
        match self {
            Self::Bits { first, .. } if id < *first => false,
            Self::Bits { first, words } => {
                let (word, bit) = place(*first, id);
                words.get(word).is_some_and(|bits| bits & bit != 0)
            }
            Self::Set(ids) => ids.contains(&id),
        }
    }
}

fn place(first: Id, id: Id) -> (usize, u64) {
    let from_first = id.abs_diff(first);
    (usize::try_from(from_first / 64).unwrap_or(usize::MAX), 1 << (from_first % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that just the numbers given are kept, whether they are close together, far apart, or at the ends of what a number can be.
    #[test]
    fn numbers_are_kept() {
        let some: Vec<Id> = (0..1000).map(|number| 7 + 3 * number).collect();
        let cases: [(&[Id], bool); 6] = [
            (&some, true),
            (&[5], true),
            (&[-3, 60, 61], true),
            (&[], false),
            (&[Id::MIN, Id::MAX], false),
            (&[Id::MAX - 1, Id::MAX], true),
        ];
        for (ids, are_bits) in cases {
            let kept = Kept::new(ids.iter().copied());
            assert_eq!(matches!(kept, Kept::Bits { .. }), are_bits, "{ids:?}");
            let asked = (-70..3100).chain([Id::MIN, Id::MIN + 1, Id::MAX - 1, Id::MAX]);
            asked.for_each(|id| assert_eq!(kept.contains(id), ids.contains(&id), "{id}"));
        }
    }
}
