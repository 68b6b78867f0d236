//! What the programmer calls an object, and in which language.

use crate::groups::Group;
use crate::places::Places;
use firsttouch_profile::{Object, Profile};
use std::collections::BTreeMap;

/// Name and ordinal (which of several of this name, in order of birth) of each group.
///
/// The name is the object's own where it has one; else the variable that the allocating line assigns to; else
/// `heap object of function (file:line)`, as far as known, `heap object of module+offset`, or kind and address.
#[must_use]
pub fn names(profile: &Profile, groups: &[Group], places: &Places<'_>) -> Vec<(String, usize)> {
    let nth = nth_on_line(profile, groups, places);
    let mut list: Vec<(String, usize)> =
        groups.iter().zip(&nth).map(|(group, &nth)| (name(&profile.objects[group.representative], places, nth), 0)).collect();
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&g| (profile.objects[groups[g].representative].born_ns, profile.objects[groups[g].representative].id));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for g in order {
        let count = seen.entry(list[g].0.clone()).or_default();
        list[g].1 = *count;
        *count += 1;
    }
    list
}

fn name(object: &Object, places: &Places<'_>, nth: usize) -> String {
    if let Some(name) = object.name.as_deref().filter(|n| !n.is_empty()) {
        return name.to_owned();
    }
    let frames = places.frames(object.site);
    let Some(frame) = places.user_frame(frames) else {
        return format!("{} at {:#x}", object.kind.as_str(), object.address);
    };
    let call = object.call.as_deref().unwrap_or_default();
    let variable = frame.file.as_deref().zip(frame.line).and_then(|(file, line)| places.sources.variable(file, line, call, nth));
    if let Some(variable) = variable {
        return variable;
    }
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let kind = object.kind.as_str();
    let line = frame.file.as_deref().zip(frame.line).map(|(file, line)| format!("{}:{line}", base(file)));
    match (&frame.function, line, &frame.module, frame.offset) {
        (Some(function), Some(line), ..) => format!("{kind} object of {function} ({line})"),
        (Some(function), None, ..) => format!("{kind} object of {function}"),
        (None, Some(line), ..) => format!("{kind} object of {line}"),
        (None, None, Some(module), Some(offset)) => format!("{kind} object of {}+{offset:#x}", base(module)),
        _ => format!("{kind} at {:#x}", object.address),
    }
}

/// For each group, which of the calls of its kind on its source line made it: by the address of the call.
fn nth_on_line(profile: &Profile, groups: &[Group], places: &Places<'_>) -> Vec<usize> {
    let mut lines: BTreeMap<(String, u32, String), Vec<u64>> = BTreeMap::new();
    let mut keys = Vec::with_capacity(groups.len());
    for group in groups {
        let object = &profile.objects[group.representative];
        let frame = places.user_frame(places.frames(object.site));
        let key = frame.and_then(|f| {
            let key = (f.file.clone()?, f.line?, object.call.clone().unwrap_or_default());
            Some((key, f.address))
        });
        if let Some((key, address)) = &key {
            lines.entry(key.clone()).or_default().push(*address);
        }
        keys.push(key);
    }
    for addresses in lines.values_mut() {
        addresses.sort_unstable();
        addresses.dedup();
    }
    let place = |(key, address): (_, u64)| lines.get(&key).and_then(|list| list.binary_search(&address).ok()).unwrap_or(0);
    keys.into_iter().map(|key| key.map_or(0, place)).collect()
}

/// The languages fixes are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cpp,
    Fortran,
    Rust,
    Python,
}

impl Language {
    /// By file extension.
    #[must_use]
    pub fn of(file: &str) -> Option<Self> {
        let extension = file.rsplit('/').next()?.rsplit_once('.')?.1;
        Some(match extension {
            "c" | "h" => Self::C,
            "C" | "cc" | "cpp" | "cxx" | "c++" | "hpp" | "hh" | "hxx" | "H" => Self::Cpp,
            "rs" => Self::Rust,
            "py" => Self::Python,
            other => match other.to_ascii_lowercase().as_str() {
                "f" | "for" | "f77" | "f90" | "f95" | "f03" | "f08" | "ftn" => Self::Fortran,
                _ => return None,
            },
        })
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "c++",
            Self::Fortran => "fortran",
            Self::Rust => "rust",
            Self::Python => "python",
        }
    }
}
