// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is served: pages, formats, figures; where it listens; how it ends.

use super::{Exporter, groups, prometheus_tool};
use firsttouch_e2e::process::{run, run_with_input};
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, assert_no_panic, temporary_directory, text};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const OPEN: &str = "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n";

/// Check the pages and both formats, that figures are those of /sys, and that SIGTERM, SIGINT and SIGHUP end it well.
#[test]
fn pages_and_formats() {
    let Some(firsttouch) = Firsttouch::find("metrics::pages_and_formats") else { return };
    let exporter = Exporter::start(&firsttouch, &[]);
    let mut client = exporter.connect();
    let plain = client.get("/metrics", "");
    assert!(plain.head.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{}", plain.head);
    let open = client.get("/metrics", OPEN);
    assert!(open.head.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"), "{}", open.head);
    assert!(open.body.ends_with("\n# EOF\n") && open.body.contains("# UNIT firsttouch_node_memory_size_bytes bytes\n"), "{}", open.body);
    assert!(!plain.body.contains("# EOF") && !plain.body.contains("# UNIT"));
    let meminfo = fs::read_to_string("/sys/devices/system/node/node0/meminfo").expect("a node");
    let total = meminfo.lines().find_map(|line| line.strip_prefix("Node 0 MemTotal:")?.trim().strip_suffix(" kB")).expect("its memory");
    let sample = format!("\nfirsttouch_node_memory_size_bytes{{node=\"0\"}} {}\n", 1024 * total.trim().parse::<u64>().expect("a number"));
    assert!(plain.body.contains(&sample) && open.body.contains(&sample), "{sample}");
    let version = format!("\nfirsttouch_build_info{{version=\"{}\"}} 1\n", env!("CARGO_PKG_VERSION"));
    assert!(plain.body.contains(&version), "{}", plain.body);
    client.send(b"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer(true).expect("an answer").status, 200);
    assert_eq!((client.get("/healthz", "").body.as_str(), client.get("/?a", "").status), ("ok\n", 200));
    let outcome = exporter.stop();
    assert_no_panic(&outcome);
    assert!(!outcome.stderr_text().contains("warning"), "{outcome:?}");
    for signal in [libc::SIGINT, libc::SIGHUP] {
        let exporter = Exporter::start(&firsttouch, &["--no-cgroups"]);
        exporter.running.signal(signal);
        assert_eq!(exporter.running.wait().status, 0);
    }
}

/// Check that promtool finds nothing to complain about, here and on recorded machines.
#[test]
fn promtool_is_content() {
    let name = "metrics::promtool_is_content";
    let (Some(firsttouch), Some(promtool)) = (Firsttouch::find(name), prometheus_tool(name, "promtool")) else { return };
    for options in [&["--processes", "3"][..], &["--root", &groups()]] {
        let outcome = run(firsttouch.command(["serve-metrics", "--textfile", "-"]).args(options));
        assert!(outcome.status == 0 && outcome.stdout_text().contains("firsttouch_node_numa_hit_total"), "{outcome:?}");
        let checked = run_with_input(Command::new(&promtool).args(["check", "metrics"]), &outcome.stdout);
        assert_eq!((checked.status, checked.stdout_text() + &checked.stderr_text()), (0, String::new()));
    }
}

/// The addresses on which a process listens: lines of /proc/net whose inode is one of its sockets.
fn listens_on(pid: i32) -> Vec<String> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let inodes: BTreeSet<String> = links
        .filter_map(|link| fs::read_link(link.path()).ok()?.to_str()?.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned))
        .collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let table = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        found.extend(lines.filter(|words| words.len() > 9 && inodes.contains(words[9])).map(|words| words[1].to_owned()));
    }
    found
}

/// Check that it listens on the loopback address only, unless another one is named, and then warns.
#[test]
fn loopback_unless_named() {
    let Some(firsttouch) = Firsttouch::find("metrics::loopback_unless_named") else { return };
    // The default address may be in use here: a test must not fail for that.
    let mut default = firsttouch_e2e::process::Running::start(&mut firsttouch.command(["serve-metrics", "--no-cgroups"]), b"");
    while !default.has_ended() && listens_on(default.pid()).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    if default.has_ended() {
        assert_clear_error(&default.wait(), &[1], &["127.0.0.1:9843", "--listen"]);
    } else {
        assert_eq!(listens_on(default.pid()), ["0100007F:2673"]);
        default.signal(libc::SIGTERM);
        assert_eq!(default.wait().status, 0);
    }
    let everywhere = Exporter::start(&firsttouch, &["--no-cgroups", "--listen", "0.0.0.0:0"]);
    let warning = everywhere.running.wait_for_stderr("warning: ");
    assert!(warning.contains("is not a loopback address"), "{warning}");
    assert!(listens_on(everywhere.running.pid())[0].starts_with("00000000:"));
    everywhere.stop();
}

