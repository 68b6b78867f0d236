//! `migrate`: compares the nodes of a running program's pages with numa_maps, and its rate with that of migratepages.

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
/// The recorded time of a kernel that continues to run.
const RECORDED: Duration = Duration::from_secs(8);

/// The nodes of a process's largest mapping, from numa_maps.
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

/// Check that all pages of both kinds move to the requested node and are counted, and that nothing moves the second time.
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
        // The program still waits, unharmed.
        assert!(fs::read_to_string(format!("/proc/{}/stat", program.pid())).unwrap().contains(") S "));
    }
}

/// Check that interleaved pages are on both nodes in equal parts, and that the text reports it.
#[test]
fn pages_are_interleaved() {
    let [one, other] = first_two_with_cpus().map(|node| node.id);
    let program = filled(one, "base");
    let outcome = run(&mut firsttouch().command(["migrate", &program.pid(), &format!("--interleave={one},{other}")]));
    let said = outcome.stdout_text();
    assert!(outcome.status == 0 && said.contains("interleaved over nodes") && said.contains("GiB/s"), "{outcome:?}");
    assert_eq!(largest(&program.pid()), [(one, BYTES / 2), (other, BYTES / 2)].into(), "{said}");
}

/// Compare the rate of `migrate` with that of migratepages, alternately. Prints the ratio, and checks only a loose limit, because the rate
/// in a guest means little. From migratepages' time the test subtracts the time of a run with nothing to move; firsttouch reports the
/// time of the move itself.
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

/// Profiles a kernel for a while and lets it continue. One thread initialised its array, on the first node, and threads on both nodes use it.
/// `migrate --profile` moves its pages to their users. Then, from one node again, `migrate --plan` moves them to the places of a plan made
/// from that profile.
fn placed_while_it_runs() {
    let _settings = (balancing_off(), Setting::set("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"));
    let folder = temporary_directory();
    let (profile, plan) = (folder.path().join("a.ftp"), folder.path().join("a.toml"));
    let ours = firsttouch();
    let kernel = ["bench", "dgemv", "--m", "2000", "--n", "2000", "--init", "serial", "--threads", "4", "--iterations", "1000000"];
    let program = [&[text(ours.binary())], &kernel[..], &["--repetitions", "1"]].concat();
    let mut command = ours.profile(&profile, &["--duration", &format!("{}ms", RECORDED.as_millis())], &program);
    let running = Running::start(command.envs([("OMP_PROC_BIND", "spread"), ("OMP_PLACES", "cores")]), &[]);
    // SQLite's log exists while the profile is written.
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

/// Check `--profile` and `--plan` with a profile of the running program. (In one guest only, because profiles under emulation take long.)
#[test]
fn pages_go_to_their_users() {
    if nodes().len() == 2 {
        sampled(placed_while_it_runs);
    }
}
