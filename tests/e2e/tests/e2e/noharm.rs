// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No harm: a program's output, exit status and files are the same with and without `firsttouch profile`.
//!
//! Each program in `tests/programs/noharm` has one hazard, which its first lines describe.

use firsttouch_e2e::case::Case;
use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::skip::{is_root, skipped};
use firsttouch_e2e::terminal::run_on_terminal;
use firsttouch_e2e::tool::{Firsttouch, NOBODY, assert_no_panic};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

fn hazard(test: &str, source: &str, arguments: &[&str]) -> Option<Case> {
    let path = program(test, &format!("noharm/{source}"))?;
    let argv = std::iter::once(OsString::from(path)).chain(arguments.iter().map(OsString::from));
    Some(Case::new(test, argv))
}

/// `name: source [arguments] => status`. Each also runs with every allocation recorded (`--min-size 1`), which exercises the
/// agent most, with `--follow`, and under a plan.
macro_rules! hazards {
    ($($name:ident: $source:literal [$($argument:expr),*] => $status:literal;)*) => {$(
        #[test]
        fn $name() {
            let Some(case) = hazard(stringify!($name), $source, &[$($argument),*]) else { return };
            case.status($status).also_with(&["--min-size", "1"]).also_with(&["--follow"]).also_under_a_plan().check();
        }
    )*};
}

hazards! {
    sigtrap_handler: "sigtrap" [] => 0;
    sigsegv_handler_that_unprotects: "sigsegv" [] => 0;
    stack_overflow_on_sigaltstack: "sigaltstack" [] => 0;
    longjmp_over_frames_with_memory: "setjmp" [] => 0;
    vfork_and_exec: "vfork_exec" [] => 0;
    thousand_short_threads: "threads_1000" [] => 0;
    malloc_before_main: "constructors" [] => 0;
    fork_storm: "fork_storm" [] => 0;
    threads_that_fork_and_exec: "threads_fork_exec" [] => 0;
    all_descriptors_closed: "close_fds" [] => 0;
    inherited_state: "inherited" [] => 0;
    interval_timer: "timers" [] => 0;
    signalfd_queue: "signalfd" [] => 0;
    sigint_handler_that_exits: "sigint_handler" ["self"] => 7;
    static_binary: "static_binary" [] => 0;
    sandboxed_by_itself: "seccomp_self" [] => 0;
    twenty_milliseconds: "short_run" [] => 0;
    four_descriptors_only: "few_files" [] => 0;
    not_dumpable: "not_dumpable" [] => 0;
    own_allocator: "own_malloc" [] => 0;
    small_stacks_and_bad_frame_pointers: "small_stacks" [] => 0;
    mmap_in_a_signal_handler: "handler_mmap" [] => 0;
    allocator_edges: "allocator_edges" [] => 0;
    cancelled_threads: "cancel" [] => 0;
    address_sanitizer: "sanitizer_address" [] => 3;
    thread_sanitizer: "sanitizer_thread" [] => 3;
    sandbox_that_kills_at_exec: "sandbox" ["exec", "/no/such/program"] => 5;
    sandbox_that_kills_at_thread: "sandbox" ["thread"] => 5;
    strict_sandbox: "sandbox" ["strict"] => 7;
    clock_that_faults: "sandbox" ["tsc"] => 5;
    exec_with_bad_pointers: "bad_exec" [] => 3;
    exec_on_a_small_stack: "small_stack_exec" [] => 0;
    exit_0: "die" ["exit", "0"] => 0;
    exit_1: "die" ["exit", "1"] => 1;
    exit_3: "die" ["exit", "3"] => 3;
    exit_77: "die" ["exit", "77"] => 77;
    exit_126: "die" ["exit", "126"] => 126;
    exit_127: "die" ["exit", "127"] => 127;
    exit_255: "die" ["exit", "255"] => 255;
    exit_from_a_thread: "die" ["thread"] => 42;
    killed_by_sighup: "die" ["signal", "1"] => 129;
    killed_by_sigabrt: "die" ["signal", "6"] => 134;
    killed_by_sigkill: "die" ["signal", "9"] => 137;
    killed_by_sigsegv: "die" ["signal", "11"] => 139;
    killed_by_sigpipe: "die" ["signal", "13"] => 141;
    killed_by_sigterm: "die" ["signal", "15"] => 143;
}

