//! The terminal: the width of lines, and whether output is coloured.

use firsttouch_report::Style;
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// The line width without a terminal, columns.
const WIDTH: usize = 100;
/// Limits of a terminal's width: narrower lines hold no sentence, wider lines are hard to read.
const TERMINAL: std::ops::RangeInclusive<usize> = 40..=140;

/// The style for a stream: its width (`COLUMNS` overrides it), with colours if it is a terminal and NO_COLOR is not set (no-color.org).
pub fn style(stream: &(impl IsTerminal + AsFd)) -> Style {
    let terminal = stream.is_terminal();
    let seen = terminal_size::terminal_size_of(stream).filter(|_| terminal).map(|(width, _)| usize::from(width.0));
    let width = columns(std::env::var("COLUMNS").ok().as_deref(), seen);
    let colour = terminal
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|value| value != "dumb");
    Style { width, colour }
}

/// The width that the user sets, else the terminal's within [`TERMINAL`], else [`WIDTH`].
fn columns(asked: Option<&str>, terminal: Option<usize>) -> usize {
    let asked = asked.and_then(|text| text.trim().parse().ok()).filter(|columns| *columns > 0);
    asked.or_else(|| terminal.map(|width| width.clamp(*TERMINAL.start(), *TERMINAL.end()))).unwrap_or(WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which source of the width takes precedence.
    #[test]
    fn widths() {
        for (asked, terminal, width) in [
            (None, None, 100),
            (None, Some(120), 120),
            (None, Some(300), 140),
            (None, Some(20), 40),
            (None, Some(60), 60),
            (Some("60"), Some(120), 60),
            (Some("200"), None, 200),
            (Some("0"), None, 100),
            (Some("wide"), Some(90), 90),
        ] {
            assert_eq!(columns(asked, terminal), width, "{asked:?} {terminal:?}");
        }
    }
}
