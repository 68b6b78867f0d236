// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch top`: figures beside a program that counts its own accesses, records and replays, statuses, and the screen in a real terminal
//! emulator (tmux), left in each way.

use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::skip::lacks_tools;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, assert_no_panic, temporary_directory, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Two seconds of samples.
const TOLERANCE: f64 = 0.05;
const TRIES: usize = 3;
const WAIT: Duration = Duration::from_secs(30);

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// The row of a process of this name in a snapshot.
fn row<'a>(snapshot: &'a Value, name: &str) -> Option<&'a Value> {
    snapshot["processes"].as_array()?.iter().find(|row| row["name"] == name)
}

/// Check the remote share of a started program against its own count, its nodes, threads and objects, and that its output goes to the file.
#[test]
fn figures_of_a_started_program() {
    let Some(firsttouch) = Firsttouch::find("top::figures_of_a_started_program") else { return };
    let Some(program) = program("top::figures_of_a_started_program", "truth/dgemv") else { return };
    let mut wrong = String::new();
    for _ in 0..TRIES {
        let directory = temporary_directory();
        let output = directory.path().join("out");
        let options = ["top", "-n", "2", "-d", "1.5", "--json", "--machine", "virtual:2", "-o", text(&output), "--", text(&program)];
        let outcome = run(firsttouch.command(options).args(["--seconds", "4", "--init", "serial"]));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let truth: Value = serde_json::from_str(std::fs::read_to_string(&output).expect("its output").lines().last().unwrap_or_default())
            .expect("the program's own count");
        let snapshots = lines(&outcome.stdout_text());
        assert_eq!(snapshots.len(), 2, "{outcome:?}");
        let last = &snapshots[1];
        assert_eq!((last["schema"].as_str(), last["machine"]["nodes"].as_u64()), (Some("firsttouch.top/1"), Some(2)));
        let remote = &row(last, "dgemv").expect("the program")["remote"];
        let (share, truth) = (remote["share"].as_f64().unwrap_or(f64::NAN), truth["remote"]["2"].as_f64().expect("a share"));
        let objects = last["detail"]["objects"].as_array().cloned().unwrap_or_default();
        let threads = last["detail"]["threads"].as_array().map_or(0, Vec::len);
        if (share - truth).abs() <= TOLERANCE && objects.iter().any(|object| object["name"] == "A") && threads == 8 {
            return;
        }
        wrong += &format!("{remote}, truth {truth}; {threads} threads; objects {objects:?}\n");
    }
    panic!("{wrong}");
}

