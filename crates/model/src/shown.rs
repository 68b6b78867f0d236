//! Text that is not ours, made safe to show. A name in a profile, a plan, a machine file or /proc can hold escape sequences that a terminal
//! obeys, characters that reorder a line, new lines that look like messages of firsttouch, and workflow commands that a CI system obeys.
//!
//! Two steps, and nothing else escapes: [`one_line`] makes a name safe where a file is read; [`text`], [`format`] and [`json`] make sure of the
//! finished result where it is written, whatever it is made of.

use std::borrow::Cow;
use std::fmt::Write;

/// Stands for a character that is not shown.
const REPLACEMENT: char = '\u{fffd}';
/// The escape sequences that firsttouch itself writes: colours.
const COLOURS: [&str; 5] = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m"];
/// Beginnings of CI commands that are obeyed anywhere in a line: of GitHub and Azure.
const COMMANDS: [&str; 2] = ["##[", "##vso["];

/// Whether a character controls the terminal, the direction or the division into lines, or is invisible text (tags).
#[must_use]
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn is_plain(text: &str) -> bool {
    has_only(text, |byte| matches!(byte, 0x20..=0x7e))
}

/// Whether all bytes are such. JSON can have a gigabyte: a block is looked at without a branch for each byte, so that the compiler takes many at once.
fn has_only(text: &str, is_such: impl Fn(u8) -> bool) -> bool {
    text.as_bytes().chunks(1024).all(|block| block.iter().fold(true, |all, byte| all & is_such(*byte)))
}

/// A name on one line: what controls is replaced, a tab becomes a space.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |c| match c {
        '\t' => ' ',
        c if is_control(c) => REPLACEMENT,
        c => c,
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// [`one_line`] in place.
pub fn make_one_line(text: &mut String) {
    if let Cow::Owned(shown) = one_line(text) {
        *text = shown;
    }
}

/// A word as a shell takes it.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:+,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A command as a shell takes it.
#[must_use]
pub fn shell_line(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// Whether a finished text has our colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    None,
    Ours,
}

/// A finished text: lines, tabs and our colours stay. No line is a command for a CI system.
#[must_use]
pub fn text(finished: &str, colours: Colours) -> Cow<'_, str> {
    let mut shown = divided(kept(finished, colours), "# ");
    // GitHub reads a command at the start of a line, after spaces.
    if shown.lines().any(is_command) {
        let lines = shown.split_inclusive('\n').map(|line| if is_command(line) { line.replacen("::", ": :", 1) } else { line.to_owned() });
        shown = Cow::Owned(lines.collect());
    }
    shown
}

fn is_command(line: &str) -> bool {
    let mut rest = line.trim_start();
    while let Some(after) = COLOURS.iter().find_map(|colour| rest.strip_prefix(colour)) {
        rest = after.trim_start();
    }
    rest.starts_with("::") || rest.starts_with("##teamcity[")
}

/// A finished result in a format that says what its lines mean (XML, TOML, workflow commands): only lines and tabs control.
#[must_use]
pub fn format(finished: &str) -> Cow<'_, str> {
    kept(finished, Colours::None)
}

fn kept(finished: &str, colours: Colours) -> Cow<'_, str> {
    let is_ours = |c| matches!(c, '\n' | '\t') || !is_control(c);
    let known: &[&str] = if colours == Colours::Ours { &COLOURS } else { &[] };
    if has_only(finished, |byte| matches!(byte, 0x20..=0x7e | b'\n' | b'\t')) || finished.chars().all(is_ours) {
        return Cow::Borrowed(finished);
    }
    let mut shown = String::with_capacity(finished.len());
    let mut rest = finished;
    while let Some(c) = rest.chars().next() {
        if let Some(colour) = known.iter().find(|colour| rest.starts_with(**colour)) {
            shown.push_str(colour);
            rest = &rest[colour.len()..];
            continue;
        }
        shown.push(if is_ours(c) { c } else { REPLACEMENT });
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(shown)
}

