// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether `report` and `plan` say the same about each object of a profile on a machine. The rules are written down here once more, apart from
//! the code that makes both: what the report says that the plan does is what the plan's entries are.

use crate::process::run;
use crate::tool::Firsttouch;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;

/// A gain counts from here on; the model is not more precise.
const LEAST_GAIN: f64 = 1.01;
const NO_FINDINGS: &[Value] = &[];

/// The machines of the catalogue, and virtual ones.
///
/// # Panics
/// If firsttouch cannot list them.
#[must_use]
pub fn machines(firsttouch: &Firsttouch) -> Vec<String> {
    let listed = json(firsttouch, &["machines", "list", "--json"], None);
    let listed = listed["machines"].as_array().expect("machines").iter().filter_map(|machine| machine["name"].as_str());
    listed.chain(["virtual:2", "virtual:4", "virtual:8"]).map(str::to_owned).collect()
}

fn json(firsttouch: &Firsttouch, words: &[&str], file: Option<&Path>) -> Value {
    let outcome = run(firsttouch.command(words).args(file.map(Path::as_os_str).into_iter().collect::<Vec<&OsStr>>()));
    assert_eq!(outcome.status, 0, "{words:?} {file:?}: {outcome:?}");
    serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// The contradictions between `report --json` and `plan --json` about a profile on a machine.
///
/// # Panics
/// If a command fails.
#[must_use]
pub fn contradictions_on(firsttouch: &Firsttouch, file: &Path, machine: &str) -> Vec<String> {
    let report = json(firsttouch, &["report", "--json", "--machine", machine], Some(file));
    let plan = json(firsttouch, &["plan", "--json", "--machine", machine], Some(file));
    contradictions(&report, &plan).into_iter().map(|problem| format!("{} on {machine}: {problem}", file.display())).collect()
}

/// The contradictions between the text of `report` and the plan: it suggests the commands of a plan only where that places something.
///
/// # Panics
/// If a command fails.
#[must_use]
pub fn false_promises(firsttouch: &Firsttouch, file: &Path, machine: &str) -> Vec<String> {
    let plan = json(firsttouch, &["plan", "--json", "--machine", machine], Some(file));
    let outcome = run(firsttouch.command(["report", "--machine", machine]).arg(file));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let (text, is_placed) = (outcome.stdout_text(), !list(&plan["entries"]).is_empty());
    let is_promised = text.contains("firsttouch plan ") && text.contains("firsttouch run --plan ");
    (is_promised != is_placed)
        .then(|| format!("{} on {machine}: entries: {is_placed}, promised: {is_promised}", file.display()))
        .into_iter()
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(NO_FINDINGS, Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The contradictions between the JSON of `report` and that of `plan`.
#[must_use]
pub fn contradictions(report: &Value, plan: &Value) -> Vec<String> {
    let findings = list(&report["findings"]);
    let mut problems: Vec<String> = findings.iter().flat_map(problems_of_one).collect();
    let objects = || findings.iter().flat_map(|finding| list(&finding["recommendation"]["plan"]["objects"]));
    // Names are not unique, so both sides are compared as lists.
    let said: Vec<(String, String)> = sorted(objects().filter_map(|object| Some((text(&object["name"]), object["policy"].as_str()?))));
    let done: Vec<(String, String)> = sorted(list(&plan["entries"]).iter().map(|entry| (text(&entry["what"]), text(&entry["policy"]))));
    if said != done {
        problems.push(format!("the report says that a plan places {said:?}, but it places {done:?}"));
    }
    let sentences: Vec<&str> = list(&plan["left_alone"]).iter().map(text).collect();
    for object in objects().filter(|object| object["policy"].is_null()) {
        let sentence = format!("{}: {}", text(&object["name"]), text(&object["left_alone"]));
        let whole = format!("all of it: {}", text(&object["left_alone"]));
        if !sentences.iter().any(|one| **one == sentence || **one == whole || one.ends_with("objects more than a plan has room for")) {
            problems.push(format!("the report says '{sentence}', the plan {sentences:?}"));
        }
    }
    for sentence in sentences.iter().filter(|sentence| !sentence.starts_with("all of it: ")) {
        let is_said = objects().any(|object| {
            object["policy"].is_null() && **sentence == format!("{}: {}", text(&object["name"]), text(&object["left_alone"]))
        });
        if !is_said && !sentence.ends_with("objects more than a plan has room for") {
            problems.push(format!("the plan leaves alone what the report does not: {sentence}"));
        }
    }
    if plan["outlook"]["time_ratio"].as_f64().is_some_and(|ratio| ratio > LEAST_GAIN) {
        problems.push(format!("the plan costs time: {}", plan["outlook"]));
    }
    let order: Vec<[i64; 3]> = findings.iter().map(rank).collect();
    problems.extend(order.windows(2).filter(|pair| pair[0] > pair[1]).map(|pair| format!("the order is not by gain: {pair:?}")));
    problems
}

fn sorted<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let mut list: Vec<_> = pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
    list.sort();
    list
}

/// Ascending: what is worth it before what is not predicted and what is not worth it; then by gain in hundredths; then by remote share.
fn rank(finding: &Value) -> [i64; 3] {
    let one = &finding["recommendation"];
    let class = match text(&one["worth"]) {
        "worthwhile" => 0,
        "not-predicted" => 1,
        _ => 2,
    };
    let gain = one["gain"].as_f64().map_or(i64::MAX, |gain| -(gain * 100.0).round() as i64);
    [class, gain, -(finding["remote_share"].as_f64().unwrap_or(0.0) * 1e12) as i64]
}

/// The contradictions within one finding of a report.
fn problems_of_one(finding: &Value) -> Vec<String> {
    let one = &finding["recommendation"];
    let mut problems = Vec::new();
    let mut check = |holds: bool, what: &str| {
        if !holds {
            problems.push(format!("{} {}: {what}: {one}", text(&finding["id"]), text(&finding["object_name"])));
        }
    };
    let objects = list(&one["plan"]["objects"]);
    let ids: Vec<&Value> = std::iter::once(&finding["object"]).chain(list(&finding["together"])).filter(|id| !id.is_null()).collect();
    check(objects.iter().map(|object| &object["object"]).eq(ids), "each object has one recommendation");
    let placed: Vec<&str> = objects.iter().filter_map(|object| object["policy"].as_str()).collect();
    check(objects.iter().all(|object| object["policy"].is_null() != object["left_alone"].is_null()), "placed, or left alone for a reason");
    check(placed.is_empty() == one["plan"]["gain"].is_null(), "what a plan places has a gain");

    let (is_worth, is_fix_worth, is_assumed) = (one["why_not"].is_null(), one["fix"]["worth"] == true, one["assumed"] == true);
    check(is_worth == ["worthwhile", "not-predicted"].contains(&text(&one["worth"])), "what is not worth it says why");
    check(is_worth || (placed.is_empty() && !is_fix_worth), "nobody repairs what is not worth repairing");
    check(!is_worth || is_fix_worth || !placed.is_empty(), "what is worth it is done by somebody");
    let gain = |of: &Value| of["gain"].as_f64();
    let (fix, plan, both) = (gain(&one["fix"]), gain(&one["plan"]), gain(one));
    let of_fix = fix.filter(|_| is_fix_worth);
    check(both.is_none() || of_fix.into_iter().chain(plan).all(|gain| both.is_some_and(|both| both >= gain)), "its gain is the better one");
    let least = if is_assumed { 1.0 / LEAST_GAIN } else { LEAST_GAIN };
    check(of_fix.is_none_or(|gain| gain >= least), "a fix that gains nothing is not worth it");
    let predicted = finding["predicted_gain"].as_f64();
    check(if is_assumed { predicted.is_none() } else { predicted == fix }, "predicted_gain is that of the fix");

    let is_costly = |object: &Value| text(&object["left_alone"]).ends_with("on this machine");
    // Of a finding on several objects, a plan may interleave some. Then only the plan is worth it.
    let advises_interleaving = is_worth && is_fix_worth && text(&finding["fix"]).contains("numactl --interleave");
    check(!advises_interleaving || !objects.iter().any(is_costly), "no fix interleaves what a plan leaves alone for its cost");

    let difference = one["difference"].as_str();
    check(is_worth || difference.is_none(), "where neither is worth it, they do not differ");
    let is_placed_as = |policy: &str| is_fix_worth && objects.iter().all(|object| object["policy"] == policy);
    let differs = match text(&finding["fix_kind"]) {
        "not-memory" => false,
        // No plan can do that.
        "fixed-parts" | "copy-per-node" => true,
        "interleave" => !is_placed_as("interleave"),
        _ => !is_placed_as("blocked"),
    };
    let differs = is_worth && !objects.is_empty() && differs;
    check(differs == difference.is_some(), "a difference of fix and plan is explained, and only that");
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A report with two findings, and the plan for it.
    fn agreeing() -> (Value, Value) {
        let finding = |object: i64, name: &str, gain: f64, share: f64| {
            json!({"id": "serial-first-touch", "object": object, "together": [], "object_name": name, "remote_share": share,
                "fix_kind": "divide-first-touch", "predicted_gain": gain, "recommendation": {"worth": "worthwhile", "why_not": null, "gain": gain,
                "assumed": false, "fix": {"worth": true, "gain": gain}, "difference": null, "plan": {"gain": gain,
                "objects": [{"object": object, "name": name, "policy": "blocked", "left_alone": null}]}}})
        };
        let report = json!({"findings": [finding(1, "a", 1.5, 0.1), finding(2, "b", 1.2, 0.3)]});
        let entries = json!([{"what": "b", "policy": "blocked"}, {"what": "a", "policy": "blocked"}]);
        (report, json!({"entries": entries, "left_alone": [], "outlook": {"time_ratio": 0.6}}))
    }

    /// Check that agreement is no contradiction, and that each change that contradicts is one.
    #[test]
    fn contradictions_are_found() {
        let (report, plan) = agreeing();
        assert_eq!(contradictions(&report, &plan), [""; 0]);
        let first = "/findings/0/recommendation";
        for (at, value, word) in [
            ("/findings/0/recommendation/gain".to_owned(), json!(1.1), "by gain"),
            (format!("{first}/worth"), json!("no-gain"), "by gain"),
            (format!("{first}/why_not"), json!("no gain is predicted"), "nobody repairs"),
            (format!("{first}/fix/worth"), json!(false), "is explained"),
            (format!("{first}/fix/gain"), json!(1.0), "gains nothing"),
            (format!("{first}/plan/objects/0/policy"), json!("interleave"), "it places"),
            (format!("{first}/plan/objects/0/policy"), json!(null), "left alone for a reason"),
            (format!("{first}/plan/objects/0/object"), json!(7), "each object has one"),
            (format!("{first}/plan/gain"), json!(null), "has a gain"),
            (format!("{first}/plan/gain"), json!(1.9), "the better one"),
            (format!("{first}/difference"), json!("a plan cannot"), "is explained"),
            (format!("{first}/assumed"), json!(true), "predicted_gain"),
            ("/findings/0/fix_kind".to_owned(), json!("copy-per-node"), "is explained"),
            ("/findings/1/remote_share".to_owned(), json!(0.9), ""),
        ] {
            let mut changed = report.clone();
            *changed.pointer_mut(&at).unwrap_or_else(|| panic!("{at}")) = value;
            let found = contradictions(&changed, &plan);
            assert!(
                found.is_empty() == word.is_empty() && (word.is_empty() || found.iter().any(|one| one.contains(word))),
                "{at}: {found:?}"
            );
        }
        let mut costly = report.clone();
        costly["findings"][0]["fix"] = json!("numactl --interleave=all CMD");
        let alone = json!([{"object": 1, "name": "a", "policy": null, "left_alone": "interleave would take 5 % longer on this machine"}]);
        costly["findings"][0]["recommendation"]["plan"]["objects"] = alone;
        assert!(contradictions(&costly, &plan).iter().any(|one| one.contains("leaves alone for its cost")));
        for (at, value, word) in [
            ("/entries/0/policy", json!("interleave"), "it places"),
            ("/entries", json!([]), "it places"),
            ("/left_alone", json!(["a: it would cost"]), "leaves alone what the report does not"),
            ("/outlook/time_ratio", json!(1.2), "costs time"),
        ] {
            let mut changed = plan.clone();
            *changed.pointer_mut(at).expect(at) = value;
            let found = contradictions(&report, &changed);
            assert!(found.iter().any(|one| one.contains(word)), "{at}: {found:?}");
        }
    }
}
