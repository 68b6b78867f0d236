use super::{Reader, WHOLE_EACH, Writer};
use crate::snapshot::*;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn process(pid: i32, tick: u64) -> ProcessRow {
    let share = rounded(0.4 + (tick % 7) as f64 / 100.0);
    ProcessRow {
        pid,
        parent: 1,
        user: "me".into(),
        name: format!("program{pid}"),
        command: format!("/usr/bin/program{pid} --with some=arguments"),
        state: 'S',
        threads: 20,
        cpu: Some(rounded(0.03 * ((tick * 31 + pid.unsigned_abs() as u64) % 17) as f64)),
        resident_bytes: (1 << 30) + (tick * 4096),
        nodes: Some(BTreeMap::from([(0, 1 << 29), (1, (1 << 29) + tick * 4096)])),
        remote: if pid % 10 == 0 {
            Remote {
                share: Some(share),
                interval: Some([share - 0.05, share + 0.05].map(rounded)),
                samples: 900 + tick,
                source: Some("sample".into()),
                ..Remote::default()
            }
        } else {
            Remote::unknown("not sampled")
        },
        ..ProcessRow::default()
    }
}

fn snapshot(tick: u64) -> Snapshot {
    Snapshot {
        schema: SCHEMA.to_owned(),
        time_s: 1_795_689_602.5 + 2.0 * tick as f64,
        window_s: 10.0,
        host: "nine".into(),
        machine: JudgedMachine { name: "virtual:2".into(), nodes: 2, is_virtual: true },
        nodes: (0..2)
            .map(|node| NodeRow { node, cpus: 8, cpu: Some(0.5), memory_free_bytes: Some((9 << 30) - tick), ..NodeRow::default() })
            .collect(),
        processes: (1..=50).filter(|pid| tick % 5 != 3 || *pid != 7).map(|pid| process(100 + pid, tick)).collect(),
        detail: (tick % 4 == 1).then(|| Detail {
            pid: 110,
            name: "program110".into(),
            threads: (0..3).map(|tid| ThreadRow { tid, state: 'R', remote: Some(0.5), ..ThreadRow::default() }).collect(),
            objects: vec![ObjectRow { id: 3, name: "A".into(), pages_by_node: vec![1.0, 0.0], ..ObjectRow::default() }],
            mappings: vec![MappedMemory { id: 1 << 46, nodes: BTreeMap::from([(0, 5)]), ..MappedMemory::default() }],
            matrix: vec![vec![0.5, 0.0], vec![0.25, 0.25]],
            ..Detail::default()
        }),
        notes: if tick.is_multiple_of(3) { vec!["a note".into()] } else { Vec::new() },
        ..Snapshot::default()
    }
}

fn record(path: &Path, count: u64) -> Vec<Snapshot> {
    let all: Vec<Snapshot> = (0..count).map(snapshot).collect();
    let mut writer = Writer::create(path).unwrap();
    all.iter().for_each(|one| writer.add(one).unwrap());
    all
}

/// Check that snapshots are read as they were written, forwards, backwards, by leaps, and while they are still written.
#[test]
fn records_are_exact() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fttop");
    let all = record(&path, WHOLE_EACH + 44);
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.fttop"], "one file");
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.count(), all.len());
    let order = (0..all.len()).chain((0..all.len()).rev()).chain([299, 0, 255, 256, 257, 3, 290]);
    for at in order {
        assert_eq!(reader.at(at).unwrap(), all[at], "snapshot {at}");
    }
    assert!(reader.at(all.len()).is_err());
    let path = folder.path().join("b.fttop");
    let mut writer = Writer::create(&path).unwrap();
    writer.add(&all[5]).unwrap();
    assert_eq!(Reader::open(&path).unwrap().at(0).unwrap(), all[5]);
    assert!(Writer::create(&path).is_err_and(|error| format!("{error:#}").contains("another firsttouch is writing it")));
    writer.add(&all[6]).unwrap();
}

/// Check that two days at 2 s take less than 100 MB in the worst case: 50 processes of which all do something and change their memory all the time.
#[test]
fn records_are_small() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fttop");
    let all = record(&path, 1024);
    let bytes = fs::metadata(&path).unwrap().len() / all.len() as u64;
    let two_days = bytes * 2 * 86_400 / 2;
    assert!(two_days < 100_000_000, "{bytes} bytes a snapshot");
}

