// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `map` on this machine: other commands can read the files that it saves, and it reports files that it cannot write.

#![allow(clippy::unwrap_used, reason = "this file is a test")]

use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, temporary_directory, text};
use serde_json::Value;
use std::fs;

/// Arguments of a quick scan. The arrays are tiny, so the figures are those of the caches.
const QUICK: [&str; 8] = ["map", "--runs", "3", "--spread", "50%", "--size", "1M", "--kernels"];

/// Check that a saved description has the printed figures, and that `topology` reads the saved memory attributes.
#[test]
fn saved_for_others() {
    let Some(firsttouch) = Firsttouch::find("saved_for_others") else { return };
    let folder = temporary_directory();
    let [machine, attributes] = ["own.toml", "own.xml"].map(|name| folder.path().join(name));
    let mapped = run(firsttouch.command(QUICK).args(["read,triad,write", "--json", "--save", text(&machine), "--xml", text(&attributes)]));
    assert_eq!(mapped.status, 0, "{mapped:?}");
    let map: Value = serde_json::from_slice(&mapped.stdout).unwrap();
    let table = |name: &str| map["tables"].as_array().unwrap().iter().find(|table| table["name"] == name).unwrap();
    let figure = |name: &str| table(name)["cells"][0]["best"]["value"].as_f64().unwrap();

    let shown = run(&mut firsttouch.command(["machines", "show", text(&machine), "--json"]));
    assert_eq!(shown.status, 0, "{shown:?}");
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["name"], "own", "{shown:#}");
    let written = fs::read_to_string(&machine).unwrap();
    assert!(
        written.contains(&format!("  [{:.3}", figure("triad"))) && written.contains(&format!("  [{:.3}", figure("latency"))),
        "{written}"
    );

    let read_back = run(&mut firsttouch.command(["topology", "--input", text(&attributes), "--json"]));
    assert_eq!(read_back.status, 0, "{read_back:?}");
    let read_back: Value = serde_json::from_slice(&read_back.stdout).unwrap();
    let access = &read_back["nodes"][0]["access"][0];
    for (name, key) in [("read", "read_bandwidth_mib_s"), ("write", "write_bandwidth_mib_s")] {
        let (reported, measured) = (access[key].as_f64().unwrap(), figure(name) * 1e9 / 1_048_576.0);
        assert!((reported - measured).abs() <= 1.0, "{name}: {reported} and {measured}: {access:#}");
    }
    assert!(fs::read_to_string(&attributes).unwrap().contains("<memattr name=\"Latency\" flags=\"6\">"));
}

/// Check the output: with the file name `-`, the file replaces the table on stdout.
#[test]
fn printed() {
    let Some(firsttouch) = Firsttouch::find("printed") else { return };
    let table = run(firsttouch.command(QUICK).args(["read", "--pairs-only"]));
    assert!(table.status == 0 && table.stdout_text().contains("\nread, GB/s (only reads)\n"), "{table:?}");
    assert!(table.stdout_text().contains("spread at most"), "{table:?}");
    let saved = run(firsttouch.command(QUICK).args(["read", "--pairs-only", "--save", "-"]));
    assert!(saved.status == 0 && saved.stdout_text().starts_with("schema = \"firsttouch.machine/1\"\n"), "{saved:?}");
    assert!(!saved.stdout_text().contains("spread at most"), "{saved:?}");
}

/// Check that the error names a file that cannot be written.
#[test]
fn not_writable() {
    let Some(firsttouch) = Firsttouch::find("not_writable") else { return };
    let outcome = run(firsttouch.command(QUICK).args(["read", "--pairs-only", "--save", "/no/such/folder/a.toml"]));
    assert_clear_error(&outcome, &[1], &["/no/such/folder/a.toml"]);
}
