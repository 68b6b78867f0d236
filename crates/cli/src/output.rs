//! Where text goes: results to stdout, messages to stderr.

use anyhow::{Context, Result};
use firsttouch_report::Style;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// Line width where there is no terminal to ask.
const WIDTH: usize = 100;
/// Widths of terminals that are used: less cuts the tables short, more is hard to read.
const TERMINAL: std::ops::RangeInclusive<usize> = 80..=140;

/// Writes a result to stdout. A reader that has gone away (`| head`) wants no more: that is no error.
pub fn print(text: &str) -> Result<()> {
    print_or_end(text).map(|_| ())
}

/// The same for one of many results: false when the reader has gone away.
pub fn print_or_end(text: &str) -> Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        other => other.context("cannot write to standard output").map(|()| true),
    }
}

/// Writes JSON to stdout, indented.
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).context("cannot write the result as JSON")?;
    text.push('\n');
    print(&text)
}

/// Writes a result to the file the user named; `-` is stdout.
pub fn write(path: &Path, text: &str) -> Result<()> {
    if is_stdout(path) {
        return print(text);
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes to stderr as it is. There is nobody to tell when that fails.
pub fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// A message of ours on stderr.
pub fn message(text: &str) {
    tell(&format!("firsttouch: {}\n", text.trim_end()));
}

/// How to write to a stream: its width (`COLUMNS` where that is set), and colour if it is a terminal and the user does not object (no-color.org).
pub fn style(stream: &(impl IsTerminal + AsFd)) -> Style {
    let terminal = stream.is_terminal();
    let seen = terminal_size::terminal_size_of(stream).filter(|_| terminal).map(|(width, _)| usize::from(width.0));
    let width = columns(std::env::var("COLUMNS").ok().as_deref(), seen);
    let colour = terminal
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|value| value != "dumb");
    Style { width, colour }
}

/// The width the user asks for, else the terminal's within bounds, else that of paper.
fn columns(asked: Option<&str>, terminal: Option<usize>) -> usize {
    let asked = asked.and_then(|text| text.trim().parse().ok()).filter(|columns| *columns > 0);
    asked.or_else(|| terminal.map(|width| width.clamp(*TERMINAL.start(), *TERMINAL.end()))).unwrap_or(WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check whose word on the width counts.
    #[test]
    fn widths() {
        for (asked, terminal, width) in [
            (None, None, 100),
            (None, Some(120), 120),
            (None, Some(300), 140),
            (None, Some(20), 80),
            (Some("60"), Some(120), 60),
            (Some("200"), None, 200),
            (Some("0"), None, 100),
            (Some("wide"), Some(90), 90),
        ] {
            assert_eq!(columns(asked, terminal), width, "{asked:?} {terminal:?}");
        }
    }
}
