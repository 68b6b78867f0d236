//! Memory bandwidth of the whole system, by node: from counters of memory controllers if the kernel offers them, else from resctrl.
//!
//! Controllers count the transfers of a node's memory, whoever asks for them. resctrl counts what the CPUs of a node ask for, wherever the memory
//! is. Both count other programs too.

mod event_format;
mod meter;
mod places;
mod resctrl;
mod uncore;

pub use meter::{Count, Grown, Meter, Value};
pub use uncore::ControllerEvent;

use crate::calls::perf::{Attributes, Event};
use crate::files::Root;
use firsttouch_model::facts::BandwidthCounters;
use meter::{Counter, What};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Opens the counter of an event.
pub type Opener<'a> = &'a dyn Fn(&ControllerEvent) -> io::Result<Box<dyn Count>>;

/// Opens the counters of this system.
///
/// # Errors
/// Why the system offers no counters, and what would help.
pub fn open() -> Result<Meter, BandwidthCounters> {
    open_with(Path::new("/"), &open_event)
}

/// Whether the counters of this system can be opened. They are closed again.
#[must_use]
pub fn probe() -> BandwidthCounters {
    open().map_or_else(|missing| missing, |meter| BandwidthCounters::Readable(meter.detail().to_owned()))
}

/// Whether an ordinary user could open the counters of a recorded machine.
#[must_use]
pub fn recorded(root: &Path, perf_event_paranoid: Option<i64>) -> BandwidthCounters {
    let may = perf_event_paranoid.is_some_and(|level| level <= 0);
    let open = |_: &ControllerEvent| -> io::Result<Box<dyn Count>> {
        if may { Ok(Box::new(Value::default())) } else { Err(io::Error::from_raw_os_error(libc::EACCES)) }
    };
    open_with(root, &open).map_or_else(|missing| missing, |meter| BandwidthCounters::Readable(meter.detail().to_owned()))
}

/// Opens the counters that the files below `root` describe.
///
/// # Errors
/// As [`open`].
pub fn open_with(root: &Path, opener: Opener<'_>) -> Result<Meter, BandwidthCounters> {
    let files = Root::new(root);
    let (mut why, mut remedies) = (Vec::new(), Vec::new());
    match uncore::find(&files) {
        Ok(events) if events.is_empty() => {}
        Ok(events) => match of_controllers(&events, opener) {
            Ok(meter) => return Ok(meter),
            Err((event, error)) => {
                why.push(format!("{}: perf_event_open: {error}", event.unit));
                if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) {
                    remedies.push("sudo sysctl kernel.perf_event_paranoid=0, or run firsttouch with the capability CAP_PERFMON");
                }
            }
        },
        Err(error) => why.push(error),
    }
    match resctrl::find(&files) {
        Ok(domains) if domains.is_empty() => {
            if resctrl::is_not_mounted(&files) {
                why.push("resctrl is not mounted".to_owned());
                remedies.push("sudo mount -t resctrl resctrl /sys/fs/resctrl");
            }
        }
        Ok(domains) => return Ok(of_resctrl(root, domains)),
        Err(error) => why.push(error),
    }
    Err(if why.is_empty() {
        BandwidthCounters::Missing
    } else {
        BandwidthCounters::Refused { why: why.join("; "), remedy: remedies.join("; or: ") }
    })
}

fn of_controllers<'e>(events: &'e [ControllerEvent], opener: Opener<'_>) -> Result<Meter, (&'e ControllerEvent, io::Error)> {
    let mut counters = Vec::new();
    for event in events {
        let count = opener(event).map_err(|error| (event, error))?;
        let what = if event.is_read { What::Read } else { What::Write };
        counters.push((event.node, Counter { what, bytes_per_count: event.bytes_per_count, count }));
    }
    let units: BTreeSet<&str> = events.iter().map(|event| event.unit.as_str()).collect();
    let first = units.first().copied().unwrap_or_default();
    let detail = if units.len() > 1 { format!("{first} and {} more memory controllers", units.len() - 1) } else { first.to_owned() };
    Ok(Meter::new("uncore", detail, counters))
}

fn of_resctrl(root: &Path, domains: Vec<resctrl::Domain>) -> Meter {
    let detail = format!("{} of resctrl in {}", resctrl::TOTAL, root.join(resctrl::MOUNT).display());
    let mut counters = Vec::new();
    for domain in domains {
        let mut add = |what, file: String| {
            let count = Box::new(CountFile { root: root.to_owned(), file });
            counters.push((domain.node, Counter { what, bytes_per_count: 1.0, count }));
        };
        add(What::Total, domain.total);
        if let Some(local) = domain.local {
            add(What::Local, local);
        }
    }
    Meter::new("resctrl", detail, counters)
}

fn open_event(event: &ControllerEvent) -> io::Result<Box<dyn Count>> {
    let cpu = i32::try_from(event.cpu).map_err(io::Error::other)?;
    Ok(Box::new(Event::open(&Attributes::counter(event.kind, event.config), -1, cpu)?))
}

impl Count for Event {
    fn value(&self) -> Option<Value> {
        let reading = self.read();
        (reading.enabled_ns > 0).then_some(Value { count: reading.count, enabled_ns: reading.enabled_ns, running_ns: reading.running_ns })
    }
}

/// A file with a number of bytes.
struct CountFile {
    root: PathBuf,
    file: String,
}

impl Count for CountFile {
    fn value(&self) -> Option<Value> {
        let text = Root::new(&self.root).text(&self.file).ok()??;
        Some(Value { count: resctrl::bytes(&text)?, ..Value::default() })
    }
}
