//! The kernel's answers about pages: how much of an object is resident, with which page size, and on which node.

use crate::touch_record::BASE_PAGE;
use firsttouch_model::Estimate;
use firsttouch_model::rows::{Id, Object, Page, Profile};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The least number of answers for a resident fraction.
const ENOUGH_ANSWERS: usize = 4;
/// The least number of answers for a bound of the touched part.
const ENOUGH_FOR_A_BOUND: usize = 16;
/// The number of answers examined on each side of an address.
const NEAR: usize = 64;

/// Residency of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resident {
    /// Pages present / pages queried, by the latest answer for each page; None with fewer than four answers.
    pub fraction: Option<f64>,
    /// The most frequent size in the answers, bytes; None if no answer has a size.
    pub page_bytes: Option<u64>,
}

/// All answers, by process and address.
#[derive(Debug, Default)]
pub struct Residents {
    by_process: HashMap<Id, Vec<Page>>,
    /// Some answer has a node: where the kernel refuses that, answers say only which pages are present.
    has_nodes: bool,
    /// Page size to assume if an answer has none, bytes.
    page_bytes: u64,
}

impl Residents {
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let mut by_process: HashMap<Id, Vec<Page>> = HashMap::new();
        for page in &profile.pages {
            by_process.entry(page.process).or_default().push(page.clone());
        }
        for list in by_process.values_mut() {
            list.sort_by_key(|p| (p.address, p.time_ns));
        }
        let machine = &profile.machine;
        let may_be_huge = matches!(machine.transparent_huge_pages.as_str(), "always" | "madvise");
        let has_nodes = profile.pages.iter().any(|page| page.node >= 0);
        Self { by_process, has_nodes, page_bytes: if may_be_huge { machine.huge_page_bytes.max(BASE_PAGE) } else { BASE_PAGE } }
    }

    fn within(&self, object: &Object) -> &[Page] {
        let Some(list) = self.by_process.get(&object.process) else { return &[] };
        let end = object.address.saturating_add(object.bytes);
        let low = list.partition_point(|p| p.address < object.address & !4095);
        let high = list.partition_point(|p| p.address < end).max(low);
        &list[low..high]
    }

    fn alive<'a>(&'a self, object: &'a Object) -> impl DoubleEndedIterator<Item = &'a Page> {
        let died = object.died_ns.unwrap_or(u64::MAX);
        self.within(object).iter().filter(move |p| p.time_ns >= object.born_ns && p.time_ns <= died)
    }

    /// How much of an object is resident, and with which page size.
    #[must_use]
    pub fn of(&self, object: &Object) -> Resident {
        let mut latest: BTreeMap<u64, bool> = BTreeMap::new();
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        for page in self.alive(object) {
            latest.insert(page.address, page.is_present());
            if page.is_present() && page.page_bytes >= 4096 {
                *sizes.entry(page.page_bytes).or_default() += 1;
            }
        }
        let present = latest.values().filter(|&&present| present).count();
        Resident {
            fraction: (latest.len() >= ENOUGH_ANSWERS).then(|| present as f64 / latest.len() as f64),
            page_bytes: sizes.into_iter().max_by_key(|&(_, count)| count).map(|(bytes, _)| bytes),
        }
    }

    /// An upper bound of the touched bytes of an object: the upper end of a 95 % interval of the pages present, of random ones that were
    /// queried. `None` with few answers.
    #[must_use]
    pub fn touched_at_most(&self, object: &Object) -> Option<u64> {
        let latest: BTreeMap<u64, bool> = self.alive(object).map(|page| (page.address / BASE_PAGE, page.is_present())).collect();
        let (queried, present) = (latest.len() as f64, latest.values().filter(|&&present| present).count() as f64);
        let pages = (object.bytes.div_ceil(BASE_PAGE) + 1) as f64;
        let most = if queried + 1.0 >= pages { present } else { (present + 2.0 + 2.0 * (present + 1.0).sqrt()) / queried * pages };
        (latest.len() >= ENOUGH_FOR_A_BOUND).then(|| ((most * BASE_PAGE as f64) as u64).min(object.bytes))
    }

    /// Whether the latest answers for all pages within `reach` bytes that were queried say that no page is present.
    #[must_use]
    pub fn are_absent(&self, object: &Object, address: u64, reach: u64) -> bool {
        let near = self.alive(object).filter(|page| page.address.abs_diff(address) <= reach);
        let latest: BTreeMap<u64, bool> = near.map(|page| (page.address / BASE_PAGE, page.is_present())).collect();
        !latest.is_empty() && latest.values().all(|present| !present)
    }

    /// The size in bytes of the page at `address` during the object's life: from an answer in the same huge page's range, where all pages
    /// have one size, else from the nearest answer.
    #[must_use]
    pub fn page_bytes_near(&self, object: &Object, address: u64, huge_page_bytes: u64) -> Option<u64> {
        let list = self.within(object);
        let died = object.died_ns.unwrap_or(u64::MAX);
        let tells = |p: &&Page| p.is_present() && p.page_bytes >= 4096 && p.time_ns >= object.born_ns && p.time_ns <= died;
        let (below, above) = list.split_at(list.partition_point(|p| p.address <= address));
        let near = [below.iter().rev().take(NEAR).find(tells), above.iter().take(NEAR).find(tells)];
        let block = |address: u64| address / huge_page_bytes.max(4096);
        let distance = |p: &&Page| (block(p.address) != block(address), p.address.abs_diff(address));
        near.into_iter().flatten().min_by_key(distance).map(|p| p.page_bytes)
    }

    /// The node of `address` in `object` at `time`: from the answer for the page itself, else from the nearest answered pages below and
    /// above within `reach` bytes, if they agree. Pages move, so of several answers for a page the latest at or before `time` is used, else
    /// the earliest.
    #[must_use]
    pub fn node(&self, object: &Object, address: u64, time: u64, page_bytes: u64, reach: u64) -> Option<u32> {
        if !self.has_nodes {
            return None;
        }
        let page = |a: u64| a / page_bytes.max(1);
        let list = self.within(object);
        let died = object.died_ns.unwrap_or(u64::MAX);
        let answers = |p: &&Page| p.node >= 0 && p.time_ns >= object.born_ns && p.time_ns <= died;
        let low = list.partition_point(|p| page(p.address) < page(address));
        let high = list.partition_point(|p| page(p.address) <= page(address)).max(low);
        let best = |of_page: &[Page]| {
            let (before, after): (Vec<&Page>, Vec<&Page>) = of_page.iter().filter(answers).partition(|p| p.time_ns <= time);
            let latest = before.into_iter().max_by_key(|p| p.time_ns);
            latest.or_else(|| after.into_iter().min_by_key(|p| p.time_ns)).and_then(|p| u32::try_from(p.node).ok())
        };
        if let Some(node) = best(&list[low..high]) {
            return Some(node);
        }
        let same = |a: &Page, b: &Page| page(a.address) == page(b.address);
        let answered = |of_page: &[Page]| best(of_page).zip(of_page.first().map(|p| p.address.abs_diff(address) <= reach));
        let below = list[..low].chunk_by(same).rev().find_map(answered);
        let above = list[high..].chunk_by(same).find_map(answered);
        match (below, above) {
            (Some((a, true)), Some((b, true))) if a == b => Some(a),
            (Some((only, true)), None) | (None, Some((only, true))) => Some(only),
            _ => None,
        }
    }

    /// Where an object's pages were, and how many moved.
    #[must_use]
    pub fn moves(&self, object: &Object) -> Moves {
        let mut moves = Moves::default();
        let mut whole: BTreeSet<u64> = BTreeSet::new();
        let died = object.died_ns.unwrap_or(u64::MAX);
        let answers = |p: &&Page| p.node >= 0 && p.time_ns >= object.born_ns && p.time_ns <= died;
        for of_page in self.within(object).chunk_by(|a, b| a.address / 4096 == b.address / 4096) {
            let mut list: Vec<&Page> = of_page.iter().filter(answers).collect();
            list.sort_by_key(|p| p.time_ns);
            let (Some(first), Some(last)) = (list.first(), list.last()) else { continue };
            moves.answers += list.len() as u64;
            moves.pages += 1;
            *moves.first.entry(first.node.unsigned_abs()).or_default() += 1;
            *moves.last.entry(last.node.unsigned_abs()).or_default() += 1;
            let changes = list.windows(2).filter(|pair| pair[0].node != pair[1].node).count() as u64;
            if list.len() >= 2 {
                moves.revisited += 1;
                let size = if last.page_bytes >= BASE_PAGE { last.page_bytes } else { self.page_bytes };
                whole.insert(last.address / size * size);
                moves.moved += u64::from(changes > 0);
            }
            // A page counts as returned if it came back to a node that it had left.
            let mut left: Vec<i32> = Vec::new();
            let mut returned = false;
            for pair in list.windows(2).filter(|pair| pair[0].node != pair[1].node) {
                returned |= left.contains(&pair[1].node);
                left.push(pair[0].node);
            }
            moves.returned += u64::from(returned);
        }
        moves.whole = whole.len() as u64;
        moves
    }
}

