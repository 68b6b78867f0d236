//! Decides which of several touches of a page placed it: the last one or the first.
//!
//! A read of fresh anonymous memory faults, maps the zero page and places nothing; the write that follows faults again. Memory released
//! with `madvise(MADV_DONTNEED)` and used again faults again. So a range may have more faults than pages, and the last fault of a page
//! placed it. Touches are sampled, so the two faults of one page are rarely both recorded. The rule therefore works on stretches:
//!
//! 1. Records of one thread on one huge page but several base pages, close in time, are faults on base pages (which the kernel joined
//!    later). Of several records of one page that each represent one fault, the last stays.
//! 2. The range is divided into up to 64 equal cells, of at least 16 expected records each. With P the cell's bytes, W the bytes that its
//!    records represent and w those of a typical record, the cell was touched more than once if W >= 1.1 P + 2 sqrt(P w) (with 16 records
//!    1.6 P: more than random sampling gives in 99 of 100 cells, and than sampling every n-th fault gives in any). In storms the events are on
//!    in one tick of eight: records of one tick are chosen together, so they count as one record that represents what all of them do.
//! 3. Then the newest records that represent P stay. A generation ends where a long pause begins: of the possible ends between 0.7 P and
//!    1.3 P the one before the longest pause, else the one nearest to P.
//! 4. Of several records of one page, the last stays.
//!
//! Threads that fault on one page at the same time are all counted, but only the first places it. Faults that follow each other
//! within 100 us, or 5 ns a byte of the page (a huge page is cleared in the fault: 10 ms), are such a race, and the first of them stays.
//!
//! Earlier generations are kept for memory whose owner is unknown ([`History`]): without the agent, a mapping that is unmapped and
//! mapped again is one object that is initialised several times, and samples see each of its lives. Two generations may also be
//! memory that was read before it was written; so only cells with three or more generations have a history.
//!
//! If memory is known never to have been released ([`crate::faults`]), a page is placed once, and later faults without a mapped page (the
//! page was being migrated) place nothing. Then the first generation stays, by the same rules in reverse.
//!
//! Limit: a cell of which only a part was touched twice looks like one that was touched once.

mod written;

pub use written::keep_written;

use crate::threads::Threads;
use crate::touch_record::{BASE_PAGE, Placed};
use firsttouch_model::rows::Id;
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// The least number of generations for which a cell keeps a history.
const AGAIN: usize = 3;
const MOST_CELLS: f64 = 64.0;
const RECORDS_A_CELL: f64 = 16.0;
/// The number of records of one huge page that are compared: at most this many threads race for one page.
const LOOKED_AT: usize = 64;
/// The range in which the last generation may end, as a fraction of the cell's bytes.
const END: std::ops::RangeInclusive<f64> = 0.7..=1.3;

/// Records of storms stand for at least so many faults (a period of 251 in one tick of eight), and those of one tick are at most so far from each
/// other, ns.
const STORM_WEIGHT: f64 = 2008.0;
const TOGETHER_NS: u64 = 20_000_000;
/// If all faults fall into one or two ticks that are on, records represent eight times as many as there were. With twice the standard deviation
/// that is no sign of a second generation.
const TICKS_FACTOR: f64 = 2.0;
/// Records of one process are at most so many times as far from each other as the pages that they stand for.
const APART: f64 = 2.0;

/// Which generation stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    First,
    Last,
}

/// Drops the records of pages that were touched again later. `placed` are the touches of an object at `address`.
pub fn keep_last(placed: &mut Vec<Placed>, address: u64, bytes: u64) {
    keep(placed, address, bytes, Stays::Last);
}

/// Drops the records of pages that had been touched before. `placed` are the touches of an object at `address`.
pub fn keep_first(placed: &mut Vec<Placed>, address: u64, bytes: u64) {
    keep(placed, address, bytes, Stays::First);
}

