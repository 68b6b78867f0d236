//! The user that this process runs as.

/// The effective user.
#[must_use]
pub fn effective_user() -> u32 {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// The real user and group.
#[must_use]
pub fn user_and_group() -> (u32, u32) {
    // SAFETY: getuid and getgid have no arguments and cannot fail.
    unsafe { (libc::getuid(), libc::getgid()) }
}
