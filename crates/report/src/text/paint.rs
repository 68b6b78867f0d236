//! Colours for terminals.

use super::Style;

#[derive(Clone, Copy)]
pub enum Paint {
    Bold,
    Faint,
    Bad,
    Good,
}

impl Style {
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Bold => "1",
            Paint::Faint => "2",
            Paint::Bad => "31",
            Paint::Good => "32",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
