//! `firsttouch run --explain` and `--quick-test` as text and JSON.

use crate::system::{Lines, row};
use crate::text::Style;
use crate::topology::table::Align::{Left, Right};
use firsttouch_model::launch::{Explanation, FirstTouch, PlannedMemory, Ratios, Tried, Way};
use firsttouch_model::topology::format_list;
use serde::Serialize;

/// The JSON of `firsttouch run --explain`.
#[derive(Serialize)]
pub struct ExplainJson<'a> {
    pub schema: &'static str,
    pub command: &'a [String],
    #[serde(flatten)]
    pub explanation: &'a Explanation,
}

impl<'a> ExplainJson<'a> {
    #[must_use]
    pub fn new(command: &'a [String], explanation: &'a Explanation) -> Self {
        Self { schema: "firsttouch.run-explain/1", command, explanation }
    }
}

/// Where every thread and page would go, as text.
#[must_use]
pub fn explain_text(command: &[String], explanation: &Explanation, style: Style) -> String {
    let mut out = Lines::new(style);
    let name = command.first().map_or("A program", String::as_str);
    let Explanation { cpus, nodes, policy, threads, .. } = explanation;
    out.sentence(&format!("{name} would run on {} of {}.", counted("CPU", cpus), counted("node", nodes)));
    let asked = if policy.inherited { "inherited" } else { "asked for" };
    let of = if policy.nodes.is_empty() { String::new() } else { format!(" of {}", counted("node", &policy.nodes)) };
    let balancing = if policy.balancing { ", with balancing" } else { "" };
    out.sentence(&format!("Memory policy: {}{of}{balancing} ({asked}).", policy.mode));
    out.gap();
    if threads.is_empty() {
        out.sentence("Threads are not pinned: the kernel moves them among these CPUs.");
        for touch in &explanation.first_touch {
            out.sentence(&format!("Pages touched first from node {}: {}.", touch.from, goes(touch)));
        }
    } else {
        let mut rows = vec![row(["thread", "CPU", "node", "pages that it touches first"])];
        for seat in threads {
            let touch = explanation.first_touch.iter().find(|touch| Some(touch.from) == seat.node);
            let node = seat.node.map_or_else(|| "?".to_owned(), |node| node.to_string());
            rows.push(row([&seat.thread.to_string(), &seat.cpu.to_string(), &node, &touch.map_or_else(|| "?".to_owned(), goes)]));
        }
        out.table(&rows, &[Right, Right, Right, Left]);
    }
    if !explanation.plan.is_empty() {
        out.gap();
        let mut rows = vec![row(["memory", "allocated at", "policy", "goes to"])];
        rows.extend(explanation.plan.iter().map(planned));
        out.table(&rows, &[Left, Left, Left, Left]);
    }
    if !explanation.environment.is_empty() {
        out.gap();
        out.sentence("Set for the program:");
        for (name, value) in &explanation.environment {
            out.sentence(&format!("  {name}={value}"));
        }
    }
    for left_out in &explanation.left_out {
        out.sentence(&format!("Left out: {left_out}."));
    }
    out.text()
}

fn planned(memory: &PlannedMemory) -> Vec<String> {
    const SHOWN: usize = 16;
    let list: Vec<String> = memory.nodes.iter().take(SHOWN).map(u32::to_string).collect();
    let more = if memory.nodes.len() > SHOWN { format!(" and {} more parts", memory.nodes.len() - SHOWN) } else { String::new() };
    let goes = match (&memory.nodes[..], memory.policy.as_str(), memory.found) {
        (_, _, Some(false)) => "its allocation is not in the program: nowhere".to_owned(),
        ([], ..) => "left alone".to_owned(),
        (_, "blocked", _) => format!("parts on nodes {}{more}", list.join(", ")),
        (nodes, ..) => counted("node", nodes),
    };
    vec![memory.what.clone(), memory.at.clone(), memory.policy.clone(), goes]
}

fn counted(noun: &str, numbers: &[u32]) -> String {
    match numbers {
        [] => format!("no {noun}"),
        [number] => format!("{noun} {number}"),
        _ => format!("{noun}s {}", format_list(numbers)),
    }
}

/// `node 0`, `node 1, then 0`, `nodes 0-1 in turn`.
fn goes(touch: &FirstTouch) -> String {
    let others = if touch.or_others { "" } else { ", never elsewhere" };
    match &touch.nodes[..] {
        [] => "nowhere: no node of the policy has memory".to_owned(),
        nodes if touch.in_turn => format!("{} in turn", counted("node", nodes)),
        [node] => format!("node {node}{others}"),
        [node, rest @ ..] => {
            let rest: Vec<String> = rest.iter().map(u32::to_string).collect();
            format!("node {node}, when it is full {}{others}", rest.join(", "))
        }
    }
}

