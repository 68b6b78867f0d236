// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names in profiles, plans, reports, machine files and recorded trees that would control a terminal or a CI system: no command lets them. And programs and
//! profiles that name files for root to show: only source files are shown, and of another user's profile only those that this user may read.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::skip::{is_root, lacks_tools, skipped};
use firsttouch_e2e::terminal::run_on_terminal;
use firsttouch_e2e::tool::{Firsttouch, NOBODY, assert_no_panic, temporary_directory, text};
use rusqlite::Connection;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A title, a bell, a cleared screen, commands of CI systems at the start of a line and within it, directions, an 8-bit CSI, an invisible tag.
const EVIL: &str = "\u{1b}]0;x\u{7}\u{1b}[2J\r\n::error::evil\n##[error]evil ##vso[task.x] %0A::warning::evil\u{202e}\u{2066}\u{200f}\u{9b}2J\u{2028}\u{e0041}'$(x)";

/// A profile in which every column of text ends with [`EVIL`].
fn hostile_profile(folder: &Path) -> String {
    let file = folder.join("hostile.ftp");
    fs::copy(fixture("serial_loop"), &file).expect("a recorded profile");
    let profile = Connection::open(&file).expect("a profile");
    let mut columns = profile
        .prepare("SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.type = 'TEXT'")
        .expect("a query");
    let columns: Vec<(String, String)> =
        columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("columns").map(|row| row.expect("a column")).collect();
    assert!(columns.len() > 15, "{columns:?}");
    for (table, column) in columns {
        // These are keys, and the values of keys, which the lines below write.
        if !matches!(table.as_str(), "meta" | "machine") && (table.as_str(), column.as_str()) != ("objects", "kind") {
            profile.execute(&format!("UPDATE {table} SET {column} = coalesce({column}, '') || ?"), [EVIL]).expect("an update");
        }
    }
    // Evidence that is read only under its name, and a source that is not known.
    let sources = "INSERT INTO evidence SELECT replace(source, ?1, ''), available, samples, detail FROM evidence";
    profile.execute(sources, [EVIL]).expect("evidence");
    let command = serde_json::to_string(&["./prog", EVIL, "a b"]).expect("JSON");
    profile.execute("UPDATE meta SET value = ? WHERE key = 'command'", [command]).expect("a command");
    let variables = "INSERT OR REPLACE INTO meta SELECT 'variables', group_concat(id || char(9) || 'v' || ?, char(10)) FROM sites";
    profile.execute(variables, [EVIL.replace(['\r', '\n', '\u{2028}'], "")]).expect("variables");
    for key in ["notes", "tool_version", EVIL] {
        profile.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", [key, EVIL]).expect("a note");
    }
    for key in ["hostname", "kernel", EVIL] {
        profile.execute("INSERT OR REPLACE INTO machine VALUES (?1, ?2)", [key, EVIL]).expect("a machine");
    }
    text(&file).to_owned()
}

/// TOML with [`EVIL`] at the end of every string but the schema and the words that have a meaning.
fn hostile_toml(plain: &str) -> String {
    let evil: String = EVIL.chars().map(|c| format!("\\U{:08X}", u32::from(c))).collect();
    // Sources of a machine file are names of explanations.
    let keeps = |line: &str| {
        ["schema", "policy", "pin", "call", "streams", "build_id", "generation"].iter().any(|key| line.starts_with(key))
            || line.contains("source = ")
    };
    let lines = plain.lines().map(|line| match line.find('#') {
        _ if keeps(line) => line.to_owned(),
        _ => line.replace("\",", &format!("{evil}\",")).replace("\" }", &format!("{evil}\" }}")).replace("\"]", &format!("{evil}\"]")),
    });
    let ended = |line: String| match line.strip_suffix('"') {
        Some(start) if !keeps(&line) => format!("{start}{evil}\""),
        _ => line,
    };
    lines.map(ended).collect::<Vec<_>>().join("\n")
}

/// Check that the output has no control characters, that only workflow commands of firsttouch begin a line, and that no name looks like a
/// message of firsttouch.
fn check(outcome: &Outcome, words: &[&str]) {
    assert_no_panic(outcome);
    assert!(outcome.status <= 3, "{words:?}: {outcome:?}");
    for (stream, shown) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        let shown = std::str::from_utf8(shown).unwrap_or_else(|error| panic!("{words:?}, {stream}: {error}"));
        check_text(shown, words, stream);
    }
}

