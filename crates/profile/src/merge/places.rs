//! CPUs, nodes, shared memory and times: every place of a profile that has one, so that those of a host are its own in a merged profile.

use firsttouch_model::error::{Error, Result};
use firsttouch_model::rows::{Host, Machine, Profile};
use std::mem::take;

/// A CPU that the recorder did not know.
const UNKNOWN_CPU: u32 = u32::MAX;

/// Gives the CPUs, nodes and shared memory of a host the numbers that they have in a merged profile, and adds a shift to times.
///
/// # Errors
/// When the profile has CPUs or nodes that its host has not.
pub fn into_merged(profile: &mut Profile, host: &Host, shift_ns: i64) -> Result<()> {
    let within = |number: u32, first: u32, count: u32| if number < count { number.checked_add(first) } else { None };
    renumber(profile, |cpu| within(cpu, host.first_cpu, host.cpus), |node| within(node, host.first_node, host.nodes))?;
    if host.id != 0 {
        profile.shared_memory.values_mut().for_each(|shared| shared.memory = format!("{}/{}", host.id, shared.memory));
    }
    each_time(profile, |time| *time = time.wrapping_add_signed(shift_ns));
    Ok(())
}

/// The inverse of [`into_merged`].
///
/// # Errors
/// When the profile has CPUs, nodes or memory of other hosts.
pub fn out_of_merged(profile: &mut Profile, host: &Host, shift_ns: i64) -> Result<()> {
    let within = |number: u32, first: u32, count: u32| number.checked_sub(first).filter(|number| *number < count);
    renumber(profile, |cpu| within(cpu, host.first_cpu, host.cpus), |node| within(node, host.first_node, host.nodes))?;
    let prefix = format!("{}/", host.id);
    for shared in profile.shared_memory.values_mut().filter(|_| host.id != 0) {
        let own = shared.memory.strip_prefix(&prefix).map(str::to_owned);
        shared.memory = own.ok_or_else(|| Error::invalid_data(format!("memory '{}' is not that of host {}", shared.memory, host.id)))?;
    }
    each_time(profile, |time| *time = time.wrapping_add_signed(shift_ns.wrapping_neg()));
    Ok(())
}

/// One more than the largest numbers of a node and of a CPU of a machine.
pub fn extent(machine: &Machine) -> (u32, u32) {
    let last_node = machine.node_cpus.keys().chain(machine.node_tiers.keys()).max().copied();
    let last_cpu = machine.node_cpus.values().flatten().max().copied();
    (after(last_node), after(last_cpu))
}

/// How many numbers there are up to this one.
pub fn after(last: Option<u32>) -> u32 {
    last.map_or(0, |last| last.saturating_add(1))
}

/// The largest number of a list in the kernel's format; `None` if it is something else, or empty.
pub fn last_of_list(list: &str) -> Option<u32> {
    parse(list)?.into_iter().map(|(_, last)| last).max()
}

/// The largest node that a policy names.
pub fn last_of_policy(policy: &str) -> Option<u32> {
    last_of_list(policy.rsplit_once(':')?.1)
}

fn renumber(profile: &mut Profile, cpu: impl Fn(u32) -> Option<u32>, node: impl Fn(u32) -> Option<u32>) -> Result<()> {
    let mut strange: Option<String> = None;
    let mut new_cpu = |number: &mut u32| match cpu(*number) {
        _ if *number == UNKNOWN_CPU => {}
        Some(new) => *number = new,
        None => strange = Some(format!("CPU {number}")),
    };
    profile.first_touches.iter_mut().for_each(|row| new_cpu(&mut row.cpu));
    profile.samples.iter_mut().for_each(|row| new_cpu(&mut row.cpu));
    profile.accesses.iter_mut().filter_map(|row| row.cpu.as_mut()).for_each(&mut new_cpu);
    let seen = take(&mut profile.thread_cpus).into_iter().map(|((thread, mut cpu), seen)| {
        new_cpu(&mut cpu);
        ((thread, cpu), seen)
    });
    profile.thread_cpus = seen.collect();
    for list in profile.threads.iter_mut().filter_map(|thread| thread.allowed_cpus.as_mut()) {
        if let Some(Err(number)) = new_list(list, &cpu).map(|new| new.map(|new| *list = new)) {
            strange = Some(format!("CPU {number}"));
        }
    }
    let mut new_node = |number: &mut i32| {
        if let Ok(old) = u32::try_from(*number) {
            match node(old).and_then(|new| i32::try_from(new).ok()) {
                Some(new) => *number = new,
                None => strange = Some(format!("node {number}")),
            }
        }
    };
    profile.first_touches.iter_mut().filter_map(|row| row.node.as_mut()).for_each(&mut new_node);
    profile.pages.iter_mut().for_each(|row| new_node(&mut row.node));
    for row in &mut profile.bandwidth {
        let mut node = i32::try_from(row.node).unwrap_or(i32::MAX);
        new_node(&mut node);
        row.node = node.unsigned_abs();
    }
    for policy in profile.policies.values_mut() {
        let Some((kind, list)) = policy.policy.rsplit_once(':') else { continue };
        match new_list(list, &node) {
            Some(Ok(new)) => policy.policy = format!("{kind}:{new}"),
            Some(Err(number)) => strange = Some(format!("node {number}")),
            None => {}
        }
    }
    strange.map_or(Ok(()), |what| Err(Error::invalid_data(format!("{what} is not one of its host"))))
}

