//! The program's own initialising loop, divided among threads by a directive before it.

use super::super::{Case, Context};
use super::edit::insert;
use super::team;
use crate::code::direction::is_mirrored;
use crate::code::fortran::Fortran;
use crate::code::regions::File;
use crate::code::rounds::independent;
use crate::code::tokens::{Kind, Token};
use crate::names::Language;
use crate::partition::Order;
use crate::{CodeLocation, EditAction, FixEdit};
use std::ops::{Range, RangeInclusive};

/// The directive before the loop that first touches the object; `None` if it is unknown which loop that is, or if its source does not show that
/// its rounds are independent.
pub(super) fn divided(context: &Context<'_>, case: &Case<'_>, language: Language) -> Option<Vec<FixEdit>> {
    let place = case.view.first_touch.at.first()?;
    let (path, line) = (place.file.as_deref()?, place.line?);
    let sources = context.places.sources;
    let order = case.subject.partition.order();
    if order == Order::Mixed || !team::uses_one_loop(&team::directives_at_use(context, case)) {
        return None;
    }
    let is_backwards = order == Order::Descending;
    match language {
        Language::C | Language::Cpp => {
            let file = File::read(sources, path)?;
            let at = loop_of(&file, line, row_of(case))?;
            let lines = file.tokens.get(at.start)?.line..=file.tokens.get(at.end.checked_sub(1)?)?.line;
            if !touches_all(case, path, &lines) || context.used_otherwise(case, path, &lines).is_some() {
                return None;
            }
            if is_mirrored(&file, &at, array_of(case)) != is_backwards {
                return None;
            }
            let function = file.function(at.start)?;
            let rounds = independent(&file, &function, &at)?;
            let indent = file.indent_before(at.start)?.to_owned();
            if !file.directives_around(at.start)?.is_empty() {
                return None;
            }
            let first = file.tokens.get(at.start)?.line;
            let team = team::size(context, case, path, first)?;
            let private = if rounds.private.is_empty() { String::new() } else { format!(" private({})", rounds.private.join(", ")) };
            let text = format!("{indent}#pragma omp parallel for{team} schedule(static){private}");
            Some(vec![insert(EditAction::InsertBefore, path, first, vec![text])])
        }
        Language::Fortran => {
            let file = Fortran::read(sources, path)?;
            let loops = file.loops_on(line)?;
            let one = loops.iter().find(|one| file.is_indexed_by(one, line))?;
            let lines = one.first..=one.last;
            if !touches_all(case, path, &lines) || context.used_otherwise(case, path, &lines).is_some() {
                return None;
            }
            if file.is_mirrored(one, line) != is_backwards {
                return None;
            }
            if !file.is_independent(one) || !file.directives_around(one.first)?.is_empty() {
                return None;
            }
            let team = team::size(context, case, path, one.first)?;
            let text = file.text(one.first)?;
            let indent = text.get(..text.len() - text.trim_start().len())?;
            let line = format!("{indent}!$omp parallel do{team} schedule(static)");
            Some(vec![insert(EditAction::InsertBefore, path, one.first, vec![line])])
        }
        Language::Rust | Language::Python => None,
    }
}

/// A line with less than this part of the first touches may be left out.
const LITTLE_TOUCHED: f64 = 0.1;

/// Whether the loop on these lines makes nearly all first touches: a directive before one of two loops leaves the other's part where it is.
fn touches_all(case: &Case<'_>, path: &str, lines: &RangeInclusive<u32>) -> bool {
    let is_in = |place: &CodeLocation| place.file.as_deref() == Some(path) && place.line.is_some_and(|line| lines.contains(&line));
    case.view.first_touch.at.iter().all(|place| place.share < LITTLE_TOUCHED || is_in(place))
}

/// Whether the threads take the parts of the object in another order than that of their numbers, so that a parallel loop through it in order would
/// place parts on the nodes of other threads.
pub(super) fn is_used_backwards(case: &Case<'_>) -> bool {
    case.subject.partition.order() != Order::Ascending
}

