//! What was not judged: objects by reason, the program's own first.

use super::layout::clean;
use super::words::{count, is_library, thousands};
use firsttouch_analysis::{Analysis, NotJudged};
use firsttouch_model::format_bytes;

/// Objects named for each reason, the largest; the rest is counted.
const MOST_NAMED: usize = 3;

/// Objects that were left out for one reason.
struct Group<'a> {
    reason: String,
    members: Vec<&'a NotJudged>,
}

/// `Not judged: b (156.2 KiB, fits in a core's cache (1 MiB)).`: a sentence for each reason.
pub fn sentences(analysis: &Analysis) -> String {
    if analysis.not_judged.is_empty() && analysis.objects.is_empty() {
        return "No objects were seen.".to_owned();
    }
    if analysis.not_judged.is_empty() {
        return "All objects seen were judged.".to_owned();
    }
    let sentences: Vec<String> = groups(&analysis.not_judged).iter().map(|group| sentence(analysis, group)).collect();
    format!("Not judged: {}.", sentences.join(". "))
}

/// By reason, those with the most bytes first.
fn groups(list: &[NotJudged]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for one in list {
        let reason = without_figures(&one.reason);
        match groups.iter_mut().find(|group| group.reason == reason) {
            Some(group) => group.members.push(one),
            None => groups.push(Group { reason, members: vec![one] }),
        }
    }
    for group in &mut groups {
        group.members.sort_by_key(|one| std::cmp::Reverse(bytes(one)));
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.members.iter().map(|one| bytes(one)).fold(0, u64::saturating_add)));
    groups
}

/// One reason with different figures is one reason to a reader.
fn without_figures(reason: &str) -> String {
    if reason.starts_with("never hit in ") {
        "never hit while watched".to_owned()
    } else if reason.starts_with("too few samples: ") && reason.ends_with("profile a longer run") {
        "too few samples; profile a longer run".to_owned()
    } else {
        reason.to_owned()
    }
}

fn bytes(one: &NotJudged) -> u64 {
    one.bytes
}

fn sentence(analysis: &Analysis, group: &Group<'_>) -> String {
    let reason = clean(&group.reason);
    if let [one] = group.members.as_slice() {
        return if one.count > 1 && one.name.is_empty() {
            format!("{} ({}, {reason})", count(one.count, "object"), format_bytes(one.bytes))
        } else {
            format!("{} ({}, {reason})", clean(&one.name), size(one))
        };
    }
    let (libraries, own): (Vec<&NotJudged>, Vec<&NotJudged>) = group.members.iter().partition(|one| is_of_library(analysis, one));
    let mut parts: Vec<String> = own.iter().take(MOST_NAMED).map(|one| format!("{} ({})", clean(&one.name), size(one))).collect();
    let more = own.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        parts.push(format!("{} more", thousands(more as u64)));
    }
    if !libraries.is_empty() {
        parts.push(format!("{} of libraries", thousands(libraries.len() as u64)));
    }
    let what = match reason.strip_prefix("fits ") {
        Some(place) => format!("{} fit {place}", count(group.members.len(), "object")),
        None => format!("{}, {reason}", count(group.members.len(), "object")),
    };
    format!("{what}: {}", parts.join(", "))
}

/// `400 x 64 KiB`: as many as there were, alive at once or not.
fn size(one: &NotJudged) -> String {
    let many = if one.count > 1 { format!("{} allocations, ", thousands(one.count as u64)) } else { String::new() };
    format!("{many}{}", format_bytes(one.bytes))
}

/// Whether a library of the system allocated it for itself.
fn is_of_library(analysis: &Analysis, one: &NotJudged) -> bool {
    let object = analysis.objects.iter().find(|object| object.id == one.id);
    let place = object.and_then(|object| object.allocated_at.as_ref());
    place.and_then(|place| place.module.as_deref()).is_some_and(is_library)
}
