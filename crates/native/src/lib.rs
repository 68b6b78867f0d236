//! The C parts: four libraries that are preloaded into a program (the agent records its allocations, the pin library pins its threads, the
//! plan library places its memory by a plan, and one makes OpenMP's allocators place theirs), and the bundled kernels.

mod kernels;

pub use kernels::{Cost, Form, Initialisation, Kernel, KernelError, KernelResult, KernelRun, Operation, Repetitions, Schedule, Stream};

/// `libfirsttouch_agent.so`: loaded through LD_PRELOAD into a profiled program.
pub static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfirsttouch_agent.so"));

/// `libfirsttouch_pin.so`: loaded through LD_PRELOAD into a program whose threads `run --pin` pins.
pub static PIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfirsttouch_pin.so"));

/// `libfirsttouch_plan.so`: loaded through LD_PRELOAD into a program that runs under a plan.
pub static PLAN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfirsttouch_plan.so"));

/// `libfirsttouch_openmp.so`: loaded through LD_PRELOAD into a program whose OpenMP allocators ask for a placement.
pub static OPENMP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfirsttouch_openmp.so"));

/// The bundled kernels' sources, by the last parts of their paths, so that reports show lines on machines without this repository.
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
        for library in [super::AGENT, super::PIN, super::PLAN, super::OPENMP] {
            assert_eq!(&library[..4], b"\x7fELF");
            assert_eq!(library[16], 3, "e_type is ET_DYN");
        }
    }
}