/// Check what is said where files are missing, and that the rest is served.
#[test]
fn missing_files_are_explained() {
    let Some(firsttouch) = Firsttouch::find("metrics::missing_files_are_explained") else { return };
    let directory = temporary_directory();
    let root = directory.path();
    let write = |file: &str, content: &str| {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).expect("a file");
    };
    let shown = || run(&mut firsttouch.command(["serve-metrics", "--textfile", "-", "--root", text(root)]));
    let outcome = shown();
    for why in ["names no nodes", "has no control groups of version 2", "CONFIG_PSI"] {
        assert!(outcome.status == 0 && outcome.messages().contains(why), "{why}: {outcome:?}");
    }
    write("sys/devices/system/node/online", "0\n");
    write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8 kB\nNode 0 MemFree: 3 kB\n");
    write("sys/devices/system/node/node0/numastat", "numa_hit 7\nnuma_miss x\n");
    write("proc/sys/vm/numa_stat", "0\n");
    write("sys/fs/cgroup/cgroup.controllers", "memory\n");
    write("sys/fs/cgroup/a/memory.current", "5\n");
    let outcome = shown();
    for why in ["numastat: expected a name and a number", "sysctl vm.numa_stat=1", "no group has memory.numa_stat"] {
        assert!(outcome.status == 0 && outcome.messages().contains(why), "{why}: {outcome:?}");
    }
    let samples = outcome.stdout_text();
    for sample in [
        "firsttouch_node_memory_free_bytes{node=\"0\"} 3072\n",
        "firsttouch_node_numa_hit_total{node=\"0\"} 7\n",
        "firsttouch_scrape_collector_success{collector=\"memory\"} 1\n",
        "firsttouch_scrape_collector_success{collector=\"counters\"} 0\n",
        "firsttouch_scrape_collector_success{collector=\"cgroups\"} 0\n",
    ] {
        assert!(samples.contains(sample), "{sample}: {samples}");
    }
    assert_no_panic(&outcome);
}

/// Check the limit on series and the choice of groups.
#[test]
fn series_are_limited() {
    let Some(firsttouch) = Firsttouch::find("metrics::series_are_limited") else { return };
    let shown =
        |options: &[&str]| run(firsttouch.command(["serve-metrics", "--textfile", "-", "--root", &groups()]).args(options)).stdout_text();
    let few = shown(&["--max-series", "80"]);
    let dropped = few.lines().find_map(|line| line.strip_prefix("firsttouch_scrape_series_dropped{collector=\"cgroups\"} "));
    assert!(dropped.is_some_and(|count| count.parse::<u32>().is_ok_and(|count| count > 0)), "{few}");
    let pods = shown(&["--cgroup", "/kubepods.slice"]);
    assert!(pods.contains("cri-containerd-b") && !pods.contains("cron.service") && !pods.contains("cgroup=\"/\""), "{pods}");
    assert!(!shown(&["--no-cgroups"]).contains("cgroup"));
    let missing = run(&mut firsttouch.command(["serve-metrics", "--textfile", "-", "--root", &groups(), "--cgroup", "/nope"]));
    assert!(missing.status == 0 && missing.messages().contains("cannot read the control group /nope"), "{missing:?}");
}

/// Check that errors are clear, and usage errors have status 2.
#[test]
fn errors_are_clear() {
    let Some(firsttouch) = Firsttouch::find("metrics::errors_are_clear") else { return };
    let refused = |words: &[&str], status: i32, mentions: &[&str]| {
        let outcome = run(firsttouch.command(["serve-metrics"]).args(words));
        let said = outcome.stderr_text();
        assert!(outcome.status == status && mentions.iter().all(|text| said.contains(text)), "{words:?}: {outcome:?}");
        assert_no_panic(&outcome);
    };
    let taken = Exporter::start(&firsttouch, &["--no-cgroups"]);
    let address = taken.address.to_string();
    refused(&["--listen", &address], 1, &["cannot listen on", &address, "choose another port with --listen"]);
    taken.stop();
    refused(&["--listen", "192.0.2.1:9843"], 1, &["cannot listen on 192.0.2.1:9843", "ip address"]);
    refused(&["--listen", "9843"], 2, &["127.0.0.1:9843"]);
    refused(&["--interval", "15s"], 2, &["--textfile"]);
    refused(&["--textfile", "-", "--interval", "10ms"], 2, &["at least 1s"]);
    refused(&["--processes", "0"], 2, &["1..=1000"]);
    // Another test has the port that is the default.
    refused(&["--listen", "127.0.0.1:0", "--processes", "1", "--machine", "none-such"], 2, &["none-such"]);
    refused(&["--root", "/none/such", "--listen", "127.0.0.1:0"], 1, &["/none/such"]);
    refused(&["--cgroup", "system.slice"], 2, &["/system.slice"]);
}

/// Check that the service's file starts a command line that is valid, with the port of the documentation.
#[test]
fn the_service_starts_it() {
    let Some(firsttouch) = Firsttouch::find("metrics::the_service_starts_it") else { return };
    let root = firsttouch_e2e::paths::workspace_root();
    let unit = fs::read_to_string(root.join("packaging/systemd/firsttouch-metrics.service")).expect("the service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("what it starts");
    let words: Vec<&str> = start.split(' ').skip(1).filter(|word| !word.starts_with('$')).collect();
    let help = run(firsttouch.command(words).arg("--help"));
    assert!(help.status == 0 && help.stdout_text().contains("127.0.0.1:9843"), "{help:?}");
    let manual = fs::read_to_string(root.join("docs/metrics.md")).expect("the page");
    assert!(manual.contains("targets: ['127.0.0.1:9843']"));
}
