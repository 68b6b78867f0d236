// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The formats of other tools, read by these tools. Sums are compared in firsttouch-report's own tests; here, the tools have to agree.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::run;
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::skip::{lacks_tools, skipped};
use firsttouch_e2e::tool::{Firsttouch, temporary_directory, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Exports a recorded profile, and returns what was written.
fn export(firsttouch: &Firsttouch, format: &str, file: &Path) -> Vec<u8> {
    let profile = fixture("dgemv_serial");
    let outcome = run(&mut firsttouch.command(["export", text(&profile), "--to", format, "-o", text(file)]));
    assert_eq!((outcome.status, outcome.stdout.len()), (0, 0), "{format}: {outcome:?}");
    fs::read(file).expect("the export")
}

/// Check that the same profile gives the same bytes in a file and on stdout, that exports replace exports only, and the errors.
#[test]
fn files() {
    let Some(firsttouch) = Firsttouch::find("files") else { return };
    let folder = temporary_directory();
    let profile = fixture("dgemv_serial");
    for format in ["folded", "pprof", "firefox", "callgrind", "csv", "parquet", "sqlite"] {
        let file = folder.path().join(format!("out.{format}"));
        let first = export(&firsttouch, format, &file);
        assert_eq!(export(&firsttouch, format, &file), first, "{format}");
        let printed = run(&mut firsttouch.command(["export", text(&profile), "--to", format]));
        assert_eq!((printed.status, printed.stdout), (0, first), "{format}");
        let source = folder.path().join("a.c");
        fs::write(&source, "int main(void) {}\n").expect("a file");
        let refused = run(&mut firsttouch.command(["export", text(&profile), "--to", format, "-o", text(&source)]));
        assert!(refused.status == 1 && refused.stderr_text().contains("another kind of file"), "{format}: {refused:?}");
    }
    let table = fs::read_to_string(folder.path().join("out.csv")).expect("a table");
    assert!(table.starts_with("time_s,") && table.lines().next().is_some_and(|names| names.ends_with(",line")), "{table:.200}");
    assert!(table.lines().skip(1).all(|row| row.rsplit(',').next().is_some_and(|line| line.parse::<u32>().is_ok())), "{table:.400}");
    assert_eq!(fs::read(folder.path().join("out.sqlite")).expect("a copy"), fs::read(&profile).expect("the profile"));
    let unused = run(&mut firsttouch.command(["export", text(&profile), "--to", "csv", "--value", "bytes"]));
    assert!(unused.status == 2 && unused.stderr_text().contains("--value is for --to folded"), "{unused:?}");
    let unused = run(&mut firsttouch.command(["export", text(&profile), "--to", "csv", "--table", "objects"]));
    assert!(unused.status == 2 && unused.stderr_text().contains("--table is for --to parquet"), "{unused:?}");
    let remote = run(&mut firsttouch.command(["export", text(&profile), "--to", "folded", "--value", "remote-accesses"]));
    let stacks = remote.stdout_text();
    assert!(!stacks.is_empty() && stacks.lines().all(|line| line.contains(";[A];remote (node 1 to 0) ")), "{stacks}");
}

/// Check that callgrind_annotate reads the lines and their sums.
#[test]
fn callgrind_annotate() {
    if lacks_tools("callgrind_annotate", &["callgrind_annotate"]) {
        return;
    }
    let Some(firsttouch) = Firsttouch::find("callgrind_annotate") else { return };
    let folder = temporary_directory();
    let file = folder.path().join("callgrind.out.dgemv");
    let written = String::from_utf8(export(&firsttouch, "callgrind", &file)).expect("text");
    let totals: Vec<&str> = written.lines().find_map(|line| line.strip_prefix("totals: ")).expect("totals").split(' ').collect();
    let shown = run(Command::new("callgrind_annotate").args(["--auto=no", "--threshold=100"]).arg(&file));
    let shown = shown.stdout_text();
    let digits = |line: &str| line.replace([',', '(', ')'], "");
    let of_all = shown.lines().find(|line| line.contains("PROGRAM TOTALS")).map(digits).expect("totals");
    assert!(totals[..2].iter().all(|total| of_all.split_whitespace().any(|word| word == *total)), "{totals:?}: {shown}");
    assert!(shown.contains("dgemv.c:product"), "{shown}");
}

/// Check that Go's own pprof reads the sums of the CSV: all accesses, and those that are remote.
#[test]
#[ignore = "go compiles its pprof for 20 s, if it has not done so before"]
fn go_reads_pprof() {
    if lacks_tools("go_reads_pprof", &["go"]) {
        return;
    }
    let Some(firsttouch) = Firsttouch::find("go_reads_pprof") else { return };
    let folder = temporary_directory();
    let [profile, csv] = ["dgemv.pb.gz", "dgemv.csv"].map(|name| folder.path().join(name));
    export(&firsttouch, "pprof", &profile);
    let rows = String::from_utf8(export(&firsttouch, "csv", &csv)).expect("text");
    let mut sums = [0.0, 0.0];
    for row in rows.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let accesses: f64 = fields[9].parse().expect("a number");
        sums[0] += accesses;
        sums[1] += if fields[7] == "1" { accesses } else { 0.0 };
    }
    for (index, sum) in ["accesses", "remote_accesses"].into_iter().zip(sums) {
        let index = format!("-sample_index={index}");
        let shown = run(Command::new("go").args(["tool", "pprof", "-top", &index]).arg(&profile));
        let said = shown.stdout_text();
        let total = said.lines().find_map(|line| line.strip_prefix("Showing nodes accounting for ")?.split(',').next());
        let total: f64 = total.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{shown:?}"));
        // Each row is a whole number.
        assert!((total - sum).abs() <= rows.lines().count() as f64, "{index}: {total} {sum}");
    }
}

