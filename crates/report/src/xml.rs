//! Text within XML: hwloc files, pictures (SVG), JUnit results.

use firsttouch_model::shown::is_control;

/// Text as the value of an attribute. Characters that XML does not allow are replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML readers turn a newline in an attribute into a space.
            '\n' => out.push_str("&#10;"),
            '\t' => out.push(c),
            // Printed in a CI system, `##[` would be a command.
            '#' if out.ends_with('#') => out.push_str("&#35;"),
            c if is_control(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    /// Check that text cannot end an attribute.
    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("a\"<b>&\u{1}\n"), "a&quot;&lt;b&gt;&amp;\u{fffd}&#10;");
        assert_eq!(escape("\u{1b}[31m\0\u{ffff}é"), "\u{fffd}[31m\u{fffd}\u{fffd}é");
    }
}
