// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ranks of MPI jobs, with Open MPI and MPICH as they are installed: firsttouch behind the launcher and before it.

use firsttouch_e2e::process::{Running, run, run_with_input};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::skip::{is_root, lacks_tools, skipped};
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, assert_no_panic, temporary_directory, text};
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// mpirun refuses root, and more ranks than CPUs, unless told.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_btl_base_warn_component_unused", "0"),
];

/// An MPI, its launcher, and the program built with it.
struct Mpi {
    launcher: &'static str,
    program: PathBuf,
}

/// Where firsttouch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Bare,
    /// `mpirun firsttouch profile ./x`
    Inside,
    /// `firsttouch profile mpirun ./x`
    Outside,
}

const WAYS: [Way; 2] = [Way::Inside, Way::Outside];

fn mpis(test: &str) -> Vec<Mpi> {
    let one = |launcher, name| {
        let is_missing = lacks_tools(test, &[launcher]);
        program(test, name).filter(|_| !is_missing).map(|program| Mpi { launcher, program })
    };
    [one("mpirun.openmpi", "mpi/ranks_openmpi"), one("mpirun.mpich", "mpi/ranks_mpich")].into_iter().flatten().collect()
}

impl Mpi {
    /// The words of a job of `ranks` ranks.
    fn words(&self, firsttouch: &Firsttouch, way: Way, ranks: u32, options: &[&str], arguments: &[&str]) -> Vec<String> {
        let launch = [self.launcher, "-n", &ranks.to_string()].map(str::to_owned).to_vec();
        let profile: Vec<String> =
            [text(firsttouch.binary()), "profile"].iter().chain(options).chain(&["--"]).map(|word| (*word).to_owned()).collect();
        let program: Vec<String> = [text(&self.program)].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
        match way {
            Way::Bare => [launch, program].concat(),
            Way::Inside => [launch, profile, program].concat(),
            Way::Outside => [profile, launch, program].concat(),
        }
    }

    fn command(&self, firsttouch: &Firsttouch, directory: &Path, way: Way, ranks: u32, options: &[&str], arguments: &[&str]) -> Command {
        let words = self.words(firsttouch, way, ranks, options, arguments);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(directory).envs(ENVIRONMENT);
        command
    }

    fn merged(&self, directory: &Path) -> PathBuf {
        let name = self.program.file_name().expect("a name").to_string_lossy().into_owned();
        directory.join(format!("{name}.ftp"))
    }
}

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut names: Vec<String> = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn profiles(directory: &Path) -> Vec<String> {
    names(directory).into_iter().filter(|name| name.ends_with(".ftp")).collect()
}

/// The directory of the ranks of a merged profile.
fn directory_of(merged: &Path) -> PathBuf {
    PathBuf::from(format!("{}.d", text(merged)))
}

/// The place that a profile was recorded at.
fn place(profile: &Path) -> Value {
    let connection = Connection::open(profile).expect("a profile");
    let found = connection.query_row("SELECT value FROM meta WHERE key = 'rank'", [], |row| row.get::<_, String>(0));
    serde_json::from_str(&found.unwrap_or_else(|error| panic!("{}: {error}", profile.display()))).expect("JSON")
}

/// The number of parts of a merged profile.
fn parts(profile: &Path) -> u32 {
    let connection = Connection::open(profile).expect("a profile");
    connection.query_row("SELECT count(*) FROM parts", [], |row| row.get(0)).expect("parts")
}

/// Sizes of the objects in a profile, from 1 MiB on.
fn large_objects(firsttouch: &Firsttouch, profile: &Path) -> Vec<(String, u64)> {
    let report = firsttouch.report_json(profile);
    let all = report["objects"].as_array().expect("objects").iter();
    let of = |one: &Value| Some((one["name"].as_str()?.to_owned(), one["bytes"].as_u64().filter(|bytes| *bytes >= 1 << 20)?));
    let mut found: Vec<(String, u64)> = all.filter_map(of).collect();
    found.sort();
    found
}

