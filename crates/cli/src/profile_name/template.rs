//! Names of files with `%p`, `%h`, `%q{VARIABLE}` and `%%`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What the parts of a name stand for.
pub struct Values<'a> {
    /// `%p`
    pub process: String,
    /// `%h`
    pub host: &'a dyn Fn() -> OsString,
    /// `%q{NAME}`
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// Why a name cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Unknown(String),
    Incomplete,
    NoBraces,
    NotSet(String),
    Empty,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KNOWN: &str = "%p (process number), %h (host), %q{VARIABLE} (environment variable) and %% (a percent sign)";
        match self {
            Self::Unknown(part) => write!(f, "'{part}' has no meaning: use {KNOWN}"),
            Self::Incomplete => write!(f, "it ends with '%': use {KNOWN}"),
            Self::NoBraces => write!(f, "after %q, the name of an environment variable must follow in braces, such as %q{{SLURM_PROCID}}"),
            Self::NotSet(name) => write!(f, "the environment variable {name} is not set"),
            Self::Empty => f.write_str("it is empty"),
        }
    }
}

impl std::error::Error for Fault {}

/// Replaces the parts of a name that begin with `%`.
///
/// # Errors
/// When a part is unknown or incomplete, or names a variable that is not set.
pub fn expand(name: &OsStr, values: &Values<'_>) -> Result<OsString, Fault> {
    let mut expanded = Vec::new();
    let mut rest = name.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        expanded.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.first() {
            None => return Err(Fault::Incomplete),
            Some(b'%') => expanded.push(b'%'),
            Some(b'p') => expanded.extend_from_slice(values.process.as_bytes()),
            Some(b'h') => expanded.extend_from_slice((values.host)().as_bytes()),
            Some(b'q') => {
                let variable = rest
                    .strip_prefix(b"q{")
                    .and_then(|after| after.split(|byte| *byte == b'}').next().filter(|name| name.len() < after.len()));
                let name =
                    variable.and_then(|name| std::str::from_utf8(name).ok()).filter(|name| !name.is_empty()).ok_or(Fault::NoBraces)?;
                let value = (values.variable)(name).ok_or_else(|| Fault::NotSet(name.to_owned()))?;
                expanded.extend_from_slice(value.as_bytes());
                rest = &rest[name.len() + 2..];
            }
            Some(_) => {
                let part: String = String::from_utf8_lossy(rest).chars().take(1).collect();
                return Err(Fault::Unknown(format!("%{part}")));
            }
        }
        rest = &rest[1..];
    }
    expanded.extend_from_slice(rest);
    if expanded.is_empty() { Err(Fault::Empty) } else { Ok(OsString::from_vec(expanded)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(name: &str) -> Result<String, Fault> {
        let values =
            Values { process: "4711".to_owned(), host: &|| "node7".into(), variable: &|name| (name == "RANK").then(|| "3".into()) };
        expand(OsStr::new(name), &values).map(|name| name.into_string().unwrap())
    }

    /// Check what each part stands for, and a table of malformed names.
    #[test]
    fn parts_are_replaced() {
        for (name, file) in [
            ("a.ftp", "a.ftp"),
            ("%p.ftp", "4711.ftp"),
            ("a-%h-%p-%q{RANK}.ftp", "a-node7-4711-3.ftp"),
            ("100%%.ftp", "100%.ftp"),
            ("%%p", "%p"),
            ("é%q{RANK}é", "é3é"),
        ] {
            assert_eq!(expanded(name).as_deref(), Ok(file), "{name}");
        }
        for (name, fault) in [
            ("", Fault::Empty),
            ("a%", Fault::Incomplete),
            ("%d.ftp", Fault::Unknown("%d".to_owned())),
            ("100%.ftp", Fault::Unknown("%.".to_owned())),
            ("%é", Fault::Unknown("%é".to_owned())),
            ("%q", Fault::NoBraces),
            ("%qRANK", Fault::NoBraces),
            ("%q{RANK", Fault::NoBraces),
            ("%q{}", Fault::NoBraces),
            ("%q{OTHER}", Fault::NotSet("OTHER".to_owned())),
        ] {
            assert_eq!(expanded(name), Err(fault), "{name}");
        }
    }
}
