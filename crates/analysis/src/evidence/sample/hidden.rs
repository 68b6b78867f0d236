//! Accesses whose addresses the samples do not show.
//!
//! A sample comes behind a load that its thread waited for, and what follows may have overwritten a register of the load's address. So of two operands of one
//! loop, executed equally often, one is seen in every sample and the other in a few. The samples that show an address stand for those that do not: each
//! counts (known + unknown) / known times. What no sample shows is not counted at all.

use super::loops::Loop;
use firsttouch_model::rows::{Id, OperandCount, Profile, SampledAccess, TimerSample};
use hashbrown::HashMap;

/// With fewer samples that show its address, an instruction's count says little: it counts as it was seen.
const LEAST_KNOWN: u64 = 5;

/// How often each seen access counts.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    /// By process and instruction, of those that are not always seen.
    factors: HashMap<(Id, u64), f64>,
    /// The process and the instruction of each site.
    places: HashMap<Id, (Id, u64)>,
    /// By loop that has such instructions: the 8-byte words that a round of it accesses, as the mean of its samples.
    words: HashMap<Loop, f64>,
}

impl Hidden {
    /// `loop_of`: the loop that a sample is in.
    pub fn new(profile: &Profile, accesses: &[&[SampledAccess]], loop_of: impl Fn(&TimerSample) -> Option<Loop>) -> Self {
        let seen = profile.operand_counts.iter().filter(|row| row.known >= LEAST_KNOWN && row.unknown > 0);
        let factor = |row: &OperandCount| (row.known as f64 + row.unknown as f64) / row.known as f64;
        let factors: HashMap<(Id, u64), f64> = seen.map(|row| ((row.process, row.instruction), factor(row))).collect();
        if factors.is_empty() {
            return Self::default();
        }
        let places = profile.sites.iter().filter_map(|(&id, site)| Some((id, (site.process, site.frames.first()?.address)))).collect();
        let mut this = Self { factors, places, words: HashMap::new() };
        let mut sums: HashMap<Loop, (f64, f64, bool)> = HashMap::new();
        for (sample, own) in profile.samples.iter().zip(accesses) {
            if let Some(key) = loop_of(sample) {
                let (words, count, has_hidden) = sums.entry(key).or_default();
                (*words, *count) = (*words + this.seen(sample, own), *count + 1.0);
                *has_hidden |= own.iter().any(|access| this.factor(access) > 1.0);
            }
        }
        let mean = |(key, (words, count, has_hidden)): (Loop, (f64, f64, bool))| has_hidden.then_some((key, words / count));
        this.words = sums.into_iter().filter_map(mean).collect();
        this
    }

    fn seen(&self, sample: &TimerSample, own: &[SampledAccess]) -> f64 {
        sample.elsewhere + own.iter().map(|access| access.words * self.factor(access)).sum::<f64>()
    }

    /// The 8-byte words that a round of the sample's loop accesses, inside and outside of recorded objects.
    pub fn words(&self, key: Option<Loop>, sample: &TimerSample, own: &[SampledAccess]) -> f64 {
        key.and_then(|key| self.words.get(&key)).copied().unwrap_or_else(|| self.seen(sample, own))
    }

    /// How many accesses of its instruction a seen one stands for: 1 or more.
    pub fn factor(&self, access: &SampledAccess) -> f64 {
        let place = access.site.and_then(|site| self.places.get(&site));
        place.and_then(|place| self.factors.get(place)).copied().unwrap_or(1.0)
    }
}
