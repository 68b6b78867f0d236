//! `firsttouch doctor` on any system, and on recorded ones.

use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn doctor(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firsttouch"));
    for name in ["OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "LD_PRELOAD"] {
        command.env_remove(name);
    }
    command.arg("doctor").args(arguments).envs(variables.iter().copied()).output().unwrap()
}

fn json(arguments: &[&str], variables: &[(&str, &str)]) -> Value {
    let output = doctor(&[&["--json"], arguments].concat(), variables);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn finding<'a>(diagnosis: &'a Value, id: &str) -> Option<&'a Value> {
    diagnosis["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(name)
}

/// Check that the output has one sentence for a machine without problems, and the findings for a machine with problems, both with status 0.
#[test]
fn recorded_machines() {
    let output = doctor(&["-i", fixture("firecracker-epyc-1-node").to_str().unwrap()], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = text.trim().replace('\n', " ");
    assert!(text.starts_with("Nothing found that hurts placement (") && text.ends_with("this machine has one)."), "{text}");
    assert!(text.contains("apply only to several nodes, and this machine has one"), "{text}");
    let output = doctor(&["-i", fixture("guest-memoryless").to_str().unwrap()], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text.contains("high       node-without-memory\n") && text.contains("\nremedy     populate"), "{text}");
}

/// Check that the doctor examines the current environment: findings about too many threads and a preloaded allocator appear with their
/// variables.
#[test]
fn the_environment_is_examined() {
    let calm = json(&[], &[("OMP_NUM_THREADS", "1")]);
    assert_eq!(calm["schema"], "firsttouch.doctor/1");
    for id in ["more-threads-than-cpus", "preloaded-allocator", "threads-on-one-place"] {
        assert_eq!(finding(&calm, id), None, "{calm:#}");
    }
    let crowded = json(&[], &[("OMP_NUM_THREADS", "60000"), ("OMP_PROC_BIND", "master")]);
    let many = finding(&crowded, "more-threads-than-cpus").unwrap();
    assert_eq!(many["evidence"][0], serde_json::json!({"source": "OMP_NUM_THREADS", "value": "60000"}));
    assert!(many["remedy"].as_str().unwrap().starts_with("export OMP_NUM_THREADS="), "{many:#}");
    assert!(finding(&crowded, "threads-on-one-place").is_some());
    // The same behind launchers.
    let launched = json(&["--", "taskset", "-c", "0", "env", "OMP_NUM_THREADS=60000", "/bin/sh"], &[]);
    let many = finding(&launched, "more-threads-than-cpus").unwrap();
    assert_eq!(many["evidence"][1], serde_json::json!({"source": "taskset -c 0", "value": "CPUs 0"}));
    assert!(launched["program"]["path"].as_str().unwrap().ends_with("/sh"), "{launched:#}");
    // The loader reports on stderr that the library does not exist, so do not check stderr.
    let output = doctor(&["--json"], &[("LD_PRELOAD", "/nowhere/libjemalloc.so.2")]);
    let preloaded: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(finding(&preloaded, "preload-missing").is_some() && finding(&preloaded, "preloaded-allocator").is_none(), "{preloaded:#}");
    assert_eq!(
        finding(&json(&["--", "/bin/ls"], &[("OMP_NUM_THREADS", "60000")]), "more-threads-than-cpus"),
        None,
        "ls is not an OpenMP program"
    );
}

/// Check the findings about a program, and that the program does not run.
#[test]
fn programs_are_looked_at() {
    let plain = json(&["ls", "--json"], &[]);
    assert_eq!((plain["program"]["openmp"].as_str(), plain["program"]["runtime"].is_null()), (Some("none"), true), "{plain:#}");
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let script = folder.path().join("script");
    std::fs::write(&script, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
    assert_eq!(json(&["--", script.to_str().unwrap()], &[])["program"]["openmp"], "unknown");
    assert!(!mark.exists());
}

/// Check the exit statuses of errors: 1 for a file that cannot be read, 2 for a usage error.
#[test]
fn errors_have_their_status() {
    for (arguments, status, message) in [
        (&["--", "/nowhere/program"][..], 1, "cannot look at /nowhere/program: No such file"),
        (&["no-such-program-anywhere"], 1, "there is no such program: check the name and PATH"),
        (&["-i", "/nowhere"], 1, "cannot examine /nowhere: it is not a directory"),
        (&["-i", "/", "ls"], 2, "cannot be used with"),
        (&["--jsn"], 2, "unexpected argument"),
    ] {
        let output = doctor(arguments, &[]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert!(error.contains(message) && output.stdout.is_empty(), "{arguments:?}: {error}");
    }
}

/// Forbids system calls to the calling process and its children (EPERM), as a container's filter does.
fn forbid(filter: &[libc::sock_filter]) -> std::io::Result<()> {
    let program = libc::sock_fprog { len: u16::try_from(filter.len()).unwrap_or(0), filter: filter.as_ptr().cast_mut() };
    // SAFETY: the filter lives longer than the calls, and the kernel only reads it.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn filter(calls: &[libc::c_long]) -> Vec<libc::sock_filter> {
    let instruction = |code: u32, jf: u8, k: u32| libc::sock_filter { code: u16::try_from(code).unwrap(), jt: 0, jf, k };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    let mut filter = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for call in calls {
        filter.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, u32::try_from(*call).unwrap()));
        filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, refuse));
    }
    filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    filter
}

