//! `firsttouch demo`: the whole workflow on the bundled DGEMV, with the commands that a user would type.

use crate::arguments::Demo;
use crate::exit;
use crate::output::{print, print_json, tell, write};
use crate::request::report_context;
use crate::terminal::style;
use anyhow::{Context as _, Result};
use firsttouch_experiments::demo_program::{DemoProgram, THREADS};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::format_bytes;
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest};
use firsttouch_plan::Planned;
use firsttouch_report::{Context, PlanJson, ReportJson, plan_text, text};
use firsttouch_system::run_directory::RunDirectory;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::stdout;
use std::path::{Path, PathBuf};

/// The plan, in the temporary directory.
const PLAN: &str = "dgemv.toml";
const DEFECT: FindingKind = FindingKind::SerialFirstTouch;

/// One profiled run.
struct ProfiledRun {
    analysed: AnalysedProfile,
    bench: Value,
    profile: PathBuf,
}

/// What was shown; later steps are missing if the first run recorded no accesses.
struct Shown<'a> {
    serial: &'a ProfiledRun,
    parallel: Option<&'a ProfiledRun>,
    planned: Option<&'a Planned>,
    under_plan: Option<&'a ProfiledRun>,
    is_found: bool,
    is_gone: bool,
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
    let folder = RunDirectory::temporary().context("cannot make a temporary directory for the demo")?;
    let folder = folder.path();
    let program = DemoProgram::new()?;
    say(&format!(
        "The demo multiplies a {} matrix by a vector, {} times, with {THREADS} threads.\n\n\
         1. One thread initialises the matrix, all threads use it: Linux puts every page on the first thread's node.\n\n",
        format_bytes(program.matrix_bytes()),
        program.products
    ))?;
    let serial = profiled(&program, "serial", folder, &say)?;
    if is_blind(&serial) {
        say("The defect cannot be shown here: no accesses of the program were recorded, for the reason in the report above.\n")?;
        if arguments.json {
            let shown = Shown { serial: &serial, parallel: None, planned: None, under_plan: None, is_found: false, is_gone: false };
            print_json(&demo_json(&shown))?;
        }
        return Ok(exit::FAILED);
    }
    let planned = plan_of(&serial, folder, &say)?;
    let under_plan = match planned.plan.is_empty() || serial.analysed.analysis.machine.virtual_machine {
        true => None,
        false => Some(run_under_plan(&program, &serial, folder, &say)?),
    };
    say("3. Or in the source: every thread initialises the rows it will use (the fix above), and nothing else changes.\n\n")?;
    let parallel = profiled(&program, "parallel", folder, &say)?;

    let defect = defect(&serial);
    let is_found = defect.is_some();
    let is_gone = defect.is_some_and(|object| is_well_placed(&parallel, object));
    say(&verdict(&serial, &parallel, is_found, is_gone))?;
    if arguments.json {
        let (planned, under_plan) = (Some(&planned), under_plan.as_ref());
        print_json(&demo_json(&Shown { serial: &serial, parallel: Some(&parallel), planned, under_plan, is_found, is_gone }))?;
    }
    Ok(if is_found && is_gone { exit::DONE } else { exit::FAILED })
}

/// Profiles the program, and prints the command and the report.
fn profiled(program: &DemoProgram, init: &str, folder: &Path, say: &impl Fn(&str) -> Result<()>) -> Result<ProfiledRun> {
    let file = format!("{init}.ftp");
    say(&format!("   $ firsttouch profile -o {file} -- firsttouch {}\n", program.words(init).join(" ")))?;
    let run = recorded(program, init, folder.join(&file), &[])?;
    say(&format!("\n{}\n", report(&run, folder)?))?;
    Ok(run)
}

fn recorded(program: &DemoProgram, init: &str, profile: PathBuf, launcher: &[&OsStr]) -> Result<ProfiledRun> {
    let bench = program.profile(init, &profile, launcher)?;
    let analysed = AnalysedProfile::open(&profile, &AnalysisRequest::default())?;
    Ok(ProfiledRun { analysed, bench, profile })
}

