//! What is around a line of a C or C++ file: functions, loops, statements and OpenMP directives.

use super::syntax::end_of;
use super::tokens::{Kind, Token, after_bracket, of_text, tokens};
use crate::Sources;
use std::ops::Range;

/// A C or C++ file.
pub(crate) struct File {
    pub path: String,
    pub lines: Vec<String>,
    pub tokens: Vec<Token>,
}

/// An OpenMP directive around a place, with its clauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    /// The words after `#pragma omp`, without those in clauses' brackets: `parallel for num_threads schedule`.
    pub words: Vec<String>,
    clauses: Vec<(String, String)>,
}

impl Directive {
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| own == word)
    }

    /// The text in the brackets of a clause.
    pub fn clause(&self, name: &str) -> Option<&str> {
        self.clauses.iter().find(|(own, _)| own == name).map(|(_, text)| text.as_str())
    }

    /// The directive with this text after `#pragma omp` or `!$omp`.
    pub fn read_words(text: &str) -> Option<Self> {
        let list = of_text(text)?;
        let (mut words, mut clauses, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(token) = list.get(at) {
            at += 1;
            if token.kind != Kind::Word {
                continue;
            }
            words.push(token.text.clone());
            if list.get(at).is_some_and(|t| t.is("(")) {
                let after = after_bracket(&list, at)?;
                let inside = list.get(at + 1..after - 1)?;
                let range = inside.first().map_or(0, |t| t.start)..inside.last().map_or(0, |t| t.end);
                clauses.push((token.text.clone(), text.get(range)?.to_owned()));
                at = after;
            }
        }
        Some(Self { words, clauses })
    }
}

/// Directives that apply to no statement.
const ALONE: &[&str] = &["barrier", "flush", "taskwait", "taskyield", "threadprivate", "declare", "requires", "cancel", "cancellation"];
const CONTROL: &[&str] = &["if", "else", "for", "while", "do", "switch", "case", "default", "return", "goto", "try", "catch"];

impl File {
    pub fn read(sources: &dyn Sources, path: &str) -> Option<Self> {
        let lines = super::lines_of(sources, path)?;
        let tokens = tokens(&lines)?;
        Some(Self { path: path.to_owned(), lines, tokens })
    }

    pub fn line(&self, number: u32) -> Option<&str> {
        self.lines.get((number as usize).checked_sub(1)?).map(String::as_str)
    }

    /// The positions of the tokens of a line.
    pub fn on_line(&self, line: u32) -> Range<usize> {
        let from = self.tokens.partition_point(|token| token.line < line);
        from..self.tokens.partition_point(|token| token.line <= line)
    }

    /// The body of the function around a token, from its brace to the position after the closing one.
    pub fn function(&self, at: usize) -> Option<Range<usize>> {
        let mut open: Vec<usize> = Vec::new();
        for (index, token) in self.tokens.iter().enumerate().take(at) {
            if token.is("{") {
                open.push(index);
            } else if token.is("}") {
                open.pop()?;
            }
        }
        let is_scope = |brace: &usize| {
            let head = self.head(*brace);
            !head.iter().any(|t| t.is("("))
                && head.iter().any(|t| ["namespace", "class", "struct", "union", "extern"].contains(&t.text.as_str()))
        };
        let body = open.into_iter().find(|brace| !is_scope(brace))?;
        self.head(body).iter().any(|t| t.is("(")).then_some(body..after_bracket(&self.tokens, body)?)
    }

    /// The tokens before an opening brace, back to the end of what was before.
    pub fn head(&self, brace: usize) -> &[Token] {
        let before = self.tokens.get(..brace).unwrap_or_default();
        let ends = |t: &Token| t.is(";") || t.is("{") || t.is("}") || t.kind == Kind::Directive;
        before.get(before.iter().rposition(ends).map_or(0, |at| at + 1)..).unwrap_or_default()
    }

    /// The `for` loops of a function that have code on a line, outermost first.
    pub fn loops_on(&self, line: u32) -> Vec<Range<usize>> {
        let on = self.on_line(line);
        let Some(function) = self.function(on.start) else { return Vec::new() };
        self.loops_in(&function).into_iter().filter(|one| one.start < on.end && on.start < one.end).collect()
    }

    /// All `for` loops in a range of tokens, in the order of their beginnings.
    pub fn loops_in(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let heads = range.clone().filter(|at| self.tokens.get(*at).is_some_and(|t| t.is("for") && t.kind == Kind::Word));
        heads.filter_map(|at| Some(at..end_of(&self.tokens, at)?)).collect()
    }

    /// The directives whose statement contains a token, outermost first. `None` if one of the function cannot be read.
    pub fn directives_around(&self, at: usize) -> Option<Vec<Directive>> {
        let function = self.function(at)?;
        let mut found = Vec::new();
        for index in function.start..at {
            let Some(text) = self.tokens.get(index).and_then(Token::omp) else { continue };
            let directive = Directive::read_words(text)?;
            let is_alone = directive.words.first().is_none_or(|first| ALONE.contains(&first.as_str()));
            if !is_alone && end_of(&self.tokens, index + 1)? > at {
                found.push(directive);
            }
        }
        Some(found)
    }

