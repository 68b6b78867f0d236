//! Memory that several ranks share (MPI-3 windows, POSIX shared memory): the defect is that of its first touches and its use, by all ranks together.

use super::{Case, Context};
use crate::partition::PartitionKind;
use std::collections::BTreeSet;

impl Context<'_> {
    /// The ranks that share the object of a case; empty if fewer than two do.
    pub(super) fn sharing_ranks(&self, case: &Case<'_>) -> Vec<u32> {
        let processes = case.group.shared.values().flat_map(|sharing| sharing.processes.iter());
        let rank = |process: &i64| self.profile.parts.get(self.profile.index_of_part(*process)?)?.place.as_ref().map(|place| place.rank);
        let ranks: BTreeSet<u32> = processes.filter_map(rank).collect();
        if ranks.len() > 1 { ranks.into_iter().collect() } else { Vec::new() }
    }
}

/// The message, with what the ranks have to do with it.
pub(super) fn message(ranks: &[u32], message: String) -> String {
    if ranks.is_empty() { message } else { format!("{} ranks share this memory. {message}", ranks.len()) }
}

/// The fix, with what MPI offers for it. `kind`: of the use by all ranks.
pub(super) fn fix(ranks: &[u32], (name, kind): (&str, PartitionKind), fix: String) -> String {
    if ranks.is_empty() {
        return fix;
    }
    // No rank has a part of its own.
    if matches!(kind, PartitionKind::Shared | PartitionKind::Irregular | PartitionKind::Unknown) {
        return fix;
    }
    format!(
        "let each rank touch first the part of {name} that it uses. In an MPI-3 window (MPI_Win_allocate_shared), let each rank ask for its own part, with the info key \
         alloc_shared_noncontig=true, so that parts begin on pages of their own. Otherwise {fix}"
    )
}