/// Check that a process that ran before is shown with its threads, and that its share, if it is not known, has a reason.
#[test]
fn figures_of_a_running_process() {
    let Some(firsttouch) = Firsttouch::find("top::figures_of_a_running_process") else { return };
    let Some(program) = program("top::figures_of_a_running_process", "truth/triad") else { return };
    let running = Running::start(Command::new(program).args(["--seconds", "20", "--init", "serial"]), b"");
    let pid = running.pid().to_string();
    let outcome = run(&mut firsttouch.command(["top", "-b", "-n", "1", "-d", "2.5", "--json", &pid]));
    running.signal(libc::SIGKILL);
    drop(running.wait());
    let snapshots = lines(&outcome.stdout_text());
    let row = row(&snapshots[0], "triad").expect("the process");
    let remote = &row["remote"];
    assert!(remote["share"].is_number() || remote["reason"].as_str().is_some_and(|why| !why.is_empty()), "{outcome:?}");
    assert_eq!(remote["share"].is_number(), remote["interval"].is_array(), "{outcome:?}");
    assert_eq!((snapshots[0]["detail"]["pid"].as_i64(), row["threads"].as_u64()), (pid.parse().ok(), Some(8)));
    assert!(row["cpu"].as_f64().is_some_and(|cpu| cpu > 0.0) && row["resident_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20));
}

/// Check that a replay prints what was recorded, in each format, and that an older record is kept.
#[test]
fn replays_are_as_recorded() {
    let Some(firsttouch) = Firsttouch::find("top::replays_are_as_recorded") else { return };
    let directory = temporary_directory();
    let record = directory.path().join("a.fttop");
    let live = run(&mut firsttouch.command(["top", "-n", "4", "-d", "200ms", "--json", "--record", text(&record)]));
    assert_eq!(live.status, 0, "{live:?}");
    assert_eq!(lines(&live.stdout_text()).len(), 4);
    let replayed = run(&mut firsttouch.command(["top", "--replay", text(&record), "--json"]));
    assert_eq!((replayed.status, replayed.stderr_text().as_str()), (0, ""));
    assert_eq!(lines(&replayed.stdout_text()), lines(&live.stdout_text()));
    let csv = run(&mut firsttouch.command(["top", "--replay", text(&record), "--csv", "-n", "1"])).stdout_text();
    assert!(csv.starts_with("time_s,window_s,pid,user,") && csv.lines().count() > 1, "{csv}");
    let as_text = run(&mut firsttouch.command(["top", "--replay", text(&record), "-b"])).stdout_text();
    assert_eq!(as_text.matches("  PID  USER").count(), 4, "{as_text}");
    let again = run(&mut firsttouch.command(["top", "-b", "-n", "1", "-d", "100ms", "--record", text(&record)]));
    assert!(again.stderr_text().contains("a.fttop.1"), "{again:?}");
    assert!(directory.path().join("a.fttop.1").exists());
}

/// Check the statuses of programs, also of those that cannot be executed, and where their output goes.
#[test]
fn statuses_are_passed_on() {
    let Some(firsttouch) = Firsttouch::find("top::statuses_are_passed_on") else { return };
    let directory = temporary_directory();
    let top = |words: &[&str]| run(firsttouch.command(["top", "-b", "-d", "100ms", "--"]).args(words).current_dir(directory.path()));
    assert_eq!(top(&["sh", "-c", "echo words; exit 7"]).status, 7);
    assert_eq!(std::fs::read_to_string(directory.path().join("sh.out")).expect("its output"), "words\n");
    assert_eq!(top(&["sh", "-c", "kill -TERM $$"]).status, 143);
    assert_clear_error(&top(&["/none/such"]), &[127], &["/none/such"]);
    let outcome = top(&["/etc/passwd"]);
    assert_eq!(outcome.status, 126, "{outcome:?}");
}

/// Check that logs are quiet in pipes, that a missing terminal is said once, and that errors are clear.
#[test]
fn logs_and_errors() {
    let Some(firsttouch) = Firsttouch::find("top::logs_and_errors") else { return };
    let piped = run(Command::new("bash").arg("-c").arg(format!("'{}' top -b -d 100ms | head -1", firsttouch.binary().display())));
    assert_eq!((piped.status, piped.stderr_text().as_str()), (0, ""), "{piped:?}");
    assert!(piped.stdout_text().contains("remote judged on"), "{piped:?}");
    let outcome = run(&mut firsttouch.command(["top", "-n", "1", "-d", "100ms"]));
    assert_eq!(outcome.stderr_text().matches("the output is no terminal").count(), 1, "{outcome:?}");
    let directory = temporary_directory();
    let notes = directory.path().join("notes.txt");
    std::fs::write(&notes, "mine").expect("a file");
    let refused = |words: &[&str], status: i32, mentions: &[&str]| {
        let outcome = run(firsttouch.command(["top", "-b", "-n", "1"]).args(words));
        assert_clear_error(&outcome, &[status], mentions);
        assert_no_panic(&outcome);
    };
    refused(&["--replay", text(&notes)], 1, &["it is no record of 'firsttouch top'"]);
    refused(&["--record", text(&notes)], 1, &["another kind of file is already there"]);
    refused(&["--replay", "/none/such.fttop"], 1, &["cannot open record /none/such.fttop"]);
    refused(&["--replay", "/dev/null"], 1, &["it is not a regular file"]);
    refused(&["999999999"], 1, &["999999999"]);
    refused(&["ls"], 2, &["firsttouch top -- ls"]);
    refused(&["--machine", "virtual:0"], 2, &["virtual:0"]);
    refused(&["-d", "1ms"], 2, &["at least 100ms"]);
    assert_eq!(std::fs::read_to_string(&notes).expect("the file"), "mine");
}

/// A terminal emulator with a shell.
struct Tmux {
    directory: tempfile::TempDir,
}

impl Tmux {
    fn start(width: u16, height: u16) -> Self {
        let tmux = Self { directory: temporary_directory() };
        let (width, height) = (width.to_string(), height.to_string());
        let made = tmux.command(&["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, "env", "PS1=READY ", "sh"]);
        assert!(made.status.success(), "{made:?}");
        tmux.wait_for("READY");
        tmux
    }

    fn command(&self, words: &[&str]) -> std::process::Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.directory.path().join("socket")).args(words).env_remove("TMUX").env("TERM", "xterm-256color");
        command.output().expect("tmux")
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.command(&["capture-pane", "-p"]).stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        let sent = self.command(&[&["send-keys"], keys].concat());
        assert!(sent.status.success(), "{sent:?}");
    }

    fn wait_for(&self, words: &str) -> String {
        let deadline = Instant::now() + WAIT;
        loop {
            let screen = self.screen();
            if screen.contains(words) {
                return screen;
            }
            assert!(Instant::now() < deadline, "{words:?} did not appear:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a line in the shell, with its output in a file.
    fn shell(&self, line: &str, output: &Path) -> String {
        let _ = std::fs::remove_file(output);
        let done = output.with_extension("done");
        let _ = std::fs::remove_file(&done);
        self.keys(&[&format!("{line} > {} 2>&1; touch {}", output.display(), done.display()), "Enter"]);
        let deadline = Instant::now() + WAIT;
        while !done.exists() {
            assert!(Instant::now() < deadline, "{line} did not end:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::read_to_string(output).unwrap_or_default()
    }

    /// The number of the process that runs in the foreground of the pane.
    fn child_of_shell(&self) -> i32 {
        let shell = String::from_utf8_lossy(&self.command(&["display-message", "-p", "#{pane_pid}"]).stdout).trim().to_owned();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).expect("the shell's children");
        children.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("a child")
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.command(&["kill-server"]);
    }
}

/// Check the screen at two sizes: views, keys, help, a change of the size; and that the terminal is as before, however the screen is left.
#[test]
fn the_screen_is_left_as_it_was() {
    let test = "top::the_screen_is_left_as_it_was";
    let Some(firsttouch) = Firsttouch::find(test) else { return };
    if lacks_tools(test, &["tmux"]) {
        return;
    }
    let line = format!("{} top -d 200ms $$", firsttouch.binary().display());
    for (width, height) in [(80, 24), (20, 5)] {
        let tmux = Tmux::start(width, height);
        let state = tmux.directory.path().join("stty");
        // The first line has the size, which tmux restores when it likes.
        let settings = || tmux.shell("stty -a | tail -n +2", &state);
        let before = settings();
        assert!(before.contains("echo"), "{before}");
        let start = || {
            tmux.keys(&["clear", "Enter"]);
            tmux.wait_for("READY");
            // The shell itself: other processes come and go.
            tmux.keys(&[&line, "Enter"]);
            tmux.wait_for("CPU%");
        };
        start();
        if height == 24 {
            tmux.wait_for("Mappings");
            tmux.keys(&["Escape"]);
            tmux.wait_for("COMMAND");
            tmux.keys(&["Tab"]);
            tmux.wait_for("MISS/s");
            tmux.keys(&["Tab", "h"]);
            tmux.wait_for("any key goes back");
            tmux.keys(&["h"]);
            tmux.wait_for("COMMAND");
            tmux.keys(&["Enter"]);
            tmux.wait_for("Mappings");
            tmux.command(&["resize-window", "-x", "60", "-y", "12"]);
            tmux.wait_for("TID");
            tmux.keys(&["Escape"]);
            tmux.wait_for("COMMAND");
            tmux.command(&["resize-window", "-x", "80", "-y", "24"]);
        }
        let ways: [&dyn Fn(); 4] =
            [&|| tmux.keys(&["q"]), &|| tmux.keys(&["C-c"]), &|| kill(tmux.child_of_shell(), libc::SIGTERM), &|| {
                kill(tmux.child_of_shell(), libc::SIGHUP)
            }];
        for (number, leave) in ways.iter().enumerate() {
            if number > 0 {
                start();
            }
            leave();
            let screen = tmux.wait_for("READY");
            assert!(!screen.contains("COMMAND") || width < 80, "{screen}");
            assert_eq!(settings(), before, "left in way {number} at {width} x {height}");
        }
    }
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// Check that after kill -9 no recorder is left, and that the process that was sampled goes on.
#[test]
fn killed_views_leave_nothing_behind() {
    let Some(firsttouch) = Firsttouch::find("top::killed_views_leave_nothing_behind") else { return };
    let mut sampled = Running::start(Command::new("bash").args(["-c", "while :; do :; done"]), b"");
    let pid = sampled.pid().to_string();
    let top = Running::start(&mut firsttouch.command(["top", "-b", "-d", "200ms", "--json", &pid]), b"");
    let recorders = || -> Vec<String> {
        let children = std::fs::read_to_string(format!("/proc/{}/task/{}/children", top.pid(), top.pid())).unwrap_or_default();
        children.split_whitespace().map(str::to_owned).collect()
    };
    let deadline = Instant::now() + WAIT;
    while recorders().is_empty() {
        assert!(Instant::now() < deadline, "no recorder was started");
        std::thread::sleep(Duration::from_millis(20));
    }
    let recorders = recorders();
    top.signal(libc::SIGKILL);
    let is_recorder =
        |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.contains("record-live"));
    while recorders.iter().any(is_recorder) {
        assert!(Instant::now() < deadline, "a recorder goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!sampled.has_ended());
    sampled.signal(libc::SIGKILL);
    drop((top.wait(), sampled.wait()));
}

/// Check that options may follow the process, and that its end is said once and ends the log.
#[test]
fn logs_end_with_the_process() {
    let Some(firsttouch) = Firsttouch::find("top::logs_end_with_the_process") else { return };
    let sleeping = Running::start(Command::new("sleep").arg("1"), b"");
    let pid = sleeping.pid().to_string();
    let outcome = run(&mut firsttouch.command(["top", &pid, "-b", "-d", "200ms"]));
    drop(sleeping.wait());
    assert_eq!((outcome.status, outcome.stderr_text().matches("has ended").count()), (0, 1), "{outcome:?}");
}

fn children(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Check that a program goes on, and is awaited, when its recorder is killed.
#[test]
fn programs_outlive_their_recorder() {
    let Some(firsttouch) = Firsttouch::find("top::programs_outlive_their_recorder") else { return };
    let directory = temporary_directory();
    let (started, done) = (directory.path().join("started"), directory.path().join("done"));
    let line = format!("touch {}; sleep 3; touch {}", text(&started), text(&done));
    let mut command = firsttouch.command(["top", "-b", "-d", "200ms", "-o", "/dev/null", "--", "sh", "-c", &line]);
    let top = Running::start(&mut command, b"");
    let deadline = Instant::now() + WAIT;
    while !started.exists() {
        assert!(Instant::now() < deadline, "the program was not started");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Time for a look at its processes.
    std::thread::sleep(Duration::from_millis(1000));
    children(top.pid()).into_iter().for_each(|recorder| kill(recorder, libc::SIGKILL));
    let outcome = top.wait();
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let said = outcome.stderr_text();
    assert!(done.exists() && said.contains("the program goes on") && said.contains("its status is not known"), "{outcome:?}");
}
