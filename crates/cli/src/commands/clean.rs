//! `firsttouch clean`

use crate::arguments::Clean;
use crate::exit;
use crate::output::{message, print, print_json};
use crate::terminal::style;
use anyhow::Result;
use firsttouch_model::format_bytes;
use firsttouch_system::leftovers::{Leftover, User, find};
use serde_json::{Value, json};
use std::io::stdout;

/// What became of a leftover.
struct Outcome {
    leftover: Leftover,
    /// Why it stays.
    kept: Option<String>,
    failed: Option<String>,
}

pub fn run(arguments: &Clean) -> Result<u8> {
    let outcomes: Vec<Outcome> = find().into_iter().map(|leftover| handle(leftover, arguments)).collect();
    if arguments.json {
        print_json(
            &json!({"schema": "firsttouch.clean/1", "dry_run": arguments.dry_run, "found": outcomes.iter().map(as_json).collect::<Vec<_>>()}),
        )?;
    } else {
        print(&text(&outcomes, arguments.dry_run, style(&stdout()).width))?;
    }
    for outcome in &outcomes {
        if let Some(why) = &outcome.failed {
            message(&format!("error: cannot remove {}: {why}", outcome.leftover.path.display()));
        }
    }
    Ok(if outcomes.iter().any(|outcome| outcome.failed.is_some()) { exit::FAILED } else { exit::DONE })
}

fn handle(leftover: Leftover, arguments: &Clean) -> Outcome {
    let kept = match leftover.user {
        Some(user) => Some(user.to_string()),
        None if leftover.is_profile() && !arguments.profiles => Some("a profile; --profiles removes it".to_owned()),
        None => None,
    };
    let failed = (kept.is_none() && !arguments.dry_run).then(|| leftover.remove().err().map(|error| error.to_string())).flatten();
    Outcome { leftover, kept, failed }
}

fn text(outcomes: &[Outcome], dry_run: bool, width: usize) -> String {
    let mut text = String::new();
    let (mut count, mut bytes) = (0, 0);
    for Outcome { leftover, kept, failed } in outcomes {
        let verb = match (kept, failed, dry_run) {
            (Some(why), ..) => format!("kept ({why})"),
            (None, Some(_), _) => "not removed".to_owned(),
            (None, None, true) => "would be removed".to_owned(),
            (None, None, false) => "removed".to_owned(),
        };
        if kept.is_none() && failed.is_none() {
            count += 1;
            bytes += leftover.bytes;
        }
        let (path, about) =
            (leftover.path.display().to_string(), format!("{}, {}: {verb}", leftover.kind.words(), format_bytes(leftover.bytes)));
        // A path stays whole, so that it can be copied.
        let between = if path.chars().count() + 2 + about.chars().count() <= width { "  " } else { "\n    " };
        text.push_str(&format!("{path}{between}{about}\n"));
    }
    let what = if dry_run { "would be removed" } else { "removed" };
    text.push_str(&match (outcomes.is_empty(), count) {
        (true, _) => "Nothing was left behind.\n".to_owned(),
        (false, 1) => format!("1 file or directory {what}, {}.\n", format_bytes(bytes)),
        (false, count) => format!("{count} files or directories {what}, {}.\n", format_bytes(bytes)),
    });
    text
}

fn as_json(outcome: &Outcome) -> Value {
    let Outcome { leftover, kept, failed } = outcome;
    json!({"path": leftover.path.display().to_string(), "kind": leftover.kind.as_str(), "bytes": leftover.bytes, "used_by": leftover.user.and_then(User::process),
           "kept": kept, "error": failed})
}
