//! A plan as TOML, with comments for people who read or edit it.

use crate::{Blocks, Entry, Frame, Gain, Origin, Plan, Policy, RankNodes, SCHEMA, Threads, hash};
use firsttouch_model::shown::{is_control, shell_line};
use firsttouch_model::{Pin, format_bytes};
use std::fmt::{self, Display, Write};

impl Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Where the memory of a program goes, by the place in its code that allocates it. Edit it freely; what each key means"
        )?;
        // What was recorded while it ran has no command: only its number is known.
        let is_attached = matches!(&self.command[..], [one] if one.starts_with("pid "));
        // Those of a job of several programs are joined, as mpirun takes them.
        let has_several = self.ranks.is_some() && self.command.iter().any(|word| word == ":");
        let command =
            if is_attached || has_several { "PROGRAM ARGUMENTS".to_owned() } else { comment(&shell_line(&self.command)).to_string() };
        writeln!(f, "# is in docs/plan.md. Apply it with: firsttouch run --plan THIS_FILE -- {command}")?;
        match self.gain.filter(|_| !self.is_empty()) {
            Some(gain) => writeln!(f, "# Predicted on {}: {}.", comment(&self.judged_on), said(gain))?,
            None if self.is_empty() && self.left_alone.is_empty() => {
                writeln!(f, "# Nothing to place: no finding that a placement of memory would remove.")?;
            }
            None if self.is_empty() => writeln!(f, "# Nothing to place: left_alone says why.")?,
            None => {}
        }
        writeln!(f, "schema = {}", quoted(SCHEMA))?;
        writeln!(f, "made_from = {}", quoted(&self.made_from))?;
        writeln!(f, "judged_on = {}", quoted(&self.judged_on))?;
        writeln!(f, "command = [{}]", joined(self.command.iter().map(|word| quoted(word))))?;
        writeln!(f, "nodes = {}  # logical nodes, from 0; a run takes the nodes it finds in their place", self.nodes)?;
        writeln!(f, "least_bytes = {}  # smaller allocations are left alone", self.least_bytes)?;
        if let Some(gain) = self.gain {
            writeln!(f, "predicted_gain = {}", table(gain))?;
        }
        if !self.left_alone.is_empty() {
            writeln!(f, "left_alone = [")?;
            self.left_alone.iter().try_for_each(|sentence| writeln!(f, "    {},", quoted(sentence)))?;
            writeln!(f, "]")?;
        }
        write_threads(f, &self.threads)?;
        if let Some(ranks) = &self.ranks {
            write_ranks(f, ranks)?;
        }
        for module in &self.modules {
            writeln!(f, "\n[[module]]\nname = {}\npath = {}", quoted(&module.name), quoted(&module.path))?;
            if !module.build_id.is_empty() {
                writeln!(f, "build_id = {}", quoted(&module.build_id))?;
            }
        }
        self.entries.iter().try_for_each(|entry| write_entry(f, entry))
    }
}

fn write_threads(f: &mut fmt::Formatter<'_>, threads: &Threads) -> fmt::Result {
    if threads.count == 0 {
        return Ok(());
    }
    writeln!(f, "\n[threads]\ncount = {}", threads.count)?;
    if !threads.idle.is_empty() {
        let idle = joined(threads.idle.iter().map(u32::to_string));
        writeln!(f, "idle = [{idle}]  # threads that did nothing: not pinned, and without a place among the others")?;
    }
    match &threads.pin {
        None => writeln!(f, "pin = \"none\""),
        Some(Pin::Spread) if !threads.idle.is_empty() => {
            writeln!(f, "pin = \"spread\"  # the others in equal blocks on the nodes; \"none\" leaves threads alone")
        }
        Some(Pin::Spread) => writeln!(f, "pin = \"spread\"  # thread i on node i * nodes / count; \"none\" leaves threads alone"),
        Some(Pin::Compact) => writeln!(f, "pin = \"compact\""),
        Some(Pin::Nodes(nodes)) => {
            let list: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
            writeln!(f, "pin = {}  # the logical node of each thread", quoted(&list.join(",")))
        }
    }
}

fn write_ranks(f: &mut fmt::Formatter<'_>, ranks: &RankNodes) -> fmt::Result {
    let list = |nodes: &Vec<u32>| format!("[{}]", joined(nodes.iter().map(u32::to_string)));
    writeln!(f, "\n# In the launcher's command line, in the place of the program: firsttouch run --plan THIS_FILE -- PROGRAM")?;
    writeln!(f, "[ranks]\nnodes = {}  # logical nodes of a host", ranks.nodes)?;
    writeln!(f, "of_rank = [{}]  # the nodes of each rank of a host, unless the launcher bound it", joined(ranks.of_rank.iter().map(list)))
}

