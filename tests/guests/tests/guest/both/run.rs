//! Compares `run` with numactl on real nodes, and with the kernel's answers about the nodes of pages.

use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::tool::assert_clear_error;
use firsttouch_guests::{Group, Node, first_two_with_cpus, firsttouch, guest_program, json, nodes, said};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Pages that each thread of `placed` touches.
const PAGES: usize = 64;

/// `firsttouch run OPTIONS -- COMMAND`
fn ours(options: &[&str], command: &[&str]) -> Command {
    let mut ours = firsttouch().command([&["run"], options, &["--"]].concat());
    ours.args(command);
    ours
}

fn numactl(options: &[&str], command: &[&str]) -> Command {
    let mut numactl = Command::new("numactl");
    numactl.args(options).args(command);
    numactl
}

/// A difference that docs/expressions.md lists: numactl accepts an empty list, a downward range or an octal number.
fn is_listed_difference(outcome: &Outcome) -> bool {
    ["this selects no", "a range must run upwards", "octal"].iter().any(|reason| outcome.stderr_text().contains(reason))
}

/// The lists in numactl's syntax that the tests with recorded machines use too.
fn expressions(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers/expressions").join(file);
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// The output of `numactl --show` without the next node of an interleave policy, which depends on the pages allocated before.
fn shown(outcome: &Outcome) -> Vec<String> {
    let its_turn = |line: &&str| line.contains("(interleave next)") || line.starts_with("interleavenode:");
    outcome.stdout_text().lines().filter(|line| !its_turn(line)).map(str::to_owned).collect()
}

/// The result of comparing `run` and numactl with the same options.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Equal,
    RefusedByBoth,
    ListedDifference,
}

