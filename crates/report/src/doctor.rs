//! The doctor's findings as text and JSON.

use crate::text::Style;
use crate::text::layout::{clean, wrap};
use crate::text::paint::Paint;
use crate::text::words::count;
use firsttouch_doctor::{Diagnosis, Evidence, Finding, LeftOut, RankBinding, Seen, Severity, UNKNOWN, openmp_word};
use serde::Serialize;

/// The indentation of a finding's text.
const INDENT: usize = 11;
/// The text uses at least this width, also on a narrower terminal.
const LEAST_WIDTH: usize = 40;

/// The JSON of `firsttouch doctor` (docs/doctor.md).
#[derive(Serialize)]
pub struct DoctorJson<'a> {
    schema: &'static str,
    nodes: usize,
    program: Option<ProgramJson<'a>>,
    rank: Option<&'a RankBinding>,
    findings: &'a [Finding],
    checked: &'a [&'static str],
    left_out: &'a [LeftOut],
    seen: &'a [Seen],
    doubts: &'a [String],
}

#[derive(Serialize)]
struct ProgramJson<'a> {
    path: &'a str,
    openmp: &'static str,
    runtime: Option<&'a str>,
    runtime_file: Option<&'a str>,
    runtime_version: Option<&'a str>,
    ompt: Option<bool>,
}

impl<'a> DoctorJson<'a> {
    #[must_use]
    pub fn new(diagnosis: &'a Diagnosis) -> Self {
        let program = diagnosis.program.as_ref().map(|program| ProgramJson {
            path: &program.path,
            openmp: openmp_word(program.openmp),
            runtime: Some(program.runtime.as_str()).filter(|name| !name.is_empty()),
            runtime_file: program.runtime_file.as_deref(),
            runtime_version: program.runtime_version.as_deref(),
            ompt: program.ompt,
        });
        let Diagnosis { nodes, rank, findings, checked, left_out, seen, doubts, .. } = diagnosis;
        Self { schema: "firsttouch.doctor/1", nodes: *nodes, program, rank: rank.as_ref(), findings, checked, left_out, seen, doubts }
    }
}

