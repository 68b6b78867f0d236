//! The cost of a placement on a machine that is described by its numbers: threads that stream through memory of several nodes share
//! controllers and links. Pure: no I/O. docs/model.md has the equations.
//!
//! [`forecast`] is the stage between analysis and plan; the other modules are the model behind it.

pub mod experiments;
pub mod forecast;
pub mod machine;
pub mod model;
pub mod model_error;
pub mod placement;
pub mod program;
mod random;
pub mod runs;
pub mod seats;
pub mod units;
pub mod validate;
