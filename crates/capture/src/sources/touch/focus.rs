//! Large objects in storms: which of them wait for their first touches, and how densely faults must be sampled for them.
//!
//! A storm samples one tick in eight, so an object that several threads fill in a few milliseconds may get no sample at all. While such
//! objects wait, an event with a period that suits them is on all the time (a *focus*). It begins when an object is born, since the agent
//! wakes firsttouch, and ends when the samples and the kernel's own answers say that its pages are there.
//!
//! An event that is on costs the program something for every fault, whichever object it is on. So all focuses together have a budget,
//! each object has patience, and the objects of one site have a limit: a few show what the others are like. Objects that were there before
//! the storm, and those that have some samples, use only a part of the budget, so that some is left for objects that come later.

use crate::track::objects::Birth;
use firsttouch_model::rows::Id;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Larger objects take so long to touch that a storm's samples are enough.
const LARGEST_BYTES: u64 = 512 << 20;
/// Samples that a focus aims at, of each object.
const SAMPLES: u64 = 32;
/// With so many samples, an object is no longer in need.
const ENOUGH: u32 = 8;
/// An object of which samples stand for this part of the pages is done, and one of which so much was there at first is old memory.
const COVERED: f64 = 0.75;
const OLD_MEMORY: f64 = 0.5;
/// What an event that is on costs for a fault, and what a sample costs, ns (docs/evidence.md).
const FAULT_NS: f64 = 60.0;
const SAMPLE_NS: f64 = 5_000.0;
/// The budget: at once, and for each second of the run.
const BUDGET_NS: f64 = 20e6;
const BUDGET_NS_A_SECOND: f64 = 5e6;
/// What must be left for a focus to begin: for new objects in need, for older ones, and for those that have some samples.
const LEFT_FOR_NEW: f64 = 1e6;
const LEFT_FOR_OLD: f64 = 0.3 * BUDGET_NS;
const LEFT_FOR_SAMPLED: f64 = 0.7 * BUDGET_NS;
/// An object is new for so long.
const NEW_S: f64 = 1.0;
/// An object is given up when its focus has cost this much, and this much for each of its pages, without completing it.
const PATIENCE_NS: f64 = 2e6;
const PATIENCE_NS_A_PAGE: f64 = 2_000.0;
/// Objects of one site, and their pages, that get a focus.
const MOST_OF_SITE: u32 = 8;
const MOST_PAGES_OF_SITE: u64 = 100_000;
/// Threads that a focus distinguishes.
const MOST_THREADS: usize = 128;
/// Objects that are remembered.
const MOST: usize = 512;
/// How often the kernel is asked which pages of an object are there.
const ASK_S: f64 = 0.05;
const ASKED_PAGES: u64 = 16;

/// A large object, and what is known of its first touches.
#[derive(Debug)]
struct Waiting {
    bytes: u64,
    pages: u64,
    object: Id,
    site: Id,
    born_s: f64,
    samples: u32,
    /// Pages that the samples stand for.
    covered: f64,
    /// What had been spent when its focus began.
    begun_ns: Option<f64>,
    /// It was new then, and in need.
    is_first: bool,
    asked_s: f64,
}

/// What the tracker and the kernel know of an object.
pub trait Memory {
    /// Its bytes and its group, if it lives.
    fn alive(&self, birth: Birth) -> Option<(u64, Id)>;

    /// The part of these pages that is there. `None` if the kernel does not say.
    fn present(&self, pid: i32, addresses: &[u64]) -> Option<f64>;
}

pub struct Focus {
    page_bytes: u64,
    /// By process and address.
    waiting: BTreeMap<(i32, u64), Waiting>,
    of_site: HashMap<Id, SiteUse>,
    spent_ns: f64,
}

impl Focus {
    /// `page_bytes`: what one fault places.
    #[must_use]
    pub fn new(page_bytes: u64) -> Self {
        Self { page_bytes: page_bytes.max(1), waiting: BTreeMap::new(), of_site: HashMap::new(), spent_ns: 0.0 }
    }

