use std::fmt;
use std::io;

/// What failed, and the system's reason.
#[derive(Debug)]
pub struct Error {
    action: String,
    cause: io::Error,
}

impl Error {
    pub(crate) fn last(action: impl Into<String>) -> Self {
        Self { action: action.into(), cause: io::Error::last_os_error() }
    }

    pub(crate) fn invalid(action: impl Into<String>) -> Self {
        Self { action: action.into(), cause: io::ErrorKind::InvalidInput.into() }
    }

    pub(crate) fn no_memory(action: impl Into<String>) -> Self {
        Self { action: action.into(), cause: io::ErrorKind::OutOfMemory.into() }
    }

    /// The kind of the system's error: `OutOfMemory`, `InvalidInput` for an invalid partition, `PermissionDenied` and so on.
    pub fn kind(&self) -> io::ErrorKind {
        self.cause.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.action, self.cause)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
