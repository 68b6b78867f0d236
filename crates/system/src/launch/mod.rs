//! Starts programs: as children that wait until observation is ready, as unobserved commands, or by exec in this process.

mod child;
mod commands;
mod descriptors;
mod inherited;
pub mod signals;
mod stack;
mod stand_in;

pub use child::{Ended, LaunchError, Waiting, become_program, environment, find_program, reap};
pub use commands::{Commands, Ran};
pub use descriptors::{can_open, raise_file_limit};
pub use inherited::{is_stdout_closed, outlive_size_limit, restore_cpus};
pub use signals::{end_by, end_with_parent, outlive};
pub use stack::with_enough_stack;
pub use stand_in::{go_behind_stand_in, stand_in_is_gone};

/// The last error of this thread.
fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