/// JSON with the same values in which nothing controls: such characters are only in strings, and are written as `\uXXXX` there.
#[must_use]
pub fn json(finished: &str) -> Cow<'_, str> {
    let is_ours = |c| c == '\n' || !is_control(c);
    let mut shown = Cow::Borrowed(finished);
    let is_plain = has_only(finished, |byte| matches!(byte, 0x20..=0x7e | b'\n'));
    if !is_plain && !finished.chars().all(is_ours) {
        let mut text = String::with_capacity(finished.len());
        for c in finished.chars() {
            if is_ours(c) {
                text.push(c);
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
        shown = Cow::Owned(text);
    }
    divided(shown, "\\u0023")
}

/// The text without commands of CI systems: their first `#` becomes something else.
fn divided<'a>(text: Cow<'a, str>, sharp: &str) -> Cow<'a, str> {
    // Searching for one character is several times faster than for a word, and few texts have it.
    if !text.contains('#') {
        return text;
    }
    let mut text = text;
    for command in COMMANDS {
        if text.contains(command) {
            text = Cow::Owned(text.replace(command, &command.replacen('#', sharp, 1)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a name of a file can neither control nor begin a line, and that other names stay.
    #[test]
    fn names_are_one_line() {
        for (name, shown) in [
            ("operator\u{1b}[31m", "operator\u{fffd}[31m"),
            ("a\tb\r\nc\u{7}\u{9b}2J", "a b\u{fffd}\u{fffd}c\u{fffd}\u{fffd}2J"),
            ("\u{202e}\u{2066}\u{200f}\u{2028}x", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}x"),
            ("Größe_行列_👩\u{200d}🔬", "Größe_行列_👩\u{200d}🔬"),
        ] {
            assert_eq!(one_line(name), shown);
        }
        assert!(matches!(one_line("std::vector<double>"), Cow::Borrowed(_)));
    }

    /// Check that a shell takes each word as one.
    #[test]
    fn words_are_quoted() {
        let line = ["./a-b_1.c", "it's", "", "$(rm -rf ~)"].map(str::to_owned);
        assert_eq!(shell_line(&line), r"./a-b_1.c 'it'\''s' '' '$(rm -rf ~)'");
    }

    /// Check that a finished text keeps its lines and our colours, and nothing else that a terminal or a CI system obeys.
    #[test]
    fn finished_text_obeys_nobody() {
        for (finished, shown) in [
            ("a\tb\n\u{1b}[31mhigh\u{1b}[0m\n", "a\tb\n\u{1b}[31mhigh\u{1b}[0m\n"),
            ("\u{1b}[2J\u{1b}]0;x\u{7}\r", "\u{fffd}[2J\u{fffd}]0;x\u{fffd}\u{fffd}"),
            ("x\n::error::y\n  ::stop-commands::z", "x\n: :error::y\n  : :stop-commands::z"),
            ("\u{1b}[1m::error::y\u{1b}[0m", "\u{1b}[1m: :error::y\u{1b}[0m"),
            ("in f##[error]g and ##vso[task.x]", "in f# #[error]g and # #vso[task.x]"),
            ("std::sort # #pragma", "std::sort # #pragma"),
        ] {
            assert_eq!(text(finished, Colours::Ours), shown);
        }
        assert_eq!(text("a\u{1b}[31mb", Colours::None), "a\u{fffd}[31mb");
        assert_eq!(format("::error file=a.c::b\u{1b}\n"), "::error file=a.c::b\u{fffd}\n");
    }

    /// Check that JSON has the same values, without a character that controls.
    #[test]
    fn json_has_the_same_values() {
        let name = "a\u{1b}\u{7f}\u{9b}\u{202e}\u{e0041}\n##[error]é##vso[x]";
        let shown = json(&serde_json::to_string_pretty(&[name]).unwrap()).into_owned();
        assert!(!shown.chars().any(|c| c != '\n' && is_control(c)) && !shown.contains("##"), "{shown}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [name]);
    }
}
