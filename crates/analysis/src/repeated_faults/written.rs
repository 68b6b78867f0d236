//! Which faults on pages that were not mapped placed them, where others wrote to mapped pages (the zero page) later.
//!
//! A fault with nothing mapped is a write that places the page, or a read that maps the zero page. If it was a read by a thread that never writes
//! there, other threads' writes to mapped pages follow at the same place. But such writes also follow around a write, if other threads read and
//! then write the pages between: one thread writes the first element of each row of two pages, and a team updates the rows. The pages themselves
//! rarely have two records, so stretches are compared:
//!
//! - Writes to mapped pages by a thread that took about as many faults without a mapped page there were to the pages that it had read itself. They
//!   say nothing about another thread's faults. Where such faults remain, the writer's reads are dropped, so that its pages count once.
//! - Writes by a thread that took no such faults, or far fewer, were to pages that others had read: the others' faults placed nothing.
//! - Code (the exact address, with its callers) that faulted on a mapped page stores, so all its faults placed pages.

use super::{Stays, keep_last, one_of_page};
use crate::touch_record::Placed;
use firsttouch_model::rows::Id;
use hashbrown::HashSet;
use std::ops::Range;

/// A write shows that a page was read before if it is at most so many times as far from it as what the records stand for.
const CLOSE: f64 = 4.0;
/// A thread's reads and writes are counted up to so many times as far from a place as what the records stand for.
const STRETCH: f64 = 16.0;
/// A thread wrote the pages that it had read itself if its reads are at least this part of its writes. Half as many are those of a thread that
/// wrote as many pages that another one had read.
const AS_MANY: f64 = 2.0 / 3.0;

/// What is known of a fault on a page that was not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It placed the page.
    Placed,
    /// A thread's read, or write, where it wrote to mapped pages too.
    OfWriter,
    /// Another thread wrote to the page later.
    Superseded,
}

/// Joins an object's faults on pages that were not mapped and its `writes` to pages that were (the zero page of memory that was read before, or
/// pages shared after fork), and keeps those that placed pages.
pub fn keep_written(placed: &mut Vec<Placed>, mut writes: Vec<Placed>, address: u64, bytes: u64) {
    keep_last(&mut writes, address, bytes);
    writes.sort_by_key(|write| (write.offset, write.touch.time));
    placed.sort_by_key(|read| (read.offset, read.touch.time));
    let faults = Faults { stores: stores(&writes), unmapped: placed, writes: &writes };
    let verdicts: Vec<Verdict> = placed.iter().map(|read| faults.verdict(read)).collect();
    let stays: Vec<bool> = (0..placed.len()).map(|at| faults.stays(at, &verdicts)).collect();
    let mut stays = stays.into_iter();
    placed.retain(|_| stays.next().unwrap_or(true));
    placed.append(&mut writes);
    one_of_page(placed, address, Stays::Last, |_| true);
}

/// The code that wrote to mapped pages.
fn stores(writes: &[Placed]) -> HashSet<Id> {
    writes.iter().filter(|write| write.touch.mapped.is_some_and(|bytes| bytes > 0)).filter_map(|write| write.touch.site).collect()
}

/// Both kinds of faults of an object, sorted by offset.
struct Faults<'a> {
    unmapped: &'a [Placed],
    writes: &'a [Placed],
    stores: HashSet<Id>,
}