/// Writes the plan to the temporary directory, and prints a summary.
fn plan_of(serial: &ProfiledRun, folder: &Path, say: &impl Fn(&str) -> Result<()>) -> Result<Planned> {
    let made_from = serial.profile.strip_prefix(folder).unwrap_or(&serial.profile).display().to_string();
    let planned = serial.analysed.plan(&made_from)?;
    write(&folder.join(PLAN), &planned.plan.to_string())?;
    let words = plan_text(&planned, &serial.analysed.analysis, Some(Path::new(PLAN)));
    let words: Vec<String> = words.lines().map(|line| format!("   {line}\n")).collect();
    say(&format!(
        "2. Without touching the source: a plan says where each page goes, by the line that allocates it.\n\n   $ firsttouch plan {made_from} -o {PLAN}\n{}\n",
        words.concat()
    ))?;
    if serial.analysed.analysis.machine.virtual_machine && !planned.plan.is_empty() {
        say(&format!("   On a machine with several nodes: firsttouch run --plan {PLAN} -- firsttouch bench dgemv ...\n\n"))?;
    }
    Ok(planned)
}

/// Profiles the program with serial initialisation again, under the plan.
fn run_under_plan(program: &DemoProgram, serial: &ProfiledRun, folder: &Path, say: &impl Fn(&str) -> Result<()>) -> Result<ProfiledRun> {
    let words = program.words("serial").join(" ");
    say(&format!("   $ firsttouch profile -o planned.ftp -- firsttouch run --plan {PLAN} -- firsttouch {words}\n"))?;
    let plan = folder.join(PLAN);
    let run = recorded(program, "serial", folder.join("planned.ftp"), &["run".as_ref(), "--plan".as_ref(), plan.as_ref(), "--".as_ref()])?;
    say(&format!("   Remote accesses: {} before, {} under the plan.\n\n", remote(serial), remote(&run)))?;
    Ok(run)
}

/// The text report. It names the profile as the printed command does.
fn report(run: &ProfiledRun, folder: &Path) -> Result<String> {
    let name = run.profile.strip_prefix(folder).unwrap_or(&run.profile);
    // The profile is deleted with the temporary directory, so the report suggests no further commands.
    let context = Context { prefix: "", more: false, ..report_context(&run.analysed, name, false, false) };
    let analysed = &run.analysed;
    Ok(text(&analysed.analysis, analysed.report_forecast()?, &analysed.recommendations()?, &context, style(&stdout())))
}

fn demo_json(shown: &Shown<'_>) -> Value {
    let run = |run: &ProfiledRun| {
        let forecast = run.analysed.report_forecast().ok().flatten();
        let recommendations = run.analysed.recommendations().unwrap_or_default();
        json!({"bench": run.bench, "report": ReportJson::new(&run.analysed.analysis, forecast, &recommendations)})
    };
    json!({"schema": "firsttouch.demo/1", "found": shown.is_found, "gone": shown.is_gone, "serial": run(shown.serial),
           "parallel": shown.parallel.map(run), "plan": shown.planned.map(PlanJson::new), "under_plan": shown.under_plan.map(run)})
}

fn remote(run: &ProfiledRun) -> String {
    run.analysed.analysis.remote_fraction.map_or("an unknown part".to_owned(), |part| format!("{:.0} %", part * 100.0))
}

/// Whether evidence is missing that is needed to show the defect on any run.
fn is_blind(run: &ProfiledRun) -> bool {
    let evidence = &run.analysed.analysis.evidence;
    evidence.iter().any(|evidence| !evidence.available && matches!(evidence.source, EvidenceSource::Touch | EvidenceSource::Watch))
}

/// The object that one thread touched first.
fn defect(run: &ProfiledRun) -> Option<&str> {
    let finding = run.analysed.analysis.findings.iter().find(|finding| finding.kind == DEFECT)?;
    Some(&finding.object_name)
}

/// Whether the object was judged and has no finding. An object that could not be judged is not well placed.
fn is_well_placed(run: &ProfiledRun, object: &str) -> bool {
    let analysis = &run.analysed.analysis;
    analysis.findings.is_empty() && analysis.objects.iter().any(|one| one.name == object && one.judged)
}

fn verdict(serial: &ProfiledRun, parallel: &ProfiledRun, is_found: bool, is_gone: bool) -> String {
    let machine = &serial.analysed.analysis.machine.name;
    match (is_found, is_gone) {
        (true, true) => format!(
            "The defect is found and gone: on {machine}, remote accesses fall from {} to {}.\n\
             Your own program: firsttouch profile -- ./program\n",
            remote(serial),
            remote(parallel)
        ),
        (false, _) => format!(
            "The defect was NOT found: {} of accesses were seen as remote. The first report above says what was missing.\n",
            remote(serial)
        ),
        (true, false) => {
            format!("The defect was found, but it is NOT gone: {} of accesses are remote in the second run.\n", remote(parallel))
        }
    }
}
