//! Samples of the registers of running threads, and the accesses of the code around them.

use super::Id;

/// The object of an access to memory that belonged to no recorded object. No object has this id.
pub const NO_OBJECT: Id = 0;

/// What the thread was doing when its sample was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleState {
    /// It ran code whose accesses were looked for.
    #[default]
    Computing,
    /// It ran a loop that only waits for another thread.
    Waiting,
    /// It was in the kernel.
    InKernel,
    /// Its code could not be read or decoded.
    Undecoded,
}

impl SampleState {
    const ALL: [Self; 4] = [Self::Computing, Self::Waiting, Self::InKernel, Self::Undecoded];

    /// The number that profiles contain.
    #[must_use]
    pub fn number(self) -> u8 {
        Self::ALL.iter().position(|one| *one == self).map_or(0, |at| at as u8)
    }

    /// The inverse of [`SampleState::number`]. Unknown numbers stand for code that was not decoded.
    #[must_use]
    pub fn from_number(number: i64) -> Self {
        usize::try_from(number).ok().and_then(|at| Self::ALL.get(at)).copied().unwrap_or(Self::Undecoded)
    }
}

/// A register that grows by a constant step in each round of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub value: u64,
    pub step: i64,
}

/// The innermost loop around a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledLoop {
    /// Address of its last instruction.
    pub end: u64,
    /// Samples of one thread with the same number are in one entry of the loop.
    pub entry: u64,
    pub progress: Option<Progress>,
    /// Rounds that follow in this entry of the loop, where the comparison at its end shows it.
    pub left: Option<u64>,
}

/// One sample of a thread at a tick of its CPU clock.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerSample {
    pub id: Id,
    pub thread: Id,
    pub time_ns: u64,
    pub cpu: u32,
    /// The thread's CPU time so far.
    pub cpu_ns: u64,
    /// The number of ticks that this one stands for: more than 1 once a long run is sampled only part of the time; 0 if it was
    /// taken between ticks, to show how fast a loop is.
    pub weight: f64,
    pub site: Option<Id>,
    pub state: SampleState,
    pub around: Option<SampledLoop>,
    /// Memory operands whose addresses are not known.
    pub unknown: u32,
    /// 8-byte words accessed outside of recorded objects and the stack.
    pub elsewhere: f64,
}

/// How often samples show the address that an instruction accesses. Where a register was overwritten before the sample, they do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandCount {
    pub process: Id,
    /// Its address.
    pub instruction: u64,
    /// Samples in whose code it is, with and without the address.
    pub known: u64,
    pub unknown: u64,
}

/// A tick of a thread that is no sample: it shows only which line of the program's own Python code the thread ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonLine {
    pub thread: Id,
    pub time_ns: u64,
    /// Its only frame is that line.
    pub site: Id,
}

/// Whether an access reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    Read,
    Write,
    Update,
}

impl AccessKind {
    /// The number that profiles contain.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Update => 2,
        }
    }

    /// The inverse of [`AccessKind::number`].
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        [Self::Read, Self::Write, Self::Update].into_iter().find(|kind| i64::from(kind.number()) == number)
    }

    #[must_use]
    pub fn writes(self) -> bool {
        self != Self::Read
    }
}

/// One access of the code around a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledAccess {
    pub sample: Id,
    /// The recorded object at the address.
    pub object: Id,
    pub address: u64,
    /// Bytes that one execution accesses.
    pub bytes: u32,
    /// 8-byte words that one execution accesses, as watchpoints count them: at least one, and a part of one for each element of a
    /// repeated string instruction.
    pub words: f64,
    pub kind: AccessKind,
    pub site: Option<Id>,
    /// Bytes from one round of the loop to the next, where that is constant.
    pub stride: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that numbers are read back, and that unknown ones do not become evidence.
    #[test]
    fn numbers_are_read_back() {
        for state in SampleState::ALL {
            assert_eq!(SampleState::from_number(state.number().into()), state);
        }
        assert_eq!((SampleState::from_number(-1), SampleState::from_number(9)), (SampleState::Undecoded, SampleState::Undecoded));
        for kind in [AccessKind::Read, AccessKind::Write, AccessKind::Update] {
            assert_eq!(AccessKind::from_number(kind.number().into()), Some(kind));
        }
        assert_eq!(AccessKind::from_number(3), None);
    }
}
