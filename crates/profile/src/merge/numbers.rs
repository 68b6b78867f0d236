//! Numbers of rows: every place of a profile that has one, so that the rows of a part get numbers of their own in a merged profile.

use crate::slice::{KINDS, Kind, Slice};
use firsttouch_model::error::{Error, Result};
use firsttouch_model::rows::{FirstIds, Id, NO_OBJECT, Profile};
use std::mem::take;

/// The least and the greatest number of each kind that a profile has, in rows or where others name them.
#[derive(Debug, Default)]
pub struct Spans {
    ids: [Option<(Id, Id)>; KINDS],
    rounds: Option<(u64, u64)>,
}

/// The numbers that the next part begins with.
#[derive(Clone, Copy, Debug)]
pub struct Next(FirstIds);

impl Default for Next {
    /// As recorders count.
    fn default() -> Self {
        Self(FirstIds { process: 0, thread: 0, site: 1, object: 1, touch: 1, window: 1, round: 0, sample: 1, region: 1 })
    }
}

impl Spans {
    /// Finds them, and checks that they belong to the part of a merged profile that `slice` is.
    ///
    /// # Errors
    /// When a row of the part names one of another part.
    pub fn of(profile: &mut Profile, slice: &Slice) -> Result<Self> {
        let mut spans = Self::default();
        let mut other = None;
        each_id(profile, &mut |kind, id| {
            if !slice.range(kind).contains(id) {
                other = Some((kind, *id));
            }
            let span = spans.ids[kind as usize].get_or_insert((*id, *id));
            *span = (span.0.min(*id), span.1.max(*id));
        });
        for window in &profile.windows {
            let span = spans.rounds.get_or_insert((window.round, window.round));
            *span = (span.0.min(window.round), span.1.max(window.round));
        }
        match other {
            Some((kind, id)) => Err(Error::invalid_data(format!("{kind:?} {id} is not one of the part that names it").to_lowercase())),
            None => Ok(spans),
        }
    }

    /// Counts the numbers of a profile on from `next`. Gaps stay.
    ///
    /// # Errors
    /// When they are so far apart that they do not fit.
    pub fn renumber(&self, profile: &mut Profile, next: &mut Next) -> Result<FirstIds> {
        let first = next.0;
        let too_far = || Error::invalid_data("the numbers of its rows are too far apart");
        let mut least = [0; KINDS];
        let mut new = [0; KINDS];
        for (kind, to) in counted(&mut next.0) {
            new[kind as usize] = *to;
            let Some((low, high)) = self.ids[kind as usize] else { continue };
            least[kind as usize] = low;
            let count = high.abs_diff(low).checked_add(1).ok_or_else(too_far)?;
            *to = to.checked_add_unsigned(count).ok_or_else(too_far)?;
        }
        // All fit: the largest one was checked.
        each_id(profile, &mut |kind, id| *id = id.wrapping_sub(least[kind as usize]).wrapping_add(new[kind as usize]));
        if let Some((low, high)) = self.rounds {
            next.0.round = (high - low).checked_add(1).and_then(|count| first.round.checked_add(count)).ok_or_else(too_far)?;
            profile.windows.iter_mut().for_each(|window| window.round = window.round - low + first.round);
        }
        Ok(first)
    }
}

fn counted(ids: &mut FirstIds) -> [(Kind, &mut Id); KINDS - 1] {
    let FirstIds { process, thread, site, object, touch, window, round: _, sample, region } = ids;
    [
        (Kind::Process, process),
        (Kind::Thread, thread),
        (Kind::Site, site),
        (Kind::Object, object),
        (Kind::Touch, touch),
        (Kind::Window, window),
        (Kind::Sample, sample),
        (Kind::Region, region),
    ]
}

