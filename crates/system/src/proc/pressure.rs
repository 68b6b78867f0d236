//! /proc/pressure/RESOURCE (PSI): `some avg10=1.50 avg60=0.30 avg300=0.00 total=123`.

use super::small_file;
use std::path::Path;

/// The part of the last 10 s in which some task waited for this resource (`cpu`, `memory`, `io`), in [0, 1]. `None` if the kernel does not say.
#[must_use]
pub fn some_10s(root: &Path, resource: &str) -> Option<f64> {
    parse(&small_file(&root.join(format!("proc/pressure/{resource}")))?)
}

/// For how long tasks have waited for a resource since boot, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// Some task waited.
    pub some_us: u64,
    /// No task ran, because all of them waited. Older kernels do not say this of CPUs.
    pub full_us: Option<u64>,
}

/// How long tasks have waited for this resource (`cpu`, `memory`, `io`). `None` if the kernel does not say.
#[must_use]
pub fn waited(root: &Path, resource: &str) -> Option<Waited> {
    totals(&small_file(&root.join(format!("proc/pressure/{resource}")))?)
}

fn totals(text: &str) -> Option<Waited> {
    let total = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(' '))?;
        line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
    };
    Some(Waited { some_us: total("some")?, full_us: total("full") })
}

fn parse(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent: f64 = line.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::{Waited, parse, totals};

    /// Check a file of the kernel, and the table of malformed ones.
    #[test]
    fn pressure_is_read() {
        assert_eq!(parse("some avg10=1.50 avg60=0.30 avg300=0.00 total=9\nfull avg10=9.00 avg60=0 avg300=0 total=1\n"), Some(0.015));
        for text in ["", "some", "some avg60=1", "some avg10=x", "some avg10=-1", "some avg10=101", "some avg10=nan", "full avg10=1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    /// Check the totals with and without a line of `full`, and a table of malformed ones.
    #[test]
    fn totals_are_read() {
        let text = "some avg10=1.50 avg60=0.30 avg300=0.00 total=9\n";
        assert_eq!(totals(text), Some(Waited { some_us: 9, full_us: None }));
        let both = format!("{text}full avg10=9.00 avg60=0 avg300=0 total=1\n");
        assert_eq!(totals(&both), Some(Waited { some_us: 9, full_us: Some(1) }));
        for text in ["", "some", "something total=1", "some total=", "some total=-1", "some total=99999999999999999999", "full total=1"] {
            assert_eq!(totals(text), None, "{text}");
        }
    }
}
