// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every program of the corpus: its defect is found on the right object and lines, and nothing is found in well-placed ones.
//! What each must give stands in its own header and markers (corpus/README.md).
//!
//! The evidence is a sample of some two seconds, so a program may be profiled up to three times; each attempt after the
//! first is said on stderr.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::run;
use firsttouch_e2e::programs::{BuildError, build, sources};
use firsttouch_e2e::skip::{lacks_tools, skipped};
use firsttouch_e2e::tool::{Firsttouch, temporary_directory};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const ATTEMPTS: usize = 3;

/// What a program's comments promise.
struct Expected {
    name: String,
    source: PathBuf,
    python: bool,
    header: BTreeMap<String, String>,
    lines: BTreeMap<&'static str, Vec<u64>>,
}

impl Expected {
    fn read(source: &Path) -> Self {
        let text = std::fs::read_to_string(source).expect("a readable source");
        let header = text
            .lines()
            .filter_map(|line| line.split_once("corpus: ")?.1.split_once(" = "))
            .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
            .collect();
        let marked = |mark: &str| {
            let hits = text.lines().enumerate().filter(|(_, line)| line.contains(mark) && !line.contains("corpus:"));
            hits.map(|(index, _)| index as u64 + 1).collect()
        };
        let lines = ["allocated", "first-touch", "used"].map(|mark| (mark, marked(&format!("@{mark}"))));
        Self {
            name: source.file_stem().expect("a file name").to_string_lossy().into_owned(),
            source: source.to_owned(),
            python: source.extension().is_some_and(|e| e == "py"),
            header,
            lines: lines.into_iter().collect(),
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.header.get(key).map(String::as_str)
    }

    /// The command line, once the program is built; none (said) where its compiler or interpreter is missing.
    fn command(&self) -> Option<Vec<String>> {
        let program = match self.get("build") {
            Some("none") | None => self.source.clone(),
            Some(_) => match build(&self.source) {
                Ok(built) => built.path,
                Err(BuildError::MissingTool(tool)) => {
                    skipped("corpus", &format!("{}: {tool} is not installed", self.name));
                    return None;
                }
                Err(error) => panic!("{}: {error:?}", self.name),
            },
        };
        let (out, src) = (program.to_string_lossy().into_owned(), self.source.to_string_lossy().into_owned());
        let words: Vec<String> =
            self.get("run")?.split_whitespace().map(|word| word.replace("{out}", &out).replace("{src}", &src)).collect();
        (!lacks_tools("corpus", &[words[0].as_str()])).then_some(words)
    }

    /// What is wrong with a report; empty when nothing is.
    fn problems(&self, report: &Value) -> Vec<String> {
        let findings = report["findings"].as_array().expect("findings");
        let object = self.get("object").unwrap_or_default();
        if self.get("finding") == Some("none") {
            let mut problems: Vec<String> = findings.iter().map(|f| format!("unexpected {} on {}", f["id"], f["object_name"])).collect();
            let objects = report["objects"].as_array().expect("objects");
            let unjudged = objects.iter().filter(|o| o["name"] == object && o["judged"] == false);
            // A small table is not judged by design; anything else must be, or silence would prove nothing.
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
        // Inside NumPy first touch and use are native code; only the allocation has a Python line.
        if !self.python {
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

impl Expected {
    /// What is wrong with the plan; empty when nothing is. A plan places what a finding is about, each thread's part on its node where
    /// parts have owners, and nothing else.
    fn plan_problems(&self, plan: &Value) -> Vec<String> {
        let entries = plan["entries"].as_array().expect("entries");
        let ratio = plan["outlook"]["time_ratio"].as_f64();
        let mut problems: Vec<String> =
            ratio.filter(|ratio| *ratio > 1.01).map(|ratio| format!("the plan costs {ratio}")).into_iter().collect();
        let policy = match (self.get("plan"), self.get("finding"), self.get("partition")) {
            (Some(plan), ..) => plan,
            (None, Some("none"), _) => "none",
            _ if self.python => "none",
            (None, _, Some("irregular" | "shared")) => "interleave",
            _ => "blocked",
        };
        if policy == "none" {
            problems.extend(entries.iter().map(|entry| format!("unplanned entry {} {}", entry["what"], entry["policy"])));
        } else {
            let object = self.get("object").unwrap_or_default();
            let planned = entries.iter().find(|entry| entry["what"] == object).map(|entry| entry["policy"].as_str().unwrap_or_default());
            if planned != Some(policy) {
                problems.push(format!("the plan for {object} is {planned:?}, not {policy}: {}", plan["left_alone"]));
            }
        }
        problems
    }
}

#[test]
fn every_defect_is_found_and_nothing_else() {
    let Some(firsttouch) = Firsttouch::find("corpus") else { return };
    let corpus = workspace_root().join("corpus");
    let mut programs = sources(&corpus);
    programs.extend(
        std::fs::read_dir(&corpus).expect("corpus/").flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "py")),
    );
    programs.sort();
    programs.dedup();
    let directory = temporary_directory();
    let (mut defects, mut well_placed, mut failures) = (0, 0, Vec::new());
    for source in &programs {
        let expected = Expected::read(source);
        let Some(command) = expected.command() else { continue };
        let file = directory.path().join(format!("{}.ftp", expected.name));
        let mut problems = Vec::new();
        for attempt in 1..=ATTEMPTS {
            // Where NumPy stands on OpenBLAS, its idle threads would be counted among those of the program.
            let outcome = run(firsttouch.profile(&file, &["--quiet"], &command).env("OPENBLAS_NUM_THREADS", "1"));
            assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ok\n"), "{}: {outcome:?}", expected.name);
            problems = expected.problems(&firsttouch.report_json(&file));
            if problems.is_empty() {
                let planned = run(firsttouch.command(["plan"]).arg(&file).arg("--json"));
                assert_eq!(planned.status, 0, "{}: {planned:?}", expected.name);
                problems = expected.plan_problems(&serde_json::from_slice(&planned.stdout).expect("JSON"));
            }
            if problems.is_empty() {
                break;
            }
            eprintln!("corpus: {} attempt {attempt}: {}", expected.name, problems.join("; "));
        }
        *(if expected.get("finding") == Some("none") { &mut well_placed } else { &mut defects }) += 1;
        failures.extend(problems.into_iter().map(|p| format!("{}: {p}", expected.name)));
    }
    eprintln!("corpus: {defects} programs with a defect, {well_placed} well placed, {} problems", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(defects >= 16 && well_placed >= 8, "the corpus has shrunk: {defects} defects, {well_placed} well placed");
}
