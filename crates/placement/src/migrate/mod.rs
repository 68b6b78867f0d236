//! Moving the pages of a running process, a chunk at a time: what is where, what should move, what came of it.
//!
//! Chunks are moved by a few threads: one copies less than the memory gives. Pages of one target are moved in a row, as the kernel moves
//! those together. What was busy is tried once more at the end. Transparent huge pages move as a whole with the first of their addresses, so
//! all of their addresses have one target.

use firsttouch_system::placement::Pages;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Pages of one call: enough that the call itself costs little (it waits for work on every CPU), few enough for progress. A multiple
/// of a huge page's.
const CHUNK: u64 = 8192;
/// A mapping with this many times the pages that are there is not looked at to its end once all were seen.
const SPARSE: u64 = 4;

/// Who asks and moves: the kernel, or a fake.
pub trait Mover: Sync {
    /// The node of each page, or a negative errno.
    ///
    /// # Errors
    /// The call as a whole was refused.
    fn nodes(&self, addresses: &[u64]) -> io::Result<Vec<i32>>;

    /// Moves each page to its node: the node it is on then, or a negative errno.
    ///
    /// # Errors
    /// As `nodes`.
    fn relocate(&self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>>;
}

impl Mover for Pages {
    fn nodes(&self, addresses: &[u64]) -> io::Result<Vec<i32>> {
        Self::nodes(self, addresses)
    }

    fn relocate(&self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>> {
        Self::relocate(self, addresses, nodes)
    }
}

/// Where pages should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// On any of these nodes; those that are on others are dealt out to them.
    To(Vec<u32>),
    /// Page by page on these nodes in turn, by address; a transparent huge page as a whole.
    Interleave(Vec<u32>),
}

/// A range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub end: u64,
    pub page_bytes: u64,
    /// What moves as a whole: a transparent huge page where there are some, else a page.
    pub grain_bytes: u64,
    /// Pages that are there, where that is known.
    pub present: Option<u64>,
    pub rule: Rule,
}

/// What came of it; pages of the spans' own sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migrated {
    pub moved: u64,
    pub moved_bytes: u64,
    /// Pages that were where they should be.
    pub there: u64,
    pub there_bytes: u64,
    /// Pages that could not move, by errno.
    pub failed: BTreeMap<i32, u64>,
    /// Bytes that moved, by the node they came from and by the one they are on now.
    pub from: BTreeMap<u32, u64>,
    pub to: BTreeMap<u32, u64>,
    /// The process ended meanwhile.
    pub ended: bool,
}

/// Moves what is not where its span wants it, by up to `threads` threads. `progress` is called after each chunk.
///
/// # Errors
/// A refusal of the kernel other than that the process has ended.
pub fn migrate(mover: &dyn Mover, threads: usize, spans: &[Span], progress: &mut (dyn FnMut(&Migrated) + Send)) -> io::Result<Migrated> {
    let pages: u64 = spans.iter().map(|span| span.present.unwrap_or(span.pages())).sum();
    let threads = usize::try_from(pages / CHUNK).unwrap_or(threads).clamp(1, threads.max(1));
    let work =
        Mutex::new(Work { spans, next: Piece::default(), seen: vec![0; spans.len()], outcome: Outcome::default(), end: Ok(()), progress });
    if threads == 1 {
        move_chunks(mover, &work);
    } else {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Where no more threads may be started, there are fewer.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || move_chunks(mover, &work));
            }
            move_chunks(mover, &work);
        });
    }
    let mut work = work.into_inner().unwrap_or_else(PoisonError::into_inner);
    if work.end.is_ok() && !work.outcome.done.ended {
        let (busy, left) = (std::mem::take(&mut work.outcome.busy), std::mem::take(&mut work.outcome.left));
        for pages in busy.chunks(CHUNK as usize) {
            let mut outcome = Outcome { dealt_before: work.outcome.dealt, ..Outcome::default() };
            work.end = outcome.pages(mover, spans, pages, Some(&left));
            work.take(outcome);
            if work.end.is_err() || work.outcome.done.ended {
                break;
            }
        }
    }
    if work.outcome.done.ended { Ok(work.outcome.done) } else { work.end.map(|()| work.outcome.done) }
}

fn move_chunks(mover: &dyn Mover, work: &Mutex<Work>) {
    let lock = || work.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let (spans, pages, mut outcome) = {
            let mut work = lock();
            let pages = work.chunk();
            (work.spans, pages, Outcome { dealt_before: work.outcome.dealt, ..Outcome::default() })
        };
        if pages.is_empty() {
            return;
        }
        let end = outcome.pages(mover, spans, &pages, None);
        let mut work = lock();
        work.take(outcome);
        if end.is_err() {
            work.end = end;
        }
    }
}

