//! The error of this crate: why a measurement was not made.

use std::error::Error as StdError;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// This machine cannot do what was asked for; the user can ask for less.
    Usage,
    /// The system cannot be read, or a process cannot be started.
    System,
    /// A kernel failed or printed no result.
    Kernel,
    /// The user's program cannot be executed. A shell would end with this status.
    NotExecuted { errno: i32 },
    /// The user interrupted the measurement.
    Interrupted,
    /// The embedded tables or machines are invalid. Tests run every experiment.
    Internal,
}

/// An error with its kind; `{:#}` prints its causes as well.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// An error from another crate whose own message is complete.
    pub(crate) fn from_source(kind: ErrorKind, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let error = error.into();
        Self::new(kind, causes(error.as_ref()))
    }

    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// Errors of the crate `system`.
impl From<firsttouch_model::Error> for Error {
    fn from(error: firsttouch_model::Error) -> Self {
        Self::from_source(ErrorKind::System, error)
    }
}

/// An error and its causes, separated by colons.
fn causes(error: &(dyn StdError + 'static)) -> String {
    let mut all = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        all.push_str(": ");
        all.push_str(&error.to_string());
        cause = error.source();
    }
    all
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) if f.alternate() => write!(f, ": {}", causes(source.as_ref())),
            _ => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Adds a kind and the failed action to an error of another crate.
pub(crate) trait Context<T> {
    fn context(self, kind: ErrorKind, message: impl Into<String>) -> Result<T, Error>;

    /// Adds the kind alone, where the error's own message is complete.
    fn of_kind(self, kind: ErrorKind) -> Result<T, Error>;
}

impl<T, E: Into<Box<dyn StdError + Send + Sync>>> Context<T> for Result<T, E> {
    fn context(self, kind: ErrorKind, message: impl Into<String>) -> Result<T, Error> {
        self.map_err(|error| Error { kind, message: message.into(), source: Some(error.into()) })
    }

    fn of_kind(self, kind: ErrorKind) -> Result<T, Error> {
        self.map_err(|error| Error::from_source(kind, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that causes are printed once, and only where they are asked for.
    #[test]
    fn causes_are_printed() {
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let error = Err::<(), _>(missing()).context(ErrorKind::System, "cannot start the kernel").unwrap_err();
        assert_eq!((error.to_string(), error.kind()), ("cannot start the kernel".to_owned(), ErrorKind::System));
        assert_eq!(format!("{error:#}"), "cannot start the kernel: entity not found");
        let outer = Err::<(), _>(error).of_kind(ErrorKind::Kernel).unwrap_err();
        assert_eq!(format!("{outer:#}"), "cannot start the kernel: entity not found");
    }
}
