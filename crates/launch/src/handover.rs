//! Passes the plan's table to the preloaded library, as a file in memory that all processes of the run map. The library removes the file
//! when the program ends. If the program is killed, the next run removes it.

use crate::{Error, Result};
use firsttouch_system::leftovers::remove_old_plans;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const NAME: &str = "firsttouch-plan-";

/// Writes the table and returns its path.
pub fn write(bytes: &[u8]) -> Result<String> {
    let mut reasons = Vec::new();
    for folder in [PathBuf::from("/dev/shm"), std::env::temp_dir()] {
        remove_old_plans(&folder);
        let path = folder.join(format!("{NAME}{}", std::process::id()));
        match write_new(&path, bytes) {
            Ok(()) => {
                let path = path.into_os_string().into_string();
                return path.map_err(|path| Error::system(format!("cannot pass the plan to the program: {} is not text", path.display())));
            }
            Err(error) => reasons.push(format!("{}: {error}", path.display())),
        }
    }
    Err(Error::system(format!("cannot pass the plan to the program: {}", reasons.join("; "))))
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}
