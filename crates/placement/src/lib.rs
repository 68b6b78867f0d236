//! Where threads and memory go: numactl's lists of nodes and CPUs, affinity expressions of likwid and hwloc, memory policies. The
//! calls that apply them are in `firsttouch_system::calls`.
//!
//! | module | what it does |
//! |---|---|
//! | `list/` | numactl's lists of nodes and CPUs |
//! | `affinity/` | expressions of likwid and hwloc (one file each to read them, one to apply them to a machine), spread and compact |
//! | `openmp.rs` | the environment variables that pin the threads of an OpenMP program |
//! | `explain.rs` | where threads and pages will go under a placement (`run --explain`) |
//! | `move_pages/` | moves the pages of a running process (`migrate`) |
//!
//! All modules but [`move_pages`] are pure: their input is a [`firsttouch_model::topology::Topology`].

mod affinity;
mod explain;
mod list;
pub mod move_pages;
pub mod openmp;
mod scan;

pub use affinity::{Affinity, Layout, Level};
pub use explain::{Placement, explain};
pub use list::{CpuList, Device, DeviceKind, FindDevice, NodeList, Numbered};
