// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unusual settings of the parent (ignored signals, limits, closed descriptors, no PATH): the program behaves as it does without
//! firsttouch, and only a new profile replaces an older one.

use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::tool::{Firsttouch, assert_no_panic, good_profile, temporary_directory, text};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs firsttouch's command line from a bash that first runs `setting`.
fn from_shell(setting: &str, command: &Command) -> Outcome {
    let outcome = run(&mut in_shell(setting, command));
    assert_no_panic(&outcome);
    outcome
}

fn in_shell(setting: &str, command: &Command) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("{setting}; exec \"$@\""), "bash"]).arg(command.get_program()).args(command.get_args());
    shell
}

fn says(firsttouch: &Firsttouch, setting: &str, script: &str, file: &Path) -> (String, i32) {
    let plain = run(Command::new("bash").args(["-c", &format!("{setting}; exec sh -c '{script}'")]));
    let outcome = from_shell(setting, &firsttouch.profile(file, &[], &["sh", "-c", script]));
    assert_eq!((outcome.stdout_text(), outcome.status), (plain.stdout_text(), plain.status), "{outcome:?}");
    (plain.stdout_text(), plain.status)
}

/// Check that firsttouch gets the program's status even if the parent ignores SIGCHLD, and that the program inherits that setting.
#[test]
fn sigchld_is_ignored() {
    let Some(firsttouch) = Firsttouch::find("sigchld_is_ignored") else { return };
    let directory = temporary_directory();
    let script = "grep SigIgn /proc/self/status; exit 3";
    assert_eq!(says(&firsttouch, "trap \"\" CHLD", script, &directory.path().join("a.ftp")).1, 3);
}

/// Check that programs have the disposition of SIGXFSZ that firsttouch was started with, whichever command starts them.
#[test]
fn sigxfsz_is_inherited() {
    let Some(firsttouch) = Firsttouch::find("sigxfsz_is_inherited") else { return };
    let directory = temporary_directory();
    let [file, seen, output] = ["a.ftp", "seen", "output"].map(|name| text(&directory.path().join(name)).to_owned());
    let script = format!("grep SigIgn /proc/self/status > {seen}");
    let ignored = |command: &mut Command| {
        let _ = fs::remove_file(&seen);
        let outcome = run(command);
        let seen = fs::read_to_string(&seen).unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
        let mask = seen.trim().rsplit('\t').next().and_then(|digits| u64::from_str_radix(digits, 16).ok()).expect("a mask");
        mask >> (libc::SIGXFSZ - 1) & 1 == 1
    };
    for (setting, is_ignored) in [("trap - XFSZ", false), ("trap \"\" XFSZ", true)] {
        for words in ["run", "profile --quiet -o FILE", "tune --dry-run", "top -b -n 1 -o OUT"] {
            let words = words.split(' ').map(|word| match word {
                "FILE" => &file,
                "OUT" => &output,
                word => word,
            });
            let command = firsttouch.command(words.chain(["--", "sh", "-c", &script]));
            assert_eq!(ignored(&mut in_shell(setting, &command)), is_ignored, "{setting}: {command:?}");
        }
    }
}

/// Check that closed standard descriptors stay closed.
#[test]
fn standard_input_is_closed() {
    let Some(firsttouch) = Firsttouch::find("standard_input_is_closed") else { return };
    let directory = temporary_directory();
    let script = "test -e /proc/self/fd/0 && echo open || echo closed";
    assert_eq!(says(&firsttouch, "exec <&-", script, &directory.path().join("a.ftp")).0, "closed\n");
}

/// Check that a limit on file sizes affects at most the profile, and that a message names it.
#[test]
fn file_sizes_are_limited() {
    let Some(firsttouch) = Firsttouch::find("file_sizes_are_limited") else { return };
    let directory = temporary_directory();
    for kib in [2000, 150, 40] {
        let file = directory.path().join(format!("{kib}.ftp"));
        let outcome = from_shell(&format!("ulimit -f {kib}"), &firsttouch.profile(&file, &[], &["sh", "-c", "echo done; exit 3"]));
        let started = outcome.stdout_text() == "done\n" && outcome.status == 3;
        let refused = outcome.status == 1 && outcome.messages().contains("ulimit -f");
        assert!(started || refused, "{kib} KiB: {outcome:?}");
    }
}

