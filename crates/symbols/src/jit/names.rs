//! What runtimes call the functions that they generate, as the programmer knows them.

use super::LONGEST_NAME;
use crate::names::demangle;

/// V8's kinds of JavaScript functions. A mark follows that says how the function was compiled.
const JAVASCRIPT: &[&str] = &["JS", "LazyCompile", "Function", "Script", "Eval"];
/// V8's own code.
const V8: &[&str] = &["Builtin", "BytecodeHandler", "Stub", "RegExp"];

/// The readable name of a function; `None` if nothing of it can be printed.
pub(super) fn function(raw: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(raw);
    let text: String = text.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| readable(text).filter(|name| !name.is_empty()).unwrap_or_else(|| text.to_owned()))
}

/// Whether V8 wrote this name.
pub(super) fn is_of_v8(raw: &[u8]) -> bool {
    let kind = raw.split(|byte| *byte == b':').next().unwrap_or_default();
    JAVASCRIPT.iter().chain(V8).any(|known| known.as_bytes() == kind)
}

fn readable(text: &str) -> Option<String> {
    if text.starts_with("_Z") || text.starts_with("_R") {
        return Some(demangle(text));
    }
    python(text).or_else(|| javascript(text)).or_else(|| java(text))
}

/// `py::fill:/home/me/fill.py` -> `fill (fill.py)`.
fn python(text: &str) -> Option<String> {
    let (function, file) = text.strip_prefix("py::")?.split_once(':')?;
    Some(format!("{function} ({})", base(file)))
}

/// `JS:*fill /home/me/fill.js:12:14` -> `fill (fill.js:12)`: the line where the function starts. The number after it is a column.
fn javascript(text: &str) -> Option<String> {
    let (kind, rest) = text.split_once(':')?;
    if !JAVASCRIPT.contains(&kind) {
        return None;
    }
    let rest = rest.trim_start_matches(['*', '~', '^', '+']);
    let named = |function: &str| if function.is_empty() { "(anonymous)" } else { function }.to_owned();
    let Some((function, place)) = rest.split_once(' ') else { return Some(named(rest)) };
    let function = named(function);
    // Node's own functions (`node:internal/...`) keep the whole path, which says so.
    let place = if place.starts_with("node:") { place } else { base(place) };
    let mut parts = place.rsplitn(3, ':');
    let is_number = |part: &Option<&str>| part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let (column, line, file) = (parts.next(), parts.next(), parts.next());
    Some(match file.filter(|_| is_number(&column) && is_number(&line)) {
        Some(file) => format!("{function} ({file}:{})", line.unwrap_or_default()),
        None => format!("{function} ({place})"),
    })
}

/// `void Fill.fill(double[], int)` of OpenJDK, `LFill;::fill` of perf-map-agent -> `Fill.fill`.
fn java(text: &str) -> Option<String> {
    if let Some((class, method)) = text.strip_prefix('L').and_then(|text| text.split_once(";::")) {
        return Some(format!("{}.{method}", class.replace('/', ".")));
    }
    let (signature, _) = text.strip_suffix(')')?.split_once('(')?;
    let (_, name) = signature.rsplit_once(' ')?;
    name.contains('.').then(|| name.to_owned())
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runtimes_become_readable() {
        for (raw, readable) in [
            ("JS:*fill /tmp/jt/fill.js:1:14", "fill (fill.js:1)"),
            ("JS:~ file:///tmp/jt/fill.mjs:1:1", "(anonymous) (fill.mjs:1)"),
            ("LazyCompile:*fill /home/me/a b.js:12", "fill (a b.js:12)"),
            ("Function:~setup node:internal/process/pre_execution:165:36", "setup (node:internal/process/pre_execution:165)"),
            ("Script:~", "(anonymous)"),
            ("JS:", "(anonymous)"),
            ("Builtin:FulfillPromise", "Builtin:FulfillPromise"),
            ("void Fill.fill(double[], int)", "Fill.fill"),
            ("double[] a.b.Grid.<init>(int)", "a.b.Grid.<init>"),
            ("Interpreter", "Interpreter"),
            ("LFill;::fill", "Fill.fill"),
            ("Lcom/x/Grid;::solve", "com.x.Grid.solve"),
            ("py::fill:/home/me/fill.py", "fill (fill.py)"),
            ("py::odd", "py::odd"),
            ("_ZN4grid4fillEPdi", "grid::fill"),
            ("plain name", "plain name"),
            ("f(x)", "f(x)"),
            ("\u{1b}[31mred", "[31mred"),
        ] {
            assert_eq!(function(raw.as_bytes()).unwrap_or_default(), readable, "{raw}");
        }
        assert_eq!(function(b" \x01\x02 "), None);
        assert!(is_of_v8(b"JS:*f x") && is_of_v8(b"Builtin:x") && !is_of_v8(b"fill") && !is_of_v8(b"JSON"));
    }
}
