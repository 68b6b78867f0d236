//! The verdict so far, while a program is recorded: another firsttouch reports on the profile that this one writes (which must not open it
//! twice, because closing a file gives up SQLite's locks on it). It looks after 2 s, then whenever the time has doubled, so that a long run
//! pays for few looks.

use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// The first look.
const FIRST_S: f64 = 2.0;

#[derive(Default)]
pub struct FirstVerdict {
    /// The options that say on which machine the profile is judged.
    options: Vec<String>,
    looked_s: f64,
    look: Option<Look>,
    words: Option<String>,
}

struct Look {
    child: Child,
    report: Receiver<String>,
}

impl Drop for Look {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl FirstVerdict {
    pub fn new(options: Vec<String>) -> Self {
        Self { options, ..Self::default() }
    }

    /// The verdict so far in a few words, if there was enough evidence for one.
    pub fn at(&mut self, profile: &Path, elapsed_s: f64) -> Option<&str> {
        if let Some(report) = self.look.as_ref().and_then(|look| look.report.try_recv().ok()) {
            self.look = None;
            self.words = words(&report).or_else(|| self.words.take());
        }
        let is_due = self.look.is_none() && elapsed_s >= FIRST_S && elapsed_s >= 2.0 * self.looked_s;
        if is_due && may_be_read(profile) {
            self.looked_s = elapsed_s;
            self.look = Look::start(profile, &self.options);
        }
        self.words.as_deref()
    }

    /// Ends a look that is under way.
    pub fn end(&mut self) {
        self.look = None;
    }
}

impl Look {
    /// `None` if the other firsttouch cannot be started. That is no reason to disturb the recording.
    fn start(profile: &Path, options: &[String]) -> Option<Self> {
        let mut command = Command::new(std::env::current_exe().ok()?);
        command.arg("report").arg(profile).arg("--json").args(options);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut output = child.stdout.take()?;
        let (end, report) = channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = output.read_to_string(&mut text);
            // Nobody waits for it any more if the recording has ended.
            let _ = end.send(text);
        });
        Some(Self { child, report })
    }
}

/// Whether a reader does not make the writer wait: with a log beside the profile (WAL), which some file systems do not support.
fn may_be_read(profile: &Path) -> bool {
    let mut log = OsString::from(profile);
    log.push("-wal");
    Path::new(&log).exists()
}

/// `MISPLACED, 50 % remote [47, 52]`; `None` without a verdict. That the recording goes on is no doubt.
fn words(report: &str) -> Option<String> {
    let report: Value = serde_json::from_str(report).ok()?;
    let causes = report["verdict"]["causes"].as_array().map_or(0, Vec::len);
    let has_doubts = causes > usize::from(report["unfinished"] == true);
    let verdict = match report["verdict"]["outcome"].as_str()? {
        "findings" => "MISPLACED",
        "well-placed" => "well placed",
        "not-judged" if report["unfinished"] == true && !has_doubts => "well placed",
        _ => return None,
    };
    let percent = |value: &Value| value.as_f64().map(|part| format!("{:.0}", part * 100.0));
    let range = || Some((percent(&report["remote_interval"][0])?, percent(&report["remote_interval"][1])?));
    let share = percent(&report["remote_fraction"]).zip(range());
    if has_doubts {
        return Some(format!("{verdict}, how much is not known"));
    }
    Some(share.map_or(verdict.to_owned(), |(share, (low, high))| format!("{verdict}, {share} % remote [{low}, {high}]")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the words for each verdict, and that nothing is said without one.
    #[test]
    fn verdicts_in_words() {
        for (report, expected) in [
            (
                r#"{"verdict": {"outcome": "findings"}, "remote_fraction": 0.498, "remote_interval": [0.47, 0.521]}"#,
                Some("MISPLACED, 50 % remote [47, 52]"),
            ),
            (
                r#"{"verdict": {"outcome": "findings", "causes": ["wide"]}, "remote_fraction": 0.59, "remote_interval": [0, 1]}"#,
                Some("MISPLACED, how much is not known"),
            ),
            (r#"{"verdict": {"outcome": "well-placed"}, "remote_fraction": null, "remote_interval": null}"#, Some("well placed")),
            (r#"{"verdict": {"outcome": "not-judged"}, "remote_fraction": 0.5, "remote_interval": [0.1, 0.9]}"#, None),
            (
                r#"{"verdict": {"outcome": "not-judged", "causes": ["it goes on"]}, "unfinished": true, "remote_fraction": 0, "remote_interval": [0, 0.02]}"#,
                Some("well placed, 0 % remote [0, 2]"),
            ),
            (r#"{"verdict": {"outcome": "not-judged", "causes": ["it goes on", "few"]}, "unfinished": true}"#, None),
            ("", None),
            ("{}", None),
        ] {
            assert_eq!(words(report).as_deref(), expected, "{report}");
        }
    }
}
