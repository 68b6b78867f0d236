// SPDX-License-Identifier: Apache-2.0 OR MIT
//! docs/limits.md: its numbers are those of the constants, and firsttouch says what it quotes.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::run;
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::tool::{Firsttouch, assert_no_panic, temporary_directory, text};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

/// The cells of a row of the tables.
fn rows(document: &str) -> Vec<Vec<&str>> {
    let rows = document.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---") && !line.contains("| constant |"));
    rows.map(|line| line.trim_matches('|').split(" |").map(str::trim).collect()).collect()
}

/// A number as the table has it (`16 MiB`, `65,536`, `below 1,024`) or as Rust has it (`16 << 20`, `65_536`).
fn number(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split([' ', ';']).skip_while(|word| !word.starts_with(|c: char| c.is_ascii_digit())).collect();
    let digits = |word: &str| word.replace([',', '_'], "").parse::<u64>().ok();
    let first = digits(words.first()?)?;
    Some(match words.get(1..) {
        Some(["<<", shift, ..]) => first << digits(shift)?,
        Some([unit, ..]) => {
            let power = ["B", "KiB", "MiB", "GiB"].iter().position(|one| one == &unit.trim_end_matches(',')).unwrap_or(0);
            first << (10 * power)
        }
        _ => first,
    })
}

