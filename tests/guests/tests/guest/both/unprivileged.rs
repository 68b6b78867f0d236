//! An unprivileged user at perf_event_paranoid 2: own processes are shown completely, and messages name what only root may do.

use super::balancing::SWITCH;
use super::process::{assert_arrays, huge_pages, places};
use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::tool::{NOBODY, assert_clear_error};
use firsttouch_guests::{Waiting, first_two_with_cpus, firsttouch, guest_program, json_of, nodes, read_number, tool};
use firsttouch_oracles::{list, numactl};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Runs a command as nobody. Changing the user also drops root's supplementary groups.
fn by_nobody(command: &mut Command) -> &mut Command {
    command.uid(NOBODY).gid(NOBODY).env("HOME", "/nonexistent").current_dir("/tmp")
}

fn nobodys(arguments: &[&str]) -> Value {
    json_of(by_nobody(&mut firsttouch().command(arguments)).arg("--json"))
}

fn refused(arguments: &[&str]) -> Outcome {
    run(by_nobody(&mut firsttouch().command(arguments)))
}

/// Check that processes of the same user are shown completely: threads, nodes and policies of all memory.
#[test]
fn own_processes() {
    let _pages = huge_pages();
    let program = Waiting::started(by_nobody(Command::new(guest_program("two_arrays")).args(places())));
    let ps = nobodys(&["ps", &program.pid()]);
    let threads = nodes().iter().filter(|node| !node.cpus.is_empty()).count() + 1;
    assert_eq!((list(&ps["processes"][0], "threads").len(), list(&ps["processes"][0], "doubts").len()), (threads, 0), "{ps:#}");
    let maps = nobodys(&["maps", &program.pid()]);
    assert_eq!(ps["processes"][0]["memory"]["nodes"], maps["processes"][0]["memory"]["nodes"]);
    assert_eq!(list(&maps["processes"][0], "doubts").len(), 0, "{maps:#}");
    assert_arrays(&maps["processes"][0], &program.end());
}

/// Check that for another user's process, the threads are shown, and that a message says who may see its memory.
#[test]
fn processes_of_others() {
    let program = Waiting::start("fill", &["1", "base", "wait"]);
    let ps = nobodys(&["ps", &program.pid()]);
    let process = &ps["processes"][0];
    assert_eq!((list(process, "threads").len(), process["memory"]["nodes"].is_null()), (1, true), "{ps:#}");
    assert!(process["doubts"][0].as_str().unwrap().contains("belongs to user root (0)"), "{ps:#}");
    assert_clear_error(
        &refused(&["maps", &program.pid()]),
        &[1],
        &["belongs to user root (0), and firsttouch runs as user nobody (65534)", "sudo"],
    );
}

/// Check the counters of a program and the topology, and that the doctor reports no forbidden call.
#[test]
fn the_machine() {
    assert_eq!(read_number("/proc/sys/kernel/perf_event_paranoid"), 2);
    let [_, second] = first_two_with_cpus();
    let bind = format!("--membind={}", second.id);
    let fill = guest_program("fill");
    let mut command = firsttouch().command(["stat", "--json", "--", "numactl", &bind]);
    let stat = json_of(by_nobody(command.arg(&fill).args(["8", "base", "end"])));
    let node = list(&stat, "nodes").iter().find(|node| node["id"] == second.id).unwrap();
    assert!(node["counters"]["numa_hit"].as_u64() >= Some(2048) && list(&stat, "doubts").is_empty(), "{stat:#}");

    let topology = nobodys(&["topology"]);
    numactl::hardware_agrees("nobody", &topology, &tool("numactl", &["--hardware"]));
    assert_eq!(list(&topology, "doubts").len(), 0, "{topology:#}");

    let diagnosis = nobodys(&["doctor"]);
    let forbidden = ["perf-forbidden", "watchpoints-missing", "mempolicy-forbidden"];
    for id in forbidden {
        assert!(list(&diagnosis, "checked").contains(&id.into()), "{diagnosis:#}");
        assert!(list(&diagnosis, "findings").iter().all(|finding| finding["id"] != id), "{diagnosis:#}");
    }
}

/// Check that the balancing is shown, that an error names who may change it, and that nothing is changed and no program runs.
#[test]
fn balancing() {
    let reported = nobodys(&["balancing"]);
    assert_eq!(reported["state"], "off", "{reported:#}");
    assert!(reported["doubts"][0].as_str().unwrap().contains("which only root can read"), "{reported:#}");
    for arguments in [&["balancing", "on"][..], &["balancing", "measure", "--", "touch", "/tmp/measured"]] {
        assert_clear_error(&refused(arguments), &[1], &[SWITCH, "only root (user 0 of the machine", "CAP_SYS_ADMIN"]);
    }
    assert_eq!((read_number(SWITCH), std::path::Path::new("/tmp/measured").exists()), (0, false));
}
