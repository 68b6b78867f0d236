//! What is counted for whole recordings, of all parts together.

use super::places::extent;
use firsttouch_model::consequence;
use firsttouch_model::rows::metadata::{Metadata, Symbols};
use firsttouch_model::rows::{Counter, Evidence, Host, Lost, MOST_COMMANDS, Machine, Part, in_words};
use std::collections::BTreeMap;

/// The metadata of a merged profile, without variables. Its figures are sums; of what cannot be added, the part that is worst.
pub fn metadata(parts: &[Part], hosts: &[Host]) -> Metadata {
    let metas = || parts.iter().map(|part| &part.meta);
    let sum = |of: fn(&Metadata) -> u64| metas().map(of).fold(0, u64::saturating_add);
    let known_sum = |of: fn(&Metadata) -> Option<u64>| metas().filter_map(of).reduce(u64::saturating_add);
    let shifted = |of: fn(&Metadata) -> Option<u64>| {
        parts.iter().filter_map(move |part| Some(of(&part.meta)?.wrapping_add_signed(part.shift_ns))).collect::<Vec<u64>>()
    };
    let largest = |of: fn(&Metadata) -> Option<f64>| metas().filter_map(of).reduce(f64::max);
    let (exit_code, signal) = ending(parts);
    Metadata {
        command: command(parts),
        exit_code,
        signal,
        abort_status: None,
        start_ns: shifted(|meta| meta.start_ns).into_iter().min(),
        end_ns: shifted(|meta| meta.end_ns).into_iter().max(),
        start_unix_s: metas().filter_map(|meta| meta.start_unix_s).min(),
        min_size_bytes: metas().filter_map(|meta| meta.min_size_bytes).max(),
        symbols: if metas().all(|meta| meta.symbols == Symbols::InFile) { Symbols::InFile } else { Symbols::None },
        tool_version: same(metas().map(|meta| meta.tool_version.clone())).flatten(),
        mode: same(metas().map(|meta| meta.mode)).flatten(),
        trap_ns: largest(|meta| meta.trap_ns),
        tick_ns: largest(|meta| meta.tick_ns),
        hot_error: largest(|meta| meta.hot_error),
        watch_start_ns: shifted(|meta| meta.watch_start_ns).into_iter().min(),
        children_left: sum(|meta| meta.children_left),
        processes_left: sum(|meta| meta.processes_left),
        has_waited: metas().any(|meta| meta.has_waited),
        own_cpu_ns: known_sum(|meta| meta.own_cpu_ns),
        children_cpu_ns: known_sum(|meta| meta.children_cpu_ns),
        profiler_cpu_ns: known_sum(|meta| meta.profiler_cpu_ns),
        threads_ran_ns: sum(|meta| meta.threads_ran_ns),
        threads_delayed_ns: sum(|meta| meta.threads_delayed_ns),
        swapped_bytes: sum(|meta| meta.swapped_bytes),
        samples_outside: sum(|meta| meta.samples_outside),
        variables: BTreeMap::new(),
        notes: notes(parts, hosts),
        write_failure: Some(texts(parts, |part| part.meta.write_failure.iter()).join("; ")).filter(|text| !text.is_empty()),
        missing_rows: sum(|meta| meta.missing_rows),
        rank: None,
        made_by: None,
    }
}

/// The commands of the parts, each once, as `mpirun` takes them: `./ocean : ./ice`. Of many, the first ones.
fn command(parts: &[Part]) -> Vec<String> {
    let mut all: Vec<&Vec<String>> = Vec::new();
    for part in parts.iter().map(|part| &part.meta.command).filter(|command| !command.is_empty()) {
        if !all.contains(&part) {
            all.push(part);
        }
    }
    let more = (all.len() > MOST_COMMANDS).then(|| vec!["...".to_owned()]);
    all.into_iter().take(MOST_COMMANDS).chain(more.as_ref()).cloned().collect::<Vec<_>>().join(&":".to_owned())
}

