//! Help, errors, output files and exit statuses of the commands.

use crate::{firsttouch, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages
}

/// Check that docs/man matches the help of the command line.
#[test]
fn manual_pages_are_up_to_date() {
    let made = tempfile::tempdir().unwrap();
    let output = firsttouch(&["help-man", made.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man");
    let names = |folder: &Path| pages(folder).iter().map(|page| page.file_name().unwrap().to_owned()).collect::<Vec<_>>();
    let hint = "renew them: cargo run -p firsttouch -- help-man docs/man";
    assert_eq!(names(made.path()), names(&kept), "{hint}");
    for page in pages(made.path()) {
        let name = page.file_name().unwrap();
        assert!(fs::read(&page).unwrap() == fs::read(kept.join(name)).unwrap(), "docs/man/{} is old; {hint}", name.display());
    }
}

/// Check that the help of every command has examples.
#[test]
fn help_has_examples() {
    for command in [
        &[][..],
        &["demo"],
        &["profile"],
        &["report"],
        &["predict"],
        &["check"],
        &["diff"],
        &["topology"],
        &["doctor"],
        &["bench"],
        &["bench", "dgemv"],
        &["map"],
        &["bench", "dmvm"],
        &["bench", "triad"],
        &["bench", "chase"],
        &["bench", "iso3dfd"],
        &["stat"],
        &["ps"],
        &["maps"],
        &["migrate"],
        &["tune"],
        &["balancing"],
        &["reproduce"],
        &["machines"],
        &["machines", "list"],
        &["machines", "show"],
        &["validate"],
        &["clean"],
        &["completions"],
        &["balancing", "measure"],
        &["run"],
        &["plan"],
        &["serve-metrics"],
    ] {
        for option in ["-h", "--help"] {
            let output = firsttouch(&[command, &[option]].concat());
            assert!(output.status.success() && text(&output.stdout).contains("Examples:\n"), "{command:?}");
        }
    }
}

/// Check that manual pages have the usage as their synopsis, sections with names that man pages have, and no hidden commands.
#[test]
fn manual_pages_are_real() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man");
    for page in pages(&kept) {
        let page = fs::read_to_string(&page).unwrap();
        assert!(!page.contains(".SH EXTRA") && !page.contains("help\\-man"), "{page}");
        assert!(page.contains(".SH SYNOPSIS\n.nf\nfirsttouch"), "{page}");
    }
    let run = fs::read_to_string(kept.join("firsttouch-run.1")).unwrap();
    assert!(run.contains("firsttouch run [PLACEMENT] [\\-\\-] PROGRAM [ARGUMENT]...") && run.contains(".SH EXAMPLES"), "{run}");
}

/// Check that `make install` installs everything that `make uninstall` removes, and that the installed program and completions work.
#[test]
fn everything_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let (target, root) = (folder.path().join("target"), folder.path().join("root"));
    fs::create_dir_all(target.join("release")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_firsttouch"), target.join("release/firsttouch")).unwrap();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    let library = Command::new(scripts.join("library")).env("CARGO_TARGET_DIR", &target).output().unwrap();
    assert!(library.status.success(), "{}", text(&library.stderr));
    let install =
        |arguments: &[&str]| Command::new(scripts.join("install")).args(arguments).env("CARGO_TARGET_DIR", &target).output().unwrap();
    let destination = root.to_str().unwrap();
    let output = install(&[destination, "/usr"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let version = Command::new(root.join("usr/bin/firsttouch")).arg("--version").output().unwrap();
    assert!(text(&version.stdout).starts_with("firsttouch "));
    let share = root.join("usr/share");
    for file in ["man/man1/firsttouch.1", "man/man1/firsttouch-clean.1", "licenses/firsttouch/LICENSE-MIT"] {
        assert!(share.join(file).is_file(), "{file}");
    }
    for file in ["include/firsttouch.h", "lib/libfirsttouch.so", "lib/libfirsttouch.a", "lib/pkgconfig/firsttouch.pc"] {
        assert!(root.join("usr").join(file).is_file(), "{file}");
    }
    for (file, word) in [
        ("bash-completion/completions/firsttouch", "complete -F"),
        ("zsh/site-functions/_firsttouch", "#compdef firsttouch"),
        ("fish/vendor_completions.d/firsttouch.fish", "complete -c firsttouch"),
    ] {
        let script = fs::read_to_string(share.join(file)).unwrap();
        assert!(script.contains(word) && script.contains("profile") && !script.contains("help-man"), "{file}");
    }
    // Each shell that is installed loads its completions and completes a command.
    for (shell, script) in [
        (
            "bash",
            "source \"$0/bash-completion/completions/firsttouch\"; COMP_WORDS=(firsttouch pro); COMP_CWORD=1; \
                  _firsttouch firsttouch pro firsttouch; echo \"${COMPREPLY[@]}\"",
        ),
        (
            "zsh",
            "fpath=(\"$0/zsh/site-functions\" $fpath); autoload -Uz compinit; compinit -u -D; autoload +X _firsttouch; \
                 [ \"$_comps[firsttouch]\" = _firsttouch ] && functions _firsttouch",
        ),
        ("fish", "source $argv[1]/fish/vendor_completions.d/firsttouch.fish; complete -C 'firsttouch pro'"),
    ] {
        match Command::new(shell).args(["-c", script]).arg(&share).env("HOME", folder.path()).output() {
            Ok(output) => assert!(output.status.success() && text(&output.stdout).contains("profile"), "{shell}: {output:?}"),
            Err(error) => assert!(error.kind() == std::io::ErrorKind::NotFound && shell != "bash", "{shell}: {error}"),
        }
    }
    let service = fs::read_to_string(share.join("firsttouch/systemd/firsttouch-metrics.service")).unwrap();
    assert!(service.contains("\nExecStart=/usr/bin/firsttouch serve-metrics "), "{service}");
    assert!(install(&["--remove", destination, "/usr"]).status.success());
    let left = Command::new("find").arg(&root).args(["!", "-type", "d"]).output().unwrap();
    assert_eq!(text(&left.stdout), "");
    let relative = install(&["", "usr"]);
    assert!(relative.status.code() == Some(2) && text(&relative.stderr).contains("PREFIX must be an absolute path"));
}

/// Check that `clean` removes the directory of a killed run, keeps that of a live one, and changes nothing with --dry-run.
#[test]
fn clean_removes_what_is_left() {
    let (temporary, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let user = fs::metadata(temporary.path()).map(|about| std::os::unix::fs::MetadataExt::uid(&about)).unwrap();
    let [dead, live] = [i32::MAX.unsigned_abs(), std::process::id()].map(|pid| temporary.path().join(format!("firsttouch-{user}-{pid}-1")));
    for folder in [&dead, &live] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("library.so"), "x").unwrap();
    }
    let cache = home.path().join(".cache/firsttouch");
    fs::create_dir_all(&cache).unwrap();
    let (library, profile) = (cache.join("libfirsttouch_pin-0.so"), cache.join("a.ftp"));
    fs::write(&library, "x").unwrap();
    fs::write(&profile, "x").unwrap();
    let clean = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firsttouch"));
        let variables = [("TMPDIR", temporary.path()), ("HOME", home.path()), ("XDG_RUNTIME_DIR", temporary.path())];
        let output = command.arg("clean").args(options).envs(variables).env_remove("XDG_CACHE_HOME").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let listed = clean(&["--dry-run"]);
    assert!(listed.contains("would be removed") && dead.exists() && library.exists(), "{listed}");
    let removed = clean(&[]);
    assert!(!dead.exists() && !library.exists() && live.exists() && profile.exists(), "{removed}");
    assert!(removed.contains(&format!("process {} uses it", std::process::id())) && removed.contains("--profiles removes it"), "{removed}");
    let json: serde_json::Value = serde_json::from_str(&clean(&["--profiles", "--json"])).unwrap();
    assert!(json["schema"] == "firsttouch.clean/1" && !profile.exists() && live.exists(), "{json}");
}

/// Check that JSON can go to a file besides the text, and that the text can go to a file.
#[test]
fn results_go_to_files() {
    let folder = tempfile::tempdir().unwrap();
    let [json, output] = ["a.json", "a.txt"].map(|name| folder.path().join(name).display().to_string());
    let stat = firsttouch(&["stat", &format!("--json={json}"), "-o", &output, "--", "echo", "out"]);
    assert_eq!((stat.status.code(), text(&stat.stdout), text(&stat.stderr)), (Some(0), "out\n", ""));
    let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!((&value["schema"], &value["exit_code"]), (&"firsttouch.stat/1".into(), &0.into()));
    assert!(fs::read_to_string(&output).unwrap().starts_with("Counts while echo ran"));
    let both = firsttouch(&["stat", "--json", "-o", "-", "--", "true"]);
    assert!(serde_json::from_slice::<serde_json::Value>(&both.stdout).is_ok(), "{}", text(&both.stdout));
    fs::write(&json, "int main(void);\n").unwrap();
    let refused = firsttouch(&["stat", &format!("--json={json}"), "--", "echo", "out"]);
    assert!(refused.status.code() == Some(1) && refused.stdout.is_empty(), "{refused:?}");
    assert!(text(&refused.stderr).contains("another kind of file is already there"), "{}", text(&refused.stderr));
}

/// Check that `check` writes JSON to a file besides another format, and refuses both on stdout before it judges.
#[test]
fn check_writes_json_besides_a_format() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("a.json");
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/profiles/dgemv_serial.ftp").display().to_string();
    let both = firsttouch(&["check", "--format", "sarif", &format!("--json={}", json.display()), &profile]);
    let sarif: serde_json::Value = serde_json::from_slice(&both.stdout).unwrap();
    let beside: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!((&sarif["version"], &beside["schema"]), (&"2.1.0".into(), &"firsttouch.check/1".into()));
    let one_place = firsttouch(&["check", "--format", "junit", "--json", &profile]);
    assert!(one_place.status.code() == Some(2) && one_place.stdout.is_empty(), "{one_place:?}");
    assert!(text(&one_place.stderr).contains("both write to stdout"), "{}", text(&one_place.stderr));
}

/// Check that profiles, reports, plans and machines can come from a pipe, which can be read only once.
#[test]
fn files_can_be_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let profile = fixtures.join("profiles/dgemv_serial.ftp");
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/epyc-7451x2.toml");
    let run = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", script, env!("CARGO_BIN_EXE_firsttouch")]).args([&profile, &machine]).current_dir(folder.path());
        let output = command.env("TMPDIR", folder.path()).env("COLUMNS", "1000").output().unwrap();
        assert!(output.status.success(), "{script}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let report = run("\"$0\" report <(cat \"$1\") --json | tee report.json");
    assert_eq!(report, run("\"$0\" report \"$1\" --json"));
    let compared: serde_json::Value = serde_json::from_str(&run("\"$0\" diff <(cat report.json) <(cat \"$1\") --json")).unwrap();
    assert!(compared["significant"] == false && compared["longer"].is_null(), "{compared}");
    let shown = run("\"$0\" diff report.json \"$1\"");
    assert!(shown.contains("Four times the time halves the interval"), "{shown}");
    let by_name = run("\"$0\" report \"$1\" --machine \"$2\" --json");
    assert_eq!(run("\"$0\" report \"$1\" --machine <(cat \"$2\") --json"), by_name);
    run("\"$0\" plan <(cat \"$1\") -o plan.toml");
    assert_eq!(run("\"$0\" run --plan <(cat plan.toml) -- echo ran 2> /dev/null"), "ran\n");
    let wrong = Command::new("bash").args(["-c", "\"$0\" report <(echo letter)", env!("CARGO_BIN_EXE_firsttouch")]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("which is a pipe: ") && text(&wrong.stderr).contains("not a firsttouch profile"), "{wrong:?}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "no copies are left: {left:?}");
}

/// Check that `reproduce` without a name lists the experiments.
#[test]
fn reproduce_alone_lists() {
    let (alone, listed) = (firsttouch(&["reproduce"]), firsttouch(&["reproduce", "--list"]));
    assert!(alone.status.success() && alone.stdout == listed.stdout && text(&alone.stdout).contains("dgemv-first-touch"));
    assert_eq!(firsttouch(&["reproduce", "--runs", "3"]).status.code(), Some(2));
}

/// Check that `firsttouch` without arguments lists the commands, as a usage error.
#[test]
fn alone_it_gives_an_overview() {
    let output = firsttouch(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    for command in [
        "demo",
        "profile -- ./program",
        "report program.ftp",
        "topology",
        "doctor",
        "stat -- ./program",
        "ps PID",
        "maps PID",
        "balancing",
        "map",
        "bench dgemv",
        "serve-metrics",
    ] {
        assert!(text(&output.stderr).contains(&format!("firsttouch {command}")), "{command}");
    }
}

/// Check that each error has one message and the exit status of its kind.
#[test]
fn errors_are_clear() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.ftp");
    let missing = missing.to_str().unwrap();
    for (arguments, status, message) in [
        (&["report", missing][..], 1, "cannot open profile"),
        (&["report", env!("CARGO_BIN_EXE_firsttouch")], 1, "it is not a firsttouch profile"),
        (&["report", missing, "--machine", "virtual:65"], 2, "cannot use machine 'virtual:65': virtual machines have 1 to 64 nodes"),
        (&["report", missing, "--pin", "0,x"], 2, "cannot use --pin '0,x'"),
        (&["report", missing, "--machine", "no-such-machine"], 2, "cannot use machine 'no-such-machine': expected virtual:N"),
        (&["machines", "show", "no-such-machine"], 2, "cannot use machine 'no-such-machine': expected virtual:N"),
        (&["profile"], 2, "required"),
        (&["profile", "--pid", "0"], 2, "expected the number of a process, such as 4711, found '0'"),
        (&["profile", "--pid", "abc"], 2, "expected the number of a process, such as 4711, found 'abc'"),
        (&["profile", "--min-size", "many", "--", "true"], 2, "expected a size such as 65536, 64K or 1M, found 'many'"),
        (&["bench", "dgemv", "--m", "0"], 2, "--m"),
        (&["bench", "dgemv", "--m", "4000000000", "--n", "4000000000"], 2, "choose smaller sizes"),
        (&["bench", "dgemv", "--schedule", "auto"], 2, "expected static, dynamic or guided"),
        (&["map", "--spread", "0"], 2, "expected a percentage"),
        (&["map", "--runs", "2"], 2, "--runs"),
        (&["bench", "dmvm", "--schedule", "guided,0"], 2, "expected a number from 1"),
        (&["bench", "triad", "--elements", "0"], 2, "--elements"),
        (&["bench", "triad", "--elements=-5"], 2, "--elements"),
        (&["bench", "triad", "--elements", "900000000000000"], 2, "choose smaller sizes"),
        (&["bench", "iso3dfd", "--n2", "16"], 2, "--n2"),
        (&["bench", "iso3dfd", "--n1", "4000000000", "--n2", "4000000000"], 2, "choose smaller sizes"),
        (&["bench", "chase", "--lines", "2", "--threads", "4"], 1, "a line a thread"),
        (&["bench", "copy", "--threads", "2", "--scaling", "1,2"], 2, "--scaling"),
    ] {
        let output = firsttouch(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty() && error.starts_with("firsttouch: error: ") && error.contains(message), "{error}");
        assert_eq!(error.matches("error:").count(), 1, "{error}");
    }
}

/// Check that a file that cannot be used ends a command with 1, whichever command it is, and whether an argument or an option names it; and that no
/// program is run.
#[test]
fn unusable_files_have_one_status() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (missing, text_file, profile) = (path("missing.ftp"), path("notes.toml"), path("empty.ftp"));
    std::fs::write(&text_file, "no file of firsttouch\n").unwrap();
    drop(firsttouch_profile::Writer::create(std::path::Path::new(&profile)).unwrap());
    let record = path("missing.record");
    for (file, machine) in [(&missing, path("missing.toml")), (&text_file, text_file.clone()), (&missing, path("none/machine.xml"))] {
        let (file, machine) = (file.as_str(), machine.as_str());
        for arguments in [
            &["report", file][..],
            &["predict", file, "--machine", "virtual:2"],
            &["plan", file],
            &["diff", file, &profile],
            &["diff", &profile, file],
            &["export", file, "--to", "folded"],
            &["merge", file, "-o", &path("merged.ftp")],
            &["check", &profile, "--baseline", file],
            &["top", "--replay", if file == missing { &record } else { file }],
            &["run", "--plan", file, "--", "echo", "ran"],
            &["report", &profile, "--machine", machine],
            &["predict", &profile, "--machine", machine],
            &["plan", &profile, "--machine", machine],
            &["check", "--machine", machine, "--", "echo", "ran"],
            &["machines", "show", machine],
            &["report", &profile, "--source-root", file],
        ] {
            let output = firsttouch(arguments);
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
            assert!(error.contains("cannot ") && output.stdout.is_empty(), "{arguments:?}: {error} {}", text(&output.stdout));
        }
    }
}