/// Check that a job runs as it does without firsttouch, that both ways give each rank a profile of its own with its place in the job, and one merged
/// report, and that nothing else is printed.
#[test]
fn both_ways_give_the_same() {
    let Some(firsttouch) = Firsttouch::find("both_ways_give_the_same") else { return };
    for mpi in mpis("both_ways_give_the_same") {
        let bare = run(&mut mpi.command(&firsttouch, Path::new("/"), Way::Bare, 3, &[], &[]));
        assert_eq!((bare.status, bare.stderr.len()), (0, 0), "{bare:?}");
        let mut objects = Vec::new();
        for way in WAYS {
            let folder = temporary_directory();
            let outcome = run(&mut mpi.command(&firsttouch, folder.path(), way, 3, &[], &[]));
            assert_eq!((outcome.status, outcome.stdout_text()), (0, bare.stdout_text()), "{way:?} {outcome:?}");
            assert_no_panic(&outcome);
            assert_eq!(outcome.program_stderr(), "", "{way:?}");
            let merged = mpi.merged(folder.path());
            let summaries = outcome.messages().matches(" first touches").count();
            assert!(outcome.messages().starts_with("firsttouch: 3 ranks, ") && summaries >= 1, "{way:?} {outcome:?}");
            assert_eq!(outcome.stderr_text().matches("3 ranks, ").count(), 1, "one report: {outcome:?}");
            let ranks = directory_of(&merged);
            assert_eq!(profiles(&ranks), ["rank-0.ftp", "rank-1.ftp", "rank-2.ftp"], "{way:?}");
            let left: Vec<String> = names(&ranks).into_iter().filter(|name| name.starts_with('.') || name.contains("-wal")).collect();
            assert!(left.is_empty(), "{left:?}");
            for rank in 0..3 {
                let place = place(&ranks.join(format!("rank-{rank}.ftp")));
                assert_eq!((place["rank"].as_u64(), place["size"].as_u64()), (Some(rank), Some(3)), "{place}");
                assert_eq!((place["local_rank"].as_u64(), place["local_size"].as_u64()), (Some(rank), Some(3)), "{place}");
                assert!(place["bound_cpus"].is_string(), "{place}");
            }
            assert_eq!(parts(&merged), 3);
            objects.push(large_objects(&firsttouch, &merged));
        }
        let arrays = |list: &[(String, u64)]| list.iter().filter(|(name, bytes)| name == "array" && *bytes == 8 << 20).count();
        assert_eq!(objects.iter().map(|list| arrays(list)).collect::<Vec<_>>(), [3, 3], "{}: {objects:?}", mpi.launcher);
    }
}

/// Check the exit status of jobs in which a rank is killed, calls `MPI_Abort` or fails, that this rank is named, and that the profiles of the ranks can
/// be read.
#[test]
fn ranks_that_die_are_named() {
    let Some(firsttouch) = Firsttouch::find("ranks_that_die_are_named") else { return };
    for mpi in mpis("ranks_that_die_are_named") {
        let modes = [
            ("kill", "rank 1: ended by signal 9 (SIGKILL)"),
            ("abort", "rank 1: called MPI_Abort with status 5"),
            ("exit", "rank 1: ended with exit status 3"),
        ];
        for (mode, said) in modes {
            let arguments = [mode, "1"];
            let bare = run(&mut mpi.command(&firsttouch, Path::new("/"), Way::Bare, 2, &[], &arguments));
            for way in WAYS {
                let folder = temporary_directory();
                let outcome = run(&mut mpi.command(&firsttouch, folder.path(), way, 2, &[], &arguments));
                assert_eq!(outcome.status, bare.status, "{way:?} {mode} {outcome:?}\n{bare:?}");
                assert_no_panic(&outcome);
                let merged = mpi.merged(folder.path());
                // Behind a launcher that does not wait for them, nobody may read what they say.
                let is_left = way == Way::Inside && mode != "exit";
                let until = Instant::now() + Duration::from_secs(60);
                while is_left && !merged.exists() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(10));
                }
                let ranks = directory_of(&merged);
                assert_eq!(profiles(&ranks), ["rank-0.ftp", "rank-1.ftp"], "{way:?} {mode}");
                firsttouch.report_json(&ranks.join("rank-1.ftp"));
                firsttouch.report_json(&merged);
                assert!(is_left || outcome.stderr_text().contains(said), "{way:?} {mode} {outcome:?}");
                assert_eq!(parts(&merged), 2, "{way:?} {mode}");
            }
        }
    }
}