fn write_entry(f: &mut fmt::Formatter<'_>, entry: &Entry) -> fmt::Result {
    let size = format_bytes(entry.bytes);
    let at = if entry.at.is_empty() { String::new() } else { format!("{}, ", comment(&entry.at)) };
    writeln!(f, "\n# {} ({at}{size}): {}", comment(&entry.what), comment(&entry.reason))?;
    if let Some(gain) = entry.gain {
        writeln!(f, "# alone: {}", said(gain))?;
    }
    writeln!(f, "[[place]]\nwhat = {}\nat = {}\nbytes = {}", quoted(&entry.what), quoted(&entry.at), entry.bytes)?;
    writeln!(f, "policy = {}", quoted(entry.policy.name()))?;
    match &entry.policy {
        Policy::Bind(nodes) | Policy::Interleave(nodes) | Policy::Weighted(nodes) if !nodes.is_empty() => {
            writeln!(f, "nodes = [{}]", joined(nodes.iter().map(u32::to_string)))?;
        }
        Policy::Preferred(node) => writeln!(f, "nodes = [{node}]")?,
        Policy::Blocked(blocks) => write_blocks(f, blocks)?,
        _ => {}
    }
    if entry.small_pages {
        writeln!(f, "small_pages = true  # no huge pages: they are too few to divide")?;
    }
    writeln!(f, "reason = {}", quoted(&entry.reason))?;
    if let Some(gain) = entry.gain {
        writeln!(f, "predicted_gain = {}", table(gain))?;
    }
    match &entry.origin {
        Origin::Symbol { module, name } => writeln!(f, "symbol = {{ module = {}, name = {} }}", quoted(module), quoted(name)),
        Origin::Site(site) => {
            writeln!(f, "site = {}  # names the lines below; not read back", quoted(&hash(site)))?;
            writeln!(f, "call = {}", quoted(&site.call))?;
            if let Some((first, every)) = site.ordinal {
                writeln!(
                    f,
                    "ordinal = {{ first = {first}, every = {every} }}  # of the allocations there, this one and each so many later"
                )?;
            }
            if site.shares_lines {
                writeln!(f, "shares_lines = true  # so do other calls: only the same build tells them apart")?;
            }
            writeln!(f, "frames = [")?;
            site.frames.iter().try_for_each(|frame| writeln!(f, "    {},", line(frame)))?;
            writeln!(f, "]")
        }
    }
}

fn write_blocks(f: &mut fmt::Formatter<'_>, blocks: &Blocks) -> fmt::Result {
    let equal = if blocks.until.is_empty() { "equal parts, " } else { "" };
    writeln!(f, "threads = [{}]  # {equal}each on the node of its thread", joined(blocks.threads.iter().map(u32::to_string)))?;
    if !blocks.until.is_empty() {
        writeln!(f, "until = [{}]  # where each part ends", joined(blocks.until.iter().map(|end| float(*end))))?;
    }
    if let Some(period) = blocks.period_bytes {
        writeln!(f, "period_bytes = {}  # the parts repeat", float(period))?;
    }
    if blocks.rows > 1 {
        writeln!(f, "rows = {}  # so many allocations make up the whole that is divided", blocks.rows)?;
    }
    Ok(())
}

fn line(frame: &Frame) -> String {
    let mut text = format!("{{ module = {}", quoted(&frame.module));
    if let Some(offset) = frame.offset {
        let _ = write!(text, ", offset = {offset:#x}");
    }
    if !frame.copies.is_empty() {
        let copies = joined(frame.copies.iter().map(|(from, to)| format!("[{from:#x}, {to:#x}]")));
        let _ = write!(text, ", copies = [{copies}]");
    }
    if frame.inlined {
        text.push_str(", inlined = true");
    }
    if !frame.function.is_empty() {
        let _ = write!(text, ", function = {}", quoted(&frame.function));
    }
    if !frame.file.is_empty() {
        let _ = write!(text, ", file = {}", quoted(&frame.file));
    }
    if frame.line != 0 {
        let _ = write!(text, ", line = {}", frame.line);
    }
    text + " }"
}

fn said(gain: Gain) -> String {
    format!("{:.2} times as fast [{:.2}, {:.2}]", gain.value, gain.low, gain.high)
}

fn table(gain: Gain) -> String {
    format!("{{ value = {}, low = {}, high = {} }}", float(gain.value), float(gain.low), float(gain.high))
}

/// A number with a point or an exponent, so that TOML reads a float.
fn float(number: f64) -> String {
    format!("{number:?}")
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Printed in a CI system, `##[` would be a command.
            '#' if quoted.ends_with('#') => quoted.push_str("\\u0023"),
            c if is_control(c) => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Text that cannot end its comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if is_control(c) { ' ' } else { c }).collect::<String>().replace("##", "# #")
}
