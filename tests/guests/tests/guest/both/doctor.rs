//! `doctor`: each finding appears if its cause is present, and only then.

use firsttouch_e2e::programs::program;
use firsttouch_guests::{FullNode, Group, Setting, first_two_with_cpus, firsttouch, json_of, nodes};
use firsttouch_oracles::list;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

use super::balancing::SWITCH;

pub const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// Findings that follow from the shape of the guests.
const SHAPE: [&str; 2] = ["node-without-cpus", "sub-numa"];

/// Sets an environment in which threads are bound and fit on the CPUs.
pub fn calm(command: &mut Command) -> &mut Command {
    command.envs([("OMP_PROC_BIND", "close"), ("OMP_PLACES", "cores"), ("OMP_NUM_THREADS", "2")])
}

fn ids(diagnosis: &Value) -> Vec<&str> {
    let ids = list(diagnosis, "findings").iter().map(|finding| finding["id"].as_str().unwrap());
    ids.filter(|id| !SHAPE.contains(id)).collect()
}

fn finding<'a>(diagnosis: &'a Value, id: &str) -> &'a Value {
    list(diagnosis, "findings").iter().find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("{id}: {diagnosis:#}"))
}

fn doctor() -> Command {
    firsttouch().command(["doctor"])
}

/// Check that without a problem there is no finding, except those that follow from the machine's shape.
#[test]
fn silent() {
    let _rare = Setting::set(HUGE_PAGES, "madvise");
    let diagnosis = json_of(calm(&mut doctor()).arg("--json"));
    // An emulated machine has no frequency governor, for example.
    let is_unknown = |check: &Value| check["reason"] == "what it judges is not known here";
    let others = list(&diagnosis, "left_out").iter().filter(|check| !is_unknown(check)).count();
    assert_eq!((ids(&diagnosis), list(&diagnosis, "doubts").len(), others), (vec![], 0, 0), "{diagnosis:#}");
    let is_found = |id: &str| list(&diagnosis, "findings").iter().any(|finding| finding["id"] == id);
    assert_eq!(is_found("node-without-cpus"), nodes().iter().any(|node| node.cpus.is_empty()), "{diagnosis:#}");
}

/// Check findings about the environment of a program and about the kernel's settings.
#[test]
fn environment_and_switches() {
    let _rare = Setting::set(HUGE_PAGES, "madvise");
    let openmp = program("doctor", "truth/dgemv").unwrap();
    let look = |variables: &[(&str, &str)]| json_of(doctor().arg("--json").envs(variables.iter().copied()).arg("--").arg(&openmp));
    let unpinned = look(&[("OMP_NUM_THREADS", "2")]);
    assert_eq!((ids(&unpinned), finding(&unpinned, "unpinned-threads")["severity"].as_str()), (vec!["unpinned-threads"], Some("high")));
    let crowded = look(&[("OMP_NUM_THREADS", "5"), ("OMP_PROC_BIND", "close"), ("OMP_PLACES", "cores")]);
    assert_eq!(finding(&crowded, "more-threads-than-cpus")["evidence"][0]["value"], "5");
    let _often = Setting::set(HUGE_PAGES, "always");
    let _on = Setting::set(SWITCH, "1");
    let switched = json_of(calm(&mut doctor()).arg("--json"));
    assert_eq!(ids(&switched), ["numa-balancing", "huge-pages-always"]);
}

/// Check limits on the placement of memory: a policy, and a control group with CPUs on a node whose memory it does not allow.
#[test]
fn bound_memory() {
    let _rare = Setting::set(HUGE_PAGES, "madvise");
    let [first, second] = first_two_with_cpus();
    let mut command = Command::new("numactl");
    command.arg(format!("--membind={}", second.id)).arg(firsttouch().binary()).args(["doctor", "--json"]);
    let bound = json_of(calm(&mut command));
    assert_eq!(ids(&bound), ["memory-policy"], "{bound:#}");
    assert!(finding(&bound, "memory-policy")["evidence"].to_string().contains("bind"), "{bound:#}");

    let cpus = format!("{},{}", first.cpus[0], second.cpus[0]);
    let group = Group::with_cpuset("firsttouch-doctor", &cpus, &first.id.to_string());
    let limited = json_of(calm(&mut group.command(firsttouch().binary(), &["doctor", "--json"])));
    assert_eq!((ids(&limited), finding(&limited, "cpuset")["severity"].as_str()), (vec!["cpuset"], Some("high")), "{limited:#}");
    let topology = json_of(&mut group.command(firsttouch().binary(), &["topology", "--json"]));
    let cpuset = &topology["process"]["cpuset"];
    assert_eq!((&cpuset["group"], &cpuset["nodes"]), (&"/firsttouch-doctor".into(), &[first.id][..].into()), "{topology:#}");
}

/// Check a node with little free memory. (Only in the guest with small nodes, which fill quickly.)
#[test]
fn full_node() {
    if nodes().len() == 2 {
        return;
    }
    let _rare = Setting::set(HUGE_PAGES, "madvise");
    let [_, second] = first_two_with_cpus();
    let _full = FullNode::fill(second.id);
    let full = json_of(calm(&mut doctor()).arg("--json"));
    assert_eq!(ids(&full), ["node-nearly-full"], "{full:#}");
    let source = finding(&full, "node-nearly-full")["evidence"][0]["source"].as_str().unwrap();
    assert!(Path::new(source).ends_with(format!("node{}/meminfo", second.id)), "{full:#}");
}
