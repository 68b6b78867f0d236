//! Descriptions from what other tools write: hwloc's XML with memory attributes, and the text of Intel's Memory Latency Checker.
//! What these do not tell is assumed, and each assumption is a number's source, as in any description.

mod mlc;
mod pairs;

pub use mlc::{is_mlc, mlc};
pub use pairs::{Imported, pairs};

use super::assumed::Typical;
use super::file::{Matrix, Number, Value};

/// The source of what the file itself tells, by its short name.
const FILE: &str = "file";

fn number(value: f64, source: &str) -> Number {
    Number { value: Value::Same(value), source: source.to_owned() }
}

fn matrix(values: Vec<Vec<f64>>) -> Matrix {
    Matrix { values, source: FILE.to_owned() }
}

/// GB/s between two nodes of which the file does not tell: in proportion to the controller's.
fn assumed_link(typical: &Typical, controller: f64) -> f64 {
    controller * typical.link
}