/// Check that samples from outside do no harm, with queued signals and threads that are cancelled. The whole suite runs
/// this way under `ulimit -i 1000` (CONTRIBUTING.md).
#[test]
fn sampled_from_outside() {
    for source in ["signalfd", "cancel"] {
        let Some(case) = hazard("sampled_from_outside", source, &[]) else { continue };
        case.without_timers().check();
    }
}

#[test]
fn exec_of_itself() {
    let Some(case) = hazard("exec_of_itself", "exec_self", &[]) else { return };
    case.also_with(&["--min-size", "1"]).also_with(&["--follow"]).check();
}

#[test]
fn posix_spawn() {
    let Some(case) = hazard("posix_spawn", "posix_spawn", &[]) else { return };
    case.also_with(&["--min-size", "1"]).also_with(&["--follow"]).check();
}

#[test]
fn environment() {
    let Some(case) = hazard("environment", "environment", &[]) else { return };
    case.environment("EMPTY", "").environment("WITH_EQUALS", "a=b=c").also_with(&["--min-size", "1"]).also_with(&["--follow"]).check();
}

#[test]
fn environment_with_a_preload_of_its_own() {
    let name = "environment_with_a_preload_of_its_own";
    let Some(library) = program(name, "noharm/dlopen_plugin") else { return };
    let Some(case) = hazard(name, "environment", &[]) else { return };
    let library = library.to_str().expect("a readable path").to_owned();
    // The user's preload must not disturb firsttouch itself either.
    case.environment("LD_PRELOAD", &library).check();
}

#[test]
fn libraries_that_come_and_go() {
    let name = "libraries_that_come_and_go";
    let Some(plugin) = program(name, "noharm/dlopen_plugin") else { return };
    let Some(case) = hazard(name, "dlopen", &[plugin.to_str().expect("a readable path")]) else { return };
    case.also_with(&["--min-size", "1"]).check();
}

