//! Which addresses hold the small blocks of which allocation site.
//!
//! Only a sample of the blocks is known, and not when they are released. Blocks that lie close together mostly come from one loop, so the
//! memory between two sampled blocks belongs to
//! - their site, if they are in a run of at least [`RUN`] sampled blocks of one site;
//! - else the site that has at least [`MOST`] of the bytes around them ([`WINDOW`] sampled blocks);
//! - else all sites that have at least [`PART`] of the bytes of such mixed memory, if these are at most [`SITES`] and have most of it: loops
//!   that allocate blocks of several objects in turn;
//! - else to no site in particular.
//!
//! Between two sampled blocks there are on average as many bytes as each stands for. Where it is [`FAR`] times as many, something else lies
//! between them.

use std::collections::BTreeMap;

const RUN: usize = 10;
const WINDOW: usize = 24;
const MOST: f64 = 0.75;
const PART: f64 = 0.1;
const SITES: usize = 3;
const FAR: f64 = 8.0;
const FARTHEST: f64 = 64.0 * 1_048_576.0;
/// Memory that is taken to hold blocks of the same site beyond the outermost sampled one, bytes, at most.
const MARGIN: f64 = 1_048_576.0;
const PAGE: u64 = 4096;

/// A sampled block. `site`: a number for each place in the code that allocates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    pub address: u64,
    pub bytes: u64,
    pub weight: f64,
    pub site: usize,
}

/// The sites that own memory, in ascending order; empty: no site in particular.
pub(super) type Owners = Vec<usize>;

/// Whole pages of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub start: u64,
    pub end: u64,
    pub owners: Owners,
}

/// The stretches between and around sampled blocks, by address. `blocks` are sorted by address, and so are `holes`, the ranges that belong to
/// other objects; they do not overlap.
pub(super) fn stretches(blocks: &[Block], holes: &[(u64, u64)]) -> Vec<Stretch> {
    let mut pieces: Vec<Stretch> = Vec::new();
    for cluster in clusters(blocks) {
        let owners = owners(cluster);
        for (at, block) in cluster.iter().enumerate() {
            let own = |at: usize| owners.get(at).or(owners.last()).cloned().unwrap_or_else(|| vec![block.site]);
            let margin = block.weight.min(MARGIN) as u64;
            if at == 0 {
                pieces.push(Stretch { start: block.address.saturating_sub(margin), end: block.address, owners: own(0) });
            }
            let end = cluster.get(at + 1).map_or(block.address.saturating_add(margin.max(block.bytes)), |next| next.address);
            pieces.push(Stretch { start: block.address, end, owners: own(at) });
        }
    }
    join(pieces.into_iter().flat_map(|piece| without(piece, holes)))
}

/// Blocks without anything else between them.
fn clusters(blocks: &[Block]) -> impl Iterator<Item = &[Block]> {
    blocks.chunk_by(|a, b| (b.address - a.address) as f64 <= (FAR * a.weight.max(b.weight)).min(FARTHEST))
}

/// The owners of the memory from each block to the next one.
fn owners(cluster: &[Block]) -> Vec<Owners> {
    let mut run = vec![0; cluster.len()];
    let mut from = 0;
    for own in cluster.chunk_by(|a, b| a.site == b.site) {
        run[from..from + own.len()].fill(own.len());
        from += own.len();
    }
    let of_gap = |at: usize| {
        let [this, next] = [cluster[at].site, cluster[at + 1].site];
        if this == next && run[at] >= RUN {
            return Some(this);
        }
        let around = &cluster[(at + 1).saturating_sub(WINDOW / 2)..(at + 1 + WINDOW / 2).min(cluster.len())];
        parts(around).first().filter(|(part, _)| *part >= MOST).map(|(_, site)| *site)
    };
    let single: Vec<Option<usize>> = (0..cluster.len().saturating_sub(1)).map(of_gap).collect();
    let mut list: Vec<Owners> = Vec::with_capacity(single.len());
    for mixed in single.chunk_by(|a, b| a.is_none() == b.is_none()) {
        let from = list.len();
        match mixed[0] {
            Some(_) => list.extend(mixed.iter().flatten().map(|site| vec![*site])),
            None => list.extend(std::iter::repeat_n(of_mixed(&cluster[from..=from + mixed.len()]), mixed.len())),
        }
    }
    list
}

/// The owners of memory in which blocks of several sites lie.
fn of_mixed(blocks: &[Block]) -> Owners {
    let large: Vec<(f64, usize)> = parts(blocks).into_iter().filter(|(part, _)| *part >= PART).collect();
    let mut owners: Owners = large.iter().map(|(_, site)| *site).collect();
    owners.sort_unstable();
    let has_most = large.iter().map(|(part, _)| part).sum::<f64>() >= MOST;
    if owners.len() <= SITES && has_most { owners } else { Owners::new() }
}

