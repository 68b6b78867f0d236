//! First touches, and which of them made the pages of an object.
//!
//! Touches are looked up by address, whoever owned it then: memory that was freed and handed out again keeps the pages
//! its former owner touched. With cover = sum of weight x page bytes:
//!
//! - touches after the object's birth are its own; so are older ones made inside the allocating call (calloc, realloc),
//!   or while another object of its group was alive there;
//! - when its own cover less than half of what is resident of it (of its size, where residency is unknown), the youngest
//!   older ones are added until all is covered, and marked as *recycled*;
//! - for `realloc` and `mremap`, pages move along: touches of the predecessors count at the same offset;
//! - faults that the kernel's balancing made, or that found a page being moved, placed nothing (`faults.rs`); of several others
//!   of one page the last one placed it (`generations.rs`).
//!
//! Records stand for different numbers of faults (the sampling period in force), and a fault on a huge page places all of
//! it: sums are over bytes, weight x size of the page.

use crate::faults::Faults;
use crate::generations::History;
use crate::groups::{Group, PYTHON};
use crate::residents::Residents;
use crate::threads::Threads;
use firsttouch_model::rows::{Frame, Id, Object, ObjectKind, Profile};
use std::collections::HashMap;

/// Pages of this size are what the kernel hands out unless it says otherwise, bytes.
pub const BASE_PAGE: u64 = 4096;

/// One sampled first touch by a known thread.
#[derive(Clone, Debug)]
pub struct Touch {
    pub time: u64,
    /// Thread index.
    pub thread: usize,
    /// Where the page went: as the kernel said right after, on the recorded machine; else the node of the thread.
    pub node: u32,
    /// The node that the thread ran on.
    pub cpu_node: u32,
    pub address: u64,
    /// Page faults it stands for.
    pub weight: f64,
    pub by_kernel: bool,
    pub site: Option<Id>,
    /// Size of the page that was there when the access faulted; 0 for none.
    pub mapped: Option<u64>,
    /// Whether the page had a node right after the fault: a read of fresh memory gets the zero page, which has none.
    pub found: Option<bool>,
}

/// All touches, by process and address.
#[derive(Debug, Default)]
pub struct TouchIndex {
    by_process: HashMap<Id, Vec<Touch>>,
    /// Records that name no known thread, or a weight that is not a positive number.
    pub refused: u64,
}

impl TouchIndex {
    #[must_use]
    pub fn new(profile: &Profile, threads: &Threads) -> Self {
        let mut index = Self::default();
        for touch in &profile.first_touches {
            let Some(thread) = threads.index(touch.thread).filter(|_| touch.weight.is_finite() && touch.weight > 0.0) else {
                index.refused += 1;
                continue;
            };
            let cpu_node = threads.touch_node(thread, touch.cpu);
            let went = touch.node.and_then(|node| u32::try_from(node).ok()).filter(|_| threads.real);
            index.by_process.entry(touch.process).or_default().push(Touch {
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
            });
        }
        for list in index.by_process.values_mut() {
            list.sort_by_key(|t| (t.address, t.time));
        }
        index
    }

    /// Touches in `[address, address + bytes)`, by address.
    #[must_use]
    pub fn within(&self, process: Id, address: u64, bytes: u64) -> &[Touch] {
        let Some(list) = self.by_process.get(&process) else { return &[] };
        let end = address.saturating_add(bytes);
        let low = list.partition_point(|t| t.address < address);
        let high = list.partition_point(|t| t.address < end).max(low);
        &list[low..high]
    }

    /// The longest sampling period seen in a process during an object's life (1 without touches).
    #[must_use]
    pub fn longest_period(&self, object: &Object) -> f64 {
        let Some(list) = self.by_process.get(&object.process) else { return 1.0 };
        let died = object.died_ns.unwrap_or(u64::MAX);
        let longest = |from: u64, to: u64| list.iter().filter(|t| from <= t.time && t.time <= to).map(|t| t.weight).fold(0.0, f64::max);
        let alive = longest(object.born_ns, died);
        if alive > 0.0 { alive } else { longest(0, u64::MAX).max(1.0) }
    }
}

