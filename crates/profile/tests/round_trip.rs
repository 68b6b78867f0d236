use firsttouch_model::rows::metadata::{Metadata, Symbols};
use firsttouch_model::rows::{
    Access, AccessKind, Appeared, Bandwidth, Counter, Evidence, FaultCount, FaultPeriod, FirstIds, FirstTouch, FoldedObjects, Frame, Host,
    Lost, Machine, Object, ObjectKind, OperandCount, Owner, Page, Part, Policy, Population, Process, Profile, Progress, PythonLine,
    RankPlace, Region, Release, SampleState, SampledAccess, SampledLoop, Seen, SharedMemory, Site, SmallBlock, SourceFile, Thread,
    TimerSample, Window,
};
use firsttouch_profile::{Writer, open};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// A part with all that is counted for a whole recording.
fn part() -> Part {
    let place = Some(RankPlace { rank: 1, size: 2, launcher: "MPICH".into(), job: Some("4\n".into()), ..RankPlace::default() });
    Part {
        id: 0,
        host: 0,
        place: place.clone(),
        source: "rank-1.ftp".into(),
        shift_ns: -5,
        first: FirstIds {
            process: 1,
            thread: 0,
            site: i64::MIN,
            object: 1,
            touch: 1,
            window: 1,
            round: u64::MAX,
            sample: 1,
            region: i64::MAX,
        },
        meta: Metadata {
            command: vec!["a".into(), "b\"c".into()],
            exit_code: Some(-1),
            start_ns: Some(u64::MAX),
            symbols: Symbols::InFile,
            notes: vec!["one".into(), "two".into()],
            rank: place,
            ..Metadata::default()
        },
        machine: Machine { hostname: "host".into(), node_tiers: [(1, 2)].into(), ..Machine::default() },
        evidence: vec![Evidence { source: "hint".into(), available: false, samples: u64::MAX, detail: "why\tnot".into() }],
        lost: vec![Lost { source: "touch".into(), reason: "ring full".into(), count: u64::MAX }],
        counters: vec![
            Counter { name: "numa_hit".into(), node: None, at_start: 1, at_end: 2 },
            Counter { name: "numa_hit".into(), node: Some(1), at_start: u64::MAX, at_end: 0 },
        ],
    }
}