/// The findings as text, lines of at most `style.width` columns, ending in a newline; one sentence if nothing was found.
#[must_use]
pub fn doctor_text(diagnosis: &Diagnosis, style: Style) -> String {
    let style = Style { width: style.width.max(LEAST_WIDTH), ..style };
    let mut lines = Vec::new();
    if let Some(rank) = &diagnosis.rank {
        field(&mut lines, "rank", &rank.message, style);
    }
    for finding in &diagnosis.findings {
        write_finding(&mut lines, finding, style);
    }
    for doubt in &diagnosis.doubts {
        field(&mut lines, "doubt", doubt, style);
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    let summary = summary(diagnosis);
    let is_clear = diagnosis.findings.is_empty();
    let painted = |line: String| if is_clear { style.paint(Paint::Good, &line) } else { line };
    lines.extend(wrap(&summary, style.width).into_iter().map(painted));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// What each check saw, a paragraph each: its result (`found`, `ok`, or `left out`), its id and the facts.
#[must_use]
pub fn seen_text(diagnosis: &Diagnosis, style: Style) -> String {
    let style = Style { width: style.width.max(LEAST_WIDTH), ..style };
    let mut lines = vec![style.paint(Paint::Bold, "Checks, and what each of them saw")];
    for Seen { id, saw } in &diagnosis.seen {
        let result = match () {
            () if diagnosis.findings.iter().any(|finding| finding.id == *id) => "found",
            () if diagnosis.left_out.iter().any(|check| check.id == *id && check.reason == UNKNOWN) => "unknown",
            () if diagnosis.left_out.iter().any(|check| check.id == *id) => "left out",
            () => "ok",
        };
        field(&mut lines, result, &format!("{id}: {saw}"), style);
    }
    lines.join("\n") + "\n\n"
}

fn write_finding(lines: &mut Vec<String>, finding: &Finding, style: Style) {
    if !lines.is_empty() {
        lines.push(String::new());
    }
    let (word, paint) = match finding.severity {
        Severity::High => ("high", Paint::Bad),
        Severity::Medium => ("medium", Paint::Bold),
        Severity::Low => ("low", Paint::Faint),
    };
    lines.push(format!("{}{}{}", style.paint(paint, word), " ".repeat(INDENT - word.len()), style.paint(Paint::Bold, finding.id)));
    field(lines, "", &finding.message, style);
    for Evidence { source, value } in &finding.evidence {
        field(lines, "seen", &format!("{source}: {value}"), style);
    }
    field(lines, "remedy", &finding.remedy, style);
}

fn field(lines: &mut Vec<String>, name: &str, text: &str, style: Style) {
    let mut name = format!("{name:INDENT$}");
    for line in wrap(&clean(text), style.width - INDENT) {
        lines.push(format!("{name}{line}").trim_end().to_owned());
        name = " ".repeat(INDENT);
    }
}

/// `Nothing found that hurts placement (13 checks; 9 more apply only to several nodes, and this machine has one).`
fn summary(diagnosis: &Diagnosis) -> String {
    let checks = count(diagnosis.checked.len(), "check");
    let (unknown, spared): (Vec<&LeftOut>, Vec<&LeftOut>) = diagnosis.left_out.iter().partition(|check| check.reason == UNKNOWN);
    let unknown = match unknown[..] {
        [] => String::new(),
        [one] => format!("; 1 could not be made, because its facts are unknown: {}", one.id),
        _ => format!("; {} could not be made, because their facts are unknown", unknown.len()),
    };
    let left_out = match spared.len() {
        0 => unknown,
        number => format!("{unknown}; {number} more apply only to several nodes, and this machine has one"),
    };
    match diagnosis.findings.len() {
        0 => format!("Nothing found that hurts placement ({checks}{left_out})."),
        number => format!("{} ({checks}{left_out}). More: firsttouch topology", count(number, "finding")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { width: 60, colour: false };

    fn finding(severity: Severity) -> Finding {
        Finding {
            id: "numa-balancing",
            severity,
            message: "the kernel moves pages between nodes while a program runs, and more".to_owned(),
            evidence: vec![Evidence { source: "/proc/sys/kernel/numa_balancing".to_owned(), value: "1\u{1b}[2J".to_owned() }],
            remedy: "sudo sysctl kernel.numa_balancing=0".to_owned(),
        }
    }

    fn diagnosis(findings: Vec<Finding>) -> Diagnosis {
        let left_out = vec![LeftOut { id: "zone-reclaim", reason: "a reason" }];
        Diagnosis {
            nodes: 1,
            program: None,
            rank: None,
            findings,
            checked: vec!["swap-in-use"],
            left_out,
            seen: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// Check the text of a finding: it is folded, and control characters in the evidence are removed.
    #[test]
    fn a_finding_is_shown() {
        let text = doctor_text(&diagnosis(vec![finding(Severity::Medium)]), STYLE);
        let expected = "\
medium     numa-balancing
           the kernel moves pages between nodes while a
           program runs, and more
seen       /proc/sys/kernel/numa_balancing: 1\u{fffd}[2J
remedy     sudo sysctl kernel.numa_balancing=0

1 finding (1 check; 1 more apply only to several nodes, and
this machine has one). More: firsttouch topology
";
        assert_eq!(text, expected);
        assert!(doctor_text(&diagnosis(vec![finding(Severity::High)]), Style { colour: true, ..STYLE }).contains("\u{1b}[31mhigh"));
    }

    /// Check that a healthy system gives one sentence.
    #[test]
    fn nothing_is_one_sentence() {
        let text = doctor_text(&diagnosis(Vec::new()), STYLE);
        let expected = "Nothing found that hurts placement (1 check; 1 more apply\nonly to several nodes, and this machine has one).\n";
        assert_eq!(text, expected);
    }

    /// Check that checks whose facts are unknown are counted as such, and not as passed.
    #[test]
    fn unknown_is_not_passed() {
        let mut one = diagnosis(Vec::new());
        one.left_out.push(LeftOut { id: "frequency-governor", reason: UNKNOWN });
        let expected = "Nothing found that hurts placement (1 check; 1 could not be\nmade, because its facts are unknown: frequency-governor; 1\n\
                        more apply only to several nodes, and this machine has one).\n";
        assert_eq!(doctor_text(&one, STYLE), expected);
        one.left_out.push(LeftOut { id: "swap-in-use", reason: UNKNOWN });
        let text = doctor_text(&one, STYLE).replace('\n', " ");
        assert!(text.contains("(1 check; 2 could not be made, because their facts are unknown; 1 more apply"), "{text}");
        one.seen = vec![Seen { id: "frequency-governor", saw: "unknown".to_owned() }];
        assert!(seen_text(&one, STYLE).contains("unknown    frequency-governor"));
    }

    /// Check the keys of the JSON.
    #[test]
    fn json_has_its_keys() {
        let json = serde_json::to_value(DoctorJson::new(&diagnosis(vec![finding(Severity::Low)]))).expect("JSON");
        assert_eq!((json["schema"].as_str(), json["nodes"].as_u64()), (Some("firsttouch.doctor/1"), Some(1)));
        let keys: Vec<&String> = json["findings"][0].as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["id", "severity", "message", "evidence", "remedy"]);
        assert_eq!((json["findings"][0]["severity"].as_str(), json["left_out"][0]["id"].as_str()), (Some("low"), Some("zone-reclaim")));
    }
}
