//! `firsttouch check`

use crate::arguments::{Check, Format, Profile};
use crate::exit::{FAILED, of_program, unless_not_executed, usage};
use crate::output::{Destination, Terminal, is_stdout, json as json_text, message, write};
use crate::profile_name;
use crate::ranks::{self, JobEnd, Merged, Role, Wanted};
use crate::record::{DESCRIPTORS, record, status, this_machine};
use crate::request::analysis_request;
use anyhow::{Context, Result, anyhow, bail};
use firsttouch_analysis::Assessed;
use firsttouch_analysis::check_limits::{LimitCheck, Limits, Outcome, check};
use firsttouch_capture::Output;
use firsttouch_model::rows::Machine;
use firsttouch_model::rows::metadata::Metadata;
use firsttouch_model::signal_words;
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest, SavedReport, is_directory_of_ranks, is_pipe, is_profile, load_report};
use firsttouch_predict::forecast::Forecast;
use firsttouch_report::{CheckJson, check_github, check_junit, check_sarif, check_text};
use firsttouch_system::MachineInfo;
use firsttouch_system::launch::{become_program, can_open, raise_file_limit};
use firsttouch_system::run_directory::RunDirectory;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// The exit status if a limit was exceeded.
const EXCEEDED: u8 = 3;
const DEFAULT_MAX_REMOTE: f64 = 0.2;
/// The default of `profile`.
const MIN_SIZE: u64 = 64 << 10;

pub fn run(arguments: &Check) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    usage(limits_can_be_checked(arguments, &request))?;
    usage(results_are_apart(arguments))?;
    // Load the baseline first: the program may run for an hour.
    let load = |path: &PathBuf| load_report(path, &request).context("cannot use the baseline");
    let baselines: Vec<SavedReport> = arguments.baseline.iter().map(load).collect::<Result<_>>()?;
    if let Some(file) = given_profile(&arguments.program) {
        usage(is_about_the_profile(arguments, &file))?;
        return check_limits(arguments, &AnalysedProfile::open(&file, &request)?, &baselines, &file, Ran::Before);
    }
    let wanted = Wanted {
        output: arguments.profile.as_deref(),
        default_name: Some("job.check"),
        program: &arguments.program,
        pid: None,
        ranks: arguments.ranks.as_ref(),
        job_directory: None,
    };
    let before = || check_before(arguments, &request, &MachineInfo::read(Path::new("/"))?.machine, &baselines);
    let judge = |merged, own| Some(judge_job(arguments, &request, &baselines, merged, own));
    match ranks::role(&wanted)? {
        Role::Alone | Role::Named => alone(arguments, &request, &baselines),
        Role::Unrecorded => unless_not_executed(become_program(&arguments.program, &[])),
        Role::Rank(rank) => {
            before()?;
            ranks::record_rank(&as_profile(arguments), &request, rank, own_status, |end, own| match end {
                JobEnd::Merged(merged) => judge(merged, own),
                JobEnd::Incomplete { missing, directory } => Some(incomplete(&missing, &directory, own)),
            })
        }
        Role::Outside(outside) => {
            before()?;
            ranks::record_job(&as_profile(arguments), &request, &outside, judge)
        }
        Role::Follow(why) => {
            message(&why);
            let arguments = &Check { follow: true, ..arguments.clone() };
            alone(arguments, &request, &baselines)
        }
    }
}

/// Some ranks of the job are not recorded: what the others did is no verdict on the job.
fn incomplete(missing: &str, directory: &Path, own: u8) -> u8 {
    let directory = directory.display();
    message(&format!(
        "NOT JUDGED: {missing} of the job: not started by firsttouch check until now: put it before each program of the launcher's command line, or before the \
         launcher; the others: firsttouch report {directory}"
    ));
    if own == 0 { FAILED } else { own_status(own) }
}

/// Judges the merged profile of a job, and removes it unless the user keeps it.
fn judge_job(arguments: &Check, request: &AnalysisRequest, baselines: &[SavedReport], merged: Result<Option<Merged>>, own: u8) -> u8 {
    let judged = merged.and_then(|merged| {
        // That nothing was recorded is said already.
        let Some(merged) = merged else { return Ok(if own == 0 { FAILED } else { own_status(own) }) };
        let judged = judge_merged(arguments, request, baselines, &merged, own);
        if arguments.profile.is_none() {
            let _ = std::fs::remove_dir_all(&merged.directory);
            let _ = std::fs::remove_file(&merged.file.path);
        }
        judged
    });
    judged.unwrap_or_else(|error| {
        crate::output::error(&error);
        FAILED
    })
}

