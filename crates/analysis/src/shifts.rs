//! Which workers of a process work at the same time. Those that do not (a team that sleeps while another pool of threads works) share places: each
//! pool is spread over the nodes by itself, as if its threads were created anew.

use crate::places::Member;
use crate::slots::Lifetime;

/// Workers work at the same time if they overlap by more than this part of the shorter of their times.
const OVERLAP: f64 = 0.1;
/// Of more workers, each has a place of its own: all pairs are compared.
const MOST: usize = 2_048;

/// When a worker works.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    time: Option<Lifetime>,
    in_team: bool,
}

impl Work {
    /// Adds a thread of the worker.
    pub fn add(&mut self, member: &Member) {
        let own = member.active.unwrap_or(member.life);
        self.time =
            Some(self.time.map_or(own, |time| Lifetime { born: time.born.min(own.born), released: time.released.max(own.released) }));
        self.in_team |= member.in_team;
    }

    fn is_beside(&self, other: &Self) -> bool {
        let (Some(one), Some(two)) = (self.time, other.time) else { return true };
        let length = |time: Lifetime| time.released.saturating_sub(time.born);
        let common = one.released.min(two.released).saturating_sub(one.born.max(two.born));
        (self.in_team && other.in_team) || common as f64 > OVERLAP * length(one).min(length(two)) as f64
    }
}

/// The places of workers, in their order.
#[derive(Debug, Default)]
pub struct Shifts {
    /// The place of each.
    pub place: Vec<usize>,
    /// The number of places of those that work at the same time as it.
    pub beside: Vec<usize>,
    /// The number of all places.
    pub places: usize,
}

impl Shifts {
    /// Each worker takes the first place that nobody has who works at the same time.
    pub fn of(works: &[Work]) -> Self {
        let count = works.len();
        if count > MOST {
            return Self { place: (0..count).collect(), beside: vec![count; count], places: count };
        }
        let mut place: Vec<usize> = Vec::with_capacity(count);
        for (at, work) in works.iter().enumerate() {
            let mut taken = vec![false; at + 1];
            for (other, own) in works[..at].iter().zip(&place) {
                taken[*own] |= work.is_beside(other);
            }
            place.push(taken.iter().position(|taken| !taken).unwrap_or(at));
        }
        let beside = |work: &Work| works.iter().zip(&place).filter(|(other, _)| work.is_beside(other)).map(|(_, place)| place + 1).max();
        let beside = works.iter().zip(&place).map(|(work, place)| beside(work).unwrap_or(0).max(place + 1)).collect();
        let places = place.iter().map(|place| place + 1).max().unwrap_or(0);
        Self { place, beside, places }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn works(list: &[(u64, u64, bool)]) -> Vec<Work> {
        list.iter().map(|&(born, released, in_team)| Work { time: Some(Lifetime { born, released }), in_team }).collect()
    }

    fn places(list: &[(u64, u64, bool)]) -> (Vec<usize>, Vec<usize>) {
        let shifts = Shifts::of(&works(list));
        (shifts.place, shifts.beside)
    }

    /// Check that workers at the same time have places in their order, whoever began first.
    #[test]
    fn those_at_the_same_time_have_their_own() {
        assert_eq!(places(&[(30, 90, false), (10, 95, false), (20, 99, false)]), (vec![0, 1, 2], vec![3; 3]));
        assert_eq!(Shifts::of(&[Work::default(), Work::default()]).places, 2, "nothing is known");
    }

    /// Check that a pool that works when the first one sleeps has the same places, also beside a main thread that works all the time.
    #[test]
    fn pools_in_turn_share_places() {
        let team = |from: u64, to: u64| (0..4).map(move |i| (from + i, to + i, false));
        let pools: Vec<(u64, u64, bool)> = team(0, 100).chain(team(100, 200)).collect();
        assert_eq!(places(&pools), (vec![0, 1, 2, 3, 0, 1, 2, 3], vec![4; 8]));
        let with_main: Vec<(u64, u64, bool)> = [(0, 200, false)].into_iter().chain(team(0, 100).skip(1)).chain(team(100, 200)).collect();
        assert_eq!(places(&with_main), (vec![0, 1, 2, 3, 1, 2, 3, 4], vec![5, 4, 4, 4, 5, 5, 5, 5]));
    }

    /// Check that threads of an OpenMP team do not share a place, although one works when the other waits.
    #[test]
    fn a_team_has_its_places() {
        assert_eq!(places(&[(0, 50, true), (50, 100, true), (50, 100, false)]), (vec![0, 1, 0], vec![2, 2, 2]));
    }
}
