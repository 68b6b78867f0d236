//! The variables of Fortran COMMON blocks (`DW_TAG_common_block`, DWARF 5 section 3.4).

use crate::declarations::fixed_address;
use crate::dwarf::{Reader, is_fortran};
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, EntriesTreeNode, Reader as _, Unit, UnitOffset};
use hashbrown::HashMap;

type Entry = DebuggingInformationEntry<Reader>;

/// A block as described by one of its declarations.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommonBlock {
    /// Empty for blank COMMON.
    name: String,
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    offset: u64,
    /// `None` if the type has no size.
    bytes: Option<u64>,
}

impl CommonBlock {
    /// `/blk/`, as in the source.
    pub(crate) fn display_name(&self) -> String {
        format!("/{}/", self.name)
    }

    /// Name, offset and size of the variables in a block of `bytes`. A variable of unknown size extends to the next.
    pub(crate) fn members_within(&self, bytes: u64) -> Vec<(String, u64, u64)> {
        let ends = self.members.iter().skip(1).map(|next| next.offset).chain([bytes]);
        let members = self.members.iter().zip(ends).filter(|(member, _)| member.offset < bytes);
        let sized = members.map(|(member, next)| {
            let limit = bytes - member.offset;
            (member.name.clone(), member.offset, member.bytes.unwrap_or(next.saturating_sub(member.offset)).min(limit))
        });
        sized.collect()
    }
}

/// All COMMON blocks by address. Each program unit declares a block again, possibly with other names; the declaration with the most
/// variables is used.
pub(crate) fn read(dwarf: &Dwarf<Reader>) -> HashMap<u64, CommonBlock> {
    let mut blocks: HashMap<u64, CommonBlock> = HashMap::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let reader = UnitReader { dwarf, unit: &unit };
        for (address, block) in reader.blocks().unwrap_or_default() {
            let known = blocks.entry(address).or_default();
            if block.members.len() > known.members.len() {
                *known = block;
            }
        }
    }
    blocks
}

struct UnitReader<'a> {
    dwarf: &'a Dwarf<Reader>,
    unit: &'a Unit<Reader>,
}

/// The longest chain of references from type to type: in damaged files, types may refer to each other in circles.
const DEEPEST_TYPE: usize = 16;

impl UnitReader<'_> {
    fn blocks(&self) -> gimli::Result<Vec<(u64, CommonBlock)>> {
        let mut blocks = Vec::new();
        let mut entries = self.unit.entries();
        let is_fortran = match entries.next_dfs()?.and_then(|root| root.attr_value(gimli::DW_AT_language)) {
            Some(AttributeValue::Language(language)) => is_fortran(language),
            _ => false,
        };
        while is_fortran && let Some(entry) = entries.next_dfs()? {
            if entry.tag() == gimli::DW_TAG_common_block {
                blocks.extend(self.block(entry.offset())?);
            }
        }
        Ok(blocks)
    }

    fn block(&self, offset: UnitOffset) -> gimli::Result<Option<(u64, CommonBlock)>> {
        let mut tree = self.unit.entries_tree(Some(offset))?;
        let root = tree.root()?;
        let name = self.name(root.entry()).filter(|name| name != "__BLNK__").unwrap_or_default();
        let own_address = self.address(root.entry());
        let mut variables = self.variables(root)?;
        variables.sort_by_key(|(address, ..)| *address);
        let Some(start) = own_address.or(variables.first().map(|(address, ..)| *address)) else { return Ok(None) };
        let members = variables.into_iter().filter_map(|(address, name, bytes)| {
            let offset = address.checked_sub(start)?;
            Some(Member { name, offset, bytes })
        });
        Ok(Some((start, CommonBlock { name, members: members.collect() })))
    }

    fn variables(&self, block: EntriesTreeNode<'_, '_, Reader>) -> gimli::Result<Vec<(u64, String, Option<u64>)>> {
        let mut variables = Vec::new();
        let mut children = block.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            if let (gimli::DW_TAG_variable, Some(address), Some(name)) = (entry.tag(), self.address(entry), self.name(entry)) {
                variables.push((address, name, self.type_bytes(entry, DEEPEST_TYPE)));
            }
        }
        Ok(variables)
    }

    fn name(&self, entry: &Entry) -> Option<String> {
        let name = self.dwarf.attr_string(self.unit, entry.attr_value(gimli::DW_AT_name)?).ok()?;
        Some(name.to_string_lossy().ok()?.into_owned())
    }

    fn address(&self, entry: &Entry) -> Option<u64> {
        fixed_address(self.dwarf, self.unit, entry)
    }

    /// The size of an entry's type.
    fn type_bytes(&self, entry: &Entry, depth: usize) -> Option<u64> {
        let AttributeValue::UnitRef(offset) = entry.attr_value(gimli::DW_AT_type)? else { return None };
        let mut tree = self.unit.entries_tree(Some(offset)).ok()?;
        let root = tree.root().ok()?;
        let entry = root.entry();
        if let Some(bytes) = entry.attr(gimli::DW_AT_byte_size).and_then(gimli::Attribute::udata_value) {
            return Some(bytes);
        }
        let depth = depth.checked_sub(1)?;
        let element = self.type_bytes(entry, depth)?;
        if entry.tag() != gimli::DW_TAG_array_type {
            return Some(element); // a typedef or qualifier
        }
        let mut bytes = element;
        let mut dimensions = root.children();
        while let Some(dimension) = dimensions.next().ok()? {
            if dimension.entry().tag() == gimli::DW_TAG_subrange_type {
                bytes = bytes.checked_mul(extent(dimension.entry())?)?;
            }
        }
        Some(bytes)
    }
}

/// The number of elements of one dimension. Fortran's default lower bound is 1.
fn extent(dimension: &Entry) -> Option<u64> {
    let number = |name| dimension.attr(name).and_then(gimli::Attribute::sdata_value);
    if let Some(count) = number(gimli::DW_AT_count) {
        return u64::try_from(count).ok();
    }
    let lower = number(gimli::DW_AT_lower_bound).unwrap_or(1);
    let upper = number(gimli::DW_AT_upper_bound)?;
    u64::try_from(upper.checked_sub(lower)?.checked_add(1)?).ok()
}
