//! Files of the kernel that a test changes. The tests of a guest share its kernel, so each test restores what it changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Changes the value of a file until this is dropped.
pub struct Setting {
    file: PathBuf,
    before: String,
}

impl Setting {
    pub fn set(file: &str, value: &str) -> Self {
        let before = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        // In a list of choices, the word in brackets is the current one: `always [madvise] never`.
        let before = before.split_once('[').and_then(|(_, rest)| rest.split(']').next()).unwrap_or(&before).trim().to_owned();
        Self::write(file, value);
        Self { file: file.into(), before }
    }

    /// Writes a value that need not be restored.
    pub fn write(file: &str, value: &str) {
        fs::write(file, value).unwrap_or_else(|error| panic!("cannot write {value} to {file}: {error}"));
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.file, &self.before) {
            println!("cannot restore {}: {error}", self.file.display());
        }
    }
}

/// The number in a file.
pub fn read_number(file: impl AsRef<Path>) -> u64 {
    fs::read_to_string(&file).unwrap().trim().parse().unwrap()
}

/// A control group with the controller `cpuset` and without processes. Dropping the value removes it.
pub struct Group {
    folder: PathBuf,
}

impl Group {
    pub fn with_cpuset(name: &str, cpus: &str, nodes: &str) -> Self {
        let root = Path::new("/sys/fs/cgroup");
        Setting::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
        let folder = root.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("cpuset.cpus"), cpus).unwrap();
        fs::write(folder.join("cpuset.mems"), nodes).unwrap();
        Self { folder }
    }

    /// A command that runs `program` in the group.
    pub fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.folder).arg(program).args(arguments);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.folder) {
            println!("cannot remove {}: {error}", self.folder.display());
        }
    }
}
