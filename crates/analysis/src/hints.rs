//! Hinting faults as evidence of use: which thread, on which node, from which line accessed which page.
//!
//! From time to time the kernel's balancing marks a process's pages; the next access to each is caught and handled as a page fault. So
//! each scan samples every page that is used before the next one **once**, whatever the rate of accesses to it. What hints
//! estimate are shares of pages, by bytes: who uses which part of an object, and which part of it is used from another node than
//! it is on. That is the share of accesses too where an object's pages are used alike, as arrays that are swept are. They say
//! nothing of how often an object is accessed compared with another.
//!
//! Each hint becomes what a watch window with one hit is: a draw that stands for weight x page bytes. Those of a tenth of a
//! second are a round: the scans go through memory in order, so neighbours in time see the same part. The node of the page is
//! that of before the fault ([`crate::residents`]), since the fault may have moved it.

use crate::estimator::{Design, Draw};
use crate::uses::{ByThread, Hit, Reader, Sampled, Uses};
use std::collections::HashMap;

/// Hints within this time are one round, ns.
const ROUND_NS: u64 = 100_000_000;
/// Hints of an object that are used, at most: the rest is thinned out evenly.
const MOST: usize = 20_000;

impl Reader<'_> {
    /// The hints on all objects whose touches were read.
    pub(crate) fn hints(&self, uses: &Uses) -> Sampled {
        let mut sampled = Sampled { hits: vec![Vec::new(); self.groups.len()], ..Sampled::default() };
        let mut draws = Vec::new();
        for (g, group) in self.groups.iter().enumerate() {
            for &object in &group.members {
                let Some(own) = uses.touches.get(&object) else { continue };
                let thin = own.hints.len().div_ceil(MOST).max(1);
                for placed in own.hints.iter().step_by(thin) {
                    let touch = &placed.touch;
                    let z = placed.covers() * thin as f64;
                    let round = touch.time / ROUND_NS;
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
                    draws.push(Draw { group: g, round, z, held_ns: 1.0, rate: 1.0 });
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
        // The exposure is not known: each hint stands for itself.
        sampled.design = Design::new(draws, &vec![0.0; self.groups.len()]);
        sampled
    }
}