    /// The simple statement of a block that contains a token; `None` if it is the body of a condition or loop, or in a header.
    pub fn statement(&self, at: usize) -> Option<Range<usize>> {
        let mut depth = 0_usize;
        let mut start = 0;
        for index in (0..at).rev() {
            let token = self.tokens.get(index)?;
            match token.text.as_str() {
                _ if token.kind == Kind::Directive => {
                    start = index + 1;
                    break;
                }
                ")" | "]" if token.kind == Kind::Mark => depth += 1,
                "(" | "[" if token.kind == Kind::Mark => depth = depth.checked_sub(1)?,
                ";" | "{" | "}" if token.kind == Kind::Mark && depth == 0 => {
                    start = index + 1;
                    break;
                }
                "{" | "}" if token.kind == Kind::Mark => return None,
                _ => {}
            }
        }
        let first = self.tokens.get(start)?;
        let is_label = self.tokens.get(start + 1).is_some_and(|t| t.is(":"));
        if CONTROL.contains(&first.text.as_str()) || is_label {
            return None;
        }
        // `} while (x)` and `= { ... }` do not begin statements.
        let after = end_of(&self.tokens, start)?;
        (start <= at && at < after && self.tokens.get(after - 1)?.is(";")).then_some(start..after)
    }

    /// Whether a range has conditional compilation in it.
    pub fn is_conditional(&self, range: &Range<usize>) -> bool {
        self.tokens.get(range.clone()).is_none_or(|list| list.iter().any(Token::is_conditional))
    }

    /// The text before the first token of a line, if this token is the first.
    pub fn indent_before(&self, at: usize) -> Option<&str> {
        let token = self.tokens.get(at)?;
        let before = self.line(token.line)?.get(..token.start)?;
        before.chars().all(char::is_whitespace).then_some(before)
    }

    /// Whether nothing but a comment follows the token on its line.
    pub fn ends_line(&self, at: usize) -> bool {
        let line = self.tokens.get(at).map(|token| token.line);
        self.tokens.get(at + 1).is_none_or(|next| Some(next.line) != line)
    }

    /// The body of an object-like macro of this file.
    pub fn macro_body(&self, name: &str) -> Option<Vec<Token>> {
        self.tokens.iter().filter(|t| t.kind == Kind::Directive).find_map(|token| {
            let rest = token.text.trim_start_matches('#').trim_start().strip_prefix("define")?.trim_start();
            let body = rest.strip_prefix(name).filter(|body| !body.starts_with(|c: char| c.is_alphanumeric() || c == '_'))?;
            of_text(body)
        })
    }

    /// Whether `word` occurs in this file, outside of comments and strings.
    pub fn has_word(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| token.kind == Kind::Word && token.text == word)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn file(text: &str) -> File {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let tokens = tokens(&lines).unwrap();
        File { path: "a.c".into(), lines, tokens }
    }

    fn position(file: &File, word: &str) -> usize {
        file.tokens.iter().position(|t| t.text == word).unwrap()
    }

    /// Check functions in namespaces and classes, and that initialisers are no functions.
    #[test]
    fn functions() {
        let one = file(
            "namespace a {\nclass B {\n  void f() const {\n    here = 1;\n  }\n};\n}\nint t[] = { there };\nstruct p g(int n) { other; }\n",
        );
        assert_eq!(one.function(position(&one, "here")).map(|range| one.tokens[range.start].line), Some(3));
        assert_eq!(one.function(position(&one, "there")), None);
        assert_eq!(one.function(position(&one, "other")).map(|range| one.tokens[range.start].line), Some(9));
    }

    /// Check which directives are around a token.
    #[test]
    fn directives() {
        let one = file(
            "void f() {\n#pragma omp parallel num_threads(N) if (n > 1)\n  {\n#pragma omp barrier\n    a;\n#pragma omp for\n    for (;;)\n      b;\n    c;\n  }\n  d;\n}\n",
        );
        let words = |word| {
            let list = one.directives_around(position(&one, word)).unwrap();
            list.iter().map(|d| d.words.join(" ")).collect::<Vec<_>>().join("|")
        };
        assert_eq!(
            [words("a"), words("b"), words("c"), words("d")],
            ["parallel num_threads if", "parallel num_threads if|for", "parallel num_threads if", ""]
        );
        assert_eq!(one.directives_around(position(&one, "a")).unwrap()[0].clause("num_threads"), Some("N"));
    }

    /// Check that only statements of a block are found.
    #[test]
    fn statements() {
        let one = file("void f() {\n  double *a = g(1, 2);\n  if (x) b = 1;\n  for (c = 0;;) ;\n  { d(e); }\n  l: m = 1;\n}\n");
        let text = |word| one.statement(position(&one, word)).map(|range| one.tokens[range.start].text.clone());
        assert_eq!((text("a"), text("d").as_deref()), (Some("double".into()), Some("d")));
        assert_eq!((text("b"), text("c"), text("m")), (None, None, None));
    }
}
