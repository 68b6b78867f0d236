//! Simulated programs whose threads fill memory, with looks at their pages.

use super::*;
use firsttouch_model::rows::{AccessKind, Appeared, FaultCount, Id, Object, ObjectKind, SampleState, SampledAccess, Thread, TimerSample};

const PAGE: u64 = 4096;
const BASE: u64 = 0x7f00_0000_0000;
const US: u64 = 1000;

/// What a thread touches: pages in this order, from a time on, each in so many ns.
struct Work {
    thread: Id,
    pages: Vec<u64>,
    begin_ns: u64,
    ns_a_page: u64,
}

impl Work {
    fn new(thread: Id, pages: impl Iterator<Item = u64>, begin_us: u64, ns_a_page: u64) -> Self {
        Self { thread, pages: pages.collect(), begin_ns: begin_us * US, ns_a_page }
    }

    fn time_of(&self, index: usize) -> u64 {
        self.begin_ns + (index as u64 + 1) * self.ns_a_page
    }

    /// Pages that it has touched by then.
    fn done(&self, time: u64) -> usize {
        usize::try_from(time.saturating_sub(self.begin_ns) / self.ns_a_page).unwrap().min(self.pages.len())
    }
}

fn thread(id: Id) -> Thread {
    Thread { id, process: 0, tid: i32::try_from(id).unwrap() + 100, born_ns: 0, ..Thread::default() }
}

struct Program {
    work: Vec<Work>,
    /// Faults on other memory: of which thread, when and how many.
    elsewhere: Vec<(Id, u64, u64)>,
    /// Looks, us. Each takes 50 us, and the readings of counts before and after it as long.
    looks: Vec<u64>,
    /// Samples: of which thread, us.
    ticks: Vec<(Id, u64)>,
    /// Times at which a thread is in a system call.
    calls: Vec<(Id, std::ops::Range<u64>)>,
    page_bytes: u64,
}

impl Program {
    fn new(work: Vec<Work>, looks: impl Iterator<Item = u64>) -> Self {
        Self { work, elsewhere: Vec::new(), looks: looks.collect(), ticks: Vec::new(), calls: Vec::new(), page_bytes: PAGE }
    }

    fn faults(&self, thread: Id, time: u64) -> u64 {
        let own: usize = self.work.iter().filter(|work| work.thread == thread).map(|work| work.done(time)).sum();
        let others: u64 = self.elsewhere.iter().filter(|one| one.0 == thread && one.1 * US <= time).map(|one| one.2).sum();
        own as u64 + others
    }

    fn present(&self, time: u64) -> Vec<u64> {
        let mut pages: Vec<u64> = self.work.iter().flat_map(|work| work.pages[..work.done(time)].iter().copied()).collect();
        pages.sort_unstable();
        pages
    }

    /// The profile of the program, as firsttouch would record it.
    fn profile(&self) -> Profile {
        let mut profile = Profile::default();
        let mut threads: Vec<Id> = self.work.iter().map(|work| work.thread).chain(self.elsewhere.iter().map(|one| one.0)).collect();
        threads.sort_unstable();
        threads.dedup();
        profile.threads = threads.iter().map(|&id| thread(id)).collect();
        profile.objects.push(Object {
            id: 1,
            process: 0,
            kind: ObjectKind::Heap,
            call: None,
            name: None,
            address: BASE,
            bytes: 1 << 32,
            born_ns: 0,
            died_ns: None,
            site: None,
            thread: None,
        });
        let (mut seen, mut from_ns) = (Vec::new(), 0);
        for look in &self.looks {
            let now = look * US;
            let count = |thread: Id, time_ns: u64, faults: u64| FaultCount { process: 0, thread: Some(thread), time_ns, faults };
            let rest = |time_ns: u64| FaultCount { process: 0, thread: None, time_ns, faults: 0 };
            // Each thread is read at a time of its own.
            let read = |thread: Id, begin: u64| begin + 10 * US * thread.unsigned_abs();
            profile.fault_counts.extend(threads.iter().map(|&id| count(id, now, self.faults(id, read(id, now - 50 * US)))));
            profile.fault_counts.push(rest(now));
            let present = self.present(now + 25 * US);
            let end = now + 50 * US;
            profile.fault_counts.extend(threads.iter().map(|&id| count(id, end, self.faults(id, read(id, end)))));
            profile.fault_counts.push(rest(end));
            let new: Vec<u64> = present.iter().copied().filter(|page| !seen.contains(page)).collect();
            for run in new.chunk_by(|a, b| a + 1 == *b) {
                let (address, bytes) = (BASE + run[0] * self.page_bytes, run.len() as u64 * self.page_bytes);
                profile.appeared.push(Appeared { process: 0, from_ns, to_ns: end, address, bytes, page_bytes: self.page_bytes });
            }
            (seen, from_ns) = (present, now);
        }
        for &(thread, us) in &self.ticks {
            self.tick(thread, us * US, &mut profile);
        }
        profile
    }

