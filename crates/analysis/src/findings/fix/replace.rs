//! Calls that fill or copy memory in one thread, replaced by a parallel loop that does the same.

use super::super::{Case, Context};
use super::pretouch::{is_cpp, pure_text, split};
use super::team;
use crate::code::expression::{Expression, whole};
use crate::code::regions::File;
use crate::code::tokens::{Kind, after_bracket};
use crate::{EditAction, FixEdit};
use firsttouch_model::TouchCause;

const VARIABLES: &[&str] = &["page", "at_byte", "page_start", "first_byte"];
const INDICES: &[&str] = &["i", "k", "at", "index", "element"];

/// The loop in place of the call on the line that first touches the object.
pub(super) fn replaced(context: &Context<'_>, case: &Case<'_>, cause: TouchCause) -> Option<Vec<FixEdit>> {
    let place = case.view.first_touch.at.first()?;
    let (path, line) = (place.file.as_deref()?, place.line?);
    let file = File::read(context.places.sources, path)?;
    let names: &[&str] = match cause {
        TouchCause::Memset => &["memset"],
        TouchCause::Memcpy => &["memcpy"],
        TouchCause::StdFill => &["fill", "fill_n"],
        _ => return None,
    };
    let at =
        file.on_line(line).find(|at| file.tokens.get(*at).is_some_and(|t| t.kind == Kind::Word && names.contains(&t.text.as_str())))?;
    let statement = file.statement(at)?;
    // The statement is this call, and stands alone on its lines.
    let head = file.tokens.get(statement.start..at)?;
    let is_call = head.is_empty() || matches!(head, [std, colons] if std.is("std") && colons.is("::"));
    let after = after_bracket(&file.tokens, at + 1)?;
    let is_alone = is_call && after + 1 == statement.end && file.ends_line(statement.end - 1);
    let indent = file.indent_before(statement.start).filter(|_| is_alone)?.to_owned();
    if !file.directives_around(at)?.is_empty() || file.is_conditional(&statement) {
        return None;
    }
    let (first, last) = (file.tokens.get(statement.start)?.line, file.tokens.get(statement.end - 1)?.line);
    let arguments = split(file.tokens.get(at + 2..after - 1)?);
    let texts: Vec<String> = arguments.iter().map(|one| pure_text(&file, one)).collect::<Option<_>>()?;
    let team = team::size(context, case, path, first)?;
    let [one, two, three] = texts.as_slice() else { return None };
    let std = if head.is_empty() { "" } else { "std::" };
    let (head, body) = match cause {
        // The loop's value is that of the call.
        TouchCause::StdFill => fill(&file, at, [one, two, three])?,
        _ => bytes(&file, cause, std, [one, two, three])?,
    };
    let text =
        vec![format!("{indent}#pragma omp parallel for{team} schedule(static)"), format!("{indent}{head}"), format!("{indent}    {body}")];
    Some(vec![FixEdit { file: path.to_owned(), action: EditAction::Replace, line: first, last_line: last, text }])
}

/// memset or memcpy by pages.
fn bytes(file: &File, cause: TouchCause, std: &str, [to, what, size]: [&str; 3]) -> Option<(String, String)> {
    let page = VARIABLES.iter().find(|name| !file.has_word(name))?;
    let size_t = if std.is_empty() { "size_t" } else { "std::size_t" };
    let is_plain = size.chars().all(|c| c.is_alphanumeric() || "_.*[]() ".contains(c));
    let size = if is_plain { size.to_owned() } else { format!("({size})") };
    let at = |pointer: &str, kind: &str| {
        let is_path = pointer.chars().all(|c| c.is_alphanumeric() || "_.->[]".contains(c)) && !pointer.contains(" ");
        if is_path { format!("({kind} *){pointer} + {page}") } else { format!("({kind} *)({pointer}) + {page}") }
    };
    let rest = format!("{size} - {page} < 4096 ? {size} - {page} : 4096");
    let head = format!("for ({size_t} {page} = 0; {page} < {size}; {page} += 4096)");
    let body = match cause {
        TouchCause::Memset => format!("{std}memset({}, {what}, {rest});", at(to, "char")),
        _ => format!("{std}memcpy({}, {}, {rest});", at(to, "char"), at(what, "const char")),
    };
    Some((head, body))
}

/// std::fill of a vector or of elements from a pointer.
fn fill(file: &File, at: usize, [first, end, value]: [&str; 3]) -> Option<(String, String)> {
    if !is_cpp(&file.path) {
        return None;
    }
    let index = INDICES.iter().find(|name| !file.has_word(name))?;
    let is_number = is_scalar(value)?;
    let is_path = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.') && !text.is_empty();
    let elements = |name: &str| {
        let types = file.declared_types(name.rsplit('.').next().unwrap_or(name));
        !types.is_empty()
            && types.iter().all(|kind| kind.contains("vector<") && !kind.contains("<bool>") || kind.ends_with('*') || kind.ends_with("[]"))
    };
    let (array, count) = if let Some(vector) = first.strip_suffix(".begin()") {
        (vector, (end.strip_suffix(".end()") == Some(vector)).then(|| format!("{vector}.size()"))?)
    } else if file.tokens.get(at)?.is("fill_n") {
        (first, end.to_owned())
    } else {
        (first, end.strip_prefix(first)?.trim_start().strip_prefix('+')?.trim().to_owned())
    };
    let size_t = if file.has_word("size_t") { "std::size_t" } else { "unsigned long" };
    (is_number && is_path(array) && elements(array) && whole(&crate::code::tokens::of_text(&count)?).is_some())
        .then(|| (format!("for ({size_t} {index} = 0; {index} < {count}; {index}++)"), format!("{array}[{index}] = {value};")))
}

/// Whether a value reads no elements.
fn is_scalar(text: &str) -> Option<bool> {
    let mut is_scalar = true;
    whole(&crate::code::tokens::of_text(text)?)?.visit(&mut |part| {
        is_scalar &= !matches!(part, Expression::Index(..) | Expression::Call(..)) && !matches!(part, Expression::Unary(o, _) if o == "*");
    });
    Some(is_scalar)
}