/// Drops faults on pages that another process had placed: in memory that processes share, each of them takes a fault on each page. Touches are
/// sampled, so the page itself rarely has a record. A fault between, or next to, earlier ones of another process is on a page that this one
/// passed, if it is no farther from them than their records are from each other.
pub fn keep_first_of_processes(placed: &mut Vec<Placed>, threads: &Threads) {
    placed.retain(|p| p.touch.mapped.is_none_or(|bytes| bytes == 0));
    placed.sort_by_key(|p| (p.touch.time, p.offset));
    let process = |p: &Placed| threads.list[p.touch.thread].process;
    let mut kept: BTreeMap<u64, (f64, Id)> = BTreeMap::new();
    placed.retain(|p| {
        let below = kept.range(..=p.offset).next_back();
        let above = kept.range(p.offset..).next();
        let is_near = |(&offset, &(covers, other)): (&u64, &(f64, Id))| {
            other != process(p) && offset.abs_diff(p.offset) as f64 <= APART * covers.max(p.page_bytes as f64)
        };
        let is_placed = below.is_some_and(is_near) || above.is_some_and(is_near);
        if !is_placed {
            kept.insert(p.offset, (p.covers(), process(p)));
        }
        !is_placed
    });
}

fn keep(placed: &mut Vec<Placed>, address: u64, bytes: u64, stays: Stays) {
    base_pages(placed, address);
    one_of_page(placed, address, stays, |p| p.touch.weight <= 1.0);
    let covered: f64 = placed.iter().map(Placed::covers).sum();
    if bytes > 0 && covered > bytes as f64 {
        let Cells { size, typical, cells } = Cells::new(std::mem::take(placed), covered, bytes);
        for mut cell in cells {
            generation(&mut cell, size, typical, stays);
            placed.append(&mut cell);
        }
    }
    one_of_page(placed, address, stays, |_| true);
}

/// Equal stretches of an object, with their records.
pub struct Cells<R> {
    pub size: f64,
    /// Bytes that a typical record represents.
    typical: f64,
    /// The records, or references to them.
    pub cells: Vec<Vec<R>>,
}

impl<R: Borrow<Placed>> Cells<R> {
    pub fn new(placed: Vec<R>, covered: f64, bytes: u64) -> Self {
        let typical = squares(placed.iter().map(Borrow::borrow)) / covered;
        let count = (bytes as f64 / typical / RECORDS_A_CELL).clamp(1.0, MOST_CELLS).floor().max(1.0);
        let size = (bytes as f64 / count).max(1.0);
        let mut cells: Vec<Vec<R>> = (0..count as usize).map(|_| Vec::new()).collect();
        for record in placed {
            let cell = ((record.borrow().offset as f64 / size) as usize).min(cells.len() - 1);
            cells[cell].push(record);
        }
        Self { size, typical, cells }
    }
}

/// The sum of squares of the bytes that records represent, each group of records that were chosen together as one.
fn squares<'a>(placed: impl Iterator<Item = &'a Placed>) -> f64 {
    let (mut of_storms, mut squares) = (Vec::new(), 0.0);
    for record in placed {
        if record.touch.weight >= STORM_WEIGHT {
            of_storms.push((record.touch.time, record.covers()));
        } else {
            squares += record.covers().powi(2);
        }
    }
    of_storms.sort_unstable_by_key(|record| record.0);
    let ticks = of_storms.chunk_by(|one, next| next.0 - one.0 <= TOGETHER_NS);
    squares + ticks.map(|tick| (TICKS_FACTOR * tick.iter().map(|record| record.1).sum::<f64>()).powi(2)).sum::<f64>()
}

/// All generations of touches of an object that was initialised several times.
#[derive(Clone, Debug)]
pub struct History {
    size: f64,
    /// By cell, the generations from oldest to newest; each generation is sorted by offset. Empty for a cell with fewer than three.
    cells: Vec<Vec<Vec<Placed>>>,
}

