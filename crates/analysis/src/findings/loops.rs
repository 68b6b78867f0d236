//! The user's own loop that first touches an object, for use in a fix.
//!
//! A pragma before the wrong loop breaks a program, so a loop is shown only if the source confirms it: of the loops around the touching
//! line, the outermost `for` (`do`) whose variable appears in a subscript of the object. A time-step loop further out indexes nothing and
//! is never chosen. Without such a variable, no loop is chosen.

use crate::Sources;
use crate::names::Language;

/// Enclosing loops are searched for up to this many lines above a line.
const LINES_ABOVE: u32 = 40;
/// The body of a loop may begin up to this many lines below its header.
const BODY_BELOW: u32 = 3;
/// The number of characters of a line that are examined.
const LONGEST_LINE: usize = 1024;

/// A loop as the user wrote it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// The line of the loop, from the loop's keyword on.
    pub text: String,
    pub line: u32,
    /// The line contains the whole loop with its body.
    pub whole: bool,
}

impl Loop {
    /// The loop as lines of code, with `...` for a body on other lines.
    pub fn code(&self, language: Language) -> String {
        match language {
            _ if self.whole => self.text.clone(),
            Language::Fortran => format!("{}\n  ...\nend do", self.text),
            _ => format!("{}\n    ...{}", self.text, if braces(&self.text) > 0 { "\n}" } else { "" }),
        }
    }
}

/// A loop header in the nest around a line.
struct Head {
    variable: String,
    line: u32,
    /// From the header's keyword to the end of its line.
    text: String,
    /// What follows the header on its line.
    body: String,
}

/// The loop whose variable indexes `name` on a line that touches it.
pub(super) fn indexing_loop(sources: &dyn Sources, file: &str, line: u32, language: Language, name: &str) -> Option<Loop> {
    let text = sources.line(file, line)?;
    let own = heads(&text, line, language);
    let body = match own.last() {
        None => code_of(&text, language).to_owned(),
        Some(head) => body_of(sources, file, head, language),
    };
    let mut nest = above(sources, file, line, &text, language);
    nest.extend(own);
    let used = subscripts(&body, name);
    let indexes = |head: &&Head| words(&used).any(|word| same_name(word, &head.variable, language));
    // `for (double &x : v) x = 0;` accesses each element without a subscript.
    let visits = |head: &&Head| words(&head.text).any(|word| word == name) && head.text.contains(" : ");
    let chosen = nest.iter().find(indexes).or_else(|| nest.last().filter(visits))?;
    let whole = complete(&chosen.body, language) && chosen.line == line;
    Some(Loop { text: chosen.text.clone(), line: chosen.line, whole })
}

/// The loops around a line, outermost first, by indentation, up to the enclosing function.
fn above(sources: &dyn Sources, file: &str, line: u32, text: &str, language: Language) -> Vec<Head> {
    let mut nest: Vec<Head> = Vec::new();
    let mut indent = indentation(text);
    for above in (line.saturating_sub(LINES_ABOVE).max(1)..line).rev() {
        let Some(text) = sources.line(file, above) else { break };
        let code = code_of(&text, language).trim();
        let own = heads(&text, above, language);
        // A header directly above may have the same indentation as its body.
        let bare = above + 1 == line && indentation(&text) == indent && own.last().is_some_and(|head| head.body.trim().is_empty());
        if code.is_empty() || (indentation(&text) >= indent && !bare) || code.starts_with('#') {
            continue;
        }
        if own.is_empty() && !is_passed(code, language) {
            break;
        }
        // A loop that ends on its own line does not enclose the line.
        if own.last().is_none_or(|head| !complete(&head.body, language)) {
            indent = indentation(&text);
            nest.splice(0..0, own);
        }
    }
    nest
}

/// Whether a line with less indentation may stand between a statement and its loop: a condition, another loop, a brace, or the beginning of
/// a statement that continues on the next line. Any other line begins a function.
fn is_passed(code: &str, language: Language) -> bool {
    if language == Language::Fortran {
        let lower = code.to_ascii_lowercase();
        return lower.ends_with('&') || ["if", "else", "do", "select", "case"].iter().any(|word| lower.starts_with(word));
    }
    let first = words(code).next().unwrap_or_default();
    let control = ["if", "else", "while", "do", "switch", "case", "default", "try"].contains(&first);
    let continued = code.ends_with(['=', '+', '-', '*', '/', ',', '(', '?', '|', '&']);
    control || continued || matches!(code, "{" | "}")
}

/// The loop headers at the start of a line: one, or a nest written on one line.
fn heads(text: &str, line: u32, language: Language) -> Vec<Head> {
    let mut found = Vec::new();
    let mut rest = code_of(text, language).trim_start().trim_start_matches('}').trim_start();
    while let Some((variable, body)) = head(rest, language) {
        found.push(Head { variable, line, text: rest.trim_end().to_owned(), body: body.to_owned() });
        rest = body.trim_start();
    }
    found
}

