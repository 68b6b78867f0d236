//! The processes of a program that was started here. If its recorder is killed, they lose their parent and go on.

use crate::facts::{Processes, tree};
use firsttouch_system::proc::stat::{of_process, start_ticks};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The processes of a program, each with its start.
#[derive(Default)]
pub struct Program {
    processes: BTreeMap<i32, u64>,
}

impl Program {
    /// Notes the descendants of the recorder, as long as there is one, and of the processes that are known.
    pub fn read(&mut self, processes: &Processes, recorder: Option<i32>) {
        let parents = processes.parents();
        let start = |pid: i32| processes.get(pid).map(|known| known.summary.start_ticks);
        let mut found = recorder.map_or_else(BTreeSet::new, |recorder| tree(&parents, recorder));
        for (&pid, &since) in &self.processes {
            if start(pid) == Some(since) {
                found.extend(tree(&parents, pid));
            }
        }
        found.retain(|pid| Some(*pid) != recorder);
        self.processes = found.into_iter().filter_map(|pid| Some((pid, start(pid)?))).collect();
    }

    /// All of them, at the last reading.
    #[must_use]
    pub fn pids(&self) -> BTreeSet<i32> {
        self.processes.keys().copied().collect()
    }

    /// Those that run now.
    #[must_use]
    pub fn running(&self, root: &Path) -> Vec<i32> {
        let runs = |pid: i32, since: u64| {
            start_ticks(root, pid) == Some(since) && of_process(root, pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
        };
        self.processes.iter().filter(|&(&pid, &since)| runs(pid, since)).map(|(&pid, _)| pid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, pid: i32, parent: i32, start: u64) {
        let folder = root.join(format!("proc/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        let stat = format!("{pid} (a) S {parent} 1 1 0 -1 0 0 0 0 0 5 0 0 0 20 0 4 0 {start} 1000 10 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0");
        fs::write(folder.join("stat"), stat).unwrap();
    }

    /// Check that the processes of a program are known after its recorder was killed, and that a later process that reuses one of their numbers is not counted.
    #[test]
    fn programs_outlive_their_recorder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let (mut processes, mut program) = (Processes::new(root), Program::default());
        for (pid, parent) in [(10, 1), (11, 10), (12, 11), (20, 1)] {
            write(root, pid, parent, 7);
        }
        processes.read(root, 1);
        program.read(&processes, Some(10));
        assert_eq!((program.pids(), program.running(root)), (BTreeSet::from([11, 12]), vec![11, 12]));
        fs::remove_dir_all(root.join("proc/10")).unwrap();
        write(root, 11, 1, 7);
        write(root, 13, 12, 9);
        processes.read(root, 2);
        program.read(&processes, None);
        assert_eq!(program.running(root), [11, 12, 13]);
        write(root, 11, 1, 8);
        fs::remove_dir_all(root.join("proc/12")).unwrap();
        assert_eq!(program.running(root), [13]);
    }
}
