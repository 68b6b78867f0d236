//! Short-lived processes of one parent (a fork server), which take turns: those of a step have the places of those of the step before.
//!
//! To the program they are the workers of a pool, as threads are that it creates anew for every step, and each worker lives in many processes. So
//! they get places as such threads do ([`siblings`]), and what is judged by worker or by node goes by place. Each process keeps its own memory.
//!
//! - Only children of one parent that run its program take turns: those that it forked. A child that replaced its program (the commands of a script,
//!   the ranks of a launcher) is one by itself. Its memory shows it, since nothing that it inherited outlives that, and the addresses of its code do.
//! - Only processes with the same number of threads take turns: a team of four and one of eight are each spread over the nodes.
//! - Processes that live at the same time have places of their own, so that a pool of long-lived ones is what it was.

use crate::groups::PYTHON;
use crate::siblings::{self, Sightings};
use crate::threads::lifetime;
use firsttouch_model::rows::{Id, Object, Process, Profile, Thread};
use hashbrown::{HashMap, HashSet};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

/// Which processes take turns.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// The processes of each place with several, by the first of them; all in order of birth.
    places: BTreeMap<Id, Vec<Id>>,
    first: HashMap<Id, Id>,
}

impl Turns {
    /// `joined`: the same profile, in which memory that processes share is one object.
    #[must_use]
    pub fn new(profile: &Profile, joined: &Profile) -> Self {
        let mut turns = Self::default();
        let families = families(profile);
        if families.is_empty() {
            return turns;
        }
        let seen = LazyCell::new(|| Sightings::new(joined));
        for family in families {
            let slots = siblings::slots(|| &*seen, &family.iter().collect::<Vec<_>>(), lifetime);
            let mut places: BTreeMap<usize, Vec<Id>> = BTreeMap::new();
            family.iter().zip(slots).for_each(|(child, slot)| places.entry(slot).or_default().push(child.process));
            for processes in places.into_values().filter(|processes| processes.len() > 1) {
                turns.first.extend(processes.iter().map(|process| (*process, processes[0])));
                turns.places.insert(processes[0], processes);
            }
        }
        turns
    }

    /// The first of the processes that have the place of this one.
    #[must_use]
    pub fn first(&self, process: Id) -> Id {
        self.first.get(&process).copied().unwrap_or(process)
    }

    /// The team of each process that is not alone: `teams` are those of processes that share memory, and processes of one place are in one team.
    #[must_use]
    pub fn join(&self, teams: &HashMap<Id, Id>) -> HashMap<Id, Id> {
        let mut all = teams.clone();
        for (first, processes) in &self.places {
            let own: BTreeSet<Id> = processes.iter().filter_map(|process| all.get(process).copied()).collect();
            let team = own.first().copied().unwrap_or(*first);
            if own.len() > 1 {
                all.values_mut().filter(|other| own.contains(*other)).for_each(|other| *other = team);
            }
            all.extend(processes.iter().map(|process| (*process, team)));
        }
        all
    }

    /// The profile in which memory of processes that take turns ends with its process, as it does, so that memory of the next one follows it; `None` if
    /// nothing changes. `is_shared` tells what is not the process's own.
    #[must_use]
    pub fn with_ends(&self, profile: &Profile, is_shared: impl Fn(Id) -> bool) -> Option<Profile> {
        let died = profile.processes.iter().filter(|process| self.first.contains_key(&process.id));
        let died: HashMap<Id, u64> = died.filter_map(|process| Some((process.id, process.died_ns?))).collect();
        let end = |object: &Object| died.get(&object.process).copied().filter(|_| object.died_ns.is_none() && !is_shared(object.id));
        if !profile.objects.iter().any(|object| end(object).is_some()) {
            return None;
        }
        let mut ended = profile.clone();
        ended.objects.iter_mut().for_each(|object| object.died_ns = object.died_ns.or(end(object)));
        Some(ended)
    }
}

/// The children of each parent that run its program and have the same number of threads, each as its first thread, from its birth to its end; in order
/// of birth.
fn families(profile: &Profile) -> Vec<Vec<Thread>> {
    let mut children: BTreeMap<Id, Vec<&Process>> = BTreeMap::new();
    for process in &profile.processes {
        if let Some(parent) = process.parent {
            children.entry(parent).or_default().push(process);
        }
    }
    children.retain(|_, children| children.len() > 1);
    if children.is_empty() {
        return Vec::new();
    }
    let programs = Programs::new(profile);
    let mut threads: HashMap<Id, Vec<&Thread>> = HashMap::new();
    profile.threads.iter().for_each(|thread| threads.entry(thread.process).or_default().push(thread));
    let mut families: BTreeMap<(Id, usize), Vec<Thread>> = BTreeMap::new();
    for (parent, children) in children {
        for child in children.into_iter().filter(|child| programs.is_fork(child)) {
            if let Some((whole, at_once)) = threads.get(&child.id).and_then(|own| as_one(own)) {
                families.entry((parent, at_once)).or_default().push(whole);
            }
        }
    }
    let mut families: Vec<Vec<Thread>> = families.into_values().filter(|family| family.len() > 1).collect();
    families.iter_mut().for_each(|family| family.sort_by_key(|child| (child.born_ns, child.id)));
    families
}

