//! Opens an ELF file and copies the parts that are needed. The file is read, not mapped: if a program is rebuilt while its profile is being
//! symbolised, a mapping would kill the reader with SIGBUS.

use firsttouch_model::error::{Context, Error, Result};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, Sym, SymbolTable};
use object::{CompressionFormat, Endianness, Object, ObjectSection, ReadCache, SectionIndex, elf};
use std::cell::OnceCell;
use std::fs::{self, File};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The parts of a file that were read.
type Cache<'data> = ReadCache<&'data File>;
type Parsed<'data> = ElfFile64<'data, Endianness, &'data Cache<'data>>;

/// A 64-bit ELF file whose parts are read when asked for.
pub(crate) struct Elf<'data> {
    parsed: Parsed<'data>,
    file: &'data File,
}

impl<'data> Deref for Elf<'data> {
    type Target = Parsed<'data>;

    fn deref(&self) -> &Self::Target {
        &self.parsed
    }
}

/// A part of a file. It is read to where it stays: sections have megabytes. `None` if the file has no such part.
#[must_use]
pub fn file_part(file: &File, offset: u64, bytes: u64) -> Option<Arc<[u8]>> {
    // A damaged header must not make this allocate more than the file has.
    if offset.checked_add(bytes)? > file.metadata().ok()?.len() {
        return None;
    }
    let mut part: Arc<[u8]> = std::iter::repeat_n(0, usize::try_from(bytes).ok()?).collect();
    file.read_exact_at(Arc::get_mut(&mut part)?, offset).ok()?;
    Some(part)
}

type Header = elf::FileHeader64<Endianness>;

/// Opens `path` and calls `read` with the parsed headers.
pub(crate) fn with_elf<T>(path: &Path, read: impl FnOnce(&Elf<'_>) -> T) -> Result<T> {
    // Check first: opening a FIFO would wait for a writer.
    let kind = fs::metadata(path).with_context(|| format!("cannot open {}", path.display()))?;
    if !kind.is_file() {
        return Err(Error::invalid_input(format!("cannot read symbols of {}: not a regular file", path.display())));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let cache = Cache::new(&file);
    let unsound = |error: object::read::Error| {
        let message = format!("cannot read symbols of {}: not a sound 64-bit ELF file", path.display());
        Error::invalid_data(error.to_string()).context(message)
    };
    let parsed = Parsed::parse(&cache).map_err(unsound)?;
    Ok(read(&Elf { parsed, file: &file }))
}

/// A loadable part of the file (`PT_LOAD`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) file_bytes: u64,
    pub(crate) address: u64,
    pub(crate) executable: bool,
    /// Its bytes in memory if the program may write to it, else 0.
    pub(crate) writable_bytes: u64,
}

impl Segment {
    pub(crate) fn contains_offset(&self, offset: u64) -> bool {
        self.address_of(offset).is_some()
    }

    /// The address of a file offset within this segment.
    fn address_of(&self, offset: u64) -> Option<u64> {
        let within = offset.checked_sub(self.offset)?;
        (within < self.file_bytes).then(|| self.address.wrapping_add(within))
    }
}

/// All loadable segments, in the file's order.
pub(crate) fn segments(elf: &Elf<'_>) -> Vec<Segment> {
    let endian = elf.endian();
    let loads = elf.elf_program_headers().iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
    loads
        .map(|header| Segment {
            offset: header.p_offset(endian),
            file_bytes: header.p_filesz(endian),
            address: header.p_vaddr(endian),
            executable: header.p_flags(endian).0 & elf::PF_X.0 != 0,
            writable_bytes: if header.p_flags(endian).0 & elf::PF_W.0 != 0 { header.p_memsz(endian) } else { 0 },
        })
        .collect()
}

/// The ELF address of a file offset. If two segments share a page of the file, the segment with code is used.
pub(crate) fn address_of_offset(segments: &[Segment], offset: u64) -> Option<u64> {
    let code = segments.iter().filter(|segment| segment.executable);
    let data = segments.iter().filter(|segment| !segment.executable);
    code.chain(data).find_map(|segment| segment.address_of(offset))
}

/// The file offset of an ELF address; `None` if it is not in the file.
pub(crate) fn offset_of_address(segments: &[Segment], address: u64) -> Option<u64> {
    segments.iter().find_map(|segment| {
        let within = address.checked_sub(segment.address)?;
        (within < segment.file_bytes).then(|| segment.offset.wrapping_add(within))
    })
}

/// <https://www.zlib.net/zlib_tech.html>, "Maximum Compression Factor", rounded up.
const LARGEST_COMPRESSION: u64 = 1100;

/// The uncompressed bytes of a section; `None` if it is absent, empty or damaged.
pub(crate) fn section_bytes(elf: &Elf<'_>, name: &str) -> Option<Arc<[u8]>> {
    let section = elf.section_by_name(name)?;
    let place = section.compressed_file_range().ok()?;
    if place.format == CompressionFormat::None {
        return file_part(elf.file, place.offset, place.uncompressed_size).filter(|bytes| !bytes.is_empty());
    }
    let stored = section.compressed_data().ok()?;
    // A damaged header must not make this allocate gigabytes. Deflate cannot exceed this ratio, and zstd does not on DWARF.
    let credible = (stored.data.len() as u64).saturating_mul(LARGEST_COMPRESSION);
    if stored.uncompressed_size > credible {
        return None;
    }
    let data = stored.decompress().ok()?;
    (!data.is_empty()).then(|| Arc::from(&*data))
}

/// One symbol of `.symtab` or `.dynsym` that is defined in a section of this file.
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a [u8],
    /// Where the name begins in the table's names.
    pub(crate) name_at: usize,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: u8,
    pub(crate) binding: u8,
    pub(crate) section: SectionIndex,
}

