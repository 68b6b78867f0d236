//! The error type of the libraries: a kind for code, and a chain of messages for users.
//!
//! A message names an action and its object; its source says why that failed. `{error}` shows the outermost message, `{error:#}` the
//! whole chain in one line. (The shape follows blazesym's errors; the command line uses anyhow, and `?` converts into it.)

use crate::shown::one_line;
use std::error::Error as StdError;
use std::fmt;
use std::io;

/// What went wrong, in the categories that callers can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file, process or device does not exist.
    NotFound,
    /// Another user or a privilege is needed.
    PermissionDenied,
    /// The user's input cannot be used.
    InvalidInput,
    /// A file has unexpected contents.
    InvalidData,
    /// This kernel, machine or container does not have what was asked for.
    Unsupported,
    Other,
}

impl From<io::ErrorKind> for ErrorKind {
    fn from(kind: io::ErrorKind) -> Self {
        match kind {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::PermissionDenied,
            io::ErrorKind::InvalidInput => Self::InvalidInput,
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Self::InvalidData,
            io::ErrorKind::Unsupported => Self::Unsupported,
            _ => Self::Other,
        }
    }
}

type Source = Box<dyn StdError + Send + Sync + 'static>;

/// An error with its context.
pub struct Error(Box<Parts>);

struct Parts {
    kind: ErrorKind,
    message: String,
    source: Option<Source>,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Parts { kind, message: sentence(message), source: None }))
    }

    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    #[must_use]
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::PermissionDenied, message)
    }

    #[must_use]
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    #[must_use]
    pub fn invalid_data(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidData, message)
    }

    #[must_use]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    #[must_use]
    pub fn other(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Other, message)
    }

    /// Wraps the failure of another library; the message says which action failed.
    #[must_use]
    pub fn caused_by(source: impl StdError + Send + Sync + 'static, message: impl Into<String>) -> Self {
        let kind = kind_of(&source);
        Self(Box::new(Parts { kind, message: sentence(message), source: Some(Box::new(source)) }))
    }

    /// Adds a message that says which action failed. The kind stays the same.
    #[must_use]
    pub fn context(self, message: impl Into<String>) -> Self {
        Self::caused_by(self, message)
    }

    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The innermost error of the chain.
    #[must_use]
    pub fn root_cause(&self) -> &(dyn StdError + 'static) {
        let mut cause: &(dyn StdError + 'static) = self;
        while let Some(source) = cause.source() {
            cause = source;
        }
        cause
    }
}

/// A message is one line, whatever names are in it.
fn sentence(message: impl Into<String>) -> String {
    one_line(&message.into()).into_owned()
}

fn kind_of(error: &(dyn StdError + 'static)) -> ErrorKind {
    if let Some(error) = error.downcast_ref::<Error>() {
        error.kind()
    } else if let Some(error) = error.downcast_ref::<io::Error>() {
        error.kind().into()
    } else {
        ErrorKind::Other
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(error.kind().into(), error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if f.alternate() {
            let mut cause = self.source();
            while let Some(error) = cause {
                write!(f, ": {error}")?;
                cause = error.source();
            }
        }
        Ok(())
    }
}

/// The format in the output of a failed test.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self:#}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Errors are equal if their kinds and their messages are equal.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind() && format!("{self:#}") == format!("{other:#}")
    }
}

/// Adds context to a result.
pub trait Context<T> {
    /// # Errors
    /// The error of the result, with a message around it.
    fn context(self, message: impl Into<String>) -> Result<T>;

    /// As [`Context::context`]; the message is made only if it is needed.
    ///
    /// # Errors
    /// The error of the result, with a message around it.
    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T>;
}

impl<T, E: StdError + Send + Sync + 'static> Context<T> for std::result::Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.map_err(|error| Error::caused_by(error, message))
    }

    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T> {
        self.map_err(|error| Error::caused_by(error, message()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the chain is one line, and that the kind is that of the cause.
    #[test]
    fn errors_are_chains() {
        let missing = io::Error::from_raw_os_error(2);
        let error = Err::<(), _>(missing).context("cannot open a").with_context(|| format!("cannot read {}", "b")).expect_err("failed");
        assert_eq!(error.to_string(), "cannot read b");
        assert_eq!(format!("{error:#}"), "cannot read b: cannot open a: No such file or directory (os error 2)");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.root_cause().to_string(), "No such file or directory (os error 2)");
        let plain = Error::invalid_data("not text");
        assert_eq!((format!("{plain:#}"), plain.kind()), ("not text".to_owned(), ErrorKind::InvalidData));
        assert_eq!(Error::from(io::Error::from(io::ErrorKind::PermissionDenied)).kind(), ErrorKind::PermissionDenied);
    }
}
