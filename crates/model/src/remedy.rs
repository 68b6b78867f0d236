//! The least privileged remedies on a system that forbids memory policies. The doctor and the launcher use the same words.

/// Allows get_mempolicy, mbind and set_mempolicy in the seccomp filters of Docker and Podman, but not move_pages.
pub const SYS_NICE: &str = "docker run --cap-add SYS_NICE (Kubernetes: capabilities: add: [SYS_NICE])";
pub const PROFILE: &str = "a seccomp profile that allows these calls: --security-opt seccomp=FILE";
/// Allows performance events. `--cap-add PERFMON` also opens Docker's and Podman's seccomp filter for them.
pub const PERF: &str = "set kernel.perf_event_paranoid to 2 (sysctl) or run with CAP_PERFMON; in a container: docker run --cap-add PERFMON, \
                        or --security-opt seccomp=FILE with a profile that allows perf_event_open";
pub const NO_NUMA: &str =
    "this kernel was built without NUMA, or a sandbox answers its calls: run on the host, or on a kernel with CONFIG_NUMA";
