//! `firsttouch migrate`

mod planned;
mod used;

use crate::arguments::Migrate;
use crate::exit::{self, Usage, usage};
use crate::output::{message, print, print_json};
use crate::processes;
use crate::progress;
use crate::terminal::style;
use anyhow::{Context, Result, anyhow};
use firsttouch_model::system::{Mapping, ProcessMaps};
use firsttouch_model::topology::Topology;
use firsttouch_model::{ExpressionError, format_bytes};
use firsttouch_placement::move_pages::{Migrated, Rule, Span, migrate, refusal};
use firsttouch_placement::{Device, NodeList, Numbered};
use firsttouch_report::{MigrateJson, MigrateTarget, migrate_text};
use firsttouch_system::calls::pages::Pages;
use firsttouch_system::process;
use firsttouch_system::{balancing, machine, topology};
use std::io::{IsTerminal, stderr, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

const ROOT: &str = "/";
/// The time before the first line of progress, and between two lines.
const PERIOD: Duration = Duration::from_millis(300);

pub fn run(arguments: &Migrate) -> Result<u8> {
    let pid = processes::only(&arguments.process)?;
    let machine = topology::read_outline(Path::new(ROOT))?;
    let target = target(arguments, &machine)?;
    let maps = process::maps(Path::new(ROOT), pid)?;
    let mut json = MigrateJson::new(&maps, &machine);
    let spans = match target {
        Target::Rule(rule) => {
            json.target = Some(MigrateTarget::of(&rule));
            everywhere(&maps, &rule)
        }
        Target::Used(file) => {
            let used = used::spans(file, pid, &maps)?;
            json.target = Some(MigrateTarget::used());
            json.notes.extend(used.notes);
            used.spans
        }
        Target::Planned(plan, profile) => {
            let planned = planned::spans(plan, profile, pid, &maps, &machine)?;
            json.target = Some(MigrateTarget::planned());
            json.notes.extend(planned.notes);
            planned.spans
        }
    };
    if machine.nodes.len() < 2 {
        json.target = None;
        json.notes.push("This machine has one node: there is nowhere to move pages.".to_owned());
        return show(arguments, &json);
    }
    let start = Instant::now();
    let mut progress = Progress::new(&spans);
    let outcome = migrate(&Pages::of(pid), threads(), &spans, &mut |done| progress.show(done));
    let seconds = start.elapsed().as_secs_f64();
    progress.clear();
    let done = outcome.map_err(|error| anyhow!("cannot move pages of process {pid}: {}", refusal(&error)))?;
    json.add(&done, seconds);
    if balancing::read(Path::new(ROOT)).value.is_some_and(|value| value & 1 == 1) {
        json.notes.push("The kernel's NUMA balancing is on, and may move pages again (firsttouch balancing).".to_owned());
    }
    show(arguments, &json)
}

fn show(arguments: &Migrate, json: &MigrateJson) -> Result<u8> {
    if arguments.json {
        json.notes.iter().for_each(|note| message(note));
        print_json(json)?;
    } else {
        print(&migrate_text(json, style(&stdout())))?;
    }
    Ok(exit::DONE)
}

/// The number of threads that move pages: half of the CPUs, because the process continues to run, but not more than are needed to fill the
/// links between nodes.
fn threads() -> usize {
    const MOST: usize = 4;
    (std::thread::available_parallelism().map_or(1, std::num::NonZero::get) / 2).clamp(1, MOST)
}

/// The target of the migration.
enum Target<'a> {
    Rule(Rule),
    /// The nodes on which this profile saw the pages used.
    Used(&'a Path),
    /// The nodes that this plan chooses, and the profile, unless the plan was made from it.
    Planned(&'a Path, Option<&'a Path>),
}

fn target<'a>(arguments: &'a Migrate, machine: &Topology) -> Result<Target<'a>> {
    if let Some(plan) = &arguments.plan {
        return Ok(Target::Planned(plan, arguments.profile.as_deref()));
    }
    match (&arguments.to, &arguments.interleave, &arguments.profile) {
        (Some(list), ..) => Ok(Target::Rule(Rule::To(nodes("--to", list, machine)?))),
        (None, Some(list), _) => Ok(Target::Rule(Rule::Interleave(nodes("--interleave", list, machine)?))),
        (None, None, Some(file)) => Ok(Target::Used(file)),
        (None, None, None) => Err(Usage(anyhow!(
            "cannot choose nodes: it is unknown where the pages are used. Profile the process (firsttouch profile --pid PID --duration 10) and give --profile FILE, or \
             name nodes with --to NODES or --interleave"
        ))
        .into()),
    }
}

fn nodes(option: &str, list: &str, machine: &Topology) -> Result<Vec<u32>> {
    let known = Numbered::nodes(machine).without_limits();
    let no_device = |_: &Device| Err(firsttouch_model::Error::invalid_input("a device cannot be named here"));
    let found: Result<Vec<u32>, ExpressionError> = list.parse().and_then(|list: NodeList| list.resolve(&known, None, &no_device));
    usage(found.with_context(|| option.to_owned()))
}

/// All resident memory of the process, by mapping.
fn everywhere(maps: &ProcessMaps, rule: &Rule) -> Vec<Span> {
    let of = |mapping: &Mapping| {
        let page_bytes = mapping.page_bytes?;
        let resident: u64 = mapping.nodes.as_ref()?.values().fold(0, |sum: u64, pages| sum.saturating_add(*pages));
        (resident > 0 && mapping.end > mapping.start).then(|| Span {
            start: mapping.start,
            end: mapping.end,
            page_bytes,
            grain_bytes: grain_bytes(mapping, page_bytes),
            present: Some(resident / page_bytes.max(1)),
            rule: rule.clone(),
        })
    };
    maps.mappings.iter().filter_map(of).collect()
}

/// The number of bytes of a mapping that can only move together.
fn grain_bytes(mapping: &Mapping, page_bytes: u64) -> u64 {
    if mapping.transparent_huge_bytes == 0 {
        return page_bytes;
    }
    machine::huge_page_bytes(Path::new("/")).unwrap_or(page_bytes)
}

/// Shows a line of progress on a terminal.
struct Progress {
    is_terminal: bool,
    all: u64,
    start: Instant,
    last: Instant,
    shown: bool,
}

impl Progress {
    fn new(spans: &[Span]) -> Self {
        let bytes = |span: &Span| span.present.map_or(span.end - span.start, |pages| pages.saturating_mul(span.page_bytes));
        let now = Instant::now();
        Self { is_terminal: stderr().is_terminal(), all: spans.iter().map(bytes).sum::<u64>().max(1), start: now, last: now, shown: false }
    }

    fn show(&mut self, done: &Migrated) {
        if !self.is_terminal || self.last.elapsed() < PERIOD {
            return;
        }
        (self.last, self.shown) = (Instant::now(), true);
        let seen = done.moved_bytes + done.there_bytes;
        let rate = done.moved_bytes as f64 / self.start.elapsed().as_secs_f64() / (1u64 << 30) as f64;
        let percent = (100.0 * seen as f64 / self.all as f64).min(100.0);
        progress::line(&format!("moving pages: {percent:.0} %, {} moved, {rate:.2} GiB/s", format_bytes(done.moved_bytes)));
    }

    fn clear(&self) {
        if self.shown {
            progress::line("");
        }
    }
}
