//! Containers of C++ that are filled by the thread that makes them.
//!
//! The type of a container never changes: other code may depend on it. A vector's memory is reserved first, and the pages of the part that has no
//! elements yet are written in parallel; then the program's own statement makes the elements there.

use super::super::{Case, Context};
use super::edit::insert;
use super::pretouch::{Fresh, factor, pure_text, split, touching_loop};
use super::team;
use crate::code::expression::{NUMBERS, text_of};
use crate::code::regions::File;
use crate::code::syntax::after_angles;
use crate::code::tokens::{Kind, Token, after_bracket};
use crate::names::in_code;
use crate::{EditAction, FixEdit};
use std::ops::Range;

const INDICES: &[&str] = &["i", "k", "at", "index", "element"];

/// Where a statement is, and what surrounds it.
struct Place<'f> {
    file: &'f File,
    statement: Range<usize>,
    indent: String,
    team: String,
    first: u32,
    last: u32,
}

impl<'f> Place<'f> {
    /// The statement with this token, if it stands alone on its lines, outside of OpenMP's regions.
    fn of(context: &Context<'_>, case: &Case<'_>, file: &'f File, at: usize) -> Option<Self> {
        let statement = file.statement(at)?;
        let indent = file.indent_before(statement.start)?.to_owned();
        let is_plain = file.directives_around(at)?.is_empty() && !file.is_conditional(&statement) && file.ends_line(statement.end - 1);
        let (first, last) = (file.tokens.get(statement.start)?.line, file.tokens.get(statement.end - 1)?.line);
        let team = team::size(context, case, &file.path, first).filter(|_| is_plain)?;
        Some(Self { file, statement, indent, team, first, last })
    }

    fn replace(&self, text: Vec<String>) -> Vec<FixEdit> {
        vec![FixEdit { file: self.file.path.clone(), action: EditAction::Replace, line: self.first, last_line: self.last, text }]
    }
}

/// The change for a std::vector; `None` if its source does not show how it gets its size.
pub(super) fn vector(context: &Context<'_>, case: &Case<'_>) -> Option<Vec<FixEdit>> {
    let place = case.view.allocated_at.as_ref()?;
    let (path, line) = (place.file.as_deref()?, place.line?);
    if case.group.processes() > 1 || case.group.pool.is_some() {
        return None;
    }
    let file = File::read(context.places.sources, path)?;
    let name = in_code(&case.view.name);
    let types = file.declared_types(name.rsplit('.').next()?);
    let is_vector = |kind: &String| {
        let element = kind.split_once("vector<").map(|(_, rest)| rest.trim_end_matches('&').trim_end_matches('>'));
        element.is_some_and(is_number)
    };
    let several = case.view.total_bytes >= case.view.bytes.saturating_mul(2);
    let on = file.on_line(line);
    if let Some(at) = on.clone().find(|at| is_call_of(&file, *at, name)) {
        if several || types.is_empty() || !types.iter().all(is_vector) {
            return None;
        }
        return sized(&Place::of(context, case, &file, at)?, at, name);
    }
    let at = on.into_iter().find(|at| file.tokens.get(*at).is_some_and(|t| t.kind == Kind::Word && t.text == "vector"))?;
    declared(&Place::of(context, case, &file, at)?, at, several)
}

/// The memory of a std::vector, after the statement that gives it its size.
pub(super) fn sized_memory(context: &Context<'_>, case: &Case<'_>, file: &File, line: u32) -> Option<Fresh> {
    let name = in_code(&case.view.name);
    let on = file.on_line(line);
    let at_call = on.clone().find(|at| is_call_of(file, *at, name));
    let place = match at_call {
        Some(at) => {
            let types = file.declared_types(name.rsplit('.').next()?);
            let place = Place::of(context, case, file, at)?;
            let head = text_of(file.tokens.get(place.statement.start..at)?);
            let is_vector = |kind: &String| kind.contains("vector<") && !kind.contains("bool");
            let is_it = head.strip_suffix('.') == Some(name) && !types.is_empty() && types.iter().all(is_vector);
            is_it.then_some(place)?
        }
        None => {
            let at = on.into_iter().find(|at| file.tokens.get(*at).is_some_and(|t| t.kind == Kind::Word && t.text == "vector"))?;
            let place = Place::of(context, case, file, at)?;
            let close = after_angles(&file.tokens, at + 1)?;
            let element = text_of(file.tokens.get(at + 2..close - 1)?);
            let is_named = file.tokens.get(close).is_some_and(|t| t.is(name)) && file.tokens.get(close + 1).is_some_and(|t| t.is("("));
            let after = after_bracket(&file.tokens, close + 1)?;
            let is_first = text_of(file.tokens.get(place.statement.start..at)?);
            let is_one = is_named && after + 1 == place.statement.end && (is_first == "std::" || is_first.is_empty());
            (is_one && element != "bool" && !element.contains("vector")).then_some(place)?
        }
    };
    let bytes = format!("{name}.capacity() * sizeof({name}[0])");
    Some(Fresh { holder: format!("{name}.data()"), bytes, indent: place.indent, last_line: place.last })
}

