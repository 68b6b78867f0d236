//! `firsttouch demo`: the whole story on the bundled DGEMV, told with the commands a user would type.

use crate::exit::FAILED;
use super::plan::{planned_json, summary};
use crate::arguments::Demo;
use crate::output::{print, print_json, style, tell, write};
use crate::request::report_context;
use anyhow::{Context as _, Result, bail};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::format_bytes;
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest};
use firsttouch_plan::Planned;
use firsttouch_report::{Context, ReportJson, text};
use firsttouch_system::MachineInfo;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const THREADS: u32 = 8;
/// Far above any cache, and initialised in a blink.
const MATRIX_BYTES: u64 = 256 << 20;
/// The part of the available memory the demo may take.
const MEMORY_PART: u64 = 4;
/// Seconds of work under the profiler, each time: enough samples, and both runs within 30 s.
const RUN_S: f64 = 5.0;
/// Products that tell the speed of this machine.
const TRIAL_PRODUCTS: u64 = 3;
/// Its plan, in the temporary directory.
const PLAN: &str = "dgemv.toml";
const DEFECT: FindingKind = FindingKind::SerialFirstTouch;

/// One profiled run.
struct Story {
    analysed: AnalysedProfile,
    bench: Value,
    profile: PathBuf,
}

pub fn run(arguments: &Demo) -> Result<u8> {
    let say = |text: &str| {
        if arguments.json {
            tell(text);
            Ok(())
        } else {
            print(text)
        }
    };
    let firsttouch = std::env::current_exe().context("cannot find the firsttouch program itself")?;
    let folder = tempfile::tempdir().context("cannot make a temporary directory for the demo")?;
    let rows = rows(MachineInfo::read(Path::new("/")).map_or(0, |info| info.available_memory_bytes));
    let products = products(&firsttouch, rows)?;
    let sizes = [("--m", rows), ("--n", rows), ("--iterations", products), ("--threads", u64::from(THREADS))];
    let sizes: Vec<String> = sizes.iter().flat_map(|(name, value)| [(*name).to_owned(), value.to_string()]).collect();

    say(&format!(
        "The demo multiplies a {} matrix by a vector, {products} times, with {THREADS} threads.\n\n\
         1. One thread initialises the matrix, all threads use it: Linux puts every page on the first thread's node.\n\n",
        format_bytes(rows * rows * 8)
    ))?;
    let serial = profiled(&firsttouch, folder.path(), "serial", &sizes, &say)?;
    say(&format!("\n{}\n", report(&serial, folder.path())?))?;
    if is_blind(&serial) {
        say("The defect cannot be shown here: nothing saw the program's accesses, for the reason told in the report above.\n")?;
        if arguments.json {
            print_json(&told(&serial, None, None, false, false))?;
        }
        return Ok(FAILED);
    }
    let planned = plan_of(&serial, folder.path(), &say)?;
    let under_plan = match planned.plan.is_empty() || serial.analysed.analysis.machine.virtual_machine {
        true => None,
        false => Some(run_under_plan(&firsttouch, folder.path(), &sizes, &serial, &say)?),
    };
    say("3. Or in the source: every thread initialises the rows it will use (the fix above), and nothing else changes.\n\n")?;
    let parallel = profiled(&firsttouch, folder.path(), "parallel", &sizes, &say)?;
    say(&format!("\n{}\n", report(&parallel, folder.path())?))?;

    let defect = defect(&serial);
    let found = defect.is_some();
    let gone = defect.is_some_and(|object| is_well_placed(&parallel, object));
    say(&verdict(&serial, &parallel, found, gone))?;
    if arguments.json {
        print_json(&told(&serial, Some(&parallel), Some((&planned, under_plan.as_ref())), found, gone))?;
    }
    Ok(if found && gone { 0 } else { FAILED })
}

/// Rows (and columns) of a square matrix that leaves most of the memory alone; the same in each thread's block.
fn rows(available_bytes: u64) -> u64 {
    let bytes = if available_bytes == 0 { MATRIX_BYTES } else { MATRIX_BYTES.min(available_bytes / MEMORY_PART) };
    let rows = (bytes / 8).isqrt();
    let threads = u64::from(THREADS);
    (rows / threads * threads).max(threads)
}

