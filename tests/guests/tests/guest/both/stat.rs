//! `stat`: compares the counters of known programs with the kernel's files read immediately before and after.

use firsttouch_e2e::process::run;
use firsttouch_guests::{FullNode, first_two_with_cpus, firsttouch, guest_program, json, nodes, tool};
use firsttouch_oracles::list;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// The memory that `fill` touches, in MiB and pages.
const MIB: u64 = 16;
const PAGES: u64 = MIB << 20 >> 12;

/// By node and name, with `system` for the counters of the whole system.
type Counts = BTreeMap<(String, String), u64>;

fn read_pairs(owner: &str, text: &str, counts: &mut Counts) {
    for line in text.lines() {
        let (name, value) = line.split_once(' ').unwrap();
        counts.insert((owner.to_owned(), name.to_owned()), value.trim().parse().unwrap());
    }
}

/// The kernel's files, as they are now.
fn now() -> Counts {
    let mut counts = Counts::new();
    for node in nodes() {
        for file in ["numastat", "vmstat"] {
            let text = fs::read_to_string(format!("/sys/devices/system/node/node{}/{file}", node.id)).unwrap();
            read_pairs(&node.id.to_string(), &text, &mut counts);
        }
    }
    read_pairs("system", &fs::read_to_string("/proc/vmstat").unwrap(), &mut counts);
    counts
}

/// A shell script that prints the same counters, each owner's after a line `# OWNER`.
const KEEP: &str = "for n in /sys/devices/system/node/node[0-9]*; do echo \"# ${n##*node}\"; cat $n/numastat $n/vmstat; done; \
                    echo '# system'; cat /proc/vmstat";

fn kept(text: &str) -> Counts {
    let mut counts = Counts::new();
    for part in text.split("# ").skip(1) {
        let (owner, pairs) = part.split_once('\n').unwrap();
        read_pairs(owner, pairs, &mut counts);
    }
    counts
}

fn counted(stat: &Value) -> Counts {
    let pairs = |owner: &str, counters: &Value| {
        let pairs = counters.as_object().unwrap().iter();
        pairs.map(|(name, value)| ((owner.to_owned(), name.clone()), value.as_u64().unwrap())).collect::<Counts>()
    };
    let mut counts = pairs("system", &stat["system"]);
    list(stat, "nodes").iter().for_each(|node| counts.extend(pairs(&node["id"].to_string(), &node["counters"])));
    counts
}

/// Runs `fill` under `stat`, in a shell that reads the kernel's counters immediately before and after it. This test reads them before and
/// after the whole command. Checks that every counter of `stat` is between the two differences, and returns the counters.
fn around_fill(policy: &str, mib: u64) -> Counts {
    let script = format!("({KEEP}); echo @; \"$@\"; echo @; ({KEEP})");
    let before = now();
    let mut command = firsttouch().command(["stat", "--json", "--", "/bin/sh", "-c"]);
    command.args([&script, "sh", "numactl", policy]).arg(guest_program("fill")).args([&mib.to_string(), "base", "end"]);
    let outcome = run(&mut command);
    let after = now();
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let text = outcome.stdout_text();
    let [first, "", rest] = text.split("@\n").collect::<Vec<_>>()[..] else { panic!("{text}") };
    let (second, json) = rest.split_at(rest.find('{').unwrap());
    let stat: Value = serde_json::from_str(json).unwrap();
    let head = (stat["schema"].as_str(), stat["span"].as_str(), stat["exit_code"].as_i64());
    assert_eq!(head, (Some("firsttouch.stat/1"), Some("command"), Some(0)));

    let (first, second, counts) = (kept(first), kept(second), counted(&stat));
    for (counter, value) in &counts {
        let (inner, outer) = (second[counter] - first[counter], after[counter] - before[counter]);
        assert!((inner..=outer).contains(value), "{policy}: {counter:?} is {value}, not in {inner}..={outer}");
    }
    let six = ["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"];
    assert!(
        nodes().iter().all(|node| six.iter().all(|name| counts.contains_key(&(node.id.to_string(), (*name).to_owned())))),
        "{counts:?}"
    );
    counts
}

