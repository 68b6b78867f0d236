//! May the rounds of a user's loop run on several threads? Only if its source shows that none needs what another one writes.
//!
//! Lines are not parsed as a compiler does: anything that is not recognised counts as a dependence. So a fix shows a loop with a pragma only
//! where
//! - each round writes elements whose subscript has the loop's variable, and variables that the round itself declares;
//! - it reads what the loop writes by the same subscripts only;
//! - it calls nothing but mathematical functions, and does not leave the loop.

use super::loops::{Loop, closing, code_of, indentation, words};
use crate::Sources;
use crate::names::Language;

/// Lines of a loop's body that are examined, and lines above it that may hold a directive.
const MOST_LINES: u32 = 60;
const LINES_ABOVE: u32 = 40;
/// Functions without side effects.
const PURE: &[&str] = &[
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "exp",
    "exp2",
    "log",
    "log2",
    "log10",
    "sqrt",
    "cbrt",
    "pow",
    "fabs",
    "fabsf",
    "abs",
    "fmin",
    "fmax",
    "min",
    "max",
    "floor",
    "ceil",
    "round",
    "fmod",
    "mod",
    "hypot",
    "sizeof",
    "dble",
    "real",
    "int",
    "double",
    "float",
    "size_t",
    "long",
    "unsigned",
    "char",
    "short",
    "uint32_t",
    "uint64_t",
    "int32_t",
    "int64_t",
    "static_cast",
];
const TYPES: &[&str] = &[
    "double",
    "float",
    "int",
    "long",
    "unsigned",
    "size_t",
    "auto",
    "char",
    "short",
    "bool",
    "uint32_t",
    "uint64_t",
    "int32_t",
    "int64_t",
    "ptrdiff_t",
    "ssize_t",
    "complex",
];
const CONTROL: &[&str] = &["for", "if", "while", "switch", "return", "else", "do"];
const LEAVES: &[&str] = &["return", "break", "goto", "exit", "cycle", "throw", "static"];

/// How a loop is divided now, by the directive before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directive {
    None,
    /// `parallel for`: the loop makes its own team.
    ParallelFor,
    /// `for`: it is divided among the team of the region around it.
    For,
    /// It is in a region of a team, and is not divided.
    Within,
}

/// The directive of the loop that begins on `line`.
pub(super) fn directive(sources: &dyn Sources, file: &str, line: u32, language: Language) -> Directive {
    let mark = if language == Language::Fortran { "!$omp" } else { "#pragma omp" };
    let indent = sources.line(file, line).map_or(0, |text| indentation(&text));
    for above in (line.saturating_sub(LINES_ABOVE).max(1)..line).rev() {
        let Some(text) = sources.line(file, above) else { break };
        let lower = text.trim().to_ascii_lowercase();
        let is_end = lower.starts_with("!$omp end");
        if let Some(rest) = lower.strip_prefix(mark).filter(|_| !is_end) {
            let has = |word: &str| words(rest).any(|one| one == word);
            let divides = has("for") || has("do");
            let is_direct = above + 1 == line;
            match () {
                () if is_direct && divides && has("parallel") => return Directive::ParallelFor,
                () if is_direct && divides => return Directive::For,
                () if indentation(&text) < indent && (has("parallel") || has("single") || has("master") || has("task")) => {
                    return Directive::Within;
                }
                () => {}
            }
        }
        // A line that begins in the first column, other than a brace, begins a function.
        if indentation(&text) == 0 && text.starts_with(|c: char| c.is_alphabetic()) && language != Language::Fortran {
            break;
        }
    }
    Directive::None
}

/// Variables of inner loops that are declared outside of the loop, so that each thread needs its own; `None` if the rounds may depend on each
/// other.
pub(super) fn private_variables(sources: &dyn Sources, file: &str, one: &Loop, language: Language) -> Option<Vec<String>> {
    let text = whole_text(sources, file, one, language)?;
    if words(&text).any(|word| LEAVES.contains(&word)) {
        return None;
    }
    match language {
        Language::C | Language::Cpp => of_c(&text),
        Language::Fortran => of_fortran(&text).then(Vec::new),
        Language::Rust | Language::Python => None,
    }
}

/// The loop with its body, comments removed, lines joined by `\n`.
fn whole_text(sources: &dyn Sources, file: &str, one: &Loop, language: Language) -> Option<String> {
    let mut text = code_of(&one.text, language).to_owned();
    let mut line = one.line;
    while !is_complete(&text, language) {
        line += 1;
        let next = sources.line(file, line).filter(|_| line < one.line + MOST_LINES)?;
        let code = code_of(&next, language);
        // Conditional compilation and other directives.
        if code.trim_start().starts_with('#') || code.contains("/*") {
            return None;
        }
        text.push('\n');
        text.push_str(code);
    }
    Some(text)
}

