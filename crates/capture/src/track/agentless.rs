//! Processes without the agent in a run that has it: which one, and why.

use super::processes::LiveProcess;
use super::scope::Scope;
use firsttouch_system::proc::status::Status;
use std::fs;
use std::path::{Path, PathBuf};

/// A process whose objects come from its mappings, though others have the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agentless {
    pub pid: i32,
    /// It is the process that was started.
    pub is_root: bool,
    /// What the user should know; a complete sentence.
    pub sentence: String,
}

impl Agentless {
    pub(super) fn new(scope: &Scope, process: &LiveProcess) -> Self {
        let pid = process.pid;
        let name =
            process.exe.as_deref().map(Path::new).and_then(Path::file_name).map_or_else(|| "?".into(), |name| name.to_string_lossy());
        let sentence = format!("process {pid} ({name}) {}: its objects are named by mapping", cause(&scope.root, pid));
        Self { pid, is_root: pid == scope.root_pid, sentence }
    }
}

fn cause(root: &Path, pid: i32) -> &'static str {
    let user = |status: Option<Status>| status.and_then(|status| status.effective_user());
    let own_status = Status::parse(fs::read_to_string(root.join("proc/self/status")).unwrap_or_default());
    let namespace = |process: &str, kind: &str| fs::read_link(root.join(format!("proc/{process}/ns/{kind}"))).ok();
    let differs = |kind: &str| -> bool {
        let (own, theirs): (Option<PathBuf>, Option<PathBuf>) = (namespace("self", kind), namespace(&pid.to_string(), kind));
        own.zip(theirs).is_some_and(|(own, theirs)| own != theirs)
    };
    let (own, theirs) = (user(Some(own_status)), user(Status::of_process(root, pid)));
    match () {
        () if differs("user") => "is in another user namespace, where the agent cannot open its ring",
        () if own.zip(theirs).is_some_and(|(own, theirs)| own != theirs) => {
            "runs as another user (su, runuser, setpriv, a setuid program), so the agent cannot open its ring"
        }
        () if differs("pid") => "is in another PID namespace (unshare -p, a container), so the agent's records cannot be assigned to it",
        () if differs("mnt") => "is in another mount namespace and did not load the agent",
        () => "did not load the agent (statically linked, or started with another environment)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Check that each cause is told from the others: the user namespace also maps users, so it comes first.
    #[test]
    fn causes() {
        for (user, namespaces, expected) in [
            (0, ["user:1", "pid:1", "mnt:1"], "did not load"),
            (7, ["user:1", "pid:1", "mnt:1"], "another user ("),
            (7, ["user:2", "pid:1", "mnt:1"], "another user namespace"),
            (0, ["user:1", "pid:2", "mnt:2"], "another PID namespace"),
            (0, ["user:1", "pid:1", "mnt:2"], "another mount namespace"),
        ] {
            let root = tempfile::tempdir().expect("a temporary directory");
            for (process, user, own) in [("self", 0, ["user:1", "pid:1", "mnt:1"]), ("20", user, namespaces)] {
                let folder = root.path().join("proc").join(process);
                fs::create_dir_all(folder.join("ns")).expect("a folder");
                fs::write(folder.join("status"), format!("Uid:\t{user}\t{user}\t{user}\t{user}\n")).expect("a file");
                for one in own {
                    symlink(one, folder.join("ns").join(&one[..one.len() - 2])).expect("a link");
                }
            }
            let said = cause(root.path(), 20);
            assert!(said.contains(expected), "{said}");
        }
    }
}
