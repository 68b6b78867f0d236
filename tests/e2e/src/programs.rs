// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds the test programs. A source says how in its header:
//!
//! ```text
//! corpus: build = gcc -O2 -g -fopenmp {src} -o {out}
//! corpus: needs = helper.c sizes.h          (optional: files in the same directory that the build reads)
//! ```
//!
//! `{src}`, `{out}` and `{dir}` (the source's directory) are replaced, quoted; the rest is a shell command. The result
//! is in `target/test-programs/`, at the source's path without `tests/programs/` and without its extension, and is
//! built again when the source, a needed file, or the command has changed.

use crate::paths::{find_tool, target_dir, workspace_root};
use crate::skip::skipped;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a program was not built.
#[derive(Debug)]
pub enum BuildError {
    /// The source has no `corpus: build` header: it needs no build, or is not a program.
    NoHeader,
    /// The compiler is not installed.
    MissingTool(String),
    /// The build failed; the text says which step failed and why.
    Failed(String),
}

/// A program that is ready to run.
#[derive(Debug)]
pub struct Built {
    pub path: PathBuf,
    /// False if the result of an earlier build was still up to date.
    pub fresh: bool,
}

/// Builds the program `tests/programs/<name>.c`, or `.cpp`. Reports a skip and returns `None` if its compiler is missing.
///
/// # Panics
/// If the build fails.
pub fn program(test: &str, name: &str) -> Option<PathBuf> {
    let in_c = workspace_root().join("tests/programs").join(name).with_extension("c");
    let source = if in_c.exists() { in_c } else { in_c.with_extension("cpp") };
    match build(&source) {
        Ok(built) => Some(built.path),
        Err(BuildError::MissingTool(tool)) => {
            skipped(test, &format!("{tool} is not installed"));
            None
        }
        Err(BuildError::NoHeader) => panic!("{} has no `corpus: build` header", source.display()),
        Err(BuildError::Failed(text)) => panic!("{text}"),
    }
}

/// Builds one source, or finds its earlier result.
pub fn build(source: &Path) -> Result<Built, BuildError> {
    build_with(source, "")
}

/// The same with another compiler: `variant` is added to the compiler's name (`.mpich` for `mpicc.mpich`) and to the result's.
pub fn build_with(source: &Path, variant: &str) -> Result<Built, BuildError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| BuildError::Failed(format!("cannot {what} for {}: {error}", source.display()));
    let source = source.canonicalize().map_err(|error| failed("find the source", &error))?;
    let text = fs::read(&source).map_err(|error| failed("read the source", &error))?;
    let mut header = Header::parse(&String::from_utf8_lossy(&text)).ok_or(BuildError::NoHeader)?;
    header.build = header.build.replacen(' ', &format!("{variant} "), 1);
    let tool = header.build.split_whitespace().next().unwrap_or_default();
    if find_tool(tool).is_none() {
        return Err(BuildError::MissingTool(tool.to_owned()));
    }

    let directory = source.parent().expect("a file has a directory");
    let mut out = output_path(&source).into_os_string();
    out.push(variant);
    let out = PathBuf::from(out);
    let out_directory = out.parent().expect("the output has a directory");
    fs::create_dir_all(out_directory).map_err(|error| failed("make the output directory", &error))?;
    // The tests of one or several runs build at the same time.
    let _lock = Lock::take(&sidecar(&out, "lock")).map_err(|error| failed("lock the output", &error))?;

    let temporary = sidecar(&out, "new");
    let fill = |result: &Path| {
        header.build.replace("{src}", &quoted(&source)).replace("{dir}", &quoted(directory)).replace("{out}", &quoted(result))
    };
    let record = sidecar(&out, "command");
    let command = fill(&out);
    let headers = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let headers = headers.filter(|path| path.extension().is_some_and(|extension| extension == "h"));
    let inputs = std::iter::once(source.clone()).chain(header.needs.iter().map(|name| directory.join(name))).chain(headers);
    if fs::read_to_string(&record).is_ok_and(|built_by| built_by == command) && is_newer(&out, inputs) {
        return Ok(Built { path: out, fresh: false });
    }

    let output = Command::new("/bin/sh")
        .args(["-c", &fill(&temporary)])
        .current_dir(out_directory)
        .output()
        .map_err(|error| failed("start the build", &error))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(failed(&format!("run `{}`", fill(&temporary)), &errors));
    }
    // Rename, because a program that is still running needs its old file.
    fs::rename(&temporary, &out).map_err(|error| failed("put the result in place", &error))?;
    fs::write(&record, command).map_err(|error| failed("record the command", &error))?;
    Ok(Built { path: out, fresh: true })
}

