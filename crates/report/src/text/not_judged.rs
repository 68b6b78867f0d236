//! Objects that were not judged: those with a substantial share of the accesses by themselves, the program's own others by reason, then those of
//! libraries and interpreters in a line.

use super::layout::clean;
use super::place::is_internal;
use super::words::{count, percent, thousands};
use firsttouch_analysis::{Analysis, NotJudged, NotJudgedReason, ObjectView};
use firsttouch_model::format_bytes;

/// The number of objects named for each reason, the largest first; the others are counted.
const MOST_NAMED: usize = 3;

/// From this part of the accesses to memory of no recorded object on, it is said of which accesses a share is.
const MUCH_ELSEWHERE: f64 = 0.05;

/// Objects that were not judged for the same reason.
struct Group<'a> {
    /// The reason of the first member.
    reason: &'a NotJudgedReason,
    members: Vec<&'a NotJudged>,
}

/// `Not judged: b (156.2 KiB, fits in a core's cache (1 MiB)).`: one sentence for each reason.
pub fn sentences(analysis: &Analysis) -> String {
    if analysis.not_judged.is_empty() && analysis.objects.is_empty() {
        return match analysis.write_failure {
            Some(_) => "The profile has no objects, because it could not be written to its end.".to_owned(),
            None => "No objects were seen.".to_owned(),
        };
    }
    if analysis.not_judged.is_empty() {
        return "All objects seen were judged.".to_owned();
    }
    let heavy = analysis.heavy_not_judged();
    let others = analysis.not_judged.iter().filter(|one| heavy.iter().all(|object| object.id != one.id));
    let (internal, own): (Vec<&NotJudged>, Vec<&NotJudged>) = others.partition(|one| is_internal_object(analysis, one));
    let mut sentences = by_themselves(&heavy, of_accesses(analysis));
    sentences.extend(groups(&own).iter().map(|group| sentence(group, analysis.is_attached())));
    sentences.extend((!internal.is_empty()).then(|| {
        let bytes = internal.iter().map(|one| one.bytes).fold(0, u64::saturating_add);
        format!("{} of libraries and interpreters ({})", count(internal.len(), "object"), format_bytes(bytes))
    }));
    format!("Not judged: {}.", sentences.join(". "))
}

/// What the shares of objects are parts of. The shares in the sentence on what is covered count memory of no recorded object too.
fn of_accesses(analysis: &Analysis) -> &'static str {
    let elsewhere = analysis.coverage.as_ref().and_then(|coverage| coverage.elsewhere).unwrap_or(0.0);
    if elsewhere < MUCH_ELSEWHERE { "of the accesses" } else { "of the accesses to recorded objects" }
}

/// `buffer of libopenblas.so (32 MiB, 15 % of the accesses): its first touches were not seen`; objects with one reason are in one sentence.
fn by_themselves(objects: &[&ObjectView], of_accesses: &str) -> Vec<String> {
    let mut by_reason: Vec<(String, Vec<String>)> = Vec::new();
    for object in objects {
        let Some(reason) = object.reason.as_ref().map(|reason| clean(&reason.to_string())) else { continue };
        let (name, bytes, share) = (clean(&object.name), format_bytes(object.total_bytes), percent(object.access_share.unwrap_or(0.0)));
        let named = format!("{name} ({bytes}, {share} {of_accesses})");
        match by_reason.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, names)) => names.push(named),
            None => by_reason.push((reason, vec![named])),
        }
    }
    by_reason
        .into_iter()
        .map(|(reason, names)| format!("{}{}: {reason}", names.join(", "), if names.len() > 1 { ", each" } else { "" }))
        .collect()
}

/// Groups by reason, those with the most bytes first.
fn groups<'a>(list: &[&'a NotJudged]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for &one in list {
        match groups.iter_mut().find(|group| is_alike(group.reason, &one.reason)) {
            Some(group) => group.members.push(one),
            None => groups.push(Group { reason: &one.reason, members: vec![one] }),
        }
    }
    for group in &mut groups {
        group.members.sort_by_key(|one| std::cmp::Reverse(bytes(one)));
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.members.iter().map(|one| bytes(one)).fold(0, u64::saturating_add)));
    groups
}

/// Whether two reasons are the same to a reader: they may differ in their figures.
fn is_alike(one: &NotJudgedReason, other: &NotJudgedReason) -> bool {
    use NotJudgedReason::{NoAccess, TooFewSamples};
    matches!((one, other), (NoAccess { .. }, NoAccess { .. }) | (TooFewSamples { .. }, TooFewSamples { .. })) || one == other
}

/// The reason of a group, without the figures of its members.
fn words(reason: &NotJudgedReason, is_attached: bool) -> String {
    match reason {
        NotJudgedReason::NoAccess { .. } => "no access was seen".to_owned(),
        NotJudgedReason::TooFewSamples { .. } if is_attached => "too few samples; record for longer".to_owned(),
        NotJudgedReason::TooFewSamples { .. } => "too few samples; profile a longer run".to_owned(),
        other => other.to_string(),
    }
}

fn bytes(one: &NotJudged) -> u64 {
    one.bytes
}

fn sentence(group: &Group<'_>, is_attached: bool) -> String {
    let reason = clean(&words(group.reason, is_attached));
    if let [one] = group.members.as_slice() {
        return if one.count > 1 && one.name.is_empty() {
            format!("{} ({}, {reason})", count(one.count, "object"), format_bytes(one.bytes))
        } else {
            format!("{} ({}, {reason})", clean(&one.name), size(one))
        };
    }
    let mut parts: Vec<String> = group.members.iter().take(MOST_NAMED).map(|one| format!("{} ({})", clean(&one.name), size(one))).collect();
    let more = group.members.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        parts.push(format!("{} more", thousands(more as u64)));
    }
    let what = match group.reason {
        NotJudgedReason::Cached { cache_bytes } => {
            format!("{} fit in a core's cache ({})", count(group.members.len(), "object"), format_bytes(*cache_bytes))
        }
        _ => format!("{}, {reason}", count(group.members.len(), "object")),
    };
    format!("{what}: {}", parts.join(", "))
}

/// `400 allocations, 64 KiB`: counts all objects, whether or not they were alive at the same time.
fn size(one: &NotJudged) -> String {
    let many = if one.count > 1 { format!("{} allocations, ", thousands(one.count as u64)) } else { String::new() };
    format!("{many}{}", format_bytes(one.bytes))
}

fn is_internal_object(analysis: &Analysis, one: &NotJudged) -> bool {
    analysis.objects.iter().find(|object| object.id == one.id).is_some_and(is_internal)
}
