// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults while a program is recorded, and before.

use super::Fault;
use super::lab::{Lab, Seen, WORK_MS};
use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::skip::is_root;
use firsttouch_e2e::tool::text;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const FAULTS: &[Fault] = &[
    ("nothing", |lab| Some(lab.record("", |_| {}))),
    ("the program is killed (SIGKILL)", |lab| Some(lab.record("", |running| kill(target(running), libc::SIGKILL)))),
    ("the program crashes (SIGSEGV)", |lab| Some(lab.record("ulimit -c 0", |running| kill(target(running), libc::SIGSEGV)))),
    ("the program is ended (SIGTERM)", |lab| Some(lab.record("", |running| kill(target(running), libc::SIGTERM)))),
    ("the program is stopped for a while (SIGSTOP)", |lab| Some(lab.record("", |running| pause(target(running))))),
    ("firsttouch is interrupted (SIGINT): it passes the signal on", |lab| Some(lab.record("", |running| running.signal(libc::SIGINT)))),
    ("firsttouch is ended (SIGTERM): it passes the signal on", |lab| Some(lab.record("", |running| running.signal(libc::SIGTERM)))),
    ("firsttouch loses its terminal (SIGHUP)", |lab| Some(lab.record("", |running| running.signal(libc::SIGHUP)))),
    ("firsttouch is killed (SIGKILL)", |lab| Some(lab.record("", |running| running.signal(libc::SIGKILL)))),
    ("firsttouch was killed; the next recording", |lab| Some(after_a_kill(lab))),
    ("firsttouch is stopped for a while (SIGSTOP)", |lab| Some(lab.record("", |running| pause(running.pid())))),
    ("both are killed (SIGKILL)", |lab| Some(lab.record("", |running| running.signal_group(libc::SIGKILL)))),
    ("the agent's ring is overwritten with ones", |lab| Some(damaged_ring(lab, 0xff))),
    ("the agent's ring is overwritten with zeros", |lab| Some(damaged_ring(lab, 0))),
    ("the disk is full at the start", |lab| on_disk(lab, 0, "# refused", |_| {})),
    ("the disk fills up on the way", |lab| on_disk(lab, 2 << 20, "", fill)),
    ("files may not be larger (`ulimit -f 40`)", |lab| Some(lab.record("ulimit -f 40 # refused", |_| {}))),
    ("the profile's folder is missing", |lab| Some(lab.record_to("# refused", &lab.at("no/a.ftp"), |_| {}))),
    ("the profile's folder may not be written", |lab| Some(lab.record_to("# refused", Path::new("/proc/a.ftp"), |_| {}))),
    ("the profile's name is a folder", |lab| Some(lab.record_to("# refused", &lab.at("tmp"), |_| {}))),
    ("the profile's name is another kind of file", |lab| Some(on_given(lab))),
    ("the profile is removed on the way", |lab| Some(lab.record("", |_| remove(lab)))),
    ("TMPDIR does not exist", |lab| Some(lab.record("export TMPDIR=/no/such", |_| {}))),
    ("TMPDIR may not be written", |lab| Some(lab.record("export TMPDIR=/proc", |_| {}))),
    ("HOME and PATH are unset", |lab| Some(lab.record("unset HOME PATH", |_| {}))),
    ("few open files (`ulimit -n 8`): not recorded", |lab| Some(lab.record("ulimit -n 8", |_| {}))),
    ("few open files (`ulimit -n 24`)", |lab| Some(lab.record("ulimit -n 24", |_| {}))),
    ("a small stack (`ulimit -s 64`)", |lab| Some(lab.record("ulimit -s 64", |_| {}))),
    ("no locked memory (`ulimit -l 0`)", |lab| Some(lab.record("ulimit -l 0", |_| {}))),
    ("little address space (`ulimit -v 400000`)", |lab| Some(lab.record("ulimit -v 400000", |_| {}))),
    ("perf_event_open is refused (EPERM)", |lab| Some(forbidden(lab, "EPERM", "perf"))),
    ("perf_event_open is not there (ENOSYS)", |lab| Some(forbidden(lab, "ENOSYS", "perf"))),
    ("memory policies are refused (EPERM)", |lab| Some(forbidden(lab, "EPERM", "memory"))),
    ("standard input is closed", |lab| Some(lab.record("exec <&-", |_| {}))),
    ("standard error is closed", |lab| Some(lab.record("exec 2>&-", |_| {}))),
    ("standard error is full", |lab| Some(lab.record("exec 2>/dev/full", |_| {}))),
    ("SIGCHLD is ignored", |lab| Some(lab.record("trap '' CHLD", |_| {}))),
    ("another firsttouch writes the profile", |lab| Some(second_writer(lab))),
    ("the program is removed while it runs", |lab| Some(removed_program(lab))),
    ("the program cannot be found", |lab| Some(no_program(lab, "/no/such/program"))),
    ("the program may not be executed", |lab| Some(no_program(lab, "/etc/passwd"))),
    ("the process to attach to does not exist", |lab| Some(attach_to_nobody(lab))),
];

fn kill(pid: i32, signal: i32) {
    // SAFETY: kill only takes numbers; the process is a child of a child, which waits for it.
    unsafe { libc::kill(pid, signal) };
}

/// The program that firsttouch runs.
fn target(running: &Running) -> i32 {
    let path = format!("/proc/{0}/task/{0}/children", running.pid());
    let children = fs::read_to_string(&path).expect("the children of firsttouch");
    children.split_whitespace().find_map(|pid| pid.parse().ok()).expect("a child")
}

fn pause(pid: i32) {
    kill(pid, libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(50));
    kill(pid, libc::SIGCONT);
}