/// What an errno of a page means (move_pages(2), "Page states in the status array").
#[must_use]
pub fn reason(errno: i32) -> (String, &'static str) {
    let (name, reason) = match errno {
        libc::EBUSY => ("EBUSY", "busy: pinned for input and output, or in use by the kernel just then"),
        libc::ENOMEM => ("ENOMEM", "no room on the node they should go to"),
        libc::EACCES => ("EACCES", "other processes map them as well"),
        libc::EFAULT => ("EFAULT", "pages of zeros, or of a mapping that is gone"),
        libc::EIO => ("EIO", "modified, and the file they belong to cannot be written"),
        libc::EINVAL => ("EINVAL", "modified, and of a file system that cannot move pages"),
        libc::EAGAIN => ("EAGAIN", "in use by the kernel just then"),
        other => return (format!("errno {other}"), "the kernel gives no reason"),
    };
    (name.to_owned(), reason)
}

/// Why the kernel moves nothing, and what helps.
#[must_use]
pub fn refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            "not permitted: it must be a process of your own, or firsttouch must run with CAP_SYS_NICE and CAP_SYS_PTRACE (sudo); in a \
                              container, its seccomp profile must allow move_pages (docker run --cap-add SYS_NICE)"
                .to_owned()
        }
        Some(libc::EACCES) => {
            "the process may not use one of these nodes: its cpuset leaves it out (Mems_allowed_list in its /proc/PID/status)".to_owned()
        }
        Some(libc::ENODEV) => "one of these nodes is not online".to_owned(),
        Some(libc::ENOSYS) => "this kernel has no move_pages (CONFIG_NUMA, CONFIG_MIGRATION), or a container forbids it".to_owned(),
        _ => format!("move_pages: {error}"),
    }
}

/// What the threads share.
struct Work<'a> {
    spans: &'a [Span],
    /// The first page that no chunk holds yet.
    next: Piece,
    /// Pages of each span that were found there.
    seen: Vec<u64>,
    outcome: Outcome,
    end: io::Result<()>,
    progress: &'a mut (dyn FnMut(&Migrated) + Send),
}

/// A page of a span, by its number.
#[derive(Clone, Copy, Default)]
struct Piece {
    span: usize,
    page: u64,
}

/// What came of some pages.
#[derive(Default)]
struct Outcome {
    done: Migrated,
    /// Pages of each span that were found there, where there were any.
    seen: BTreeMap<usize, u64>,
    /// Pages to be tried again, by span and address; and the node that each of them was on.
    busy: Vec<(usize, u64)>,
    left: BTreeMap<u64, i32>,
    /// Pages dealt out, and those of other chunks dealt out before.
    dealt: usize,
    dealt_before: usize,
}

impl Span {
    fn pages(&self) -> u64 {
        self.end.saturating_sub(self.start) / self.page_bytes.max(1)
    }
}

impl Work<'_> {
    /// The next pages to be looked after, by span and address: none once all were, or where there is no use in going on.
    fn chunk(&mut self) -> Vec<(usize, u64)> {
        let mut chunk = Vec::new();
        if self.end.is_err() || self.outcome.done.ended {
            return chunk;
        }
        while let Some(span) = self.spans.get(self.next.span)
            && (chunk.len() as u64) < CHUNK / 2
        {
            let (pages, first, page) = (span.pages(), self.next.page, span.page_bytes.max(1));
            let sparse = span.present.is_some_and(|present| pages / SPARSE > present);
            let complete = sparse && span.present.is_some_and(|present| self.seen[self.next.span] >= present);
            if first >= pages || complete {
                self.next = Piece { span: self.next.span + 1, page: 0 };
                continue;
            }
            // Up to a border that no huge page lies across: else its second half would be found moved already.
            let count = (CHUNK - (span.start / page + first) % CHUNK).min(pages - first);
            chunk.extend((first..first + count).map(|number| (self.next.span, span.start + number * page)));
            self.next.page += count;
            if sparse {
                break;
            }
        }
        chunk
    }

    fn take(&mut self, outcome: Outcome) {
        for (span, pages) in &outcome.seen {
            self.seen[*span] += pages;
        }
        let (all, part) = (&mut self.outcome.done, outcome.done);
        all.moved += part.moved;
        all.moved_bytes += part.moved_bytes;
        all.there += part.there;
        all.there_bytes += part.there_bytes;
        all.ended |= part.ended;
        for (errno, pages) in part.failed {
            *all.failed.entry(errno).or_default() += pages;
        }
        for (sum, of_part) in [(&mut all.from, part.from), (&mut all.to, part.to)] {
            for (node, bytes) in of_part {
                *sum.entry(node).or_default() += bytes;
            }
        }
        self.outcome.busy.extend(outcome.busy);
        self.outcome.left.extend(outcome.left);
        self.outcome.dealt += outcome.dealt;
        (self.progress)(&self.outcome.done);
    }
}

