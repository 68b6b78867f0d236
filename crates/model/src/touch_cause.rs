//! The construct that touched memory first. The advice in a report depends on it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The construct that touched memory first. Its name is part of the JSON of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TouchCause {
    /// A loop in the user's code, even if the compiler turned it into a call of memset.
    Loop,
    Memset,
    Calloc,
    /// memcpy, memmove and `std::copy`.
    Memcpy,
    Realloc,
    /// A constructor, resize or growth of a container of the C++ standard library.
    #[serde(rename = "std::vector")]
    StdVector,
    /// `std::fill` on memory that the program allocated.
    #[serde(rename = "std::fill")]
    StdFill,
    /// `std::make_unique` and `std::make_shared`, which clear the memory.
    #[serde(rename = "make_unique")]
    MakeUnique,
    /// A whole-array assignment.
    FortranAssignment,
    Numpy,
    /// Reading from a file or a socket.
    Io,
    /// mmap with MAP_POPULATE: the kernel touches the pages for the calling thread, as in the next three.
    #[serde(rename = "MAP_POPULATE")]
    MapPopulate,
    Mlock,
    /// Or what follows mlockall with MCL_FUTURE.
    Mlockall,
    #[serde(rename = "MADV_POPULATE_WRITE")]
    MadvPopulate,
    Unknown,
}

impl TouchCause {
    pub const ALL: [Self; 16] = [
        Self::Loop,
        Self::Memset,
        Self::Calloc,
        Self::Memcpy,
        Self::Realloc,
        Self::StdVector,
        Self::StdFill,
        Self::MakeUnique,
        Self::FortranAssignment,
        Self::Numpy,
        Self::Io,
        Self::MapPopulate,
        Self::Mlock,
        Self::Mlockall,
        Self::MadvPopulate,
        Self::Unknown,
    ];

    /// The name used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Memset => "memset",
            Self::Calloc => "calloc",
            Self::Memcpy => "memcpy",
            Self::Realloc => "realloc",
            Self::StdVector => "std::vector",
            Self::StdFill => "std::fill",
            Self::MakeUnique => "make_unique",
            Self::FortranAssignment => "fortran-assignment",
            Self::Numpy => "numpy",
            Self::Io => "io",
            Self::MapPopulate => "MAP_POPULATE",
            Self::Mlock => "mlock",
            Self::Mlockall => "mlockall",
            Self::MadvPopulate => "MADV_POPULATE_WRITE",
            Self::Unknown => "unknown",
        }
    }

    /// The call that made the kernel touch memory for its thread, by its name in a profile.
    #[must_use]
    pub fn of_population(call: &str) -> Option<Self> {
        match call {
            "mmap" => Some(Self::MapPopulate),
            "mlock" => Some(Self::Mlock),
            "mlockall" => Some(Self::Mlockall),
            "madvise" => Some(Self::MadvPopulate),
            _ => None,
        }
    }

    /// Whether the kernel touched the memory because this call asked for it.
    #[must_use]
    pub fn is_population(self) -> bool {
        matches!(self, Self::MapPopulate | Self::Mlock | Self::Mlockall | Self::MadvPopulate)
    }

    /// The cause if this allocating call itself wrote the memory that it returned; `None` for calls that write none.
    #[must_use]
    pub fn of_call(call: &str) -> Option<Self> {
        match call {
            "calloc" => Some(Self::Calloc),
            "realloc" => Some(Self::Realloc),
            _ => None,
        }
    }
}

impl fmt::Display for TouchCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that every cause has the same name in the text and in the JSON of a report.
    #[test]
    fn names_agree_with_json() {
        for cause in TouchCause::ALL {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
            assert_eq!(serde_json::from_value::<TouchCause>(cause.as_str().into()).unwrap(), cause);
        }
    }
}
