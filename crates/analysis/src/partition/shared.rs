//! Shared use: several workers pass the same addresses, each as often as the others.
//!
//! A window may span many sweeps, so several workers at one address do not prove shared use. The evenness of their counts does. If all
//! workers read the whole object, each passes an address once per sweep, so within a window their counts differ by at most one pass. If a
//! dynamic schedule, a task queue or chance deals the address out, the counts are multinomial.
//! With h_t the passes of worker t in a window, n their sum, L the workers and p_t their shares overall:
//!
//! - x = sum over workers of (h_t - n p_t)^2 / (n p_t); multinomial counts give L - 1 on average, with variance
//!   2 (L - 1) + (sum 1 / p_t - L^2 - 2 L + 2) / n;
//! - the evenest counts possible (n / L rounded up or down) give least = L^2 f (1 - f) / n, f the fraction of n / L;
//! - evenness = (sum x - sum least) / (sum (L - 1) - sum least) over the windows with two passes or more: 0 shared, 1 dealt out,
//!   n and more where addresses have owners;
//! - z = (sum x - sum (L - 1)) / root of the summed variances.
//!
//! A pass makes several hits (a read and a write, neighbouring elements of one word). The hits per pass are the largest number, up to 64,
//! that divides nine in ten of all counts.
//!
//! Rule: at least 5 windows with two passes, and at least one in five of all windows; evenness <= 0.5; z <= -3. Because of the bound on z,
//! at most one in 700 objects that chance deals out passes, for any number of windows (simulated, 20 to 250 windows, 2 to 16 workers, 2 to
//! 12 passes per window: none of 8,100; of as many shared objects 4 were missed). On recorded programs (corpus, 4 threads on 2 CPUs, 80 to
//! 250 windows), the evenness is 0.09 and 0.13 for shared tables; 0.73 for a dynamic schedule, 1.07 for tasks, 1.23 and 1.24 for random
//! access; above 2 for all others, which have owners. With 16 or 25 of their windows drawn at random, 200 times each, shared tables are
//! always shared; of the others, only the dynamic schedule is, in 1 % of the draws.
//!
//! If at least ten windows have twice as many passes as there are workers, only these count; else, if ten have as many passes as workers,
//! only those.
//!
//! Threads that take turns, each for a sweep or so, pass each address equally often under any schedule: the one that runs does the whole
//! sweep (recorded with a dynamic schedule beside a compiler on 2 CPUs: evenness 0.1 to 0.3, z -10 to -25, as for shared tables). So y =
//! sum (h_t - n p_t)^2 / n must be well below what parts dealt out to the threads that ran at the same time give at least (`dealing.rs`):
//! (sum y - sum least / L) / (sum of that - sum least / L) <= 0.75, and three standard deviations below it.
//!
//! Windows in which the hit limit cut off a worker say nothing about evenness, because the limit makes counts equal. They are left out. If
//! they are the majority of the windows with several workers or hits (very hot addresses), use is shared if they show on average nine in
//! ten of the workers that can be seen, min(workers, CPUs), and if each worker passes the addresses watched at once at one rate (`hot.rs`).
//!
//! Threads that share CPUs pass unevenly in windows of few time slices, whatever they read. So use is also shared if the workers' counts
//! agree between the windows of one round (`simultaneous.rs`). If that may be because the workers did not run at the same time, nothing
//! is known ([`Use::RanApart`]).
//!
//! Limit: if windows rarely see two passes and are rarely held at the same time, shared use looks dealt out. So [`Use::Dealt`] is
//! only returned if windows of one round prove it.

use super::dealing::Dealing;
use super::hot;
use super::simultaneous::{Verdict, verdict};
use super::{Chance, Unit};

const MIN_WINDOWS: usize = 5;
/// The number of windows with twice as many passes as workers (or as many) that makes shorter ones unnecessary.
const MIN_LONG_WINDOWS: usize = 10;
const EVENNESS: f64 = 0.5;
/// The same for the least dispersion of counts that are dealt out to the threads that ran.
const OF_DEALT: f64 = 0.75;
const Z: f64 = -3.0;
/// The largest number of hits per pass.
const MOST_HITS: u64 = 64;

/// How workers use the addresses that several of them pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Each worker uses the whole object.
    InFull,
    /// Each address is dealt out to one worker at a time.
    Dealt,
    /// One or the other: the counts look like full use, as they do if a schedule deals parts out to threads that run alone.
    RanApart,
    /// One or the other: the windows are not enough to decide.
    Open,
}

/// What the windows say about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    pub how: Use,
    /// The workers ran at the same time for less than half as much as they could have.
    pub ran_apart: bool,
}

impl Sharing {
    /// For sources that show one worker at a time.
    pub(super) fn known(how: Use) -> Self {
        Self { how, ran_apart: false }
    }
}

pub(super) fn how(units: &[&Unit], chance: &Chance, cpus: usize) -> Sharing {
    // Workers with few accesses (such as a main thread that checks the result) do not take part in the sweeps.
    let taking_part = chance.shares.iter().filter(|&(_, &p)| p >= 0.25 * chance.agreement);
    let workers: Vec<(usize, f64)> = taking_part.map(|(&worker, &p)| (worker, p)).collect();
    if workers.len() < 2 {
        return Sharing::known(Use::Open);
    }
    let numbers: Vec<usize> = workers.iter().map(|l| l.0).collect();
    let (measured, at_best) = (Dealing::measured(units, &numbers, cpus), Dealing::at_best(numbers.len(), cpus));
    let ran_apart = measured.ran_apart;
    if evenly(units, &workers, cpus, &measured) {
        return Sharing { how: Use::InFull, ran_apart };
    }
    let how = match verdict(units, &numbers, hits_a_pass(units), &measured, &at_best) {
        Verdict::Together => Use::InFull,
        Verdict::RanApart if ran_apart => Use::RanApart,
        _ if ran_apart && evenly(units, &workers, cpus, &at_best) => Use::RanApart,
        Verdict::Apart => Use::Dealt,
        Verdict::Open | Verdict::RanApart => Use::Open,
    };
    Sharing { how, ran_apart }
}

