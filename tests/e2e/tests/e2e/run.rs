// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch run` on any machine: invalid arguments and their messages, the program's environment, and the properties of the process
//! that must not change.

use firsttouch_e2e::process::{Outcome, Running, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, assert_no_panic, temporary_directory, text};
use serde_json::Value;
use std::fs;
use std::process::Command;

fn ours(firsttouch: &Firsttouch, words: &[&str]) -> Command {
    firsttouch.command([&["run"], words].concat())
}

/// Check that firsttouch fails with this status and message, and does not start the program, which would create a file.
fn refuses(firsttouch: &Firsttouch, options: &[&str], status: i32, words: &[&str]) -> Outcome {
    let folder = temporary_directory();
    let file = folder.path().join("started");
    let outcome = run(&mut ours(firsttouch, &[options, &["--", "touch", text(&file)]].concat()));
    assert_clear_error(&outcome, &[status], words);
    assert!(!file.exists(), "{options:?}: the program started");
    outcome
}

/// Check that a missing node or CPU and a syntax error are reported with their position before the program starts.
#[test]
fn lists_and_expressions_are_refused() {
    let Some(firsttouch) = Firsttouch::find("lists_and_expressions_are_refused") else { return };
    for (options, words, shown) in [
        (&["--membind", "0,1023"][..], "--membind: node 1023 does not exist: this machine has node", "  0,1023\n    ^\n"),
        (&["--interleave", "0-x"], "--interleave: expected a number", "  0-x\n    ^\n"),
        (&["--preferred=!all"], "--preferred: this selects no node", "  !all\n  ^\n"),
        (&["-C", "9999"], "--physcpubind: CPU 9999 does not exist", "  9999\n  ^\n"),
        (&["-N", "1023"], "--cpunodebind: node 1023 does not exist", "  1023\n  ^\n"),
        (&["-m", "same"], "--membind: 'same' needs nodes or CPUs", "  same\n  ^\n"),
        (&["-m", "netdev:none0"], "no such device in /sys", "  netdev:none0\n  ^\n"),
        (&["--pin", "S0:0@S999:0"], "--pin: S999 does not exist", "  S0:0@S999:0\n       ^\n"),
        (&["--pin", "package:0.corn:0"], "--pin: ", "  package:0.corn:0\n            ^\n"),
        (&["--pin", "compact:0"], "--pin: expected a number of threads", "  compact:0\n          ^\n"),
    ] {
        let outcome = refuses(&firsttouch, options, 2, &[words]);
        assert!(outcome.stderr_text().contains(shown), "the message shows the position:\n{}", outcome.stderr_text());
    }
    for (options, words) in [
        (&["--membind", "0", "--interleave", "0"][..], "cannot be used with"),
        (&["--balancing", "--interleave", "0"], "cannot be used with"),
        (&["--physcpubind", "0", "--pin", "0"], "cannot be used with"),
        (&["--touch"], "--shm"),
        (&["--home-node", "0"], "ranges of memory only"),
        (&["--file", "/dev/shm/none"], "cannot be used with"),
        (&["--rounds", "3"], "--quick-test"),
        (&["--shmmode", "9"], "octal"),
    ] {
        let outcome = refuses(&firsttouch, options, 2, &[]);
        assert!(outcome.stderr_text().contains(words), "{options:?}: {}", outcome.stderr_text());
    }
}

/// Check that with --best-effort a placement that is not possible is a warning, and that the program runs without it.
#[test]
fn best_effort_runs_without() {
    let Some(firsttouch) = Firsttouch::find("best_effort_runs_without") else { return };
    let script = "grep -E 'Cpus_allowed_list|Mems_allowed_list' /proc/self/status; env | grep -c ^OMP_; exit 5";
    let plain = run(Command::new("sh").args(["-c", script]));
    for options in [
        &["--membind", "1023"][..],
        &["--membind", "0-"],
        &["--physcpubind", "9999"],
        &["--cpunodebind", "1023"],
        &["--pin", "S0:9999"],
        &["--pin", "nonsense"],
        &["--home-node", "0"],
    ] {
        let outcome = run(&mut ours(&firsttouch, &[&["--best-effort"], options, &["--", "sh", "-c", script]].concat()));
        assert_no_panic(&outcome);
        assert_eq!((outcome.status, outcome.stdout_text()), (5, plain.stdout_text()), "{options:?}: {outcome:?}");
        assert!(outcome.messages().contains("warning: ") && outcome.stderr_text().contains("runs without"), "{options:?}: {outcome:?}");
    }
}

