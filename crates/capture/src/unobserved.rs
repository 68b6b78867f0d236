//! The profile of a program that runs unobserved: it says so, and takes the place of an older profile, which else would be taken for the new one.

use crate::error::{Result, convert};
use crate::options::Options;
use firsttouch_model::UNOBSERVED;
use firsttouch_model::rows::metadata::{Entry, Mode};
use firsttouch_profile::{Created, Writer};
use firsttouch_system::calls::clock::monotonic_ns;
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes a profile without evidence, whose verdict is [`UNOBSERVED`].
///
/// # Errors
/// When the file cannot be written.
pub fn write_unobserved(options: &Options) -> Result<Created> {
    let mut writer = Writer::create_at(&options.output).map_err(convert::profile)?;
    let command: Vec<String> = options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let now = monotonic_ns();
    writer.machine(&options.machine).map_err(convert::profile)?;
    for entry in [
        Entry::Command(&command),
        Entry::StartNs(now),
        Entry::EndNs(now),
        Entry::StartUnixS(unix),
        Entry::MinSizeBytes(options.min_size),
        Entry::ToolVersion(env!("CARGO_PKG_VERSION")),
        Entry::Mode(Mode::Launch),
        Entry::WriteFailure(UNOBSERVED),
    ] {
        writer.meta(entry).map_err(convert::profile)?;
    }
    if let Some(place) = &options.rank {
        writer.meta(Entry::Rank(place)).map_err(convert::profile)?;
    }
    writer.keep();
    let created = writer.created();
    writer.finish().map_err(convert::profile)?;
    Ok(created)
}
