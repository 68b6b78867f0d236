//! `firsttouch profile`

use crate::arguments::Profile;
use crate::exit::FAILED;
use crate::output::{message, print_json, style, tell};
use crate::request::{analysis_request, report_context};
use anyhow::Result;
use firsttouch_capture::{Options, Outcome, Summary};
use firsttouch_pipeline::AnalysedProfile;
use firsttouch_report::{ReportJson, text, thousands};
use firsttouch_system::MachineInfo;
use firsttouch_system::launch::LaunchError;
use std::io::stderr;
use std::path::{Path, PathBuf};

/// Faster lookups of names than this are not worth a word.
const NAMES_WORTH_TELLING: usize = 20_000;

pub fn run(arguments: &Profile) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    let output = arguments.output.clone().unwrap_or_else(|| default_output(arguments));
    let outcome = match record(arguments, &output)? {
        Ok(outcome) => outcome,
        Err(not_started) => return Ok(not_started),
    };
    // From here on the program has run: its status is ours, whatever becomes of the report.
    if let Some(error) = &outcome.profile_error {
        message(&format!("error: {error}"));
    }
    if !arguments.quiet {
        message(&summary(&outcome.summary, &output));
    }
    if arguments.quiet && !arguments.json {
        return Ok(status(&outcome));
    }
    match AnalysedProfile::open_recorded(&output, &request) {
        Ok(analysed) => {
            if let Err(error) = report(arguments, &output, &outcome, &analysed) {
                message(&format!("error: {error:#}"));
            }
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            tell_messages(&outcome.messages);
            // A profile that could not be written was told above.
            if outcome.profile_error.is_none() {
                message(&format!("error: {error:#}"));
            }
        }
    }
    Ok(status(&outcome))
}

/// Runs the program and records it; the status to end with when it could not be started.
pub fn record(arguments: &Profile, output: &Path) -> Result<std::result::Result<Outcome, u8>> {
    let info = MachineInfo::read(Path::new("/"))?;
    let options = Options {
        command: arguments.program.clone(),
        output: output.to_owned(),
        min_size: arguments.min_size,
        follow: arguments.follow,
        duration: arguments.duration,
        pid: arguments.pid,
        agent: firsttouch_native::AGENT,
        machine: info.machine,
        notes: info.doubts,
        progress: (!arguments.quiet).then_some(tell_names as fn(usize, usize)),
    };
    match firsttouch_capture::profile(&options) {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(error) => {
            let Some(launch) = error.downcast_ref::<LaunchError>() else { return Err(error) };
            message(&format!("error: {error:#}"));
            Ok(Err(u8::try_from(launch.exit_code()).unwrap_or(FAILED)))
        }
    }
}

/// The program's own status; 0 when it was only visited.
pub fn status(outcome: &Outcome) -> u8 {
    outcome.exit_code.map_or(0, |code| u8::try_from(code & 0xff).unwrap_or(FAILED))
}

fn report(arguments: &Profile, output: &Path, outcome: &Outcome, analysed: &AnalysedProfile) -> Result<()> {
    let forecast = analysed.report_forecast()?;
    if arguments.json {
        print_json(&ReportJson::new(&analysed.analysis, forecast))?;
    }
    if arguments.quiet {
        return Ok(());
    }
    if arguments.json {
        tell_messages(&outcome.messages);
        return Ok(());
    }
    // The report tells what was missing, in the same words.
    let told = |text: &&String| {
        let analysis = &analysed.analysis;
        analysis.evidence.iter().any(|evidence| same(&evidence.detail, text)) || analysis.notes.iter().any(|note| same(note, text))
    };
    let untold: Vec<String> = outcome.messages.iter().filter(|text| !told(text)).cloned().collect();
    tell_messages(&untold);
    tell(&text(&analysed.analysis, forecast, &report_context(analysed, output, false), style(&stderr())));
    Ok(())
}

/// Whether one text says all of the other.
fn same(told: &str, text: &str) -> bool {
    !told.is_empty() && (told.contains(text) || text.contains(told))
}

fn tell_messages(messages: &[String]) {
    for text in messages {
        message(text);
    }
}

fn tell_names(done: usize, all: usize) {
    if done == 0 && all > NAMES_WORTH_TELLING {
        message(&format!("looking up the names of {} call stacks", thousands(all as u64)));
    }
}

/// `8 threads, 6.2 s, 1,904 accesses seen by watchpoints, 1,310 first touches (1 of 599) -> dgemv.ftp`
fn summary(summary: &Summary, output: &Path) -> String {
    let threads = if summary.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", thousands(summary.threads)) };
    let one_of = if summary.first_touches > 0 && summary.touch_weight > 1.5 * summary.first_touches as f64 {
        format!(" (1 of {})", thousands((summary.touch_weight / summary.first_touches as f64).round() as u64))
    } else {
        String::new()
    };
    format!(
        "{threads}, {:.1} s, {} accesses seen by watchpoints, {} first touches{one_of} -> {}",
        summary.wall_s,
        thousands(summary.watch_hits),
        thousands(summary.first_touches),
        output.display()
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the summary line, with and without sampling.
    #[test]
    fn the_summary_is_one_line() {
        let mut one =
            Summary { threads: 8, wall_s: 6.21, watch_hits: 1904, first_touches: 1310, touch_weight: 784_690.0, ..Summary::default() };
        assert_eq!(
            summary(&one, Path::new("dgemv.ftp")),
            "8 threads, 6.2 s, 1,904 accesses seen by watchpoints, 1,310 first touches (1 of 599) -> dgemv.ftp"
        );
        (one.threads, one.touch_weight) = (1, 1310.0);
        assert_eq!(summary(&one, Path::new("x.ftp")), "1 thread, 6.2 s, 1,904 accesses seen by watchpoints, 1,310 first touches -> x.ftp");
    }
}
