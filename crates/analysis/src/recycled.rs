//! Recycled memory: touches that other owners of an object's addresses made before it was allocated there.

use crate::groups::Group;
use crate::lives::Lives;
use crate::spans::Spans;
use crate::touch_record::{Placed, Touch};
use crate::touches::{TouchReader, is_of_thread};
use firsttouch_model::rows::{Id, Object, ObjectKind, Profile};
use hashbrown::HashMap;

/// The objects of each process that ended.
pub(crate) fn ended_objects(profile: &Profile) -> HashMap<Id, Spans<&Object>> {
    let mut ended: HashMap<Id, Spans<&Object>> = HashMap::new();
    for object in profile.objects.iter().filter(|object| object.died_ns.is_some()) {
        ended.entry(object.process).or_default().insert((object.address, object.address.saturating_add(object.bytes)), object);
    }
    ended
}

/// The most steps of a growing allocation that are followed back.
const LONGEST_LINEAGE: usize = 64;

impl TouchReader<'_> {
    /// The touches under former owners. The caller decides whether a former owner belongs to the same group, so that a touch is not
    /// recycled. Without an agent, the birth of a mapping is only known to lie between two looks, and its first touches may have come before:
    /// only a former owner that was seen makes them recycled.
    pub(crate) fn older_touches(&mut self, group: &Group, this: &Object, page_bytes: u64) -> Vec<Placed> {
        let before = self.touches_before(this).into_iter().filter(|t| !self.faults.is_caught(t));
        let own_sites = self.sites_inside(this.site);
        let older = before.filter(|t| !(is_of_thread(self.threads, this, t) && t.site.is_some_and(|site| own_sites.contains(&site))));
        let owners = (this.kind == ObjectKind::Mapping).then(|| self.former_owners(this));
        let is_recycled = |t: &Touch| {
            let owned = |owner: &&Object| {
                let there = t.address.checked_sub(owner.address).is_some_and(|offset| offset < owner.bytes);
                there && owner.born_ns <= t.time && owner.died_ns.is_some_and(|died| t.time <= died)
            };
            owners.as_ref().is_none_or(|owners| owners.iter().any(owned))
        };
        let mut older: Vec<Placed> = older.map(|t| Placed { recycled: is_recycled(&t), ..self.placed(this, t, page_bytes) }).collect();
        if let Some(last) = self.lineage(this).first() {
            older.retain(|placed| placed.offset >= last.bytes);
        } else if matches!(this.call.as_deref(), Some("realloc" | "mremap")) && group.growth {
            older.extend(self.moved_along(group, this, page_bytes));
        }
        older
    }

    /// Adds the touches of the pages that `realloc` moved here.
    pub(crate) fn add_moved(&self, this: &Object, own: &mut Vec<Placed>, page_bytes: u64) {
        let lineage = self.lineage(this);
        own.extend(self.moved_from(&lineage, this, page_bytes));
    }

    /// The objects whose pages `realloc` moved on until they were this one's, the last one first: each ended in the call by the same thread that made
    /// the next one, and so at the same time.
    fn lineage(&self, this: &Object) -> Vec<&Object> {
        if !matches!(this.call.as_deref(), Some("realloc" | "mremap")) {
            return Vec::new();
        }
        let objects = &self.profile.objects;
        let ended = self.ended.get_or_init(|| {
            let ends = objects.iter().enumerate().filter_map(|(at, one)| Some(((one.process, one.thread, one.died_ns?), at)));
            ends.collect()
        });
        let mut lineage: Vec<&Object> = Vec::new();
        let mut next = this;
        while let Some(&at) = ended.get(&(next.process, next.thread, next.born_ns)) {
            let before = &objects[at];
            // A call that made and ended an object at one time would be its own predecessor.
            if before.born_ns >= next.born_ns || before.bytes > next.bytes || lineage.len() == LONGEST_LINEAGE {
                break;
            }
            lineage.push(before);
            next = before;
        }
        lineage
    }

    /// The touches of predecessors, each during its life, at the offset to which the pages moved.
    fn moved_from(&self, lineage: &[&Object], this: &Object, page_bytes: u64) -> Vec<Placed> {
        let of_one = |object: &&Object| {
            let (died, address) = (object.died_ns.unwrap_or(u64::MAX), object.address);
            let own = self.touches_of(object, object.bytes.min(this.bytes), (object.born_ns, died));
            own.into_iter().map(move |touch| Placed { offset: touch.address - address, touch, recycled: false, page_bytes })
        };
        lineage.iter().flat_map(of_one).collect()
    }

    /// The objects that had some of an object's addresses, and died before it was born.
    fn former_owners(&self, this: &Object) -> Vec<&Object> {
        let Some(ended) = self.ended_objects.get_or_init(|| ended_objects(self.profile)).get(&this.process) else { return Vec::new() };
        let overlapping = ended.overlapping((this.address, this.address.saturating_add(this.bytes)));
        overlapping.map(|(_, other)| *other).filter(|other| other.died_ns.is_some_and(|died| died <= this.born_ns)).collect()
    }

    /// Touches by predecessors whose pages a realloc or mremap moved here.
    fn moved_along(&self, group: &Group, this: &Object, page_bytes: u64) -> Vec<Placed> {
        let objects = group.members.iter().rev().map(|&i| &self.profile.objects[i]);
        let earlier = objects.filter(|o| o.born_ns < this.born_ns && o.address != this.address).take(64);
        let mut moved = Vec::new();
        for object in earlier {
            let own = self.touches_of(object, object.bytes.min(this.bytes), (object.born_ns, this.born_ns));
            moved.extend(own.into_iter().map(|touch| Placed {
                offset: touch.address - object.address,
                touch,
                recycled: false,
                page_bytes,
            }));
        }
        moved
    }

    /// Whether an object of the group was alive at the touched address when it was touched.
    pub(crate) fn owned_by_group(&mut self, group: &Group, touch: &Touch) -> bool {
        let lives = match self.lives.take() {
            Some((representative, lives)) if representative == group.representative => lives,
            _ => Lives::new(group, &self.profile.objects),
        };
        let owned = lives.any_at(touch.address, touch.time);
        self.lives = Some((group.representative, lives));
        owned
    }
}