/// Whether the workers (with their shares) pass each address equally often. `dealing`: how much the counts would vary otherwise.
fn evenly(units: &[&Unit], workers: &[(usize, f64)], cpus: usize, dealing: &Dealing) -> bool {
    let total: f64 = workers.iter().map(|l| l.1).sum();
    let workers: Vec<(usize, f64)> = workers.iter().map(|&(worker, p)| (worker, p / total)).collect();
    let (cut, whole): (Vec<&Unit>, Vec<&Unit>) = units.iter().copied().partition(|u| u.cut);
    // Long windows are the best evidence: in short ones, threads that share CPUs take turns under any schedule.
    let long = [2.0, 1.0].map(|rounds| Dispersion::of(&whole, &workers, rounds * workers.len() as f64 - 0.5, dealing));
    if let Some(dispersion) = long.into_iter().find(|d| d.windows >= MIN_LONG_WINDOWS) {
        return dispersion.is_even();
    }
    let dispersion = Dispersion::of(&whole, &workers, 1.5, dealing);
    let enough = |windows: usize| windows >= MIN_WINDOWS && windows * 5 >= units.len();
    if cut.len() > dispersion.windows {
        let shown = cut.iter().map(|u| u.counts.iter().filter(|c| c.1 > 0).count() as f64).sum::<f64>() / cut.len() as f64;
        let numbers: Vec<usize> = workers.iter().map(|l| l.0).collect();
        let at_one_rate = || hot::is_even(&cut, &numbers, dealing).unwrap_or(!dealing.ran_apart);
        return enough(cut.len()) && shown >= 0.9 * workers.len().min(cpus.max(2)) as f64 && at_one_rate();
    }
    enough(dispersion.windows) && dispersion.is_even()
}

/// Sums over the windows with at least two passes.
#[derive(Default)]
struct Dispersion {
    windows: usize,
    x: f64,
    expected: f64,
    least: f64,
    variance: f64,
    dealt: Dealt,
}

/// Sums of y, as the counts are, as dealing out gives at least, and as the evenest counts give. Windows have the weight of what dealing out
/// gives.
#[derive(Default)]
struct Dealt {
    y: f64,
    expected: f64,
    least: f64,
    variance: f64,
}

impl Dispersion {
    fn of(units: &[&Unit], workers: &[(usize, f64)], least_passes: f64, dealing: &Dealing) -> Self {
        let pass = hits_a_pass(units);
        let (numbers, shares): (Vec<usize>, Vec<f64>) = workers.iter().copied().unzip();
        let count = workers.len() as f64;
        let inverse: f64 = shares.iter().map(|p| 1.0 / p).sum();
        let most = 1.0 - shares.iter().map(|p| p * p).sum::<f64>();
        let mut sums = Self::default();
        for unit in units {
            let passes = unit.passes(&numbers, pass);
            let n: f64 = passes.iter().sum();
            if n < least_passes {
                continue;
            }
            let fraction = (n / count).fract();
            let least = count * fraction * (1.0 - fraction) / n;
            let squares = || passes.iter().zip(&shares).map(|(h, p)| ((h - n * p).powi(2), p));
            sums.windows += 1;
            sums.x += squares().map(|(square, p)| square / (n * p)).sum::<f64>();
            sums.expected += count - 1.0;
            sums.least += count * least;
            sums.variance += (2.0 * (count - 1.0) + (inverse - count * count - 2.0 * count + 2.0) / n).max(0.0);
            let dealt = dealing.least(unit.round).min(most);
            sums.dealt.y += dealt * squares().map(|(square, _)| square / n).sum::<f64>();
            sums.dealt.expected += dealt * dealt;
            sums.dealt.least += dealt * least;
            sums.dealt.variance += dealt * dealt * 2.0 * dealt * (1.0 - dealt) * (1.0 - 1.0 / n);
        }
        sums
    }

    fn is_even(&self) -> bool {
        self.evenness() <= EVENNESS && self.z() <= Z && self.dealt.is_undercut()
    }

    fn evenness(&self) -> f64 {
        (self.x - self.least) / (self.expected - self.least).max(1e-9)
    }

    fn z(&self) -> f64 {
        (self.x - self.expected) / self.variance.sqrt().max(1e-9)
    }
}

impl Dealt {
    /// Whether the counts are more even than those of parts that are dealt out.
    fn is_undercut(&self) -> bool {
        self.y - self.least <= OF_DEALT * (self.expected - self.least) && self.y - self.expected <= Z * self.variance.sqrt().max(1e-9)
    }
}

fn hits_a_pass(units: &[&Unit]) -> u64 {
    let counts: Vec<u64> = units.iter().flat_map(|u| u.counts.iter().map(|c| c.1)).filter(|&c| c > 0).collect();
    let divides = |pass: u64| counts.iter().filter(|&&c| c % pass == 0).count() * 10 >= counts.len() * 9;
    (1..=MOST_HITS).rev().find(|&pass| divides(pass)).unwrap_or(1)
}
