//! The error of this crate: a kind, a message about what failed, and the cause.

use firsttouch_model::shown::one_line;
use std::error::Error;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The requested machine or pinning cannot be used: a usage error.
    Request,
    /// The file given as a plan cannot be read, or is not a plan.
    PlanFile,
    /// A file cannot be read as the description of a machine, or does not hold one.
    Machine,
    /// The user named a folder that is not a folder.
    Folder,
    /// A file is not a readable profile.
    Profile,
    /// A file is neither a profile nor a report.
    Report,
    /// The model cannot be used.
    Forecast,
}

#[derive(Debug)]
pub struct PipelineError {
    kind: ErrorKind,
    /// `None` if the cause needs no further message.
    message: Option<String>,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl PipelineError {
    /// An error without a cause.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: Some(one_line(&message.into()).into_owned()), cause: None }
    }

    /// An error whose cause needs no further message.
    pub(crate) fn of(kind: ErrorKind, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, message: None, cause: Some(cause.into()) }
    }

    /// An error with a message about what failed, and its cause.
    pub(crate) fn because(kind: ErrorKind, message: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, message: Some(one_line(&message.into()).into_owned()), cause: Some(cause.into()) }
    }

    pub(crate) fn with_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether it is a usage error: words that no command accepts. A file that cannot be used is not a usage error, whether an option or an argument names it.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        self.kind == ErrorKind::Request
    }
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.message, &self.cause) {
            (Some(message), _) => f.write_str(message),
            (None, Some(cause)) => cause.fmt(f),
            (None, None) => write!(f, "{:?}", self.kind),
        }
    }
}

impl Error for PipelineError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let cause = self.cause.as_deref()?;
        if self.message.is_some() { Some(cause) } else { cause.source() }
    }
}
