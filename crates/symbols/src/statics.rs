//! Static and global arrays of a module, from its symbol table.

use crate::common_blocks::{self, CommonBlock};
use crate::debug_file::{self, Links, default_roots};
use crate::declarations::{self, Declaration};
use crate::dwarf;
use crate::elf::{Elf, Segment, Symbol, for_each_symbol, has_symbol_table, segments, with_elf};
use crate::names::demangle;
use firsttouch_model::error::Result;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use object::{Object, ObjectSection, SectionIndex, elf};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// A variable with static storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticObject {
    /// The source name: `field`, `grid_mod::field`, `/blk/` for a Fortran COMMON block that DWARF describes. Memory that no symbol covers, as in a
    /// stripped module, has the name of its section and file: `.bss of solver`.
    pub name: String,
    /// The address in the ELF file; add [`StaticObjects::bias`] for the one in memory.
    pub address: u64,
    pub bytes: u64,
    /// The variables of a Fortran COMMON block in order: name, offset, bytes. Empty for anything else and without DWARF.
    pub members: Vec<(String, u64, u64)>,
    /// File and line, if DWARF has them.
    pub declared_at: Option<(PathBuf, u32)>,
}

impl StaticObject {
    /// The variable of a COMMON block that contains the byte at `offset`.
    #[must_use]
    pub fn member_at(&self, offset: u64) -> Option<&str> {
        let holds = |(_, start, bytes): &&(String, u64, u64)| offset.checked_sub(*start).is_some_and(|within| within < *bytes);
        self.members.iter().find(holds).map(|(name, ..)| name.as_str())
    }
}

/// The static objects of one module, and the data to find them in memory.
#[derive(Clone, Debug, Default)]
pub struct StaticObjects {
    /// By address.
    pub objects: Vec<StaticObject>,
    segments: Vec<Segment>,
    declarations: HashMap<u64, Declaration>,
}

impl StaticObjects {
    /// The declaration of the variable that begins at an ELF address: an object, or a member of one.
    #[must_use]
    pub fn declared_at(&self, address: u64) -> Option<&(PathBuf, u32)> {
        self.declarations.get(&address)
    }

    /// The difference between addresses in memory and ELF addresses (modulo 2^64), from the module's FIRST (lowest) line in
    /// /proc/PID/maps. Later lines may be ambiguous, because adjacent segments can share a page of the file.
    #[must_use]
    pub fn bias(&self, map_start: u64, map_file_offset: u64) -> Option<u64> {
        const LARGEST_PAGE: u64 = 64 << 10;
        let exact = self.segments.iter().find(|segment| segment.contains_offset(map_file_offset));
        // A mapping begins at a page boundary, a segment anywhere in the page.
        let segment = exact.or_else(|| {
            let ahead = |segment: &&Segment| segment.offset.checked_sub(map_file_offset).is_some_and(|gap| gap < LARGEST_PAGE);
            self.segments.iter().filter(ahead).min_by_key(|segment| segment.offset)
        })?;
        let linked_at = segment.address.wrapping_sub(segment.offset).wrapping_add(map_file_offset);
        Some(map_start.wrapping_sub(linked_at))
    }
}

/// The variables of at least `min_bytes` in the writable sections of `module`: `.data`, `.bss`, their large-model forms, Fortran
/// COMMON blocks. Thread-local variables and relocation-only data (`.data.rel.ro`, the global offset table) are left out.
/// The symbols of a stripped module are read from its debug file, if there is one. What no symbol covers is an object too.
pub fn static_objects(module: &Path, min_bytes: u64) -> Result<StaticObjects> {
    static_objects_with_roots(module, min_bytes, &default_roots())
}