/// Check that the error in a container that forbids memory policies says how to allow them, and that --best-effort continues.
#[test]
fn containers_that_forbid_policies() {
    let name = "containers_that_forbid_policies";
    let (Some(firsttouch), Some(forbid)) = (Firsttouch::find(name), program(name, "noharm/forbid")) else { return };
    for (error, words) in [("EPERM", "Operation not permitted"), ("ENOSYS", "Function not implemented")] {
        let inside =
            |command: &Command| run(Command::new(&forbid).args([error, "memory"]).arg(command.get_program()).args(command.get_args()));
        for options in [&["--interleave", "0"][..], &["--localalloc"], &["--membind=0"], &["--preferred", "0"]] {
            let outcome = inside(&ours(&firsttouch, &[options, &["--", "echo", "ran"]].concat()));
            assert_clear_error(&outcome, &[1], &["cannot set the memory policy", words, "--cap-add SYS_NICE", "seccomp=FILE"]);
            let outcome = inside(&ours(&firsttouch, &[&["--best-effort"], options, &["--", "sh", "-c", "echo ran; exit 4"]].concat()));
            assert_eq!((outcome.status, outcome.stdout_text().as_str()), (4, "ran\n"), "{outcome:?}");
            assert!(outcome.messages().contains("warning: cannot set the memory policy"), "{outcome:?}");
        }
        // Binding to CPUs needs no memory policy.
        let outcome = inside(&ours(&firsttouch, &["--cpunodebind", "0", "--", "echo", "ran"]));
        assert_eq!((outcome.status, outcome.stdout_text().as_str(), outcome.messages().as_str()), (0, "ran\n", ""), "{outcome:?}");
        let explained = inside(&ours(&firsttouch, &["--explain", "--json"]));
        assert_eq!(explained.status, 0, "{explained:?}");
    }
}

/// Check that the program replaces firsttouch's process: PID, status, signals and streams are the program's, and nothing of firsttouch
/// remains.
#[test]
fn the_program_takes_the_place() {
    let Some(firsttouch) = Firsttouch::find("the_program_takes_the_place") else { return };
    let place = ["--membind=0", "--cpunodebind=0", "--"];
    let running = Running::start(&mut ours(&firsttouch, &[&place[..], &["sh", "-c", "echo $$; exit 3"]].concat()), &[]);
    let pid = running.pid();
    let outcome = running.wait();
    assert_eq!((outcome.status, outcome.stdout_text(), outcome.stderr_text().as_str()), (3, format!("{pid}\n"), ""), "{outcome:?}");
    for (script, status) in [("kill -TERM $$", 143), ("kill -SEGV $$", 139), ("exit 255", 255)] {
        assert_eq!(run(&mut ours(&firsttouch, &[&place[..], &["sh", "-c", script]].concat())).status, status, "{script}");
    }
    // The program's own handler receives an interrupt.
    let script = "trap 'echo bye; exit 9' INT; echo ready; while :; do sleep 0.1; done";
    let running = Running::start(&mut ours(&firsttouch, &[&place[..], &["sh", "-c", script]].concat()), &[]);
    running.wait_for_stdout("ready\n");
    running.signal(2);
    let outcome = running.wait();
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (9, "ready\nbye\n"), "{outcome:?}");
    // Ignored signals, descriptors and limits are the same as without firsttouch, also with unusual settings of the parent.
    let script = "grep -E '^Sig(Blk|Ign|Cgt)|^Seccomp:' /proc/self/status; ls /proc/self/fd; ulimit -n; ulimit -c";
    for setting in [":", "trap '' CHLD PIPE", "exec <&-", "exec 2>&-", "ulimit -Sn 77"] {
        let shell = |launcher: &[&str]| {
            let script = [launcher, &["sh", "-c", script]].concat();
            run(Command::new("bash").args(["-c", &format!("{setting}; exec \"$@\""), "bash"]).args(script))
        };
        let plain = shell(&[]);
        let launched = shell(&[&[text(firsttouch.binary()), "run"], &place[..]].concat());
        assert_eq!((launched.status, launched.stdout_text()), (plain.status, plain.stdout_text()), "{setting}");
    }
}

