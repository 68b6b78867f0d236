//! `firsttouch profile`

use crate::arguments::Profile;
use crate::exit::{unless_not_executed, usage};
use crate::output::{Destination, can_be_replaced, is_stdout, message, tell};
use crate::page::{tell_where, write_page};
use crate::profile_name;
use crate::ranks::{self, JobEnd, Merged, Role, Wanted};
use crate::record::{DESCRIPTORS, record, status, this_machine, write_unobserved};
use crate::request::{analysis_request, report_context};
use crate::terminal::style;
use anyhow::{Result, anyhow};
use firsttouch_capture::Created;
use firsttouch_model::UNOBSERVED;
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest};
use firsttouch_report::{ReportJson, counted_as, profile_summary, text};
use firsttouch_system::MachineInfo;
use firsttouch_system::launch::{become_program, can_open, raise_file_limit};
use std::io::stderr;
use std::path::Path;

/// What is printed of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Report,
    /// The line that says where the profile is.
    Line,
}

pub fn run(arguments: &Profile) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    let request = if arguments.html.is_some() { request.with_pictures() } else { request };
    if let Some(page) = &arguments.html {
        if is_stdout(page) {
            return usage(Err(anyhow!("--html needs a file: standard output belongs to the program")));
        }
        can_be_replaced(page, "<")?;
    }
    let wanted = Wanted {
        output: arguments.output.as_deref(),
        default_name: None,
        program: &arguments.program,
        pid: arguments.pid,
        ranks: arguments.ranks.as_ref(),
        job_directory: arguments.job_directory.as_deref(),
    };
    match ranks::role(&wanted)? {
        Role::Alone => alone(arguments, &request, Shown::Report),
        Role::Named => alone(&with_own_json(arguments)?, &request, Shown::Line),
        Role::Unrecorded => unless_not_executed(become_program(&arguments.program, &[])),
        Role::Rank(rank) => {
            destination(arguments).check()?;
            ranks::record_rank(arguments, &request, rank, |own| own, |end, _| end_job(arguments, &request, end))
        }
        Role::Outside(outside) => {
            destination(arguments).check()?;
            ranks::record_job(arguments, &request, &outside, |merged, _| report_job(arguments, &request, merged))
        }
        Role::Follow(why) => {
            if !arguments.quiet {
                message(&why);
            }
            alone(&Profile { follow: true, ..arguments.clone() }, &request, Shown::Report)
        }
    }
}

/// The JSON and the page of a rank go to files of their own as well.
fn with_own_json(arguments: &Profile) -> Result<Profile> {
    let html = match arguments.html.as_deref() {
        Some(name) if !profile_name::is_pattern(name) => {
            return usage(Err(anyhow!(
                "all ranks would write {}: give it a part that differs, as in -o (--html x-%p.html)",
                name.display()
            )));
        }
        Some(name) => Some(profile_name::named_file(name, None)?),
        None => None,
    };
    let json = match arguments.json.as_deref() {
        Some(name) if !is_stdout(name) && !profile_name::is_pattern(name) => {
            return usage(Err(anyhow!(
                "all ranks would write {}: give it a part that differs, as in -o (--json='x-%p.json')",
                name.display()
            )));
        }
        Some(name) if !is_stdout(name) => Some(profile_name::named_file(name, None)?),
        other => other.map(Path::to_owned),
    };
    Ok(Profile { json, html, ..arguments.clone() })
}

/// Prints the report of a job. The job has run, so its status stays what it is, even if the report fails.
/// Reports on the job, or says where its profiles are: without this, nobody would, if only some ranks are recorded.
fn end_job(arguments: &Profile, request: &AnalysisRequest, end: JobEnd) -> Option<u8> {
    match end {
        JobEnd::Merged(merged) => report_job(arguments, request, merged),
        JobEnd::Incomplete { missing, directory } => {
            if !arguments.quiet {
                message(&format!(
                    "{missing} of the job: no profile in {directory} until now (they run without firsttouch, or their program has a directory of its own: \
                     -o NAME.ftp names one for all); the others: firsttouch report {directory}",
                    directory = directory.display()
                ));
            }
            None
        }
    }
}

fn report_job(arguments: &Profile, request: &AnalysisRequest, merged: Result<Option<Merged>>) -> Option<u8> {
    let reported = merged.and_then(|merged| merged.map_or(Ok(()), |merged| report_merged(arguments, request, &merged)));
    if let Err(error) = reported {
        crate::output::error(&error);
    }
    None
}

fn report_merged(arguments: &Profile, request: &AnalysisRequest, merged: &Merged) -> Result<()> {
    let output = &merged.file.path;
    say_where(&merged.file);
    let analysed = AnalysedProfile::of_recording(None, None, output, request);
    if !arguments.quiet {
        match &analysed {
            Ok(analysed) => {
                let (ranks, summary) = ranks::summary(&analysed.profile);
                let ranks = counted_as(ranks as u64, "rank", "ranks");
                message(&format!("{ranks}, {}", profile_summary(&summary, output)));
            }
            Err(_) => message(&format!("the merged profile is {}", output.display())),
        }
        say_replaced(&merged.file);
        print_messages(&merged.notes);
    }
    let analysed = analysed?;
    if is_reported(arguments) {
        report(arguments, output, &[], &analysed)?;
    }
    Ok(())
}

