//! Counts the steps of loops whose number must not grow faster than a profile does.

/// Makes the module `work` of a crate: `work::step()` notes one step, in unit tests of that crate only.
#[macro_export]
macro_rules! work_counter {
    () => {
        mod work {
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

            /// What grows linearly, with twice as many more for logarithms and fixed costs.
            #[cfg(test)]
            #[allow(dead_code, reason = "not all crates have such work")]
            pub const LINEAR: u64 = 6;

            /// Checks that four times as much of something takes at most `times` as many steps.
            #[cfg(test)]
            pub fn assert_growth(what: &str, times: u64, steps_of: impl Fn(usize) -> u64, size: usize) {
                let (few, many) = (steps_of(size), steps_of(4 * size));
                assert!(few > 0, "{what}: nothing is counted");
                assert!(many <= times * few, "{what}: {few} steps for {size}, {many} for {}", 4 * size);
            }
        }
    };
}
