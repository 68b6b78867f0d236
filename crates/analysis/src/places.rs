//! The node of each thread: which threads take a place on the target, and where.
//!
//! - The places of a process are those of its workers that did something at the same time. A team that sleeps while another pool of threads works
//!   shares its places with that: each by itself is spread over the nodes. (Threads of one OpenMP team never share a place.)
//! - Of those, Idle threads take none: they sit with the thread that created them,
//!   or with another one of their process.
//! - A process by itself is spread over the nodes by the pinning. If several processes run at the same time, have about as many threads each,
//!   and each fits a node, the threads of a process stay together, as ranks of MPI are launched. Processes of unequal size do not: a program
//!   beside its driver script would have all of its threads on one node. A process that only starts others (mpirun), or does nothing after its
//!   start, does not count for this.
//! - If processes that share memory do not stay together, their threads are spread as those of one process: else each of them would be on the
//!   first node.
//! - Processes with successive lifetimes (a script's commands) share a place, as threads do.
//! - The ranks of a job sit where a launcher would put them ([`RankSeats`]), and those of each host on its own nodes.
//! - With a list of nodes, and if all threads are to take places, each process is placed by itself.

use crate::Target;
use crate::rank_seats::RankSeats;
use crate::shifts::{Shifts, Work};
use crate::slots::{Lifetime, lowest_free_slots};
use firsttouch_model::Pin;
use firsttouch_model::rows::Id;
use std::collections::{BTreeMap, BTreeSet};

/// The smallest process has more than this fraction of the threads of the largest if processes are kept together.
const EVEN: f64 = 0.5;

/// A thread, for the choice of its node.
#[derive(Clone, Debug)]
pub struct Member {
    pub process: Id,
    /// The first of the processes that share memory with its process.
    pub team: Id,
    /// Its process only starts others, or does nothing after its start.
    pub is_driver: bool,
    /// The number of its worker in the process.
    pub worker: usize,
    pub idle: bool,
    /// The index of the thread that created it.
    pub parent: Option<usize>,
    pub life: Lifetime,
    /// When it was seen to work, in order; empty if that is not known.
    pub active: Vec<Lifetime>,
    /// It belongs to an OpenMP team.
    pub in_team: bool,
}

/// The workers of a process that take places, in order.
struct Team {
    workers: Vec<usize>,
    shifts: Shifts,
    life: Lifetime,
    is_driver: bool,
    /// Workers of the processes that share memory with it: those of earlier processes, and all.
    before: usize,
    beside: usize,
}

/// The node of each thread, and the number of processes whose threads stay together on one node (0 if each process is spread over the
/// nodes). `seen` gives the node on which a thread ran, where that is known.
pub fn nodes(members: &[Member], target: &Target, ranks: &RankSeats, seen: impl Fn(usize) -> Option<u32>) -> (Vec<u32>, usize) {
    let (mut all, mut together) = (vec![0; members.len()], 0);
    for host in 0..target.hosts() {
        let indices: Vec<usize> = (0..members.len()).filter(|&index| ranks.host(members[index].process) == host).collect();
        let index_of: BTreeMap<usize, usize> = indices.iter().enumerate().map(|(own, &index)| (index, own)).collect();
        let own = |&index: &usize| Member {
            parent: members[index].parent.and_then(|parent| index_of.get(&parent).copied()),
            ..members[index].clone()
        };
        let (of_host, first) = target.of_host(host);
        let seen_here = |own: usize| seen(indices[own]).and_then(|node| node.checked_sub(first));
        let (nodes, kept) = nodes_of_host(&indices.iter().map(own).collect::<Vec<Member>>(), &of_host, ranks, seen_here);
        indices.iter().zip(nodes).for_each(|(&index, node)| all[index] = first + node);
        together += kept;
    }
    (all, together)
}

