//! The bundled kernels (native/kernels).
//!
//! ```text
//! kernel  what each kernel computes, and its cost      run  one run: options, outcome, errors
//! raw     declarations shared with C
//! ```

mod kernel;
mod raw;
mod run;
#[cfg(test)]
mod tests;

pub use kernel::{Cost, Kernel, Operation, Stream};
pub use run::{Form, Initialisation, KernelError, KernelResult, KernelRun, Repetitions, Schedule};
