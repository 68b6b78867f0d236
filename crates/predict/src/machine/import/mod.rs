//! Machine descriptions from the output of other tools: hwloc's XML with memory attributes, and the text of Intel's Memory Latency Checker.
//! Missing numbers are assumed, and each assumption is the source of its number, as in any description.

mod hwloc;
mod mlc;

pub use hwloc::{Imported, pairs};
pub use mlc::{is_mlc, mlc};

use super::assumed::Typical;
use super::file::{Matrix, Number, Value};

/// The short name of the source of numbers from the file itself.
const FILE: &str = "file";

fn number(value: f64, source: &str) -> Number {
    Number { value: Value::Same(value), range: None, source: source.to_owned() }
}

fn matrix(values: Vec<Vec<f64>>) -> Matrix {
    Matrix { values, source: FILE.to_owned() }
}

/// GB/s between two nodes for which the file has no figure: the median machine's fraction of the controller's bandwidth.
fn assumed_link(typical: &Typical, controller: f64) -> f64 {
    controller * typical.link
}
