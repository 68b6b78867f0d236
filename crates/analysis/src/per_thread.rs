//! A figure for each thread, where most threads have the same one: of 1,000 threads, few use an object.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::ops::Index;

/// A value for each thread, by index. Only values that differ from the usual one take memory. In JSON it is a list of all.
#[derive(Clone, Debug, Default)]
pub struct PerThread<T> {
    threads: usize,
    usual: T,
    /// (thread, value), by thread.
    others: Vec<(u32, T)>,
}

impl<T> PerThread<T> {
    /// `others`: (thread, value), by thread. All other threads have the usual value.
    #[must_use]
    pub fn new(threads: usize, usual: T, others: impl Iterator<Item = (usize, T)>) -> Self {
        let mut others: Vec<(u32, T)> = others.filter_map(|(thread, value)| Some((u32::try_from(thread).ok()?, value))).collect();
        others.shrink_to_fit();
        Self { threads, usual, others }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.threads
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads == 0
    }

    /// The value of each thread.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let mut others = self.others.iter().peekable();
        (0..self.threads).map(move |thread| others.next_if(|(of, _)| *of as usize == thread).map_or(&self.usual, |(_, value)| value))
    }

    /// Threads with their values, by thread, without those of the usual value if that does not count.
    pub fn counting<'a>(&'a self, counts: impl Fn(&T) -> bool + 'a) -> Box<dyn Iterator<Item = (usize, &'a T)> + 'a> {
        if counts(&self.usual) {
            return Box::new(self.iter().enumerate().filter(move |(_, value)| counts(value)));
        }
        Box::new(self.others.iter().map(|(thread, value)| (*thread as usize, value)).filter(move |(_, value)| counts(value)))
    }

    /// The last of the threads whose value is the largest.
    #[must_use]
    pub fn largest(&self, order: impl Fn(&T, &T) -> Ordering) -> Option<(usize, &T)> {
        // Of the threads with the usual value, the last one.
        let is_other = |thread: usize| self.others.binary_search_by_key(&thread, |(of, _)| *of as usize).is_ok();
        let usual = (0..self.threads).rev().find(|&thread| !is_other(thread));
        let others = self.others.iter().map(|(thread, value)| (*thread as usize, value));
        let mut candidates: Vec<(usize, &T)> = others.chain(usual.map(|thread| (thread, &self.usual))).collect();
        candidates.sort_by_key(|(thread, _)| *thread);
        candidates.into_iter().max_by(|a, b| order(a.1, b.1))
    }

    /// The same threads with other figures.
    #[must_use]
    pub fn map<U>(&self, figure: impl Fn(&T) -> U) -> PerThread<U> {
        let others = self.others.iter().map(|(thread, value)| (*thread, figure(value))).collect();
        PerThread { threads: self.threads, usual: figure(&self.usual), others }
    }
}

impl<T: Clone> PerThread<T> {
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        self.iter().cloned().collect()
    }
}

impl<T> Index<usize> for PerThread<T> {
    type Output = T;

    fn index(&self, thread: usize) -> &T {
        assert!(thread < self.threads, "thread {thread} of {}", self.threads);
        let at = self.others.binary_search_by_key(&thread, |(of, _)| *of as usize);
        at.map_or(&self.usual, |at| &self.others[at].1)
    }
}

impl<T: PartialEq> PartialEq for PerThread<T> {
    fn eq(&self, other: &Self) -> bool {
        self.threads == other.threads && self.iter().eq(other.iter())
    }
}

impl<T: Default + PartialEq> From<Vec<T>> for PerThread<T> {
    fn from(values: Vec<T>) -> Self {
        let usual = T::default();
        Self::new(values.len(), T::default(), values.into_iter().enumerate().filter(|(_, value)| *value != usual))
    }
}

impl<T: Default + PartialEq> FromIterator<T> for PerThread<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        values.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T: Serialize> Serialize for PerThread<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // With its length, as a list has it.
        use serde::ser::SerializeSeq;
        let mut list = serializer.serialize_seq(Some(self.threads))?;
        self.iter().try_for_each(|value| list.serialize_element(value))?;
        list.end()
    }
}

impl<'de, T: Deserialize<'de> + Default + PartialEq> Deserialize<'de> for PerThread<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that threads without a figure of their own have the usual one, everywhere where a list would have it.
    #[test]
    fn lists_all_threads() {
        let sparse = PerThread::new(5, 9, [(1, 4), (4, 9)].into_iter());
        assert_eq!((sparse.len(), sparse.to_vec(), sparse[1], sparse[0], sparse[4]), (5, vec![9, 4, 9, 9, 9], 4, 9, 9));
        assert_eq!(serde_json::to_string(&sparse).unwrap(), "[9,4,9,9,9]");
        assert_eq!(serde_json::from_str::<PerThread<i32>>("[9,4,9,9,9]").unwrap(), sparse);
        assert_ne!(PerThread::from(vec![9, 4, 9, 9, 8]), sparse);
        assert_eq!(sparse.map(|value| value * 2).to_vec(), [18, 8, 18, 18, 18]);
        let none = PerThread::<i32>::new(0, 1, std::iter::empty());
        assert_eq!((none.is_empty(), serde_json::to_string_pretty(&none).unwrap()), (true, "[]".to_owned()));
    }

    /// Check that what is found among the few values is what is found in the list of all.
    #[test]
    fn finds_what_the_list_has() {
        let lists = [vec![9, 4, 9, 9, 9], vec![1, 4, 1, 4, 1], vec![5, 0], vec![7, 7, 7], vec![], vec![4, 9, 4, 9], vec![0, 9, 0, 4]];
        for (list, usual) in lists.iter().flat_map(|list| [0, 1, 4, 7, 9].map(|usual| (list, usual))) {
            let others = list.iter().copied().enumerate().filter(|(_, value)| *value != usual);
            let sparse = PerThread::new(list.len(), usual, others);
            assert_eq!(sparse.largest(i32::cmp), list.iter().enumerate().max_by_key(|(_, value)| **value), "{list:?} {usual}");
            for least in [0, 1, 5, 10] {
                let found: Vec<(usize, &i32)> = sparse.counting(|value| *value >= least).collect();
                assert_eq!(
                    found,
                    list.iter().enumerate().filter(|(_, value)| **value >= least).collect::<Vec<_>>(),
                    "{list:?} {usual} {least}"
                );
            }
        }
    }

    /// Check that a thread which does not exist has no figure.
    #[test]
    #[should_panic(expected = "thread 2 of 2")]
    fn other_threads_have_none() {
        let _ = PerThread::from(vec![1, 2])[2];
    }
}
