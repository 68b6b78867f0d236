// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fault matrix: each fault is made to happen, and what is seen is a row of docs/reliability.md. `FIRSTTOUCH_UPDATE=1` writes the rows.

mod files;
mod lab;
mod results;
mod running;

use firsttouch_e2e::paths::workspace_root;
use lab::{Lab, Seen};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// A fault, and what happens; nothing if it cannot be made to happen here.
type Fault = (&'static str, fn(&Lab) -> Option<Seen>);

const START: &str = "<!-- rows: written by the test -->\n";
const HEAD: &str = "| fault | command | program | profile | exit status | left behind |\n|---|---|---|---|---|---|\n";

/// Makes the faults happen, some at a time: they mostly wait.
fn all(faults: &[Fault]) -> Vec<Option<Seen>> {
    const AT_ONCE: usize = 3;
    let seen: Vec<Mutex<Option<Seen>>> = faults.iter().map(|_| Mutex::default()).collect();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((index, (name, fault))) =
                    Some(next.fetch_add(1, Relaxed)).and_then(|index| Some((index, faults.get(index)?)))
                {
                    let lab = Lab::new(name).expect("a program and firsttouch");
                    match catch_unwind(AssertUnwindSafe(|| fault(&lab))) {
                        Ok(row) => *seen[index].lock().expect("no panic") = row,
                        Err(_) => failed.lock().expect("no panic").push(*name),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "{failed:#?}");
    seen.into_iter().map(|seen| seen.into_inner().expect("no panic")).collect()
}

#[test]
fn reliability_is_what_the_faults_show() {
    let faults: Vec<Fault> = running::FAULTS.iter().chain(files::FAULTS).chain(results::FAULTS).copied().collect();
    assert!(faults.len() >= 40, "{}", faults.len());
    if Lab::new("faults").is_none() {
        return;
    }
    let seen = all(&faults);
    let path = workspace_root().join("docs/reliability.md");
    let document = fs::read_to_string(&path).expect("docs/reliability.md");
    let (before, old) = document.split_once(START).expect("the place of the rows");
    let mut rows = HEAD.to_owned();
    for ((name, _), seen) in faults.iter().zip(seen) {
        let row = seen.map(|seen| format!("| {name} | {} |\n", seen.cells()));
        // What cannot be made to happen here stays as it was seen elsewhere.
        let known = || old.lines().find(|line| line.starts_with(&format!("| {name} |"))).map(|line| format!("{line}\n"));
        rows.push_str(&row.or_else(known).unwrap_or_default());
    }
    if std::env::var("FIRSTTOUCH_UPDATE").as_deref() == Ok("1") {
        fs::write(&path, format!("{before}{START}{rows}")).expect("docs/reliability.md");
        return;
    }
    for (new, old) in rows.lines().zip(old.lines()) {
        assert_eq!(new, old, "if that is better, write it with FIRSTTOUCH_UPDATE=1");
    }
    assert_eq!(rows, old);
}
