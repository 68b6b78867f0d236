// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a command in its own process group with captured output and a time limit, and sends it signals.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The start of every line of firsttouch's own messages.
pub const MESSAGE_PREFIX: &str = "firsttouch: ";

/// No test program needs this long; a program that does hangs.
const TIME_LIMIT: Duration = Duration::from_secs(180);

/// The result of a command.
#[derive(Clone)]
pub struct Outcome {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// As a shell shows it: the exit code, or 128 + the signal.
    pub status: i32,
    pub pid: i32,
    pub wall: Duration,
}

impl Outcome {
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Everything on stderr, from firsttouch and from the program.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// firsttouch's part of stderr: its messages, and the report, which begins with the summary line after the program has ended.
    pub fn messages(&self) -> String {
        self.divide().1
    }

    /// The program's part of stderr.
    pub fn program_stderr(&self) -> String {
        self.divide().0
    }

    fn divide(&self) -> (String, String) {
        let (mut program, mut ours) = (String::new(), String::new());
        let mut in_report = false;
        for line in self.stderr_text().split_inclusive('\n') {
            let message = line.starts_with(MESSAGE_PREFIX);
            in_report |= message && line.contains(" first touches") && line.contains(" -> ");
            if message || in_report { ours.push_str(line) } else { program.push_str(line) }
        }
        (program, ours)
    }
}

/// As text: this is what a failed test shows.
impl std::fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (status, wall) = (self.status, self.wall);
        let (stdout, stderr) = (self.stdout_text(), self.stderr_text());
        write!(formatter, "status {status} after {wall:.3?}\n-- stdout\n{stdout}\n-- stderr\n{stderr}\n--")
    }
}

/// A command that is running.
pub struct Running {
    child: Child,
    started: Instant,
    stdout: Collector,
    stderr: Collector,
}

impl Running {
    /// Starts `command` as the leader of a new process group, with `input` on its stdin.
    pub fn start(command: &mut Command, input: &[u8]) -> Self {
        let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
        // Background jobs of a shell, such as CI, ignore SIGINT, and the processes that they start inherit that.
        // SAFETY: signal is async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        if let Some(mut pipe) = child.stdin.take() {
            let input = input.to_vec();
            // A broken pipe is not an error: the command may end without reading all input.
            std::thread::spawn(move || pipe.write_all(&input));
        }
        let stdout = Collector::start(child.stdout.take().expect("stdout is piped"));
        let stderr = Collector::start(child.stderr.take().expect("stderr is piped"));
        Running { child, started: Instant::now(), stdout, stderr }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a PID fits in an i32")
    }

    /// Waits until `text` is on stdout.
    pub fn wait_for_stdout(&self, text: &str) {
        let deadline = Instant::now() + TIME_LIMIT;
        while !String::from_utf8_lossy(&self.stdout.so_far()).contains(text) {
            assert!(
                Instant::now() < deadline && !self.stdout.is_finished(),
                "{text:?} did not appear on stdout; stderr: {}",
                String::from_utf8_lossy(&self.stderr.so_far())
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a line with `text` is on stderr, and returns that line.
    pub fn wait_for_stderr(&self, text: &str) -> String {
        let deadline = Instant::now() + TIME_LIMIT;
        loop {
            let so_far = String::from_utf8_lossy(&self.stderr.so_far()).into_owned();
            if let Some(line) = so_far.split_inclusive('\n').find(|line| line.ends_with('\n') && line.contains(text)) {
                return line.trim_end().to_owned();
            }
            assert!(Instant::now() < deadline && !self.stderr.is_finished(), "{text:?} did not appear on stderr: {so_far}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the command itself has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the child can be waited for").is_some()
    }

    /// Sends `signal` to the command's own process only.
    pub fn signal(&self, signal: i32) {
        send(self.pid(), signal);
    }

    /// Sends `signal` to the command's process group, as a terminal does.
    pub fn signal_group(&self, signal: i32) {
        send(-self.pid(), signal);
    }

    /// Waits for the command only; processes it left behind may still hold its output open.
    pub fn wait_for_exit(&mut self) -> i32 {
        let deadline = self.started + TIME_LIMIT;
        loop {
            match self.child.try_wait().expect("the child can be waited for") {
                Some(status) => return shell_status(status),
                None if Instant::now() > deadline => self.give_up("did not end"),
                None => sleep_until_exit(self.pid(), deadline),
            }
        }
    }

    /// Waits for the command and for the end of its output.
    pub fn wait(mut self) -> Outcome {
        let status = self.wait_for_exit();
        let wall = self.started.elapsed();
        let deadline = self.started + TIME_LIMIT;
        let (Some(stdout), Some(stderr)) = (self.stdout.finish(deadline), self.stderr.finish(deadline)) else {
            self.give_up("ended, but something it left behind holds its output open")
        };
        Outcome { stdout, stderr, status, pid: self.pid(), wall }
    }

    fn give_up(&self, what: &str) -> ! {
        let stuck = stuck_threads(self.pid());
        send(-self.pid(), libc::SIGKILL);
        panic!(
            "the command {what} within {TIME_LIMIT:?}; stdout: {}; stderr: {}; its processes:\n{stuck}",
            String::from_utf8_lossy(&self.stdout.so_far()),
            String::from_utf8_lossy(&self.stderr.so_far())
        );
    }
}

/// Sleeps until the process ends or the deadline passes. Polling would take a fifth of an emulated CPU.
fn sleep_until_exit(pid: i32, deadline: Instant) {
    // SAFETY: pidfd_open only takes numbers.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let Ok(fd @ 0..) = i32::try_from(opened) else { return std::thread::sleep(Duration::from_millis(2)) };
    // SAFETY: the descriptor is new and has no other owner.
    let process = unsafe { OwnedFd::from_raw_fd(fd) };
    let left = deadline.saturating_duration_since(Instant::now()).as_millis();
    let mut poll = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: poll writes to the one descriptor that it is given.
    unsafe { libc::poll(&raw mut poll, 1, i32::try_from(left).unwrap_or(i32::MAX).saturating_add(1)) };
}

/// Describes every thread of a process group, to explain a hang: state, system call and, if the kernel and an installed gdb
/// provide them, stacks.
fn stuck_threads(group: i32) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut text = String::new();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        let stat = read(&format!("/proc/{pid}/stat"));
        // The name, in parentheses, may contain spaces. After it come the state, the parent and the process group.
        let fields: Vec<&str> = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        if fields.get(2) != Some(&group.to_string().as_str()) {
            continue;
        }
        let command = read(&format!("/proc/{pid}/cmdline")).replace('\0', " ");
        text.push_str(&format!("process {pid} (parent {}): {command}\n", fields[1]));
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let of = |file: &str| read(&format!("{}/{file}", task.path().display()));
            let state = of("status").lines().find_map(|line| line.strip_prefix("State:").map(|s| s.trim().to_owned()));
            let tid = task.file_name().to_string_lossy().into_owned();
            let (name, wchan, call) = (of("comm"), of("wchan"), of("syscall"));
            text.push_str(&format!(
                "  {tid} {} {} in {wchan}, system call {}\n{}",
                name.trim(),
                state.unwrap_or_default(),
                call.trim(),
                of("stack")
            ));
        }
        let gdb = Command::new("gdb").args(["-p", &pid.to_string(), "-batch", "-ex", "thread apply all backtrace 24"]).output();
        if let Ok(output) = gdb {
            text.push_str(&String::from_utf8_lossy(&output.stdout));
        }
    }
    text
}

