//! Applies a placement to this process, so that the program that it executes inherits the placement.

use crate::{Error, Result};
use firsttouch_placement::Placement;
use firsttouch_system::calls::affinity::bind_to_cpus;
use firsttouch_system::calls::mempolicy::set_policy;
use firsttouch_system::launch::restore_cpus;

/// The placements that the kernel refused. With `--best-effort`, the program runs without them.
#[derive(Debug, Default)]
pub struct Refusals {
    is_best_effort: bool,
    refused: Vec<Error>,
}

impl Refusals {
    #[must_use]
    pub fn new(is_best_effort: bool) -> Self {
        Self { is_best_effort, refused: Vec::new() }
    }

    /// The value; `None` if it was refused and the program may run without it.
    ///
    /// # Errors
    /// When it was refused and `--best-effort` is not set.
    pub fn accept<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.is_best_effort => {
                self.refused.push(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the refusals since the last call.
    pub fn take(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.refused)
    }
}

/// Binds this process to the placement's CPUs and sets its memory policy.
///
/// # Errors
/// When the kernel refuses something and `--best-effort` is not set.
pub fn apply(placement: &Placement, refusals: &mut Refusals) -> Result<()> {
    if let Some(first) = placement.threads.first() {
        // The program starts on the first thread's CPU. Until it creates a second thread, it may run on all CPUs of the placement.
        refusals.accept(bind_to_cpus(&[*first]).map_err(Error::from_system))?;
    }
    if let Some(cpus) = &placement.cpus
        && refusals.accept(bind_to_cpus(cpus).map_err(Error::from_system))?.is_none()
    {
        // The first thread's CPU may have been bound before the refusal.
        restore_cpus();
    }
    if let Some(policy) = &placement.policy {
        refusals.accept(set_policy(policy).map_err(Error::from_system))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a refusal ends a strict run, and becomes a warning with `--best-effort`.
    #[test]
    fn refusals() {
        let refused = || Err::<u32, _>(Error::usage("--membind: there is no node 9"));
        assert_eq!(Refusals::new(false).accept(refused()), Err(Error::usage("--membind: there is no node 9")));
        let mut lenient = Refusals::new(true);
        assert_eq!((lenient.accept(Ok(1)), lenient.accept(refused())), (Ok(Some(1)), Ok(None)));
        assert_eq!(lenient.take(), [Error::usage("--membind: there is no node 9")]);
        assert_eq!(lenient.take(), []);
    }
}
