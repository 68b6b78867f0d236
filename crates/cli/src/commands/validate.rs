//! `firsttouch validate`

use crate::arguments::Validate;
use crate::output::{print, print_json};
use crate::terminal::style;
use anyhow::Result;
use firsttouch_predict::{experiments, validate};
use firsttouch_report::{validation_markdown, validation_text};
use std::io::stdout;

pub fn run(arguments: &Validate) -> Result<u8> {
    let validation = validate::validate(&experiments::all()?)?;
    if arguments.json {
        print_json(&validation)?;
    } else if arguments.markdown {
        print(&validation_markdown(&validation))?;
    } else {
        print(&validation_text(&validation, style(&stdout())))?;
    }
    Ok(0)
}
