//! The placements of all objects, as one placement of most of them and a list of the others. Layouts that are compared differ in few objects, so a
//! layout costs as much memory and time as it differs from the rest.

use super::Placement;

/// Placements by the index of the object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placements {
    rest: Placement,
    /// Sorted by object. None is placed as the rest is.
    others: Vec<(usize, Placement)>,
}

impl Placements {
    /// All objects placed alike.
    pub const fn all(placement: Placement) -> Self {
        Self { rest: placement, others: Vec::new() }
    }

    /// The same, but for these objects. Of several placements of one object, the first counts.
    pub fn with(&self, changes: impl IntoIterator<Item = (usize, Placement)>) -> Self {
        let mut changes: Vec<(usize, Placement)> = changes.into_iter().collect();
        changes.sort_by_key(|(object, _)| *object);
        changes.dedup_by_key(|(object, _)| *object);
        let mut others = Vec::with_capacity(self.others.len() + changes.len());
        let mut kept = self.others.iter().copied().peekable();
        for (object, placement) in changes {
            while let Some(before) = kept.next_if(|(other, _)| *other < object) {
                others.push(before);
            }
            let _ = kept.next_if(|(other, _)| *other == object);
            if placement != self.rest {
                others.push((object, placement));
            }
        }
        others.extend(kept);
        Self { rest: self.rest, others }
    }

    /// The placement of an object.
    pub fn of(&self, object: usize) -> Placement {
        self.others.binary_search_by_key(&object, |(other, _)| *other).map_or(self.rest, |at| self.others[at].1)
    }

    /// The placements of the objects in this range, in their order.
    pub fn range(&self, objects: std::ops::Range<usize>) -> impl Iterator<Item = Placement> + '_ {
        let mut at = self.others.partition_point(|(other, _)| *other < objects.start);
        objects.map(move |object| match self.others.get(at) {
            Some((other, placement)) if *other == object => {
                at += 1;
                *placement
            }
            _ => self.rest,
        })
    }

    /// The objects that another layout places differently, in their order; `None` if that may be any.
    pub fn differing(&self, other: &Self) -> Option<Vec<usize>> {
        if self.rest != other.rest {
            return None;
        }
        let mut differing = Vec::new();
        let (mut own, mut theirs) = (self.others.iter().peekable(), other.others.iter().peekable());
        loop {
            match (own.peek(), theirs.peek()) {
                (None, None) => return Some(differing),
                (Some(a), Some(b)) if a.0 == b.0 => {
                    if a.1 != b.1 {
                        differing.push(a.0);
                    }
                    own.next();
                    theirs.next();
                }
                (Some(a), b) if b.is_none_or(|b| a.0 < b.0) => differing.extend(own.next().map(|one| one.0)),
                _ => differing.extend(theirs.next().map(|one| one.0)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check layouts against plain lists of placements: what each object has, and which differ.
    #[test]
    fn layouts_are_lists() {
        let mut state = 7_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % end) as usize
        };
        const OPTIONS: [Placement; 3] = [Placement::AsIs, Placement::Interleave, Placement::OneNode { node: 1 }];
        const OBJECTS: usize = 12;
        for _ in 0..500 {
            let mut made = || {
                let rest = OPTIONS[below(2)];
                let (mut layout, mut list) = (Placements::all(rest), vec![rest; OBJECTS]);
                for _ in 0..below(4) {
                    let changes: Vec<(usize, Placement)> = (0..below(6)).map(|_| (below(OBJECTS as u64), OPTIONS[below(3)])).collect();
                    changes.iter().rev().for_each(|(object, placement)| list[*object] = *placement);
                    layout = layout.with(changes);
                }
                (layout, list)
            };
            let ((one, of_one), (other, of_other)) = (made(), made());
            assert_eq!(one.range(0..OBJECTS).collect::<Vec<_>>(), of_one);
            assert_eq!(one.range(3..9).collect::<Vec<_>>(), of_one[3..9]);
            assert!((0..OBJECTS).all(|object| one.of(object) == of_one[object]));
            let differing = |from: &[Placement], to: &[Placement]| (0..OBJECTS).filter(|at| from[*at] != to[*at]).collect::<Vec<_>>();
            match one.differing(&other) {
                Some(found) => assert_eq!(found, differing(&of_one, &of_other)),
                None => assert_ne!(one.rest, other.rest),
            }
            assert!(one.rest != other.rest || (one == other) == (of_one == of_other));
        }
    }
}