/// Check that only the ranks that are asked for are recorded, both ways, and that a list without any rank of the job is an error.
#[test]
fn ranks_are_chosen() {
    let Some(firsttouch) = Firsttouch::find("ranks_are_chosen") else { return };
    let mpis = mpis("ranks_are_chosen");
    let Some(mpi) = mpis.last() else { return };
    for way in WAYS {
        let folder = temporary_directory();
        let outcome = run(&mut mpi.command(&firsttouch, folder.path(), way, 3, &["--ranks", "0,2,7-9"], &[]));
        assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "3 ranks, sum 377487360\n"), "{way:?} {outcome:?}");
        let merged = mpi.merged(folder.path());
        assert_eq!(profiles(&directory_of(&merged)), ["rank-0.ftp", "rank-2.ftp"], "{way:?}");
        assert!(outcome.messages().starts_with("firsttouch: 2 ranks, ") && parts(&merged) == 2, "{way:?} {outcome:?}");
    }
    let folder = temporary_directory();
    let none = run(&mut mpi.command(&firsttouch, folder.path(), Way::Inside, 2, &["--ranks", "5"], &[]));
    assert!(
        none.status == 0 && none.messages() == "firsttouch: nothing is recorded: --ranks 5, and the job has the ranks 0-1\n",
        "{none:?}"
    );
    let alone = run(firsttouch.command(["profile", "--ranks", "0", "--", "true"]).current_dir(folder.path()));
    assert_clear_error(&alone, &[2], &["--ranks names ranks of an MPI job"]);
    let wrong = run(&mut firsttouch.command(["profile", "--ranks", "1-", "--", "true"]));
    assert_eq!(wrong.status, 2, "{wrong:?}");
}

/// Check names: a pattern gives each rank a file and a line, a directory and a file name are used both ways, an older job's directory is left alone, and
/// an older merged profile is kept.
#[test]
fn names_are_those_that_are_given() {
    let Some(firsttouch) = Firsttouch::find("names_are_those_that_are_given") else { return };
    let mpis = mpis("names_are_those_that_are_given");
    let Some(mpi) = mpis.last() else { return };
    let job = |folder: &Path, way, options: &[&str]| {
        let outcome = run(&mut mpi.command(&firsttouch, folder, way, 2, options, &[]));
        assert_eq!(outcome.status, 0, "{way:?} {options:?} {outcome:?}");
        outcome
    };
    for way in WAYS {
        let folder = temporary_directory();
        let here = folder.path();
        let outcome = job(here, way, &["-o", "x-%q{PMI_RANK}.ftp"]);
        assert_eq!(profiles(here), ["x-0.ftp", "x-1.ftp"], "{way:?}");
        let lines: Vec<String> = outcome.stderr_text().lines().map(str::to_owned).collect();
        assert!(lines.len() == 2 && lines.iter().all(|line| line.contains(" -> x-")), "{way:?} {outcome:?}");
        job(here, way, &["-o", "named.ftp"]);
        job(here, way, &["-o", "named.ftp"]);
        job(here, way, &["-o", "folder/"]);
        assert!(
            here.join("named.ftp.d").is_dir() && here.join("named.2.ftp.d").is_dir() && here.join("folder").is_dir(),
            "{:?}",
            names(here)
        );
        assert_eq!(profiles(here), ["folder.ftp", "named.ftp", "x-0.ftp", "x-1.ftp"], "{way:?}");
        job(here, way, &[]);
        let again = job(here, way, &["--json=report.json"]);
        let name = mpi.merged(Path::new(""));
        assert!(again.messages().contains(&format!("kept as {}.1", name.display())), "{way:?} {again:?}");
        let json: Value = serde_json::from_slice(&fs::read(here.join("report.json")).expect("the report")).expect("JSON");
        assert_eq!((json["schema"].as_str(), json["exit_code"].as_i64()), (Some("firsttouch.report/1"), Some(0)), "{json}");
    }
}

