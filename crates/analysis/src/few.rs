//! A list that has one item in most cases, and then needs no memory besides its own. There is one for each sample, so this is much of an analysis:
//! smallvec would add its length to each.

use std::ops::Deref;
use std::slice::{Iter, from_ref};

#[derive(Clone, Debug)]
pub enum Few<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(item) => from_ref(item),
            Self::Many(items) => items,
        }
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(mut items: Vec<T>) -> Self {
        match items.pop() {
            Some(item) if items.is_empty() => Self::One(item),
            last => {
                items.extend(last);
                items.shrink_to_fit();
                Self::Many(items)
            }
        }
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::ByThread;

    /// Check that a list of one sample's accesses is no larger than the accesses.
    #[test]
    fn one_item_needs_nothing_else() {
        assert_eq!(size_of::<Few<ByThread>>(), size_of::<ByThread>());
    }

    /// Check that a list holds what it is made of, in order, whatever its length.
    #[test]
    fn items_are_kept() {
        for length in 0..4 {
            let items: Vec<u64> = (0..length).collect();
            let few = Few::from(items.clone());
            assert_eq!((&few[..], few.into_iter().count()), (&items[..], items.len()));
            assert_eq!(matches!(few, Few::One(_)), length == 1);
        }
    }
}
