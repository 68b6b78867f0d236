//! The outcome as text.

use crate::decide::{Decision, Held};
use crate::outcome::{ObjectOutcome, Outcome, ProcessOutcome, Remote};
use crate::segments::Target;
use firsttouch_model::format_bytes;
use firsttouch_model::topology::format_list;
use std::fmt::Write as _;

/// `its threads are on node 1; it was on node 0`.
pub fn why(decision: &Decision) -> String {
    let from = decision.from.map_or_else(String::new, |node| format!("; most of it was on node {node}"));
    match &decision.target {
        Target::Node(node) => format!("threads on node {node} use it{from}"),
        Target::Several(nodes) => format!("threads on nodes {} use all of it{from}", format_list(nodes)),
    }
}

pub fn held_words(held: &Held) -> String {
    match held {
        Held::InPlace => "its pages are where they are used".to_owned(),
        Held::TooFew { seen } => format!("{seen} accesses are too few to judge it"),
        Held::Exempt(why) => why.clone(),
        Held::HomesUnknown => "the nodes of its pages are not known: their first touches were not seen, or too few of them".to_owned(),
        Held::Young => "the way in which it is used is less than a second old".to_owned(),
        Held::NotWorth { gain_s, cost_s } => {
            format!("moving it would gain {gain_s:.3} s of CPU time while this use is expected to last, and cost {cost_s:.3} s")
        }
        Held::ThreadsMove { share } => {
            format!("{:.0} % of the accesses to it came from threads that were on another node than usual", 100.0 * share)
        }
        Held::CannotMove { tries } => format!("some of its pages did not move in {tries} tries"),
    }
}

/// The summary for people.
#[must_use]
pub fn text(outcome: &Outcome) -> String {
    let mut out = String::new();
    for process in &outcome.processes {
        of_process(&mut out, outcome, process);
    }
    if outcome.processes.is_empty() && outcome.nodes > 1 {
        line(&mut out, &format!("nothing was seen in {:.1} s: no process ran long enough to be sampled", outcome.seconds));
    }
    if let Some(plan) = &outcome.plan {
        line(&mut out, &format!("plan: {plan}; to start with this placement: firsttouch run --plan {plan} -- PROGRAM"));
    }
    for note in &outcome.notes {
        line(&mut out, note);
    }
    out
}

fn line(out: &mut String, text: &str) {
    let _ = writeln!(out, "{text}");
}

fn of_process(out: &mut String, outcome: &Outcome, process: &ProcessOutcome) {
    let state = if outcome.settled { ", settled" } else { "" };
    line(out, &format!("process {} ({}), watched for {:.1} s on {}{state}", process.pid, process.name, outcome.seconds, machine(outcome)));
    if outcome.dry_run {
        let bytes = process.objects.iter().flat_map(|one| &one.moves).map(|one| one.bytes).sum();
        line(out, &format!("  would move {} (a dry run: nothing was moved)", format_bytes(bytes)));
    } else if process.moved_pages == 0 {
        line(out, "  moved nothing");
    } else {
        line(
            out,
            &format!(
                "  moved {} ({} pages) in {:.2} s; asked again, {} pages of these ranges are in their place, {} are not",
                format_bytes(process.moved_bytes),
                process.moved_pages,
                process.moving_s,
                process.verified_pages,
                process.astray_pages
            ),
        );
    }
    for object in &process.objects {
        of_object(out, outcome, object);
    }
    if process.objects.is_empty() && process.accesses > 0 {
        line(out, "  no object was judged: none was seen in use for long enough (a second or two) and often enough (1 % of the accesses)");
    }
    for failed in &process.failed {
        line(out, &format!("  {} pages could not be moved: {} ({})", failed.pages, failed.reason, failed.errno));
    }
    remote_shares(out, process, outcome.is_virtual);
    if process.changes > 0 {
        let times = if process.changes == 1 { "once".to_owned() } else { format!("{} times", process.changes) };
        line(out, &format!("  the program changed who uses which part {times}"));
    }
    if let Some(threads) = &process.threads {
        let text = format!(
            "  {:.0} % of the accesses came from threads that were on another node than usual: {}",
            100.0 * threads.away,
            threads.advice
        );
        line(out, &text);
    }
}

fn machine(outcome: &Outcome) -> String {
    let s = if outcome.nodes == 1 { "" } else { "s" };
    if outcome.is_virtual { format!("{} ({} node{s})", outcome.machine, outcome.nodes) } else { format!("{} node{s}", outcome.nodes) }
}

