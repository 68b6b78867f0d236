//! The checks, in the order in which findings of one severity are listed.

mod kernel;
mod limits;
mod memory;
mod nodes;
mod permissions;
mod program;
mod threads;
mod values;

use crate::diagnosis::Finding;
use firsttouch_model::facts::Facts;

/// The machines on which a check applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    AnyMachine,
    /// Only machines with several nodes: on one node all memory is local.
    SeveralNodes,
}

/// A check.
pub struct Check {
    /// The id of its findings.
    pub id: &'static str,
    pub scope: Scope,
    pub examine: fn(&Facts) -> Option<Finding>,
}

impl Check {
    const fn new(id: &'static str, scope: Scope, examine: fn(&Facts) -> Option<Finding>) -> Self {
        Self { id, scope, examine }
    }
}

use Scope::{AnyMachine, SeveralNodes};

pub const CHECKS: &[Check] = &[
    Check::new(permissions::PERF, AnyMachine, permissions::perf),
    Check::new(permissions::WATCHPOINTS, AnyMachine, permissions::watchpoints),
    Check::new(permissions::MEMPOLICY, AnyMachine, permissions::mempolicy),
    Check::new(threads::UNPINNED, SeveralNodes, threads::unpinned),
    Check::new(values::NOT_UNDERSTOOD, AnyMachine, values::not_understood),
    Check::new(values::NOT_ALLOWED, AnyMachine, values::not_allowed),
    Check::new(threads::TOGETHER, AnyMachine, threads::together),
    Check::new(threads::FEW_PLACES, AnyMachine, threads::few_places),
    Check::new(threads::TOO_MANY, AnyMachine, threads::too_many),
    Check::new(threads::SMT, SeveralNodes, threads::smt),
    Check::new(limits::QUOTA, AnyMachine, limits::quota),
    Check::new(limits::OPEN_FILES, AnyMachine, limits::open_files),
    Check::new(limits::ADDRESS_SPACE, AnyMachine, limits::address_space),
    Check::new(limits::CPUSET, SeveralNodes, limits::cpuset),
    Check::new(limits::POLICY, SeveralNodes, limits::policy),
    Check::new(kernel::BALANCING, SeveralNodes, kernel::balancing),
    Check::new(kernel::HUGE_PAGES, SeveralNodes, kernel::huge_pages),
    Check::new(kernel::ZONE_RECLAIM, SeveralNodes, kernel::zone_reclaim),
    Check::new(memory::NEARLY_FULL, SeveralNodes, memory::nearly_full),
    Check::new(memory::SWAP, AnyMachine, memory::swap),
    Check::new(nodes::WITHOUT_MEMORY, SeveralNodes, nodes::without_memory),
    Check::new(nodes::WITHOUT_CPUS, SeveralNodes, nodes::without_cpus),
    Check::new(nodes::SUB_NUMA, AnyMachine, nodes::sub_numa),
    Check::new(program::RUNTIME, AnyMachine, program::runtime),
    Check::new(program::OMPT, AnyMachine, program::ompt),
    Check::new(program::ALLOCATOR_TRAIT, AnyMachine, program::allocator_trait),
    Check::new(program::ALLOCATOR, AnyMachine, program::allocator),
    Check::new(program::MISSING, AnyMachine, program::missing_preload),
    Check::new(kernel::GOVERNOR, AnyMachine, kernel::governor),
    Check::new(permissions::BANDWIDTH, AnyMachine, permissions::bandwidth),
];
