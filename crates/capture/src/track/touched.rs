//! Sampled first touches of a live process, by address: which thread placed the pages around a word.

use crate::random::Random;
use firsttouch_model::rows::Id;
use std::collections::BTreeMap;

/// Touches kept in memory for a process (the file keeps all). Beyond this, a random half is dropped.
const KEPT: usize = 400_000;
/// Neighbours on each side that must agree before an address counts as lying in one thread's memory.
const NEIGHBOURS: usize = 4;

#[derive(Default)]
pub struct TouchedPages {
    by_address: BTreeMap<u64, (Id, u64)>,
}

impl TouchedPages {
    pub fn insert(&mut self, address: u64, thread: Id, time: u64, random: &mut Random) {
        if self.by_address.len() >= KEPT {
            self.by_address.retain(|_, _| random.word() & 1 == 0);
        }
        self.by_address.insert(address, (thread, time));
    }

    /// The pages of a range were given back to the kernel.
    pub fn remove(&mut self, address: u64, bytes: u64) {
        let end = address.saturating_add(bytes);
        let gone: Vec<u64> = self.by_address.range(address..end).map(|(&a, _)| a).collect();
        for a in gone {
            self.by_address.remove(&a);
        }
    }

    #[must_use]
    pub fn any_in(&self, address: u64, bytes: u64) -> bool {
        self.by_address.range(address..address.saturating_add(bytes)).next().is_some()
    }

    /// Where to watch so that the page's first toucher is known: `word` itself while the neighbouring samples within
    /// [address, address + bytes) agree on a thread, else the same offset in the nearest sampled page.
    #[must_use]
    pub fn snap(&self, word: u64, address: u64, bytes: u64, page_bytes: u64) -> u64 {
        let end = address.saturating_add(bytes);
        if word < address || word >= end {
            return word;
        }
        let below: Vec<(u64, Id)> = self.by_address.range(address..word).rev().take(NEIGHBOURS).map(|(&a, t)| (a, t.0)).collect();
        let above: Vec<(u64, Id)> = self.by_address.range(word..end).take(NEIGHBOURS).map(|(&a, t)| (a, t.0)).collect();
        let mut all = below.iter().chain(&above);
        let Some(&(_, first)) = all.next() else { return word };
        if all.all(|&(_, thread)| thread == first) {
            return word;
        }
        let nearest = [below.first(), above.first()].into_iter().flatten().min_by_key(|(a, _)| a.abs_diff(word));
        let Some(&(touched, _)) = nearest else { return word };
        let mask = page_bytes.max(8) - 1;
        let snapped = (touched & !mask) | (word & mask & !7);
        // The first and last page of an object may be shared with a neighbour.
        if snapped >= address && snapped + 8 <= end { snapped } else { word }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touches(threads: impl Fn(u64) -> Id) -> TouchedPages {
        let mut t = TouchedPages::default();
        let mut random = Random::new(1);
        for page in (0..1000).step_by(7) {
            t.insert(0x10_0000 + page * 4096 + 16, threads(page), page, &mut random);
        }
        t
    }

    /// Check that words in one thread's memory stay, and that words in mixed memory move to a sampled page.
    #[test]
    fn words_snap_only_where_neighbours_disagree() {
        let (address, bytes) = (0x10_0000, 1000 * 4096);
        let serial = touches(|_| 0);
        let cyclic = touches(|page| i64::try_from(page % 4).unwrap_or(0));
        for page in (0..1000).step_by(13) {
            let word = address + page * 4096 + 1024;
            assert_eq!(serial.snap(word, address, bytes, 4096), word);
            let snapped = cyclic.snap(word, address, bytes, 4096);
            assert_eq!(((snapped - address) / 4096) % 7, 0, "page {page}");
            assert_eq!(snapped % 4096, 1024);
        }
        assert_eq!(TouchedPages::default().snap(64, 0, 4096, 4096), 64);
    }

    /// Check that memory use is bounded.
    #[test]
    fn touches_are_thinned() {
        let mut t = TouchedPages::default();
        let mut random = Random::new(3);
        for i in 0..1_000_000 {
            t.insert(i * 4096, 0, i, &mut random);
        }
        assert!(t.by_address.len() <= KEPT);
        t.remove(0, u64::MAX);
        assert!(!t.any_in(0, u64::MAX));
    }
}