/// The exit status and signal of the part that ended the others, of those that did not end well; 0 if all parts have ended with 0.
fn ending(parts: &[Part]) -> (Option<i32>, Option<i32>) {
    let metas = || parts.iter().map(|part| &part.meta);
    let failed = metas().filter(|meta| meta.exit_code.is_some_and(|code| code != 0) || meta.abort_status.is_some());
    if let Some(failed) = failed.min_by_key(|meta| consequence(meta.abort_status.is_some(), meta.signal)) {
        return failed.abort_status.map_or((failed.exit_code, failed.signal), |status| (Some(status), None));
    }
    let is_known = !metas().any(Metadata::is_unfinished) && metas().any(|meta| meta.exit_code.is_some());
    (is_known.then_some(0), None)
}

fn same<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|one| one == first).then_some(first)
}

fn notes(parts: &[Part], hosts: &[Host]) -> Vec<String> {
    let mut notes = texts(parts, |part| part.meta.notes.iter());
    notes.extend(differences(parts, hosts));
    notes
}

/// The texts of all parts, each once; with the parts that have it in front if not all do.
fn texts<'a, I: Iterator<Item = &'a String>>(parts: &'a [Part], of: impl Fn(&'a Part) -> I) -> Vec<String> {
    let mut found: Vec<(&String, Vec<&Part>)> = Vec::new();
    let mut places: BTreeMap<&String, usize> = BTreeMap::new();
    for part in parts {
        for text in of(part) {
            let place = *places.entry(text).or_insert_with(|| {
                found.push((text, Vec::new()));
                found.len() - 1
            });
            if found[place].1.last().is_none_or(|last| last.id != part.id) {
                found[place].1.push(part);
            }
        }
    }
    found.into_iter().map(|(text, some)| in_words(&some, parts).map_or_else(|| text.clone(), |who| format!("{who}: {text}"))).collect()
}

/// A note if hosts differ in what is described once.
fn differences(parts: &[Part], hosts: &[Host]) -> Option<String> {
    type Shown = fn(&Machine) -> String;
    let fields: [(&str, Shown); 6] = [
        ("kernel", |machine| machine.kernel.clone()),
        ("page size", |machine| machine.page_bytes.to_string()),
        ("size of huge pages", |machine| machine.huge_page_bytes.to_string()),
        ("use of huge pages", |machine| machine.transparent_huge_pages.clone()),
        ("private cache", |machine| machine.private_cache_bytes.to_string()),
        ("shared cache", |machine| machine.shared_cache_bytes.to_string()),
    ];
    let of_hosts: Vec<&Machine> = hosts.iter().filter_map(|host| Some(&parts_of(parts, host).next()?.machine)).collect();
    let differs = |shown: &Shown| of_hosts.iter().any(|machine| shown(machine) != shown(of_hosts[0]));
    let names: Vec<&str> = fields.iter().filter(|(_, shown)| differs(shown)).map(|(name, _)| *name).collect();
    let first = hosts.first()?;
    (!names.is_empty()).then(|| format!("The hosts differ in: {}. Those of {} count for all", names.join(", "), first.name))
}

fn parts_of<'a>(parts: &'a [Part], host: &Host) -> impl Iterator<Item = &'a Part> {
    let id = host.id;
    parts.iter().filter(move |part| part.host == id)
}