impl Faults<'_> {
    fn verdict(&self, read: &Placed) -> Verdict {
        let above = self.writes.partition_point(|write| write.offset < read.offset);
        let around = [above.checked_sub(1).and_then(|below| self.writes.get(below)), self.writes.get(above)];
        let is_near = |write: &&Placed| write.offset.abs_diff(read.offset) as f64 <= CLOSE * write.covers().max(read.covers());
        let near: Vec<&Placed> = around.into_iter().flatten().filter(is_near).collect();
        let placed_nothing = read.touch.found == Some(false);
        if near.is_empty() || (self.is_store(read) && !placed_nothing) {
            return Verdict::Placed;
        }
        // A thread that reads and then writes its own pages is known by both, unless the kernel saw that the read placed nothing.
        if !placed_nothing && near.iter().any(|write| write.touch.thread == read.touch.thread) {
            return Verdict::OfWriter;
        }
        let is_earlier = near.iter().any(|write| write.touch.time < read.touch.time);
        let is_of_others = || !placed_nothing && near.iter().all(|write| self.is_to_its_own(write));
        if is_earlier || is_of_others() { Verdict::Placed } else { Verdict::Superseded }
    }

    fn is_store(&self, read: &Placed) -> bool {
        read.touch.site.is_some_and(|site| self.stores.contains(&site))
    }

    /// Whether the thread that made this write to a mapped page writes there what it read itself.
    fn is_to_its_own(&self, write: &Placed) -> bool {
        let of_writer = |list: &[Placed], is_counted: &dyn Fn(&Placed) -> bool| -> f64 {
            let near = &list[around(list, write, STRETCH * write.covers())];
            near.iter().filter(|one| one.touch.thread == write.touch.thread && is_counted(one)).map(Placed::covers).sum()
        };
        let reads = of_writer(self.unmapped, &|read| !self.is_store(read));
        reads > 0.0 && reads >= AS_MANY * of_writer(self.writes, &|_| true)
    }

    /// Whether the fault counts. A writer's own does, unless faults of others that placed pages remain around it: then its pages would count twice.
    fn stays(&self, at: usize, verdicts: &[Verdict]) -> bool {
        let read = &self.unmapped[at];
        let is_mixed = || {
            let near = around(self.unmapped, read, CLOSE * read.covers());
            near.clone().any(|other| verdicts[other] == Verdict::Placed && self.unmapped[other].touch.thread != read.touch.thread)
        };
        match verdicts[at] {
            Verdict::Placed => true,
            Verdict::OfWriter => !is_mixed(),
            Verdict::Superseded => false,
        }
    }
}

/// The records of a sorted list that are at most `reach` bytes from one.
fn around(list: &[Placed], one: &Placed, reach: f64) -> Range<usize> {
    let reach = reach as u64;
    let low = list.partition_point(|other| other.offset < one.offset.saturating_sub(reach));
    low..list.partition_point(|other| other.offset <= one.offset.saturating_add(reach)).max(low)
}

#[cfg(test)]
mod tests {
    use super::super::keep_first;
    use super::super::tests::{PAGES, touched};
    use super::*;
    use crate::touch_record::Touch;

    /// The records of a storm: every 251st fault, in one tick of eight. Four threads touch their quarters, each fault twice if `twice`: a read, then
    /// a write. Returns those of the reads and those of the writes.
    fn in_storm(reader: Option<usize>, on: impl Fn(usize, u64) -> bool) -> (Vec<Placed>, Vec<Placed>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for thread in 0..4 {
            let from = PAGES / 4 * thread as u64;
            let record = |time: u64, thread: usize, mapped: u64| {
                move |p: Placed| Placed {
                    touch: Touch { time: time + p.touch.time, thread, weight: 2008.0, mapped: Some(mapped), ..p.touch.clone() },
                    ..p
                }
            };
            let faults = touched(from, from + PAGES / 4, 0, thread, 125);
            let seen = faults.iter().filter(|p| on(thread, p.offset / 4096 - from));
            let (first, second): (Vec<_>, Vec<_>) = seen.cloned().enumerate().partition(|(i, _)| i % 2 == 0);
            reads.extend(first.into_iter().map(|(_, p)| p).map(record(5, reader.unwrap_or(thread), 0)));
            writes.extend(second.into_iter().map(|(_, p)| p).map(record(if reader.is_some() { S } else { 6 }, thread, 4096)));
        }
        (reads, writes)
    }

    const S: u64 = 1_000_000_000;

    /// Check that the records of two threads stay if those of the ticks in which the events were on represent more faults than there were:
    /// each thread read and then wrote each page of its own part.
    #[test]
    fn ticks_of_storms_are_one_choice() {
        let (mut reads, writes) = in_storm(None, |thread, page| thread != 2 && page < 1500);
        let all = reads.len() + writes.len();
        assert!(all > 32, "{all}");
        keep_first(&mut reads, 0, PAGES * 4096);
        keep_written(&mut reads, writes, 0, PAGES * 4096);
        let of = |thread| reads.iter().filter(|p| p.touch.thread == thread).count();
        assert!((0..4).all(|thread| thread == 2 || of(thread) >= all / 4) && reads.len() == all, "{:?}", [of(0), of(1), of(2), of(3)]);
    }

