//! The number of threads that a Rust program divides its work among, as the program says it: `THREADS` of `data.chunks_mut(N / THREADS)`, of
//! `for t in 0..THREADS` around a `spawn`, or of rayon's `num_threads(THREADS)`.

use crate::code::expression::text_of;
use crate::code::regions::File;
use crate::code::rust::end_of_statement;
use crate::code::tokens::{Kind, Token, after_bracket};
use crate::findings::Case;
use std::collections::BTreeSet;

/// Positions of an object at which its owner is asked for.
const POSITIONS: u64 = 256;

/// The expression, where it means the same at a token; `None` if the source has none, or several, or if the run had another number of threads.
pub(super) fn threads(case: &Case<'_>, file: &File, at: usize) -> Option<String> {
    let all = divisors(file);
    let (first, ..) = *all.first()?;
    let text = file.tokens.get(first)?.text.as_str();
    if all.iter().any(|(other, _)| file.tokens.get(*other).is_none_or(|t| t.text != text)) {
        return None;
    }
    if let Some(number) = number(text) {
        return is_of_run(case, number).then(|| number.to_string());
    }
    let is_usize = all.iter().any(|(_, is_usize)| *is_usize);
    let value = constant(file, text, at).or_else(|| is_variable(file, text, at, &all, is_usize).then_some(None))?;
    value.is_none_or(|number| is_of_run(case, number)).then(|| text.to_owned())
}

/// Whether as many threads own a part of the object as the program says.
fn is_of_run(case: &Case<'_>, number: u64) -> bool {
    let extent = case.group.extent();
    let owners: BTreeSet<usize> =
        (0..POSITIONS).filter_map(|part| case.subject.partition.owner(extent / POSITIONS * part + extent / POSITIONS / 2)).collect();
    // More owners than positions are not all seen.
    owners.len() as u64 == number || number > POSITIONS / 4
}

/// The words and numbers that divide work among threads, with their positions; and whether they have to be of type `usize` there.
fn divisors(file: &File) -> Vec<(usize, bool)> {
    let tokens = &file.tokens;
    let uses_rayon = file.has_word("rayon");
    let is_one = |at: usize| tokens.get(at).is_some_and(|t| matches!(t.kind, Kind::Word | Kind::Number));
    let called = |at: usize| tokens.get(at).filter(|t| t.is("(")).and_then(|_| after_bracket(tokens, at));
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "num_threads" if uses_rayon => {
                found.extend(called(at + 1).filter(|after| *after == at + 4 && is_one(at + 2)).map(|_| (at + 2, true)));
            }
            // A pool has fewer threads than parts.
            _ if uses_rayon => {}
            "chunks" | "chunks_mut" | "chunks_exact" | "chunks_exact_mut" if file.has_word("spawn") => {
                let size = called(at + 1).and_then(|after| divisor(tokens, after - 1).or_else(|| named_divisor(tokens, at + 2, after - 1)));
                found.extend(size.filter(|at| is_one(*at)).map(|at| (at, true)));
            }
            ".." if is_one(at + 1)
                && at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|t| t.text == "0")
                && spawns(tokens, at) =>
            {
                found.push((at + 1, false));
            }
            _ => {}
        }
    }
    found
}

/// The position of `t` in `n / t` or `n.div_ceil(t)` before a closing bracket.
fn divisor(tokens: &[Token], close: usize) -> Option<usize> {
    let is = |back: usize, text: &str| close.checked_sub(back).and_then(|at| tokens.get(at)).is_some_and(|t| t.is(text));
    if is(2, "/") {
        return close.checked_sub(1);
    }
    (is(1, ")") && is(3, "(") && is(4, "div_ceil")).then(|| close - 2)
}

/// The same for `chunk` with `let chunk = n / t;`.
fn named_divisor(tokens: &[Token], at: usize, close: usize) -> Option<usize> {
    let name = tokens.get(at).filter(|t| t.kind == Kind::Word && at + 1 == close)?;
    let declares = |place: &usize| {
        tokens.get(*place..place + 3).is_some_and(|three| three[0].is("let") && three[1].is(&name.text) && three[2].is("="))
    };
    let mut all = (0..tokens.len()).filter(declares);
    let one = all.next().filter(|_| all.next().is_none())?;
    divisor(tokens, end_of_statement(tokens, one)? - 1)
}

