// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of profiles: no profile is lost, two runs never share a file, and every option is checked before the program runs.

use firsttouch_e2e::process::{Outcome, Running, run};
use firsttouch_e2e::skip::{is_root, skipped};
use firsttouch_e2e::tool::{Firsttouch, NOBODY, assert_clear_error, temporary_directory, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The files in a directory, sorted.
fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// `firsttouch ARGUMENTS` in a directory.
fn at(firsttouch: &Firsttouch, directory: &Path, arguments: &[&str]) -> Outcome {
    run(firsttouch.command(arguments).current_dir(directory))
}

/// Check that a second run keeps the first profile, and that `report` and `diff` without files find both.
#[test]
fn an_older_profile_is_kept() {
    let Some(firsttouch) = Firsttouch::find("an_older_profile_is_kept") else { return };
    let directory = temporary_directory();
    let here = directory.path();
    let exits = |status: &str| at(&firsttouch, here, &["profile", "--", "env", "A=1", "/bin/sh", "exits.sh", status]);
    fs::write(here.join("exits.sh"), "exit $1\n").expect("the script is written");
    let alone = at(&firsttouch, here, &["report"]);
    assert_clear_error(&alone, &[2], &["no profile (*.ftp) is in this directory"]);
    assert_eq!(exits("3").status, 3);
    assert_eq!(files(here), ["exits.ftp", "exits.sh"]);
    let lonely = at(&firsttouch, here, &["diff"]);
    assert_clear_error(&lonely, &[2], &["there is no exits.ftp.1"]);
    for (status, kept) in [(4, "exits.ftp.1"), (5, "exits.ftp.2")] {
        let outcome = exits(&status.to_string());
        assert_eq!(outcome.status, status);
        assert!(outcome.messages().contains(&format!("kept as {kept}")), "{outcome:?}");
    }
    assert_eq!(files(here), ["exits.ftp", "exits.ftp.1", "exits.ftp.2", "exits.sh"]);
    for (file, status) in [("exits.ftp.1", 3), ("exits.ftp.2", 4), ("exits.ftp", 5)] {
        assert_eq!(firsttouch.report_json(&here.join(file))["exit_code"], status, "{file}");
    }
    let newest = at(&firsttouch, here, &["report", "--json"]);
    assert!(newest.stdout_text().contains("\"exit_code\": 5") && newest.messages().contains("exits.ftp is the newest"), "{newest:?}");
    for command in ["predict", "plan"] {
        let newest = at(&firsttouch, here, &[command]);
        assert!(newest.messages().contains("exits.ftp is the newest"), "{newest:?}");
    }
    for arguments in [&["diff"][..], &["diff", "exits.ftp"]] {
        let compared = at(&firsttouch, here, arguments);
        assert!(
            compared.status == 0 && compared.messages().contains("comparing exits.ftp.2 (before) with exits.ftp (after)"),
            "{compared:?}"
        );
    }
    // A program that does not start keeps everything as it was.
    let missing = at(&firsttouch, here, &["profile", "--", "./exits"]);
    assert_eq!((missing.status, files(here).len()), (127, 4), "{missing:?}");
}

/// Check that two runs at once have a file each, and that a file that the user named is not shared.
#[test]
fn two_runs_at_once() {
    let Some(firsttouch) = Firsttouch::find("two_runs_at_once") else { return };
    let directory = temporary_directory();
    let start = |status: &str| {
        let script = format!("exit {status}");
        let mut command = firsttouch.command(["profile", "--quiet"]);
        command.args(["--", "/bin/sh", "-c", &script]).current_dir(directory.path());
        Running::start(&mut command, b"")
    };
    let (first, second) = (start("3"), start("4"));
    let outcomes = [first.wait(), second.wait()];
    assert_eq!(outcomes.each_ref().map(|outcome| outcome.status), [3, 4], "{outcomes:?}");
    let names = files(directory.path());
    assert_eq!(names.len(), 2, "{names:?}");
    let mut codes: Vec<i64> =
        names.iter().map(|name| firsttouch.report_json(&directory.path().join(name))["exit_code"].as_i64().expect("a number")).collect();
    codes.sort_unstable();
    assert_eq!(codes, [3, 4]);

    let file = directory.path().join("named.ftp");
    let mut command = firsttouch.profile(&file, &["--quiet"], &["/bin/sh", "-c", "echo ready; sleep 2"]);
    let running = Running::start(&mut command, b"");
    running.wait_for_stdout("ready");
    let marker = directory.path().join("started");
    let refused = run(&mut firsttouch.profile(&file, &[], &["/bin/touch", text(&marker)]));
    assert_clear_error(&refused, &[1], &[text(&file), "another firsttouch is writing it", "%p"]);
    assert!(!marker.exists(), "the program ran");
    assert_eq!(running.wait().status, 0);
    assert_eq!(firsttouch.report_json(&file)["exit_code"], 0);
}

/// Check the parts of a name that begin with `%`, and that unknown ones are refused.
#[test]
fn names_have_parts() {
    let Some(firsttouch) = Firsttouch::find("names_have_parts") else { return };
    let directory = temporary_directory();
    let mut command = firsttouch.command(["profile", "-q", "-o", "%q{RANK}-100%%-%p.ftp", "--", "/bin/true"]);
    let outcome = run(command.env("RANK", "7").current_dir(directory.path()));
    assert_eq!((outcome.status, files(directory.path())), (0, vec![format!("7-100%-{}.ftp", outcome.pid)]), "{outcome:?}");
    for (name, cause) in
        [("%d.ftp", "'%d' has no meaning"), ("a%", "ends with '%'"), ("%q{NO_SUCH}.ftp", "NO_SUCH is not set"), ("-", "standard output")]
    {
        let refused = at(&firsttouch, directory.path(), &["profile", "-o", name, "--", "/bin/touch", "started"]);
        assert_clear_error(&refused, &[2], &[cause]);
    }
    assert_eq!(files(directory.path()).len(), 1);
}

/// Check that a profile goes to the cache directory if the current directory cannot be written, and that firsttouch says so.
#[test]
fn a_read_only_directory() {
    let Some(firsttouch) = Firsttouch::find("a_read_only_directory") else { return };
    let (directory, home) = (temporary_directory(), temporary_directory());
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).expect("the mode is set");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).expect("the mode is set");
    let mut command = firsttouch.command(["profile", "--quiet", "--", "/bin/true"]);
    command.env("HOME", home.path()).env_remove("XDG_CACHE_HOME").current_dir(directory.path());
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let outcome = run(&mut command);
    let file = home.path().join(".cache/firsttouch/true.ftp");
    assert!(
        outcome.status == 0
            && outcome
                .messages()
                .contains(&format!("cannot write here (Permission denied (os error 13)): the profile is {}", file.display())),
        "{outcome:?}"
    );
    assert_eq!(firsttouch.report_json(&file)["exit_code"], 0);

    // Without a home: the folder that `run --pin` uses.
    let temporary = temporary_directory();
    fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o1777)).expect("the mode is set");
    let mut command = firsttouch.command(["profile", "--quiet", "--", "/bin/true"]);
    command.env_remove("HOME").env_remove("XDG_CACHE_HOME").env("TMPDIR", temporary.path()).current_dir(directory.path());
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let outcome = run(&mut command);
    let messages = outcome.messages();
    assert!(outcome.status == 0 && messages.contains("/true.ftp; -o names another"), "{outcome:?}");
    assert!(messages.contains(&format!("{}/firsttouch-", temporary.path().display())), "{messages}");
}

