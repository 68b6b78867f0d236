//! Lists of CPUs as the kernel writes them: `0-3,8`. [`crate::topology::format_list`] writes them.

use std::collections::BTreeSet;

/// More CPUs than any kernel supports.
const MOST: u32 = 1 << 16;

/// The CPUs of a list; `None` if the text is no such list, or names more CPUs than any kernel supports.
#[must_use]
pub fn parse(list: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let list = |text: &str| parse(text).map(|cpus| cpus.into_iter().collect::<Vec<u32>>());
        assert_eq!(list("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        for text in ["", "3-1", "a", "0-70000", "1,,2", "-1"] {
            assert_eq!(list(text), None, "{text}");
        }
    }
}
