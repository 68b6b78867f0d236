//! From a page fault to its row: who touched which page first, from which call stack.

use crate::random::Random;
use crate::timeline::Fault;
use crate::track::Tracker;
use firsttouch_model::rows::FirstTouch;
use firsttouch_system::calls::pages::nodes_of;
use std::collections::BTreeMap;

pub struct Faults {
    pub samples: u64,
    /// Rows whose page's node is still to be queried, with their pid, in the order of their ids.
    unplaced: Vec<(i32, FirstTouch)>,
    random: Random,
}

impl Faults {
    #[must_use]
    pub fn new(random: Random) -> Self {
        Self { samples: 0, unplaced: Vec::new(), random }
    }

    /// Takes a fault of a process that is tracked. On a machine with one node its row is written at once, else by [`Faults::place`].
    pub fn take(&mut self, fault: &Fault, tracker: &mut Tracker) {
        let sample = &*fault.sample;
        let thread = tracker.thread(sample.pid, sample.tid, None, sample.time);
        let Some(process) = tracker.processes.live.get_mut(&sample.pid) else {
            tracker.sink.lose("touch", "faults of processes that had ended", 1);
            return;
        };
        let stack = process.unwinder.stack(sample);
        // For a fault in the kernel on the thread's behalf, the user part of the stack starts after the system call.
        let site = tracker.sites.intern(process, &stack, sample.in_kernel, &mut tracker.sink);
        let weight = fault.weight as f64;
        process.page_sizes.learn(sample.address, sample.page_bytes);
        if !tracker.scope.is_hint(sample.page_bytes) {
            process.touched.insert(sample.address, thread, sample.time, &mut self.random);
        }
        self.samples += 1;
        tracker.activity.faults += weight;
        if let Some(state) = tracker.threads.live.get_mut(&sample.tid).filter(|state| state.pid == sample.pid) {
            if !sample.in_kernel {
                state.user_faults += weight;
            }
            state.cpus.entry(sample.cpu).or_default().samples += 1;
        }
        let row = FirstTouch {
            id: i64::try_from(self.samples).unwrap_or(i64::MAX),
            process: process.id,
            time_ns: sample.time,
            thread,
            cpu: sample.cpu,
            address: sample.address,
            weight,
            by_kernel: sample.in_kernel,
            site: Some(site),
            mapped_bytes: sample.page_bytes,
            node: None,
        };
        if tracker.scope.has_nodes() {
            self.unplaced.push((sample.pid, row));
        } else {
            tracker.sink.write(|w| w.first_touch(row));
        }
    }

    /// Queries where the pages of the latest faults are, and writes their rows. On a machine with several nodes the answer shows
    /// whether a page was placed at all (a read gets the zero page), and whether it is where its toucher ran.
    pub fn place(&mut self, tracker: &mut Tracker) {
        let mut by_process: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for (index, (pid, _)) in self.unplaced.iter().enumerate() {
            by_process.entry(*pid).or_default().push(index);
        }
        for (pid, indices) in by_process {
            let addresses: Vec<u64> = indices.iter().map(|&index| self.unplaced[index].1.address).collect();
            for (index, node) in indices.into_iter().zip(nodes_of(pid, &addresses).unwrap_or_default()) {
                self.unplaced[index].1.node = Some(node);
            }
        }
        for (_, row) in self.unplaced.drain(..) {
            tracker.sink.write(|w| w.first_touch(row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::records::Sample;
    use crate::sink::Sink;
    use crate::track::scope::Scope;
    use firsttouch_profile::{Writer, open};
    use std::hint::black_box;
    use std::path::PathBuf;

    /// Check that on a machine with several nodes rows are written in the order of the faults, each with the node of its page, also
    /// when the faults of two processes alternate.
    #[test]
    fn rows_are_placed_and_keep_their_order() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a.ftp");
        let own = std::process::id().cast_signed();
        let mut scope = Scope::of_test(PathBuf::from("/"), own);
        scope.follow = true;
        scope.cpu_nodes = (0..2).map(|cpu| (cpu, cpu)).collect();
        let mut tracker = Tracker::new(scope, Sink::new(Writer::create(&path).expect("a profile")));
        let mut faults = Faults::new(Random::new(1));
        let memory = black_box(vec![1u8; 64 << 10]);
        // No process has this number, so its pages cannot be queried.
        let nobody = i32::MAX;
        for number in 0..20u64 {
            let pid = if number % 2 == 0 { own } else { nobody };
            let address = memory.as_ptr() as u64 + number * 100;
            let sample = Sample { pid, tid: pid, time: number, address, ..Sample::default() };
            faults.take(&Fault { sample: Box::new(sample), weight: 3 }, &mut tracker);
        }
        faults.place(&mut tracker);
        assert_eq!((faults.samples, faults.unplaced.len(), tracker.activity.faults), (20, 0, 60.0));
        tracker.sink.finish();
        let rows = open(&path).expect("the profile").first_touches;
        let order: Vec<(i64, u64)> = rows.iter().map(|row| (row.id, row.time_ns)).collect();
        assert_eq!(order, (0..20i64).map(|number| (number + 1, number.unsigned_abs())).collect::<Vec<_>>());
        for (number, row) in rows.iter().enumerate() {
            // A container may forbid the query.
            assert!(number % 2 == 0 || row.node.is_none(), "{row:?}");
            assert!(row.node.is_none_or(|node| node >= 0), "{row:?}");
        }
    }
}
