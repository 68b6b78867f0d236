//! Function symbols of one module, for code without DWARF.

use crate::elf::{Elf, Symbol, for_each_symbol};
use hashbrown::HashMap;
use object::{Object, ObjectSection, SectionIndex, elf};
use std::ops::Range;
use std::sync::Arc;

/// Functions sorted by address; at most one for each address.
#[derive(Default)]
pub(crate) struct FunctionTable {
    entries: Vec<Entry>,
    /// The names of the symbol tables, not copied one by one: modules with hundreds of thousands of functions are common.
    names: Vec<Arc<[u8]>>,
}

struct Entry {
    addresses: Range<u64>,
    /// The end of the section, for a symbol without a size.
    limit: Option<u64>,
    /// Which of the names, and where in them.
    name: (usize, Range<usize>),
    preference: Preference,
}

/// Among aliases: global before local, then the name with fewer leading underscores (`malloc`, not `__libc_malloc`).
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Preference {
    global: bool,
    plain: std::cmp::Reverse<usize>,
}

/// How many functions before an address are searched for one that contains it (nested symbols are rare).
const NESTING: usize = 16;

/// The largest size of a function whose symbol has no size, bytes. At larger distances, the symbols in between were probably stripped.
const LONGEST_UNSIZED: u64 = 64 << 10;

impl FunctionTable {
    /// Adds the functions of `elf`, which may be a module or its debug file.
    pub(crate) fn add(&mut self, elf: &Elf<'_>) {
        let code = code_sections(elf);
        let section_of = |symbol: &Symbol<'_>| code.get(&symbol.section).filter(|section| section.contains(&symbol.address));
        for_each_symbol(
            elf,
            |symbol| is_function(symbol) && section_of(symbol).is_some(),
            |symbol, names| {
                if let Some(section) = section_of(symbol).filter(|_| !is_marker(symbol)) {
                    self.push(symbol, section, names);
                }
            },
        );
        self.sort();
    }

    fn push(&mut self, symbol: &Symbol<'_>, section: &Range<u64>, names: &Arc<[u8]>) {
        if self.names.last().is_none_or(|last| !Arc::ptr_eq(last, names)) {
            self.names.push(Arc::clone(names));
        }
        let underscores = symbol.name.iter().take_while(|byte| **byte == b'_').count();
        self.entries.push(Entry {
            addresses: symbol.address..symbol.address.saturating_add(symbol.bytes),
            limit: (symbol.bytes == 0).then_some(section.end),
            name: (self.names.len() - 1, symbol.name_at..symbol.name_at + symbol.name.len()),
            preference: Preference { global: symbol.binding != elf::STB_LOCAL.0, plain: std::cmp::Reverse(underscores) },
        });
    }

    fn sort(&mut self) {
        self.entries.sort_by(|a, b| a.addresses.start.cmp(&b.addresses.start).then_with(|| b.preference.cmp(&a.preference)));
        self.entries.dedup_by_key(|entry| entry.addresses.start);
        self.end_unsized();
    }

    /// Sets the end of functions without a size, which are often hand-written assembly: the next function, or the end of the section.
    fn end_unsized(&mut self) {
        let mut next = u64::MAX;
        for entry in self.entries.iter_mut().rev() {
            if let Some(limit) = entry.limit {
                entry.addresses.end = limit.min(next).min(entry.addresses.start.saturating_add(LONGEST_UNSIZED));
            }
            next = entry.addresses.start;
        }
    }

    /// Where the function of this raw name begins.
    pub(crate) fn address_of(&self, name: &str) -> Option<u64> {
        let is_it = |entry: &&Entry| self.name(entry) == Some(name.as_bytes());
        self.entries.iter().find(is_it).map(|entry| entry.addresses.start)
    }

    /// The raw (mangled) name of the function around an address.
    pub(crate) fn find(&self, address: u64) -> Option<String> {
        let after = self.entries.partition_point(|entry| entry.addresses.start <= address);
        let before = self.entries.get(after.saturating_sub(NESTING)..after)?;
        let entry = before.iter().rev().find(|entry| entry.addresses.contains(&address))?;
        Some(String::from_utf8_lossy(self.name(entry)?).into_owned())
    }

    fn name(&self, entry: &Entry) -> Option<&[u8]> {
        let (table, place) = &entry.name;
        self.names.get(*table)?.get(place.clone())
    }
}

/// Address ranges of the sections that hold code.
fn code_sections(elf: &Elf<'_>) -> HashMap<SectionIndex, Range<u64>> {
    let mut code = HashMap::new();
    for section in elf.sections() {
        let object::SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if sh_flags.0 & elf::SHF_EXECINSTR.0 != 0 {
            code.insert(section.index(), section.address()..section.address().saturating_add(section.size()));
        }
    }
    code
}

fn is_function(symbol: &Symbol<'_>) -> bool {
    [elf::STT_FUNC.0, elf::STT_GNU_IFUNC.0, elf::STT_NOTYPE.0].contains(&symbol.kind)
}

/// A mapping symbol of AArch64: it names no function.
fn is_marker(symbol: &Symbol<'_>) -> bool {
    symbol.name.starts_with(b"$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_by_address() {
        let mut table = FunctionTable::default();
        for (name, address, bytes, binding) in [
            (&b"__libc_malloc"[..], 0x100, 0x20, elf::STB_GLOBAL.0),
            (b"malloc", 0x100, 0x20, elf::STB_GLOBAL.0),
            (b"local_malloc", 0x100, 0x20, elf::STB_LOCAL.0),
            (b"assembly", 0x200, 0, elf::STB_GLOBAL.0),
            (b"outer", 0x300, 0x100, elf::STB_GLOBAL.0),
            (b"inner", 0x310, 0x10, elf::STB_LOCAL.0),
            (b"last", 0x1000, 0, elf::STB_GLOBAL.0),
            (b"wild", u64::MAX, u64::MAX, elf::STB_GLOBAL.0),
        ] {
            let symbol = Symbol { name, name_at: 0, address, bytes, kind: elf::STT_FUNC.0, binding, section: SectionIndex(1) };
            table.push(&symbol, &(0..0x10_0000), &Arc::from(name));
        }
        table.sort();
        for (address, name) in [
            (0xff, None),
            (0x100, Some("malloc")),
            (0x120, None),
            (0x2ff, Some("assembly")),
            (0x315, Some("inner")),
            (0x320, Some("outer")),
            (0x400, None),
            (0x1001, Some("last")),
            (0x2_0000, None),
            (u64::MAX, None),
        ] {
            assert_eq!(table.find(address).as_deref(), name, "{address:#x}");
        }
    }
}
