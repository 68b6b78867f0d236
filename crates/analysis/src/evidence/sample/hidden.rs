//! Accesses whose addresses the samples do not show.
//!
//! A sample comes behind a load that its thread waited for, and what follows may have overwritten a register of the load's address. So of two operands of one
//! loop, executed equally often, one is seen in every sample and the other in a few. The samples that show an address stand for those that do not: each
//! counts (known + unknown) / known times. What no sample shows is not counted at all.

use firsttouch_model::rows::{Id, OperandCount, Profile, SampledAccess, TimerSample};
use hashbrown::HashMap;

/// How often each seen access counts.
#[derive(Debug, Default)]
pub struct Hidden {
    /// By process and instruction, of those that are not always seen.
    factors: HashMap<(Id, u64), f64>,
    /// The process and the instruction of each site.
    places: HashMap<Id, (Id, u64)>,
    /// By the end of a loop: the 8-byte words that a round of it accesses, as the mean of its samples.
    words: HashMap<u64, f64>,
}

impl Hidden {
    #[must_use]
    pub fn new(profile: &Profile, accesses: &[&[SampledAccess]]) -> Self {
        let seen = profile.operand_counts.iter().filter(|row| row.known > 0 && row.unknown > 0);
        let factor = |row: &OperandCount| (row.known as f64 + row.unknown as f64) / row.known as f64;
        let factors: HashMap<(Id, u64), f64> = seen.map(|row| ((row.process, row.instruction), factor(row))).collect();
        let place = |(&id, site): (&Id, &firsttouch_model::rows::Site)| Some((id, (site.process, site.frames.first()?.address)));
        let places = if factors.is_empty() { HashMap::new() } else { profile.sites.iter().filter_map(place).collect() };
        let mut this = Self { factors, places, words: HashMap::new() };
        if !this.factors.is_empty() {
            let mut sums: HashMap<u64, (f64, f64)> = HashMap::new();
            for (sample, own) in profile.samples.iter().zip(accesses) {
                if let Some(around) = &sample.around {
                    let (words, count) = sums.entry(around.end).or_default();
                    (*words, *count) = (*words + this.seen(sample, own), *count + 1.0);
                }
            }
            this.words = sums.into_iter().map(|(end, (words, count))| (end, words / count)).collect();
        }
        this
    }

    fn seen(&self, sample: &TimerSample, own: &[SampledAccess]) -> f64 {
        sample.elsewhere + own.iter().map(|access| access.words * self.factor(access)).sum::<f64>()
    }

    /// The 8-byte words that a round of the sample's loop accesses.
    #[must_use]
    pub fn words(&self, sample: &TimerSample, own: &[SampledAccess]) -> f64 {
        let of_loop = sample.around.as_ref().and_then(|around| self.words.get(&around.end)).copied();
        of_loop.unwrap_or_else(|| self.seen(sample, own))
    }

    /// How many accesses of its instruction a seen one stands for: 1 or more.
    #[must_use]
    pub fn factor(&self, access: &SampledAccess) -> f64 {
        let place = access.site.and_then(|site| self.places.get(&site));
        place.and_then(|place| self.factors.get(place)).copied().unwrap_or(1.0)
    }
}