/// How many products take about [`RUN_S`] here.
fn products(firsttouch: &Path, rows: u64) -> Result<u64> {
    let rows = rows.to_string();
    let trial = TRIAL_PRODUCTS.to_string();
    let threads = THREADS.to_string();
    let mut command = Command::new(firsttouch);
    command.args(["bench", "dgemv", "--init", "parallel", "--repetitions", "1", "--json", "--iterations", &trial]);
    command.args(["--m", &rows, "--n", &rows, "--threads", &threads]);
    let bench = bench_json(&mut command)?;
    let seconds = bench["seconds"]["median"].as_f64().unwrap_or(RUN_S);
    Ok(((RUN_S / seconds.max(1e-6)) as u64).clamp(TRIAL_PRODUCTS, 1_000_000))
}

fn profiled(firsttouch: &Path, folder: &Path, init: &str, sizes: &[String], say: &impl Fn(&str) -> Result<()>) -> Result<Story> {
    let file = format!("{init}.ftp");
    let bench = bench_words(init, sizes);
    say(&format!("   $ firsttouch profile -o {file} -- firsttouch {}\n", bench.join(" ")))?;
    recorded(firsttouch, folder.join(&file), &[], &bench)
}

fn bench_words<'a>(init: &'a str, sizes: &'a [String]) -> Vec<&'a str> {
    ["bench", "dgemv", "--init", init, "--repetitions", "1"].into_iter().chain(sizes.iter().map(String::as_str)).collect()
}

/// Profiles the bundled program, started by `firsttouch LAUNCHER`.
fn recorded(firsttouch: &Path, profile: PathBuf, launcher: &[&OsStr], bench: &[&str]) -> Result<Story> {
    let mut command = Command::new(firsttouch);
    command.args([OsStr::new("profile"), "--quiet".as_ref(), "-o".as_ref(), profile.as_ref(), "--".as_ref()]);
    if !launcher.is_empty() {
        command.arg(firsttouch).args(launcher);
    }
    command.arg(firsttouch).args(bench).arg("--json");
    let bench = bench_json(&mut command)?;
    let analysed = AnalysedProfile::open(&profile, &AnalysisRequest::default())?;
    Ok(Story { analysed, bench, profile })
}

/// The plan, in the temporary directory and in words.
fn plan_of(serial: &Story, folder: &Path, say: &impl Fn(&str) -> Result<()>) -> Result<Planned> {
    let made_from = serial.profile.strip_prefix(folder).unwrap_or(&serial.profile).display().to_string();
    let planned = serial.analysed.plan(&made_from)?;
    write(&folder.join(PLAN), &planned.plan.to_string())?;
    let words = summary(&planned, &serial.analysed.analysis, Some(Path::new(PLAN)));
    let words: Vec<String> = words.lines().map(|line| format!("   {line}\n")).collect();
    say(&format!(
        "2. Without touching the source: a plan says where each page goes, by the line that allocates it.\n\n   $ firsttouch plan {made_from} -o {PLAN}\n{}\n",
        words.concat()
    ))?;
    if serial.analysed.analysis.machine.virtual_machine {
        say(&format!("   On a machine with several nodes: firsttouch run --plan {PLAN} -- firsttouch bench dgemv ...\n\n"))?;
    }
    Ok(planned)
}

/// The same program again, serial as it is, under the plan.
fn run_under_plan(firsttouch: &Path, folder: &Path, sizes: &[String], serial: &Story, say: &impl Fn(&str) -> Result<()>) -> Result<Story> {
    let bench = bench_words("serial", sizes);
    say(&format!("   $ firsttouch profile -o planned.ftp -- firsttouch run --plan {PLAN} -- firsttouch {}\n", bench.join(" ")))?;
    let file = folder.join(PLAN);
    let story =
        recorded(firsttouch, folder.join("planned.ftp"), &["run".as_ref(), "--plan".as_ref(), file.as_ref(), "--".as_ref()], &bench)?;
    say(&format!("   Remote accesses: {} before, {} under the plan.\n\n", remote(serial), remote(&story)))?;
    Ok(story)
}

