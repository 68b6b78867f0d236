//! Where the pages of the large objects are: random ones while an object is young, and on a machine with several nodes the same ones
//! again and again, so that pages which move are seen to move.

use super::Session;
use crate::track::objects::LiveObject;
use crate::watch::design::Random;
use firsttouch_model::rows::Page;
use firsttouch_system::calls::pages;

/// Pages asked about in a sweep over one object, sweeps over random pages of an object, objects a sweep.
const SWEEP_PAGES: u64 = 32;
const SWEEPS: u32 = 6;
const SWEPT_OBJECTS: usize = 32;
/// The same pages are asked about again after this time, then after ever longer ones.
const REVISIT_NS: u64 = 500_000_000;
const REVISIT_GROWTH: f64 = 1.15;

impl Session<'_> {
    pub(super) fn sweep_pages(&mut self, now: u64) {
        if self.resident_missing.is_some() {
            return;
        }
        let several_nodes = !self.tracker.scope.cpu_nodes.is_empty();
        let mut random = Random::new(now);
        let mut rows = Vec::new();
        for process in self.tracker.processes.values_mut() {
            let (id, pid) = (process.id, process.pid);
            let mut asked: Vec<(i64, Vec<u64>)> = Vec::new();
            let young = process.objects.by_address.iter_mut().filter(|(_, o)| o.watchable() && o.page_sweeps < SWEEPS);
            for (&address, object) in young.take(SWEPT_OBJECTS) {
                object.page_sweeps += 1;
                object.has_evidence = true;
                asked.push((object.id, drawn(&mut random, address, object.bytes)));
            }
            if several_nodes {
                let due = process.objects.by_address.iter_mut().filter(|(_, o)| o.watchable() && o.revisit.is_none_or(|r| r.0 <= now));
                for (&address, object) in due.take(SWEPT_OBJECTS) {
                    schedule(object, now);
                    asked.push((object.id, drawn(&mut Random::new(object.id.unsigned_abs()), address, object.bytes)));
                }
            }
            for (object, addresses) in asked {
                match pages::nodes_of(pid, &addresses) {
                    Ok(nodes) => {
                        for (&a, node) in addresses.iter().zip(nodes) {
                            let page_bytes = if node >= 0 { process.page_sizes.at(a) } else { 0 };
                            rows.push(Page { process: id, object: Some(object), address: a, time_ns: now, node, page_bytes });
                        }
                    }
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => {
                        self.resident_missing = Some(firsttouch_system::calls::pages::explain_refusal(&error));
                    }
                }
            }
        }
        if self.resident_missing.is_some()
            && let Some(rounds) = &mut self.rounds
        {
            rounds.residency = false;
        }
        self.tracker.pages_queried += rows.len() as u64;
        self.tracker.sink.write(|w| rows.iter().try_for_each(|r| w.page(r)));
    }
}

/// Random addresses in an object; the same for the same generator.
fn drawn(random: &mut Random, address: u64, bytes: u64) -> Vec<u64> {
    (0..SWEEP_PAGES.min(bytes / 4096 + 1)).map(|_| address + (random.unit() * bytes as f64) as u64).collect()
}

fn schedule(object: &mut LiveObject, now: u64) {
    let pause = object.revisit.map_or(REVISIT_NS, |(_, pause)| (pause as f64 * REVISIT_GROWTH) as u64);
    object.revisit = Some((now.saturating_add(pause), pause));
    object.has_evidence = true;
}
