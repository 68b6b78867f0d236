//! Adds functions and lines to the frames of a profile in memory.

use crate::{Resolved, Symbolizer};
use firsttouch_model::generated_code::is_generated;
use firsttouch_model::rows::metadata::Symbols;
use firsttouch_model::rows::{Frame, Id, Profile, Site};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Symbolises a profile in memory if its file is not symbolised (firsttouch was killed before it could do so).
pub fn symbolize_profile(profile: &mut Profile) {
    if profile.meta.symbols == Symbols::None {
        let start = profile.meta.start_unix_s.and_then(|start| i64::try_from(start).ok()).unwrap_or(i64::MAX);
        let changed = |module: &str| is_generated(module) || std::fs::metadata(module).is_ok_and(|file| file.mtime() > start);
        symbolize_sites(&mut profile.sites, changed, |_, _| {});
        profile.meta.symbols = Symbols::InMemory;
    }
}

/// Resolved frames by (module, offset).
type ByOffset = HashMap<(String, u64), Vec<Resolved>>;

/// Symbolises sites, except code of the modules that `skip` picks. Calls `progress` with (done, all).
pub fn symbolize_sites(sites: &mut BTreeMap<Id, Site>, skip: impl Fn(&str) -> bool, progress: impl FnMut(usize, usize)) {
    let mut wanted: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for frame in sites.values().flat_map(|site| &site.frames) {
        if let (Some(module), Some(offset)) = (&frame.module, frame.offset)
            && !skip(module)
        {
            wanted.entry(module).or_default().insert(offset);
        }
    }
    let resolved = resolve_all(wanted, progress);
    for site in sites.values_mut() {
        site.frames = site.frames.iter().flat_map(|frame| expand(frame, &resolved)).collect();
    }
}

/// Resolves code addresses, module by module, on as many threads as there are CPUs, because the user is waiting.
fn resolve_all(wanted: BTreeMap<&str, BTreeSet<u64>>, mut progress: impl FnMut(usize, usize)) -> ByOffset {
    let all = wanted.values().map(BTreeSet::len).sum();
    let mut modules: Vec<(&str, BTreeSet<u64>)> = wanted.into_iter().collect();
    // The largest first, so that all threads end at about the same time.
    modules.sort_by_cached_key(|(module, _)| std::cmp::Reverse(std::fs::metadata(module).map_or(0, |file| file.len())));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(modules.len());
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(|| resolve_modules(&modules, &next, sender));
        }
        drop(sender);
        let mut resolved = ByOffset::new();
        for (address, frames) in receiver {
            progress(resolved.len(), all);
            resolved.insert(address, frames);
        }
        resolved
    })
}

/// A worker: takes modules until all are taken.
fn resolve_modules(modules: &[(&str, BTreeSet<u64>)], next: &AtomicUsize, sender: mpsc::Sender<((String, u64), Vec<Resolved>)>) {
    while let Some((module, offsets)) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
        // Do not read lines of system libraries: they are of no use in a report, and the debug package of the C library alone would take
        // longer to read than everything else.
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

/// The frames for one code address: the functions inlined there, and the function that contains it.
fn expand(frame: &Frame, resolved: &ByOffset) -> Vec<Frame> {
    let address = frame.module.clone().zip(frame.offset);
    let Some(resolved) = address.and_then(|address| resolved.get(&address)).filter(|resolved| !resolved.is_empty()) else {
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