/// Check that signals reach the program through launcher and recorder, and that profiles are left that can be read.
#[test]
fn signals_end_jobs() {
    let Some(firsttouch) = Firsttouch::find("signals_end_jobs") else { return };
    for mpi in mpis("signals_end_jobs") {
        for way in WAYS {
            let folder = temporary_directory();
            let running = Running::start(&mut mpi.command(&firsttouch, folder.path(), way, 2, &[], &["term"]), &[]);
            running.wait_for_stdout("waits");
            running.signal(libc::SIGTERM);
            let outcome = running.wait();
            // On a busy machine MPICH's launcher ends with 0 in a third of the runs, also without firsttouch.
            assert!(outcome.status != 0 || mpi.launcher.ends_with("mpich"), "{way:?} {outcome:?}");
            assert_no_panic(&outcome);
            let ranks = directory_of(&mpi.merged(folder.path()));
            assert_eq!(profiles(&ranks), ["rank-0.ftp", "rank-1.ftp"], "{way:?} {outcome:?}");
            for rank in profiles(&ranks) {
                firsttouch.report_json(&ranks.join(rank));
            }
        }
    }
}

/// Check that rank 0 reads the standard input of the launcher.
#[test]
fn rank_0_reads_input() {
    let Some(firsttouch) = Firsttouch::find("rank_0_reads_input") else { return };
    for mpi in mpis("rank_0_reads_input") {
        for way in WAYS {
            let folder = temporary_directory();
            let mut command = mpi.command(&firsttouch, folder.path(), way, 2, &["-q"], &["stdin"]);
            let outcome = run_with_input(&mut command, "x".repeat(10_000).as_bytes());
            assert!(outcome.status == 0 && outcome.stdout_text().ends_with("10000 bytes\n"), "{way:?} {outcome:?}");
            assert_eq!(outcome.stderr_text(), "", "{way:?}");
        }
    }
}

/// Check that ranks that wait for each other by giving up their CPU, thousands of times a second, keep the agent's timers: a clock of the kernel's for each
/// rank, which starts and stops each time, took a tenth of their time.
#[test]
fn ranks_that_yield_keep_their_timers() {
    let name = "ranks_that_yield_keep_their_timers";
    let (Some(firsttouch), Some(job)) = (Firsttouch::find(name), program(name, "mpi/allreduce_openmpi")) else { return };
    if lacks_tools(name, &["mpirun.openmpi", "taskset"]) {
        return;
    }
    let folder = temporary_directory();
    let job = Mpi { launcher: "mpirun.openmpi", program: job };
    let words = job.words(&firsttouch, Way::Outside, 4, &["--quiet"], &["3000"]);
    let outcome = run(Command::new("taskset").args(["-c", "0,1"]).args(words).current_dir(folder.path()).envs(ENVIRONMENT));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let (mut samples, mut outside) = (0, 0);
    let directory = directory_of(&job.merged(folder.path()));
    for file in names(&directory).iter().filter(|file| file.ends_with(".ftp")) {
        let profile = Connection::open(directory.join(file)).expect("a profile");
        let number = |query: &str| profile.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap_or(0);
        samples += number("SELECT count(*) FROM samples WHERE weight > 0");
        outside += number("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'samples_outside'");
    }
    assert!(samples >= 200 && 4 * outside < samples, "{outside} of {samples} samples came from the kernel's clocks");
}