fn of_object(out: &mut String, outcome: &Outcome, object: &ObjectOutcome) {
    let place = object.line.as_ref().map_or_else(String::new, |line| format!("  {line}"));
    line(
        out,
        &format!("  {}{place}  {}, {:.0} % of the time at memory", object.name, format_bytes(object.bytes), 100.0 * object.access_share),
    );
    for one in &object.moves {
        let gained = format!("{:.2} s of CPU time gained in {:.0} s", one.gain_s, one.expected_s);
        let (how, gained) = match (one.how.as_str(), one.from) {
            ("node", _) => ("to node", format!("expected: {gained}")),
            // What interleaving gains depends on the bandwidth that the program needs, which is not measured.
            (_, Some(from)) => ("interleaved over nodes", format!("at most {gained}: if the bandwidth of node {from} is the limit")),
            (_, None) => ("interleaved over nodes", format!("at most {gained}: if bandwidth is the limit")),
        };
        let nodes = format_list(&one.nodes);
        line(out, &format!("    {} {how} {nodes}: {} ({gained}; {:.3} s spent)", format_bytes(one.bytes), one.why, one.cost_s));
    }
    let moved: Vec<String> = object.to.iter().map(|(node, bytes)| format!("{} to node {node}", format_bytes(*bytes))).collect();
    if !moved.is_empty() && !outcome.dry_run {
        line(out, &format!("    moved: {}", moved.join(", ")));
    }
    if let Some(held) = &object.held {
        let what = if object.moves.is_empty() { "stays" } else { "now" };
        line(out, &format!("    {what}: {held}"));
    }
}

/// If the node of less of the time is known, what is expected of it says nothing.
const HARDLY_ANY: f64 = 0.05;
/// If the node of so much of the time is known, nothing is said of the rest.
const NEARLY_ALL: f64 = 0.995;

fn remote_shares(out: &mut String, process: &ProcessOutcome, is_virtual: bool) {
    let share = |remote: &Option<Remote>| match remote {
        Some(remote) => {
            let [low, high] = remote.interval.map(|part| 100.0 * part);
            format!("{:.0} % [{low:.0}, {high:.0}] (n = {})", 100.0 * remote.share, remote.samples)
        }
        None => "unknown".to_owned(),
    };
    let before = share(&process.remote_before);
    let why = match &process.remote_before {
        Some(_) => "",
        None if process.accesses == 0 => ": the last samples show no access to its memory",
        None if is_virtual => {
            ": on a virtual machine, only first touches that 'tune' saw show the node of a page, and it saw too few accesses to such pages ('firsttouch \
             tune -- PROGRAM' sees a program from its start)"
        }
        None => ": the nodes of the pages that it uses are not known",
    };
    match process.moved_pages {
        0 => line(out, &format!("  remote accesses: {before}{why}")),
        _ => line(out, &format!("  remote accesses: {before} before, {} after", share(&process.remote_after))),
    }
    let has_moves = process.objects.iter().any(|object| !object.moves.is_empty());
    if let (Some(now), Some(expected), Some(known)) = (process.remote_now, process.remote_expected, process.remote_expected_of)
        && known >= HARDLY_ANY
        && has_moves
    {
        let of = if known < NEARLY_ALL { format!(" whose node is known ({:.0} % of it)", 100.0 * known) } else { String::new() };
        let [now, expected] = [now, expected].map(|part| 100.0 * part);
        let samples = process.accesses;
        line(out, &format!("  of the time at memory{of}: {now:.0} % remote now, {expected:.0} % expected after the moves (n = {samples})"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a process without judged objects has a reason, unless it made no accesses: then the remote share says so.
    #[test]
    fn nothing_judged_has_a_reason() {
        let said = |accesses: usize| {
            let mut out = String::new();
            of_process(
                &mut out,
                &Outcome { nodes: 2, dry_run: true, ..Outcome::default() },
                &ProcessOutcome { accesses, ..ProcessOutcome::default() },
            );
            out
        };
        assert!(said(90).contains("no object was judged: none was seen in use for long enough"), "{}", said(90));
        assert!(!said(0).contains("no object was judged"), "{}", said(0));
    }

    /// Check that an unknown share has a reason, and a known one has none.
    #[test]
    fn unknown_shares_have_a_reason() {
        let said = |accesses: usize, is_virtual: bool, remote_before: Option<Remote>| {
            let mut out = String::new();
            remote_shares(&mut out, &ProcessOutcome { accesses, remote_before, ..ProcessOutcome::default() }, is_virtual);
            out
        };
        assert!(said(0, true, None).contains("unknown: the last samples show no access"));
        assert!(said(900, true, None).contains("unknown: on a virtual machine, only first touches"));
        assert!(said(900, false, None).contains("unknown: the nodes of the pages that it uses are not known"));
        let known = Remote { share: 0.5, interval: [0.4, 0.6], samples: 90, source: None };
        assert_eq!(said(900, true, Some(known)), "  remote accesses: 50 % [40, 60] (n = 90)\n");
    }
}