impl History {
    /// None if no part of the object was initialised three times.
    #[must_use]
    pub fn new(placed: &[Placed], bytes: u64) -> Option<Self> {
        let covered: f64 = placed.iter().map(Placed::covers).sum();
        if bytes == 0 || covered < AGAIN as f64 / 2.0 * bytes as f64 {
            return None;
        }
        let Cells { size, typical, cells } = Cells::new(placed.iter().collect(), covered, bytes);
        let generations = |mut cell: Vec<&Placed>| {
            let mut list = Vec::new();
            while !cell.is_empty() {
                let older = generation(&mut cell, size, typical, Stays::Last);
                list.push(std::mem::replace(&mut cell, older));
            }
            list.reverse();
            if list.len() < AGAIN { Vec::new() } else { list.into_iter().map(by_offset).collect() }
        };
        let cells: Vec<Vec<Vec<Placed>>> = cells.into_iter().map(generations).collect();
        cells.iter().any(|cell| !cell.is_empty()).then_some(Self { size, cells })
    }

    /// The generation that was in memory at `time`, and the next one. None if the cell has no history.
    #[must_use]
    pub fn at(&self, offset: u64, time: u64) -> Option<(&[Placed], &[Placed])> {
        let cell = self.cells.get(((offset as f64 / self.size) as usize).min(self.cells.len().saturating_sub(1)))?;
        let began = |list: &Vec<Placed>| list.iter().map(|p| p.touch.time).min().is_some_and(|first| first <= time);
        let this = cell.iter().rposition(began)?;
        Some((&cell[this], cell.get(this + 1).map_or(&[], Vec::as_slice)))
    }
}

fn by_offset(mut records: Vec<&Placed>) -> Vec<Placed> {
    records.sort_by_key(|p| (p.offset, p.touch.time));
    records.into_iter().cloned().collect()
}

/// The address of the page that a record created.
fn page(record: &Placed, address: u64) -> u64 {
    address.wrapping_add(record.offset) / record.page_bytes.max(1)
}

/// Faults on one page that follow each other within this time are a race, ns.
fn race_ns(page_bytes: u64) -> u64 {
    page_bytes.saturating_mul(5).max(100_000)
}

/// Indices of the records, sorted by page, then time.
fn by_page(placed: &[Placed], address: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..placed.len()).collect();
    order.sort_by_key(|&i| (placed[i].page_bytes, page(&placed[i], address), placed[i].touch.time, i));
    order
}

fn same_page(a: &Placed, b: &Placed, address: u64) -> bool {
    a.page_bytes == b.page_bytes && page(a, address) == page(b, address)
}

/// Corrects the page size of records on base pages that the kernel joined to a huge page later.
fn base_pages(placed: &mut [Placed], address: u64) {
    let mut of_base_pages: Vec<usize> = Vec::new();
    for group in by_page(placed, address).chunk_by(|&a, &b| same_page(&placed[a], &placed[b], address)) {
        let same_thread = |a: &Placed, b: &Placed| {
            let apart = a.offset / BASE_PAGE != b.offset / BASE_PAGE;
            apart && a.touch.thread == b.touch.thread && b.touch.time - a.touch.time <= race_ns(a.page_bytes)
        };
        let is_split = |i: usize| group[..i].iter().any(|&before| same_thread(&placed[before], &placed[group[i]]));
        if placed[group[0]].page_bytes > BASE_PAGE && (1..group.len().min(LOOKED_AT)).any(is_split) {
            of_base_pages.extend(group);
        }
    }
    of_base_pages.into_iter().for_each(|i| placed[i].page_bytes = BASE_PAGE);
}

/// Keeps one of several records of a page, the first or the last. Drops only records for which `may_go` is true.
fn one_of_page(placed: &mut Vec<Placed>, address: u64, which: Stays, may_go: impl Fn(&Placed) -> bool) {
    let mut stays = vec![true; placed.len()];
    for group in by_page(placed, address).chunk_by(|&a, &b| same_page(&placed[a], &placed[b], address)) {
        let follows = |i: usize| {
            let (before, this) = (&placed[group[i - 1]], &placed[group[i]]);
            this.touch.time - before.touch.time <= race_ns(this.page_bytes)
        };
        let mut first = if which == Stays::First { 0 } else { group.len() - 1 };
        while first > 0 && follows(first) {
            first -= 1;
        }
        for (i, &record) in group.iter().enumerate() {
            stays[record] = i == first || !may_go(&placed[record]);
        }
    }
    let mut stays = stays.into_iter();
    placed.retain(|_| stays.next().unwrap_or(true));
}

