//! The environment variables that say when watchpoints are set. They are read before the program starts, so that a typing error costs no run.

use anyhow::{Result, bail};
use firsttouch_system::debug_exceptions::Policy;
use std::ffi::{OsStr, OsString};

const POLICY: &str = "FIRSTTOUCH_WATCHPOINTS";
const REST: &str = "FIRSTTOUCH_WATCHPOINTS_REST";

/// Which threads may get watchpoints: the user's choice, or what this machine needs.
pub fn policy() -> Result<Policy> {
    Ok(chosen_policy(value(POLICY).as_deref())?.unwrap_or_else(Policy::of_machine))
}

/// Watchpoints rest while samples of registers show the accesses, unless the user wants all that watchpoints can show.
pub fn may_rest() -> Result<bool> {
    chosen_rest(value(REST).as_deref())
}

/// An empty variable counts as unset.
fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn chosen_policy(value: Option<&OsStr>) -> Result<Option<Policy>> {
    let Some(value) = value else { return Ok(None) };
    match value.to_str() {
        Some("always") => Ok(Some(Policy::Always)),
        Some("guarded") => Ok(Some(Policy::Guarded)),
        Some("never") => Ok(Some(Policy::Never)),
        _ => bail!("cannot understand {POLICY}={}: set it to always, guarded or never, or unset it", value.display()),
    }
}

fn chosen_rest(value: Option<&OsStr>) -> Result<bool> {
    match value {
        None => Ok(true),
        Some(value) if value == "never" => Ok(false),
        Some(value) => bail!("cannot understand {REST}={}: set it to never, or unset it", value.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the words of both variables, and that other words are errors.
    #[test]
    fn words() {
        let policy = |word: &str| chosen_policy(Some(OsStr::new(word))).ok().flatten();
        assert_eq!(["always", "guarded", "never"].map(policy), [Policy::Always, Policy::Guarded, Policy::Never].map(Some));
        assert_eq!((chosen_policy(None).unwrap(), chosen_rest(None).unwrap()), (None, true));
        assert!(!chosen_rest(Some(OsStr::new("never"))).unwrap());
        for wrong in ["Always", "nevr", " never", "1"] {
            assert!(chosen_policy(Some(OsStr::new(wrong))).is_err() && chosen_rest(Some(OsStr::new(wrong))).is_err(), "{wrong}");
        }
    }
}
