//! One ELF file, with its function names, lines and inlined functions.

use crate::debug_file::{self, Links};
use crate::dwarf::{self, Reader};
use crate::elf::{self, Segment, with_elf};
use crate::functions::FunctionTable;
use crate::names::{demangle, demangle_in};
use crate::resolved::{Line, Resolved};
use crate::tail_calls::{self, Calls};
use addr2line::Location;
use firsttouch_model::error::{Error, Result};
use hashbrown::HashMap;
use std::path::{Path, PathBuf};

type Lines = addr2line::Context<Reader>;

/// The code within so many bytes of an address is next to it, and no more of its rows than this many are looked at.
const NEAR: u64 = 64;
const MOST_ROWS: usize = 64;

/// A module whose headers, function names and DWARF are in memory. Lines and inlined functions of a compilation unit are parsed when
/// the first address in it is resolved.
pub(crate) struct Module {
    segments: Vec<Segment>,
    functions: FunctionTable,
    lines: Option<Lines>,
    pub(crate) has_line_info: bool,
    pub(crate) is_stripped: bool,
    /// Results by file offset: a profile contains the same few thousand addresses many times.
    answers: HashMap<u64, Vec<Resolved>>,
}

/// The data from one file: the module or its debug file.
struct Part {
    segments: Vec<Segment>,
    has_symbol_table: bool,
    dwarf: Option<gimli::Dwarf<Reader>>,
    links: Links,
}

impl Module {
    /// Reads `path` and, if it has no DWARF, its separate debug file below `roots`.
    pub(crate) fn load(path: &Path, roots: &[PathBuf]) -> Result<Self> {
        let mut functions = FunctionTable::default();
        let mut read = |path: &Path| {
            with_elf(path, |elf| {
                if !elf::is_loadable(elf) {
                    return Err(Error::invalid_input(format!("cannot resolve addresses in {}: it is not linked", path.display())));
                }
                functions.add(elf);
                Ok(Part {
                    segments: elf::segments(elf),
                    has_symbol_table: elf::has_symbol_table(elf),
                    dwarf: dwarf::load(elf, path, roots),
                    links: Links::read(elf),
                })
            })?
        };
        let own = read(path)?;
        let mut has_symbol_table = own.has_symbol_table;
        let mut dwarf = own.dwarf;
        if dwarf.is_none() {
            let debug = debug_file::find(path, &own.links, roots).and_then(|path| read(&path).ok());
            has_symbol_table |= debug.as_ref().is_some_and(|debug| debug.has_symbol_table);
            dwarf = debug.and_then(|debug| debug.dwarf);
        }
        let has_line_info = dwarf.as_ref().is_some_and(dwarf::describes_user_code);
        let lines = dwarf.and_then(|dwarf| Lines::from_dwarf(dwarf).ok());
        Ok(Self { segments: own.segments, functions, lines, has_line_info, is_stripped: !has_symbol_table, answers: HashMap::new() })
    }

    /// The functions around a file offset, innermost inlined one first.
    pub(crate) fn resolve(&mut self, offset: u64) -> Vec<Resolved> {
        if let Some(known) = self.answers.get(&offset) {
            return known.clone();
        }
        let frames = elf::address_of_offset(&self.segments, offset).map_or_else(Vec::new, |address| self.frames(address));
        self.answers.insert(offset, frames.clone());
        frames
    }

    /// The functions that jumped to `inner`, a function of another module, instead of calling it, and so are missing above the call at a file offset
    /// (the address that it returns to, less one).
    pub(crate) fn jumped(&self, offset: u64, inner: &str) -> Vec<Resolved> {
        let mut frames = self.jump(offset, Calls::Directly, inner).map_or_else(Vec::new, |jump| self.frames(jump));
        frames.iter_mut().for_each(|frame| frame.inlined = true);
        frames
    }

    /// As `jumped`, for a call of a library that called the function: the file offset of the jump, and the functions there.
    pub(crate) fn jumped_from_library(&self, offset: u64, inner: &str) -> Option<(u64, Vec<Resolved>)> {
        let jump = self.jump(offset, Calls::ThroughLibrary, inner)?;
        Some((elf::offset_of_address(&self.segments, jump)?, self.frames(jump)))
    }

    fn jump(&self, offset: u64, calls: Calls, inner: &str) -> Option<u64> {
        let (lines, call) = self.lines.as_ref().zip(elf::address_of_offset(&self.segments, offset))?;
        let unit_at = |address| lines.find_dwarf_and_unit(address).skip_all_loads();
        tail_calls::jump(unit_at, &self.functions, call.saturating_add(1), calls, inner)
    }

    /// The code at these lines (innermost first): half-open ranges of file offsets.
    pub(crate) fn find(&mut self, lines: &[Line]) -> Vec<(u64, u64)> {
        self.find_within((0, u64::MAX), lines, |_| true)
    }

    /// The copies that the compiler made of the call at `offset`, itself included: code at the same lines and the same column, so that it
    /// leaves out other calls in the line. Empty if the file does not tell columns.
    pub(crate) fn copies(&mut self, offset: u64, lines: &[Line]) -> Vec<(u64, u64)> {
        let Some(address) = elf::address_of_offset(&self.segments, offset) else { return Vec::new() };
        let column = self.lines.as_ref().and_then(|context| context.find_location(address).ok()??.column).filter(|column| *column != 0);
        if column.is_none() || !self.is_at(offset, lines) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for range in self.unit_around(address) {
            found.extend(self.find_within(range, lines, |location| location.column == column));
        }
        found
    }