/// The sites' parts of the bytes, the largest first.
fn parts(blocks: &[Block]) -> Vec<(f64, usize)> {
    let mut of_site: BTreeMap<usize, f64> = BTreeMap::new();
    for block in blocks {
        *of_site.entry(block.site).or_default() += block.weight;
    }
    let all: f64 = of_site.values().sum();
    let mut parts: Vec<(f64, usize)> = of_site.into_iter().map(|(site, weight)| (weight / all.max(f64::MIN_POSITIVE), site)).collect();
    parts.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    parts
}

/// What is left of a piece outside of other objects.
fn without(piece: Stretch, holes: &[(u64, u64)]) -> Vec<Stretch> {
    let mut left = Vec::new();
    let mut from = piece.start;
    let first = holes.partition_point(|hole| hole.1 <= piece.start);
    for &(start, end) in holes[first..].iter().take_while(|hole| hole.0 < piece.end) {
        if start > from {
            left.push(Stretch { start: from, end: start, owners: piece.owners.clone() });
        }
        from = from.max(end);
    }
    if from < piece.end {
        left.push(Stretch { start: from, end: piece.end, owners: piece.owners });
    }
    left
}

/// Joins pieces of one owner, and extends stretches to whole pages that do not overlap. A page of two owners goes to the first.
fn join(pieces: impl Iterator<Item = Stretch>) -> Vec<Stretch> {
    let mut list: Vec<Stretch> = Vec::new();
    for piece in pieces {
        let start = (piece.start & !(PAGE - 1)).max(list.last().map_or(0, |last| last.end));
        let end = piece.end.saturating_add(PAGE - 1) & !(PAGE - 1);
        match list.last_mut() {
            _ if end <= start => {}
            Some(last) if last.end == start && last.owners == piece.owners => last.end = end,
            _ => list.push(Stretch { start, end, owners: piece.owners }),
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    /// A sampled block each 32 KiB, of the given sites.
    fn blocks(from: u64, sites: impl Iterator<Item = usize>) -> Vec<Block> {
        let block = |(at, site): (usize, usize)| Block { address: from + at as u64 * 32 * KIB, bytes: 2000, weight: 32768.0, site };
        sites.enumerate().map(block).collect()
    }

    fn sizes(list: &[Stretch]) -> BTreeMap<Owners, u64> {
        let mut sizes = BTreeMap::new();
        list.iter().for_each(|stretch| *sizes.entry(stretch.owners.clone()).or_default() += (stretch.end - stretch.start) / KIB);
        sizes
    }

    /// Check that memory of one loop after another is divided where the loops meet, and that few blocks of other sites do not matter.
    #[test]
    fn one_site_after_another() {
        let list = stretches(&blocks(1 << 30, (0..200).map(|i| usize::from(i >= 100))), &[]);
        let sizes = sizes(&list);
        assert!(sizes[&vec![0]] >= 99 * 32 && sizes[&vec![1]] >= 99 * 32, "{sizes:?}");
        let list = stretches(&blocks(1 << 30, (0..200).map(|i| usize::from(i % 9 == 5))), &[]);
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].owners, [0]);
        assert_eq!((list[0].start, list[0].end), ((1 << 30) - 32 * KIB, (1 << 30) + 200 * 32 * KIB));
    }

    /// Check that blocks which two sites allocate in turn are one stretch of both sites, and that blocks of many sites belong to no single one.
    #[test]
    fn sites_in_turn() {
        let mut random = 1u64;
        let mut toss = |sides: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 40) % sides
        };
        let two = sizes(&stretches(&blocks(1 << 30, (0..1000).map(|_| toss(2) as usize)), &[]));
        assert!(two[&vec![0, 1]] > 950 * 32, "{two:?}");
        let many = sizes(&stretches(&blocks(1 << 30, (0..1000).map(|_| toss(20) as usize)), &[]));
        assert!(many[&vec![]] > 950 * 32, "{many:?}");
    }

    /// Check that other objects are left out, and that memory far from sampled blocks is no stretch.
    #[test]
    fn what_lies_between() {
        let hole = ((1 << 30) + 40 * KIB + 100, (1 << 30) + 60 * KIB);
        let mut list = blocks(1 << 30, (0..20).map(|_| 7));
        list.extend(blocks(1 << 31, (0..20).map(|_| 7)));
        let found = stretches(&list, &[hole]);
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].end, found[1].start), ((1 << 30) + 44 * KIB, (1 << 30) + 60 * KIB));
        assert_eq!((found[1].end, found[2].start), ((1 << 30) + 640 * KIB, (1 << 31) - 32 * KIB));
        assert!(stretches(&[], &[hole]).is_empty());
        let one = stretches(&list[..1], &[]);
        assert_eq!((one.len(), one[0].end - one[0].start), (1, 64 * KIB));
    }
}
