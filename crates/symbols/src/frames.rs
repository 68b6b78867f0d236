//! Adds functions and lines to the frames of a profile in memory.

use crate::tail_calls::{Calls, JUMPED_TO};
use crate::{Resolved, Symbolizer};
use firsttouch_model::generated_code::is_generated;
use firsttouch_model::rows::metadata::Symbols;
use firsttouch_model::rows::{Frame, Id, Profile, Site};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Symbolises a profile in memory if its file is not symbolised (firsttouch was killed before it could do so); of a merged one, the parts that are not.
pub fn symbolize_profile(profile: &mut Profile) {
    if profile.meta.symbols == Symbols::None {
        let start = profile.meta.start_unix_s.and_then(|start| i64::try_from(start).ok()).unwrap_or(i64::MAX);
        let changed = |module: &str| is_generated(module) || std::fs::metadata(module).is_ok_and(|file| file.mtime() > start);
        let has_names = |site: Id| {
            let part = profile.parts.partition_point(|part| part.first.site <= site).checked_sub(1);
            part.is_some_and(|part| profile.parts[part].meta.symbols == Symbols::InFile)
        };
        let (named, mut others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            take(&mut profile.sites).into_iter().partition(|(site, _)| has_names(*site));
        symbolize_sites(&mut others, changed, |_, _| {});
        profile.sites = named;
        profile.sites.append(&mut others);
        profile.meta.symbols = Symbols::InMemory;
    }
}

/// Resolved frames by (module, offset).
type ByOffset = HashMap<(String, u64), Vec<Resolved>>;

/// By the call of a library (module, offset): the jump in the function that the library called, and the functions there.
type CalledByLibrary = HashMap<(String, u64), (u64, Vec<Resolved>)>;

/// Code to resolve, by module.
type Wanted<'a> = BTreeMap<&'a str, BTreeSet<u64>>;

/// Calls that are looked at: each costs a pass over the DWARF of a compilation unit.
const MOST_JUMPS: usize = 256;

/// Files of which what was read is kept until these calls are looked at, bytes. The others are read again.
const MOST_KEPT_BYTES: u64 = 256 << 20;

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
    let (resolved, symbolizers) = resolve_all(wanted, &callers_of_systems(sites), |done| progress(done, all));
    let (jumped, by_libraries) = jumped_all(&possible_jumps(sites, &resolved), symbolizers);
    for site in sites.values_mut() {
        let missing = |at: usize| {
            let inner = site.frames.get(at.checked_sub(1)?)?;
            touching(inner, &resolved).and_then(|_| jumped.get(&key(&site.frames[at])?))
        };
        let below_library = below_library(site, &resolved).and_then(|call| Some((call, by_libraries.get(&key(call)?)?)));
        let called = below_library.into_iter().flat_map(|(call, (offset, frames))| {
            let moved = offset.wrapping_sub(call.offset.unwrap_or_default());
            let there = Frame { address: call.address.wrapping_add(moved), offset: Some(*offset), ..call.clone() };
            frames.iter().map(move |one| with(&there, one))
        });
        let called: Vec<Frame> = called.collect();
        let expanded = site.frames.iter().enumerate().flat_map(|(at, frame)| {
            let missing = missing(at).into_iter().flatten().map(|one| with(frame, one));
            let called = called.iter().filter(|_| at == 1).cloned();
            called.chain(missing).chain(expand(frame, &resolved)).collect::<Vec<Frame>>()
        });
        site.frames = expanded.collect();
    }
}

/// The call of a function of an OpenMP library that may have called a region of the program: of a stack whose innermost function is one that programs jump
/// to. Of the OpenMP library the stack has that one function: `GOMP_parallel` calls a region itself. Where the library touches memory of its own, the stack
/// has more of its functions.
fn below_library<'a>(site: &'a Site, resolved: &ByOffset) -> Option<&'a Frame> {
    let [inner, library, call, ..] = site.frames.as_slice() else { return None };
    touching(inner, resolved)?;
    let is_library = library.module.as_deref().is_some_and(|module| is_system(module) && is_openmp(module));
    (is_library && call.module.as_deref().is_some_and(|module| !is_system(module))).then_some(call)
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

/// Modules that may have called a system library by a jump.
fn callers_of_systems(sites: &BTreeMap<Id, Site>) -> BTreeSet<String> {
    let pairs = sites.values().flat_map(|site| site.frames.windows(2));
    let caller = |pair: &[Frame]| pair[0].module.as_deref().is_some_and(is_system).then(|| pair[1].module.clone()).flatten();
    pairs.filter_map(caller).filter(|module| !is_system(module)).collect()
}

/// Calls of other modules from which a system library was reached: module, offset, the library's function, and whether another library is between them.
type Jumps = BTreeMap<(String, u64), (String, Calls)>;

fn possible_jumps(sites: &BTreeMap<Id, Site>, resolved: &ByOffset) -> Jumps {
    let pairs = sites.values().flat_map(|site| site.frames.windows(2));
    let call = |pair: &[Frame]| {
        let outer = key(&pair[1]).filter(|outer| !is_system(&outer.0) && resolved.contains_key(outer))?;
        Some((outer, (touching(&pair[0], resolved)?.to_owned(), Calls::Directly)))
    };
    let through = |site: &Site| {
        let call = key(below_library(site, resolved)?)?;
        Some((call, (touching(site.frames.first()?, resolved)?.to_owned(), Calls::ThroughLibrary)))
    };
    let calls = sites.values().filter_map(through).chain(pairs.filter_map(call));
    calls.take(MOST_JUMPS * MOST_JUMPS).collect::<Jumps>().into_iter().take(MOST_JUMPS).collect()
}