fn static_objects_with_roots(module: &Path, min_bytes: u64, roots: &[PathBuf]) -> Result<StaticObjects> {
    let mut found = HashMap::new();
    let mut covered = Vec::new();
    let read = |elf: &Elf<'_>| {
        let segments = segments(elf);
        // Most libraries have no room for such a variable: their names, and a search for their debug files, would be read for nothing.
        if segments.iter().all(|segment| segment.writable_bytes < min_bytes.max(1)) {
            return (segments, None);
        }
        collect(elf, min_bytes, &mut found, &mut covered);
        let described = Described::read(elf, module, roots, &found, min_bytes);
        (segments, Some((Links::read(elf), described, has_symbol_table(elf), writable_sections(elf))))
    };
    let (segments, more) = with_elf(module, read)?;
    let Some((links, mut described, complete, areas)) = more else { return Ok(StaticObjects { segments, ..StaticObjects::default() }) };
    if (!complete || described.is_none())
        && let Some(debug_file) = debug_file::find(module, &links, roots)
    {
        // The module was readable; an unreadable debug file only costs names.
        let more = with_elf(&debug_file, |elf| {
            collect(elf, min_bytes, &mut found, &mut covered);
            Described::read(elf, &debug_file, roots, &found, min_bytes)
        });
        let more = more.ok().flatten().unwrap_or_default();
        let described = described.get_or_insert_default();
        described.blocks.extend(more.blocks);
        described.declarations.extend(more.declarations);
    }
    let described = described.unwrap_or_default();
    let mut objects: Vec<StaticObject> = found.into_values().map(|data_symbol| data_symbol.into_object(&described)).collect();
    objects.extend(nameless(module, &areas, covered, min_bytes));
    objects.sort_by_key(|object| object.address);
    Ok(StaticObjects { objects, segments, declarations: described.declarations })
}

/// A symbol that may become an object; of several aliases, the best is kept.
struct DataSymbol {
    raw_name: String,
    address: u64,
    bytes: u64,
    is_global: bool,
}

impl DataSymbol {
    fn into_object(self, described: &Described) -> StaticObject {
        let Self { raw_name, address, bytes, .. } = self;
        let (name, members) = match described.blocks.get(&address) {
            Some(block) => (block.display_name(), block.members_within(bytes)),
            None => (variable_name(&raw_name), Vec::new()),
        };
        StaticObject { name, address, bytes, members, declared_at: described.declarations.get(&address).cloned() }
    }

    /// Global before local, longer before shorter, fewer leading underscores before more.
    fn preference(&self) -> (bool, u64, std::cmp::Reverse<usize>) {
        let underscores = self.raw_name.bytes().take_while(|byte| *byte == b'_').count();
        (self.is_global, self.bytes, std::cmp::Reverse(underscores))
    }
}

/// Adds the variables of at least `min_bytes` to `found`, and address and bytes of all to `covered`.
fn collect(elf: &Elf<'_>, min_bytes: u64, found: &mut HashMap<u64, DataSymbol>, covered: &mut Vec<(u64, u64)>) {
    let writable: HashSet<SectionIndex> = writable_sections(elf).into_iter().map(|area| area.index).collect();
    let all = RefCell::new(covered);
    let is_wanted = |symbol: &Symbol<'_>| {
        let is_here = is_variable(symbol) && writable.contains(&symbol.section);
        if is_here {
            all.borrow_mut().push((symbol.address, symbol.bytes));
        }
        is_here && symbol.bytes >= min_bytes.max(1)
    };
    for_each_symbol(elf, is_wanted, |symbol, _| {
        let data_symbol = DataSymbol {
            raw_name: String::from_utf8_lossy(symbol.name).into_owned(),
            address: symbol.address,
            bytes: symbol.bytes,
            is_global: symbol.binding != elf::STB_LOCAL.0,
        };
        match found.entry(symbol.address) {
            Entry::Vacant(entry) => {
                entry.insert(data_symbol);
            }
            Entry::Occupied(mut entry) if data_symbol.preference() > entry.get().preference() => {
                entry.insert(data_symbol);
            }
            Entry::Occupied(_) => {}
        }
    });
}

fn is_variable(symbol: &Symbol<'_>) -> bool {
    [elf::STT_OBJECT.0, elf::STT_COMMON.0].contains(&symbol.kind)
}

/// A writable section.
struct Area {
    index: SectionIndex,
    name: String,
    address: u64,
    bytes: u64,
}

