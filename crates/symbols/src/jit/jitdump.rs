//! jitdump: the file that runtimes write for `perf inject --jit`, as tools/perf/Documentation/jitdump-specification.txt of Linux
//! describes it. A header, then records with the names of functions, their moves, and the source lines of their code.

use super::pieces::{Parsed, Piece, SourceLine};
use super::{LARGEST_PIECE, LONGEST_NAME, MOST_LINES, MOST_PIECES, names};
use firsttouch_model::error::{Error, Result};
use hashbrown::HashMap;
use std::sync::Arc;

const MAGIC: u32 = 0x4A69_5444; // "JiTD"
const HEADER_BYTES: usize = 40;
const RECORD_BYTES: usize = 16;
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const DEBUG_INFO: u32 = 2;
const CLOSE: u32 = 3;
/// V8 adds the size of an ELF header to the addresses of its lines.
const V8_SHIFT: u64 = 0x40;
/// A file name of a line that repeats the one before.
const SAME_FILE: &[u8] = &[0xff];

/// Reads a jitdump, as far as it is there: a program that was killed leaves a part of a record at the end.
///
/// # Errors
/// When it does not start with the header of a jitdump.
pub fn parse(dump: &[u8]) -> Result<Parsed> {
    let refuse = |reason: &str| Error::invalid_input(format!("cannot read the jitdump: {reason}"));
    let mut header = Fields { bytes: dump, at: 0, is_swapped: false };
    let magic = header.u32().ok_or_else(|| refuse("it is empty"))?;
    header.is_swapped = magic == MAGIC.swap_bytes();
    if magic != MAGIC && !header.is_swapped {
        return Err(refuse("it has another format"));
    }
    let (_version, header_bytes) = (header.u32(), header.u32().and_then(|bytes| usize::try_from(bytes).ok()));
    let header_bytes = header_bytes.filter(|bytes| *bytes >= HEADER_BYTES).ok_or_else(|| refuse("its header is cut off"))?;
    let mut records = Fields { bytes: dump, at: header_bytes, is_swapped: header.is_swapped };
    Ok(Reader::default().read(&mut records))
}

#[derive(Default)]
struct Reader {
    parsed: Parsed,
    /// Lines of the function that is loaded next: its address, and (address, line) pairs.
    lines: Option<(u64, Vec<SourceLine>)>,
    lines_kept: usize,
    /// The piece that was loaded last at each address.
    latest: HashMap<u64, usize>,
}

impl Reader {
    fn read(mut self, records: &mut Fields<'_>) -> Parsed {
        while records.at < records.bytes.len() {
            let Some((kind, body)) = records.record() else {
                self.parsed.is_whole = false;
                break;
            };
            if kind == CLOSE {
                break;
            }
            if self.parsed.pieces.len() >= MOST_PIECES {
                self.parsed.is_whole = false;
                break;
            }
            let mut body = Fields { bytes: body, at: 0, is_swapped: records.is_swapped };
            let read = match kind {
                CODE_LOAD => self.load(&mut body),
                CODE_MOVE => self.moved(&mut body),
                DEBUG_INFO => self.debug_info(&mut body),
                _ => Some(()), // unwinding information, and kinds to come
            };
            self.parsed.refused += u64::from(read.is_none());
        }
        self.parsed
    }

    fn load(&mut self, body: &mut Fields<'_>) -> Option<()> {
        let (_pid, _tid, _vma, start, bytes, _index) = (body.u32()?, body.u32()?, body.u64()?, body.u64()?, body.u64()?, body.u64()?);
        let raw = body.text()?;
        let lines = self.lines.take().filter(|(address, _)| *address == start);
        let function = names::function(raw)?;
        is_sound(start, bytes).then_some(())?;
        let shift = if names::is_of_v8(raw) { V8_SHIFT } else { 0 };
        let mut lines = lines.map(|(_, lines)| lines).unwrap_or_default();
        for line in &mut lines {
            line.offset = line.offset.wrapping_sub(shift);
        }
        lines.retain(|line| line.offset < bytes);
        lines.sort_by_key(|line| line.offset);
        self.lines_kept += lines.len();
        self.push(Piece { start, bytes, function: function.into(), lines });
        Some(())
    }

