//! The environment variables that affect where threads run and which library allocates.

use std::collections::BTreeMap;

/// Whether a variable is of interest: OpenMP's own and its runtimes' spellings, and the loader's.
#[must_use]
pub fn matters(name: &str) -> bool {
    ["OMP_", "GOMP_", "KMP_"].iter().any(|prefix| name.starts_with(prefix)) || ["LD_PRELOAD", "LD_LIBRARY_PATH"].contains(&name)
}

pub fn of_this_process() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let name = name.into_string().ok().filter(|name| matters(name))?;
        Some((name, value.to_string_lossy().into_owned()))
    };
    std::env::vars_os().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::matters;

    /// Check that other variables are not read: they may hold secrets.
    #[test]
    fn other_variables_are_left_alone() {
        for name in ["OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "LD_PRELOAD", "LD_LIBRARY_PATH"] {
            assert!(matters(name), "{name}");
        }
        for name in ["", "HOME", "PATH", "MY_OMP_KEY", "LD_DEBUG", "COMP_WORDS"] {
            assert!(!matters(name), "{name}");
        }
    }
}
