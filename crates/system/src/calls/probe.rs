//! Tries the calls that placement and profiling need, on unused memory and on events that are never enabled.

use super::perf::{Attributes, Event};
use firsttouch_model::facts::{Probe, Probes};
use std::io;

/// An unused address, aligned for a watchpoint; the event is never enabled.
const UNUSED_ADDRESS: u64 = 0x1000;
/// Bytes of stack in a sample; the kernel requires a multiple of 8.
const STACK_BYTES: u32 = 8;

/// Adds what perf_event_open answers for the events of a profile, on the calling thread. The events are closed before they count.
#[must_use]
pub fn perf_events(probes: Probes) -> Probes {
    let page_faults = Attributes::page_faults(u64::from(u32::MAX), STACK_BYTES).exclude_kernel(true);
    Probes { page_faults: open(&page_faults), watchpoint: open(&Attributes::watchpoint(UNUSED_ADDRESS, STACK_BYTES)), ..probes }
}

fn open(attributes: &Attributes) -> Probe {
    match Event::open(attributes, 0, -1) {
        Ok(_) => Probe::Allowed,
        Err(error) => Probe::Refused(error.raw_os_error().unwrap_or(0)),
    }
}

/// What the memory policy calls answer. They run on a separate thread: a policy belongs to one thread, so setting the default there
/// leaves this process unchanged (`numactl firsttouch ...` keeps its policy).
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
    let (bytes, flags) = (super::sysconf::page_bytes(), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new private mapping of one page at an address of the kernel's choice.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return (Probe::NotTried, Probe::NotTried);
    }
    let null = std::ptr::null::<libc::c_void>();
    // SAFETY: the page was mapped above; the default policy takes no node mask.
    let mbind = answer(unsafe { libc::syscall(libc::SYS_mbind, page, bytes, libc::MPOL_DEFAULT, null, 0usize, 0usize) });
    let (pages, mut status) = ([page.cast_const()], [0i32]);
    // SAFETY: both arrays have one element and outlive the call; without nodes it is a query of this process (0).
    let move_pages = answer(unsafe { libc::syscall(libc::SYS_move_pages, 0, 1usize, pages.as_ptr(), null, status.as_mut_ptr(), 0) });
    // SAFETY: the mapping made above, to which no references remain.
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

    /// Check that a filter's refusal is reported with its errno, for each call.
    #[test]
    fn refusals_are_reported() {
        let outside = memory_policy();
        let inside = std::thread::spawn(|| {
            forbid(&[libc::SYS_set_mempolicy, libc::SYS_mbind]);
            memory_policy()
        });
        let inside = inside.join().expect("the thread ends");
        assert_eq!((inside.set_mempolicy, inside.mbind), (Probe::Refused(libc::EPERM), Probe::Refused(libc::EPERM)));
        assert_eq!((inside.get_mempolicy, inside.move_pages), (outside.get_mempolicy, outside.move_pages), "the others are unchanged");
    }

    /// Check that perf_event_open gives an answer, and that the other answers are kept.
    #[test]
    fn perf_events_are_tried() {
        let probes = perf_events(Probes { mbind: Probe::Refused(1), ..Probes::default() });
        assert!(probes.page_faults != Probe::NotTried && probes.watchpoint != Probe::NotTried);
        assert_eq!((probes.mbind, probes.get_mempolicy), (Probe::Refused(1), Probe::NotTried));
    }

    /// Check that the probes leave this thread's policy unchanged.
    #[test]
    fn the_policy_is_kept() {
        let policy = || crate::calls::mempolicy::of_this_thread().ok();
        let before = policy();
        let _ = memory_policy();
        assert_eq!(policy(), before);
    }
}
