//! Compares `topology` of the running guest with tools that ask the same kernel.

use firsttouch_e2e::tool::{temporary_directory, text};
use firsttouch_guests::{firsttouch, guest, json, json_under, nodes, tool};
use firsttouch_oracles::{lscpu, lstopo, numactl};
use std::fs;

fn name() -> String {
    format!("guest-{}", guest())
}

/// Check nodes, CPUs, memory and distances against `numactl --hardware`.
#[test]
fn as_numactl_hardware() {
    numactl::hardware_agrees(&name(), &json(&["topology"]), &tool("numactl", &["--hardware"]));
}

/// Check the process's own policy, CPUs and nodes against `numactl --show`, as started and under every kind of policy.
#[test]
fn as_numactl_show() {
    numactl::show_agrees(&name(), &json(&["topology"]), &tool("numactl", &["--show"]));
    let last = nodes().last().map_or(0, |node| node.id);
    let [bind, prefer] = ["membind", "preferred"].map(|option| format!("--{option}={last}"));
    for options in [&[bind.as_str()][..], &["--interleave=0,1"], &[&prefer], &["--cpunodebind=1", "--localalloc"]] {
        let shown = tool("numactl", &[options, &["numactl", "--show"]].concat());
        numactl::show_agrees(&format!("{} {options:?}", name()), &json_under(&[&["numactl"], options].concat(), &["topology"]), &shown);
    }
}

/// Check CPUs, packages, cores, caches and nodes against lscpu.
#[test]
fn as_lscpu() {
    lscpu::summary_agrees(&name(), &json(&["topology"]), &tool("lscpu", &["--json"]));
}

/// Check each CPU's node, core and package against lscpu's table.
#[test]
fn as_lscpu_table() {
    let table = tool("lscpu", &["--json", "--all", "--extended=CPU,CORE,SOCKET,NODE,ONLINE"]);
    lscpu::table_agrees(&name(), &json(&["topology"]), &table);
}

/// Compare the machine with lstopo's XML, and check that lstopo reads the same machine from firsttouch's XML.
#[test]
fn as_lstopo() {
    let folder = temporary_directory();
    let [lstopos, ours, read_back] = ["lstopo.xml", "ours.xml", "back.xml"].map(|name| folder.path().join(name));
    let (lstopos, ours, read_back) = (text(&lstopos), text(&ours), text(&read_back));
    let own = json(&["topology"]);

    tool("lstopo-no-graphics", &["--no-io", "--of", "xml", lstopos]);
    lstopo::agrees(&name(), &own, &json(&["topology", "-i", lstopos]));

    tool(text(firsttouch().binary()), &["topology", "--xml", ours]);
    tool("lstopo-no-graphics", &["-i", ours, "--of", "xml", read_back]);
    let back = json(&["topology", "-i", read_back]);
    lstopo::agrees(&format!("{}, written and read by lstopo", name()), &own, &back);
    assert!(!back["distances"].is_null() && fs::read_to_string(read_back).is_ok_and(|xml| xml.contains("<topology")), "{back:#}");
}
