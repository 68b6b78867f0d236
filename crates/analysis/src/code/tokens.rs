//! Words of C and C++ source text, without comments.

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    Number,
    /// A string or a character.
    Text,
    Mark,
    /// A line that begins with `#`, with its continuation lines.
    Directive,
}

/// A word of the source, with its place: `line` from 1, `start` and `end` in bytes of that line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub text: String,
    pub line: u32,
    pub start: usize,
    pub end: usize,
}

impl Token {
    pub fn is(&self, text: &str) -> bool {
        self.text == text && matches!(self.kind, Kind::Mark | Kind::Word)
    }

    /// The text of an OpenMP directive, after `#pragma omp`.
    pub fn omp(&self) -> Option<&str> {
        let rest = self.text.strip_prefix('#').filter(|_| self.kind == Kind::Directive)?.trim_start();
        rest.strip_prefix("pragma")?.trim_start().strip_prefix("omp").filter(|rest| rest.starts_with(char::is_whitespace))
    }

    /// Conditional compilation: which lines the compiler sees is not known.
    pub fn is_conditional(&self) -> bool {
        let word = self.text.trim_start_matches('#').trim_start();
        self.kind == Kind::Directive && ["if", "el", "end"].iter().any(|start| word.starts_with(start))
    }
}

/// Marks of several characters, longest first.
const MARKS: &[&str] = &[
    "<<=", ">>=", "...", "->*", "::", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=",
    "|=", "^=",
];

/// The tokens of a file. `None` if a comment or text does not end, or at raw strings.
pub(crate) fn tokens(lines: &[String]) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut in_comment = false;
    let mut directive: Option<Token> = None;
    for (index, line) in lines.iter().enumerate() {
        let number = u32::try_from(index + 1).ok()?;
        let code = without_comments(line, &mut in_comment)?;
        let text = code.trim();
        if directive.is_some() || text.starts_with('#') {
            let continues = text.ends_with('\\');
            let text = text.trim_end_matches('\\').trim_end();
            let start = code.len() - code.trim_start().len();
            let token = directive.take().map_or_else(
                || Token { kind: Kind::Directive, text: text.to_owned(), line: number, start, end: code.len() },
                |open| Token { text: format!("{} {text}", open.text), ..open },
            );
            if continues {
                directive = Some(token)
            } else {
                found.push(token)
            }
            continue;
        }
        line_tokens(&code, number, &mut found)?;
    }
    (!in_comment && directive.is_none()).then_some(found)
}

/// The line with blanks in place of comments.
fn without_comments(line: &str, in_comment: &mut bool) -> Option<String> {
    let mut code = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let taken = if *in_comment {
            let end = rest.find("*/").map_or(rest.len(), |at| at + 2);
            *in_comment = !rest.get(..end)?.ends_with("*/");
            code.extend(std::iter::repeat_n(' ', end));
            end
        } else if rest.starts_with("//") {
            code.extend(std::iter::repeat_n(' ', rest.len()));
            rest.len()
        } else if rest.starts_with("/*") {
            *in_comment = true;
            code.push_str("  ");
            2
        } else if first == '"' || (first == '\'' && !code.ends_with(|c: char| c.is_ascii_digit())) {
            let end = end_of_text(rest, first)?;
            code.push_str(rest.get(..end)?);
            end
        } else {
            code.push(first);
            first.len_utf8()
        };
        rest = rest.get(taken..)?;
    }
    Some(code)
}

/// The length of the string that `text` begins with, quotes included.
fn end_of_text(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().skip(1).find_map(|(at, c)| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at + 1)
    })
}

fn line_tokens(code: &str, line: u32, found: &mut Vec<Token>) -> Option<()> {
    let mut at = 0;
    while let Some(first) = code.get(at..)?.chars().next() {
        let rest = code.get(at..)?;
        let length = |is: &dyn Fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        if first.is_whitespace() || rest == "\\" {
            at += first.len_utf8();
            continue;
        }
        let is_number = first.is_ascii_digit() || (first == '.' && rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit()));
        let (kind, size) = if first.is_alphabetic() || first == '_' {
            (Kind::Word, length(&|c| c.is_alphanumeric() || c == '_'))
        } else if is_number {
            (Kind::Number, number_length(rest))
        } else if first == '"' || first == '\'' {
            (Kind::Text, end_of_text(rest, first)?)
        } else {
            (Kind::Mark, MARKS.iter().find(|mark| rest.starts_with(**mark)).map_or(first.len_utf8(), |mark| mark.len()))
        };
        let text = rest.get(..size)?;
        // `R"(...)"`, `u8R"..."`: raw text follows.
        if kind == Kind::Word && text.ends_with('R') && rest.get(size..)?.starts_with('"') {
            return None;
        }
        found.push(Token { kind, text: text.to_owned(), line, start: at, end: at + size });
        at += size;
    }
    Some(())
}

/// `1`, `0x1fULL`, `1.5e-3`, `1'000`.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let is_hex = text.starts_with("0x") || text.starts_with("0X");
    for (at, c) in text.char_indices() {
        let sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E' | 'p' | 'P') && (!is_hex || matches!(before, 'p' | 'P'));
        if !(c.is_ascii_alphanumeric() || c == '.' || c == '\'' || c == '_' || sign) {
            return at;
        }
        before = c;
    }
    text.len()
}

/// The position after the bracket that closes the one at `open`.
pub(crate) fn after_bracket(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.kind != Kind::Mark {
            continue;
        }
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// The words of a text, for short texts such as a clause.
pub(crate) fn of_text(text: &str) -> Option<Vec<Token>> {
    tokens(&[text.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Option<Vec<String>> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        Some(tokens(&lines)?.into_iter().map(|token| token.text).collect())
    }

    /// Check words, numbers, texts and marks.
    #[test]
    fn words_and_marks() {
        for (text, expected) in [
            ("a[i]+=1.5e-3;", "a [ i ] += 1.5e-3 ;"),
            ("p->x++ // no", "p -> x ++"),
            ("f(\"a // b\", '\\'') /* c\n d */ g", "f ( \"a // b\" , '\\'' ) g"),
            ("0x1fULL<<2 1'000 .5", "0x1fULL << 2 1'000 .5"),
            ("std::vector<double> v", "std :: vector < double > v"),
        ] {
            assert_eq!(list(text).map(|list| list.join(" ")).as_deref(), Some(expected), "{text}");
        }
    }

    /// Check that directives are one token with their continuation lines, and that odd texts give nothing and no panic.
    #[test]
    fn directives_and_odd_texts() {
        let lines = list("#define X \\\n  1\n  #pragma omp parallel for\nint é = X;").unwrap();
        assert_eq!(lines[..2], ["#define X 1", "#pragma omp parallel for"]);
        for odd in ["/* open", "\"open", "R\"(raw)\"", "#define A \\"] {
            assert_eq!(list(odd), None, "{odd}");
        }
        assert_eq!(list("é@\u{1F600}").map(|list| list.len()), Some(3));
        let omp = of_text("  #  pragma omp parallel for").unwrap();
        assert_eq!(omp[0].omp().map(str::trim), Some("parallel for"));
    }
}
