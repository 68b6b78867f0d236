//! The C parts: the agent that records allocations inside a profiled program, and the bundled kernels.

mod dgemv;

pub use dgemv::{Dgemv, DgemvError, DgemvResult, Initialisation, Schedule, Spread};

/// `libfirsttouch_agent.so`: loaded into a profiled program through LD_PRELOAD.
pub static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfirsttouch_agent.so"));

/// Sources of the bundled kernels by the end of their paths, for reports on machines without this repository.
pub const SOURCES: &[(&str, &str)] = &[("native/kernels/dgemv.c", include_str!("../../../native/kernels/dgemv.c"))];

#[cfg(test)]
mod tests {
    /// Check that the agent is a shared ELF object.
    #[test]
    fn the_agent_is_a_shared_object() {
        assert_eq!(&super::AGENT[..4], b"\x7fELF");
        assert_eq!(super::AGENT[16], 3, "e_type is ET_DYN");
    }
}
