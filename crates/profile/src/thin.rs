//! What is read of a very large profile: of each large table at most [`MOST`] rows, drawn at random, each of which stands for as many as were
//! left out. So a report costs no more memory and time than one on a long run, apart from passing over the file once.
//!
//! - **First touches** are drawn by page, so that the faults of one page stay together. Their weights grow.
//! - **Windows** are drawn by round, with their accesses. What their objects were expected to get in the round (`inclusion`) shrinks.
//! - **Samples** are drawn by stretches of time, as recorders leave samples out of long runs. Their weights grow.
//!
//! The same profile always gives the same rows.

use firsttouch_model::rows::{FaultPeriod, FirstTouch, Profile, TimerSample, Window};
use hashbrown::HashSet;

/// Rows of one table that are read. Recorders halve their samples before a run gets so many.
pub const MOST: u64 = 250_000;
/// Recorders leave samples out in stretches of this length, ns.
const STRETCH_NS: u64 = 20_000_000;
/// Samples of each thread that a stretch has on average, at least: the time between two of them is what each stands for.
const A_STRETCH: u64 = 8;

/// One of so many rows is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thinning {
    touches: u64,
    windows: u64,
    samples: u64,
    stretch_ns: u64,
}

/// The number of rows of the large tables.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub touches: u64,
    pub windows: u64,
    pub samples: u64,
}

impl Thinning {
    /// Everything is read.
    pub const NONE: Self = Self { touches: 1, windows: 1, samples: 1, stretch_ns: STRETCH_NS };

    /// For a profile with so many rows, of which the small tables are known.
    pub fn of(rows: Rows, profile: &Profile) -> Self {
        let one_of = |rows: u64| rows.div_ceil(MOST).max(1).next_power_of_two();
        let span_ns = profile.meta.start_ns.zip(profile.meta.end_ns).map_or(0, |(start, end)| end.saturating_sub(start));
        let gap_ns = span_ns.saturating_mul(profile.threads.len() as u64) / rows.samples.max(1);
        Self {
            touches: one_of(rows.touches),
            windows: one_of(rows.windows),
            samples: one_of(rows.samples),
            stretch_ns: gap_ns.saturating_mul(A_STRETCH).div_ceil(STRETCH_NS).max(1).saturating_mul(STRETCH_NS),
        }
    }

    pub fn takes_touch(self, address: u64) -> bool {
        takes(address >> 12, self.touches)
    }

    pub fn takes_round(self, round: u64) -> bool {
        takes(round, self.windows)
    }

    pub fn takes_sample(self, time_ns: u64) -> bool {
        takes(time_ns / self.stretch_ns, self.samples)
    }

    pub fn leaves_touches_out(self) -> bool {
        self.touches > 1
    }

    pub fn leaves_windows_out(self) -> bool {
        self.windows > 1
    }

    pub fn leaves_samples_out(self) -> bool {
        self.samples > 1
    }

    /// Lets the rows that were read stand for all, and notes that they do.
    pub fn weigh(self, rows: Rows, profile: &mut Profile) {
        let (touches, windows, samples) = (self.touches as f64, self.windows as f64, self.samples as f64);
        profile.first_touches.iter_mut().for_each(|touch: &mut FirstTouch| touch.weight *= touches);
        profile.fault_periods.iter_mut().for_each(|period: &mut FaultPeriod| period.faults = period.faults.saturating_mul(self.touches));
        profile.windows.iter_mut().for_each(|window: &mut Window| window.inclusion /= windows);
        profile.samples.iter_mut().for_each(|sample: &mut TimerSample| sample.weight *= samples);
        let tables = [
            ("first touches", self.touches, rows.touches),
            ("windows", self.windows, rows.windows),
            ("samples", self.samples, rows.samples),
        ];
        let parts: Vec<String> = tables
            .iter()
            .filter(|(_, one_of, _)| *one_of > 1)
            .map(|(what, one_of, all)| format!("1 of {one_of} of {all} {what}"))
            .collect();
        if !parts.is_empty() {
            profile
                .meta
                .notes
                .push(format!("The profile is very large. Its figures are estimates from rows drawn at random: {}.", parts.join(", ")));
        }
    }
}

