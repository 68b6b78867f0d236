//! The kernel's list format for CPUs and nodes: `0-3,8`.

use std::fmt;

/// Larger numbers are damage: no kernel has such CPUs or nodes (`CONFIG_NR_CPUS` ends at 8192). The limit also bounds outputs that
/// grow with the square of the number, such as hwloc's XML.
pub const LARGEST: u32 = 8_191;

/// Why a list was refused, with the byte offset of the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    pub text: String,
    pub offset: usize,
    pub reason: &'static str,
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at character {} of {:?}", self.reason, self.offset + 1, self.text)
    }
}

impl std::error::Error for ListError {}

/// Parses a list such as `0-3,8`; the empty list (a node without CPUs) is valid. Sorted, without duplicates.
///
/// # Errors
/// Says where the first error is.
pub fn parse_list(text: &str) -> Result<Vec<u32>, ListError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let fail = |offset, reason| ListError { text: text.to_owned(), offset, reason };
    let number = |part: &str, offset| {
        if !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(fail(offset, "expected a number"));
        }
        match part.parse::<u32>() {
            Ok(number) if number <= LARGEST => Ok(number),
            Ok(_) => Err(fail(offset, "number too large")),
            Err(_) if part.is_empty() => Err(fail(offset, "expected a number")),
            Err(_) => Err(fail(offset, "number too large")),
        }
    };
    let mut ranges = Vec::new();
    let mut offset = 0;
    for part in text.split(',') {
        let (low, high) = match part.split_once('-') {
            Some((first, last)) => (number(first, offset)?, number(last, offset + first.len() + 1)?),
            None => (number(part, offset)?, number(part, offset)?),
        };
        if low > high {
            return Err(fail(offset, "a range must run upwards"));
        }
        ranges.push((low, high));
        offset += part.len() + 1;
    }
    // Expand each number only once: a damaged file may repeat a range any number of times.
    ranges.sort_unstable();
    let mut numbers = Vec::new();
    let mut next = 0;
    for (low, high) in ranges {
        numbers.extend(low.max(next)..=high);
        next = next.max(high + 1);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the forms the kernel writes.
    #[test]
    fn lists_are_read() {
        for (text, numbers) in [
            ("", &[][..]),
            ("\n", &[]),
            ("0", &[0]),
            ("0-3,8\n", &[0, 1, 2, 3, 8]),
            ("1,3-4,10", &[1, 3, 4, 10]),
            ("5-5", &[5]),
            ("2,0-2", &[0, 1, 2]),
        ] {
            assert_eq!(parse_list(text).as_deref(), Ok(numbers), "{text:?}");
        }
    }

    /// Check that a list which repeats the same numbers (1,000 million of them here) needs no more memory than one without repetition.
    #[test]
    fn repetitions_take_no_memory() {
        let list = parse_list(&"0-8191,".repeat(131_072)[..131_072 * 7 - 1]).expect("a list");
        assert_eq!((list.len(), list.last()), (8192, Some(&8191)));
        assert!(list.capacity() <= 2 * 8192, "{}", list.capacity());
        assert_eq!(parse_list("5-9,7,1-3,4,2-2,9-11").as_deref(), Ok(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11][..]));
    }

    /// Check malformed lists: the error says where, and nothing panics.
    #[test]
    fn malformed_lists_name_the_place() {
        for (text, offset, reason) in [
            ("x", 0, "expected a number"),
            ("0,x", 2, "expected a number"),
            ("0,,1", 2, "expected a number"),
            ("0,", 2, "expected a number"),
            (",", 0, "expected a number"),
            ("-", 0, "expected a number"),
            ("-1", 0, "expected a number"),
            ("0-", 2, "expected a number"),
            ("0-1-2", 2, "expected a number"),
            ("+1", 0, "expected a number"),
            ("0 1", 0, "expected a number"),
            ("3-1", 0, "a range must run upwards"),
            ("0-99999999999", 2, "number too large"),
            ("0-4294967295", 2, "number too large"),
            ("8191-8192", 5, "number too large"),
            ("0,é", 2, "expected a number"),
            ("0\u{0}", 0, "expected a number"),
        ] {
            let error = parse_list(text).expect_err(text);
            assert_eq!((error.offset, error.reason), (offset, reason), "{text:?}");
            assert!(error.to_string().contains("at character"), "{error}");
        }
    }
}
