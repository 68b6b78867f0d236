//! Counters of memory controllers: `uncore_imc_*` (Intel), `amd_umc_*` (AMD, Zen 4), below sys/bus/event_source/devices.

use super::event_format::{Config, Field, bytes_per_count, encode};
use super::places::CpuNodes;
use crate::files::{Root, parse_list};

pub const DEVICES: &str = "sys/bus/event_source/devices";

/// One event of one memory controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerEvent {
    /// The unit: `uncore_imc_0`.
    pub unit: String,
    pub event: String,
    /// What perf_event_open is asked for: the unit's type, and the event.
    pub kind: u32,
    pub config: Config,
    /// The CPU that counts for it.
    pub cpu: u32,
    pub node: u32,
    pub is_read: bool,
    pub bytes_per_count: f64,
}

/// Units of one kind and the names of their events.
struct Family {
    is_unit: fn(&str) -> bool,
    reads: &'static [&'static str],
    writes: &'static [&'static str],
    /// The events of units for which the kernel names none: encoding of reads, of writes, and bytes of each.
    encoded: Option<(&'static str, &'static str, f64)>,
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The first one of which there are units counts: a machine may have two that count the same transfers.
/// Names and encodings: arch/x86/events/intel/uncore_snbep.c, uncore_snb.c and uncore_discovery.c; AMD's from
/// tools/perf/pmu-events/arch/x86/amdzen4/memory-controller.json (umc_cas_cmd.rd and .wr, bursts of 64 bytes).
const FAMILIES: [Family; 3] = [
    Family {
        is_unit: |name| name == "uncore_imc" || is_numbered(name, "uncore_imc_"),
        reads: &["cas_count_read", "cas_count_read_sch0", "cas_count_read_sch1", "data_reads"],
        writes: &["cas_count_write", "cas_count_write_sch0", "cas_count_write_sch1", "data_writes"],
        encoded: None,
    },
    Family {
        is_unit: |name| name == "uncore_imc_free_running" || is_numbered(name, "uncore_imc_free_running_"),
        reads: &["read", "data_read"],
        writes: &["write", "data_write"],
        encoded: None,
    },
    Family {
        is_unit: |name| is_numbered(name, "amd_umc_"),
        reads: &[],
        writes: &[],
        encoded: Some(("event=0x0a,rdwrmask=0x1", "event=0x0a,rdwrmask=0x2", 64.0)),
    },
];

/// The events that count the transfers of all memory controllers; empty if the kernel shows none.
///
/// # Errors
/// Names the file that cannot be used. A part of the controllers would not be the bandwidth.
pub fn find(root: &Root) -> Result<Vec<ControllerEvent>, String> {
    let mut names = root.names(DEVICES).unwrap_or_default();
    names.sort_unstable();
    for family in &FAMILIES {
        let units: Vec<&String> = names.iter().filter(|name| (family.is_unit)(name)).collect();
        if units.is_empty() {
            continue;
        }
        let cpus = CpuNodes::read(root);
        let mut events = Vec::new();
        for unit in units {
            events.extend(of_unit(root, &cpus, family, unit)?);
        }
        if !events.is_empty() {
            return Ok(events);
        }
    }
    Ok(Vec::new())
}

fn of_unit(root: &Root, cpus: &CpuNodes, family: &Family, unit: &str) -> Result<Vec<ControllerEvent>, String> {
    let folder = format!("{DEVICES}/{unit}");
    let in_file = |file: &str, why: String| format!("{}: {why}", root.path(file).display());
    let text = |file: &str| match root.text(file) {
        Ok(text) => Ok(text),
        Err(error) => Err(in_file(file, error.root_cause().to_string())),
    };
    let needed = |file: &str| text(file)?.ok_or_else(|| in_file(file, "it is missing, or may not be read".to_owned()));
    let mut named: Vec<(String, String, bool, f64)> = Vec::new();
    for (names, is_read) in [(family.reads, true), (family.writes, false)] {
        for name in names {
            let file = format!("{folder}/events/{name}");
            let Some(event) = text(&file)? else { continue };
            let (scale, unit) = (format!("{file}.scale"), format!("{file}.unit"));
            let bytes = bytes_per_count(&needed(&scale)?, &needed(&unit)?).map_err(|why| in_file(&scale, why))?;
            named.push(((*name).to_owned(), event, is_read, bytes));
        }
    }
    if let Some((reads, writes, bytes)) = family.encoded {
        named.extend(
            [("reads", reads, true), ("writes", writes, false)]
                .map(|(name, event, is_read)| (name.to_owned(), event.to_owned(), is_read, bytes)),
        );
    }
    // Units without such events count something else.
    if named.is_empty() {
        return Ok(Vec::new());
    }
    if !(named.iter().any(|(_, _, is_read, _)| *is_read) && named.iter().any(|(_, _, is_read, _)| !is_read)) {
        return Err(in_file(&format!("{folder}/events"), "it has reads without writes, or writes without reads".to_owned()));
    }
    let type_file = format!("{folder}/type");
    let kind = needed(&type_file)?;
    let kind = kind.parse().map_err(|_| in_file(&type_file, format!("expected a number, found {kind:?}")))?;
    let mask_file = format!("{folder}/cpumask");
    let mask = parse_list(&needed(&mask_file)?).map_err(|error| in_file(&mask_file, error.reason.to_owned()))?;
    let placed = cpus.of_mask(root, &mask).map_err(|why| in_file(&mask_file, why))?;
    let mut events = Vec::new();
    for (name, event, is_read, bytes_per_count) in named {
        let field = |term: &str| {
            let file = format!("{folder}/format/{term}");
            text(&file)?.map(|bits| Field::parse(&bits).map_err(|why| in_file(&file, why))).transpose()
        };
        let config = encode(&event, field).map_err(|why| in_file(&format!("{folder}/events/{name}"), why))?;
        events.extend(placed.iter().map(|&(cpu, node)| ControllerEvent {
            unit: unit.to_owned(),
            event: name.clone(),
            kind,
            config,
            cpu,
            node,
            is_read,
            bytes_per_count,
        }));
    }
    Ok(events)
}