fn check_text(shown: &str, words: &[&str], place: &str) {
    let controls = |c: &char| {
        c.is_control() && *c != '\n'
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
    };
    for line in shown.lines() {
        assert_eq!(line.chars().find(controls), None, "{words:?}, {place}: {line:?}");
        assert!(!line.contains("##[") && !line.contains("##vso["), "{words:?}, {place}: {line:?}");
        let ours = words.contains(&"github") && ["::error ", "::warning ", "::notice "].iter().any(|start| line.starts_with(start));
        assert!(ours || !line.trim_start().starts_with("::"), "{words:?}, {place}: {line:?}");
    }
}

#[test]
fn names_control_nothing() {
    let Some(firsttouch) = Firsttouch::find("names_control_nothing") else { return };
    let directory = temporary_directory();
    let folder = directory.path();
    let ask = |words: &[&str]| {
        let outcome = run(firsttouch.command(words).current_dir(folder));
        check(&outcome, words);
        outcome
    };
    let profile = &hostile_profile(folder);
    let at = |name: &str| folder.join(name).display().to_string();
    let catalogue = fs::read_to_string(workspace_root().join("machines/epyc-7451x2.toml")).expect("a machine");
    let machine = &at("hostile.toml");
    fs::write(machine, hostile_toml(&catalogue)).expect("a machine");
    let hwloc = &at("hostile.xml");
    let xml = fs::read_to_string(workspace_root().join("fixtures/hwloc/two-packages.xml")).expect("a topology");
    let evil: String = EVIL.chars().filter(|c| *c != '\u{1b}' && *c != '\u{7}').map(|c| format!("&#{};", u32::from(c))).collect();
    fs::write(hwloc, xml.replace("value=\"", &format!("value=\"{evil}")).replace("\" subtype=\"", &format!("{evil}\" subtype=\"")))
        .expect("a topology");
    for on in ["virtual:2", machine, hwloc] {
        let judged = ["report", "report --verbose", "report --json", "predict", "predict --json", "plan", "plan --json", "check"];
        for words in judged {
            let words: Vec<&str> = words.split(' ').chain([profile.as_str(), "--machine", on]).collect();
            let outcome = ask(&words);
            assert!(!outcome.stdout.is_empty() || words[0] == "predict", "{words:?}: {outcome:?}");
        }
    }
    // On a terminal, the colours are ours.
    let (screen, status) = run_on_terminal(firsttouch.command(["report", profile, "--machine", machine]).env("TERM", "xterm"), "", b"");
    let plain =
        ["0", "1", "2", "31", "32"].iter().fold(screen.replace('\r', ""), |text, code| text.replace(&format!("\u{1b}[{code}m"), ""));
    assert!(status == 0 && plain.len() < screen.len(), "{status}: {screen:?}");
    check_text(&plain, &["report"], "terminal");
    for format in ["text", "github", "junit", "sarif"] {
        ask(&["check", profile, "--machine", machine, "--format", format, "--max-remote", "0", "--max-slowdown", "1"]);
    }
    for format in ["folded", "firefox", "callgrind", "csv"] {
        let exported = ask(&["export", profile, "--machine", machine, "--to", format, "-o", "-"]);
        assert!(exported.status == 0 && exported.stdout_text().contains("[task.x]"), "{format}: {exported:?}");
    }
    assert_eq!(ask(&["report", profile, "--machine", machine, "--html", "-"]).status, 0);
    ask(&["machines", "show", machine]);
    ask(&["machines", "show", machine, "--json"]);
    for words in [&["topology", "-i", hwloc][..], &["topology", "-i", hwloc, "--json"], &["topology", "-i", hwloc, "--xml", "-"]] {
        ask(words);
    }
    check_tree(folder, &ask);
    let plan = &at("plan.toml");
    assert_eq!(ask(&["plan", profile, "--machine", machine, "-o", plan]).status, 0);
    let written = fs::read_to_string(plan).expect("a plan");
    check_text(&written, &["plan -o"], "the file");
    assert!(written.contains("[[place]]") && written.contains(r"'a b'"), "{written}");
    let hostile = &at("plan2.toml");
    fs::write(hostile, hostile_toml(&written)).expect("a plan");
    for words in [&["run", "--plan", hostile, "--explain", "--", "/bin/true"][..], &["run", "--plan", hostile, "--", "/bin/true"]] {
        assert_eq!(ask(words).status, 0, "{words:?}");
    }
    let report = &at("report.json");
    let json = ask(&["report", profile, "--json"]).stdout_text();
    fs::write(report, json.replace("\\ufffd", "\\u001b\\n::error::")).expect("a report");
    ask(&["diff", report, profile]);
    ask(&["diff", report, profile, "--json"]);
    ask(&["check", profile, "--baseline", report, "--max-remote", "100"]);
    let cut = Connection::open(profile).expect("a profile");
    cut.execute("INSERT INTO meta VALUES ('write_failure', ?)", [EVIL]).expect("a note");
    drop(cut);
    for words in ["check", "plan", "report", "predict", "check --format github"] {
        ask(&words.split(' ').chain([profile.as_str()]).collect::<Vec<_>>());
    }
    // A program with such a name, recorded now.
    let program = folder.join(EVIL.replace('/', ""));
    fs::copy("/bin/true", &program).expect("a program");
    assert_eq!(ask(&["profile", "--", text(&program)]).status, 0);
    ask(&["run", "--plan", hostile, "--explain", "--", text(&program)]);
    check_errors(folder, &ask, &written, &catalogue);
}

