//! hwloc's locations on a machine.

use super::hwloc::{Location, Operator, Range, Step};
use super::levels::{Layout, Level};
use crate::scan::{At, Fault};
use std::collections::BTreeSet;

/// The CPUs of all locations, each once. hwloc has a set here; firsttouch adds an order: of an object first one CPU of each core, or
/// as enumerated if the location goes down to `pu`.
pub fn cpus(locations: &[Location], layout: &Layout) -> Result<Vec<u32>, Fault> {
    let mut cpus: Vec<u32> = Vec::new();
    for location in locations {
        let mut found = Vec::new();
        descend(&location.steps, &layout.all(), layout, &mut found)?;
        let mut seen = BTreeSet::new();
        found.retain(|cpu| seen.insert(*cpu));
        if location.steps.last().is_none_or(|step| *step.level != Level::Pu) {
            found = layout.cores_first(&found);
        }
        let before: BTreeSet<u32> = cpus.iter().copied().collect();
        found.retain(|cpu| !before.contains(cpu));
        match location.operator {
            Operator::Add => cpus.extend(found),
            Operator::Remove => cpus.retain(|cpu| !seen.contains(cpu)),
            Operator::Keep => cpus.retain(|cpu| seen.contains(cpu)),
            Operator::Toggle => {
                cpus.retain(|cpu| !seen.contains(cpu));
                cpus.extend(found);
            }
        }
    }
    Ok(cpus)
}

/// Adds the CPUs of the objects that `steps` name within `scope`.
fn descend(steps: &[Step], scope: &[u32], layout: &Layout, found: &mut Vec<u32>) -> Result<(), Fault> {
    let Some((step, deeper)) = steps.split_first() else {
        found.extend(scope);
        return Ok(());
    };
    let objects = within(step.level, scope, layout)?;
    for object in chosen(step, objects.len())?.into_iter().filter_map(|index| objects.get(index)) {
        descend(deeper, object, layout, found)?;
    }
    Ok(())
}

/// The usable CPUs of each object of a level that is in `scope`.
fn within(level: At<Level>, scope: &[u32], layout: &Layout) -> Result<Vec<Vec<u32>>, Fault> {
    let scope: BTreeSet<u32> = scope.iter().copied().collect();
    let mut objects: Vec<Vec<u32>> = layout.objects(*level).iter().map(|cpus| layout.usable(cpus)).collect();
    objects.retain(|cpus| cpus.iter().any(|cpu| scope.contains(cpu)));
    if objects.is_empty() {
        return Err(Fault::new(level.offset, format!("this machine reports no {}", level.value)));
    }
    if objects.iter().flatten().any(|cpu| !scope.contains(cpu)) {
        return Err(Fault::new(level.offset, format!("{} is larger than the object before it: name the larger one first", level.value)));
    }
    Ok(objects)
}

/// The positions that a range selects among `count` objects.
fn chosen(step: &Step, count: usize) -> Result<Vec<usize>, Fault> {
    let exists = |index: u32| {
        if (index as usize) < count {
            return Ok(index as usize);
        }
        let level = *step.level;
        Err(Fault::new(step.range.offset, format!("there is no {level}:{index} here: the last is {level}:{}", count.saturating_sub(1))))
    };
    Ok(match *step.range {
        Range::All => (0..count).collect(),
        Range::Even => (0..count).step_by(2).collect(),
        Range::Odd => (1..count).step_by(2).collect(),
        Range::Span(first, last) => (exists(first)?..=exists(last)?).collect(),
        Range::From(first) => (exists(first)?..count).collect(),
        // More would only repeat the same objects.
        Range::Wrapped(first, number) => (0..count).cycle().skip(exists(first)?).take(count.min(number as usize)).collect(),
    })
}