/// `name.resize(`, `name.assign(` or `name.reserve(`: the position of the called member.
fn is_call_of(file: &File, at: usize, name: &str) -> bool {
    let tokens = &file.tokens;
    let is_member = tokens.get(at).is_some_and(|t| ["resize", "assign", "reserve"].iter().any(|call| t.is(call)));
    let path: Vec<&Token> =
        tokens.get(..at).unwrap_or_default().iter().rev().take_while(|t| t.kind == Kind::Word || t.is(".") || t.is("->")).collect();
    let text: String = path.iter().rev().map(|t| t.text.as_str()).collect();
    is_member && text.strip_suffix('.').or_else(|| text.strip_suffix("->")) == Some(name)
}

/// The loop before `name.resize(n)` or after `name.reserve(n)`.
fn sized(place: &Place<'_>, at: usize, name: &str) -> Option<Vec<FixEdit>> {
    let (file, tokens) = (place.file, &place.file.tokens);
    let after = after_bracket(tokens, at + 1).filter(|after| after + 1 == place.statement.end)?;
    let arguments = split(tokens.get(at + 2..after - 1)?);
    let count = pure_text(file, arguments.first()?)?;
    // The name begins the statement.
    let head = text_of(tokens.get(place.statement.start..at)?);
    let holder = head.strip_suffix('.')?;
    if holder != name || count.contains("begin()") {
        return None;
    }
    let size = format!("sizeof({name}[0])");
    let range = (format!("{name}.size() * {size}"), format!("{name}.capacity() * {size}"));
    let data = format!("{name}.data()");
    let text = touching_loop(file, &data, (&range.0, &range.1), None, &place.team, &place.indent)?;
    if tokens.get(at)?.is("reserve") {
        return Some(vec![insert(EditAction::InsertAfter, &file.path, place.last, text)]);
    }
    let reserve = format!("{}{name}.reserve({count});", place.indent);
    let text = std::iter::once(reserve).chain(text).collect();
    Some(vec![insert(EditAction::InsertBefore, &file.path, place.first, text)])
}

/// `std::vector<double> name(n, value);`
fn declared(place: &Place<'_>, at: usize, several: bool) -> Option<Vec<FixEdit>> {
    let (file, tokens, indent) = (place.file, &place.file.tokens, &place.indent);
    let angle = at + 1;
    let close = after_angles(tokens, angle)?;
    let element = tokens.get(angle + 1..close - 1)?;
    let is_first = text_of(tokens.get(place.statement.start..at)?);
    let name = tokens.get(close).filter(|t| t.kind == Kind::Word)?.text.clone();
    let after = after_bracket(tokens, close + 1).filter(|_| tokens.get(close + 1).is_some_and(|t| t.is("(")))?;
    // One variable, neither constant nor static.
    if !(is_first == "std::" || is_first.is_empty()) || after + 1 != place.statement.end {
        return None;
    }
    let inside = tokens.get(close + 2..after - 1)?;
    let arguments = split(inside);
    let count = pure_text(file, arguments.first()?)?;
    if count.contains("begin()") || arguments.len() > 2 {
        return None;
    }
    let kind = text_of(tokens.get(place.statement.start..close)?);
    if element.first().is_some_and(|t| t.is("std")) && element.get(2).is_some_and(|t| t.is("vector")) {
        return rows(place, (&kind, &name), &count, arguments.get(1)?);
    }
    if several || !is_number(&text_of(element)) {
        return None;
    }
    let rest =
        file.line(place.first)?.get(tokens.get(close + 2)?.start..tokens.get(after - 2)?.end).filter(|_| place.first == place.last)?;
    let (data, end) = (format!("{name}.data()"), format!("{name}.capacity() * sizeof({name}[0])"));
    let mut text = vec![format!("{indent}{kind} {name};"), format!("{indent}{name}.reserve({count});")];
    text.extend(touching_loop(file, &data, ("0", &end), None, &place.team, indent)?);
    text.push(format!("{indent}{name}.resize({rest});"));
    Some(place.replace(text))
}