fn nodes_of_host(members: &[Member], target: &Target, ranks: &RankSeats, seen: impl Fn(usize) -> Option<u32>) -> (Vec<u32>, usize) {
    let teams = teams(members);
    let (seats, of_ranks) = if target.place_all_threads { Default::default() } else { seats_of_ranks(&teams, target, ranks) };
    let together = if target.place_all_threads || of_ranks > 0 { seats } else { together(&teams, target) };
    let seat = |member: &Member| {
        let team = teams.get(&member.process)?;
        let rank = team.workers.binary_search(&member.worker).ok()?;
        let place = team.shifts.place[rank];
        let beside = if team.beside == team.shifts.places { team.shifts.beside[rank] } else { team.beside };
        let of_rank = || {
            let nodes = if of_ranks > 0 { ranks.nodes(member.process) } else { &[] };
            nodes.get(place * nodes.len() / team.shifts.places.max(1)).copied()
        };
        let kept = together.get(&member.process).copied().or_else(of_rank);
        Some(kept.unwrap_or_else(|| target.seat(team.before + place, beside)))
    };
    let own: Vec<Option<u32>> = members.iter().enumerate().map(|(index, member)| seen(index).or_else(|| seat(member))).collect();
    let mut first_of: BTreeMap<Id, u32> = BTreeMap::new();
    for (member, node) in members.iter().zip(&own) {
        if let Some(node) = node {
            first_of.entry(member.process).or_insert(*node);
        }
    }
    let first = own.iter().flatten().next().copied().unwrap_or_else(|| target.seat(0, 1));
    let company = Company::new(members, &own, &first_of);
    let node = |index: usize| own[index].or_else(|| company.node(index)).unwrap_or(first);
    ((0..members.len()).map(node).collect(), together.len())
}

/// The teams of all processes in which a thread takes a place.
fn teams(members: &[Member]) -> BTreeMap<Id, Team> {
    let mut teams: BTreeMap<Id, Team> = BTreeMap::new();
    let mut works: BTreeMap<Id, BTreeMap<usize, Work>> = BTreeMap::new();
    let mut sharing: BTreeMap<Id, BTreeSet<Id>> = BTreeMap::new();
    for member in members.iter().filter(|member| !member.idle) {
        let Member { process, team, worker, life, is_driver, .. } = member;
        works.entry(*process).or_default().entry(*worker).or_default().add(member);
        if !*is_driver {
            sharing.entry(*team).or_default().insert(*process);
        }
        let new = || Team { workers: Vec::new(), shifts: Shifts::default(), life: *life, is_driver: *is_driver, before: 0, beside: 0 };
        let team = teams.entry(*process).or_insert_with(new);
        team.life.born = team.life.born.min(life.born);
        team.life.released = team.life.released.max(life.released);
    }
    for (process, team) in &mut teams {
        let works = works.remove(process).unwrap_or_default();
        team.workers = works.keys().copied().collect();
        team.shifts = Shifts::of(&works.into_values().collect::<Vec<Work>>());
        team.beside = team.shifts.places;
    }
    for processes in sharing.values() {
        let count = |process: &Id| teams.get(process).map_or(0, |team| team.shifts.places);
        let (mut before, beside) = (0, processes.iter().map(count).sum());
        for process in processes {
            if let Some(team) = teams.get_mut(process) {
                (team.before, team.beside) = (before, beside);
                before += team.shifts.places;
            }
        }
    }
    teams
}

/// The node of each process of a rank whose threads stay together, and the number of processes of ranks.
fn seats_of_ranks(teams: &BTreeMap<Id, Team>, target: &Target, ranks: &RankSeats) -> (BTreeMap<Id, u32>, usize) {
    let of_ranks = || teams.iter().filter(|(process, _)| !ranks.nodes(**process).is_empty());
    // If there are more threads than cores, a rank with no more threads than each node has anyway counts as fitting.
    let all: usize = of_ranks().map(|(_, team)| team.shifts.places).sum();
    let room = target.cores_per_node.max(all.div_ceil(target.places()));
    // Threads that were bound to several nodes stay on these.
    let fits = |team: &Team, nodes: &[u32]| nodes.len() < 2 || (team.shifts.places <= room && !ranks.is_bound_across);
    let seat = |(process, team): (&Id, &Team)| {
        let nodes = ranks.nodes(*process);
        Some((*process, *nodes.first().filter(|_| fits(team, nodes))?))
    };
    (of_ranks().filter_map(seat).collect(), of_ranks().count())
}

