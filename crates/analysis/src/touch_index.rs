//! All recorded touches, indexed by address, by time and by site.

use crate::periods::Periods;
use crate::threads::Threads;
use crate::touch_record::Touch;
use crate::wavelet::WaveletMatrix;
use crate::work;
use firsttouch_model::TouchCause;
use firsttouch_model::rows::{FirstTouch, Id, Object, Profile};
use hashbrown::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// All touches, by process.
#[derive(Debug, Default)]
pub struct TouchIndex {
    pub(crate) by_process: HashMap<Id, ProcessTouches>,
    periods: Periods,
    /// The number of records that refer to an unknown thread, or whose weight is not a positive number.
    pub refused: u64,
}

/// The touches of one process.
#[derive(Debug, Default)]
pub(crate) struct ProcessTouches {
    /// Sorted by address, then time.
    pub(crate) list: Vec<Touch>,
    /// Indices into `list`, sorted by time, then address.
    by_time: Vec<u32>,
    /// The largest weights of touches by page faults: behind those of the touches by time (0 for others) come, from the back, the larger of each two.
    heaviest: Vec<f64>,
    /// The places by address of the touches by time: made when addresses turn out to be those of many objects.
    ranks: OnceLock<WaveletMatrix>,
    /// Indices into `list` by site, ascending.
    pub(crate) by_site: HashMap<Id, Vec<u32>>,
}

impl ProcessTouches {
    pub(crate) fn index(&mut self) {
        self.list.sort_by_key(|t| (t.address, t.time));
        self.by_time = (0..self.list.len() as u32).collect();
        self.by_time.sort_by_key(|&i| self.list[i as usize].time);
        // Those by calls belong to no period of faults.
        let weight = |&i: &u32| Some(&self.list[i as usize]).filter(|touch| touch.populated.is_none()).map_or(0.0, |touch| touch.weight);
        let count = self.list.len();
        self.heaviest = vec![0.0; count];
        self.heaviest.extend(self.by_time.iter().map(weight));
        for at in (1..count).rev() {
            self.heaviest[at] = self.heaviest[2 * at].max(self.heaviest[2 * at + 1]);
        }
        for (i, touch) in self.list.iter().enumerate() {
            if let Some(site) = touch.site {
                self.by_site.entry(site).or_default().push(i as u32);
            }
        }
    }

    /// The places in `by_time` of the touches in this stretch of time.
    fn places(&self, (from, to): (u64, u64)) -> Range<usize> {
        let low = self.by_time.partition_point(|&i| self.list[i as usize].time < from);
        low..self.by_time.partition_point(|&i| self.list[i as usize].time <= to).max(low)
    }

