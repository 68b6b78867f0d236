//! `firsttouch check`

use crate::arguments::{Check, Format, Profile};
use crate::exit::{FAILED, usage};
use crate::output::{message, print, print_json, tell, write};
use crate::record::{record, status};
use crate::request::analysis_request;
use crate::terminal::style;
use anyhow::{Context, Result, anyhow, bail};
use firsttouch_analysis::Assessed;
use firsttouch_analysis::check_limits::{Limits, Outcome, check};
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest, SavedReport, is_profile, load_report};
use firsttouch_predict::forecast::Forecast;
use firsttouch_report::{CheckJson, check_github, check_junit, check_sarif, check_text};
use std::ffi::OsString;
use std::io::{stderr, stdout};
use std::path::{Path, PathBuf};

/// The exit status if a limit was exceeded.
const EXCEEDED: u8 = 3;
const DEFAULT_MAX_REMOTE: f64 = 0.2;
/// The default of `profile`.
const MIN_SIZE: u64 = 64 << 10;

pub fn run(arguments: &Check) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    usage(limits_can_be_checked(arguments, &request))?;
    // Load the baseline first: the program may run for an hour.
    let baseline = arguments.baseline.as_deref().map(|path| load_report(path, &request).context("cannot use the baseline")).transpose()?;
    if let Some(file) = given_profile(&arguments.program) {
        return check_limits(arguments, &AnalysedProfile::open(&file, &request)?, baseline.as_ref(), &file, Ran::Before);
    }
    let folder = tempfile::tempdir().context("cannot make a temporary directory for the profile")?;
    let file = arguments.profile.clone().unwrap_or_else(|| folder.path().join("check.ftp"));
    let mut outcome = match record(&as_profile(arguments), &file)? {
        Ok(outcome) => outcome,
        Err(not_started) => return Ok(not_started),
    };
    if let Some(error) = &outcome.profile_error {
        message(&format!("error: {error}"));
    }
    let own = status(&outcome);
    if own != 0 && !arguments.ignore_failure {
        message(&format!("NOT JUDGED: the program failed (exit status {own}); to judge it all the same: --ignore-failure"));
        return Ok(own_status(own));
    }
    let ran = Ran::Now { error: outcome.profile_error.take() };
    check_limits(arguments, &AnalysedProfile::of_recording(outcome.profile.take(), &file, &request)?, baseline.as_ref(), &file, ran)
}

/// The exit status for a program that failed: its own, except that of an exceeded limit.
fn own_status(own: u8) -> u8 {
    if own == EXCEEDED { FAILED } else { own }
}

/// When the program ran.
enum Ran {
    Before,
    /// And why its profile is not whole.
    Now { error: Option<String> },
}

/// The arguments of `profile` for this program.
fn as_profile(arguments: &Check) -> Profile {
    Profile {
        output: None,
        min_size: MIN_SIZE,
        follow: false,
        duration: None,
        pid: None,
        quiet: true,
        judge: arguments.judge.clone(),
        json: false,
        program: arguments.program.clone(),
    }
}

/// The profile, if the command is a single word that names one.
fn given_profile(program: &[OsString]) -> Option<PathBuf> {
    let [only] = program else { return None };
    let path = Path::new(only);
    let named = path.extension().is_some_and(|end| end == "ftp");
    (named || is_profile(path)).then(|| path.to_owned())
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

fn no_description() -> anyhow::Error {
    anyhow!(
        "cannot check --max-slowdown: the bandwidths of the machine are not known. Name one of the catalogue (firsttouch machines list) or a \
         description (.toml) with --machine"
    )
}

fn check_limits(arguments: &Check, analysed: &AnalysedProfile, baseline: Option<&SavedReport>, file: &Path, ran: Ran) -> Result<u8> {
    let analysis = &analysed.analysis;
    if let Some(before) = baseline.filter(|before| before.analysis.machine.name != analysis.machine.name) {
        bail!("cannot use the baseline: it was judged on {}, this on {}", before.analysis.machine.name, analysis.machine.name);
    }
    if arguments.max_slowdown.is_some() && analysed.description.is_none() {
        return usage(Err(no_description()));
    }
    let alone = arguments.max_slowdown.is_none() && baseline.is_none();
    let max_remote = arguments.max_remote.or(alone.then_some(DEFAULT_MAX_REMOTE));
    let forecast = analysed.report_forecast()?;
    let prediction = forecast.and_then(Forecast::prediction);
    let limits = Limits { max_remote, max_slowdown: arguments.max_slowdown, baseline: baseline.map(SavedReport::assessed) };
    let incomplete = match &ran {
        Ran::Now { error: Some(error) } => Some(format!("the profile is not whole: {error}")),
        _ => None,
    };
    let limits = check(Assessed { analysis, prediction: prediction.as_ref() }, &limits, incomplete.is_none());
    let folder = std::env::current_dir().unwrap_or_default();
    let json = CheckJson::new(analysis, forecast, &limits, &folder, incomplete.as_deref());
    show(arguments, &json, &analysed.options, file, matches!(ran, Ran::Now { .. }))?;
    Ok(match json.outcome {
        Outcome::Passed => 0,
        Outcome::Failed => EXCEEDED,
        Outcome::NotJudged => {
            message(&format!("NOT JUDGED: {}", json.causes.join("; ")));
            FAILED
        }
    })
}

fn show(arguments: &Check, json: &CheckJson<'_>, options: &[String], file: &Path, ran: bool) -> Result<()> {
    let options: String = options.iter().map(|word| format!(" {word}")).collect();
    let kept = (!ran || arguments.profile.is_some()).then(|| format!("firsttouch report {}{options}", file.display()));
    let to_terminal = |style| check_text(json, kept.as_deref(), style);
    let text = match arguments.format {
        Format::Text if arguments.json => pretty(json)?,
        Format::Text if arguments.output.is_some() => to_terminal(firsttouch_report::Style { colour: false, ..style(&stdout()) }),
        Format::Text if ran => {
            tell(&to_terminal(style(&stderr())));
            return Ok(());
        }
        Format::Text => to_terminal(style(&stdout())),
        Format::Github => check_github(json),
        Format::Junit => check_junit(json),
        Format::Sarif => pretty(&check_sarif(json, env!("CARGO_PKG_VERSION")))?,
    };
    match &arguments.output {
        Some(path) => write(path, &text),
        None if arguments.json => print_json(json),
        None => print(&text),
    }
}

fn pretty(value: &impl serde::Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value).context("cannot write the result as JSON")? + "\n")
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
