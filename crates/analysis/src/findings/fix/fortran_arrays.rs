//! Array assignments of Fortran, and `allocate` with a source: the threads share the assignment (`workshare`), which computes what it did.

use super::super::{Case, Context};
use super::team;
use crate::code::fortran::Fortran;
use crate::names::in_code;
use crate::{EditAction, FixEdit};

/// The assignment on the line that first touches the object, shared among threads.
pub(super) fn shared(context: &Context<'_>, case: &Case<'_>) -> Option<Vec<FixEdit>> {
    let place = case.view.first_touch.at.first()?;
    let (path, line) = (place.file.as_deref()?, place.line?);
    let file = Fortran::read(context.places.sources, path)?;
    let code = file.code(line);
    let name = in_code(&case.view.name).to_ascii_lowercase();
    if !file.directives_around(line)?.is_empty() || code.contains([';', '&', '\'', '"']) || file.code(line.checked_sub(1)?).ends_with('&') {
        return None;
    }
    let team = team::size(context, case, path, line)?;
    let text = file.text(line)?;
    let indent = text.get(..text.len() - text.trim_start().len())?;
    let (before, assignment) = if code.starts_with("allocate") {
        // `allocate (a(n), source=value)`
        let (start, value) = with_source(text)?;
        (Some(format!("{indent}{start}")), format!("{name} = {value}"))
    } else {
        // No function is called: it might not be ready for several threads.
        let (left, right) = code.split_once('=')?;
        let whole = left.split('(').next()?.trim() == name.replace('.', "%");
        if !whole || right.contains('(') || right.starts_with('=') {
            return None;
        }
        (None, text.trim().to_owned())
    };
    let mut lines: Vec<String> = before.into_iter().collect();
    lines.push(format!("{indent}!$omp parallel workshare{team}"));
    lines.push(format!("{indent}{assignment}"));
    lines.push(format!("{indent}!$omp end parallel workshare"));
    file.is_number(&name).then(|| vec![FixEdit { file: path.to_owned(), action: EditAction::Replace, line, last_line: line, text: lines }])
}

/// What to do about an array assignment, or `allocate` with a source, in one thread.
pub(super) fn words(context: &Context<'_>, case: &Case<'_>, at_touch: &str) -> String {
    let name = in_code(&case.view.name);
    let statement = || {
        let place = case.view.first_touch.at.first()?;
        Some(Fortran::read(context.places.sources, place.file.as_deref()?)?.code(place.line?).to_owned())
    };
    let what = if statement().is_some_and(|code| code.starts_with("allocate")) {
        format!("allocate with a source fills {name} in one thread{at_touch}: allocate it without a source, and let all threads assign it")
    } else {
        format!("an array assignment runs in one thread{at_touch}: let all threads do it")
    };
    // gfortran executes a workshare with an expression of allocatable components in one thread.
    if name.contains('%') { format!("{what}, in a loop over its last subscript:{}", columns(context, case)) } else { what }
}

/// The advice for a workshare that one thread executed all of.
pub(super) fn in_workshare(context: &Context<'_>, case: &Case<'_>) -> Option<String> {
    let place = case.view.first_touch.at.first()?;
    let file = Fortran::read(context.places.sources, place.file.as_deref()?)?;
    let line = place.line?;
    let is_directive = file.text(line).is_some_and(|text| {
        let text = text.trim_start().to_ascii_lowercase();
        text.starts_with("!$omp") && text.contains("workshare")
    });
    let is_within = || file.directives_around(line).is_some_and(|list| list.iter().any(|one| one.has("workshare")));
    (is_directive || is_within()).then(|| {
        format!(
            "one thread executes the workshare that fills {name} (line {line}): the compiler did not divide it (gfortran executes array \
             expressions with allocatable components in one thread). Write it as a loop over its last subscript:{}",
            columns(context, case),
            name = in_code(&case.view.name)
        )
    })
}

