//! The sampled blocks below the minimum size: rows for the profile, and where in memory they lie.

use crate::sink::Sink;
use firsttouch_model::rows::{Id, SmallBlock};
use std::collections::BTreeSet;

/// After so many rows only one of two samples is kept, after twice as many one of four, and so on.
const ROWS_KEPT_WHOLE: u64 = 40_000;
/// Blocks lie in heaps, which are larger than this many bytes (a power of two).
const REGION_BITS: u32 = 20;
/// Memory this many regions away from a sampled block may hold others.
const NEAR: u64 = 4;

/// Counts samples, and leaves out some if there are many.
#[derive(Default)]
pub struct SmallBlocks {
    seen: u64,
    kept: u64,
}

impl SmallBlocks {
    /// Writes a sampled block. `mean_bytes`: one of so many bytes was sampled.
    pub(super) fn add(&mut self, block: SmallBlock, mean_bytes: u64, sink: &mut Sink) {
        let step = 1 << (self.kept / ROWS_KEPT_WHOLE).min(16);
        self.seen += 1;
        if !self.seen.is_multiple_of(step) {
            return;
        }
        self.kept += 1;
        let row = SmallBlock { weight: step as f64 * stands_for(block.bytes, mean_bytes), ..block };
        sink.write(|w| w.small_block(&row));
    }
}

/// The bytes of blocks of this size that one sampled block stands for: it was sampled with probability 1 - exp(-bytes / mean).
fn stands_for(bytes: u64, mean_bytes: u64) -> f64 {
    let (bytes, mean) = (bytes.max(1) as f64, mean_bytes.max(1) as f64);
    -bytes / (-bytes / mean).exp_m1()
}

/// The regions of a process in which small blocks were sampled.
#[derive(Default)]
pub struct HeapRegions(BTreeSet<u64>);

impl HeapRegions {
    /// Adds the region of a block. Returns whether it is new.
    pub(super) fn add(&mut self, address: u64) -> bool {
        self.0.insert(address >> REGION_BITS)
    }

    /// A region and those after it in which further blocks may lie soon, as (address, bytes).
    pub(super) fn around(address: u64) -> (u64, u64) {
        (address >> REGION_BITS << REGION_BITS, (1 + NEAR) << REGION_BITS)
    }

    /// Whether small blocks may lie at an address.
    #[must_use]
    pub fn may_hold(&self, address: u64) -> bool {
        let region = address >> REGION_BITS;
        self.0.range(region.saturating_sub(NEAR)..=region.saturating_add(NEAR)).next().is_some()
    }
}

/// A sampled block before its weight is known.
pub(super) struct NewSmallBlock {
    pub call: &'static str,
    pub address: u64,
    pub bytes: u64,
}

impl NewSmallBlock {
    pub(super) fn row(self, (process, thread): (Id, Id), site: Option<Id>, time_ns: u64) -> SmallBlock {
        let Self { call, address, bytes } = self;
        SmallBlock { process, thread, site, call: call.to_owned(), address, bytes, weight: 0.0, time_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the blocks of a sample stand for all that were allocated: weight x probability = bytes.
    #[test]
    fn weights_are_unbiased() {
        for (bytes, mean) in [(1, 32_768), (200, 32_768), (65_535, 32_768), (0, 1), (100, 1)] {
            let probability = 1.0 - (-(bytes.max(1) as f64) / mean as f64).exp();
            assert!((stands_for(bytes, mean) * probability - bytes.max(1) as f64).abs() < 1e-6, "{bytes} {mean}");
        }
    }

    /// Check which memory may hold small blocks.
    #[test]
    fn memory_near_a_block() {
        let mut regions = HeapRegions::default();
        assert!(!regions.may_hold(0));
        regions.add(100 << 20);
        assert!(regions.may_hold(96 << 20) && regions.may_hold((105 << 20) - 1));
        assert!(!regions.may_hold((96 << 20) - 1) && !regions.may_hold(105 << 20) && !regions.may_hold(u64::MAX));
    }
}