/// Check that the statuses for programs that cannot be executed are those of shells.
#[test]
fn programs_that_cannot_run() {
    let Some(firsttouch) = Firsttouch::find("programs_that_cannot_run") else { return };
    for (name, status, words) in [
        ("nonexistent-program", 127, "cannot run nonexistent-program: No such file or directory"),
        ("/nonexistent/program", 127, "check the name and PATH"),
        ("/etc/passwd", 126, "chmod +x"),
        ("/", 126, "cannot run /"),
    ] {
        assert_clear_error(&run(&mut ours(&firsttouch, &["--membind=0", "--", name])), &[status], &[words]);
    }
}

/// Check the variables that an OpenMP program gets, that the user's variables are respected, and that contradictions are reported.
#[test]
fn openmp_variables() {
    let Some(firsttouch) = Firsttouch::find("openmp_variables") else { return };
    let run_with = |variables: &[(&str, &str)]| {
        let mut command =
            ours(&firsttouch, &["--pin", "0,0", "--", "sh", "-c", "env | grep ^OMP_ | sort; grep Cpus_allowed_list /proc/self/status"]);
        for name in ["OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"] {
            command.env_remove(name);
        }
        run(command.envs(variables.iter().copied()))
    };
    let bound = "Cpus_allowed_list:\t0\n";
    let set = |threads: u32, places: &str| format!("OMP_NUM_THREADS={threads}\nOMP_PLACES={places}\nOMP_PROC_BIND=close\n{bound}");
    for (variables, expected) in [
        (&[][..], set(2, "{0},{0}")),
        (&[("OMP_NUM_THREADS", "1")], set(1, "{0},{0}")),
        (&[("OMP_NUM_THREADS", "3")], set(3, "{0},{0},{0}")),
        (&[("OMP_PROC_BIND", "true")], set(2, "{0},{0}")),
        (&[("GOMP_CPU_AFFINITY", "0 0")], set(2, "{0},{0}")),
    ] {
        let outcome = run_with(variables);
        assert_eq!((outcome.status, outcome.stdout_text()), (0, expected), "{variables:?} {outcome:?}");
    }
    for (name, value) in [("OMP_PROC_BIND", "false"), ("OMP_PLACES", "cores"), ("GOMP_CPU_AFFINITY", "0-1"), ("KMP_AFFINITY", "scatter")] {
        let outcome = run_with(&[(name, value)]);
        assert_clear_error(&outcome, &[2], &["contradicts the environment", &format!("{name}={value}"), &format!("env -u {name}")]);
    }
}

