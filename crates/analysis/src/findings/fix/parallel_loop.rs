//! The program's own initialising loop, divided among threads by a directive before it.

use super::super::{Case, Context};
use super::edit::insert;
use super::team;
use crate::code::fortran::Fortran;
use crate::code::regions::File;
use crate::code::rounds::independent;
use crate::code::tokens::{Kind, Token};
use crate::names::Language;
use crate::{EditAction, FixEdit};
use std::ops::Range;

/// The directive before the loop that first touches the object; `None` if it is unknown which loop that is, or if its source does not show that
/// its rounds are independent.
pub(super) fn divided(context: &Context<'_>, case: &Case<'_>, language: Language) -> Option<Vec<FixEdit>> {
    let place = case.view.first_touch.at.first()?;
    let (path, line) = (place.file.as_deref()?, place.line?);
    let sources = context.places.sources;
    if !team::uses_one_loop(&team::directives_at_use(context, case)) {
        return None;
    }
    match language {
        Language::C | Language::Cpp => {
            let file = File::read(sources, path)?;
            let at = loop_of(&file, line)?;
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

/// The outermost loop on a line whose variable chooses elements. A loop over time steps chooses none.
pub(super) fn loop_of(file: &File, line: u32) -> Option<Range<usize>> {
    file.loops_on(line).into_iter().find(|one| chooses_elements(file, one))
}

fn chooses_elements(file: &File, one: &Range<usize>) -> bool {
    let Some(after) = crate::code::tokens::after_bracket(&file.tokens, one.start + 1) else { return false };
    let head = file.tokens.get(one.start + 2..after - 1).unwrap_or_default();
    let mark = head.iter().position(|t| t.is("=") || t.is(":"));
    let Some(variable) = mark.and_then(|mark| head.get(mark.checked_sub(1)?)).filter(|t| t.kind == Kind::Word) else { return false };
    // `for (double &x : v)`, `for (double *p = a; ...)`
    let is_place = head.iter().take_while(|t| t.text != variable.text).any(|t| t.is("&") || t.is("*"));
    is_place || mentions_in_brackets(file.tokens.get(after..one.end).unwrap_or_default(), &variable.text)
}

/// Whether a name occurs in a subscript, or in the value of a pointer or reference that is declared.
fn mentions_in_brackets(body: &[Token], name: &str) -> bool {
    let mut depth = 0_usize;
    let mut declares = false;
    for (at, token) in body.iter().enumerate() {
        match token.text.as_str() {
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