/// Whether a library is one of OpenMP: libgomp, libomp, libiomp5.
fn is_openmp(module: &str) -> bool {
    ["libgomp", "libomp", "libiomp"].iter().any(|name| module.rsplit('/').next().is_some_and(|file| file.starts_with(name)))
}

/// Lines of system libraries are not read: they are of no use in a report, and the debug package of the C library alone would take longer to read than
/// everything else.
fn is_system(module: &str) -> bool {
    ["/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/"].iter().any(|folder| module.starts_with(folder))
}

/// Resolves code addresses, module by module, on as many threads as there are CPUs, because the user is waiting. Returns the frames at each address,
/// and what was read of the modules `kept`, as far as that is not too much.
fn resolve_all<'a>(
    wanted: Wanted<'a>,
    kept: &BTreeSet<String>,
    mut progress: impl FnMut(usize),
) -> (ByOffset, HashMap<&'a str, Symbolizer>) {
    let bytes = |module: &str| std::fs::metadata(module).map_or(0, |file| file.len());
    let mut modules: Vec<(&str, BTreeSet<u64>, u64)> =
        wanted.into_iter().map(|(module, offsets)| (module, offsets, bytes(module))).collect();
    // The largest first, so that all threads end at about the same time.
    modules.sort_by_key(|(_, _, bytes)| std::cmp::Reverse(*bytes));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(modules.len());
    let (next, left) = (AtomicUsize::new(0), AtomicU64::new(MOST_KEPT_BYTES));
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, modules, next, left) = (sender.clone(), &modules, &next, &left);
            scope.spawn(move || {
                while let Some((module, offsets, bytes)) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut symbolizer = symbolizer_of(module);
                    let frames = |offset: &u64| ((*module).to_owned(), *offset);
                    let resolved = offsets.iter().map(|offset| (frames(offset), symbolizer.resolve(Path::new(module), *offset)));
                    let resolved: Vec<_> = resolved.collect();
                    let is_kept = kept.contains(*module)
                        && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(*bytes)).is_ok();
                    if sender.send((resolved, is_kept.then_some((*module, symbolizer)))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let (mut all, mut symbolizers) = (ByOffset::new(), HashMap::new());
        for (resolved, symbolizer) in receiver {
            progress(all.len());
            all.extend(resolved);
            symbolizers.extend(symbolizer);
        }
        (all, symbolizers)
    })
}

fn symbolizer_of(module: &str) -> Symbolizer {
    if is_system(module) { Symbolizer::with_debug_roots(Vec::new()) } else { Symbolizer::new() }
}

/// The frames that are missing above calls, and those that are missing above libraries that the calls reach. `read`: what was read of their modules.
fn jumped_all(jumps: &Jumps, mut read: HashMap<&str, Symbolizer>) -> (ByOffset, CalledByLibrary) {
    let mut of_module: BTreeMap<&str, Vec<(u64, &str, Calls)>> = BTreeMap::new();
    for ((module, offset), (inner, calls)) in jumps {
        of_module.entry(module).or_default().push((*offset, inner, *calls));
    }
    let (mut found, mut by_libraries) = (ByOffset::new(), CalledByLibrary::new());
    for (module, calls) in of_module {
        let mut symbolizer = read.remove(module).unwrap_or_else(|| symbolizer_of(module));
        for (offset, inner, calls) in calls {
            let call = (module.to_owned(), offset);
            if calls == Calls::ThroughLibrary {
                by_libraries.extend(symbolizer.jumped_from_library(Path::new(module), offset, inner).map(|found| (call, found)));
                continue;
            }
            let missing = symbolizer.jumped(Path::new(module), offset, inner);
            if !missing.is_empty() {
                found.insert(call, missing);
            }
        }
    }
    (found, by_libraries)
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
        column: resolved.column,
        ..frame.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::metadata::Metadata;
    use firsttouch_model::rows::{FirstIds, Part};

    /// Check that the frames of a merged profile that have names keep them as they are, and that the others get some.
    #[test]
    fn parts_with_names_keep_them() {
        let this = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        let named = Frame { module: Some(this.clone()), offset: main_offset(), function: Some("outer".into()), ..Frame::default() };
        let inner = Frame { inlined: true, function: Some("inner".into()), ..named.clone() };
        let part = |id, symbols| Part {
            id,
            first: FirstIds { site: 1 + id, ..FirstIds::default() },
            meta: Metadata { symbols, ..Metadata::default() },
            ..Part::default()
        };
        let site = |id, frames| (id, Site { id, process: 0, frames });
        let sites = [site(1, vec![inner, named]), site(2, vec![Frame { offset: main_offset(), module: Some(this), ..Frame::default() }])];
        let mut profile =
            Profile { sites: sites.into(), parts: vec![part(0, Symbols::InFile), part(1, Symbols::None)], ..Profile::default() };
        let before = profile.sites[&1].clone();
        symbolize_profile(&mut profile);
        assert_eq!(profile.sites[&1], before);
        let names: Vec<_> = profile.sites[&2].frames.iter().filter_map(|frame| frame.function.clone()).collect();
        assert!(names.iter().any(|name| name.contains("parts_with_names_keep_them")), "{names:?}");
        // Alone, the same site has other frames: its names are looked up.
        let mut alone = Profile { sites: [(1, before.clone())].into(), ..Profile::default() };
        symbolize_profile(&mut alone);
        assert_ne!(alone.sites[&1], before);
    }

    /// The offset of this test's code in its file.
    fn main_offset() -> Option<u64> {
        let here = parts_with_names_keep_them as *const () as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
            let offset = u64::from_str_radix(rest.split_whitespace().nth(1)?, 16).ok()?;
            (start..end).contains(&here).then(|| here - start + offset)
        })
    }
}
