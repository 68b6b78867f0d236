//! Folded stacks: a line for each stack, frames from the root to the leaf, then the number.

use super::limits::{Bounded, MOST_BYTES, too_large};
use super::{Counted, Export, function};
use firsttouch_analysis::pictures::AccessSample;
use firsttouch_model::error::Result;
use firsttouch_model::rows::Id;
use std::collections::{BTreeMap, HashMap};

/// Thread, call stack, object, and where the memory is: [`memory`].
type Key = (usize, Option<Id>, Id, String);

/// The stacks. The last two frames are the object, and whether its memory is local or remote.
///
/// # Errors
/// When they are too large.
pub fn folded(export: &Export<'_>, counted: Counted) -> Result<String> {
    within(export, counted, MOST_BYTES)
}

fn within(export: &Export<'_>, counted: Counted, most: usize) -> Result<String> {
    let objects = export.objects();
    let mut sums: HashMap<Key, u64> = HashMap::new();
    for whole in export.whole().iter().filter(|whole| whole.value(counted) > 0) {
        let sample = whole.sample;
        *sums.entry((sample.thread, sample.site, sample.object, memory(sample))).or_default() += whole.value(counted);
    }
    // Stacks that differ in addresses alone are one line.
    let mut by_line: BTreeMap<String, u64> = BTreeMap::new();
    let mut bytes = 0;
    for ((thread, site, object, memory), sum) in sums {
        let mut stack = vec![format!("thread {thread}")];
        stack.extend(export.stack_of(site).into_iter().rev().map(function));
        stack.push(format!("[{}]", Export::object_name(&objects, object)));
        stack.push(memory);
        let line = stack.iter().map(|frame| name(frame)).collect::<Vec<_>>().join(";");
        bytes += line.len();
        if bytes > most {
            return Err(too_large(most));
        }
        *by_line.entry(line).or_default() += sum;
    }
    let mut out = Bounded::new(most);
    for (stack, sum) in by_line {
        out.line(format_args!("{stack} {sum}"))?;
    }
    Ok(out.finish())
}

fn memory(sample: &AccessSample) -> String {
    match (sample.is_remote(), sample.home) {
        (Some(true), Some(home)) => format!("remote (node {} to {home})", sample.thread_node),
        (Some(false), _) => "local".to_owned(),
        _ => "node not known".to_owned(),
    }
}

/// A frame's name. Semicolons separate frames, and the last space the number.
fn name(text: &str) -> String {
    let text = text.replace(';', ":");
    if text.trim().is_empty() { "?".to_owned() } else { text }
}
