//! The fix by a call of libfirsttouch (docs/library.md): the memory's parts are given to the nodes of their threads directly after the allocation,
//! whichever thread writes them then. The call changes no values, so it needs no proof about the program's own code.

use super::super::{Case, Context};
use super::edit::insert;
use super::{pretouch, team};
use crate::code::regions::File;
use crate::code::tokens::Kind;
use crate::names::{Language, in_code};
use crate::{EditAction, FixEdit, PartitionKind};
use firsttouch_model::finding::FindingKind;

const HEADER: &str = "#include <firsttouch.h>";
/// Names for the partition: the first one that the file does not use.
const VARIABLES: &[&str] = &["by_thread", "ft_by_thread", "parts_by_thread"];

/// The changes that place the object; empty if the source does not show where it begins and how large it is, or where another placement is better.
pub(super) fn placed(context: &Context<'_>, kind: FindingKind, case: &Case<'_>) -> Vec<FixEdit> {
    let partition = case.subject.partition.kind;
    let how = match kind {
        FindingKind::SerialFirstTouch | FindingKind::MismatchedPartition | FindingKind::IoFirstTouch if partition == PartitionKind::Block => {
            How::Blocked
        }
        FindingKind::NoStablePartition => How::Interleaved,
        _ => return Vec::new(),
    };
    // Several objects of one line have parts that lie in different objects.
    if case.view.total_bytes >= case.view.bytes.saturating_mul(2) || case.group.pool.is_some() || case.group.processes() > 1 {
        return Vec::new();
    }
    let place = case.view.allocated_at.as_ref();
    let Some((path, line)) = place.and_then(|place| place.file.as_deref().zip(place.line)) else { return Vec::new() };
    match Language::of(path) {
        Some(Language::C | Language::Cpp) => in_c(context, case, how, path, line).unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[derive(Clone, Copy)]
enum How {
    Blocked,
    Interleaved,
}

fn in_c(context: &Context<'_>, case: &Case<'_>, how: How, path: &str, line: u32) -> Option<Vec<FixEdit>> {
    let file = File::read(context.places.sources, path)?;
    let new = pretouch::new_memory(&file, line, in_code(&case.view.name))?;
    let include = first_include(&file)?;
    let variable = VARIABLES.iter().find(|name| !file.has_word(name))?;
    let threads = team::size(context, case, path, line)?;
    let threads = threads.trim().strip_prefix("num_threads(").and_then(|text| text.strip_suffix(')')).unwrap_or("0");
    let partition = match how {
        How::Blocked => format!("ft_blocked({threads})"),
        How::Interleaved => "ft_interleaved()".to_owned(),
    };
    let indent = &new.indent;
    let text = vec![
        format!("{indent}const ft_partition {variable} = {partition};"),
        format!("{indent}ft_place({}, {}, &{variable}, 0);", new.holder, new.bytes),
    ];
    Some(vec![
        insert(EditAction::InsertBefore, path, include, vec![HEADER.to_owned()]),
        insert(EditAction::InsertAfter, path, new.last_line, text),
    ])
}

/// The line of the file's first `#include`.
fn first_include(file: &File) -> Option<u32> {
    let token = file.tokens.iter().find(|token| token.kind == Kind::Directive && token.text.trim_start_matches(['#', ' ']).starts_with("include"));
    token.map(|token| token.line)
}
