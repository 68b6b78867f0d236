//! `firsttouch diff`

use crate::arguments::Diff;
use crate::output::{message, print, print_json, replace};
use crate::page::tell_where;
use crate::profile_name::{newest, predecessor};
use crate::request::analysis_request;
use crate::terminal::style;
use anyhow::{Result, bail};
use firsttouch_analysis::diff::diff;
use firsttouch_pipeline::load_reports;
use firsttouch_report::{Comparison, DiffJson, Side, diff_html, diff_text};
use std::io::stdout;
use std::path::PathBuf;

pub fn run(arguments: &Diff) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    let (first, second) = files(arguments)?;
    let (before, after) = load_reports(&first, &second, &request)?;
    if before.analysis.machine != after.analysis.machine {
        bail!(
            "cannot compare {} with {}: the first was judged on {}, the second on {}; give the profiles themselves, and name one machine with --machine",
            first.display(),
            second.display(),
            before.analysis.machine.name,
            after.analysis.machine.name
        );
    }
    let found = diff(before.assessed(), after.assessed());
    if let Some(file) = &arguments.html {
        let names = [&first, &second].map(|path| path.display().to_string());
        let side = |name, analysis| Side { name, analysis };
        let comparison = Comparison { diff: &found, before: side(&names[0], &before.analysis), after: side(&names[1], &after.analysis) };
        replace(file, &diff_html(&comparison))?;
        tell_where(file);
        return Ok(0);
    }
    if arguments.json {
        found.doubts.iter().for_each(|doubt| message(&doubt.to_string()));
        print_json(&DiffJson::new(&found))?;
    } else {
        let name = |path: &std::path::Path| path.display().to_string();
        print(&diff_text(&found, &name(&first), &name(&second), style(&stdout())))?;
    }
    Ok(0)
}

/// The two files. If fewer are named: the newest profile here, or the one that is named, and the profile that was kept when it was made.
fn files(arguments: &Diff) -> Result<(PathBuf, PathBuf)> {
    if let (Some(before), Some(after)) = (&arguments.before, &arguments.after) {
        return Ok((before.clone(), after.clone()));
    }
    let after = arguments.before.clone().map_or_else(|| newest("diff"), Ok)?;
    let before = predecessor(&after)?;
    message(&format!("comparing {} (before) with {} (after)", before.display(), after.display()));
    Ok((before, after))
}