/// A list in the kernel's format with new numbers; the first number without one. `None` if the text is something else.
fn new_list(list: &str, new: impl Fn(u32) -> Option<u32>) -> Option<std::result::Result<String, u32>> {
    let ranges = parse(list)?;
    let word = |(first, last): (u32, u32)| {
        let (first, last) = (new(first).ok_or(first)?, new(last).ok_or(last)?);
        Ok(if first == last { first.to_string() } else { format!("{first}-{last}") })
    };
    Some(ranges.into_iter().map(word).collect::<std::result::Result<Vec<String>, u32>>().map(|words| words.join(",")))
}

/// The ranges of a list in the kernel's format: `0-3,8`.
fn parse(list: &str) -> Option<Vec<(u32, u32)>> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let range = |word: &str| match word.split_once('-') {
        Some((first, last)) => number(first).zip(number(last)),
        None => number(word).map(|one| (one, one)),
    };
    list.split(',').map(range).collect()
}

/// Calls `visit` with every point in time; durations are left out.
fn each_time(profile: &mut Profile, mut visit: impl FnMut(&mut u64)) {
    let mut maybe = |begin: &mut u64, end: &mut Option<u64>| {
        visit(begin);
        end.iter_mut().for_each(&mut visit);
    };
    profile.processes.iter_mut().for_each(|row| maybe(&mut row.born_ns, &mut row.died_ns));
    profile.threads.iter_mut().for_each(|row| maybe(&mut row.born_ns, &mut row.died_ns));
    profile.objects.iter_mut().for_each(|row| maybe(&mut row.born_ns, &mut row.died_ns));
    profile.regions.iter_mut().for_each(|row| maybe(&mut row.begin_ns, &mut row.end_ns));
    profile.small_blocks.iter_mut().for_each(|row| visit(&mut row.time_ns));
    profile.first_touches.iter_mut().for_each(|row| visit(&mut row.time_ns));
    profile.fault_periods.iter_mut().for_each(|row| visit(&mut row.time_ns));
    profile.releases.iter_mut().for_each(|row| visit(&mut row.time_ns));
    profile.populations.iter_mut().for_each(|row| visit(&mut row.time_ns));
    profile.appeared.iter_mut().flat_map(|row| [&mut row.from_ns, &mut row.to_ns]).for_each(&mut visit);
    profile.fault_counts.iter_mut().for_each(|row| visit(&mut row.time_ns));
    profile.python_lines.iter_mut().for_each(|row| visit(&mut row.time_ns));
    profile.bandwidth.iter_mut().flat_map(|row| [&mut row.from_ns, &mut row.to_ns]).for_each(&mut visit);
    profile.windows.iter_mut().for_each(|row| visit(&mut row.start_ns));
    profile.samples.iter_mut().for_each(|row| visit(&mut row.time_ns));
    profile.pages.iter_mut().for_each(|row| visit(&mut row.time_ns));
    profile.policies.values_mut().for_each(|row| visit(&mut row.time_ns));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that lists get new numbers as they are, and that other texts are left alone.
    #[test]
    fn lists_get_new_numbers() {
        let new = |list: &str| new_list(list, |number| (number < 100).then_some(number + 8));
        assert_eq!(new("0-3,8,5"), Some(Ok("8-11,16,13".to_owned())));
        assert_eq!(new("3-100"), Some(Err(100)));
        for other in ["", "0-", "a", "0,,1", "+1", "0-3-5", "4294967296", " 1"] {
            assert_eq!(new(other), None, "{other}");
        }
        assert_eq!((last_of_list("0-3,2"), last_of_policy("bind=static:0,7"), last_of_policy("default")), (Some(3), Some(7), None));
    }
}
