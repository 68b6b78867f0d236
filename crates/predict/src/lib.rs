//! The cost of a placement on a machine that is described by its numbers: threads that stream through memory of several nodes share
//! controllers and links. Pure: no I/O. docs/model.md has the equations.
//!
//! [`forecast`] is the stage between analysis and plan; the other modules are the model behind it.
//!
//! | module | what it does |
//! |---|---|
//! | `forecast.rs` | the stage: the cost of each placement of a profiled program, and the best placement |
//! | `undecided.rs` | what the ranges of assumed numbers do to a forecast |
//! | `program/` | a profiled program on a machine: its traffic from samples, its placements, its intervals |
//! | `model/` | rates of threads that share controllers and links (`fair_sharing.rs`), and the time they take together (`simulate.rs`) |
//! | `machine/` | machine descriptions: `file.rs` TOML, `catalogue.rs`, `assumed.rs`; `import/` one file each for hwloc's XML and mlc's output (firsttouch-pipeline recognises the format) |
//! | `placement.rs`, `seats.rs` | where bytes are, and where threads run |
//! | `experiments.rs`, `runs.rs`, `ratios.rs`, `validate.rs`, `model_error.rs` | published measurements, and the model's error on them |

pub mod experiments;
pub mod forecast;
pub mod machine;
pub mod model;
pub mod model_error;
pub mod placement;
pub mod program;
mod random;
mod ratios;
pub mod runs;
pub mod seats;
pub mod undecided;
pub mod units;
pub mod validate;

firsttouch_model::work_counter!();
