// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records the profiles in fixtures/profiles again: `record-profiles [NAME...]`, by default all. Needs sqlite3. The profiles are samples:
//! run `make e2e E2E='check:: diff:: plan:: predict::'` afterwards, and record a profile again if its samples fail a test by chance.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::run;
use firsttouch_e2e::recorded::{fixture, names, record};
use firsttouch_e2e::tool::{Firsttouch, temporary_directory, text};
use std::process::Command;

/// Replaces the repository's path on the recording machine, which means nothing on other machines.
const ROOT: &str = "/home/user/firsttouch";

fn main() {
    let Some(firsttouch) = Firsttouch::find("record-profiles") else { return };
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let folder = temporary_directory();
    for name in if wanted.is_empty() { names() } else { wanted } {
        let file = record(&firsttouch, &name, folder.path());
        let columns = sql(
            text(&file),
            "select m.name, p.name from sqlite_master m, pragma_table_info(m.name) p where m.type = 'table' and m.name not like 'sqlite%'",
        );
        let root = workspace_root();
        let replace = columns.lines().filter_map(|line| line.split_once('|')).map(|(table, column)| {
            format!("update {table} set {column} = replace({column}, '{}', '{ROOT}') where typeof({column}) = 'text';", root.display())
        });
        let words: String = replace.collect();
        sql(text(&file), &format!("{words} pragma journal_mode = delete; vacuum;"));
        std::fs::create_dir_all(fixture(&name).parent().expect("a folder")).expect("fixtures/profiles");
        std::fs::copy(&file, fixture(&name)).expect("the recording is written");
        println!("recorded {}", fixture(&name).display());
    }
}

fn sql(file: &str, words: &str) -> String {
    let outcome = run(Command::new("sqlite3").args([file, words]));
    assert_eq!(outcome.status, 0, "{words}: {outcome:?}");
    outcome.stdout_text()
}