/// Check that a program runs, and that its profile goes to the cache directory, where the working directory was removed or is full.
#[test]
fn a_directory_without_a_place() {
    let Some(firsttouch) = Firsttouch::find("a_directory_without_a_place") else { return };
    let home = temporary_directory();
    let from = |script: &str| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env("FT", firsttouch.binary()).env("HOME", home.path()).env_remove("XDG_CACHE_HOME");
        run(&mut command)
    };
    let file = home.path().join(".cache/firsttouch/true.ftp");
    let removed = from("d=$(mktemp -d) && cd $d && rmdir $d && $FT profile --quiet -- /bin/true");
    let says = format!("the profile is {}", file.display());
    assert!(removed.status == 0 && removed.messages().contains(&says), "{removed:?}");
    assert_eq!(firsttouch.report_json(&file)["exit_code"], 0);

    // A mount of this process alone: as root, or where users may make namespaces of their own.
    let full = from(
        "unshare --user --map-root-user --mount sh -c 'mount -t tmpfs -o size=16k tmpfs /mnt && cd /mnt && $FT profile --quiet -- /bin/true; echo \"left: $(ls /mnt)\"'",
    );
    if full.stderr_text().contains("unshare: ") {
        skipped("a_directory_without_a_place", "a user namespace is not allowed here");
        return;
    }
    assert!(full.status == 0 && full.messages().contains(&says) && full.messages().contains("full"), "{full:?}");
    assert_eq!(full.stdout_text().trim(), "left:", "{full:?}");
}

/// Check that a program which a signal ended is not called well placed.
#[test]
fn killed_programs_are_not_judged() {
    let Some(firsttouch) = Firsttouch::find("killed_programs_are_not_judged") else { return };
    let directory = temporary_directory();
    let killed = at(
        &firsttouch,
        directory.path(),
        &["profile", "--", "/bin/sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; kill -9 $$"],
    );
    assert_eq!(killed.status, 137, "{killed:?}");
    let words = killed.messages().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("NOT JUDGED: the program, which had one thread until then, was ended by signal 9 (SIGKILL)"), "{killed:?}");
}

