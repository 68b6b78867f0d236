//! `firsttouch report`

use super::usage;
use crate::arguments::Report;
use crate::judge::{Question, judge};
use crate::output::{print, print_json, style};
use anyhow::Result;
use firsttouch_report::text;

pub fn run(arguments: &Report) -> Result<u8> {
    let question = usage(Question::parse(&arguments.judge))?;
    let judged = judge(&arguments.profile, &question)?;
    if arguments.json {
        print_json(&judged.analysis)?;
    } else {
        let context = judged.context(&arguments.profile, true);
        print(&text(&judged.analysis, &context, style(&std::io::stdout())))?;
    }
    Ok(0)
}
