//! What the profile is judged on, and who answers questions about source code.

use firsttouch_domain::Pin;
use firsttouch_profile::Frame;

/// The machine a profile is judged on.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// As the user wrote it: `virtual:2`, a catalogue name, or the host's name.
    pub name: String,
    pub nodes: usize,
    /// Homes are derived from first touches (`true`), or read from the kernel's answers in the profile.
    pub virtual_machine: bool,
    pub pin: Pin,
    pub cores_per_node: usize,
    /// Objects not larger than this stay in a core's own cache and are not judged, bytes.
    pub private_cache_bytes: u64,
}

/// What is known about the source code behind call stacks. Implemented over files and debug information elsewhere.
pub trait Sources {
    /// The text of a source line.
    fn line(&self, file: &str, line: u32) -> Option<String>;
    /// What a first-touching stack was doing: `loop`, `memset`, `calloc`, `std::vector`, `fortran-assignment`, `memcpy`,
    /// `realloc`, `numpy`, `io`, ...
    fn cause(&self, frames: &[Frame], call: Option<&str>) -> String;
    /// The innermost frame that is the user's own code.
    fn user_frame(&self, frames: &[Frame]) -> Option<usize>;
    /// The variable that the `nth` call of `call` on this line is assigned to.
    fn variable(&self, file: &str, line: u32, call: &str, nth: usize) -> Option<String>;
}