/// A profile with a row in each table.
pub fn full_profile() -> Profile {
    let frame =
        Frame { address: u64::MAX, module: Some("/bin/a".into()), offset: Some(16), line: Some(7), column: Some(13), ..Frame::default() };
    let thread = Thread {
        id: 0,
        process: 1,
        tid: 42,
        parent: None,
        name: Some("a) b".into()),
        born_ns: 1,
        died_ns: None,
        cpu_ns: Some(5),
        omp_number: Some(0),
        user_faults: Some(3),
        all_faults: None,
        allowed_cpus: Some("0-3".into()),
        node_moves: 2,
    };
    let object = Object {
        id: 1,
        process: 1,
        kind: ObjectKind::Heap,
        call: Some("malloc".into()),
        name: Some("A".into()),
        address: 1 << 63,
        bytes: 4096,
        born_ns: 1,
        died_ns: Some(9),
        site: Some(1),
        thread: Some(0),
    };
    let touch = FirstTouch {
        id: 1,
        process: 1,
        time_ns: 2,
        thread: 0,
        cpu: 3,
        address: 1 << 63,
        weight: 1.5,
        by_kernel: true,
        site: Some(1),
        mapped_bytes: Some(0),
        node: Some(-2),
    };
    let around = Some(SampledLoop { end: 77, entry: u64::MAX, progress: Some(Progress { value: u64::MAX - 1, step: -8 }), left: Some(19) });
    let state = SampleState::Computing;
    let sample = TimerSample {
        id: 1,
        thread: 0,
        time_ns: 3,
        cpu: 1,
        cpu_ns: 4,
        weight: 2.0,
        site: Some(1),
        state,
        around,
        unknown: 2,
        elsewhere: 3.5,
    };
    let access =
        Access { window: 1, thread: 0, site: Some(1), hits: 5, estimate: 7.5, watched_ns: 10, cut: true, cpu: Some(1), cpu_ns: Some(9) };
    Profile {
        machine: Machine { hostname: "host".into(), node_cpus: [(0, vec![0, 1])].into(), page_bytes: 4096, ..Machine::default() },
        evidence: vec![Evidence { source: "touch".into(), available: true, samples: 1, detail: String::new() }],
        processes: vec![Process { id: 1, pid: 42, parent: None, exe: Some("/bin/a".into()), born_ns: 1, died_ns: Some(10) }],
        threads: vec![thread],
        thread_cpus: [((0, 3), Seen { samples: 4, looks: 2 })].into(),
        sites: [(1, Site { id: 1, process: 1, frames: vec![frame.clone(), Frame { inlined: true, ..frame }] })].into(),
        objects: vec![object],
        shared_memory: [(1, SharedMemory { memory: "00:01 77".into(), offset: u64::MAX - 4095, present: Some(17) })].into(),
        folded_objects: vec![FoldedObjects { site: 1, call: "malloc".into(), bytes: 64, count: 3, word_ns: 1e12 }],
        small_blocks: vec![SmallBlock {
            process: 1,
            thread: 0,
            site: None,
            call: "realloc".into(),
            address: u64::MAX - 7,
            bytes: 48,
            weight: 32_792.5,
            time_ns: 9,
        }],
        first_touches: vec![touch],
        fault_periods: vec![FaultPeriod { time_ns: 1, faults: 1, part: Some(0) }, FaultPeriod { time_ns: 7, faults: 2_008, part: Some(0) }],
        populations: [Some(true), None]
            .map(|future| Population {
                process: 1,
                thread: 1,
                time_ns: 5,
                call: "mlockall".to_owned(),
                address: 0,
                bytes: u64::MAX,
                future,
                site: Some(1),
            })
            .to_vec(),
        releases: vec![Release { process: 1, time_ns: 3, address: 4096, bytes: 4096 }],
        appeared: vec![Appeared { process: 1, from_ns: 3, to_ns: 5, address: 8192, bytes: 4096, page_bytes: 4096 }],
        fault_counts: vec![
            FaultCount { process: 1, thread: Some(2), time_ns: 4, faults: 7 },
            FaultCount { process: 1, thread: None, time_ns: 4, faults: 0 },
        ],
        operand_counts: vec![OperandCount { process: 1, instruction: 0x40_1000, known: 3, unknown: 5 }],
        python_lines: vec![PythonLine { thread: 2, time_ns: 5, site: 1 }],
        windows: vec![Window { id: 1, round: 2, object: 1, address: 8, start_ns: 1, held_ns: 2, round_ns: 3, inclusion: 0.25 }],
        accesses: vec![access],
        samples: vec![sample.clone(), TimerSample { id: 2, state: SampleState::Waiting, around: None, site: None, ..sample }],
        sampled_accesses: vec![SampledAccess {
            sample: 1,
            object: 1,
            address: u64::MAX - 7,
            bytes: 8,
            words: 0.125,
            kind: AccessKind::Update,
            site: None,
            stride: Some(-64),
        }],
        pages: vec![Page { process: 1, object: Some(1), address: 4096, time_ns: 4, node: -2, page_bytes: 0 }],
        policies: [(1, Policy { policy: "interleave:0-1".into(), time_ns: 5 })].into(),
        counters: vec![Counter { name: "numa_hit".into(), node: None, at_start: 1, at_end: 2 }],
        bandwidth: vec![
            Bandwidth {
                source: "uncore".into(),
                node: 1,
                from_ns: 5,
                to_ns: 9,
                bytes: u64::MAX,
                read_bytes: Some(64),
                local_bytes: None,
                part: Some(0),
            },
            Bandwidth {
                source: "resctrl".into(),
                node: 0,
                from_ns: 6,
                to_ns: 9,
                bytes: 8,
                read_bytes: None,
                local_bytes: Some(u64::MAX),
                part: Some(0),
            },
        ],
        regions: vec![Region { id: 1, process: 1, begin_ns: 1, end_ns: None, site: Some(1), team_size: 4, thread: Some(0) }],
        lost: vec![Lost { source: "touch".into(), reason: "ring full".into(), count: u64::MAX }],
        source_files: [("a.c".to_owned(), SourceFile { bytes: u64::MAX, modified_ns: -1 })].into(),
        hosts: vec![Host { id: 0, name: "host".into(), first_node: 0, nodes: 2, first_cpu: 0, cpus: 4 }],
        parts: vec![part()],
        ..Profile::default()
    }
}