/// The node of each process whose threads stay together; empty if the processes are spread.
fn together(teams: &BTreeMap<Id, Team>, target: &Target) -> BTreeMap<Id, u32> {
    let teams: BTreeMap<Id, &Team> = teams.iter().filter(|(_, team)| !team.is_driver).map(|(process, team)| (*process, team)).collect();
    let lifetimes: Vec<Lifetime> = teams.values().map(|team| team.life).collect();
    let (slots, count) = lowest_free_slots(&lifetimes);
    if count < 2 || matches!(target.pin, Pin::Nodes(_)) {
        return BTreeMap::new();
    }
    // Successive processes share a slot, which has room for the largest of them.
    let mut sizes = vec![0; count];
    for (team, slot) in teams.values().zip(&slots) {
        sizes[*slot] = team.shifts.places.max(sizes[*slot]);
    }
    let (smallest, largest) = (sizes.iter().min().copied().unwrap_or(0), sizes.iter().max().copied().unwrap_or(0));
    let all: usize = sizes.iter().sum();
    // If there are more threads than cores, a process with no more threads than each node has anyway counts as fitting.
    let room = target.cores_per_node.max(all.div_ceil(target.places()));
    if largest > room || smallest as f64 <= EVEN * largest as f64 {
        return BTreeMap::new();
    }
    let nodes: Vec<u32> = match target.pin {
        Pin::Compact => filled(&sizes, target),
        _ => (0..count).map(|slot| target.seat(slot, count)).collect(),
    };
    teams.keys().zip(slots).map(|(process, slot)| (*process, nodes[slot])).collect()
}

/// Processes one after the other on the same node as long as it has room.
fn filled(sizes: &[usize], target: &Target) -> Vec<u32> {
    let cores = target.cores_per_node.max(1);
    let mut next = 0;
    let node = |size: &usize| {
        if next % cores + size > cores {
            next = (next / cores + 1) * cores;
        }
        let first = next;
        next += size;
        target.seat(first, next)
    };
    sizes.iter().map(node).collect()
}

/// Where idle threads sit: with the nearest creator that has a node in the same process, or with the first thread that has one there, or with
/// the nearest creator in another process.
struct Company<'a> {
    members: &'a [Member],
    /// The node of the first thread of each process that has one.
    first_of: &'a BTreeMap<Id, u32>,
    /// The node of the nearest creator that has one: of those that lead there within the process, and of all.
    within: Vec<Option<u32>>,
    anywhere: Vec<Option<u32>>,
}

impl<'a> Company<'a> {
    /// `own`: the nodes of the threads that have one.
    fn new(members: &'a [Member], own: &[Option<u32>], first_of: &'a BTreeMap<Id, u32>) -> Self {
        let parent = |index: usize| members[index].parent.filter(|parent| *parent < members.len());
        let beside = |index: usize| parent(index).filter(|parent| members[*parent].process == members[index].process);
        Self { members, first_of, within: nearest(own, beside), anywhere: nearest(own, parent) }
    }

    fn node(&self, index: usize) -> Option<u32> {
        self.within[index].or_else(|| self.first_of.get(&self.members[index].process).copied()).or(self.anywhere[index])
    }
}

