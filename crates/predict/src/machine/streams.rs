//! What a loop reads and writes: the streams of a kernel, and from them the traffic behind a published bandwidth.

use serde::Deserialize;
use std::fmt;

/// Arrays a loop streams through. A published bandwidth counts what the program reads and writes; a store to a line that is not in
/// the cache also reads it first (write allocate), which nobody counts.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streams {
    pub read: f64,
    pub write: f64,
    pub allocate: f64,
}

/// Numbers of streams that are no counts, or all 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamsFault;

impl fmt::Display for StreamsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "streams must be counts, and something must be read or written")
    }
}

impl Streams {
    /// Real traffic over counted bytes.
    #[must_use]
    pub fn traffic_factor(self) -> f64 {
        (self.read + self.write + self.allocate) / (self.read + self.write)
    }

    /// The part of the real traffic that is written.
    #[must_use]
    pub fn write_share(self) -> f64 {
        self.write / (self.read + self.write + self.allocate)
    }

    pub(super) fn check(self) -> Result<(), StreamsFault> {
        let each = [self.read, self.write, self.allocate];
        if each.iter().all(|count| count.is_finite() && *count >= 0.0) && self.read + self.write > 0.0 {
            return Ok(());
        }
        Err(StreamsFault)
    }
}
