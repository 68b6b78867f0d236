use super::*;
use crate::agent::records::PythonFrame;

fn frame(file: &str, function: &str, line: Option<u32>) -> PythonFrame {
    PythonFrame { file: file.to_owned(), function: function.to_owned(), line, instruction: None, column: None }
}

/// Check which mappings have all their pages touched by mmap.
#[test]
fn populated_mappings() {
    use libc::{MAP_ANONYMOUS, MAP_LOCKED, MAP_NONBLOCK, MAP_POPULATE, MAP_PRIVATE, MAP_SHARED, PROT_NONE, PROT_READ, PROT_WRITE};
    let private = |protection, flags| is_populated(protection, MAP_PRIVATE | MAP_ANONYMOUS | flags);
    let writable = PROT_READ | PROT_WRITE;
    assert_eq!([0, MAP_POPULATE, MAP_LOCKED].map(|flags| private(writable, flags)), [false, true, true]);
    assert!(!private(writable, MAP_POPULATE | MAP_NONBLOCK));
    assert_eq!([PROT_NONE, PROT_READ].map(|protection| private(protection, MAP_POPULATE)), [false; 2], "the zero page");
    assert_eq!([PROT_NONE, PROT_READ].map(|protection| is_populated(protection, MAP_SHARED | MAP_POPULATE)), [false, true]);
}

/// Check that the part of a mapping that was present before is read between its protection and its flags, and that what cannot be one is not known.
#[test]
fn present_parts() {
    let aux = |field: u64| 3 | field << 8 | 1 << 32;
    assert_eq!(
        [0, 1, 2, 10_001, 10_002, 0xff_ffff].map(|field| present_part(aux(field))),
        [None, Some(0), Some(1), Some(10_000), None, None]
    );
}

/// Writes slots as the agent does.
fn publish(ring: &AgentRing, slots: &[[u64; 8]]) {
    let head = ring.word64(HEAD).load(Ordering::Relaxed);
    for (i, words) in slots.iter().enumerate() {
        let number = head + i as u64;
        for (k, word) in words.iter().enumerate() {
            ring.word64(ring.slot(number) + 8 * k).store(*word, Ordering::Relaxed);
        }
        ring.word32(ring.slot(number)).store(number as u32 + 1, Ordering::Release);
    }
    ring.word64(HEAD).store(head + slots.len() as u64, Ordering::Release);
}

impl AgentRing {
    /// Writes releases of these addresses.
    pub(in crate::agent) fn publish_frees(&self, first: u64, count: u64) {
        let frees: Vec<[u64; 8]> = (first..first + count).map(|at| [3 << 32, 0, at, at, 0, 0, 0, 0]).collect();
        publish(self, &frees);
    }

    /// The slots that the agent may write.
    pub(in crate::agent) fn room(&self) -> u64 {
        self.capacity as u64 - (self.word64(HEAD).load(Ordering::Relaxed) - self.word64(TAIL).load(Ordering::Relaxed))
    }
}

/// Check that records are taken out of a ring that holds enough of them, so that there is room for more, that they come out first, and that fewer
/// stay in it.
#[test]
fn a_full_ring_is_relieved() {
    let ring = AgentRing::create(64, 1, false).unwrap();
    ring.publish_frees(0, 15);
    assert!(!ring.relieve(0, 16));
    assert_eq!(ring.room(), 49, "fewer");
    ring.publish_frees(15, 25);
    assert!(ring.relieve(0, 16));
    assert_eq!(ring.room(), 64);
    ring.publish_frees(40, 50);
    assert!(ring.ask_for_wake(1));
    let mut addresses = Vec::new();
    ring.drain(0, |record| {
        if let AgentEvent::Free { address } = record.event {
            addresses.push(address);
        }
    });
    assert_eq!(addresses, (0..90).collect::<Vec<u64>>());
    assert!(ring.room() == 64 && !ring.ask_for_wake(1));
    // What was taken out alone counts as not read too.
    ring.publish_frees(90, 40);
    assert!(ring.relieve(0, 16) && ring.ask_for_wake(1));
}

/// Check that a program that overwrites the header's counters (the ring is mapped in it) loses no record and causes no panic.
#[test]
fn a_wild_header_is_survived() {
    let ring = AgentRing::create(64, 1, false).unwrap();
    ring.word64(LOST).store(u64::MAX, Ordering::Relaxed);
    ring.word64(TAIL).store(u64::MAX - 1, Ordering::Relaxed);
    publish(&ring, &[[3 << 32, 0, 5, 0x1000, 0, 0, 0, 0], [3 << 32, 0, 6, 0x2000, 0, 0, 0, 0]]);
    let mut events = Vec::new();
    ring.drain(0, |record| events.push(record.event));
    assert_eq!(events, [AgentEvent::Free { address: 0x1000 }, AgentEvent::Free { address: 0x2000 }]);
    // Slots that were reserved, as the head says, and never published, are skipped one by one.
    ring.word64(HEAD).store(u64::MAX, Ordering::Relaxed);
    for second in 0..6 {
        ring.drain(second * 2 * STALLED_NS, |record| panic!("{record:?}"));
    }
    assert_eq!(ring.lost(), u64::MAX);
    assert!(!ring.is_damaged());
    ring.word64(0).store(0, Ordering::Relaxed);
    assert!(ring.is_damaged());
}