/// Check that a program started with each option and each list has the same policy, CPUs and nodes as under numactl, and that both reject
/// the same options. (Only in the guest with more kinds of nodes, because the test starts many programs, which is slow.)
#[test]
fn as_numactl() {
    if nodes().len() == 2 {
        return;
    }
    let mut cases: Vec<Vec<String>> = [
        &["--membind=0"][..],
        &["-m", "0,1"],
        &["--preferred=1"],
        &["-p", "0"],
        &["--preferred-many=0,1"],
        &["-P", "1"],
        &["--interleave=all"],
        &["-i", "0-1"],
        &["--localalloc"],
        &["-l"],
        &["--balancing", "--membind=0,1"],
        &["-b", "-m", "1"],
        &["--cpunodebind=1"],
        &["-N", "0", "-m", "same"],
        &["-N", "1", "--localalloc"],
        &["-C", "0,2", "-i", "all"],
        &["--physcpubind=+1", "--preferred=+1"],
        &["--all", "--physcpubind=3"],
        &["-a", "-N", "all", "-m", "all"],
    ]
    .iter()
    .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
    .collect();
    // Every second one: two processes for each take half a second here.
    cases.extend(expressions("nodes.txt").iter().step_by(2).map(|list| vec![format!("--membind={list}")]));
    // Lists of CPUs do not depend on nodes, and both guests have four CPUs, so one guest is sufficient.
    let cpus = if nodes().len() == 2 { expressions("cpus.txt") } else { Vec::new() };
    cases.extend(cpus.iter().map(|list| vec![format!("--physcpubind={list}")]));
    cases.extend(["0", "1", "all", "!0", "+1", "0-1"].map(|list| vec![format!("--cpunodebind={list}")]));
    // Run several at a time: nothing is measured, and most of the time goes into starting processes.
    let compare = |options: &Vec<String>| {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let [ours, theirs] = [&mut ours(&options, &["numactl", "--show"]), &mut numactl(&options, &["numactl", "--show"])].map(run);
        match (ours.status, theirs.status) {
            (0, 0) if shown(&ours) == shown(&theirs) => Ok(Verdict::Equal),
            (1 | 2, 1) => Ok(Verdict::RefusedByBoth),
            (2, 0) if is_listed_difference(&ours) => Ok(Verdict::ListedDifference),
            _ => Err(format!("{options:?}: ours {ours:?}\nnumactl {theirs:?}")),
        }
    };
    let compare_all = |part: &[Vec<String>]| part.iter().map(compare).collect::<Vec<_>>();
    let verdicts: Vec<Result<Verdict, String>> = std::thread::scope(|scope| {
        let parts: Vec<_> = cases.chunks(cases.len().div_ceil(4)).map(|part| scope.spawn(move || compare_all(part))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    let wrong: Vec<&str> = verdicts.iter().filter_map(|verdict| verdict.as_ref().err().map(String::as_str)).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let [equal, refused] = [Verdict::Equal, Verdict::RefusedByBoth].map(|of| verdicts.iter().filter(|v| **v == Ok(of)).count());
    println!("{equal} equal, {refused} refused by both, of {}", cases.len());
    let (at_least, refused_at_least) = if cpus.is_empty() { (30, 5) } else { (50, 10) };
    assert!(equal >= at_least && refused >= refused_at_least, "{equal} equal, {refused} refused by both, of {}", cases.len());
}

/// The CPU of each thread, and its pages by node.
fn placed(command: &mut Command) -> Vec<(u32, Vec<(u32, usize)>)> {
    let text = said(command);
    let number = |word: &str| word.trim_end_matches(':').parse::<usize>().unwrap();
    let thread = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let nodes = words[4..].chunks(3).map(|node| (number(node[1]) as u32, number(node[2]))).collect();
        (number(words[3]) as u32, nodes)
    };
    text.lines().map(thread).collect()
}

/// Check with the kernel's answers that each policy places pages, and each expression threads, as documented.
#[test]
fn pages_and_threads_land_where_they_should() {
    let (program, llvm) = (guest_program("placed"), guest_program("placed_llvm"));
    let program = [program.to_str().unwrap(), &PAGES.to_string()];
    let [Node { id: a, cpus: a_cpus }, Node { id: b, cpus: b_cpus }] = first_two_with_cpus();
    let (both, cpu) = (format!("{a},{b}"), b_cpus[0].to_string());
    let [a_list, b_list] = [a, b].map(|node| node.to_string());
    for (options, on) in [
        (&["--membind", &b_list][..], vec![(b, PAGES)]),
        (&["--cpunodebind", &a_list, "--membind", &b_list], vec![(b, PAGES)]),
        (&["--preferred", &b_list], vec![(b, PAGES)]),
        (&["--preferred-many", &b_list], vec![(b, PAGES)]),
        (&["--interleave", &both], vec![(a, PAGES / 2), (b, PAGES / 2)]),
        (&["--cpunodebind", &b_list, "--localalloc"], vec![(b, PAGES)]),
        (&["--physcpubind", &cpu], vec![(b, PAGES)]),
        (&["--balancing", "--membind", &b_list], vec![(b, PAGES)]),
        (&["--physcpubind", &cpu, "--membind", "same"], vec![(b, PAGES)]),
        (&["--pin", &cpu, "--interleave", "same"], vec![(b, PAGES)]),
    ] {
        let threads = placed(ours(options, &program).env("OMP_NUM_THREADS", "1"));
        assert_eq!(threads.len(), 1, "{options:?}");
        assert_eq!(threads[0].1, on, "{options:?}");
    }
    // The last node's CPU first.
    let order = [b_cpus[0], a_cpus[0], *a_cpus.last().unwrap()];
    let list = order.map(|cpu| cpu.to_string()).join(",");
    for (expression, cpus) in [(list.as_str(), &order[..]), ("M0:0@M1:0", &[a_cpus[0], b_cpus[0]]), ("numa:1.pu:0", &b_cpus[..1])] {
        let seats = placed(&mut ours(&["--pin", expression], &program));
        assert_eq!(seats, placed(&mut ours(&["--pin", expression], &[llvm.to_str().unwrap(), program[1]])), "LLVM's runtime: {expression}");
        let on = |cpu: &u32| vec![(if b_cpus.contains(cpu) { b } else { a }, PAGES)];
        let expected: Vec<_> = cpus.iter().map(|cpu| (*cpu, on(cpu))).collect();
        assert_eq!(seats, expected, "{expression}");
        let explained = json(&["run", "--pin", expression, "--explain"]);
        let reported: Vec<u64> = explained["threads"].as_array().unwrap().iter().map(|seat| seat["cpu"].as_u64().unwrap()).collect();
        assert_eq!(reported, cpus.iter().map(|cpu| u64::from(*cpu)).collect::<Vec<_>>(), "{expression}");
    }
}

/// Check that threads without an OpenMP runtime get their CPUs on both nodes in the order in which they start.
#[test]
fn plain_threads_get_their_cpus_in_order() {
    let [Node { cpus: a, .. }, Node { cpus: b, .. }] = first_two_with_cpus();
    let threads = firsttouch_e2e::programs::program("plain_threads", "where").expect("scripts/test-guests builds it");
    let expression = format!("{},{},{}", b[0], a[1], a[0]);
    let said = said(&mut ours(&["--pin", &expression], &[threads.to_str().unwrap(), "threads", "3"]));
    let cpus: Vec<&str> = said.lines().skip(1).filter_map(|line| line.split(": ").nth(1)).collect();
    assert_eq!(cpus, [a[1], a[0], b[0], b[0]].map(|cpu| cpu.to_string()), "{said}");
}

/// Check that shared memory keeps its policy, that the policy places its pages, and that numactl reports the same.
#[test]
fn shared_memory_is_placed() {
    let [a, b] = first_two_with_cpus().map(|node| node.id);
    for (kind, name) in [("--file", "/dev/shm/placed"), ("--shm", "/tmp/placed.key")] {
        for (policy, list, dumped) in [
            ("--membind", b.to_string(), format!("bind {b}")),
            ("--interleave", format!("{a},{b}"), format!("interleave {a}{}{b}", if b == a + 1 { "-" } else { "," })),
        ] {
            let name = format!("{name}{}", &policy[2..]);
            let options = [kind, &name, "--length", "64K", policy, &list, "--touch", "--dump", "--dump-nodes"];
            let text = said(&mut firsttouch().command([&["run"], &options[..]].concat()));
            let (policies, nodes): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains(&dumped));
            assert_eq!(policies, [format!("0000000000000000-0000000000010000: {dumped}")], "{text}");
            let theirs = said(&mut numactl(&["--length=64k", kind, &name, "--dump-nodes"], &[]));
            assert_eq!(nodes, theirs.lines().collect::<Vec<_>>(), "{kind} {policy}");
            assert_eq!(nodes.len(), if policy == "--membind" { 1 } else { 16 }, "{text}");
            // Only a part, later.
            let part = ["--offset", "32K", "--length", "32K", "--dump"];
            let text = said(&mut firsttouch().command([&["run", kind, &name], &part[..]].concat()));
            assert_eq!(text.trim_end(), format!("0000000000008000-0000000000010000: {dumped}"));
        }
    }
    said(Command::new("sh").args(["-c", "rm /dev/shm/placed*; ipcrm --all=shm"]));
}

/// Check that a home node is an error for a process, and that it works for a range of memory.
#[test]
fn homes_are_for_memory() {
    let outcome = run(&mut ours(&["--home-node", "0", "--membind", "0"], &["true"]));
    assert_clear_error(&outcome, &[2], &["ranges of memory only", "--shm"]);
    let file = ["--file", "/dev/shm/home", "--length", "64K", "--membind", "0,1", "--home-node", "1", "--touch", "--dump-nodes"];
    let text = said(&mut firsttouch().command([&["run"], &file[..]].concat()));
    assert!(text.ends_with(": 1\n") && text.lines().count() == 1, "{text}");
    fs::remove_file("/dev/shm/home").unwrap();
}

/// Check the limits of a cpuset and an affinity: other nodes and CPUs are errors, relative lists count the allowed ones, and --all includes
/// the others. (Only in the guest with more memory, because the files that the group reads must fit on its one node.)
#[test]
fn limits_are_kept() {
    if nodes().len() != 2 {
        return;
    }
    let [Node { id: a, cpus: a_cpus }, Node { id: b, cpus: b_cpus }] = first_two_with_cpus();
    let group = Group::with_cpuset("run-limits", &b_cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","), &b.to_string());
    let inside = |command: &Command| {
        let arguments: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        run(&mut group.command(Path::new(command.get_program()), &arguments))
    };
    let (a, a_cpu) = (a.to_string(), a_cpus[0].to_string());
    for (options, words) in [
        (["--membind", a.as_str()], "is not allowed here: this process may use node"),
        (["--physcpubind", a_cpu.as_str()], "is not allowed here: this process may use CPU"),
        (["--cpunodebind", a.as_str()], "is not allowed here: this process may use node"),
    ] {
        assert_clear_error(&inside(&ours(&options, &["true"])), &[2], &[words]);
        let outcome = inside(&ours(&[&["--best-effort"], &options[..]].concat(), &["echo", "ran"]));
        assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ran\n"), "{outcome:?}");
        assert!(outcome.stderr_text().contains("warning: "), "{outcome:?}");
        // The kernel rejects it, because it is not in the group's cpuset.
        let outcome = inside(&ours(&[&["--all"], &options[..]].concat(), &["true"]));
        assert_clear_error(&outcome, &[1], &["Invalid argument", "firsttouch topology"]);
    }
    for options in [&["--membind=+0"][..], &["--physcpubind=all"], &["--cpunodebind=+0", "--membind=same"]] {
        let [ours, theirs] = [ours(options, &["numactl", "--show"]), numactl(options, &["numactl", "--show"])];
        let (ours, theirs) = (
            inside(&ours),
            run(&mut group.command(Path::new("numactl"), &theirs.get_args().map(|word| word.to_str().unwrap()).collect::<Vec<_>>())),
        );
        assert_eq!((ours.status, &ours.stdout), (theirs.status, &theirs.stdout), "{options:?} {ours:?}");
    }
    // Bound to one CPU by taskset, `run --all` can use the other CPUs, as numactl --all can.
    let bound = |command: &Command| run(Command::new("taskset").args(["-c", &a_cpu]).arg(command.get_program()).args(command.get_args()));
    let other = format!("--physcpubind={}", b_cpus[0]);
    assert_clear_error(&bound(&ours(&[&other], &["true"])), &[2], &["is not allowed here"]);
    let [ours, theirs] = [ours(&["--all", &other], &["numactl", "--show"]), numactl(&["--all", &other], &["numactl", "--show"])];
    let (ours, theirs) = (bound(&ours), bound(&theirs));
    assert_eq!((ours.status, &ours.stdout), (0, &theirs.stdout), "{ours:?}");
}