/// `std::vector<std::vector<double>> rows(n, std::vector<double>(m));`: the thread that will use a row makes it.
fn rows(place: &Place<'_>, (kind, name): (&str, &str), count: &str, row: &[Token]) -> Option<Vec<FixEdit>> {
    let (file, indent) = (place.file, &place.indent);
    let open = row.iter().position(|t| t.is("("))?;
    let is_vector = text_of(row.get(..open)?).starts_with("std::vector<");
    let are_pure = split(row.get(open + 1..row.len() - 1)?).iter().all(|one| pure_text(file, one).is_some());
    let index = INDICES.iter().find(|name| !file.has_word(name))?;
    let (first, last) = (row.first()?, row.last()?);
    let row = file.line(first.line)?.get(first.start..last.end).filter(|_| first.line == last.line)?;
    let text = vec![
        format!("{indent}{kind} {name}({count});"),
        format!("{indent}#pragma omp parallel for{} schedule(static)", place.team),
        format!("{indent}for (std::size_t {index} = 0; {index} < {name}.size(); {index}++)"),
        format!("{indent}    {name}[{index}] = {row};"),
    ];
    (is_vector && are_pure).then(|| place.replace(text))
}

/// `std::make_unique<double[]>(n)`: memory that nobody has written, and a parallel loop that writes the zeros.
pub(super) fn unique(context: &Context<'_>, case: &Case<'_>) -> Option<Vec<FixEdit>> {
    let place = case.view.allocated_at.as_ref()?;
    let (path, line) = (place.file.as_deref()?, place.line?);
    let file = File::read(context.places.sources, path)?;
    let tokens = &file.tokens;
    let at = file.on_line(line).find(|at| tokens.get(*at).is_some_and(|t| t.is("make_unique") || t.is("make_shared")))?;
    let place = Place::of(context, case, &file, at)?;
    let close = after_angles(tokens, at + 1)?;
    let element = text_of(tokens.get(at + 2..close - 1)?).strip_suffix("[]").map(str::to_owned)?;
    let after = after_bracket(tokens, close).filter(|after| after + 1 == place.statement.end)?;
    let count = pure_text(&file, tokens.get(close + 1..after - 1)?)?;
    let start = if tokens.get(at - 1)?.is("::") { at - 2 } else { at };
    let holder = text_of(tokens.get(place.statement.start..start)?);
    let holder = holder.strip_suffix('=')?;
    let name = in_code(&case.view.name);
    let is_it = holder.ends_with(name) && !holder.starts_with("static") && !holder.starts_with("const");
    let index = INDICES.iter().find(|name| !file.has_word(name))?;
    if !is_it || !is_number(&element) || place.first != place.last || case.view.total_bytes >= case.view.bytes.saturating_mul(2) {
        return None;
    }
    let pointer = if tokens.get(at)?.is("make_unique") { "unique_ptr" } else { "shared_ptr" };
    let before = file.line(place.first)?.get(..tokens.get(start)?.start)?;
    let indent = &place.indent;
    let size_t = if file.has_word("size_t") { "std::size_t" } else { "unsigned long" };
    let text = vec![
        format!("{before}std::{pointer}<{element}[]>(new {element}[{}]);", count),
        format!("{indent}#pragma omp parallel for{} schedule(static)", place.team),
        format!("{indent}for ({size_t} {index} = 0; {index} < {}; {index}++)", factor(&count)),
        format!("{indent}    {name}[{index}] = 0;"),
    ];
    Some(place.replace(text))
}

/// Whether elements of this type are numbers, which any bytes may be written over before they exist.
fn is_number(element: &str) -> bool {
    element != "bool" && element.split([' ', ':']).all(|word| word.is_empty() || NUMBERS.contains(&word))
}
