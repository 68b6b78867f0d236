//! The run over time, in equal stretches: accesses local and remote, first touches by node, pages that moved, parallel regions.

use super::bandwidth::{MeasuredBandwidth, measured_bandwidth};
use crate::Interval;
use crate::estimator::Design;
use crate::evidence::{Evidence, Hit};
use crate::homes::Home;
use crate::source_code::CodeLocations;
use crate::views::interval;
use crate::{CodeLocation, Target};
use firsttouch_model::rows::{Id, Profile};
use firsttouch_model::{Estimate, Z95};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// The number of stretches.
const BINS: usize = 120;
/// Bytes of an access (docs/export.md).
const WORD: f64 = 8.0;
/// Phases that are listed, those that take the most time.
const MOST_PHASES: usize = 12;

/// The run over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Seconds from the start of the program to the end of the recording, and of each stretch.
    pub wall_s: f64,
    pub bin_s: f64,
    pub bins: Vec<Bin>,
    /// Whether the kernel was asked for the nodes of pages, so that pages that move are seen.
    pub sees_moves: bool,
    /// Whether parallel regions were recorded.
    pub has_regions: bool,
    /// Code that ran in parallel regions, what takes the most time first.
    pub phases: Vec<Phase>,
    /// What the system's counters say, in the same stretches; `None` without counters.
    pub measured: Option<MeasuredBandwidth>,
}

/// One stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bin {
    /// Accesses with a known home / those of the whole run.
    pub share: f64,
    pub remote: Option<f64>,
    pub remote_interval: Option<Interval>,
    pub samples: u64,
    /// Accesses of 8 bytes a second, as samples estimate them, in GB/s; the interval is that of the sampling. `None` also where the samples do not show
    /// how fast the loops go.
    pub gb_per_s: Option<f64>,
    pub gb_per_s_interval: Option<Interval>,
    /// Parts of the stretch's accesses by the node of the page.
    pub by_home: Vec<f64>,
    /// Bytes touched first, by node.
    pub touched_bytes: Vec<f64>,
    /// Pages seen on another node than before.
    pub moved_pages: u64,
    /// The part of the stretch within parallel regions.
    pub parallel: f64,
}

impl Bin {
    /// Consecutive stretches of equal length as one. Errors of their samples are independent.
    #[must_use]
    pub fn sum(bins: &[Self]) -> Self {
        let share: f64 = bins.iter().map(|bin| bin.share).sum();
        // The part of each in what is a mean over accesses.
        let weighted = |of: &dyn Fn(&Self) -> Option<f64>| {
            let known = bins.iter().filter_map(|bin| Some(of(bin)? * bin.share));
            (share > 0.0).then(|| known.sum::<f64>() / share)
        };
        let spread = |of: &dyn Fn(&Self) -> Option<f64>| bins.iter().filter_map(of).map(|error| error * error).sum::<f64>().sqrt();
        let remote = weighted(&|bin| bin.remote);
        let half = |interval: Option<Interval>| interval.map(|[low, high]| (high - low) / 2.0);
        let error = spread(&|bin| Some(half(bin.remote_interval)? * bin.share / share));
        let count = bins.len().max(1) as f64;
        let speeds: Vec<f64> = bins.iter().filter_map(|bin| bin.gb_per_s).collect();
        let is_known = !speeds.is_empty() && bins.iter().all(|bin| bin.samples == 0 || bin.gb_per_s.is_some());
        let speed = is_known.then(|| speeds.iter().sum::<f64>() / count);
        let speed_error = spread(&|bin| half(bin.gb_per_s_interval)) / count;
        let vector = |of: &dyn Fn(&Self) -> &Vec<f64>, scale: &dyn Fn(&Self) -> f64| {
            let mut sums = vec![0.0; bins.iter().map(|bin| of(bin).len()).max().unwrap_or(0)];
            for bin in bins {
                sums.iter_mut().zip(of(bin)).for_each(|(sum, part)| *sum += part * scale(bin));
            }
            sums
        };
        Self {
            share,
            remote,
            remote_interval: remote.map(|value| [(value - error).max(0.0), (value + error).min(1.0)]),
            samples: bins.iter().map(|bin| bin.samples).sum(),
            gb_per_s: speed,
            gb_per_s_interval: speed.map(|value| [(value - speed_error).max(0.0), value + speed_error]),
            by_home: vector(&|bin| &bin.by_home, &|bin| if share > 0.0 { bin.share / share } else { 0.0 }),
            touched_bytes: vector(&|bin| &bin.touched_bytes, &|_| 1.0),
            moved_pages: bins.iter().map(|bin| bin.moved_pages).sum(),
            parallel: bins.iter().map(|bin| bin.parallel).sum::<f64>() / count,
        }
    }
}