fn judge_merged(arguments: &Check, request: &AnalysisRequest, baselines: &[SavedReport], merged: &Merged, own: u8) -> Result<u8> {
    merged.notes.iter().for_each(|note| message(note));
    let failed = merged.failed.as_ref().map(|ended| (ended.exit_code, ended.signal)).or((own != 0).then_some((own.into(), None)));
    if let Some((code, signal)) = failed.filter(|_| !arguments.ignore_failure) {
        let written = wants_file(arguments).then(|| {
            let analysed = AnalysedProfile::of_recording(None, None, &merged.file.path, request)?;
            check_limits(arguments, &analysed, baselines, &merged.file.path, Ran::Now { error: None, failed: Some((code, signal)) })
        });
        not_judged(written, code, signal);
        return Ok(own_status(if own == 0 { of_program(code) } else { own }));
    }
    let analysed = AnalysedProfile::of_recording(None, None, &merged.file.path, request)?;
    check_limits(arguments, &analysed, baselines, &merged.file.path, Ran::Now { error: merged.cut.clone(), failed: None })
}

fn alone(arguments: &Check, request: &AnalysisRequest, baselines: &[SavedReport]) -> Result<u8> {
    raise_file_limit();
    if !can_open(DESCRIPTORS) {
        return Err(anyhow!("NOT JUDGED: the limit on open files leaves too few for a recording: raise it (ulimit -n 256)"));
    }
    let info = this_machine()?;
    check_before(arguments, request, &info.machine, baselines)?;
    let folder = RunDirectory::temporary().context("cannot make a temporary directory for the profile")?;
    let named = arguments.profile.as_deref().map(|name| profile_name::named_file(name, None)).transpose()?;
    let file = named.unwrap_or_else(|| folder.path().join("check.ftp"));
    let mut outcome = match record(&as_profile(arguments), request, info, Output::File(file.clone()))? {
        Ok(outcome) => outcome,
        Err(not_started) => return Ok(not_started),
    };
    if let Some(error) = &outcome.profile_error {
        message(&format!("error: {error}"));
    }
    let own = status(&outcome);
    let failed = (own != 0 && !arguments.ignore_failure).then_some((i32::from(own), outcome.signal));
    if let Some((code, signal)) = failed.filter(|_| !wants_file(arguments)) {
        not_judged(None, code, signal);
        return Ok(own_status(own));
    }
    let cut = outcome.profile_error.as_deref().filter(|_| outcome.is_cut);
    let analysed = AnalysedProfile::of_recording(outcome.profile.take(), cut, &file, request);
    let ran = Ran::Now { error: outcome.profile_error.take(), failed };
    let result = analysed.map_err(anyhow::Error::from).and_then(|analysed| check_limits(arguments, &analysed, baselines, &file, ran));
    match failed {
        Some((code, signal)) => {
            not_judged(Some(result), code, signal);
            Ok(own_status(own))
        }
        None => result,
    }
}

/// Whether the result goes to a program or a file, which expect one also where nothing was judged because the program failed.
fn wants_file(arguments: &Check) -> bool {
    arguments.format != Format::Text || arguments.output.is_some() || arguments.json.is_some()
}

/// Says that the program failed, unless writing the result has said it, and why the result could not be written.
fn not_judged(written: Option<Result<u8>>, code: i32, signal: Option<i32>) {
    if let Some(Ok(_)) = written {
        return;
    }
    message(&format!("NOT JUDGED: {}", failure(code, signal)));
    if let Some(Err(error)) = written {
        crate::output::error(&error);
    }
}

/// The exit status for a program that failed: its own, except that of an exceeded limit.
fn own_status(own: u8) -> u8 {
    if own == EXCEEDED { FAILED } else { own }
}

/// When the program ran.
enum Ran {
    Before,
    Now {
        /// Why its profile is not whole.
        error: Option<String>,
        /// The program failed, and is not judged for that: its status, and the signal.
        failed: Option<(i32, Option<i32>)>,
    },
}

/// Why a profile does not show a whole run of a program that worked.
enum Flaw {
    /// A limit that what was recorded exceeds is exceeded all the same.
    Cut(String),
    /// The run shows nothing of the program's usual work: no limit is compared.
    Failed(String),
}

impl Flaw {
    fn of(ran: &Ran, meta: &Metadata, ignore_failure: bool) -> Option<Self> {
        match (ran, meta.exit_code) {
            (Ran::Before, _) if meta.write_failure.is_some() => {
                let cause = meta.write_failure.as_deref().unwrap_or_default();
                Some(Self::Cut(format!("the profile is not whole: {cause}; profile it again")))
            }
            (Ran::Now { failed: Some((code, signal)), .. }, _) => Some(Self::Failed(failure(*code, *signal))),
            (Ran::Now { error: Some(error), .. }, _) => Some(Self::Cut(format!("the profile is not whole: {error}"))),
            (Ran::Before, Some(code)) if code != 0 && !ignore_failure => Some(Self::Failed(failure(code, meta.signal))),
            _ => None,
        }
    }