/// The JSON of `firsttouch run --quick-test`.
#[derive(Serialize)]
pub struct QuickTestJson<'a> {
    pub schema: &'static str,
    pub command: &'a [String],
    pub nodes: &'a [u32],
    /// Empty if there is nothing to test.
    pub tried: &'a [Tried],
    pub ratios: Option<Ratios>,
    pub verdict: String,
}

impl<'a> QuickTestJson<'a> {
    #[must_use]
    pub fn new(command: &'a [String], nodes: &'a [u32], tried: &'a [Tried]) -> Self {
        let ratios = Ratios::of(tried, nodes.len());
        Self { schema: "firsttouch.run-quick-test/1", command, nodes, tried, ratios, verdict: verdict(tried, nodes) }
    }

    /// The result if nothing was run; `why` becomes the verdict.
    #[must_use]
    pub fn nothing(command: &'a [String], nodes: &'a [u32], why: &str) -> Self {
        Self { schema: "firsttouch.run-quick-test/1", command, nodes, tried: &[], ratios: None, verdict: why.to_owned() }
    }
}

/// Times, ratios and the verdict as text.
#[must_use]
pub fn quick_test_text(command: &[String], nodes: &[u32], tried: &[Tried], style: Style) -> String {
    let mut out = Lines::new(style);
    let name = command.first().map_or("The program", String::as_str);
    let runs = tried.first().map_or(0, |tried| tried.runs.len());
    out.sentence(&format!("{name} on nodes {}, {runs} runs in each placement, in turn: median [least, most].", format_list(nodes)));
    out.gap();
    let all = tried.iter().find(|tried| tried.way == Way::AllNodes).map_or(0.0, |tried| tried.wall_s.median);
    let mut rows = vec![row(["placement", "time, s", "to all nodes"])];
    for Tried { way, wall_s, .. } in tried {
        let ratio = if all > 0.0 { format!("{:.2}", wall_s.median / all) } else { "?".to_owned() };
        rows.push(row([words(*way), &format!("{:.3} [{:.3}, {:.3}]", wall_s.median, wall_s.min, wall_s.max), &ratio]));
    }
    out.table(&rows, &[Left, Left, Left]);
    out.gap();
    out.sentence(&verdict(tried, nodes));
    out.text()
}

fn words(way: Way) -> &'static str {
    match way {
        Way::OneNode => "one node, bound",
        Way::AllNodes => "all nodes",
        Way::Interleaved => "all nodes, interleaved",
        Way::OneProcessANode => "one process per node",
    }
}

/// Smaller gains (ratios of times) are within the variation of single runs.
const LEAST_GAIN: f64 = 1.05;

