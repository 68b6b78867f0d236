// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Paths of the repository, of cargo's target directory, and of tools.

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn workspace_root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("tests/e2e lies two levels below the root").to_path_buf()
}

/// Cargo's target directory: `CARGO_TARGET_DIR` or `target` in the root.
pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => workspace_root().join(directory),
        None => workspace_root().join("target"),
    }
}

/// A tool on `PATH`.
pub fn find_tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|candidate| candidate.is_file())
}
