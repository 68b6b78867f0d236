//! Why perf_event_open failed, as a sentence for the user.

use firsttouch_system::proc;
use std::io;
use std::path::Path;

/// Why the kernel refuses performance events, and the least privileged way to get them.
#[must_use]
pub fn explain(root: &Path, error: &io::Error) -> String {
    let paranoid = proc::perf_event_paranoid(root);
    match (error.raw_os_error(), paranoid) {
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 2 => format!(
            "cannot open performance events (perf_event_paranoid = {level}): set it to 2 (sysctl kernel.perf_event_paranoid=2) or run with CAP_PERFMON (in a container: docker run --cap-add PERFMON)"
        ),
        (Some(libc::EACCES | libc::EPERM), _) => "cannot open performance events (the system call is forbidden, as container profiles do): allow perf_event_open in the seccomp profile (docker run --security-opt seccomp=FILE) or run with CAP_PERFMON (docker run --cap-add PERFMON)".to_owned(),
        (Some(libc::ENOSYS), _) => "cannot open performance events (this kernel or container has no perf_event_open): use a kernel with CONFIG_PERF_EVENTS, or allow the call in the sandbox's seccomp profile".to_owned(),
        (Some(libc::EMFILE), _) => "cannot open performance events (too many open files): raise the limit (ulimit -n)".to_owned(),
        _ => format!("cannot open performance events ({error})"),
    }
}