    /// An object was born, `seconds` after the start.
    pub fn born(&mut self, birth: Birth, seconds: f64, memory: &impl Memory) {
        let Some((bytes, site)) = memory.alive(birth) else { return };
        let pages = bytes / self.page_bytes;
        if bytes > LARGEST_BYTES || pages < SAMPLES || self.is_known(site, pages) {
            return;
        }
        if self.waiting.len() >= MOST {
            let oldest = self.waiting.iter().min_by(|a, b| a.1.born_s.total_cmp(&b.1.born_s)).map(|(&key, _)| key);
            oldest.and_then(|key| self.waiting.remove(&key));
        }
        let (pid, start, object) = (birth.pid, birth.address, birth.object);
        let former: Vec<(i32, u64)> = self.waiting.range((pid, start)..(pid, start.saturating_add(bytes))).map(|(&key, _)| key).collect();
        for key in former {
            self.waiting.remove(&key);
        }
        let waiting = Waiting {
            bytes,
            pages,
            object,
            site,
            born_s: seconds,
            samples: 0,
            covered: 0.0,
            begun_ns: None,
            is_first: false,
            asked_s: -1.0,
        };
        self.waiting.insert((pid, start), waiting);
    }

    /// Enough objects of the site had a focus.
    fn is_known(&self, site: Id, pages: u64) -> bool {
        self.of_site.get(&site).is_some_and(|site| site.is_used_up(pages))
    }

    /// A sample stands for so many faults.
    pub fn sampled(&mut self, pid: i32, address: u64, weight: u64) {
        let Some((&(of, start), waiting)) = self.waiting.range_mut(..=(pid, address)).next_back() else { return };
        if of == pid && address - start < waiting.bytes {
            waiting.samples += 1;
            waiting.covered += weight as f64;
        }
    }

    /// A sample was taken in a focus.
    pub fn charge(&mut self, weight: u64) {
        self.spent_ns += weight as f64 * FAULT_NS + SAMPLE_NS;
    }

    /// Nothing is left for new objects.
    #[must_use]
    pub fn is_exhausted(&self, seconds: f64) -> bool {
        self.left_ns(seconds) < LEFT_FOR_NEW
    }

    fn left_ns(&self, seconds: f64) -> f64 {
        BUDGET_NS + BUDGET_NS_A_SECOND * seconds - self.spent_ns
    }

    /// The longest period that suits the objects that wait, in a storm of so many threads; `None` if none waits, or the budget is spent.
    pub fn period(&mut self, seconds: f64, threads: usize, memory: &impl Memory) -> Option<u64> {
        let (left_ns, spent_ns, page_bytes) = (self.left_ns(seconds), self.spent_ns, self.page_bytes);
        let mut fewest: Option<u64> = None;
        let of_site = &mut self.of_site;
        self.waiting.retain(|&(pid, address), waiting| {
            if memory.alive(Birth { pid, address, object: waiting.object }).is_none_or(|(bytes, _)| bytes != waiting.bytes) {
                return false;
            }
            if left_ns < waiting.must_be_left(seconds) {
                return true;
            }
            if waiting.is_done(seconds, spent_ns, |waiting| memory.present(pid, &waiting.some_pages(address, page_bytes))) {
                return false;
            }
            if waiting.begun_ns.is_none() {
                let known = of_site.entry(waiting.site).or_default();
                if !known.admit(waiting.pages) {
                    return false;
                }
                waiting.is_first = waiting.is_new(seconds);
                waiting.begun_ns = Some(spent_ns);
            }
            fewest = Some(fewest.map_or(waiting.pages, |pages| pages.min(waiting.pages)));
            true
        });
        // The kernel counts each thread's faults for themselves.
        let samples = SAMPLES.max(2 * threads.min(MOST_THREADS) as u64);
        fewest.map(|pages| pages / samples)
    }
}

/// The objects of a site that had a focus, and their pages.
#[derive(Clone, Copy, Debug, Default)]
struct SiteUse {
    objects: u32,
    pages: u64,
}

impl SiteUse {
    fn is_used_up(self, pages: u64) -> bool {
        self.objects >= MOST_OF_SITE || (self.objects > 0 && self.pages + pages > MOST_PAGES_OF_SITE)
    }

    fn admit(&mut self, pages: u64) -> bool {
        let admits = !self.is_used_up(pages);
        if admits {
            *self = Self { objects: self.objects + 1, pages: self.pages + pages };
        }
        admits
    }
}

impl Waiting {
    /// It was born not long ago, and has few samples.
    fn is_new(&self, seconds: f64) -> bool {
        seconds - self.born_s < NEW_S && self.samples < ENOUGH
    }

