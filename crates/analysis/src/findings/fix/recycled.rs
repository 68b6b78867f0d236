//! The fix for memory that the allocator had handed out before, with pages that its former owner placed.
//!
//! To make glibc return blocks to the kernel costs a page fault for each page of each allocation: a program that allocates 16 MiB 250 times took 5
//! times as long. So what keeps the memory comes first.

use super::super::{Case, Context};
use super::at;
use crate::code::lines_of;
use crate::findings::text::thousands;
use crate::names::Language;
use std::collections::BTreeSet;

pub(super) fn recycled(context: &Context<'_>, case: &Case<'_>) -> String {
    let view = case.view;
    // Each of several allocations took the place of the one before.
    let in_turn = case.group.parts() == 0 && view.count > 1 && view.total_bytes <= view.bytes;
    let (allocated, used) = (at(view.allocated_at.as_ref()), at(view.used_at.first()));
    words(&view.name, &allocated, &used, in_turn.then(|| thousands(view.count as u64)), calls_mallopt(context))
}

/// Whether the source of a file whose code is on a recorded stack calls mallopt, which takes precedence over glibc's variables.
fn calls_mallopt(context: &Context<'_>) -> bool {
    let frames = context.profile.sites.values().flat_map(|site| &site.frames);
    let files: BTreeSet<&str> = frames.filter_map(|frame| frame.file.as_deref()).filter(|file| Language::of(file).is_some()).collect();
    let is_call = |line: &String| line.split("//").next().is_some_and(|code| code.contains("mallopt(") || code.contains("mallopt ("));
    files.into_iter().any(|file| lines_of(context.places.sources, file).is_some_and(|lines| lines.iter().any(is_call)))
}

fn words(name: &str, allocated: &str, used: &str, rounds: Option<String>, calls_mallopt: bool) -> String {
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
    if calls_mallopt {
        return format!(
            "{keep}. Or move the pages to their users once, with move_pages. The program calls mallopt, which decides whether glibc keeps large blocks: \
             with M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of 131072 glibc returns them to the kernel, {cost}: time it. Environment variables \
             (MALLOC_MMAP_THRESHOLD_) have no effect beside such calls"
        );
    }
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
            let text = words("tmp", "", "", rounds, false);
            assert!(text.starts_with(first) && text.contains(cost) && text.contains("several times slower"), "{text}");
            assert!(text.find(cost) > text.find("MALLOC_MMAP_THRESHOLD_"), "{text}");
        }
    }

    /// Check that a program that calls mallopt gets no environment variables, which would have no effect.
    #[test]
    fn mallopt_takes_precedence() {
        let text = words("tmp", "", "", None, true);
        assert!(text.contains("calls mallopt") && !text.contains("MALLOC_MMAP_THRESHOLD_=") && text.contains("have no effect"), "{text}");
    }
}