fn verdict(tried: &[Tried], nodes: &[u32]) -> String {
    let Some(Ratios { all_over_one, all_over_interleaved, all_over_home }) = Ratios::of(tried, nodes.len()) else {
        return "Nothing was timed.".to_owned();
    };
    let time = |way| tried.iter().find(|tried| tried.way == way).map(|tried| tried.wall_s).unwrap_or_default();
    // Whether every run on all nodes took longer than every run in the other placement, which does the work `times` times.
    let is_longer = |other: Way, times: f64| time(Way::AllNodes).min > time(other).max / times;
    let home = nodes.first().map_or(0, |node| *node);
    let most = format!("with local memory only it would be up to {all_over_home:.2}x faster");
    if all_over_one >= LEAST_GAIN && is_longer(Way::OneNode, 1.0) {
        format!(
            "It is slower on all nodes than on one ({all_over_one:.2}x the time): remote memory costs more than the other nodes gain. Run it on one node (--cpunodebind {home} --membind same), or find what is misplaced: firsttouch profile; {most}."
        )
    } else if all_over_interleaved >= LEAST_GAIN && is_longer(Way::Interleaved, 1.0) {
        format!(
            "Its memory is misplaced: interleaving alone makes it {all_over_interleaved:.2}x faster, and {most}. To find what is misplaced: firsttouch profile."
        )
    } else if all_over_home < LEAST_GAIN || !is_longer(Way::OneProcessANode, nodes.len() as f64) {
        "Its placement is good: one bound process per node does the same work no faster.".to_owned()
    } else if all_over_one > 1.0 / LEAST_GAIN {
        format!(
            "It gains nothing from the other nodes: either its threads fit on one node (bind it there: --cpunodebind {home} --membind same), or \
             misplaced memory slows it down; {most}. To find out which: firsttouch profile."
        )
    } else {
        format!(
            "Interleaving gains nothing; {most}, partly through parallelism. To find out whether placement matters: firsttouch profile."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::launch::{LaunchPolicy, Seat, WAYS};
    use firsttouch_model::system::Spread;

    const STYLE: Style = Style { width: 100, colour: false };

    fn tried(times: [f64; 4]) -> Vec<Tried> {
        let near = |time: f64| vec![time * 0.99, time, time * 1.01];
        WAYS.into_iter().zip(times).map(|(way, time)| Tried { way, wall_s: Spread::of(near(time)), runs: near(time) }).collect()
    }

    /// Check the verdict for times on one node, all nodes, interleaved, and one process per node, on two nodes.
    #[test]
    fn verdicts() {
        for (times, words) in [
            ([4.0, 2.0, 2.2, 4.0], "placement is good"),
            ([4.0, 3.6, 2.5, 4.0], "interleaving alone makes it 1.44x faster, and with local memory only it would be up to 1.80x faster"),
            ([4.0, 5.0, 4.9, 4.0], "slower on all nodes than on one (1.25x the time)"),
            ([4.0, 4.0, 4.4, 4.1], "It gains nothing from the other nodes"),
            ([4.0, 3.0, 3.0, 4.0], "Interleaving gains nothing; with local memory only it would be up to 1.50x faster"),
        ] {
            let text = verdict(&tried(times), &[0, 1]);
            assert!(text.contains(words), "{times:?}: {text}");
        }
        assert_eq!(verdict(&[], &[0, 1]), "Nothing was timed.");
    }

    /// Check the table of times, and the JSON's keys.
    #[test]
    fn times_are_shown() {
        let (command, tried) = (vec!["./solver".to_owned()], tried([4.0, 3.6, 2.5, 4.0]));
        let text = quick_test_text(&command, &[0, 1], &tried, STYLE);
        assert!(text.starts_with("./solver on nodes 0-1, 3 runs in each placement"), "{text}");
        assert!(text.contains("all nodes, interleaved  2.500 [2.475, 2.525]  0.69"), "{text}");
        let json = serde_json::to_value(QuickTestJson::new(&command, &[0, 1], &tried)).expect("JSON");
        assert_eq!(json["tried"][3]["way"], "one-process-a-node");
        assert_eq!(json["ratios"]["all_over_home"], 1.8);
        let nothing = serde_json::to_value(QuickTestJson::nothing(&command, &[0], "one node")).expect("JSON");
        assert_eq!((&nothing["ratios"], &nothing["verdict"]), (&serde_json::Value::Null, &"one node".into()));
    }

    fn planned_memory(policy: &str, nodes: &[u32], found: Option<bool>) -> PlannedMemory {
        PlannedMemory { what: "a".to_owned(), at: "a.c:7".to_owned(), policy: policy.to_owned(), nodes: nodes.to_vec(), found }
    }

    /// Check the text of a pinned program and of one that is not.
    #[test]
    fn seats_are_shown() {
        let touch = |from, nodes: &[u32], in_turn, or_others| FirstTouch { from, nodes: nodes.to_vec(), in_turn, or_others };
        let policy = LaunchPolicy { mode: "bind".to_owned(), nodes: vec![0, 1], balancing: true, inherited: false };
        let mut explanation = Explanation {
            cpus: vec![0, 2],
            nodes: vec![0, 1],
            policy,
            threads: vec![Seat { thread: 0, cpu: 0, node: Some(0) }, Seat { thread: 1, cpu: 2, node: Some(1) }],
            first_touch: vec![touch(0, &[0, 1], false, false), touch(1, &[1, 0], false, false)],
            environment: [("OMP_PLACES".to_owned(), "{0},{2}".to_owned())].into(),
            plan: vec![
                planned_memory("blocked", &[0, 1], Some(true)),
                planned_memory("interleave", &[0, 1], Some(false)),
                planned_memory("leave", &[], None),
            ],
            left_out: vec![],
        };
        let text = explain_text(&["./solver".to_owned()], &explanation, STYLE);
        for line in [
            "./solver would run on CPUs 0,2 of nodes 0-1.",
            "Memory policy: bind of nodes 0-1, with balancing (asked for).",
            "     1    2     1  node 1, when it is full 0, never elsewhere",
            "a       a.c:7         blocked     parts on nodes 0, 1",
            "a       a.c:7         interleave  its allocation is not in the program: nowhere",
            "a       a.c:7         leave       left alone",
            "  OMP_PLACES={0},{2}",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        explanation.threads.clear();
        explanation.first_touch = vec![touch(0, &[0, 1], true, true), touch(1, &[1], false, true)];
        explanation.left_out = vec!["--membind".to_owned()];
        let text = explain_text(&[], &explanation, STYLE);
        for line in
            ["Pages touched first from node 0: nodes 0-1 in turn.", "Pages touched first from node 1: node 1.", "Left out: --membind."]
        {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