fn writable_sections(elf: &Elf<'_>) -> Vec<Area> {
    let is_writable = |flags: u64| {
        let wanted = elf::SHF_ALLOC.0 | elf::SHF_WRITE.0;
        flags & wanted == wanted && flags & elf::SHF_TLS.0 == 0
    };
    // Only the loader writes it; it is read-only afterwards.
    let relocation_only = |name: &str| name.starts_with(".data.rel.ro") || name.starts_with(".got") || name == ".dynamic";
    let sections = elf.sections().filter(|section| match section.flags() {
        object::SectionFlags::Elf { sh_flags, .. } => is_writable(sh_flags.0) && !section.name().is_ok_and(relocation_only),
        _ => false,
    });
    sections
        .map(|section| Area {
            index: section.index(),
            name: section.name().unwrap_or_default().to_owned(),
            address: section.address(),
            bytes: section.size(),
        })
        .collect()
}

/// What lies between variables and is smaller is alignment.
const LEAST_NAMELESS: u64 = 4096;
/// A linker writes fewer than ten such sections.
const MOST_AREAS: usize = 64;
/// The largest parts of a section are objects.
const MOST_PARTS: usize = 64;

/// The parts of at least `min_bytes` of the sections that no variable covers: in a stripped module, whole sections. The largest part of a section has the
/// name of the section, so that the name does not depend on `min_bytes`.
fn nameless(module: &Path, areas: &[Area], mut covered: Vec<(u64, u64)>, min_bytes: u64) -> Vec<StaticObject> {
    covered.sort_unstable();
    let file = module.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut objects = Vec::new();
    let large = areas.iter().filter(|area| area.bytes >= min_bytes.max(LEAST_NAMELESS)).take(MOST_AREAS);
    for Area { name, address, bytes, .. } in large {
        let mut free: Vec<(u64, u64)> = Vec::new();
        let (mut from, end) = (*address, address.saturating_add(*bytes));
        for (start, bytes) in covered.iter().copied().chain([(end, 0)]) {
            let until = start.min(end);
            if until > from && until - from >= LEAST_NAMELESS {
                free.push((from, until - from));
            }
            from = from.max(start.saturating_add(bytes));
        }
        if free.len() > MOST_PARTS {
            free.sort_unstable_by_key(|(start, bytes)| (std::cmp::Reverse(*bytes), *start));
            free.truncate(MOST_PARTS);
        }
        let largest = free.iter().copied().max_by_key(|(start, bytes)| (*bytes, std::cmp::Reverse(*start)));
        objects.extend(free.into_iter().filter(|(_, bytes)| *bytes >= min_bytes).map(|part| {
            let offset = if Some(part) == largest { String::new() } else { format!("+0x{:x}", part.0 - address) };
            let name = format!("{name}{offset} of {file}");
            StaticObject { name, address: part.0, bytes: part.1, members: Vec::new(), declared_at: None }
        }));
    }
    objects
}

/// DWARF's description of the variables, by address.
#[derive(Default)]
struct Described {
    blocks: HashMap<u64, CommonBlock>,
    declarations: HashMap<u64, Declaration>,
}

impl Described {
    /// `None` without DWARF. DWARF is read only if there are variables, and COMMON blocks only if a symbol has a name like theirs.
    fn read(elf: &Elf<'_>, path: &Path, roots: &[PathBuf], found: &HashMap<u64, DataSymbol>, min_bytes: u64) -> Option<Self> {
        if found.is_empty() {
            return Some(Self::default());
        }
        let dwarf = dwarf::load(elf, path, roots)?;
        let may_be_block = |data_symbol: &DataSymbol| data_symbol.is_global && data_symbol.raw_name.ends_with('_');
        let blocks = if found.values().any(may_be_block) { common_blocks::read(&dwarf) } else { HashMap::new() };
        let mut addresses: HashSet<u64> = found.keys().copied().collect();
        for (address, block) in &blocks {
            let members = found.get(address).map(|data_symbol| block.members_within(data_symbol.bytes)).unwrap_or_default();
            addresses.extend(members.iter().filter(|(.., bytes)| *bytes >= min_bytes).map(|(_, offset, _)| address.wrapping_add(*offset)));
        }
        let declarations = declarations::read(&dwarf, &addresses);
        Some(Self { blocks, declarations })
    }
}