/// Check that an error about a feature that this kernel lacks names the first kernel that has it, and that with --best-effort the program
/// runs.
#[test]
fn older_kernels_are_told() {
    let refused = run(&mut ours(&["--weighted-interleave", "all"], &["true"]));
    if refused.status != 0 {
        assert_clear_error(&refused, &[1], &["weighted-interleave", "needs Linux 6.9"]);
    }
    let outcome = run(&mut ours(&["--best-effort", "--weighted-interleave", "all"], &["echo", "ran"]));
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ran\n"), "{outcome:?}");
}

/// Check that the quick test times each placement, with one process on each node that has CPUs, and ends with a verdict.
#[test]
fn quick_test_times_each_way() {
    let program = guest_program("placed");
    let outcome =
        run(&mut firsttouch().command(["run", "--quick-test", "--rounds", "1", "--json", "--", program.to_str().unwrap(), "512"]));
    let text = outcome.stdout_text();
    let (output, result) = text.split_at(text.find('{').unwrap_or_else(|| panic!("{outcome:?}")));
    let result: serde_json::Value = serde_json::from_str(result).unwrap();
    let with_cpus: Vec<Node> = nodes().into_iter().filter(|node| !node.cpus.is_empty()).collect();
    assert_eq!(result["nodes"].as_array().unwrap().len(), with_cpus.len());
    assert_eq!(result["tried"].as_array().unwrap().len(), 4);
    assert!(result["tried"].as_array().unwrap().iter().all(|tried| tried["wall_s"]["median"].as_f64().unwrap() > 0.0), "{result:#}");
    assert!(result["ratios"]["all_over_home"].is_number() && result["verdict"].as_str().unwrap().len() > 20, "{result:#}");
    // One bound process, two on all nodes, and one bound process per node: each prints a first thread.
    assert_eq!(output.lines().filter(|line| line.starts_with("thread 0 ")).count(), 3 + with_cpus.len(), "{output}");
}

