//! Accesses whose addresses the samples do not show.
//!
//! A sample comes behind a load that its thread waited for, and what follows may have overwritten a register of the load's address. So of two operands of one
//! loop, executed equally often, one is seen in every sample and the other in a few. The samples that show an address stand for those that do not: each
//! counts (known + unknown) / known times. Accesses that no sample shows, or too few, may be to any object: shares have an interval that contains what each of
//! them would be if all of these accesses were its own, or none (`missing`).

use super::loops::Loop;
use crate::spans::Spans;
use firsttouch_model::rows::{Id, OperandCount, Profile, SampleState, SampledAccess, TimerSample};
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
    /// By loop: the accesses of a round whose addresses too few samples show.
    missing: HashMap<Loop, f64>,
}

impl Hidden {
    /// `loop_of`: the loop that a sample is in.
    pub fn new(profile: &Profile, accesses: &[&[SampledAccess]], loop_of: impl Fn(&TimerSample) -> Option<Loop>) -> Self {
        if profile.operand_counts.is_empty() {
            return Self::default();
        }
        let seen = profile.operand_counts.iter().filter(|row| row.known >= LEAST_KNOWN && row.unknown > 0);
        let factor = |row: &OperandCount| (row.known as f64 + row.unknown as f64) / row.known as f64;
        let factors: HashMap<(Id, u64), f64> = seen.map(|row| ((row.process, row.instruction), factor(row))).collect();
        let places = profile.sites.iter().filter_map(|(&id, site)| Some((id, (site.process, site.frames.first()?.address)))).collect();
        let mut this = Self { factors, places, ..Self::default() };
        this.missing = this.missing_in(profile, accesses, &loop_of);
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

    /// By loop: the accesses of a round whose addresses fewer than [`LEAST_KNOWN`] samples show. The instructions of a loop lie between those of it at which samples
    /// and their accesses are; those of a loop in another one count for the inner one.
    fn missing_in(
        &self,
        profile: &Profile,
        accesses: &[&[SampledAccess]],
        loop_of: impl Fn(&TimerSample) -> Option<Loop>,
    ) -> HashMap<Loop, f64> {
        let mut spans: HashMap<(Id, Loop), (u64, u64)> = HashMap::new();
        // Samples that count operands, and by loop the largest count of one of its operands: a live view has the samples of its window only.
        let mut samples: HashMap<Loop, u64> = HashMap::new();
        for (sample, own) in profile.samples.iter().zip(accesses) {
            let Some(key) = loop_of(sample) else { continue };
            *samples.entry(key).or_default() += u64::from(sample.weight > 0.0 && sample.state == SampleState::Computing);
            if own.is_empty() {
                continue;
            }
            let sites = own.iter().filter_map(|access| access.site).chain(sample.site);
            for (process, instruction) in sites.filter_map(|site| self.places.get(&site)) {
                let span = spans.entry((*process, key)).or_insert((*instruction, *instruction));
                *span = (span.0.min(*instruction), span.1.max(*instruction));
            }
        }
        let mut spans_of: HashMap<Id, Spans<(u64, Loop)>> = HashMap::new();
        for ((process, key), (low, high)) in spans {
            spans_of.entry(process).or_default().insert((low, high.saturating_add(1)), (high - low, key));
        }
        let loop_around = |row: &OperandCount| {
            let around = spans_of.get(&row.process)?.overlapping((row.instruction, row.instruction.saturating_add(1)));
            around.map(|(_, one)| *one).min().map(|(_, key)| key)
        };
        let mut missing: HashMap<Loop, f64> = HashMap::new();
        for row in &profile.operand_counts {
            let Some(key) = loop_around(row) else { continue };
            let all = samples.entry(key).or_default();
            *all = (*all).max(row.known.saturating_add(row.unknown));
            if row.known < LEAST_KNOWN && row.unknown >= LEAST_KNOWN {
                *missing.entry(key).or_default() += row.unknown as f64;
            }
        }
        missing.iter_mut().for_each(|(key, unknown)| *unknown /= samples[key].max(1) as f64);
        missing
    }

    /// The accesses of a round of this loop whose addresses too few samples show.
    pub fn missing(&self, key: Option<Loop>) -> f64 {
        key.and_then(|key| self.missing.get(&key)).copied().unwrap_or(0.0)
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
