//! Profiles of the program `blocks`, evaluated on this guest's nodes.

use crate::{Setting, firsttouch, guest_program, json};
use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::text;
use firsttouch_oracles::list;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
const TUNABLES: &str = "/sys/kernel/debug/sched/numa_balancing";

/// Disables the kernel's balancing until the value is dropped.
pub fn balancing_off() -> Setting {
    Setting::set(BALANCING, "0")
}

/// Enables the kernel's balancing, with scans of all memory several times a second, until the value is dropped.
pub fn balancing_fast() -> Vec<Setting> {
    let fast = [("scan_delay_ms", "100"), ("scan_period_min_ms", "200"), ("scan_period_max_ms", "400")];
    let tunables = fast.map(|(name, value)| Setting::set(&format!("{TUNABLES}/{name}"), value));
    [Setting::set(BALANCING, "1")].into_iter().chain(tunables).collect()
}

/// A run of `blocks`.
pub struct Blocks<'a> {
    pub launcher: &'a [&'a str],
    pub seconds: u32,
    pub mib: u32,
    /// One CPU per thread.
    pub cpus: Vec<u32>,
    pub way: &'a str,
}

impl<'a> Blocks<'a> {
    /// 12 MiB for three seconds on these CPUs.
    pub fn on(cpus: &[u32], way: &'a str) -> Self {
        Self { launcher: &[], seconds: 3, mib: 12, cpus: cpus.to_vec(), way }
    }

    /// The command that profiles it.
    pub fn profile(&self, file: &Path) -> Command {
        let cpus = self.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let [seconds, mib] = [self.seconds, self.mib].map(|number| number.to_string());
        let program = guest_program("blocks");
        let words = [self.launcher, &[text(&program), &seconds, &mib, &cpus, self.way]].concat();
        firsttouch().profile(file, &["-q"], &words)
    }

    /// Profiles it, and returns the report.
    ///
    /// # Panics
    /// If that fails, or the report is not for this guest's own nodes.
    pub fn profiled(&self, file: &Path) -> Value {
        self.profiled_with(&[], file)
    }

    /// The same with these variables in the environment.
    ///
    /// # Panics
    /// If that fails, or the report is not for this guest's own nodes.
    pub fn profiled_with(&self, variables: &[(&str, &str)], file: &Path) -> Value {
        let outcome = run(self.profile(file).envs(variables.iter().copied()));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let report = json(&["report", text(file)]);
        assert_eq!(report["machine"]["virtual"].as_bool(), Some(false), "{report:#}");
        report
    }
}

/// The array of `blocks` in a report.
///
/// # Panics
/// If it is missing or was not judged: a report without findings on it would then prove nothing.
pub fn parts(report: &Value) -> &Value {
    let found = list(report, "objects").iter().find(|object| object["name"] == "parts");
    found.filter(|object| object["judged"] == true).unwrap_or_else(|| panic!("parts are not judged: {report:#}"))
}

/// The report's findings, as (kind, object).
pub fn findings(report: &Value) -> Vec<(&str, &str)> {
    list(report, "findings").iter().map(|finding| (word(finding, "id"), word(finding, "object_name"))).collect()
}

/// The finding of a kind.
///
/// # Panics
/// If there is no such finding.
pub fn finding<'a>(report: &'a Value, id: &str) -> &'a Value {
    list(report, "findings").iter().find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("no {id}: {report:#}"))
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The value of a finding's figure.
///
/// # Panics
/// If the finding does not have it.
pub fn figure(finding: &Value, name: &str) -> f64 {
    finding["figures"][name]["value"].as_f64().unwrap_or_else(|| panic!("no {name}: {finding:#}"))
}
