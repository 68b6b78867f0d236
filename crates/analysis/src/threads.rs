//! Threads: their index, their worker, and their node on the target.

use crate::Target;
use crate::activity::{WorkerId, active_times, idle_workers, without_work};
use crate::places::{self, Member};
use crate::rank_seats::RankSeats;
use crate::siblings::{self, Sightings};
use crate::slots::{self, Lifetime};
use crate::turns::Turns;
use firsttouch_model::Pin;
use firsttouch_model::rows::{Id, Machine, Profile, Seen, Thread as ThreadRow};
use hashbrown::{HashMap, HashSet};
use std::cell::LazyCell;
use std::collections::BTreeMap;

/// A thread's exit may be recorded shortly after the thread that joined it started the next one. So its slot counts as free this long
/// before its recorded death (ns), but for at most a quarter of its lifetime.
const LATE_EXIT_NS: u64 = 200_000;

/// One thread.
#[derive(Clone, Debug)]
pub struct Thread {
    pub id: Id,
    pub process: Id,
    pub name: Option<String>,
    pub omp_number: Option<u32>,
    /// The first of the processes that have the place of its process by turns; its own process if it is alone there.
    pub turn: Id,
    /// The first process of those with which its process shares memory or its place; its own process if it shares none.
    pub team: Id,
    /// The lowest number that no other thread of its process had at its birth.
    pub slot: usize,
    /// The number of its worker, in the processes that share memory with its process: its slot if there are no others. Partitions are
    /// recognised by worker, so that a team whose threads are created anew for every loop counts as one team.
    pub worker: usize,
    pub node: u32,
    /// Whether its worker did nothing, and so takes no place.
    pub idle: bool,
    /// The number of faults that the kernel took on the thread's behalf (all minor faults less those in user mode), if known.
    pub kernel_faults: Option<u64>,
}

/// All threads by index (order of id, which is order of birth).
#[derive(Clone, Debug, Default)]
pub struct Threads {
    pub list: Vec<Thread>,
    by_id: HashMap<Id, usize>,
    /// The team of each process, and the threads of each team (indices).
    team_of: HashMap<Id, Id>,
    of_team: HashMap<Id, Vec<usize>>,
    /// The first thread of each worker, by team and worker.
    first_of: HashMap<(Id, usize), usize>,
    cpu_nodes: HashMap<u32, u32>,
    /// Whether the target is the machine of the profile.
    pub real: bool,
    /// The number of processes whose threads stay together on one node; 0 if the threads of each process are spread.
    pub together: usize,
    /// Where ranks are put.
    pub seats: RankSeats,
    /// The threads that make others anew all the time, at the same time (the outer threads of nested parallel regions).
    pub makers: HashSet<Id>,
}

