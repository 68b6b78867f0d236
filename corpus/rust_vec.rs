// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = field
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = loop
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = rustc --edition 2021 -C opt-level=2 -g {src} -o {out}
// corpus: run = {out}
// corpus: why = vec![1.0; n] writes every element in the thread that makes it, before the threads split it by chunks_mut.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const THREADS: usize = 4;
const N: usize = 4 << 20; // f64: 32 MiB
const RUN: Duration = Duration::from_millis(1200);

fn sweep(mine: &mut [f64]) {
    for x in mine.iter_mut() {
        *x += 2.0; // @used
    }
}

fn work(mine: &mut [f64], in_step: &Barrier, over: &AtomicBool, end: Instant) -> usize {
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
    let mut field = vec![1.0f64; N]; // @allocated @first-touch
    let end = Instant::now() + RUN;
    let (in_step, over) = (Barrier::new(THREADS), AtomicBool::new(false));
    let mut parts = field.chunks_mut(N / THREADS);
    let own = parts.next().expect("four parts");
    // main is worker 0, so the program has four threads, not five.
    let sweeps: Vec<usize> = std::thread::scope(|scope| {
        let others: Vec<_> = parts.map(|part| scope.spawn(|| work(part, &in_step, &over, end))).collect();
        let mine = work(own, &in_step, &over, end);
        std::iter::once(mine).chain(others.into_iter().map(|t| t.join().expect("a worker"))).collect()
    });
    let right = (0..N).step_by(512).all(|i| field[i] == 1.0 + 2.0 * sweeps[i / (N / THREADS)] as f64);
    println!("{}", if right { "ok" } else { "bad" });
    std::process::exit(i32::from(!right));
}
