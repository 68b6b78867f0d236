//! hwloc's sets: `0x0000000f`, groups of 32 with commas, the last group the lowest; empty groups are zero.

/// As many numbers as [`crate::parse_list`] accepts.
const MOST_GROUPS: u32 = (crate::files::LARGEST + 1) / 32;

/// The numbers of a set; `None` for a damaged set, and for an infinite one (`0xf...f`), which no machine has.
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let mut numbers = Vec::new();
    for (group, word) in (0u32..).zip(text.rsplit(',')) {
        if group >= MOST_GROUPS {
            return None;
        }
        if word.is_empty() {
            continue;
        }
        let digits = word.strip_prefix("0x").unwrap_or(word);
        if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let bits = u32::from_str_radix(digits, 16).ok()?;
        numbers.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| group * 32 + bit));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::parse;

    /// Check sets as hwloc writes them, and a table of malformed ones.
    #[test]
    fn sets_are_read() {
        assert_eq!(parse("0x0000000f"), Some(vec![0, 1, 2, 3]));
        assert_eq!(parse("0x0"), Some(vec![]));
        assert_eq!(parse("0x00000001,,0x80000000"), Some(vec![31, 64]));
        for text in ["", "0x", "0xf...f", "0xg", "-1", "0x1ffffffff", "1 2", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&",".repeat(256)), None);
    }
}
