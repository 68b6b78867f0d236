//! Where threads and memory go: lists of nodes and CPUs as numactl takes them, affinity expressions of likwid and hwloc, memory
//! policies. The calls that apply them are in `firsttouch_system::placement`.
//!
//! All but [`migrate`] is pure: a machine comes as a [`firsttouch_model::topology::Topology`].

mod affinity;
mod explain;
mod list;
pub mod migrate;
pub mod openmp;
mod scan;

pub use affinity::{Affinity, Layout, Level};
pub use explain::{Placement, explain};
pub use list::{CpuList, Device, DeviceKind, FindDevice, NodeList, Numbered};