/// Check that `check` judges a job once, both ways, keeps the status of a job that fails, and leaves no files.
#[test]
fn jobs_are_checked() {
    let Some(firsttouch) = Firsttouch::find("jobs_are_checked") else { return };
    let mpis = mpis("jobs_are_checked");
    let Some(mpi) = mpis.last() else { return };
    for way in WAYS {
        for (arguments, status) in [(&[][..], 0), (&["exit", "1"], 3)] {
            let folder = temporary_directory();
            let mut words = mpi.words(&firsttouch, way, 2, &[], arguments);
            let at = words.iter().position(|word| word == "profile").expect("profile");
            words[at] = "check".to_owned();
            let outcome = run(Command::new(&words[0]).args(&words[1..]).current_dir(folder.path()).envs(ENVIRONMENT));
            let said = outcome.stderr_text();
            if status == 0 {
                // On a busy machine, too few samples may be seen for a verdict.
                let passed = said.matches("check passed on ").count();
                let not_judged = said.matches("check NOT JUDGED on ").count();
                assert!(passed + not_judged >= 1 && passed <= 1 && [0, 1].contains(&outcome.status), "{way:?} {outcome:?}");
                assert_eq!(outcome.status == 0, passed == 1, "{way:?} {outcome:?}");
            } else {
                // 3 would be an exceeded limit.
                assert_eq!(outcome.status, 1, "{way:?} {outcome:?}");
                assert!(said.contains("NOT JUDGED: the program failed (exit status 3)"), "{way:?} {outcome:?}");
            }
            assert_eq!(names(folder.path()), [""; 0], "{way:?}");
        }
    }
}

/// Check that a job of two programs, each behind its own `check`, is judged once, by the last one to end, and that no files are left.
#[test]
fn jobs_of_several_programs_are_checked() {
    let Some(firsttouch) = Firsttouch::find("jobs_of_several_programs_are_checked") else { return };
    for mpi in mpis("jobs_of_several_programs_are_checked") {
        let [folder, programs] = [temporary_directory(), temporary_directory()];
        let other = programs.path().join("other");
        std::fs::copy(&mpi.program, &other).expect("a copy of the program");
        let mut words = mpi.words(&firsttouch, Way::Inside, 1, &["--max-remote", "100"], &[]);
        let mut second: Vec<String> = words[1..].to_vec();
        *second.last_mut().expect("the program") = text(&other).to_owned();
        words.push(":".to_owned());
        words.extend(second);
        words.iter_mut().filter(|word| *word == "profile").for_each(|word| "check".clone_into(word));
        let outcome = run(Command::new(&words[0]).args(&words[1..]).current_dir(folder.path()).envs(ENVIRONMENT));
        let said = outcome.stderr_text();
        let verdicts = said.matches("check passed on ").count() + said.matches("check NOT JUDGED on ").count();
        assert_eq!((verdicts, names(folder.path()).len()), (1, 0), "{words:?} {outcome:?}");
    }
}

/// Check that a job of which only some ranks are recorded is not judged, and that its profiles are kept and named: by `check`, which fails, and by `profile`.
#[test]
fn jobs_that_are_recorded_in_part() {
    let Some(firsttouch) = Firsttouch::find("jobs_that_are_recorded_in_part") else { return };
    let mpis = mpis("jobs_that_are_recorded_in_part");
    let Some(mpi) = mpis.last() else { return };
    for (command, status) in [("check", 1), ("profile", 0)] {
        let folder = temporary_directory();
        let mut words = mpi.words(&firsttouch, Way::Inside, 1, &[], &[]);
        words.extend([":", "-n", "1", text(&mpi.program)].map(str::to_owned));
        words.iter_mut().filter(|word| *word == "profile").for_each(|word| command.clone_into(word));
        let outcome = run(Command::new(&words[0]).args(&words[1..]).current_dir(folder.path()).envs(ENVIRONMENT));
        let said = outcome.stderr_text();
        assert_eq!(outcome.status, status, "{words:?} {outcome:?}");
        assert_eq!(said.contains("NOT JUDGED: rank 1 of the job"), command == "check", "{outcome:?}");
        let kept = names(folder.path());
        assert!(
            kept.len() == 1 && said.contains("rank 1 of the job") && said.contains(&format!("firsttouch report {}", kept[0])),
            "{kept:?} {outcome:?}"
        );
    }
}