fn say_where(file: &Created) {
    if let Some(why) = &file.why_elsewhere {
        message(why);
    }
}

fn say_replaced(file: &Created) {
    if file.replaces {
        message("an older profile of that name was replaced, as with every -o");
    }
    if let Some(kept) = &file.kept {
        message(&format!("the profile before it is kept as {}; to compare them: firsttouch diff", kept.display()));
    }
}

fn alone(arguments: &Profile, request: &AnalysisRequest, shown: Shown) -> Result<u8> {
    raise_file_limit();
    if arguments.pid.is_none() && !can_open(DESCRIPTORS) {
        message(&format!("NOT JUDGED: {UNOBSERVED}"));
        if let Err(error) = account_for_nothing(arguments, request) {
            message(&format!("error: {error:#}; any profile of that name is from an earlier run"));
        }
        return unless_not_executed(become_program(&arguments.program, &[]));
    }
    // Everything is checked before the program runs, which may take hours.
    let info = this_machine()?;
    request.check(&info.machine)?;
    destination(arguments).check()?;
    let output = profile_name::output(arguments.output.as_deref(), &arguments.program, arguments.pid)?;
    let mut recording = match record(arguments, request, info, output)? {
        Ok(recording) => recording,
        Err(not_started) => return Ok(not_started),
    };
    let output = recording.file.path.clone();
    say_where(&recording.file);
    // The program has run, so firsttouch exits with its status, even if the report fails.
    if let Some(error) = &recording.profile_error {
        let what = if recording.is_cut { "the profile is incomplete: " } else { "" };
        message(&format!("error: {what}{error}"));
    }
    if !arguments.quiet {
        message(&profile_summary(&recording.summary, &output));
        say_replaced(&recording.file);
    }
    let arguments = &Profile { quiet: arguments.quiet || shown == Shown::Line, ..arguments.clone() };
    if !is_reported(arguments) {
        return Ok(status(&recording));
    }
    let cut = recording.profile_error.as_deref().filter(|_| recording.is_cut);
    match AnalysedProfile::of_recording(recording.profile.take(), cut, &output, request) {
        Ok(analysed) => {
            if let Err(error) = report(arguments, &output, &recording.messages, &analysed) {
                crate::output::error(&error);
            }
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            print_messages(&recording.messages);
            // If the profile could not be written, that error was printed above.
            if recording.profile_error.is_none() {
                crate::output::error(&error);
            }
        }
    }
    Ok(status(&recording))
}

/// Writes the profile, the page and the JSON that a program has which will run unobserved, so that nobody takes older ones for them.
fn account_for_nothing(arguments: &Profile, request: &AnalysisRequest) -> Result<()> {
    let output = profile_name::output(arguments.output.as_deref(), &arguments.program, arguments.pid)?;
    // Nothing is prepared: its threads open files, of which too few are left.
    let info = MachineInfo::read(Path::new("/"))?;
    let file = write_unobserved(arguments, info, output)?.path;
    if arguments.json.is_none() && arguments.html.is_none() {
        return Ok(());
    }
    let analysed = AnalysedProfile::open(&file, request)?;
    if let Some(page) = &arguments.html {
        write_page(page, &analysed, &report_context(&analysed, &file, true, arguments.verbose))?;
    }
    destination(arguments).write_json(&ReportJson::new(&analysed.analysis, None, &analysed.recommendations()?))
}

/// Whether anything is written about a recording besides the profile.
fn is_reported(arguments: &Profile) -> bool {
    !arguments.quiet || arguments.json.is_some() || arguments.html.is_some()
}

fn destination(arguments: &Profile) -> Destination<'_> {
    Destination { json: arguments.json.as_deref(), output: None }
}

fn report(arguments: &Profile, output: &Path, messages: &[String], analysed: &AnalysedProfile) -> Result<()> {
    let (forecast, recommendations) = (analysed.report_forecast()?, analysed.recommendations()?);
    let destination = destination(arguments);
    destination.write_json(&ReportJson::new(&analysed.analysis, forecast, &recommendations))?;
    if let Some(page) = &arguments.html {
        write_page(page, analysed, &report_context(analysed, output, true, arguments.verbose))?;
        if !arguments.quiet {
            tell_where(page);
        }
    }
    if arguments.quiet {
        return Ok(());
    }
    if !destination.shows_text() {
        print_messages(messages);
        return Ok(());
    }
    // Do not repeat messages that the report contains as evidence.
    let in_report = |text: &&String| analysed.analysis.evidence.iter().any(|evidence| evidence.detail == **text);
    let others: Vec<String> = messages.iter().filter(|text| !in_report(text)).cloned().collect();
    print_messages(&others);
    let context = report_context(analysed, output, false, arguments.verbose);
    tell(&text(&analysed.analysis, forecast, &recommendations, &context, style(&stderr())));
    Ok(())
}

fn print_messages(messages: &[String]) {
    for text in messages {
        message(text);
    }
}