/// `!$omp parallel do schedule(static)` over the last subscript; the rank is that of the allocation, if its line shows it.
fn columns(context: &Context<'_>, case: &Case<'_>) -> String {
    let name = in_code(&case.view.name);
    let rank = case.view.allocated_at.as_ref().and_then(|place| {
        let code = Fortran::read(context.places.sources, place.file.as_deref()?)?.code(place.line?).to_owned();
        rank_of(&code, name)
    });
    let (subscripts, last) = match rank {
        Some(rank) => (format!("{}j", ":, ".repeat(rank - 1)), rank.to_string()),
        None => (":, j".to_owned(), "rank(..)".to_owned()),
    };
    let place = case.view.first_touch.at.first().and_then(|place| place.file.as_deref().zip(place.line));
    let team = place.and_then(|(path, line)| team::size(context, case, path, line)).unwrap_or_default();
    let code = place.and_then(|(path, line)| Some(Fortran::read(context.places.sources, path)?.code(line).to_owned()));
    let value = code
        .as_deref()
        .and_then(|code| assigned_number(code, name))
        .map_or_else(|| format!("...  ! the right side, of an array at {subscripts}"), str::to_owned);
    format!(
        "\n  block\n    integer :: j\n    !$omp parallel do schedule(static){team}\n    do j = lbound({name}, {last}), ubound({name}, {last})\n      \
         {name}({subscripts}) = {value}\n    end do\n  end block"
    )
}

/// The number that a statement assigns to a whole array: `0.0d0` of `b%e = 0.0d0`.
fn assigned_number<'c>(code: &'c str, name: &str) -> Option<&'c str> {
    let (left, right) = code.split_once('=')?;
    let right = right.trim();
    (left.trim().eq_ignore_ascii_case(name) && is_number(right)).then_some(right)
}

/// `-1.5_dp`, `0.0d0`
fn is_number(text: &str) -> bool {
    text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}

/// The number of subscripts with which a statement allocates an array: 2 for `allocate(b%e(n, n))`.
fn rank_of(code: &str, name: &str) -> Option<usize> {
    let code = code.to_ascii_lowercase().replace(' ', "");
    let after = code.split_once(&format!("{}(", name.to_ascii_lowercase()))?.1;
    let (mut depth, mut rank) = (0_usize, 1);
    for c in after.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(rank),
            ')' => depth -= 1,
            ',' if depth == 0 => rank += 1,
            _ => {}
        }
    }
    None
}

/// `allocate (a(n))` and the value, for one array and a value that is a number.
fn with_source(text: &str) -> Option<(String, String)> {
    let code = text.split('!').next()?.trim();
    let lower = code.to_ascii_lowercase();
    let at = lower.find("source")?;
    let start = code.get(..at)?.trim_end().strip_suffix(',')?;
    let value = code.get(at..)?.split_once('=')?.1.trim().strip_suffix(')')?.trim();
    let is_single = !start.contains("::") && start.matches('(').count() == 2 && !lower.contains("stat=") && start.ends_with(')');
    (is_number(value) && is_single).then(|| (format!("{start})"), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that subscripts are counted, also with calls in them.
    #[test]
    fn ranks() {
        assert_eq!(rank_of("allocate(b%e(n,n))", "b%e"), Some(2));
        assert_eq!(rank_of("allocate (a(max(n, 2), m, k), source=b)", "a"), Some(3));
        assert_eq!(rank_of("call make(a)", "b"), None);
    }

    /// Check which right sides are numbers, which mean the same for each column.
    #[test]
    fn numbers_that_are_assigned() {
        assert_eq!(assigned_number("f%t = 0.0d0", "f%t"), Some("0.0d0"));
        assert_eq!(assigned_number("F%T=-1.5_dp", "f%t"), Some("-1.5_dp"));
        for odd in ["f%t = g%t", "f%t = 1 / n", "f%t(1, 1) = 0", "call set(f%t)", "f%t = 2 * 3"] {
            assert_eq!(assigned_number(odd, "f%t"), None, "{odd}");
        }
    }

    /// Check which statements with a source are taken apart.
    #[test]
    fn sources_of_allocate() {
        let expected = Some(("allocate (a(n))".to_owned(), "1.5_dp".to_owned()));
        assert_eq!(with_source("  allocate (a(n), source=1.5_dp) ! all"), expected);
        for odd in [
            "allocate (a(n), source=b)",
            "allocate (a(n), b(n), source=0)",
            "allocate (real(8) :: a(n), source=0)",
            "allocate(a(n))",
            "source",
        ] {
            assert_eq!(with_source(odd), None, "{odd}");
        }
    }
}
