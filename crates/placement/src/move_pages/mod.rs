//! Moves the pages of a running process, a chunk at a time.
//!
//! Several threads move chunks, because one thread cannot use the whole memory bandwidth. Pages with the same target are adjacent in a
//! call, because the kernel moves those together. Busy pages are tried once more at the end. A transparent huge page moves as a whole
//! with the first of its addresses, so all of its addresses have the same target.

use firsttouch_system::calls::pages::Pages;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Pages of one call: enough that the cost of the call itself is small (it waits for work on every CPU), few enough to show progress.
/// A multiple of the pages in a huge page.
const CHUNK: u64 = 8192;
/// A mapping with this many times its resident pages is not searched to its end once all of them were seen.
const SPARSE: u64 = 4;

/// Queries and moves pages: the kernel, or a fake in tests.
pub trait Mover: Sync {
    /// The node of each page, or a negative errno.
    ///
    /// # Errors
    /// When the whole call is refused.
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
    /// On any of these nodes; pages on other nodes are distributed over them in turn.
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
    /// The unit of moving: a transparent huge page if the range has any, else a page.
    pub grain_bytes: u64,
    /// Resident pages, if their number is known.
    pub present: Option<u64>,
    pub rule: Rule,
}

/// The result; pages have the sizes of their spans.
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

/// Moves pages that are on a wrong node, with up to `threads` threads. Calls `progress` after each chunk.
///
/// # Errors
/// When the kernel refuses the call; the end of the process is not an error.
pub fn migrate(mover: &dyn Mover, threads: usize, spans: &[Span], progress: &mut (dyn FnMut(&Migrated) + Send)) -> io::Result<Migrated> {
    let pages: u64 = spans.iter().map(|span| span.present.unwrap_or(span.pages())).sum();
    let threads = usize::try_from(pages / CHUNK).unwrap_or(threads).clamp(1, threads.max(1));
    let work = Mutex::new(Work {
        spans,
        next: Piece::default(),
        seen: vec![0; spans.len()],
        result: ChunkResult::default(),
        end: Ok(()),
        progress,
    });
    if threads == 1 {
        move_chunks(mover, &work);
    } else {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // If a thread cannot be started, go on with fewer.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || move_chunks(mover, &work));
            }
            move_chunks(mover, &work);
        });
    }
    let mut work = work.into_inner().unwrap_or_else(PoisonError::into_inner);
    if work.end.is_ok() && !work.result.done.ended {
        let (busy, left) = (std::mem::take(&mut work.result.busy), std::mem::take(&mut work.result.left));
        for pages in busy.chunks(CHUNK as usize) {
            let mut result = ChunkResult { dealt_before: work.result.dealt, ..ChunkResult::default() };
            work.end = result.pages(mover, spans, pages, Some(&left));
            work.take(result);
            if work.end.is_err() || work.result.done.ended {
                break;
            }
        }
    }
    if work.result.done.ended { Ok(work.result.done) } else { work.end.map(|()| work.result.done) }
}

fn move_chunks(mover: &dyn Mover, work: &Mutex<Work>) {
    let lock = || work.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let (spans, pages, mut result) = {
            let mut work = lock();
            let pages = work.chunk();
            (work.spans, pages, ChunkResult { dealt_before: work.result.dealt, ..ChunkResult::default() })
        };
        if pages.is_empty() {
            return;
        }
        let end = result.pages(mover, spans, &pages, None);
        let mut work = lock();
        work.take(result);
        if end.is_err() {
            work.end = end;
        }
    }
}

