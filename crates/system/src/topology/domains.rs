//! Scheduling domains: the spans of proc/schedstat, the names of sys/kernel/debug/sched (root only).
//!
//! proc/schedstat has, after each `cpuN` line, `domainM [name] mask counters...`; the name since version 17 (Linux 6.15).

use crate::files::{Reader, short};
use firsttouch_model::topology::SchedulingDomain;
use std::collections::{BTreeMap, BTreeSet};

const SCHEDSTAT: &str = "proc/schedstat";
/// Linux 5.13 moved the directories from the second place to the first.
const NAMES: [&str; 2] = ["sys/kernel/debug/sched/domains", "proc/sys/kernel/sched_domain"];

pub fn read(reader: &mut Reader, online: &[u32]) -> Vec<SchedulingDomain> {
    let names = names(reader, online);
    let mut spans: BTreeMap<(u32, String), BTreeSet<Vec<u32>>> = BTreeMap::new();
    let mut cpu = None;
    for line in reader.text(SCHEDSTAT).unwrap_or_default().lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some(number) = first.strip_prefix("cpu") {
            cpu = number.parse::<u32>().ok();
            continue;
        }
        let Some(level) = first.strip_prefix("domain").and_then(|number| number.parse::<u32>().ok()) else { continue };
        let second = words.next().unwrap_or_default();
        // Names are upper case (`MC`, `PKG`, `NUMA`), the digits of masks lower case.
        let is_mask = |word: &str| mask(word).is_some() && !word.bytes().all(|byte| byte.is_ascii_uppercase());
        let (name, span) = if is_mask(second) { (None, second) } else { (Some(second.to_owned()), words.next().unwrap_or_default()) };
        let Some(span) = mask(span) else {
            reader.doubt(SCHEDSTAT, format_args!("expected a mask of CPUs in {}", short(line)));
            continue;
        };
        let name = name.or_else(|| names.get(&(cpu?, level)).cloned()).unwrap_or_default();
        spans.entry((level, name)).or_default().insert(span);
    }
    if spans.is_empty() {
        for ((_, level), name) in names {
            spans.entry((level, name)).or_default();
        }
    }
    spans.into_iter().map(|((level, name), spans)| SchedulingDomain { level, name, spans: spans.into_iter().collect() }).collect()
}

fn names(reader: &mut Reader, online: &[u32]) -> BTreeMap<(u32, u32), String> {
    let mut names = BTreeMap::new();
    for folder in NAMES {
        for &cpu in online {
            let folder = format!("{folder}/cpu{cpu}");
            for level in reader.numbered(&folder, "domain") {
                if let Some(name) = reader.text(&format!("{folder}/domain{level}/name")) {
                    names.insert((cpu, level), name);
                }
            }
        }
        if !names.is_empty() {
            break;
        }
    }
    names
}

/// A CPU mask: groups of hexadecimal digits, 32 CPUs each, the last group the lowest CPUs.
fn mask(text: &str) -> Option<Vec<u32>> {
    /// 8192 CPUs, the most a kernel is built for.
    const MOST_GROUPS: u32 = 256;
    let mut cpus = Vec::new();
    for (group, digits) in (0u32..).zip(text.rsplit(',')) {
        if group >= MOST_GROUPS || !(1..=8).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let bits = u32::from_str_radix(digits, 16).ok()?;
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| group * 32 + bit));
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::mask;

    /// Check masks as the kernel writes them, and a table of malformed ones.
    #[test]
    fn masks_are_read() {
        assert_eq!(mask("3"), Some(vec![0, 1]));
        assert_eq!(mask("00000001,00000000,80000000"), Some(vec![31, 64]));
        for text in ["", ",", "0x3", "g", "123456789", "1,,1", "é", "-1", "+1"] {
            assert_eq!(mask(text), None, "{text}");
        }
        assert_eq!(mask(&"1,".repeat(300)), None);
    }
}