    /// What must be left of the budget for a focus on this object.
    fn must_be_left(&self, seconds: f64) -> f64 {
        match () {
            () if self.is_first => 0.0,
            () if self.samples >= ENOUGH => LEFT_FOR_SAMPLED,
            () if self.is_new(seconds) => LEFT_FOR_NEW,
            () => LEFT_FOR_OLD,
        }
    }

    /// Whether no focus can add to what is known of it.
    fn is_done(&mut self, seconds: f64, spent_ns: f64, present: impl FnOnce(&Self) -> Option<f64>) -> bool {
        let cost_ns = self.begun_ns.map_or(0.0, |begun| spent_ns - begun);
        if self.covered >= COVERED * self.pages as f64 || cost_ns > PATIENCE_NS + PATIENCE_NS_A_PAGE * self.pages as f64 {
            return true;
        }
        if self.asked_s >= 0.0 && seconds - self.asked_s < ASK_S {
            return false;
        }
        self.asked_s = seconds;
        // At first, pages without a sample are those of a former owner: memory that was freed and allocated again.
        let most = if self.begun_ns.is_none() { self.covered / self.pages as f64 + OLD_MEMORY } else { 1.0 };
        present(self).is_some_and(|part| part >= most)
    }

    /// Some of its pages, at equal distances.
    fn some_pages(&self, address: u64, page_bytes: u64) -> Vec<u64> {
        let step = self.bytes / ASKED_PAGES;
        (0..ASKED_PAGES).map(|i| (address + i * step + step / 2) / page_bytes * page_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const MIB: u64 = 1 << 20;

    /// Objects by address: bytes, site, and the part that is there (`None`: the kernel does not say).
    #[derive(Default)]
    struct Fake {
        objects: HashMap<u64, (u64, Id, Option<f64>)>,
        asked: RefCell<u32>,
    }

    impl Memory for Fake {
        fn alive(&self, birth: Birth) -> Option<(u64, Id)> {
            self.objects.get(&birth.address).map(|&(bytes, site, _)| (bytes, site))
        }

        fn present(&self, _pid: i32, addresses: &[u64]) -> Option<f64> {
            *self.asked.borrow_mut() += 1;
            let of = |(start, object): (&u64, &(u64, Id, Option<f64>))| (addresses[0].wrapping_sub(*start) < object.0).then_some(object.2);
            self.objects.iter().find_map(of)?
        }
    }

    fn birth(address: u64) -> Birth {
        Birth { pid: 1, address, object: 7 }
    }

    /// A focus on objects at multiples of 1 GiB: MiB and site of each, born at 0 s.
    fn focus_on(objects: &[(u64, Id)]) -> (Focus, Fake) {
        let (mut focus, mut memory) = (Focus::new(4096), Fake::default());
        for (i, &(mib, site)) in (1u64..).zip(objects) {
            memory.objects.insert(i << 30, (mib * MIB, site, Some(0.0)));
            focus.born(birth(i << 30), 0.0, &memory);
        }
        (focus, memory)
    }

    /// Check that the period gives the smallest object that waits some 32 samples, and more where there are many threads.
    #[test]
    fn the_period_suits_the_smallest_object() {
        let (mut focus, mut memory) = focus_on(&[(32, 1), (128, 2), (600, 3)]);
        assert_eq!(focus.period(0.0, 4, &memory), Some(32 * 256 / 32));
        assert_eq!(focus.period(0.0, 64, &memory), Some(32 * 256 / 128));
        memory.objects.remove(&(1 << 30));
        assert_eq!(focus.period(0.1, 4, &memory), Some(128 * 256 / 32), "the first has died, the last is too large");
        memory.objects.insert(2 << 30, (64 * MIB, 2, Some(0.0)));
        assert_eq!(focus.period(0.1, 4, &memory), None, "it is another object");
    }

    /// Check that an object is done when its samples stand for most of it, and when the kernel says that its pages are there.
    #[test]
    fn objects_are_done() {
        let (mut focus, mut memory) = focus_on(&[(32, 1), (32, 2)]);
        for address in [(1 << 30) - 1, (1 << 30) + 32 * MIB, 3 << 30] {
            focus.sampled(1, address, 1 << 20);
        }
        focus.sampled(2, 1 << 30, 1 << 20);
        assert!(focus.period(0.0, 4, &memory).is_some());
        for page in 0..48 {
            focus.sampled(1, (1 << 30) + page * 127 * 4096, 127);
        }
        assert_eq!(focus.waiting.len(), 2);
        focus.sampled(1, (1 << 30) + 8191 * 4096, 127);
        focus.period(0.0, 4, &memory);
        assert_eq!(focus.waiting.len(), 1);
        // The kernel is asked from time to time.
        memory.objects.insert(2 << 30, (32 * MIB, 2, Some(1.0)));
        let asked = *memory.asked.borrow();
        assert!(focus.period(0.01, 4, &memory).is_some());
        assert_eq!(*memory.asked.borrow(), asked);
        assert_eq!(focus.period(0.1, 4, &memory), None);
        assert!(focus.waiting.is_empty());
    }

    /// Check that memory of a former owner is left out, unless its pages have samples, and that without an answer all memory is new.
    #[test]
    fn old_memory_gets_no_focus() {
        for (part, covered, has_focus) in [(Some(0.4), 0, true), (Some(0.6), 0, false), (Some(0.6), 2_000, true), (None, 0, true)] {
            let (mut focus, mut memory) = focus_on(&[(32, 1)]);
            memory.objects.insert(1 << 30, (32 * MIB, 1, part));
            focus.sampled(1, 1 << 30, covered);
            assert_eq!(focus.period(0.0, 4, &memory).is_some(), has_focus, "{part:?} {covered}");
        }
    }

    /// Check that the objects of a site that is used again and again get a focus a few times only.
    #[test]
    fn a_site_has_a_limit() {
        for (mib, most) in [(4, MOST_OF_SITE), (128, 3), (512, 1)] {
            let (mut focus, mut memory) = focus_on(&[]);
            let mut focuses = 0;
            for _ in 0..100 {
                memory.objects.insert(1 << 30, (mib * MIB, 1, Some(0.0)));
                focus.born(birth(1 << 30), 0.0, &memory);
                focuses += u32::from(focus.period(0.0, 4, &memory).is_some());
                memory.objects.clear();
                assert_eq!(focus.period(0.0, 4, &memory), None);
            }
            assert_eq!(focuses, most, "{mib} MiB");
        }
    }

    /// Faults of a storm, sampled with this period, until the focus ends. Returns what they cost, ns.
    fn storm(focus: &mut Focus, memory: &Fake, seconds: f64) -> f64 {
        let before = focus.spent_ns;
        while let Some(period) = focus.period(seconds, 4, memory) {
            focus.charge(period);
        }
        focus.spent_ns - before
    }

    /// Check that objects which are never touched end the focus: each after its patience, all together when the budget is spent, and that
    /// those which were there before the storm leave some of it for new ones.
    #[test]
    fn the_budget_holds() {
        let (mut focus, memory) = focus_on(&[(8, 1)]);
        let cost = storm(&mut focus, &memory, 0.0);
        assert!((6.0e6..6.2e6).contains(&cost), "{cost}");

        let sites: Vec<(u64, Id)> = (0..100).map(|site| (32, site)).collect();
        let (mut focus, memory) = focus_on(&sites);
        let cost = storm(&mut focus, &memory, 10.0);
        let all = BUDGET_NS + 10.0 * BUDGET_NS_A_SECOND;
        assert!(cost < all - LEFT_FOR_OLD + 1e5, "{cost}");
        // A new object.
        let (mut focus, mut memory) = focus_on(&sites);
        focus.spent_ns = BUDGET_NS - LEFT_FOR_OLD;
        assert_eq!(focus.period(2.0 * NEW_S, 4, &memory).is_some(), BUDGET_NS_A_SECOND * 2.0 * NEW_S >= 1e5);
        focus.spent_ns = BUDGET_NS + BUDGET_NS_A_SECOND * 2.0 - 2e6;
        assert_eq!(focus.period(2.0, 4, &memory), None);
        memory.objects.insert(200 << 30, (32 * MIB, 200, Some(0.0)));
        focus.born(birth(200 << 30), 2.0, &memory);
        assert!(focus.period(2.0, 4, &memory).is_some());
        let cost = storm(&mut focus, &memory, 2.0);
        assert!((1.9e6..2.1e6).contains(&cost) && focus.is_exhausted(2.0), "{cost}");
    }
}