/// Check that OpenMP's allocators place memory as their trait asks, with the library and only with it, and that memory which is handed out
/// again has no policy left. (Only in the guest with two nodes, which has the time.)
#[test]
fn openmp_allocators_place_memory() {
    const HALF: usize = 512;
    if nodes().len() != 2 {
        return;
    }
    let program = guest_program("openmp_allocators");
    let of = |options: &[&str]| {
        let outcome = run(ours(&[&["--cpunodebind", "0"][..], options].concat(), &[program.to_str().unwrap()]).arg("4"));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let pages = |line: &str| -> Vec<usize> { line.split(' ').filter_map(|word| word.parse().ok()).collect() };
        let line = |name: &str| pages(outcome.stdout_text().lines().find(|line| line.starts_with(name)).expect("a line"));
        (["environment", "blocked", "interleaved", "nearest", "plain", "grown blocked"].map(line), outcome.messages())
    };
    // One page may lie between the halves of a block that does not start at a page, or be the block's border.
    let near = |pages: usize, wanted: usize| pages.abs_diff(wanted) <= 2;
    let on_first = |pages: &[usize]| near(pages[0], HALF) && pages[1] == 0 && near(pages[2], HALF) && pages[3] == 0;
    let (plain, messages) = of(&[]);
    assert!(plain[..5].iter().all(|pages| on_first(pages)) && messages.is_empty(), "{plain:?} {messages}");
    let ([environment, blocked, interleaved, nearest, after, grown], messages) = of(&["--openmp-allocators"]);
    assert!([&environment, &nearest, &after].into_iter().all(|pages| on_first(pages)), "{environment:?} {nearest:?} {after:?}");
    assert!(near(blocked[0], HALF) && near(blocked[3], HALF) && blocked[4] == 1, "{blocked:?}");
    assert!(near(grown[0], 2 * HALF) && near(grown[3], 2 * HALF), "{grown:?}");
    assert!(near(interleaved[0], HALF / 2) && near(interleaved[3], HALF / 2) && interleaved[4] > 2 * HALF - 5, "{interleaved:?}");
    assert!(messages.contains("2 blocks (12 MiB) placed blocked; 2 blocks (12 MiB) placed interleaved"), "{messages}");
}