/// The name of the array in subscripts.
fn array_of<'c>(case: &'c Case<'_>) -> &'c str {
    let name = case.view.name.split(['[', ' ']).next().unwrap_or_default();
    name.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Of an object that is one of several allocations (`u[c] = malloc(n)`), or several whose threads divide each of them, the name of the array of
/// pointers: its subscript chooses an allocation, not an element of one.
fn row_of<'c>(case: &'c Case<'_>) -> Option<&'c str> {
    let name = case.view.name.as_str();
    let (array, _) = name.split_once('[').filter(|_| name.matches('[').count() == 1)?;
    let word = array.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|word| !word.is_empty())?;
    let (rows, stride) = (case.group.rows as u64, case.group.stride);
    // Each thread may have allocations of its own.
    let owners = |row: u64| [1, 7].map(|eighth| case.subject.partition.owner(row * stride + stride / 8 * eighth));
    let is_divided = |row: &u64| matches!(owners(*row), [Some(one), Some(other)] if one != other);
    let divided = (0..rows.min(MOST_ROWS)).filter(is_divided).count() as u64;
    (rows == 1 || 2 * divided > rows.min(MOST_ROWS)).then_some(word)
}

/// Allocations that are looked at.
const MOST_ROWS: u64 = 64;

/// The outermost loop on a line whose variable chooses elements. A loop over time steps chooses none, nor does one that only chooses an allocation:
/// its variable is a subscript of `row` alone.
fn loop_of(file: &File, line: u32, row: Option<&str>) -> Option<Range<usize>> {
    file.loops_on(line).into_iter().find(|one| chooses_elements(file, one, row))
}

fn chooses_elements(file: &File, one: &Range<usize>, row: Option<&str>) -> bool {
    let Some(after) = crate::code::tokens::after_bracket(&file.tokens, one.start + 1) else { return false };
    let head = file.tokens.get(one.start + 2..after - 1).unwrap_or_default();
    let mark = head.iter().position(|t| t.is("=") || t.is(":"));
    let Some(variable) = mark.and_then(|mark| head.get(mark.checked_sub(1)?)).filter(|t| t.kind == Kind::Word) else { return false };
    // `for (double &x : v)`, `for (double *p = a; ...)`
    let is_place = head.iter().take_while(|t| t.text != variable.text).any(|t| t.is("&") || t.is("*"));
    is_place || mentions_in_brackets(file.tokens.get(after..one.end).unwrap_or_default(), &variable.text, row)
}

/// Whether a name occurs in a subscript, other than that of `row`, or in the value of a pointer or reference that is declared.
fn mentions_in_brackets(body: &[Token], name: &str, row: Option<&str>) -> bool {
    let mut depth = 0_usize;
    let mut declares = false;
    let mut behind_row = 0;
    for (at, token) in body.iter().enumerate() {
        if at < behind_row {
            continue;
        }
        match token.text.as_str() {
            "[" if at.checked_sub(1).and_then(|at| body.get(at)).is_some_and(|t| Some(t.text.as_str()) == row) => {
                behind_row = crate::code::tokens::after_bracket(body, at).unwrap_or(at);
            }
            "[" => depth += 1,
            "]" => depth = depth.saturating_sub(1),
            ";" | "{" | "}" => declares = false,
            "=" => {
                let before = |back: usize| at.checked_sub(back).and_then(|at| body.get(at));
                let is_declared = before(1).is_some_and(|t| t.kind == Kind::Word) && before(2).is_some_and(|t| t.is("*") || t.is("&"));
                // `size_t at = i * n;` is a subscript too.
                let is_number =
                    before(2).is_some_and(|t| t.kind == Kind::Word && (t.text.ends_with("_t") || t.text == "int" || t.text == "long"));
                declares |= is_declared || is_number;
            }
            text if text == name && token.kind == Kind::Word && (depth > 0 || declares) => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::regions::tests::file;

    /// Check that a loop over the allocations of an array of pointers is left out where threads divide each of them, and that it counts where its
    /// variable chooses elements too.
    #[test]
    fn loops_over_allocations() {
        let first = |inner: &str, row: Option<&str>| {
            let one = file(&format!("void f() {{\n  for (int c = 0; c < 3; c++)\n    for (long i = 0; i < n; i++)\n      {inner}\n}}\n"));
            loop_of(&one, 4, row).and_then(|found| one.tokens.get(found.start).map(|t| t.line))
        };
        for (inner, with_row, without) in [
            ("u[c][i] = c + i;", Some(3), Some(2)),
            ("f->u[c][i] = 0;", Some(3), Some(2)),
            ("{ double *p = u[c]; p[i] = 0; }", Some(3), Some(2)),
            ("u[c][i * 3 + c] = 0;", Some(2), Some(2)),
            ("v[c][i] = 0;", Some(2), Some(2)),
            ("u[c][k] = 0;", None, Some(2)),
        ] {
            assert_eq!((first(inner, Some("u")), first(inner, None)), (with_row, without), "{inner}");
        }
    }
}
