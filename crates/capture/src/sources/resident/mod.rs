//! Where the pages of the large objects are. Random pages while an object is young; on a machine with several nodes also the same
//! pages again and again, so that pages which move are seen to move. Where the query is refused, only whether pages are present, and their
//! size.

mod appearing;

use crate::random::Random;
use crate::source::{Account, Occasion, Source, Target, Unavailable};
use crate::track::Tracker;
use crate::track::live_objects::LiveObject;
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

#[derive(Default)]
pub struct Resident {
    appearing: Appearing,
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
        if occasion == Occasion::Flush {
            sweep(tracker, now);
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
            if tracker.residency.refused.is_some() {
                Residency::query_sizes(process, &query, now, &mut tracker.sink);
                continue;
            }
            match tracker.residency.query(process, &query, now, &mut tracker.sink) {
                // The process ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    tracker.residency.refused = Some(explain_refusal(&error));
                    Residency::query_sizes(process, &query, now, &mut tracker.sink);
                }
                Ok(()) => {}
            }
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
