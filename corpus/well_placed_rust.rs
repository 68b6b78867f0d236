// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = field
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0
// corpus: build = rustc --edition 2021 -C opt-level=2 -g {src} -o {out}
// corpus: run = {out}
// corpus: why = Vec::with_capacity touches nothing; each thread writes the part of spare_capacity_mut that it uses later.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const THREADS: usize = 4;
const N: usize = 4 << 20; // f64: 32 MiB
const RUN: Duration = Duration::from_millis(1200);

fn fill(mine: &mut [MaybeUninit<f64>]) {
    for x in mine.iter_mut() {
        x.write(1.0); // @first-touch
    }
}

fn sweep(mine: &mut [MaybeUninit<f64>]) {
    for x in mine.iter_mut() {
        // SAFETY: `fill` wrote every element.
        unsafe { *x.assume_init_mut() += 2.0 }; // @used
    }
}

fn work(mine: &mut [MaybeUninit<f64>], in_step: &Barrier, over: &AtomicBool, end: Instant) -> usize {
    fill(mine);
    in_step.wait();
    let mut sweeps = 0;
    loop {
        sweep(mine);
        sweeps += 1;
        // Only one thread reads the clock: with a later time, another could stop and leave the rest at the barrier.
        if in_step.wait().is_leader() {
            over.store(Instant::now() >= end, Ordering::Relaxed);
        }
        in_step.wait();
        if over.load(Ordering::Relaxed) {
            return sweeps;
        }
    }
}

fn main() {
    let mut field: Vec<f64> = Vec::with_capacity(N); // @allocated
    let end = Instant::now() + RUN;
    let (in_step, over) = (Barrier::new(THREADS), AtomicBool::new(false));
    let mut parts = field.spare_capacity_mut()[..N].chunks_mut(N / THREADS);
    let own = parts.next().expect("four parts");
    // main is worker 0, so the program has four threads, not five.
    let sweeps: Vec<usize> = std::thread::scope(|scope| {
        let others: Vec<_> = parts.map(|part| scope.spawn(|| work(part, &in_step, &over, end))).collect();
        let mine = work(own, &in_step, &over, end);
        std::iter::once(mine).chain(others.into_iter().map(|t| t.join().expect("a worker"))).collect()
    });
    // SAFETY: every part was written by its thread.
    unsafe { field.set_len(N) };
    let right = (0..N).step_by(512).all(|i| field[i] == 1.0 + 2.0 * sweeps[i / (N / THREADS)] as f64);
    println!("{}", if right { "ok" } else { "bad" });
    std::process::exit(i32::from(!right));
}