fn is_complete(text: &str, language: Language) -> bool {
    if language == Language::Fortran {
        let starts = text.lines().filter(|line| line.trim_start().to_ascii_lowercase().starts_with("do ")).count();
        let ends = text.lines().filter(|line| is_end_do(line)).count();
        return ends >= starts;
    }
    let Some(body) = header(text).map(|(_, body)| body) else { return false };
    let (open, closed) = (body.matches('{').count(), body.matches('}').count());
    open == closed && body.trim_end().ends_with([';', '}'])
}

fn is_end_do(line: &str) -> bool {
    let line = line.trim().to_ascii_lowercase();
    line.starts_with("end do") || line.starts_with("enddo")
}

/// The header of a C loop, without its parentheses, and its body.
fn header(text: &str) -> Option<(&str, &str)> {
    let inside = text.trim_start().strip_prefix("for")?.trim_start().strip_prefix('(')?;
    let end = closing(inside)?;
    Some((inside.get(..end)?, inside.get(end + 1..)?))
}

fn of_c(text: &str) -> Option<Vec<String>> {
    let (head, body) = header(text)?;
    let variable = if let Some((declared, _)) = head.split_once(" : ") {
        // `for (double &x : v) x = 0;`: each round has an element of its own.
        words(declared).last()?
    } else {
        words(head.split(';').next()?.split('=').next()?).last()?
    };
    // What the rounds declare.
    let mut own: Vec<&str> = vec![variable];
    let mut private: Vec<String> = Vec::new();
    for statement in statements(body) {
        if let Some(rest) = statement.strip_prefix("for ").or_else(|| statement.strip_prefix("for(")) {
            let name = words(rest.split('=').next()?).last()?;
            if !declares(rest) && name != variable {
                private.push(name.to_owned());
            }
            own.push(name);
        } else if declares(statement) {
            own.push(words(statement.split('=').next()?).last()?);
        }
    }
    let mut written: Vec<(&str, &str)> = Vec::new();
    for (target, operator) in targets(body)? {
        let (base, subscript) = base_and_subscript(target)?;
        match subscript {
            None if own.contains(&base) => {}
            // An element of an element would need its own proof: `a[index[i]] = 0`.
            Some(subscript)
                if operator != "++"
                    && words(subscript).any(|word| word == variable)
                    && !subscript.contains('[')
                    && !subscript.contains('(') =>
            {
                written.push((base, subscript));
            }
            _ => return None,
        }
    }
    let reads_own = |(base, subscript): &(&str, &str)| {
        body.match_indices(base).filter(|(at, _)| is_name_at(body, *at, base)).all(|(at, _)| {
            let rest = body.get(at + base.len()..).unwrap_or_default();
            rest.strip_prefix(['[', '('])
                .and_then(|inside| inside.get(..closing(inside)?))
                .is_some_and(|other| other.trim() == subscript.trim())
        })
    };
    let are_known = calls(body).all(|name| {
        PURE.contains(&name) || CONTROL.contains(&name) || written.iter().any(|(base, _)| *base == name) || own.contains(&name)
    });
    private.sort();
    private.dedup();
    (are_known && written.iter().all(reads_own)).then_some(private)
}

/// Statements of a body, trimmed: split at semicolons and braces. Headers of inner loops begin statements.
fn statements(body: &str) -> impl Iterator<Item = &str> {
    body.split([';', '{', '}', '\n']).flat_map(|part| {
        let part = part.trim();
        // `for (...) for (...) x = 0`: each header begins a statement.
        let starts: Vec<usize> = part.match_indices("for").filter(|(at, _)| is_name_at(part, *at, "for")).map(|(at, _)| at).collect();
        let ends = starts.iter().copied().skip(1).chain([part.len()]).collect::<Vec<_>>();
        let headers: Vec<&str> = starts.iter().zip(ends).filter_map(|(start, end)| part.get(*start..end)).collect();
        if headers.is_empty() { vec![part] } else { headers }
    })
}

/// Whether a statement declares a variable.
fn declares(statement: &str) -> bool {
    let first = words(statement).find(|word| *word != "const" && *word != "std");
    first.is_some_and(|first| TYPES.contains(&first)) && statement.contains('=')
}