/// Overwrites the records that the agent has written and the ring's numbers.
fn damage(pid: i32, byte: u8) {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("the maps of the program");
    let ring = maps.lines().find(|line| line.contains("firsttouch-ring")).expect("the agent's ring");
    let start = u64::from_str_radix(ring.split('-').next().unwrap_or_default(), 16).expect("an address");
    let mut memory = File::options().write(true).open(format!("/proc/{pid}/mem")).expect("the memory of the program");
    memory.seek(SeekFrom::Start(start)).expect("an address");
    memory.write_all(&vec![byte; 256 << 10]).expect("the ring is overwritten");
}

fn damaged_ring(lab: &Lab, byte: u8) -> Seen {
    let seen = lab.record("", |running| damage(target(running), byte));
    let report = lab.firsttouch.report(&lab.at("a.ftp"), &[]).stdout_text();
    assert!(report.contains("the program overwrote the agent's records"), "{report}");
    seen
}

fn remove(lab: &Lab) {
    for name in ["a.ftp", "a.ftp-wal", "a.ftp-shm"] {
        let _ = fs::remove_file(lab.at(name));
    }
}

/// What a recording finds and leaves after firsttouch was killed.
fn after_a_kill(lab: &Lab) -> Seen {
    lab.record("", |running| running.signal(libc::SIGKILL));
    fs::remove_file(lab.at("result")).expect("a result");
    // Younger directories may be in the making.
    std::thread::sleep(Duration::from_millis(1000));
    lab.record("", |_| {})
}

/// Records to a disk of its own. `bytes`: 0 for one without space.
fn on_disk(lab: &Lab, bytes: u64, setting: &str, act: fn(&Path)) -> Option<Seen> {
    with_disk(lab, bytes.max(64 << 10), |disk| {
        if bytes == 0 {
            fill(disk);
        }
        lab.record_to(setting, &disk.join("a.ftp"), |_| act(disk))
    })
}

/// Writes to a disk that has space for a beginning, 8 KiB.
pub fn on_small_disk(lab: &Lab, write: impl FnOnce(&Lab, &Path) -> Seen) -> Option<Seen> {
    with_disk(lab, 8 << 10, |disk| write(lab, disk))
}

/// Makes a disk, and checks that nothing is left there but what may be. Nothing happens where no disk can be mounted.
fn with_disk(lab: &Lab, bytes: u64, see: impl FnOnce(&Path) -> Seen) -> Option<Seen> {
    let disk = lab.at("disk.given");
    fs::create_dir(&disk).expect("a folder");
    if !is_root() || run(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(&disk)).status != 0 {
        return None;
    }
    let seen = see(&disk);
    let left = fs::read_dir(&disk).expect("the disk").flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name != "filler" && name != "a.ftp").collect();
    run(Command::new("umount").arg("-l").arg(&disk));
    assert!(left.is_empty(), "{left:?}");
    Some(seen)
}

fn fill(disk: &Path) {
    let mut filler = File::create(disk.join("filler")).expect("a file");
    for block in [vec![0; 4096], vec![0; 1]] {
        while filler.write_all(&block).is_ok() {}
    }
}

fn on_given(lab: &Lab) -> Seen {
    let file = lab.at("thesis.given");
    fs::write(&file, "a text").expect("a file");
    let outcome = run(&mut lab.recording("", &file));
    assert!(outcome.messages().contains("not a firsttouch profile is already there"), "{outcome:?}");
    assert_eq!(fs::read_to_string(&file).expect("the file"), "a text");
    lab.seen("profile", &outcome, &lab.at("a.ftp"))
}

fn forbidden(lab: &Lab, error: &str, calls: &str) -> Seen {
    lab.record(&format!("set -- {error} {calls} \"$0\" \"$@\"; exec '{}' \"$@\"", lab.forbid.display()), |_| {})
}

fn second_writer(lab: &Lab) -> Seen {
    let file = lab.at("a.ftp");
    let first = Running::start(&mut lab.recording("", &file), &[]);
    first.wait_for_stdout("ready");
    let second = run(&mut lab.shell("", &lab.firsttouch.profile(&file, &[], &["touch", text(&lab.at("started"))])));
    assert_eq!(first.wait().status, 0);
    assert!(second.messages().contains("another firsttouch is writing it") && !lab.at("started").exists(), "{second:?}");
    fs::remove_file(lab.at("result")).expect("a result");
    let seen = lab.seen("profile", &second, &file);
    assert_eq!(seen.profile, "whole", "the first one's");
    seen
}

fn removed_program(lab: &Lab) -> Seen {
    let (copy, file) = (lab.at("copy.given"), lab.at("a.ftp"));
    fs::copy(&lab.ticker, &copy).expect("a program");
    let profile = lab.firsttouch.profile(&file, &[], &[text(&copy), WORK_MS, text(&lab.at("result"))]);
    let running = Running::start(&mut lab.shell("", &profile), &[]);
    running.wait_for_stdout("ready");
    fs::remove_file(&copy).expect("the program");
    lab.seen("profile", &running.wait(), &file)
}

fn no_program(lab: &Lab, program: &str) -> Seen {
    let file = lab.at("a.ftp");
    lab.seen("profile", &run(&mut lab.shell("", &lab.firsttouch.profile(&file, &[], &[program]))), &file)
}

fn attach_to_nobody(lab: &Lab) -> Seen {
    let file = lab.at("a.ftp");
    let mut pid = String::new();
    File::open("/proc/sys/kernel/pid_max").and_then(|mut most| most.read_to_string(&mut pid)).expect("a number");
    let command = lab.firsttouch.command(["profile", "-o", text(&file), "--pid", pid.trim()]);
    Seen { command: "profile --pid", ..lab.seen("profile", &run(&mut lab.shell("", &command)), &file) }
}
