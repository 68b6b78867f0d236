//! Objects whose remote fraction does not depend on where they are: the threads of all nodes use each part of them alike.
//!
//! If the threads of node n make the share u_n of the accesses to a page, 1 - u_n of these are remote when the page is on node n. Where no
//! thread owns a part, u_n is nearly the same for all nodes and pages. Then the remote fraction lies between 1 - max u_n and 1 - min u_n
//! whoever touched the pages first, so the object can be judged without its first touches.
//!
//! The same holds for threads that own parts, if pages are huge and each holds parts of threads of several nodes.

use crate::estimator::Design;
use crate::evidence::Hit;
use crate::partition::PartitionKind;
use crate::threads::Threads;
use firsttouch_model::Estimate;

/// Samples of a stretch of the object, at least, and stretches at most.
const LEAST_HITS: usize = 24;
const MOST_STRETCHES: usize = 8;
/// The remote fraction must exceed this, wherever the pages are.
const LEAST_REMOTE: f64 = 0.1;

/// The remote fraction wherever the pages are, from the best to the worst place of each stretch. `None` if it may be low, or if too little is
/// known.
#[must_use]
pub fn remote_anywhere(kind: PartitionKind, hits: &[Hit], design: &Design, threads: &Threads, nodes: usize) -> Option<Estimate> {
    if !matches!(kind, PartitionKind::Shared | PartitionKind::Irregular) || hits.len() < LEAST_HITS || nodes < 2 {
        return None;
    }
    let mut order: Vec<&Hit> = hits.iter().collect();
    order.sort_by_key(|hit| hit.position);
    let length = order.len().div_ceil((order.len() / LEAST_HITS).clamp(1, MOST_STRETCHES));
    between_best_and_worst(order.chunks(length), design, threads, nodes)
}

/// The same where each thread has its parts, but pages are huge: a page is on one node, and holds parts of several. `start`: the address of the
/// object. Few samples in each page make it seem to be used by one node, so they make no finding.
#[must_use]
pub fn remote_in_pages(
    kind: PartitionKind,
    hits: &[Hit],
    design: &Design,
    threads: &Threads,
    nodes: usize,
    (start, page_bytes): (u64, u64),
) -> Option<Estimate> {
    if !matches!(kind, PartitionKind::Block | PartitionKind::BlockCyclic) || hits.len() < LEAST_HITS || nodes < 2 {
        return None;
    }
    let page = |hit: &Hit| start.saturating_add(hit.offset) / page_bytes.max(1);
    let mut order: Vec<&Hit> = hits.iter().collect();
    order.sort_by_key(|hit| page(hit));
    between_best_and_worst(order.chunk_by(|one, next| page(one) == page(next)), design, threads, nodes)
}