/// Calls `visit` for every named symbol that has a section and that `is_wanted`, which does not know its name; `.symtab` first. `visit` gets
/// the names of its table as well, which are read if one of its symbols is wanted.
pub(crate) fn for_each_symbol(elf: &Elf<'_>, is_wanted: impl Fn(&Symbol<'_>) -> bool, mut visit: impl FnMut(&Symbol<'_>, &Arc<[u8]>)) {
    for table in [elf.elf_symbol_table(), elf.elf_dynamic_symbol_table()] {
        visit_table(elf, table, &is_wanted, &mut visit);
    }
}

fn visit_table<'data>(
    elf: &Elf<'data>,
    table: &SymbolTable<'data, Header, &'data Cache<'data>>,
    is_wanted: &impl Fn(&Symbol<'_>) -> bool,
    visit: &mut impl FnMut(&Symbol<'_>, &Arc<[u8]>),
) {
    // In one piece: reading each name would take two system calls each.
    let strings = OnceCell::new();
    let read_strings = || {
        let (offset, bytes) = elf.section_by_index(table.string_section()).ok()?.file_range()?;
        file_part(elf.file, offset, bytes)
    };
    let endian = elf.endian();
    for (index, symbol) in table.enumerate() {
        let Ok(Some(section)) = table.symbol_section(endian, symbol, index) else { continue };
        let nameless = Symbol {
            name: &[],
            name_at: symbol.st_name(endian) as usize,
            address: symbol.st_value(endian),
            bytes: symbol.st_size(endian),
            kind: symbol.st_type().0,
            binding: symbol.st_bind().0,
            section,
        };
        if !is_wanted(&nameless) {
            continue;
        }
        let Some(strings) = strings.get_or_init(read_strings) else { return };
        let name = strings.get(nameless.name_at..).and_then(|rest| rest.split(|byte| *byte == 0).next());
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            visit(&Symbol { name, ..nameless }, strings);
        }
    }
}

/// Whether the file still has its full symbol table.
pub(crate) fn has_symbol_table(elf: &Elf<'_>) -> bool {
    !elf.elf_symbol_table().is_empty()
}

/// Whether the loader could map the file (it is not a relocatable object).
pub(crate) fn is_loadable(elf: &Elf<'_>) -> bool {
    elf.elf_header().e_type(elf.endian()) != elf::ET_REL
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that `file_part` returns the bytes of a range, and `None` for a range that ends beyond the file or beyond the largest number.
    #[test]
    fn parts_lie_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, b"0123456789").expect("a file");
        let file = File::open(&path).expect("the file");
        assert_eq!(file_part(&file, 3, 4).as_deref(), Some(&b"3456"[..]));
        assert_eq!(file_part(&file, 10, 0).as_deref(), Some(&b""[..]));
        for (offset, bytes) in [(7, 4), (11, 0), (u64::MAX, 1), (1, u64::MAX), (0, 1 << 40)] {
            assert_eq!(file_part(&file, offset, bytes), None, "{offset} {bytes}");
        }
    }
}
