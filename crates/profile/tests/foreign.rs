//! Profiles that somebody made to do harm.

use firsttouch_profile::{Writer, open};
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A whole profile, changed by SQL. Returns the error of reading it.
fn refusal(sql: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    Writer::create(&path).unwrap().finish().unwrap();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let started = Instant::now();
    let error = open(&path).err().map(|error| format!("{error:#}"));
    assert!(started.elapsed() < Duration::from_secs(5), "{sql}: {:?}", started.elapsed());
    error
}

/// Check that a view in the place of a table is not computed, nor a column that computes, and that other views and triggers do nothing.
#[test]
fn tables_are_tables() {
    let endless = "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r)";
    for (sql, why) in [
        (
            format!(
                "DROP TABLE releases; CREATE VIEW releases AS {endless} SELECT a AS process, a AS time_ns, a AS address, a AS bytes FROM r"
            ),
            "'releases' is a view, and a profile has a table",
        ),
        (
            "DROP TABLE sites; CREATE TABLE sites (id INTEGER PRIMARY KEY, process INTEGER AS (abs(id)))".to_owned(),
            "table 'sites' has 'process INTEGER AS (abs(id))' where this version of the format has 'process INTEGER NOT NULL'",
        ),
        ("ALTER TABLE lost ADD COLUMN more TEXT".to_owned(), "table 'lost' has 'more TEXT' where"),
        (
            "DROP TABLE sites; CREATE TABLE Sites (id INTEGER PRIMARY KEY, process INTEGER NOT NULL)".to_owned(),
            "has 'CREATE TABLE Sites' where",
        ),
    ] {
        let error = refusal(&sql).expect(&sql);
        assert!(error.starts_with("cannot read profile ") && error.contains(why), "{error}");
    }
    assert_eq!(refusal(&format!("CREATE VIEW own AS {endless} SELECT a FROM r; CREATE INDEX fast ON releases(address)")), None);
}

/// Check that the pages of a file whose writer did not close it are checked one by one: here, two tables have the same page.
#[test]
fn unfinished_files_are_checked_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    Writer::create(&path).unwrap().finish().unwrap();
    let same = "PRAGMA writable_schema = 1;
        UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'releases') WHERE name = 'appeared'";
    Connection::open(&path).unwrap().execute_batch(same).unwrap();
    assert!(open(&path).is_ok(), "nothing is in the two tables");
    fs::write(folder.path().join("p.ftp-wal"), "").unwrap();
    let error = format!("{:#}", open(&path).unwrap_err());
    assert!(error.contains("the file is damaged or incomplete") && error.contains("2nd reference to page"), "{error}");
}

/// Check that a node that no Linux has is refused: tables by node have a row and a column for each.
#[test]
fn nodes_are_limited() {
    let page = |node: i64| format!("INSERT INTO pages VALUES (1, NULL, 4096, 1, {node}, 4096)");
    assert_eq!(refusal(&page(1023)), None);
    assert_eq!(refusal(&page(-14)), None);
    let error = refusal(&page(40_000)).unwrap();
    assert!(error.contains("table pages has node 40000, and Linux has nodes 0 to 1023 at most"), "{error}");
}

