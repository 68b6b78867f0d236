//! Hinting faults as evidence of use: which thread, on which node, from which line accessed which page.
//!
//! From time to time the kernel's balancing marks a process's pages; the next access to each is caught and handled as a page fault. So
//! each scan samples every page that is used before the next one **once**, whatever the rate of accesses to it. What hints
//! estimate are shares of pages, by bytes: who uses which part of an object, and which part of it is used from another node than
//! it is on. That is the share of accesses too where an object's pages are used alike, as arrays that are swept are. They say
//! nothing of how often an object is accessed compared with another.
//!
//! Each hint becomes what a watch window with one hit is: a draw that stands for weight x page bytes. Those of one scan are a
//! round, since a scan goes through memory in order, and sampling may see one part of it: pauses divide scans, and long ones are cut. The
//! node of the page is that of before the fault ([`crate::residents`]), since the fault may have moved it.

use crate::estimator::{Design, Draw};
use crate::uses::{ByThread, Hit, Reader, Sampled, Uses};
use std::collections::HashMap;

/// A pause of this length ends a scan, ns; scans that follow each other without one are cut after the longer time.
const PAUSE_NS: u64 = 50_000_000;
const LONGEST_SCAN_NS: u64 = 1_000_000_000;
/// Hints of an object that are used, at most: the rest is thinned out evenly.
const MOST: usize = 20_000;

impl Reader<'_> {
    /// The hints on all objects whose touches were read.
    pub(crate) fn hints(&self, uses: &Uses) -> Sampled {
        let mut sampled = Sampled { hits: vec![Vec::new(); self.groups.len()], ..Sampled::default() };
        let mut draws = Vec::new();
        let scans = scans(uses);
        for (g, group) in self.groups.iter().enumerate() {
            for &object in &group.members {
                let Some(own) = uses.touches.get(&object) else { continue };
                let thin = own.hints.len().div_ceil(MOST).max(1);
                for placed in own.hints.iter().step_by(thin) {
                    let touch = &placed.touch;
                    let z = placed.covers() * thin as f64;
                    let round = scans.partition_point(|&start| start <= touch.time) as u64;
                    let node = touch.cpu_node;
                    let hit = Hit {
                        draw: draws.len(),
                        object,
                        offset: placed.offset,
                        position: group.position(object, placed.offset),
                        start: touch.time,
                        end: touch.time,
                        round,
                        by_thread: vec![ByThread { thread: touch.thread, rate: 1.0, hits: 1, cut: false, node }],
                        sites: vec![(touch.site, 1.0)],
                        home: crate::homes::Home::Unknown,
                    };
                    draws.push(Draw { group: g, round, z, held_ns: 1.0, rate: 1.0, cut: false });
                    sampled.hits[g].push(hit);
                }
            }
        }
        let logical = HashMap::new();
        for (g, hits) in sampled.hits.iter_mut().enumerate() {
            for hit in hits {
                hit.home = self.home(hit, g, uses, &logical);
            }
        }
        sampled.design = Design::of_scans(draws, self.groups.len());
        sampled
    }
}

/// The times at which scans began to be noticed.
fn scans(uses: &Uses) -> Vec<u64> {
    let mut times: Vec<u64> = uses.touches.values().flat_map(|own| &own.hints).map(|hint| hint.touch.time).collect();
    times.sort_unstable();
    let (mut starts, mut before): (Vec<u64>, u64) = (Vec::new(), 0);
    for time in times {
        let goes_on = starts.last().is_some_and(|start| time - before < PAUSE_NS && time - start < LONGEST_SCAN_NS);
        if !goes_on {
            starts.push(time);
        }
        before = time;
    }
    starts
}
