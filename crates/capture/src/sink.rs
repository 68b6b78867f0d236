//! The profile file as the capture sees it: a writer that may give up (full disk) without stopping the target, and the losses.

use crate::error::{Error, convert};
use firsttouch_profile::Writer;
use std::collections::BTreeMap;

/// Evidence that was lost, by (source, reason).
pub type Losses = BTreeMap<(&'static str, &'static str), u64>;

pub struct Sink {
    writer: Option<Writer>,
    losses: Losses,
    failure: Option<Error>,
}

impl Sink {
    #[must_use]
    pub fn new(writer: Writer) -> Self {
        Self { writer: Some(writer), losses: Losses::new(), failure: None }
    }

    /// Writes unless an earlier write failed. What earlier flushes wrote stays readable.
    pub fn write(&mut self, write: impl FnOnce(&mut Writer) -> anyhow::Result<()>) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            self.failure = Some(convert::profile(error));
            self.writer = None;
        }
    }

    /// Counts evidence that a source lost.
    pub fn lose(&mut self, source: &'static str, reason: &'static str, count: u64) {
        if count > 0 {
            *self.losses.entry((source, reason)).or_default() += count;
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
        if let Some(writer) = self.writer.take()
            && let Err(error) = writer.finish()
        {
            self.failure = Some(convert::profile(error));
        }
    }
}