    fn tick(&self, thread: Id, time_ns: u64, profile: &mut Profile) {
        let call = self.calls.iter().find(|(of, times)| *of == thread && times.contains(&(time_ns / US)));
        let id = profile.samples.len() as Id + 1;
        let (state, site) = if call.is_some() { (SampleState::InKernel, Some(9)) } else { (SampleState::Computing, Some(5)) };
        // A tick in a system call is delivered at its end.
        let time_ns = call.map_or(time_ns, |(_, times)| times.end * US);
        let sample = TimerSample {
            id,
            thread,
            time_ns,
            cpu: 0,
            cpu_ns: time_ns,
            weight: 1.0,
            site,
            state,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        };
        profile.samples.push(sample);
        // As the agent reads it in the handler.
        profile.fault_counts.push(FaultCount { process: 0, thread: Some(thread), time_ns, faults: self.faults(thread, time_ns) });
        let working = |work: &&Work| work.thread == thread && work.begin_ns <= time_ns && work.done(time_ns) < work.pages.len();
        if let Some(work) = self.work.iter().find(working).filter(|_| state == SampleState::Computing) {
            let page = work.pages[work.done(time_ns).saturating_sub(1)];
            let is_up = work.pages.len() < 2 || work.pages[0] < work.pages[1];
            profile.sampled_accesses.push(SampledAccess {
                sample: id,
                object: 1,
                address: BASE + page * self.page_bytes + 8,
                bytes: 8,
                words: 1.0,
                kind: AccessKind::Write,
                site: Some(5),
                stride: Some(if is_up { 8 } else { -8 }),
            });
        }
    }

    /// (pages whose thread is found, pages whose thread is wrong, all pages).
    fn outcome(&self) -> (usize, usize, usize) {
        let profile = self.profile();
        let accesses = by_sample(&profile);
        let mut all = appearances(&profile, &accesses);
        let owners = Owners::new(&profile);
        all.iter_mut().for_each(|one| solve(one, &owners));
        let segments: Vec<Segment> = all.iter().flat_map(|one| &one.windows).flat_map(Window::segments).collect();
        let truth: Vec<(u64, Id)> = self.work.iter().flat_map(|work| work.pages.iter().map(|page| (*page, work.thread))).collect();
        let found = |page: u64| {
            let address = BASE + page * self.page_bytes;
            segments.iter().find(|segment| (segment.start..segment.end).contains(&address)).and_then(|segment| segment.thread)
        };
        let known: Vec<(Id, Id)> = truth.iter().filter_map(|&(page, thread)| Some((found(page)?, thread))).collect();
        (known.len(), known.iter().filter(|(found, thread)| found != thread).count(), truth.len())
    }
}

#[track_caller]
fn assert_found(program: &Program, least: f64) {
    let (known, wrong, all) = program.outcome();
    assert!(known as f64 >= least * all as f64 && wrong as f64 <= 0.01 * all as f64, "{known} of {all} known, {wrong} wrong");
}

/// Blocks of 2,048 pages, as a static schedule divides them: thread, when it begins (us), and the time of a page (ns).
fn blocks(threads: &[(Id, u64, u64)]) -> Vec<Work> {
    let work = |(i, &(thread, begin, ns)): (u64, &(Id, u64, u64))| Work::new(thread, i * 2048..(i + 1) * 2048, begin, ns);
    (0..).zip(threads).map(work).collect()
}

/// Check that the only thread with faults touched everything, also in many small objects and without a sample.
#[test]
fn one_thread_touches_everything() {
    let pages = (0..3000).filter(|page| page % 33 != 0);
    let mut program = Program::new(vec![Work::new(0, pages, 300, 1000)], (1..8).map(|ms| ms * 1000));
    program.elsewhere = vec![(1, 500, 3), (2, 700, 4)];
    assert_found(&program, 1.0);
}

