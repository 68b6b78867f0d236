//! Uses of the objects, seen through windows or by timer samples.

use crate::random::Random;
use crate::scenery::{address, code, using};
use crate::{END, PAGE, Pattern, Size, USED_FROM};
use firsttouch_model::rows::{Access, AccessKind, Id, Profile, Progress, SampleState, SampledAccess, SampledLoop, TimerSample, Window};

/// Windows held at the same time.
const TOGETHER: u64 = 4;
/// Samples of a thread in one entry of a loop.
const AN_ENTRY: u64 = 50;

/// One window in eight sees nothing, one sees two threads or the same twice.
pub fn add_windows(profile: &mut Profile, size: &Size) {
    let mut random = Random::new(1);
    let (count, bytes) = (size.third() as u64, size.pages() * PAGE);
    let round_ns = (END - USED_FROM) / count.div_ceil(TOGETHER);
    for index in 0..count {
        let (object, offset) = (random.below(size.objects as u64) as usize, random.below(bytes / 8) * 8);
        let (round, held_ns) = (index / TOGETHER, round_ns * 9 / 10);
        profile.windows.push(Window {
            id: index as Id + 1,
            round,
            object: object as Id + 1,
            address: address(size, object) + offset,
            start_ns: USED_FROM + round * round_ns,
            held_ns,
            round_ns,
            inclusion: TOGETHER as f64 / size.objects as f64,
        });
        for _ in 0..[0, 2, 1, 1, 1, 1, 1, 1][(index % 8) as usize] {
            let thread = Pattern::of(object).user(offset, bytes, size.threads, &mut random);
            let hits = 1 + random.below(4);
            profile.accesses.push(Access {
                window: index as Id + 1,
                thread: thread as Id,
                site: Some(using(size, object)),
                hits,
                estimate: hits as f64,
                watched_ns: held_ns,
                cut: false,
                cpu: Some(thread as u32),
                cpu_ns: Some(held_ns),
            });
        }
    }
}

/// The threads are sampled in turn, and all go from object to object at the same time.
pub fn add_samples(profile: &mut Profile, size: &Size) {
    let mut random = Random::new(2);
    let (count, threads, bytes) = (size.third() as u64, size.threads as u64, size.pages() * PAGE);
    let step = (END - USED_FROM) / count;
    for index in 0..count {
        let (thread, own) = ((index % threads) as usize, index / threads);
        let (entry, within) = (own / AN_ENTRY, own % AN_ENTRY);
        let object = (entry % size.objects as u64) as usize;
        let pattern = Pattern::of(object);
        let offset = pattern.place(thread, within * 1024 / AN_ENTRY, bytes, size.threads, &mut random);
        let (site, is_loop) = (using(size, object), pattern != Pattern::Irregular);
        let progress = Progress { value: within * bytes / threads / AN_ENTRY / 8, step: 1 };
        profile.samples.push(TimerSample {
            id: index as Id + 1,
            thread: thread as Id,
            time_ns: USED_FROM + index * step,
            cpu: thread as u32,
            cpu_ns: (own + 1) * step * threads,
            weight: 1.0,
            site: Some(site),
            state: SampleState::Computing,
            around: is_loop.then(|| SampledLoop {
                end: code(site),
                entry: entry * threads + thread as u64,
                progress: Some(progress),
                left: None,
            }),
            unknown: 0,
            elsewhere: 0.0,
        });
        profile.sampled_accesses.push(SampledAccess {
            sample: index as Id + 1,
            object: object as Id + 1,
            address: address(size, object) + offset,
            bytes: 8,
            words: 1.0,
            kind: if pattern == Pattern::Turns { AccessKind::Update } else { AccessKind::Read },
            site: Some(site),
            stride: is_loop.then_some(8),
        });
    }
}
