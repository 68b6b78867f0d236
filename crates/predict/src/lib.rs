//! What a placement costs on a machine described by its numbers: threads that stream through memory of several nodes share
//! controllers and links. Pure: text in, figures out. docs/model.md has the equations.
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