/// Check that the doctor finds a container's filter with its errno, and that the doctor itself works under the filter.
#[test]
fn a_sandbox_is_recognised() {
    let filter =
        filter(&[libc::SYS_perf_event_open, libc::SYS_set_mempolicy, libc::SYS_mbind, libc::SYS_get_mempolicy, libc::SYS_move_pages]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_firsttouch"));
    command.args(["doctor", "--json"]);
    // SAFETY: between fork and exec only prctl is called, with memory that was prepared before the fork.
    let output = unsafe { command.pre_exec(move || forbid(&filter)) }.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let diagnosis: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut expected = vec![("perf-forbidden", "perf_event_open")];
    if diagnosis["nodes"].as_u64() > Some(1) {
        expected.push(("mempolicy-forbidden", "mbind"));
    }
    for (id, call) in expected {
        let evidence = &finding(&diagnosis, id).unwrap_or_else(|| panic!("{id}: {diagnosis:#}"))["evidence"];
        assert!(evidence.as_array().unwrap().contains(&serde_json::json!({"source": call, "value": "EPERM"})), "{evidence:#}");
        assert!(
            evidence.as_array().unwrap().contains(&serde_json::json!({"source": "/proc/self/status", "value": "Seccomp: 2"})),
            "{evidence:#}"
        );
    }
}

/// Check that OMP_PROC_BIND, which binds firsttouch's own process before `main`, neither hides CPUs nor restricts a profiled program.
#[test]
fn binding_is_for_openmp_programs_only() {
    let cpus = std::thread::available_parallelism().unwrap().to_string();
    let bound = [("OMP_PROC_BIND", "true"), ("OMP_PLACES", "threads"), ("OMP_NUM_THREADS", cpus.as_str())];
    assert_eq!(finding(&json(&[], &bound), "more-threads-than-cpus"), None);
    let folder = tempfile::tempdir().unwrap();
    let allowed = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firsttouch"));
        command.args(["profile", "-q", "-o", "x.ftp", "--", "grep", "Cpus_allowed_list", "/proc/self/status"]).current_dir(folder.path());
        String::from_utf8(command.env_remove("OMP_PROC_BIND").envs(variables.iter().copied()).output().unwrap().stdout).unwrap()
    };
    assert_eq!(allowed(&bound), allowed(&[]));
}

/// Check that `--verbose` lists every check with what it saw, and the variables and the runtime that are in force.
#[test]
fn verbose_lists_every_check() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_firsttouch"))
        .args(["doctor", "--verbose", "--", "/bin/true"])
        .env("OMP_NUM_THREADS", "3")
        .env("COLUMNS", "1000")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["perf-forbidden: perf_event_open", "swap-in-use: ", "cpu-quota: ", "OpenMP none", "variables in force: OMP_NUM_THREADS=3"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}
