//! `firsttouch profile`

use crate::arguments::Profile;
use crate::exit::unless_not_executed;
use crate::output::{Destination, message, tell};
use crate::profile_name;
use crate::record::{DESCRIPTORS, record, status, this_machine, write_unobserved};
use crate::request::{analysis_request, report_context};
use crate::terminal::style;
use anyhow::Result;
use firsttouch_capture::Recording;
use firsttouch_model::UNOBSERVED;
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest};
use firsttouch_report::{ReportJson, profile_summary, text};
use firsttouch_system::MachineInfo;
use firsttouch_system::launch::{become_program, can_open, raise_file_limit};
use std::io::stderr;
use std::path::Path;

pub fn run(arguments: &Profile) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    raise_file_limit();
    if arguments.pid.is_none() && !can_open(DESCRIPTORS) {
        message(&format!("NOT JUDGED: {UNOBSERVED}"));
        if let Err(error) = account_for_nothing(arguments, &request) {
            message(&format!("error: {error:#}; any profile of that name is from an earlier run"));
        }
        return unless_not_executed(become_program(&arguments.program, &[]));
    }
    // Everything is checked before the program runs, which may take hours.
    let info = this_machine()?;
    request.check(&info.machine)?;
    destination(arguments).check()?;
    let output = profile_name::output(arguments.output.as_deref(), &arguments.program, arguments.pid)?;
    let mut recording = match record(arguments, &request, info, output)? {
        Ok(recording) => recording,
        Err(not_started) => return Ok(not_started),
    };
    let output = recording.file.path.clone();
    if let Some(why) = &recording.file.why_elsewhere {
        message(why);
    }
    // The program has run, so firsttouch exits with its status, even if the report fails.
    if let Some(error) = &recording.profile_error {
        let what = if recording.is_cut { "the profile is incomplete: " } else { "" };
        message(&format!("error: {what}{error}"));
    }
    if !arguments.quiet {
        message(&profile_summary(&recording.summary, &output));
        if recording.file.replaces {
            message("an older profile of that name was replaced, as with every -o");
        }
        if let Some(kept) = &recording.file.kept {
            message(&format!("the profile before it is kept as {}; to compare them: firsttouch diff", kept.display()));
        }
    }
    if arguments.quiet && arguments.json.is_none() {
        return Ok(status(&recording));
    }
    let cut = recording.profile_error.as_deref().filter(|_| recording.is_cut);
    match AnalysedProfile::of_recording(recording.profile.take(), cut, &output, &request) {
        Ok(analysed) => {
            if let Err(error) = report(arguments, &output, &recording, &analysed) {
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

/// Writes the profile and the JSON that a program has which will run unobserved, so that nobody takes older ones for them.
fn account_for_nothing(arguments: &Profile, request: &AnalysisRequest) -> Result<()> {
    let output = profile_name::output(arguments.output.as_deref(), &arguments.program, arguments.pid)?;
    // Nothing is prepared: its threads open files, of which too few are left.
    let info = MachineInfo::read(Path::new("/"))?;
    let file = write_unobserved(arguments, info, output)?.path;
    if arguments.json.is_none() {
        return Ok(());
    }
    let analysed = AnalysedProfile::open(&file, request)?;
    destination(arguments).write_json(&ReportJson::new(&analysed.analysis, None, &analysed.recommendations()?))
}

fn destination(arguments: &Profile) -> Destination<'_> {
    Destination { json: arguments.json.as_deref(), output: None }
}

fn report(arguments: &Profile, output: &Path, recording: &Recording, analysed: &AnalysedProfile) -> Result<()> {
    let (forecast, recommendations) = (analysed.report_forecast()?, analysed.recommendations()?);
    let destination = destination(arguments);
    destination.write_json(&ReportJson::new(&analysed.analysis, forecast, &recommendations))?;
    if arguments.quiet {
        return Ok(());
    }
    if !destination.shows_text() {
        print_messages(&recording.messages);
        return Ok(());
    }
    // Do not repeat messages that the report contains as evidence.
    let in_report = |text: &&String| analysed.analysis.evidence.iter().any(|evidence| evidence.detail == **text);
    let others: Vec<String> = recording.messages.iter().filter(|text| !in_report(text)).cloned().collect();
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
