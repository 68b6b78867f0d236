//! Wakes the session's loop when an agent asks for it.
//!
//! The loop polls descriptors. The agent must not keep one open in the program, so it wakes a futex in the ring's header, and a thread of
//! firsttouch that waits there rings a bell that the loop polls. If much of the ring is taken then, the loop is at other work, and the thread takes
//! the records out of the ring.

use super::ring::AgentRing;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::wake::{Bell, wait_on, wake};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

/// A program may overwrite the futex, so that a wake goes unnoticed: the end of a run waits no longer than this for the thread.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Between two looks at the ring while the loop is at other work.
const PAUSE: Duration = Duration::from_millis(4);

pub struct Waker {
    ring: Arc<AgentRing>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    bell: Bell,
    is_over: AtomicBool,
}

impl Waker {
    /// # Errors
    /// When there is no descriptor or thread for it.
    pub fn start(ring: Arc<AgentRing>) -> io::Result<Self> {
        let shared = Arc::new(Shared { bell: Bell::new()?, is_over: AtomicBool::new(false) });
        let (theirs, read) = (Arc::clone(&shared), Arc::clone(&ring));
        let seen = ring.wakes().load(Ordering::Acquire);
        let thread = Builder::new().name("wake".to_owned()).stack_size(256 << 10).spawn(move || pass_on(&read, seen, &theirs))?;
        Ok(Self { ring, shared, thread: Some(thread) })
    }

    #[must_use]
    pub fn bell(&self) -> &Bell {
        &self.shared.bell
    }
}

fn pass_on(ring: &AgentRing, mut seen: u32, shared: &Shared) {
    while !shared.is_over.load(Ordering::Acquire) {
        wait_on(ring.wakes(), seen, LONGEST_WAIT);
        let now = ring.wakes().load(Ordering::Acquire);
        if now != seen {
            shared.bell.ring();
            relieve(ring, shared);
        }
        seen = now;
    }
}

/// A wake comes whenever another half of the ring begins. If a quarter is taken then, the loop is at other work, and until it comes back the ring is
/// looked at again and again; if less is taken, there is room for a quarter more at the next wake.
fn relieve(ring: &AgentRing, shared: &Shared) {
    let mut waits = ring.relieve(monotonic_ns(), ring.capacity() / 4);
    while waits && !shared.is_over.load(Ordering::Acquire) {
        sleep(PAUSE);
        waits = ring.relieve(monotonic_ns(), 1);
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.ring.wakes().fetch_add(1, Ordering::Release);
        wake(self.ring.wakes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::ring::AgentRing;

    /// Check that a wake rings the bell, also one that comes before the thread waits, and that the thread ends with its owner.
    #[test]
    fn a_wake_rings_the_bell() {
        let ring = Arc::new(AgentRing::create(64, 1, false).expect("a ring"));
        let waker = Waker::start(Arc::clone(&ring)).expect("a thread");
        assert!(!waker.bell().take());
        for _ in 0..3 {
            ring.wakes().fetch_add(1, Ordering::Release);
            wake(ring.wakes());
            let rung = (0..1_000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                waker.bell().take()
            });
            assert!(rung);
        }
        drop(waker);
    }

    /// Check that a wake which finds much of the ring taken empties it, that what comes then is taken out without a wake, and that all of it comes out.
    #[test]
    fn a_full_ring_is_emptied_until_the_loop_comes_back() {
        let ring = Arc::new(AgentRing::create(64, 1, false).expect("a ring"));
        let waker = Waker::start(Arc::clone(&ring)).expect("a thread");
        let is_emptied = || {
            (0..5_000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                ring.room() == 64
            })
        };
        ring.publish_frees(0, 20);
        ring.wakes().fetch_add(1, Ordering::Release);
        wake(ring.wakes());
        assert!(is_emptied());
        ring.publish_frees(20, 3);
        assert!(is_emptied());
        let mut count = 0;
        ring.drain(0, |_| count += 1);
        assert_eq!(count, 23);
        drop(waker);
    }
}
