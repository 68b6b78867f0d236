//! How much of the touched memory belongs to no recorded object.
//!
//! Watchpoints are drawn from recorded objects, and pools (`pools/`) are made of sampled small blocks. Other memory (stacks, memory that was
//! mapped before firsttouch attached, small blocks where few were sampled) is in no figure of the report. So if there is much of it, a report without findings does not mean that the program
//! is well placed.
//!
//! Bytes are those of the first touches' pages (weight x page size). An object counts with its resident bytes if these are more, because
//! pages that the kernel touched (`read` into a buffer) have no record. An address that ever belonged to an object counts as known: memory
//! that was released and reused in smaller pieces was seen at least once. Pages of unknown memory are base pages, unless their faults show
//! otherwise: see [`Unknown::bytes`].

use crate::pools::Pooled;
use crate::residents::Residents;
use crate::touch_record::BASE_PAGE;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Id, Profile};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Why memory belongs to no recorded object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnrecordedCause {
    /// Allocations below this size were not recorded, and a lower bound would record them.
    LargeMinSize(u64),
    /// Allocations below this size were not recorded.
    MinSize(u64),
    NoAgent,
}

/// The report mentions unrecorded memory from this fraction of the touched memory and this many bytes of each rank on: an MPI's own libraries allocate some MiB
/// in small blocks in every rank.
const PART: f64 = 0.20;
const BYTES: f64 = 16.0 * 1_048_576.0;
/// The value that is suggested if `--min-size` is larger.
const SMALL: u64 = 4096;
/// Up to this weight, a record that is alone in its huge page is evidence of a huge page. Records that represent more faults may be alone
/// by chance.
const DENSE: f64 = 31.0;

/// Touched memory that belongs to no recorded object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unrecorded {
    pub bytes: f64,
    /// Fraction of all touched memory.
    pub part: f64,
}

impl Unrecorded {
    /// None if there is little of it.
    #[must_use]
    pub fn of(profile: &Profile, residents: &Residents, pooled: Option<&Pooled>) -> Option<Self> {
        let objects = Recorded::new(profile);
        let mut known: HashMap<usize, f64> = HashMap::new();
        let mut unknown: HashMap<Id, Unknown> = HashMap::new();
        for touch in profile.first_touches.iter().filter(|t| t.weight.is_finite() && t.weight > 0.0) {
            let weight = touch.weight.min(1e12);
            match objects.at(touch.process, touch.address) {
                Some(object) => {
                    let size = residents.page_bytes_near(&profile.objects[object], touch.address, profile.machine.huge_page_bytes);
                    *known.entry(object).or_default() += weight * size.unwrap_or(BASE_PAGE) as f64;
                }
                // Counted at its address in the pool.
                None if pooled.is_some_and(|pooled| pooled.holds(touch.process, touch.address)) => {}
                None => unknown.entry(touch.process).or_default().0.push((touch.address, weight)),
            }
        }
        for (i, object) in profile.objects.iter().enumerate() {
            if let Some(fraction) = residents.of(object).fraction {
                let entry = known.entry(i).or_default();
                *entry = entry.max(fraction * object.bytes as f64);
            }
        }
        let huge = if profile.machine.transparent_huge_pages == "always" { profile.machine.huge_page_bytes } else { 0 };
        let bytes: f64 = unknown.values().map(|list| list.bytes(huge)).sum();
        let part = bytes / (bytes + known.values().sum::<f64>()).max(f64::MIN_POSITIVE);
        (part >= PART && bytes >= BYTES * profile.parts.len().max(1) as f64).then_some(Self { bytes, part })
    }

    /// Why there is so much of it.
    #[must_use]
    pub fn cause(profile: &Profile) -> UnrecordedCause {
        let has_agent = profile.evidence_of(&EvidenceSource::Agent).is_some_and(|agent| agent.available);
        match profile.meta.min_size_bytes {
            Some(bytes) if has_agent && bytes > SMALL => UnrecordedCause::LargeMinSize(bytes),
            Some(bytes) if has_agent => UnrecordedCause::MinSize(bytes),
            _ => UnrecordedCause::NoAgent,
        }
    }
}

/// Faults outside of all objects: address and weight.
#[derive(Debug, Default)]
struct Unknown(Vec<(u64, f64)>);

impl Unknown {
    /// Bytes of their pages. If neighbouring huge pages have exactly one record each, of few faults, these faults created huge pages: base
    /// pages would cause several records.
    fn bytes(&self, huge: u64) -> f64 {
        let mut regions: BTreeMap<u64, (usize, f64)> = BTreeMap::new();
        for &(address, weight) in &self.0 {
            let region = regions.entry(address / huge.max(BASE_PAGE)).or_default();
            region.0 += 1;
            region.1 += weight;
        }
        let alone = |region: u64| regions.get(&region).is_some_and(|r| r.0 == 1 && r.1 <= DENSE);
        let is_huge = |region: u64| huge > BASE_PAGE && alone(region) && (alone(region.wrapping_sub(1)) || alone(region.wrapping_add(1)));
        regions.iter().map(|(&region, r)| r.1 * if is_huge(region) { huge } else { BASE_PAGE } as f64).sum()
    }
}

/// Address ranges that belonged to objects, extended to whole base pages.
struct Recorded {
    /// By process: (start, largest end of this and all ranges before it, object index), sorted by start.
    ranges: HashMap<Id, Vec<(u64, u64, usize)>>,
}

impl Recorded {
    fn new(profile: &Profile) -> Self {
        let mut ranges: HashMap<Id, Vec<(u64, u64, usize)>> = HashMap::new();
        for (i, object) in profile.objects.iter().enumerate() {
            let end = object.address.saturating_add(object.bytes).checked_next_multiple_of(BASE_PAGE).unwrap_or(u64::MAX);
            ranges.entry(object.process).or_default().push((object.address / BASE_PAGE * BASE_PAGE, end, i));
        }
        for list in ranges.values_mut() {
            list.sort_unstable();
            let mut last: Option<(u64, usize)> = None;
            // Ranges of different times may overlap: each keeps the largest end so far, and its object.
            for range in list.iter_mut() {
                if let Some((end, object)) = last.filter(|l| l.0 > range.1) {
                    (range.1, range.2) = (end, object);
                }
                last = Some((range.1, range.2));
            }
        }
        Self { ranges }
    }

    fn at(&self, process: Id, address: u64) -> Option<usize> {
        let list = self.ranges.get(&process)?;
        let (_, end, object) = list[..list.partition_point(|r| r.0 <= address)].last()?;
        (address < *end).then_some(*object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that only faults that are alone in neighbouring huge pages count as huge.
    #[test]
    fn sizes_of_unknown_pages() {
        const HUGE: u64 = 2 << 20;
        let bytes = |list: &[(u64, f64)], huge: u64| Unknown(list.to_vec()).bytes(huge);
        assert_eq!(bytes(&[(0, 1.0), (HUGE, 1.0)], HUGE), 2.0 * HUGE as f64);
        assert_eq!(bytes(&[(0, 1.0), (HUGE, 1.0)], 0), 8192.0);
        assert_eq!(bytes(&[(0, 1.0), (4096, 1.0), (HUGE, 1.0), (5 * HUGE, 1.0)], HUGE), 4.0 * 4096.0);
        assert_eq!(bytes(&[(0, 251.0), (HUGE, 251.0)], HUGE), 2.0 * 251.0 * 4096.0);
    }
}