#[test]
fn the_numbers_are_those_of_the_constants() {
    let document = fs::read_to_string(workspace_root().join("docs/limits.md")).expect("docs/limits.md");
    let mut compared = 0;
    for row in rows(&document) {
        let [input, limit, _, constant] = row.as_slice() else { panic!("{row:?} has not four cells") };
        let Some((name, file)) = constant.trim_start_matches('[').trim_end_matches(')').split_once("](../") else { continue };
        let source = fs::read_to_string(workspace_root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let line = source.lines().find(|line| line.contains(&format!("const {name}:"))).unwrap_or_else(|| panic!("{file} has no {name}"));
        let value = line.split('=').nth(1).and_then(number).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(number(limit), Some(value), "{input}: {limit}, and {line}");
        compared += 1;
    }
    assert!(compared >= 55, "{compared}");
}

/// Check that firsttouch says each quoted error, within its time.
#[test]
fn the_errors_are_those_of_the_table() {
    let Some(firsttouch) = Firsttouch::find("the_errors_are_those_of_the_table") else { return };
    let directory = temporary_directory();
    let folder = directory.path();
    let document = fs::read_to_string(workspace_root().join("docs/limits.md")).expect("docs/limits.md");
    let quoted: BTreeSet<&str> = rows(&document).iter().filter_map(|row| row.get(2)?.split('"').nth(1)).collect();
    let mut said = BTreeSet::new();
    record(&firsttouch, folder);
    for (words, status, error) in cases(folder) {
        let outcome = run(firsttouch.command(words.split(' ')).current_dir(folder));
        assert_no_panic(&outcome);
        assert_eq!(outcome.status, status, "{words}: {outcome:?}");
        assert!(outcome.messages().contains(error), "{words}: {outcome:?}");
        assert!(outcome.wall.as_secs() < 2, "{words}: {outcome:?}");
        said.insert(error);
    }
    assert_eq!(quoted, said);
}

/// Command lines, their exit status and error. Makes their files.
fn cases(folder: &Path) -> Vec<(String, i32, &'static str)> {
    let sparse = |name: &str, mib: u64| File::create(folder.join(name)).and_then(|file| file.set_len((mib << 20) + 1)).expect("a file");
    sparse("machine.toml", 16);
    sparse("plan.toml", 64);
    sparse("hwloc.xml", 256);
    sparse("report.json", 1024);
    let write = |name: &str, text: String| fs::write(folder.join(name), text).expect("a file");
    let deep = "<object type=\"Machine\">".repeat(257) + &"</object>".repeat(257);
    write("deep.xml", format!("<topology version=\"2.0\">{deep}</topology>"));
    write("deep.toml", format!("x = {}{}", "[".repeat(3000), "]".repeat(3000)));
    write("deep.json", "[".repeat(3000) + &"]".repeat(3000));
    let machine = fs::read_to_string(workspace_root().join("machines/epyc-7451x2.toml")).expect("a machine");
    let with = |key: &str, value: u32| {
        let lines = machine.lines().map(|line| match line.strip_prefix(key).filter(|rest| rest.starts_with([' ', '='])) {
            Some(_) => format!("{key} = {{ value = {value}, source = \"assumed\" }}"),
            None => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    write("nodes.toml", with("count", 1025));
    write("cores.toml", with("cores", 4097));
    let links = |from: u32, to: u32| format!("[[links]]\nfrom = {from}\nto = {to}\ngb_per_s = {{ value = 1.0, source = \"assumed\" }}\n");
    let row: String = (1..1024).flat_map(|node| [links(node - 1, node), links(node, node - 1)]).collect();
    let one = fs::read_to_string(workspace_root().join("machines/a64fx.toml")).expect("a machine");
    let nodes = one.split("[interconnect]").next().unwrap_or_default().replace("count = { value = 4,", "count = { value = 1024,");
    write("row.toml", format!("{nodes}\n{row}"));
    let two_packages = fs::read_to_string(workspace_root().join("fixtures/hwloc/two-packages.xml")).expect("a topology");
    let changed = |from: &str, to: &str| {
        assert!(two_packages.contains(from), "{from}");
        two_packages.replacen(from, to, 1)
    };
    write("node.xml", changed("type=\"NUMANode\" os_index=\"1\"", "type=\"NUMANode\" os_index=\"1024\""));
    write("cpu.xml", changed("type=\"PU\" os_index=\"1\"", "type=\"PU\" os_index=\"8192\""));
    plans(folder);
    profiles(folder);
    let run = |name: &str| format!("run --plan {name} -- /bin/true");
    vec![
        (run("/dev/zero"), 1, "it is not a regular file"),
        ("machines show machine.toml".to_owned(), 1, "it is larger than 16 MiB"),
        ("machines show nodes.toml".to_owned(), 1, "is not a whole number up to 1024"),
        ("machines show cores.toml".to_owned(), 1, "is not a whole number up to 4096"),
        ("machines show row.toml".to_owned(), 1, "the ways between all nodes have more than 16777216 links"),
        ("topology -i hwloc.xml".to_owned(), 1, "it is larger than 256 MiB"),
        ("report --machine node.xml good.ftp".to_owned(), 1, "machines with node numbers below 1024 can be judged"),
        ("topology -i cpu.xml".to_owned(), 1, "a PU has no valid os_index"),
        ("topology -i deep.xml".to_owned(), 1, "nested more than 256 deep"),
        (run("plan.toml"), 1, "it is larger than 64 MiB"),
        (run("entries.toml"), 1, "more than 1024 entries"),
        (run("nodes-of.toml"), 1, "nodes must be 1 to 1024"),
        (run("threads.toml"), 1, "count must be 1 to 65536"),
        (run("frames.toml"), 1, "a site has 1 to 256 frames"),
        (run("ranks.toml"), 1, "for 1 to 4096 ranks"),
        (run("parts.toml"), 1, "needs 1 to 4096 threads"),
        (run("deep.toml"), 1, "max recursion depth met"),
        ("diff report.json report.json".to_owned(), 1, "it is larger than 1 GiB"),
        ("diff deep.json deep.json".to_owned(), 1, "recursion limit exceeded"),
        ("report view.ftp".to_owned(), 1, "is a view, and a profile has a table"),
        ("report column.ftp".to_owned(), 1, "where this version of the format has"),
        ("top --replay list.fttop".to_owned(), 1, "a list that is too long"),
        ("top --replay deep.fttop".to_owned(), 1, "cells that lie too deep"),
        ("top --replay column.fttop".to_owned(), 1, "where this version of the format has"),
        ("report text.ftp".to_owned(), 1, "string or blob too big"),
        ("report node.ftp".to_owned(), 1, "Linux has nodes 0 to 1023 at most"),
        ("merge many-nodes.ftp other-host.ftp -o merged.ftp".to_owned(), 1, "the hosts have more than 1024 nodes"),
        ("run --membind 65536 -- /bin/true".to_owned(), 2, "numbers end at 65535"),
        // All CPUs of this machine, at least two, as often as an argument can say it.
        (format!("run --pin {} -- /bin/true", vec!["N"; 40_000].join("@")), 2, "this asks for more than 65536 threads"),
        ("report --machine virtual:65 node.ftp".to_owned(), 2, "virtual machines have 1 to 64 nodes"),
    ]
}

/// Plans beyond one limit each.
fn plans(folder: &Path) {
    let plan = |name: &str, nodes: u32, threads: u32, places: &str| {
        let head = format!("schema = \"firsttouch.plan/1\"\nnodes = {nodes}\n[threads]\ncount = {threads}\npin = \"spread\"\n");
        let module = "[[module]]\nname = \"a\"\npath = \"/bin/true\"\n";
        fs::write(folder.join(name), head + module + places).expect("a plan");
    };
    let place = |policy: &str, frames: usize| {
        let frames = "{ module = \"a\", offset = 1 }, ".repeat(frames);
        format!("[[place]]\nwhat = \"A\"\npolicy = {policy}\ncall = \"malloc\"\nframes = [{frames}]\n")
    };
    plan("entries.toml", 2, 2, &place("\"interleave\"", 1).repeat(1025));
    plan("nodes-of.toml", 1025, 2, "");
    plan("threads.toml", 2, 65_537, "");
    plan("frames.toml", 2, 2, &place("\"interleave\"", 257));
    plan("ranks.toml", 2, 2, &format!("[ranks]\nnodes = 2\nof_rank = [{}]\n", "[0], ".repeat(4097)));
    plan("parts.toml", 2, 2, &place(&format!("\"blocked\"\nthreads = [{}]", "0, ".repeat(4097)), 1));
}

/// Records of `top` beyond one limit each.
fn record(firsttouch: &Firsttouch, folder: &Path) {
    let whole = folder.join("whole.fttop");
    let outcome = run(&mut firsttouch.command(["top", "-n", "2", "-d", "100ms", "--json", "--record", text(&whole)]));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let deep = "a.".repeat(20);
    for (name, sql) in [
        ("list", "UPDATE names SET name = 'a[99999999]' WHERE name = 'cpu'"),
        ("deep", &format!("UPDATE names SET name = '{deep}' WHERE name = 'cpu'")),
        ("column", "ALTER TABLE names ADD COLUMN more TEXT"),
    ] {
        let file = folder.join(format!("{name}.fttop"));
        fs::copy(&whole, &file).expect("a record");
        Connection::open(&file).and_then(|record| record.execute_batch(sql)).expect("a change");
    }
}

/// Profiles beyond one limit each.
fn profiles(folder: &Path) {
    let change = |name: &str, sql: &str| {
        fs::copy(fixture("serial_loop"), folder.join(name)).expect("a recorded profile");
        Connection::open(folder.join(name)).and_then(|profile| profile.execute_batch(sql)).expect("a change");
    };
    change("view.ftp", "DROP TABLE lost; CREATE VIEW lost AS SELECT 1 AS source, 1 AS reason, 1 AS count");
    change("good.ftp", "");
    change("column.ftp", "ALTER TABLE objects ADD COLUMN more TEXT");
    let machine = |host: &str, node: u32| {
        format!(
            "UPDATE machine SET value = '{host}' WHERE key = 'hostname'; UPDATE machine SET value = '{{\"{node}\": [0]}}' WHERE key = 'node_cpus'"
        )
    };
    change("many-nodes.ftp", &machine("a", 1000));
    change("other-host.ftp", &machine("b", 23));
    change("text.ftp", "UPDATE threads SET name = hex(zeroblob(9000000))");
    change("node.ftp", "INSERT INTO counters VALUES ('x', 1024, 0, 0)");
}
