//! Words and statements of Rust source text, as far as a call after a statement needs them.

use super::regions::File;
use super::tokens::{Kind, Token, after_bracket};
use crate::Sources;
use std::ops::Range;

/// Marks of several characters, longest first. `>>` are two marks, which mostly close two lists of types.
const MARKS: &[&str] = &[
    "..=", "...", "<<=", "::", "->", "=>", "..", "<<", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
];

impl File {
    /// A file of Rust. The other functions of `File` that count brackets and words hold for it too.
    pub fn read_rust(sources: &dyn Sources, path: &str) -> Option<Self> {
        let lines = super::lines_of(sources, path)?;
        let tokens = tokens(&lines)?;
        Some(Self { path: path.to_owned(), lines, tokens })
    }

    /// The innermost statement on a line that gives this variable or field its value.
    pub fn rust_assignment(&self, line: u32, holder: &str) -> Option<Assignment> {
        let ends_statement = |token: &Token| token.is(";") || token.is("{") || token.is("}");
        let begins = |at: &usize| at.checked_sub(1).is_none_or(|before| self.tokens.get(before).is_some_and(ends_statement));
        let starts = (0..self.on_line(line).end).rev().filter(begins);
        let mut found = starts.filter_map(|start| assignment(&self.tokens, start, holder));
        found.find(|one| self.tokens.get(one.range.end - 1).is_some_and(|last| last.line >= line))
    }

    /// The opening braces around a token, outermost first.
    pub fn braces_around(&self, at: usize) -> Vec<usize> {
        let mut open = Vec::new();
        for (index, token) in self.tokens.iter().enumerate().take(at) {
            if token.is("{") {
                open.push(index);
            } else if token.is("}") {
                open.pop();
            }
        }
        open
    }
}

/// `let mut a: Vec<f64> = VALUE;` or `self.a = VALUE;`
pub(crate) struct Assignment {
    pub range: Range<usize>,
    /// Whether it declares the variable.
    pub is_new: bool,
    /// Whether it declares it as mutable.
    pub is_mutable: bool,
    /// The tokens of the declared type; empty without one.
    pub kind: Range<usize>,
    pub value: Range<usize>,
}

/// The statement that begins at a token, if it is one that gives the holder (`a`, `self.a`) its value.
fn assignment(tokens: &[Token], start: usize, holder: &str) -> Option<Assignment> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|t| t.is(text));
    let is_new = is(start, "let");
    let is_mutable = is_new && is(start + 1, "mut");
    let first = start + usize::from(is_new) + usize::from(is_mutable);
    let mut at = first;
    loop {
        tokens.get(at).filter(|t| t.kind == Kind::Word)?;
        at += 1;
        if is_new || !is(at, ".") {
            break;
        }
        at += 1;
    }
    let is_it = super::expression::text_of(tokens.get(first..at)?) == holder;
    let end = end_of_statement(tokens, start).filter(|_| is_it)?;
    let equals = if is(at, ":") { (at..end).find(|at| is(*at, "="))? } else { at };
    let kind = if equals > at { at + 1..equals } else { at..at };
    let value = equals + 1..end - 1;
    is(equals, "=").then_some(Assignment { range: start..end, is_new, is_mutable, kind, value })
}

/// The position after the semicolon of the statement that begins at a token.
pub(crate) fn end_of_statement(tokens: &[Token], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let token = tokens.get(at)?;
        match token.text.as_str() {
            "(" | "[" | "{" if token.kind == Kind::Mark => at = after_bracket(tokens, at)?,
            ")" | "]" | "}" if token.kind == Kind::Mark => return None,
            ";" => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// What a line begins in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Code,
    /// Comments nest.
    Comment(usize),
    Text,
    /// A raw string with so many `#`.
    Raw(usize),
}

/// The tokens of a file; `None` if a comment or string does not end. Of a string, the token has the beginning only.
fn tokens(lines: &[String]) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut within = Within::Code;
    for (index, line) in lines.iter().enumerate() {
        let number = u32::try_from(index + 1).ok()?;
        let mut at = 0;
        while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
            let (kind, size) = step(rest, &mut within);
            let end = (at + size).min(line.len());
            found.extend(kind.map(|kind| Token {
                kind,
                text: line.get(at..end).unwrap_or_default().to_owned(),
                line: number,
                start: at,
                end,
            }));
            at = end;
        }
    }
    (within == Within::Code).then_some(found)
}

/// The kind and length of what a text begins with; no kind for blanks, comments, and the rest of a string.
fn step(text: &str, within: &mut Within) -> (Option<Kind>, usize) {
    let first = text.chars().next().map_or(1, char::len_utf8);
    match *within {
        Within::Code => in_code(text, within),
        Within::Comment(depth) if text.starts_with("*/") => {
            *within = if depth > 1 { Within::Comment(depth - 1) } else { Within::Code };
            (None, 2)
        }
        Within::Comment(depth) if text.starts_with("/*") => {
            *within = Within::Comment(depth + 1);
            (None, 2)
        }
        Within::Text if text.starts_with('\\') => (None, 1 + text.chars().nth(1).map_or(0, char::len_utf8)),
        Within::Text if text.starts_with('"') => {
            *within = Within::Code;
            (None, 1)
        }
        Within::Raw(marks) if text.strip_prefix('"').is_some_and(|rest| rest.bytes().take_while(|b| *b == b'#').count() >= marks) => {
            *within = Within::Code;
            (None, 1 + marks)
        }
        Within::Comment(_) | Within::Text | Within::Raw(_) => (None, first),
    }
}

