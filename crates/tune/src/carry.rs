//! Carries decisions out: a piece at a time, as the budget allows; asks again where the pages are.

use crate::budget::Budget;
use crate::decide::Decision;
use crate::worth::Rate;
use firsttouch_placement::move_pages::{Mover, Rule, Span, migrate};
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// The most that is moved, or looked at, in one piece: the program waits for a page only while its piece moves.
const PIECE_BYTES: u64 = 4 << 20;
/// Pieces that need not move, in one step.
const PIECES: usize = 16;
/// An object whose pages could not be moved in so many tries is left alone.
const MOST_TRIES: u32 = 3;

/// What became of the pages of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Carried {
    pub moved_pages: u64,
    pub moved_bytes: u64,
    /// Of the pages that were moved or already there, as the kernel answered when asked again: pages in their place, and elsewhere.
    pub verified_pages: u64,
    pub astray_pages: u64,
    /// Pages that could not move at their last try, by errno.
    pub failed: BTreeMap<i32, u64>,
    pub from: BTreeMap<u32, u64>,
    pub to: BTreeMap<u32, u64>,
    /// Decisions after which some pages had not moved.
    pub tries: u32,
}

struct Job {
    object: i64,
    spans: VecDeque<Span>,
    moved: u64,
    failed: BTreeMap<i32, u64>,
}

/// The queue of moves, and what was done.
#[derive(Default)]
pub struct Carrier {
    jobs: VecDeque<Job>,
    pub objects: BTreeMap<i64, Carried>,
    pub rate: Rate,
    pub moving_s: f64,
    pub last_move_ns: Option<u64>,
    /// The process has ended.
    pub ended: bool,
}

impl Carrier {
    pub fn add(&mut self, decision: &Decision) {
        self.jobs.push_back(Job { object: decision.object, spans: decision.spans.clone().into(), moved: 0, failed: BTreeMap::new() });
    }

    /// Forgets what is still to be moved of an object.
    pub fn cancel(&mut self, object: i64) {
        self.jobs.retain(|job| job.object != object);
    }

    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.jobs.is_empty() && !self.ended
    }

    #[must_use]
    pub fn is_moving(&self, object: i64) -> bool {
        self.jobs.iter().any(|job| job.object == object)
    }

    /// Whether its pages do not move.
    #[must_use]
    pub fn gave_up(&self, object: i64) -> Option<u32> {
        self.objects.get(&object).map(|one| one.tries).filter(|tries| *tries >= MOST_TRIES)
    }

    /// Moves what the budget allows now. `clock`: monotonic time, ns.
    ///
    /// # Errors
    /// When the kernel refuses to move pages of this process.
    pub fn step(&mut self, budget: &mut Budget, mover: &dyn Mover, clock: &mut dyn FnMut() -> u64) -> io::Result<()> {
        for _ in 0..PIECES {
            let Some(job) = self.jobs.front_mut().filter(|_| !self.ended) else { return Ok(()) };
            let Some(span) = job.spans.front_mut() else {
                let job = self.jobs.pop_front();
                self.finish(job);
                continue;
            };
            let start_ns = clock();
            let bytes = budget.allowed(start_ns, span.grain_bytes).min(PIECE_BYTES.max(span.grain_bytes));
            if bytes == 0 {
                return Ok(());
            }
            // A span may begin inside of a unit, whose end is then the end of the first piece.
            let end = (span.start / span.grain_bytes * span.grain_bytes).saturating_add(bytes).min(span.end);
            let piece = Span { end, ..span.clone() };
            span.start = end;
            let is_done = span.start >= span.end;
            let done = migrate(mover, 1, std::slice::from_ref(&piece), &mut |_| ())?;
            let end_ns = clock();
            self.ended |= done.ended;
            budget.spend(done.moved_bytes);
            let carried = self.objects.entry(job.object).or_default();
            job.moved += done.moved;
            for (errno, pages) in &done.failed {
                *job.failed.entry(*errno).or_default() += pages;
            }
            if is_done {
                job.spans.pop_front();
            }
            if done.moved > 0 {
                let seconds = end_ns.saturating_sub(start_ns) as f64 / 1e9;
                self.rate.measured(done.moved_bytes, seconds);
                self.moving_s += seconds;
                self.last_move_ns = Some(end_ns);
                carried.add(&done);
                carried.ask_again(mover, &piece)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, job: Option<Job>) {
        let Some(job) = job else { return };
        let carried = self.objects.entry(job.object).or_default();
        // Pages that went astray count as tries too: they would be moved for ever.
        carried.tries += u32::from(!job.failed.is_empty() || job.moved == 0);
        carried.failed = job.failed;
    }
}

impl Carried {
    fn add(&mut self, done: &firsttouch_placement::move_pages::Migrated) {
        self.moved_pages += done.moved;
        self.moved_bytes += done.moved_bytes;
        for (sum, part) in [(&mut self.from, &done.from), (&mut self.to, &done.to)] {
            part.iter().for_each(|(node, bytes)| *sum.entry(*node).or_default() += bytes);
        }
    }

    /// Asks the kernel where the pages of a piece are now.
    fn ask_again(&mut self, mover: &dyn Mover, piece: &Span) -> io::Result<()> {
        let page = piece.page_bytes.max(1);
        let addresses: Vec<u64> = (piece.start..piece.end).step_by(usize::try_from(page).unwrap_or(4096)).collect();
        let nodes = match mover.nodes(&addresses) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
            answer => answer?,
        };
        for (address, node) in addresses.iter().zip(nodes) {
            let Ok(node) = u32::try_from(node) else { continue };
            let is_right = match &piece.rule {
                Rule::To(nodes) => nodes.contains(&node),
                Rule::Interleave(nodes) => {
                    let place = (address / piece.grain_bytes.max(page)) as usize % nodes.len().max(1);
                    nodes.get(place) == Some(&node)
                }
            };
            if is_right { self.verified_pages += 1 } else { self.astray_pages += 1 }
        }
        Ok(())
    }
}