/// An object's pages over time, according to the kernel's answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Answers with a node, and the number of pages they are about.
    pub answers: u64,
    pub pages: u64,
    /// Pages by node, according to their first and their last answer.
    pub first: BTreeMap<u32, u64>,
    pub last: BTreeMap<u32, u64>,
    /// Pages queried at least twice; how many of them moved to another node, and how many returned to a node they had left.
    pub revisited: u64,
    pub moved: u64,
    pub returned: u64,
    /// The number of pages of the kernel, huge ones included, that contain the pages queried again: parts of a huge page move together.
    pub whole: u64,
}

impl Moves {
    /// A fraction of the pages queried again. The kernel's pages (`whole`) count as independent samples.
    #[must_use]
    pub fn part(&self, pages: u64) -> Option<Estimate> {
        (self.revisited > 0).then(|| {
            let value = pages as f64 / self.revisited as f64;
            Estimate::fraction(value, (value * (1.0 - value) / self.whole.max(1) as f64).sqrt(), self.whole.max(1))
        })
    }

    /// Adds the counts of another object.
    pub fn add(&mut self, other: &Self) {
        self.answers += other.answers;
        self.pages += other.pages;
        self.revisited += other.revisited;
        self.moved += other.moved;
        self.returned += other.returned;
        self.whole += other.whole;
        for (into, from) in [(&mut self.first, &other.first), (&mut self.last, &other.last)] {
            for (&node, &pages) in from {
                *into.entry(node).or_default() += pages;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::ObjectKind;

    /// Check that memory around which no queried page is present counts as absent, by the latest answers, and memory that nobody asked about does not.
    #[test]
    fn memory_without_pages_is_absent() {
        let (call, name, died_ns, site, thread) = (None, None, None, None, None);
        let object =
            Object { id: 1, process: 1, kind: ObjectKind::Heap, call, name, address: 0, bytes: 1 << 20, born_ns: 0, died_ns, site, thread };
        let page = |address: u64, time_ns: u64, node: i32| Page { process: 1, object: Some(1), address, time_ns, node, page_bytes: 4096 };
        let pages = vec![page(0x1_0000, 1, 0), page(0x8_0000, 1, -2), page(0xa_0000, 1, -2), page(0xa_0000, 2, 1)];
        let residents = Residents::new(&Profile { pages, ..Profile::default() });
        let absent = |address: u64| residents.are_absent(&object, address, 0x1_0000);
        assert!(!absent(0x1_0000) && absent(0x8_1000) && !absent(0xa_0000) && !absent(0xf_0000));
        assert!(!residents.are_absent(&object, 0x9_0000, 0x10_0000), "some are present");
    }
}
