//! Which loop of the code a sample is in.
//!
//! Processes that run the same program, such as the ranks of MPI, have its code at different addresses. A loop is known by its place in the file, so
//! that what the samples of all of them show counts for each of them: a rank alone has few pairs of samples, and its rate would be its own error.

use firsttouch_model::rows::{Frame, Id, Profile, TimerSample};
use hashbrown::HashMap;

/// The end of a loop is this near to the sampled instruction, if it is in the same file.
const NEAR_BYTES: u64 = 1 << 20;

/// A loop, by its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loop {
    /// In a file with this number.
    InFile(u32, u64),
    /// In code of no file, of a process or of those that share its memory: forked processes run the same code at the same address.
    InProcess(Id, u64),
}

/// The loops of a profile's samples.
#[derive(Debug)]
pub struct Loops {
    team_of: HashMap<Id, Id>,
    /// By site: the address, the file and the offset of its first instruction.
    in_file: HashMap<Id, (u64, u32, u64)>,
}

impl Loops {
    /// `team_of`: of each thread, the process that it counts to.
    pub fn new(profile: &Profile, team_of: HashMap<Id, Id>) -> Self {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut in_file = HashMap::new();
        for site in profile.samples.iter().filter_map(|sample| sample.site) {
            if in_file.contains_key(&site) {
                continue;
            }
            let Some(Frame { address, module: Some(module), offset: Some(offset), .. }) =
                profile.sites.get(&site).and_then(|site| site.frames.first())
            else {
                continue;
            };
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            in_file.insert(site, (*address, *numbers.entry(module).or_insert(next), *offset));
        }
        Self { team_of, in_file }
    }

    /// The loop that a sample is in.
    pub fn of(&self, sample: &TimerSample) -> Option<Loop> {
        let end = sample.around?.end;
        let near = sample.site.and_then(|site| self.in_file.get(&site)).filter(|(address, ..)| end.abs_diff(*address) <= NEAR_BYTES);
        match near {
            Some((address, file, offset)) => Some(Loop::InFile(*file, offset.wrapping_add(end.wrapping_sub(*address)))),
            None => Some(Loop::InProcess(*self.team_of.get(&sample.thread)?, end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{SampleState, SampledLoop, Site};

    /// Check that two processes with the same program at different addresses are in one loop, and that code of no file is a process's own.
    #[test]
    fn programs_that_run_twice_have_one_loop() {
        let mut profile = Profile::default();
        let mut sample = |thread: Id, address: u64, module: Option<&str>| {
            let id = profile.samples.len() as Id + 1;
            let frame = Frame { address, module: module.map(str::to_owned), offset: module.map(|_| 0x1100), ..Frame::default() };
            profile.sites.insert(id, Site { id, process: thread, frames: vec![frame] });
            let around = Some(SampledLoop { end: address + 16, entry: 0, progress: None, left: None });
            let state = SampleState::Computing;
            let row = TimerSample {
                id,
                thread,
                time_ns: 0,
                cpu: 0,
                cpu_ns: 0,
                weight: 1.0,
                site: Some(id),
                state,
                around,
                unknown: 0,
                elsewhere: 0.0,
            };
            profile.samples.push(row);
        };
        let runs = [(1, 0x5000, Some("/x")), (2, 0x9000, Some("/x")), (2, 0x9000, Some("/y")), (1, 0x100, None), (2, 0x100, None)];
        runs.into_iter().for_each(|(thread, address, module)| sample(thread, address, module));
        let loops = Loops::new(&profile, HashMap::from([(1, 1), (2, 2)]));
        let of: Vec<Option<Loop>> = profile.samples.iter().map(|sample| loops.of(sample)).collect();
        assert_eq!(of[..2], [Some(Loop::InFile(0, 0x1110)); 2]);
        assert_eq!(of[2..], [Some(Loop::InFile(1, 0x1110)), Some(Loop::InProcess(1, 0x110)), Some(Loop::InProcess(2, 0x110))]);
    }
}
