//! A place in the code in words: file and line, else the function, else module and offset.

use firsttouch_analysis::{CodeLocation, ObjectView};
use firsttouch_model::generated_code::{self, is_generated};
use firsttouch_model::rows::ObjectKind;
use firsttouch_symbols::readable_function;
use std::path::Path;

/// `dgemv.c:41`, `function()`, `libfoo.so+0x1a2b`: the most precise that is known.
pub fn place(place: &CodeLocation) -> String {
    match (&place.file, place.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
        (Some(file), None) => file_name(file).to_owned(),
        _ => match (&place.function, &place.module, place.offset) {
            (Some(name), ..) => called(name),
            (None, Some(module), _) if is_generated(module) => generated_code::UNNAMED.to_owned(),
            (None, Some(module), Some(offset)) => format!("{}+{offset:#x}", file_name(module)),
            (None, Some(module), None) => file_name(module).to_owned(),
            (None, None, _) => "unknown code".to_owned(),
        },
    }
}

/// `initialise()`, `main (parallel region)`.
fn called(name: &str) -> String {
    let name = readable_function(name);
    if name.contains([' ', '(']) { name } else { format!("{name}()") }
}

/// `in initialise`.
pub fn within(name: &str) -> String {
    format!("in {}", readable_function(name))
}

/// Whether a module is part of the system or of an interpreter.
pub fn is_library(module: &str) -> bool {
    const INSTALLED: &[&str] = &["/usr/lib", "/lib/", "/lib32/", "/lib64/", "/usr/bin/python", "["];
    const SHELLS: &[&str] = &["/usr/bin/bash", "/bin/bash", "/usr/bin/dash", "/bin/dash", "/usr/bin/env"];
    let name = file_name(module);
    if is_generated(module) {
        return false;
    }
    INSTALLED.iter().any(|start| module.starts_with(start))
        || SHELLS.contains(&module)
        || name.starts_with("libpython")
        || PACKAGES.iter().chain(&["/lib-dynload/"]).any(|part| module.contains(part))
}

/// Folders of Python's packages.
const PACKAGES: &[&str] = &["/site-packages/", "/dist-packages/"];
/// What a package allocates is named if it receives this part of the accesses.
const LEAST_NAMED_SHARE: f64 = 0.05;

/// Whether a library of the system or an interpreter allocated the object for itself.
pub fn is_internal(object: &ObjectView) -> bool {
    if object.library.is_some() {
        return true;
    }
    let at = object.allocated_at.as_ref();
    if let Some(module) = at.and_then(|at| at.module.as_deref()) {
        return is_allocated_within(module, object.access_share);
    }
    // Static arrays and pools have no module: their code tells. CPython is built in a directory with its version.
    let of_interpreter = |file: &str| file.contains("/Python-3") && file.ends_with(['c', 'h']);
    if at.and_then(|at| at.file.as_deref()).is_some_and(of_interpreter) {
        return true;
    }
    // A pool of many lines holds blocks of a program's start as well, for example of the shell that executed it.
    let least = if object.kind == ObjectKind::Pool { 0.9 } else { 1.0 };
    let is_of_libraries = |places: &[CodeLocation]| {
        let known = || places.iter().filter_map(|place| Some((is_library(place.module.as_deref()?), place.share)));
        let (all, own) =
            (known().map(|(_, share)| share).sum::<f64>(), known().filter(|known| !known.0).map(|(_, share)| share).sum::<f64>());
        (known().next().is_some()).then_some(own <= (1.0 - least) * all)
    };
    let known = [is_of_libraries(&object.used_at), is_of_libraries(&object.first_touch.at)];
    at.is_none_or(|at| at.file.is_none()) && known != [None, None] && !known.contains(&Some(false))
}

/// Whether code of this module allocates for itself. Most of a program's work may be a package's, on arrays of its own.
fn is_allocated_within(module: &str, access_share: Option<f64>) -> bool {
    let is_of_package = PACKAGES.iter().any(|part| module.contains(part));
    is_library(module) && !(is_of_package && access_share.is_some_and(|share| share >= LEAST_NAMED_SHARE))
}

pub fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that an array which a Python package allocates is named if much of the work is on it, and what the system allocates is not.
    #[test]
    fn arrays_of_packages_are_named() {
        for (module, share, expected) in [
            ("/env/lib/python3.11/site-packages/numpy/_core/_multiarray_umath.so", 0.42, false),
            ("/env/lib/python3.11/site-packages/numpy/_core/_multiarray_umath.so", 0.02, true),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", 0.42, true),
            ("/home/me/sim", 0.02, false),
        ] {
            assert_eq!(is_allocated_within(module, Some(share)), expected, "{module} {share}");
        }
    }

    /// Check that a place is named by the most precise that is known.
    #[test]
    fn places_degrade() {
        let full = CodeLocation {
            file: Some("/src/дом/dgemv.c".into()),
            line: Some(41),
            function: Some("allocate".into()),
            module: Some("/bin/dgemv".into()),
            offset: Some(0x1a2b),
            ..CodeLocation::default()
        };
        assert_eq!(place(&full), "dgemv.c:41");
        assert_eq!(place(&CodeLocation { line: None, ..full.clone() }), "dgemv.c");
        let no_lines = CodeLocation { file: None, ..full };
        assert_eq!(place(&no_lines), "allocate()");
        let outlined = CodeLocation { function: Some("main._omp_fn.0".into()), ..no_lines.clone() };
        assert_eq!(place(&outlined), "main (parallel region)");
        let generated = CodeLocation { module: Some("[generated code]".into()), function: None, ..no_lines.clone() };
        assert_eq!(place(&generated), "generated code (no perf map)");
        let stripped = CodeLocation { function: None, ..no_lines };
        assert_eq!(place(&stripped), "dgemv+0x1a2b");
        assert_eq!(place(&CodeLocation::default()), "unknown code");
    }
}
