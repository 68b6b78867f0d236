//! Moving the pages of a running process, a chunk at a time: what is where, what should move, what came of it.
//!
//! Pages of one target are moved in a row, as the kernel moves those together. What was busy is tried once more at the end. Transparent huge
//! pages move as a whole with the first of their addresses.

use std::collections::BTreeMap;
use std::io;

/// Pages of one call: enough that the call itself costs little (it waits for work on every CPU), few enough for progress. A multiple
/// of a huge page's.
const CHUNK: u64 = 16384;
/// A mapping with this many times the pages that are there is not looked at to its end once all were seen.
const SPARSE: u64 = 4;

/// Who asks and moves: the kernel, or a fake.
pub trait Mover {
    /// The node of each page, or a negative errno.
    ///
    /// # Errors
    /// The call as a whole was refused.
    fn nodes(&mut self, addresses: &[u64]) -> io::Result<Vec<i32>>;

    /// Moves each page to its node: the node it is on then, or a negative errno.
    ///
    /// # Errors
    /// As `nodes`.
    fn relocate(&mut self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>>;
}

/// Where pages should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// On any of these nodes; those that are on others are dealt out to them.
    To(Vec<u32>),
    /// Page by page on these nodes in turn, by address.
    Interleave(Vec<u32>),
}

/// A range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub end: u64,
    pub page_bytes: u64,
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

/// Moves what is not where its span wants it. `progress` is called after each chunk.
///
/// # Errors
/// A refusal of the kernel other than that the process has ended.
pub fn migrate<'a>(mover: &'a mut dyn Mover, spans: &'a [Span], progress: &mut dyn FnMut(&Migrated)) -> io::Result<Migrated> {
    let mut work = Work { mover, done: Migrated::default(), busy: Vec::new(), left: BTreeMap::new(), once_more: false, dealt: 0 };
    for span in spans {
        if !work.span(span, progress)? {
            return Ok(work.done);
        }
    }
    work.once_more = true;
    for (span, pages) in std::mem::take(&mut work.busy) {
        if !work.pages(span, &pages)? {
            break;
        }
        progress(&work.done);
    }
    Ok(work.done)
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

struct Work<'a> {
    mover: &'a mut dyn Mover,
    done: Migrated,
    /// Pages to be tried again.
    busy: Vec<(&'a Span, Vec<u64>)>,
    /// The node that each of them was on.
    left: BTreeMap<u64, i32>,
    /// The second try, after which there is none.
    once_more: bool,
    /// Pages dealt out so far.
    dealt: usize,
}

impl<'a> Work<'a> {
    /// One span; whether the process still lives.
    fn span(&mut self, span: &'a Span, progress: &mut dyn FnMut(&Migrated)) -> io::Result<bool> {
        let page = span.page_bytes.max(1);
        let pages = span.end.saturating_sub(span.start) / page;
        let sparse = span.present.is_some_and(|present| pages / SPARSE > present);
        let before = self.seen();
        let mut next = 0;
        while next < pages {
            // Up to a border that no huge page lies across: else its second half would be found moved already.
            let count = (CHUNK - (span.start / page + next) % CHUNK).min(pages - next);
            let addresses: Vec<u64> = (next..next + count).map(|number| span.start + number * page).collect();
            next += count;
            if !self.pages(span, &addresses)? {
                return Ok(false);
            }
            progress(&self.done);
            if sparse && span.present.is_some_and(|present| self.seen() - before >= present) {
                break;
            }
        }
        Ok(true)
    }

    fn seen(&self) -> u64 {
        self.done.moved
            + self.done.there
            + self.done.failed.values().sum::<u64>()
            + self.busy.iter().map(|(_, pages)| pages.len() as u64).sum::<u64>()
    }

    /// Some pages of a span; whether the process still lives.
    fn pages(&mut self, span: &'a Span, addresses: &[u64]) -> io::Result<bool> {
        let Some(nodes) = self.alive(|mover| mover.nodes(addresses))? else { return Ok(false) };
        let mut wanted: Vec<(i32, u64, i32)> = Vec::new();
        for (address, node) in addresses.iter().zip(nodes) {
            // Not there, or not to be asked about: nothing to move.
            let Ok(on) = u32::try_from(node) else { continue };
            match self.target(span, *address, on) {
                Some(target) => wanted.push((i32::try_from(target).unwrap_or(i32::MAX), *address, node)),
                // It was busy, and moved with its neighbours: a part of a huge page.
                None if self.left.contains_key(address) => {
                    let from = self.left.get(address).copied().unwrap_or(node);
                    self.moved(span, from, node);
                }
                None => {
                    self.done.there += 1;
                    self.done.there_bytes += span.page_bytes;
                }
            }
        }
        wanted.sort_by_key(|(target, ..)| *target);
        let (pages, targets): (Vec<u64>, Vec<i32>) = wanted.iter().map(|(target, address, _)| (*address, *target)).unzip();
        if pages.is_empty() {
            return Ok(true);
        }
        let Some(status) = self.alive(|mover| mover.relocate(&pages, &targets))? else { return Ok(false) };
        let mut again = Vec::new();
        for ((target, address, from), status) in wanted.iter().zip(status) {
            match status {
                status if status == *target => self.moved(span, *from, *target),
                status if status == -BUSY && !self.once_more => {
                    self.left.insert(*address, *from);
                    again.push(*address);
                }
                // It is gone meanwhile.
                status if status == -NOT_THERE => {}
                // A node that it should not be on: as if it had been too busy to move.
                status => *self.done.failed.entry(if status < 0 { -status } else { BUSY }).or_default() += 1,
            }
        }
        if !again.is_empty() {
            self.busy.push((span, again));
        }
        Ok(true)
    }

    fn moved(&mut self, span: &Span, from: i32, to: i32) {
        self.done.moved += 1;
        self.done.moved_bytes += span.page_bytes;
        *self.done.from.entry(from as u32).or_default() += span.page_bytes;
        *self.done.to.entry(to as u32).or_default() += span.page_bytes;
    }

    /// The node to move to, if it should.
    fn target(&mut self, span: &Span, address: u64, on: u32) -> Option<u32> {
        match &span.rule {
            Rule::To(nodes) if nodes.contains(&on) => None,
            Rule::To(nodes) => {
                self.dealt += 1;
                nodes.get((self.dealt - 1) % nodes.len().max(1)).copied()
            }
            Rule::Interleave(nodes) => {
                let place = (address / span.page_bytes.max(1)) as usize % nodes.len().max(1);
                nodes.get(place).copied().filter(|target| *target != on)
            }
        }
    }

    /// The answer, or none where the process has ended.
    fn alive<T>(&mut self, ask: impl FnOnce(&mut dyn Mover) -> io::Result<T>) -> io::Result<Option<T>> {
        match ask(self.mover) {
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
#[path = "migrate/tests.rs"]
mod tests;