/// A touch at its place in an object.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Offset into the object, bytes.
    pub offset: u64,
    pub touch: Touch,
    /// Made under a former owner.
    pub recycled: bool,
    /// Size of the page it made.
    pub page_bytes: u64,
}

impl Placed {
    /// Bytes of the pages it stands for.
    #[must_use]
    pub fn covers(&self) -> f64 {
        self.touch.weight * self.page_bytes as f64
    }

    /// Base pages it stands for.
    #[must_use]
    pub fn pages(&self) -> f64 {
        self.covers() / BASE_PAGE as f64
    }
}

/// What is known of how an object's pages came to be.
#[derive(Clone, Debug)]
pub struct ObjectTouches {
    pub address: u64,
    pub bytes: u64,
    pub page_bytes: u64,
    /// By offset, then time.
    pub placed: Vec<Placed>,
    /// Accesses that the kernel caught on pages already placed.
    pub hints: Vec<Placed>,
    /// What was there before, where the memory was initialised again and again.
    pub history: Option<History>,
    /// Most resident pages have no record: the kernel touched them, for this thread (index) where one stands out.
    pub kernel: Option<Option<usize>>,
    /// Base pages the kernel touched by derivation (resident less recorded).
    pub kernel_pages: f64,
    /// Records of touches were lost, and those that are left stand for less than half of the resident pages.
    pub incomplete: bool,
}

impl ObjectTouches {
    /// Whether the records are enough to tell who touched it: at least 8, or at least half of all pages one by one; or
    /// the kernel touched it for a known thread.
    #[must_use]
    pub fn enough(&self, records: usize, pages: u64) -> bool {
        records >= 8 || (records > 0 && records as u64 >= pages.div_ceil(2)) || matches!(self.kernel, Some(Some(_)))
    }
}

/// Builds [`ObjectTouches`] for the members of groups.
pub struct TouchReader<'a> {
    pub profile: &'a Profile,
    pub threads: &'a Threads,
    pub index: &'a TouchIndex,
    pub residents: &'a Residents,
    pub faults: &'a Faults,
    /// Memory of decisions "this touch was made while the group owned the address", by (group's first object, address, time).
    pub owned: HashMap<(usize, u64, u64), bool>,
}

