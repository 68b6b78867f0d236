//! Array assignments of Fortran, and `allocate` with a source: the threads share the assignment (`workshare`), which computes what it did.

use super::super::{Case, Context};
use super::team;
use crate::code::fortran::Fortran;
use crate::names::in_code;
use crate::{CodeLocation, EditAction, FixEdit};

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
        let left = if is_number(&value) { name.clone() } else { whole_array(&name, rank(context, case, &file)?) };
        (Some(format!("{indent}{start}")), format!("{left} = {value}"))
    } else {
        // No function is called: it might not be ready for several threads.
        let (left, right) = code.split_once('=')?;
        let whole = left.split('(').next()?.trim() == name.replace('.', "%");
        if !whole || right.contains('(') || right.starts_with('=') {
            return None;
        }
        let statement = text.trim();
        let assignment = if is_number(right.trim()) || left.contains('(') || !file.is_allocatable(&name) {
            statement.to_owned()
        } else {
            // Only where it is allocated before, to the same shape, is this the same.
            let allocated = case.view.allocated_at.as_ref().filter(|place| place.file.as_deref() == Some(path))?.line?;
            let is_before = allocated < line && file.unit(line)?.contains(&allocated);
            let is_once =
                (allocated + 1..line).map(|between| file.code(between)).all(|code| !(code.contains("allocate") && code.contains(&name)));
            let right = statement.split_once('=').filter(|_| is_before && is_once)?.1;
            format!("{} ={right}", whole_array(left.trim(), rank(context, case, &file)?))
        };
        (None, assignment)
    };
    let mut lines: Vec<String> = before.into_iter().collect();
    lines.push(format!("{indent}!$omp parallel workshare{team}"));
    lines.push(format!("{indent}{assignment}"));
    lines.push(format!("{indent}!$omp end parallel workshare"));
    file.is_number(&name).then(|| vec![FixEdit { file: path.to_owned(), action: EditAction::Replace, line, last_line: line, text: lines }])
}

/// What to do about an array assignment, or `allocate` with a source, in one thread. `is_shown`: with the lines of [`shared`].
pub(super) fn words(context: &Context<'_>, case: &Case<'_>, at_touch: &str, is_shown: bool) -> String {
    let name = in_code(&case.view.name);
    let statement = case.view.first_touch.at.first().and_then(|place| {
        let file = Fortran::read(context.places.sources, place.file.as_deref()?)?;
        Some(file.code(place.line?).to_owned())
    });
    let statement = statement.unwrap_or_default();
    let what = if statement.starts_with("allocate") {
        let shape = if is_shown { "" } else { " (mold gives it the shape of another array)" };
        format!(
            "allocate with a source fills {name} in one thread{at_touch}: allocate it without a source{shape}, and let all threads assign it"
        )
    } else if !is_shown && is_same_line(case) {
        format!(
            "an array assignment allocates {name} and fills it in one thread{at_touch}: allocate it before, and let all threads do the assignment"
        )
    } else {
        format!("an array assignment runs in one thread{at_touch}: let all threads do it")
    };
    if is_shown {
        return what;
    }
    match columns(context, case) {
        Some(columns) => format!("{what}, in a loop over its last subscript:{columns}"),
        None => format!("{what}, in a loop over its last subscript with !$omp parallel do {}", by_workshare(context, case)),
    }
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
        let name = in_code(&case.view.name);
        let how = match columns(context, case) {
            Some(columns) => format!("Write it as a loop over its last subscript:{columns}"),
            None => format!("Write it as a loop over its last subscript with !$omp parallel do {}", by_workshare(context, case)),
        };
        format!("one thread executes the workshare that fills {name} (line {line}): the compiler did not divide it. {how}")
    })
}

/// Which assignments gfortran divides in a workshare (12.2; seen in what `-fdump-tree-omplower` shows): not one that may reallocate the array.
fn by_workshare(context: &Context<'_>, case: &Case<'_>) -> String {
    let name = in_code(&case.view.name);
    let place = case.view.first_touch.at.first().and_then(|place| place.file.as_deref());
    let rank = place.and_then(|path| rank(context, case, &Fortran::read(context.places.sources, path)?));
    let whole = rank.map_or_else(|| format!("all subscripts of {name} as ':'"), |rank| whole_array(name, rank));
    format!(
        "(a workshare divides it only with {} on the left, where {name} is allocated already: gfortran executes {name} = array in one thread, because \
         that may reallocate it; so it does with calls as spread or matmul on the right)",
        whole
    )
}

/// `a(:, :)`
fn whole_array(name: &str, rank: usize) -> String {
    format!("{name}({}:)", ":, ".repeat(rank.saturating_sub(1)))
}

