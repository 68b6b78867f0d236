//! Children that a server forks anew for every step are judged by their place, as threads of which a program makes new ones all the time.

use crate::samples::thread;
use crate::simulated::{FakeSources, MIB, MS, Random, S, target};
use firsttouch_analysis::{Analysis, PartitionKind, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::*;

const TABLE: u64 = 64 * MIB;
const OWN: u64 = 4 * MIB;
const TABLE_AT: u64 = 0x10_0000_0000;
const OWN_AT: u64 = 0x20_0000_0000;
const PAGE: u64 = 4096;
const PERIOD: u64 = 16;
const TEAM: u64 = 4;
/// Samples of each child on the table, and as many on its own memory.
const SAMPLES: u64 = 6;
/// Sites: of the table, of its first touch, of the children's work, of their memory.
const SITES: [Id; 4] = [99, 100, 101, 102];

/// A server fills a table that it shares with the children of each step, each of which reads its part and uses memory of its own.
struct Server {
    steps: u64,
    /// The program of each child, and whether it still has what it inherited at its end.
    exe: &'static str,
    keeps: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self { steps: 16, exe: "/bin/server", keeps: true }
    }
}

fn table(id: Id, process: Id, born_ns: u64) -> Object {
    Object {
        id,
        process,
        kind: ObjectKind::Anonymous,
        call: Some("mmap".into()),
        name: Some("table".into()),
        address: TABLE_AT,
        bytes: TABLE,
        born_ns,
        died_ns: None,
        site: Some(SITES[0]),
        thread: Some(0),
    }
}

fn touch(process: Id, address: u64, time_ns: u64) -> FirstTouch {
    FirstTouch {
        id: 0,
        process,
        time_ns,
        thread: process,
        cpu: 0,
        address,
        weight: PERIOD as f64,
        by_kernel: false,
        site: Some(SITES[1]),
        mapped_bytes: Some(0),
        node: None,
    }
}

impl Server {
    fn profile(&self) -> Profile {
        let frame = |line: u32| Frame { address: 0x1000 * u64::from(line), file: Some("a.c".into()), line: Some(line), ..Frame::default() };
        let mut profile = Profile {
            sites: SITES.map(|id| (id, Site { id, process: 0, frames: vec![frame(id as u32)] })).into(),
            evidence: ["sample", "touch"]
                .map(|source| Evidence { source: source.into(), available: true, samples: 1, detail: String::new() })
                .into(),
            ..Profile::default()
        };
        profile.meta.set("start_ns", "0");
        profile.meta.set("end_ns", &(10 * S).to_string());
        let server = Process { id: 0, pid: 10, parent: None, exe: Some("/bin/server".into()), born_ns: 0, died_ns: None };
        profile.processes.push(server);
        profile.threads.push(Thread { process: 0, cpu_ns: Some(S / 2), ..thread(0) });
        profile.objects.push(table(1, 0, 0));
        profile.shared_memory.insert(1, SharedMemory { memory: "00:01 7".into(), offset: 0, present: None });
        let pages = (0..TABLE).step_by((PERIOD * PAGE) as usize);
        profile.first_touches.extend(pages.map(|offset| touch(0, TABLE_AT + offset, S / 2 + offset)));
        let mut random = Random(1);
        for child in 0..self.steps * TEAM {
            self.add(&mut profile, child, &mut random);
        }
        profile
    }