/// A process as one thread, and how many threads it had at once.
fn as_one(threads: &[&Thread]) -> Option<(Thread, usize)> {
    let first = threads.iter().min_by_key(|thread| (thread.born_ns, thread.id))?;
    let died_ns = threads.iter().map(|thread| thread.died_ns).try_fold(0, |last, died| Some(died?.max(last)));
    let lives: Vec<_> = threads.iter().map(|thread| lifetime(thread)).collect();
    let (_, at_once) = crate::slots::lowest_free_slots(&lives);
    Some((Thread { died_ns, ..(*first).clone() }, at_once))
}

/// What tells whether a process still runs the program of its parent.
struct Programs<'a> {
    processes: HashMap<Id, &'a Process>,
    /// Processes that inherited memory, and whether any of it lived as long as they did.
    inherited: HashMap<Id, bool>,
    /// Where each process has its modules.
    modules: HashMap<Id, HashSet<(&'a str, u64)>>,
}

impl<'a> Programs<'a> {
    fn new(profile: &'a Profile) -> Self {
        let processes: HashMap<Id, &Process> = profile.processes.iter().map(|process| (process.id, process)).collect();
        let mut inherited: HashMap<Id, bool> = HashMap::new();
        for object in &profile.objects {
            if let Some(process) = processes.get(&object.process).filter(|process| process.born_ns == object.born_ns) {
                let is_left = object.died_ns.is_none_or(|died| process.died_ns.is_some_and(|end| end <= died));
                *inherited.entry(process.id).or_default() |= is_left;
            }
        }
        let mut modules: HashMap<Id, HashSet<(&str, u64)>> = HashMap::new();
        for site in profile.sites.values() {
            let placed = site.frames.iter().filter_map(|frame| Some((frame.module.as_deref()?, frame.address.wrapping_sub(frame.offset?))));
            modules.entry(site.process).or_default().extend(placed.filter(|(module, _)| *module != PYTHON));
        }
        Self { processes, inherited, modules }
    }

    fn is_fork(&self, child: &Process) -> bool {
        let Some(parent) = child.parent.and_then(|parent| self.processes.get(&parent)) else { return false };
        let files = child.exe.as_ref().zip(parent.exe.as_ref());
        let is_same_file = files.map(|(own, parent)| own == parent);
        let shown = self.inherited.get(&child.id).copied().or_else(|| self.has_code_of(child.id, parent.id));
        is_same_file != Some(false) && shown.or(is_same_file) == Some(true)
    }

