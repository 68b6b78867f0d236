//! Hinting faults: which thread accessed which page, from which node and which line.
//!
//! From time to time the kernel's NUMA balancing marks pages of a process; it catches the next access to each as a page fault. So
//! each scan samples every page that is used before the next scan **once**, whatever the rate of accesses to it. Hints estimate
//! shares of pages, by bytes: which thread uses which part of an object, and which part of it is used from another node than
//! it is on. That is also the share of accesses if all pages of an object are used at the same rate, as by sweeps over an array.
//! Hints say nothing about how often one object is accessed compared with another.
//!
//! Each hint becomes what a watch window with one hit is: a draw that stands for weight x page bytes. The hints of one scan are a
//! round, because a scan goes through memory in order, and sampling may see one part of it: pauses separate scans, and long ones
//! are cut. The node of the page is the one before the fault ([`crate::residents`]), because the fault may have moved the page.

use super::{ByThread, Counts, Hit, Reader, Samples, Source};
use crate::estimator::{Design, Draw};
use crate::few::Few;
use crate::homes::Home;
use crate::partition::Sight;
use crate::touches::ObjectTouches;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::Profile;
use hashbrown::HashMap;

/// A pause of this length ends a scan, ns. A scan without a pause is cut after `LONGEST_SCAN_NS`.
const PAUSE_NS: u64 = 50_000_000;
const LONGEST_SCAN_NS: u64 = 1_000_000_000;
/// The number of hints used per object; if there are more, every n-th is used.
const MOST: usize = 20_000;

/// Page faults that the kernel's balancing caused on pages already placed.
#[derive(Debug)]
pub struct Hint;

impl Source for Hint {
    fn name(&self) -> EvidenceSource {
        EvidenceSource::Hint
    }

    fn read_faults(&self, reader: &Reader<'_>, touches: &HashMap<usize, ObjectTouches>) -> Samples {
        let mut samples = Samples::of_groups(reader.groups.len());
        let scans = scans(touches);
        let mut found = vec![0; reader.groups.len()];
        for (g, group) in reader.groups.iter().enumerate() {
            for (object, own) in group.members.iter().filter_map(|&object| Some((object, touches.get(&object)?))) {
                found[g] += own.hints.len() as u64;
                let thin = own.hints.len().div_ceil(MOST).max(1);
                for placed in own.hints.iter().step_by(thin) {
                    let touch = &placed.touch;
                    let round = scans.partition_point(|&start| start <= touch.time) as u64;
                    samples.hits[g].push(Hit {
                        draw: samples.draws.len(),
                        object,
                        offset: placed.offset,
                        position: group.position(object, placed.offset),
                        start: touch.time,
                        end: touch.time,
                        round,
                        by_thread: Few::One(ByThread {
                            thread: touch.thread,
                            rate: 1.0,
                            hits: 1,
                            cut: false,
                            cpu_ns: None,
                            node: touch.cpu_node,
                        }),
                        writes: None,
                        strided: None,
                        sites: Few::One((touch.site, 1.0)),
                        home: Home::Unknown,
                    });
                    let z = placed.covers() * thin as f64;
                    samples.draws.push(Draw { group: g, round, z, held_ns: 1.0, rate: 1.0, cut: false, doubts: [None; 2] });
                }
            }
        }
        samples.found = Some(found);
        samples
    }

    fn design(&self, reader: &Reader<'_>, draws: Vec<Draw>) -> Design {
        Design::of_scans(draws, reader.groups.len())
    }

    fn counts(&self) -> Counts {
        Counts::Pages
    }

    fn sees_initialisation(&self) -> bool {
        false
    }

    fn sight(&self) -> Sight {
        Sight::One
    }

    fn unit(&self, count: u64) -> &'static str {
        if count == 1 { "hinting fault, by pages" } else { "hinting faults, by pages" }
    }

    fn has_draws(&self, _: &Profile) -> bool {
        false
    }
}

/// The time of the first hint of each scan, ns.
fn scans(touches: &HashMap<usize, ObjectTouches>) -> Vec<u64> {
    let mut times: Vec<u64> = touches.values().flat_map(|own| &own.hints).map(|hint| hint.touch.time).collect();
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
