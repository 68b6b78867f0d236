//! likwid's expressions on a machine.

use super::distribute::{balanced, in_turn};
use super::levels::Layout;
use super::likwid::{Domain, Part, Span, Stride, Way};
use super::{MOST_THREADS, too_many};
use crate::scan::{At, Fault};
use firsttouch_model::Error;

pub fn cpus(parts: &[Part], layout: &Layout) -> Result<Vec<u32>, Fault> {
    let mut cpus = Vec::new();
    for part in parts {
        match part {
            Part::Cpus(spans) => each(spans, &mut cpus, |cpu| layout.check(cpu).map(|()| cpu))?,
            Part::Whole(domain) => cpus.extend(of_domain(layout, *domain)?),
            Part::Positions(domain, spans) => {
                let list = layout.cores_first(&of_domain(layout, *domain)?);
                each(spans, &mut cpus, |position| {
                    list.get(position as usize).copied().ok_or_else(|| no_position(domain.value, position, &list))
                })?;
            }
            Part::Strided { domain, threads, stride } => {
                enough(layout.all().len(), *threads)?;
                cpus.extend(strided(&of_domain(layout, *domain)?, **threads as usize, *stride)?);
            }
            Part::Shared { domain, way, threads } => cpus.extend(shared(layout, *domain, *way, *threads)?),
        }
        if cpus.len() > MOST_THREADS {
            return Err(too_many());
        }
    }
    Ok(cpus)
}

/// Adds the result of `find` for each number of the spans.
fn each(spans: &[Span], cpus: &mut Vec<u32>, find: impl Fn(u32) -> Result<u32, Error>) -> Result<(), Fault> {
    for span in spans {
        let (first, last) = span.value;
        for step in 0..=first.abs_diff(last) {
            let number = if first <= last { first + step } else { first - step };
            if cpus.len() > MOST_THREADS {
                return Ok(());
            }
            cpus.push(find(number).map_err(|error| Fault::new(span.offset, error.to_string()))?);
        }
    }
    Ok(())
}

fn no_position(domain: Domain, position: u32, list: &[u32]) -> Error {
    Error::not_found(format!("{domain} has no position {position}: the last that this process may use is {}", list.len().saturating_sub(1)))
}

/// The usable CPUs of a domain, core by core.
fn of_domain(layout: &Layout, domain: At<Domain>) -> Result<Vec<u32>, Fault> {
    let objects = layout.objects(domain.level());
    let index = domain.index.unwrap_or(0) as usize;
    let Some(cpus) = objects.get(index) else {
        return Err(no_domain(domain, objects.len()));
    };
    let usable = layout.usable(cpus);
    if usable.is_empty() {
        return Err(Fault::new(domain.offset, format!("{} has no CPU that this process may use", domain.value)));
    }
    Ok(usable)
}

fn no_domain(domain: At<Domain>, count: usize) -> Fault {
    let kind = Domain { index: None, ..domain.value };
    let reason = match count.checked_sub(1) {
        None => format!("{} does not exist: this machine reports no caches", domain.value),
        Some(0) => format!("{} does not exist: this machine has {kind}0 only", domain.value),
        Some(last) => format!("{} does not exist: this machine has {kind}0 to {kind}{last}", domain.value),
    };
    Fault::new(domain.offset, reason)
}

/// `chunk` CPUs in a row, then the row `stride` further on; starts again from the first past the end.
fn strided(list: &[u32], threads: usize, stride: Option<Stride>) -> Result<Vec<u32>, Fault> {
    let (chunk, stride, list) = match stride {
        None => (1, 1, list),
        Some(Stride { chunk, stride, offset }) => {
            let from = list.get(*offset as usize..).filter(|list| !list.is_empty());
            let from = from.ok_or_else(|| Fault::new(offset.offset, format!("the offset is past the last of {} CPUs", list.len())))?;
            (chunk as usize, stride as usize, from)
        }
    };
    let mut cpus = Vec::new();
    let mut start = 0;
    while cpus.len() < threads {
        cpus.extend(list.iter().skip(start).take(chunk).take(threads - cpus.len()));
        start += stride;
        if start >= list.len() {
            start = 0;
        }
    }
    Ok(cpus)
}

fn enough(cpus: usize, threads: At<u32>) -> Result<(), Fault> {
    if *threads as usize <= cpus {
        return Ok(());
    }
    Err(Fault::new(threads.offset, format!("this asks for {} threads on {cpus} CPUs that this process may use", *threads)))
}

fn shared(layout: &Layout, domain: At<Domain>, way: Way, threads: Option<At<u32>>) -> Result<Vec<u32>, Fault> {
    let domains: Vec<Vec<u32>> = if domain.index.is_some() {
        vec![of_domain(layout, domain)?]
    } else {
        let domains: Vec<_> = layout.objects(domain.level()).iter().map(|cpus| layout.usable(cpus)).collect();
        domains.into_iter().filter(|cpus| !cpus.is_empty()).collect()
    };
    if domains.is_empty() {
        return Err(no_domain(domain, 0));
    }
    let room: Vec<usize> = domains.iter().map(Vec::len).collect();
    let total = room.iter().sum();
    let asked = match threads {
        None => total,
        Some(threads) => enough(total, threads).map(|()| *threads as usize)?,
    };
    let cores_first: Vec<Vec<u32>> = domains.iter().map(|cpus| layout.cores_first(cpus)).collect();
    let shares = balanced(asked, &room);
    let blocks = |lists: &[Vec<u32>]| {
        lists.iter().zip(&shares).map(|(list, share)| list.iter().copied().take(*share).collect()).collect::<Vec<Vec<u32>>>()
    };
    Ok(match way {
        Way::Scatter => in_turn(&cores_first).into_iter().take(asked).collect(),
        Way::Balanced => blocks(&domains).concat(),
        // Use as few cores twice as possible, and give threads of one core adjacent numbers.
        Way::CoreBalanced => blocks(&cores_first).iter().flat_map(|cpus| layout.usable(cpus)).collect(),
    })
}
