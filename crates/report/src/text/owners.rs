//! Objects of a program that firsttouch attached to, and that no finding is about: which thread uses which part, and on which node the part
//! should be. What the program did before is not known, but this is.

use super::finding::{LABEL, rows_of_use, table};
use super::layout::{clean, cut, pad, width};
use super::object_map::{UNKNOWN, push_map_beside};
use super::paint::Paint;
use super::words::percent;
use super::{FEW, Style};
use firsttouch_analysis::{Analysis, Finding, ObjectView};
use firsttouch_model::format_bytes;
use firsttouch_model::rows::Id;
use std::collections::BTreeSet;

/// Objects that are shown, and their least share of the accesses.
const MOST: usize = 3;
const LEAST: f64 = 0.05;

pub fn push(out: &mut Vec<String>, analysis: &Analysis, style: Style) {
    if !analysis.is_attached() || analysis.machine.nodes < 2 {
        return;
    }
    let found: BTreeSet<Id> = analysis.findings.iter().flat_map(Finding::objects).collect();
    let is_open = |object: &&ObjectView| {
        let is_known_good = object.judged && object.remote_fraction.is_some_and(|remote| remote <= FEW);
        !found.contains(&object.id) && !is_known_good && object.access_share.unwrap_or(0.0) >= LEAST
    };
    for object in analysis.objects.iter().filter(is_open).take(MOST) {
        head(out, object, style);
        table(out, &rows_of_use(object), style);
        push_map_beside(out, &object.map, &owners(analysis, object), LABEL, style);
        out.push(String::new());
    }
}

/// `mapping at 0x7f00   192.0 MiB   not judged                  100 % of the accesses`
fn head(out: &mut Vec<String>, object: &ObjectView, style: Style) {
    let state = match object.remote_fraction.filter(|_| object.judged) {
        Some(remote) => format!("{} of its accesses remote", percent(remote)),
        None => "not judged".to_owned(),
    };
    let rest = format!("   {}   {state}", format_bytes(object.total_bytes));
    let share = format!("{} of the accesses", percent(object.access_share.unwrap_or(0.0)));
    let name = cut(&clean(&object.name), style.width.saturating_sub(width(&rest)).max(4));
    let used = width(&name) + width(&rest);
    let line = format!("{}{rest}", style.paint(Paint::Bold, &name));
    let gap = style.width.saturating_sub(used + width(&share));
    out.push(if gap > 2 { format!("{line}{}{share}", pad("", gap)) } else { line });
}

/// The node of the thread that uses each part.
fn owners(analysis: &Analysis, object: &ObjectView) -> Vec<i64> {
    let node = |thread: &i64| {
        let thread = usize::try_from(*thread).ok().and_then(|thread| analysis.threads.get(thread));
        thread.map_or(UNKNOWN, |thread| i64::from(thread.node))
    };
    object.map.users.iter().map(node).collect()
}
