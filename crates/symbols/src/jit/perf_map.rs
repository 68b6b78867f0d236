//! /tmp/perf-PID.map: a line `START SIZE name` for each function, in hexadecimal digits, as tools/perf/Documentation/jit-interface.txt
//! of Linux describes it. Java writes the numbers with `0x`.

use super::pieces::{Parsed, Piece};
use super::{LARGEST_PIECE, MOST_PIECES, names};

/// Reads a map, as far as it is there: a runtime may be writing its last line.
#[must_use]
pub fn parse(map: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    for line in map.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        if parsed.pieces.len() >= MOST_PIECES {
            parsed.is_whole = false;
            break;
        }
        match piece(line) {
            Some(piece) => parsed.pieces.push(piece),
            None => parsed.refused += 1,
        }
    }
    parsed
}

fn piece(line: &[u8]) -> Option<Piece> {
    let (start, rest) = number(line)?;
    let (bytes, name) = number(rest)?;
    let function = names::function(name)?;
    let is_sound = (1..=LARGEST_PIECE).contains(&bytes) && start.checked_add(bytes).is_some();
    is_sound.then(|| Piece { start, bytes, function: function.into(), lines: Vec::new() })
}

/// A hexadecimal number, and what follows the blanks after it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| *byte == b' ' || *byte == b'\t')?;
    let (digits, rest) = text.split_at_checked(end)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
    // `from_str_radix` accepts a sign.
    let value = u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
    Some((value, rest.trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the lines that Node 20, OpenJDK 17 and Python 3.12 write.
    #[test]
    fn lines_of_runtimes() {
        for (line, start, bytes, function) in [
            ("7f7d527c61c0 27c JS:*fill /tmp/jt/fill.js:1:14", 0x7f7d_527c_61c0, 0x27c, "fill (fill.js:1)"),
            ("0x00007f1b4d3e4a00 0x00000000000001d8 void Fill.fill(double[])", 0x7f1b_4d3e_4a00, 0x1d8, "Fill.fill"),
            ("7f00a0 b py::fill:/home/me/fill.py", 0x7f_00a0, 11, "fill (fill.py)"),
            ("7f00a0\tb  fill\r", 0x7f_00a0, 11, "fill"),
            ("ffffffffffffff00 ff edge", u64::MAX - 0xff, 0xff, "edge"),
        ] {
            let parsed = parse(line.as_bytes());
            assert_eq!((parsed.pieces.len(), parsed.refused, parsed.is_whole), (1, 0, true), "{line}");
            let piece = &parsed.pieces[0];
            assert_eq!((piece.start, piece.bytes, &*piece.function), (start, bytes, function), "{line}");
        }
    }

    /// Check that malformed lines are counted, and that the lines around them are read.
    #[test]
    fn malformed_lines_are_refused() {
        for bad in [
            "x",
            "10",
            "10 ",
            "10 20",
            "10 20 ",
            "10 20  \t",
            " 10",
            "g0 20 f",
            "10 g0 f",
            "-10 20 f",
            "+10 20 f",
            "10 +20 f",
            "10 -20 f",
            "10 0 f",
            "0x 20 f",
            "0x0x10 20 f",
            "10000000000000000 20 f",
            "ffffffffffffffff 1 f",
            "10 40000001 f",
            "10 ffffffffffffffff f",
            "\0\0\0 20 f",
            "10 20 \u{1}\u{2}",
            "é0 20 f",
        ] {
            let text = format!("10 20 before\n{bad}\n40 20 after");
            let parsed = parse(text.as_bytes());
            assert_eq!((parsed.pieces.len(), parsed.refused), (2, 1), "{bad:?}");
        }
        assert_eq!(parse(b"").pieces.len(), 0);
        assert_eq!(parse(b"\n\n\n"), Parsed::default());
        assert_eq!(parse(b"10 20 \xff\xfe f").pieces[0].function.as_ref(), "\u{fffd}\u{fffd} f");
        assert_eq!(parse(&[b'a'; 1 << 20]).refused, 1);
        let long = format!("10 20 {}", "n".repeat(1 << 20));
        assert_eq!(parse(long.as_bytes()).pieces[0].function.len(), super::super::LONGEST_NAME);
    }

    /// Check that the number of functions is bounded.
    #[test]
    fn functions_are_bounded() {
        let parsed = parse("1 1 f\n".repeat(MOST_PIECES + 5).as_bytes());
        assert_eq!((parsed.pieces.len(), parsed.is_whole), (MOST_PIECES, false));
    }
}
