//! What pictures show besides the figures of a report: a finer map of each object, and the run over time.
//!
//! It is computed only on request ([`crate::analyse_with_pictures`]), from the samples that the report's own figures come from.

mod bandwidth;
mod by_time;
mod maps;
mod samples;
mod time;

pub use bandwidth::{MeasuredBandwidth, Stretch, Transferred, measured_bandwidth};
pub(crate) use by_time::Timed;
pub use by_time::{Accessed, CountsIn, TimedAccesses};
pub(crate) use maps::MapBuilder;
pub(crate) use samples::samples;
pub use samples::{AccessSample, AccessSamples};
pub use time::{Bin, Phase, Timeline};
pub(crate) use time::{Recorded, timeline};

use crate::{CodeLocation, Interval};

/// What is computed for pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Maps and the timeline.
    #[default]
    Pictures,
    /// The samples one by one, for the formats of other tools, and the timeline.
    Samples,
}

/// The maps of objects, and the run over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pictures {
    /// By object, in the order in which they were looked at; of objects with accesses or first touches only.
    pub maps: Vec<PageMap>,
    /// `None` if the profile has no times.
    pub timeline: Option<Timeline>,
    /// The accesses of each stretch of the timeline.
    pub by_time: Vec<TimedAccesses>,
    /// The samples one by one, if they are asked for.
    pub samples: AccessSamples,
}

impl Pictures {
    /// The map of the object with this id.
    #[must_use]
    pub fn map(&self, object: i64) -> Option<&PageMap> {
        self.maps.iter().find(|map| map.object == object)
    }
}

/// The address range of an object in equal pieces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageMap {
    /// The object's id in the profile.
    pub object: i64,
    /// Bytes of a piece.
    pub piece_bytes: u64,
    /// Lines of the code that pieces refer to by index.
    pub lines: Vec<CodeLocation>,
    pub pieces: Vec<Piece>,
    /// Each piece in parts, down to pages, for those who look closer; `None` where there are not more samples than pieces.
    pub close: Option<CloseMap>,
}

/// The pieces of a map in equal parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CloseMap {
    /// Parts of each piece.
    pub parts: usize,
    /// Bytes of a part: at least a page.
    pub part_bytes: u64,
    /// All parts of the object, in order; without their lines, which are those of the piece.
    pub list: Vec<Part>,
}

/// A part of a piece.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    pub toucher: Majority,
    pub user: Majority,
    pub home: Majority,
    /// The part of its accesses with a known home that is remote.
    pub remote: Option<f64>,
    pub remote_interval: Option<Interval>,
    pub samples: u64,
}

impl PageMap {
    /// The piece with this position in the object.
    pub(crate) fn piece_at(&self, position: u64) -> usize {
        let last = self.pieces.len().max(1) as u64 - 1;
        usize::try_from((position / self.piece_bytes.max(1)).min(last)).unwrap_or(0)
    }
}

/// A piece of an object's address range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    /// The thread that touched most of it first.
    pub toucher: Majority,
    /// The thread that uses it.
    pub user: Majority,
    /// The node that it lies on.
    pub home: Majority,
    /// The part of its accesses with a known home that is remote.
    pub remote: Option<f64>,
    pub remote_interval: Option<Interval>,
    /// Its accesses / those to the object.
    pub share: f64,
    /// Samples behind these figures.
    pub samples: u64,
    /// The line that touched most of it first, and the line that uses it most: indices into [`PageMap::lines`].
    pub touched_at: Option<usize>,
    pub used_at: Option<usize>,
}

/// What most of a piece's evidence says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Majority {
    #[default]
    Unknown,
    Several,
    /// A thread's index or a node's number.
    One(usize),
}

/// Lines of a source file, not all next to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceExcerpt {
    pub file: String,
    /// The number and the text of each line, in order.
    pub lines: Vec<(u32, String)>,
}