/// The parallel regions of one place in the code.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    pub at: Option<CodeLocation>,
    pub regions: u64,
    pub total_s: f64,
    pub first_s: f64,
    pub last_s: f64,
    pub team_size: u32,
}

/// What a timeline is made from.
pub(crate) struct Recorded<'a> {
    pub profile: &'a Profile,
    pub target: &'a Target,
    pub uses: &'a Evidence,
    pub places: &'a CodeLocations<'a>,
}

/// Time as stretches of equal length.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    start: u64,
    bin_ns: u64,
}

impl Clock {
    /// `None` if the profile has no times.
    pub fn of(profile: &Profile) -> Option<Self> {
        let start = profile.meta.start_ns?;
        let span = profile.meta.end_ns?.checked_sub(start).filter(|span| *span >= BINS as u64)?;
        Some(Self { start, bin_ns: span.div_ceil(BINS as u64) })
    }

    pub fn bin(self, time: u64) -> usize {
        usize::try_from(time.saturating_sub(self.start) / self.bin_ns).unwrap_or(BINS).min(BINS - 1)
    }

    fn seconds(self, time: u64) -> f64 {
        time.saturating_sub(self.start) as f64 / 1e9
    }
}

#[derive(Clone, Default)]
struct Sums {
    known: f64,
    remote: f64,
    squares: f64,
    samples: u64,
    by_home: Vec<f64>,
    /// Of `known`: accesses whose number is a guess.
    guessed: f64,
}

/// The bandwidth of a stretch is not known if the number of so many of its accesses is a guess.
const MOST_GUESSED: f64 = 0.2;

/// The timeline of a profile. `hits`: the samples that the report's remote fraction comes from, with their design.
pub(crate) fn timeline<'h>(of: &Recorded<'_>, hits: Option<(&Design, impl Iterator<Item = &'h Hit>)>) -> Option<Timeline> {
    let clock = Clock::of(of.profile)?;
    let span = of.profile.meta.end_ns?.saturating_sub(clock.start);
    let nodes = of.target.nodes.max(1);
    let mut bins = vec![Bin { touched_bytes: vec![0.0; nodes], ..Bin::default() }; BINS];
    if let Some((design, hits)) = hits {
        count_accesses(&mut bins, design, hits, (clock, nodes));
    }
    count_touches(&mut bins, of.uses, (clock, nodes));
    let sees_moves = count_moves(&mut bins, of, clock);
    count_regions(&mut bins, of.profile, clock);
    Some(Timeline {
        wall_s: span as f64 / 1e9,
        bin_s: clock.bin_ns as f64 / 1e9,
        bins,
        sees_moves,
        has_regions: !of.profile.regions.is_empty(),
        phases: phases(of, clock),
        measured: measured_bandwidth(of.profile, clock.start, clock.bin_ns, BINS),
    })
}

fn count_accesses<'h>(bins: &mut [Bin], design: &Design, hits: impl Iterator<Item = &'h Hit>, (clock, nodes): (Clock, usize)) {
    let mut sums = vec![Sums { by_home: vec![0.0; nodes], ..Sums::default() }; bins.len()];
    for hit in hits {
        let Home::Known { node, .. } = hit.home else { continue };
        let page = (node as usize).min(nodes - 1);
        let sum = &mut sums[clock.bin(hit.start / 2 + hit.end / 2)];
        sum.samples += 1;
        for by in &hit.by_thread {
            let accesses = design.weight(hit.draw) * by.rate;
            sum.known += accesses;
            sum.guessed += if design.is_guess(hit.draw) { accesses } else { 0.0 };
            sum.squares += accesses * accesses;
            sum.by_home[page] += accesses;
            sum.remote += if page == (by.node as usize).min(nodes - 1) { 0.0 } else { accesses };
        }
    }
    let all: f64 = sums.iter().map(|sum| sum.known).sum();
    for (bin, sum) in bins.iter_mut().zip(&sums).filter(|(_, sum)| sum.known > 0.0) {
        let remote = sum.remote / sum.known;
        let effective = (sum.known * sum.known / sum.squares).max(1.0);
        let error = (remote * (1.0 - remote) / effective).sqrt();
        bin.share = sum.known / all;
        bin.remote = Some(remote);
        bin.remote_interval = Some(interval(Estimate::fraction(remote, error, effective as u64)));
        bin.samples = sum.samples;
        let speed = sum.known * WORD / clock.bin_ns as f64;
        let relative = Z95 / effective.sqrt();
        if sum.guessed <= MOST_GUESSED * sum.known {
            bin.gb_per_s = Some(speed);
            bin.gb_per_s_interval = Some([speed * (1.0 - relative).max(0.0), speed * (1.0 + relative)]);
        }
        bin.by_home = sum.by_home.iter().map(|part| part / sum.known).collect();
    }
}