/// A launcher that starts two ranks as Slurm does: `srun PROGRAM`.
const SRUN: &str = r#"#!/bin/sh
[ "$1" = -n ] && shift 2
for rank in 0 1; do
    env SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_NODEID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2 "$@" &
done
wait
exit 4
"#;

/// Check a job of Slurm, by a launcher that sets its variables: both ways, with the launcher's own status.
#[test]
fn slurm_numbers_tasks() {
    let Some(firsttouch) = Firsttouch::find("slurm_numbers_tasks") else { return };
    let Some(short) = program("slurm_numbers_tasks", "noharm/short_run") else { return };
    for way in WAYS {
        let folder = temporary_directory();
        let srun = folder.path().join("srun");
        fs::write(&srun, SRUN).expect("the launcher is written");
        fs::set_permissions(&srun, fs::Permissions::from_mode(0o755)).expect("its mode");
        let profile = [text(firsttouch.binary()), "profile", "-o", "x.ftp", "--"];
        let launch = [text(&srun), "-n", "2"];
        let words = if way == Way::Inside { [&launch[..], &profile].concat() } else { [&profile[..], &launch].concat() };
        let outcome = run(Command::new(words[0]).args(&words[1..]).arg(&short).current_dir(folder.path()));
        assert_eq!(outcome.status, 4, "{way:?} {outcome:?}");
        let ranks = folder.path().join("x.ftp.d");
        assert_eq!(profiles(&ranks), ["rank-0.ftp", "rank-1.ftp"], "{way:?} {outcome:?}");
        let place = place(&ranks.join("rank-1.ftp"));
        assert_eq!((place["launcher"].as_str(), place["job"].as_str()), (Some("Slurm"), Some("7.0")), "{place}");
        assert_eq!(parts(&folder.path().join("x.ftp")), 2);
        // A batch script, and the shell of salloc, are no ranks.
        let mut batch = firsttouch.command(["profile", "-q", "-o", "batch.ftp", "--"]);
        batch.arg(&short).current_dir(folder.path()).envs([
            ("SLURM_JOB_ID", "7"),
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_LOCALID", "0"),
        ]);
        assert_eq!(run(&mut batch).status, 0);
        assert!(folder.path().join("batch.ftp").is_file());
    }
}

/// Check that a launcher whose command line is not understood is followed, and that one that starts firsttouch itself is left alone.
#[test]
fn unknown_command_lines_are_followed() {
    let Some(firsttouch) = Firsttouch::find("unknown_command_lines_are_followed") else { return };
    let folder = temporary_directory();
    let launcher = folder.path().join("mpirun");
    fs::write(&launcher, "#!/bin/sh\nwhile [ \"$1\" != bash ]; do shift; done\nexec \"$@\"\n").expect("the launcher is written");
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).expect("its mode");
    let outcome = run(firsttouch
        .command(["profile", "-o", "x.ftp", "--", text(&launcher), "--unknown", "bash", "-c", "echo out"])
        .current_dir(folder.path()));
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "out\n"), "{outcome:?}");
    assert!(outcome.messages().contains("unknown option --unknown, and bash may be its value or the program"), "{outcome:?}");
    assert!(folder.path().join("x.ftp").is_file() && !folder.path().join("x.ftp.d").exists());
    for mpi in mpis("unknown_command_lines_are_followed").iter().take(1) {
        let words = mpi.words(&firsttouch, Way::Inside, 2, &["-o", "y.ftp"], &[]);
        let mut command = firsttouch.command(["profile", "--"]);
        let outcome = run(command.args(&words).current_dir(folder.path()).envs(ENVIRONMENT));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert_eq!(profiles(&folder.path().join("y.ftp.d")), ["rank-0.ftp", "rank-1.ftp"]);
    }
}

