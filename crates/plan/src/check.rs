//! The rules for the contents of a plan, whoever wrote it.

use crate::{Blocks, Entry, Frame, MOST_COPIES, MOST_ENTRIES, MOST_FRAMES, MOST_PARTS, Origin, Plan, Policy, Threads};
use firsttouch_model::Pin;
use std::fmt;

/// Why an entry is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryFault {
    UnknownModule(String),
    FrameCount,
    NoOffset,
    Copies,
    LastFrameInlined,
    /// An inlined function whose module and offset differ from those of the next frame.
    InlinedElsewhere(String),
    Ordinal,
    UnknownNode {
        node: u32,
        nodes: u32,
    },
    PartCount,
    NoThreads,
    UnknownThread {
        thread: u32,
        threads: u32,
    },
    Until,
    Period,
    Rows,
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownModule(name) => write!(f, "there is no [[module]] with the name '{name}'"),
            Self::FrameCount => write!(f, "a site has 1 to {MOST_FRAMES} frames"),
            Self::NoOffset => write!(f, "one of the frames at least must have an offset"),
            Self::Copies => write!(f, "copies are 1 to {MOST_COPIES} pairs of offsets, [first, after the last], of a frame with an offset"),
            Self::LastFrameInlined => write!(f, "the last frame cannot be inlined: there is no frame that it could be inlined into"),
            Self::InlinedElsewhere(function) => {
                write!(f, "'{function}' is inlined, so it has the module and offset of the next frame")
            }
            Self::Ordinal => write!(f, "of an ordinal, first is less than every"),
            Self::UnknownNode { node, nodes } => write!(f, "node {node} does not exist: the plan has nodes 0-{}", nodes - 1),
            Self::PartCount => write!(f, "policy \"blocked\" needs 1 to {MOST_PARTS} threads, one a part"),
            Self::NoThreads => write!(f, "policy \"blocked\" needs [threads]"),
            Self::UnknownThread { thread, threads } => {
                write!(f, "thread {thread} does not exist: the plan has threads 0-{}", threads - 1)
            }
            Self::Until => write!(f, "until has a number for each of threads, rising from above 0 to 1.0"),
            Self::Period => write!(f, "period_bytes is at least a page, 4096"),
            Self::Rows => write!(f, "rows is at least 1"),
        }
    }
}

/// Why a plan is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanFault {
    EntryCount,
    SameModule(String),
    BuildId(String),
    /// The node of a thread would depend on the machine.
    CompactPin,
    Pin(String),
    /// A thread that does not exist, or all threads, are idle.
    Idle {
        threads: u32,
    },
}

impl PlanFault {
    /// The key that the fault is about, if one line has it.
    #[must_use]
    pub fn key(&self) -> Option<&'static str> {
        match self {
            Self::CompactPin | Self::Pin(_) => Some("pin"),
            Self::Idle { .. } => Some("idle"),
            _ => None,
        }
    }
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EntryCount => write!(f, "more than {MOST_ENTRIES} entries"),
            Self::SameModule(name) => write!(f, "two modules have the name '{name}'"),
            Self::BuildId(module) => {
                write!(f, "the build_id of '{module}' must be an even number of hexadecimal digits, 64 at most")
            }
            Self::CompactPin => write!(f, "pin = \"compact\" depends on the machine: write the node of each thread, such as 0,0,1,1"),
            Self::Pin(why) => write!(f, "pin: {why}"),
            Self::Idle { threads } => write!(f, "idle names some of the threads 0-{}, not all", threads.saturating_sub(1)),
        }
    }
}