    /// The code is at another address now. Older samples have the old one, so both are known.
    fn moved(&mut self, body: &mut Fields<'_>) -> Option<()> {
        let (_pid, _tid, _vma, from, to, bytes, _index) =
            (body.u32()?, body.u32()?, body.u64()?, body.u64()?, body.u64()?, body.u64()?, body.u64()?);
        is_sound(to, bytes).then_some(())?;
        let old = self.parsed.pieces.get(*self.latest.get(&from)?)?;
        let mut piece = Piece { start: to, bytes, ..old.clone() };
        if self.lines_kept + piece.lines.len() > MOST_LINES {
            piece.lines.clear();
        }
        self.lines_kept += piece.lines.len();
        self.push(piece);
        Some(())
    }

    fn push(&mut self, piece: Piece) {
        self.latest.insert(piece.start, self.parsed.pieces.len());
        self.parsed.pieces.push(piece);
    }

    fn debug_info(&mut self, body: &mut Fields<'_>) -> Option<()> {
        let (code, entries) = (body.u64()?, body.u64()?);
        let mut lines = Vec::new();
        let mut file: Option<Arc<str>> = None;
        for _ in 0..entries {
            if self.lines_kept + lines.len() >= MOST_LINES {
                self.parsed.is_whole = false;
                break;
            }
            let Some((address, line, _column)) = body.u64().zip(body.u32()).zip(body.u32()).map(|((a, b), c)| (a, b, c)) else { break };
            let Some(name) = body.text() else { break };
            if name != SAME_FILE {
                file = path(name)
                    .map(|path| if file.as_deref() == Some(path) { file.clone().unwrap_or_else(|| path.into()) } else { path.into() });
            }
            if let (Some(file), Some(offset)) = (&file, address.checked_sub(code))
                && line > 0
                && offset < LARGEST_PIECE
            {
                lines.push(SourceLine { offset, line, file: Arc::clone(file) });
            }
        }
        self.lines = Some((code, lines));
        Some(())
    }
}

fn is_sound(start: u64, bytes: u64) -> bool {
    (1..=LARGEST_PIECE).contains(&bytes) && start.checked_add(bytes).is_some()
}

/// A path that can be printed. V8 writes some names as raw memory.
fn path(name: &[u8]) -> Option<&str> {
    let path = std::str::from_utf8(name).ok()?;
    let path = path.strip_prefix("file://").unwrap_or(path);
    (!path.is_empty() && path.len() <= 8 * LONGEST_NAME && !path.chars().any(char::is_control)).then_some(path)
}

/// Numbers and names, one after the other.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The file is of the other byte order.
    is_swapped: bool,
}

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(bytes)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        let value = u32::from_ne_bytes(self.take(4)?.try_into().ok()?);
        Some(if self.is_swapped { value.swap_bytes() } else { value })
    }

    fn u64(&mut self) -> Option<u64> {
        let value = u64::from_ne_bytes(self.take(8)?.try_into().ok()?);
        Some(if self.is_swapped { value.swap_bytes() } else { value })
    }

    /// A name that ends with NUL.
    fn text(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        self.at += end + 1;
        rest.get(..end)
    }

    /// The next record: its kind and its body.
    fn record(&mut self) -> Option<(u32, &'a [u8])> {
        let (kind, bytes, _time) = (self.u32()?, usize::try_from(self.u32()?).ok()?, self.u64()?);
        Some((kind, self.take(bytes.checked_sub(RECORD_BYTES)?)?))
    }
}

#[cfg(test)]
mod tests;
