//! Fits text into columns. Widths are display widths, not bytes.

use firsttouch_model::shown::one_line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Makes text from profiles and sources safe to print: control and direction characters could change the terminal's display.
pub fn clean(text: &str) -> String {
    one_line(text).into_owned()
}

pub fn width(text: &str) -> usize {
    text.width()
}

/// At most `most` columns from the start of the text, with an ellipsis if it was cut.
pub fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut kept = fitting(text.chars(), most.saturating_sub(1));
    kept.push('…');
    kept
}

/// At most `most` columns from the end of the text, with an ellipsis if it was cut: for a path, the end identifies the file.
pub fn cut_front(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let reversed = fitting(text.chars().rev(), most.saturating_sub(1));
    std::iter::once('…').chain(reversed.chars().rev()).collect()
}

fn fitting(chars: impl Iterator<Item = char>, most: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= most
        })
        .collect()
}

/// The text padded with spaces to `columns`.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A space at which [`wrap`] does not break. The finished report has plain spaces instead.
pub const GLUE: char = '\u{a0}';

/// Lines of at most `most` columns, broken at spaces; a longer word is broken anywhere. Lines keep their own indentation (code), and
/// continuation lines are indented further.
pub fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        // A figure stays with its unit.
        let line = clean(line).replace(" %", "\u{a0}%");
        let words = line.trim_start_matches(' ');
        let indent = (line.len() - words.len()).min(most / 2);
        let deeper = if indent > 0 { indent + 2 } else { 0 };
        let mut parts = Vec::new();
        wrap_words(words, most.saturating_sub(deeper).max(1), &mut parts);
        for (index, part) in parts.into_iter().enumerate() {
            lines.push(format!("{}{part}", " ".repeat(if index == 0 { indent } else { deeper })));
        }
    }
    lines
}

/// A text that begins so many columns beyond the limit is longer, also if its next character joins the last one.
const JOINED: usize = 8;

/// Whether a text is wider than `most` columns. Of a very long one, only the beginning is measured.
fn is_wider(text: &str, most: usize) -> bool {
    let begins = text.char_indices().nth(most.saturating_add(2 * JOINED)).map_or(text, |(end, _)| &text[..end]);
    width(begins) > most + JOINED || width(text) > most
}

fn wrap_words(text: &str, most: usize, lines: &mut Vec<String>) {
    let mut line = String::new();
    for mut word in text.split(' ').filter(|word| !word.is_empty()) {
        let fits = |line: &str| most.checked_sub(width(line) + 1).is_some_and(|room| !is_wider(word, room));
        if !line.is_empty() && !fits(&line) {
            lines.push(std::mem::take(&mut line));
        }
        while is_wider(word, most) {
            let mut head = fitting(word.chars(), most);
            if head.is_empty() {
                head = word.chars().take(1).collect();
            }
            word = &word[head.len()..];
            lines.push(head);
        }
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that cutting counts display columns, also for wide characters, and keeps whole characters.
    #[test]
    fn cutting_counts_columns() {
        assert_eq!(cut("matrix", 6), "matrix");
        assert_eq!(cut("matrix", 4), "mat…");
        assert_eq!(cut("行列行列", 5), "行列…");
        assert_eq!(cut_front("/home/a/dgemv.c", 8), "…dgemv.c");
        assert_eq!(cut("ab", 0), "…");
        assert_eq!(pad("行", 4), "行  ");
    }

    /// Check that wrapping breaks at spaces, keeps code, and breaks very long words.
    #[test]
    fn wrapping_breaks_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("do this:\n  for (i = 0; i < n; i++)", 12), ["do this:", "  for (i =", "    0; i <", "    n; i++)"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("", 10), Vec::<String>::new());
        assert_eq!(wrap("行列", 1), ["行", "列"]);
    }

    /// Check that a word without spaces costs what its length does: one of eight times the length takes less than 24 times as long (64 times if each
    /// line measures all that is left).
    #[test]
    fn long_words_are_broken_in_linear_time() {
        let seconds = |length: usize| {
            let word = "x".repeat(length);
            let once = |_| {
                let start = std::time::Instant::now();
                assert_eq!(wrap(&word, 80).len(), length.div_ceil(80));
                start.elapsed().as_secs_f64()
            };
            (0..5).map(once).fold(f64::INFINITY, f64::min)
        };
        let (short, long) = (seconds(40_000), seconds(320_000));
        assert!(long < 24.0 * short, "{short} s and {long} s");
    }

    /// Check that control characters in names from a program do not reach the terminal.
    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(clean("a\u{1b}[31mb\tc\nd\u{202e}"), "a\u{fffd}[31mb c\u{fffd}d\u{fffd}");
    }
}