/// The variable of the loop header that `code` begins with, and the text after the header.
fn head(code: &str, language: Language) -> Option<(String, &str)> {
    match language {
        Language::C | Language::Cpp => {
            let inside = code.strip_prefix("for")?.trim_start().strip_prefix('(')?;
            let end = closing(inside)?;
            let (header, body) = (inside.get(..end)?, inside.get(end + 1..)?);
            let declared = header.split([';', ':']).next()?.split('=').next()?;
            let is_counted = header.matches(';').count() == 2 || header.contains(" : ");
            let variable = words(declared).last().filter(|_| is_counted)?;
            Some((variable.to_owned(), body))
        }
        Language::Fortran => {
            let lower = code.to_ascii_lowercase();
            lower.strip_prefix("do ").filter(|rest| !rest.trim_start().starts_with("while"))?;
            let (declared, rest) = code.get(3..)?.split_once('=')?;
            let variable = words(declared).last()?;
            Some((variable.to_owned(), rest.split_once(';').map_or("", |(_, body)| body)))
        }
        Language::Rust | Language::Python => {
            let (variable, _) = code.strip_prefix("for ")?.split_once(" in ")?;
            Some((variable.trim().to_owned(), ""))
        }
    }
}

/// The start of a loop's body: the rest of the header's line, else the lines below, up to the first with a subscript.
fn body_of(sources: &dyn Sources, file: &str, head: &Head, language: Language) -> String {
    let mut body = head.body.clone();
    for below in head.line + 1..=head.line + BODY_BELOW {
        if body.contains(['[', '(']) {
            break;
        }
        let Some(text) = sources.line(file, below) else { break };
        body.push(' ');
        body.push_str(code_of(&text, language).trim());
    }
    body
}

/// The subscripts of `name` in a statement. If the statement uses another name for the object: the subscripts left of the first assignment,
/// or all subscripts if there are none on the left.
fn subscripts(body: &str, name: &str) -> String {
    let last = words(name).last().unwrap_or_default();
    let of_name: String = body.match_indices(last).filter(|(at, _)| !last.is_empty() && is_whole(body, *at, last)).fold(
        String::new(),
        |mut all, (at, found)| {
            all.push_str(&brackets(body.get(at + found.len()..).unwrap_or_default()));
            all
        },
    );
    if !of_name.is_empty() {
        return of_name;
    }
    let left = body.split('=').next().filter(|left| left.len() < body.len()).map(inside_brackets).unwrap_or_default();
    if left.is_empty() { inside_brackets(body) } else { left }
}

/// The contents of the brackets that `text` begins with: ` i j` for `[i][j] = 0`.
fn brackets(text: &str) -> String {
    let (mut rest, mut found) = (text.trim_start(), String::new());
    while let Some(inside) = rest.strip_prefix(['[', '(']) {
        let Some(end) = closing(inside) else { break };
        found.push(' ');
        found.push_str(inside.get(..end).unwrap_or_default());
        rest = inside.get(end + 1..).unwrap_or_default().trim_start();
    }
    found
}

fn inside_brackets(text: &str) -> String {
    let starts = text.match_indices(['[', '(']).map(|(at, _)| brackets(text.get(at..).unwrap_or_default()));
    starts.collect::<Vec<_>>().join(" ")
}

/// The position of the bracket that closes the one directly before `text`.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// The number of braces that `text` opens and does not close.
fn braces(text: &str) -> usize {
    text.matches('{').count().saturating_sub(text.matches('}').count())
}

/// Whether a loop's body ends on the line of its header.
fn complete(body: &str, language: Language) -> bool {
    let body = body.trim_end();
    match language {
        Language::Fortran => ["end do", "enddo"].iter().any(|end| body.to_ascii_lowercase().ends_with(end)),
        _ => braces(body) == 0 && body.ends_with([';', '}']),
    }
}

/// A line without its comment. Only the beginning of a very long line is used: such lines are generated.
pub(super) fn code_of(text: &str, language: Language) -> &str {
    let text = text.char_indices().nth(LONGEST_LINE).and_then(|(end, _)| text.get(..end)).unwrap_or(text);
    let comment = if language == Language::Fortran { "!" } else { "//" };
    text.split(comment).next().unwrap_or_default()
}

pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn is_whole(text: &str, at: usize, word: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + word.len()..).unwrap_or_default());
    !is_word(before.chars().next_back()) && !is_word(after.chars().next())
}

fn same_name(a: &str, b: &str, language: Language) -> bool {
    if language == Language::Fortran { a.eq_ignore_ascii_case(b) } else { a == b }
}