/// Check that the error for an unknown option does not advise to pass it as a value.
#[test]
fn unknown_options_get_no_wrong_hint() {
    let output = firsttouch(&["report", "--picture", "x.html", "x.ftp"]);
    let error = text(&output.stderr);
    assert!(
        output.status.code() == Some(2) && error.contains("unexpected argument '--picture'") && !error.contains("-- --picture"),
        "{error}"
    );
}

/// Check that `help` prints the same as `--help`, for the program and for each command.
#[test]
fn help_is_a_command() {
    for command in [&[][..], &["profile"], &["report"]] {
        let help = firsttouch(&[&["help"], command].concat());
        let option = firsttouch(&[command, &["--help"]].concat());
        assert!(help.status.success() && help.stdout == option.stdout, "{command:?}: {}", text(&help.stderr));
    }
}

/// Check that a pinning that does not fit the profile's machine is a usage error, like one that fits no machine.
#[test]
fn pinning_must_fit_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("empty.ftp");
    drop(firsttouch_profile::Writer::create(&profile).unwrap());
    let profile = profile.to_str().unwrap();
    for options in
        [&["--pin", "nodes:0,5"][..], &["--machine", "virtual:2", "--pin", "nodes:0-3"], &["--machine", "virtual:2", "--pin", "0,0,1,1"]]
    {
        let output = firsttouch(&[&["report", profile], options].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
}

/// Check that a reader that closes the pipe is not an error, and that a full disk is one.
#[test]
fn output_that_cannot_be_written() {
    let binary = env!("CARGO_BIN_EXE_firsttouch");
    let script = "\"$0\" --help | true; \"$0\" bench dgemv --m 8 --n 8 --json | head -c 1; exit \"${PIPESTATUS[0]}\"";
    let output = Command::new("bash").args(["-c", script, binary]).output().unwrap();
    assert_eq!((text(&output.stdout), text(&output.stderr), output.status.code()), ("{", "", Some(0)));

    let script = "\"$0\" bench dgemv --m 8 --n 8 > /dev/full";
    let output = Command::new("bash").args(["-c", script, binary]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("firsttouch: error: cannot write to standard output: "), "{}", text(&output.stderr));
}

/// Check that `maps --profile` names the objects of a profile of that process with their nodes, and rejects profiles of other processes.
#[test]
fn objects_of_a_profile_are_named() {
    use firsttouch_model::rows::{Machine, Object, ObjectKind, Process};
    use firsttouch_profile::Writer;
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    // The child has its own stack only after it executes sleep; before, it has a copy of this test's.
    let maps = || serde_json::from_slice::<serde_json::Value>(&firsttouch(&["maps", &pid.to_string(), "--json"]).stdout).unwrap();
    let mut reported = maps();
    let start = std::time::Instant::now();
    while reported["processes"][0]["name"] != "sleep" && start.elapsed().as_secs() < 10 {
        reported = maps();
    }
    let mappings = reported["processes"][0]["mappings"].as_array().unwrap();
    let stack = mappings.iter().find(|mapping| mapping["name"] == "[stack]").unwrap();
    let write = |name: &str, pid: i32, exe: Option<String>, died_ns: Option<u64>| {
        let path = folder.path().join(name);
        let mut writer = Writer::create(&path).unwrap();
        writer.machine(&Machine { node_cpus: [(0, vec![0])].into(), page_bytes: 4096, ..Machine::default() }).unwrap();
        writer.process(&Process { id: 1, pid, parent: None, exe, born_ns: 0, died_ns }).unwrap();
        let (address, end) = (stack["start"].as_u64().unwrap(), stack["end"].as_u64().unwrap());
        let object = |id, name: &str, died_ns| Object {
            id,
            process: 1,
            kind: ObjectKind::Heap,
            call: None,
            name: Some(name.to_owned()),
            address,
            bytes: end - address,
            born_ns: 0,
            died_ns,
            site: None,
            thread: None,
        };
        writer.object(&object(1, "grid", None)).unwrap();
        writer.object(&object(2, "freed", Some(1))).unwrap();
        writer.flush().unwrap();
        writer.finish().unwrap();
        path.display().to_string()
    };
    let ours = write("ours.ftp", pid, None, None);
    let shown = |profile: &str| firsttouch(&["maps", &pid.to_string(), "--profile", profile, "--json"]);
    let output = shown(&ours);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let objects = json["processes"][0]["objects"].as_array().unwrap();
    assert_eq!((objects.len(), &objects[0]["name"]), (1, &"grid".into()), "{json}");
    // In containers that forbid move_pages, there is a doubt instead.
    let present: u64 = objects[0]["pages_by_node"].as_object().unwrap().values().filter_map(serde_json::Value::as_u64).sum();
    assert!(present > 0 || json["processes"][0]["doubts"].to_string().contains("move_pages"), "{json}");
    for (profile, doubt) in [
        (write("other.ftp", pid + 1, None, None), "is a profile of process"),
        (write("ended.ftp", pid, None, Some(5)), "was taken of another process"),
        (write("program.ftp", pid, Some("/other/program".to_owned()), None), "was taken of another process"),
    ] {
        let json: serde_json::Value = serde_json::from_slice(&shown(&profile).stdout).unwrap();
        let reported = &json["processes"][0];
        assert!(reported["objects"].as_array().unwrap().is_empty() && reported["doubts"].to_string().contains(doubt), "{reported}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(shown("/nonexistent.ftp").status.code(), Some(1));
}

/// Check that `check` names the limit on open files where that leaves too few, and gives no result.
#[test]
fn check_needs_open_files() {
    let script = "ulimit -n 8; exec \"$0\" check -- true";
    let outcome = Command::new("bash").args(["-c", script, env!("CARGO_BIN_EXE_firsttouch")]).output().unwrap();
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    assert!(text(&outcome.stderr).contains("NOT JUDGED: the limit on open files") && outcome.stdout.is_empty(), "{outcome:?}");
}

/// Check that a program that runs unobserved, for want of open files, has a profile and JSON that say so, and that an older profile does not
/// stay in their place.
#[test]
fn unobserved_programs_have_a_profile() {
    let folder = tempfile::tempdir().unwrap();
    let profile = |limit: &str| {
        let script = format!("{limit}; exec \"$0\" profile -q --json=p.json -o p.ftp -- true");
        let outcome = Command::new("bash").current_dir(&folder).args(["-c", &script, env!("CARGO_BIN_EXE_firsttouch")]).output().unwrap();
        assert_eq!(outcome.status.code(), Some(0), "{outcome:?}");
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.path().join("p.json")).unwrap()).unwrap();
        json["verdict"].to_string()
    };
    profile(":");
    // Whatever threads firsttouch has, it opens no more files in one run than in another.
    for limit in ["ulimit -n 12"; 3].into_iter().chain(["ulimit -n 8"; 12]) {
        let unobserved = profile(limit);
        assert!(unobserved.contains("not-judged") && unobserved.contains("the limit on open files"), "{limit}: {unobserved}");
    }
    let report = Command::new(env!("CARGO_BIN_EXE_firsttouch")).current_dir(&folder).args(["report", "p.ftp"]).output().unwrap();
    assert!(text(&report.stdout).contains("NOT JUDGED: the limit on open files"), "{report:?}");
}