/// Leaves out of a profile in memory what would not be read from its file.
pub fn thin(profile: &mut Profile) {
    let rows =
        Rows { touches: profile.first_touches.len() as u64, windows: profile.windows.len() as u64, samples: profile.samples.len() as u64 };
    let thinning = Thinning::of(rows, profile);
    profile.first_touches.retain(|touch| thinning.takes_touch(touch.address));
    if thinning.leaves_windows_out() {
        profile.windows.retain(|window| thinning.takes_round(window.round));
        let kept: HashSet<_> = profile.windows.iter().map(|window| window.id).collect();
        profile.accesses.retain(|access| kept.contains(&access.window));
    }
    if thinning.leaves_samples_out() {
        profile.samples.retain(|sample| thinning.takes_sample(sample.time_ns));
        let kept: HashSet<_> = profile.samples.iter().map(|sample| sample.id).collect();
        profile.sampled_accesses.retain(|access| kept.contains(&access.sample));
    }
    thinning.weigh(rows, profile);
}

/// Draws one of so many numbers (a power of two), whatever their order.
fn takes(number: u64, one_of: u64) -> bool {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).is_multiple_of(one_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::Access;

    fn touch(id: i64, page: u64) -> FirstTouch {
        FirstTouch {
            id,
            process: 0,
            time_ns: 0,
            thread: 0,
            cpu: 0,
            address: page * 4096 + 8,
            weight: 2.0,
            by_kernel: false,
            site: None,
            mapped_bytes: None,
            node: None,
        }
    }

    fn window(id: i64, round: u64) -> Window {
        Window { id, round, object: 1, address: 8, start_ns: 0, held_ns: 1, round_ns: 1, inclusion: 0.5 }
    }

    fn access(window: i64) -> Access {
        Access { window, thread: 0, site: None, hits: 1, estimate: 1.0, watched_ns: 1, cut: false, cpu: None, cpu_ns: None }
    }

    /// Check that profiles as recorders leave them are read as they are, and that larger ones are halved until they are not large.
    #[test]
    fn only_very_large_profiles_are_thinned() {
        let of = |touches, windows, samples| Thinning::of(Rows { touches, windows, samples }, &Profile::default());
        assert_eq!(of(MOST, MOST, MOST), Thinning::NONE);
        let large = of(MOST + 1, 4 * MOST, 0);
        assert_eq!((large.touches, large.windows, large.samples), (2, 4, 1));
        let mut profile = Profile { first_touches: vec![touch(1, 1)], windows: vec![window(1, 1)], ..Profile::default() };
        let before = profile.clone();
        thin(&mut profile);
        assert_eq!(profile, before);
    }

    /// Check that the rows taken stand for all: their weights add up to those of all, the faults of a page and the windows of a round stay together,
    /// and the report says that rows are missing.
    #[test]
    fn what_is_taken_stands_for_all() {
        let all = 2 * MOST as i64;
        let mut profile = Profile {
            first_touches: (0..all).map(|id| touch(id, (id / 2).unsigned_abs())).collect(),
            windows: (0..all).map(|id| window(id, (id / 4).unsigned_abs())).collect(),
            accesses: (0..all).map(access).collect(),
            ..Profile::default()
        };
        thin(&mut profile);
        let close = |sum: f64, all: f64| (sum / all - 1.0).abs() < 0.02;
        let weights: f64 = profile.first_touches.iter().map(|touch| touch.weight).sum();
        let drawn: f64 = profile.windows.iter().map(|window| 1.0 / window.inclusion).sum();
        assert!(close(weights, 2.0 * all as f64) && close(drawn, 2.0 * all as f64), "{weights} {drawn}");
        assert!((profile.first_touches.len() as u64) < MOST * 51 / 50 && profile.windows.len() == profile.accesses.len());
        assert!(profile.first_touches.chunks(2).all(|pair| pair[0].address == pair[1].address));
        assert!(profile.windows.chunks(4).all(|round| round[0].round == round[3].round));
        assert_eq!(profile.meta.notes.len(), 1, "{:?}", profile.meta.notes);
    }
}