/// Reads both tables of Parquet and the CSV; prints the sums of both tables of samples, the types, and the objects.
const DUCKDB: &str = r#"
import duckdb, json, sys
samples, objects, csv = sys.argv[1:]
one = lambda query: duckdb.sql(query).fetchall()
sums = "count(*), sum(accesses), sum(bytes), sum(accesses) filter (remote), sum(accesses) filter (in_report), count(home_node), count(line)"
quotes = lambda name: name.replace("'", "''")
table = f"read_csv('{quotes(csv)}', types={{'remote': 'BOOLEAN', 'in_report': 'BOOLEAN'}})"
print(json.dumps({
    "samples": [str(x) for x in one(f"select {sums} from '{quotes(samples)}'")[0]],
    "csv": [str(x) for x in one(f"select {sums} from {table}")[0]],
    "types": [t for (t,) in one(f"select column_type from (describe select time_s, object, remote, accesses, line from '{quotes(samples)}')")],
    "objects": one(f"select object, bytes, access_share, remote_fraction, remote_low, remote_high, judged, finding from '{quotes(objects)}' order by object_id"),
    "remarks": [bytes(v).decode() for (v,) in one(f"select value from parquet_kv_metadata('{quotes(samples)}')")],
}))
"#;

/// Check that DuckDB reads both tables of Parquet: the sums of the CSV, the figures of the report, and what values do not say.
#[test]
fn duckdb_reads_parquet() {
    let found = run(Command::new(workspace_root().join("scripts/duckdb")).arg("path"));
    if found.status != 0 {
        return skipped("duckdb_reads_parquet", "not installed: DuckDB (`scripts/duckdb`)");
    }
    let Some(firsttouch) = Firsttouch::find("duckdb_reads_parquet") else { return };
    let folder = temporary_directory();
    let [samples, objects, csv] = ["samples.parquet", "objects.parquet", "samples.csv"].map(|name| folder.path().join(name));
    export(&firsttouch, "parquet", &samples);
    export(&firsttouch, "csv", &csv);
    let profile = fixture("dgemv_serial");
    let written = run(&mut firsttouch.command(["export", text(&profile), "--to", "parquet", "--table", "objects", "-o", text(&objects)]));
    assert!(written.status == 0 && written.stderr_text().contains("1 object -> "), "{written:?}");
    let read = run(Command::new(found.stdout_text().trim()).args(["-c", DUCKDB]).args([&samples, &objects, &csv]));
    assert_eq!(read.status, 0, "{read:?}");
    let read: Value = serde_json::from_slice(&read.stdout).expect("JSON");
    assert_eq!(read["samples"], read["csv"], "{read}");
    assert_eq!(read["types"], serde_json::json!(["DOUBLE", "VARCHAR", "BOOLEAN", "BIGINT", "BIGINT"]));
    assert!(
        read["remarks"].as_array().is_some_and(|all| all.iter().any(|one| one.as_str().is_some_and(|one| one.starts_with("verdict: ")))),
        "{read}"
    );
    let report = firsttouch.report_json(&profile);
    let mut of_report: Vec<&Value> = report["objects"].as_array().expect("objects").iter().collect();
    of_report.sort_by_key(|object| object["id"].as_i64());
    let of_table = read["objects"].as_array().expect("rows");
    assert_eq!(of_table.len(), of_report.len());
    for (row, object) in of_table.iter().zip(of_report) {
        let names = ["name", "bytes", "access_share", "remote_fraction"];
        assert!(names.iter().enumerate().all(|(at, name)| row[at] == object[*name]), "{row} {object}");
        assert!(
            (row[4] == object["remote_interval"][0]) && (row[5] == object["remote_interval"][1]) && row[6] == object["judged"],
            "{row}"
        );
    }
    assert!(of_table.iter().any(|row| row[7] == "serial-first-touch"), "{read}");
}

