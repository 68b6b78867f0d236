//! This thread's memory policy: the get_mempolicy system call, or a line of numa_maps.

use firsttouch_model::topology::MemoryPolicy;
use std::io;

/// The kernel's names by number (mm/mempolicy.c, `policy_modes`; linux/mempolicy.h).
const MODES: [&str; 7] = ["default", "prefer", "bind", "interleave", "local", "prefer (many)", "weighted interleave"];
/// Mode flags and their words (linux/mempolicy.h).
const FLAGS: [(libc::c_int, &str); 3] =
    [(libc::MPOL_F_STATIC_NODES, "static"), (libc::MPOL_F_RELATIVE_NODES, "relative"), (libc::MPOL_F_NUMA_BALANCING, "balancing")];
/// More nodes than any kernel is built for (CONFIG_NODES_SHIFT ends at 10), in words of 64.
const WORDS: usize = 64;

/// Asks the kernel for the policy of the calling thread.
///
/// # Errors
/// When the kernel has no NUMA support, or a seccomp filter forbids the call.
pub fn of_this_thread() -> io::Result<MemoryPolicy> {
    let mut mode: libc::c_int = 0;
    let mut mask = [0u64; WORDS];
    // SAFETY: the kernel writes one int and at most WORDS * 64 bits, both of which outlive the call; address and flags
    // 0 ask for the thread's own policy.
    let status = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            mask.as_mut_ptr(),
            (WORDS * 64) as libc::c_ulong,
            std::ptr::null::<libc::c_void>(),
            0 as libc::c_ulong,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let nodes = (0u32..).zip(mask).flat_map(|(word, bits)| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit));
    let number = FLAGS.iter().fold(mode, |mode, (flag, _)| mode & !flag);
    Ok(MemoryPolicy {
        mode: usize::try_from(number)
            .ok()
            .and_then(|number| MODES.get(number))
            .map_or_else(|| format!("mode {number}"), |&name| name.to_owned()),
        flags: FLAGS.iter().filter(|(flag, _)| mode & flag != 0).map(|(_, word)| (*word).to_owned()).collect(),
        nodes: nodes.collect(),
        source: "get_mempolicy".to_owned(),
    })
}

/// The policy in numa_maps: that of the stack, which nobody binds, so that the kernel writes the thread's own there.
pub fn from_numa_maps(text: &str) -> Option<MemoryPolicy> {
    let line = text.lines().find(|line| line.split(' ').any(|word| word == "stack"))?;
    let (_, rest) = line.split_once(' ')?;
    // Longest name first: `prefer (many)` begins with `prefer`.
    let mut modes = MODES;
    modes.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mode = modes.into_iter().find(|name| rest.strip_prefix(name).is_some_and(|after| after.starts_with([' ', ':', '='])))?;
    let after = rest.strip_prefix(mode)?.split(' ').next()?;
    let (flags, nodes) = after.split_once(':').unwrap_or((after, ""));
    Some(MemoryPolicy {
        mode: mode.to_owned(),
        flags: flags.split(['=', '|']).filter(|word| !word.is_empty()).map(str::to_owned).collect(),
        nodes: crate::parse_list(nodes).ok()?,
        source: "numa_maps".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the kernel answers, or says why not, and that its answer is a known mode.
    #[test]
    fn the_kernel_is_asked() {
        if let Ok(policy) = of_this_thread() {
            assert!(MODES.contains(&policy.mode.as_str()), "{policy:?}");
        }
    }

    /// Check the forms of the kernel's mpol_to_str, and that damage is no policy.
    #[test]
    fn numa_maps_are_read() {
        let read = |policy: &str| {
            let text = format!("55e0 default heap anon=2 N0=2\n7ffc {policy} stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4\n");
            from_numa_maps(&text).map(|policy| (policy.mode, policy.flags, policy.nodes))
        };
        let answer = |mode: &str, flags: &[&str], nodes: &[u32]| {
            Some((mode.to_owned(), flags.iter().map(|flag| (*flag).to_owned()).collect(), nodes.to_vec()))
        };
        assert_eq!(read("default"), answer("default", &[], &[]));
        assert_eq!(read("bind:0-1,4"), answer("bind", &[], &[0, 1, 4]));
        assert_eq!(read("bind=static:1"), answer("bind", &["static"], &[1]));
        assert_eq!(read("interleave=relative|balancing:0-1"), answer("interleave", &["relative", "balancing"], &[0, 1]));
        assert_eq!(read("prefer (many):0,2"), answer("prefer (many)", &[], &[0, 2]));
        assert_eq!(read("weighted interleave:0-1"), answer("weighted interleave", &[], &[0, 1]));
        assert_eq!(read("local"), answer("local", &[], &[]));
        for damaged in ["", "bind:x", "defaults", "bind:0-"] {
            assert_eq!(read(damaged), None, "{damaged}");
        }
        for text in ["", "stack", "7ffc", "7ffc stack", "7ffc default heap\n"] {
            assert_eq!(from_numa_maps(text), None, "{text}");
        }
    }
}
