// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = data
// corpus: fix = words
// corpus: build = rustc --edition 2021 -O -g {src} -o {out}
// corpus: run = {out}
// corpus: why = vec! writes every element in the thread that makes it, before scoped threads share it by chunks.

const N: usize = 2 << 20;
const THREADS: usize = 4;

fn main() {
    let mut data = vec![1.25_f64; N];
    std::thread::scope(|scope| {
        for part in data.chunks_mut(N / THREADS) {
            scope.spawn(move || {
                for _ in 0..400 {
                    for x in part.iter_mut() {
                        *x = std::hint::black_box(3.0 - *x);
                    }
                }
            });
        }
    });
    println!("{:e}", data.iter().enumerate().map(|(i, x)| x * (1 + i % 13) as f64).sum::<f64>());
}
