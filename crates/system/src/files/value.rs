//! Formats of values in sysfs.

/// A size: `32K`, `8M`, `1G` or plain bytes.
pub fn size_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text.get(digits.len()..)? {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The word in brackets of a sysfs choice such as `always [madvise] never`.
pub fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check sizes as the kernel writes them, and a table of malformed ones.
    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [("32K", 32 << 10), ("8M", 8 << 20), ("1G", 1 << 30), ("512", 512), ("0K", 0)] {
            assert_eq!(size_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "K", "32KB", "-1K", "1.5M", "99999999999999999999K", "18446744073709551615K", "é"] {
            assert_eq!(size_bytes(text), None, "{text}");
        }
    }

    /// Check that the chosen word is found, and that text without one gives `None`.
    #[test]
    fn the_word_in_brackets_is_chosen() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("[always]"), Some("always"));
        for text in ["", "always never", "[", "]", "[a b]"] {
            assert_eq!(chosen(text), None, "{text}");
        }
    }
}