/// The remote fraction from the best to the worst place of each of these stretches of an object.
fn between_best_and_worst<'h>(
    stretches: impl Iterator<Item = &'h [&'h Hit]>,
    design: &Design,
    threads: &Threads,
    nodes: usize,
) -> Option<Estimate> {
    let (mut all, mut least, mut most, mut mean, mut hits) = (0.0, 0.0, 0.0, 0.0, 0);
    for stretch in stretches {
        let mut by_node = vec![0.0; nodes];
        for hit in stretch {
            for by in &hit.by_thread {
                let node = by_node.get_mut(threads.list[by.thread].node as usize)?;
                *node += design.weight(hit.draw) * by.rate;
            }
        }
        let sum: f64 = by_node.iter().sum();
        all += sum;
        least += sum - by_node.iter().copied().fold(0.0, f64::max);
        most += sum - by_node.iter().copied().fold(f64::INFINITY, f64::min);
        mean += sum * (1.0 - 1.0 / nodes as f64);
        hits += stretch.len();
    }
    if all <= 0.0 || !all.is_finite() {
        return None;
    }
    // Half a 95 % interval of a fraction near a half.
    let error = 0.98 / (hits as f64).sqrt();
    let (low, high) = ((least / all - error).max(0.0), (most / all + error).min(1.0));
    let value = (mean / all).clamp(low, high);
    (low > LEAST_REMOTE).then_some(Estimate { value, low, high, samples: hits as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::Draw;
    use crate::evidence::ByThread;
    use crate::few::Few;
    use crate::homes::Home;
    use crate::threads::Thread;

    fn threads(nodes: &[u32]) -> Threads {
        let thread = |(index, &node): (usize, &u32)| Thread {
            id: index as i64,
            process: 0,
            name: None,
            omp_number: None,
            turn: 0,
            team: 0,
            slot: index,
            worker: index,
            node,
            idle: false,
            kernel_faults: None,
        };
        let mut threads = Threads::default();
        threads.list = nodes.iter().enumerate().map(thread).collect();
        threads
    }

    /// Samples at positions from 0 on, by these threads.
    fn samples(users: &[usize], threads: &Threads) -> (Vec<Hit>, Design) {
        let hit = |(at, &thread): (usize, &usize)| Hit {
            draw: at,
            object: 0,
            offset: at as u64 * 4096,
            position: at as u64 * 4096,
            start: 0,
            end: 0,
            round: at as u64,
            by_thread: Few::One(ByThread { thread, rate: 1.0, hits: 1, cut: false, cpu_ns: None, node: threads.list[thread].node }),
            writes: Some(false),
            strided: Some(true),
            sites: Vec::new().into(),
            home: Home::Unknown,
        };
        let hits: Vec<Hit> = users.iter().enumerate().map(hit).collect();
        let draw = |at: usize| Draw { group: 0, round: at as u64, z: 1.0, held_ns: 1.0, rate: 1.0, cut: false, doubts: [None; 2] };
        (hits, Design::of_rounds((0..users.len()).map(draw).collect(), 1))
    }

    fn remote(kind: PartitionKind, users: &[usize], threads: &Threads) -> Option<Estimate> {
        let (hits, design) = samples(users, threads);
        remote_anywhere(kind, &hits, &design, threads, 2)
    }

    /// Check that chunks of several threads in each huge page are half remote wherever the page is, that chunks of whole pages are not, and that
    /// neither are chunks on base pages.
    #[test]
    fn chunks_within_huge_pages() {
        let threads = threads(&[0, 0, 1, 1]);
        let remote = |chunk: usize, pages: u64| {
            let users: Vec<usize> = (0..4096).map(|i| i / chunk % 4).collect();
            let (hits, design) = samples(&users, &threads);
            remote_in_pages(PartitionKind::BlockCyclic, &hits, &design, &threads, 2, (1 << 30, pages * 4096))
        };
        let found = remote(128, 512).expect("each page has a chunk of each thread");
        assert!((found.value - 0.5).abs() < 0.02 && found.low > 0.4 && found.high < 0.6, "{found:?}");
        assert!(remote(512, 512).is_none(), "each page is one thread's");
        assert!(remote(128, 1).is_none(), "base pages");
        assert!(remote(1024, 512).is_none(), "blocks");
        let (hits, design) = samples(&(0..16_384).map(|i| i / 128 % 4).collect::<Vec<_>>(), &threads);
        let few: Vec<Hit> = hits.into_iter().step_by(512).collect();
        let found = remote_in_pages(PartitionKind::BlockCyclic, &few, &design, &threads, 2, (1 << 30, 2 << 20));
        assert!(found.is_none(), "a sample in each page");
    }

    /// Check that memory which both nodes use alike is half remote, and that nothing is said where the place of its pages matters.
    #[test]
    fn the_place_makes_no_difference() {
        let threads = threads(&[0, 0, 1, 1]);
        let even: Vec<usize> = (0..400).map(|i| i * 7 % 4).collect();
        let found = remote(PartitionKind::Shared, &even, &threads).expect("an estimate");
        assert!((found.value - 0.5).abs() < 0.02 && found.low < 0.5 && 0.5 < found.high && found.high - found.low < 0.3, "{found:?}");
        assert!(remote(PartitionKind::Irregular, &even, &threads).is_some());
        assert!(remote(PartitionKind::Block, &even, &threads).is_none(), "each thread has a part");
        assert!(remote(PartitionKind::Shared, &even[..20], &threads).is_none(), "too few samples");
        let halves: Vec<usize> = (0..400).map(|i| i / 200 * 2 + i % 2).collect();
        assert!(remote(PartitionKind::Irregular, &halves, &threads).is_none(), "each node uses a half");
        let one_node: Vec<usize> = (0..400).map(|i| i % 2).collect();
        assert!(remote(PartitionKind::Shared, &one_node, &threads).is_none(), "one node uses it");
    }
}
