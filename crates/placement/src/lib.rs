//! Where threads and memory go: lists of nodes and CPUs as numactl takes them, affinity expressions of likwid and hwloc, memory
//! policies, and the kernel's calls that apply them.
//!
//! All but [`kernel`] is pure: a machine comes as a [`firsttouch_model::topology::Topology`].

mod affinity;
mod explain;
pub mod kernel;
mod list;
pub mod migrate;
pub mod openmp;
pub mod plan;
mod policy;
mod scan;

pub use affinity::{Affinity, Layout, Level};
pub use explain::{Placement, explain};
pub use list::{CpuList, Device, DeviceKind, FindDevice, NodeList, Numbered};
pub use policy::{Cause, Mode, Policy, Refusal};
