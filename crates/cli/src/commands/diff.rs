//! `firsttouch diff`

use crate::arguments::Diff;
use crate::output::{message, print, print_json};
use crate::request::analysis_request;
use crate::terminal::style;
use anyhow::{Result, bail};
use firsttouch_analysis::diff::diff;
use firsttouch_pipeline::load_report;
use firsttouch_report::diff_text;
use std::io::stdout;

pub fn run(arguments: &Diff) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    let before = load_report(&arguments.before, &request)?;
    let after = load_report(&arguments.after, &request)?;
    if before.analysis.machine != after.analysis.machine {
        bail!(
            "cannot compare {} with {}: the first was judged on {}, the second on {}; give the profiles themselves, and name one machine with --machine",
            arguments.before.display(),
            arguments.after.display(),
            before.analysis.machine.name,
            after.analysis.machine.name
        );
    }
    let found = diff(before.assessed(), after.assessed());
    if arguments.json {
        found.doubts.iter().for_each(|doubt| message(&doubt.to_string()));
        print_json(&found)?;
    } else {
        let name = |path: &std::path::Path| path.display().to_string();
        print(&diff_text(&found, &name(&arguments.before), &name(&arguments.after), style(&stdout())))?;
    }
    Ok(0)
}
