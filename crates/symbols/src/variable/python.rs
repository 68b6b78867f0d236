//! Python: the place of an expression in its statement tells what becomes of its result.

use super::text::{Text, is_keyword, is_word};
use super::{STATEMENT_LINES, continues, explicit};

/// Longer expressions are shown as `np.where(...)`.
const LONGEST_EXPRESSION: usize = 40;
/// Stands for `//`, which would begin a comment in other languages.
const FLOOR_DIVISION: &str = "\u{f7}\u{f7}";

/// What becomes of the result of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PythonValue {
    /// It is assigned to this variable, or part of what is.
    Assigned(String),
    /// It has no variable: it is the argument of a call, or returned. The text of the expression.
    Unassigned(String),
}

/// What becomes of the expression of a Python statement that begins at this byte (from 0) of `source[line_index]`. `None` if it is not
/// certain.
#[must_use]
pub fn python_value(source: &[&str], line_index: usize, column: usize) -> Option<PythonValue> {
    let (joined, own) = statement(source, line_index)?;
    let line = source.get(line_index)?;
    let text = Text::new(&joined);
    let place = own + line.get(..column)?.chars().count();
    let (start, end) = simple_statement(&text, place)?;
    if place < start || !is_word(text.at(place)) && !"([{'\"-~+".contains(text.at(place)) {
        return None;
    }
    let equals = assignments(&text, start, end);
    // `a: Type = value` and `a = b = value`: the value follows the last `=`.
    let Some(equals) = equals.last().copied().filter(|equals| *equals < place) else {
        let container = if equals.is_empty() { None } else { container(&text, start, place) };
        let expression = || PythonValue::Unassigned(expression(&text, start, end, place));
        return Some(container.map_or_else(expression, PythonValue::Assigned));
    };
    if is_argument(&text, equals + 1, place) {
        return Some(PythonValue::Unassigned(expression(&text, equals + 1, end, place)));
    }
    let (from, to) = without_brackets(&text, equals + 1, end);
    let values = text.split_commas(from, to);
    let number = values.iter().position(|(from, to)| (*from..*to).contains(&place))?;
    // `a, b = make(n)` gives both to one call.
    let name = explicit::assigned(&text, equals, if values.len() > 1 { number } else { 0 })?;
    let is_one_of_many = values.len() == 1 && explicit::assigned(&text, equals, 1).is_some_and(|second| second != name);
    (!is_one_of_many).then_some(PythonValue::Assigned(name))
}

/// `words` for the place of `words[key]` in `words[key] = value`: a container that grows by an assignment.
fn container(text: &Text, start: usize, place: usize) -> Option<String> {
    let is_path = |at: &usize| is_word(text.at(*at)) || text.at(*at) == '.';
    let end = (place..text.len()).find(|at| !is_path(at))?;
    let is_target = end > place && text.at(end) == '[' && enclosing(text, start, place).is_none();
    is_target.then(|| text.source(place, end))
}

/// Whether a string begins here: `'`, `f"`, `rb'`.
fn begins_string(text: &Text, place: usize) -> bool {
    let prefix = (place..place + 2).take_while(|at| "rbfuRBFU".contains(text.at(*at))).count();
    "'\"".contains(text.at(place + prefix))
}

/// The inside of `(a, b)`.
fn without_brackets(text: &Text, start: usize, end: usize) -> (usize, usize) {
    let open = text.skip_blanks(start);
    let close = text.closing(open);
    let is_whole = text.at(open) == '(' && close < end && text.skip_blanks(close + 1) >= end;
    if is_whole { (open + 1, close) } else { (start, end) }
}

/// The text of a statement, and where the line begins in it, in characters.
fn statement(source: &[&str], line_index: usize) -> Option<(String, usize)> {
    let code = |index: usize| Some(source.get(index)?.replace("//", FLOOR_DIVISION));
    let joins = |above: usize| Some(continues(&code(above)?, &code(above + 1)?));
    let mut first = line_index;
    while first > 0 && joins(first - 1)? {
        first -= 1;
        if line_index - first > STATEMENT_LINES {
            return None;
        }
    }
    let mut last = line_index;
    while last - line_index < STATEMENT_LINES && joins(last).unwrap_or(false) {
        last += 1;
    }
    let mut joined = String::new();
    let mut own = 0;
    for (index, part) in source.iter().enumerate().take(last + 1).skip(first) {
        if index == line_index {
            own = joined.chars().count();
        }
        let part = &part.replace("//", FLOOR_DIVISION);
        let length = part.chars().count();
        // A comment would hide the lines below it.
        let comment = Text::new(part).comment(length);
        let code: String = part.chars().take(comment).collect();
        joined.push_str(code.trim_end().trim_end_matches('\\'));
        joined.push(' ');
    }
    Some((joined, own))
}