    /// Check that reads by one thread place nothing where others wrote to the same pages later, however few records show it.
    #[test]
    fn writes_supersede_reads() {
        let (reads, writes) = in_storm(Some(7), |_, _| true);
        let (mut kept, count) = (reads, writes.len());
        keep_written(&mut kept, writes, 0, PAGES * 4096);
        assert_eq!((kept.len(), kept.iter().filter(|p| p.touch.thread == 7).count()), (count, 0));
        // Nobody wrote to the second half: the reads are all that is known of it.
        let mapped = |list: Vec<Placed>, bytes| -> Vec<Placed> {
            list.into_iter().map(|p| Placed { touch: Touch { mapped: Some(bytes), ..p.touch.clone() }, ..p }).collect()
        };
        let mut kept = mapped(touched(0, PAGES, 5, 7, 31), 0);
        keep_written(&mut kept, mapped(touched(0, PAGES / 2, S, 0, 31), 4096), 0, PAGES * 4096);
        let read_from = kept.iter().filter(|p| p.touch.thread == 7).map(|p| p.offset / 4096).min().expect("reads that nobody wrote over");
        assert!((PAGES / 2..=PAGES / 2 + 5 * 31).contains(&read_from), "{read_from}");
    }

    /// The share of the pages that are thread 7's after it touched the first page of each row of two, and four threads then read and wrote all, each
    /// its quarter, with one of `period` faults recorded. `stores`: whether the first thread wrote. If not, it only read.
    fn share_of_first(period: u64, stores: bool, sites: bool) -> f64 {
        let record = |page: u64, thread: usize, time: u64, mapped: u64, site: Id| {
            let like = touched(page, page + 1, 0, thread, 1).remove(0);
            let touch = Touch { time, thread, weight: period as f64, mapped: Some(mapped), site: sites.then_some(site), ..like.touch };
            Placed { touch, ..like }
        };
        let mut all: Vec<Vec<Placed>> = vec![(0..PAGES / 2).map(|row| record(2 * row, 7, row * 1000, 0, 1)).collect()];
        for thread in 0..4 {
            let mut faults = Vec::new();
            for page in PAGES / 4 * thread..PAGES / 4 * (thread + 1) {
                let time = S + page % (PAGES / 4) * 1000;
                let is_mapped = page % 2 == 0;
                if !is_mapped {
                    faults.push(record(page, thread as usize, time, 0, 2));
                }
                if !is_mapped || !stores {
                    faults.push(record(page, thread as usize, time + 500, 4096, 3));
                }
            }
            all.push(faults);
        }
        let recorded = all.into_iter().flat_map(|list| list.into_iter().skip(3).step_by(period as usize));
        let (writes, mut kept): (Vec<Placed>, Vec<Placed>) = recorded.partition(|fault| fault.touch.mapped != Some(0));
        keep_first(&mut kept, 0, PAGES * 4096);
        keep_written(&mut kept, writes, 0, PAGES * 4096);
        let pages = |of: Option<usize>| -> f64 { kept.iter().filter(|p| of.is_none_or(|t| p.touch.thread == t)).map(Placed::covers).sum() };
        pages(Some(7)) / pages(None)
    }

    /// Check that the writes of a team to pages that it read itself do not take away those that another thread wrote between, and that they do
    /// take away those that it only read.
    #[test]
    fn a_team_between_the_pages_of_another_thread() {
        for period in [1, 7, 31] {
            for sites in [true, false] {
                let share = share_of_first(period, true, sites);
                assert!((0.45..=0.55).contains(&share), "period {period}, sites {sites}: {share}");
                let share = share_of_first(period, false, sites);
                assert!(share <= 0.1, "period {period}, sites {sites}: {share} by a thread that only read");
            }
        }
    }

    /// Check that code which wrote to mapped pages placed those that were not mapped, whoever wrote around them.
    #[test]
    fn code_that_stores() {
        let with = |list: Vec<Placed>, mapped: u64, site: Id| -> Vec<Placed> {
            list.into_iter().map(|p| Placed { touch: Touch { mapped: Some(mapped), site: Some(site), ..p.touch.clone() }, ..p }).collect()
        };
        let kept = |site: Id| {
            let mut kept = with(touched(0, PAGES, 5, 7, 31), 0, site);
            keep_written(&mut kept, with(touched(0, PAGES, S, 0, 31), 4096, 1), 0, PAGES * 4096);
            kept.iter().filter(|p| p.touch.thread == 7).count()
        };
        assert_eq!((kept(1), kept(2)), (touched(0, PAGES, 5, 7, 31).len(), 0));
    }
}