/// Runs `command` to its end.
pub fn run(command: &mut Command) -> Outcome {
    run_with_input(command, &[])
}

/// Runs `command` to its end with `input` on its stdin.
pub fn run_with_input(command: &mut Command, input: &[u8]) -> Outcome {
    Running::start(command, input).wait()
}

/// The status a shell shows.
pub fn shell_status(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).expect("a status is an exit or a signal")
}

fn send(pid: i32, signal: i32) {
    // SAFETY: kill only takes numbers. The PID is our own child's (or its group's), which is not reaped before `wait`.
    unsafe { libc::kill(pid, signal) };
}

/// Reads a pipe to its end in a thread.
struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    at_end: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Collector {
    fn start(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (done, at_end) = channel();
        let sink = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                sink.lock().expect("no reader panics").extend_from_slice(&buffer[..count]);
            }
            // Sending fails if the test no longer waits.
            let _ = done.send(());
        });
        Collector { bytes, at_end, thread }
    }

    fn so_far(&self) -> Vec<u8> {
        self.bytes.lock().expect("no reader panics").clone()
    }

    fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    fn finish(&self, deadline: Instant) -> Option<Vec<u8>> {
        match self.at_end.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Some(self.so_far()),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    /// Check that statuses are what a shell shows, for exits and for signals.
    #[test]
    fn statuses_are_the_shells() {
        assert_eq!(run(&mut shell("exit 77")).status, 77);
        assert_eq!(run(&mut shell("kill -9 $$")).status, 137);
    }

    /// Check that firsttouch's messages are separated from the program's.
    #[test]
    fn messages_are_separated() {
        let outcome = run(&mut shell("echo one >&2; echo 'firsttouch: two' >&2; printf three >&2"));
        assert_eq!(outcome.messages(), "firsttouch: two\n");
        assert_eq!(outcome.program_stderr(), "one\nthree");
        let report = "firsttouch: 1 thread, 0.1 s, 0 accesses, 5 first touches -> x.ftp";
        let outcome = run(&mut shell(&format!("echo one >&2; echo '{report}' >&2; echo No finding >&2")));
        assert_eq!((outcome.program_stderr().as_str(), outcome.messages()), ("one\n", format!("{report}\nNo finding\n")));
    }

    /// Check that a command receives input larger than a pipe's buffer, and that its output is complete.
    #[test]
    fn input_reaches_the_command() {
        let input = vec![b'x'; 1 << 20];
        assert_eq!(run_with_input(&mut shell("cat"), &input).stdout, input);
    }

    /// Check that a signal reaches one process, and a group signal all of them.
    #[test]
    fn signals_arrive() {
        let running = Running::start(&mut shell("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done"), &[]);
        running.wait_for_stdout("ready");
        running.signal(libc::SIGTERM);
        assert_eq!(running.wait().status, 5);

        let running = Running::start(&mut shell("sleep 100 & echo ready; wait"), &[]);
        running.wait_for_stdout("ready");
        running.signal_group(libc::SIGKILL);
        assert_eq!(running.wait().status, 137);
    }
}
