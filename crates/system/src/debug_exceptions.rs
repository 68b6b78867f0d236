//! Debug exceptions whose cause a hypervisor may lose.
//!
//! A watchpoint's hit raises a debug exception, and the kernel reads its cause from DR6. KVM on Intel processors may load an older DR6
//! in between (fixed in Linux 6.14: "KVM: x86: Load DR6 with guest value only before entering .vcpu_run() loop", CVE-2025-21839). The
//! guest's kernel then takes the exception for the instruction int1 and sends SIGTRAP, which ends the program.

/// Which threads may get watchpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// All.
    Always,
    /// Those that can take a SIGTRAP: their process has a handler, and they do not block it.
    Guarded,
    /// None.
    Never,
}

impl Policy {
    /// What this machine needs.
    #[must_use]
    pub fn of_machine() -> Self {
        if hypervisor_may_lose_causes() { Self::Guarded } else { Self::Always }
    }
}

/// This is a virtual machine of KVM on an Intel processor. What the host's kernel is cannot be seen from inside.
#[must_use]
pub fn hypervisor_may_lose_causes() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        /// Leaf 1, ECX.
        const UNDER_HYPERVISOR: u32 = 1 << 31;
        /// KVM's signature is in the first leaf, or in the second if it also imitates Hyper-V.
        const SIGNATURES: [u32; 2] = [0x4000_0000, 0x4000_0100];
        let text = |words: [u32; 3]| words.map(u32::to_le_bytes).concat();
        let vendor = __cpuid(0);
        text([vendor.ebx, vendor.edx, vendor.ecx]) == b"GenuineIntel"
            && __cpuid(1).ecx & UNDER_HYPERVISOR != 0
            && SIGNATURES.iter().any(|leaf| {
                let answer = __cpuid(*leaf);
                text([answer.ebx, answer.ecx, answer.edx]).starts_with(b"KVMKVMKVM")
            })
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// While it lives, a SIGTRAP does not end firsttouch itself.
pub struct Guard {
    original: libc::sigaction,
}

impl Guard {
    /// `None` if SIGTRAP has another disposition than the default.
    #[must_use]
    pub fn set() -> Option<Self> {
        extern "C" fn ignore(_: i32) {}
        // SAFETY: sigaction is plain data for which zero is valid; all pointers are to locals; the handler does nothing.
        unsafe {
            let mut original: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGTRAP, std::ptr::null(), &raw mut original) != 0 || original.sa_sigaction != libc::SIG_DFL {
                return None;
            }
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = ignore as extern "C" fn(i32) as usize;
            ours.sa_flags = libc::SA_RESTART;
            (libc::sigaction(libc::SIGTRAP, &raw const ours, std::ptr::null_mut()) == 0).then_some(Self { original })
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: the disposition that `set` read.
        unsafe { libc::sigaction(libc::SIGTRAP, &raw const self.original, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a SIGTRAP ends nothing under the guard, and that the disposition comes back.
    #[test]
    fn sigtrap_under_guard() {
        // SAFETY: the handler is the guard's.
        let disposition = || unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGTRAP, std::ptr::null(), &raw mut now);
            now.sa_sigaction
        };
        let guard = Guard::set().expect("the default disposition");
        assert!(Guard::set().is_none());
        // SAFETY: handled.
        assert_eq!(unsafe { libc::raise(libc::SIGTRAP) }, 0);
        drop(guard);
        assert_eq!(disposition(), libc::SIG_DFL);
    }
}