/// The simple statement around a place: between semicolons, after the colon of `if x:`.
fn simple_statement(text: &Text, wanted: usize) -> Option<(usize, usize)> {
    const COMPOUND: &[&str] = &["if", "elif", "else", "for", "while", "with", "try", "except", "finally", "def", "class", "case", "async"];
    let mut start = text.skip_blanks(0);
    let mut place = start;
    while place < text.len() {
        match text.at(place) {
            '(' | '[' | '{' => place = text.closing(place),
            ':' if COMPOUND.contains(&text.code(start, text.word_end(start)).as_str()) => {
                if wanted < place {
                    return None;
                }
                start = text.skip_blanks(place + 1);
            }
            ';' if wanted < place => return Some((start, place)),
            ';' => start = text.skip_blanks(place + 1),
            _ => {}
        }
        place += 1;
    }
    Some((start, text.len()))
}

/// The `=` of a statement that are not in brackets.
fn assignments(text: &Text, start: usize, end: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut place = start;
    while place < end {
        match text.at(place) {
            '(' | '[' | '{' => place = text.closing(place),
            '=' if text.assigns(place) => found.push(place),
            _ => {}
        }
        place += 1;
    }
    found
}

/// The bracket that a place is in, the innermost.
fn enclosing(text: &Text, start: usize, place: usize) -> Option<usize> {
    (start..place).rev().find(|open| matches!(text.at(*open), '(' | '[' | '{') && text.closing(*open) > place)
}

/// Whether a place is in the brackets of a call (or of an index).
fn is_argument(text: &Text, start: usize, mut place: usize) -> bool {
    while let Some(open) = enclosing(text, start, place) {
        let before = text.skip_blanks_back(open);
        let word = text.code(text.word_start(before), before);
        if matches!(text.before(before), ')' | ']') || (is_word(text.before(before)) && !is_keyword(&word)) {
            return true;
        }
        place = open;
    }
    false
}

/// Where the `for` of a comprehension begins; the end of the text if it contains no `for`.
fn before_for(text: &Text, start: usize, end: usize) -> usize {
    let mut place = start;
    while place < end {
        match text.at(place) {
            '(' | '[' | '{' => place = text.closing(place),
            'f' if !is_word(text.before(place)) && text.code(place, text.word_end(place)) == "for" => return place,
            _ => {}
        }
        place += 1;
    }
    end
}

