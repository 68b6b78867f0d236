//! Adds functions and lines to the frames of a profile in memory.

use crate::tail_calls::JUMPED_TO;
use crate::{Resolved, Symbolizer};
use firsttouch_model::generated_code::is_generated;
use firsttouch_model::rows::metadata::Symbols;
use firsttouch_model::rows::{Frame, Id, Profile, Site};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
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

/// Code to resolve, by module.
type Wanted<'a> = BTreeMap<&'a str, BTreeSet<u64>>;

/// Calls that are looked at: each costs a pass over the DWARF of a compilation unit.
const MOST_JUMPS: usize = 256;

/// Symbolises sites, except code of the modules that `skip` picks. Calls `progress` with (done, all).
pub fn symbolize_sites(sites: &mut BTreeMap<Id, Site>, skip: impl Fn(&str) -> bool, mut progress: impl FnMut(usize, usize)) {
    let mut wanted = Wanted::new();
    for frame in sites.values().flat_map(|site| &site.frames) {
        if let (Some(module), Some(offset)) = (&frame.module, frame.offset)
            && !skip(module)
        {
            wanted.entry(module).or_default().insert(offset);
        }
    }
    let all = wanted.values().map(BTreeSet::len).sum();
    let (system, own): (Wanted<'_>, Wanted<'_>) = wanted.into_iter().partition(|(module, _)| is_system(module));
    let mut resolved = resolve_all(system, &BTreeMap::new(), |done| progress(done, all)).0;
    let (jumps, before) = (possible_jumps(sites, &resolved), resolved.len());
    let (of_program, jumped) = resolve_all(own, &jumps, |done| progress(before + done, all));
    resolved.extend(of_program);
    for site in sites.values_mut() {
        let missing = |at: usize| {
            let inner = site.frames.get(at.checked_sub(1)?)?;
            touching(inner, &resolved).and_then(|_| jumped.get(&key(&site.frames[at])?))
        };
        let expanded = site.frames.iter().enumerate().flat_map(|(at, frame)| {
            let missing = missing(at).into_iter().flatten().map(|one| with(frame, one));
            missing.chain(expand(frame, &resolved)).collect::<Vec<Frame>>()
        });
        site.frames = expanded.collect();
    }
}

fn key(frame: &Frame) -> Option<(String, u64)> {
    frame.module.clone().zip(frame.offset)
}

/// The function that a frame is in, if it may be one that programs jump to. Empty if it is not known: variants of memset for a processor are no
/// exported symbols of the C library.
fn touching<'a>(frame: &Frame, resolved: &'a ByOffset) -> Option<&'a str> {
    let module = frame.module.as_deref().filter(|module| is_system(module))?;
    let name = resolved.get(&(module.to_owned(), frame.offset?))?.last().and_then(|one| one.function.as_deref()).unwrap_or_default();
    (name.is_empty() || JUMPED_TO.iter().any(|one| name.contains(one))).then_some(name)
}

/// Calls of other modules from which a system library was reached: module, offset, and the library's function.
type Jumps = BTreeMap<(String, u64), String>;

fn possible_jumps(sites: &BTreeMap<Id, Site>, resolved: &ByOffset) -> Jumps {
    let pairs = sites.values().flat_map(|site| site.frames.windows(2));
    let call = |pair: &[Frame]| {
        let outer = key(&pair[1]).filter(|(module, _)| !is_system(module))?;
        Some((outer, touching(&pair[0], resolved)?.to_owned()))
    };
    pairs.filter_map(call).take(MOST_JUMPS * MOST_JUMPS).collect::<Jumps>().into_iter().take(MOST_JUMPS).collect()
}

/// Lines of system libraries are not read: they are of no use in a report, and the debug package of the C library alone would take longer to read than
/// everything else.
fn is_system(module: &str) -> bool {
    ["/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/"].iter().any(|folder| module.starts_with(folder))
}

/// Resolves code addresses, module by module, on as many threads as there are CPUs, because the user is waiting. Returns the frames at each address,
/// and those that are missing above it.
fn resolve_all(wanted: Wanted<'_>, jumps: &Jumps, mut progress: impl FnMut(usize)) -> (ByOffset, ByOffset) {
    let mut modules: Vec<(&str, BTreeSet<u64>)> = wanted.into_iter().collect();
    // The largest first, so that all threads end at about the same time.
    modules.sort_by_cached_key(|(module, _)| std::cmp::Reverse(std::fs::metadata(module).map_or(0, |file| file.len())));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(modules.len());
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(|| resolve_modules(&modules, jumps, &next, sender));
        }
        drop(sender);
        let (mut resolved, mut jumped) = (ByOffset::new(), ByOffset::new());
        for (address, frames, missing) in receiver {
            progress(resolved.len());
            if !missing.is_empty() {
                jumped.insert(address.clone(), missing);
            }
            resolved.insert(address, frames);
        }
        (resolved, jumped)
    })
}

/// An address, the frames there, and those that are missing above it.
type Answer = ((String, u64), Vec<Resolved>, Vec<Resolved>);

/// A worker: takes modules until all are taken.
fn resolve_modules(modules: &[(&str, BTreeSet<u64>)], jumps: &Jumps, next: &AtomicUsize, sender: mpsc::Sender<Answer>) {
    while let Some((module, offsets)) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
        let mut symbolizer = if is_system(module) { Symbolizer::with_debug_roots(Vec::new()) } else { Symbolizer::new() };
        for &offset in offsets {
            let (path, address) = (Path::new(module), ((*module).to_owned(), offset));
            let found = symbolizer.resolve(path, offset);
            let missing = jumps.get(&address).map_or_else(Vec::new, |inner| symbolizer.jumped(path, offset, inner));
            if sender.send((address, found, missing)).is_err() {
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
    resolved.iter().map(|one| with(frame, one)).collect()
}

fn with(frame: &Frame, resolved: &Resolved) -> Frame {
    Frame {
        inlined: resolved.inlined,
        function: resolved.function.clone(),
        file: resolved.file.as_ref().map(|file| file.to_string_lossy().into_owned()),
        line: resolved.line,
        ..frame.clone()
    }
}
