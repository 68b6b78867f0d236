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

/// Checks that four times as much of something takes about four times the steps; twice as many more are allowed for logarithms and fixed costs.
#[cfg(test)]
pub fn assert_linear(what: &str, steps_of: impl Fn(usize) -> u64, size: usize) {
    let (few, many) = (steps_of(size), steps_of(4 * size));
    assert!(few > 0, "{what}: nothing is counted");
    assert!(many <= 6 * few, "{what}: {few} steps for {size}, {many} for {}", 4 * size);
}