/// All files below `path` (or `path` itself) that have a build header, in order of their names.
pub fn sources(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            found.extend(sources(&entry.path()));
        }
    } else if fs::read(path).is_ok_and(|text| Header::parse(&String::from_utf8_lossy(&text)).is_some()) {
        found.push(path.to_path_buf());
    }
    found.sort();
    found
}

struct Header {
    build: String,
    needs: Vec<String>,
}

impl Header {
    /// The header's lines may use any comment syntax.
    fn parse(text: &str) -> Option<Self> {
        let value = |key: &str| {
            text.lines().take(60).find_map(|line| {
                let (_, value) = line.split_once(key)?;
                Some(value.trim_end().trim_end_matches("*/").trim().to_owned())
            })
        };
        let build = value("corpus: build = ").filter(|command| command.contains("{out}"))?;
        let needs = value("corpus: needs = ").unwrap_or_default();
        Some(Header { build, needs: needs.split_whitespace().map(str::to_owned).collect() })
    }
}

pub fn output_path(source: &Path) -> PathBuf {
    let root = workspace_root();
    let relative = source.strip_prefix(&root).unwrap_or(Path::new(source.file_name().unwrap_or_default()));
    let relative = relative.strip_prefix("tests/programs").unwrap_or(relative);
    target_dir().join("test-programs").join(relative).with_extension("")
}

fn sidecar(out: &Path, kind: &str) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!(".{name}.{kind}"))
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

fn is_newer(out: &Path, mut inputs: impl Iterator<Item = PathBuf>) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    let Ok(built) = modified(out) else { return false };
    inputs.all(|input| modified(&input).is_ok_and(|changed| changed < built))
}

/// An exclusive lock on a file, released when dropped (with the descriptor).
struct Lock(#[allow(dead_code)] File);

impl Lock {
    fn take(path: &Path) -> std::io::Result<Self> {
        let file = File::create(path)?;
        // SAFETY: flock takes a descriptor, which `file` keeps open.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Lock(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that headers are found in the comment syntaxes of C, Fortran and Python, and only when complete.
    #[test]
    fn headers_are_parsed() {
        let table = [
            ("// corpus: build = gcc {src} -o {out}\n", Some("gcc {src} -o {out}")),
            (" * x\n * corpus: build = cc {src} -o {out} */\n", Some("cc {src} -o {out}")),
            ("! corpus: build = gfortran {src} -o {out}  \n", Some("gfortran {src} -o {out}")),
            ("# corpus: build = true {out}", Some("true {out}")),
            ("# corpus: build = gcc {src}", None),
            ("# corpus: run = python3 {src}", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(Header::parse(text).map(|header| header.build).as_deref(), expected, "{text:?}");
        }
    }

    /// Check that a program is built once and again after a change of its command, and that a failed build gives the reason.
    #[test]
    fn builds_are_cached() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let source = directory.path().join(format!("cache-test-{}.c", std::process::id()));
        let write = |command: &str, body: &str| {
            fs::write(&source, format!("// corpus: build = {command}\n{body}\n")).expect("the source is written");
        };
        write("cp {src} {out}", "");
        let first = build(&source).expect("it builds");
        assert!(first.fresh && !build(&source).expect("it is cached").fresh);
        std::thread::sleep(std::time::Duration::from_millis(20));
        write("cp -f {src} {out}", "");
        assert!(build(&source).expect("it builds again").fresh);
        write("false {out}", "");
        assert!(matches!(build(&source), Err(BuildError::Failed(_))));
        write("no-such-compiler {out}", "");
        assert!(matches!(build(&source), Err(BuildError::MissingTool(tool)) if tool == "no-such-compiler"));
        for kind in ["lock", "command", "new"] {
            let _ = fs::remove_file(sidecar(&first.path, kind));
        }
        fs::remove_file(&first.path).expect("the result is removed");
    }
}
