//! The C parts: the agent that records allocations inside a profiled program, the placement library that pins the threads of one, the one
//! that places its memory by a plan, and the bundled kernels.

mod kernels;

pub use kernels::{Cost, Form, Initialisation, Kernel, KernelError, Operation, Outcome, Repetitions, Run, Schedule, Stream};

/// `libfirsttouch_agent.so`: loaded into a profiled program through LD_PRELOAD.
pub static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfirsttouch_agent.so"));

/// `libfirsttouch_place.so`: loaded into a placed program through LD_PRELOAD.
pub static PLACE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfirsttouch_place.so"));

/// `libfirsttouch_plan.so`: loaded into a program that runs under a plan.
pub static PLAN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfirsttouch_plan.so"));

/// Sources of the bundled kernels by the end of their paths, for reports on machines without this repository.
pub const SOURCES: &[(&str, &str)] = &[
    ("native/kernels/chase.c", include_str!("../native/kernels/chase.c")),
    ("native/kernels/dgemv.c", include_str!("../native/kernels/dgemv.c")),
    ("native/kernels/dgemv_tuned.c", include_str!("../native/kernels/dgemv_tuned.c")),
    ("native/kernels/dmvm.c", include_str!("../native/kernels/dmvm.c")),
    ("native/kernels/iso3dfd.c", include_str!("../native/kernels/iso3dfd.c")),
    ("native/kernels/stream.c", include_str!("../native/kernels/stream.c")),
];

#[cfg(test)]
mod tests {
    /// Check that the libraries are shared ELF objects.
    #[test]
    fn the_libraries_are_shared_objects() {
        for library in [super::AGENT, super::PLACE, super::PLAN] {
            assert_eq!(&library[..4], b"\x7fELF");
            assert_eq!(library[16], 3, "e_type is ET_DYN");
        }
    }
}
