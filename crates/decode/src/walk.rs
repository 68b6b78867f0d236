//! What a walk takes and tells, the same for every processor.

/// The general registers of a thread in the processor's own numbering (x86-64: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub instruction_pointer: u64,
    pub general: [u64; 16],
}

/// The memory of the process that was sampled. Every function may fail: code may be gone, and memory unreadable.
pub trait Memory {
    /// Reads instructions at `address` into `bytes`; returns how many bytes could be read.
    fn code(&self, address: u64, bytes: &mut [u8]) -> usize;

    /// Reads data as it was when the sample was taken, such as a copy of the stack. `false` where that is not known.
    fn then(&self, address: u64, bytes: &mut [u8]) -> bool;

    /// Reads data as it is now, for what hardly changes while the program runs: the index of a gather, the next pointer of a list.
    fn now(&self, address: u64, bytes: &mut [u8]) -> bool;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    Read,
    Write,
    /// Read and written by one instruction.
    Update,
}

/// How the address of an operand became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The operand of the sampled instruction.
    Here,
    /// By emulation from the sampled instruction on.
    Ahead,
    /// By undoing the instructions before the sampled one.
    Behind,
}

/// One memory access of the code around a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Address of the instruction.
    pub instruction: u64,
    /// Address of the data.
    pub address: u64,
    /// Bytes that one execution of the instruction accesses here; one lane of a gather or scatter.
    pub bytes: u32,
    pub access: Access,
    pub reach: Reach,
    /// Bytes from one round of the loop to the next; `None` outside of loops, and where the step is not constant.
    pub stride: Option<i64>,
    /// The code itself has the address, without a register: a constant or a static variable, at the same place in every round.
    pub is_fixed: bool,
    /// The data lie on the stack of the thread: spilled registers and locals, hardly ever an object that a user places.
    pub is_stack: bool,
    /// One element of a repeated string instruction, which the processor moves in larger pieces.
    pub is_repeated: bool,
}

/// A counter of a loop, in a register or on the stack: it grows by the same step in each round, so it shows how many rounds lie between two samples in one
/// entry of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Induction {
    /// Number of the register, or [`Self::ON_STACK`].
    pub register: u8,
    pub value: u64,
    pub step: i64,
}

impl Induction {
    /// In place of a register's number: the counter is on the stack.
    pub const ON_STACK: u8 = u8::MAX;
}

/// The innermost loop around a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Address of its last instruction: the same for every sample in it.
    pub end: u64,
    /// Hash of the registers that the loop leaves as they are. Two samples of one thread with the same value are in one entry of the loop.
    pub entry: u64,
    pub induction: Option<Induction>,
    /// Rounds of this entry that follow the one of the operands, where the comparison at the end of the loop shows it.
    pub left: Option<u64>,
    /// The loop waits: it has a pause instruction, or it reads the same places in each round and changes nothing.
    pub is_waiting: bool,
}

/// What the code around a sample accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// The accesses whose addresses are known.
    pub operands: Vec<Operand>,
    /// Memory operands whose addresses are not known, and of them gathers and scatters.
    pub unknown: u32,
    pub unknown_gathers: u32,
    /// The instruction of each of them.
    pub unknown_at: Vec<u64>,
    /// `None` where control does not come back to the sampled instruction.
    pub around: Option<Loop>,
}

/// Finds and walks the code around samples, for one kind of processor.
pub trait Walker {
    /// The instructions around an address. It holds for every process that has the same code at the same place or moved as a whole,
    /// so it can be kept by build-id and offset.
    type Plan;

    /// `None` where there is no instruction at `instruction_pointer` that can be decoded.
    fn plan(&self, memory: &dyn Memory, instruction_pointer: u64) -> Option<Self::Plan>;

    /// The addresses of the instructions, as in the code that the plan was made from, that [`Walker::plan_beside`] has a plan for.
    fn members(&self, plan: &Self::Plan) -> Vec<u64>;

    /// The plan of another instruction in the loop of `plan`: as a new search finds it, but for the choice between arms of the same
    /// length, at a tenth of the cost.
    fn plan_beside(&self, plan: &Self::Plan, instruction_pointer: u64) -> Option<Self::Plan>;

    /// The accesses of the code of `plan`, from the registers of a sample taken there.
    fn walk(&self, plan: &Self::Plan, registers: &Registers, memory: &dyn Memory) -> Walk;
}
