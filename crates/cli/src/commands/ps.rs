//! `firsttouch ps`

use crate::arguments::Ps;
use crate::exit;
use crate::output::{print, print_json};
use crate::processes::of_each;
use crate::terminal::style;
use anyhow::Result;
use firsttouch_report::{PsJson, ps_text};
use firsttouch_system::process;
use std::io::stdout;
use std::path::Path;

pub fn run(arguments: &Ps) -> Result<u8> {
    let root = Path::new("/");
    let processes = of_each(&arguments.process, |pid| Ok(process::threads(root, pid)?))?;
    if arguments.json {
        print_json(&PsJson::new(&processes))?;
    } else {
        print(&ps_text(&processes, style(&stdout())))?;
    }
    Ok(exit::DONE)
}
