//! First touches from sweeps, where the kernel reports no page faults (perf is forbidden).
//!
//! The first sweep over a part of an object touches its pages if it writes them, and if nothing can have touched them before without being
//! sampled. So an object counts only if
//! - it is so large that touching it takes several ticks ([`LEAST_BYTES`]), because shorter loops may fall between two samples;
//! - most of it lies between two samples in one entry of a loop that writes it, and no sweep had passed it before. Where the first sweeps read, something else had filled the memory: the kernel, for `read()`.
//!
//! Each sweep becomes records at equal distances, which stand for the pages between them.

use super::rates::Rates;
use super::sweeps::{Sweep, sweeps};
use super::{BASE_PAGE, by_sample};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{FirstTouch, Id, Profile};
use std::collections::{BTreeMap, HashMap};

/// Touching this many bytes takes at least two ticks, as the kernel clears at most about 2 GB a second for a thread.
const LEAST_BYTES: u64 = 16 << 20;
/// The first sweeps that write must cover this part of the object.
const LEAST_COVERED: f64 = 0.5;
/// Records of an object.
const RECORDS: u64 = 256;

/// The first touches that the samples show, if the profile has none of its own and could not have any.
#[must_use]
pub fn derived_touches(profile: &Profile) -> Option<Vec<FirstTouch>> {
    let is_missing = profile.evidence_of(&EvidenceSource::Touch).is_some_and(|evidence| !evidence.available);
    if !is_missing || !profile.first_touches.is_empty() || profile.samples.is_empty() || profile.meta.is_attached() {
        return None;
    }
    let accesses = by_sample(profile);
    let rates = Rates::new(profile, &accesses);
    let mut by_object: BTreeMap<Id, Vec<Sweep>> = BTreeMap::new();
    for sweep in sweeps(profile, &accesses, &rates).first {
        by_object.entry(sweep.object).or_default().push(sweep);
    }
    let objects: HashMap<Id, (u64, Id)> = profile.objects.iter().map(|object| (object.id, (object.bytes, object.process))).collect();
    let mut records = Vec::new();
    for (id, swept) in by_object {
        let Some(&(bytes, process)) = objects.get(&id).filter(|(bytes, _)| *bytes >= LEAST_BYTES) else { continue };
        let covered: u64 = swept.iter().filter(|sweep| sweep.writes && sweep.is_certain).map(|sweep| sweep.end - sweep.start).sum();
        if (covered as f64) < LEAST_COVERED * bytes as f64 {
            continue;
        }
        let step = (bytes / RECORDS).max(BASE_PAGE);
        for sweep in swept.iter().filter(|sweep| sweep.writes && sweep.is_certain) {
            records.extend(touches_of(sweep, process, step));
        }
    }
    for (number, record) in records.iter_mut().enumerate() {
        record.id = Id::try_from(number).unwrap_or(Id::MAX) + 1;
    }
    (!records.is_empty()).then_some(records)
}

fn touches_of(sweep: &Sweep, process: Id, step: u64) -> impl Iterator<Item = FirstTouch> + '_ {
    let length = sweep.end - sweep.start;
    let count = length.div_ceil(step).max(1);
    (0..count).map(move |i| FirstTouch {
        id: 0,
        process,
        time_ns: sweep.time_ns,
        thread: sweep.thread,
        cpu: sweep.cpu,
        address: sweep.start + length / count * i + length / count / 2,
        weight: length as f64 / count as f64 / BASE_PAGE as f64,
        by_kernel: false,
        site: sweep.site,
        mapped_bytes: None,
        node: None,
    })
}