/// Leaves one generation in a cell, unordered, and returns the records of the others.
fn generation<R: Borrow<Placed>>(cell: &mut Vec<R>, bytes: f64, typical: f64, stays: Stays) -> Vec<R> {
    let covered: f64 = cell.iter().map(|p| p.borrow().covers()).sum();
    if covered < 1.1 * bytes + 2.0 * (bytes * typical).sqrt() {
        return Vec::new();
    }
    cell.sort_by_key(|p| p.borrow().touch.time);
    if stays == Stays::Last {
        cell.reverse();
    }
    let mut kept = 0.0;
    let mut longest: Option<(u64, usize)> = None;
    let mut nearest = (f64::INFINITY, cell.len());
    for (i, pair) in cell.windows(2).enumerate() {
        let (this, next) = (pair[0].borrow(), pair[1].borrow());
        kept += this.covers();
        let pause = this.touch.time.abs_diff(next.touch.time);
        if END.contains(&(kept / bytes)) && longest.is_none_or(|l| pause > l.0) {
            longest = Some((pause, i + 1));
        }
        if (kept - bytes).abs() < nearest.0 {
            nearest = ((kept - bytes).abs(), i + 1);
        }
    }
    cell.split_off(longest.map_or(nearest.1, |l| l.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::touch_record::Touch;

    pub(super) const PAGES: u64 = 8192;

    /// Touches of pages `from..to` in order by `thread`, one per microsecond from `start` on, of which every `period`-th is recorded.
    pub(super) fn touched(from: u64, to: u64, start: u64, thread: usize, period: u64) -> Vec<Placed> {
        let record = |page: u64| Placed {
            offset: page * 4096,
            touch: Touch {
                time: start + (page - from) * 1000,
                thread,
                node: 0,
                cpu_node: 0,
                address: page * 4096,
                weight: period as f64,
                by_kernel: false,
                site: None,
                mapped: None,
                found: None,
                populated: None,
            },
            recycled: false,
            page_bytes: 4096,
        };
        (from..to).filter(|page| (page + start).is_multiple_of(period)).map(record).collect()
    }

    fn kept(mut list: Vec<Placed>) -> (usize, usize) {
        keep_last(&mut list, 0, PAGES * 4096);
        let of = |thread| list.iter().filter(|p| p.touch.thread == thread).count();
        (of(0), of(1))
    }

    /// Check that the last of two generations of touches stays, at any sampling period and with mixed ones, and also on a part of the
    /// object.
    #[test]
    fn last_generation_stays() {
        for (first, second) in [(1, 1), (31, 31), (1, 31), (31, 1), (31, 251)] {
            let list = [touched(0, PAGES, 5, 0, first), touched(0, PAGES, 90_000_000, 1, second)].concat();
            let (old, new) = kept(list);
            let seen = touched(0, PAGES, 90_000_000, 1, second).len();
            assert!(old * 50 <= new && new * 20 >= seen * 19, "1/{first} then 1/{second}: {old} and {new} of {seen}");
        }
        for period in [1, 31] {
            let again = touched(PAGES / 2, PAGES, 90_000_000, 1, period);
            let seen = again.len();
            let (old, new) = kept([touched(0, PAGES, 5, 0, period), again].concat());
            assert!(old.abs_diff(seen) * 10 <= seen && new * 20 >= seen * 19, "1/{period}: {old} and {new} of {seen}");
        }
    }

    /// Check that if the first generation is to stay, faults on pages being migrated are dropped, at any sampling period.
    #[test]
    fn first_generation_stays() {
        for (first, second) in [(1, 1), (31, 31), (31, 1), (31, 251)] {
            let mut list = [touched(0, PAGES, 5, 0, first), touched(0, PAGES, 90_000_000, 1, second)].concat();
            let seen = touched(0, PAGES, 5, 0, first).len();
            keep_first(&mut list, 0, PAGES * 4096);
            let new = list.iter().filter(|p| p.touch.thread == 1).count();
            assert!(
                new * 50 <= seen && (list.len() - new) * 20 >= seen * 19,
                "1/{first} then 1/{second}: {new} and {} of {seen}",
                list.len()
            );
        }
        let once = touched(0, PAGES, 5, 0, 31);
        let mut list = once.clone();
        keep_first(&mut list, 0, PAGES * 4096);
        assert_eq!(list.len(), once.len());
    }

    /// Check that the history gives the thread that placed a page at any time, and that it needs three generations.
    #[test]
    fn history_of_generations() {
        let step = 90_000_000;
        for period in [1, 31] {
            let list: Vec<Placed> = (0..6).flat_map(|g| touched(0, PAGES, 5 + g * step, g as usize, period)).collect();
            let history = History::new(&list, PAGES * 4096).unwrap();
            for g in 0..6 {
                let (this, next) = history.at(PAGES * 2048, g * step + step / 2).unwrap();
                assert!(this.iter().filter(|p| p.touch.thread != g as usize).count() * 20 <= this.len(), "1/{period}: generation {g}");
                assert_eq!(next.is_empty(), g == 5);
            }
            assert!(history.at(PAGES * 2048, 0).is_none());
            assert!(History::new(&list[..list.len() / 3], PAGES * 4096).is_none());
        }
    }

    /// Check that of threads racing for a huge page the first stays, and that a page joined later keeps all its records.
    #[test]
    fn huge_pages() {
        let huge = |page: u64, time: u64, thread: usize| {
            let record = touched(page, page + 1, 0, thread, 1).remove(0);
            Placed { page_bytes: 2 << 20, touch: Touch { time, ..record.touch }, ..record }
        };
        let kept = |mut list: Vec<Placed>| {
            keep_last(&mut list, 0, PAGES * 4096);
            list.iter().map(|p| (p.touch.thread, p.page_bytes)).collect::<Vec<_>>()
        };
        assert_eq!(kept(vec![huge(0, 4_300_000, 0), huge(256, 360_000, 2), huge(128, 370_000, 1)]), [(2, 2 << 20)]);
        assert_eq!(kept(vec![huge(0, 1_000, 0), huge(128, 50_000_000, 1)]), [(1, 2 << 20)]);
        assert_eq!(kept(vec![huge(0, 1_000, 0), huge(31, 90_000, 0), huge(62, 180_000, 0)]), [(0, 4096); 3]);
    }

    /// Check that records of memory touched once all stay, whether it was touched in order, by several threads at once, or at random.
    #[test]
    fn single_generation_stays() {
        for period in [1, 31, 251] {
            let once = touched(0, PAGES, 5, 0, period);
            assert_eq!(kept(once.clone()), (once.len(), 0));
            let halves = [touched(0, PAGES / 2, 5, 0, period), touched(PAGES / 2, PAGES, 5, 1, period)].concat();
            let all = halves.len();
            let (a, b) = kept(halves);
            assert_eq!(a + b, all);
        }
        let mut dropped = 0;
        for seed in 0..50u64 {
            let chance = |page: u64| {
                (page + seed * PAGES).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32
            };
            let all = touched(0, PAGES, 5, 0, 1).into_iter().filter(|p| chance(p.offset / 4096).is_multiple_of(31));
            let list: Vec<Placed> = all.map(|p| Placed { touch: Touch { weight: 31.0, ..p.touch.clone() }, ..p }).collect();
            dropped += list.len() - kept(list.clone()).0;
        }
        assert!(dropped <= 50 * 5, "{dropped} of {}", 50 * PAGES / 31);
    }
}
