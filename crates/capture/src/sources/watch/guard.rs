//! Keeps watchpoints away from threads that a SIGTRAP would end, where a hypervisor may lose the cause of a hit
//! (`firsttouch_system::debug_exceptions`). The agent has a handler for that (native/agent/trap.c). What it can do is read from /proc: a
//! process without the agent has no handler, and a thread may block the signal.

use firsttouch_system::debug_exceptions::Policy;
use firsttouch_system::proc::status;
use hashbrown::HashMap;
use std::path::Path;

/// How long an answer holds: a program may block signals at any time. The first refusals hold shorter: the program may not have loaded the
/// agent yet.
const HOLDS_NS: u64 = 100_000_000;
const FIRST_HOLDS_NS: u64 = 3_000_000;

/// Why threads were not watched.
pub const UNGUARDED: &str = "threads not watched, because KVM on Intel processors before Linux 6.14 may report a hit as a SIGTRAP that ends \
                             them; FIRSTTOUCH_WATCHPOINTS=always watches them where the host's kernel is newer";

pub struct Guard {
    policy: Policy,
    /// By thread id.
    answers: HashMap<i32, Answer>,
    /// The program has its own handler of SIGTRAP.
    is_lost: bool,
}

#[derive(Clone, Copy)]
struct Answer {
    may_be_watched: bool,
    until: u64,
    /// How long the next refusal holds, ns.
    holds: u64,
}

impl Guard {
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy, answers: HashMap::new(), is_lost: false }
    }

    /// The program replaced the agent's handler: no thread is admitted from now on.
    pub fn lose(&mut self) {
        self.is_lost = true;
    }

    /// May a thread be watched now?
    pub fn admits(&mut self, root: &Path, pid: i32, tid: i32, now: u64) -> bool {
        if self.policy != Policy::Guarded {
            return self.policy == Policy::Always;
        }
        if self.is_lost {
            return false;
        }
        let answer = self.answers.entry(tid).or_insert(Answer { may_be_watched: false, until: 0, holds: FIRST_HOLDS_NS });
        if now >= answer.until {
            answer.may_be_watched = status::of_thread(root, pid, tid).is_some_and(|status| status.takes_traps);
            answer.until = now + if answer.may_be_watched { HOLDS_NS } else { answer.holds };
            answer.holds = (2 * answer.holds).min(HOLDS_NS);
        }
        answer.may_be_watched
    }

    /// Forgets ended threads.
    pub fn retain(&mut self, is_live: impl Fn(i32) -> bool) {
        self.answers.retain(|tid, _| is_live(*tid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check threads of a process with and without a handler, one that blocks the signal, and that an answer holds for a while.
    #[test]
    fn threads_that_take_traps() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |tid: i32, blocked: &str, caught: &str| {
            let folder = root.path().join(format!("proc/7/task/{tid}"));
            std::fs::create_dir_all(&folder).expect("a folder");
            let text = format!("Name:\ta\nSigBlk:\t{blocked}\nSigCgt:\t{caught}\nvoluntary_ctxt_switches:\t5\n");
            std::fs::write(folder.join("status"), text).expect("a file");
        };
        write(7, "0000000000000000", "0000000000000010");
        write(8, "fffffffe7ffbfeff", "0000000000000010");
        write(9, "0000000000000000", "0000000100000000");
        let mut guard = Guard::new(Policy::Guarded);
        let admitted = [7, 8, 9, 10].map(|tid| guard.admits(root.path(), 7, tid, 5));
        assert_eq!(admitted, [true, false, false, false]);
        write(7, "0000000000000010", "0000000000000010");
        assert!(guard.admits(root.path(), 7, 7, 6));
        assert!(!guard.admits(root.path(), 7, 7, 5 + HOLDS_NS));
        assert!(Guard::new(Policy::Always).admits(root.path(), 7, 9, 0));
        assert!(!Guard::new(Policy::Never).admits(root.path(), 7, 7, 0));
        guard.lose();
        write(8, "0000000000000000", "0000000000000010");
        assert!(!guard.admits(root.path(), 7, 8, 5 + 2 * HOLDS_NS));
    }
}