/// Check that OpenMP's runtime, which firsttouch needs for its own kernels, prints nothing in commands that run a program, and that the program gets
/// the variables unchanged.
#[test]
fn openmp_speaks_once() {
    let Some(firsttouch) = Firsttouch::find("openmp_speaks_once") else { return };
    let variables = [("OMP_DISPLAY_ENV", "true"), ("OMP_SCHEDULE", "nonsense"), ("GOMP_SPINCOUNT", "few")];
    let shown = "env | grep -E '^G?OMP_(DIS|SCH|SPI)' | sort";
    let folder = temporary_directory();
    for command in ["run", "profile"] {
        let mut words = firsttouch.command([command, "--", "sh", "-c", shown]);
        let outcome = run(words.current_dir(folder.path()).envs(variables));
        assert_eq!(outcome.stdout_text(), "GOMP_SPINCOUNT=few\nOMP_DISPLAY_ENV=true\nOMP_SCHEDULE=nonsense\n", "{command} {outcome:?}");
        assert!(!outcome.stderr_text().contains("OPENMP DISPLAY") && !outcome.stderr_text().contains("libgomp"), "{command} {outcome:?}");
    }
    let outcome = run(firsttouch.command(["bench", "triad", "--elements", "100000", "--iterations", "2"]).envs(variables));
    assert!(outcome.stderr_text().contains("OPENMP DISPLAY"), "{outcome:?}");
}

/// The first and the last CPU of this process.
fn first_and_last_cpu() -> [u32; 2] {
    let status = fs::read_to_string("/proc/self/status").expect("a readable status");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("CPUs");
    let cpus = firsttouch_oracles::parse_list(list.trim());
    [cpus[0], cpus[cpus.len() - 1]]
}

/// Check that a program's threads get their CPUs in the order in which they start, and those of threads that have ended, that programs which it starts begin again with the first
/// CPU, and that threads named by --skip are not pinned.
#[test]
fn threads_get_their_cpus_in_order() {
    let name = "threads_get_their_cpus_in_order";
    let (Some(firsttouch), Some(threads)) = (Firsttouch::find(name), program(name, "where")) else { return };
    let [first, last] = first_and_last_cpu();
    let list = format!("{last},{first}");
    let both = if first == last { first.to_string() } else { format!("{first} {last}") };
    for (options, how, expected) in [
        (&[][..], "threads", format!("main: {both}\nthread 1: {first}\nthread 2: {last}\nthread 3: {first}\nmain: {last}\n")),
        // A thread takes the CPU of one that has ended: those that are made anew in each round stay where those before them were.
        (&[][..], "turns", format!("main: {both}\nthread 1: {first}\nthread 2: {first}\nthread 3: {first}\nmain: {last}\n")),
        (&["--skip", "1"], "threads", format!("main: {both}\nthread 1: {both}\nthread 2: {first}\nthread 3: {last}\nmain: {last}\n")),
        // A skipped thread does not inherit the single CPU of the thread that created it.
        (&["--skip", "2"], "threads", format!("main: {both}\nthread 1: {first}\nthread 2: {both}\nthread 3: {last}\nmain: {last}\n")),
    ] {
        let program = ["--pin", &list, "--", text(&threads), how, "3"];
        let outcome = run(&mut ours(&firsttouch, &[options, &program].concat()));
        assert_eq!((outcome.status, outcome.stdout_text(), outcome.stderr_text().as_str()), (0, expected, ""), "{options:?}");
    }
    // A plan's idle threads take no CPU; thread 0 is the main thread, which then is not pinned.
    for (idle, expected) in [
        ("1", format!("main: {both}\nthread 1: {both}\nthread 2: {first}\nthread 3: {last}\nmain: {last}\n")),
        ("0,2", format!("main: {both}\nthread 1: {last}\nthread 2: {both}\nthread 3: {first}\nmain: {both}\n")),
        // The number of an idle thread that has ended is the next one's.
        ("1 turns", format!("main: {both}\nthread 1: {both}\nthread 2: {both}\nthread 3: {both}\nmain: {both}\n")),
    ] {
        let (idle, how) = idle.split_once(' ').unwrap_or((idle, "threads"));
        let script = format!("FIRSTTOUCH_PIN_IDLE={idle} exec {} {how} 3", text(&threads));
        let outcome = run(&mut ours(&firsttouch, &["--pin", &list, "--", "sh", "-c", &script]));
        assert_eq!((outcome.status, outcome.stdout_text(), outcome.stderr_text().as_str()), (0, expected, ""), "idle {idle}");
    }
    // From a script, and together with the user's preloaded library.
    let script = format!("{} threads 1; echo $LD_PRELOAD", text(&threads));
    let mut command = ours(&firsttouch, &["--pin", &list, "--", "sh", "-c", &script]);
    let outcome = run(command.env("LD_PRELOAD", "libm.so.6"));
    let said = outcome.stdout_text();
    assert!(said.starts_with(&format!("main: {both}\nthread 1: {first}\nmain: {last}\n")) && said.ends_with(":libm.so.6\n"), "{outcome:?}");
    if let Some(alone) = program(name, "noharm/static_binary") {
        let outcome = run(&mut ours(&firsttouch, &["--pin", &list, "--", text(&alone)]));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.messages().contains("is a static program"), "{outcome:?}");
    }
}

