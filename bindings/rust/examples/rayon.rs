//! An array that rayon's threads use, each its own block in every loop.

use firsttouch_alloc::{FtVec, Partition, Team, report, static_bounds};
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // rayon's threads tell the library where they run. On a machine with several nodes, pin them here first.
    let threads = std::thread::available_parallelism()?.get();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    pool.broadcast(|context| Team::default().join(context.index(), context.num_threads())).into_iter().collect::<Result<Vec<_>, _>>()?;

    let n = 4_000_000;
    let partition = Partition::blocked();
    let mut a: FtVec<f64> = FtVec::zeroed(n, &partition)?;

    // `broadcast` runs a closure once on each thread, so that thread t always works on block t. An iterator that steals work
    // (par_iter) does not keep threads at their blocks: interleave its data.
    let bounds = static_bounds(n, threads);
    let blocks = split(&mut a, &bounds);
    pool.broadcast(|context| {
        let mut block = blocks[context.index()].lock().expect("no thread panics while it holds its block");
        block.iter_mut().enumerate().for_each(|(i, x)| *x = (bounds[context.index()] + i) as f64);
    });
    drop(blocks);

    let sum: f64 = pool.install(|| a.par_iter().sum());
    println!("{}", report(&a, &partition, "a").trim_end());
    println!("sum {sum:.3e}");
    Ok(())
}

/// The blocks of an array, each behind a lock that only its thread takes.
fn split<'a>(mut rest: &'a mut [f64], bounds: &[usize]) -> Vec<std::sync::Mutex<&'a mut [f64]>> {
    let mut blocks = Vec::new();
    for border in bounds.windows(2) {
        let (block, others) = rest.split_at_mut(border[1] - border[0]);
        blocks.push(std::sync::Mutex::new(block));
        rest = others;
    }
    blocks
}
