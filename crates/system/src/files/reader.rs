//! Reads small files below a root; a file that cannot be parsed becomes a doubt. A caller that must not go on without it asks for
//! [`Reader::first_damage`].

use super::{Root, parse_list};
use firsttouch_model::error::{Error, Result};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

/// The most doubts that are listed. More are usually one defect repeated, such as a missing file of each CPU.
const MOST_DOUBTS: usize = 40;

pub struct Reader {
    root: Root,
    pub doubts: Vec<String>,
    damage: Option<Error>,
}

impl Reader {
    pub fn new(root: &Path) -> Self {
        Self { root: Root::new(root), doubts: Vec::new(), damage: None }
    }

    /// Records that the contents of a file cannot be used.
    pub fn doubt(&mut self, relative: &str, what: impl Display) {
        match self.doubts.len() {
            count if count < MOST_DOUBTS => self.doubts.push(format!("{}: {what}", self.root.path(relative).display())),
            MOST_DOUBTS => self.doubts.push("more files are damaged or contradict each other".to_owned()),
            _ => {}
        }
    }

    /// The first file that could not be parsed, as an error.
    ///
    /// # Errors
    /// When there was one.
    pub fn first_damage(&mut self) -> Result<()> {
        self.damage.take().map_or(Ok(()), Err)
    }

    /// The trimmed text of a file; `None` if it is missing, hidden or damaged.
    pub fn text(&mut self, relative: &str) -> Option<String> {
        match self.root.text(relative) {
            Ok(text) => text,
            Err(error) => {
                self.doubt(relative, error.root_cause());
                self.damage.get_or_insert(error);
                None
            }
        }
    }

    pub fn number<T: FromStr>(&mut self, relative: &str) -> Option<T> {
        let text = self.text(relative)?;
        let number = text.parse().ok();
        if number.is_none() {
            let what = format!("expected a number, found {}", short(&text));
            self.doubt(relative, &what);
            let message = format!("cannot read {}", self.root.path(relative).display());
            self.damage.get_or_insert_with(|| Error::caused_by(Error::invalid_data(what), message));
        }
        number
    }

    /// A CPU or node list such as `0-3,8`.
    pub fn list(&mut self, relative: &str) -> Option<Vec<u32>> {
        let text = self.text(relative)?;
        match parse_list(&text) {
            Ok(list) => Some(list),
            Err(error) => {
                self.doubt(relative, format_args!("expected a list such as 0-3,8, found {}: {}", short(&text), error.reason));
                let message = format!("cannot read {}", self.root.path(relative).display());
                self.damage.get_or_insert_with(|| Error::caused_by(error, message));
                None
            }
        }
    }

    /// The names in a directory that are `prefix` and a number; the numbers, sorted.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Vec<u32> {
        self.names(directory)
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// The names of the folders in a directory, sorted; a name that is not text is a doubt.
    pub fn folders(&mut self, directory: &str) -> Vec<String> {
        let mut names = Vec::new();
        for name in self.root.folders(directory).unwrap_or_default() {
            match name {
                Ok(name) => names.push(name),
                Err(name) => self.doubt(directory, format_args!("the name of {} is not text; left out", short(&name))),
            }
        }
        names.sort_unstable();
        names
    }

    /// The names in a directory, sorted; empty if it cannot be read.
    pub fn names(&self, directory: &str) -> Vec<String> {
        self.root.names(directory).unwrap_or_default().into_iter().collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Quotes text from a file, shortened for a message.
pub fn short(text: &str) -> String {
    const MOST: usize = 40;
    let cut: String = text.chars().take(MOST).collect();
    format!("{cut:?}{}", if text.chars().nth(MOST).is_some() { "..." } else { "" })
}