/// Check a recorded tree of /proc and /sys whose files hold such text.
fn check_tree(folder: &Path, ask: &dyn Fn(&[&str]) -> Outcome) {
    let tree = folder.join("tree");
    let fixture = workspace_root().join("fixtures/machines/guest-2-nodes");
    assert_eq!(run(Command::new("cp").arg("-r").arg(&fixture).arg(&tree)).status, 0);
    for file in ["proc/cpuinfo", "proc/self/cpuset", "proc/self/cgroup", "proc/self/numa_maps", "sys/devices/system/node/node1/distance"] {
        fs::create_dir_all(tree.join(file).parent().expect("a folder")).expect("a folder");
        let text = fs::read_to_string(tree.join(file)).unwrap_or_default().replace("\n\n", "\nmodel name : x\n\n");
        let lines: String = text.lines().map(|line| format!("{line}{}\n", EVIL.replace(['\r', '\n'], ""))).collect();
        fs::write(tree.join(file), lines + EVIL).expect("a file");
    }
    let tree = text(&tree);
    for words in [
        &["topology", "-i", tree][..],
        &["topology", "-i", tree, "--json"],
        &["topology", "-i", tree, "--xml", "-"],
        &["topology", "-i", tree, "--svg", "-"],
    ] {
        assert!(!ask(words).stdout.is_empty(), "{words:?}");
    }
    fs::write(Path::new(tree).join("sys/devices/system/node/online"), EVIL).expect("a file");
    fs::write(Path::new(tree).join("sys/devices/system/cpu/online"), EVIL).expect("a file");
    ask(&["topology", "-i", tree]);
}

/// Check the errors that name what they refuse.
fn check_errors(folder: &Path, ask: &dyn Fn(&[&str]) -> Outcome, plan: &str, machine: &str) {
    let evil: String = EVIL.chars().map(|c| format!("\\U{:08X}", u32::from(c))).collect();
    let name = folder.join(format!("x{}.toml", EVIL.replace(['/', '\0'], ""))).display().to_string();
    let write = |text: String| fs::write(&name, text).expect("a file");
    for (from, to) in [
        ("policy = \"", format!("policy = \"{evil}")),
        ("nodes = ", format!("\"{evil}\" = 1\nnodes = ")),
        ("call = \"", format!("nodes = 7 # {EVIL}\ncall = \"")),
        ("schema = \"", format!("schema = \"{evil}")),
    ] {
        write(plan.replacen(from, &to, 1));
        let outcome = ask(&["run", "--plan", &name, "--", "/bin/true"]);
        assert_eq!(outcome.status, 1, "{outcome:?}");
    }
    for (from, to) in [
        ("schema = \"", format!("schema = \"{evil}")),
        ("source = \"", format!("source = \"{evil}")),
        ("[nodes]", format!("[\"{evil}\"]\n[nodes]")),
    ] {
        write(machine.replacen(from, &to, 1));
        assert_ne!(ask(&["machines", "show", &name]).status, 0);
    }
    write(EVIL.to_owned());
    for words in [
        &["report", &name][..],
        &["diff", &name, &name],
        &["topology", "-i", &name],
        &["profile", "-o", &name, "--", "/bin/true"],
        &["run", "--membind", EVIL, "--", "/bin/true"],
        &["run", "--plan", "no", "--", EVIL],
        &["report", "--machine", EVIL, "x"],
        &["report", EVIL],
        &["report", "--pin", EVIL, "x"],
        &["check", "--max-remote", EVIL, "x"],
        &[EVIL],
        &["report", EVIL, EVIL, EVIL],
    ] {
        let outcome = ask(words);
        assert!(!outcome.stderr.is_empty() && outcome.status != 0, "{words:?}: {outcome:?}");
    }
}

