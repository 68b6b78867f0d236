//! The least privileged remedies on a system that forbids memory policies. The doctor and the launcher use the same words.

/// Allows get_mempolicy, mbind and set_mempolicy in the seccomp filters of Docker and Podman, but not move_pages.
pub const SYS_NICE: &str = "docker run --cap-add SYS_NICE (Kubernetes: capabilities: add: [SYS_NICE])";
pub const PROFILE: &str = "a seccomp profile that allows these calls: --security-opt seccomp=FILE";
pub const NO_NUMA: &str =
    "this kernel was built without NUMA, or a sandbox answers its calls: run on the host, or on a kernel with CONFIG_NUMA";
