// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Jobs of Slurm itself, which scripts/with-slurm starts on this machine.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::run;
use firsttouch_e2e::programs::program;
use firsttouch_e2e::skip::lacks_tools;
use firsttouch_e2e::tool::{Firsttouch, temporary_directory};
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// In directories of their own: tasks without MPI both ways, those of MPICH by PMI-2 and those of Open MPI by PMIx, a task that fails, and a batch script,
/// which is no task itself.
const JOBS: &str = r#"
each() { mkdir "$1" && cd "$1" && shift && "$@" >out 2>&1; echo $? >status; cd ..; }
each inside srun -n 2 "$FIRSTTOUCH" profile -o x.ftp -- "$SHORT"
each outside "$FIRSTTOUCH" profile -o x.ftp -- srun -n 2 "$SHORT"
each mpich "$FIRSTTOUCH" profile -o x.ftp -- srun --mpi=pmi2 -n 2 "$MPICH"
each openmpi "$FIRSTTOUCH" profile -o x.ftp -- srun --mpi=pmix -n 2 "$OPENMPI"
each fails "$FIRSTTOUCH" profile -o x.ftp -- srun -n 2 sh -c "\"$SHORT\"; exit \$((3 * SLURM_PROCID))"
printf '#!/bin/sh\n"%s" profile -q -o batch.ftp -- "%s"\nsrun -n 2 "%s" profile -o x.ftp -- "%s"\n' "$FIRSTTOUCH" "$SHORT" "$FIRSTTOUCH" "$SHORT" >script
each batch sbatch -W -n 2 -o log ../script
"#;

fn meta(profile: &Path, key: &str) -> Option<String> {
    let connection = Connection::open(profile).expect("a profile");
    connection.query_row("SELECT value FROM meta WHERE key = ?", [key], |row| row.get(0)).ok()
}

/// The number of parts of a merged profile.
fn parts(profile: &Path) -> u32 {
    let connection = Connection::open(profile).expect("a profile");
    connection.query_row("SELECT count(*) FROM parts", [], |row| row.get(0)).expect("parts")
}

/// Check that tasks of `srun` are ranks, both ways and with the libraries of both MPIs, that the status of the job is `srun`'s, and that a batch script is
/// no rank.
#[test]
fn tasks_are_ranks() {
    let test = "tasks_are_ranks";
    let Some(firsttouch) = Firsttouch::find(test) else { return };
    if lacks_tools(test, &["srun", "slurmctld", "slurmd", "munged"]) {
        return;
    }
    let programs = ["noharm/short_run", "mpi/ranks_mpich", "mpi/ranks_openmpi"].map(|name| program(test, name));
    let [Some(short), Some(mpich), Some(openmpi)] = programs else { return };
    let folder = temporary_directory();
    let outcome = run(Command::new(workspace_root().join("scripts/with-slurm"))
        .args(["bash", "-c", JOBS])
        .current_dir(folder.path())
        .env("FIRSTTOUCH", firsttouch.binary())
        .envs([("SHORT", &short), ("MPICH", &mpich), ("OPENMPI", &openmpi)]));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    for (job, status) in [("inside", "0"), ("outside", "0"), ("mpich", "0"), ("openmpi", "0"), ("fails", "3"), ("batch", "0")] {
        let (directory, read) =
            (folder.path().join(job), |name: &str| fs::read_to_string(folder.path().join(job).join(name)).expect("a file"));
        let said = read(if job == "batch" { "log" } else { "out" });
        assert_eq!(read("status").trim(), status, "{job}: {said}");
        for rank in 0..2 {
            let profile = directory.join(format!("x.ftp.d/rank-{rank}.ftp"));
            let text = meta(&profile, "rank").unwrap_or_else(|| panic!("{job}: rank {rank} is no rank: {said}"));
            let place: Value = serde_json::from_str(&text).expect("JSON");
            let numbers = ["rank", "size", "local_rank", "local_size"].map(|key| place[key].as_u64());
            assert_eq!(numbers, [Some(rank), Some(2), Some(rank), Some(2)], "{job}: {place}");
            assert_eq!(place["launcher"], "Slurm", "{job}: {place}");
        }
        assert_eq!(parts(&directory.join("x.ftp")), 2, "{job}: {said}");
        if job == "fails" {
            assert!(said.contains("rank 1: ended with exit status 3"), "{said}");
        }
    }
    let batch = folder.path().join("batch/batch.ftp");
    assert!(batch.is_file() && meta(&batch, "rank").is_none());
}