impl Outcome {
    /// Moves what should move of these pages. `left`: on the second try, after which there is none, the nodes they were on.
    fn pages(&mut self, mover: &dyn Mover, spans: &[Span], pages: &[(usize, u64)], left: Option<&BTreeMap<u64, i32>>) -> io::Result<()> {
        let addresses: Vec<u64> = pages.iter().map(|(_, address)| *address).collect();
        let Some(nodes) = self.alive(mover.nodes(&addresses))? else { return Ok(()) };
        let mut wanted: Vec<(i32, usize, u64, i32)> = Vec::with_capacity(pages.len());
        for ((index, address), node) in pages.iter().zip(nodes) {
            // Not there, or not to be asked about: nothing to move.
            let Ok(on) = u32::try_from(node) else { continue };
            let span = &spans[*index];
            *self.seen.entry(*index).or_default() += 1;
            match (self.target(span, *address, on), left.and_then(|left| left.get(address))) {
                (Some(target), _) => wanted.push((i32::try_from(target).unwrap_or(i32::MAX), *index, *address, node)),
                // It was busy, and moved with its neighbours: a part of a huge page.
                (None, Some(from)) => self.moved(span.page_bytes, *from, node, 1),
                (None, None) => {
                    self.done.there += 1;
                    self.done.there_bytes += span.page_bytes;
                }
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        wanted.sort_by_key(|(target, ..)| *target);
        let (pages, targets): (Vec<u64>, Vec<i32>) = wanted.iter().map(|(target, _, address, _)| (*address, *target)).unzip();
        let Some(status) = self.alive(mover.relocate(&pages, &targets))? else { return Ok(()) };
        let outcomes: Vec<_> = wanted.iter().zip(status).collect();
        for of_kind in outcomes.chunk_by(|(a, x), (b, y)| (a.0, a.1, a.3, x) == (b.0, b.1, b.3, y)) {
            let Some(((target, span, _, from), status)) = of_kind.first() else { continue };
            let count = of_kind.len() as u64;
            match *status {
                status if status == *target => self.moved(spans[*span].page_bytes, *from, *target, count),
                status if status == -BUSY && left.is_none() => {
                    for ((_, span, address, from), _) in of_kind {
                        self.left.insert(*address, *from);
                        self.busy.push((*span, *address));
                    }
                }
                // It is gone meanwhile.
                status if status == -NOT_THERE => {}
                // A node that it should not be on: as if it had been too busy to move.
                status => *self.done.failed.entry(if status < 0 { -status } else { BUSY }).or_default() += count,
            }
        }
        Ok(())
    }

    fn moved(&mut self, page_bytes: u64, from: i32, to: i32, pages: u64) {
        let bytes = pages * page_bytes;
        self.done.moved += pages;
        self.done.moved_bytes += bytes;
        *self.done.from.entry(from as u32).or_default() += bytes;
        *self.done.to.entry(to as u32).or_default() += bytes;
    }

    /// The node to move to, if it should.
    fn target(&mut self, span: &Span, address: u64, on: u32) -> Option<u32> {
        match &span.rule {
            Rule::To(nodes) if nodes.contains(&on) => None,
            Rule::To(nodes) if span.grain_bytes <= span.page_bytes => {
                self.dealt += 1;
                nodes.get((self.dealt_before + self.dealt - 1) % nodes.len().max(1)).copied()
            }
            Rule::To(nodes) | Rule::Interleave(nodes) => {
                let place = (address / span.grain_bytes.max(span.page_bytes).max(1)) as usize % nodes.len().max(1);
                nodes.get(place).copied().filter(|target| *target != on)
            }
        }
    }

    /// The answer, or none where the process has ended.
    fn alive<T>(&mut self, answer: io::Result<T>) -> io::Result<Option<T>> {
        match answer {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                self.done.ended = true;
                Ok(None)
            }
            other => other.map(Some),
        }
    }
}

const BUSY: i32 = libc::EBUSY;
const NOT_THERE: i32 = libc::ENOENT;

#[cfg(test)]
mod tests;
