//! OpenMP regions that no stack of their threads shows: a region that ends with a jump to memset leaves no frame. The stack of the thread that began it
//! names its call, and `symbols::frames` adds the region to it. Those of the other threads lead from memset through the OpenMP library to
//! the thread's start: theirs is the region from which the first thread ran the same code on the same object, if that is one.

use crate::Sources;
use firsttouch_model::rows::{Access, FirstTouch, Frame, Id, Object, Profile, SampledAccess, Site};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// Addresses before that of a touch at which objects began: the object that has it is among so many. (Objects that lived at other times may lie between.)
const MOST_BEGINS: usize = 64;

/// Code of a library that another library called: the first library's instruction, and the second library, in a process.
type Call<'p> = (Id, u64, &'p str);

/// Code of a library that was called by another library: the innermost frame of the program, `None` if it has none there.
fn called_by_library<'p>(site: &'p Site, sources: &dyn Sources) -> Option<(Call<'p>, Option<&'p Frame>)> {
    let is_own = |frame: &Frame| frame.module.as_deref().is_none_or(|module| sources.is_own_module(module));
    let (inner, outer) = site.frames.split_first().filter(|(inner, _)| !is_own(inner))?;
    let own = outer.iter().take_while(|frame| is_own(frame)).count();
    let library = outer.get(own)?.module.as_deref()?;
    let is_shown = own > 0 || !outer.iter().any(is_own);
    let call = (site.process, inner.address, library);
    (is_shown && Some(library) != inner.module.as_deref()).then_some((call, outer.first().filter(|_| own > 0)))
}

/// The site of each region without frames, by the object that it uses and how its code was called; `None` if they are several.
type Regions<'p> = HashMap<(Id, Call<'p>), Option<Id>>;

