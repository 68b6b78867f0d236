//! `migrate`: where pages of a running program land, against numa_maps; and its rate beside migratepages'.

use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::tool::{temporary_directory, text};
use firsttouch_guests::{Setting, Waiting, balancing_off, first_two_with_cpus, firsttouch, json, mib_of, nodes, said, sampled, tool};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

const MIB: &str = "48";
const BYTES: u64 = 48 << 20;
/// Of a kernel that goes on.
const RECORDED: Duration = Duration::from_secs(8);

/// The nodes of a process's largest mapping, as the kernel says.
fn largest(pid: &str) -> BTreeMap<u32, u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/numa_maps")).unwrap();
    let nodes = |line: &str| -> BTreeMap<u32, u64> {
        let words = line.split_whitespace().filter_map(|word| word.strip_prefix('N')?.split_once('='));
        words.map(|(node, pages)| (node.parse().unwrap(), pages.parse::<u64>().unwrap() * 4096)).collect()
    };
    text.lines().map(nodes).max_by_key(|nodes| nodes.values().sum::<u64>()).unwrap()
}

fn filled(node: u32, kind: &str) -> Waiting {
    Waiting::start_under(&["numactl", &format!("--membind={node}")], "fill", &[MIB, kind, "wait"])
}

fn migrate(pid: &str, options: &[&str]) -> Value {
    json(&[&["migrate", pid], options].concat())
}

/// Check that pages of both kinds land on the node asked for, all of them, and are counted; and that nothing moves the second time.
#[test]
fn pages_land_on_a_node() {
    let [from, to] = first_two_with_cpus().map(|node| node.id);
    for kind in ["base", "huge"] {
        let program = filled(from, kind);
        let moved = migrate(&program.pid(), &["--to", &to.to_string()]);
        assert_eq!(largest(&program.pid()), [(to, BYTES)].into(), "{kind}: {moved:#}");
        assert!(moved["moved_bytes"].as_u64().unwrap() >= BYTES && moved["to"][to.to_string()].as_u64().unwrap() >= BYTES, "{moved:#}");
        let again = migrate(&program.pid(), &["--to", &to.to_string()]);
        assert!(again["moved_bytes"].as_u64().unwrap() < 1 << 20 && again["there_bytes"].as_u64().unwrap() >= BYTES, "{again:#}");
        // It still waits, unharmed.
        assert!(fs::read_to_string(format!("/proc/{}/stat", program.pid())).unwrap().contains(") S "));
    }
}

/// Check that interleaved pages lie on both nodes in equal parts, and that the text says what happened.
#[test]
fn pages_are_interleaved() {
    let [one, other] = first_two_with_cpus().map(|node| node.id);
    let program = filled(one, "base");
    let outcome = run(&mut firsttouch().command(["migrate", &program.pid(), &format!("--interleave={one},{other}")]));
    let said = outcome.stdout_text();
    assert!(outcome.status == 0 && said.contains("interleaved over nodes") && said.contains("GiB/s"), "{outcome:?}");
    assert_eq!(largest(&program.pid()), [(one, BYTES / 2), (other, BYTES / 2)].into(), "{said}");
}

/// The rate at which pages move beside migratepages', in turn: printed, and held loosely, since in a guest it says little. Of
/// migratepages' time what it takes with nothing to move is subtracted; ours is what it tells of the moving.
#[test]
fn rate_beside_migratepages() {
    let [from, to] = first_two_with_cpus().map(|node| node.id);
    let mib = [from, to].map(|node| mib_of(node, "MemFree:") / 2).into_iter().min().unwrap().min(384);
    let bytes = mib << 20;
    let program = Waiting::start_under(&["numactl", &format!("--membind={from}")], "fill", &[&mib.to_string(), "base", "wait"]);
    let timed = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    let mut ratios = Vec::new();
    let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        let mut moving = 0.0;
        ours = ours.min(timed(&mut || moving = migrate(&program.pid(), &["--to", &to.to_string()])["seconds"].as_f64().unwrap()));
        assert_eq!(largest(&program.pid()), [(to, bytes)].into());
        let mut back = || drop(tool("migratepages", &[&program.pid(), &to.to_string(), &from.to_string()]));
        let whole = timed(&mut back);
        assert_eq!(largest(&program.pid()), [(from, bytes)].into());
        theirs = theirs.min(whole);
        ratios.push((whole - timed(&mut back)) / moving);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "migrate moves {mib} MiB at {:.2} times the rate of migratepages [{:.2}, {:.2}]; whole commands: {ours:.2} s against {theirs:.2} s",
        ratios[1], ratios[0], ratios[2]
    );
    assert!(ratios[1] > 0.2, "{ratios:?}");
}

/// A kernel that one thread initialised, on the first node, used by threads on both: profiled for a while, it goes on. Its pages go where the
/// profile saw them used; and from one node again to where a plan made from that profile wants them.
fn placed_while_it_runs() {
    let _settings = (balancing_off(), Setting::set("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"));
    let folder = temporary_directory();
    let (profile, plan) = (folder.path().join("a.ftp"), folder.path().join("a.toml"));
    let ours = firsttouch();
    let kernel = ["bench", "dgemv", "--m", "2000", "--n", "2000", "--init", "serial", "--threads", "4", "--iterations", "1000000"];
    let program = [&[text(ours.binary())], &kernel[..], &["--repetitions", "1"]].concat();
    let mut command = ours.profile(&profile, &["--duration", &format!("{}ms", RECORDED.as_millis())], &program);
    let running = Running::start(command.envs([("OMP_PROC_BIND", "spread"), ("OMP_PLACES", "cores")]), &[]);
    // SQLite's log is there while the profile is written.
    let (start, log) = (Instant::now(), folder.path().join("a.ftp-wal"));
    while start.elapsed() < RECORDED || log.exists() {
        assert!(start.elapsed().as_secs() < 120, "the profile does not end");
        sleep(Duration::from_millis(200));
    }
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.pid())).unwrap();
    let pid = children.split_whitespace().next().unwrap();
    said(ours.command(["plan"]).arg(&profile).arg("-o").arg(&plan));
    let [one, other] = first_two_with_cpus().map(|node| node.id);
    let halves = |how: &str, words: &Value| {
        let found = largest(pid);
        let all: u64 = found.values().sum();
        let share = found.get(&other).copied().unwrap_or(0) as f64 / all as f64;
        assert!((0.44..0.56).contains(&share), "{how}: {found:?}: {words:#}");
    };
    let used = migrate(pid, &["--profile", text(&profile)]);
    halves("--profile", &used);
    migrate(pid, &["--to", &one.to_string()]);
    assert_eq!(largest(pid).into_keys().collect::<Vec<_>>(), [one]);
    let planned = migrate(pid, &["--plan", text(&plan)]);
    assert_eq!(planned["target"]["kind"], "plan");
    halves("--plan", &planned);
    running.signal_group(9);
    running.wait();
}

/// Check both ways of a profile of the running program. (On one guest: profiles under emulation take their time.)
#[test]
fn pages_go_to_their_users() {
    if nodes().len() == 2 {
        sampled(placed_while_it_runs);
    }
}
