// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a report must say about a program of the corpus, and what it says.

use crate::corpus::Program;
use serde_json::Value;
use std::collections::BTreeMap;

/// The expected result of a program, from its comments.
pub struct Expected {
    pub program: Program,
    lines: BTreeMap<&'static str, Vec<u64>>,
}

impl Expected {
    /// # Panics
    /// If the source cannot be read.
    #[must_use]
    pub fn new(program: Program) -> Self {
        let text = std::fs::read_to_string(&program.source).expect("a readable source");
        let marked = |mark: &str| {
            let hits = text.lines().enumerate().filter(|(_, line)| line.contains(mark) && !line.contains("corpus:"));
            hits.map(|(index, _)| index as u64 + 1).collect()
        };
        let lines = ["allocated", "first-touch", "used"].map(|mark| (mark, marked(&format!("@{mark}"))));
        Self { program, lines: lines.into_iter().collect() }
    }

    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.program.get(key)
    }

    /// The errors in a report.
    ///
    /// # Panics
    /// If the report has no findings and no objects.
    #[must_use]
    pub fn problems(&self, report: &Value) -> Vec<String> {
        self.problems_with(report, true)
    }

    /// The same without the lines of first touches and uses.
    ///
    /// # Panics
    /// If the report has no findings and no objects.
    #[must_use]
    pub fn problems_but_lines(&self, report: &Value) -> Vec<String> {
        self.problems_with(report, false)
    }

    fn problems_with(&self, report: &Value, has_lines: bool) -> Vec<String> {
        let findings = report["findings"].as_array().expect("findings");
        let object = self.get("object").unwrap_or_default();
        if self.get("finding") == Some("none") {
            let mut problems: Vec<String> = findings.iter().map(|f| format!("unexpected {} on {}", f["id"], f["object_name"])).collect();
            let objects = report["objects"].as_array().expect("objects");
            if !objects.iter().any(|o| o["name"] == object) {
                problems.push(format!("no object is called {object}: {:?}", objects.iter().map(|o| &o["name"]).collect::<Vec<_>>()));
            }
            let unjudged = objects.iter().filter(|o| o["name"] == object && o["judged"] == false);
            // By design, a small table is not judged. Every other object must be judged, because otherwise a report without findings
            // proves nothing.
            problems.extend(
                unjudged
                    .filter(|o| !o["reason"].as_str().unwrap_or_default().contains("fits in a core's cache"))
                    .map(|o| format!("{object} was not judged: {}", o["reason"])),
            );
            return problems;
        }
        let Some(finding) = findings.iter().find(|f| f["object_name"] == object) else {
            return vec![format!("no finding on {object}; findings: {findings:?}")];
        };
        let objects = report["objects"].as_array().expect("objects");
        let judged = objects.iter().find(|o| o["id"] == finding["object"]).expect("the finding's object");
        let mut problems = Vec::new();
        let mut same = |what: &str, got: &Value, wanted: Option<&str>| {
            if let Some(wanted) = wanted
                && got.as_str() != Some(wanted)
            {
                problems.push(format!("{what} is {got}, not {wanted}"));
            }
        };
        same("finding", &finding["id"], self.get("finding"));
        same("cause", &finding["cause"], self.get("cause"));
        same("partition", &judged["partition"], self.get("partition"));
        let mut line = |what: &'static str, place: &Value| {
            let wanted = &self.lines[what];
            if !wanted.is_empty() && !place["line"].as_u64().is_some_and(|l| wanted.contains(&l)) {
                problems.push(format!("{what} is {}:{}, not line {wanted:?}", place["file"], place["line"]));
            }
        };
        line("allocated", &judged["allocated_at"]);
        if has_lines {
            line("first-touch", &judged["first_touch"]["at"][0]);
            line("used", &judged["used_at"][0]);
        }
        if let Some(remote) = self.get("remote").and_then(|r| r.split_whitespace().next()?.parse::<f64>().ok()) {
            let bound = |index: usize| judged["remote_interval"][index].as_f64().unwrap_or(f64::NAN);
            if !(bound(0) - 0.05 <= remote && remote <= bound(1) + 0.05) {
                problems.push(format!("remote fraction {} {}, not {remote}", judged["remote_fraction"], judged["remote_interval"]));
            }
        }
        problems
    }
}

/// What a report says about the defect of a program, or about its absence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The defect is found.
    Found,
    /// No finding, and the program has no defect.
    Clear,
    /// Not judged, for these reasons.
    NotJudged(String),
    /// A finding that is not of this program, or a false figure, line or pattern.
    Wrong(String),
    /// A finding on a well-placed program.
    FalseAlarm(String),
    /// A program with a defect was judged and nothing was found.
    FalseAllClear(String),
}

impl Verdict {
    /// It says something that is not true.
    #[must_use]
    pub fn is_false(&self) -> bool {
        matches!(self, Self::Wrong(_) | Self::FalseAlarm(_) | Self::FalseAllClear(_))
    }
}

impl Expected {
    #[must_use]
    pub fn has_defect(&self) -> bool {
        self.get("finding") != Some("none")
    }