fn of(counts: &Counts, owner: u32, name: &str) -> u64 {
    counts[&(owner.to_string(), name.to_owned())]
}

/// Check a program whose memory is bound to the last node (in one guest one without CPUs): its pages are counted there.
#[test]
fn of_a_bound_program() {
    let nodes = nodes();
    let last = nodes.last().unwrap();
    let counts = around_fill(&format!("--membind={}", last.id), MIB);
    assert!(of(&counts, last.id, "numa_hit") >= PAGES, "{counts:?}");
    let [local, other] = ["local_node", "other_node"].map(|name| of(&counts, last.id, name));
    assert_eq!(local + other, of(&counts, last.id, "numa_hit") + of(&counts, last.id, "numa_miss"));
    assert!(local == 0 || !last.cpus.is_empty(), "{counts:?}");
}

/// Check a program whose memory is interleaved: each node has its part.
#[test]
fn of_an_interleaved_program() {
    let all = nodes();
    let counts = around_fill("--interleave=all", MIB);
    let share = PAGES / all.len() as u64;
    for node in all {
        let here = of(&counts, node.id, "interleave_hit");
        // The few other pages of the program are interleaved as well.
        assert!((share..share + 600).contains(&here), "node {}: {here} of {share}", node.id);
    }
}

/// Check a program that prefers a full node: a page on another node counts as foreign on the full node, and as a miss on the other.
/// (Only in the guest with small nodes, which fill quickly.)
#[test]
fn of_a_program_that_prefers_a_full_node() {
    if nodes().len() == 2 {
        return;
    }
    let [_, full] = first_two_with_cpus();
    let _full = FullNode::fill(full.id);
    // On the full node, 4 % of its memory is free, and the kernel reclaims more for the program (up to 40 MiB of files were seen), so the
    // program is larger than that.
    let counts = around_fill(&format!("--preferred={}", full.id), 6 * MIB);
    let foreign = of(&counts, full.id, "numa_foreign");
    let missed: u64 = nodes().iter().filter(|node| node.id != full.id).map(|node| of(&counts, node.id, "numa_miss")).sum();
    assert!(foreign > PAGES, "{counts:?}");
    // Each such page counts once on either side, but the files are read one after the other.
    assert!(foreign.abs_diff(missed) < 64, "{foreign} foreign, {missed} missed");
    assert_eq!(of(&counts, full.id, "numa_miss"), 0, "{counts:?}");
}

/// numastat's table of all nodes.
fn numastat() -> Counts {
    let text = tool("numastat", &[]);
    let mut lines = text.lines();
    let owners: Vec<&str> = lines.next().unwrap().split_whitespace().map(|word| word.strip_prefix("node").unwrap()).collect();
    let mut counts = Counts::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        for (owner, value) in owners.iter().zip(words) {
            counts.insert(((*owner).to_owned(), name.to_owned()), value.parse().unwrap());
        }
    }
    counts
}

/// Check that the totals since boot are between those of numastat immediately before and after, and that the text shows them.
#[test]
fn since_boot() {
    let before = numastat();
    let counts = counted(&json(&["stat"]));
    let after = numastat();
    assert_eq!(before.len(), 6 * nodes().len());
    for (counter, first) in &before {
        assert!((first..=&after[counter]).contains(&&counts[counter]), "{counter:?}: {} {} {}", first, counts[counter], after[counter]);
    }
    let text = tool(firsttouch().binary().to_str().unwrap(), &["stat"]);
    let misses = text.lines().find(|line| line.trim_start().starts_with("numa_miss")).unwrap();
    let shown: Vec<String> = misses.split_whitespace().skip(1).take(nodes().len()).map(|word| word.replace(',', "")).collect();
    let reported: Vec<String> = nodes().iter().map(|node| of(&after, node.id, "numa_miss").to_string()).collect();
    assert_eq!(shown, reported, "{text}");
}
