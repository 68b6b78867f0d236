//! Functions that a call stack does not show because they ended with a jump: `a = 0` at the end of a Fortran subroutine becomes `jmp memset`, and
//! memset returns to the caller of the subroutine.
//!
//! Compilers describe calls (DWARF 5, section 3.4): the entry of a call site has the address that the call returns to and the function that it
//! calls; that of a jump is marked as a tail call. If the code that runs above a frame is not in the function that the frame's call site calls, that
//! function jumped there. If it is not certain from where (it has several such jumps), its first line stands for it.
//!
//! The function may have been called by a library to which the call site passed its address: an OpenMP region that ends with memset, called by
//! `GOMP_parallel(region, ...)`. The values of a call's parameters are described as well.

use crate::dwarf::Reader;
use crate::functions::FunctionTable;
use gimli::{AttributeValue, DebuggingInformationEntry, EntriesTreeNode, Operation, Reader as _, UnitOffset, UnitRef};

/// Functions that touch memory and that programs jump to.
pub(crate) const JUMPED_TO: &[&str] = &["memset", "memcpy", "memmove"];

/// Parameters of a call that are looked at: a pass over the entries of a compilation unit each.
const MOST_PASSED: usize = 8;

type Entry = DebuggingInformationEntry<Reader>;

/// The function at a call site.
enum Callee {
    /// Its code is described in the same unit.
    Here(UnitOffset),
    /// It is declared in the unit only.
    Named(String),
}

/// How the function that jumped was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Calls {
    /// By the call site.
    Directly,
    /// By a library that the call site calls with the function's address.
    ThroughLibrary,
}

/// An address in the function that the call which returns to `return_address` calls: that of its jump to `inner`, a function of another module. `unit_at` finds the
/// unit of an address. If `inner` is empty, it is one of [`JUMPED_TO`]. `None` if there is no such call, or the function does not jump.
pub(crate) fn jump<'a>(
    unit_at: impl Fn(u64) -> Option<UnitRef<'a, Reader>>,
    functions: &FunctionTable,
    return_address: u64,
    calls: Calls,
    inner: &str,
) -> Option<u64> {
    let unit = unit_at(return_address.checked_sub(1)?)?;
    if calls == Calls::ThroughLibrary {
        let jump_from = |address: u64| {
            let unit = unit_at(address)?;
            jump_of(&unit, function_at(&unit, address).ok()??, inner).ok()?
        };
        return passed(&unit, return_address).ok()?.into_iter().take(MOST_PASSED).find_map(jump_from);
    }
    match callee(&unit, return_address).ok()?? {
        Callee::Here(function) => jump_of(&unit, function, inner).ok()?,
        Callee::Named(name) => {
            let address = functions.address_of(&name)?;
            let unit = unit_at(address)?;
            jump_of(&unit, function_at(&unit, address).ok()??, inner).ok()?
        }
    }
}

/// The function that is called at a call site.
fn callee(unit: &UnitRef<'_, Reader>, return_address: u64) -> gimli::Result<Option<Callee>> {
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if entry.tag() == gimli::DW_TAG_call_site && !is_tail_call(entry) && returns_to(unit, entry) == Some(return_address) {
            let Some(AttributeValue::UnitRef(origin)) = entry.attr_value(gimli::DW_AT_call_origin) else { return Ok(None) };
            let function = unit.entry(origin)?;
            if function.attr_value(gimli::DW_AT_low_pc).is_some() {
                return Ok(Some(Callee::Here(origin)));
            }
            return Ok(name(unit, &function).map(Callee::Named));
        }
    }
    Ok(None)
}

