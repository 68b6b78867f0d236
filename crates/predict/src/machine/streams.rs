//! The arrays that a loop reads and writes, and the actual traffic behind a published bandwidth.

use serde::Deserialize;
use std::fmt;

/// The numbers of arrays that a loop streams through. A published bandwidth counts what the program reads and writes. A store to a cache
/// line that is not in the cache also reads the line first (write allocate), and this is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streams {
    pub read: f64,
    pub write: f64,
    pub allocate: f64,
}

/// The numbers of arrays are not valid counts, or are all 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamsFault;

impl fmt::Display for StreamsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "streams must be counts, and something must be read or written")
    }
}

impl Streams {
    /// Actual traffic / counted bytes.
    #[must_use]
    pub fn traffic_factor(self) -> f64 {
        (self.read + self.write + self.allocate) / (self.read + self.write)
    }

    /// The fraction of the actual traffic that is written.
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
