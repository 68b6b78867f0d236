//! `firsttouch diff`

use super::usage;
use crate::arguments::Diff;
use crate::judge::{Question, analysed};
use crate::output::{message, print, print_json, style};
use anyhow::{Result, bail};
use firsttouch_analysis::diff::diff;
use firsttouch_report::diff_text;
use std::io::stdout;

pub fn run(arguments: &Diff) -> Result<u8> {
    let question = usage(Question::parse(&arguments.judge))?;
    let before = analysed(&arguments.before, &question)?;
    let after = analysed(&arguments.after, &question)?;
    if before.machine != after.machine {
        bail!(
            "cannot compare {} with {}: the first was judged on {}, the second on {}; give the profiles themselves, and name one machine with --machine",
            arguments.before.display(),
            arguments.after.display(),
            before.machine.name,
            after.machine.name
        );
    }
    let found = diff(&before, &after);
    if arguments.json {
        found.doubts.iter().for_each(|doubt| message(doubt));
        print_json(&found)?;
    } else {
        let name = |path: &std::path::Path| path.display().to_string();
        print(&diff_text(&found, &name(&arguments.before), &name(&arguments.after), style(&stdout())))?;
    }
    Ok(0)
}
