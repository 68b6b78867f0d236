//! Which words a round watches.

use super::debug_registers::SLOTS;
use super::draw::{Positions, SamplingUnit, draw_objects, word_at};
use super::hot::HotGroups;
use super::pace::Pace;
use crate::random::Random;
use crate::track::Tracker;
use crate::track::processes::LiveProcess;
use firsttouch_model::rows::Id;
use hashbrown::HashMap;

/// Objects considered when a round is drawn. If there are more, a random part stands for all.
const CONSIDERED: usize = 4096;

/// One slot of a round in one process.
#[derive(Clone, Copy)]
pub struct Watchpoint {
    pub object: Id,
    /// See [`crate::track::live_objects::LiveObject::group`].
    pub group: Id,
    pub start: u64,
    pub bytes: u64,
    pub address: u64,
    pub inclusion: f64,
    /// A second word of a hot object, watched only to measure the cost of a trap there.
    pub is_companion: bool,
}

/// The watchpoints of a round in one process.
pub type Slots = [Option<Watchpoint>; SLOTS];

/// Draws words. Successive words of a group's objects spread evenly.
#[derive(Default)]
pub struct Selector {
    positions: HashMap<Id, Positions>,
}

impl Selector {
    /// Draws the words of the next round, separately for each process, by pid. `all_accesses`: to all objects, a ns.
    pub fn draw(
        &mut self,
        tracker: &mut Tracker,
        (pace, hot): (&Pace, &HotGroups),
        random: &mut Random,
        round_ns: f64,
        all_accesses: f64,
    ) -> HashMap<i32, Slots> {
        let page_bytes = tracker.scope.page_bytes;
        let mut rounds = HashMap::new();
        for (&pid, process) in &mut tracker.processes.live {
            let alive = process.objects.by_address.len();
            let keep = if alive > CONSIDERED { CONSIDERED as f64 / alive as f64 } else { 1.0 };
            let mut units = Vec::with_capacity(alive.min(CONSIDERED * 2));
            let mut group_bytes: HashMap<Id, f64> = HashMap::new();
            let mut groups = Vec::with_capacity(units.capacity());
            for (&address, object) in &process.objects.by_address {
                if object.is_sampled() && (keep >= 1.0 || random.unit() < keep) {
                    *group_bytes.entry(object.group()).or_default() += object.bytes as f64 / keep;
                    groups.push(object.group());
                    units.push(SamplingUnit { object: object.id, address, bytes: object.bytes, weight: 0.0 });
                }
            }
            // Objects of a group share its weight. Sample them uniformly by byte.
            let weights: HashMap<Id, f64> = group_bytes
                .into_iter()
                .map(|(group, bytes)| (group, pace.weight(group, bytes as u64, all_accesses, round_ns) / bytes))
                .collect();
            for (unit, group) in units.iter_mut().zip(&groups) {
                unit.weight = weights.get(group).copied().unwrap_or(0.0) * unit.bytes as f64;
            }
            let mut slots: Slots = [None; SLOTS];
            for (slot, draw) in draw_objects(random, &units, SLOTS).into_iter().enumerate() {
                let (unit, group) = (&units[draw.unit], groups[draw.unit]);
                let Some(address) = self.word(process, unit, group, random, page_bytes) else { continue };
                if slots.iter().flatten().any(|d| d.address == address) {
                    continue;
                }
                slots[slot] = Some(Watchpoint {
                    object: unit.object,
                    group,
                    start: unit.address,
                    bytes: unit.bytes,
                    address,
                    inclusion: draw.inclusion * keep,
                    is_companion: false,
                });
            }
            add_companion(&mut slots, hot, random);
            if slots.iter().any(Option::is_some) {
                rounds.insert(pid, slots);
            }
        }
        rounds
    }

    /// The next word of an object, moved to a page whose first toucher is known if the neighbouring pages have several.
    fn word(&mut self, process: &mut LiveProcess, unit: &SamplingUnit, group: Id, random: &mut Random, page_bytes: u64) -> Option<u64> {
        let object = process.objects.by_address.get_mut(&unit.address)?;
        let position = self.positions.entry(group).or_insert_with(|| Positions::new(random)).advance();
        let word = word_at(unit.address, unit.bytes, position)?;
        object.has_evidence = true;
        let snapped = process.touched.snap(word, unit.address, unit.bytes, page_bytes);
        // A huge page was placed as a whole: no need to move.
        let stays = snapped != word && process.page_sizes.at(snapped) > page_bytes;
        Some(if stays { word } else { snapped })
    }
}

/// In half of the rounds that draw a hot object, lends a slot of another object to a second word of it. Which window is lost does not
/// depend on what it would have seen.
fn add_companion(slots: &mut Slots, groups: &HotGroups, random: &mut Random) {
    let Some(hot) = slots.iter().flatten().find(|d| groups.is_hot(d.group)).copied() else { return };
    if random.unit() < 0.5 || slots.iter().flatten().filter(|d| d.object == hot.object).count() > 1 {
        return;
    }
    // Half an object away: far from the first word in any sweep.
    let offset = (hot.address - hot.start + hot.bytes / 2) % hot.bytes.max(1);
    let address = (hot.start + offset) & !7;
    let lent = (random.unit() * SLOTS as f64) as usize;
    let fits = address >= hot.start && address + 8 <= hot.start + hot.bytes;
    if fits && slots[lent].is_none_or(|d| d.address != hot.address) && slots.iter().flatten().all(|d| d.address != address) {
        slots[lent] = Some(Watchpoint { address, is_companion: true, ..hot });
    }
}

/// Live bytes of each group; of many objects some stand for all.
pub fn live_bytes(tracker: &Tracker) -> HashMap<Id, u64> {
    let mut groups = HashMap::new();
    for process in tracker.processes.live.values() {
        let step = process.objects.by_address.len().div_ceil(CONSIDERED).max(1);
        for object in process.objects.by_address.values().filter(|o| o.is_sampled()).step_by(step) {
            *groups.entry(object.group()).or_default() += object.bytes * step as u64;
        }
    }
    groups
}
