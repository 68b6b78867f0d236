//! Folded stacks: a line for each stack, frames from the root to the leaf, then the number.

use super::{Counted, Export, function};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The stacks. The last two frames are the object, and whether its memory is local or remote.
#[must_use]
pub fn folded(export: &Export<'_>, counted: Counted) -> String {
    let objects = export.objects();
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for whole in export.whole() {
        let sample = whole.sample;
        let mut stack = vec![format!("thread {}", sample.thread)];
        stack.extend(export.stack(sample).iter().rev().map(function));
        stack.push(format!("[{}]", Export::object_name(&objects, sample.object)));
        stack.push(match (sample.is_remote(), sample.home) {
            (Some(true), Some(home)) => format!("remote (node {} to {home})", sample.thread_node),
            (Some(false), _) => "local".to_owned(),
            _ => "node not known".to_owned(),
        });
        let line: Vec<String> = stack.iter().map(|frame| name(frame)).collect();
        *sums.entry(line.join(";")).or_default() += whole.value(counted);
    }
    let mut out = String::new();
    for (stack, sum) in sums.iter().filter(|(_, sum)| **sum > 0) {
        let _ = writeln!(out, "{stack} {sum}");
    }
    out
}

/// A frame's name. Semicolons separate frames, and the last space the number.
fn name(text: &str) -> String {
    let text = text.replace(';', ":");
    if text.trim().is_empty() { "?".to_owned() } else { text }
}
