//! In which direction a loop goes through an array: it decides which part each thread of a divided loop gets.

use super::regions::File;
use super::tokens::{Kind, Token, after_bracket};
use std::ops::Range;

/// Whether a loop goes through the array from its end to its beginning: it counts down, or its variable has a minus sign in a subscript, but not
/// both.
pub(crate) fn is_mirrored(file: &File, one: &Range<usize>, array: &str) -> bool {
    let Some(after) = after_bracket(&file.tokens, one.start + 1) else { return false };
    let head = file.tokens.get(one.start + 2..after - 1).unwrap_or_default();
    let counts_down = head.iter().any(|t| t.is("--") || t.is("-="));
    let mark = head.iter().position(|t| t.is("="));
    let Some(variable) = mark.and_then(|mark| head.get(mark.checked_sub(1)?)).filter(|t| t.kind == Kind::Word) else { return counts_down };
    let body = file.tokens.get(after..one.end).unwrap_or_default();
    let subscripts = |of: Option<&str>| -> Vec<&[Token]> {
        let opens = body.iter().enumerate().skip(1).filter(|(at, t)| t.is("[") && of.is_none_or(|name| body[at - 1].text == name));
        opens.filter_map(|(at, _)| body.get(at..after_bracket(body, at)?)).collect()
    };
    let own = subscripts(Some(array));
    let list = if own.is_empty() { subscripts(None) } else { own };
    counts_down != list.iter().any(|list| is_negative(list, &variable.text))
}

/// Whether a variable has a minus sign.
pub(super) fn is_negative(list: &[Token], variable: &str) -> bool {
    list.windows(2).any(|pair| pair[0].is("-") && pair[1].kind == Kind::Word && pair[1].text == variable)
}

#[cfg(test)]
mod tests {
    use super::super::regions::tests::file;
    use super::*;

    /// Check which loops write an array from its end to its beginning.
    #[test]
    fn loops_that_go_backwards() {
        let mirrored = |head: &str, body: &str| {
            let one = file(&format!("void f() {{\n  for ({head})\n    {body}\n}}\n"));
            is_mirrored(&one, &one.loops_on(3)[0], "a")
        };
        let (up, down) = ("long i = 0; i < n; i++", "long i = n - 1; i >= 0; i--");
        assert!(!mirrored(up, "a[i] = 0;") && mirrored(down, "a[i] = 0;") && mirrored("long i = n - 1; i >= 0; i -= 1", "a[i] = 0;"));
        assert!(mirrored(up, "a[n - 1 - i] = i;") && !mirrored(down, "a[n - 1 - i] = i;"));
        assert!(!mirrored(up, "a[i] = b[n - i] - i;"), "another array's subscript, and a value");
        assert!(!mirrored(up, "a[i - 1] = 0;") && mirrored(up, "p[n - i] = 0;"), "an alias");
    }
}