/// Check that nothing of the program runs if an option is wrong.
#[test]
fn options_are_checked_first() {
    let Some(firsttouch) = Firsttouch::find("options_are_checked_first") else { return };
    let directory = temporary_directory();
    let (here, marker) = (directory.path(), directory.path().join("started"));
    fs::write(here.join("text.txt"), "int main;\n").expect("a file");
    let table: &[&[&str]] = &[
        &["profile", "--pin", "nonsense"],
        &["profile", "--pin", "nodes:0,7"],
        &["profile", "--pin", "nodes:0,7", "--machine", "virtual:2"],
        &["profile", "--pin", "0,0,1,1", "--machine", "virtual:2"],
        &["profile", "--machine", "nonsense"],
        &["profile", "--machine", "text.txt"],
        &["profile", "--machine", "missing.xml"],
        &["profile", "--min-size", "many"],
        &["profile", "--duration", "soon"],
        &["profile", "--json=no/such/file.json"],
        &["profile", "-o", "no/such/x.ftp"],
        &["profile", "-o", "%z.ftp"],
        &["profile", "-o", "text.txt"],
        &["profile", "--pid", "1"],
        &["check", "--pin", "nodes:0,7"],
        &["check", "--machine", "nonsense"],
        &["check", "--max-remote", "1"],
        &["check", "--max-remote", "200"],
        &["check", "--max-slowdown", "0.5"],
        &["check", "--max-slowdown", "1.2"],
        &["check", "--baseline", "missing.ftp"],
        &["check", "--baseline", "text.txt"],
        &["check", "--output", "no/such/file"],
        &["check", "--profile", "no/such/x.ftp"],
        &["check", "--format", "nonsense"],
        &["check", "--json=no/such/file.json"],
        &["stat", "--interval", "1"],
        &["stat", "--json=no/such/file.json"],
        &["stat", "--output", "no/such/file"],
        &["run", "--pin", "nonsense"],
        &["run", "--pin", "nodes:999"],
        &["run", "--membind", "999"],
        &["run", "--plan", "missing.toml"],
        &["run", "--plan", "text.txt"],
        &["run", "--quick-test", "--rounds", "0"],
        &["run", "--quick-test", "--json=no/such/file.json"],
        &["run", "--quick-test", "--output", "no/such/file"],
        &["balancing", "measure", "--rounds", "0"],
        &["balancing", "measure", "--json=no/such/file.json"],
    ];
    for arguments in table {
        let outcome = run(firsttouch.command(*arguments).args(["--", "/bin/touch", text(&marker)]).current_dir(here));
        assert_clear_error(&outcome, &[1, 2], &["error: "]);
        assert!(!marker.exists(), "{arguments:?}: the program ran: {outcome:?}");
        assert_eq!(files(here), ["text.txt"], "{arguments:?} leaves files");
    }
}

/// Check that `clean` keeps the library that a program uses after firsttouch was killed, and removes it when the program has ended.
#[test]
fn clean_after_a_kill() {
    let Some(firsttouch) = Firsttouch::find("clean_after_a_kill") else { return };
    let directory = temporary_directory();
    let here = directory.path();
    let with = |arguments: &[&str]| {
        let mut command = firsttouch.command(arguments);
        command.env("TMPDIR", here).env("XDG_CACHE_HOME", here).env("XDG_RUNTIME_DIR", here).current_dir(here);
        command
    };
    let mut running = Running::start(&mut with(&["profile", "--", "/bin/sh", "-c", "echo ready; sleep 100; true"]), b"");
    running.wait_for_stdout("ready");
    running.signal(libc::SIGKILL);
    assert_eq!(running.wait_for_exit(), 137);
    let left = || files(here).into_iter().filter(|name| name.starts_with("firsttouch-")).count();
    assert_eq!(left(), 1, "{:?}", files(here));
    let kept = run(&mut with(&["clean"]));
    assert!(kept.status == 0 && kept.stdout_text().contains(" uses it") && left() == 1, "{kept:?}");
    running.signal_group(libc::SIGKILL);
    let listed = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        Some(run(&mut with(&["clean", "--dry-run"]))).filter(|outcome| outcome.stdout_text().contains("would be removed"))
    });
    assert!(listed.is_some() && left() == 1);
    let removed = run(&mut with(&["clean"]));
    assert!(removed.status == 0 && left() == 0, "{removed:?}");
    // The killed run's profile is kept by the next one.
    let again = at(&firsttouch, here, &["profile", "--", "/bin/sh", "-c", "true"]);
    assert!(again.messages().contains("kept as sh.ftp.1"), "{again:?}");
    assert_eq!(firsttouch.report(&here.join("sh.ftp.1"), &["--json"]).status, 0);
}
