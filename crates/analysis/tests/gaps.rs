//! Loops that go through a part of each row, or down columns: the address alone does not show their progress.

use crate::samples::{B, BURSTS, BYTES, FAST, Kernel, Run, SLOW, THREADS, TICK, judged, run_at};
use firsttouch_model::rows::SampledLoop;

/// Rounds of an entry.
const ROUNDS: u64 = 1024;

/// Gives the second object another order: `place` has the address and the stride of a thread's word in B.
fn reordered(mut run: Run, place: impl Fn(u64, u64) -> (u64, i64)) -> Run {
    let block = BYTES / THREADS as u64;
    let all = run.profile.samples.iter_mut().zip(&mut run.profile.sampled_accesses);
    for (sample, access) in all.filter(|(_, access)| access.object == 2) {
        let (thread, word) = ((access.address - B) / block, (access.address - B) % block / 8);
        let (address, stride) = place(thread, word);
        (access.address, access.stride) = (address, Some(stride));
        let around = sample.around.expect("a loop");
        sample.around = Some(SampledLoop { entry: word / ROUNDS, left: Some(ROUNDS - 1 - word % ROUNDS), ..around });
    }
    run
}

fn shares_are_right(place: impl Fn(u64, u64) -> (u64, i64) + Copy) {
    let (mut inside, runs) = (0, 20);
    for seed in 0..runs {
        let other = Kernel { has_progress: false, ..SLOW };
        let run = reordered(run_at(seed, [FAST, other], 5, [1.0; THREADS], Some(BURSTS), TICK), place);
        let (truth, analysis) = (run.share_of_a(), judged(&run));
        let a = analysis.objects.iter().find(|object| object.name == "A").expect("A");
        let ([low, high], share) = (a.access_share_interval.expect("an interval"), a.access_share.expect("a share"));
        inside += u64::from((low..=high).contains(&truth));
        assert!((share - truth).abs() < 0.06 && high - low < 0.3, "{low} {share} {high}, truth {truth}");
    }
    assert!(inside >= runs - 1, "{inside} of {runs}");
}

fn part_of_a_row(thread: u64, word: u64) -> (u64, i64) {
    (B + ((word / ROUNDS * THREADS as u64 + thread) * ROUNDS + word % ROUNDS) * 8, 8)
}

/// Check the shares where each thread has a quarter of each row: by addresses, the loop would be four times as fast.
#[test]
fn parts_of_rows() {
    shares_are_right(part_of_a_row);
}

/// Check what old profiles show, which have no rounds left: the loop seems four times as fast.
#[test]
fn addresses_alone_do_not_do() {
    let other = Kernel { has_progress: false, ..SLOW };
    let mut run = reordered(run_at(1, [FAST, other], 5, [1.0; THREADS], Some(BURSTS), TICK), part_of_a_row);
    run.profile.samples.iter_mut().filter_map(|sample| sample.around.as_mut()).for_each(|around| around.left = None);
    let share = judged(&run).objects.iter().find(|object| object.name == "A").and_then(|a| a.access_share).expect("a share");
    assert!(share < run.share_of_a() - 0.2, "{share}");
}

/// Check the shares where each thread has a quarter of the columns: by addresses, the loop would hardly move.
#[test]
fn columns() {
    let columns = BYTES / 8 / ROUNDS;
    shares_are_right(|thread, word| {
        let column = thread * columns / THREADS as u64 + word / ROUNDS;
        (B + (word % ROUNDS * columns + column) * 8, 8 * columns.cast_signed())
    });
}
