//! Whether new memory is on base pages, by the order in which threads touch it.

use hashbrown::HashMap;

/// A thread that touches so many more base pages one after another than a huge page has is not at the end of memory on huge pages.
const MORE: u32 = 8;
/// Threads whose runs are followed.
const MOST_RUNS: usize = 4096;

/// Pages that threads touch one after another: the last one of each thread, and how many there were in a row.
pub struct Runs {
    /// Base pages in a row that are not the end of memory on huge pages.
    longest: u32,
    last: HashMap<i32, (u64, u32)>,
}

impl Runs {
    /// `in_huge_page`: base pages of a huge page.
    pub fn new(in_huge_page: u64) -> Self {
        Self { longest: u32::try_from(in_huge_page).unwrap_or(u32::MAX).saturating_add(MORE), last: HashMap::new() }
    }

    /// A thread touches a page. Whether it is one of more base pages than there are at the end of memory on huge pages.
    pub fn are_base_pages(&mut self, tid: i32, page: u64) -> bool {
        if self.last.len() >= MOST_RUNS {
            self.last.clear();
        }
        let (last, count) = self.last.entry(tid).or_insert((page, 0));
        *count = if page == last.wrapping_add(1) { *count + 1 } else { 0 };
        *last = page;
        let is_long = *count >= self.longest;
        if is_long {
            self.last.clear();
        }
        is_long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that pages in a row are those of memory on base pages, also if two threads take turns, and that the ends of memory on huge pages, and
    /// huge pages themselves, are not.
    #[test]
    fn base_pages_are_found_by_their_rows() {
        let mut runs = Runs::new(512);
        let found = (0..1_000).position(|page| runs.are_base_pages(1, page) | runs.are_base_pages(2, 5_000 - page));
        assert_eq!(found, Some(512 + MORE as usize));
        let mut runs = Runs::new(512);
        let ends = (3..512).chain((1..40).map(|huge| huge * 512)).chain(40 * 512..40 * 512 + 511);
        assert!(!ends.into_iter().any(|page| runs.are_base_pages(1, page)));
    }
}