/// The expression from a place to the end of its argument, without blanks.
fn expression(text: &Text, start: usize, end: usize, place: usize) -> String {
    let (from, to) = match enclosing(text, start, place) {
        Some(open) => (open + 1, text.closing(open).min(end)),
        None => (start, end),
    };
    if ["import", "from"].contains(&text.code(start, text.word_end(start)).as_str()) {
        return "an import".to_owned();
    }
    if begins_string(text, place) {
        return "a string".to_owned();
    }
    let to = text.split_commas(from, to).into_iter().find(|(from, to)| (*from..*to).contains(&place)).map_or(to, |(_, to)| to);
    let to = before_for(text, place, to);
    let code_end = text.skip_blanks_back((place..to).rev().find(|at| !text.code(*at, *at + 1).trim().is_empty()).map_or(to, |at| at + 1));
    let whole = text.source(place, code_end).replace(FLOOR_DIVISION, "//");
    if whole.chars().count() <= LONGEST_EXPRESSION {
        return whole;
    }
    let callee: String = whole.chars().take_while(|c| is_word(*c) || *c == '.').collect();
    if callee.is_empty() || callee.chars().count() > LONGEST_EXPRESSION {
        return "an expression".to_owned();
    }
    let brackets = if whole[callee.len()..].starts_with('[') { "[...]" } else { "(...)" };
    format!("{callee}{brackets}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the variable, or the expression in backquotes.
    fn value(lines: &[&str], index: usize, column: usize) -> String {
        match python_value(lines, index, column) {
            Some(PythonValue::Assigned(name)) => name,
            Some(PythonValue::Unassigned(text)) => format!("`{text}`"),
            None => "?".to_owned(),
        }
    }

    /// Check the variable of each expression of a line: the positions of carets below the line, left to right.
    #[test]
    fn expressions_of_a_line() {
        for (line, carets, expected) in [
            (
                "p = np.random.rand(n); q = np.random.rand(n); r = np.empty(n)",
                "    ^                      ^                      ^",
                &["p", "q", "r"][..],
            ),
            ("a, b = np.zeros(n), np.ones(n)", "       ^            ^", &["a", "b"]),
            ("(a, b) = (np.zeros(n), np.ones(n))", "          ^            ^", &["a", "b"]),
            ("a, b = make(n)", "       ^", &["?"]),
            ("a = b = np.zeros(n)", "        ^", &["b"]),
            ("a = np.zeros(n) * 2 + np.ones(n)", "    ^                 ^", &["a", "a"]),
            ("c = np.sin(np.arange(n))", "    ^      ^", &["c", "`np.arange(n)`"]),
            ("c = np.dot(a + b, np.ones((n, n // 2)))", "    ^      ^      ^", &["c", "`a+b`", "`np.ones((n,n//2))`"]),
            ("rows = [np.zeros(n), np.ones(n)]", "        ^            ^", &["rows", "rows"]),
            ("rows = {'a': np.zeros(n)}", "             ^", &["rows"]),
            ("self.u[k] = np.zeros(n // 2); v = np.ones(n)", "            ^                     ^", &["self.u[k]", "v"]),
            ("a: np.ndarray = np.zeros(n)", "                ^", &["a"]),
            ("if n > 3: a = np.zeros(n); b = np.ones(n)", "              ^                ^", &["a", "b"]),
            ("for a in np.zeros((n, n)): b = np.ones(n)", "         ^                     ^", &["?", "b"]),
            ("return np.zeros(n)", "       ^", &["`np.zeros(n)`"]),
            ("use(np.zeros(n), key=np.ones(n))", "    ^                ^", &["`np.zeros(n)`", "`np.ones(n)`"]),
            ("a = f(x=np.zeros(n))  # b = np.ones(n)", "        ^", &["`np.zeros(n)`"]),
            ("d = DataFrame({c: np.ones(n) for c in names})", "                  ^", &["`np.ones(n)`"]),
            ("import numpy as np", "^", &["`an import`"]),
            ("a += np.zeros(n)", "     ^", &["`np.zeros(n)`"]),
            // A string's own text is not a name; what grows by an assignment is the container.
            (
                "words[f\"w{i % 200000}\"] = words.get(f\"w{i % 200000}\", 0) + i",
                "^     ^                   ^         ^",
                &["words", "`a string`", "words[f\"w{i%200000}\"]", "`a string`"],
            ),
            ("self.seen[k][n] = v; x = f(rb'a', a)", "^                          ^      ^", &["self.seen", "`a string`", "`a`"]),
            ("x = 1; y[k] += np.ones(n)", "       ^", &["`y[k]+=np.ones(n)`"]),
            ("ä = 'ö;='; b = np.zeros(n)", "                 ^", &["b"]),
        ] {
            let found: Vec<String> = carets.match_indices('^').map(|(column, _)| value(&[line], 0, column)).collect();
            assert_eq!(found, expected, "{line}");
        }
    }

    /// Check statements that span lines, and columns outside of any.
    #[test]
    fn expressions_of_several_lines() {
        let source = ["a = np.concatenate([  # parts", "    np.zeros(n),", "    x])", "b = \\", "    np.ones(n)", "", "c = f("];
        assert_eq!(value(&source, 0, 4), "a");
        assert_eq!(value(&source, 1, 4), "`np.zeros(n)`");
        assert_eq!(value(&source, 4, 4), "b");
        let divides = ["own = np.empty(N // 2)", "res = [0] * W", "use(np.zeros(n // 2))"];
        assert_eq!((value(&divides, 0, 6), value(&divides, 2, 4)), ("own".to_owned(), "`np.zeros(n//2)`".to_owned()));
        let long = ["x = np.where(conditions_of_the_boundary > 0.0, left_hand_side, right_hand_side)"];
        assert_eq!(value(&["use(np.where(conditions_of_the_boundary > 0.0, left_hand_side, right))"], 0, 4), "`np.where(...)`");
        assert_eq!(value(&long, 0, 4), "x");
        for (index, column) in [(0, 0), (0, 99), (5, 0), (6, 6), (9, 0), (1, usize::MAX)] {
            let found = value(&source, index, column);
            assert!(found == "?" || found.starts_with('`'), "{index} {column}: {found}");
        }
    }
}