    fn cause(&self) -> &str {
        let (Self::Cut(cause) | Self::Failed(cause)) = self;
        cause
    }
}

fn failure(status: i32, signal: Option<i32>) -> String {
    let end = signal.map_or_else(|| format!("exit status {status}"), |signal| format!("ended by {}", signal_words(signal)));
    format!("the program failed ({end}); to judge it all the same: --ignore-failure")
}

/// The arguments of `profile` for this program.
fn as_profile(arguments: &Check) -> Profile {
    Profile {
        output: None,
        min_size: MIN_SIZE,
        follow: arguments.follow,
        wait: arguments.wait,
        duration: None,
        pid: None,
        ranks: arguments.ranks.clone(),
        job_directory: None,
        quiet: true,
        verbose: false,
        judge: arguments.judge.clone(),
        json: None,
        html: None,
        program: arguments.program.clone(),
    }
}

/// The profile, if the command is a single word that names one.
fn given_profile(program: &[OsString]) -> Option<PathBuf> {
    let [only] = program else { return None };
    let path = Path::new(only);
    let named = path.extension().is_some_and(|end| end == "ftp");
    (named || is_profile(path) || is_pipe(path) || is_directory_of_ranks(path)).then(|| path.to_owned())
}

/// Rewrites `check FILE.ftp OPTIONS` as `check OPTIONS FILE.ftp`. Words after a program are the program's own options, but a profile has
/// none.
pub fn profile_last(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_check = words.get(1).is_some_and(|word| word == "check");
    if is_check && words.get(2).is_some_and(|word| given_profile(std::slice::from_ref(word)).is_some()) {
        let profile = words.remove(2);
        words.push(profile);
    }
    words
}

fn limits_can_be_checked(arguments: &Check, request: &AnalysisRequest) -> Result<()> {
    if arguments.max_slowdown.is_some() && request.names_only_nodes() {
        return Err(no_description());
    }
    Ok(())
}

/// What a recording comprises cannot be chosen afterwards.
fn is_about_the_profile(arguments: &Check, file: &Path) -> Result<()> {
    let given = [(arguments.follow, "--follow"), (arguments.wait, "--wait"), (arguments.profile.is_some(), "--profile")];
    match given.iter().find(|(is_given, _)| *is_given) {
        // A missing file is missing, with and without these options.
        Some((_, option)) if file.exists() => {
            bail!("{option} says how a program is recorded, and {} is a profile: leave it out, or name the program", file.display())
        }
        _ => Ok(()),
    }
}

/// JSON and a result in another format cannot both go to one place.
fn results_are_apart(arguments: &Check) -> Result<()> {
    let output = arguments.output.as_deref().unwrap_or(Path::new("-"));
    if arguments.format != Format::Text && arguments.json.as_deref() == Some(output) {
        bail!("--json and --format would both write to {}: give one of them a file (--json=FILE)", place(output));
    }
    Ok(())
}

fn place(path: &Path) -> String {
    if is_stdout(path) { "stdout".to_owned() } else { path.display().to_string() }
}

/// Checks what can be checked before the program runs.
fn check_before(arguments: &Check, request: &AnalysisRequest, machine: &Machine, baselines: &[SavedReport]) -> Result<()> {
    request.check(machine)?;
    if arguments.max_slowdown.is_some() && !request.knows_bandwidths(machine) {
        return usage(Err(no_description()));
    }
    let name = request.machine_name(machine)?;
    baselines.iter().try_for_each(|before| fits(before, &name, arguments.ignore_failure))?;
    destination(arguments).check()
}

/// Whether the baseline is a report on this machine, and of a program that worked.
fn fits(baseline: &SavedReport, machine: &str, ignore_failure: bool) -> Result<()> {
    let before = &baseline.analysis;
    if let Some(code) = before.exit_code.filter(|code| *code != 0 && !ignore_failure) {
        bail!("cannot use the baseline: {}", failure(code, before.signal));
    }
    let other = &before.machine.name;
    if other != machine {
        bail!("cannot use the baseline: it was judged on {other}, this on {machine}: name one machine with --machine");
    }
    is_judged(baseline)
}

/// A baseline without evidence would make every limit 0, and one whose remote share is hardly known any limit.
fn is_judged(baseline: &SavedReport) -> Result<()> {
    let causes: Vec<String> = baseline.analysis.doubts().iter().map(ToString::to_string).collect();
    let is_misplaced = !baseline.analysis.findings.is_empty();
    let what = if is_misplaced { "it is MISPLACED, and how much of it is remote is not known" } else { "it was NOT JUDGED" };
    if causes.is_empty() { Ok(()) } else { bail!("cannot use the baseline: {what}: {}", causes.join("; ")) }
}

