// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A test that cannot run says so on the real stderr (the test harness captures `eprintln!` of tests that pass), and
//! fails where skipping is not allowed: `FIRSTTOUCH_NO_SKIP=1`, which `make test` sets when `CI=true`.

use std::io::Write;

/// Reports that `test` does not run here.
///
/// # Panics
/// If `FIRSTTOUCH_NO_SKIP=1`.
pub fn skipped(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}\n");
    // One write, so that lines of tests that run at the same time do not mix. A closed stderr is not an error.
    let _ = std::io::stderr().write_all(line.as_bytes());
    assert!(std::env::var("FIRSTTOUCH_NO_SKIP").as_deref() != Ok("1"), "{test} may not be skipped here: {reason}");
}

/// True (after reporting the skip) if one of `tools` is not on `PATH`.
pub fn lacks_tools(test: &str, tools: &[&str]) -> bool {
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| crate::paths::find_tool(tool).is_none()).collect();
    if !missing.is_empty() {
        skipped(test, &format!("not installed: {} (`make deps` installs what it can)", missing.join(", ")));
    }
    !missing.is_empty()
}

/// True if this process is root.
pub fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