/// Check that threads which run in turn on few CPUs are distinguished by their counts alone, and that each has its own block.
#[test]
fn threads_that_take_turns() {
    let program = Program::new(blocks(&[(0, 100, 900), (1, 150, 1100), (2, 2_300, 1000), (3, 2_700, 1200)]), (1..10).map(|ms| ms * 700));
    assert_found(&program, 0.9);
}

/// Check that samples name threads that run all at the same speed, and the last one is known without a sample.
#[test]
fn threads_in_step_need_samples() {
    let in_step = || Program::new(blocks(&[(0, 100, 1000), (1, 100, 1000), (2, 100, 1000), (3, 100, 1000)]), (1..8).map(|ms| ms * 500));
    let (known, wrong, _) = in_step().outcome();
    assert_eq!((known, wrong), (0, 0), "nothing tells which thread made which block");
    let mut program = in_step();
    program.ticks = vec![(0, 900), (1, 1300), (3, 2000)];
    assert_found(&program, 0.95);
    program.ticks = vec![(0, 900), (3, 2000)];
    let (known, wrong, all) = program.outcome();
    assert!(wrong == 0 && known * 2 >= all, "two blocks of four are known at least: {known} of {all}, {wrong} wrong");
}

/// Check that one late look at all of it suffices if the counts differ, and that a row which two threads made is divided by their counts.
#[test]
fn one_row_of_two_threads() {
    // Thread 3 had finished its block, and thread 1 was in the middle of the next one.
    let mut work = vec![Work::new(0, 0..2048, 100, 1800), Work::new(3, 2048..4096, 100, 600), Work::new(1, 4096..6144, 1000, 1700)];
    work.push(Work::new(2, 6144..8192, 100, 1500));
    let mut program = Program::new(work, [2_500, 9_000].into_iter());
    program.elsewhere = vec![(0, 200, 117)];
    program.ticks = vec![(3, 500), (2, 900)];
    assert_found(&program, 0.95);
}

/// Check that threads which go backwards are found too.
#[test]
fn descending_loops() {
    let down = |thread: Id, block: u64, begin: u64, ns: u64| Work::new(thread, (block * 2048..(block + 1) * 2048).rev(), begin, ns);
    let mut program = Program::new(vec![down(0, 0, 100, 1000), down(1, 1, 100, 1000)], (1..8).map(|ms| ms * 500));
    program.ticks = vec![(0, 600)];
    assert_found(&program, 0.95);
}

/// Check that pages dealt out in turn, which look like one row, are not given to one thread.
#[test]
fn interleaved_pages_stay_unknown() {
    let cyclic = |thread: u64| Work::new(thread as Id, (0..8192).filter(move |page| page / 8 % 4 == thread), 100, 1000);
    let mut program = Program::new((0..4).map(cyclic).collect(), (1..8).map(|ms| ms * 500));
    program.ticks = vec![(0, 300), (1, 500), (2, 700), (3, 1200), (0, 1900)];
    let (known, wrong, all) = program.outcome();
    assert!(wrong * 50 <= all, "{known} of {all} known, {wrong} wrong");
}

/// Check that memory is touched after its allocation, also if other memory that was looked at since earlier appeared in the same window.
#[test]
fn objects_are_touched_after_their_birth() {
    let mut profile = Program::new(vec![Work::new(0, 0..1000, 2_000, 1000)], [5_000].into_iter()).profile();
    profile.objects[0].born_ns = 1_900 * US;
    profile.appeared[0].from_ns = 1_900 * US;
    let older = Appeared { from_ns: 0, address: BASE - 100 * PAGE, bytes: 2 * PAGE, ..profile.appeared[0].clone() };
    profile.appeared.push(older);
    let touches = touches_of_appeared(&profile, &|_| true);
    let own: Vec<&FirstTouch> = touches.iter().filter(|touch| touch.address >= BASE).collect();
    assert!(!own.is_empty() && own.iter().all(|touch| touch.time_ns >= 1_900 * US), "{:?}", own.first());
}

/// Check that memory which was there before (recycled) is not taken for touched: nobody had so many faults.
#[test]
fn old_pages_have_no_toucher() {
    let program = Program::new(vec![Work::new(0, 0..1000, 100, 1000)], (1..4).map(|ms| ms * 500));
    let mut profile = program.profile();
    profile.fault_counts.iter_mut().for_each(|count| count.faults /= 10);
    assert_eq!(touches_of_appeared(&profile, &|_| true), []);
    profile.fault_counts.clear();
    assert_eq!(touches_of_appeared(&profile, &|_| true), []);
}