    /// The addresses of the compilation unit around an address: half-open ranges.
    fn unit_around(&self, address: u64) -> Vec<(u64, u64)> {
        let mut ranges = Vec::new();
        let Some(context) = &self.lines else { return ranges };
        if let Some(unit) = context.find_dwarf_and_unit(address).skip_all_loads()
            && let Ok(mut own) = unit.unit_ranges()
        {
            while let Ok(Some(range)) = own.next() {
                ranges.push((range.begin, range.end));
            }
        }
        ranges
    }

    /// The code at these lines between two addresses whose place in the source is `wanted`.
    fn find_within(&mut self, (low, high): (u64, u64), lines: &[Line], wanted: impl Fn(&Location<'_>) -> bool) -> Vec<(u64, u64)> {
        let Some(inner) = lines.first() else { return Vec::new() };
        let mut found = Vec::new();
        if let Some(context) = &self.lines
            && let Ok(ranges) = context.find_location_range(low, high)
        {
            for (address, bytes, location) in ranges {
                let here = location.line == Some(inner.line) && location.file.is_some_and(|file| last(file) == last(&inner.file));
                let is_wanted = here && bytes > 0 && wanted(&location);
                if let Some(offset) = elf::offset_of_address(&self.segments, address).filter(|_| is_wanted) {
                    found.push((offset, offset.saturating_add(bytes)));
                }
            }
        }
        found.retain(|(from, _)| self.is_at(*from, lines));
        found
    }

    /// Whether the functions around an offset match these functions and lines.
    pub(crate) fn is_at(&mut self, offset: u64, lines: &[Line]) -> bool {
        let frames = self.resolve(offset);
        let same = |(frame, line): (&Resolved, &Line)| {
            let file = frame.file.as_deref().and_then(Path::file_name).is_some_and(|name| name.to_string_lossy() == last(&line.file));
            frame.function.as_deref().unwrap_or_default() == line.function && frame.line == Some(line.line) && file
        };
        frames.len() == lines.len() && frames.iter().zip(lines).all(same)
    }

    fn frames(&self, address: u64) -> Vec<Resolved> {
        let mut frames = self.frames_with_lines(address);
        if frames.first().is_some_and(|inner| inner.line.is_none() && inner.file.is_some())
            && let Some(beside) = self.beside(address, &frames)
        {
            frames = beside;
        }
        let symbol = || self.functions.find(address).map(|raw| demangle(&raw));
        match frames.last_mut() {
            Some(outermost) => {
                outermost.inlined = false;
                outermost.function = outermost.function.take().or_else(symbol);
            }
            None => frames.extend(symbol().map(|name| Resolved { function: Some(name), ..Resolved::default() })),
        }
        frames
    }

    /// The functions around the code next to an address to which the compiler gave line 0, in the same function: a load that it took from several lines
    /// belongs to what follows, or else to what precedes.
    fn beside(&self, address: u64, frames: &[Resolved]) -> Option<Vec<Resolved>> {
        let context = self.lines.as_ref()?;
        let rows = |low: u64, high: u64| -> Vec<u64> {
            let rows = context.find_location_range(low, high).into_iter().flatten().take(MOST_ROWS);
            rows.filter(|(_, bytes, row)| *bytes > 0 && row.line.is_some_and(|line| line != 0)).map(|(at, ..)| at).collect()
        };
        let outermost = |at: u64, frames: &[Resolved]| {
            let by_dwarf = frames.last().and_then(|outermost| outermost.function.clone());
            by_dwarf.or_else(|| self.functions.find(at).map(|raw| demangle(&raw)))
        };
        let following = rows(address, address.saturating_add(NEAR));
        let preceding = rows(address.saturating_sub(NEAR), address).into_iter().rev();
        let around = |at: u64| {
            let found = self.frames_with_lines(at);
            let is_in_it = outermost(at, &found) == outermost(address, frames);
            (is_in_it && found.first().is_some_and(|one| one.line.is_some())).then_some(found)
        };
        let near: Vec<Vec<Resolved>> = following.into_iter().chain(preceding).filter_map(around).collect();
        // The same inlined function comes first.
        let is_alike = |found: &&Vec<Resolved>| found.iter().map(|one| &one.function).eq(frames.iter().map(|one| &one.function));
        near.iter().find(is_alike).or(near.first()).cloned()
    }

    /// The frames from DWARF only; all are marked as inlined.
    fn frames_with_lines(&self, address: u64) -> Vec<Resolved> {
        let mut resolved = Vec::new();
        let Some(lines) = &self.lines else { return resolved };
        // Split DWARF (.dwo files) is not read: the main file still has lines, and the symbol table has functions.
        let Ok(mut frames) = lines.find_frames(address).skip_all_loads() else { return resolved };
        // Keep what was found before the damage.
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| Some(demangle_in(&function.raw_name().ok()?, function.language)));
            let location = frame.location.as_ref();
            resolved.push(Resolved {
                function: name.filter(|name| !name.is_empty()),
                file: location.and_then(|location| location.file).map(PathBuf::from),
                // Compilers write line 0 for code without a line.
                line: location.and_then(|location| location.line).filter(|line| *line != 0),
                column: location.and_then(|location| location.column).filter(|column| *column != 0),
                inlined: true,
            });
        }
        resolved
    }
}

/// The last part of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
