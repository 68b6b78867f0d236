//! SARIF 2.1.0 (OASIS standard): a result for each object of a finding, and for each limit that was exceeded.
//!
//! Which objects are judged together differs a little from run to run. A result for each object keeps its fingerprint and its place, also
//! where the object is judged alone in the next run.

use super::{CheckJson, is_worth, place_of, sentence};
use crate::report_json::FindingJson;
use firsttouch_analysis::ObjectView;
use firsttouch_analysis::check_limits::{LimitStatus, Outcome};
use firsttouch_model::finding::Severity;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const HELP: &str = "docs/findings.md";

/// The result as a log with one run.
#[must_use]
pub fn check_sarif(check: &CheckJson<'_>, version: &str) -> Value {
    let exceeded = || check.limits.iter().filter(|limit| limit.status == LimitStatus::Exceeded);
    let ids: BTreeSet<&str> =
        check.findings.iter().map(|finding| finding.id.as_str()).chain(exceeded().map(|limit| limit.kind.as_str())).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    let index = |id: &str| ids.iter().position(|known| *known == id);
    let findings = check.findings.iter().flat_map(|finding| subjects(check, finding).map(move |object| (finding, object)));
    let findings = findings.map(|(finding, object)| {
        json!({
            "ruleId": finding.id,
            "ruleIndex": index(finding.id.as_str()),
            "level": level(check, finding),
            "message": { "text": format!("{}: {} {}", object_name(finding, object), finding.message, CheckJson::advice(finding)) },
            "locations": locations(check, object),
            "partialFingerprints": { "object/v1": fingerprint(finding, object) },
            "properties": {
                "remote_fraction": finding.remote_fraction,
                "interval": finding.interval,
                "remote_share": finding.remote_share,
                "predicted_gain": finding.predicted_gain,
                "worth": finding.recommendation.as_ref().map(|one| one.worth),
            },
        })
    });
    let limits = exceeded().map(|limit| {
        json!({
            "ruleId": limit.kind,
            "ruleIndex": index(limit.kind.as_str()),
            "level": "error",
            "message": { "text": sentence(limit, check.machine) },
            // Show the worst finding: the place to begin.
            "locations": check.findings.first().map_or_else(|| json!([]), |finding| locations(check, check.object(finding.object))),
            "partialFingerprints": { "limit/v1": limit.kind },
            "properties": { "limit": limit.limit, "value": limit.value, "interval": limit.interval },
        })
    });
    let rules: Vec<Value> = ids
        .iter()
        .map(|id| json!({ "id": id, "name": pascal(id), "shortDescription": { "text": id }, "help": { "text": HELP } }))
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "firsttouch", "version": version, "rules": rules } },
            "invocations": [{
                "executionSuccessful": check.outcome != Outcome::NotJudged,
                "commandLine": check.command.join(" "),
                "toolExecutionNotifications": notifications(check),
            }],
            "columnKind": "utf16CodeUnits",
            "results": findings.chain(limits).collect::<Vec<_>>(),
        }],
    })
}

/// What was not judged, and why.
fn notifications(check: &CheckJson<'_>) -> Vec<Value> {
    let level = if check.outcome == Outcome::NotJudged { "error" } else { "warning" };
    check.causes.iter().map(|cause| json!({ "level": level, "message": { "text": format!("not judged: {cause}") } })).collect()
}

fn level(check: &CheckJson<'_>, finding: &FindingJson<'_>) -> &'static str {
    match (check.outcome == Outcome::Failed && is_worth(finding), finding.severity) {
        (true, Severity::High | Severity::Medium) => "error",
        (_, Severity::Low) => "note",
        _ if !is_worth(finding) => "note",
        _ => "warning",
    }
}

/// The objects that a finding is about; `None` once if it is about the threads or the whole program.
fn subjects<'a>(check: &CheckJson<'a>, finding: &FindingJson<'a>) -> impl Iterator<Item = Option<&'a ObjectView>> + use<'a> {
    let mut list: Vec<_> = finding.object.iter().chain(finding.together).map(|id| check.object(Some(*id))).collect();
    if list.iter().any(Option::is_some) {
        list.retain(Option::is_some);
    } else {
        list = vec![None];
    }
    list.into_iter()
}

fn object_name<'a>(finding: &FindingJson<'a>, object: Option<&'a ObjectView>) -> &'a str {
    object.map_or(finding.object_name, |object| &object.name)
}

/// Ids differ from run to run, names and the order of objects with the same name do not.
fn fingerprint(finding: &FindingJson<'_>, object: Option<&ObjectView>) -> String {
    let number = object.map_or(0, |object| object.ordinal);
    let number = if number == 0 { String::new() } else { format!("#{}", number + 1) };
    format!("{}:{}{number}", finding.id, object_name(finding, object))
}

fn locations(check: &CheckJson<'_>, object: Option<&ObjectView>) -> Value {
    let Some((place, file, line)) = object.and_then(place_of) else { return json!([]) };
    let names: Vec<Value> = place.function.iter().map(|function| json!({ "fullyQualifiedName": function })).collect();
    json!([{
        "physicalLocation": {
            "artifactLocation": { "uri": uri(check.relative(file)) },
            "region": { "startLine": line.max(1) },
        },
        "logicalLocations": names,
    }])
}

/// A relative reference, or a file URI for an absolute path (RFC 3986).
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let encoded: String =
        path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect();
    if path.starts_with('/') { format!("file://{encoded}") } else { encoded }
}

/// `serial-first-touch` as `SerialFirstTouch`.
fn pascal(id: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + chars.as_str())
    };
    id.split('-').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that paths are URIs, and rules have names.
    #[test]
    fn names_and_paths() {
        assert_eq!(uri("src/a b.c"), "src/a%20b.c");
        assert_eq!(uri("/home/é#.c"), "file:///home/%C3%A9%23.c");
        assert_eq!(pascal("serial-first-touch"), "SerialFirstTouch");
    }
}