/// Runs a command that prints the JSON of a bench; its messages go to our stderr.
fn bench_json(command: &mut Command) -> Result<Value> {
    let output = command.stderr(Stdio::inherit()).output().context("cannot run the bundled program")?;
    if !output.status.success() {
        bail!("the bundled program failed ({})", output.status);
    }
    serde_json::from_slice(&output.stdout).context("the bundled program printed no result")
}

/// The text report, with the profile named as in the command shown.
fn report(story: &Story, folder: &Path) -> Result<String> {
    let name = story.profile.strip_prefix(folder).unwrap_or(&story.profile);
    // The profile goes with the temporary directory: there is nothing more to ask of it.
    let context = Context { prefix: "", more: false, ..report_context(&story.analysed, name, false) };
    Ok(text(&story.analysed.analysis, story.analysed.report_forecast()?, &context, style(&stdout())))
}

/// The JSON; without a second run where the first saw nothing.
fn told(serial: &Story, parallel: Option<&Story>, plan: Option<(&Planned, Option<&Story>)>, found: bool, gone: bool) -> Value {
    let run = |story: &Story| {
        let forecast = story.analysed.report_forecast().ok().flatten();
        json!({"bench": story.bench, "report": ReportJson::new(&story.analysed.analysis, forecast)})
    };
    json!({"schema": "firsttouch.demo/1", "found": found, "gone": gone, "serial": run(serial), "parallel": parallel.map(run),
           "plan": plan.map(|(planned, _)| planned_json(planned)), "under_plan": plan.and_then(|(_, story)| story).map(run)})
}

fn remote(story: &Story) -> String {
    story.analysed.analysis.remote_fraction.map_or("an unknown part".to_owned(), |part| format!("{:.0} %", part * 100.0))
}

/// Whether the evidence that the story rests on could not be had: then the second run would tell no more than the first.
fn is_blind(story: &Story) -> bool {
    story
        .analysed
        .analysis
        .evidence
        .iter()
        .any(|evidence| !evidence.available && matches!(evidence.source, EvidenceSource::Touch | EvidenceSource::Watch))
}

/// The object that one thread touched first.
fn defect(story: &Story) -> Option<&str> {
    let finding = story.analysed.analysis.findings.iter().find(|finding| finding.kind == DEFECT)?;
    Some(&finding.object_name)
}

/// Whether the object was judged, and nothing was found. An object that could not be judged is not well placed.
fn is_well_placed(story: &Story, object: &str) -> bool {
    let analysis = &story.analysed.analysis;
    analysis.findings.is_empty() && analysis.objects.iter().any(|one| one.name == object && one.judged)
}

fn verdict(serial: &Story, parallel: &Story, found: bool, gone: bool) -> String {
    let machine = &serial.analysed.analysis.machine.name;
    match (found, gone) {
        (true, true) => format!(
            "The defect is found and gone: on {machine}, remote accesses fall from {} to {}.\n\
             Your own program: firsttouch profile -- ./program\n",
            remote(serial),
            remote(parallel)
        ),
        (false, _) => format!(
            "The defect was NOT found: {} of accesses seen as remote. What was missing is told in the first report above.\n",
            remote(serial)
        ),
        (true, false) => {
            format!("The defect was found, but is NOT seen to be gone: {} of accesses remote in the second run.\n", remote(parallel))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rows;

    /// Check that the matrix fits small machines, and divides evenly among the threads.
    #[test]
    fn the_matrix_fits() {
        for available in [0, 1, 64 << 20, 1 << 30, 1 << 40] {
            let rows = rows(available);
            assert_eq!(rows % 8, 0);
            assert!(available < 4096 || rows * rows * 8 <= available / 4, "{available}: {rows}");
            assert!(rows * rows * 8 <= 256 << 20);
        }
    }
}