/// Checks one entry. The other parts of `plan` must have been read.
pub fn check(entry: &Entry, plan: &Plan) -> Result<(), EntryFault> {
    let known = |module: &String| match plan.modules.iter().any(|known| known.name == *module) {
        true => Ok(()),
        false => Err(EntryFault::UnknownModule(module.clone())),
    };
    match &entry.origin {
        Origin::Symbol { module, .. } => known(module)?,
        Origin::Site(site) => {
            if !(1..=MOST_FRAMES).contains(&site.frames.len()) {
                return Err(EntryFault::FrameCount);
            }
            site.frames.iter().try_for_each(|frame| known(&frame.module))?;
            if site.frames.iter().all(|frame| frame.offset.is_none()) {
                return Err(EntryFault::NoOffset);
            }
            let is_range = |(from, to): &(u64, u64)| from < to;
            let is_valid = |frame: &Frame| {
                frame.copies.is_empty()
                    || (frame.offset.is_some() && frame.copies.len() <= MOST_COPIES && frame.copies.iter().all(is_range))
            };
            if !site.frames.iter().all(is_valid) {
                return Err(EntryFault::Copies);
            }
            if site.frames.last().is_some_and(|frame| frame.inlined) {
                return Err(EntryFault::LastFrameInlined);
            }
            let pairs = site.frames.iter().zip(site.frames.iter().skip(1));
            for (inner, outer) in pairs.filter(|(inner, _)| inner.inlined) {
                if (&inner.module, inner.offset) != (&outer.module, outer.offset) || inner.offset.is_none() {
                    return Err(EntryFault::InlinedElsewhere(inner.function.clone()));
                }
            }
            if site.ordinal.is_some_and(|(first, every)| every != 0 && first >= every) {
                return Err(EntryFault::Ordinal);
            }
        }
    }
    match &entry.policy {
        Policy::Bind(nodes) | Policy::Interleave(nodes) | Policy::Weighted(nodes) => {
            nodes.iter().try_for_each(|node| check_node(*node, plan))
        }
        Policy::Preferred(node) => check_node(*node, plan),
        Policy::Blocked(blocks) => check_blocks(blocks, plan),
        Policy::Leave => Ok(()),
    }
}

/// Checks the plan as a whole.
pub fn check_all(plan: &Plan) -> Result<(), PlanFault> {
    if plan.entries.len() > MOST_ENTRIES {
        return Err(PlanFault::EntryCount);
    }
    let mut names: Vec<&str> = plan.modules.iter().map(|module| module.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(PlanFault::SameModule(pair[0].to_owned()));
    }
    let is_digits = |text: &str| text.len() <= 64 && text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(module) = plan.modules.iter().find(|module| !is_digits(&module.build_id)) {
        return Err(PlanFault::BuildId(module.name.clone()));
    }
    let Threads { count, idle, .. } = &plan.threads;
    if idle.last().is_some_and(|last| last >= count) || (!idle.is_empty() && idle.len() >= *count as usize) {
        return Err(PlanFault::Idle { threads: *count });
    }
    match &plan.threads.pin {
        Some(Pin::Compact) => Err(PlanFault::CompactPin),
        Some(pin) => pin.check(plan.nodes as usize).map_err(|why| PlanFault::Pin(why.to_string())),
        None => Ok(()),
    }
}

fn check_node(node: u32, plan: &Plan) -> Result<(), EntryFault> {
    if node < plan.nodes { Ok(()) } else { Err(EntryFault::UnknownNode { node, nodes: plan.nodes }) }
}

fn check_blocks(blocks: &Blocks, plan: &Plan) -> Result<(), EntryFault> {
    if !(1..=MOST_PARTS).contains(&blocks.threads.len()) {
        return Err(EntryFault::PartCount);
    }
    let count = plan.threads.count;
    if let Some(thread) = blocks.threads.iter().find(|thread| **thread >= count) {
        return Err(match count {
            0 => EntryFault::NoThreads,
            threads => EntryFault::UnknownThread { thread: *thread, threads },
        });
    }
    if !blocks.until.is_empty() {
        let rises = blocks.until.windows(2).all(|pair| pair[0] < pair[1]) && blocks.until.first().is_some_and(|first| *first > 0.0);
        if blocks.until.len() != blocks.threads.len() || !rises || blocks.until.last() != Some(&1.0) {
            return Err(EntryFault::Until);
        }
    }
    if blocks.period_bytes.is_some_and(|period| !(period.is_finite() && period >= 4096.0)) {
        return Err(EntryFault::Period);
    }
    if blocks.rows == 0 {
        return Err(EntryFault::Rows);
    }
    Ok(())
}
