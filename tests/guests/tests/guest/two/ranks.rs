//! Ranks on real nodes: Open MPI's own launcher binds them, and they are elsewhere on purpose. The program is none of MPI, because a launcher starts any.

use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{temporary_directory, text};
use firsttouch_guests::{balancing_off, findings, firsttouch, guest_program, json, said, sampled};
use firsttouch_oracles::list;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// One rank on each node.
const BOUND: [&str; 4] = ["--map-by", "numa", "--bind-to", "numa"];
const UNBOUND: [&str; 2] = ["--bind-to", "none"];

/// `mpirun OPTIONS -n 1 COMMAND : -n 1 COMMAND ...`
fn mpirun(options: &[&str], ranks: &[Vec<&str>]) -> Command {
    let mut command = Command::new("mpirun.openmpi");
    command.args(["--allow-run-as-root", "--oversubscribe"]).args(options);
    for (rank, words) in ranks.iter().enumerate() {
        command.args(if rank == 0 { &[][..] } else { &[":"] }).args(["-n", "1"]).args(words);
    }
    command
}

/// The report on ranks with two threads each, of which each fills and uses a half of 12 MiB. Of each rank: a command that starts it, and the way of `blocks`. Beside
/// two busy threads on two emulated CPUs, a recorder may need some seconds before it first asks where pages are.
fn profiled(options: &[&str], ranks: &[(&[&str], &str)], folder: &Path) -> Value {
    let (ours, program, file) = (firsttouch(), guest_program("blocks"), folder.join("job.ftp"));
    let record = [text(ours.binary()), "profile", "-q", "-o", text(&file), "--", text(&program), "5", "12", "-1,-1"];
    let words: Vec<Vec<&str>> = ranks.iter().map(|(under, way)| [under, &record[..], &[*way]].concat()).collect();
    let outcome = run(&mut mpirun(options, &words));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report = json(&["report", text(&file)]);
    assert_eq!((report["machine"]["virtual"].as_bool(), list(&report, "ranks").len()), (Some(false), ranks.len()), "{report:#}");
    let is_unasked = |object: &&Value| object["name"] == "parts" && object["resident"].is_null();
    assert_eq!(list(&report, "objects").iter().filter(is_unasked).count(), 0, "the kernel was asked where the pages are: {report:#}");
    println!("{:?}: {} {}", findings(&report), report["remote_fraction"], report["remote_interval"]);
    report
}

/// The ranks of each finding of a kind.
fn ranks_with(report: &Value, id: &str) -> Vec<Vec<u64>> {
    let of_kind = list(report, "findings").iter().filter(|finding| finding["id"] == id);
    of_kind.map(|finding| list(finding, "ranks").iter().filter_map(Value::as_u64).collect()).collect()
}

/// Check ranks that the launcher bound to a node each.
#[test]
fn bound_by_the_launcher() {
    sampled(|| {
        let (_off, folder) = (balancing_off(), temporary_directory());
        let report = profiled(&BOUND, &[(&[], "stay"), (&[], "stay")], folder.path());
        assert_eq!(findings(&report), [], "{report:#}");
        assert_eq!((&report["verdict"]["outcome"], &report["remote_fraction"]), (&"well-placed".into(), &0.0.into()), "{report:#}");
        let bound: Vec<&str> = list(&report, "ranks").iter().filter_map(|rank| rank["bound_cpus"].as_str()).collect();
        assert_eq!(bound, ["0-1", "2-3"]);
    });
}

/// Check ranks whose memory is bound to the other node.
#[test]
fn bound_crosswise() {
    sampled(|| {
        let (_off, folder) = (balancing_off(), temporary_directory());
        let crosswise: [&[&str]; 2] = [&["numactl", "--cpunodebind=0", "--membind=1"], &["numactl", "--cpunodebind=1", "--membind=0"]];
        let report = profiled(&UNBOUND, &crosswise.map(|under| (under, "stay")), folder.path());
        assert_eq!(ranks_with(&report, "rank-memory-elsewhere"), [[0, 1]], "{report:#}");
        let found = list(&report, "findings").iter().find(|finding| finding["id"] == "rank-memory-elsewhere").unwrap();
        let message = found["message"].as_str().unwrap();
        assert!(message.contains("ank 0 runs on node 0, its memory is on node 1") && message.contains("bind:"), "{message}");
        assert_eq!(ranks_with(&report, "ranks-unbound").len(), 0, "{report:#}");
    });
}

/// Check ranks that were free to move, and did after they touched their memory; and that the plan of the job puts such ranks on nodes of their own.
#[test]
#[ignore = "takes 15 s in the guest that ends last; passed on 2026-11-26"]
fn unbound_and_moved() {
    sampled(|| {
        let (_off, folder) = (balancing_off(), temporary_directory());
        let report = profiled(&UNBOUND, &[(&[], "from:0:2"), (&[], "from:3:3")], folder.path());
        assert_eq!(ranks_with(&report, "rank-memory-elsewhere"), [[0]], "{report:#}");
        assert_eq!(ranks_with(&report, "ranks-unbound"), [[0, 1]], "{report:#}");

        let (ours, plan) = (firsttouch(), folder.path().join("job.toml"));
        said(ours.command(["plan"]).arg(folder.path().join("job.ftp")).arg("-o").arg(&plan));
        let show = "echo $OMPI_COMM_WORLD_RANK $(grep Cpus_allowed_list /proc/self/status)";
        let planned = vec![text(ours.binary()), "run", "--plan", text(&plan), "--", "sh", "-c", show];
        let shown = said(&mut mpirun(&UNBOUND, &[planned.clone(), planned]));
        let mut cpus: Vec<&str> = shown.lines().collect();
        cpus.sort_unstable();
        assert_eq!(cpus, ["0 Cpus_allowed_list: 0-1", "1 Cpus_allowed_list: 2-3"], "{}", std::fs::read_to_string(&plan).unwrap());
    });
}
