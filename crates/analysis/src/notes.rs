//! Doubts and limits of an analysis, a sentence each, with what to do about them.

use crate::Target;
use crate::threads::Threads;
use crate::touches::TouchIndex;
use crate::unrecorded::Unrecorded;
use crate::uses::Uses;
use firsttouch_model::Pin;
use firsttouch_model::rows::Profile;

/// What doubts are read from.
pub struct Doubts<'a> {
    pub profile: &'a Profile,
    pub target: &'a Target,
    pub threads: &'a Threads,
    pub uses: &'a Uses,
    pub index: &'a TouchIndex,
    /// Objects that are not listed.
    pub unlisted: usize,
    pub unrecorded: Option<Unrecorded>,
    /// Judged mappings that seem to hold several arrays: name, number.
    pub merged: Vec<(String, u64)>,
}

/// `1 window`, `2 windows`.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// All notes, those of the capture first.
#[must_use]
pub fn notes(doubts: &Doubts<'_>) -> Vec<String> {
    let Doubts { profile, target, uses, .. } = doubts;
    let mut notes = profile.meta.notes.clone();
    notes.extend(doubts.unrecorded.map(|u| u.note(profile)));
    notes.extend(doubts.merged.iter().map(|(name, arrays)| {
        format!("{name} may hold {arrays} arrays, each used in plain blocks: a mapping does not tell allocations apart")
    }));
    if target.nodes <= 1 {
        notes.push(format!("{} has one node: nothing can be remote; judge on a machine with several (--machine virtual:2)", target.name));
    } else {
        notes.extend(nothing_remote(doubts));
    }
    if uses.initialising > 0 {
        let (windows, were) = (counted(uses.initialising, "window"), if uses.initialising == 1 { "was" } else { "were" });
        notes.push(format!("{windows} saw memory being initialised and {were} left out of the use figures"));
    }
    let refused = uses.refused.saturating_add(doubts.index.refused);
    if refused > 0 {
        let (records, were) = (counted(refused, "record"), if refused == 1 { "was" } else { "were" });
        notes.push(format!("{records} {were} not usable (unknown thread, object or address, or no usable figure) and {were} left out"));
    }
    let mismatched = (0..uses.watch.hits.len()).filter(|&g| uses.watch.design.mismatch(g)).count();
    if mismatched > 0 {
        notes.push(format!(
            "{} watched more or less often than size and life say; access shares there rest on the windows alone",
            if mismatched == 1 { "1 object was".to_owned() } else { format!("{mismatched} objects were") }
        ));
    }
    if doubts.unlisted > 0 {
        let are = if doubts.unlisted == 1 { "is" } else { "are" };
        notes.push(format!("{} on which no access was seen {are} not listed", counted(doubts.unlisted as u64, "object")));
    }
    notes
}

/// Why the threads seen cannot have remote memory on this target, if so.
fn nothing_remote(doubts: &Doubts<'_>) -> Option<String> {
    let Doubts { threads, target, .. } = doubts;
    let node = threads.list.first()?.node;
    if threads.alone() {
        // The report's headline says that there is nothing to find.
        return left_alone(doubts.profile);
    }
    if threads.list.iter().any(|t| t.node != node) {
        return None;
    }
    let how = match (target.virtual_machine, &target.pin) {
        (false, _) => format!("judge on a virtual machine (--machine virtual:{})", target.nodes),
        (true, Pin::Spread) => return None,
        (true, _) => "judge with --pin spread".to_owned(),
    };
    Some(format!("All threads sit on one node of {}: nothing can be remote; {how}", target.name))
}

/// Processes that the program started and nobody looked at: they may have done its work.
fn left_alone(profile: &Profile) -> Option<String> {
    let children = Some(profile.meta.children_left).filter(|&children| children > 0)?;
    let (processes, were) = if children == 1 { ("process", "was") } else { ("processes", "were") };
    Some(format!("The program started {children} {processes} that {were} not profiled; to profile them as well: --follow"))
}