impl Threads {
    /// Numbers the threads and places each on a node of the target.
    ///
    /// On a virtual machine, the threads that do something have places ([`places`]). On the recorded machine, a thread's node is the one
    /// where it was seen most often; threads that were never seen have places.
    ///
    /// `teams`: of each process that shares memory with others, the first of these. `turns`: which processes have a place by turns.
    #[must_use]
    pub fn new(profile: &Profile, target: &Target, teams: &HashMap<Id, Id>, turns: &Turns) -> Self {
        let mut order: Vec<usize> = (0..profile.threads.len()).collect();
        order.sort_by_key(|&i| (profile.threads[i].id, i));
        order.dedup_by_key(|i| profile.threads[*i].id);
        let rows: Vec<&ThreadRow> = order.into_iter().map(|i| &profile.threads[i]).collect();
        let (worker_of, makers) = workers(profile, &rows, turns);
        let drivers = if target.place_all_threads { HashSet::new() } else { without_work(profile, turns) };
        // A list names the node of each thread in the order of their creation, as the one of `firsttouch run` does.
        let is_listed = || matches!(target.pin, Pin::Nodes(_)) && is_one_process(&rows, turns, &drivers);
        let is_by_order = target.place_all_threads || is_listed();
        let idle = if is_by_order { HashSet::new() } else { idle_workers(profile, &worker_of) };
        let by_id: HashMap<Id, usize> = rows.iter().enumerate().map(|(index, row)| (row.id, index)).collect();
        let teams = turns.join(teams);
        let team = |process: Id| teams.get(&process).copied().unwrap_or(process);
        let active = if is_by_order { HashMap::new() } else { active_times(profile) };
        let members: Vec<Member> = rows
            .iter()
            .map(|row| {
                let worker = worker_of.get(&row.id).copied().unwrap_or((turns.first(row.process), 0));
                let parent = row.parent.and_then(|parent| by_id.get(&parent).copied());
                Member {
                    process: worker.0,
                    team: team(row.process),
                    is_driver: drivers.contains(&worker.0),
                    worker: worker.1,
                    idle: idle.contains(&worker),
                    parent,
                    life: lifetime(row),
                    active: active.get(&row.id).cloned().unwrap_or_default(),
                    in_team: row.omp_number.is_some(),
                }
            })
            .collect();
        let cpu_nodes = cpu_nodes(&profile.machine);
        let seen = if target.virtual_machine { HashMap::new() } else { seen_nodes(profile, &cpu_nodes) };
        let seats = RankSeats::new(profile, &target.of_host(0).0);
        let (nodes, together) = places::nodes(&members, target, &seats, |index| seen.get(&rows[index].id).copied());
        let last = u32::try_from(target.nodes.max(1) - 1).unwrap_or(u32::MAX);
        let first_worker = first_workers(&members, team);
        let list: Vec<Thread> = rows
            .iter()
            .zip(&members)
            .zip(nodes)
            .map(|((row, member), node)| Thread {
                id: row.id,
                process: row.process,
                name: row.name.clone(),
                omp_number: row.omp_number,
                turn: member.process,
                team: team(row.process),
                slot: member.worker,
                worker: first_worker.get(&member.process).map_or(0, |first| first + member.worker),
                node: node.min(last),
                idle: member.idle,
                kernel_faults: row.all_faults.zip(row.user_faults).map(|(all, user)| all.saturating_sub(user)),
            })
            .collect();
        let team_of = list.iter().map(|thread| (thread.process, thread.team)).collect();
        let mut of_team: HashMap<Id, Vec<usize>> = HashMap::new();
        let mut first_of = HashMap::new();
        for (index, thread) in list.iter().enumerate() {
            of_team.entry(thread.team).or_default().push(index);
            first_of.entry((thread.team, thread.worker)).or_insert(index);
        }
        Self { list, by_id, team_of, of_team, first_of, cpu_nodes, real: !target.virtual_machine, together, seats, makers }
    }

    /// The index of the thread with this id.
    #[must_use]
    pub fn index(&self, id: Id) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Whether no process has two threads or shares memory with another one: then each page is on the node of its only user.
    #[must_use]
    pub fn alone(&self) -> bool {
        let mut all: Vec<(Id, usize, Id)> = self.list.iter().map(|t| (t.team, t.worker, t.process)).collect();
        all.sort_unstable();
        // A process that follows another one in its place is alone there.
        let follows = |one: &(Id, usize, Id), two: &(Id, usize, Id)| one.1 == two.1 && one.2 != two.2;
        all.windows(2).all(|pair| pair[0].0 != pair[1].0 || follows(&pair[0], &pair[1]))
    }

    /// The threads of a process and of those that share memory with it: indices, and the threads.
    pub fn beside(&self, process: Id) -> impl Iterator<Item = (usize, &Thread)> {
        let indices = self.team_of.get(&process).and_then(|team| self.of_team.get(team));
        indices.into_iter().flatten().map(|&index| (index, &self.list[index]))
    }

    /// The first thread of a worker in these processes: its index, and the thread.
    #[must_use]
    pub fn of_worker(&self, process: Id, worker: usize) -> Option<(usize, &Thread)> {
        let &index = self.first_of.get(&(*self.team_of.get(&process)?, worker))?;
        Some((index, &self.list[index]))
    }

    /// How often a thread was observed on each node.
    #[must_use]
    pub fn looks(&self, profile: &Profile, thread: Id, nodes: usize) -> Vec<u64> {
        let mut looks = vec![0; nodes];
        for (&(_, cpu), seen) in profile.thread_cpus.range((thread, 0)..=(thread, u32::MAX)) {
            let node = self.cpu_nodes.get(&cpu).and_then(|&node| looks.get_mut(node as usize));
            if let Some(count) = node {
                *count = seen.looks.saturating_add(*count);
            }
        }
        looks
    }