/// Check that the threads of an OpenMP team are pinned in the expression's order, with GCC's runtime and LLVM's, also with more threads
/// than CPUs.
#[test]
fn openmp_threads_sit_in_order() {
    let name = "openmp_threads_sit_in_order";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let [first, last] = first_and_last_cpu();
    for placed in ["guests/placed", "guests/placed_llvm"].iter().filter_map(|source| program(name, source)) {
        for (threads, order) in [(None, &[last, first][..]), (Some("1"), &[last]), (Some("4"), &[last, first, last, first])] {
            let mut command = ours(&firsttouch, &["--pin", &format!("{last},{first}"), "--", text(&placed), "4"]);
            command.env_remove("OMP_NUM_THREADS").envs(threads.map(|threads| ("OMP_NUM_THREADS", threads)));
            let outcome = run(&mut command);
            assert_eq!((outcome.status, outcome.stderr_text().as_str()), (0, ""), "{outcome:?}");
            let said = outcome.stdout_text();
            let seats: Vec<&str> = said.lines().filter_map(|line| line.split(" node").next()).collect();
            let expected: Vec<String> = order.iter().enumerate().map(|(thread, cpu)| format!("thread {thread} cpu {cpu}")).collect();
            assert_eq!(seats, expected, "{} {threads:?}", placed.display());
        }
    }
}

/// Check that `--explain` names the CPUs on which the program then runs.
#[test]
fn explained_is_what_happens() {
    let Some(firsttouch) = Firsttouch::find("explained_is_what_happens") else { return };
    for options in [&["--pin", "N:0"][..], &["--cpunodebind", "0", "--membind", "0"], &["--physcpubind", "0"], &[]] {
        let explained = run(&mut ours(&firsttouch, &[options, &["--explain", "--json", "--", "nonexistent"]].concat()));
        assert_eq!(explained.status, 0, "{explained:?}");
        let explained: Value = serde_json::from_slice(&explained.stdout).expect("JSON");
        assert_eq!(explained["schema"], "firsttouch.run-explain/1");
        let script = "sed -n 's/^Cpus_allowed_list:\\t//p' /proc/self/status";
        let cpus = run(&mut ours(&firsttouch, &[options, &["--", "sh", "-c", script]].concat())).stdout_text();
        let reported: Vec<u32> = serde_json::from_value(explained["cpus"].clone()).expect("numbers");
        assert_eq!(reported, firsttouch_oracles::parse_list(cpus.trim()), "{options:?}");
        let threads = explained["threads"].as_array().expect("threads").len();
        assert_eq!(threads, usize::from(options.first() == Some(&"--pin")), "{options:?}");
        assert_eq!(run(&mut ours(&firsttouch, &[options, &["--explain"]].concat())).status, 0);
    }
}

