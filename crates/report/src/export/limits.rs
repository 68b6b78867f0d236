//! A profile may come from anywhere, and each of its names is written many times: once for each stack or sample. So names, stacks and texts end
//! somewhere.

use crate::text::layout::clean;
use firsttouch_model::error::{Error, Result};
use firsttouch_model::rows::Frame;
use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

/// The longest name in an export, bytes. Names of C++ functions seldom have a tenth.
const LONGEST_NAME: usize = 4 << 10;
/// The frames of a stack next to its leaf. Recorders keep 48 and those that were inlined into them.
const MOST_FRAMES: usize = 256;
/// The largest text, bytes. It is in memory before it is written.
pub(super) const MOST_BYTES: usize = 512 << 20;
/// Frames of all stacks of a format that has each in a row of its own.
pub(super) const MOST_ROWS: usize = 4 << 20;

/// A name as it is, or its beginning and an ellipsis.
pub(super) fn cut(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST_NAME {
        return Cow::Borrowed(name);
    }
    let most = LONGEST_NAME - "…".len();
    let end = (0..=most).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    Cow::Owned(format!("{}…", &name[..end]))
}

/// A name on one line, not too long.
pub(super) fn name(name: &str) -> String {
    // What is not shown becomes a longer character.
    cut(&clean(&cut(name))).into_owned()
}

/// The frames next to the leaf, which is the first, and one that stands for the others.
pub(super) fn stack(frames: &[Frame]) -> Vec<&Frame> {
    static OTHERS: LazyLock<Frame> = LazyLock::new(|| Frame { function: Some("…".to_owned()), ..Frame::default() });
    match frames.get(..MOST_FRAMES - 1) {
        Some(kept) if frames.len() > MOST_FRAMES => kept.iter().chain(std::iter::once(&*OTHERS)).collect(),
        _ => frames.iter().collect(),
    }
}

/// The error for a text of more bytes.
pub(super) fn too_large(most: usize) -> Error {
    does_not_fit(&format!("the text is larger than {} MiB", most >> 20))
}

/// The error for what a format would write too often.
pub(super) fn does_not_fit(what: &str) -> Error {
    Error::unsupported(format!("{what}; pprof (--to pprof) has each name and each stack once"))
}

/// A text of at most so many bytes.
pub(super) struct Bounded {
    text: String,
    most: usize,
}

impl Bounded {
    pub(super) fn new(most: usize) -> Self {
        Self { text: String::new(), most }
    }

    /// Adds a line; `write!` into a full text fails.
    ///
    /// # Errors
    /// When the text would be too large.
    pub(super) fn line(&mut self, line: fmt::Arguments<'_>) -> Result<()> {
        fmt::write(self, line).and_then(|()| fmt::Write::write_char(self, '\n')).map_err(|_| too_large(self.most))
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.text.len() + part.len() > self.most {
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that long names are cut between characters, with a mark, and that others stay.
    #[test]
    fn names_end_somewhere() {
        let longest = "é".repeat(LONGEST_NAME / 2);
        assert_eq!(name(&longest), longest);
        let cut = name(&format!("a{longest}"));
        assert!(cut.ends_with("é…") && (LONGEST_NAME - 3..=LONGEST_NAME).contains(&cut.len()), "{}", cut.len());
        let controls = name(&"\u{1b}".repeat(LONGEST_NAME));
        assert!(controls.ends_with("\u{fffd}…") && controls.len() <= LONGEST_NAME, "{}", controls.len());
    }

    /// Check that a deep stack keeps its leaf, and says that there are more frames.
    #[test]
    fn stacks_end_somewhere() {
        let frames: Vec<Frame> = (0..=MOST_FRAMES as u64).map(|address| Frame { address, ..Frame::default() }).collect();
        let whole = stack(&frames[1..]);
        assert!(whole.len() == MOST_FRAMES && whole.iter().all(|frame| frame.function.is_none()));
        let kept = stack(&frames);
        assert_eq!((kept.len(), kept[0].address, kept[MOST_FRAMES - 1].function.as_deref()), (MOST_FRAMES, 0, Some("…")));
    }

    /// Check that a text does not grow beyond its limit.
    #[test]
    fn texts_end_somewhere() {
        let mut text = Bounded::new(2 << 20);
        let line = "x".repeat((1 << 20) - 1);
        assert!(text.line(format_args!("{line}")).is_ok() && text.line(format_args!("{line}")).is_ok());
        let error = text.line(format_args!("")).unwrap_err().to_string();
        assert!(error.contains("larger than 2 MiB"), "{error}");
        assert_eq!(text.finish().len(), 2 << 20);
    }
}