    fn add(&self, profile: &mut Profile, child: u64, random: &mut Random) {
        let (step, member, id) = (child / TEAM, child % TEAM, child as Id + 1);
        let born_ns = S + step * 50 * MS + member * MS;
        let died_ns = Some(born_ns + 40 * MS);
        profile.processes.push(Process { id, pid: 10 + id as i32, parent: Some(0), exe: Some(self.exe.into()), born_ns, died_ns });
        profile.threads.push(Thread { process: id, born_ns, died_ns, cpu_ns: Some(40 * MS), ..thread(id) });
        let gone_ns = (!self.keeps).then_some(born_ns + MS / 2);
        let own = Object { address: OWN_AT, bytes: OWN, born_ns: born_ns + MS, site: Some(SITES[3]), ..table(10_000 + id, id, 0) };
        profile.objects.push(Object { died_ns: gone_ns, ..table(1 + id, id, born_ns) });
        profile.objects.push(Object { kind: ObjectKind::Heap, call: Some("malloc".into()), name: Some("own".into()), ..own });
        profile.shared_memory.insert(1 + id, SharedMemory { memory: "00:01 7".into(), offset: 0, present: None });
        let pages = (0..OWN).step_by((PERIOD * PAGE) as usize);
        profile.first_touches.extend(pages.map(|offset| touch(id, OWN_AT + offset, born_ns + 2 * MS + offset / 8)));
        for number in 0..2 * SAMPLES {
            let of_table = number % 2 == 0;
            let part = TABLE / TEAM * member + random.below(TABLE / TEAM / 8) * 8;
            let (object, address) = if of_table { (1 + id, TABLE_AT + part) } else { (10_000 + id, OWN_AT + random.below(OWN / 8) * 8) };
            let sample = profile.samples.len() as Id + 1;
            profile.samples.push(TimerSample {
                id: sample,
                thread: id,
                time_ns: born_ns + 4 * MS + number * 3 * MS,
                cpu: 0,
                cpu_ns: (4 + number * 3) * MS,
                weight: 1.0,
                site: Some(SITES[2]),
                state: SampleState::Computing,
                around: None,
                unknown: 0,
                elsewhere: 0.0,
            });
            let kind = if of_table { AccessKind::Read } else { AccessKind::Write };
            let access = SampledAccess { sample, object, address, bytes: 8, words: 1.0, kind, site: Some(SITES[2]), stride: Some(8) };
            profile.sampled_accesses.push(access);
        }
    }

    fn judged(&self) -> Analysis {
        analyse(&self.profile(), &target(2), &FakeSources(TouchCause::Loop))
    }
}

/// The nodes of the children of each step.
fn nodes(analysis: &Analysis) -> Vec<Vec<u32>> {
    analysis.threads[1..].chunks(TEAM as usize).map(|step| step.iter().map(|thread| thread.node).collect()).collect()
}

/// Check that the children of all steps are four workers, each with its part of the table, that the server filled: as those of one step are.
#[test]
fn children_of_successive_steps_are_judged_by_their_place() {
    for steps in [4, 16] {
        let analysis = Server { steps, ..Server::default() }.judged();
        let table = analysis.objects.iter().find(|object| object.name == "table").expect("the table");
        assert!(table.judged, "{:?}", table.reason);
        assert_eq!((table.partition, table.first_touch.partition), (PartitionKind::Block, PartitionKind::Single), "{steps} steps");
        // The samples on four steps may be too few for a finding.
        let kinds: Vec<FindingKind> = analysis.findings.iter().map(|finding| finding.kind).collect();
        assert!(steps < 16 || kinds == [FindingKind::SerialFirstTouch], "{:?} {table:?}", analysis.findings);
        assert!(nodes(&analysis).iter().all(|step| *step == [0, 0, 1, 1]), "{:?}", nodes(&analysis));
        assert_eq!(analysis.traffic.workers.len(), 5, "the server and its four workers");
    }
}

/// Check that memory that each child allocates at one place in the code is one object for each worker, which is judged.
#[test]
fn memory_of_successive_children_is_judged_together() {
    let analysis = Server::default().judged();
    let own: Vec<_> = analysis.objects.iter().filter(|object| object.name.starts_with("own")).collect();
    let counts: Vec<usize> = own.iter().map(|object| object.count).collect();
    assert_eq!(counts, [16; 4]);
    assert!(own.iter().all(|object| object.judged && object.remote_fraction == Some(0.0)), "{:?}", analysis.not_judged);
    assert!(own.iter().all(|object| object.total_bytes == OWN), "one lives at a time");
}

/// Check that children which replaced their program are workers of their own, by the name of the program, or by the memory that they no longer have.
#[test]
fn other_programs_in_turn_are_not_one_worker() {
    for server in [Server { exe: "/bin/other", ..Server::default() }, Server { keeps: false, ..Server::default() }] {
        let analysis = server.judged();
        assert!(analysis.threads.iter().all(|thread| thread.turn.is_none()), "{} {}", server.exe, server.keeps);
        assert_eq!(analysis.traffic.workers.len(), 1 + 16 * 4);
    }
}
