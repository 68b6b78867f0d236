//! Adds functions and lines to the frames of a profile file. Done after the target has ended, so that it costs the target nothing.

use crate::error::{Result, convert};
use firsttouch_model::metadata::{Entry, Symbols};
use firsttouch_model::rows::Profile;
use firsttouch_profile::Writer;
use firsttouch_symbols::frames::symbolize_sites;
use std::path::Path;

/// Symbolises the profile file at `path` in place, except code of the modules `without`. Calls `progress` with (done, all). Returns
/// the profile as it is in the file now, so that it need not be read again.
///
/// # Errors
/// When the file cannot be read or written.
pub fn symbolize_file(path: &Path, without: &[String], progress: impl FnMut(usize, usize)) -> Result<Profile> {
    let mut profile = firsttouch_profile::open(path).map_err(convert::profile)?;
    symbolize_sites(&mut profile.sites, |module| without.iter().any(|w| w == module), progress);
    write(path, &profile).map_err(convert::profile)?;
    profile.meta.symbols = Symbols::InFile;
    Ok(profile)
}

fn write(path: &Path, profile: &Profile) -> anyhow::Result<()> {
    let mut writer = Writer::reopen(path)?;
    for site in profile.sites.values() {
        writer.site(site)?;
    }
    writer.meta(Entry::Symbolized)?;
    writer.flush()?;
    writer.finish()
}