/// Check that a thread which was in a system call while pages appeared had them touched by the kernel, and that a thread which was not had not.
#[test]
fn the_kernel_fills_memory() {
    let mut program = Program::new(vec![Work::new(0, 0..8000, 1_000, 1000)], (1..12).map(|ms| ms * 1000));
    program.ticks = vec![(0, 500), (0, 4_000), (0, 10_500)];
    program.calls = vec![(0, 900..9_100)];
    let touches = touches_of_appeared(&program.profile(), &|_| true);
    assert!(!touches.is_empty() && touches.iter().all(|touch| touch.by_kernel && touch.site == Some(9)), "{:?}", touches.first());
    program.calls.clear();
    let touches = touches_of_appeared(&program.profile(), &|_| true);
    assert!(!touches.is_empty() && touches.iter().all(|touch| !touch.by_kernel && touch.site == Some(5)), "{:?}", touches.first());
    let pages: f64 = touches.iter().map(|touch| touch.weight).sum();
    assert!((pages - 8000.0).abs() < 1.0, "{pages}");
}

/// Check that a call which ends long after the last page appeared, or which reads nothing, is not taken for what filled the memory: on a loaded
/// machine, the next sample of a thread may come much later.
#[test]
fn a_later_call_filled_nothing() {
    let mut program = Program::new(vec![Work::new(0, 0..8000, 1_000, 1000)], (1..12).map(|ms| ms * 1000));
    program.ticks = vec![(0, 60_000)];
    program.calls = vec![(0, 59_000..61_000)];
    assert_eq!(touches_of_appeared(&program.profile(), &|_| true), [], "whether the kernel filled it is not known");
    let touches = touches_of_appeared(&program.profile(), &|_| false);
    assert!(!touches.is_empty() && touches.iter().all(|touch| !touch.by_kernel && touch.site.is_none()), "{:?}", touches.first());
}

/// Check that a fault on a huge page counts once.
#[test]
fn huge_pages() {
    let mut program = Program::new(vec![Work::new(0, 0..40, 100, 200_000)], (1..10).map(|ms| ms * 1000));
    program.page_bytes = 2 << 20;
    assert_found(&program, 1.0);
    let pages: f64 = touches_of_appeared(&program.profile(), &|_| true).iter().map(|touch| touch.weight).sum();
    assert!((pages - 40.0).abs() < 1e-9, "{pages}");
}

/// Check that random programs of threads that fill blocks, on more or fewer CPUs than threads, are never understood wrong.
#[test]
fn random_programs_are_not_misread() {
    let mut state = 12345u64;
    let mut random = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let (mut known, mut wrong, mut all) = (0, 0, 0);
    for _ in 0..150 {
        let threads = 2 + random(5);
        let cpus = 1 + random(4);
        let each = 600 + random(3000);
        // Threads that find no free CPU begin when another one ends.
        let mut free = vec![100u64; usize::try_from(cpus).unwrap()];
        let mut work = Vec::new();
        for block in 0..threads {
            let cpu = (0..free.len()).min_by_key(|&cpu| free[cpu]).unwrap();
            let (begin, ns) = (free[cpu] + random(60), 900 + random(300));
            free[cpu] = begin + each * ns / 1000;
            work.push(Work::new(block as Id, block * each..(block + 1) * each, begin, ns));
        }
        let end = free.iter().max().unwrap() + 3000;
        let step = 400 + random(4000);
        let mut looks = vec![step];
        while *looks.last().unwrap() < end {
            looks.push(looks.last().unwrap() + step / 2 + random(step));
        }
        let mut program = Program::new(work, looks.into_iter());
        program.elsewhere = (0..threads).map(|thread| (thread as Id, 100, random(30))).collect();
        // A tick of each CPU's clock hits whoever runs.
        for us in (random(4000)..end).step_by(4000) {
            let running: Vec<Id> = program
                .work
                .iter()
                .filter(|work| work.begin_ns <= us * US && us * US < work.time_of(work.pages.len() - 1))
                .map(|work| work.thread)
                .collect();
            program.ticks.extend(running.into_iter().map(|thread| (thread, us)));
        }
        let (k, w, a) = program.outcome();
        (known, wrong, all) = (known + k, wrong + w, all + a);
    }
    assert!(wrong * 200 <= known, "{known} of {all} known, {wrong} wrong");
    assert!(known * 10 >= all * 6, "{known} of {all} known, {wrong} wrong");
}
