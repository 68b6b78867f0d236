//! Extracts from the user's source lines what a fix needs: arguments, values, element types. Lines may have any form; what is not
//! recognised is left out of the fix, never guessed.

/// Longer lines are not examined.
const LONGEST_LINE: usize = 2000;

/// The arguments of the first call of `function` on a line.
pub(super) fn arguments(line: &str, function: &str) -> Option<Vec<String>> {
    let line = Some(line).filter(|line| line.len() <= LONGEST_LINE)?;
    let (at, _) = line.match_indices(function).find(|(at, found)| {
        let before = line.get(..*at).unwrap_or_default().chars().next_back();
        let after = line.get(at + found.len()..).unwrap_or_default().trim_start();
        !before.is_some_and(is_word) && after.starts_with('(')
    })?;
    inside(line.get(at + function.len()..)?.trim_start(), ('(', ')')).map(|text| split(text, ','))
}

/// The number of elements in a size in bytes: `n` for `n * sizeof *a`, `sizeof a / sizeof a[0]` for `sizeof a`.
pub(super) fn elements(bytes: &str) -> Option<String> {
    let factors = split(bytes, '*');
    // Splitting `n * sizeof *a` at `*` also splits at the dereference.
    let sizeof = factors.iter().position(|factor| factor.starts_with("sizeof"))?;
    if factors.len() == 1 {
        let object = factors.first()?.strip_prefix("sizeof")?.trim().trim_start_matches('(').trim_end_matches(')');
        return is_name(object).then(|| format!("sizeof {object} / sizeof {object}[0]"));
    }
    let dereference = factors.get(sizeof).is_some_and(|factor| factor == "sizeof");
    let after = sizeof + if dereference { 2 } else { 1 };
    let rest: Vec<&str> =
        factors.iter().enumerate().filter(|(i, _)| *i < sizeof || *i >= after).map(|(_, factor)| factor.as_str()).collect();
    (!rest.is_empty() && rest.iter().all(|factor| !factor.is_empty() && !factor.contains("sizeof"))).then(|| rest.join(" * "))
}

/// A `std::vector` declared with its size: type of the elements, size, value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Vector {
    pub element: String,
    pub size: String,
    pub value: Option<String>,
}

/// The declaration of `name` on a line: `std::vector<double> x(n, 1.0);`.
pub(super) fn vector(line: &str, name: &str) -> Option<Vector> {
    let line = Some(line).filter(|line| line.len() <= LONGEST_LINE)?;
    let rest = line.get(line.find("vector<")? + "vector".len()..)?;
    let element = inside(rest, ('<', '>'))?;
    let rest = rest.get(element.len() + 2..)?.trim_start().strip_prefix(name)?.trim_start();
    let arguments = split(inside(rest, ('(', ')'))?, ',');
    let element = split(element, ',').into_iter().next()?;
    let mut arguments = arguments.into_iter();
    let size = arguments.next().filter(|size| !size.is_empty() && !size.contains("begin"))?;
    Some(Vector { element, size, value: arguments.next() })
}

/// The value of a Fortran array assignment to `name`, where it is one number: `1.5d0` of `field = 1.5d0`.
pub(super) fn fortran_value(line: &str, name: &str) -> Option<String> {
    let code = line.split('!').next()?.trim();
    let (left, right) = code.split_once('=')?;
    let whole = left.split('(').next()?.trim().eq_ignore_ascii_case(name);
    let sections =
        inside(left.get(left.find('(').unwrap_or(left.len())..)?, ('(', ')')).is_none_or(|s| s.chars().all(|c| ":, ".contains(c)));
    let value = right.trim();
    let number = value.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && value.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c));
    (whole && sections && number).then(|| value.to_owned())
}

/// The bounds of `name` on a line that allocates, declares or uses it: `["n", "m"]` of `allocate(u(n, m))`.
pub(super) fn bounds(line: &str, name: &str) -> Option<Vec<String>> {
    arguments(&line.to_ascii_lowercase(), &name.to_ascii_lowercase())
}

/// Whether code can assign to the text as it is: `a`, `p->field`, `rows[i]`, `mod::x`.
pub(super) fn is_name(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    starts && text.chars().all(|c| is_word(c) || ".->[]:%".contains(c))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text between the bracket that `text` begins with and its closing bracket.
fn inside(text: &str, (open, close): (char, char)) -> Option<&str> {
    let text = text.strip_prefix(open)?;
    let mut depth = 1_usize;
    let end = text.char_indices().find_map(|(at, c)| {
        depth = if c == open {
            depth + 1
        } else if c == close {
            depth - 1
        } else {
            depth
        };
        (depth == 0).then_some(at)
    })?;
    text.get(..end)
}

/// Splits at separators outside of brackets.
fn split(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match parts.last_mut() {
            _ if c == separator && depth == 0 => parts.push(String::new()),
            Some(part) => part.push(c),
            None => {}
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the arguments of calls.
    #[test]
    fn arguments_of_calls() {
        let of = |line: &str, function: &str| arguments(line, function).map(|list| list.join("|"));
        assert_eq!(of("memset(table, 1, len * sizeof *table);", "memset").as_deref(), Some("table|1|len * sizeof *table"));
        assert_eq!(of("x = my_memset(a); memset (b, f(1, 2), n)", "memset").as_deref(), Some("b|f(1, 2)|n"));
        assert_eq!(of("memset(table, 1,", "memset"), None);
        assert_eq!(of("memset", "memset"), None);
    }

    /// Check the number of elements for sizes in bytes.
    #[test]
    fn sizes_in_elements() {
        for (bytes, expected) in [
            ("len * sizeof *table", Some("len")),
            ("sizeof(double) * n", Some("n")),
            ("n * m * sizeof(*a)", Some("n * m")),
            ("n * sizeof a[0]", Some("n")),
            ("sizeof grid", Some("sizeof grid / sizeof grid[0]")),
            ("sizeof(grid)", Some("sizeof grid / sizeof grid[0]")),
            ("bytes", None),
            ("n * 8", None),
            ("sizeof", None),
            ("", None),
        ] {
            assert_eq!(elements(bytes).as_deref(), expected, "{bytes}");
        }
    }

    /// Check vectors that are declared with a size, and those that are not.
    #[test]
    fn vectors() {
        let x = vector("    std::vector<double> x(n, 1.0);", "x");
        assert_eq!(x, Some(Vector { element: "double".into(), size: "n".into(), value: Some("1.0".into()) }));
        let rows = vector("std::vector<std::vector<double>> rows(n, std::vector<double>(n * 4));", "rows");
        assert_eq!(rows.and_then(|rows| rows.value).as_deref(), Some("std::vector<double>(n * 4)"));
        assert_eq!(vector("std::vector<double> y(x.begin(), x.end());", "y"), None);
        assert_eq!(vector("values(n)", "values"), None);
        assert_eq!(vector("std::vector<double> y;", "y"), None);
    }

    /// Check Fortran assignments: only plain numbers are values.
    #[test]
    fn fortran_values() {
        for (line, expected) in [
            ("  field = 1.5d0 ! all", Some("1.5d0")),
            ("  Field(:,:) = -2", Some("-2")),
            ("  field = other", None),
            ("  field(1:n) = 0", None),
            ("  w = 0", None),
            ("  field = f(1)", None),
            ("", None),
        ] {
            assert_eq!(fortran_value(line, "field").as_deref(), expected, "{line}");
        }
        assert_eq!(bounds("allocate(Field(8000000), w(0:n, m))", "w"), Some(vec!["0:n".into(), "m".into()]));
        assert_eq!(bounds("field = 0", "field"), None);
    }
}
