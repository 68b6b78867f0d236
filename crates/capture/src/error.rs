//! The error of this crate: a coarse kind, and the chain of causes.

use firsttouch_system::launch::LaunchError;
use std::error::Error as StdError;
use std::fmt;

/// What went wrong, as far as a caller decides by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The command cannot be run: [`Error::launch`] has the details.
    Launch,
    /// There is no process to attach to, or it cannot be profiled.
    Attach,
    /// The profile cannot be created, read or written.
    Profile,
    /// The system refused something that a run needs (memory, descriptors, signals).
    System,
}

/// Why a run failed. `{}` prints what failed; `{:#}` adds the causes, outermost first.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Message(String),
    Launch(LaunchError),
    Other(Box<dyn StdError + Send + Sync>),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error that was found here, as one sentence.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, cause: Cause::Message(message.into()) }
    }

    /// An error of a crate or of the system below, whose text says what failed.
    pub(crate) fn of(kind: ErrorKind, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { kind, cause: Cause::Other(cause.into()) }
    }

    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Why the command cannot be run, if that is the error. It knows the status that a shell would exit with.
    #[must_use]
    pub fn launch(&self) -> Option<&LaunchError> {
        match &self.cause {
            Cause::Launch(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Self {
        Self { kind: ErrorKind::Launch, cause: Cause::Launch(error) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Message(text) => f.write_str(text)?,
            Cause::Launch(error) => write!(f, "{error}")?,
            Cause::Other(error) => write!(f, "{error}")?,
        }
        if f.alternate() {
            let mut source = self.source();
            while let Some(cause) = source {
                write!(f, ": {cause}")?;
                source = cause.source();
            }
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.cause {
            Cause::Message(_) => None,
            Cause::Launch(error) => error.source(),
            Cause::Other(error) => error.source(),
        }
    }
}

/// Conversions from the errors of the crates `system` and `profile`: no other file of this crate names their types.
pub(crate) mod convert {
    use super::{Error, ErrorKind, LaunchError, StdError};

    /// What the methods of `firsttouch_profile::Writer` return.
    pub type Written = firsttouch_model::error::Result<()>;

    /// An error of `firsttouch_system::launch`: the command cannot be run, or the system refused to start anything.
    pub fn launch(error: impl Into<LaunchError>) -> Error {
        match error.into() {
            LaunchError::NotPrepared(error) => Error::of(ErrorKind::System, error),
            launch @ LaunchError::NotExecuted { .. } => launch.into(),
        }
    }

    /// Any other error of `firsttouch_system`.
    pub fn system(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error::of(ErrorKind::System, error)
    }

    /// An error of `firsttouch_profile`.
    pub fn profile(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error::of(ErrorKind::Profile, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Check that `{}` is the outermost text, `{:#}` the chain, and that neither repeats a cause.
    #[test]
    fn causes_are_printed_once() {
        let error = convert::profile(firsttouch_model::error::Error::caused_by(io::Error::other("disk full"), "cannot write"));
        assert_eq!((error.to_string(), format!("{error:#}")), ("cannot write".to_owned(), "cannot write: disk full".to_owned()));
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("disk full"));
        assert_eq!(Error::new(ErrorKind::Attach, "no such process").to_string(), "no such process");
    }

    /// Check that a failed launch stays distinguishable, with its error number, and other errors of the launch do not look like one.
    #[test]
    fn a_failed_launch_keeps_its_status() {
        let failed = |errno| convert::launch(LaunchError::NotExecuted { command: "x".to_owned(), errno });
        for errno in [libc::ENOENT, libc::EACCES] {
            let error = failed(errno);
            assert_eq!((error.kind(), error.launch().and_then(LaunchError::not_executed)), (ErrorKind::Launch, Some(errno)));
        }
        let other = convert::launch(firsttouch_model::error::Error::other("cannot make a pipe"));
        assert_eq!((other.kind(), other.launch().is_none()), (ErrorKind::System, true));
    }
}
