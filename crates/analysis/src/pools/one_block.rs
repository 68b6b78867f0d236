//! Instructions that always access the same block.
//!
//! Only a sample of the blocks is recorded, so a block between sampled ones may be of another line: an array of 16 KiB that all threads
//! read, among the rows of a matrix. An instruction that walks over the pool reaches all parts of it. One whose samples all lie in a small
//! part of it, and between two sampled blocks, accesses one block; whose it is, is not known.

use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Samples of an instruction that say enough: fewer can lie close together by chance.
const LEAST: u32 = 8;
/// The largest part of a pool in which all of them lie.
const PART: f64 = 1.0 / 16.0;

/// The addresses at which an instruction accessed a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    samples: u32,
    first: u64,
    last: u64,
}

impl Extent {
    /// Adds an address to those of an instruction.
    pub fn add<K: Eq + std::hash::Hash>(list: &mut HashMap<K, Self>, key: K, address: u64) {
        let extent = list.entry(key).or_insert(Self { samples: 0, first: address, last: address });
        *extent = Self { samples: extent.samples.saturating_add(1), first: extent.first.min(address), last: extent.last.max(address) };
    }

    /// Whether all of it is in one block that may be of another line than the pool's. `sampled`: the sampled blocks by their addresses, each with its
    /// size and whether the pool's lines allocated it.
    pub fn is_block_of_others(self, pool_bytes: u64, sampled: &BTreeMap<u64, (u64, bool)>) -> bool {
        let is_small = (self.last - self.first) as f64 <= PART * pool_bytes as f64;
        if self.samples < LEAST || !is_small {
            return false;
        }
        let before = sampled.range(..=self.last).next_back();
        match before {
            Some((&start, _)) if start > self.first => false,
            Some((&start, &(bytes, is_own))) if start.saturating_add(bytes) > self.last => !is_own,
            Some((&start, &(bytes, _))) => start.saturating_add(bytes) <= self.first,
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the extents of ten samples around the blocks 1000 to 1100 (the pool's) and 2000 to 2100 (another line's).
    #[test]
    fn blocks_of_others() {
        let sampled = BTreeMap::from([(1000, (100, true)), (2000, (100, false))]);
        let extent = |first, last| {
            let mut list = HashMap::new();
            (0..10).for_each(|number| Extent::add(&mut list, 0, if number == 3 { last } else { first }));
            list[&0]
        };
        let is_other = |first, last| extent(first, last).is_block_of_others(1 << 20, &sampled);
        assert!(is_other(1200, 1800), "between sampled blocks");
        assert!(!is_other(1000, 1090), "in a block of the pool");
        assert!(is_other(2000, 2090), "in a block of another line");
        assert!(!is_other(1900, 2050) && !is_other(2050, 2200), "in two blocks");
        assert!(is_other(10, 20), "before all sampled blocks");
        assert!(!extent(1200, 1800).is_block_of_others(8000, &sampled), "a large part of a small pool");
        assert!(!Extent { samples: 3, first: 1200, last: 1800 }.is_block_of_others(1 << 20, &sampled), "few samples");
    }
}