/// Check that a slot that a jump out of a signal handler may have left is waited for shortly, and others for long.
#[test]
fn a_slot_left_by_a_jump_is_skipped_soon() {
    let reads_after = |doubtful: u64, waited: u64| {
        let ring = AgentRing::create(64, 1, false).unwrap();
        ring.word64(HEAD).store(1, Ordering::Relaxed);
        ring.word64(DOUBTFUL).store(doubtful, Ordering::Relaxed);
        ring.drain(1, |record| panic!("{record:?}"));
        ring.drain(1 + waited, |record| panic!("{record:?}"));
        ring.room() == 64
    };
    assert!(reads_after(1, DOUBTFUL_NS) && !reads_after(1, DOUBTFUL_NS - 1));
    assert!(!reads_after(0, STALLED_NS - 1) && reads_after(0, STALLED_NS));
    assert!(!reads_after(257, STALLED_NS - 1), "of another slot");
    // Several that were reserved together are skipped at once, in any lap.
    let ring = AgentRing::create(64, 1, false).unwrap();
    ring.word64(HEAD).store(7, Ordering::Relaxed);
    (0..6_u64).for_each(|slot| ring.word64(DOUBTFUL + 8 * slot as usize).store(slot + 1, Ordering::Relaxed));
    ring.drain(1, |record| panic!("{record:?}"));
    ring.drain(1 + DOUBTFUL_NS, |record| panic!("{record:?}"));
    assert_eq!(ring.room(), 63, "the seventh is waited for");
    ring.word64(DOUBTFUL + 8 * 44).store(301, Ordering::Relaxed);
    assert!(ring.is_doubtful(300) && !ring.is_doubtful(44));
}

/// Check that writing to a new ring makes no page faults: its memory exists already.
#[test]
fn the_memory_exists() {
    let ring = AgentRing::create(1 << 14, 1, false).unwrap();
    let faults = || {
        // SAFETY: rusage is plain data, which the call fills.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage.ru_minflt
        }
    };
    let before = faults();
    (0..1 << 14).for_each(|number| ring.word64(ring.slot(number)).store(number, Ordering::Relaxed));
    assert!(faults() - before < 64, "{} faults for 256 pages", faults() - before);
}

/// Check that a request for a wake says whether an allocation may have come before it.
#[test]
fn wakes_are_asked_for() {
    let ring = AgentRing::create(64, 1, false).unwrap();
    assert_eq!(ring.word64(WAKE_SIZE).load(Ordering::Relaxed), 0);
    assert!(!ring.ask_for_wake(1 << 20));
    publish(&ring, &[[3 << 32, 0, 5, 0x1000, 0, 0, 0, 0]]);
    assert!(ring.ask_for_wake(1 << 20) && !ring.ask_for_wake(0));
    ring.drain(0, |_| {});
    assert!(!ring.ask_for_wake(1 << 20));
    assert_eq!(ring.word64(WAKE_SIZE).load(Ordering::Relaxed), 1 << 20);
}

/// Check that registers and stack words of a sample are read from the slots that follow it, and that one without registers is dropped.
#[test]
fn samples_come_through_the_ring() {
    let ring = AgentRing::create(64, 1, false).unwrap();
    let words: Vec<u64> = (100..119).collect();
    let mut slots = vec![[13 << 32 | 19 << 56, 7 | 8 << 32, 5, 0x4000, 900, 0x7ff0, 3 | 70 << 32, 77]];
    for part in words.chunks(IPS_PER_SLOT) {
        let mut slot = [0; 8];
        slot[1..=part.len()].copy_from_slice(part);
        slots.push(slot);
    }
    slots.push([13 << 32 | 2 << 56, 7 | 8 << 32, 6, 0x4000, 900, 0x7ff0, 3 | 70 << 32, 0]);
    slots.push([0; 8]);
    publish(&ring, &slots);
    let mut records = Vec::new();
    ring.drain(0, |record| records.push(record));
    let tick = Tick {
        instruction_pointer: 0x4000,
        registers: std::array::from_fn(|i| 100 + i as u64),
        cpu: 3,
        cpu_ns: 900,
        faults: Some(70),
        python: 77,
        stack_address: 0x7ff0,
        stack: [116u64, 117, 118].iter().flat_map(|word| word.to_le_bytes()).collect(),
    };
    assert_eq!(records, [AgentRecord { pid: 7, tid: 8, time: 5, event: AgentEvent::Tick(Box::new(tick)) }]);
}

#[test]
fn python_stacks_come_through_the_ring() {
    let ring = AgentRing::create(128, 1, false).unwrap();
    let text = b"/home/someone/projects/stencil/prog.py\0Grid.make_the_field\x0022\0prog.py\0<module>\x0040\0";
    let mut slots = vec![[12 << 32, 0, 5, 0, text.len() as u64, 0, 0, 77]];
    for part in text.chunks(TEXT_PER_SLOT) {
        let mut slot = [0; 8];
        for (i, byte) in part.iter().enumerate() {
            slot[1 + i / 8] |= u64::from(*byte) << (8 * (i % 8));
        }
        slots.push(slot);
    }
    slots.push([2 << 32 | 1 << 48, 0, 6, 0x1000, 80, 3, 0, 77]);
    publish(&ring, &slots);
    // A length beyond all bounds: as many slots as the longest text has.
    let mut wild = vec![[12 << 32 | 1 << 48, 0, 7, 0, u64::MAX, 0, 0, 78]];
    wild.resize(1 + PYTHON_TEXT_MAX / TEXT_PER_SLOT, [u64::MAX; 8]);
    publish(&ring, &wild);
    let mut events = Vec::new();
    ring.drain(0, |record| events.push(record.event));
    let frames =
        vec![frame("/home/someone/projects/stencil/prog.py", "Grid.make_the_field", Some(22)), frame("prog.py", "<module>", Some(40))];
    assert_eq!(
        events,
        [
            AgentEvent::PythonStack { id: 77, of_sample: false, frames },
            AgentEvent::Alloc { call: "malloc", address: 0x1000, bytes: 80, stack: 3, python: 77 },
            AgentEvent::PythonStack { id: 78, of_sample: true, frames: Vec::new() },
        ]
    );
}
