//! All recorded touches, indexed by address, by time and by site.

use crate::periods::Periods;
use crate::threads::Threads;
use crate::touch_record::Touch;
use firsttouch_model::TouchCause;
use firsttouch_model::rows::{FirstTouch, Id, Object, Profile};
use hashbrown::HashMap;
use std::collections::BTreeMap;

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
    /// The times (ns) of the touches of each weight, both ascending.
    times_of_weight: Vec<(f64, Vec<u64>)>,
    /// Indices into `list` by site, ascending.
    pub(crate) by_site: HashMap<Id, Vec<u32>>,
}

impl ProcessTouches {
    pub(crate) fn index(&mut self) {
        self.list.sort_by_key(|t| (t.address, t.time));
        self.by_time = (0..self.list.len() as u32).collect();
        self.by_time.sort_by_key(|&i| self.list[i as usize].time);
        let mut times: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for &i in &self.by_time {
            let touch = &self.list[i as usize];
            // No period of faults.
            if touch.populated.is_some() {
                continue;
            }
            // The bit patterns of positive numbers have the order of the numbers.
            times.entry(touch.weight.to_bits()).or_default().push(touch.time);
        }
        self.times_of_weight = times.into_iter().map(|(bits, times)| (f64::from_bits(bits), times)).collect();
        for (i, touch) in self.list.iter().enumerate() {
            if let Some(site) = touch.site {
                self.by_site.entry(site).or_default().push(i as u32);
            }
        }
    }

    /// The largest weight of a touch in this stretch of time; 0 without touches.
    fn heaviest(&self, from: u64, to: u64) -> f64 {
        let any = |times: &[u64]| times.get(times.partition_point(|&time| time < from)).is_some_and(|&time| time <= to);
        self.times_of_weight.iter().rev().find(|(_, times)| any(times)).map_or(0.0, |(weight, _)| *weight)
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

    /// The touches of [`Self::within`] in a stretch of time. Memory may be reused many times, so the shorter list is searched: the touches
    /// in the range, or those in the stretch of time.
    pub fn during(&self, process: Id, address: u64, bytes: u64, (from, to): (u64, u64)) -> Vec<&Touch> {
        let Some(touches) = self.by_process.get(&process) else { return Vec::new() };
        let (list, by_time) = (&touches.list, &touches.by_time);
        let range = range(list, address, bytes);
        let low = by_time.partition_point(|&i| list[i as usize].time < from);
        let high = by_time.partition_point(|&i| list[i as usize].time <= to).max(low);
        if range.len() <= high - low {
            return list[range].iter().filter(|t| from <= t.time && t.time <= to).collect();
        }
        let mut found: Vec<u32> = by_time[low..high].iter().copied().filter(|&i| range.contains(&(i as usize))).collect();
        found.sort_unstable();
        found.into_iter().map(|i| &list[i as usize]).collect()
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
