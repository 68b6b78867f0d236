//! Loads the DWARF sections of one file into memory.

use crate::debug_file::{Links, find_shared};
use crate::elf::{Elf, section_bytes, with_elf};
use gimli::{DwLang, Dwarf, Reader as _, RunTimeEndian, Section as _, SectionId};
use object::Object;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads DWARF from shared buffers, so that a module can own its DWARF and move between threads.
pub(crate) type Reader = gimli::EndianArcSlice<RunTimeEndian>;

/// The DWARF of `elf` (which lies at `path`); `None` if it has none.
pub(crate) fn load(elf: &Elf<'_>, path: &Path, roots: &[PathBuf]) -> Option<Dwarf<Reader>> {
    let mut dwarf = load_sections(elf);
    if dwarf.debug_info.reader().is_empty() {
        return None;
    }
    let shared = find_shared(path, &Links::read(elf), roots);
    if let Some(Ok(shared)) = shared.map(|path| with_elf(&path, load_sections)) {
        dwarf.set_sup(shared);
    }
    Some(dwarf)
}

fn load_sections(elf: &Elf<'_>) -> Dwarf<Reader> {
    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let load = |id: SectionId| {
        let bytes = section_bytes(elf, id.name()).unwrap_or_else(|| Arc::from([]));
        Ok::<_, std::convert::Infallible>(Reader::new(bytes, endian))
    };
    match Dwarf::load(load) {
        Ok(dwarf) => dwarf,
        Err(never) => match never {},
    }
}

/// Whether lines are known for code that the user wrote. A Rust program built without `-g` still contains the standard library's DWARF,
/// which does not count.
pub(crate) fn describes_user_code(dwarf: &Dwarf<Reader>) -> bool {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let directory = unit.comp_dir.as_ref().map(|directory| directory.bytes()).unwrap_or_default();
        let standard_library = directory.starts_with(b"/rustc/") || directory.starts_with(b"/rust/deps/");
        if unit.line_program.is_some() && !standard_library {
            return true;
        }
    }
    false
}

/// Whether the language is a version of Fortran.
pub(crate) fn is_fortran(language: DwLang) -> bool {
    matches!(
        language,
        gimli::DW_LANG_Fortran77
            | gimli::DW_LANG_Fortran90
            | gimli::DW_LANG_Fortran95
            | gimli::DW_LANG_Fortran03
            | gimli::DW_LANG_Fortran08
            | gimli::DW_LANG_Fortran18
    )
}
