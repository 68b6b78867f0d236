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
    Free {
        address: u64,
    },
    Map {
        call: &'static str,
        file: bool,
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
    Stack {
        id: u64,
        frames: Vec<u64>,
    },
    PythonStack {
        id: u64,
        frames: Vec<PythonFrame>,
    },
    /// The registers of the thread at a tick of its CPU clock.
    Tick(Box<Tick>),
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
}
