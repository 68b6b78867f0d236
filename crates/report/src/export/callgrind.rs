//! The format of callgrind: local and remote accesses as events of each line.

use super::{Export, function};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Events of a line.
#[derive(Clone, Copy, Default)]
struct Events {
    local: u64,
    remote: u64,
    unknown: u64,
}

/// Object file, source file, function.
type Code = (String, String, String);

#[must_use]
pub fn callgrind(export: &Export<'_>) -> String {
    let mut lines: BTreeMap<Code, BTreeMap<u32, Events>> = BTreeMap::new();
    let mut all = Events::default();
    for whole in export.whole() {
        let stack = export.stack(whole.sample);
        // The line of the program, rather than the library function that it calls.
        let frame = stack.iter().find(|frame| frame.file.is_some() && frame.line.is_some()).or_else(|| stack.first()).copied();
        let known = |text: Option<&String>| text.map_or_else(|| "???".to_owned(), |text| name(text));
        let code = (
            known(frame.and_then(|frame| frame.module.as_ref())),
            known(frame.and_then(|frame| frame.file.as_ref())),
            frame.map_or_else(|| "???".to_owned(), |frame| name(&function(frame))),
        );
        let line = frame.and_then(|frame| frame.line).unwrap_or(0);
        let events = lines.entry(code).or_default().entry(line).or_default();
        for events in [events, &mut all] {
            match whole.sample.is_remote() {
                Some(true) => events.remote += whole.accesses,
                Some(false) => events.local += whole.accesses,
                None => events.unknown += whole.accesses,
            }
        }
    }
    let mut out = String::from("# callgrind format\nversion: 1\n");
    let _ = writeln!(out, "creator: firsttouch-{}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(out, "cmd: {}", name(&export.analysis.command.join(" ")));
    for remark in export.remarks() {
        let _ = writeln!(out, "desc: Remark: {}", name(&remark));
    }
    out.push_str("positions: line\n");
    out.push_str("event: Local : Accesses to memory on the thread's node\n");
    out.push_str("event: Remote : Accesses to memory on another node\n");
    out.push_str("event: Unknown : Accesses to memory whose node is not known\n");
    out.push_str("event: All = Local + Remote + Unknown : All accesses\n");
    out.push_str("events: Local Remote Unknown\n");
    let _ = writeln!(out, "summary: {} {} {}", all.local, all.remote, all.unknown);
    for ((module, file, function), by_line) in &lines {
        let _ = writeln!(out, "\nob={module}\nfl={file}\nfn={function}");
        for (line, events) in by_line {
            let _ = writeln!(out, "{line} {} {} {}", events.local, events.remote, events.unknown);
        }
    }
    let _ = writeln!(out, "\ntotals: {} {} {}", all.local, all.remote, all.unknown);
    out
}

/// A name in one line. One that begins like a compressed name, `(1)`, would be read as such.
fn name(text: &str) -> String {
    let text = super::limits::name(text);
    if text.trim_start().starts_with('(') { format!("\u{2009}{}", text.trim_start()) } else { text }
}
