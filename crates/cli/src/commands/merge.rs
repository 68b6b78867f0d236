//! `firsttouch merge`

use crate::arguments::Merge;
use crate::exit::{self, usage};
use crate::output::{message, print_json};
use crate::profile_name::named_file;
use anyhow::{Result, anyhow};
use firsttouch_model::rows::{Host, MOST_MISSING_RANKS, Part, missing_ranks};
use firsttouch_pipeline::Output;
use firsttouch_pipeline::merge::{Found, Merged, find, merge_files};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

pub fn run(arguments: &Merge) -> Result<u8> {
    let output = named_file(&arguments.output, None)?;
    let found = find(&arguments.inputs)?;
    let is_output = |file: &&PathBuf| {
        std::fs::canonicalize(file).ok().zip(std::fs::canonicalize(&output).ok()).is_some_and(|(one, other)| one == other)
    };
    if let Some(file) = found.files.iter().find(is_output) {
        let name = file.display();
        return usage(Err(anyhow!("cannot merge {name} into itself: the run would be lost; choose another name (-o)")));
    }
    let merged = merge_files(&found.files, &Output::File(output))?;
    if arguments.json {
        print_json(&as_json(&merged, &found))?;
    } else {
        message(&summary(&merged));
    }
    let empty: Vec<String> = found.empty.iter().map(|file| file.display().to_string()).collect();
    if !empty.is_empty() {
        message(&format!("nothing was recorded in {}", empty.join(", ")));
    }
    let programs: BTreeSet<&str> = merged.parts.iter().filter_map(|part| program(&part.meta.command)).collect();
    if programs.len() > 1 {
        let programs = programs.into_iter().collect::<Vec<_>>().join(", ");
        message(&format!("the profiles are of different programs: {programs}"));
    }
    if let Some(missing) = missing(&merged.parts) {
        let word = if missing.contains([',', '-']) { "ranks" } else { "rank" };
        message(&format!("no profile of {word} {missing}"));
    }
    for part in merged.parts.iter().filter(|part| part.meta.is_unfinished()) {
        message(&format!("{} has no end: its recorder was killed, or is still at work", part.source));
    }
    Ok(exit::DONE)
}

/// The file name of a command.
fn program(command: &[String]) -> Option<&str> {
    command.first().map(|program| program.rsplit('/').next().unwrap_or(program))
}

/// The ranks without a profile, as the kernel lists numbers.
fn missing(parts: &[Part]) -> Option<String> {
    let word = |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let missing: Vec<String> = missing_ranks(parts).into_iter().map(word).collect();
    (!missing.is_empty()).then(|| missing.join(","))
}

fn summary(merged: &Merged) -> String {
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let hosts: Vec<&str> = merged.hosts.iter().map(|host| host.name.as_str()).collect();
    let on = match hosts.as_slice() {
        [] => String::new(),
        [one] => format!(" of host {one}"),
        many => format!(" of {} ({})", count(many.len(), "host"), many.join(", ")),
    };
    let replaced = if merged.created.replaces { ", which replaces an older profile" } else { "" };
    format!("{}{on} -> {}{replaced}", count(merged.parts.len(), "profile"), merged.created.path.display())
}

fn as_json(merged: &Merged, found: &Found) -> Value {
    let host = |host: &Host| json!({"name": host.name, "first_node": host.first_node, "nodes": host.nodes, "first_cpu": host.first_cpu, "cpus": host.cpus});
    let part = |part: &Part| {
        let place = part.place.as_ref();
        json!({"source": part.source, "host": part.host, "rank": place.map(|place| place.rank), "size": place.map(|place| place.size),
               "job": place.and_then(|place| place.job.as_ref()), "exit_code": part.meta.exit_code, "signal": part.meta.signal,
               "finished": !part.meta.is_unfinished(), "shift_ns": part.shift_ns})
    };
    json!({
        "schema": "firsttouch.merge/1",
        "file": merged.created.path.display().to_string(),
        "hosts": merged.hosts.iter().map(host).collect::<Vec<_>>(),
        "parts": merged.parts.iter().map(part).collect::<Vec<_>>(),
        "missing_ranks": missing_ranks(&merged.parts).into_iter().flat_map(|(first, last)| first..=last).take(MOST_MISSING_RANKS).collect::<Vec<u32>>(),
        "empty": found.empty.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
    })
}
