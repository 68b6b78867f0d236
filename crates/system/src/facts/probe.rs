//! Asks the kernel whether memory may be placed here, by calls that change nothing for anybody.

use firsttouch_model::facts::{Probe, Probes};
use std::io;

/// What the memory policy calls answer. They run on a thread of their own, which ends: a thread's policy is its own, so that
/// setting it there to the default takes nothing from this process (`numactl firsttouch ...` keeps its policy).
#[must_use]
pub fn memory_policy() -> Probes {
    std::thread::spawn(ask).join().unwrap_or_default()
}

fn ask() -> Probes {
    let null = std::ptr::null::<libc::c_void>();
    let mut mode: libc::c_int = 0;
    // SAFETY: the kernel writes one int, which outlives the call; no node mask is asked for.
    let get_mempolicy = answer(unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, null, 0usize, null, 0usize) });
    // SAFETY: the default policy takes no node mask; it holds for this thread only.
    let set_mempolicy = answer(unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_DEFAULT, null, 0usize) });
    let (mbind, move_pages) = on_a_page();
    Probes { get_mempolicy, set_mempolicy, mbind, move_pages, ..Probes::default() }
}

/// mbind to the default policy, and the query form of move_pages, on a fresh page.
fn on_a_page() -> (Probe, Probe) {
    // SAFETY: a new private mapping of one page at an address of the kernel's choice.
    let (page, bytes) = unsafe {
        let bytes = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        (libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0), bytes)
    };
    if page == libc::MAP_FAILED {
        return (Probe::NotTried, Probe::NotTried);
    }
    let null = std::ptr::null::<libc::c_void>();
    // SAFETY: the page is ours; the default policy takes no node mask.
    let mbind = answer(unsafe { libc::syscall(libc::SYS_mbind, page, bytes, libc::MPOL_DEFAULT, null, 0usize, 0usize) });
    let (pages, mut status) = ([page.cast_const()], [0i32]);
    // SAFETY: both arrays have one element and outlive the call; without nodes it is a query of this process (0).
    let move_pages = answer(unsafe { libc::syscall(libc::SYS_move_pages, 0, 1usize, pages.as_ptr(), null, status.as_mut_ptr(), 0) });
    // SAFETY: the mapping made above, which nothing refers to any more.
    unsafe { libc::munmap(page, bytes) };
    (mbind, move_pages)
}

fn answer(status: libc::c_long) -> Probe {
    if status >= 0 { Probe::Allowed } else { Probe::Refused(io::Error::last_os_error().raw_os_error().unwrap_or(0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forbids a system call (EPERM) for the calling thread and those it starts, as a container's filter does.
    fn forbid(calls: &[libc::c_long]) {
        let instruction = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: u16::try_from(code).expect("a code"), jt, jf, k };
        let mut filter = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
        for call in calls {
            filter.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, u32::try_from(*call).expect("a call")));
            filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()));
        }
        filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
        let program = libc::sock_fprog { len: u16::try_from(filter.len()).expect("short"), filter: filter.as_mut_ptr() };
        // SAFETY: the filter outlives the calls, which hold for this thread only.
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
        }
    }

    /// Check that a filter's refusal is told with its errno, call by call.
    #[test]
    fn refusals_are_told() {
        let outside = memory_policy();
        let inside = std::thread::spawn(|| {
            forbid(&[libc::SYS_set_mempolicy, libc::SYS_mbind]);
            memory_policy()
        });
        let inside = inside.join().expect("the thread ends");
        assert_eq!((inside.set_mempolicy, inside.mbind), (Probe::Refused(libc::EPERM), Probe::Refused(libc::EPERM)));
        assert_eq!((inside.get_mempolicy, inside.move_pages), (outside.get_mempolicy, outside.move_pages), "the others are as before");
    }

    /// Check that asking leaves this thread's policy as it was.
    #[test]
    fn the_policy_is_kept() {
        let policy = || crate::topology::policy::of_this_thread().ok();
        let before = policy();
        let _ = memory_policy();
        assert_eq!(policy(), before);
    }
}
