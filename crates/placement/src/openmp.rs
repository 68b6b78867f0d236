//! Pins the threads of an OpenMP program through the variables that every OpenMP runtime reads.
//!
//! Sources: OpenMP 5.2 chapter 21; libgomp's manual (OMP_PLACES overrides GOMP_CPU_AFFINITY); LLVM's OpenMP runtime reference
//! (KMP_AFFINITY overrides OMP_PROC_BIND, KMP_HW_SUBSET overrides places).

use std::fmt::{self, Write};

const PLACES: &str = "OMP_PLACES";
const BIND: &str = "OMP_PROC_BIND";
const THREADS: &str = "OMP_NUM_THREADS";

/// A variable of the user that places threads differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub variable: &'static str,
    pub value: String,
    pub reason: &'static str,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} {}", self.variable, self.value, self.reason)
    }
}

/// Looks up a variable of the environment.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

fn set(lookup: Lookup, name: &str) -> Option<String> {
    lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The number of threads that the user requests; for nested teams, that of the outer team.
#[must_use]
pub fn threads(lookup: Lookup) -> Option<usize> {
    set(lookup, THREADS)?.split(',').next()?.trim().parse().ok().filter(|threads| *threads > 0)
}

/// `{0},{8},{1}`: an OpenMP place for each thread.
#[must_use]
pub fn places(cpus: &[u32]) -> String {
    let mut text = String::new();
    for (index, cpu) in cpus.iter().enumerate() {
        let _ = write!(text, "{}{{{cpu}}}", if index > 0 { "," } else { "" });
    }
    text
}

/// The variables to set so that thread i of a team runs on the i-th CPU. A value of OMP_NUM_THREADS from the user is kept.
#[must_use]
pub fn variables(cpus: &[u32], lookup: Lookup) -> Vec<(String, String)> {
    // `close` puts thread i on the i-th place after that of the first thread, if there are as many places as threads.
    let mut variables = vec![(PLACES.to_owned(), places(cpus)), (BIND.to_owned(), "close".to_owned())];
    if threads(lookup).is_none() {
        variables.push((THREADS.to_owned(), cpus.len().to_string()));
    }
    variables
}

/// The user's variables that contradict these CPUs.
#[must_use]
pub fn conflicts(cpus: &[u32], lookup: Lookup) -> Vec<Conflict> {
    let mut found = Vec::new();
    let mut conflict = |variable, value, reason| found.push(Conflict { variable, value, reason });
    if let Some(value) = set(lookup, PLACES)
        && value.replace(' ', "") != places(cpus)
    {
        conflict(PLACES, value, "names other places");
    }
    if let Some(value) = set(lookup, BIND) {
        // For nested teams, use the outer team.
        let outer = value.split(',').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !matches!(outer.as_str(), "true" | "close") {
            conflict(BIND, value, "binds in another way");
        }
    }
    if let Some(value) = set(lookup, "GOMP_CPU_AFFINITY")
        && gomp(&value).as_deref() != Some(cpus)
    {
        conflict("GOMP_CPU_AFFINITY", value, "names other CPUs");
    }
    if let Some(value) = set(lookup, "KMP_AFFINITY") {
        let modifies_only = |word: &str| {
            let word = word.trim().to_ascii_lowercase();
            word.starts_with("granularity=") || ["verbose", "noverbose", "warnings", "nowarnings", "respect"].contains(&word.as_str())
        };
        if !value.split(',').all(modifies_only) {
            conflict("KMP_AFFINITY", value, "goes before OMP_PLACES in LLVM's and Intel's runtime");
        }
    }
    if let Some(value) = set(lookup, "KMP_HW_SUBSET") {
        conflict("KMP_HW_SUBSET", value, "leaves only a part of the machine to LLVM's and Intel's runtime");
    }
    if let Some(value) = set(lookup, "OMP_THREAD_LIMIT")
        && value.parse().is_ok_and(|limit: usize| limit < cpus.len())
    {
        conflict("OMP_THREAD_LIMIT", value, "allows fewer threads");
    }
    found
}

/// The CPUs of GOMP_CPU_AFFINITY: `0 3 1-2 4-15:2`, separated by blanks or commas; `None` if it is damaged.
fn gomp(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split([' ', ',']).filter(|part| !part.is_empty()) {
        let (range, stride) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last, stride): (u32, u32, usize) = (first.parse().ok()?, last.parse().ok()?, stride.parse().ok()?);
        // No kernel has more CPUs.
        if last > crate::scan::LARGEST || stride == 0 {
            return None;
        }
        cpus.extend((first..=last).step_by(stride));
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(pairs: &[(&str, &str)], ask: impl Fn(Lookup) -> T) -> T {
        ask(&|name| pairs.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned()))
    }

    /// Check the variables, and that the user's number of threads is kept.
    #[test]
    fn a_place_a_thread() {
        let set = |pairs: &[(&str, &str)]| with(pairs, |lookup| variables(&[0, 8, 1], lookup));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let both = [pair(PLACES, "{0},{8},{1}"), pair(BIND, "close")];
        assert_eq!(set(&[]), [&both[..], &[pair(THREADS, "3")]].concat());
        assert_eq!(set(&[(THREADS, "2")]), both);
        assert_eq!(set(&[(THREADS, "0")]), [&both[..], &[pair(THREADS, "3")]].concat());
    }

    /// Check numbers of threads, nested and damaged.
    #[test]
    fn numbers_of_threads() {
        for (value, number) in [("4", Some(4)), (" 4,2", Some(4)), ("", None), ("0", None), ("x", None), ("-1", None)] {
            assert_eq!(with(&[(THREADS, value)], threads), number, "{value:?}");
        }
    }

    /// Check which of the user's variables contradict CPUs 0, 2 and 1.
    #[test]
    fn contradictions_are_named() {
        for (name, value, contradicts) in [
            (PLACES, "{0}, {2}, {1}", false),
            (PLACES, "cores", true),
            (PLACES, "", false),
            (BIND, "true", false),
            (BIND, "close,spread", false),
            (BIND, "FALSE", true),
            (BIND, "spread", true),
            ("GOMP_CPU_AFFINITY", "0 2,1", false),
            ("GOMP_CPU_AFFINITY", "0-2:2 1", false),
            ("GOMP_CPU_AFFINITY", "0-2", true),
            ("GOMP_CPU_AFFINITY", "0-4294967295", true),
            ("GOMP_CPU_AFFINITY", "0-2:0", true),
            ("GOMP_CPU_AFFINITY", "x", true),
            ("KMP_AFFINITY", "verbose,granularity=fine", false),
            ("KMP_AFFINITY", "granularity=fine,compact", true),
            ("KMP_AFFINITY", "disabled", true),
            ("KMP_HW_SUBSET", "1T", true),
            ("OMP_THREAD_LIMIT", "3", false),
            ("OMP_THREAD_LIMIT", "2", true),
            ("OMP_NUM_THREADS", "2", false),
        ] {
            let found = with(&[(name, value)], |lookup| conflicts(&[0, 2, 1], lookup));
            let named: Vec<_> = found.iter().map(|conflict| (conflict.variable, conflict.value.as_str())).collect();
            assert_eq!(named, if contradicts { vec![(name, value)] } else { vec![] }, "{name}={value}");
        }
    }
}
