//! Timer samples: the accesses of the loop that a thread was in at a tick of its CPU clock.
//!
//! A sample stands for the CPU time since the thread's sample before. Within one loop all operands are executed equally often, so their
//! shares are exact, except for operands whose addresses few samples show (`hidden.rs`). Loops are compared by their rounds a ns (`rates.rs`). Each access becomes what a watch window with one hit is: a draw
//! that stands for rounds x 8-byte words. The accesses of one sample are one round.
//!
//! A loop that writes memory for the first time is sampled just behind its page faults. So a write counts as use only if the page was
//! touched [`SETTLED_NS`] earlier, and if an earlier sweep had passed it (`sweeps.rs`).

mod alone;
mod dealt;
mod derived_touches;
mod entries;
mod fault_counts;
mod hidden;
mod hot_lines;
mod instructions;
mod laps;
mod loops;
mod own_part;
mod pace;
mod pairs;
mod rated;
mod rates;
mod repeats;
mod speed;
mod steady;
mod sweeps;
mod times;
mod whole_laps;

use super::{ByThread, Counts, Hit, Reader, Samples, Source};
use crate::NotJudgedReason;
use crate::estimator::{Design, Draw};
use crate::few::Few;
use crate::homes::Home;
use crate::partition::Sight;
use crate::strata::{Strata, unit};
use crate::touch_record::BASE_PAGE;
pub use derived_touches::derived_touches;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Id, Profile, SampledAccess};
use hashbrown::HashMap;
use hot_lines::HotLines;
use rates::Rates;
use sweeps::sweeps;

/// A write this soon after the first touch of its page belongs to the initialisation.
const SETTLED_NS: u64 = 10_000_000;
/// Operands of one loop, unrolled, are at one place within so many bytes.
const NEAR_BYTES: u64 = 256;

/// Objects that firsttouch finds this soon after it attached were there before, ns.
const FOUND_NS: u64 = 500_000_000;

/// The stride of each instruction, if most of its samples agree on one. Two rounds of a loop that looks up computed places have a stride too, but
/// a different one in each sample.
fn steady_strides(profile: &Profile) -> HashMap<Option<Id>, i64> {
    let mut counts: HashMap<Option<Id>, HashMap<Option<i64>, usize>> = HashMap::new();
    for access in &profile.sampled_accesses {
        *counts.entry(access.site).or_default().entry(access.stride).or_default() += 1;
    }
    let most = |(site, strides): (Option<Id>, HashMap<Option<i64>, usize>)| {
        let all: usize = strides.values().sum();
        let steady = strides.into_iter().find(|(_, count)| 2 * count > all)?.0?;
        Some((site, steady))
    };
    counts.into_iter().filter_map(most).collect()
}

/// Samples of registers.
#[derive(Debug)]
pub struct TimerSamples;

impl Source for TimerSamples {
    fn name(&self) -> EvidenceSource {
        EvidenceSource::Sample
    }

    fn read(&self, reader: &Reader<'_>) -> Samples {
        let profile = reader.profile;
        let (mut samples, mut elsewhere) = (Samples::of_groups(reader.groups.len()), 0.0);
        let accesses = by_sample(profile);
        let rates = Rates::new(profile, &accesses, reader.threads, reader.goes_to_any_thread);
        let sweeps = sweeps(profile, &accesses, &rates);
        // The first sweep that an attached firsttouch sees is not the first one over older memory.
        let attached_ns = profile.meta.is_attached().then(|| profile.meta.start_ns.unwrap_or(0));
        let is_older = |born_ns: u64| attached_ns.is_some_and(|at| born_ns <= at.saturating_add(FOUND_NS));
        let steady = steady_strides(profile);
        let hot = HotLines::of(reader, &accesses);
        let mut strata = Strata::default();
        for ((sample, own), firsts) in profile.samples.iter().zip(&accesses).zip(&sweeps.is_first) {
            if times::is_for_rates(sample) {
                continue;
            }
            strata.add(sample.thread, sample.id, rates.time(sample), sample.weight);
            let round = unit(sample.id, sample.time_ns, sample.weight);
            let Some(thread) = reader.threads.index(sample.thread) else {
                samples.refused += u64::from(!own.is_empty());
                continue;
            };
            let (rounds, doubts) = rates.rounds(sample, own);
            let time = rates.time(sample) / rates.in_round(sample, own).max(f64::MIN_POSITIVE);
            let outside = rounds * sample.elsewhere;
            if outside.is_finite() && outside > 0.0 {
                elsewhere += outside;
            }
            if !own.is_empty() {
                // As large as those of the loop that are known, on average, and as often to lines that stay in a cache.
                let counted = own.iter().filter(|access| !hot.has(access));
                let words = rates.missing(sample) * counted.map(|access| access.words).sum::<f64>() / own.len() as f64;
                for (sum, part) in samples.missing.iter_mut().zip([rounds * words, time * words]) {
                    *sum += if part.is_finite() && part > 0.0 { part } else { 0.0 };
                }
            }
            for (access, &is_first) in own.iter().zip(firsts) {
                let Some((object, group)) = reader.object(access.object) else {
                    samples.refused += 1;
                    continue;
                };
                let this = &profile.objects[object];
                let offset = access.address.checked_sub(this.address).filter(|&offset| offset < this.bytes.max(8));
                let own_words = access.words * rates.factor(access);
                let z = rounds * own_words;
                let (Some(offset), true) = (offset, z.is_finite() && z > 0.0) else {
                    samples.refused += 1;
                    continue;
                };
                if hot.has(access) {
                    samples.cached += if is_first { 0.0 } else { z };
                    continue;
                }
                let settled = if access.kind.writes() { sample.time_ns.saturating_sub(SETTLED_NS) } else { sample.time_ns };
                let node = reader.threads.touch_node(thread, sample.cpu);
                samples.hits[group].push(Hit {
                    draw: samples.draws.len(),
                    object,
                    offset,
                    position: reader.groups[group].position(object, offset),
                    start: settled,
                    end: sample.time_ns,
                    round,
                    by_thread: Few::One(ByThread { thread, rate: 1.0, hits: 1, cut: false, cpu_ns: None, node }),
                    writes: Some(
                        own.iter().any(|other| other.object == access.object && other.kind.writes() && is_same_place(access, other)),
                    ),
                    strided: Some(access.stride.is_some_and(|stride| stride != 0 && steady.get(&access.site) == Some(&stride))),
                    sites: Few::One((access.site, 1.0)),
                    home: if is_first && !is_older(this.born_ns) { Home::Untouched } else { Home::Unknown },
                });
                samples.time.push((time * own_words).clamp(0.0, f64::MAX));
                samples.draws.push(Draw { group, round, z, held_ns: 1.0, rate: 0.0, cut: false, doubts });
            }
        }
        Samples { elsewhere: Some(elsewhere), strata: Some(strata), ..samples }
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

/// Whether two operands of a loop are at one place: `a[i] *= 2` reads and writes it, also if the compiler loads and stores different rounds.
fn is_same_place(one: &SampledAccess, other: &SampledAccess) -> bool {
    one.address.abs_diff(other.address) <= NEAR_BYTES
}

/// The accesses of each sample, in the order of the samples.
pub fn by_sample(profile: &Profile) -> Vec<&[SampledAccess]> {
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
