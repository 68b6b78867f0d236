//! `firsttouch profile`

use crate::arguments::Profile;
use crate::output::{message, print_json, tell};
use crate::record::{record, status};
use crate::request::{analysis_request, report_context};
use crate::terminal::style;
use anyhow::Result;
use firsttouch_capture::Recording;
use firsttouch_pipeline::AnalysedProfile;
use firsttouch_report::{ReportJson, profile_summary, text};
use std::io::stderr;
use std::path::{Path, PathBuf};

pub fn run(arguments: &Profile) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    let output = arguments.output.clone().unwrap_or_else(|| default_output(arguments));
    let mut recording = match record(arguments, &output)? {
        Ok(recording) => recording,
        Err(not_started) => return Ok(not_started),
    };
    // The program has run, so firsttouch exits with its status, even if the report fails.
    if let Some(error) = &recording.profile_error {
        message(&format!("error: {error}"));
    }
    if !arguments.quiet {
        message(&profile_summary(&recording.summary, &output));
    }
    if arguments.quiet && !arguments.json {
        return Ok(status(&recording));
    }
    match AnalysedProfile::of_recording(recording.profile.take(), &output, &request) {
        Ok(analysed) => {
            if let Err(error) = report(arguments, &output, &recording, &analysed) {
                message(&format!("error: {error:#}"));
            }
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            print_messages(&recording.messages);
            // If the profile could not be written, that error was printed above.
            if recording.profile_error.is_none() {
                message(&format!("error: {error:#}"));
            }
        }
    }
    Ok(status(&recording))
}

fn report(arguments: &Profile, output: &Path, recording: &Recording, analysed: &AnalysedProfile) -> Result<()> {
    let forecast = analysed.report_forecast()?;
    if arguments.json {
        print_json(&ReportJson::new(&analysed.analysis, forecast))?;
    }
    if arguments.quiet {
        return Ok(());
    }
    if arguments.json {
        print_messages(&recording.messages);
        return Ok(());
    }
    // Do not repeat messages that the report contains as evidence.
    let in_report = |text: &&String| analysed.analysis.evidence.iter().any(|evidence| evidence.detail == **text);
    let others: Vec<String> = recording.messages.iter().filter(|text| !in_report(text)).cloned().collect();
    print_messages(&others);
    tell(&text(&analysed.analysis, forecast, &report_context(analysed, output, false), style(&stderr())));
    Ok(())
}

fn print_messages(messages: &[String]) {
    for text in messages {
        message(text);
    }
}

/// `./PROGRAM.ftp` or `./pid-PID.ftp`
fn default_output(arguments: &Profile) -> PathBuf {
    let mut name = match (arguments.pid, arguments.program.first()) {
        (Some(pid), _) => format!("pid-{pid}").into(),
        (None, Some(program)) => Path::new(program).file_name().unwrap_or(program).to_owned(),
        (None, None) => "profile".into(),
    };
    name.push(".ftp");
    PathBuf::from(name)
}
