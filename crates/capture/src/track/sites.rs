//! Call stacks, each stored once, with addresses turned into (file, offset) while the mappings are known.

use super::processes::LiveProcess;
use crate::agent::records::PythonFrame;
use crate::sink::Sink;
use firsttouch_model::rows::{Frame, Id, Site};
use firsttouch_symbols::{is_own_module, is_python_library};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::path::Path;

/// Distinct stacks kept whole. Beyond this only leaf frames are distinguished, so that memory stays bounded.
const WHOLE_STACKS: usize = 200_000;
/// Python stacks of samples whose lines are kept, at most: 40 bytes each.
const MOST_SAMPLED_STACKS: usize = 1_000_000;
/// Frames of a Python stack that are kept: more would make one site of each way to a line. A stack that is deeper in libraries is kept up to the
/// program's own code, which gives its objects their names.
const PYTHON_FRAMES: usize = 8;

/// The process, whether the leaf is a return address, the number of the line of Python code that follows (0: none), and the addresses.
type StackKey = (Id, bool, usize, Box<[u64]>);

#[derive(Default)]
pub struct Sites {
    by_stack: HashMap<StackKey, Id>,
    /// By the agent's ids of the native and the Python stack (0: none).
    by_agent_id: HashMap<(Id, u64, u64), Id>,
    /// The agent's native stacks, for sites that continue in Python.
    native: HashMap<(Id, u64), Box<[u64]>>,
    python: HashMap<(Id, u64), Vec<Frame>>,
    /// By the agent's id of the Python stack of a sample: the number of its line, which is its place in `lines` plus 1.
    sampled: HashMap<(Id, u64), usize>,
    lines: Vec<Frame>,
    line_numbers: HashMap<(String, u32), usize>,
    seen: Id,
}

impl Sites {
    /// The site of a stack, leaf first. `leaf_returned`: the leaf, like every caller, is the address after the instruction that is
    /// meant (a watch hit, a system call).
    pub fn intern(&mut self, process: &LiveProcess, stack: &[u64], leaf_returned: bool, sink: &mut Sink) -> Id {
        self.of_stack(process, stack, leaf_returned, 0, sink)
    }

    /// The site of a sample, leaf first. Where all of the stack is in libraries and the interpreter, it ends with the line of the program's own Python code
    /// that the thread ran. `python`: the agent's id of the Python stack, or 0.
    pub fn of_sample(&mut self, process: &LiveProcess, stack: &[u64], python: u64, sink: &mut Sink) -> Id {
        let line = self.sampled.get(&(process.id, python)).copied().unwrap_or(0);
        let is_of_library = |(depth, address): (usize, &u64)| {
            let inside = if depth > 0 { address.wrapping_sub(1) } else { *address };
            process.module_at(inside).is_some_and(|(module, _)| !is_own_module(module))
        };
        let line = if line != 0 && stack.iter().enumerate().all(is_of_library) { line } else { 0 };
        self.of_stack(process, stack, false, line, sink)
    }

    /// The number of the line of the program's own Python code in one of the agent's Python stacks of samples; `None` if the stack shows none.
    pub fn sampled_line(&self, process: Id, python: u64) -> Option<usize> {
        self.sampled.get(&(process, python)).copied()
    }

    /// The site of such a line, and of the native instruction at which its thread was.
    pub fn of_python_line(&mut self, process: &LiveProcess, instruction: u64, line: usize, sink: &mut Sink) -> Id {
        self.of_stack(process, &[instruction], false, line, sink)
    }

