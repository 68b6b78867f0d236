//! JUnit XML, as Jenkins and GitLab read it: one test case per limit.

use super::{CheckJson, sentence};
use crate::report_json::FindingJson;
use crate::xml::escape;
use firsttouch_analysis::check_limits::LimitStatus;
use std::fmt::Write;

/// The result as a test suite.
#[must_use]
pub fn check_junit(check: &CheckJson<'_>) -> String {
    let count = |status: LimitStatus| check.limits.iter().filter(|limit| limit.status == status).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\" time=\"{:.3}\"",
        check.limits.len(),
        count(LimitStatus::Exceeded),
        count(LimitStatus::Unknown),
        check.analysis.wall_s
    );
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let _ = writeln!(out, "<testsuites name=\"firsttouch\" {counts}>");
    let _ = writeln!(out, "  <testsuite name=\"{}\" {counts}>", escape(&format!("firsttouch check on {}", check.machine.name)));
    for limit in check.limits {
        let words = escape(&sentence(limit, check.machine));
        let _ = write!(out, "    <testcase classname=\"firsttouch.check\" name=\"{}\" time=\"0\"", limit.kind);
        let _ = match limit.status {
            LimitStatus::Exceeded => writeln!(
                out,
                ">\n      <failure type=\"{}\" message=\"{words}\">{}</failure>\n    </testcase>",
                limit.kind,
                escape(&findings(check))
            ),
            LimitStatus::Unknown => writeln!(
                out,
                ">\n      <error type=\"not-judged\" message=\"{words}\">{}</error>\n    </testcase>",
                escape(&check.causes.join("\n"))
            ),
            LimitStatus::Within | LimitStatus::Unsure => writeln!(out, ">\n      <system-out>{words}</system-out>\n    </testcase>"),
        };
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// The text of a failure: one paragraph per finding.
fn findings(check: &CheckJson<'_>) -> String {
    let one = |finding: &FindingJson<'_>| {
        let place = check.place(finding).map_or(String::new(), |(_, file, line)| format!("{}:{line}: ", check.relative(file)));
        format!("{place}{} {}: {}\n{}\n", finding.id, finding.object_name, finding.message, CheckJson::advice(finding))
    };
    check.findings.iter().map(one).collect::<Vec<_>>().join("\n")
}
