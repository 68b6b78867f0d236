//! Profiles merged: the same whatever the order and the steps, with every row, or not at all.

use crate::round_trip::full_profile;
use firsttouch_model::rows::metadata::{Metadata, Symbols};
use firsttouch_model::rows::{
    Bandwidth, Counter, Evidence, FaultPeriod, Id, Lost, Machine, NO_OBJECT, Owner, Policy, Process, Profile, RankPlace, SourceFile,
};
use firsttouch_profile::merge::{Merged, find, merge_directory, merge_files, merged_name, output_beside};
use firsttouch_profile::{Output, Writer, open};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes all of a profile.
fn write(profile: &Profile, path: &Path) -> PathBuf {
    let mut w = Writer::create(path).unwrap();
    profile.meta.entries().into_iter().for_each(|entry| w.meta(entry).unwrap());
    w.machine(&profile.machine).unwrap();
    profile.evidence.iter().for_each(|row| w.evidence(row).unwrap());
    profile.lost.iter().for_each(|row| w.lost(&row.source, &row.reason, row.count).unwrap());
    profile.counters.iter().for_each(|row| w.counter(row).unwrap());
    profile.source_files.iter().for_each(|(path, row)| w.source_file(path, row).unwrap());
    w.rows(profile.clone()).unwrap();
    w.keep();
    w.finish().unwrap();
    path.to_owned()
}

/// A rank with a row in each table. Its numbers begin where `first` says, so that each kind has numbers below 0 and gaps; what no row of another
/// table has may be named too.
fn rank(host: &str, rank: u32, first: Id) -> Profile {
    let mut profile = full_profile();
    (profile.hosts, profile.parts) = (Vec::new(), Vec::new());
    profile.fault_periods =
        vec![FaultPeriod { time_ns: 900, faults: 1, part: None }, FaultPeriod { time_ns: 950 + u64::from(rank), faults: 2008, part: None }];
    for row in &mut profile.bandwidth {
        (row.from_ns, row.part) = (1_000, None);
    }
    profile.machine = Machine {
        hostname: host.into(),
        node_cpus: [(0, vec![0, 1]), (1, vec![2, 3])].into(),
        node_tiers: [(0, 1), (1, 2)].into(),
        page_bytes: 4096,
        ..Machine::default()
    };
    let start = 1_000 * (u64::from(rank) + 1) + if host == "far" { 1 << 40 } else { 0 };
    profile.meta = Metadata {
        command: vec!["./x".into()],
        exit_code: Some(0),
        start_ns: Some(start),
        end_ns: Some(start + 10_000 + u64::from(rank)),
        start_unix_s: Some(1_700_000_000),
        symbols: Symbols::InFile,
        tool_version: Some("1.0".into()),
        children_left: 1,
        threads_ran_ns: 5,
        variables: [(first, format!("v{rank}")), (first + 100, "w".into())].into(),
        notes: vec!["everywhere".into(), format!("note of {rank}")],
        rank: Some(RankPlace { rank, size: 4, job: Some("77".into()), launcher: "Slurm".into(), ..RankPlace::default() }),
        ..Metadata::default()
    };
    profile.processes = vec![
        Process { id: first, pid: 500, parent: None, exe: None, born_ns: start, died_ns: None },
        Process { id: first + 3, pid: 501, parent: Some(first), exe: Some("/x".into()), born_ns: 0, died_ns: Some(u64::MAX >> 2) },
    ];
    profile.processes[0].pid += rank as i32;
    profile.threads[0].id = first;
    profile.threads[0].process = first + 3;
    profile.threads[0].parent = (rank == 1).then_some(first + 9);
    profile.threads[0].allowed_cpus = [Some("0-2,3"), None, Some("none")][rank as usize % 3].map(str::to_owned);
    profile.sites = profile.sites.into_values().map(|site| (first, firsttouch_model::rows::Site { id: first, ..site })).collect();
    profile.objects[0].id = first;
    profile.objects[0].site = None;
    profile.shared_memory = profile.shared_memory.into_values().map(|row| (first + 1, row)).collect();
    let policy = ["interleave:0-1", "default", "bind=static:1,0"][rank as usize % 3];
    profile.policies =
        [(first, Policy { policy: policy.into(), time_ns: 7 }), (first - 1, Policy { policy: "local".into(), time_ns: 0 })].into();
    profile.windows[0].round = u64::MAX - 3;
    profile.sampled_accesses.push(firsttouch_model::rows::SampledAccess { object: NO_OBJECT, ..profile.sampled_accesses[0].clone() });
    profile.pages[0].node = if rank == 0 { -2 } else { 1 };
    profile.pages[0].object = (rank != 2).then_some(first + 5);
    profile.first_touches[0].node = [Some(1), None, Some(-14)][rank as usize % 3];
    profile.evidence = vec![
        Evidence { source: "touch".into(), available: true, samples: 10, detail: String::new() },
        Evidence { source: "hint".into(), available: rank == 1, samples: 0, detail: if rank == 1 { String::new() } else { "off".into() } },
    ];
    profile.lost = vec![Lost { source: "touch".into(), reason: "ring full".into(), count: u64::from(rank) }];
    let counter = |node, at_end| Counter { name: "numa_hit".into(), node, at_start: 1, at_end };
    profile.counters = vec![counter(None, 10 + u64::from(rank)), counter(Some(1), 20 + u64::from(rank))];
    profile.source_files.insert("shared.c".into(), SourceFile { bytes: u64::from(rank), modified_ns: 7 });
    profile
}

