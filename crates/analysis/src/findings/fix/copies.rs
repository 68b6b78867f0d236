//! A copy a node, for memory that all threads use. Copies of memory that is written would differ.

use super::super::Case;
use super::{INTERLEAVE, SPREAD};
use crate::evidence::Hit;

/// From this part of the samples on, writes are more than an exception.
const MANY: f64 = 0.1;

/// The samples that write, of those that tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Writes {
    writing: usize,
    all: usize,
}

impl Writes {
    fn of(hits: &[Hit]) -> Self {
        let known = || hits.iter().filter_map(|hit| hit.writes);
        Self { writing: known().filter(|writes| *writes).count(), all: known().count() }
    }

    fn are_many(self) -> bool {
        self.writing > 0 && self.writing as f64 >= MANY * self.all as f64
    }
}

/// Whether threads write the object so much that no copies can replace it.
pub(super) fn is_written(case: &Case<'_>) -> bool {
    Writes::of(case.hits).are_many()
}

pub(super) fn one_a_node(case: &Case<'_>) -> String {
    words(&case.view.name, Writes::of(case.hits), case.subject.is_spread)
}

fn words(name: &str, writes: Writes, is_spread: bool) -> String {
    let Writes { writing, all } = writes;
    match writing {
        _ if writes.are_many() => {
            let instead = if is_spread { format!("; {SPREAD}") } else { format!(": {INTERLEAVE}") };
            format!("{writing} of {all} samples write {name}, so copies of it would differ from each other{instead}")
        }
        0 => format!("keep one copy of {name} a node, made by a thread of that node"),
        _ => format!(
            "keep one copy of {name} a node, made by a thread of that node, if what is written to it ({writing} of {all} samples write) need not \
             reach the other copies"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that copies are advised for what is read, with their condition for what is written now and then, and not for what is written.
    #[test]
    fn copies_of_what_is_written() {
        let of = |writing, all| words("T", Writes { writing, all }, false);
        assert_eq!(of(0, 50), "keep one copy of T a node, made by a thread of that node");
        assert_eq!(of(0, 0), of(0, 50));
        assert!(of(2, 50).contains("if what is written to it (2 of 50 samples write) need not reach the other copies"));
        assert!(of(20, 50).starts_with("20 of 50 samples write T, so copies of it would differ") && !of(20, 50).contains("keep one copy"));
    }
}
