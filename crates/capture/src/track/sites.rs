//! Call stacks, each stored once, with addresses turned into (file, offset) while the mappings are known.

use super::processes::Process;
use crate::sink::Sink;
use firsttouch_profile::{FoldedObjects, Frame, Id, Site};
use std::collections::HashMap;

/// Distinct stacks kept whole; beyond that only leaf frames are told apart, so that memory stays bounded.
const WHOLE_STACKS: usize = 200_000;

#[derive(Default)]
pub struct Sites {
    by_stack: HashMap<(Id, bool, Box<[u64]>), Id>,
    by_agent_id: HashMap<(Id, u64), Id>,
    next: Id,
    /// Objects without evidence, by (site, call, bytes).
    pub folded: HashMap<(Id, &'static str, u64), FoldedObjects>,
}

impl Sites {
    /// The site of a stack, leaf first. `leaf_returned`: the leaf too is the address after the instruction meant (a watch hit,
    /// a system call); callers always are.
    pub fn intern(&mut self, process: &Process, stack: &[u64], leaf_returned: bool, sink: &mut Sink) -> Id {
        let stack = if self.by_stack.len() < WHOLE_STACKS { stack } else { &stack[..stack.len().min(1)] };
        if let Some(id) = self.by_stack.get(&(process.id, leaf_returned, stack.into())) {
            return *id;
        }
        let id = self.new_id();
        self.by_stack.insert((process.id, leaf_returned, stack.into()), id);
        write(id, process, stack, leaf_returned, sink);
        id
    }

    /// The site of one of the agent's stacks, possibly before its frames are known.
    pub fn of_agent_stack(&mut self, process: Id, stack: u64) -> Option<Id> {
        if stack == 0 {
            return None;
        }
        let next = &mut self.next;
        Some(*self.by_agent_id.entry((process, stack)).or_insert_with(|| {
            *next += 1;
            *next
        }))
    }

    /// The frames of one of the agent's stacks: all return addresses.
    pub fn define_agent_stack(&mut self, process: &Process, stack: u64, frames: &[u64], sink: &mut Sink) {
        if let Some(id) = self.of_agent_stack(process.id, stack) {
            write(id, process, frames, true, sink);
        }
    }

    /// After exec the agent's stack ids start anew.
    pub fn forget_agent_stacks(&mut self, process: Id) {
        self.by_agent_id.retain(|(p, _), _| *p != process);
        self.by_stack.retain(|(p, _, _), _| *p != process);
    }

    fn new_id(&mut self) -> Id {
        self.next += 1;
        self.next
    }
}

fn write(id: Id, process: &Process, stack: &[u64], leaf_returned: bool, sink: &mut Sink) {
    let frames = stack
        .iter()
        .enumerate()
        .map(|(depth, &address)| {
            let inside = if depth > 0 || leaf_returned { address.wrapping_sub(1) } else { address };
            let (module, offset) = process.locate(inside).unzip();
            Frame { address, module, offset, ..Frame::default() }
        })
        .collect();
    let site = Site { id, process: process.id, frames };
    sink.write(|w| w.site(&site));
}
