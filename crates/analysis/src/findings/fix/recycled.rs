//! The fix for memory that the allocator had handed out before, with pages that its former owner placed.
//!
//! To make glibc return blocks to the kernel costs a page fault for each page of each allocation: a program that allocates 16 MiB 250 times took 5
//! times as long. So what keeps the memory comes first.

use super::super::Case;
use super::at;
use crate::findings::text::thousands;

pub(super) fn recycled(case: &Case<'_>) -> String {
    let view = case.view;
    // Each of several allocations took the place of the one before.
    let in_turn = case.group.parts() == 0 && view.count > 1 && view.total_bytes <= view.bytes;
    let (allocated, used) = (at(view.allocated_at.as_ref()), at(view.used_at.first()));
    words(&view.name, &allocated, &used, in_turn.then(|| thousands(view.count as u64)))
}

fn words(name: &str, allocated: &str, used: &str, rounds: Option<String>) -> String {
    let (keep, cost) = if let Some(rounds) = rounds {
        (
            format!(
                "allocate {name} once, before the loop that allocates it {rounds} times{allocated}, and use it again in each round (of a buffer that \
                 each thread has for itself, one a thread); allocate it while the former owner of the memory still has it, so that it gets new \
                 pages, and initialise it in the loop that uses it{used}"
            ),
            format!(
                "but then each of the {rounds} allocations costs a page fault for each of its pages, which can make the program several times slower"
            ),
        )
    } else {
        (
            format!(
                "allocate {name}{allocated} while the former owner of the memory still has it (free that afterwards, or keep it), so that {name} gets \
                 new pages, and initialise it in the loop that uses it{used}"
            ),
            "but then each large allocation of the program costs a page fault for each of its pages, which can make a program that allocates often \
             several times slower"
                .to_owned(),
        )
    };
    format!(
        "{keep}. Or move the pages to their users once, with move_pages. Without a change of the source, MALLOC_MMAP_THRESHOLD_=131072 \
         MALLOC_TRIM_THRESHOLD_=131072 CMD makes glibc return large blocks to the kernel, {cost}: time it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that memory that stays comes before environment variables, which say what they cost.
    #[test]
    fn what_keeps_memory_comes_first() {
        for (rounds, first, cost) in [
            (
                Some("1,250".to_owned()),
                "allocate tmp once, before the loop that allocates it 1,250 times",
                "each of the 1,250 allocations costs a page fault",
            ),
            (None, "allocate tmp while the former owner", "each large allocation of the program costs a page fault"),
        ] {
            let text = words("tmp", "", "", rounds);
            assert!(text.starts_with(first) && text.contains(cost) && text.contains("several times slower"), "{text}");
            assert!(text.find(cost) > text.find("MALLOC_MMAP_THRESHOLD_"), "{text}");
        }
    }
}
