//! What divides a program's work among threads. A pragma is advice only for the threads of an OpenMP runtime: those that use the object, in its own
//! process. Another process of the same run, or another part of the same process, may use OpenMP without it.

use super::super::{Case, Context};
use firsttouch_model::openmp::is_openmp_runtime;
use firsttouch_model::rows::{Frame, Id, Site, Thread};
use std::collections::BTreeSet;

/// What divides the program's work among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadTeam {
    /// An OpenMP runtime: a pragma can divide a loop.
    OpenMp,
    /// The program's own thread functions: a pragma would have no effect.
    Own,
}

/// Whose thread a stack belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stack {
    /// An OpenMP runtime calls the code, or the compiler made it from a parallel region.
    OpenMp,
    /// It reaches the start of a thread, which is not the main one, without an OpenMP runtime.
    Own,
    /// The main thread, or a stack that was cut off.
    Open,
}

const OUTLINED: &[&str] = &["_omp_fn", "omp_outlined", "GOMP_", "__kmp", "__nv_"];
/// The functions that compilers make from parallel regions and tasks.
const REGIONS: &[&str] = &["_omp_fn.", "omp_outlined", ".omp_task", ".DIR.OMP.", "__par_", "__nv_"];
/// The modules that start a program, and call what its libraries do first.
const LOADERS: &[&str] = &["ld-linux", "ld64.so", "ld.so"];
/// The modules in which threads begin.
const STARTERS: &[&str] = &["libc.", "libc-", "libpthread", "ld-musl"];

impl Context<'_> {
    /// What divides the work on an object, or of the whole program. If no stack shows which modules ran, assume OpenMP.
    pub(super) fn team(&self, case: Option<&Case<'_>>) -> ThreadTeam {
        let own: BTreeSet<Id> =
            case.iter().flat_map(|case| &case.group.members).map(|member| self.profile.objects[*member].process).collect();
        let is_own = |process: Id| own.is_empty() || own.contains(&process);
        let sites = || self.profile.sites.values().filter(|site| is_own(site.process));
        let is_recorded = self.profile.regions.iter().any(|region| is_own(region.process))
            || self.profile.threads.iter().any(|thread| thread.omp_number.is_some() && is_own(thread.process));
        let is_known = sites().flat_map(|site| &site.frames).any(|frame| frame.module.is_some());
        let is_openmp = is_recorded || sites().any(|site| stack(&site.frames) == Stack::OpenMp);
        match case {
            _ if !is_openmp && is_known => ThreadTeam::Own,
            Some(case) if is_openmp && shows_runtime(sites()) && self.has_own_users(case) => ThreadTeam::Own,
            _ => ThreadTeam::OpenMp,
        }
    }

    /// Whether the object is first touched within a parallel region, by code that one of its threads runs: a loop that is divided there would have
    /// a team of one thread.
    pub(super) fn is_touched_in_region(&self, case: &Case<'_>) -> bool {
        let Some(place) = case.view.first_touch.at.first() else { return false };
        let is_there = |site: Option<Id>| {
            let found = self.places.place(site);
            found.is_some_and(|found| (found.file, found.line, found.function) == (place.file.clone(), place.line, place.function.clone()))
        };
        case.subject.touch.sites.keys().filter(|site| is_there(**site)).any(|site| is_in_region(self.places.frames(*site)))
    }

    /// Whether parallel regions within others have teams of several threads here: such a region uses the object, and other threads than the first one
    /// of the process make threads.
    pub(super) fn nests_regions(&self, case: &Case<'_>) -> bool {
        let process = case.object.process;
        let first = self.threads.beside(process).map(|(_, thread)| thread).find(|thread| thread.process == process).map(|thread| thread.id);
        let is_inner = |row: &Thread| row.process == process && row.parent.is_some() && row.parent != first;
        let regions = |site: Option<Id>| self.places.frames(site).iter().filter(|frame| is_region(frame)).count();
        self.profile.threads.iter().any(is_inner) && case.hits.iter().flat_map(|hit| hit.sites.iter()).any(|(site, _)| regions(*site) > 1)
    }

    /// Whether the object is allocated within a parallel region.
    pub(super) fn is_allocated_in_region(&self, case: &Case<'_>) -> bool {
        case.group.members.iter().any(|member| is_in_region(self.places.frames(self.profile.objects[*member].site)))
    }

    /// The number of threads of an object's process, if threads that use it take the place of others that used it: a program that makes its
    /// threads anew for every round. What their function does, it does in every round.
    pub(super) fn followers(&self, case: &Case<'_>) -> Option<usize> {
        let users = case.subject.used_by.counting(|share| share.is_some_and(|share| share.value > 0.0));
        let users: Vec<_> = users.map(|(index, _)| &self.threads.list[index]).map(|thread| (thread.team, thread.worker)).collect();
        let follow = users.iter().collect::<BTreeSet<_>>().len() < users.len();
        follow.then(|| self.threads.beside(case.object.process).count())
    }

    /// The function with which the threads that use an object begin, if the stacks of their accesses reach so far and agree.
    pub(super) fn start_routine(&self, case: &Case<'_>) -> Option<&str> {
        let sites: BTreeSet<Option<Id>> = case.hits.iter().flat_map(|hit| hit.sites.iter().map(|(site, _)| *site)).collect();
        let started = sites.iter().map(|site| self.places.frames(*site)).filter(|frames| reaches_start(frames));
        let mut functions = started.map(|frames| frames.iter().rfind(|frame| is_of_program(frame))?.function.as_deref());
        let first = functions.next()??;
        functions.all(|other| other == Some(first)).then_some(first)
    }

    /// Whether threads that the program made itself use the object, and none of OpenMP's do.
    fn has_own_users(&self, case: &Case<'_>) -> bool {
        let sites: BTreeSet<Option<Id>> = case.hits.iter().flat_map(|hit| hit.sites.iter().map(|(site, _)| *site)).collect();
        let stacks: Vec<Stack> = sites.into_iter().map(|site| stack(self.places.frames(site))).collect();
        stacks.contains(&Stack::Own) && !stacks.contains(&Stack::OpenMp)
    }
}