/// Whether the line that touches an object allocates it.
fn is_same_line(case: &Case<'_>) -> bool {
    let place = |place: &CodeLocation| (place.file.clone(), place.line);
    case.view.allocated_at.as_ref().map(place) == case.view.first_touch.at.first().map(place)
}

/// The rank of the object's array: that of its allocation, or of its declaration.
fn rank(context: &Context<'_>, case: &Case<'_>, file: &Fortran) -> Option<usize> {
    let name = in_code(&case.view.name);
    let allocated = || {
        let place = case.view.allocated_at.as_ref()?;
        rank_of(&Fortran::read(context.places.sources, place.file.as_deref()?)?.statement(place.line?), name)
    };
    let declared = |code: &str| {
        let (attributes, names) = code.split_once("::")?;
        rank_of(names, name).or_else(|| rank_of(attributes, "dimension"))
    };
    allocated().or_else(|| file.declared(name).find_map(declared))
}

/// `!$omp parallel do schedule(static)` over the last subscript, for an assignment of a number; the rank is that of the allocation, if its line shows
/// it.
fn columns(context: &Context<'_>, case: &Case<'_>) -> Option<String> {
    let name = in_code(&case.view.name);
    let (path, line) = case.view.first_touch.at.first().and_then(|place| place.file.as_deref().zip(place.line))?;
    let file = Fortran::read(context.places.sources, path)?;
    let last = rank(context, case, &file)?;
    let subscripts = format!("{}j", ":, ".repeat(last - 1));
    let code = file.code(line);
    let value = assigned_number(code, name)
        .map(str::to_owned)
        .or_else(|| with_source(code).map(|(_, value)| value).filter(|value| is_number(value)))?;
    let team = team::size(context, case, path, line).unwrap_or_default();
    Some(format!(
        "\n  block\n    integer :: j\n    !$omp parallel do schedule(static){team}\n    do j = lbound({name}, {last}), ubound({name}, {last})\n      \
         {name}({subscripts}) = {value}\n    end do\n  end block"
    ))
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
    let name = format!("{}(", name.to_ascii_lowercase());
    let is_whole = |at: &usize| !code.get(..*at).unwrap_or_default().ends_with(|c: char| c.is_ascii_alphanumeric() || "_%".contains(c));
    let at = code.match_indices(&name).map(|(at, _)| at).find(is_whole)?;
    let after = code.get(at + name.len()..)?;
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

/// `allocate (a(n))` and the value, for one array and a value that is a number or a variable; `allocate (a, mold=b)` where that has the shape.
fn with_source(text: &str) -> Option<(String, String)> {
    let code = text.split('!').next()?.trim();
    let lower = code.to_ascii_lowercase();
    let at = lower.find("source")?;
    let start = code.get(..at)?.trim_end().strip_suffix(',')?;
    let value = code.get(at..)?.split_once('=')?.1.trim().strip_suffix(')')?.trim();
    let is_plain = !start.contains("::") && !lower.contains("stat=") && !lower.contains("errmsg");
    let is_variable =
        value.starts_with(|c: char| c.is_ascii_alphabetic()) && value.chars().all(|c| c.is_ascii_alphanumeric() || "_%".contains(c));
    let has_shape = start.matches('(').count() == 2 && start.ends_with(')');
    let is_single = is_plain && (has_shape || (start.matches('(').count() == 1 && !start.contains(',')));
    match has_shape {
        true => (is_single && (is_number(value) || is_variable)).then(|| (format!("{start})"), value.to_owned())),
        false => (is_single && is_variable).then(|| (format!("{start}, mold={value})"), value.to_owned())),
    }
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
        assert_eq!(rank_of("allocate(ab(n), s%b(n, n), b(n, n, n))", "b"), Some(3), "a whole name");
        assert_eq!(rank_of("real(8), allocatable, dimension(:,:) ", "dimension"), Some(2), "of a declaration");
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
        let of = |start: &str, value: &str| Some((start.to_owned(), value.to_owned()));
        assert_eq!(with_source("allocate (a(n), source=b)"), of("allocate (a(n))", "b"));
        assert_eq!(with_source("allocate(m, source=c)"), of("allocate(m, mold=c)", "c"));
        for odd in [
            "allocate (a(n), source=f(x))",
            "allocate (a, source=0)",
            "allocate (a, b, source=c)",
            "allocate (a(n), b(n), source=0)",
            "allocate (real(8) :: a(n), source=0)",
            "allocate(a(n))",
            "source",
        ] {
            assert_eq!(with_source(odd), None, "{odd}");
        }
    }
}
