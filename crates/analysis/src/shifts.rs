//! Which workers of a process work at the same time. Those that do not (a team that sleeps while another pool of threads works) share places: each
//! pool is spread over the nodes by itself, as if its threads were created anew.

use crate::places::Member;
use crate::slots::Lifetime;

/// Workers work at the same time if they overlap by more than this part of the shorter of their times.
const OVERLAP: f64 = 0.1;
/// Of more workers, each has a place of its own: all pairs are compared.
const MOST: usize = 2_048;

/// When a worker works.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// In order, without overlap; empty if nothing is known.
    times: Vec<Lifetime>,
    in_team: bool,
}

impl Work {
    /// Adds a thread of the worker. What its threads are not seen to do (short ones have no samples of their own) counts from the first to the last.
    pub fn add(&mut self, member: &Member) {
        self.in_team |= member.in_team;
        if !member.active.is_empty() {
            self.times.extend_from_slice(&member.active);
        } else if let Some((first, rest)) = self.times.split_first() {
            let until = rest.last().unwrap_or(first).released;
            let (born, released) = (first.born.min(member.life.born), until.max(member.life.released));
            self.times = vec![Lifetime { born, released }];
        } else {
            self.times = vec![member.life];
        }
        self.times.sort_by_key(|time| time.born);
        self.times.dedup_by(|later, earlier| {
            let is_one = later.born <= earlier.released;
            if is_one {
                earlier.released = earlier.released.max(later.released);
            }
            is_one
        });
    }

    fn is_beside(&self, other: &Self) -> bool {
        if self.times.is_empty() || other.times.is_empty() || (self.in_team && other.in_team) {
            return true;
        }
        let length = |work: &Self| work.times.iter().map(|time| time.released.saturating_sub(time.born)).fold(0_u64, u64::saturating_add);
        self.common(other) as f64 > OVERLAP * length(self).min(length(other)) as f64
    }

    /// How long both work, ns.
    fn common(&self, other: &Self) -> u64 {
        let (mut one, mut two) = (self.times.iter().peekable(), other.times.iter().peekable());
        let mut common = 0;
        while let (Some(a), Some(b)) = (one.peek(), two.peek()) {
            common = u64::saturating_add(common, a.released.min(b.released).saturating_sub(a.born.max(b.born)));
            if a.released <= b.released {
                one.next()
            } else {
                two.next()
            };
        }
        common
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
        list.iter().map(|&(born, released, in_team)| Work { times: vec![Lifetime { born, released }], in_team }).collect()
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

    /// Check that a main thread that works before and after a pool takes no place of its own: whether a program ends by returning from main or by
    /// `_exit` changes nothing.
    #[test]
    fn what_works_before_and_after_is_not_beside() {
        let time = |born, released| Lifetime { born, released };
        let work = |times: &[Lifetime]| Work { times: times.to_vec(), in_team: false };
        let pool = [work(&[time(100, 200)]), work(&[time(101, 199)])];
        for main in [&[time(0, 100)][..], &[time(0, 99), time(200, 210)]] {
            let shifts = Shifts::of(&[&[work(main)][..], &pool].concat());
            assert_eq!((shifts.place, shifts.beside), (vec![0, 0, 1], vec![1, 2, 2]));
        }
        let beside = Shifts::of(&[&[work(&[time(0, 99), time(120, 180)])][..], &pool].concat());
        assert_eq!(beside.place, vec![0, 1, 2]);
    }

    /// Check that threads of an OpenMP team do not share a place, although one works when the other waits.
    #[test]
    fn a_team_has_its_places() {
        assert_eq!(places(&[(0, 50, true), (50, 100, true), (50, 100, false)]), (vec![0, 1, 0], vec![2, 2, 2]));
    }
}
