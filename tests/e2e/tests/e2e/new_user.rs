// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A new user types what the documentation prints: every command of README.md and of the pages in docs/ is run as printed, in a directory with
//! the programs and profiles that the pages assume.
//!
//! The commands of a page run in the order in which it prints them. What cannot run here is in [`NOT_RUN`], with its reason; each line of these
//! tables must still be in a page, so that they do not outlive the documentation.

use firsttouch_e2e::documented::{Printed, agreement, commands, shape};
use firsttouch_e2e::paths::{find_tool, workspace_root};
use firsttouch_e2e::process::{Outcome, Running, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::recorded::recorded;
use firsttouch_e2e::skip::skipped;
use firsttouch_e2e::tool::{Firsttouch, assert_no_panic, temporary_directory, text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

const README: &str = "README.md";

/// Commands that are not run: the page, how the command begins, why not.
const NOT_RUN: &[(&str, &str, &str)] = &[
    (README, "make demo", "builds firsttouch; command_line:: runs `firsttouch demo`"),
    (README, "make test", "runs this test"),
    (README, "firsttouch migrate PID --to 1", "needs a second node: guests, both::migrate"),
    (README, "firsttouch map", "measures for a minute: map:: runs it with smaller sizes"),
    ("docs/guide.md", "make build && sudo make install", "builds and installs: command_line::installation and scripts/package"),
    ("docs/guide.md", "cargo install", "builds firsttouch: scripts/package"),
    ("docs/map.md", "firsttouch map", "measures for a minute: map:: runs it with smaller sizes"),
    ("docs/migrate.md", "firsttouch migrate PID --to", "needs a second node: guests, both::migrate"),
    ("docs/migrate.md", "firsttouch migrate PID --interleave", "needs a second node: guests, both::migrate"),
    ("docs/reproduce.md", "firsttouch reproduce dgemv-first-touch", "takes minutes: reproduce:: runs it with smaller sizes"),
    ("docs/reproduce.md", "firsttouch reproduce dgemv-scaling", "takes minutes: reproduce:: runs it with smaller sizes"),
    ("docs/reproduce.md", "firsttouch reproduce iso3dfd-first-touch", "takes minutes: reproduce:: runs it with smaller sizes"),
    ("docs/system.md", "sudo firsttouch balancing off", "changes the machine, and needs several nodes: guests, both::balancing"),
    ("docs/system.md", "sudo firsttouch balancing measure", "changes the machine, and needs several nodes: guests, both::balancing"),
    ("docs/check.md", "make CFLAGS=", "builds the reader's program"),
    ("docs/run.md", "firsttouch run --file /dev/shm/table", "fills 1 GiB of the system's shared memory: run:: uses smaller files"),
];

/// Statuses other than 0 that a command may have, and why.
const STATUSES: &[(&str, &[i32], &str)] = &[
    ("firsttouch check", &[1, 3], "a limit may be exceeded, or the run too short for a verdict"),
    ("firsttouch run --quick-test", &[1], "too few nodes to compare placements"),
    ("firsttouch migrate 4711 --profile", &[0, 1], "on one node there is nowhere to move to"),
    ("firsttouch stat --watch", &[130], "Ctrl-C ends it"),
    ("firsttouch top", &[130], "Ctrl-C ends it"),
    ("grep outside_cpuset", &[1], "without control groups of version 2 there are no such lines"),
    ("firsttouch migrate PID --p", &[0, 1], "on one node there is nowhere to move to"),
];

/// Placeholders of the pages, and what a reader would write. Times are shorter than those printed, so that the suite takes less than a minute.
const INSTEAD: &[(&str, &str)] = &[
    ("--pid 4711", "--pid $RUNNING"),
    ("ps 4711", "ps $RUNNING"),
    ("maps 4711", "maps $RUNNING"),
    ("top 4711", "top $RUNNING"),
    ("tune 4711", "tune $RUNNING"),
    ("migrate 4711", "migrate $RUNNING"),
    ("pid-4711", "pid-$RUNNING"),
    ("pid-PID", "pid-$RUNNING"),
    ("PID", "$RUNNING"),
    ("NAME", "epyc-7451x2"),
    ("PROFILE", "solver.ftp"),
    ("F.ftp", "solver.ftp"),
    ("CMD", "./program"),
    ("DIRECTORY", "\"$MACHINE\""),
    ("--duration 10", "--duration 1.5"),
    ("--interval 10", "--interval 1"),
    ("/var/lib/prometheus/node-exporter/firsttouch.prom", "firsttouch.prom"),
    ("sudo ", ""),
];

/// Tools that a command needs besides firsttouch.
const NEEDS: &[&str] = &["mpirun", "lstopo", "sqlite3", "jq"];

fn read(page: &str) -> String {
    fs::read_to_string(workspace_root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

fn not_run(page: &str, command: &str) -> bool {
    let begins =
        |start: &str| command.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ') || start.ends_with('='));
    NOT_RUN.iter().any(|(on, start, _)| *on == page && begins(start))
}

/// A directory as a reader of the pages has one, and a program that runs there.
struct Desk {
    directory: tempfile::TempDir,
    running: Option<Running>,
}

impl Desk {
    fn new(firsttouch: &Firsttouch, solver: &Path) -> Self {
        let directory = temporary_directory();
        let here = directory.path();
        for name in ["program", "solver"] {
            fs::copy(solver, here.join(name)).expect("the program is copied");
        }
        for name in ["input.dat", "small.dat"] {
            fs::write(here.join(name), "1\n").expect("a file is written");
        }
        fs::create_dir_all(here.join("target/release")).expect("a folder");
        symlink(firsttouch.binary(), here.join("target/release/firsttouch")).expect("a link");
        for (from, to) in [
            ("dgemv_serial", "program.ftp"),
            ("dgemv_serial", "solver.ftp"),
            ("dgemv_parallel", "solver.ftp.1"),
            ("dgemv_serial", "before.ftp"),
            ("dgemv_parallel", "after.ftp"),
            ("dgemv_parallel", "known-good.ftp"),
            ("dgemv_serial", "a.ftp"),
        ] {
            let copy = recorded(firsttouch, from, here);
            fs::rename(copy, here.join(to)).expect("a profile");
        }
        let machine = workspace_root().join("fixtures/machines/guest-2-nodes/tools/lstopo.xml");
        fs::copy(&machine, here.join("other.xml")).expect("a machine");
        // Where hwloc is installed, the printed lstopo writes it.
        if find_tool("lstopo").is_none() {
            fs::copy(&machine, here.join("node.xml")).expect("a machine");
        }
        Self { directory, running: None }
    }

    /// The number of a program that runs until this value is dropped.
    fn running(&mut self) -> i32 {
        let here = self.directory.path().to_owned();
        let start = || {
            let mut command = Command::new("./solver");
            command.current_dir(here).env("NEW_USER_SECONDS", "120").env("OMP_NUM_THREADS", "2");
            Running::start(&mut command, b"")
        };
        self.running.get_or_insert_with(start).pid()
    }

    /// Runs a command in a shell.
    fn run(&mut self, firsttouch: &Firsttouch, command: &str) -> Outcome {
        let mut line = command.to_owned();
        for (from, to) in INSTEAD {
            line = line.replace(from, to);
        }
        if is_endless_server(&line) && !line.contains("--textfile") {
            // Two pages at a time, and other users of the machine, may not have the same port.
            line = line.replace("serve-metrics", "serve-metrics --listen 127.0.0.1:0");
        }
        let running = if line.contains("$RUNNING") || line.contains(" ps solver") { self.running().to_string() } else { String::new() };
        let path = std::env::var("PATH").unwrap_or_default();
        let folder = firsttouch.binary().parent().expect("a folder");
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &line])
            .current_dir(self.directory.path())
            .env("PATH", format!("{}:{path}", text(folder)))
            .env("RUNNING", running)
            .env("MACHINE", workspace_root().join("fixtures/machines/guest-2-nodes"))
            // mpirun refuses root, and more ranks than CPUs, unless told.
            .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"), ("OMPI_MCA_rmaps_base_oversubscribe", "1")]);
        if command.contains("--watch") || is_endless_top(command) || is_endless_server(command) {
            // It runs until Ctrl-C.
            let watching = Running::start(&mut shell, b"");
            std::thread::sleep(Duration::from_millis(2500));
            watching.signal_group(libc::SIGINT);
            return watching.wait();
        }
        run(&mut shell)
    }
}

/// Whether it is a `top` that shows this machine until it is ended.
fn is_endless_top(command: &str) -> bool {
    command.contains("firsttouch top") && ![" -n ", " -- ", " --replay"].iter().any(|end| command.contains(end))
}

/// Whether it is an exporter that runs until it is ended.
fn is_endless_server(command: &str) -> bool {
    command.contains("firsttouch serve-metrics") && !command.contains("--textfile -")
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal_group(libc::SIGKILL);
            let _ = running.wait();
        }
    }
}

