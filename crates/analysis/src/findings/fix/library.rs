//! The fix by a call of libfirsttouch (docs/library.md): the memory's parts are given to the nodes of their threads directly after the allocation,
//! whichever thread writes them then. The call changes no values, so it needs no proof about the program's own code.

mod rust;
mod rust_threads;

use super::super::{Case, Context};
use super::edit::insert;
use super::runtime::ThreadTeam;
use super::{containers, parallel_loop, pretouch, team};
use crate::code::fortran::Fortran;
use crate::code::regions::File;
use crate::code::tokens::Kind;
use crate::names::{Language, in_code};
use crate::{EditAction, FixEdit, PartitionKind};
use firsttouch_model::finding::FindingKind;

const HEADER: &str = "#include <firsttouch.h>";
/// Lines of a Python file in which its imports begin.
const MOST_HEAD: u32 = 200;
/// Names for the partition: the first one that the file does not use.
const VARIABLES: &[&str] = &["by_thread", "ft_by_thread", "parts_by_thread"];

/// The changes that place the object; empty if the source does not show where it begins and how large it is, or where another placement is better.
pub(super) fn placed(context: &Context<'_>, kind: FindingKind, case: &Case<'_>) -> Vec<FixEdit> {
    let partition = case.subject.partition.kind;
    let how = match kind {
        FindingKind::SerialFirstTouch | FindingKind::MismatchedPartition | FindingKind::IoFirstTouch
            if partition == PartitionKind::Block && !parallel_loop::is_used_backwards(case) =>
        {
            How::Blocked
        }
        FindingKind::NoStablePartition if !case.subject.is_spread => How::Interleaved,
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
        Some(Language::Fortran) => in_fortran(context, case, how, path, line).unwrap_or_default(),
        Some(Language::Python) => in_python(context, case, how, path, line).unwrap_or_default(),
        Some(Language::Rust) => rust::in_rust(context, case, how, path, line).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// After an `allocate` that stands alone on its line.
fn in_fortran(context: &Context<'_>, case: &Case<'_>, how: How, path: &str, line: u32) -> Option<Vec<FixEdit>> {
    let file = Fortran::read(context.places.sources, path)?;
    let name = in_code(&case.view.name).to_ascii_lowercase();
    let code = file.code(line);
    let is_statement = code.starts_with("allocate") && code.ends_with(')') && !code.contains(';');
    // The module has the kinds real32, real64 and int32.
    if !is_statement || !file.is_array(&name) || !file.is_number(&name) || file.uses_module("firsttouch") {
        return None;
    }
    let unit = file.unit(line).filter(|unit| !file.code(*unit.start()).ends_with('&'))?;
    let indent = |line: u32| file.text(line).map(|text| text.get(..text.len() - text.trim_start().len()).unwrap_or_default().to_owned());
    let (partition, function) = match how {
        How::Blocked => {
            let threads = context.users(case).parts(context, case, path, line)?;
            (format!("ft_blocked({})", if threads == ALL { "" } else { &threads }), "ft_blocked")
        }
        How::Interleaved => ("ft_interleaved()".to_owned(), "ft_interleaved"),
    };
    let module = vec![format!("{}    use firsttouch, only: ft_place, {function}", indent(*unit.start())?)];
    let call = vec![format!("{}call ft_place({name}, {partition})", indent(line)?)];
    Some(vec![insert(EditAction::InsertAfter, path, *unit.start(), module), insert(EditAction::InsertAfter, path, line, call)])
}

/// After a statement of one line that assigns the array. Its pages are there then, and move.
fn in_python(context: &Context<'_>, case: &Case<'_>, how: How, path: &str, line: u32) -> Option<Vec<FixEdit>> {
    let sources = context.places.sources;
    let text = sources.line(path, line)?;
    let name = in_code(&case.view.name);
    let (target, value) = text.trim().split_once('=')?;
    let is_plain = !value.contains([';', '\\', '\'', '"']);
    // A comment, which is one because there are no strings.
    let value = value.split('#').next().unwrap_or_default();
    let is_alone = target.trim() == name && !value.starts_with('=') && is_plain;
    let closes = |open: char, close: char| value.matches(open).count() == value.matches(close).count();
    if !is_alone || !closes('(', ')') || !closes('[', ']') || !closes('{', '}') {
        return None;
    }
    let import = (1..=MOST_HEAD).find(|line| sources.line(path, *line).is_some_and(|text| text.starts_with("import ")))?;
    let indent = text.get(..text.len() - text.trim_start().len())?;
    let partition = match (how, context.users(case)) {
        (How::Blocked, Users::Own { threads, .. }) => format!("firsttouch.blocked({threads})"),
        (How::Blocked, Users::OpenMp(_)) => "\"blocked\"".to_owned(),
        (How::Interleaved, _) => "\"interleaved\"".to_owned(),
    };
    Some(vec![
        insert(EditAction::InsertBefore, path, import, vec!["import firsttouch".to_owned()]),
        insert(EditAction::InsertAfter, path, line, vec![format!("{indent}firsttouch.place({name}, {partition})")]),
    ])
}

/// As many parts as the team that has joined has threads.
const ALL: &str = "0";

/// The threads that use an object, which have to join a team before its parts can be theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// A team of OpenMP: of default size, or with this text in the clause `num_threads`.
    OpenMp(Option<String>),
    /// Threads that the program made itself. `start_later`: all of them but the one that allocates start after the allocation.
    Own { threads: usize, start_later: bool },
}

impl Users {
    /// The number of parts as it can be written at a line. Threads that have not joined, and a team of another size, are divided otherwise, so it is
    /// said where it is known. `None` if the source says it in a way that is not understood.
    fn parts(&self, context: &Context<'_>, case: &Case<'_>, path: &str, line: u32) -> Option<String> {
        match self {
            Self::Own { threads, .. } => Some(threads.to_string()),
            Self::OpenMp(None) => Some(ALL.to_owned()),
            Self::OpenMp(Some(_)) => {
                let clause = team::size(context, case, path, line)?;
                let said = clause.trim().strip_prefix("num_threads(").and_then(|text| text.strip_suffix(')')).map(str::to_owned);
                // What the source says may have no value there: then as many as the run had.
                Some(said.unwrap_or_else(|| owners(context, case).to_string()))
            }
        }
    }
}

/// The number of threads that own a part of an object, or use it if nobody owns one.
fn owners(context: &Context<'_>, case: &Case<'_>) -> usize {
    case.subject.partition.block_owners().unwrap_or_else(|| case.subject.users(context.threads).len())
}

impl Context<'_> {
    pub(crate) fn users(&self, case: &Case<'_>) -> Users {
        if self.team(Some(case)) == ThreadTeam::Own {
            return Users::Own { threads: owners(self, case), start_later: self.start_later(case) };
        }
        let directives = team::directives_at_use(self, case);
        let clause = directives.iter().rev().filter(|one| one.has("parallel")).find_map(|one| one.clause("num_threads"));
        Users::OpenMp(clause.map(|text| text.trim().to_owned()))
    }

    /// Whether the threads that use an object, but for the one that allocates it, start later: none of them can have joined a team where it is allocated.
    fn start_later(&self, case: &Case<'_>) -> bool {
        let first = self.threads.list.iter().find(|thread| thread.process == case.object.process).map(|thread| thread.id);
        let users = case.subject.used_by.counting(|share| share.is_some_and(|share| share.value > 0.0));
        let mut others = users
            .filter_map(|(thread, _)| self.profile.threads.get(thread))
            .filter(|thread| case.object.thread.or(first) != Some(thread.id))
            .peekable();
        others.peek().is_some() && others.all(|thread| thread.born_ns > case.object.born_ns)
    }
}

