//! `firsttouch top --replay`

use super::batch::Format;
use super::interactive::palette;
use super::{by_signal, delay, window};
use crate::arguments::Top;
use crate::exit::DONE;
use anyhow::{Context, Result};
use firsttouch_monitor::Snapshot;
use firsttouch_monitor::recording::Reader;
use firsttouch_system::launch::signals::Signals;
use firsttouch_top::{Left, Recorded, View, replay};
use std::path::Path;

pub fn run(arguments: &Top, file: &Path, is_batch: bool) -> Result<u8> {
    let mut record = Record(Reader::open(file)?);
    if is_batch {
        return print(arguments, &mut record);
    }
    let signals = Signals::catch()?;
    let mut view = View::new(window(arguments), delay(arguments), None);
    let left = replay(&mut record, &mut view, palette(), &signals).with_context(|| format!("cannot show record {}", file.display()))?;
    Ok(if let Left::Signal(signal) = left { by_signal(signal) } else { DONE })
}

fn print(arguments: &Top, record: &mut Record) -> Result<u8> {
    let mut format = Format::of(arguments);
    let most = arguments.count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    for number in 0..record.0.count().min(most) {
        let snapshot = record.0.at(number)?;
        if !format.print(&snapshot)? {
            break;
        }
    }
    Ok(DONE)
}

struct Record(Reader);

impl Recorded for Record {
    fn count(&self) -> usize {
        self.0.count()
    }

    fn at(&mut self, number: usize) -> std::result::Result<Snapshot, String> {
        self.0.at(number).map_err(|error| format!("{error:#}"))
    }
}