/// `grid.0`, a static within a function, is `grid` in the source.
fn variable_name(raw: &str) -> String {
    let numbered = raw.rsplit_once('.').filter(|(name, number)| !name.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    let name = demangle(numbered.map_or(raw, |(name, _)| name));
    name.replace("_GLOBAL__N_1::", "(anonymous namespace)::")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(offset: u64, file_bytes: u64, address: u64) -> Segment {
        Segment { offset, file_bytes, address, executable: false, writable_bytes: file_bytes }
    }

    #[test]
    fn bias_comes_from_the_first_mapping() {
        let statics = |segments| StaticObjects { segments, ..StaticObjects::default() };
        let pie = statics(vec![segment(0, 0x628, 0), segment(0x1000, 0x1b9, 0x1000), segment(0x2dd0, 0x258, 0x3dd0)]);
        assert_eq!(pie.bias(0x5555_5555_4000, 0), Some(0x5555_5555_4000));
        assert_eq!(pie.bias(0x5555_5555_5000, 0x1000), Some(0x5555_5555_4000));
        assert_eq!(pie.bias(0x5555_5555_7000, 0x2000), Some(0x5555_5555_4000), "a data mapping begins before its segment");
        let fixed = statics(vec![segment(0, 0x628, 0x40_0000)]);
        assert_eq!(fixed.bias(0x40_0000, 0), Some(0));
        assert_eq!(fixed.bias(0x40_0000, 0x100_0000), None);
        assert_eq!(statics(Vec::new()).bias(0, 0), None);
        let wild = statics(vec![segment(u64::MAX, u64::MAX, u64::MAX)]);
        assert_eq!(wild.bias(1, u64::MAX), Some(2));
    }

    #[test]
    fn what_no_variable_covers_is_an_object() {
        let area = |address, bytes| Area { index: SectionIndex(1), name: ".bss".to_owned(), address, bytes };
        let parts = |areas: &[Area], covered: &[(u64, u64)], min_bytes| {
            let objects = nameless(Path::new("/opt/solver"), areas, covered.to_vec(), min_bytes);
            objects.into_iter().map(|one| (one.name, one.address, one.bytes)).collect::<Vec<_>>()
        };
        let whole = (".bss of solver".to_owned(), 0x1000, 0x10_0000);
        assert_eq!(parts(&[area(0x1000, 0x10_0000)], &[], 0x10000), [whole]);
        let variables = [(0x2_0000, 0x1_0000), (0x8_0000, 8), (0, 0x2000), (u64::MAX, u64::MAX)];
        let expected = [
            (".bss+0x1000 of solver".to_owned(), 0x2000, 0x1_e000),
            (".bss+0x2f000 of solver".to_owned(), 0x3_0000, 0x5_0000),
            (".bss of solver".to_owned(), 0x8_0008, 0x10_1000 - 0x8_0008),
        ];
        assert_eq!(parts(&[area(0x1000, 0x10_0000)], &variables, 1), expected);
        assert_eq!(parts(&[area(0x1000, 0x10_0000)], &variables, 0x6_0000), expected[2..]);
        assert_eq!(parts(&[area(0x1000, 0x10_0000)], &[(0x1000, 0x10_0000 - 100)], 1), [], "alignment");
        assert_eq!(parts(&[area(u64::MAX - 4096, u64::MAX)], &[], 1)[0].2, 4096);
    }

    #[test]
    fn statics_of_functions_lose_their_number() {
        for (raw, name) in [
            ("grid.0", "grid"),
            ("a.b.1234", "a.b"),
            ("plain", "plain"),
            (".0", ".0"),
            ("_ZZ4mainE3buf", "main::buf"),
            ("_ZN4grid12_GLOBAL__N_15fieldE", "grid::(anonymous namespace)::field"),
            ("", ""),
        ] {
            assert_eq!(variable_name(raw), name);
        }
    }

    #[test]
    fn members_are_found_by_offset() {
        let members = vec![("a".to_owned(), 0, 80), ("b".to_owned(), 80, 8)];
        let block = StaticObject { name: "/blk/".to_owned(), address: 0, bytes: 88, members, declared_at: None };
        assert_eq!(block.member_at(0), Some("a"));
        assert_eq!(block.member_at(80), Some("b"));
        assert_eq!(block.member_at(88), None);
    }
}