impl TouchReader<'_> {
    /// What is known of the member `object` (index into `profile.objects`) of `group`.
    pub fn read(&mut self, group: &Group, object: usize) -> ObjectTouches {
        let profile = self.profile;
        let this = &profile.objects[object];
        let resident = self.residents.of(this);
        let all = self.index.within(this.process, this.address, this.bytes);
        let died = this.died_ns.unwrap_or(u64::MAX).max(this.born_ns);
        let page_bytes = resident.page_bytes.unwrap_or_else(|| guess_page_bytes(profile, this, all));
        let (mut own, mut older) = (Vec::new(), Vec::new());
        for touch in all.iter().filter(|t| t.time <= died) {
            let there = touch.mapped.filter(|&bytes| bytes >= BASE_PAGE);
            let near = || self.residents.page_bytes_near(this, touch.address, profile.machine.huge_page_bytes);
            let size = there.or_else(near).unwrap_or(page_bytes);
            let placed = Placed { offset: touch.address - this.address, touch: touch.clone(), recycled: false, page_bytes: size };
            if touch.time >= this.born_ns || self.in_allocating_call(this, touch) {
                own.push(placed);
            } else if !self.faults.is_caught(touch) {
                let recycled = !self.owned_by_group(group, touch);
                older.push(Placed { recycled, ..placed });
            }
        }
        if matches!(this.call.as_deref(), Some("realloc" | "mremap")) && group.growth {
            older.extend(self.moved_along(group, this, page_bytes));
        }
        let hints = self.faults.take_hints(this, &mut own);
        // Where an agent tells births and deaths, each life is an object of its own.
        let history = (this.kind == ObjectKind::Mapping).then(|| History::new(&own, this.bytes)).flatten();
        self.faults.keep_placing(this, &mut own);
        let page = page_bytes as f64;
        let cover = |list: &[Placed]| list.iter().map(Placed::covers).sum::<f64>();
        let wanted = resident.fraction.map_or(this.bytes as f64, |f| f * this.bytes as f64).max(page.min(this.bytes as f64));
        let mut covered = cover(&own);
        if covered < wanted / 2.0 {
            older.sort_by_key(|p| std::cmp::Reverse(p.touch.time));
            for placed in older {
                if covered >= wanted {
                    break;
                }
                covered += placed.covers();
                own.push(placed);
            }
        }
        own.sort_by_key(|p| (p.offset, p.touch.time));
        let mut result = ObjectTouches {
            address: this.address,
            bytes: this.bytes,
            page_bytes,
            placed: own,
            hints,
            history,
            kernel: None,
            kernel_pages: 0.0,
            incomplete: false,
        };
        self.note_losses(this, &resident, &mut result);
        self.derive_kernel(this, &resident, &mut result);
        result
    }

    /// Touches by predecessors whose pages a realloc or mremap moved here.
    fn moved_along(&self, group: &Group, this: &Object, page_bytes: u64) -> Vec<Placed> {
        let objects = group.members.iter().rev().map(|&i| &self.profile.objects[i]);
        let earlier = objects.filter(|o| o.born_ns < this.born_ns && o.address != this.address).take(64);
        let mut moved = Vec::new();
        for object in earlier {
            for touch in self.index.within(object.process, object.address, object.bytes.min(this.bytes)) {
                if touch.time >= object.born_ns && touch.time <= this.born_ns {
                    moved.push(Placed { offset: touch.address - object.address, touch: touch.clone(), recycled: false, page_bytes });
                }
            }
        }
        moved
    }

    /// Whether the touch's stack runs through the call that made the object: then it was made inside it.
    fn in_allocating_call(&self, object: &Object, touch: &Touch) -> bool {
        let frames = |id: Option<Id>| id.and_then(|id| self.profile.sites.get(&id)).map(|site| &site.frames);
        let (Some(allocation), Some(stack)) = (frames(object.site), frames(touch.site)) else { return false };
        let of_thread = object.thread.and_then(|id| self.threads.index(id)) == Some(touch.thread);
        // Python's frames have no addresses, and stacks of touches may lack them.
        let native = |frames: &[Frame]| frames.iter().filter(|f| f.module.as_deref() != Some(PYTHON)).map(|f| f.address).collect();
        let (allocation, stack): (Vec<u64>, Vec<u64>) = (native(allocation), native(stack));
        let mut pairs = allocation.iter().rev().zip(stack.iter().rev());
        of_thread && !allocation.is_empty() && stack.len() > allocation.len() && pairs.all(|(a, b)| a == b)
    }

    /// Whether an object of the group was alive at the touched address when it was touched.
    fn owned_by_group(&mut self, group: &Group, touch: &Touch) -> bool {
        let key = (group.representative, touch.address, touch.time);
        let profile = self.profile;
        *self.owned.entry(key).or_insert_with(|| {
            group.members.iter().map(|&i| &profile.objects[i]).any(|o| {
                let alive = o.born_ns <= touch.time && o.died_ns.is_none_or(|died| touch.time < died);
                alive && touch.address.checked_sub(o.address).is_some_and(|offset| offset < o.bytes)
            })
        })
    }

    /// Records are missing when they stand for less than half of the resident pages and at least half of the rest could be among
    /// those that were lost. Losses come in bursts, so what is left may be one thread's part only.
    fn note_losses(&self, object: &Object, resident: &crate::residents::Resident, result: &mut ObjectTouches) {
        let lost: f64 = self.profile.lost.iter().filter(|l| l.source == "touch").map(|l| l.count as f64).sum();
        if let Some(fraction) = resident.fraction.filter(|_| lost > 0.0) {
            let present = fraction * object.bytes as f64;
            let recorded: f64 = result.placed.iter().map(Placed::covers).sum();
            let could_be_lost = lost * self.index.longest_period(object) * result.page_bytes as f64;
            result.incomplete = recorded < present / 2.0 && could_be_lost >= (present - recorded) / 2.0;
        }
    }

    /// The kernel touched the pages when most resident ones have no record though enough of them would have been sampled.
    ///
    /// With N resident pages and sampling period p (the longest in the object's life), N / p records are expected had the
    /// program touched them. Rule: launched under the profiler, touch evidence available but not for faults in the kernel
    /// (its detail says so), recorded pages < N / 2 also if the records that were lost are added, and N / p >= 8 (or p = 1
    /// and N >= 2). The thread is the one with at least 80 % of all faults taken in the kernel and at least half as many as
    /// are missing.
    fn derive_kernel(&self, object: &Object, resident: &crate::residents::Resident, result: &mut ObjectTouches) {
        let Some(fraction) = resident.fraction else { return };
        let evidence = self.profile.evidence.iter().find(|e| e.source == "touch");
        let attached = self.profile.meta.is_attached();
        // Without a complaint, faults in the kernel were seen, and those that were not are something else.
        if attached || evidence.is_some_and(|e| !e.available || e.detail.is_empty()) {
            return;
        }
        let huge = self.profile.machine.huge_page_bytes;
        let may_be_huge = resident.page_bytes.is_none() && huge > BASE_PAGE && self.profile.machine.transparent_huge_pages == "always";
        let unit = if may_be_huge && object.bytes >= huge.saturating_mul(2) { huge } else { result.page_bytes.max(1) };
        let pages = fraction * object.bytes as f64 / unit as f64;
        let period = self.index.longest_period(object);
        let recorded = result.placed.iter().map(|p| p.touch.weight * p.page_bytes.max(unit) as f64 / unit as f64).sum::<f64>();
        let lost = self.profile.lost.iter().filter(|l| l.source == "touch").map(|l| l.count as f64 * period).sum::<f64>();
        if recorded + lost >= pages / 2.0 || !(pages / period >= 8.0 || (period <= 1.0 && pages >= 2.0)) {
            return;
        }
        let missing = pages - recorded;
        let threads = self.threads.list.iter().enumerate().filter(|(_, t)| t.process == object.process);
        let excess: Vec<(usize, f64)> = threads.map(|(i, t)| (i, t.kernel_faults.unwrap_or(0) as f64)).collect();
        let total: f64 = excess.iter().map(|(_, faults)| faults).sum();
        let most = excess.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        let thread = match most {
            _ if excess.len() == 1 => most.map(|(thread, _)| thread),
            Some((thread, faults)) if faults >= 0.8 * total && faults >= 0.5 * missing => Some(thread),
            _ => None,
        };
        result.kernel = Some(thread);
        result.kernel_pages = missing * unit as f64 / BASE_PAGE as f64;
    }
}

/// Page size where the kernel did not tell: huge when the records are never closer than a huge page and stand for at
/// least half of the object in huge pages, but for less than a quarter of it in base pages.
fn guess_page_bytes(profile: &Profile, object: &Object, touches: &[Touch]) -> u64 {
    let base = if profile.machine.page_bytes == 0 { BASE_PAGE } else { profile.machine.page_bytes };
    let huge = profile.machine.huge_page_bytes;
    if huge <= base || object.bytes < huge || profile.machine.transparent_huge_pages == "never" || touches.is_empty() {
        return base;
    }
    let alive: Vec<&Touch> = touches.iter().filter(|t| t.time >= object.born_ns).collect();
    let list: Vec<&Touch> = if alive.is_empty() { touches.iter().collect() } else { alive };
    let apart = list.windows(2).all(|pair| pair[0].address / huge != pair[1].address / huge);
    let weight: f64 = list.iter().map(|t| t.weight).sum();
    let bytes = object.bytes as f64;
    if apart && weight * base as f64 * 4.0 < bytes && weight * huge as f64 * 2.0 >= bytes { huge } else { base }
}