pub(super) fn indentation(text: &str) -> usize {
    text.chars().take_while(|c| c.is_whitespace()).map(|c| if c == '\t' { 8 } else { 1 }).sum()
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

    fn code(source: &'static str, line: u32, language: Language, name: &str) -> Option<String> {
        indexing_loop(&Text(source), "", line, language, name).map(|found| found.code(language))
    }

    /// Check that the outermost loop whose variable indexes the object is found, and no other.
    #[test]
    fn the_outermost_loop_that_indexes() {
        let nest = "void f(void)\n{\n    x = 1;\n    for (i = 0; i < m; i++) {\n        for (j = 0; j < n; j++)\n            A[i][j] = 0;\n    }\n}\n";
        assert_eq!(code(nest, 6, Language::C, "A").as_deref(), Some("for (i = 0; i < m; i++) {\n    ...\n}"));
        // The header of an inner loop represents its body.
        assert_eq!(code(nest, 5, Language::C, "A").as_deref(), Some("for (i = 0; i < m; i++) {\n    ...\n}"));
        assert_eq!(code(nest, 3, Language::C, "x"), None);
        let fortran = "program p\n  do j = 1, n\n    do I = 1, n\n      u(i,j) = 0 ! (t)\n    end do\n  end do\n";
        assert_eq!(code(fortran, 4, Language::Fortran, "u").as_deref(), Some("do j = 1, n\n  ...\nend do"));
        assert_eq!(code(fortran, 99, Language::Fortran, "u"), None);
    }

    /// Check that a loop over time steps, whose variable indexes nothing, is never chosen.
    #[test]
    fn time_steps_are_not_divided() {
        let steps = "int main(void) {\n    for (int r = 0; r < 20; r++) {\n        double *work = malloc(n);\n        \
                     for (size_t i = 0; i < n; i++) work[i] = i;\n        *work = r;\n        fill(work);\n    }\n}\n";
        assert_eq!(code(steps, 4, Language::C, "work").as_deref(), Some("for (size_t i = 0; i < n; i++) work[i] = i;"));
        assert_eq!(code(steps, 5, Language::C, "work"), None);
        assert_eq!(code(steps, 6, Language::C, "work"), None);
        let below = "for (int t = 0; t < steps; t++) {\n  if (t == 0)\n    for (i = 0; i < n; i++) {\n      a[i] = t;\n    }\n}\n";
        assert_eq!(code(below, 4, Language::C, "a").as_deref(), Some("for (i = 0; i < n; i++) {\n    ...\n}"));
        let pointer = "for (int t = 0; t < steps; t++)\n  while (p < end)\n    *p++ = t;\n";
        assert_eq!(code(pointer, 3, Language::C, "p"), None);
    }

    /// Check that a loop on one line is shown unchanged, and that loops beside the line do not count.
    #[test]
    fn loops_on_one_line() {
        let one = "    for (size_t i = 0; i < n; i++) { a[i] = i; b[i] = i; }\n    for (i = 0; i < m; i++) c[i] = 0;\n    d[k] = 1;\n";
        assert_eq!(code(one, 1, Language::C, "b").as_deref(), Some("for (size_t i = 0; i < n; i++) { a[i] = i; b[i] = i; }"));
        assert_eq!(code(one, 3, Language::C, "d"), None);
        let nested = "for (i = 0; i < n; i++) for (j = 0; j < n; j++) p[i * n + j] = 0;\n";
        assert_eq!(code(nested, 1, Language::C, "p").as_deref(), nested.lines().next());
        let open = "for (i = 0; i < n; i++) { a[i] = 0;\n  b[i] = 0; }\n";
        assert_eq!(code(open, 1, Language::C, "a").as_deref(), Some("for (i = 0; i < n; i++) { a[i] = 0;\n    ...\n}"));
    }

    /// Check that another name for the object, a call, C++ operators and range loops are recognised.
    #[test]
    fn ways_to_index() {
        let other = "for (i = 0; i < n; i++)\n    row[i] = old[t];\n";
        assert!(code(other, 2, Language::C, "grid->data").is_some_and(|text| text.starts_with("for (i")));
        let operator = "for (auto i = 0u; i < n; ++i)\n  for (auto j = 0u; j < n; ++j)\n    m(i, j) = 0;\n";
        assert!(code(operator, 3, Language::Cpp, "m").is_some_and(|text| text.starts_with("for (auto i")));
        assert!(code("for (double &x : v) x = 0;\n", 1, Language::Cpp, "v").is_some());
        let continued = "for (i = 0; i < n; i++)\n    a[i] =\n        b[i];\n";
        assert!(code(continued, 3, Language::C, "a").is_some_and(|text| text.starts_with("for (i")));
    }

    /// Check that malformed lines do not cause a panic.
    #[test]
    fn odd_lines() {
        for source in ["for (", "for (;;)", "for (;;) {", "do =", "for in", "}}}", "for (i = 0; i < n; i++) é[i] = 'x';", "a[", "a]["] {
            for language in [Language::C, Language::Cpp, Language::Fortran, Language::Rust, Language::Python] {
                let _ = code(source, 1, language, "a");
                let _ = code(source, 1, language, "");
            }
        }
    }
}
