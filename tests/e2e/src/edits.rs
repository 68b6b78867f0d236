// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The changes of the source in a report (`findings[].fix_edits`), applied to a copy of a program.

use crate::corpus::Program;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All changes of a report's findings, each once.
///
/// # Panics
/// If the report has no list of findings.
#[must_use]
pub fn edits_of(report: &Value) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for edit in report["findings"].as_array().expect("findings").iter().filter_map(|finding| finding["fix_edits"].as_array()).flatten() {
        if !found.contains(edit) {
            found.push(edit.clone());
        }
    }
    found
}

/// The changes of a report's findings that place objects by libfirsttouch, each once.
///
/// # Panics
/// If the report has no list of findings.
#[must_use]
pub fn library_edits_of(report: &Value) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    let findings = report["findings"].as_array().expect("findings").iter();
    for edit in findings.filter_map(|finding| finding["library"]["edits"].as_array()).flatten() {
        if !found.contains(edit) {
            found.push(edit.clone());
        }
    }
    found
}

/// The text of a file with changes, as a user would make them from the report.
///
/// # Panics
/// If a change is not as the contract says.
#[must_use]
pub fn edited(text: &str, edits: &[&Value]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let number = |edit: &Value, key: &str| usize::try_from(edit[key].as_u64().expect(key)).expect("a line");
    // From the end, so that the lines before keep their numbers.
    let mut edits = edits.to_vec();
    edits.sort_by_key(|edit| std::cmp::Reverse(number(edit, "line")));
    for edit in edits {
        let (first, last) = (number(edit, "line"), number(edit, "last_line"));
        let new = edit["text"].as_array().expect("lines").iter().map(|line| line.as_str().expect("a line").to_owned());
        match edit["action"].as_str() {
            Some("insert-before") => drop(lines.splice(first - 1..first - 1, new)),
            Some("insert-after") => drop(lines.splice(last..last, new)),
            Some("replace") => drop(lines.splice(first - 1..last, new)),
            other => panic!("no such action: {other:?}"),
        }
    }
    lines.join("\n") + "\n"
}

