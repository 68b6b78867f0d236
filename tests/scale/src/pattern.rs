//! What the threads do with an object.

use crate::random::Random;

/// Bytes that a thread takes at a time where threads take turns.
const CHUNK: u64 = 256 << 10;

/// Who touches an object first, and who uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The first thread touches it, each thread uses a block.
    Serial,
    /// Each thread touches and uses a block.
    Blocks,
    /// Each thread touches a block, and chunks are used in turn.
    Turns,
    /// The first thread touches it, all read all of it.
    Shared,
    /// Each thread touches a block, and each place is used by any thread.
    Irregular,
}

impl Pattern {
    #[must_use]
    pub fn of(object: usize) -> Self {
        [Self::Serial, Self::Blocks, Self::Turns, Self::Shared, Self::Irregular][object % 5]
    }

    /// Whether one thread touches all of it.
    #[must_use]
    pub fn is_touched_by_one(self) -> bool {
        matches!(self, Self::Serial | Self::Shared)
    }

    /// The thread that uses the object of `bytes` at `offset`.
    pub fn user(self, offset: u64, bytes: u64, threads: usize, random: &mut Random) -> usize {
        let threads = threads as u64;
        let user = match self {
            Self::Serial | Self::Blocks => u128::from(offset) * u128::from(threads) / u128::from(bytes),
            Self::Turns => u128::from(offset / CHUNK % threads),
            Self::Shared | Self::Irregular => u128::from(random.below(threads)),
        };
        user as usize
    }

    /// A place of an object of `bytes` that a thread uses, at `part` of its way through it (in 1,024ths).
    pub fn place(self, thread: usize, part: u64, bytes: u64, threads: usize, random: &mut Random) -> u64 {
        let (thread, threads) = (thread as u64, threads as u64);
        let offset = match self {
            Self::Serial | Self::Blocks => (thread * 1024 + part) * (bytes / 1024) / threads,
            Self::Turns => {
                let (chunks, way) = ((bytes / CHUNK / threads).max(1), bytes / threads * part / 1024);
                (way / CHUNK % chunks * threads + thread) * CHUNK + way % CHUNK
            }
            Self::Shared => part * (bytes / 1024),
            Self::Irregular => random.below(bytes),
        };
        offset.min(bytes - 8) & !7
    }
}
