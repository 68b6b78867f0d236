//! Errors in expressions that a user writes: lists of nodes and CPUs, pinnings.

use crate::shown::is_control;
use std::fmt;

/// Why an expression was refused, with the byte offset of the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    pub expression: String,
    pub offset: usize,
    pub reason: String,
}

/// Shows the reason, and below it the expression with a caret under the error.
impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Print one column for each character, so that the caret is in the right place: replace characters that move the cursor.
        let shown: String = self.expression.chars().map(|c| if is_control(c) { '\u{fffd}' } else { c }).collect();
        let before = self.expression.char_indices().take_while(|(at, _)| *at < self.offset).count();
        write!(f, "{}\n  {shown}\n  {}^", self.reason, " ".repeat(before))
    }
}

impl std::error::Error for ExpressionError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the caret is under the error, counted in characters, also past the end and in damaged text.
    #[test]
    fn the_caret_is_under_the_error() {
        for (expression, offset, shown) in [
            ("0,x", 2, "no\n  0,x\n    ^"),
            ("", 0, "no\n  \n  ^"),
            ("é,x", 3, "no\n  é,x\n    ^"),
            ("0-", 2, "no\n  0-\n    ^"),
            ("0", 99, "no\n  0\n   ^"),
            ("a\tb\nc", 4, "no\n  a\u{fffd}b\u{fffd}c\n      ^"),
        ] {
            let error = ExpressionError { expression: expression.to_owned(), offset, reason: "no".to_owned() };
            assert_eq!(error.to_string(), shown, "{expression:?}");
        }
    }
}