/// The addresses that are passed to the function that is called at a call site.
fn passed(unit: &UnitRef<'_, Reader>, return_address: u64) -> gimli::Result<Vec<u64>> {
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if entry.tag() != gimli::DW_TAG_call_site || returns_to(unit, entry) != Some(return_address) {
            continue;
        }
        let mut tree = unit.entries_tree(Some(entry.offset()))?;
        let mut parameters = tree.root()?.children();
        let mut addresses = Vec::new();
        while let Some(parameter) = parameters.next()? {
            if let Some(AttributeValue::Exprloc(value)) = parameter.entry().attr_value(gimli::DW_AT_call_value) {
                match value.operations(unit.encoding()).next() {
                    Ok(Some(Operation::Address { address })) => addresses.push(address),
                    Ok(Some(Operation::AddressIndex { index })) => addresses.push(unit.address(index)?),
                    _ => {}
                }
            }
        }
        return Ok(addresses);
    }
    Ok(Vec::new())
}

/// The function that begins at an address.
fn function_at(unit: &UnitRef<'_, Reader>, address: u64) -> gimli::Result<Option<UnitOffset>> {
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if entry.tag() == gimli::DW_TAG_subprogram && first_address(unit, entry) == Some(address) {
            return Ok(Some(entry.offset()));
        }
    }
    Ok(None)
}

/// The address of the jump of a function to `inner`, or that of the function if it has several; `None` if it has none.
fn jump_of(unit: &UnitRef<'_, Reader>, function: UnitOffset, inner: &str) -> gimli::Result<Option<u64>> {
    let mut tree = unit.entries_tree(Some(function))?;
    let root = tree.root()?;
    let start = first_address(unit, root.entry());
    let mut jumps = Vec::new();
    collect_jumps(unit, root, &mut jumps)?;
    let goes_there = |target: &str| if inner.is_empty() { JUMPED_TO.contains(&target) } else { inner.contains(target) };
    let is_there = |(_, target): &&(u64, Option<String>)| target.as_deref().is_some_and(goes_there);
    let named: Vec<u64> = jumps.iter().filter(is_there).map(|(address, _)| *address).collect();
    Ok(match (named.as_slice(), jumps.as_slice()) {
        ([one], _) | ([], [(one, None)]) => Some(*one),
        ([], _) => None,
        _ => start,
    })
}

/// The jumps to other functions, and where they go.
fn collect_jumps(
    unit: &UnitRef<'_, Reader>,
    node: EntriesTreeNode<'_, '_, Reader>,
    jumps: &mut Vec<(u64, Option<String>)>,
) -> gimli::Result<()> {
    let entry = node.entry();
    if entry.tag() == gimli::DW_TAG_call_site && is_tail_call(entry) {
        let target = match entry.attr_value(gimli::DW_AT_call_origin) {
            Some(AttributeValue::UnitRef(origin)) => unit.entry(origin).ok().and_then(|function| name(unit, &function)),
            _ => None,
        };
        let at =
            address(unit, entry.attr_value(gimli::DW_AT_call_pc)).or_else(|| returns_to(unit, entry).map(|next| next.saturating_sub(1)));
        jumps.extend(at.map(|at| (at, target)));
    }
    let mut children = node.children();
    while let Some(child) = children.next()? {
        collect_jumps(unit, child, jumps)?;
    }
    Ok(())
}

fn is_tail_call(entry: &Entry) -> bool {
    matches!(entry.attr_value(gimli::DW_AT_call_tail_call), Some(AttributeValue::Flag(true)))
}

fn returns_to(unit: &UnitRef<'_, Reader>, entry: &Entry) -> Option<u64> {
    address(unit, entry.attr_value(gimli::DW_AT_call_return_pc))
}

fn first_address(unit: &UnitRef<'_, Reader>, entry: &Entry) -> Option<u64> {
    address(unit, entry.attr_value(gimli::DW_AT_low_pc))
}

fn address(unit: &UnitRef<'_, Reader>, value: Option<AttributeValue<Reader>>) -> Option<u64> {
    unit.attr_address(value?).ok()?
}

/// The name of a function as in the symbol table.
fn name(unit: &UnitRef<'_, Reader>, entry: &Entry) -> Option<String> {
    let value = entry.attr_value(gimli::DW_AT_linkage_name).or_else(|| entry.attr_value(gimli::DW_AT_name))?;
    Some(unit.attr_string(value).ok()?.to_string_lossy().ok()?.into_owned())
}