    /// The largest weight of a touch by a page fault in this stretch of time; 0 without touches.
    fn heaviest(&self, from: u64, to: u64) -> f64 {
        let places = self.places((from, to));
        let (mut low, mut high, mut most) = (places.start + self.list.len(), places.end + self.list.len(), 0.0_f64);
        while low < high {
            work::step();
            if low % 2 == 1 {
                most = most.max(self.heaviest[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                most = most.max(self.heaviest[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        most
    }

    fn ranks(&self) -> &WaveletMatrix {
        self.ranks.get_or_init(|| WaveletMatrix::new(self.by_time.clone()))
    }

    /// The touches of an address range in a stretch of time. `pick`: which of them, by address, to take, where only `most` are: of the number of the
    /// one, of all, and of those taken. Memory may be reused many times, so the shorter list is searched: the touches in the range, or those in the
    /// stretch of time.
    fn find(
        &self,
        address: u64,
        bytes: u64,
        (from, to): (u64, u64),
        most: usize,
        pick: impl Fn(usize, usize, usize) -> usize,
    ) -> Found<'_> {
        let (list, by_time) = (&self.list, &self.by_time);
        let (range, places) = (range(list, address, bytes), self.places((from, to)));
        let shorter = range.len().min(places.len());
        if let Some(ranks) = self.ranks.get() {
            let first = ranks.below(places.clone(), range.start);
            let count = ranks.below(places.clone(), range.end) - first;
            let wanted = count.min(most);
            if wanted.saturating_mul(ranks.depth()) < shorter {
                let nth = |at: usize| &list[ranks.nth(places.clone(), first + pick(at, count, wanted))];
                return Found { touches: (0..wanted).map(nth).collect(), each: count as f64 / wanted.max(1) as f64 };
            }
        }
        let found: Vec<&Touch> = if shorter == range.len() {
            let is_then = |touch: &&Touch| {
                work::step();
                from <= touch.time && touch.time <= to
            };
            list[range].iter().filter(is_then).collect()
        } else {
            let is_there = |i: &u32| {
                work::step();
                range.contains(&(*i as usize))
            };
            let mut found: Vec<u32> = by_time[places].iter().copied().filter(is_there).collect();
            found.sort_unstable();
            found.into_iter().map(|i| &list[i as usize]).collect()
        };
        if self.ranks.get().is_some() && found.len() > most {
            let chosen = (0..most).map(|at| found[pick(at, found.len(), most)]).collect();
            return Found { touches: chosen, each: found.len() as f64 / most.max(1) as f64 };
        }
        Found { touches: found, each: 1.0 }
    }
}

/// Touches that were looked up.
#[derive(Debug, Default)]
pub struct Found<'a> {
    /// By address, then time.
    pub touches: Vec<&'a Touch>,
    /// How many each of them stands for: more than 1 if there were more than asked for.
    pub each: f64,
}

impl<'a> Found<'a> {
    /// All of a list, or so many of them, evenly.
    pub fn part(list: impl ExactSizeIterator<Item = &'a Touch>, most: usize) -> Self {
        let count = list.len();
        if count <= most {
            return Self { touches: list.collect(), each: 1.0 };
        }
        let step = count.div_ceil(most.max(1));
        let touches: Vec<&Touch> = list.skip(step / 2).step_by(step).collect();
        let each = count as f64 / touches.len().max(1) as f64;
        Self { touches, each }
    }
}

impl TouchIndex {
    /// `derived`: first touches that other evidence shows, besides the recorded ones. `populated`: those by calls without page faults.
    #[must_use]
    pub fn new(profile: &Profile, derived: &[FirstTouch], populated: &[(FirstTouch, TouchCause)], threads: &Threads) -> Self {
        let mut index = Self { periods: Periods::new(profile), ..Self::default() };
        let by_fault = profile.first_touches.iter().chain(derived).map(|touch| (touch, None));
        for (touch, populated) in by_fault.chain(populated.iter().map(|(touch, cause)| (touch, Some(*cause)))) {
            let Some(thread) = threads.index(touch.thread).filter(|_| touch.weight.is_finite() && touch.weight > 0.0) else {
                index.refused += 1;
                continue;
            };
            let cpu_node = threads.touch_node(thread, touch.cpu);
            let went = touch.node.and_then(|node| u32::try_from(node).ok()).filter(|_| threads.real);
            index.by_process.entry(touch.process).or_default().list.push(Touch {
                time: touch.time_ns,
                thread,
                node: went.unwrap_or(cpu_node),
                cpu_node,
                address: touch.address,
                weight: touch.weight.min(1e12),
                by_kernel: touch.by_kernel,
                site: touch.site,
                mapped: touch.mapped_bytes,
                found: touch.node.map(|node| node >= 0),
                populated,
            });
        }
        index.by_process.values_mut().for_each(ProcessTouches::index);
        index
    }

    /// Touches in `[address, address + bytes)`, sorted by address, then time.
    #[must_use]
    pub fn within(&self, process: Id, address: u64, bytes: u64) -> &[Touch] {
        let Some(touches) = self.by_process.get(&process) else { return &[] };
        &touches.list[range(&touches.list, address, bytes)]
    }

    /// The number of touches of [`Self::within`] in a stretch of time.
    #[must_use]
    pub fn count_during(&self, process: Id, address: u64, bytes: u64, times: (u64, u64)) -> usize {
        let Some(touches) = self.by_process.get(&process) else { return 0 };
        let (range, places) = (range(&touches.list, address, bytes), touches.places(times));
        touches.ranks().below(places.clone(), range.end) - touches.ranks().below(places, range.start)
    }

    /// The touches of [`Self::within`] in a stretch of time; if there are more than `most` and they were counted ([`Self::count_during`]), so many of
    /// them, evenly.
    #[must_use]
    pub fn during(&self, process: Id, address: u64, bytes: u64, times: (u64, u64), most: usize) -> Found<'_> {
        // The middle one of each stretch.
        let middle = |at: usize, count: usize, wanted: usize| (2 * at + 1) * count / (2 * wanted);
        self.by_process.get(&process).map_or_else(Found::default, |touches| touches.find(address, bytes, times, most, middle))
    }

    /// The same, but those with the lowest addresses.
    #[must_use]
    pub fn first_during(&self, process: Id, address: u64, bytes: u64, times: (u64, u64), most: usize) -> Found<'_> {
        self.by_process.get(&process).map_or_else(Found::default, |touches| touches.find(address, bytes, times, most, |at, _, _| at))
    }

    /// The longest sampling period during an object's life, in faults per sample (1 without touches).
    #[must_use]
    pub fn longest_period(&self, object: &Object) -> f64 {
        let (born, died) = (object.born_ns, object.died_ns.unwrap_or(u64::MAX));
        let alive = self.periods.longest(object.process, born, died);
        let recorded = self.by_process.get(&object.process).map_or(0.0, |touches| touches.heaviest(born, died));
        match alive {
            Some(faults) => recorded.max(faults as f64).max(1.0),
            None if recorded > 0.0 => recorded,
            None => self.longest_period_until(object),
        }
    }

    /// The longest sampling period up to an object's end: memory that was used before may have been touched long ago.
    #[must_use]
    pub fn longest_period_until(&self, object: &Object) -> f64 {
        let died = if self.periods.of(object.process).is_empty() { u64::MAX } else { object.died_ns.unwrap_or(u64::MAX) };
        self.by_process.get(&object.process).map_or(1.0, |touches| touches.heaviest(0, died).max(1.0))
    }
}

/// The indices of the touches of an address range in `list`, which is sorted by address.
pub(crate) fn range(list: &[Touch], address: u64, bytes: u64) -> std::ops::Range<usize> {
    let end = address.saturating_add(bytes);
    let low = list.partition_point(|t| t.address < address);
    low..list.partition_point(|t| t.address < end).max(low)
}
