//! What the agent records.

/// One record of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRecord {
    pub pid: i32,
    pub tid: i32,
    pub time: u64,
    pub event: AgentEvent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    Attach,
    /// `python`: the id of a `PythonStack`, or 0.
    Alloc {
        call: &'static str,
        address: u64,
        bytes: u64,
        stack: u64,
        python: u64,
    },
    /// A sampled block below the minimum size. `mean`: bytes between two samples of its thread, on average.
    Small {
        call: &'static str,
        address: u64,
        bytes: u64,
        stack: u64,
        python: u64,
        mean: u64,
    },
    Free {
        address: u64,
    },
    Map {
        call: &'static str,
        file: bool,
        /// Processes can share it.
        shared: bool,
        /// What part of it was present before the call, if it is shared ([`firsttouch_model::rows::SharedMemory::present`]).
        present: Option<u32>,
        /// The kernel touched its pages in the call.
        populated: bool,
        address: u64,
        bytes: u64,
        stack: u64,
        python: u64,
    },
    /// The range is gone (munmap) or its pages are (`advise`).
    Unmap {
        address: u64,
        bytes: u64,
        advise: bool,
    },
    /// The kernel touched the pages of a range for the thread. `future`: of mlockall, whether it touches those of later mappings too.
    Populate {
        call: &'static str,
        address: u64,
        bytes: u64,
        future: Option<bool>,
        stack: u64,
        python: u64,
    },
    Stack {
        id: u64,
        frames: Vec<u64>,
    },
    /// `of_sample`: only samples have this id; ids of samples and of other records are not mixed.
    PythonStack {
        id: u64,
        of_sample: bool,
        frames: Vec<PythonFrame>,
    },
    /// The registers of the thread at a tick of its CPU clock.
    Tick(Box<Tick>),
    /// The thread got no timer.
    NoTimer,
    /// A thread with a timer ends.
    ThreadEnd {
        /// Its CPU time.
        cpu_ns: u64,
    },
    Thread {
        creator: i32,
    },
    ParallelBegin {
        code: u64,
        id: u64,
        team_size: u64,
    },
    ParallelEnd {
        id: u64,
    },
    ImplicitTask {
        id: u64,
        number: u64,
    },
}

/// A thread at a tick of its CPU clock, before the instruction at the instruction pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    pub instruction_pointer: u64,
    /// The general registers in the processor's own numbering.
    pub registers: [u64; 16],
    pub cpu: u32,
    /// The thread's CPU time so far, ns.
    pub cpu_ns: u64,
    /// The thread's page faults so far, where the agent reads them.
    pub faults: Option<u32>,
    /// The id of a `PythonStack`, or 0.
    pub python: u64,
    /// A copy of the memory from this address on, around the stack pointer.
    pub stack_address: u64,
    pub stack: Vec<u8>,
}

/// A frame of a Python stack; the innermost comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonFrame {
    pub file: String,
    pub function: String,
    pub line: Option<u32>,
    /// Where the frame is in its code object, in instructions: it distinguishes calls on one line.
    pub instruction: Option<u32>,
    /// Where the expression begins in its line, in bytes, counted from 1.
    pub column: Option<u16>,
}

/// The complete frames of a text of `file\0function\0line@instruction:column\0`. Leaves out frames without a file, and lines that are not
/// numbers.
pub(super) fn python_frames(text: &[u8]) -> Vec<PythonFrame> {
    let mut strings = text.split_inclusive(|byte| *byte == 0).map_while(|s| s.strip_suffix(&[0])).map(String::from_utf8_lossy);
    let mut frames = Vec::new();
    while let (Some(file), Some(function), Some(line)) = (strings.next(), strings.next(), strings.next()) {
        if !file.is_empty() {
            let (line, place) = line.split_once('@').unwrap_or((&line, ""));
            let (instruction, column) = place.split_once(':').unwrap_or((place, ""));
            frames.push(PythonFrame {
                file: file.into_owned(),
                function: function.into_owned(),
                line: line.parse().ok().filter(|line| *line > 0),
                instruction: instruction.parse().ok(),
                column: column.parse().ok().filter(|column| *column > 0),
            });
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &str, function: &str, line: Option<u32>) -> PythonFrame {
        PythonFrame { file: file.to_owned(), function: function.to_owned(), line, instruction: None, column: None }
    }

    #[test]
    fn python_text_is_read_as_far_as_it_is_whole() {
        let prog = frame("/a/prog.py", "Grid.make", Some(22));
        for (text, frames) in [
            (&b"/a/prog.py\0Grid.make\x0022\0"[..], vec![prog.clone()]),
            (b"/a/prog.py\0Grid.make\x0022@31\0", vec![PythonFrame { instruction: Some(31), ..prog.clone() }]),
            (b"/a/prog.py\0Grid.make\x0022@31:5\0", vec![PythonFrame { instruction: Some(31), column: Some(5), ..prog.clone() }]),
            (b"/a/prog.py\0Grid.make\x0022@31:0\0", vec![PythonFrame { instruction: Some(31), ..prog.clone() }]),
            (b"/a/prog.py\0Grid.make\x0022@31:99999\0", vec![PythonFrame { instruction: Some(31), ..prog.clone() }]),
            (b"/a/prog.py\0Grid.make\x0022@x\0", vec![prog.clone()]),
            (b"/a/prog.py\0Grid.make\x0022\0x.py\0<module>\x007\0", vec![prog.clone(), frame("x.py", "<module>", Some(7))]),
            (b"/a/prog.py\0Grid.make\x0022\0x.py\0<module>\x007", vec![prog.clone()]),
            (b"/a/prog.py\0Grid.make\x0022\0x.py", vec![prog]),
            (b"x.py\0\x000\0", vec![frame("x.py", "", None)]),
            (b"x.py\0f\0-1\0", vec![frame("x.py", "f", None)]),
            (b"x.py\0f\x0099999999999\0", vec![frame("x.py", "f", None)]),
            (b"\0f\x001\0", vec![]),
            (b"\xff.py\0f\x001\0", vec![frame("\u{fffd}.py", "f", Some(1))]),
            (b"", vec![]),
            (b"\0\0\0\0", vec![]),
        ] {
            assert_eq!(python_frames(text), frames, "{text:?}");
        }
    }
}
