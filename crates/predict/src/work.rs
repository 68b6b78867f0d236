//! Counts the steps of loops whose number must not grow faster than a profile does. Only unit tests count.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static DONE: Cell<u64> = const { Cell::new(0) };
}

/// Notes one step.
#[inline]
pub fn step() {
    #[cfg(test)]
    DONE.set(DONE.get() + 1);
}

/// The steps that `work` does on this thread.
#[cfg(test)]
pub fn steps(work: impl FnOnce()) -> u64 {
    let before = DONE.get();
    work();
    DONE.get() - before
}
