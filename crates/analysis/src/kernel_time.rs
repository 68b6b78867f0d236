//! Programs that spend most of their CPU time in system calls. The samples show no accesses of what the kernel does for them, and the page cache
//! is no memory of the program's.

use crate::activity::works;
use firsttouch_model::rows::{Profile, SampleState, TimerSample};
use std::collections::BTreeMap;

/// From this part of the CPU time on.
const MUCH: f64 = 0.5;
/// With fewer samples the part is not certain.
const LEAST_SAMPLES: usize = 32;
/// Functions that read from a file, or a socket or pipe.
const READS: [&str; 10] = ["read", "read64", "pread", "pread64", "readv", "preadv", "preadv2", "preadv64", "preadv64v2", "sendfile"];

/// Most of the CPU time went to the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTime {
    /// Of the CPU time of all threads, without the time in which they waited in the kernel.
    pub part: f64,
    /// The function that called the kernel most often.
    pub call: Option<String>,
    /// Whether most of it is reading.
    pub reads: bool,
}

/// `None` if it is not most of the time, or if that is uncertain.
#[must_use]
pub fn kernel_time(profile: &Profile) -> Option<KernelTime> {
    let at_work: Vec<&TimerSample> = profile.samples.iter().filter(|sample| sample.weight > 0.0 && works(profile, sample)).collect();
    let weight_of = |is_counted: &dyn Fn(&TimerSample) -> bool| {
        at_work.iter().filter(|sample| is_counted(sample)).map(|sample| sample.weight).sum::<f64>()
    };
    let all = weight_of(&|_| true);
    let part = weight_of(&|sample| sample.state == SampleState::InKernel) / all;
    if at_work.len() < LEAST_SAMPLES || part <= MUCH {
        return None;
    }
    let mut calls: BTreeMap<&str, f64> = BTreeMap::new();
    for sample in at_work.iter().filter(|sample| sample.state == SampleState::InKernel) {
        calls.entry(call(profile, sample).unwrap_or_default()).and_modify(|sum| *sum += sample.weight).or_insert(sample.weight);
    }
    let reading: f64 = calls.iter().filter(|(name, _)| READS.contains(&plain(name))).map(|(_, weight)| weight).sum();
    let most = calls.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(name, _)| *name);
    let call = most.filter(|name| !name.is_empty()).map(|name| plain(name).to_owned());
    Some(KernelTime { part, call, reads: reading > MUCH * all })
}

/// The function of the C library that called the kernel; `None` if a page fault led there.
fn call<'p>(profile: &'p Profile, sample: &TimerSample) -> Option<&'p str> {
    let frame = profile.sites.get(&sample.site?)?.frames.first()?;
    let file = frame.module.as_deref()?.rsplit('/').next()?;
    let is_library = ["libc.", "libc-", "libpthread", "ld-musl"].iter().any(|name| file.starts_with(name));
    frame.function.as_deref().filter(|_| is_library)
}

/// `__libc_read` is `read`.
fn plain(function: &str) -> &str {
    function.strip_prefix("__libc_").unwrap_or(function).trim_start_matches('_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Note;
    use firsttouch_model::rows::{Frame, Site};

    /// Samples that computed, and that were in the kernel, called by a function of the C library or by the program's code.
    fn profile(computing: usize, (kernel, function, module): (usize, &str, &str)) -> Profile {
        let frame = Frame { function: Some(function.to_owned()), module: Some(module.to_owned()), ..Frame::default() };
        let site = Site { id: 1, process: 1, frames: vec![frame] };
        let sample = |state| TimerSample {
            id: 0,
            thread: 1,
            time_ns: 0,
            cpu: 0,
            cpu_ns: 0,
            weight: 1.0,
            site: Some(1),
            state,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        };
        let states = [vec![SampleState::Computing; computing], vec![SampleState::InKernel; kernel]].concat();
        Profile { sites: [(1, site)].into(), samples: states.into_iter().map(sample).collect(), ..Profile::default() }
    }

    /// Check that most of the time must be the kernel's, that waiting is not work, and which calls read.
    #[test]
    fn time_in_the_kernel() {
        const LIBC: &str = "/usr/lib/libc.so.6";
        let of = |computing, kernel, function, module| {
            kernel_time(&profile(computing, (kernel, function, module))).map(|found| (found.part, found.call, found.reads))
        };
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(of(25, 75, "read", LIBC), Some((0.75, named("read"), true)));
        assert_eq!(of(25, 75, "__libc_pread64", LIBC), Some((0.75, named("pread64"), true)));
        assert_eq!(of(25, 75, "write", LIBC), Some((0.75, named("write"), false)));
        assert_eq!(of(25, 75, "read", "/home/a/program"), Some((0.75, None, false)), "page faults of the program's own function");
        assert_eq!(of(25, 75, "sched_yield", LIBC), None);
        assert_eq!(of(50, 50, "read", LIBC), None);
        assert_eq!(of(0, 31, "read", LIBC), None, "few samples");
    }

    /// Check what the note says: the part, the call, and what may help programs that read; no advice about files for others.
    #[test]
    fn the_note() {
        let note =
            |call: Option<&str>, reads| Note::KernelTime(KernelTime { part: 0.75, call: call.map(str::to_owned), reads }).to_string();
        let reading = note(Some("pread64"), true);
        let said = [
            "spent 75 % of their CPU time in the kernel (most of it called by pread64)",
            "the verdict is about the rest",
            "page cache",
            "drop_caches",
        ];
        assert!(said.iter().all(|text| reading.contains(text)), "{reading}");
        let other = note(None, false);
        assert!(other.contains("in the kernel: its accesses are not seen") && other.contains("What the kernel does there, no plan places"));
        assert!(!other.contains("drop_caches") && !other.contains("called by"), "{other}");
    }
}