/// Calls `visit` with every number of a row, and every mention of one. The order of two numbers of a kind must not change.
fn each_id(profile: &mut Profile, visit: &mut impl FnMut(Kind, &mut Id)) {
    use Kind::{Object, Part, Process, Region, Sample, Site, Thread, Touch, Window};
    fn maybe(visit: &mut impl FnMut(Kind, &mut Id), kind: Kind, id: &mut Option<Id>) {
        if let Some(id) = id {
            visit(kind, id);
        }
    }
    for row in &mut profile.processes {
        visit(Process, &mut row.id);
        maybe(visit, Process, &mut row.parent);
    }
    for row in &mut profile.threads {
        visit(Thread, &mut row.id);
        visit(Process, &mut row.process);
        maybe(visit, Thread, &mut row.parent);
    }
    for row in &mut profile.objects {
        visit(Object, &mut row.id);
        visit(Process, &mut row.process);
        maybe(visit, Site, &mut row.site);
        maybe(visit, Thread, &mut row.thread);
    }
    profile.folded_objects.iter_mut().for_each(|row| visit(Site, &mut row.site));
    for row in &mut profile.small_blocks {
        visit(Process, &mut row.process);
        visit(Thread, &mut row.thread);
        maybe(visit, Site, &mut row.site);
    }
    for row in &mut profile.first_touches {
        visit(Touch, &mut row.id);
        visit(Process, &mut row.process);
        visit(Thread, &mut row.thread);
        maybe(visit, Site, &mut row.site);
    }
    profile.fault_periods.iter_mut().for_each(|row| maybe(visit, Part, &mut row.part));
    profile.bandwidth.iter_mut().for_each(|row| maybe(visit, Part, &mut row.part));
    profile.releases.iter_mut().for_each(|row| visit(Process, &mut row.process));
    for row in &mut profile.populations {
        visit(Process, &mut row.process);
        visit(Thread, &mut row.thread);
        maybe(visit, Site, &mut row.site);
    }
    profile.appeared.iter_mut().for_each(|row| visit(Process, &mut row.process));
    for row in &mut profile.fault_counts {
        visit(Process, &mut row.process);
        maybe(visit, Thread, &mut row.thread);
    }
    for row in &mut profile.python_lines {
        visit(Thread, &mut row.thread);
        visit(Site, &mut row.site);
    }
    profile.operand_counts.iter_mut().for_each(|row| visit(Process, &mut row.process));
    for row in &mut profile.windows {
        visit(Window, &mut row.id);
        visit(Object, &mut row.object);
    }
    for row in &mut profile.accesses {
        visit(Window, &mut row.window);
        visit(Thread, &mut row.thread);
        maybe(visit, Site, &mut row.site);
    }
    for row in &mut profile.samples {
        visit(Sample, &mut row.id);
        visit(Thread, &mut row.thread);
        maybe(visit, Site, &mut row.site);
    }
    for row in &mut profile.sampled_accesses {
        visit(Sample, &mut row.sample);
        if row.object != NO_OBJECT {
            visit(Object, &mut row.object);
        }
        maybe(visit, Site, &mut row.site);
    }
    for row in &mut profile.pages {
        visit(Process, &mut row.process);
        maybe(visit, Object, &mut row.object);
    }
    for row in &mut profile.regions {
        visit(Region, &mut row.id);
        visit(Process, &mut row.process);
        maybe(visit, Site, &mut row.site);
        maybe(visit, Thread, &mut row.thread);
    }
    each_key(profile, visit);
}

/// The numbers that are keys.
fn each_key(profile: &mut Profile, visit: &mut impl FnMut(Kind, &mut Id)) {
    let mut new = |kind, mut id: Id| {
        visit(kind, &mut id);
        id
    };
    profile.thread_cpus =
        take(&mut profile.thread_cpus).into_iter().map(|((thread, cpu), seen)| ((new(Kind::Thread, thread), cpu), seen)).collect();
    let sites = take(&mut profile.sites).into_values().map(|mut site| {
        (site.id, site.process) = (new(Kind::Site, site.id), new(Kind::Process, site.process));
        (site.id, site)
    });
    profile.sites = sites.collect();
    let variables = take(&mut profile.meta.variables).into_iter();
    profile.meta.variables = variables.map(|(site, name)| (new(Kind::Site, site), name)).collect();
    let memory = take(&mut profile.shared_memory).into_iter();
    profile.shared_memory = memory.map(|(object, memory)| (new(Kind::Object, object), memory)).collect();
    profile.policies = take(&mut profile.policies).into_iter().map(|(object, policy)| (new(Kind::Object, object), policy)).collect();
}