#[test]
fn stdin_is_the_programs() {
    let Some(case) = hazard("stdin_is_the_programs", "cat", &[]) else { return };
    let input: Vec<u8> = (0..5_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    case.input(input).also_with(&["--follow"]).check();
}

/// Check that a program on a terminal stays in the foreground, so that it can read the keyboard.
#[test]
fn keyboard_is_the_programs() {
    let name = "keyboard_is_the_programs";
    let Some(cat) = program(name, "noharm/cat") else { return };
    let (bare, status) = run_on_terminal(&mut Command::new(&cat), "", b"hello\n\x04");
    assert_eq!((status, bare.matches("hello").count()), (0, 2), "echo and output: {bare}");
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("cat.ftp");
    let (screen, status) = run_on_terminal(&mut firsttouch.profile(&file, &[], &[&cat]), "", b"hello\n\x04");
    assert_eq!((status, screen.matches("hello").count()), (0, 2), "echo and output: {screen}");
    firsttouch.report_json(&file);
}

/// Check that a child that outlives its parent does not delay the end of the profiler, and that this end does not harm the child.
#[test]
fn daemon_outlives_its_parent() {
    let name = "daemon_outlives_its_parent";
    let Some(daemon) = program(name, "noharm/daemon") else { return };
    let check = |label: &str, start: &dyn Fn(&std::path::Path, &str, &str) -> Command| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (go, done) = (directory.path().join("go"), directory.path().join("done"));
        let mut command =
            start(&directory.path().join("daemon.ftp"), go.to_str().expect("a readable path"), done.to_str().expect("a readable path"));
        let outcome = run(&mut command);
        assert_eq!(outcome.stdout_text(), "the parent leaves\n", "{label}: {outcome:?}");
        assert_eq!(outcome.status, 3, "{label}: {outcome:?}");
        assert!(!done.exists(), "{label}: the child waits for its release");
        fs::write(&go, "").expect("the child is released");
        for _ in 0..1000 {
            if fs::read_to_string(&done).is_ok_and(|text| text == "the child was here, memory intact\n") {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("{label}: the child did not finish its work");
    };
    check("bare", &|_, go, done| {
        let mut command = Command::new(&daemon);
        command.args([go, done]);
        command
    });
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let program = daemon.to_str().expect("a readable path");
    check("profiled", &|file, go, done| firsttouch.profile(file, &[], &[program, go, done]));
}

/// Check that `--pid` profiles a running program without disturbing it, and stops after `--duration`.
#[test]
fn attach_to_a_running_program() {
    let name = "attach_to_a_running_program";
    let Some(ticker) = program(name, "noharm/ticker") else { return };
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (file, result) = (directory.path().join("attached.ftp"), directory.path().join("result"));
    let running = Running::start(Command::new(&ticker).arg("4000").arg(&result), &[]);
    running.wait_for_stdout("ready");
    let pid = running.pid().to_string();
    let mut attach = firsttouch.command(["profile", "--pid", &pid, "--duration", "1", "-o"]);
    let attached = run(attach.arg(&file));
    assert_eq!(attached.status, 0, "{attached:?}");
    assert!(attached.wall.as_secs_f64() < 3.5, "--duration was one second, it took {:?}", attached.wall);
    assert_no_panic(&attached);
    let outcome = running.wait();
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ready\ndone\n"), "{outcome:?}");
    assert!(outcome.stderr.is_empty(), "firsttouch wrote to the program's stderr: {outcome:?}");
    assert_eq!(fs::read_to_string(&result).expect("the program's result"), "wrong bytes 0\n");
    firsttouch.report_json(&file);
}

/// Check that profiling `firsttouch profile` does not change the profiled program's output.
#[test]
fn profile_inside_a_profile() {
    let name = "profile_inside_a_profile";
    let Some(short) = program(name, "noharm/short_run") else { return };
    let bare = run(&mut Command::new(&short));
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (inner, outer) = (directory.path().join("inner.ftp"), directory.path().join("outer.ftp"));
    let command: [&std::ffi::OsStr; 6] =
        [firsttouch.binary().as_os_str(), "profile".as_ref(), "-o".as_ref(), inner.as_os_str(), "--".as_ref(), short.as_os_str()];
    let outcome = run(&mut firsttouch.profile(&outer, &[], &command));
    assert_eq!((outcome.status, outcome.stdout), (bare.status, bare.stdout));
    firsttouch.report_json(&inner);
    firsttouch.report_json(&outer);
}

/// Check that an unprivileged user gets the same output and a profile.
#[test]
fn without_root() {
    let name = "without_root";
    if !is_root() {
        return; // all other tests already run without root
    }
    let Some(short) = program(name, "noharm/short_run") else { return };
    let bare = run(&mut Command::new(&short));
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let reachable = run(Command::new("/usr/bin/test").arg("-x").arg(firsttouch.binary()).uid(NOBODY).gid(NOBODY));
    if reachable.status != 0 {
        return skipped(name, "the binary is in a directory that other users cannot enter");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("the mode is set");
    let file = directory.path().join("nobody.ftp");
    let mut command = firsttouch.profile(&file, &[], &[&short]);
    let outcome = run(command.uid(NOBODY).gid(NOBODY).current_dir(directory.path()));
    assert_eq!((outcome.status, &outcome.stdout), (bare.status, &bare.stdout), "{outcome:?}");
    assert_no_panic(&outcome);
    firsttouch.report_json(&file);
}

/// Check that without `-o` the profile is one file in the working directory, named after the program.
#[test]
fn default_output_name() {
    let name = "default_output_name";
    let Some(short) = program(name, "noharm/short_run") else { return };
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let outcome = run(firsttouch.command(["profile", "--"]).arg(&short).current_dir(directory.path()));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let names: Vec<_> = fs::read_dir(directory.path())
        .expect("the directory exists")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a readable name"))
        .collect();
    assert_eq!(names, ["short_run.ftp"], "one file, and no remaining files of SQLite");
    firsttouch.report_json(&directory.path().join("short_run.ftp"));
}
