//! GitHub's workflow commands: lines that become annotations
//! (docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands).

use super::{CheckJson, is_worth, sentence};
use firsttouch_analysis::check_limits::{LimitStatus, Outcome};
use std::fmt::Write;

/// One line for each limit that was not kept, and one for each finding, with its file and line.
#[must_use]
pub fn check_github(check: &CheckJson<'_>) -> String {
    let mut out = String::new();
    for limit in check.limits {
        let level = match limit.status {
            LimitStatus::Exceeded | LimitStatus::Unknown => "error",
            LimitStatus::Unsure => "warning",
            LimitStatus::Within => "notice",
        };
        let causes = if limit.status == LimitStatus::Unknown { format!(": {}", check.causes.join("; ")) } else { String::new() };
        let words = data(&format!("{}{causes}", sentence(limit, check.machine)));
        let _ = writeln!(out, "::{level} title={}::{words}", property(&format!("firsttouch {}", limit.kind)));
    }
    for finding in &check.findings {
        let level = match (check.outcome == Outcome::Failed, is_worth(finding)) {
            (_, false) => "notice",
            (true, true) => "error",
            (false, true) => "warning",
        };
        let place =
            check.place(finding).map_or(String::new(), |(_, file, line)| format!("file={},line={line},", property(check.relative(file))));
        let title = property(&format!("firsttouch {}: {}", finding.id, finding.object_name));
        let _ = writeln!(out, "::{level} {place}title={title}::{}", data(&format!("{}\n{}", finding.message, CheckJson::advice(finding))));
    }
    out
}

fn data(text: &str) -> String {
    // Azure's commands (`##vso[`) are obeyed anywhere in a line.
    text.replace("##", "# #").replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that text cannot end a command or a property early.
    #[test]
    fn commands_are_escaped() {
        assert_eq!(data("50 %: a,b\r\nc"), "50 %25: a,b%0D%0Ac");
        assert_eq!(property("x: a,b%\n"), "x%3A a%2Cb%25%0A");
    }
}