    /// The node that `thread` was on when it was seen on `cpu`.
    #[must_use]
    pub fn touch_node(&self, thread: usize, cpu: u32) -> u32 {
        let own = self.list[thread].node;
        if self.real { self.cpu_nodes.get(&cpu).copied().unwrap_or(own) } else { own }
    }
}

/// Whether the threads are of one process, or of several that have one place by turns, besides those that only start others.
fn is_one_process(rows: &[&ThreadRow], turns: &Turns, drivers: &HashSet<Id>) -> bool {
    let mut places = rows.iter().map(|row| turns.first(row.process)).filter(|process| !drivers.contains(process));
    let first = places.next();
    places.all(|process| Some(process) == first)
}

/// The number of the first worker of each process, among the processes of its team.
fn first_workers(members: &[Member], team: impl Fn(Id) -> Id) -> HashMap<Id, usize> {
    let mut slots: BTreeMap<Id, usize> = BTreeMap::new();
    for member in members {
        let slots = slots.entry(member.process).or_default();
        *slots = (member.worker + 1).max(*slots);
    }
    let mut used: HashMap<Id, usize> = HashMap::new();
    let mut first = |(process, slots): (&Id, &usize)| {
        let used = used.entry(team(*process)).or_default();
        *used += slots;
        (*process, *used - slots)
    };
    slots.iter().map(&mut first).collect()
}

/// The worker of each thread, and the threads that make others anew all the time, at the same time.
fn workers(profile: &Profile, rows: &[&ThreadRow], turns: &Turns) -> (HashMap<Id, WorkerId>, HashSet<Id>) {
    let mut members: BTreeMap<Id, Vec<&ThreadRow>> = BTreeMap::new();
    for row in rows {
        members.entry(row.process).or_default().push(row);
    }
    // Few programs make threads anew all the time, and only those need it.
    let seen = LazyCell::new(|| Sightings::new(profile));
    let (mut worker_of, mut makers) = (HashMap::new(), HashSet::new());
    for (process, list) in members {
        let (lives, creators): (Vec<Lifetime>, Vec<Option<Id>>) = list.iter().map(|row| (lifetime(row), row.parent)).unzip();
        makers.extend(slots::makers(&lives, &creators).into_keys());
        let slots = siblings::slots(|| &*seen, &list, lifetime);
        worker_of.extend(list.iter().zip(slots).map(|(row, slot)| (row.id, (turns.first(process), slot))));
    }
    (worker_of, makers)
}

pub(crate) fn lifetime(thread: &ThreadRow) -> Lifetime {
    let released = thread.died_ns.map_or(u64::MAX, |died| {
        let life = died.saturating_sub(thread.born_ns);
        died - LATE_EXIT_NS.min(life / 4)
    });
    Lifetime { born: thread.born_ns, released }
}

fn cpu_nodes(machine: &Machine) -> HashMap<u32, u32> {
    machine.node_cpus.iter().flat_map(|(&node, cpus)| cpus.iter().map(move |&cpu| (cpu, node))).collect()
}

/// The node on which each thread was seen most often: by the recorder's regular observations if there were any, else by all samples.
fn seen_nodes(profile: &Profile, cpu_nodes: &HashMap<u32, u32>) -> HashMap<Id, u32> {
    let looks = |(&(thread, _), seen): (&(Id, u32), &Seen)| (seen.looks > 0).then_some(thread);
    let looked: HashSet<Id> = profile.thread_cpus.iter().filter_map(looks).collect();
    let mut seen: BTreeMap<Id, BTreeMap<u32, u64>> = BTreeMap::new();
    for (&(thread, cpu), &samples) in &profile.thread_cpus {
        if let Some(&node) = cpu_nodes.get(&cpu) {
            let count = seen.entry(thread).or_default().entry(node).or_default();
            *count = count.saturating_add(if looked.contains(&thread) { samples.looks } else { samples.samples });
        }
    }
    let most = |nodes: BTreeMap<u32, u64>| nodes.into_iter().max_by_key(|&(node, count)| (count, std::cmp::Reverse(node)));
    seen.into_iter().filter_map(|(thread, nodes)| most(nodes).map(|(node, _)| (thread, node))).collect()
}