fn in_code(text: &str, within: &mut Within) -> (Option<Kind>, usize) {
    let Some(first) = text.chars().next() else { return (None, 1) };
    if first.is_whitespace() {
        return (None, first.len_utf8());
    }
    if text.starts_with("//") {
        return (None, text.len());
    }
    if text.starts_with("/*") {
        *within = Within::Comment(1);
        return (None, 2);
    }
    if let Some((marks, size)) = raw_string(text) {
        *within = Within::Raw(marks);
        return (Some(Kind::Text), size);
    }
    if first == '"' {
        *within = Within::Text;
        return (Some(Kind::Text), 1);
    }
    if first == '\'' {
        return (Some(Kind::Text), quoted(text));
    }
    let length = |is: &dyn Fn(char) -> bool| text.find(|c| !is(c)).unwrap_or(text.len());
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    if first.is_ascii_digit() {
        return (Some(Kind::Number), number_length(text));
    }
    if in_word(first) {
        return (Some(Kind::Word), length(&in_word));
    }
    (Some(Kind::Mark), MARKS.iter().find(|mark| text.starts_with(**mark)).map_or(first.len_utf8(), |mark| mark.len()))
}

/// `r"`, `br##"`: the number of `#`, and the length of the beginning.
fn raw_string(text: &str) -> Option<(usize, usize)> {
    let rest = ["r", "br", "cr"].iter().find_map(|prefix| text.strip_prefix(prefix).filter(|rest| rest.starts_with(['#', '"'])))?;
    let marks = rest.bytes().take_while(|b| *b == b'#').count();
    rest.get(marks..)?.starts_with('"').then_some((marks, text.len() - rest.len() + marks + 1))
}

/// The length of a character in quotes, or of a lifetime.
fn quoted(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    let Some((_, first)) = characters.next() else { return 1 };
    if first == '\\' {
        // `'\''`, `'\u{1F600}'`
        return text.char_indices().skip(3).find(|(_, c)| *c == '\'').map_or(text.len(), |(at, _)| at + 1);
    }
    match characters.next() {
        Some((at, '\'')) => at + 1,
        _ => 1 + text.get(1..).and_then(|rest| rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))).unwrap_or(text.len() - 1),
    }
}

/// `1.25_f64`, `1e-3`, `0x1f`; of `0..n` the 0, and of `1.max(n)` the 1.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let is_hex = text.starts_with("0x");
    for (at, c) in text.char_indices() {
        let is_point = c == '.' && text.get(at + 1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let is_sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E') && !is_hex;
        if !(c.is_ascii_alphanumeric() || c == '_' || is_point || is_sign) {
            return at;
        }
        before = c;
    }
    text.len()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn file(text: &str) -> File {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let tokens = tokens(&lines).unwrap();
        File { path: "a.rs".into(), lines, tokens }
    }

    fn list(text: &str) -> Option<String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        Some(tokens(&lines)?.into_iter().map(|token| token.text).collect::<Vec<_>>().join(" "))
    }

    /// Check words, numbers, texts, lifetimes and comments.
    #[test]
    fn words_and_marks() {
        for (text, expected) in [
            ("vec![1.25_f64; N]", "vec ! [ 1.25_f64 ; N ]"),
            ("0..n 0..=9 1.max(2) 1e-3+x 0x1e-3", "0 .. n 0 ..= 9 1 . max ( 2 ) 1e-3 + x 0x1e - 3"),
            ("fn f<'a>(x: &'a str) -> char { 'x' }", "fn f < 'a > ( x : & 'a str ) -> char { 'x' }"),
            (r"'\'' '\u{1F600}' b'\\' 'é'", r"'\'' '\u{1F600}' b '\\' 'é'"),
            ("a(\"// \\\" }\", r#\"\" {\"#) /* c /* d */ \n */ b // e", "a ( \" , r#\" ) b"),
            ("\"one\n two\" x", "\" x"),
        ] {
            assert_eq!(list(text).as_deref(), Some(expected), "{text}");
        }
        for odd in ["/* /* */", "\"open", "r#\"open\""] {
            assert_eq!(list(odd), None, "{odd}");
        }
    }

    /// Check what gives variables and fields their values, also across lines, and what does not.
    #[test]
    fn assignments() {
        let one = |text: &str, line: u32, holder: &str| {
            let file = file(text);
            let found = file.rust_assignment(line, holder)?;
            let text = |range: Range<usize>| super::super::expression::text_of(file.tokens.get(range).unwrap());
            Some(format!("{} {} {}={}", found.is_new, found.is_mutable, text(found.kind), text(found.value)))
        };
        let within = |text: &str, holder: &str| one(&format!("fn f() {{\n{text}\n}}"), 2, holder);
        for (text, holder, expected) in [
            ("let mut a = vec![0.0; n];", "a", "true true =vec![0.0;n]"),
            ("let a: Vec<f64> = b;", "a", "true false Vec<f64>=b"),
            ("if x { self.grid.a = b; }", "self.grid.a", "false false =b"),
            ("let a = if c { d } else { e };", "a", "true false =if c{d}else{e}"),
        ] {
            assert_eq!(within(text, holder).as_deref(), Some(expected), "{text}");
        }
        for text in ["let (a, b) = c;", "a[i] = b;", "*a = b;", "a += b;", "f(a = b);", "#[cfg(x)] let a = b;", "static a: usize = 1;", "a"]
        {
            assert_eq!(within(text, "a"), None, "{text}");
        }
        let long = "fn f() {\n let a: Vec<f64> = (0..n)\n  .map(|i| { let x = i; x as f64 })\n  .collect();\n}";
        for line in 2..=4 {
            assert_eq!(one(long, line, "a").as_deref(), Some("true false Vec<f64>=(0..n).map(|i|{let x=i;x as f64}).collect()"));
        }
        assert_eq!((one(long, 3, "x").as_deref(), one(long, 1, "a"), one(long, 5, "a")), (Some("true false =i"), None, None));
    }
}