/// Whether the stacks of OpenMP's own threads show it: then a stack without it is no thread of OpenMP.
fn shows_runtime<'s>(mut sites: impl Iterator<Item = &'s Site>) -> bool {
    sites.any(|site| reaches_start(&site.frames) && site.frames.iter().any(is_runtime))
}

fn stack(frames: &[Frame]) -> Stack {
    let is_outlined = |frame: &Frame| frame.function.as_deref().is_some_and(|name| OUTLINED.iter().any(|part| name.contains(part)));
    // The program's code, which the runtime calls or which calls it. Installed runtimes have no source files.
    let is_code = |frame: &Frame| frame.file.is_some() || !is_runtime(frame);
    let is_other = |frame: &Frame| frame.module.is_some() && is_code(frame) && !STARTERS.iter().any(|name| module(frame).starts_with(name));
    match () {
        // A runtime that the loader started has no threads yet: a wrapper may be linked to it, and the program that it executes may not.
        () if frames.last().is_some_and(|last| LOADERS.iter().any(|name| module(last).starts_with(name))) => Stack::Open,
        () if frames.iter().any(is_outlined) => Stack::OpenMp,
        () if frames.iter().any(is_runtime) && (reaches_start(frames) || frames.iter().any(is_other)) => Stack::OpenMp,
        // The same where the stack was cut off before the loader: the runtime alone shows no threads.
        () if frames.iter().any(is_runtime) => Stack::Open,
        () if reaches_start(frames) => Stack::Own,
        () => Stack::Open,
    }
}

/// Whether the compiler made one of the functions on a stack from a parallel region.
fn is_in_region(frames: &[Frame]) -> bool {
    frames.iter().any(is_region)
}

fn is_region(frame: &Frame) -> bool {
    frame.function.as_deref().is_some_and(|name| REGIONS.iter().any(|part| name.contains(part)))
}

fn is_runtime(frame: &Frame) -> bool {
    is_openmp_runtime(module(frame))
}

/// Whether a stack reaches the code that starts a thread other than the main one.
fn reaches_start(frames: &[Frame]) -> bool {
    let is_main = |frame: &Frame| matches!(frame.function.as_deref(), Some("main" | "MAIN__" | "__libc_start_main"));
    let is_started = frames.len() > 1 && frames.last().is_some_and(|last| STARTERS.iter().any(|name| module(last).starts_with(name)));
    is_started && !frames.iter().any(is_main)
}

/// Whether it is code of the program, and not of the libraries that start its threads (`std::thread`).
fn is_of_program(frame: &Frame) -> bool {
    let file = frame.file.as_deref().unwrap_or("/usr/");
    let function = frame.function.as_deref().unwrap_or("std::");
    let is_of_system = file.starts_with("/usr/") || file.starts_with("/rustc/") || function.starts_with("std::");
    !is_of_system && !STARTERS.iter().any(|name| module(frame).starts_with(name))
}

fn module(frame: &Frame) -> &str {
    frame.module.as_deref().and_then(|module| module.rsplit('/').next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a runtime that the loader starts is no sign of OpenMP's threads, and that one which calls the program's code is.
    #[test]
    fn stacks_of_runtimes() {
        let stack_of = |modules: &[&str]| {
            let frame = |module: &&str| Frame { module: Some(format!("/usr/lib/{module}")), ..Frame::default() };
            stack(&modules.iter().map(frame).collect::<Vec<_>>())
        };
        assert!(stack_of(&["libgomp.so.1", "ld-linux-x86-64.so.2"]) == Stack::Open);
        assert!(stack_of(&["libc.so.6", "libgomp.so.1"]) == Stack::Open, "cut off before the loader");
        assert!(stack_of(&["libgomp.so.1", "libc.so.6"]) == Stack::OpenMp && stack_of(&["solver", "libgomp.so.1"]) == Stack::OpenMp);
        assert!(stack_of(&["solver", "libgomp.so.1", "libc.so.6"]) == Stack::OpenMp);
        assert!(stack_of(&["solver", "libc.so.6"]) == Stack::Own);
    }
}
