//! Fixes for pools of small blocks. An allocator writes beside each block, so the thread that allocates small blocks touches their pages,
//! whoever initialises them.

use super::{INTERLEAVE, at, interleave};
use crate::PartitionKind;
use crate::findings::{Case, Context};
use firsttouch_model::finding::FindingKind;

const WHY: &str = "the allocator writes beside each block, so the thread that allocates small blocks places their pages";

/// `None` for other objects, and where the usual fix is true of small blocks too.
pub(super) fn small_blocks(context: &Context<'_>, kind: FindingKind, case: &Case<'_>) -> Option<String> {
    case.group.pool.as_ref()?;
    let name = case.view.name.as_str();
    let (allocated, used) = (at(case.view.allocated_at.as_ref()), at(case.view.used_at.first()));
    Some(match kind {
        FindingKind::SerialFirstTouch if case.subject.partition.kind == PartitionKind::Single => {
            format!("let the thread that uses {name} allocate it{allocated}, not only initialise it: {WHY}")
        }
        FindingKind::SerialFirstTouch | FindingKind::MismatchedPartition | FindingKind::IoFirstTouch => format!(
            "let each thread allocate and initialise the blocks of {name} that it uses: divide the code that allocates them{allocated} like the \
             code that uses them{used}; {WHY}. Or make them parts of one large block, and initialise that in the threads that use it"
        ),
        FindingKind::NoStablePartition if case.subject.partition.fine.is_some() => format!(
            "let each thread allocate the blocks of {name} that it uses{allocated}, or take them from memory of its own: those of several threads now \
             alternate in each page, because one loop allocates them in turn"
        ),
        FindingKind::SharedRead if case.subject.partition.assumed => format!(
            "if each thread reads all of {name}: one copy a node, made by a thread of that node; if each uses blocks of its own (the samples do not \
             tell): let it allocate those itself{allocated}; {WHY}"
        ),
        FindingKind::NoStablePartition if !case.subject.partition.dealt_out => format!(
            "{}. If each thread reads all of {name}, one copy a node, made by a thread of that node, is better still; if its parts \
             change hands, give each thread the same part every time{used}, and let it allocate the blocks in that part{allocated}: {WHY}",
            interleave(case)
        ),
        FindingKind::NoStablePartition => format!(
            "give each thread the same part every time{used}, and let it allocate the blocks of {name} in that part{allocated}: {WHY}{}",
            if case.subject.is_spread { String::new() } else { format!("; or {INTERLEAVE}") }
        ),
        FindingKind::HugePageSharing | FindingKind::RecycledMemory => format!(
            "let each thread allocate the blocks of {name} that it uses{allocated}: glibc's malloc gives each thread an arena of its own; or make \
             them parts of one large block"
        ),
        FindingKind::PolicyMismatch => {
            format!("take the policy away, and let each thread allocate the blocks of {name} that it uses{allocated}: {WHY}")
        }
        FindingKind::UnpinnedThreads => context.pin_advice(Some(case)),
        FindingKind::SharedRead
        | FindingKind::SlowTier
        | FindingKind::NodeFull
        | FindingKind::BalancingChurn
        | FindingKind::SharedSegment
        | FindingKind::RankStraddlesNodes
        | FindingKind::RankMemoryElsewhere
        | FindingKind::RanksUnbound => return None,
    })
}
