//! What a line of Fortran in free form is, by its words.

use std::collections::BTreeSet;

pub(super) fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let end = line.char_indices().find_map(|(at, c)| {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '!' => return Some(at),
            _ => {}
        }
        None
    });
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}

pub(super) fn begins_unit(code: &str) -> bool {
    let is_word = |word: &str| words(code).contains(word);
    !code.starts_with("end")
        && (code.starts_with("program ") || is_word("subroutine") || is_word("function"))
        && !code.contains('=')
        && !code.contains('\'')
        && !code.contains('"')
}

pub(super) fn ends_unit(code: &str) -> bool {
    let second = code.strip_prefix("end").map(str::trim);
    let is_end =
        second.is_some_and(|rest| rest.is_empty() || ["program", "subroutine", "function"].iter().any(|word| rest.starts_with(word)));
    is_end || code == "contains"
}

pub(super) fn is_do(code: &str) -> bool {
    let unnamed = code.split_once(':').filter(|(name, rest)| is_name(name.trim()) && !rest.starts_with(':')).map_or(code, |(_, rest)| rest);
    let rest = unnamed.trim_start().strip_prefix("do");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

pub(super) fn is_end_do(code: &str) -> bool {
    code.starts_with("end do") || code.starts_with("enddo")
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(super) fn words(code: &str) -> BTreeSet<&str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).collect()
}

/// Whether a name with a bracket occurs: `u(` or `u (`.
pub(crate) fn is_called(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = code.get(..at).unwrap_or_default().chars().next_back();
        let after = code.get(at + name.len()..).unwrap_or_default().trim_start();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && after.starts_with('(')
    })
}