/// The meaning of a page's errno (move_pages(2), "Page states in the status array").
#[must_use]
pub fn reason(errno: i32) -> (String, &'static str) {
    let (name, reason) = match errno {
        libc::EBUSY => ("EBUSY", "busy: pinned for input and output, or in use by the kernel just then"),
        libc::ENOMEM => ("ENOMEM", "no room on the node they should go to"),
        libc::EACCES => ("EACCES", "other processes map them as well"),
        libc::EFAULT => ("EFAULT", "zero pages, or pages of a mapping that was removed"),
        libc::EIO => ("EIO", "modified, and the file they belong to cannot be written"),
        libc::EINVAL => ("EINVAL", "modified, and of a file system that cannot move pages"),
        libc::EAGAIN => ("EAGAIN", "in use by the kernel just then"),
        other => return (format!("errno {other}"), "the kernel gives no reason"),
    };
    (name.to_owned(), reason)
}

/// Why the kernel refuses to move pages, and what helps.
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

/// State shared by the threads.
struct Work<'a> {
    spans: &'a [Span],
    /// The first page that is in no chunk yet.
    next: Piece,
    /// Resident pages found in each span.
    seen: Vec<u64>,
    result: ChunkResult,
    end: io::Result<()>,
    progress: &'a mut (dyn FnMut(&Migrated) + Send),
}

/// A page of a span, by index.
#[derive(Clone, Copy, Default)]
struct Piece {
    span: usize,
    page: u64,
}

/// The result for some pages.
#[derive(Default)]
struct ChunkResult {
    done: Migrated,
    /// Resident pages found in each span; spans without any are left out.
    seen: BTreeMap<usize, u64>,
    /// Pages to try again, by span and address, and the node that each was on.
    busy: Vec<(usize, u64)>,
    left: BTreeMap<u64, i32>,
    /// The number of pages distributed in turn, including those of earlier chunks.
    dealt: usize,
    dealt_before: usize,
}

impl Span {
    fn pages(&self) -> u64 {
        self.end.saturating_sub(self.start) / self.page_bytes.max(1)
    }
}

impl Work<'_> {
    /// The next chunk of pages, by span and address; empty after the last one, or if going on is useless.
    fn chunk(&mut self) -> Vec<(usize, u64)> {
        let mut chunk = Vec::new();
        if self.end.is_err() || self.result.done.ended {
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
            // End at a boundary of huge pages: else the second half of one would already have moved.
            let count = (CHUNK - (span.start / page + first) % CHUNK).min(pages - first);
            chunk.extend((first..first + count).map(|number| (self.next.span, span.start + number * page)));
            self.next.page += count;
            if sparse {
                break;
            }
        }
        chunk
    }

    fn take(&mut self, result: ChunkResult) {
        for (span, pages) in &result.seen {
            self.seen[*span] += pages;
        }
        let (all, part) = (&mut self.result.done, result.done);
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
        self.result.busy.extend(result.busy);
        self.result.left.extend(result.left);
        self.result.dealt += result.dealt;
        (self.progress)(&self.result.done);
    }
}

impl ChunkResult {
    /// Moves those of the pages that are on a wrong node. `left`: on the second and last try, the nodes they were on.
    fn pages(&mut self, mover: &dyn Mover, spans: &[Span], pages: &[(usize, u64)], left: Option<&BTreeMap<u64, i32>>) -> io::Result<()> {
        let addresses: Vec<u64> = pages.iter().map(|(_, address)| *address).collect();
        let Some(nodes) = self.alive(mover.nodes(&addresses))? else { return Ok(()) };
        let mut wanted: Vec<(i32, usize, u64, i32)> = Vec::with_capacity(pages.len());
        for ((index, address), node) in pages.iter().zip(nodes) {
            // Not present, or the query failed: nothing to move.
            let Ok(on) = u32::try_from(node) else { continue };
            let span = &spans[*index];
            *self.seen.entry(*index).or_default() += 1;
            match (self.target(span, *address, on), left.and_then(|left| left.get(address))) {
                (Some(target), _) => wanted.push((i32::try_from(target).unwrap_or(i32::MAX), *index, *address, node)),
                // It was busy as a part of a huge page, and moved with it.
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
                // It was unmapped meanwhile.
                status if status == -NOT_THERE => {}
                // Still on a wrong node: treat it as busy.
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

    /// The node to move a page to; `None` if it should stay.
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

    /// The answer; `None` if the process has ended.
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