    fn of_stack(&mut self, process: &LiveProcess, stack: &[u64], leaf_returned: bool, line: usize, sink: &mut Sink) -> Id {
        let stack = if self.by_stack.len() < WHOLE_STACKS { stack } else { &stack[..stack.len().min(1)] };
        let entry = match self.by_stack.entry((process.id, leaf_returned, line, stack.into())) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(entry) => entry,
        };
        self.seen += 1;
        let id = *entry.insert(self.seen);
        let mut frames = located(process, stack, leaf_returned);
        frames.extend(line.checked_sub(1).and_then(|line| self.lines.get(line)).cloned());
        write(id, process, frames, sink);
        id
    }

    /// The site of one of the agent's stacks, possibly before its frames are known; with a Python stack (not 0), the site of both.
    pub fn of_agent_stack(&mut self, process: &LiveProcess, stack: u64, python: u64, sink: &mut Sink) -> Option<Id> {
        let python_frames = self.python.get(&(process.id, python));
        let python = if python_frames.is_some() { python } else { 0 };
        if stack == 0 && python == 0 {
            return None;
        }
        if let Some(id) = self.by_agent_id.get(&(process.id, stack, python)) {
            return Some(*id);
        }
        self.seen += 1;
        let id = self.seen;
        self.by_agent_id.insert((process.id, stack, python), id);
        if let Some(python_frames) = python_frames {
            let mut frames = self.native.get(&(process.id, stack)).map_or_else(Vec::new, |native| located(process, native, true));
            frames.extend_from_slice(python_frames);
            write(id, process, frames, sink);
        }
        Some(id)
    }

    /// The frames of one of the agent's stacks: all return addresses.
    pub fn define_agent_stack(&mut self, process: &LiveProcess, stack: u64, frames: &[u64], sink: &mut Sink) {
        if let Some(id) = self.of_agent_stack(process, stack, 0, sink) {
            write(id, process, located(process, frames, true), sink);
            if self.native.len() < WHOLE_STACKS {
                self.native.insert((process.id, stack), frames.into());
            }
        }
    }

    /// The frames of one of the agent's Python stacks.
    pub fn define_python_stack(&mut self, process: Id, python: u64, frames: Vec<PythonFrame>) {
        if python == 0 || frames.is_empty() || self.python.len() >= WHOLE_STACKS {
            return;
        }
        let kept = kept(&frames);
        self.python.insert((process, python), frames.into_iter().take(kept).map(interpreted).collect());
    }

    /// The innermost line of the program's own code in one of the agent's Python stacks of samples.
    pub fn define_sampled_line(&mut self, process: Id, python: u64, frames: &[PythonFrame]) {
        let own = frames.iter().find(|frame| !is_python_library(&frame.file)).and_then(|frame| Some((frame, frame.line?)));
        let Some((frame, line)) = own.filter(|_| python != 0 && self.sampled.len() < MOST_SAMPLED_STACKS) else { return };
        let number = *self.line_numbers.entry((frame.file.clone(), line)).or_insert_with(|| {
            self.lines.push(interpreted(frame.clone()));
            self.lines.len()
        });
        self.sampled.insert((process, python), number);
    }

    /// The line that declares a static object, as the site of its allocation.
    pub fn of_declaration(&mut self, process: &LiveProcess, address: u64, file: &Path, line: u32, sink: &mut Sink) -> Id {
        let id = self.new_id();
        let frame = Frame { address, file: Some(file.to_string_lossy().into_owned()), line: Some(line), ..Frame::default() };
        write(id, process, vec![frame], sink);
        id
    }

    /// After exec the agent's stack ids start again.
    pub fn forget_agent_stacks(&mut self, process: Id) {
        self.by_agent_id.retain(|(p, _, _), _| *p != process);
        self.native.retain(|(p, _), _| *p != process);
        self.python.retain(|(p, _), _| *p != process);
        self.sampled.retain(|(p, _), _| *p != process);
        self.by_stack.retain(|(p, ..), _| *p != process);
    }

    fn new_id(&mut self) -> Id {
        self.seen += 1;
        self.seen
    }
}

fn kept(frames: &[PythonFrame]) -> usize {
    let own = frames.iter().position(|frame| !is_python_library(&frame.file));
    PYTHON_FRAMES.max(own.map_or(0, |at| at + 1)).min(frames.len())
}

fn interpreted(frame: PythonFrame) -> Frame {
    Frame {
        address: Frame::interpreted_address(frame.instruction, frame.column),
        module: Some("python".to_owned()),
        function: Some(frame.function).filter(|name| !name.is_empty()),
        file: Some(frame.file),
        line: frame.line,
        ..Frame::default()
    }
}

fn write(id: Id, process: &LiveProcess, frames: Vec<Frame>, sink: &mut Sink) {
    let site = Site { id, process: process.id, frames };
    sink.write(|w| w.site(&site));
}

fn located(process: &LiveProcess, stack: &[u64], leaf_returned: bool) -> Vec<Frame> {
    stack
        .iter()
        .enumerate()
        .map(|(depth, &address)| {
            let inside = if depth > 0 || leaf_returned { address.wrapping_sub(1) } else { address };
            let (module, offset) = process.module_at(inside).map(|(path, offset)| (path.to_owned(), offset)).unzip();
            Frame { address, module, offset, ..Frame::default() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a Python stack is cut after some frames, but not before the program's own code.
    #[test]
    fn python_stacks_reach_the_program() {
        let stack = |libraries: usize, own: usize| -> Vec<PythonFrame> {
            let frame = |file: &str| {
                let (file, function) = (file.to_owned(), String::new());
                PythonFrame { file, function, line: Some(1), instruction: None, column: None }
            };
            let library = std::iter::repeat_with(|| frame("/env/lib/python3.11/site-packages/pandas/core/frame.py")).take(libraries);
            library.chain(std::iter::repeat_with(|| frame("/home/me/work.py")).take(own)).collect()
        };
        for (libraries, own, expected) in [(0, 3, 3), (0, 20, 8), (7, 5, 8), (8, 5, 9), (11, 5, 12), (24, 0, 8), (0, 0, 0)] {
            assert_eq!(kept(&stack(libraries, own)), expected, "{libraries} {own}");
        }
    }
}
