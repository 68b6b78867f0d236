//! `topology` of the running guest, against the tools that ask the same kernel.

use firsttouch_guests::{guest, json, tool};
use firsttouch_oracles::{lscpu, numactl};

fn name() -> String {
    format!("guest-{}", guest())
}

/// Check nodes, CPUs, memory and distances against `numactl --hardware`.
#[test]
fn as_numactl_hardware() {
    numactl::hardware_agrees(&name(), &json(&["topology"]), &tool("numactl", &["--hardware"]));
}

/// Check CPUs, packages, cores, caches and nodes against lscpu.
#[test]
fn as_lscpu() {
    lscpu::summary_agrees(&name(), &json(&["topology"]), &tool("lscpu", &["--json"]));
}