/// The machine of a merged profile: the nodes of all hosts, and the rest of the first one.
pub fn machine(parts: &[Part], hosts: &[Host]) -> Machine {
    let first = parts.first().map(|part| part.machine.clone()).unwrap_or_default();
    let mut all = Machine { hostname: names(hosts), node_cpus: BTreeMap::new(), node_tiers: BTreeMap::new(), numa_balancing: 0, ..first };
    for part in parts {
        let Some(host) = usize::try_from(part.host).ok().and_then(|host| hosts.get(host)) else { continue };
        for (node, cpus) in &part.machine.node_cpus {
            let own = all.node_cpus.entry(host.first_node.saturating_add(*node)).or_default();
            own.extend(cpus.iter().map(|cpu| host.first_cpu.saturating_add(*cpu)));
        }
        all.node_tiers.extend(part.machine.node_tiers.iter().map(|(node, tier)| (host.first_node.saturating_add(*node), *tier)));
        all.numa_balancing |= part.machine.numa_balancing;
    }
    for cpus in all.node_cpus.values_mut() {
        cpus.sort_unstable();
        cpus.dedup();
    }
    all
}

/// `a`, `a, b`, `a, b (+2 hosts)`.
fn names(hosts: &[Host]) -> String {
    let named: Vec<&str> = hosts.iter().take(2).map(|host| host.name.as_str()).collect();
    match hosts.len() {
        0..=2 => named.join(", "),
        3 => format!("{} (+1 host)", named.join(", ")),
        many => format!("{} (+{} hosts)", named.join(", "), many - 2),
    }
}

/// Samples of each source are added. A source was available if it was so to any part.
pub fn evidence(parts: &[Part]) -> Vec<Evidence> {
    let mut all: BTreeMap<&str, Evidence> = BTreeMap::new();
    for one in parts.iter().flat_map(|part| &part.evidence) {
        let sum = all.entry(&one.source).or_insert_with(|| Evidence {
            source: one.source.clone(),
            available: false,
            samples: 0,
            detail: details(parts, &one.source).join(" "),
        });
        sum.available |= one.available;
        sum.samples = sum.samples.saturating_add(one.samples);
    }
    all.into_values().collect()
}

fn details(parts: &[Part], source: &str) -> Vec<String> {
    texts(parts, |part| part.evidence.iter().filter(|one| one.source == source && !one.detail.is_empty()).map(|one| &one.detail))
}

pub fn lost(parts: &[Part]) -> Vec<Lost> {
    let mut all: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for one in parts.iter().flat_map(|part| &part.lost) {
        let sum = all.entry((&one.source, &one.reason)).or_default();
        *sum = sum.saturating_add(one.count);
    }
    all.into_iter().map(|((source, reason), count)| Lost { source: source.to_owned(), reason: reason.to_owned(), count }).collect()
}

/// Counters are those of a whole host: of each host those that the part saw which took longest.
pub fn counters(parts: &[Part], hosts: &[Host]) -> Vec<Counter> {
    let mut all: BTreeMap<(&str, Option<u32>), (u64, u64)> = BTreeMap::new();
    for host in hosts {
        let seen_ns = |part: &Part| part.meta.start_ns.zip(part.meta.end_ns).map_or(0, |(start, end)| end.saturating_sub(start));
        let with = parts_of(parts, host).filter(|part| !part.counters.is_empty());
        // The first of several that took equally long.
        let longest = with.fold(None, |best: Option<&Part>, part| match best {
            Some(best) if seen_ns(best) >= seen_ns(part) => Some(best),
            _ => Some(part),
        });
        for one in longest.iter().flat_map(|part| &part.counters) {
            let node = one.node.map(|node| host.first_node.saturating_add(node));
            let sum = all.entry((&one.name, node)).or_default();
            *sum = (sum.0.saturating_add(one.at_start), sum.1.saturating_add(one.at_end));
        }
    }
    let counter = |((name, node), (at_start, at_end)): ((&str, _), _)| Counter { name: name.to_owned(), node, at_start, at_end };
    all.into_iter().map(counter).collect()
}

/// Whether the machine and the counters of a part fit the numbers that its host takes.
pub fn fits(part: &Part, host: &Host) -> bool {
    let (nodes, cpus) = extent(&part.machine);
    let counted = part.counters.iter().filter_map(|counter| counter.node).all(|node| node < host.nodes);
    nodes <= host.nodes && cpus <= host.cpus && counted
}