/// Runs one page, and returns what is wrong.
fn page(test: &str, page: &str) {
    let Some(firsttouch) = Firsttouch::find(test) else { return };
    let Some(solver) = program(test, "new_user") else { return };
    let mut desk = Desk::new(&firsttouch, &solver);
    let mut wrong = Vec::new();
    for printed in commands(&read(page)).iter().filter(|printed| !not_run(page, &printed.command)) {
        let needs = |tool: &&&str| printed.command.split([' ', '|']).any(|word| word == **tool) && find_tool(tool).is_none();
        if let Some(tool) = NEEDS.iter().find(needs) {
            skipped(test, &format!("{tool} is not installed, which '{}' needs", printed.command));
            continue;
        }
        let command = if printed.command.starts_with("SELECT") {
            format!("sqlite3 -readonly -header -column solver.ftp \"{}\"", printed.command)
        } else {
            printed.command.clone()
        };
        let outcome = desk.run(&firsttouch, &command);
        if let Err(why) = judged(printed, &outcome) {
            wrong.push(format!("{page}:{}: {}\n   {why}\n{outcome:?}", printed.line, printed.command));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What is wrong with the outcome of a printed command.
fn judged(printed: &Printed, outcome: &Outcome) -> Result<(), String> {
    assert_no_panic(outcome);
    let (out, err) = (outcome.stdout_text(), outcome.stderr_text());
    let statuses = STATUSES.iter().filter(|(start, ..)| printed.command.contains(start)).flat_map(|(_, statuses, _)| statuses.iter());
    if outcome.status != 0 && !statuses.into_iter().any(|status| *status == outcome.status) {
        return Err(format!("status {}", outcome.status));
    }
    if outcome.status == 0 && err.contains("firsttouch: error") {
        return Err("an error that has no status".to_owned());
    }
    // A short run on a busy machine may have no finding that jq could print.
    let is_silent = ["--textfile", "--svg", "--xml", "--output", "--quiet", "lstopo --of", "jq -r '.findings"]
        .iter()
        .any(|word| printed.command.contains(word));
    if out.trim().is_empty() && err.trim().is_empty() && !is_silent {
        return Err("no output".to_owned());
    }
    let is_json = printed.command.contains("--json") && !printed.command.contains(['>', '|', '=']) && !printed.command.contains("--watch");
    if is_json && serde_json::from_str::<serde_json::Value>(&out).is_err() {
        return Err("--json is no JSON".to_owned());
    }
    if !printed.output.is_empty() {
        // Of a table, the columns are what the page promises; of other outputs, the words.
        let is_table = printed.command.starts_with("SELECT");
        let words = |text: &str| if is_table { shape(text.lines().next().unwrap_or_default()) } else { shape(&without_cross_check(text)) };
        let (shown, actual) = (words(&printed.output), words(&if is_table { out } else { format!("{out}{err}") }));
        let part = agreement(&shown, &actual);
        if part < LEAST_AGREEMENT {
            return Err(format!("{:.0} % of the output shown is there:\n{}\n   but\n{}", part * 100.0, shown.join(" "), actual.join(" ")));
        }
    }
    Ok(())
}

/// `text` without the sentence on watchpoints, which there is only where enough of them saw accesses.
fn without_cross_check(text: &str) -> String {
    let Some((before, rest)) = text.split_once("Watchpoints ") else { return text.to_owned() };
    rest.split_once("].").map_or_else(|| text.to_owned(), |(_, after)| format!("{before}{after}"))
}

/// Of the words that a page shows. Some depend on chance: whether samples were lost, first touches sampled, or the ends of the threads' parts seen.
const LEAST_AGREEMENT: f64 = 0.87;

/// Its column of commands lists the manual pages.
const LIST: &str = "docs/README.md";

/// Each page with a test of its own below.
const PAGES: &[&str] = &[
    README,
    "docs/guide.md",
    "docs/check.md",
    "docs/diff.md",
    "docs/doctor.md",
    "docs/export.md",
    "docs/html.md",
    "docs/map.md",
    "docs/metrics.md",
    "docs/migrate.md",
    "docs/model.md",
    "docs/mpi.md",
    "docs/plan.md",
    "docs/profile-format.md",
    "docs/reproduce.md",
    "docs/run.md",
    "docs/system.md",
    "docs/top.md",
    "docs/topology.md",
    "docs/tune.md",
];

static PRINTED: LazyLock<BTreeMap<String, Vec<Printed>>> = LazyLock::new(|| {
    let docs = fs::read_dir(workspace_root().join("docs")).expect("docs/").map(|entry| entry.expect("an entry").file_name());
    let pages = docs.filter_map(|name| name.to_str().filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")));
    let pages = pages.chain([README.to_owned(), "CONTRIBUTING.md".to_owned()]);
    pages.map(|page| (page.clone(), commands(&read(&page)))).collect()
});

/// Check that each page with commands is run, and that what is not run is still printed there, and only once accounted for.
#[test]
fn no_command_is_left_out() {
    for (page, printed) in PRINTED.iter() {
        if page == LIST {
            continue;
        }
        let is_run = PAGES.contains(&page.as_str());
        assert_eq!(is_run, !printed.is_empty(), "{page} prints {} commands: PAGES and its test", printed.len());
    }
    for (page, start, why) in NOT_RUN {
        assert!(PRINTED[*page].iter().any(|one| one.command.starts_with(start)), "{page} no longer prints '{start}' ({why})");
    }
    let all = || PRINTED.values().flatten();
    for (start, ..) in STATUSES {
        assert!(all().any(|one| one.command.contains(start)), "no page prints '{start}'");
    }
    for (from, _) in INSTEAD {
        assert!(all().any(|one| one.command.contains(from)), "no page prints '{from}'");
    }
    let known: usize = PAGES.iter().map(|page| PRINTED[*page].len()).sum();
    assert!(known > 80, "{known} commands were found: the pages or the reader of them changed");
}

macro_rules! pages {
    ($($name:ident: $page:expr;)*) => {
        $(
            /// Check that the commands of the page do what it says.
            #[test]
            fn $name() {
                page(stringify!($name), $page);
            }
        )*

        /// Check that no page lacks its test.
        #[test]
        fn each_page_has_a_test() {
            assert_eq!([$($page),*], *PAGES);
        }
    };
}

pages! {
    readme: README;
    guide: "docs/guide.md";
    check_page: "docs/check.md";
    diff_page: "docs/diff.md";
    doctor_page: "docs/doctor.md";
    export_page: "docs/export.md";
    html_page: "docs/html.md";
    map_page: "docs/map.md";
    metrics_page: "docs/metrics.md";
    migrate_page: "docs/migrate.md";
    model_page: "docs/model.md";
    mpi_page: "docs/mpi.md";
    plan_page: "docs/plan.md";
    profile_format: "docs/profile-format.md";
    reproduce_page: "docs/reproduce.md";
    run_page: "docs/run.md";
    system_page: "docs/system.md";
    top_page: "docs/top.md";
    topology_page: "docs/topology.md";
    tune_page: "docs/tune.md";
}