/// Builds libfirsttouch.a in `folder`, and libfirsttouch.so.1 in the folder `shared` below it: a linker that found both would take the second.
///
/// # Panics
/// If it does not compile.
pub fn build_library(folder: &Path) {
    let sources = crate::paths::workspace_root().join("native/library");
    let script = format!(
        "cc -std=c11 -O2 -Wall -Wextra -Werror -fPIC -I{0}/include -c {0}/*.c && ar rcs libfirsttouch.a *.o && mkdir shared && cc -shared -o shared/libfirsttouch.so.1 *.o -lpthread",
        sources.display()
    );
    let output = Command::new("/bin/sh").args(["-c", &script]).current_dir(folder).output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Builds the crate firsttouch-alloc beside libfirsttouch.a, for programs that rustc builds without Cargo.
///
/// # Panics
/// If it does not compile.
pub fn build_crate(folder: &Path) {
    let source = crate::paths::workspace_root().join("bindings/rust/src/lib.rs");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--crate-type", "rlib", "--crate-name", "firsttouch_alloc", "-O", "-l", "static=firsttouch", "-L"]);
    let output = rustc.arg(folder).arg("--out-dir").arg(folder).arg(source).output().expect("rustc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A command that compiles and links with libfirsttouch, of which only the static library is in `folder`.
fn with_library(build: &str, folder: &Path) -> String {
    let root = crate::paths::workspace_root();
    if build.starts_with("rustc") {
        return format!("{build} --extern firsttouch_alloc={}", folder.join("libfirsttouch_alloc.rlib").display());
    }
    // `copy_manifest` has changed the manifest.
    if build.starts_with("cargo") {
        return build.replace("cargo build", "cargo build --offline");
    }
    // gfortran writes the module to the folder of the program.
    let module = format!("-J{{dir}} {} ", root.join("bindings/fortran/firsttouch.f90").display());
    let module = if build.starts_with("gfortran") { &module } else { "" };
    let native = root.join("native/library/include");
    build.replace("{src}", &format!("{module}{{src}} -I{} -L{} -lfirsttouch -pthread", native.display(), folder.display()))
}

/// Copies the folder with the manifest of a program that Cargo builds; with `has_crate`, as a user changes it to call libfirsttouch. The lock file of
/// the crate has rayon too.
fn copy_manifest(program: &Program, folder: &Path, has_crate: bool) {
    let own = program.source.with_extension("");
    let Ok(manifest) = fs::read_to_string(own.join("Cargo.toml")) else { return };
    let bindings = crate::paths::workspace_root().join("bindings/rust");
    let depends = format!("[dependencies]\nfirsttouch-alloc = {{ path = \"{}\" }}", bindings.display());
    let manifest = if has_crate { manifest.replace("[dependencies]", &depends) } else { manifest };
    let copy = folder.join(own.file_name().expect("a name"));
    fs::create_dir_all(&copy).expect("a folder");
    fs::write(copy.join("Cargo.toml"), manifest).expect("a copy");
    fs::copy(if has_crate { bindings } else { own }.join("Cargo.lock"), copy.join("Cargo.lock")).expect("a copy");
}

/// Builds a copy of the program with the changes, in `folder`; with `library`, the folder of libfirsttouch.a, linked with it. Returns the command line
/// of the copy.
///
/// # Errors
/// The compiler's messages.
///
/// # Panics
/// If a change is about a file that is not the program's, or files cannot be copied.
pub fn build_edited(program: &Program, edits: &[Value], folder: &Path, library: Option<&Path>) -> Result<Vec<String>, String> {
    let source = program.source.canonicalize().expect("the source");
    let own = source.parent().expect("a folder");
    let mut by_file: BTreeMap<PathBuf, Vec<&Value>> = BTreeMap::from([(source.clone(), Vec::new())]);
    let headers = fs::read_dir(own).expect("the folder").flatten().map(|entry| entry.path());
    by_file.extend(headers.filter(|path| path.extension().is_some_and(|end| end == "h")).map(|path| (path, Vec::new())));
    for edit in edits {
        // Cargo may build `rayon/../rayon.rs`.
        let path = Path::new(edit["file"].as_str().expect("a file")).canonicalize().expect("a file of this machine");
        by_file.get_mut(&path).unwrap_or_else(|| panic!("{} is not a file of {}", path.display(), program.name)).push(edit);
    }
    for (path, edits) in by_file {
        let text = edited(&fs::read_to_string(&path).expect("a readable source"), &edits);
        fs::write(folder.join(path.file_name().expect("a name")), text).expect("a copy");
    }
    copy_manifest(program, folder, library.is_some());
    let source = folder.join(source.file_name().expect("a name"));
    let out = folder.join("fixed");
    let fill = |text: &str| {
        let with = |text: &str, mark: &str, path: &Path| text.replace(mark, &path.to_string_lossy());
        with(&with(&with(text, "{src}", &source), "{out}", &out), "{dir}", folder)
    };
    if let Some(build) = program.get("build").filter(|build| *build != "none") {
        let build = library.map_or_else(|| build.to_owned(), |folder| with_library(build, folder));
        let build = build.as_str();
        // A warning that the program did not have is a defect of the change too.
        let output = Command::new("/bin/sh").args(["-c", &fill(build)]).current_dir(folder).output().map_err(|error| error.to_string())?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() || !errors.is_empty() {
            return Err(format!("{errors}\n{}", fs::read_to_string(&source).unwrap_or_default()));
        }
    }
    Ok(program.get("run").unwrap_or_default().split_whitespace().map(fill).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Check that changes are made at the lines of the file as it was.
    #[test]
    fn changes_are_applied_from_the_end() {
        let edits = [
            json!({"action": "insert-before", "line": 1, "last_line": 1, "text": ["0"]}),
            json!({"action": "replace", "line": 2, "last_line": 3, "text": ["x"]}),
            json!({"action": "insert-after", "line": 4, "last_line": 4, "text": ["5", "6"]}),
        ];
        assert_eq!(edited("1\n2\n3\n4\n", &edits.iter().collect::<Vec<_>>()), "0\n1\nx\n4\n5\n6\n");
    }
}