/// Whether threads are made in each round over a range, `for t in 0..n { ... }` or `(0..n).map(...)`.
fn spawns(tokens: &[Token], range: usize) -> bool {
    let after = range + 2;
    let end = match tokens.get(after) {
        Some(next) if next.is("{") => after_bracket(tokens, after),
        Some(next) if next.is(")") => end_of_expression(tokens, after + 1),
        _ => None,
    };
    end.and_then(|end| tokens.get(after..end)).is_some_and(|list| list.iter().any(|t| t.is("spawn")))
}

/// The position of the mark that ends the expression from a token on.
fn end_of_expression(tokens: &[Token], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let token = tokens.get(at)?;
        match token.text.as_str() {
            "(" | "[" | "{" if token.kind == Kind::Mark => at = after_bracket(tokens, at)?,
            ")" | "]" | "}" | ";" | "," if token.kind == Kind::Mark => return Some(at),
            _ => at += 1,
        }
    }
}

/// `4`, `4_usize`
fn number(text: &str) -> Option<u64> {
    let plain = text.replace('_', "");
    plain.strip_suffix("usize").unwrap_or(&plain).parse().ok().filter(|number| *number > 0)
}

/// A constant of type `usize` that can be named at a token: its value, `None` within if that is not a number.
fn constant(file: &File, name: &str, at: usize) -> Option<Option<u64>> {
    let tokens = &file.tokens;
    let declared = |place: &usize| {
        let before = place.checked_sub(1).and_then(|before| tokens.get(before));
        before.is_some_and(|t| t.is("const")) && tokens.get(*place).is_some_and(|t| t.is(name))
    };
    let mut all = (0..tokens.len()).filter(declared);
    let place = all.next().filter(|_| all.next().is_none())?;
    let is_usize = text_of(tokens.get(place + 1..place + 4)?) == ":usize=";
    let is_hidden = |head: &[Token]| head.iter().any(|t| t.is("mod"));
    let is_member = |brace: &usize| file.head(*brace).iter().any(|t| t.is("impl") || t.is("trait"));
    let own = file.braces_around(place);
    if !is_usize || own.last().is_some_and(is_member) || !is_within(file, &own, at, is_hidden) {
        return None;
    }
    let is_number = tokens.get(place + 5).is_some_and(|t| t.is(";"));
    Some(tokens.get(place + 4).filter(|_| is_number).and_then(|t| number(&t.text)))
}

/// Whether a token stands in these braces, and none of those further in has a head that hides what is declared outside.
fn is_within(file: &File, braces: &[usize], at: usize, hides: impl Fn(&[Token]) -> bool) -> bool {
    let around = file.braces_around(at);
    around.strip_prefix(braces).is_some_and(|inner| !inner.iter().any(|brace| hides(file.head(*brace))))
}

/// Whether a name is a variable or a parameter of type `usize` that has its value at a token, in the function that divides the work too.
fn is_variable(file: &File, name: &str, at: usize, all: &[(usize, bool)], is_usize: bool) -> bool {
    let tokens = &file.tokens;
    let is_function = |head: &[Token]| head.iter().any(|t| t.is("fn"));
    let around = file.braces_around(at);
    let Some(body) = around.iter().copied().find(|brace| is_function(file.head(*brace))) else { return false };
    let Some(end) = after_bracket(tokens, body) else { return false };
    let is = |place: usize, text: &str| tokens.get(place).is_some_and(|t| t.is(text));
    let before = |place: usize, back: usize, text: &str| place.checked_sub(back).is_some_and(|place| is(place, text));
    let is_typed = |place: usize| is(place + 1, ":") && is(place + 2, "usize");
    let names = |place: &usize| is(*place, name);
    let declared: Vec<usize> = (body..end)
        .filter(names)
        .filter(|place| before(*place, 1, "let") || (before(*place, 1, "mut") && before(*place, 2, "let")))
        .collect();
    let head = body - file.head(body).len();
    let parameters: Vec<usize> = (head..body).filter(names).filter(|place| is(place + 1, ":")).collect();
    let is_divided_here = all.iter().all(|(place, _)| (body..end).contains(place));
    let is_assigned = (body..end).filter(names).any(|place| is(place + 1, "=") && !declared.contains(&place));
    // The parameter of a closure is another variable.
    let is_hidden = (body..end).filter(names).any(|place| before(place, 1, "|"));
    let is_known = match (declared.as_slice(), parameters.as_slice()) {
        ([one], []) => *one < at && (is_usize || is_typed(*one)) && is_within(file, &file.braces_around(*one), at, is_function),
        ([], [one]) => is_usize || is_typed(*one),
        _ => false,
    };
    is_known && is_divided_here && !is_assigned && !is_hidden
}
