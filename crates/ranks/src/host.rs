//! This process and its host, as the other ranks of a job see them, and the key of a job that its launcher gives no name.

use firsttouch_model::rows::RankPlace;
use firsttouch_system::proc::stat::{of_process, parent, start_ticks};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// More ancestors than between a launcher and its rank.
const ANCESTORS: usize = 64;
/// What marks the rank in the environment of the processes between the launcher and it, of launchers without a name for the job.
const RANK_VARIABLES: [&str; 3] = ["MV2_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];

/// A process, so that others on its host can tell whether it lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The host's name.
    pub host: String,
    /// What the numbers of processes belong to: the boot of the host's kernel, and the namespace.
    pub numbers: String,
    pub pid: i32,
    /// When it started, clock ticks since boot.
    pub start: u64,
}

impl Process {
    /// This process.
    #[must_use]
    pub fn this(root: &Path) -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        Self { host: host_name(root), numbers: numbers(root), pid, start: start_ticks(root, pid).unwrap_or(0) }
    }

    /// Whether the process has ended; `None` if that cannot be told from here.
    #[must_use]
    pub fn has_ended(&self, root: &Path, from: &Self) -> Option<bool> {
        let is_gone = || start_ticks(root, self.pid) != Some(self.start);
        // Of a process that waits to be reaped, the number and the start are still known.
        let is_dead = || of_process(root, self.pid).is_none_or(|stat| matches!(stat.state, 'Z' | 'X'));
        (self.numbers == from.numbers).then(|| is_gone() || is_dead())
    }
}

/// The name of this machine.
#[must_use]
pub fn host_name(root: &Path) -> String {
    let name = line(root, "proc/sys/kernel/hostname");
    if name.is_empty() { "localhost".to_owned() } else { name }
}

fn numbers(root: &Path) -> String {
    let namespace = std::fs::read_link(root.join("proc/self/ns/pid")).map(|link| link.display().to_string()).unwrap_or_default();
    format!("{} {namespace}", line(root, "proc/sys/kernel/random/boot_id"))
}

fn line(root: &Path, file: &str) -> String {
    std::fs::read_to_string(root.join(file)).unwrap_or_default().trim().to_owned()
}

/// The key of a job: the same text for all its ranks, and another one for another job. Without a name from the launcher, it is that of the
/// launcher's process on this host, so that each host has a key of its own; except of MPICH's, whose processes all know the first one.
#[must_use]
pub fn key(root: &Path, place: &RankPlace, this: &Process) -> String {
    if let Some(job) = &place.job {
        return format!("{} {job}", place.launcher);
    }
    let launcher = launcher(root, this.pid);
    match control_port(root, launcher) {
        Some(port) => format!("{} {port}", place.launcher),
        None => format!("{} {} {} {launcher} {}", place.launcher, this.host, this.numbers, start_ticks(root, launcher).unwrap_or(0)),
    }
}

/// The next ancestor without the rank's variables: between it and the rank may be shells. One that cannot be looked into is taken.
fn launcher(root: &Path, pid: i32) -> i32 {
    let environment = |pid: i32| std::fs::read(root.join(format!("proc/{pid}/environ"))).unwrap_or_default();
    let mark = |environment: &[u8]| {
        let entries: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        let of = |name: &str| entries.iter().find(|entry| entry.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"=")));
        RANK_VARIABLES.iter().find_map(|name| of(name)).map(|entry| entry.to_vec())
    };
    let own = mark(&environment(pid));
    let mut last = parent(root, pid).unwrap_or(pid);
    for _ in 0..ANCESTORS {
        if own.is_none() || mark(&environment(last)) != own {
            break;
        }
        match parent(root, last).filter(|next| *next > 1) {
            Some(next) => last = next,
            None => break,
        }
    }
    last
}

/// Where the first process of MPICH's launcher listens: an argument of its process on every host.
fn control_port(root: &Path, launcher: i32) -> Option<String> {
    let words = std::fs::read(root.join(format!("proc/{launcher}/cmdline"))).ok()?;
    let mut words = words.split(|byte| *byte == 0);
    words.find(|word| *word == b"--control-port")?;
    words.next().map(|port| String::from_utf8_lossy(port).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Recorded(tempfile::TempDir);

    impl Recorded {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn process(self, pid: i32, parent: i32, start: u64, environment: &str, command: &str) -> Self {
            let folder = self.0.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&folder).unwrap();
            let zeros = ["0"; 17].join(" ");
            fs::write(folder.join("stat"), format!("{pid} (a) S {parent} {zeros} {start} 0")).unwrap();
            fs::write(folder.join("environ"), environment.replace(' ', "\0")).unwrap();
            fs::write(folder.join("cmdline"), command.replace(' ', "\0")).unwrap();
            self
        }

        fn key(&self, place: &RankPlace, pid: i32) -> String {
            key(self.0.path(), place, &Process { host: "h".to_owned(), numbers: "b".to_owned(), pid, start: 0 })
        }
    }

    /// Check that ranks of one launcher have one key, also behind shells, and that MPICH's key is that of all hosts.
    #[test]
    fn a_launcher_is_a_key() {
        let rank = |number: u32| format!("A=1 PMI_RANK={number} B=2");
        let recorded = Recorded::new()
            .process(10, 1, 500, "A=1", "mpispawn")
            .process(11, 10, 600, &rank(0), "sh -c x")
            .process(12, 11, 601, &rank(0), "firsttouch")
            .process(13, 10, 602, &rank(1), "firsttouch")
            .process(20, 1, 700, "A=1", "hydra_pmi_proxy --control-port first:34567 --rmk user")
            .process(21, 20, 701, &rank(0), "firsttouch");
        let place = RankPlace { size: 2, launcher: "PMI".to_owned(), ..RankPlace::default() };
        assert_eq!(recorded.key(&place, 12), "PMI h b 10 500");
        assert_eq!(recorded.key(&place, 13), "PMI h b 10 500");
        assert_eq!(recorded.key(&place, 21), "PMI first:34567");
        let named = RankPlace { job: Some("812.4".to_owned()), launcher: "Slurm".to_owned(), ..place };
        assert_eq!(recorded.key(&named, 12), "Slurm 812.4");
    }

    /// Check that a process that ended is told from one that lives, from one with its number, and from one elsewhere.
    #[test]
    fn processes_end() {
        let root = Path::new("/");
        let this = Process::this(root);
        assert!(this.pid > 0 && this.start > 0 && !this.host.is_empty());
        assert_eq!(this.has_ended(root, &this), Some(false));
        assert_eq!(Process { start: this.start + 1, ..this.clone() }.has_ended(root, &this), Some(true));
        assert_eq!(Process { numbers: "another boot".to_owned(), ..this.clone() }.has_ended(root, &this), None);
    }
}
