//! Containers of C++ that are filled by the thread that makes them.
//!
//! The type of a container never changes: other code may depend on it. A vector's memory is reserved first, and the pages of the part that has no
//! elements yet are written in parallel; then the program's own statement makes the elements there.

use super::super::{Case, Context};
use super::edit::insert;
use super::pretouch::{Fresh, factor, pure_text, split, touching_loop};
use super::team::Team;
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
    team: Team,
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
        let team = Team::of(context, case, &file.path, first).filter(|_| is_plain)?;
        Some(Self { file, statement, indent, team, first, last })
    }

    fn replace(&self, text: Vec<String>) -> Vec<FixEdit> {
        vec![FixEdit { file: self.file.path.clone(), action: EditAction::Replace, line: self.first, last_line: self.last, text }]
    }
}

/// How a statement gives a std::vector its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// `name.reserve(n)`: no elements are made.
    Reserved,
    /// `name.resize(n, value)`, `name.assign(n, value)`
    Called,
    /// `std::vector<double> name(n, value)`
    Declared,
}

/// A statement that gives a std::vector its memory, and does nothing else.
struct Maker<'f> {
    place: Place<'f>,
    how: How,
    name: String,
    /// The types of its elements: of a call, by all declarations of the name in the file.
    elements: Vec<String>,
    /// The tokens in the brackets.
    inside: Range<usize>,
}

impl<'f> Maker<'f> {
    /// The statement on a line that makes the memory of this object.
    fn of(context: &Context<'_>, case: &Case<'_>, file: &'f File, line: u32) -> Option<Self> {
        let (name, tokens) = (in_code(&case.view.name), &file.tokens);
        let called = file.on_line(line).find(|at| is_call_of(file, *at, name));
        let is_type = |at: &usize| tokens.get(*at).is_some_and(|t| t.kind == Kind::Word && t.text == "vector");
        let at = called.or_else(|| file.on_line(line).find(is_type))?;
        let place = Place::of(context, case, file, at)?;
        let head = text_of(tokens.get(place.statement.start..at)?);
        let (how, name, elements, open) = if called.is_some() {
            let types = file.declared_types(name.rsplit('.').next()?);
            let elements: Vec<String> = types.iter().map(|kind| element_of(kind).map(str::to_owned)).collect::<Option<_>>()?;
            let how = if tokens.get(at)?.is("reserve") { How::Reserved } else { How::Called };
            // The name begins the statement.
            let is_it = head.strip_suffix('.') == Some(name) && !elements.is_empty();
            (how, is_it.then(|| name.to_owned())?, elements, at + 1)
        } else {
            let close = after_angles(tokens, at + 1)?;
            let name = tokens.get(close).filter(|t| t.kind == Kind::Word)?.text.clone();
            // Neither constant nor static.
            let is_plain = head == "std::" || head.is_empty();
            // `>>` ends two types.
            let inner = if tokens.get(close - 1)?.is(">>") { ">" } else { "" };
            let element = format!("{}{inner}", text_of(tokens.get(at + 2..close - 1)?));
            (How::Declared, name, is_plain.then(|| vec![element])?, close + 1)
        };
        let after =
            after_bracket(tokens, open).filter(|after| tokens.get(open).is_some_and(|t| t.is("(")) && after + 1 == place.statement.end)?;
        Some(Self { place, how, name, elements, inside: open + 1..after - 1 })
    }

    fn arguments(&self) -> Option<Vec<&'f [Token]>> {
        Some(split(self.place.file.tokens.get(self.inside.clone())?))
    }

    /// The number of elements, as code that may be written twice.
    fn count(&self) -> Option<String> {
        pure_text(self.place.file, self.arguments()?.first()?).filter(|count| !count.contains("begin()"))
    }

    /// The end of its memory in bytes.
    fn capacity(&self) -> String {
        format!("{0}.capacity() * sizeof({0}[0])", self.name)
    }

    /// The loop that places the pages of the part without elements. `from`: where that begins.
    fn touching(&self, from: &str) -> Option<Vec<String>> {
        let data = format!("{}.data()", self.name);
        touching_loop(self.place.file, &data, (from, &self.capacity()), None, &self.place.team, &self.place.indent)
    }
}

/// `double` of `std::vector<double> &`.
fn element_of(kind: &str) -> Option<&str> {
    kind.split_once("vector<")?.1.trim_end_matches(['&', ' ']).strip_suffix('>')
}

