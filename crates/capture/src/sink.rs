//! The profile file as the capture sees it: a writer that may give up (full disk) without stopping the target, and the losses.

use crate::error::{Error, convert};
use firsttouch_profile::{Abandoned, Writer};
use std::collections::BTreeMap;

/// Evidence that was lost, by (source, reason).
pub type Losses = BTreeMap<(&'static str, &'static str), u64>;

pub struct Sink {
    writer: Option<Writer>,
    losses: Losses,
    failure: Option<Error>,
    /// The file, once writing failed.
    abandoned: Option<Abandoned>,
    /// Rows that the next flush would write; once writing failed, the rows that are missing.
    unwritten: u64,
}

impl Sink {
    #[must_use]
    pub fn new(writer: Writer) -> Self {
        Self { writer: Some(writer), losses: Losses::new(), failure: None, abandoned: None, unwritten: 0 }
    }

    /// Writes unless an earlier write failed. What earlier flushes wrote stays readable.
    pub fn write(&mut self, write: impl FnOnce(&mut Writer) -> convert::Written) {
        self.unwritten += 1;
        if let Some(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            let error = convert::profile(error);
            self.abandoned = self.writer.take().map(|writer| writer.abandon(&format!("{error:#}")));
            self.failure = Some(error);
        }
    }

    /// Counts evidence that a source lost.
    pub fn lose(&mut self, source: &'static str, reason: &'static str, count: u64) {
        if count > 0 {
            let lost = self.losses.entry((source, reason)).or_default();
            *lost = lost.saturating_add(count);
        }
    }

    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Why writing stopped, once it did.
    #[must_use]
    pub fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    pub fn flush(&mut self) {
        self.write(Writer::flush);
        if self.writer.is_some() {
            self.unwritten = 0;
        }
    }

    /// The profile replaces an older one for good.
    pub fn keep(&mut self) {
        self.write(|writer| {
            writer.keep();
            Ok(())
        });
    }

    /// Nothing was profiled: removes the file and restores an older profile.
    pub fn withdraw(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.withdraw();
        }
    }

    /// Closes the file.
    pub fn finish(&mut self) {
        self.write(Writer::merge);
        if let Some(abandoned) = self.abandoned.take() {
            abandoned.finish(self.unwritten);
        }
        self.writer = None;
    }
}
