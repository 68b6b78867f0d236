//! `firsttouch top` on a terminal.

use super::{Started, by_signal, delay, window};
use crate::arguments::Top;
use crate::exit::DONE;
use crate::terminal::style;
use anyhow::{Context, Result};
use firsttouch_monitor::Monitor;
use firsttouch_monitor::recording::Writer;
use firsttouch_system::launch::signals::Signals;
use firsttouch_top::{Also, Left, Live, Palette, View, watch};
use std::io::stdout;

/// SIGINT.
const INTERRUPT: i32 = 2;

pub fn run(arguments: &Top, monitor: Monitor, started: &Started, record: Option<Writer>) -> Result<u8> {
    // Before any thread is started: all of them leave signals to this one.
    let signals = Signals::catch()?;
    let mut view = View::new(window(arguments), delay(arguments), started.pid);
    let has_program = monitor.has_program();
    let live = Live::start(monitor, view.request(), view.delay, record.map(written)).context("cannot watch this machine")?;
    let (left, monitor) = watch(live, &mut view, palette(), &signals).context("cannot use the terminal")?;
    let signal = match left {
        Left::Quit => None,
        Left::Interrupted => Some(INTERRUPT).filter(|_| has_program),
        Left::Signal(signal) => Some(signal),
    };
    match (monitor, signal) {
        (Some(mut monitor), signal) if has_program => {
            if let Some(signal) = signal {
                monitor.pass_on(signal);
            }
            Ok(started.status(&mut monitor, &signals))
        }
        (_, Some(signal)) => Ok(by_signal(signal)),
        (_, None) => Ok(DONE),
    }
}

/// Writes each snapshot to the record too.
fn written(mut writer: Writer) -> Also {
    Box::new(move |snapshot| writer.add(snapshot).map_err(|error| format!("{error:#}; the record ends here")))
}

pub fn palette() -> Palette {
    Palette { has_colours: style(&stdout()).colour }
}
