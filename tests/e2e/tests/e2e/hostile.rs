// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names in profiles, plans, reports, machine files and recorded trees that would control a terminal or a CI system: no command lets them.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::terminal::run_on_terminal;
use firsttouch_e2e::tool::{Firsttouch, assert_no_panic, temporary_directory, text};
use rusqlite::Connection;
use std::fs;
use std::path::Path;
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
        assert_eq!(outcome.status, 2, "{outcome:?}");
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