    /// What a report with fewer sources of evidence than usual says. It may know less: neither the line nor the cause of first touches.
    ///
    /// # Panics
    /// If the report has no findings and no objects.
    #[must_use]
    pub fn verdict(&self, report: &Value) -> Verdict {
        let object = self.get("object").unwrap_or_default();
        let findings = report["findings"].as_array().expect("findings");
        let wanted = self.get("finding").unwrap_or_default();
        let words = |finding: &&Value| format!("{} on {}", finding["id"], finding["object_name"]);
        let others: Vec<String> = findings.iter().filter(|finding| finding["id"] != wanted).map(|finding| words(&finding)).collect();
        if !self.has_defect() && !others.is_empty() {
            return Verdict::FalseAlarm(others.join("; "));
        }
        if !others.is_empty() {
            return Verdict::Wrong(others.join("; "));
        }
        let is_found = findings.iter().any(|finding| finding["object_name"] == object);
        let objects = report["objects"].as_array().expect("objects");
        let own: Vec<&Value> = objects.iter().filter(|one| one["name"] == object).collect();
        let reason = |one: &&Value| one["reason"].as_str().unwrap_or_default().to_owned();
        let unjudged: Vec<String> = own.iter().filter(|one| one["judged"] == false).map(reason).collect();
        if !is_found && !unjudged.is_empty() && unjudged.len() == own.len() {
            // By design, a small table is not judged.
            return match &unjudged[0] {
                text if !self.has_defect() && text.contains("fits in a core's cache") => Verdict::Clear,
                text if text.is_empty() => Verdict::Wrong(format!("{object} is not judged, and nothing says why")),
                text => Verdict::NotJudged(text.clone()),
            };
        }
        if !is_found && own.is_empty() {
            return match report["verdict"]["outcome"].as_str() {
                Some("not-judged") => Verdict::NotJudged(format!("{object} is not in the report: {}", report["verdict"]["causes"])),
                _ => Verdict::FalseAllClear(format!("{object} is not in the report")),
            };
        }
        let is_unseen = |problem: &String| ["cause is null,", "first-touch is null:"].iter().any(|word| problem.starts_with(word));
        let problems: Vec<String> = self.problems(report).into_iter().filter(|problem| !is_unseen(problem)).collect();
        match (self.has_defect(), is_found, problems.is_empty()) {
            (false, ..) => Verdict::Clear,
            (true, false, _) => Verdict::FalseAllClear(problems.join("; ")),
            (true, true, true) => Verdict::Found,
            (true, true, false) => Verdict::Wrong(problems.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn program(text: &str) -> (tempfile::TempDir, Expected) {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let source = folder.path().join("program.c");
        std::fs::write(&source, text).expect("the source is written");
        let expected = Expected::new(Program::read(&source));
        (folder, expected)
    }

    fn report(findings: &[(&str, &str, f64)], objects: &[(&str, &str)]) -> Value {
        let finding = |(object, id, _): &(&str, &str, f64)| json!({ "object": object, "object_name": object, "id": id, "cause": null });
        let object = |(name, reason): &(&str, &str)| {
            let remote = findings.iter().find(|finding| finding.0 == *name).map(|finding| finding.2);
            let interval = remote.map(|remote| [remote - 0.02, remote + 0.02]);
            json!({ "id": name, "name": name, "judged": reason.is_empty(), "reason": reason, "partition": "block", "remote_interval": interval,
                    "allocated_at": { "line": 4 }, "first_touch": { "at": [null] }, "used_at": [{ "line": 5 }] })
        };
        json!({ "findings": findings.iter().map(finding).collect::<Vec<_>>(), "objects": objects.iter().map(object).collect::<Vec<_>>(),
                "verdict": { "outcome": if findings.is_empty() { "well-placed" } else { "findings" }, "causes": [] } })
    }

    /// Check the verdict on each kind of report of a program with a defect: what is not known is no error, what is said must be true.
    #[test]
    fn reports_on_defects_are_read() {
        let header = "// corpus: object = a\n// corpus: finding = f\n// corpus: remote = 0.5 by hand\na = malloc(1); // @allocated\na[0]++; // @used\n";
        let (_folder, expected) = program(header);
        let of = |findings: &[(&str, &str, f64)], objects: &[(&str, &str)]| expected.verdict(&report(findings, objects));
        let judged = [("a", "")];
        assert_eq!(of(&[("a", "f", 0.5)], &judged), Verdict::Found);
        assert!(matches!(of(&[("a", "f", 0.4)], &judged), Verdict::Wrong(_)), "a wrong figure");
        assert!(matches!(of(&[("a", "g", 0.5)], &judged), Verdict::Wrong(_)), "another finding");
        assert!(matches!(of(&[("a", "f", 0.5), ("b", "g", 0.5)], &[("a", ""), ("b", "")]), Verdict::Wrong(_)), "a second finding");
        assert!(matches!(of(&[], &judged), Verdict::FalseAllClear(_)), "judged, nothing found");
        assert!(matches!(of(&[], &[]), Verdict::FalseAllClear(_)), "not mentioned");
        assert_eq!(of(&[], &[("a", "few samples")]), Verdict::NotJudged("few samples".into()));
        assert_eq!(of(&[("a", "f", 0.5)], &[("a", ""), ("a", "few samples")]), Verdict::Found);
    }

    /// Check the verdict on each kind of report of a well-placed program.
    #[test]
    fn reports_on_well_placed_programs_are_read() {
        let (_folder, expected) = program("// corpus: object = a\n// corpus: finding = none\n");
        let of = |findings: &[(&str, &str, f64)], objects: &[(&str, &str)]| expected.verdict(&report(findings, objects));
        assert_eq!(of(&[], &[("a", "")]), Verdict::Clear);
        assert_eq!(of(&[], &[("a", "it fits in a core's cache")]), Verdict::Clear);
        assert_eq!(of(&[], &[("a", "few samples")]), Verdict::NotJudged("few samples".into()));
        assert!(matches!(of(&[("b", "f", 0.5)], &[("a", ""), ("b", "")]), Verdict::FalseAlarm(_)));
    }
}