/// Everything that is assigned to, incremented or decremented, with the operator; `None` if a target is not understood.
fn targets(body: &str) -> Option<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    let bytes = body.as_bytes();
    for (at, c) in body.char_indices() {
        let (before, after) = (at.checked_sub(1).map(|at| bytes[at]), bytes.get(at + 1).copied());
        match c {
            '=' if after == Some(b'=') || matches!(before, Some(b'=' | b'!' | b'<' | b'>')) => {}
            '=' => {
                let end = if before.is_some_and(|c| b"+-*/%&|^".contains(&c)) { at - 1 } else { at };
                found.push((before_target(body.get(..end)?)?, "="));
            }
            '+' | '-' if after == Some(c as u8) => {
                // Of the loops' own variables only: `i++` in a header.
                let name = words(body.get(..at)?).last().filter(|name| body.get(..at).is_some_and(|text| text.trim_end().ends_with(name)));
                let next = words(body.get(at + 2..)?).next();
                found.push((name.or(next)?, "++"));
            }
            _ => {}
        }
    }
    Some(found)
}

/// The target at the end of a text: `a[i]`, `p->x[i]`, `double s`.
fn before_target(text: &str) -> Option<&str> {
    let start = text.rfind([';', '{', '}', '\n', ')']).filter(|at| !text.get(at + 1..).unwrap_or_default().trim().is_empty());
    // `m(i, j) = 0`: the bracket belongs to the target.
    let start = match start {
        Some(at) => at + 1,
        None if text.trim_end().ends_with(')') => text.rfind([';', '{', '}', '\n']).map_or(0, |at| at + 1),
        None => 0,
    };
    let target = text.get(start..)?.trim();
    // The header of an inner loop: `for (j = 0`.
    let target = target.strip_prefix("for").and_then(|rest| rest.trim_start().strip_prefix('(')).unwrap_or(target).trim();
    (!target.is_empty() && !target.starts_with('*')).then_some(target)
}

/// `a` and `i` of `a[i]`; `s` of `double s`.
fn base_and_subscript(target: &str) -> Option<(&str, Option<&str>)> {
    match target.find(['[', '(']) {
        Some(at) => {
            let inside = target.get(at + 1..)?;
            let base = words(target.get(..at)?).last()?;
            Some((base, Some(inside.get(..closing(inside)?)?)))
        }
        None => Some((words(target).last()?, None)),
    }
}

/// The names that are called.
fn calls(body: &str) -> impl Iterator<Item = &str> {
    body.match_indices('(').filter_map(|(at, _)| {
        let before = body.get(..at)?.trim_end().trim_end_matches('>');
        let name = words(before).last()?;
        before.ends_with(name).then_some(name)
    })
}

fn is_name_at(text: &str, at: usize, name: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    !is_word(text.get(..at).unwrap_or_default().chars().next_back())
        && !is_word(text.get(at + name.len()..).unwrap_or_default().chars().next())
}

