//! Where variables with static storage are declared (`DW_AT_decl_file`, `DW_AT_decl_line`).

use crate::dwarf::Reader;
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, Operation, Reader as _, Section as _, Unit};
use hashbrown::{HashMap, HashSet};
use std::path::PathBuf;

/// File and line.
pub(crate) type Declaration = (PathBuf, u32);

/// Debug information with more bytes is not read, because that would take too long for one line of a report.
const LARGEST_INFO: usize = 128 << 20;

/// The longest chain of references from declaration to declaration: damaged ones may refer to each other in circles.
const DEEPEST: usize = 4;

/// The declarations of the variables at `addresses`. Stops when all are found.
pub(crate) fn read(dwarf: &Dwarf<Reader>, addresses: &HashSet<u64>) -> HashMap<u64, Declaration> {
    let mut found = HashMap::new();
    if addresses.is_empty() || dwarf.debug_info.reader().len() > LARGEST_INFO {
        return found;
    }
    let mut headers = dwarf.units();
    while found.len() < addresses.len()
        && let Ok(Some(header)) = headers.next()
    {
        let Ok(unit) = dwarf.unit(header) else { continue };
        // Keep what was read before the damaged part of a unit.
        let _ = read_unit(dwarf, &unit, addresses, &mut found);
    }
    found
}

fn read_unit(
    dwarf: &Dwarf<Reader>,
    unit: &Unit<Reader>,
    addresses: &HashSet<u64>,
    found: &mut HashMap<u64, Declaration>,
) -> gimli::Result<()> {
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if entry.tag() != gimli::DW_TAG_variable {
            continue;
        }
        let Some(address) = fixed_address(dwarf, unit, entry).filter(|address| addresses.contains(address)) else { continue };
        if !found.contains_key(&address)
            && let Some(declaration) = declaration(dwarf, unit, entry, Part::default(), DEEPEST)
        {
            found.insert(address, declaration);
        }
    }
    Ok(())
}

/// The address of a static variable, possibly with an added constant (a member of a COMMON block).
pub(crate) fn fixed_address(dwarf: &Dwarf<Reader>, unit: &Unit<Reader>, entry: &DebuggingInformationEntry<Reader>) -> Option<u64> {
    let location = entry.attr(gimli::DW_AT_location)?.exprloc_value()?;
    let mut operations = location.operations(unit.encoding());
    let mut address = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => dwarf.address(unit, index).ok()?,
        _ => return None,
    };
    while let Some(operation) = operations.next().ok()? {
        match operation {
            Operation::PlusConstant { value } => address = address.wrapping_add(value),
            _ => return None,
        }
    }
    Some(address)
}

/// The attributes found so far. A definition omits attributes that equal those of its declaration.
#[derive(Clone, Default)]
struct Part {
    file: Option<PathBuf>,
    line: Option<u32>,
}

fn declaration(
    dwarf: &Dwarf<Reader>,
    unit: &Unit<Reader>,
    entry: &DebuggingInformationEntry<Reader>,
    mut part: Part,
    depth: usize,
) -> Option<Declaration> {
    if part.file.is_none() {
        let file = match entry.attr_value(gimli::DW_AT_decl_file) {
            Some(AttributeValue::FileIndex(file)) => Some(file),
            Some(value) => value.udata_value(),
            None => None,
        };
        part.file = file.and_then(|file| file_path(dwarf, unit, file));
    }
    if part.line.is_none() {
        let line = entry.attr(gimli::DW_AT_decl_line).and_then(gimli::Attribute::udata_value);
        part.line = line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0);
    }
    if let Part { file: Some(file), line: Some(line) } = part {
        return Some((file, line));
    }
    let depth = depth.checked_sub(1)?;
    let other = entry.attr_value(gimli::DW_AT_specification).or_else(|| entry.attr_value(gimli::DW_AT_abstract_origin))?;
    match other {
        AttributeValue::UnitRef(offset) => declaration(dwarf, unit, &unit.entry(offset).ok()?, part, depth),
        // With link-time optimisation the declaration stays in the unit it was compiled in.
        AttributeValue::DebugInfoRef(offset) => {
            let mut headers = dwarf.units();
            while let Ok(Some(header)) = headers.next() {
                if let Some(within) = offset.to_unit_offset(&header) {
                    let unit = dwarf.unit(header).ok()?;
                    return declaration(dwarf, &unit, &unit.entry(within).ok()?, part, depth);
                }
            }
            None
        }
        _ => None,
    }
}

/// The path of a file of the unit's line table, from the compilation directory if it is relative.
fn file_path(dwarf: &Dwarf<Reader>, unit: &Unit<Reader>, index: u64) -> Option<PathBuf> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index)?;
    let text = |value: AttributeValue<Reader>| {
        let text = dwarf.attr_string(unit, value).ok()?;
        Some(text.to_string_lossy().ok()?.into_owned())
    };
    let mut path = PathBuf::new();
    if let Some(directory) = &unit.comp_dir {
        path.push(directory.to_string_lossy().ok()?.as_ref());
    }
    // Before DWARF 5, directory 0 is the compilation directory and not in the table.
    if (file.directory_index() != 0 || header.version() >= 5)
        && let Some(directory) = file.directory(header).and_then(text)
    {
        path.push(directory);
    }
    path.push(text(file.path_name())?);
    Some(path)
}