/// Check that ranks of two hosts that share a directory have a file each, also with the same process numbers and local ranks, and are merged once.
#[test]
fn hosts_share_a_directory() {
    let Some(firsttouch) = Firsttouch::find("hosts_share_a_directory") else { return };
    if lacks_tools("hosts_share_a_directory", &["unshare", "hostname"]) {
        return;
    }
    let Some(short) = program("hosts_share_a_directory", "noharm/short_run") else { return };
    let folder = temporary_directory();
    let spaces = if is_root() { "--uts" } else { "--user --map-root-user --uts" };
    let script = format!(
        "for rank in 0 1 2 3; do host=$([ $rank -lt 2 ] && echo one || echo two)
         PMI_RANK=$rank PMI_SIZE=4 PMI_JOBID=job MPI_LOCALRANKID=$((rank % 2)) MPI_LOCALNRANKS=2 unshare {spaces} sh -c \
         \"hostname $host && exec '{}' profile -o x.ftp -- '{}'\" & done; wait",
        firsttouch.binary().display(),
        short.display()
    );
    let outcome = run(Command::new("sh").args(["-c", &script]).current_dir(folder.path()));
    if outcome.stderr_text().contains("unshare failed") {
        skipped("hosts_share_a_directory", "unshare is not allowed");
        return;
    }
    let ranks = folder.path().join("x.ftp.d");
    assert_eq!(profiles(&ranks), [0, 1, 2, 3].map(|rank| format!("rank-{rank}.ftp")), "{outcome:?}");
    let merged = Connection::open(folder.path().join("x.ftp")).expect("the merged profile");
    let hosts: u32 = merged.query_row("SELECT count(*) FROM hosts", [], |row| row.get(0)).expect("hosts");
    assert_eq!((hosts, outcome.stderr_text().matches("4 ranks, ").count()), (2, 1), "{outcome:?}");
}

/// Check that `run --pin` in a rank stays within the CPUs that the launcher gave it, and refuses others.
#[test]
fn run_stays_within_the_binding() {
    let Some(firsttouch) = Firsttouch::find("run_stays_within_the_binding") else { return };
    for mpi in mpis("run_stays_within_the_binding") {
        let cpus = |words: &[&str]| {
            let mut command = Command::new(mpi.launcher);
            command
                .args(["-n", "2", "--bind-to", "core"])
                .args(words)
                .args(["grep", "Cpus_allowed_list", "/proc/self/status"])
                .envs(ENVIRONMENT);
            let outcome = run(&mut command);
            assert_eq!(outcome.status, 0, "{words:?} {outcome:?}");
            let mut lines: Vec<String> = outcome.stdout_text().lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let bound = cpus(&[]);
        if bound.first() == bound.last() {
            skipped("run_stays_within_the_binding", "the launcher binds both ranks to the same CPUs: one core");
            return;
        }
        for expression in ["spread", "compact", "N:0"] {
            assert_eq!(cpus(&[text(firsttouch.binary()), "run", "--pin", expression, "--"]), bound, "{expression}");
        }
        let mut command = Command::new(mpi.launcher);
        command
            .args(["-n", "2", "--bind-to", "core"])
            .arg(firsttouch.binary())
            .args(["run", "--pin", "0-1", "--", "true"])
            .envs(ENVIRONMENT);
        let refused = run(&mut command);
        assert!(refused.status != 0 && refused.stderr_text().contains("is not allowed here"), "{refused:?}");
    }
}

/// Check that `doctor` in a rank says what the launcher bound.
#[test]
fn doctor_names_the_binding() {
    let Some(firsttouch) = Firsttouch::find("doctor_names_the_binding") else { return };
    for mpi in mpis("doctor_names_the_binding") {
        let mut command = Command::new(mpi.launcher);
        command.args(["-n", "2", "--bind-to", "core"]).arg(firsttouch.binary()).arg("doctor").envs(ENVIRONMENT);
        let outcome = run(&mut command);
        let said = outcome.stdout_text();
        assert!(said.contains("rank 0 of 2 (") && said.contains("rank 1 of 2 ("), "{outcome:?}");
    }
}