/// For each thread, the node of the nearest creator that has one. Each thread is passed once: a chain of threads, each of which makes the next,
/// may be long. Damaged profiles may have cycles.
fn nearest(own: &[Option<u32>], parent: impl Fn(usize) -> Option<usize>) -> Vec<Option<u32>> {
    #[derive(Clone, Copy)]
    enum State {
        New,
        OnTheWay,
        Known(Option<u32>),
    }
    let mut states = vec![State::New; own.len()];
    let mut way = Vec::new();
    for start in 0..own.len() {
        let mut at = start;
        let node = loop {
            match states[at] {
                State::Known(node) => break node,
                State::OnTheWay => break None,
                State::New => {}
            }
            states[at] = State::OnTheWay;
            way.push(at);
            match parent(at) {
                Some(creator) if own[creator].is_none() => at = creator,
                creator => break creator.and_then(|creator| own[creator]),
            }
        };
        way.drain(..).for_each(|index| states[index] = State::Known(node));
    }
    states.into_iter().map(|state| if let State::Known(node) = state { node } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::NodeId;

    fn target(nodes: usize, cores_per_node: usize, pin: Pin) -> Target {
        Target {
            name: format!("virtual:{nodes}"),
            nodes,
            virtual_machine: true,
            pin,
            place_all_threads: false,
            cores_per_node,
            cpu_nodes: vec![],
            slow_nodes: vec![],
            private_cache_bytes: 0,
            ranks: Default::default(),
        }
    }

    const ALWAYS: Lifetime = Lifetime { born: 0, released: u64::MAX };

    /// A process's threads, of which some are idle, created by its first one.
    fn process(process: Id, threads: usize, idle: &[usize], first: usize) -> Vec<Member> {
        let member = |worker: usize| Member {
            process,
            team: process,
            is_driver: false,
            worker,
            idle: idle.contains(&worker),
            parent: (worker > 0).then_some(first),
            life: ALWAYS,
            active: Vec::new(),
            in_team: false,
        };
        (0..threads).map(member).collect()
    }

    fn of(members: &[Member], target: &Target) -> Vec<u32> {
        nodes(members, target, &RankSeats::default(), |_| None).0
    }

    /// Check that idle threads do not shift the others, wherever they were created, and that they sit with their creator.
    #[test]
    fn idle_threads_take_no_place() {
        let two = target(2, 4, Pin::Spread);
        assert_eq!(of(&process(1, 4, &[], 0), &two), [0, 0, 1, 1]);
        assert_eq!(of(&process(1, 7, &[1, 2, 5], 0), &two), [0, 0, 0, 0, 1, 0, 1]);
        assert_eq!(of(&process(1, 5, &[0], 0), &two), [0, 0, 0, 1, 1], "a main thread that waits");
        let mut chain = process(1, 5, &[3], 0);
        chain[3].parent = Some(4);
        assert_eq!(of(&chain, &two), [0, 0, 1, 1, 1], "the thread that created it is on node 1");
        assert_eq!(of(&process(1, 7, &[1, 2, 5], 0), &target(2, 2, Pin::Compact)), [0, 0, 0, 0, 1, 0, 1]);
        let list = target(2, 4, Pin::Nodes(vec![NodeId(1), NodeId(0)]));
        assert_eq!(of(&process(1, 4, &[1], 0), &list), [1, 1, 0, 1]);
    }

    /// Check that processes of equal size stay together, one after the other, if each fits a node.
    #[test]
    fn processes_stay_together() {
        let ranks = |count: Id, threads: usize| -> Vec<Member> {
            (0..count).flat_map(|id| process(id + 1, threads, &[], id as usize * threads)).collect()
        };
        let two = target(2, 2, Pin::Spread);
        assert_eq!(nodes(&ranks(2, 2), &two, &RankSeats::default(), |_| None), (vec![0, 0, 1, 1], 2));
        assert_eq!(of(&ranks(4, 1), &two), [0, 0, 1, 1]);
        assert_eq!(of(&ranks(2, 2), &target(4, 2, Pin::Spread)), [0, 0, 2, 2]);
        assert_eq!(of(&ranks(2, 4), &two), [0, 0, 0, 0, 1, 1, 1, 1], "twice as many threads as cores, however they are placed");
        assert_eq!(
            nodes(&ranks(2, 4), &target(4, 2, Pin::Spread), &RankSeats::default(), |_| None),
            (vec![0, 1, 2, 3, 0, 1, 2, 3], 0),
            "too large for a node"
        );
        assert_eq!(of(&ranks(3, 2), &target(2, 5, Pin::Compact)), [0, 0, 0, 0, 1, 1]);
        let list = target(2, 2, Pin::Nodes(vec![NodeId(0), NodeId(1)]));
        assert_eq!(nodes(&ranks(2, 2), &list, &RankSeats::default(), |_| None), (vec![0, 1, 0, 1], 0));
    }

    /// Check that a small process beside a large one does not keep the large one on one node, and that an idle process does not count.
    #[test]
    fn unequal_processes_are_spread() {
        let two = target(2, 8, Pin::Spread);
        let beside = |idle: &[usize]| [process(1, 1, idle, 0), process(2, 4, &[], 1)].concat();
        assert_eq!(of(&beside(&[]), &two), [0, 0, 0, 1, 1]);
        let mut started = beside(&[0]);
        started[1].parent = Some(0);
        assert_eq!(nodes(&started, &two, &RankSeats::default(), |_| None), (vec![0, 0, 0, 1, 1], 0));
    }

    /// Check that a process that only starts others does not keep them from staying together, and that processes that share memory and do not
    /// stay together are spread as one.
    #[test]
    fn ranks_beside_their_launcher() {
        let two = target(2, 8, Pin::Spread);
        let mut all =
            [process(1, 2, &[], 0), process(2, 1, &[], 2), process(3, 1, &[], 3), process(4, 1, &[], 4), process(5, 1, &[], 5)].concat();
        all[..2].iter_mut().for_each(|member| member.is_driver = true);
        assert_eq!(nodes(&all, &two, &RankSeats::default(), |_| None), (vec![0, 1, 0, 0, 1, 1], 4));
        all[..2].iter_mut().for_each(|member| member.is_driver = false);
        all[2..].iter_mut().for_each(|member| member.team = 2);
        assert_eq!(nodes(&all, &two, &RankSeats::default(), |_| None), (vec![0, 1, 0, 0, 1, 1], 0));
        all[2..].iter_mut().for_each(|member| member.team = member.process);
        assert_eq!(of(&all, &two), [0, 1, 0, 0, 0, 0]);
    }

    /// Check that processes that follow each other have the whole machine, each.
    #[test]
    fn successive_processes_are_spread() {
        let mut both = [process(1, 2, &[], 0), process(2, 2, &[], 2)].concat();
        let (first, second) = both.split_at_mut(2);
        first.iter_mut().for_each(|member| member.life.released = 10);
        second.iter_mut().for_each(|member| member.life.born = 10);
        assert_eq!(of(&both, &target(2, 4, Pin::Spread)), [0, 1, 0, 1]);
    }

    /// Check that the old way remains: every thread takes a place, and each process is spread.
    #[test]
    fn all_threads_can_be_placed() {
        let mut all = target(2, 4, Pin::Spread);
        all.place_all_threads = true;
        assert_eq!(of(&process(1, 7, &[], 0), &all), [0, 0, 0, 0, 1, 1, 1]);
        let ranks = [process(1, 2, &[], 0), process(2, 2, &[], 2)].concat();
        assert_eq!(nodes(&ranks, &all, &RankSeats::default(), |_| None), (vec![0, 1, 0, 1], 0));
    }

    /// Check threads that were seen, and that damaged links and programs of which every thread is idle do no harm.
    #[test]
    fn unusual_members() {
        let two = target(2, 4, Pin::Spread);
        let members = process(1, 3, &[1, 2], 0);
        assert_eq!(nodes(&members, &two, &RankSeats::default(), |index| [None, Some(1), None][index]).0, [0, 1, 0]);
        let mut cycle = process(1, 2, &[0, 1], 0);
        cycle[0].parent = Some(1);
        assert_eq!((of(&cycle, &two), of(&[], &two)), (vec![0, 0], vec![]));
    }

    /// Check that each thread of a long chain sits with the nearest creator that has a node, and that cycles end.
    #[test]
    fn nearest_creators_of_long_chains() {
        let count = 300_000;
        let mut own: Vec<Option<u32>> = vec![None; count];
        (own[0], own[1000]) = (Some(3), Some(5));
        let asked = std::cell::Cell::new(0);
        let nodes = nearest(&own, |index| {
            asked.set(asked.get() + 1);
            index.checked_sub(1)
        });
        assert_eq!((nodes[0], nodes[1], nodes[1000], nodes[1001], nodes[count - 1]), (None, Some(3), Some(3), Some(5), Some(5)));
        assert!(asked.get() <= count, "each thread is asked once: {}", asked.get());
        // The last first: the way is long before anything is known.
        let backwards = nearest(&own, |index| Some(index + 1).filter(|next| *next < count));
        assert_eq!((backwards[0], backwards[999], backwards[1000], backwards[count - 1]), (Some(5), Some(5), None, None));
        assert_eq!(nearest(&[None, None, None, Some(1)], |index| [Some(1), Some(2), Some(0), Some(0)][index]), [None; 4]);
        assert_eq!(nearest(&[None, None, Some(7)], |index| [Some(1), Some(2), Some(0)][index]), [Some(7), Some(7), Some(7)]);
    }
}