/// Check that names of a megabyte make neither a large export nor take much memory, in any format, and that the export says that they were cut.
#[test]
fn long_names_do_not_multiply() {
    let Some(firsttouch) = Firsttouch::find("long_names_do_not_multiply") else { return };
    let directory = temporary_directory();
    let file = directory.path().join("a.ftp");
    fs::copy(fixture("dgemv_serial"), &file).expect("a recorded profile");
    let profile = Connection::open(&file).expect("a profile");
    let long = "'_' || hex(zeroblob(524288))";
    let names = format!("UPDATE frames SET function = {long} || depth, file = {long} WHERE site IN (SELECT site FROM accesses)");
    assert!(profile.execute(&names, []).expect("frames") > 5);
    profile.execute(&format!("UPDATE objects SET name = {long}"), []).expect("objects");
    drop(profile);
    for format in ["folded", "pprof", "firefox", "callgrind", "csv"] {
        let words = ["-c", "ulimit -v 900000; exec \"$0\" export \"$1\" --to \"$2\" -o \"$3\""];
        let exported = directory.path().join(format!("out.{format}"));
        let outcome = run(Command::new("/bin/sh").args(words).args([firsttouch.binary(), &file, Path::new(format), &exported]));
        assert_no_panic(&outcome);
        assert_eq!(outcome.status, 0, "{format}: {outcome:?}");
        let written = fs::read(&exported).expect("an export");
        let longest = written.split(|byte| matches!(byte, b'\n' | b'"' | b',' | b';')).map(<[u8]>::len).max();
        let is_marked = written.windows(5).any(|five| five == "00…".as_bytes());
        assert!(is_marked && (written.len() < 16 << 20), "{format}: {} bytes", written.len());
        assert!(format == "pprof" || longest.is_some_and(|longest| longest < 10_000), "{format}: {longest:?}");
    }
}

/// What the first lines of the files hold that profiles name.
const FIRST_LINE: &str = "line-that-root-may-read";

/// Files that profiles name: one that is no source code and a link to it, a private source file, and a public one.
struct Named {
    secret: PathBuf,
    link: PathBuf,
    private: PathBuf,
    public: PathBuf,
}

impl Named {
    fn new(folder: &Path) -> Self {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("a folder");
        let file = |name: &str, mode: u32| {
            let path = folder.join(name);
            fs::write(&path, format!("double *{FIRST_LINE} = malloc(n);\n").replace('-', "_")).expect("a file");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a file");
            // Older than the recorded profiles.
            File::options().write(true).open(&path).and_then(|file| file.set_modified(std::time::UNIX_EPOCH)).expect("a time");
            path
        };
        let secret = file("secret", 0o600);
        let link = folder.join("link.c");
        symlink(&secret, &link).expect("a link");
        Self { secret, link, private: file("private.c", 0o600), public: file("public.c", 0o644) }
    }
}

/// A profile whose memory was allocated in the first line of a file. `is_recorded`: it has the size and the time of the file.
fn naming(source: &Path, is_recorded: bool, file: &Path) {
    fs::copy(fixture("serial_loop"), file).expect("a recorded profile");
    let profile = Connection::open(file).expect("a profile");
    profile.execute("UPDATE frames SET file = ?, line = 1 WHERE file IS NOT NULL", [text(source)]).expect("frames");
    profile.execute_batch("DROP TABLE IF EXISTS source_files; DELETE FROM meta WHERE key IN ('variables', 'made_by')").expect("rows");
    if is_recorded {
        // As crates/profile has it; the recorded profiles of early versions lack it.
        let table = "path TEXT PRIMARY KEY, bytes INTEGER NOT NULL, modified_ns INTEGER NOT NULL";
        profile.execute_batch(&format!("CREATE TABLE source_files ({table}) WITHOUT ROWID")).expect("a table");
        let about = fs::metadata(source).expect("the file");
        let row = (text(source), about.len(), about.mtime() * 1_000_000_000 + about.mtime_nsec());
        profile.execute("INSERT INTO source_files VALUES (?, ?, ?)", row).expect("a row");
    }
}

/// Whether a command shows the line, of a profile that it can read.
fn shows(firsttouch: &Firsttouch, words: &[&str], input: Option<&Path>) -> bool {
    let mut command = firsttouch.command(words);
    let outcome = match input {
        // `cat` makes a pipe of it.
        Some(file) => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "cat \"$0\" | \"$@\"", text(file)]).arg(command.get_program()).args(command.get_args());
            run(&mut shell)
        }
        None => run(&mut command),
    };
    assert!(outcome.status == 0 && !outcome.stdout.is_empty(), "{words:?}: {outcome:?}");
    outcome.stdout_text().contains(&FIRST_LINE.replace('-', "_"))
}

