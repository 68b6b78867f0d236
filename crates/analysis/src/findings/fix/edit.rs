//! A fix: words, and the exact changes of the source where it is certain that they keep what the program computes.

use crate::{EditAction, FixEdit};

/// What to do about a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fix {
    pub words: String,
    pub edits: Vec<FixEdit>,
    /// Another remedy, which pays only on some machines.
    pub otherwise: Option<String>,
    /// Changes of the source that place the object by calls of libfirsttouch instead.
    pub library: Vec<FixEdit>,
}

impl Fix {
    pub fn words(words: impl Into<String>) -> Self {
        Self { words: words.into(), ..Self::default() }
    }

    pub fn with(words: impl Into<String>, edits: Vec<FixEdit>) -> Self {
        Self { words: words.into(), edits, ..Self::default() }
    }

    /// The same fix with other words.
    pub fn said(self, words: String) -> Self {
        Self { words, ..self }
    }

    /// The words, then each change with its place: `insert before a.c:52:` and the lines.
    pub fn text(&self) -> String {
        if self.edits.is_empty() { self.words.clone() } else { format!("{}; {}", self.words, edits_text(&self.edits)) }
    }
}

/// Each change with its place.
pub(crate) fn edits_text(edits: &[FixEdit]) -> String {
    let mut text = String::new();
    for (number, edit) in edits.iter().enumerate() {
        text.push_str(if number == 0 { "" } else { "\nand " });
        text.push_str(&described(edit));
        // Relative to the first line, so that the report does not show the program's indentation twice.
        let indents = edit.text.iter().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let indent = indents.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
        for line in &edit.text {
            text.push_str("\n  ");
            text.push_str(line.get(indent..).filter(|_| !line.starts_with('#')).unwrap_or(line.trim_start()));
        }
    }
    text
}

fn described(edit: &FixEdit) -> String {
    let file = edit.file.rsplit('/').next().unwrap_or(&edit.file);
    let lines = if edit.last_line > edit.line { format!("{}-{}", edit.line, edit.last_line) } else { edit.line.to_string() };
    match edit.action {
        EditAction::InsertBefore => format!("insert before {file}:{lines}:"),
        EditAction::InsertAfter => format!("insert after {file}:{lines}:"),
        EditAction::Replace => format!("in place of {file}:{lines}:"),
    }
}

/// Lines to insert before or after a line.
pub(super) fn insert(action: EditAction, file: &str, line: u32, text: Vec<String>) -> FixEdit {
    FixEdit { file: file.to_owned(), action, line, last_line: line, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check how changes are shown.
    #[test]
    fn changes_are_shown_with_their_places() {
        let first = insert(EditAction::InsertBefore, "/src/a.c", 7, vec!["    if (a)".into(), "#pragma x".into(), "        b;".into()]);
        let second = FixEdit { file: "a.c".into(), action: EditAction::Replace, line: 3, last_line: 4, text: vec!["c;".into()] };
        let fix = Fix::with("do it", vec![first, second]);
        assert_eq!(fix.text(), "do it; insert before a.c:7:\n  if (a)\n  #pragma x\n      b;\nand in place of a.c:3-4:\n  c;");
    }
}
