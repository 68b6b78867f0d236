// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = drawn
// corpus: fix = words
// corpus: build = rustc --edition 2021 -O -g {src} -o {out}
// corpus: run = {out}
// corpus: why = main alone makes vectors in the ways that Rust has: vec! in a field, collect, room that push fills, and push without room.

struct Field {
    cells: Vec<f64>,
    name: &'static str,
}

fn main() {
    let threads = 4;
    let n = 1 << 20;
    let mut field = Field {
        cells: vec![0.5; n],
        name: "cells",
    };
    let weights: Vec<f64> = (0..n)
        .map(|i| (1 + i % 7) as f64)
        .collect();
    let mut drawn = Vec::with_capacity(n);
    for i in 0..n {
        drawn.push((i % 5) as f64);
    }
    let mut grown = Vec::new();
    for i in 0..n {
        grown.push((i % 3) as f64);
    }
    std::thread::scope(|scope| {
        let chunk = n / threads;
        let all = drawn.chunks_mut(chunk).zip(field.cells.chunks_mut(chunk)).zip(grown.chunks_mut(chunk).zip(weights.chunks(chunk)));
        for ((drawn, cells), (grown, weights)) in all {
            scope.spawn(move || {
                for _ in 0..600 {
                    for ((x, y), (z, w)) in drawn.iter_mut().zip(cells.iter_mut()).zip(grown.iter_mut().zip(weights)) {
                        *y = std::hint::black_box(*w - *y);
                        *z = std::hint::black_box(*y - *z);
                        *x = std::hint::black_box(*z - *x);
                    }
                }
            });
        }
    });
    let sums = drawn.iter().zip(&field.cells).zip(&grown).enumerate();
    let sum = sums.map(|(i, ((x, y), z))| (x - 2.0 * y + z) * (1 + i % 13) as f64).sum::<f64>();
    println!("{} {sum:e}", field.name);
}
