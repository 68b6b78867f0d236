//! The CPUs that a list of places names: OMP_PLACES (OpenMP 5.2, 21.1.6) and GOMP_CPU_AFFINITY (libgomp's manual).

use crate::openmp::{self, Variables};
use firsttouch_model::facts::{Facts, OpenMp};
use std::collections::BTreeSet;

/// More CPUs than any kernel supports.
const MOST_CPUS: u64 = 1 << 16;

/// The CPUs of all places to which threads are bound, and the variable that lists them. `None` without such a list, or if it is not understood:
/// runtimes differ in what they make of wrong ones.
pub fn cpus(facts: &Facts, variables: &Variables, openmp: OpenMp) -> Option<(&'static str, BTreeSet<u32>)> {
    let by_name = || Some(("OMP_PLACES", abstract_places(facts, openmp::set(variables, "OMP_PLACES")?)?));
    named(variables, openmp).or_else(|| by_name().filter(|_| !is_overridden(variables, openmp)))
}

/// Whether variables of another runtime override or restrict the places.
fn is_overridden(variables: &Variables, openmp: OpenMp) -> bool {
    openmp != OpenMp::Gnu && ["KMP_AFFINITY", "KMP_HW_SUBSET"].iter().any(|name| openmp::set(variables, name).is_some())
}

/// The CPUs that the value of the variable names one by one: a list of places that are not names.
pub fn named(variables: &Variables, openmp: OpenMp) -> Option<(&'static str, BTreeSet<u32>)> {
    if is_overridden(variables, openmp) {
        return None;
    }
    match openmp::set(variables, "OMP_PLACES") {
        Some(text) => Some(("OMP_PLACES", explicit(text)?)),
        None => Some(("GOMP_CPU_AFFINITY", affinity(openmp::set(variables, "GOMP_CPU_AFFINITY")?)?)),
    }
}

/// Whether a runtime understands a value of OMP_PLACES. Excluded places and negative strides are not examined.
pub fn is_understood(text: &str) -> bool {
    const NAMES: [&str; 7] = ["threads", "cores", "sockets", "ll_caches", "numa_domains", "dice", "tiles"];
    let (name, count) = text.split_once('(').map_or((text, None), |(name, count)| (name, Some(count)));
    let is_count = |text: &str| text.trim_end().strip_suffix(')').is_some_and(|text| text.trim().parse::<u32>().is_ok_and(|n| n > 0));
    let is_named = NAMES.iter().any(|known| name.trim().eq_ignore_ascii_case(known)) && count.is_none_or(is_count);
    let is_beyond = text.contains('!') || text.split(':').skip(1).any(|part| part.trim_start().starts_with('-'));
    is_named || (is_beyond && text.contains('{')) || explicit(text).is_some()
}

/// `{0,1},{2:2:4}`, `{0:4}:8:4`; not `!{0}`.
fn explicit(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (place, after) = rest.strip_prefix('{')?.split_once('}')?;
        let (interval, after) = after.split_once(',').unwrap_or((after, ""));
        let mut own = BTreeSet::new();
        for resources in place.split(',') {
            own.extend(progression(resources)?);
        }
        let shifts = match interval.trim().strip_prefix(':') {
            Some(interval) => progression(&format!("0:{interval}"))?,
            None if interval.trim().is_empty() => vec![0],
            None => return None,
        };
        for shift in shifts {
            cpus.extend(own.iter().map(|cpu| cpu.saturating_add(shift)));
        }
        rest = after.trim();
    }
    (!cpus.is_empty()).then_some(cpus)
}

/// `first:count:stride`.
fn progression(text: &str) -> Option<Vec<u32>> {
    let numbers: Vec<u64> = text.split(':').map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
    let (first, count, stride) = match numbers[..] {
        [first] => (first, 1, 1),
        [first, count] => (first, count, 1),
        [first, count, stride] => (first, count, stride),
        _ => return None,
    };
    let last = count.checked_sub(1)?.checked_mul(stride)?.checked_add(first)?;
    (last < MOST_CPUS && count <= MOST_CPUS).then(|| (0..count).filter_map(|i| u32::try_from(first + i * stride).ok()).collect())
}

