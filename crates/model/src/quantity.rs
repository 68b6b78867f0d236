//! Sizes and times in the forms that users type.

use crate::Error;
use std::time::Duration;

/// Parses a number of bytes: `65536`, `64K`, `64KiB`, `1M`, `2G` (powers of 1024).
///
/// # Errors
/// When the text is invalid: the error says what was expected.
pub fn parse_size(text: &str) -> Result<u64, Error> {
    let error = || Error::invalid_input(format!("expected a size such as 65536, 64K or 1M, found '{text}'"));
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(error()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(error());
    }
    let number = digits.parse::<u64>().map_err(|_| error())?;
    number.checked_mul(1 << shift).ok_or_else(|| Error::invalid_input(format!("'{text}' is too large")))
}

/// Parses a time: `10`, `1.5`, `10s`, `500ms`, `5m`, `1h`; plain numbers are seconds.
///
/// # Errors
/// When the text is invalid: the error says what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, Error> {
    let error = || Error::invalid_input(format!("expected a time such as 10, 1.5s, 500ms or 5m, found '{text}'"));
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_s = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(error()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(error());
    }
    let seconds = digits.parse::<f64>().map_err(|_| error())? * unit_s;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| Error::invalid_input(format!("'{text}' is too long")))?;
    // A time below a nanosecond rounds to 0.
    if time.is_zero() { Err(Error::invalid_input("the time must be longer than 0")) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check sizes, and a table of malformed ones.
    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [("0", 0), ("65536", 65536), ("64K", 65536), ("64kib", 65536), ("1M", 1 << 20), ("2GB", 2 << 30)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "-1", "+1", "1.5M", "1T", "64 K", "many", "é", "99999999999999999999", "18446744073709551615K"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    /// Check times, and a table of malformed ones.
    #[test]
    fn times_are_read() {
        for (text, millis) in [("10", 10_000), ("1.5", 1500), ("1.5s", 1500), ("500ms", 500), ("5m", 300_000), ("1h", 3_600_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "s", "0", "-1", "soon", "1d", "inf", "nan", "1e3", "1.2.3", "é", "99999999999999999999999999", "0.0000000001", "1e-30"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
