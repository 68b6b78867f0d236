//! Timer samples: the accesses of the loop that a thread was in at a tick of its CPU clock.
//!
//! A sample stands for the CPU time since the thread's sample before. Within one loop all operands are executed equally often, so their
//! shares are exact. Loops are compared by their rounds a ns (`rates.rs`). Each access becomes what a watch window with one hit is: a draw
//! that stands for rounds x 8-byte words. The accesses of one sample are one round.
//!
//! A loop that writes memory for the first time is sampled just behind its page faults. So a write counts as use only if the page was
//! touched [`SETTLED_NS`] earlier, and if an earlier sweep had passed it (`sweeps.rs`).

mod derived;
mod rates;
mod sweeps;

use super::{ByThread, Counts, Hit, Reader, Samples, Source};
use crate::NotJudgedReason;
use crate::estimator::{Design, Draw};
use crate::homes::Home;
use crate::partition::Sight;
use crate::touch_record::BASE_PAGE;
pub use derived::derived_touches;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Profile, SampledAccess};
use rates::Rates;
use sweeps::sweeps;

/// A write this soon after the first touch of its page belongs to the initialisation.
const SETTLED_NS: u64 = 10_000_000;

/// Samples of registers.
#[derive(Debug)]
pub struct TimerSamples;

impl Source for TimerSamples {
    fn name(&self) -> EvidenceSource {
        EvidenceSource::Sample
    }

    fn read(&self, reader: &Reader<'_>) -> Samples {
        let profile = reader.profile;
        let mut samples = Samples::of_groups(reader.groups.len());
        let accesses = by_sample(profile);
        let rates = Rates::new(profile, &accesses);
        let sweeps = sweeps(profile, &accesses, &rates);
        for ((sample, own), firsts) in profile.samples.iter().zip(&accesses).zip(&sweeps.is_first) {
            let Some(thread) = reader.threads.index(sample.thread) else {
                samples.refused += u64::from(!own.is_empty());
                continue;
            };
            let (rounds, doubt) = rates.rounds(sample, own);
            for (access, &is_first) in own.iter().zip(firsts) {
                let Some((object, group)) = reader.object(access.object) else {
                    samples.refused += 1;
                    continue;
                };
                let this = &profile.objects[object];
                let offset = access.address.checked_sub(this.address).filter(|&offset| offset < this.bytes.max(8));
                let z = rounds * access.words;
                let (Some(offset), true) = (offset, z.is_finite() && z > 0.0) else {
                    samples.refused += 1;
                    continue;
                };
                let settled = if access.kind.writes() { sample.time_ns.saturating_sub(SETTLED_NS) } else { sample.time_ns };
                let node = reader.threads.touch_node(thread, sample.cpu);
                samples.hits[group].push(Hit {
                    draw: samples.draws.len(),
                    object,
                    offset,
                    position: reader.groups[group].position(object, offset),
                    start: settled,
                    end: sample.time_ns,
                    round: sample.id.unsigned_abs(),
                    by_thread: vec![ByThread { thread, rate: 1.0, hits: 1, cut: false, node }],
                    writes: Some(access.kind.writes()),
                    sites: vec![(access.site, 1.0)],
                    home: if is_first { Home::Untouched } else { Home::Unknown },
                });
                samples.draws.push(Draw { group, round: sample.id.unsigned_abs(), z, held_ns: 1.0, rate: 0.0, cut: false, doubt });
            }
        }
        samples
    }

    fn design(&self, reader: &Reader<'_>, draws: Vec<Draw>) -> Design {
        Design::of_rounds(draws, reader.groups.len())
    }

    fn counts(&self) -> Counts {
        Counts::Accesses
    }

    fn sees_initialisation(&self) -> bool {
        true
    }

    fn sight(&self) -> Sight {
        Sight::One
    }

    fn unit(&self, count: u64) -> &'static str {
        if count == 1 { "sample" } else { "samples" }
    }

    fn is_recorded(&self, profile: &Profile) -> bool {
        !profile.samples.is_empty()
    }

    fn has_draws(&self, profile: &Profile) -> bool {
        !profile.samples.is_empty()
    }

    /// All code is sampled alike, so an object without a hit was hardly accessed.
    fn unseen(&self, profile: &Profile, _: u64) -> NotJudgedReason {
        match profile.samples.len() {
            0 => NotJudgedReason::NoAccessEvidence(super::missing(profile, self.name())),
            samples => NotJudgedReason::NoAccess { samples: samples as u64 },
        }
    }
}

/// The accesses of each sample, in the order of the samples.
fn by_sample(profile: &Profile) -> Vec<&[SampledAccess]> {
    // Recorders write the rows in the order of the samples. Rows that are not in order are left out.
    let rows = &profile.sampled_accesses;
    let mut from = 0;
    let own = |sample: &firsttouch_model::rows::TimerSample| {
        while rows.get(from).is_some_and(|row| row.sample < sample.id) {
            from += 1;
        }
        let end = from + rows[from..].iter().take_while(|row| row.sample == sample.id).count();
        let own = &rows[from..end];
        from = end;
        own
    };
    profile.samples.iter().map(own).collect()
}