/// `cores(2)`: the CPUs of the first two cores; `sockets`: all CPUs.
fn abstract_places(facts: &Facts, text: &str) -> Option<BTreeSet<u32>> {
    let (name, count) = match text.split_once('(') {
        Some((name, count)) => (name.trim(), count.trim().strip_suffix(')')?.trim().parse().ok()?),
        None => (text.trim(), usize::MAX),
    };
    let topology = &facts.topology;
    let cpus = |lists: Vec<&[u32]>| lists.into_iter().take(count).flatten().copied().collect();
    let found: BTreeSet<u32> = match name.to_ascii_lowercase().as_str() {
        "threads" => topology.cpus.online.iter().take(count).copied().collect(),
        "cores" => cpus(topology.cores.iter().map(|core| core.cpus.as_slice()).collect()),
        "sockets" => cpus(topology.packages.iter().map(|package| package.cpus.as_slice()).collect()),
        "numa_domains" => cpus(topology.nodes.iter().map(|node| node.cpus.as_slice()).collect()),
        _ => return None,
    };
    (!found.is_empty()).then_some(found)
}

/// `0 3 1-2 4-15:2`.
pub fn affinity(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.split([' ', ',']).filter(|part| !part.is_empty()) {
        let (range, stride) = part.split_once(':').map_or((part, Some(1)), |(range, stride)| (range, stride.parse::<u64>().ok()));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last, stride): (u64, u64, u64) = (first.parse().ok()?, last.parse().ok()?, stride.filter(|stride| *stride > 0)?);
        let count = (last.checked_sub(first)? / stride).checked_add(1)?;
        cpus.extend(progression(&format!("{first}:{count}:{stride}"))?);
    }
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::topology::{Core, CpuLists, Topology};

    /// Check the CPUs of lists in all spellings, and that none are guessed for others.
    #[test]
    fn cpus_of_places() {
        let core = |first: u32| Core { id: Some(first), package: Some(0), cpus: vec![first, first + 1] };
        let topology = Topology {
            cpus: CpuLists { online: (0..8).collect(), offline: vec![] },
            cores: [0, 2, 4, 6].map(core).to_vec(),
            ..Topology::default()
        };
        let facts = Facts { topology, ..Facts::default() };
        let found = |name: &str, value: &str| {
            let variables = [(name.to_owned(), value.to_owned())].into();
            cpus(&facts, &variables, OpenMp::Gnu).map(|(_, cpus)| cpus.into_iter().collect::<Vec<u32>>())
        };
        for (places, expected) in [
            ("{0}", Some(vec![0])),
            (" {0,3}, {5} ", Some(vec![0, 3, 5])),
            ("{0:4}", Some(vec![0, 1, 2, 3])),
            ("{0:3:2}", Some(vec![0, 2, 4])),
            ("{0:2}:2:4", Some(vec![0, 1, 4, 5])),
            ("{1}:3", Some(vec![1, 2, 3])),
            ("cores(1)", Some(vec![0, 1])),
            ("Threads(3)", Some(vec![0, 1, 2])),
            ("cores", Some((0..8).collect())),
            ("sockets(1)", None),
            ("ll_caches", None),
            ("!{0}", None),
            ("{!0}", None),
            ("{0", None),
            ("{}", None),
            ("{0}{1}", None),
            ("{0:0}", None),
            ("{0:99999999999}", None),
            ("{18446744073709551615:2}", None),
            ("cores(x)", None),
        ] {
            assert_eq!(found("OMP_PLACES", places), expected, "{places}");
        }
        for (list, expected) in [
            ("0", Some(vec![0])),
            ("0 3 1-2 4-7:2", Some(vec![0, 1, 2, 3, 4, 6])),
            ("0,1", Some(vec![0, 1])),
            ("3-1", None),
            ("0-3:0", None),
            ("0-18446744073709551615", None),
            ("x", None),
        ] {
            assert_eq!(found("GOMP_CPU_AFFINITY", list), expected, "{list}");
        }
        let both: Variables = [("OMP_PLACES", "{1}"), ("GOMP_CPU_AFFINITY", "0")].map(|(n, v)| (n.to_owned(), v.to_owned())).into();
        assert_eq!(cpus(&facts, &both, OpenMp::Gnu), Some(("OMP_PLACES", [1].into())));
        let intel: Variables = [("OMP_PLACES", "{1}"), ("KMP_AFFINITY", "scatter")].map(|(n, v)| (n.to_owned(), v.to_owned())).into();
        assert_eq!(cpus(&facts, &intel, OpenMp::Llvm), None);
        assert!(cpus(&facts, &intel, OpenMp::Gnu).is_some());
    }
}
