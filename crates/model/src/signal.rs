//! Names of signals, as on x86-64 and Arm: man 7 signal.

const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD",
    "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

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
}
