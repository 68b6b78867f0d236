//! The bundled kernels (native/kernels).
//!
//! ```text
//! kernel  what each computes, and what that costs      run  one run: options, outcome, errors
//! raw     what C and Rust share
//! ```

mod kernel;
mod raw;
mod run;
#[cfg(test)]
mod tests;

pub use kernel::{Cost, Kernel, Operation, Stream};
pub use run::{Form, Initialisation, KernelError, Outcome, Repetitions, Run, Schedule};