fn no_description() -> anyhow::Error {
    anyhow!(
        "cannot check --max-slowdown: the bandwidths of the machine are not known. Name one of the catalogue (firsttouch machines list) or a \
         description (.toml) with --machine"
    )
}

fn check_limits(arguments: &Check, analysed: &AnalysedProfile, baselines: &[SavedReport], file: &Path, ran: Ran) -> Result<u8> {
    let analysis = &analysed.analysis;
    baselines.iter().try_for_each(|before| fits(before, &analysis.machine.name, arguments.ignore_failure))?;
    if arguments.max_slowdown.is_some() && analysed.description.is_none() {
        return usage(Err(no_description()));
    }
    let alone = arguments.max_slowdown.is_none() && baselines.is_empty();
    let max_remote = arguments.max_remote.or(alone.then_some(DEFAULT_MAX_REMOTE));
    let forecast = analysed.report_forecast()?;
    let prediction = forecast.and_then(Forecast::prediction);
    let baselines: Vec<Assessed<'_>> = baselines.iter().map(SavedReport::assessed).collect();
    let recommendations = analysed.recommendations()?;
    let left = recommendations.list.iter().filter(|one| !one.worth.is_worth()).map(|one| one.finding);
    let limits = Limits {
        max_remote,
        not_worth: &left.collect::<Vec<usize>>(),
        max_slowdown: arguments.max_slowdown,
        baselines: &baselines,
        tolerance: arguments.tolerance,
    };
    let flaw = Flaw::of(&ran, &analysed.profile.meta, arguments.ignore_failure);
    let mut limits = check(Assessed { analysis, prediction: prediction.as_ref() }, &limits, flaw.is_none());
    if let Some(Flaw::Failed(_)) = flaw {
        limits.iter_mut().for_each(LimitCheck::forget);
    }
    let folder = std::env::current_dir().unwrap_or_default();
    let json = CheckJson::new(analysis, &recommendations, &limits, &folder, flaw.as_ref().map(Flaw::cause));
    let has_run = matches!(ran, Ran::Now { .. });
    show(arguments, &json, &analysed.options, file, has_run)?;
    Ok(match json.outcome {
        Outcome::Passed => 0,
        Outcome::Failed => EXCEEDED,
        Outcome::NotJudged => {
            if !is_said(arguments, has_run) {
                message(&format!("NOT JUDGED: {}", json.causes.join("; ")));
            }
            FAILED
        }
    })
}

/// Whether who reads stderr has the text of the result too: it is there, or both streams are on terminals.
fn is_said(arguments: &Check, has_run: bool) -> bool {
    let is_text = matches!(arguments.format, Format::Text) && arguments.output.is_none();
    let is_json = arguments.json.as_deref().is_some_and(is_stdout);
    is_text && !is_json && (has_run || (io::stdout().is_terminal() && io::stderr().is_terminal()))
}

fn show(arguments: &Check, json: &CheckJson<'_>, options: &[String], file: &Path, ran: bool) -> Result<()> {
    let options: String = options.iter().map(|word| format!(" {word}")).collect();
    let kept = (!ran || arguments.profile.is_some()).then(|| format!("firsttouch report {}{options}", file.display()));
    let terminal = if ran { Terminal::Stderr } else { Terminal::Stdout };
    let text = match arguments.format {
        Format::Text => return destination(arguments).show(json, |style| check_text(json, kept.as_deref(), style), terminal),
        Format::Github => check_github(json),
        Format::Junit => check_junit(json),
        Format::Sarif => json_text(&check_sarif(json, env!("CARGO_PKG_VERSION")))?,
    };
    if let Some(path) = arguments.json.as_deref() {
        write(path, &json_text(json)?)?;
    }
    write(arguments.output.as_deref().unwrap_or(Path::new("-")), &text)
}

fn destination(arguments: &Check) -> Destination<'_> {
    Destination { json: arguments.json.as_deref(), output: arguments.output.as_deref() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which command lines have their profile moved behind the options.
    #[test]
    fn profiles_take_options_on_either_side() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (line, becomes) in [
            ("firsttouch check a.ftp --machine virtual:2", "firsttouch check --machine virtual:2 a.ftp"),
            ("firsttouch check --machine virtual:2 a.ftp", "firsttouch check --machine virtual:2 a.ftp"),
            ("firsttouch check ./solver --machine a.ftp", "firsttouch check ./solver --machine a.ftp"),
            ("firsttouch report a.ftp --json", "firsttouch report a.ftp --json"),
        ] {
            assert_eq!(profile_last(words(line)), words(becomes));
        }
    }
}
