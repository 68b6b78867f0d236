//! The types of the field (topology, traffic, intervals) and the rows of a profile. No I/O.
//!
//! | module | what it holds |
//! |---|---|
//! | `rows/` | the tables of a profile, a file each; `metadata.rs` is the table `meta`, `recording.rs` the figures of a recording |
//! | `topology.rs`, `system/`, `facts.rs` | a machine; the state of a system (counters, processes, balancing); what the doctor judges |
//! | `pin.rs` | `--pin` on a virtual machine: the node of each thread under spread, compact, or a list |
//! | `policy.rs`, `launch.rs`, `expression.rs` | memory policies; how a program would be started; errors in lists and expressions |
//! | `evidence.rs`, `touch_cause.rs`, `finding.rs`, `remedy.rs` | names of evidence sources, constructs that touch memory, findings, and remedies where the system forbids calls |
//! | `interval.rs`, `traffic.rs`, `prediction.rs`, `pairs.rs` | estimates with intervals; traffic of a program; a model's figures; figures of pairs of nodes |
//! | `quantity.rs` | sizes and times as users type them |
//! | `shown.rs` | names from files and finished results, safe for terminals and CI systems |
//! | `error.rs`, `work.rs` | the error type of the libraries; a count of steps for their unit tests |

pub mod contingency;
pub mod cpu_list;
pub mod error;
pub mod evidence;
mod expression;
pub mod facts;
pub mod finding;
pub mod generated_code;
mod interval;
pub mod launch;
pub mod mpi;
pub mod numactl;
pub mod openmp;
pub mod pairs;
pub mod parallel;
mod pin;
pub mod policy;
pub mod prediction;
pub mod quantity;
mod recording;
pub mod remedy;
pub mod rows;
pub mod shown;
mod signal;
pub mod system;
pub mod topology;
mod touch_cause;
pub mod traffic;
mod work;

pub use error::{Error, ErrorKind};
pub use expression::ExpressionError;
pub use interval::student_quantile;
pub use interval::{Estimate, Z95};
pub use pin::Pin;
pub use recording::{RecordingSummary, UNOBSERVED};
pub use signal::{SIGTERM, consequence, signal_words};
pub use touch_cause::TouchCause;

use serde::{Deserialize, Serialize};

/// A NUMA node, as the kernel numbers it (or 0..N on a virtual machine).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

/// Formats a byte count the way the reports do: `64 KiB`, `2.98 GiB`.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || (value - value.round()).abs() < 1e-9 {
        format!("{value:.0} {}", UNITS[unit])
    } else if value < 10.0 {
        format!("{value:.2} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// `1 node`, `2 nodes`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::{counted, format_bytes};

    /// Check that only numbers other than 1 take the plural.
    #[test]
    fn nouns_follow_their_number() {
        assert_eq!([0_usize, 1, 2].map(|count| counted(count, "node")), ["0 nodes", "1 node", "2 nodes"]);
    }

    /// Check that sizes read as people write them.
    #[test]
    fn bytes_read_well() {
        assert_eq!(format_bytes(512), "512 B");
        assert_eq!(format_bytes(65536), "64 KiB");
        assert_eq!(format_bytes(3_200_000_000), "2.98 GiB");
        assert_eq!(format_bytes(160_000), "156.2 KiB");
    }
}
