//! The profile file as the capture sees it: a writer that may give up (full disk) without stopping the target.

use firsttouch_model::error::{Error, Result};
use firsttouch_profile::Writer;

pub struct Sink {
    writer: Option<Writer>,
    /// Why writing stopped, once it did.
    pub failure: Option<Error>,
}

impl Sink {
    #[must_use]
    pub fn new(writer: Writer) -> Self {
        Self { writer: Some(writer), failure: None }
    }

    /// Writes unless an earlier write failed. What earlier flushes wrote stays readable.
    pub fn write(&mut self, write: impl FnOnce(&mut Writer) -> Result<()>) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            self.failure = Some(error);
            self.writer = None;
        }
    }

    pub fn flush(&mut self) {
        self.write(Writer::flush);
    }

    /// The profile takes the place of an older one for good.
    pub fn keep(&mut self) {
        self.write(|writer| {
            writer.keep();
            Ok(())
        });
    }

    /// Nothing was profiled: the file goes, an older profile comes back.
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
            self.failure = Some(error);
        }
    }
}
