//! Gives the frames of a profile their functions and lines. Done once the target has ended, so that it costs it nothing.

use anyhow::Result;
use firsttouch_model::metadata::{Entry, Symbols};
use firsttouch_model::rows::{Frame, Id, Profile, Site};
use firsttouch_profile::Writer;
use firsttouch_symbols::{Resolved, Symbolizer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

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
    writer.meta(Entry::Symbolized)?;
    writer.flush()?;
    writer.finish()
}

/// Symbolises a profile in memory, if its file was not (firsttouch was killed before it could).
pub fn symbolize_profile(profile: &mut Profile) {
    if profile.meta.symbols == Symbols::None {
        let start = profile.meta.start_unix_s.and_then(|start| i64::try_from(start).ok()).unwrap_or(i64::MAX);
        let changed = |module: &str| std::fs::metadata(module).is_ok_and(|file| file.mtime() > start);
        symbolize(&mut profile.sites, changed, |_, _| {});
        profile.meta.symbols = Symbols::InMemory;
    }
}

/// What is known of a place: none where nothing is.
type Places = HashMap<(String, u64), Vec<Resolved>>;

fn symbolize(sites: &mut BTreeMap<Id, Site>, skip: impl Fn(&str) -> bool, progress: impl FnMut(usize, usize)) {
    let mut wanted: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for frame in sites.values().flat_map(|site| &site.frames) {
        if let (Some(module), Some(offset)) = (&frame.module, frame.offset)
            && !skip(module)
        {
            wanted.entry(module).or_default().insert(offset);
        }
    }
    let places = resolve_all(wanted, progress);
    for site in sites.values_mut() {
        site.frames = site.frames.iter().flat_map(|frame| expand(frame, &places)).collect();
    }
}

/// Resolves the places, module by module, on as many threads as there are CPUs: the user waits. `progress` is told (done, all).
fn resolve_all(wanted: BTreeMap<&str, BTreeSet<u64>>, mut progress: impl FnMut(usize, usize)) -> Places {
    let all = wanted.values().map(BTreeSet::len).sum();
    let mut modules: Vec<(&str, BTreeSet<u64>)> = wanted.into_iter().collect();
    // The largest first: what is left for the end is short.
    modules.sort_by_cached_key(|(module, _)| std::cmp::Reverse(std::fs::metadata(module).map_or(0, |file| file.len())));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(modules.len());
    let next = AtomicUsize::new(0);
    let (sender, resolved) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(|| resolve_modules(&modules, &next, sender));
        }
        drop(sender);
        let mut places = Places::new();
        for (place, found) in resolved {
            progress(places.len(), all);
            places.insert(place, found);
        }
        places
    })
}

/// A worker: takes the next module until none is left.
fn resolve_modules(modules: &[(&str, BTreeSet<u64>)], next: &AtomicUsize, sender: mpsc::Sender<((String, u64), Vec<Resolved>)>) {
    while let Some((module, offsets)) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
        // Nobody looks for lines in the C library; its debug package alone would take longer to read than all the rest.
        let system = ["/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/"].iter().any(|folder| module.starts_with(folder));
        let mut symbolizer = if system { Symbolizer::with_debug_roots(Vec::new()) } else { Symbolizer::new() };
        for &offset in offsets {
            let found = symbolizer.resolve(Path::new(module), offset);
            if sender.send((((*module).to_owned(), offset), found)).is_err() {
                return;
            }
        }
    }
}

/// One code address may be several frames: the functions inlined there, and the one that holds them.
fn expand(frame: &Frame, places: &Places) -> Vec<Frame> {
    let place = frame.module.clone().zip(frame.offset);
    let Some(resolved) = place.and_then(|place| places.get(&place)).filter(|resolved| !resolved.is_empty()) else {
        return vec![frame.clone()];
    };
    resolved
        .iter()
        .map(|r| Frame {
            inlined: r.inlined,
            function: r.function.clone(),
            file: r.file.as_ref().map(|f| f.to_string_lossy().into_owned()),
            line: r.line,
            ..frame.clone()
        })
        .collect()
}
