//! Adds functions and lines to the frames of a profile file. Done after the target has ended, so that it costs the target nothing.

use crate::error::{Result, convert};
use crate::generated_names;
use crate::track::generated_code::GeneratedCode;
use firsttouch_model::generated_code::is_generated;
use firsttouch_model::rows::metadata::{Entry, Symbols};
use firsttouch_model::rows::{Id, Profile, Site, SourceFile};
use firsttouch_profile::Writer;
use firsttouch_symbols::frames::symbolize_sites;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc;
use std::thread::Builder;

/// Symbolises the profile file at `path` in place, except code of the modules `without`. Names of `generated` code come from the files
/// of its runtimes. Calls `progress` with (done, all). Returns the profile as it is in the file now, so that it need not be read again.
///
/// # Errors
/// When the file cannot be read or written.
pub fn symbolize_file(
    path: &Path,
    without: &[String],
    generated: &GeneratedCode,
    mut progress: impl FnMut(usize, usize),
) -> Result<Profile> {
    // The user is waiting: names are looked up while the rest of the profile is read.
    let (read, sites) = std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let reading = move || firsttouch_profile::open_with(path, |sites| drop(sender.send(sites.clone())));
        let reader = Builder::new().spawn_scoped(scope, reading);
        // Without a thread, or an error before the call stacks, nothing comes.
        let sites = receiver.recv().ok().map(|sites| with_names(sites, without, generated, &mut progress));
        let read = match reader {
            Ok(reader) => reader.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => firsttouch_profile::open(path),
        };
        (read, sites)
    });
    let mut profile = read.map_err(convert::profile)?;
    profile.sites = sites.unwrap_or_else(|| with_names(std::mem::take(&mut profile.sites), without, generated, &mut progress));
    profile.meta.notes.extend(generated_names::notes(&profile.sites, generated));
    profile.source_files = source_files(&profile.sites);
    write(path, &profile).map_err(convert::profile)?;
    profile.meta.symbols = Symbols::InFile;
    Ok(profile)
}

/// Call stacks with the names of their code.
fn with_names(
    mut sites: BTreeMap<Id, Site>,
    without: &[String],
    generated: &GeneratedCode,
    progress: impl FnMut(usize, usize),
) -> BTreeMap<Id, Site> {
    generated_names::name_sites(&mut sites, generated);
    symbolize_sites(&mut sites, |module| is_generated(module) || without.iter().any(|w| w == module), progress);
    sites
}

/// The source files that the frames name, as they are now. The program names them, so that not all need be source code.
fn source_files(sites: &BTreeMap<Id, Site>) -> BTreeMap<String, SourceFile> {
    let names: BTreeSet<&String> = sites.values().flat_map(|site| &site.frames).filter_map(|frame| frame.file.as_ref()).collect();
    let found = |name: &String| Some((name.clone(), firsttouch_symbols::source_file(Path::new(name))?));
    names.into_iter().filter_map(found).collect()
}

fn write(path: &Path, profile: &Profile) -> convert::Written {
    let mut writer = Writer::reopen(path)?;
    for site in profile.sites.values() {
        writer.site(site)?;
    }
    for (name, file) in &profile.source_files {
        writer.source_file(name, file)?;
    }
    if !profile.meta.notes.is_empty() {
        writer.meta(Entry::Notes(&profile.meta.notes))?;
    }
    writer.meta(Entry::Symbolized)?;
    writer.flush()?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::Frame;
    use firsttouch_system::proc;

    /// Check that of the files that a program names, only source files are kept.
    #[test]
    fn only_source_files_are_kept() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let frame = |name: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, "x\n").expect("a file");
            Frame { file: path.to_str().map(str::to_owned), ..Frame::default() }
        };
        let frames = ["shadow", "a.c"].map(frame).into();
        let kept = source_files(&BTreeMap::from([(1, Site { id: 1, process: 0, frames })]));
        assert_eq!(kept.into_keys().collect::<Vec<_>>(), [directory.path().join("a.c").to_str().expect("a name")]);
    }

    /// Check that the profile in memory is the one in the file, so that nobody has to read the file again.
    #[test]
    fn what_is_returned_is_what_was_written() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a.ftp");
        let library = proc::maps::read(Path::new("/"), std::process::id().cast_signed()).into_iter().find(|m| m.name.contains("/libc."));
        let module = library.expect("the C library is mapped").name;
        let frame = |offset| Frame { address: 7, module: Some(module.clone()), offset: Some(offset), ..Frame::default() };
        let frames = (0x3_0000..0x10_0000).step_by(0x1_0000).map(frame).collect();
        let writer = Writer::create(&path).expect("a profile");
        writer.site(&Site { id: 1, process: 0, frames }).expect("a site");
        writer.finish().expect("a file");
        let returned = symbolize_file(&path, &[], &GeneratedCode::default(), |_, _| {}).expect("symbols");
        assert!(returned.sites[&1].frames.iter().any(|frame| frame.function.is_some()), "{:?}", returned.sites[&1]);
        assert_eq!(returned, firsttouch_profile::open(&path).expect("the profile"));
    }
}