/// Check that without PATH, firsttouch finds commands in the directories that execvp searches.
#[test]
fn path_is_unset() {
    let Some(firsttouch) = Firsttouch::find("path_is_unset") else { return };
    let directory = temporary_directory();
    let outcome = run(firsttouch.profile(&directory.path().join("a.ftp"), &["--quiet"], &["sh", "-c", "exit 4"]).env_remove("PATH"));
    assert_eq!(outcome.status, 4, "{outcome:?}");
}

/// Check that a command that cannot be run leaves an older profile unchanged.
#[test]
fn failed_launch_keeps_the_older_profile() {
    let Some(firsttouch) = Firsttouch::find("failed_launch_keeps_the_older_profile") else { return };
    let directory = temporary_directory();
    let Some(file) = good_profile("failed_launch_keeps_the_older_profile", &firsttouch, directory.path()) else { return };
    let before = fs::read(&file).expect("a profile");
    for missing in ["./no-such-program", "/etc/passwd"] {
        let outcome = run(&mut firsttouch.profile(&file, &[], &[missing]));
        assert!(matches!(outcome.status, 126 | 127), "{outcome:?}");
        assert!(fs::read(&file).is_ok_and(|now| now == before), "{missing}: the profile changed");
    }
    let left: Vec<_> = fs::read_dir(directory.path()).expect("a directory").flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains(".old-")), "{left:?}");
}

/// Check that firsttouch returns the program's status even if its report cannot be printed.
#[test]
fn report_cannot_be_printed() {
    let Some(firsttouch) = Firsttouch::find("report_cannot_be_printed") else { return };
    let directory = temporary_directory();
    let profile = firsttouch.profile(&directory.path().join("a.ftp"), &["--json"], &["sh", "-c", "exit 3"]);
    assert_eq!(from_shell("exec >/dev/full", &profile).status, 3);
}

/// Check that names with a special meaning in SQLite are ordinary files.
#[test]
fn names_that_sqlite_knows() {
    let Some(firsttouch) = Firsttouch::find("names_that_sqlite_knows") else { return };
    let directory = temporary_directory();
    for name in [":memory:", "file:x?mode=ro"] {
        let outcome = run(firsttouch.profile(Path::new(name), &["--quiet"], &["true"]).current_dir(directory.path()));
        assert_eq!((outcome.status, outcome.stderr_text().as_str()), (0, ""), "{name}: {outcome:?}");
        let report = run(firsttouch.command(["report", name]).current_dir(directory.path()));
        assert_eq!(report.status, 0, "{name}: {report:?}");
    }
}

/// Check that an attached firsttouch ends when the target ends, even if the parent does not reap it, and that attaching to a process that
/// has ended is an error.
#[test]
fn nobody_reaps_the_target() {
    let Some(firsttouch) = Firsttouch::find("nobody_reaps_the_target") else { return };
    let directory = temporary_directory();
    let pid_file = directory.path().join("pid");
    let script = format!("sleep 1 & echo $! >{}; exec sleep 6", text(&pid_file));
    let mut parent = Command::new("sh").args(["-c", &script]).spawn().expect("a shell");
    let pid = loop {
        match fs::read_to_string(&pid_file) {
            Ok(line) if line.ends_with('\n') => break line.trim().to_owned(),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let start = Instant::now();
    let file = directory.path().join("a.ftp");
    let outcome = run(firsttouch.command(["profile", "--quiet", "--pid", &pid, "-o"]).arg(&file));
    assert!(outcome.status == 0 && start.elapsed() < Duration::from_secs(4), "{:?}: {outcome:?}", start.elapsed());
    let again = run(firsttouch.command(["profile", "--pid", &pid, "-o"]).arg(&file));
    assert!(again.status == 1 && again.messages().contains("has ended"), "{again:?}");
    let _ = parent.kill();
    let _ = parent.wait();
}

/// Check that each of a thousand short threads is counted once.
#[test]
fn threads_are_counted_once() {
    let name = "threads_are_counted_once";
    let (Some(firsttouch), Some(threads)) = (Firsttouch::find(name), program(name, "noharm/threads_1000")) else { return };
    let directory = temporary_directory();
    let outcome = run(&mut firsttouch.profile(&directory.path().join("a.ftp"), &["--min-size", "1"], &[text(&threads)]));
    assert!(outcome.messages().contains("1,001 threads"), "{}", outcome.messages());
}
