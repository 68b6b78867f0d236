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

/// `allocate (a(n))` and the value, for one array and a value that is a number.
fn with_source(text: &str) -> Option<(String, String)> {
    let code = text.split('!').next()?.trim();
    let lower = code.to_ascii_lowercase();
    let at = lower.find("source")?;
    let start = code.get(..at)?.trim_end().strip_suffix(',')?;
    let value = code.get(at..)?.split_once('=')?.1.trim().strip_suffix(')')?.trim();
    let is_number = value.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && value.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c));
    let is_single = !start.contains("::") && start.matches('(').count() == 2 && !lower.contains("stat=") && start.ends_with(')');
    (is_number && is_single).then(|| (format!("{start})"), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