/// Check that hosts and parts that cannot be those of a merged profile are refused: others find rows, nodes and CPUs by them.
#[test]
fn hosts_and_parts_are_checked() {
    let host = |id: i64, node: i64, nodes: i64, cpu: i64, cpus: i64| {
        format!("INSERT INTO hosts VALUES ({id}, 'h', {node}, {nodes}, {cpu}, {cpus});")
    };
    let firsts = |process: i64| format!("{process}, 0, 0, 0, 0, 0, 0, 0, 0");
    let part = |id: i64, host: i64, process: i64| {
        format!("INSERT INTO parts VALUES ({id}, {host}, 'f', 0, {}, '{{}}', '{}', '[]', '[]', '[]');", firsts(process), machine())
    };
    let sound = format!("{}{}{}{}", host(0, 0, 2, 0, 4), host(1, 2, 1022, 4, 2_000_000_000), part(0, 1, 0), part(1, 0, 5));
    assert_eq!(refusal(&sound), None);
    let period = |part: &str| format!("{sound}INSERT INTO fault_periods VALUES (1, 1, {part})");
    assert_eq!(refusal(&period("1")), None);
    let bandwidth = |node: &str, part: &str| format!("{sound}INSERT INTO bandwidth VALUES ('uncore', {node}, 1, 2, 3, NULL, NULL, {part})");
    assert_eq!(refusal(&bandwidth("0", "1")), None);
    for (sql, why) in [
        (host(0, 0, 2, 0, 4), "it has 1 hosts and 0 parts"),
        (host(1, 0, 2, 0, 4) + &part(0, 1, 0), "not numbered 0, 1, 2, ..."),
        (host(0, 0, 2, 0, 4) + &part(0, 0, 0) + &part(2, 0, 0), "not numbered 0, 1, 2, ..."),
        (host(0, 0, 2, 0, 4) + &part(0, 1, 0), "part 0 is of host 1, which it does not have"),
        (host(0, 0, 2, 0, 4) + &part(0, -1, 0), "part 0 is of host -1, which it does not have"),
        (host(0, 0, 2, 0, 4) + &host(1, 1, 2, 4, 4) + &part(0, 0, 0), "two hosts have the same nodes or CPUs"),
        (host(0, 0, 2, 0, 4) + &host(1, 2, 2, 3, 4) + &part(0, 0, 0), "two hosts have the same nodes or CPUs"),
        (host(0, 1000, 25, 0, 4) + &part(0, 0, 0), "the nodes or CPUs of host 0 have numbers that no machine has"),
        (host(0, 4_294_967_295, 1, 0, 4) + &part(0, 0, 0), "the nodes or CPUs of host 0 have numbers that no machine has"),
        (host(0, 0, 1, 4_294_967_295, 1) + &part(0, 0, 0), "the nodes or CPUs of host 0 have numbers that no machine has"),
        (host(0, 0, 4_294_967_296, 0, 1) + &part(0, 0, 0), "out of range"),
        (host(0, 0, 2, 0, 4) + &part(0, 0, 5) + &part(1, 0, 4), "the numbers of its parts are not in order"),
        (sound.replace("'[]', '[]', '[]'", "'[]', '[]', '7'"), "column counters of part 0 is not readable"),
        (sound.replace("'{}'", "'{\"rank\": 1}'"), "column meta of part 0 is not readable"),
        (period("2"), "table fault_periods has part Some(2)"),
        (period("NULL"), "table fault_periods has part None"),
        (bandwidth("0", "2"), "table bandwidth has part Some(2)"),
        (bandwidth("1024", "0"), "table bandwidth has node 1024"),
    ] {
        let error = refusal(&sql).expect(&sql);
        assert!(error.contains(why), "{error}, not {why}");
    }
}

fn machine() -> String {
    serde_json::to_string(&firsttouch_model::rows::Machine::default()).unwrap()
}

/// Check that a text of more than 16 MiB is refused.
#[test]
fn texts_are_limited() {
    let error = refusal("INSERT INTO meta VALUES ('command', replace(hex(zeroblob(9000000)), '0', 'a'))").unwrap();
    assert!(error.contains("too big"), "{error}");
}

const PAGE: usize = 4096;
const CHILDREN: usize = 300;

/// An inner page of a table (https://www.sqlite.org/fileformat.html, section 1.6) all of whose children are one page.
fn inner_page(child: u32) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let mut content = PAGE;
    for cell in 0..CHILDREN {
        content -= 6;
        page[content..content + 4].copy_from_slice(&child.to_be_bytes());
        // The largest row below it, in two bytes of seven bits.
        page[content + 4..content + 6].copy_from_slice(&[0x80 | (cell >> 7) as u8, (cell & 0x7f) as u8]);
        page[12 + 2 * cell..14 + 2 * cell].copy_from_slice(&(content as u16).to_be_bytes());
    }
    page[0] = 5;
    page[3..5].copy_from_slice(&(CHILDREN as u16).to_be_bytes());
    page[5..7].copy_from_slice(&(content as u16).to_be_bytes());
    page[8..12].copy_from_slice(&child.to_be_bytes());
    page
}

fn page_number(path: &Path, sql: &str) -> u32 {
    Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Check that a table whose pages lead to each other again and again, and so has 300^8 rows in some kilobytes, is given up.
#[test]
fn rows_are_bounded_by_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    Writer::create(&path).unwrap().finish().unwrap();
    let fill =
        "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r WHERE a < 20000) INSERT INTO releases SELECT a, a, a, a FROM r";
    Connection::open(&path).unwrap().execute_batch(fill).unwrap();
    let root = page_number(&path, "SELECT rootpage FROM sqlite_schema WHERE name = 'releases'");
    let mut bytes = fs::read(&path).unwrap();
    let mut set = |number: u32, page: Vec<u8>| bytes[(number as usize - 1) * PAGE..number as usize * PAGE].copy_from_slice(&page);
    // The leaves follow the tables' first pages.
    let first = page_number(&path, "SELECT max(rootpage) + 1 FROM sqlite_schema");
    set(root, inner_page(first));
    for level in 0..8 {
        set(first + level, inner_page(first + level + 1));
    }
    fs::write(&path, bytes).unwrap();
    let started = Instant::now();
    let error = format!("{:#}", open(&path).unwrap_err());
    assert!(error.contains("interrupted") || error.contains("malformed"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