/// The profile with the region that the first thread was in as that of the other threads; `None` if none lacks it.
#[must_use]
pub(crate) fn with_regions(profile: &Profile, sources: &dyn Sources) -> Option<Profile> {
    let (mut shown, mut bare) = (HashMap::new(), HashMap::new());
    for site in profile.sites.values() {
        match called_by_library(site, sources) {
            Some((call, Some(region))) => _ = shown.insert(site.id, (call, region)),
            Some((call, None)) => _ = bare.insert(site.id, call),
            None => {}
        }
    }
    let calls: HashSet<Call<'_>> = shown.values().map(|(call, _)| *call).collect();
    bare.retain(|_, call| calls.contains(call));
    if bare.is_empty() {
        return None;
    }
    // By process and address: in the order of birth.
    let mut objects: BTreeMap<(Id, u64), Vec<&Object>> = BTreeMap::new();
    for object in &profile.objects {
        objects.entry((object.process, object.address)).or_default().push(object);
    }
    objects.values_mut().for_each(|there| there.sort_by_key(|object| object.born_ns));
    let object_at = |touch: &FirstTouch| {
        let mut begins = objects.range((touch.process, 0)..=(touch.process, touch.address)).rev().take(MOST_BEGINS);
        let last = |there: &Vec<&Object>| {
            let born = there.partition_point(|object| object.born_ns <= touch.time_ns);
            let object = *there.get(born.checked_sub(1)?)?;
            let has_address = touch.address.checked_sub(object.address)? < object.bytes;
            (has_address && object.died_ns.is_none_or(|died| touch.time_ns <= died)).then_some(object.id)
        };
        begins.find_map(|(_, there)| last(there))
    };
    let windows: HashMap<Id, Id> = profile.windows.iter().map(|window| (window.id, window.object)).collect();
    let of_touch = |touch: &FirstTouch| Some((touch.site?, object_at(touch)?));
    let of_access = |access: &Access| Some((access.site?, *windows.get(&access.window)?));
    let of_sample = |access: &SampledAccess| Some((access.site?, access.object));
    let mut regions = Regions::new();
    let touched = profile.first_touches.iter().filter(|touch| touch.site.is_some_and(|site| shown.contains_key(&site)));
    for (site, object) in touched
        .filter_map(of_touch)
        .chain(profile.accesses.iter().filter_map(of_access))
        .chain(profile.sampled_accesses.iter().filter_map(of_sample))
    {
        let Some(&(call, region)) = shown.get(&site) else { continue };
        let known = regions.entry((object, call)).or_insert(Some(site));
        let is_same =
            |other: &Id| shown.get(other).is_some_and(|(_, other)| (&other.module, other.offset) == (&region.module, region.offset));
        *known = known.filter(is_same).map(|other| other.min(site));
    }
    let region_of = |(site, object): (Id, Id)| *regions.get(&(object, *bare.get(&site)?))?;
    let mut known = profile.clone();
    for touch in known.first_touches.iter_mut().filter(|touch| touch.site.is_some_and(|site| bare.contains_key(&site))) {
        touch.site = of_touch(touch).and_then(region_of).or(touch.site);
    }
    for access in &mut known.accesses {
        access.site = of_access(access).and_then(region_of).or(access.site);
    }
    for access in &mut known.sampled_accesses {
        access.site = of_sample(access).and_then(region_of).or(access.site);
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::OwnHome;
    use firsttouch_model::rows::ObjectKind;

    const MEMSET: (&str, u64) = ("/lib/libc.so.6", 7);
    const MEMCPY: (&str, u64) = ("/lib/libc.so.6", 8);
    const LIBRARY: (&str, u64) = ("/lib/libgomp.so.1", 1);
    const START: (&str, u64) = ("/lib/libc.so.6", 2);
    const MAIN: (&str, u64) = ("/home/me/program", 3);
    const FIRST: (&str, u64) = ("/home/me/program", 4);
    const SECOND: (&str, u64) = ("/home/me/program", 5);

    fn site(id: Id, frames: &[(&str, u64)]) -> (Id, Site) {
        let frame =
            |&(module, address): &(&str, u64)| Frame { address, module: Some(module.into()), offset: Some(address), ..Frame::default() };
        (id, Site { id, process: 1, frames: frames.iter().map(frame).collect() })
    }

    fn touch(address: u64, time_ns: u64, site: Id) -> FirstTouch {
        FirstTouch {
            id: 0,
            process: 1,
            time_ns,
            thread: 0,
            cpu: 0,
            address,
            weight: 1.0,
            by_kernel: false,
            site: Some(site),
            mapped_bytes: None,
            node: None,
        }
    }

    fn object(id: Id, address: u64, born_ns: u64, died_ns: Option<u64>) -> Object {
        let (kind, bytes) = (ObjectKind::Heap, 0x1000);
        Object { id, process: 1, kind, call: None, name: None, address, bytes, born_ns, died_ns, site: None, thread: None }
    }

    /// The sites of touches (address, time, site) afterwards.
    fn sites_of(touches: &[(u64, u64, Id)], objects: Vec<Object>) -> Option<Vec<Id>> {
        let sites = [
            site(1, &[MEMSET, FIRST, LIBRARY, MAIN, START]),
            site(2, &[MEMSET, SECOND, LIBRARY, MAIN, START]),
            site(3, &[MEMSET, LIBRARY, START]),
            site(4, &[MEMCPY, LIBRARY, START]),
            site(5, &[MEMSET, MAIN, START]),
            site(6, &[MEMSET, FIRST, LIBRARY, START]),
            site(7, &[MEMSET, LIBRARY, MAIN, START]),
        ];
        let first_touches = touches.iter().map(|&(address, time, site)| touch(address, time, site)).collect();
        let known = with_regions(&Profile { sites: sites.into(), objects, first_touches, ..Profile::default() }, &OwnHome)?;
        Some(known.first_touches.iter().filter_map(|touch| touch.site).collect())
    }

    /// Check that threads without a frame have the region that used the same object, also where its addresses were those of another one before.
    #[test]
    fn threads_have_the_region_of_their_object() {
        let objects = || vec![object(1, 0x10000, 0, Some(50)), object(2, 0x20000, 0, None), object(3, 0x10000, 60, None)];
        let touches = [(0x10000, 10, 1), (0x10800, 9, 3), (0x20000, 20, 2), (0x20900, 70, 3), (0x10000, 70, 2), (0x10900, 71, 3)];
        assert_eq!(sites_of(&touches, objects()).unwrap(), [1, 1, 2, 2, 2, 2]);
    }

    /// Check that code in other functions, on other objects, or on one that two regions used, has none, and that the program's own call of the library's
    /// function is no region.
    #[test]
    fn other_threads_have_none() {
        let objects = || vec![object(1, 0x10000, 0, None), object(2, 0x20000, 0, None)];
        assert_eq!(sites_of(&[(0x10000, 10, 1), (0x10800, 9, 4)], objects()).unwrap(), [1, 4]);
        assert_eq!(sites_of(&[(0x10000, 10, 1), (0x20800, 9, 3)], objects()).unwrap(), [1, 3]);
        assert_eq!(sites_of(&[(0x10000, 10, 1), (0x30800, 9, 3)], objects()).unwrap(), [1, 3]);
        assert_eq!(sites_of(&[(0x10000, 10, 1), (0x10400, 12, 2), (0x10800, 9, 3)], objects()).unwrap(), [1, 2, 3]);
        assert_eq!(sites_of(&[(0x10000, 10, 5), (0x10800, 9, 3)], objects()).unwrap(), [5, 3]);
        // The call of the library is known, but not the region.
        assert_eq!(sites_of(&[(0x10000, 10, 7), (0x10800, 9, 3)], objects()).unwrap(), [7, 3]);
        // The region called memset in another stack.
        assert_eq!(sites_of(&[(0x10000, 10, 6), (0x10800, 9, 3)], objects()).unwrap(), [6, 6]);
    }
}
