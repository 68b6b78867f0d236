// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compares what `report` and `plan` say about each program of the corpus on each machine of the catalogue and on virtual ones:
//! `corpus-agreement [FOLDER]`. The profiles stay in FOLDER (by default in a temporary one), and those that are there are used again. Prints each
//! contradiction, and the numbers of programs, machines and contradictions. Fails if there is one.

use firsttouch_e2e::agreement::{contradictions_on, false_promises, machines};
use firsttouch_e2e::corpus::programs;
use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{Firsttouch, temporary_directory};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The profile of each program that can run here.
fn profiles(firsttouch: &Firsttouch, folder: &Path) -> Vec<PathBuf> {
    let profile = |(name, command): (String, Vec<String>)| {
        let file = folder.join(format!("{name}.ftp"));
        if !file.exists() {
            let mut profile = firsttouch.profile(&file, &["--quiet"], &command);
            let outcome = run(profile.env("OPENBLAS_NUM_THREADS", "1"));
            assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ok\n"), "{name}: {outcome:?}");
        }
        file
    };
    programs().into_iter().filter_map(|program| Some((program.name.clone(), program.command()?))).map(profile).collect()
}

fn main() -> ExitCode {
    let Some(firsttouch) = Firsttouch::find("corpus-agreement") else { return ExitCode::FAILURE };
    let temporary = temporary_directory();
    let folder = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let (files, machines) = (profiles(&firsttouch, &folder), machines(&firsttouch));
    let mut contradictions = 0;
    for file in &files {
        let on = |machine: &String| [contradictions_on(&firsttouch, file, machine), false_promises(&firsttouch, file, machine)].concat();
        let own: Vec<String> = machines.iter().flat_map(on).collect();
        own.iter().for_each(|one| println!("{one}"));
        contradictions += own.len();
    }
    println!("{} programs on {} machines: {contradictions} contradictions between report and plan", files.len(), machines.len());
    ExitCode::from(u8::from(contradictions > 0 || files.is_empty()))
}
