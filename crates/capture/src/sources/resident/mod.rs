//! Where the pages of the large objects are. Random pages while an object is young; on a machine with several nodes also the same
//! pages again and again, so that pages which move are seen to move. Where the query is refused, only whether pages are present, and their
//! size.

mod appearing;

use crate::random::Random;
use crate::sink::Sink;
use crate::source::{Account, Occasion, Source, Target, Unavailable};
use crate::track::Tracker;
use crate::track::live_objects::LiveObject;
use crate::track::processes::LiveProcess;
use crate::track::residency::Residency;
use appearing::Appearing;
use firsttouch_model::rows::Id;
use firsttouch_system::calls::pages::explain_refusal;

/// Pages queried in a sweep over one object, sweeps over random pages of an object, objects a sweep.
const SWEEP_PAGES: u64 = 32;
const SWEEPS: u32 = 6;
const SWEPT_OBJECTS: usize = 32;
/// The same pages are queried again after this time, then after growing intervals.
const REVISIT_NS: u64 = 500_000_000;
const REVISIT_GROWTH: f64 = 1.15;
/// Until the kernel named a node once, ticks query pages of so many objects of each process, in so many ticks at most: where busy threads delay the recorder,
/// a short run may end before its first flush.
const EARLY_OBJECTS: usize = 4;
const EARLY_TICKS: u32 = 20;

#[derive(Default)]
pub struct Resident {
    appearing: Appearing,
    early_ticks: u32,
}

impl Source for Resident {
    fn name(&self) -> &'static str {
        "resident"
    }

    fn start(&mut self, target: &Target<'_>, tracker: &mut Tracker) -> Result<(), Unavailable> {
        if target.is_launched {
            self.appearing.start(tracker);
        }
        Ok(())
    }

    fn act(&mut self, occasion: Occasion, now: u64, tracker: &mut Tracker) -> u64 {
        match occasion {
            Occasion::Flush => sweep(tracker, now),
            Occasion::Tick if self.early_ticks < EARLY_TICKS && tracker.residency.nodes_named == 0 => self.query_early(tracker, now),
            _ => {}
        }
        self.appearing.act(occasion, now, tracker)
    }

    fn account(&self, tracker: &Tracker) -> Option<Account> {
        let queried = tracker.residency.queried;
        Some(match &tracker.residency.refused {
            Some(reason) => Account::missing(queried, reason),
            None => Account::available(queried),
        })
    }
}

impl Resident {
    /// Queries a few pages, on a machine with several nodes, without taking a sweep from their objects.
    fn query_early(&mut self, tracker: &mut Tracker, now: u64) {
        if !tracker.scope.has_nodes() || tracker.residency.refused.is_some() {
            self.early_ticks = EARLY_TICKS;
            return;
        }
        let mut random = Random::new(now);
        for process in tracker.processes.live.values_mut() {
            let sampled = process.objects.by_address.iter_mut().filter(|(_, object)| object.is_sampled()).take(EARLY_OBJECTS);
            let query: Vec<(Id, u64)> = sampled
                .flat_map(|(&address, object)| {
                    object.has_evidence = true;
                    pages(&mut random, address, object)
                })
                .collect();
            if !query.is_empty() {
                self.early_ticks += 1;
                query_nodes(&mut tracker.residency, process, &query, now, &mut tracker.sink);
            }
        }
    }
}

/// Writes where the pages are, or what the kernel says instead once it refused.
fn query_nodes(residency: &mut Residency, process: &mut LiveProcess, query: &[(Id, u64)], now: u64, sink: &mut Sink) {
    if residency.refused.is_some() {
        Residency::query_sizes(process, query, now, sink);
        return;
    }
    match residency.query(process, query, now, sink) {
        // The process ended meanwhile.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
        Err(error) => {
            residency.refused = Some(explain_refusal(&error));
            Residency::query_sizes(process, query, now, sink);
        }
        Ok(()) => {}
    }
}

fn sweep(tracker: &mut Tracker, now: u64) {
    let has_nodes = tracker.scope.has_nodes() && tracker.residency.refused.is_none();
    let mut random = Random::new(now);
    for process in tracker.processes.live.values_mut() {
        let mut queries: Vec<Vec<(Id, u64)>> = Vec::new();
        let young = process.objects.by_address.iter_mut().filter(|(_, o)| o.is_sampled() && o.page_sweeps < SWEEPS);
        for (&address, object) in young.take(SWEPT_OBJECTS) {
            object.page_sweeps += 1;
            object.has_evidence = true;
            queries.push(pages(&mut random, address, object));
        }
        if has_nodes {
            let due = process.objects.by_address.iter_mut().filter(|(_, o)| o.is_sampled() && o.revisit.is_none_or(|r| r.0 <= now));
            for (&address, object) in due.take(SWEPT_OBJECTS) {
                schedule(object, now);
                queries.push(pages(&mut Random::new(object.id.unsigned_abs()), address, object));
            }
        }
        for query in queries {
            query_nodes(&mut tracker.residency, process, &query, now, &mut tracker.sink);
        }
    }
}

/// Random addresses in an object; the same ones for the same generator.
fn pages(random: &mut Random, address: u64, object: &LiveObject) -> Vec<(Id, u64)> {
    let count = SWEEP_PAGES.min(object.bytes / 4096 + 1);
    (0..count).map(|_| (object.id, address + (random.unit() * object.bytes as f64) as u64)).collect()
}

fn schedule(object: &mut LiveObject, now: u64) {
    let pause = object.revisit.map_or(REVISIT_NS, |(_, pause)| (pause as f64 * REVISIT_GROWTH) as u64);
    object.revisit = Some((now.saturating_add(pause), pause));
    object.has_evidence = true;
}
