//! What a plan must hold to, whoever wrote it.

use super::{Blocks, Entry, MOST_ENTRIES, MOST_FRAMES, MOST_PARTS, Origin, Place, Plan};
use firsttouch_model::Pin;

/// One entry of a plan whose other parts are read.
pub fn check(entry: &Entry, plan: &Plan) -> Result<(), String> {
    let known = |module: &String| match plan.modules.iter().any(|known| known.name == *module) {
        true => Ok(()),
        false => Err(format!("there is no [[module]] with the name '{module}'")),
    };
    match &entry.origin {
        Origin::Symbol { module, .. } => known(module)?,
        Origin::Site(site) => {
            if !(1..=MOST_FRAMES).contains(&site.frames.len()) {
                return Err(format!("a site has 1 to {MOST_FRAMES} frames"));
            }
            site.frames.iter().try_for_each(|frame| known(&frame.module))?;
            if site.frames.iter().all(|frame| frame.offset.is_none()) {
                return Err("one of the frames at least must have an offset".to_owned());
            }
            if site.frames.last().is_some_and(|frame| frame.inlined) {
                return Err("the last frame cannot be inlined: there is none that it could be inlined into".to_owned());
            }
            let pairs = site.frames.iter().zip(site.frames.iter().skip(1));
            for (inner, outer) in pairs.filter(|(inner, _)| inner.inlined) {
                if (&inner.module, inner.offset) != (&outer.module, outer.offset) || inner.offset.is_none() {
                    return Err(format!("'{}' is inlined, so it has the module and offset of the next frame", inner.function));
                }
            }
            if site.ordinal.is_some_and(|(first, every)| every != 0 && first >= every) {
                return Err("of an ordinal, first is less than every".to_owned());
            }
        }
    }
    match &entry.place {
        Place::Bind(nodes) | Place::Interleave(nodes) | Place::Weighted(nodes) => nodes.iter().try_for_each(|node| is_node(*node, plan)),
        Place::Preferred(node) => is_node(*node, plan),
        Place::Blocked(blocks) => are_blocks(blocks, plan),
        Place::Leave => Ok(()),
    }
}

pub fn check_all(plan: &Plan) -> Result<(), String> {
    if plan.entries.len() > MOST_ENTRIES {
        return Err(format!("more than {MOST_ENTRIES} entries"));
    }
    let mut names: Vec<&str> = plan.modules.iter().map(|module| module.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("two modules have the name '{}'", pair[0]));
    }
    let digits = |text: &str| text.len() <= 64 && text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(module) = plan.modules.iter().find(|module| !digits(&module.build_id)) {
        return Err(format!("the build_id of '{}' is no even number of hexadecimal digits, 64 at most", module.name));
    }
    match &plan.threads.pin {
        Some(Pin::Compact) => Err("pin = \"compact\" depends on the machine: write the node of each thread, such as 0,0,1,1".to_owned()),
        Some(pin) => pin.check(plan.nodes as usize).map_err(|why| format!("pin: {why}")),
        None => Ok(()),
    }
}

fn is_node(node: u32, plan: &Plan) -> Result<(), String> {
    if node < plan.nodes { Ok(()) } else { Err(format!("node {node} does not exist: the plan has nodes 0-{}", plan.nodes - 1)) }
}

fn are_blocks(blocks: &Blocks, plan: &Plan) -> Result<(), String> {
    if !(1..=MOST_PARTS).contains(&blocks.threads.len()) {
        return Err(format!("policy \"blocked\" needs 1 to {MOST_PARTS} threads, one a part"));
    }
    let count = plan.threads.count;
    if let Some(thread) = blocks.threads.iter().find(|thread| **thread >= count) {
        return Err(match count {
            0 => "policy \"blocked\" needs [threads]".to_owned(),
            _ => format!("thread {thread} does not exist: the plan has threads 0-{}", count - 1),
        });
    }
    if !blocks.until.is_empty() {
        let rises = blocks.until.windows(2).all(|pair| pair[0] < pair[1]) && blocks.until.first().is_some_and(|first| *first > 0.0);
        if blocks.until.len() != blocks.threads.len() || !rises || blocks.until.last() != Some(&1.0) {
            return Err("until has a number for each of threads, rising from above 0 to 1.0".to_owned());
        }
    }
    if blocks.period_bytes.is_some_and(|period| !(period.is_finite() && period >= 4096.0)) {
        return Err("period_bytes is at least a page, 4096".to_owned());
    }
    if blocks.rows == 0 {
        return Err("rows is at least 1".to_owned());
    }
    Ok(())
}