/// The change for a std::vector; `None` if its source does not show how it gets its size.
pub(super) fn vector(context: &Context<'_>, case: &Case<'_>) -> Option<Vec<FixEdit>> {
    let place = case.view.allocated_at.as_ref()?;
    let (path, line) = (place.file.as_deref()?, place.line?);
    if case.group.processes() > 1 || case.group.pool.is_some() {
        return None;
    }
    let file = File::read(context.places.sources, path)?;
    let maker = Maker::of(context, case, &file, line)?;
    let arguments = maker.arguments()?;
    let count = maker.count()?;
    if let ([element], [_, row]) = (&maker.elements[..], &arguments[..])
        && maker.how == How::Declared
        && element_of(element).is_some_and(is_number)
    {
        return rows(&maker, &count, row);
    }
    let several = case.view.total_bytes >= case.view.bytes.saturating_mul(2);
    if several || arguments.len() > 2 || !maker.elements.iter().all(|element| is_number(element)) {
        return None;
    }
    let (place, name, indent) = (&maker.place, &maker.name, &maker.place.indent);
    match maker.how {
        How::Reserved => {
            let text = maker.touching(&format!("{name}.size() * sizeof({name}[0])"))?;
            Some(vec![insert(EditAction::InsertAfter, &file.path, place.last, text)])
        }
        How::Called => {
            let reserve = format!("{indent}{name}.reserve({count});");
            let text = maker.touching(&format!("{name}.size() * sizeof({name}[0])"))?;
            let text = std::iter::once(reserve).chain(text).collect();
            Some(vec![insert(EditAction::InsertBefore, &file.path, place.first, text)])
        }
        How::Declared => {
            let (first, last) = (file.tokens.get(maker.inside.start)?, file.tokens.get(maker.inside.end - 1)?);
            let inside = file.line(place.first)?.get(first.start..last.end).filter(|_| place.first == place.last)?;
            let kind = declared_type(&maker)?;
            let mut text = vec![format!("{indent}{kind} {name};"), format!("{indent}{name}.reserve({count});")];
            text.extend(maker.touching("0")?);
            text.push(format!("{indent}{name}.resize({inside});"));
            Some(place.replace(text))
        }
    }
}

/// `std::vector<double>`, as it is written before the name.
fn declared_type(maker: &Maker<'_>) -> Option<String> {
    // The name and its bracket.
    let end = maker.inside.start.checked_sub(2)?;
    maker.place.file.tokens.get(maker.place.statement.start..end).map(text_of)
}

/// The memory of a std::vector, after the statement that gives it its size.
pub(super) fn sized_memory(context: &Context<'_>, case: &Case<'_>, file: &File, line: u32) -> Option<Fresh> {
    let maker = Maker::of(context, case, file, line)?;
    let has_one_block = maker.elements.iter().all(|element| element != "bool" && !element.contains("vector"));
    let is_it = has_one_block && maker.name == in_code(&case.view.name);
    is_it.then(|| Fresh {
        holder: format!("{}.data()", maker.name),
        bytes: maker.capacity(),
        indent: maker.place.indent.clone(),
        last_line: maker.place.last,
    })
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

/// `std::vector<std::vector<double>> rows(n, std::vector<double>(m));`: the thread that will use a row makes it.
fn rows(maker: &Maker<'_>, count: &str, row: &[Token]) -> Option<Vec<FixEdit>> {
    let (place, name) = (&maker.place, &maker.name);
    let (file, indent) = (place.file, &place.indent);
    let open = row.iter().position(|t| t.is("("))?;
    let is_vector = text_of(row.get(..open)?).starts_with("std::vector<");
    let are_pure = split(row.get(open + 1..row.len() - 1)?).iter().all(|one| pure_text(file, one).is_some());
    let index = INDICES.iter().find(|name| !file.has_word(name))?;
    let (first, last) = (row.first()?, row.last()?);
    let row = file.line(first.line)?.get(first.start..last.end).filter(|_| first.line == last.line)?;
    let at = if place.team.is_reversed { format!("{name}.size() - 1 - {index}") } else { (*index).to_owned() };
    let text = vec![
        format!("{indent}{} {name}({count});", declared_type(maker)?),
        format!("{indent}#pragma omp parallel for{} schedule(static)", place.team.clause),
        format!("{indent}for (std::size_t {index} = 0; {index} < {name}.size(); {index}++)"),
        format!("{indent}    {name}[{at}] = {row};"),
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
    let is_it = holder.ends_with(name) && !holder.starts_with("static") && !holder.starts_with("const") && !place.team.is_reversed;
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
        format!("{indent}#pragma omp parallel for{} schedule(static)", place.team.clause),
        format!("{indent}for ({size_t} {index} = 0; {index} < {}; {index}++)", factor(&count)),
        format!("{indent}    {name}[{index}] = 0;"),
    ];
    Some(place.replace(text))
}

/// Whether elements of this type are numbers, which any bytes may be written over before they exist.
fn is_number(element: &str) -> bool {
    element != "bool" && element.split([' ', ':']).all(|word| word.is_empty() || NUMBERS.contains(&word))
}