#[derive(Clone, Copy)]
enum How {
    Blocked,
    Interleaved,
}

fn in_c(context: &Context<'_>, case: &Case<'_>, how: How, path: &str, line: u32) -> Option<Vec<FixEdit>> {
    let file = File::read(context.places.sources, path)?;
    let new = pretouch::new_memory(&file, line, in_code(&case.view.name))
        .or_else(|| pretouch::is_cpp(path).then(|| containers::sized_memory(context, case, &file, line)).flatten())?;
    let include = first_include(&file)?;
    let variable = VARIABLES.iter().find(|name| !file.has_word(name))?;
    let threads = context.users(case).parts(context, case, path, line)?;
    let partition = match how {
        How::Blocked => format!("ft_blocked({threads})"),
        How::Interleaved => "ft_interleaved()".to_owned(),
    };
    let indent = &new.indent;
    // Brackets: another object of the function may have the same.
    let text = vec![
        format!("{indent}{{"),
        format!("{indent}    const ft_partition {variable} = {partition};"),
        format!("{indent}    ft_place({}, {}, &{variable}, 0);", new.holder, new.bytes),
        format!("{indent}}}"),
    ];
    Some(vec![
        insert(EditAction::InsertBefore, path, include, vec![HEADER.to_owned()]),
        insert(EditAction::InsertAfter, path, new.last_line, text),
    ])
}

/// The line of the file's first `#include`.
fn first_include(file: &File) -> Option<u32> {
    let token =
        file.tokens.iter().find(|token| token.kind == Kind::Directive && token.text.trim_start_matches(['#', ' ']).starts_with("include"));
    token.map(|token| token.line)
}
