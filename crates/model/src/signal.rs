//! Names of signals, as on x86-64 and Arm: man 7 signal.

const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD",
    "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// Launchers end the other ranks of a job with this when one has failed, then with SIGKILL.
pub const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// How likely the end of a rank that did not end well is the consequence of another one's: the rank with the least is the one that ended the job.
/// `has_aborted`: it called `MPI_Abort`.
#[must_use]
pub fn consequence(has_aborted: bool, signal: Option<i32>) -> u8 {
    match signal {
        _ if has_aborted => 0,
        None => 1,
        Some(SIGTERM) => 4,
        Some(SIGKILL) => 3,
        Some(_) => 2,
    }
}

/// `signal 6 (SIGABRT)`; real-time signals have only their number.
#[must_use]
pub fn signal_words(signal: i32) -> String {
    let name = usize::try_from(signal).ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    name.map_or_else(|| format!("signal {signal}"), |name| format!("signal {signal} (SIG{name})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the names of common signals against the C library's numbers, and numbers without a name.
    #[test]
    fn signals_have_names() {
        for (signal, words) in
            [(6, "signal 6 (SIGABRT)"), (9, "signal 9 (SIGKILL)"), (11, "signal 11 (SIGSEGV)"), (15, "signal 15 (SIGTERM)")]
        {
            assert_eq!(signal_words(signal), words);
        }
        for (signal, words) in [(31, "signal 31 (SIGSYS)"), (34, "signal 34"), (0, "signal 0"), (-1, "signal -1")] {
            assert_eq!(signal_words(signal), words);
        }
    }

    /// Check that the rank that ended a job comes before those that the launcher ended after it.
    #[test]
    fn who_ended_the_job() {
        let first = |ranks: &[(bool, Option<i32>)]| ranks.iter().min_by_key(|rank| consequence(rank.0, rank.1)).copied();
        let terminated = (false, Some(15));
        for cause in [(true, Some(15)), (true, None), (false, None), (false, Some(11)), (false, Some(9))] {
            assert_eq!(first(&[terminated, cause, terminated]), Some(cause));
        }
        assert_eq!(first(&[(false, Some(9)), (false, Some(11))]), Some((false, Some(11))));
    }
}
