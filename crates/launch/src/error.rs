//! The error of this crate: why a placement is not possible.

use std::error::Error as StdError;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line asks for something that this machine does not have, or contradicts itself.
    Usage,
    /// The system cannot be read, or refuses a call.
    System,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Usage, message: message.into() }
    }

    pub(crate) fn system(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::System, message: message.into() }
    }

    /// An error of the system with its causes; its own message is complete.
    pub(crate) fn from_system(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let error = error.into();
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::system(message)
    }

    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {}
