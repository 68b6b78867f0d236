//! Gives the frames of a profile their functions and lines. Done once the target has ended, so that it costs it nothing.

use anyhow::Result;
use firsttouch_profile::{Frame, Id, Profile, Site, Writer, meta};
use firsttouch_symbols::Symbolizer;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Symbolises the profile file at `path` in place, but not code of the modules `without`; `progress` is told (done, all).
///
/// # Errors
/// When the file cannot be read or written.
pub fn symbolize_file(path: &Path, without: &[String], progress: impl FnMut(usize, usize)) -> Result<()> {
    let mut profile = firsttouch_profile::open(path)?;
    symbolize(&mut profile.sites, |module| without.iter().any(|w| w == module), progress);
    let mut writer = Writer::reopen(path)?;
    for site in profile.sites.values() {
        writer.site(site)?;
    }
    writer.meta(meta::SYMBOLIZED, "yes")?;
    writer.flush()?;
    writer.finish()
}

/// Symbolises a profile in memory, if its file was not (firsttouch was killed before it could).
pub fn symbolize_profile(profile: &mut Profile) {
    if !profile.meta.contains_key(meta::SYMBOLIZED) {
        let start = profile.meta.get(meta::START_UNIX_S).and_then(|s| s.parse::<i64>().ok()).unwrap_or(i64::MAX);
        let changed = |module: &str| std::fs::metadata(module).is_ok_and(|file| file.mtime() > start);
        symbolize(&mut profile.sites, changed, |_, _| {});
        profile.meta.insert(meta::SYMBOLIZED.to_owned(), "at report time".to_owned());
    }
}

/// One symbolizer for the user's files, and one for the system's that does without separate debug files.
struct Symbolizers {
    own: Symbolizer,
    system: Symbolizer,
}

fn symbolize(sites: &mut BTreeMap<Id, Site>, mut skip: impl FnMut(&str) -> bool, mut progress: impl FnMut(usize, usize)) {
    let mut symbolizers = Symbolizers { own: Symbolizer::new(), system: Symbolizer::with_debug_roots(Vec::new()) };
    let all = sites.len();
    for (done, site) in sites.values_mut().enumerate() {
        progress(done, all);
        let mut named = |frame: &Frame| {
            if frame.module.as_deref().is_some_and(&mut skip) { vec![frame.clone()] } else { expand(frame, &mut symbolizers) }
        };
        site.frames = site.frames.iter().flat_map(&mut named).collect();
    }
}

/// One code address may be several frames: the functions inlined there, and the one that holds them.
fn expand(frame: &Frame, symbolizers: &mut Symbolizers) -> Vec<Frame> {
    let (Some(module), Some(offset)) = (&frame.module, frame.offset) else { return vec![frame.clone()] };
    // Nobody looks for lines in the C library; its debug package alone would take longer to read than all the rest.
    let system = ["/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/"].iter().any(|folder| module.starts_with(folder));
    let symbolizer = if system { &mut symbolizers.system } else { &mut symbolizers.own };
    let resolved = symbolizer.resolve(Path::new(module), offset);
    if resolved.is_empty() {
        return vec![frame.clone()];
    }
    resolved
        .into_iter()
        .map(|r| Frame {
            inlined: r.inlined,
            function: r.function,
            file: r.file.map(|f| f.to_string_lossy().into_owned()),
            line: r.line,
            ..frame.clone()
        })
        .collect()
}