/// Check that an older record is kept, and that anything else stays as it is.
#[test]
fn files_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fttop");
    record(&path, 3);
    let writer = Writer::create(&path).unwrap();
    let kept = writer.kept().unwrap().to_owned();
    drop(writer);
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.fttop.1"], "a record without snapshots is removed");
    assert_eq!(kept, folder.path().join("a.fttop.1"));
    assert_eq!(Reader::open(&kept).unwrap().count(), 3);
    let text = folder.path().join("notes.txt");
    fs::write(&text, "mine").unwrap();
    assert!(Writer::create(&text).is_err_and(|error| format!("{error:#}").contains("another kind of file is already there")));
    assert_eq!(fs::read_to_string(&text).unwrap(), "mine");
    assert!(Writer::create(folder.path()).is_err());
    assert!(Writer::create(&folder.path().join("none/a.fttop")).is_err());
}

fn refusal(path: &Path) -> String {
    match Reader::open(path) {
        Err(error) => format!("{error:#}"),
        Ok(mut reader) => (0..reader.count()).find_map(|at| reader.at(at).err()).map_or("ok".into(), |error| format!("{error:#}")),
    }
}

/// Check the table of files that are no records, or damaged ones.
#[test]
fn damaged_and_foreign_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fttop");
    assert!(refusal(&path).contains("cannot open record"));
    for other in [Path::new("/dev/null"), folder.path()] {
        assert!(refusal(other).contains("it is not a regular file"), "{}", refusal(other));
    }
    for (bytes, words) in [(&b""[..], "it is no record"), (b"hello", "it is no record"), (&[b'S'; 200], "it is no record")] {
        fs::write(&path, bytes).unwrap();
        assert!(refusal(&path).contains(words), "{}", refusal(&path));
    }
    fs::remove_file(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(other);
    assert!(refusal(&path).contains("but no record of 'firsttouch top'"), "{}", refusal(&path));
    for (change, words) in [
        ("PRAGMA user_version = 9", "it has version 9, and this firsttouch reads version 2"),
        ("DELETE FROM ticks", "it has no snapshots"),
        ("DELETE FROM ticks WHERE id = 1", "its beginning is missing"),
        ("DELETE FROM ticks WHERE id = 2", "snapshots are missing in its middle"),
        ("UPDATE ticks SET changes = x'ff' WHERE id = 3", "snapshot 3 of record"),
        ("UPDATE ticks SET changes = x'' WHERE id = 1", "snapshot 1 of record"),
        ("UPDATE ticks SET changes = 'text' WHERE id = 2", "snapshot 2 of record"),
        ("DELETE FROM names WHERE id = 5", "a name is missing"),
        ("UPDATE names SET name = 'processes[pid=x]' WHERE name LIKE 'processes[pid=101]'", "a row without a number"),
        ("UPDATE names SET name = 'a[99999999]' WHERE name = 'cpu'", "a list that is too long"),
        ("UPDATE names SET name = 'firsttouch.top/9' WHERE name = 'firsttouch.top/1'", "a snapshot of another schema"),
        ("UPDATE names SET name = 'program102' WHERE name = 'program101'", "its checksum is wrong"),
        ("UPDATE ticks SET checksum = checksum + 1 WHERE id = 2", "its checksum is wrong"),
        ("DROP TABLE names; CREATE VIEW names AS SELECT 1 AS id, 'x' AS name", "'names' is a view"),
        ("DROP TABLE names", "no such table"),
    ] {
        let path = folder.path().join("b.fttop");
        let _ = fs::remove_file(&path);
        record(&path, 4);
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        assert!(refusal(&path).contains(words), "{change}: {}", refusal(&path));
    }
}

/// Check that a record with any byte changed, or cut anywhere, gives an error or the snapshots that were recorded, and no panic.
#[test]
fn damage_anywhere_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fttop");
    let all = record(&path, 3);
    let whole = fs::read(&path).unwrap();
    let damaged = folder.path().join("b.fttop");
    for at in (0..whole.len()).step_by(whole.len() / 150) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&damaged, &bytes).unwrap();
        if let Ok(mut reader) = Reader::open(&damaged) {
            for number in 0..reader.count() {
                assert!(reader.at(number).is_ok_and(|found| all.get(number) == Some(&found)) || reader.at(number).is_err(), "byte {at}");
            }
        }
        fs::write(&damaged, &whole[..at]).unwrap();
        refusal(&damaged);
    }
}