/// Check that a profile cannot make a report show a file that is no source code, however it names it, and that source files are shown.
#[test]
fn profiles_disclose_no_files() {
    let Some(firsttouch) = Firsttouch::find("profiles_disclose_no_files") else { return };
    let directory = temporary_directory();
    let folder = directory.path();
    let named = Named::new(folder);
    let file = folder.join("a.ftp");
    for is_recorded in [true, false] {
        for (source, is_source) in [(&named.secret, false), (&named.link, false), (&named.private, true), (&named.public, true)] {
            naming(source, is_recorded, &file);
            for words in ["report", "report --json", "report --html -"] {
                let words: Vec<&str> = ["report", text(&file)].into_iter().chain(words.split(' ').skip(1)).collect();
                assert_eq!(shows(&firsttouch, &words, None), is_source, "{words:?} {is_recorded} {source:?}");
            }
        }
    }
}

/// Check that the report for root shows only what the profile's owner may read, also if the profile was merged or came through a pipe.
#[test]
fn owners_of_profiles_are_not_forgotten() {
    let test = "owners_of_profiles_are_not_forgotten";
    if !is_root() {
        return skipped(test, "only root may read the files of others");
    }
    let Some(firsttouch) = Firsttouch::find(test) else { return };
    let directory = temporary_directory();
    let folder = directory.path();
    let named = Named::new(folder);
    let (file, merged, ranks) = (folder.join("a.ftp"), folder.join("m.ftp"), folder.join("r.ftp.d"));
    fs::create_dir(&ranks).expect("a folder");
    for (source, is_public) in [(&named.private, false), (&named.public, true)] {
        for (owner, is_root) in [(0, true), (NOBODY, false)] {
            naming(source, true, &file);
            chown(&file, Some(owner), None).expect("an owner");
            fs::copy(&file, ranks.join("rank-0.ftp")).expect("a profile");
            chown(ranks.join("rank-0.ftp"), Some(owner), None).expect("an owner");
            assert_eq!(run(&mut firsttouch.command(["merge", text(&file), "-o", text(&merged)])).status, 0);
            let shown = |file: &Path| shows(&firsttouch, &["report", "--json", text(file)], None);
            let what = format!("{source:?} of {owner}");
            assert_eq!(shown(&file), is_root || is_public, "{what}");
            assert_eq!(shown(&merged), is_root || is_public, "merged: {what}");
            assert_eq!(shown(&ranks), is_root || is_public, "directory of ranks: {what}");
            assert_eq!(shows(&firsttouch, &["report", "--json", "/dev/stdin"], Some(&file)), is_public, "pipe: {what}");
            let other = fixture("serial_loop");
            assert_eq!(shows(&firsttouch, &["diff", "--json", "/dev/stdin", text(&other)], Some(&file)), is_public, "diff: {what}");
        }
    }
}

/// Check that a program cannot make a recording keep, and a report show, a file that is no source code.
#[test]
fn programs_disclose_no_files() {
    let test = "programs_disclose_no_files";
    if lacks_tools(test, &["gcc"]) {
        return;
    }
    let Some(firsttouch) = Firsttouch::find(test) else { return };
    let directory = temporary_directory();
    let folder = directory.path();
    let named = Named::new(folder);
    for (source, is_source) in [(&named.secret, false), (&named.private, true)] {
        let (code, program, file) = (folder.join("code.c"), folder.join("program"), folder.join("a.ftp"));
        let lines = format!(
            "#include <stdlib.h>\nint main(void) {{ long n = 1 << 24;\n#line 1 \"{}\"\nvolatile char *a = malloc(n);\n\
             for (int k = 0; k < 40; k++) for (long i = 0; i < n; i += 8) a[i]++; return 0; }}\n",
            text(source)
        );
        fs::write(&code, lines).expect("a program");
        assert_eq!(run(Command::new("gcc").args(["-g", "-O1", "-o"]).arg(&program).arg(&code)).status, 0);
        assert_eq!(run(&mut firsttouch.profile(&file, &["--quiet"], &[text(&program)])).status, 0);
        let names = |sql: &str| {
            let profile = Connection::open(&file).expect("a profile");
            profile.query_row(sql, [text(source)], |row| row.get::<_, bool>(0)).expect("an answer")
        };
        assert!(names("SELECT count(*) > 0 FROM frames WHERE file = ?"), "{source:?}");
        assert_eq!(names("SELECT count(*) > 0 FROM source_files WHERE path = ?"), is_source, "{source:?}");
        for words in [&["report", text(&file)][..], &["report", "--json", text(&file)], &["report", "--html", "-", text(&file)]] {
            assert_eq!(shows(&firsttouch, words, None), is_source, "{words:?} {source:?}");
        }
    }
}
