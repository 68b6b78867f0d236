// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = data
// corpus: fix = words
// corpus: build = cargo build --quiet --release --manifest-path {dir}/rayon/Cargo.toml --target-dir {out}.target && cp {out}.target/release/shape-rayon {out}
// corpus: run = {out}
// corpus: why = vec! writes every element in the thread that makes it, before rayon deals out the chunks of it to whichever thread is free.

use rayon::prelude::*;

const N: usize = 2 << 20;

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("threads");
    let mut data = vec![1.25_f64; N];
    pool.install(|| {
        for _ in 0..400 {
            data.par_chunks_mut(N / 64).for_each(|part| {
                for x in part {
                    *x = std::hint::black_box(3.0 - *x);
                }
            });
        }
    });
    println!("{:e}", data.iter().enumerate().map(|(i, x)| x * (1 + i % 13) as f64).sum::<f64>());
}