/// Check that --hardware and --show print the output of `topology`, and that shared memory can be placed and dumped, with errors for invalid
/// arguments.
#[test]
fn other_things_than_running() {
    let Some(firsttouch) = Firsttouch::find("other_things_than_running") else { return };
    let nodes = |words: &[&str]| -> Value {
        let outcome = run(&mut firsttouch.command(words));
        let whole: Value = serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
        whole["cpus"].clone()
    };
    let topology = nodes(&["topology", "--json"]);
    for option in ["--hardware", "-H", "--show", "-s"] {
        assert_eq!(nodes(&["run", option, "--json"]), topology, "{option}");
    }
    let folder = tempfile::tempdir_in("/dev/shm").expect("tmpfs");
    let file = folder.path().join("segment");
    let shared = |options: &[&str]| run(&mut ours(&firsttouch, &[&["--file", text(&file)], options].concat()));
    assert_clear_error(&shared(&["--interleave", "0"]), &[1], &["does not exist", "--length"]);
    assert_clear_error(&shared(&["--interleave", "0", "--length", "5"]), &[1], &["whole pages, of 4096 bytes"]);
    assert_clear_error(&shared(&[]), &[2], &["nothing to do"]);
    let outcome = shared(&["--interleave", "0", "--length", "64K", "--touch", "--dump", "--dump-nodes", "--shmmode", "640"]);
    let range = "0000000000000000-0000000000010000";
    assert_eq!((outcome.status, outcome.stdout_text()), (0, format!("{range}: interleave 0\n{range}: 0\n")), "{outcome:?}");
    assert_eq!(fs::metadata(&file).expect("the file").len(), 65536);
    assert_eq!(shared(&["--touch", "--offset", "60K"]).status, 0);
    assert_clear_error(&shared(&["--touch", "--offset", "64K"]), &[1], &["empty"]);
}

/// Check that --quick-test on one node says why there is nothing to test, and does not run the program.
#[test]
fn quick_test_on_one_node() {
    let Some(firsttouch) = Firsttouch::find("quick_test_on_one_node") else { return };
    if fs::read_to_string("/sys/devices/system/node/online").is_ok_and(|online| online.trim() != "0") {
        return; // The tests in guests run it.
    }
    let outcome = run(&mut ours(&firsttouch, &["--quick-test", "--json", "--", "sh", "-c", "echo ran"]));
    let reported: Value = serde_json::from_slice(&outcome.stdout).expect("JSON alone");
    assert_eq!((outcome.status, reported["tried"].as_array().map(Vec::len)), (0, Some(0)), "{outcome:?}");
    assert!(
        reported["verdict"].as_str().is_some_and(|verdict| verdict.starts_with("Nothing to test: this machine has one node")),
        "{reported}"
    );
}

/// Check that the library for OpenMP's allocators leaves what a program computes, says what it placed, and that a program which cannot load it runs.
#[test]
fn openmp_allocators() {
    let name = "openmp_allocators";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let Some(uses) = program(name, "guests/openmp_allocators") else { return };
    let bare = run(Command::new(&uses).arg("1"));
    let outcome = run(&mut ours(&firsttouch, &["--openmp-allocators", "--", text(&uses), "1"]));
    assert_eq!((outcome.status, bare.status), (0, 0), "{outcome:?} {bare:?}");
    assert_eq!(outcome.stdout_text().lines().count(), bare.stdout_text().lines().count());
    let said = outcome.messages();
    let on_one_node = said == "firsttouch: OpenMP allocators: 6 blocks not placed: this process may use one node only\n";
    assert!(on_one_node || said.contains("firsttouch: OpenMP allocators: 2 blocks (3 MiB) placed nearest; 2 blocks"), "{outcome:?}");
    // Other programs do not have the trait, and nothing is said.
    let other = run(&mut ours(&firsttouch, &["--openmp-allocators", "--pin", "0", "--", "sh", "-c", "echo $LD_PRELOAD"]));
    assert!(other.stdout_text().contains("libfirsttouch_openmp") && other.messages().is_empty(), "{other:?}");
    if let Some(alone) = program(name, "noharm/static_binary") {
        let outcome = run(&mut ours(&firsttouch, &["--openmp-allocators", "--", text(&alone)]));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.messages().contains("cannot place the memory of OpenMP's allocators"), "{outcome:?}");
    }
}