/// A rank that was killed before it did anything.
fn nothing(host: &str, number: u32) -> Profile {
    let Profile { machine, meta, .. } = rank(host, number, 0);
    let meta = Metadata { exit_code: None, symbols: Symbols::None, variables: [].into(), ..meta };
    Profile { machine, meta, ..Profile::default() }
}

const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";

/// All rows of all tables.
fn dump(path: &Path) -> Vec<(String, Vec<Vec<Value>>)> {
    let c = Connection::open(path).unwrap();
    let names: Vec<String> = c.prepare(TABLES).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let rows = |name: &str| {
        let mut all = c.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = all.column_count();
        let read = all.query_map([], |row| (0..columns).map(|column| row.get(column)).collect::<Result<Vec<Value>, _>>());
        read.unwrap().map(Result::unwrap).collect()
    };
    names.iter().map(|name| (name.clone(), rows(name))).collect()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, profile: &Profile) -> PathBuf {
        write(profile, &self.path(name))
    }

    fn try_merge(&self, files: &[&PathBuf], name: &str) -> Result<Merged, String> {
        let files: Vec<PathBuf> = files.iter().map(|file| (*file).clone()).collect();
        merge_files(&files, &Output::File(self.path(name))).map_err(|error| format!("{error:#}"))
    }

    fn merge(&self, files: &[&PathBuf], name: &str) -> PathBuf {
        self.try_merge(files, name).unwrap().created.path
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn same(one: &Path, other: &Path) {
    for ((name, rows), (_, others)) in dump(one).iter().zip(dump(other)) {
        assert_eq!(*rows, others, "table {name} of {} and {}", one.display(), other.display());
    }
}

/// Check that neither the order nor the steps of merging change anything, on one host and on several, of which a later one may come first.
#[test]
fn order_and_steps_do_not_matter() {
    for hosts in [["near"; 4], ["near", "far", "near", "far"], ["far", "near", "middle", "near"], ["a", "b", "c", "d"]] {
        let folder = Folder::new();
        let [a, b, c] = [(0, -40), (1, 1), (2, 7_000_000_000)]
            .map(|(number, first)| folder.write(&format!("r{number}.ftp"), &rank(hosts[number as usize], number, first)));
        let d = folder.write("r3.ftp", &nothing(hosts[3], 3));
        let all = folder.merge(&[&a, &b, &c, &d], "all.ftp");
        let reverse = folder.merge(&[&d, &c, &b, &a], "reverse.ftp");
        same(&all, &reverse);
        let ab = folder.merge(&[&a, &b], "ab.ftp");
        let abc = folder.merge(&[&ab, &c], "abc.ftp");
        same(&all, &folder.merge(&[&abc, &d], "steps.ftp"));
        let (ba, cd) = (folder.merge(&[&b, &a], "ba.ftp"), folder.merge(&[&d, &c], "cd.ftp"));
        same(&all, &folder.merge(&[&cd, &ba], "pairs.ftp"));
        let ac = folder.merge(&[&a, &c], "ac.ftp");
        let bd = folder.merge(&[&b, &d], "bd.ftp");
        same(&all, &folder.merge(&[&bd, &ac], "interleaved.ftp"));
        let alone = [&a, &b, &c, &d].map(|file| folder.merge(&[file], &format!("{}-1.ftp", file.file_stem().unwrap().to_str().unwrap())));
        same(&all, &folder.merge(&alone.each_ref(), "each.ftp"));
        let read = open(&all).unwrap();
        assert_eq!((read.parts.len(), read.processes.len(), read.sampled_accesses.len()), (4, 6, 6));
        assert_eq!(read.parts.iter().map(|part| part.source.as_str()).filter(|name| name.starts_with('r')).count(), 4);
    }
}

/// Check that a profile whose numbers are as recorders count them is in the merged profile as it was.
#[test]
fn a_merged_profile_has_every_row() {
    let folder = Folder::new();
    let mut profile = rank("near", 1, 2);
    profile.windows[0].round = 0;
    profile.threads[0].id = 0;
    profile.threads[0].parent = None;
    profile.processes.insert(0, Process { id: 0, ..profile.processes[0].clone() });
    profile.processes[1].pid = 77;
    let path = folder.write("rank-1.ftp", &profile);
    let merged = folder.merge(&[&path], "m.ftp");
    let others = ["meta", "hosts", "parts", "fault_periods", "bandwidth"];
    let rows = |path: &Path| dump(path).into_iter().filter(|(name, _)| !others.contains(&name.as_str())).collect::<Vec<_>>();
    assert!(rows(&path).iter().all(|(_, rows)| !rows.is_empty()), "a table without rows shows nothing");
    for ((name, rows), (_, merged)) in rows(&path).into_iter().zip(rows(&merged)) {
        assert_eq!(rows, merged, "{name}");
    }
    let (read, whole) = (open(&path).unwrap(), open(&merged).unwrap());
    // A merged profile also says whose the file was, unless that is root.
    assert_eq!(whole.owner, read.owner);
    assert_eq!(whole.meta, Metadata { rank: None, made_by: whole.meta.made_by, ..read.meta.clone() });
    assert_eq!(whole.parts[0].meta, Metadata { variables: [].into(), ..read.meta });
    assert_eq!(
        whole.fault_periods.iter().map(|period| (period.time_ns, period.part)).collect::<Vec<_>>(),
        [(900, Some(0)), (951, Some(0))]
    );
    let with_part = |mut row: Bandwidth| {
        row.part = Some(0);
        row
    };
    assert_eq!(whole.bandwidth, read.bandwidth.into_iter().map(with_part).collect::<Vec<_>>());
}

/// Check that the rows of two hosts have CPUs, nodes, memory and times of their own, and that those of one host share them.
#[test]
fn hosts_are_kept_apart() {
    let folder = Folder::new();
    let files = [("far", 0), ("near", 1), ("near", 3)].map(|(host, number)| folder.write(&format!("{number}.ftp"), &rank(host, number, 0)));
    let read = open(&folder.merge(&files.each_ref(), "m.ftp")).unwrap();
    let hosts: Vec<_> =
        read.hosts.iter().map(|host| (host.name.as_str(), host.first_node, host.nodes, host.first_cpu, host.cpus)).collect();
    assert_eq!(hosts, [("far", 0, 2, 0, 4), ("near", 2, 2, 4, 4)]);
    assert_eq!(read.machine.hostname, "far, near");
    assert_eq!(read.machine.node_cpus, [(0, vec![0, 1]), (1, vec![2, 3]), (2, vec![4, 5]), (3, vec![6, 7])].into());
    assert_eq!(read.machine.node_tiers, [(0, 1), (1, 2), (2, 1), (3, 2)].into());
    assert_eq!(read.first_touches.iter().map(|touch| (touch.cpu, touch.node)).collect::<Vec<_>>(), [(3, Some(1)), (7, None), (7, Some(3))]);
    assert_eq!(read.accesses.iter().map(|access| access.cpu).collect::<Vec<_>>(), [Some(1), Some(5), Some(5)]);
    assert_eq!(read.samples.iter().map(|sample| sample.cpu).collect::<Vec<_>>(), [1, 1, 5, 5, 5, 5]);
    assert_eq!(read.pages.iter().map(|page| page.node).collect::<Vec<_>>(), [-2, 3, 3]);
    assert_eq!(read.threads.iter().map(|thread| thread.allowed_cpus.as_deref()).collect::<Vec<_>>(), [Some("0-2,3"), None, Some("4-6,7")]);
    let policies: Vec<&str> = read.policies.values().map(|policy| policy.policy.as_str()).collect();
    assert_eq!(policies, ["local", "interleave:0-1", "local", "default", "local", "interleave:2-3"]);
    assert_eq!(read.shared_memory.values().map(|row| row.memory.as_str()).collect::<Vec<_>>(), ["00:01 77", "1/00:01 77", "1/00:01 77"]);
    // The first ranks of both hosts start when the later of them did.
    let starts: Vec<u64> = read.parts.iter().map(|part| part.meta.start_ns.unwrap().wrapping_add_signed(part.shift_ns)).collect();
    assert_eq!(starts, [(1 << 40) + 1000, (1 << 40) + 1000, (1 << 40) + 3000]);
    assert_eq!(read.processes.iter().map(|process| process.born_ns).step_by(2).collect::<Vec<_>>(), starts);
    assert_eq!((read.meta.start_ns, read.meta.end_ns), (Some((1 << 40) + 1000), Some((1 << 40) + 13_003)));
    assert_eq!(
        read.bandwidth.iter().map(|row| (row.part, row.node)).filter(|(_, node)| node % 2 == 1).collect::<Vec<_>>(),
        [(Some(0), 1), (Some(1), 3), (Some(2), 3)]
    );
    // Counters count a host, whose ranks have all seen the same.
    let counters: Vec<_> = read.counters.iter().map(|counter| (counter.node, counter.at_start, counter.at_end)).collect();
    assert_eq!(counters, [(None, 2, 23), (Some(1), 1, 20), (Some(3), 1, 23)]);
    let part_of = |process| read.part_of(process).map(|part| part.source.as_str());
    assert_eq!((part_of(0), part_of(3), part_of(4), part_of(11)), (Some("0.ftp"), Some("0.ftp"), Some("1.ftp"), Some("3.ftp")));
}

/// Check what is said for the parts together: sums, the first failure, and texts with the ranks that they are of.
#[test]
fn recordings_are_summed() {
    let folder = Folder::new();
    let files = [0, 1, 2].map(|number| {
        let mut profile = rank("near", number, 0);
        if number > 0 {
            (profile.meta.exit_code, profile.meta.signal) = (Some(128 + number as i32), Some(number as i32));
        }
        profile.meta.write_failure = (number == 2).then(|| "disk full".to_owned());
        folder.write(&format!("{number}.ftp"), &profile)
    });
    let read = open(&folder.merge(&files.each_ref(), "m.ftp")).unwrap();
    let meta = &read.meta;
    assert_eq!((meta.exit_code, meta.signal, meta.children_left, meta.threads_ran_ns), (Some(129), Some(1), 3, 15));
    assert_eq!(meta.write_failure.as_deref(), Some("rank 2 of 4: disk full"));
    assert_eq!(meta.notes, ["everywhere", "rank 0 of 4: note of 0", "rank 1 of 4: note of 1", "rank 2 of 4: note of 2"]);
    assert_eq!(meta.variables.values().collect::<Vec<_>>(), ["v0", "w", "v1", "w", "v2", "w"]);
    let hint = read.evidence.iter().find(|evidence| evidence.source == "hint").unwrap();
    assert_eq!((hint.available, hint.detail.as_str()), (true, "ranks 0 and 2 of 4: off"));
    assert_eq!((read.evidence.iter().find(|evidence| evidence.source == "touch").unwrap().samples, read.lost[0].count), (30, 3));
    assert_eq!(read.source_files["shared.c"].bytes, 2);
    let ended = |last: Profile| {
        let folder = Folder::new();
        let files = [folder.write("0.ftp", &rank("near", 0, 0)), folder.write("1.ftp", &last)];
        let meta = open(&folder.merge(&files.each_ref(), "m.ftp")).unwrap().meta;
        (meta.exit_code, meta.is_unfinished())
    };
    assert_eq!(ended(rank("near", 1, 0)), (Some(0), false));
    assert_eq!(ended(nothing("near", 1)), (None, true));
}

/// Check that a merged profile has the commands of all programs of a job, each once, as mpirun takes them, and of many the first ones.
#[test]
fn commands_of_several_programs_are_kept() {
    let command = |commands: &[&str]| {
        let folder = Folder::new();
        let part = |(number, command): (usize, &&str)| {
            let mut profile = rank("near", number as u32, 0);
            profile.meta.command = command.split(' ').map(str::to_owned).collect();
            folder.write(&format!("{number}.ftp"), &profile)
        };
        let files: Vec<PathBuf> = commands.iter().enumerate().map(part).collect();
        open(&folder.merge(&files.iter().collect::<Vec<_>>(), "m.ftp")).unwrap().meta.command.join(" ")
    };
    assert_eq!(command(&["./ocean 7", "./ocean 7", "./ice"]), "./ocean 7 : ./ice");
    assert_eq!(command(&["./x", "./x"]), "./x");
    let many: Vec<String> = (0..9).map(|number| format!("./x {number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(command(&many), format!("{} : ...", many[..8].join(" : ")));
}

/// Check that a merged profile says whose it is: the owners of the files and those that they name, whatever the steps.
#[test]
fn owners_are_kept() {
    let folder = Folder::new();
    let of = |number: u32, maker: Option<u32>| {
        let mut profile = rank("near", number, 0);
        profile.meta.made_by = maker.map(Owner::User);
        folder.write(&format!("{number}.ftp"), &profile)
    };
    let [root, one, again, other] = [of(0, None), of(1, Some(1000)), of(2, Some(1000)), of(3, Some(1001))];
    let of_files = open(&root).unwrap().owner;
    let merged = |files: &[&PathBuf], name: &str| folder.merge(files, name);
    let owner = |file: PathBuf| open(&file).unwrap().owner;
    assert_eq!(owner(merged(&[&root], "a.ftp")), of_files);
    assert_eq!(owner(merged(&[&root, &one, &again], "b.ftp")), of_files.and(Owner::User(1000)));
    assert_eq!(owner(merged(&[&one, &other], "c.ftp")), Owner::Unknown);
    let step = merged(&[&one, &again], "d.ftp");
    assert_eq!(owner(merged(&[&step, &root], "e.ftp")), of_files.and(Owner::User(1000)));
}

/// Check that a note tells of hosts of different kinds, and that a profile of many hosts names some.
#[test]
fn different_hosts_are_noted() {
    let folder = Folder::new();
    let files = ["a", "b", "c", "d"].map(|host| {
        let mut profile = rank(host, 0, 0);
        profile.machine.shared_cache_bytes = if host == "c" { 1 << 20 } else { 1 << 25 };
        folder.write(&format!("{host}.ftp"), &profile)
    });
    let read = open(&folder.merge(&files.each_ref(), "m.ftp")).unwrap();
    assert_eq!(read.machine.hostname, "a, b (+2 hosts)");
    assert_eq!(read.meta.notes.last().unwrap(), "The hosts differ in: shared cache. Those of a count for all");
    assert_eq!(read.machine.shared_cache_bytes, 1 << 25);
}

/// Check that a recording that is there twice, as a copy or in a merged profile, is named, and that nothing is written.
#[test]
fn recordings_do_not_count_twice() {
    let folder = Folder::new();
    let [a, b] = [0, 1].map(|number| folder.write(&format!("{number}.ftp"), &rank("near", number, 0)));
    let copy = folder.path("copy.ftp");
    fs::copy(&a, &copy).unwrap();
    let merged = folder.merge(&[&a, &b], "m.ftp");
    for (files, first, second) in [
        ([&a, &a], "0.ftp", "0.ftp"),
        ([&a, &copy], "0.ftp", "copy.ftp"),
        ([&merged, &b], "1.ftp (in ", "1.ftp"),
        ([&copy, &merged], "copy.ftp", "0.ftp (in "),
    ] {
        let error = folder.try_merge(&files, "twice.ftp").unwrap_err();
        let pid = if second == "1.ftp" { 501 } else { 500 };
        assert!(error.contains(first) && error.contains(second), "{error}");
        assert!(error.contains(&format!("are the same recording (process {pid} on host 'near')")), "{error}");
    }
    assert_eq!(folder.names(), ["0.ftp", "1.ftp", "copy.ftp", "m.ftp"]);
}

/// Check that an input that cannot be used is named, and that the place of the result stays as it was.
#[test]
fn nothing_is_half_written() {
    let folder = Folder::new();
    let a = folder.write("a.ftp", &rank("near", 0, 0));
    let older = folder.write("m.ftp", &rank("near", 9, 0));
    let before = fs::read(&older).unwrap();
    let text = folder.path("text.ftp");
    fs::write(&text, "no profile").unwrap();
    let damaged = folder.write("damaged.ftp", &rank("near", 1, 0));
    let connection = Connection::open(&damaged).unwrap();
    connection.execute_batch("UPDATE samples SET weight = 'heavy'").unwrap();
    drop(connection);
    let far_apart = folder.write("far-apart.ftp", &rank("near", 2, 0));
    let connection = Connection::open(&far_apart).unwrap();
    connection
        .execute_batch("UPDATE objects SET thread = -9223372036854775808; UPDATE first_touches SET thread = 9223372036854775807")
        .unwrap();
    drop(connection);
    let missing = folder.path("missing.ftp");
    let names = folder.names();
    for (bad, why) in [
        (&text, "text.ftp: it is not a firsttouch profile"),
        (&damaged, "damaged.ftp"),
        (&missing, "missing.ftp"),
        (&far_apart, "far-apart.ftp"),
    ] {
        let error = folder.try_merge(&[&a, bad], "m.ftp").unwrap_err();
        assert!(error.contains(why), "{error}");
        assert_eq!(folder.names(), names, "{error}");
        assert_eq!(fs::read(&older).unwrap(), before, "{error}");
    }
    let error = folder.try_merge(&[&a], "text.ftp").unwrap_err();
    assert!(error.contains("a file that is not a firsttouch profile is already there"), "{error}");
    assert_eq!(folder.names(), names);
    assert!(folder.try_merge(&[], "none.ftp").unwrap_err().contains("nothing to merge"));
    // An older result is replaced, and may be one of the inputs.
    let again = folder.try_merge(&[&a, &older], "m.ftp").unwrap();
    assert_eq!((again.parts.len(), again.created.replaces, folder.names()), (2, true, names));
}

/// Check that a merged profile whose rows are not those of the parts that name them is refused.
#[test]
fn rows_belong_to_their_parts() {
    for (sql, why) in [
        ("UPDATE samples SET thread = 0 WHERE id = (SELECT max(id) FROM samples)", "thread 0 is not one of the part that names it"),
        (
            "UPDATE releases SET process = (SELECT max(process) FROM releases) + (SELECT min(process) FROM releases) - process",
            "process 5 is not one of the part that names it",
        ),
        ("UPDATE first_touches SET cpu = 9 WHERE cpu = 7", "cpu 9 is not one of its host"),
        ("UPDATE pages SET node = 0 WHERE node = 3", "node 0 is not one of its host"),
        ("UPDATE shared_memory SET memory = '00:01 77'", "memory '00:01 77' is not that of host 1"),
        ("UPDATE fault_periods SET part = 1 WHERE rowid = 1", "part 1 is not one of the part that names it"),
        ("UPDATE fault_periods SET part = NULL", "the file is damaged"),
        ("UPDATE bandwidth SET part = 1 WHERE rowid = 1", "part 1 is not one of the part that names it"),
        ("UPDATE bandwidth SET node = 0 WHERE node = 2", "node 0 is not one of its host"),
    ] {
        let folder = Folder::new();
        let files = [("far", 0), ("near", 1)].map(|(host, number)| folder.write(&format!("{number}.ftp"), &rank(host, number, 0)));
        let merged = folder.merge(&files.each_ref(), "m.ftp");
        let connection = Connection::open(&merged).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        let error = folder.try_merge(&[&merged], "again.ftp").expect_err(sql);
        assert!(error.to_lowercase().contains(why) && error.contains("m.ftp"), "{error}");
        assert!(!folder.path("again.ftp").exists());
    }
}

/// Check that more nodes than a profile can have are refused.
#[test]
fn nodes_of_all_hosts_are_limited() {
    let folder = Folder::new();
    let files = ["a", "b"].map(|host| {
        let mut profile = rank(host, 0, 0);
        profile.machine.node_cpus.insert(if host == "a" { 1000 } else { 23 }, Vec::new());
        folder.write(&format!("{host}.ftp"), &profile)
    });
    let error = folder.try_merge(&files.each_ref(), "m.ftp").unwrap_err();
    assert!(error.contains("more than 1024 nodes"), "{error}");
    folder.merge(&[&files[0]], "m.ftp");
}

/// Check which files of a directory are merged: those of ranks that are not empty.
#[test]
fn directories_have_ranks() {
    let folder = Folder::new();
    let directory = folder.path("x.ftp.d");
    fs::create_dir(&directory).unwrap();
    let error = |directory: &Path| format!("{:#}", find(&[directory.to_owned()]).unwrap_err());
    assert!(error(&directory).contains("the directory has no profiles of ranks (rank-*.ftp)"));
    for name in ["job", "ended-0", "rank-0.ftp.1", "other.ftp", "rank-2.ftp"] {
        fs::write(directory.join(name), "").unwrap();
    }
    assert!(error(&directory).contains("only empty profiles of ranks"));
    let ranks = [0, 1].map(|number| write(&rank("near", number, 0), &directory.join(format!("rank-{number}.ftp"))));
    let found = find(&[directory.clone(), folder.path("y.ftp")]).unwrap();
    assert_eq!((found.files, found.empty), ([&ranks[..], &[folder.path("y.ftp")]].concat(), vec![directory.join("rank-2.ftp")]));
    assert_eq!(merged_name(&directory), Some(folder.path("x.ftp")));
    let output = output_beside(&directory).unwrap();
    for kept in [None, Some(folder.path("x.ftp.1"))] {
        let (merged, found) = merge_directory(&directory, &output).unwrap();
        assert_eq!((merged.created.path, merged.created.kept, merged.parts.len()), (folder.path("x.ftp"), kept, 2));
        assert_eq!(found.empty.len(), 1);
    }
    same(&folder.path("x.ftp"), &folder.path("x.ftp.1"));
    assert_eq!(folder.names(), ["x.ftp", "x.ftp.1", "x.ftp.d"]);
    assert_eq!((merged_name(Path::new(".ftp.d")), merged_name(Path::new("x.ftp"))), (None, None));
}

/// Numbers that look random and are the same each time (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Sets some values to others.
fn damage(path: &Path, random: &mut Random) -> Vec<String> {
    let c = Connection::open(path).unwrap();
    c.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY").unwrap();
    let names: Vec<String> = c.prepare(TABLES).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let values = [
        "NULL",
        "0",
        "1",
        "-1",
        "7",
        "1023",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775808",
        "1e300",
        "'x'",
        "'0-3'",
        "''",
    ];
    let mut change = || {
        let table = random.of(&names);
        let columns: Vec<String> = c
            .prepare("SELECT name FROM pragma_table_info(?)")
            .unwrap()
            .query_map([table], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let (column, value) = (random.of(&columns), random.of(&values));
        let sql = format!("UPDATE {table} SET {column} = {value}{}", random.of(&["", " WHERE rowid = 1", " WHERE rowid > 1"]));
        // Not all values go everywhere, and not all tables have row numbers.
        let _ = c.execute_batch(&sql);
        sql
    };
    (0..3).map(|_| change()).collect()
}

/// Check that profiles with any damage are refused, or that what is made of them can be read, and is the same whatever the order and the steps.
#[test]
fn damage_is_refused_or_harmless() {
    let folder = Folder::new();
    let base = [("far", 0), ("near", 1), ("near", 2)].map(|(host, number)| folder.write(&format!("{number}.ftp"), &rank(host, number, 0)));
    let pair = folder.merge(&[&base[0], &base[1]], "pair.ftp");
    let mut random = Random(7);
    let (mut refused, mut merged) = (0, 0);
    for round in 0..200 {
        let (one, other) = (folder.path("one.ftp"), folder.path("other.ftp"));
        fs::copy(if round % 2 == 0 { &pair } else { &base[1] }, &one).unwrap();
        fs::copy(&base[2], &other).unwrap();
        let damaged = damage(&one, &mut random);
        let Ok(whole) = folder.try_merge(&[&one, &other], "whole.ftp") else {
            refused += 1;
            continue;
        };
        merged += 1;
        let whole = whole.created.path;
        open(&whole).unwrap_or_else(|error| panic!("{damaged:?}: {error:#}"));
        for (files, name) in [([&other, &one], "turned.ftp"), ([&whole, &whole], "again.ftp")] {
            let files = if name == "again.ftp" { &files[..1] } else { &files[..] };
            let result = folder.try_merge(files, name).unwrap_or_else(|error| panic!("{damaged:?}: {error}"));
            assert!(dump(&whole) == dump(&result.created.path), "{damaged:?}: {name}");
        }
    }
    assert!(refused > 20 && merged > 20, "{refused} refused, {merged} merged");
}