/// Check that every row is read as it was written, with values at their limits.
#[test]
fn rows_are_read_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    let mut written = full_profile();
    let mut w = Writer::create(&path).unwrap();
    written.owner = Owner::User(fs::metadata(&path).unwrap().uid());
    w.machine(&written.machine).unwrap();
    written.evidence.iter().for_each(|row| w.evidence(row).unwrap());
    written.processes.iter().for_each(|row| w.process(row).unwrap());
    written.threads.iter().for_each(|row| w.thread(row).unwrap());
    written.thread_cpus.iter().for_each(|(&(thread, cpu), seen)| w.thread_cpu(thread, cpu, *seen).unwrap());
    written.sites.values().for_each(|row| w.site(row).unwrap());
    written.objects.iter().for_each(|row| w.object(row).unwrap());
    written.shared_memory.iter().for_each(|(object, row)| w.shared_memory(*object, row).unwrap());
    written.folded_objects.iter().for_each(|row| w.folded_objects(row).unwrap());
    written.small_blocks.iter().for_each(|row| w.small_block(row).unwrap());
    written.first_touches.iter().for_each(|row| w.first_touch(row.clone()).unwrap());
    written.fault_periods.iter().for_each(|row| w.fault_period(*row).unwrap());
    written.populations.iter().for_each(|row| w.population(row).unwrap());
    written.releases.iter().for_each(|row| w.release(row).unwrap());
    written.appeared.iter().for_each(|row| w.appeared(row).unwrap());
    written.fault_counts.iter().for_each(|row| w.fault_count(row).unwrap());
    written.operand_counts.iter().for_each(|row| w.operand_count(row).unwrap());
    written.python_lines.iter().for_each(|row| w.python_line(row).unwrap());
    written.windows.iter().for_each(|row| w.window(row).unwrap());
    written.accesses.iter().for_each(|row| w.access(row).unwrap());
    written.samples.iter().for_each(|row| w.sample(row.clone()).unwrap());
    written.sampled_accesses.iter().for_each(|row| w.sampled_access(row.clone()).unwrap());
    written.pages.iter().for_each(|row| w.page(row).unwrap());
    written.policies.iter().for_each(|(object, row)| w.policy(*object, row).unwrap());
    written.counters.iter().for_each(|row| w.counter(row).unwrap());
    written.bandwidth.iter().for_each(|row| w.bandwidth(row).unwrap());
    written.regions.iter().for_each(|row| w.region(row).unwrap());
    written.source_files.iter().for_each(|(path, row)| w.source_file(path, row).unwrap());
    written.hosts.iter().for_each(|row| w.host(row).unwrap());
    written.parts.iter().for_each(|row| w.part(row).unwrap());
    written.lost.iter().for_each(|row| w.lost(&row.source, &row.reason, row.count).unwrap());
    w.flush().unwrap();
    assert_eq!(open(&path).unwrap(), written, "while the writer is open");
    w.finish().unwrap();
    assert_eq!(open(&path).unwrap(), written, "after it has finished");
}

/// Check that a profile of an earlier version, whose accesses have no CPU time, is read without it.
#[test]
fn accesses_without_cpu_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    let access =
        Access { window: 1, thread: 0, site: None, hits: 5, estimate: 7.5, watched_ns: 10, cut: false, cpu: Some(1), cpu_ns: Some(9) };
    let w = Writer::create(&path).unwrap();
    w.access(&access).unwrap();
    w.finish().unwrap();
    assert_eq!(open(&path).unwrap().accesses, std::slice::from_ref(&access));
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("ALTER TABLE accesses DROP COLUMN cpu_ns").unwrap();
    drop(connection);
    assert_eq!(open(&path).unwrap().accesses, [Access { cpu_ns: None, ..access }]);
}

/// Check that an early profile, which has no table of hosts and parts, and no parts of periods, is read without them.
#[test]
fn profiles_without_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    let w = Writer::create(&path).unwrap();
    w.fault_period(FaultPeriod { time_ns: 3, faults: 8, part: None }).unwrap();
    w.finish().unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch("ALTER TABLE fault_periods DROP COLUMN part; DROP TABLE hosts; DROP TABLE parts; DROP TABLE bandwidth")
        .unwrap();
    drop(connection);
    let read = open(&path).unwrap();
    assert_eq!(read.fault_periods, [FaultPeriod { time_ns: 3, faults: 8, part: None }]);
    assert!(read.hosts.is_empty() && read.parts.is_empty() && read.bandwidth.is_empty());
}
