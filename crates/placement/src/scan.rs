//! A scanner for expressions that keeps the position of each part for errors.

use firsttouch_model::ExpressionError;
use std::ops::Deref;

/// Larger numbers are mistakes: no kernel has such CPUs, nodes or threads (`CONFIG_NR_CPUS` ends at 8192).
pub const LARGEST: u32 = 65_535;

/// Why an expression is refused, and where (byte offset).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub offset: usize,
    pub reason: String,
}

impl Fault {
    pub fn new(offset: usize, reason: impl Into<String>) -> Self {
        Self { offset, reason: reason.into() }
    }

    pub fn of(self, expression: &str) -> ExpressionError {
        ExpressionError { expression: expression.to_owned(), offset: self.offset, reason: self.reason }
    }
}

/// A part of an expression with its position. The position does not count in comparisons.
#[derive(Clone, Copy, Debug)]
pub struct At<T> {
    pub value: T,
    pub offset: usize,
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for At<T> {}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

pub struct Scanner<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    pub fn rest(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    pub fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Skips `word` if it comes next.
    pub fn eat(&mut self, word: &str) -> bool {
        let follows = self.rest().starts_with(word);
        if follows {
            self.offset += word.len();
        }
        follows
    }

    /// Takes all characters for which `belongs` is true.
    pub fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = rest.get(..rest.find(|c| !belongs(c)).unwrap_or(rest.len())).unwrap_or_default();
        self.offset += taken.len();
        taken
    }

    /// The letters and digits that come next, without skipping them.
    pub fn word(&self) -> &'a str {
        Scanner { ..*self }.take(|c| c.is_ascii_alphanumeric())
    }

    pub fn blanks(&mut self) {
        self.take(|c| c == ' ' || c == '\t');
    }

    pub fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::new(self.offset, reason)
    }

    /// What comes next, for an error: `found 'x'`, `found the end`.
    pub fn found(&self) -> String {
        self.peek().map_or_else(|| "the end".to_owned(), |c| format!("'{}'", c.escape_debug()))
    }

    /// A decimal number; `what` describes it for the error.
    ///
    /// # Errors
    /// When no number comes next, or one that is too large.
    pub fn number(&mut self, what: &str) -> Result<At<u32>, Fault> {
        let offset = self.offset;
        let digits = self.take(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.fault(format!("expected {what}, found {}", self.found())));
        }
        match digits.parse() {
            Ok(value) if value <= LARGEST => Ok(At { value, offset }),
            _ => Err(Fault::new(offset, format!("{digits} is too large: numbers end at {LARGEST}"))),
        }
    }

    /// # Errors
    /// When no number comes next, or 0, or one that is too large.
    pub fn positive(&mut self, what: &str) -> Result<At<u32>, Fault> {
        let number = self.number(what)?;
        if *number == 0 { Err(Fault::new(number.offset, format!("expected {what}, at least 1"))) } else { Ok(number) }
    }

    /// # Errors
    /// When something comes next.
    pub fn end(&self, expected: &str) -> Result<(), Fault> {
        if self.is_at_end() { Ok(()) } else { Err(self.fault(format!("expected {expected}, found {}", self.found()))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that scanning continues after each part, and ends at the end.
    #[test]
    fn parts_follow_each_other() {
        let mut scanner = Scanner::new("ab12:é");
        assert_eq!((scanner.word(), scanner.offset()), ("ab12", 0));
        assert!(!scanner.eat("b") && scanner.eat("ab"));
        assert_eq!(scanner.number("a number"), Ok(At { value: 12, offset: 0 }));
        assert!(scanner.eat(":") && !scanner.eat("e"));
        assert_eq!(scanner.found(), "'é'");
        assert_eq!(scanner.take(|_| true), "é");
        assert!(scanner.is_at_end() && scanner.peek().is_none() && scanner.take(|_| true).is_empty());
        assert_eq!(scanner.found(), "the end");
    }

    /// Check that too large numbers are refused, and that errors have a position.
    #[test]
    fn numbers_are_bounded() {
        for (text, answer) in
            [("65535", Ok(65535)), ("007", Ok(7)), ("65536", Err(1)), ("99999999999999999999", Err(1)), ("x", Err(1)), ("", Err(1))]
        {
            let text = format!("-{text}");
            let mut scanner = Scanner::new(&text);
            assert!(scanner.eat("-"));
            let number = scanner.number("a number").map(|number| number.value).map_err(|fault| fault.offset);
            assert_eq!(number, answer, "{text}");
        }
    }
}
