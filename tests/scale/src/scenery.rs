//! What does not grow with the rows: machine, threads, objects, places in the code.

use crate::{By, END, PAGE, SECOND, START, Size};
use firsttouch_model::rows::metadata::{Metadata, Mode, Symbols};
use firsttouch_model::rows::{Evidence, Frame, Id, Machine, Object, ObjectKind, Page, Process, Profile, Seen, Site, Thread};

const PROGRAM: &str = "/opt/scale/program";
const SOURCE: &str = "/opt/scale/program.c";
/// Loops that use memory.
pub const LOOPS: usize = 16;
/// Pages of each object of which the kernel was asked.
const ASKED: u64 = 4;

/// The site that allocates an object.
pub fn allocation(object: usize) -> Id {
    object as Id + 1
}

/// The site that touches memory first.
pub fn touching(size: &Size, object: usize) -> Id {
    (size.objects + 1 + object % LOOPS) as Id
}

/// The site that uses memory.
pub fn using(size: &Size, object: usize) -> Id {
    (size.objects + 1 + LOOPS + object % LOOPS) as Id
}

/// The code address of a site.
pub fn code(site: Id) -> u64 {
    0x40_0000 + site.cast_unsigned() * 16
}

/// Where an object begins.
pub fn address(size: &Size, object: usize) -> u64 {
    0x7000_0000_0000 + object as u64 * (size.pages() + 512) * PAGE
}

fn frame(site: Id, function: &str, line: usize) -> Frame {
    let address = code(site);
    Frame {
        address,
        module: Some(PROGRAM.into()),
        offset: Some(address - 0x40_0000),
        inlined: false,
        function: Some(function.into()),
        file: Some(SOURCE.into()),
        line: u32::try_from(line).ok(),
        column: None,
    }
}

fn sites(size: &Size) -> impl Iterator<Item = Site> {
    let site = |id: Id, function: &str, line: usize| {
        let frames = vec![frame(id, function, line), frame(0, "main", 1)];
        Site { id, process: 0, frames }
    };
    let allocations = (0..size.objects).map(move |object| site(allocation(object), &format!("allocate_{object}"), 1000 + object));
    let touching = (0..LOOPS).map(move |one| site(touching(size, one), &format!("initialise_{one}"), 100 + one));
    let using = (0..LOOPS).map(move |one| site(using(size, one), &format!("use_{one}"), 200 + one));
    allocations.chain(touching).chain(using)
}

fn object(size: &Size, index: usize) -> Object {
    Object {
        id: index as Id + 1,
        process: 0,
        kind: ObjectKind::Heap,
        call: Some("malloc".into()),
        name: None,
        address: address(size, index),
        bytes: size.pages() * PAGE,
        born_ns: START + index as u64,
        died_ns: None,
        site: Some(allocation(index)),
        thread: Some(0),
    }
}

fn thread(index: usize) -> Thread {
    Thread {
        id: index as Id,
        process: 0,
        tid: 1000 + index as i32,
        parent: (index > 0).then_some(0),
        name: Some("program".into()),
        born_ns: START,
        cpu_ns: Some(99 * SECOND),
        omp_number: u32::try_from(index).ok(),
        ..Thread::default()
    }
}

fn metadata(size: &Size) -> Metadata {
    Metadata {
        command: vec![PROGRAM.into()],
        exit_code: Some(0),
        start_ns: Some(START),
        end_ns: Some(END),
        start_unix_s: Some(1_790_000_000),
        min_size_bytes: Some(65536),
        symbols: Symbols::InFile,
        tool_version: Some("0.1.0".into()),
        mode: Some(Mode::Launch),
        trap_ns: Some(10_000.0),
        tick_ns: Some(25_000.0),
        watch_start_ns: (size.by == By::Watch).then_some(crate::USED_FROM),
        threads_ran_ns: size.threads as u64 * 99 * SECOND,
        variables: (0..size.objects).map(|object| (allocation(object), format!("array_{object}"))).collect(),
        ..Metadata::default()
    }
}

fn machine(size: &Size) -> Machine {
    Machine {
        hostname: "scale".into(),
        kernel: "6.12.0".into(),
        node_cpus: [(0, (0..size.threads as u32).collect())].into(),
        page_bytes: PAGE,
        huge_page_bytes: 0,
        transparent_huge_pages: "never".into(),
        private_cache_bytes: 256 << 10,
        shared_cache_bytes: 32 << 20,
        numa_balancing: 0,
        node_tiers: [].into(),
    }
}

fn pages(size: &Size, object: &Object) -> Vec<Page> {
    let page = |at: u64| {
        let address = object.address + at * (size.pages() / ASKED) * PAGE;
        Page { process: 0, object: Some(object.id), address, time_ns: END - SECOND, node: 0, page_bytes: PAGE }
    };
    (0..ASKED).map(page).collect()
}

/// A profile without first touches and accesses.
pub fn scenery(size: &Size) -> Profile {
    let source =
        |source: &str, samples: usize| Evidence { source: source.into(), available: true, samples: samples as u64, detail: String::new() };
    let objects: Vec<Object> = (0..size.objects).map(|index| object(size, index)).collect();
    let accesses = match size.by {
        By::Watch => source("watch", size.third()),
        By::Sample => source("sample", size.third()),
    };
    Profile {
        meta: metadata(size),
        machine: machine(size),
        evidence: vec![source("agent", 1), source("touch", size.third()), accesses, source("resident", size.objects * ASKED as usize)],
        processes: vec![Process { id: 0, pid: 1000, parent: None, exe: Some(PROGRAM.into()), born_ns: START, died_ns: Some(END) }],
        threads: (0..size.threads).map(thread).collect(),
        thread_cpus: (0..size.threads).map(|index| ((index as Id, index as u32), Seen { samples: 100, looks: 100 })).collect(),
        sites: sites(size).map(|site| (site.id, site)).collect(),
        pages: objects.iter().flat_map(|object| pages(size, object)).collect(),
        objects,
        ..Profile::default()
    }
}