/// Every statement of a Fortran loop assigns to an element whose subscripts have the loop's variable, and reads no other element of that array.
fn of_fortran(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut lines = lower.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(variable) = lines.next().and_then(|line| words(line.strip_prefix("do ")?.split('=').next()?).last()) else { return false };
    lines.filter(|line| !line.starts_with("do ") && !is_end_do(line)).all(|line| {
        let Some((left, right)) = line.split_once('=') else { return false };
        let Some((base, Some(subscript))) = base_and_subscript(left.trim()) else { return false };
        let is_own = left.trim_start().starts_with(base) && words(subscript).any(|word| word == variable) && !subscript.contains('(');
        let reads_it = lower.match_indices(base).filter(|(at, _)| is_name_at(&lower, *at, base)).any(|(at, _)| {
            let rest = lower.get(at + base.len()..).unwrap_or_default();
            rest.strip_prefix('(').and_then(|inside| inside.get(..closing(inside)?)) != Some(subscript)
        });
        // Arrays and functions look alike: only mathematical functions, and arrays by the loops' variables.
        is_own && !reads_it && calls(right).all(|name| PURE.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::TouchCause;
    use firsttouch_model::rows::Frame;

    struct Text(&'static str);

    impl Sources for Text {
        fn line(&self, _: &str, line: u32) -> Option<String> {
            self.0.lines().nth((line as usize).checked_sub(1)?).map(str::to_owned)
        }
        fn cause(&self, _: &[Frame], _: Option<&str>) -> TouchCause {
            TouchCause::Unknown
        }
        fn user_frame(&self, _: &[Frame]) -> Option<usize> {
            None
        }
        fn variable(&self, _: &str, _: u32, _: &str, _: usize) -> Option<String> {
            None
        }
    }

    fn private(source: &'static str, language: Language) -> Option<String> {
        let first = source.lines().next().unwrap_or_default();
        let one = Loop { text: first.trim_start().to_owned(), line: 1, whole: false };
        private_variables(&Text(source), "", &one, language).map(|names| names.join(" "))
    }

    /// Check that loops whose rounds are independent are recognised, with the variables that each thread needs for itself.
    #[test]
    fn independent_rounds() {
        for (source, expected) in [
            ("for (size_t i = 0; i < n; i++) a[i] = 0.5 * i;", ""),
            ("for (i = 0; i < n; i++) {\n  a[i] = i;\n  b[i] = sqrt(a[i]) + c[i - 1];\n}\n", ""),
            ("for (i = 0; i < m; i++) {\n  for (j = 0; j < n; j++)\n    A[i * n + j] = (double)(i + j);\n}\n", "j"),
            ("for (int i = 0; i < m; ++i)\n  for (int j = 0; j < n; ++j)\n    A[i][j] += 1;\n", ""),
            ("for (int i = 0; i < n; i++) {\n  double x = 0.1 * i;\n  x += 1;\n  p->field[i] = x;\n}\n", ""),
            ("for (double &x : v) x = 0;", ""),
        ] {
            assert_eq!(private(source, Language::Cpp).as_deref(), Some(expected), "{source}");
        }
        let fortran = "do j = 1, n\n  do i = 1, n\n    u(i, j) = dble(i) ! first\n  end do\nend do\n";
        assert_eq!(private(fortran, Language::Fortran).as_deref(), Some(""));
    }

    /// Check that rounds which need each other, or that may, are not divided.
    #[test]
    fn dependent_rounds() {
        for source in [
            "for (i = 0; i < n; i++) cols[k++] = i;",
            "for (i = 0; i < n; i++) *cur++ = i;",
            "for (i = 1; i < n; i++) a[i] = a[i - 1] + 1;",
            "for (i = 0; i < n; i++) { sum += w[i]; a[i] = sum; }",
            "for (i = 0; i < n; i++) a[i] = rand();",
            "for (i = 0; i < n; i++) a[index[i]] = i;",
            "for (i = 0; i < n; i++) {\n  k = rowstr[i]++;\n  a[k] = 1;\n}\n",
            "for (i = 0; i < n; i++) {\n  if (i == m) break;\n  a[i] = 0;\n}\n",
            "for (i = 0; i < n; i++) a[0] = i;",
            "for (i = 0; i < n; i++) {\n#ifdef X\n  a[i] = 0;\n#endif\n}\n",
            "for (i = 0; i < n; i++) state = a[i] = next(state);",
            "for (i = 0; i < n; i++) {",
        ] {
            assert_eq!(private(source, Language::C), None, "{source}");
        }
        for source in [
            "do i = 2, n\n  u(i) = u(i - 1)\nend do\n",
            "do i = 1, n\n  k = k + 1\n  u(i) = k\nend do\n",
            "do i = 1, n\n  call random_number(u(i))\nend do\n",
        ] {
            assert_eq!(private(source, Language::Fortran), None, "{source}");
        }
    }

    /// Check which directive divides a loop.
    #[test]
    fn directives() {
        let of = |source: &'static str, line| directive(&Text(source), "", line, Language::C);
        assert_eq!(of("int main()\n{\n    for (;;)\n", 3), Directive::None);
        assert_eq!(of("#pragma omp parallel for\nfor (i = 0; i < n; i++)\n", 2), Directive::ParallelFor);
        let region = "#pragma omp parallel\n{\n    lo = f(me);\n    #pragma omp for\n    for (i = lo; i < hi; i++)\n        a[i] = 0;\n    for (i = lo; i < hi; i++)\n";
        assert_eq!((of(region, 5), of(region, 7)), (Directive::For, Directive::Within));
        let before = "    #pragma omp parallel for\n    for (i = 0; i < n; i++)\n        b[i] = 0;\n    for (i = 0; i < n; i++)\n";
        assert_eq!(of(before, 4), Directive::None);
    }

    /// Check that odd texts do not cause a panic.
    #[test]
    fn odd_texts() {
        for source in [
            "for (",
            "for (;;) é = 1;",
            "for (i = 0; i < n; i++) = ;",
            "for (i = 0; i < n; i++) ++;",
            "do",
            "do i",
            "for (i = 0;;) a[ = 1;",
            "",
        ] {
            for language in [Language::C, Language::Cpp, Language::Fortran, Language::Rust, Language::Python] {
                let _ = private(source, language);
                let _ = directive(&Text(source), "", 1, language);
            }
        }
    }
}