    /// Whether modules of both are where the parent has them, all of them: after another program started, they are elsewhere. `None` if no module of
    /// both was seen.
    fn has_code_of(&self, child: Id, parent: Id) -> Option<bool> {
        let (own, parent) = (self.modules.get(&child)?, self.modules.get(&parent)?);
        let names: HashSet<&str> = parent.iter().map(|(module, _)| *module).collect();
        let mut common = own.iter().filter(|(module, _)| names.contains(module)).peekable();
        common.peek()?;
        Some(common.all(|placed| parent.contains(placed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{Frame, ObjectKind, Site};

    const MS: u64 = 1_000_000;

    /// Processes of a parent 0: birth and death (ms), and the number of threads. A thread has the number of its process, and more for others.
    fn profile(children: &[(u64, u64, i64)]) -> Profile {
        let mut profile = Profile::default();
        let lives = [(0, 1000, 1)].into_iter().chain(children.iter().copied());
        for (number, (born, died, threads)) in lives.enumerate() {
            let id = number as Id;
            let (born_ns, died_ns) = (born * MS, Some(died * MS));
            let parent = (id > 0).then_some(0);
            profile.processes.push(Process { id, pid: 10 + id as i32, parent, exe: Some("/bin/a".into()), born_ns, died_ns });
            profile.threads.extend((0..threads).map(|other| Thread {
                id: id + other * 1000,
                process: id,
                tid: 10,
                parent: if other == 0 { parent } else { Some(id) },
                born_ns,
                died_ns,
                ..Thread::default()
            }));
        }
        profile
    }

    fn object(id: Id, process: Id, born_ns: u64, died_ns: Option<u64>) -> Object {
        let (kind, call, name, site, thread) = (ObjectKind::Anonymous, None, None, None, None);
        Object { id, process, kind, call, name, address: 0x1000, bytes: 0x1000, born_ns, died_ns, site, thread }
    }

    fn firsts(profile: &Profile) -> Vec<Id> {
        let turns = Turns::new(profile, profile);
        profile.processes.iter().map(|process| turns.first(process.id)).collect()
    }

    const STEPS: [(u64, u64, i64); 6] = [(10, 20, 1), (11, 21, 1), (30, 40, 1), (31, 41, 1), (50, 60, 1), (51, 61, 1)];

    /// Check that children of successive steps take turns, and that children that live at the same time do not.
    #[test]
    fn successive_children_take_turns() {
        assert_eq!(firsts(&profile(&STEPS)), [0, 1, 2, 1, 2, 1, 2]);
        assert_eq!(firsts(&profile(&[(10, 900, 1), (11, 900, 1), (12, 900, 1)])), [0, 1, 2, 3], "a pool of long-lived processes");
        // One of the pool is replaced.
        assert_eq!(firsts(&profile(&[(10, 900, 1), (11, 400, 1), (12, 900, 1), (401, 900, 1)])), [0, 1, 2, 3, 2]);
    }

    /// Check that processes of different sizes do not take turns, and that those of one size with several threads do.
    #[test]
    fn teams_of_one_size_take_turns() {
        assert_eq!(firsts(&profile(&[(10, 20, 4), (30, 40, 8), (50, 60, 4)])), [0, 1, 2, 1]);
    }

    /// Check that children of different parents do not take turns.
    #[test]
    fn children_of_one_parent_take_turns() {
        let mut two = profile(&STEPS);
        for child in [3, 4, 5] {
            two.processes[child].parent = Some(6);
        }
        assert_eq!(firsts(&two), [0, 1, 2, 3, 4, 3, 1]);
        two.processes.iter_mut().for_each(|process| process.parent = None);
        assert_eq!(firsts(&two), [0, 1, 2, 3, 4, 5, 6]);
    }

    /// Check that a child that replaced its program is alone: by its file, by what it inherited, by the addresses of its code.
    #[test]
    fn other_programs_are_alone() {
        let mut files = profile(&STEPS);
        files.processes[3].exe = Some("/bin/b".into());
        assert_eq!(firsts(&files), [0, 1, 2, 3, 1, 1, 2]);
        let mut unknown = profile(&STEPS);
        unknown.processes[3].exe = None;
        assert_eq!(firsts(&unknown), [0, 1, 2, 3, 1, 1, 2], "it may have been anything");
        unknown.objects = vec![object(1, 0, 0, None), object(2, 3, 30 * MS, None)];
        assert_eq!(firsts(&unknown), [0, 1, 2, 1, 2, 1, 2], "it still has what it inherited");
        let mut gone = profile(&STEPS);
        gone.objects = vec![object(1, 0, 0, None), object(2, 3, 30 * MS, Some(32 * MS)), object(3, 3, 33 * MS, None)];
        assert_eq!(firsts(&gone), [0, 1, 2, 3, 1, 1, 2]);
        let mut moved = profile(&STEPS);
        let frame = |address| Frame { address, module: Some("/bin/a".into()), offset: Some(0x100), ..Frame::default() };
        let site = |(id, process, address)| (id, Site { id, process, frames: vec![frame(address)] });
        // Until it replaced its program, it ran the code of its parent.
        moved.sites = [(0, 0, 0x5100), (1, 1, 0x5100), (2, 3, 0x5100), (3, 3, 0x7100)].map(site).into();
        assert_eq!(firsts(&moved), [0, 1, 2, 3, 1, 1, 2]);
    }

    /// Check that processes of one place are in one team, also if only a later one shares memory, and that teams which meet in a place become one.
    #[test]
    fn processes_of_a_place_are_a_team() {
        let all = profile(&STEPS);
        let turns = Turns::new(&all, &all);
        let teams = |list: &[(Id, Id)]| {
            let joined: BTreeMap<Id, Id> = turns.join(&list.iter().copied().collect()).into_iter().collect();
            joined.into_values().collect::<Vec<Id>>()
        };
        assert_eq!(teams(&[]), [1, 2, 1, 2, 1, 2]);
        assert_eq!(teams(&[(0, 0), (3, 0)]), [0, 0, 2, 0, 2, 0, 2]);
        assert_eq!(teams(&[(0, 0), (1, 0), (2, 2), (3, 2), (4, 2)]), [0; 7]);
    }

    /// Check that what processes in turn did not free ends with them, and that what others have, or share, does not.
    #[test]
    fn memory_ends_with_its_process() {
        let mut all = profile(&STEPS);
        all.objects =
            vec![object(1, 0, 0, None), object(2, 1, 12 * MS, None), object(3, 2, 12 * MS, None), object(4, 3, 32 * MS, Some(33 * MS))];
        let turns = Turns::new(&all, &all);
        let ended = turns.with_ends(&all, |object| object == 3).expect("an end");
        let ends: Vec<Option<u64>> = ended.objects.iter().map(|object| object.died_ns).collect();
        assert_eq!(ends, [None, Some(20 * MS), None, Some(33 * MS)]);
        assert!(turns.with_ends(&all, |_| true).is_none());
    }
}