/// Check that each view is a picture of its own: well-formed, with the report's figures, without anything from elsewhere; and that names stay text.
#[test]
fn single_views() {
    let Some(firsttouch) = Firsttouch::find("single_views") else { return };
    let folder = temporary_directory();
    let hostile = folder.path().join("hostile.ftp");
    fs::copy(fixture("dgemv_serial"), &hostile).expect("a copy");
    let database = rusqlite::Connection::open(&hostile).expect("a profile");
    let name = "</text><script>alert(1)</script>&";
    database.execute("UPDATE objects SET name = ?1, kind = 'static', call = NULL, site = NULL", [name]).expect("names");
    drop(database);
    for profile in [&fixture("dgemv_serial"), &hostile] {
        for view in ["map", "objects", "remote", "time", "machine"] {
            let file = folder.path().join(format!("{view}.svg"));
            let outcome = run(&mut firsttouch.command(["report", text(profile), "--svg", view, "-o", text(&file)]));
            assert_eq!((outcome.status, outcome.stdout.len()), (0, 0), "{view}: {outcome:?}");
            let drawn = fs::read_to_string(&file).expect("a picture");
            let document = roxmltree::Document::parse(&drawn).unwrap_or_else(|error| panic!("{view}: {error}"));
            let elements = || document.descendants().filter(roxmltree::Node::is_element);
            let in_svg = |node: roxmltree::Node<'_, '_>| node.tag_name().namespace() == Some("http://www.w3.org/2000/svg");
            assert!(elements().all(in_svg) && !elements().any(|node| node.has_tag_name("script")), "{view}");
            assert!(!drawn.contains("var(") && !drawn.contains("href") && !drawn.contains("@import"), "{view}");
            let shown: Vec<&str> = elements().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
            let expected = match view {
                "time" => "Remote part of the accesses",
                "machine" => "50 %",
                "map" => "used by",
                _ if profile == &hostile => name,
                _ => "A",
            };
            assert!(shown.iter().any(|one| one.replace('\u{a0}', " ") == expected), "{view}: {shown:?}");
        }
    }
    let profile = fixture("dgemv_serial");
    for (view, status, words) in [("pie", 2, "choose from map, map:OBJECT"), ("map:B", 1, "no object 'B' has a map; there are A")] {
        let refused = run(&mut firsttouch.command(["report", text(&profile), "--svg", view]));
        assert!(refused.status == status && refused.stderr_text().contains(words), "{view}: {refused:?}");
    }
}
