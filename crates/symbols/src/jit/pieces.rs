//! Generated code by address.

use crate::Resolved;
use std::path::PathBuf;
use std::sync::Arc;

/// One generated function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub start: u64,
    pub bytes: u64,
    pub function: Arc<str>,
    /// In order of offsets; empty if the runtime does not write lines.
    pub lines: Vec<SourceLine>,
}

/// From this offset in a function on, the code is of this line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    pub offset: u64,
    pub line: u32,
    pub file: Arc<str>,
}

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// In the order of the file.
    pub pieces: Vec<Piece>,
    /// Lines or records that are malformed.
    pub refused: u64,
    /// False if the file is cut off, or says more than is kept.
    pub is_whole: bool,
}

impl Default for Parsed {
    fn default() -> Self {
        Self { pieces: Vec::new(), refused: 0, is_whole: true }
    }
}

/// Names shown for one address, and functions looked at to find them.
const MOST_NAMES: usize = 2;
pub const MOST_LOOKED_AT: usize = 256;

/// Functions by address. Runtimes reuse the memory of code that they discarded, so several may have been at one address.
#[derive(Clone, Debug, Default)]
pub struct CodePieces {
    /// By start.
    pieces: Vec<Piece>,
    /// For each piece: the largest end of it and all before.
    ends: Vec<u64>,
}

impl CodePieces {
    /// Orders the functions of all files of a process.
    #[must_use]
    pub fn new(mut pieces: Vec<Piece>) -> Self {
        pieces.sort_by_key(|piece| piece.start);
        let mut end = 0;
        let ends = pieces.iter().map(|piece| {
            end = end.max(piece.start.saturating_add(piece.bytes));
            end
        });
        let ends = ends.collect();
        Self { pieces, ends }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The function at an address. If several were there, the result names them all (`fill or sum`), without a line.
    #[must_use]
    pub fn resolve(&self, address: u64) -> Option<Resolved> {
        let mut found: Vec<&Piece> = Vec::new();
        let after = self.pieces.partition_point(|piece| piece.start <= address);
        for (piece, end) in self.pieces.iter().zip(&self.ends).take(after).rev().take(MOST_LOOKED_AT) {
            if *end <= address {
                break;
            }
            if address - piece.start < piece.bytes && !found.contains(&piece) {
                found.push(piece);
            }
        }
        // A function that was compiled again at the same place, or that two files name, is one function.
        let mut names: Vec<&str> = found.iter().map(|piece| &*piece.function).collect();
        names.sort_unstable();
        names.dedup();
        let function = match names.as_slice() {
            [] => return None,
            [one] => (*one).to_owned(),
            several if several.len() <= MOST_NAMES => several.join(" or "),
            several => format!("{} or one of {} others", several.first()?, several.len() - 1),
        };
        let mut lines: Vec<&SourceLine> = found.iter().filter_map(|piece| line_at(piece, address)).collect();
        lines.dedup_by(|a, b| (a.line, &a.file) == (b.line, &b.file));
        let line = if let ([line], 1) = (lines.as_slice(), names.len()) { Some(*line) } else { None };
        Some(Resolved {
            function: Some(function),
            file: line.map(|line| PathBuf::from(&*line.file)),
            line: line.map(|line| line.line),
            column: None,
            inlined: false,
        })
    }
}

fn line_at(piece: &Piece, address: u64) -> Option<&SourceLine> {
    let offset = address.checked_sub(piece.start)?;
    let after = piece.lines.partition_point(|line| line.offset <= offset);
    piece.lines.get(after.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(start: u64, bytes: u64, function: &str, lines: &[(u64, u32)]) -> Piece {
        let lines = lines.iter().map(|&(offset, line)| SourceLine { offset, line, file: "/a.py".into() }).collect();
        Piece { start, bytes, function: function.into(), lines }
    }

    /// Check functions and lines, and that reused memory never gets the name of one function only.
    #[test]
    fn functions_by_address() {
        let pieces = CodePieces::new(vec![
            piece(0x300, 0x10, "sum", &[]),
            piece(0x100, 0x20, "fill", &[(4, 7), (8, 9)]),
            piece(0x300, 0x20, "fill", &[(0, 3)]),
            piece(0x400, 0x10, "one", &[(0, 1)]),
            piece(0x400, 0x10, "one", &[(0, 2)]),
            piece(0x500, 0x1000, "large", &[]),
            piece(0x510, 1, "small", &[]),
            piece(0x510, 1, "tiny", &[]),
        ]);
        let at = |address| {
            let found = pieces.resolve(address)?;
            Some((found.function.unwrap_or_default(), found.line))
        };
        let named = |name: &str, line| Some((name.to_owned(), line));
        for (address, expected) in [
            (0, None),
            (0xff, None),
            (0x100, named("fill", None)),
            (0x104, named("fill", Some(7))),
            (0x11f, named("fill", Some(9))),
            (0x120, None),
            (0x300, named("fill or sum", None)),
            (0x310, named("fill", Some(3))),
            (0x400, named("one", None)),
            (0x510, named("large or one of 2 others", None)),
            (0x511, named("large", None)),
            (0x14ff, named("large", None)),
            (u64::MAX, None),
        ] {
            assert_eq!(at(address), expected, "{address:#x}");
        }
        assert!(CodePieces::default().resolve(0).is_none() && CodePieces::default().is_empty());
    }
}