fn count_touches(bins: &mut [Bin], uses: &Evidence, (clock, nodes): (Clock, usize)) {
    // In one order, because the last digits of sums depend on it.
    let mut objects: Vec<usize> = uses.touches.keys().copied().collect();
    objects.sort_unstable();
    for placed in objects.iter().flat_map(|object| &uses.touches[object].placed) {
        let node = (placed.touch.node as usize).min(nodes - 1);
        bins[clock.bin(placed.touch.time)].touched_bytes[node] += placed.covers();
    }
}

/// Counts pages seen on another node than before. Returns whether any page was asked about twice.
fn count_moves(bins: &mut [Bin], of: &Recorded<'_>, clock: Clock) -> bool {
    if of.target.virtual_machine {
        return false;
    }
    let mut order: Vec<_> = of.profile.pages.iter().filter(|page| page.node >= 0).collect();
    order.sort_by_key(|page| page.time_ns);
    let mut last: HashMap<(Id, u64), i32> = HashMap::new();
    let mut is_asked_again = false;
    for page in order {
        if let Some(before) = last.insert((page.process, page.address), page.node) {
            is_asked_again = true;
            bins[clock.bin(page.time_ns)].moved_pages += u64::from(before != page.node);
        }
    }
    is_asked_again
}

/// The part of each stretch within parallel regions of any process.
fn count_regions(bins: &mut [Bin], profile: &Profile, clock: Clock) {
    let mut spans: Vec<(u64, u64)> = profile
        .regions
        .iter()
        .filter(|region| region.team_size > 1)
        .map(|region| (region.begin_ns.max(clock.start), region.end_ns.or(profile.meta.end_ns).unwrap_or(region.begin_ns)))
        .collect();
    spans.sort_unstable();
    let mut reached = clock.start;
    for (begin, end) in spans {
        // Regions of several processes, and nested ones, overlap.
        let mut from = begin.max(reached);
        while from < end {
            let bin = clock.bin(from);
            let bin_end = if bin + 1 == bins.len() { end } else { clock.start + (bin as u64 + 1) * clock.bin_ns };
            let to = bin_end.min(end);
            bins[bin].parallel = (bins[bin].parallel + to.saturating_sub(from) as f64 / clock.bin_ns as f64).min(1.0);
            from = to;
        }
        reached = reached.max(end);
    }
}

fn phases(of: &Recorded<'_>, clock: Clock) -> Vec<Phase> {
    type Key = (Option<String>, Option<u32>, Option<String>);
    let mut by_place: BTreeMap<Key, Phase> = BTreeMap::new();
    for region in of.profile.regions.iter().filter(|region| region.team_size > 1) {
        let Some(end) = region.end_ns.or(of.profile.meta.end_ns) else { continue };
        let at = of.places.place(region.site);
        let key = at.as_ref().map_or((None, None, None), |at| (at.file.clone(), at.line, at.function.clone()));
        let (first_s, last_s) = (clock.seconds(region.begin_ns), clock.seconds(end));
        let phase = by_place.entry(key).or_insert(Phase { at, regions: 0, total_s: 0.0, first_s, last_s, team_size: 0 });
        phase.regions += 1;
        phase.total_s += last_s - first_s;
        (phase.first_s, phase.last_s) = (phase.first_s.min(first_s), phase.last_s.max(last_s));
        phase.team_size = phase.team_size.max(region.team_size);
    }
    let mut list: Vec<Phase> = by_place.into_values().collect();
    list.sort_by(|a, b| b.total_s.total_cmp(&a.total_s));
    list.truncate(MOST_PHASES);
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::Region;

    /// Check that overlapping regions count once, and that a region without an end lasts to the end of the recording.
    #[test]
    fn regions_fill_stretches() {
        let region = |begin_ns, end_ns| Region { id: 0, process: 1, begin_ns, end_ns, site: None, team_size: 4, thread: None };
        let mut profile = Profile { regions: vec![region(10, Some(25)), region(15, Some(20)), region(1190, None)], ..Profile::default() };
        profile.meta.end_ns = Some(1200);
        let mut bins = vec![Bin::default(); BINS];
        count_regions(&mut bins, &profile, Clock { start: 0, bin_ns: 10 });
        let parallel: Vec<f64> = bins.iter().map(|bin| bin.parallel).collect();
        assert_eq!((parallel[0], parallel[1], parallel[2], parallel[3], parallel[119]), (0.0, 1.0, 0.5, 0.0, 1.0));
    }
}
