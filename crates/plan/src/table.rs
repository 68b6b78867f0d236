//! The plan in the form that the preloaded library reads: native/include/firsttouch_plan.h, field by field.

use crate::{Applied, Entry, KernelPolicy, Origin, Plan};
use firsttouch_model::shown::{self, Colours, one_line};

const MAGIC: u64 = 0x314e_414c_5054_4654; /* "TFTPLAN1", little-endian */
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 128;
const MODULE_BYTES: usize = 56;
const ENTRY_BYTES: usize = 304;
const FRAME_BYTES: usize = 16;
const RANGE_BYTES: usize = 16;
const PART_BYTES: usize = 16;
const NAME_BYTES: usize = 96;
const ID_BYTES: usize = 32;
const NODE_WORDS: usize = 16;

const SMALL_PAGES: u32 = 1;
const STATIC: u32 = 2;
const MISSING: u32 = 4;

/// A file that contains code or static arrays. The library recognises it by its build ID, else by device and inode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub build_id: Vec<u8>,
    pub device: u64,
    pub inode: u64,
}

/// The code that one frame represents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// Index of the identity.
    pub module: usize,
    /// Half-open ranges of file offsets; if empty, any code of the module, in one or more frames.
    pub ranges: Vec<(u64, u64)>,
}

/// A static array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    pub module: usize,
    /// ELF address.
    pub address: u64,
    pub bytes: u64,
}

/// The position of an entry in the files that will run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Site(Vec<Code>),
    Symbol(Spot),
    Missing,
}

/// The contents of the table.
pub struct Table<'a> {
    pub plan: &'a Plan,
    pub applied: &'a Applied,
    pub identities: &'a [Identity],
    /// The position of each entry.
    pub found: &'a [Found],
    /// The process at whose end the run ends.
    pub pid: u32,
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn u32(&mut self, value: usize) {
        self.0.extend(u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// Text or digits in a field of fixed size, padded with zeros.
    fn field(&mut self, bytes: &[u8], size: usize) {
        let taken = bytes.len().min(size);
        self.0.extend(&bytes[..taken]);
        self.0.resize(self.0.len() + size - taken, 0);
    }
}

/// Writes the table.
#[must_use]
pub fn table(table: &Table<'_>) -> Vec<u8> {
    let (mut entries, mut frames, mut ranges, mut parts) = (Bytes(vec![]), Bytes(vec![]), Bytes(vec![]), Bytes(vec![]));
    let missing = Found::Missing;
    for (index, entry) in table.plan.entries.iter().enumerate() {
        let found = table.found.get(index).unwrap_or(&missing);
        let policies = table.applied.policies.get(index).unwrap_or(&KernelPolicy::Leave);
        let first_frame = frames.0.len() / FRAME_BYTES;
        if let Found::Site(code) = found {
            for code in code {
                frames.u32(code.module);
                frames.u32(usize::from(code.ranges.is_empty()));
                frames.u32(ranges.0.len() / RANGE_BYTES);
                frames.u32(code.ranges.len());
                for (from, to) in &code.ranges {
                    ranges.u64(*from);
                    ranges.u64(*to);
                }
            }
        }
        let first_part = parts.0.len() / PART_BYTES;
        if let KernelPolicy::Parts { parts: list, .. } = policies {
            for (end, node) in list {
                parts.f64(*end);
                parts.u32(*node as usize);
                parts.u32(0);
            }
        }
        write_entry(
            &mut entries,
            &TableRow {
                entry,
                found,
                policies,
                frames: (first_frame, frames.0.len() / FRAME_BYTES),
                parts: (first_part, parts.0.len() / PART_BYTES),
            },
        );
    }
    let mut modules = Bytes(vec![]);
    for identity in table.identities {
        modules.field(&identity.build_id, ID_BYTES);
        modules.u32(identity.build_id.len().min(ID_BYTES));
        modules.u32(0);
        modules.u64(identity.device);
        modules.u64(identity.inode);
    }
    let mut bytes = Bytes(vec![]);
    let sections = [&modules, &entries, &frames, &ranges, &parts];
    bytes.u64(MAGIC);
    bytes.u32(VERSION as usize);
    bytes.u32(HEADER_BYTES + sections.iter().map(|section| section.0.len()).sum::<usize>());
    bytes.u32(table.pid as usize);
    for (section, size) in sections.iter().zip([MODULE_BYTES, ENTRY_BYTES, FRAME_BYTES, RANGE_BYTES, PART_BYTES]) {
        bytes.u32(section.0.len() / size);
    }
    bytes.u64(table.plan.least_bytes.max(1));
    bytes.0.resize(HEADER_BYTES, 0);
    sections.iter().for_each(|section| bytes.0.extend(&section.0));
    bytes.0
}

struct TableRow<'a> {
    entry: &'a Entry,
    found: &'a Found,
    policies: &'a KernelPolicy,
    frames: (usize, usize),
    parts: (usize, usize),
}

fn write_entry(bytes: &mut Bytes, row: &TableRow<'_>) {
    let start = bytes.0.len();
    let (first, every) = match &row.entry.origin {
        Origin::Site(site) => site.ordinal.unwrap_or((0, 1)),
        Origin::Symbol { .. } => (0, 1),
    };
    let (mode, nodes, rows, period) = match row.policies {
        KernelPolicy::Leave => (0, &[][..], 1, 0.0),
        KernelPolicy::Whole { mode, nodes } => (*mode, &nodes[..], 1, 0.0),
        KernelPolicy::Parts { period_bytes, rows, .. } => (0, &[][..], *rows, period_bytes.unwrap_or(0.0)),
    };
    let spot = match row.found {
        Found::Symbol(spot) => *spot,
        _ => Spot::default(),
    };
    let flags = if row.entry.small_pages && *row.policies != KernelPolicy::Leave { SMALL_PAGES } else { 0 }
        | if matches!(row.entry.origin, Origin::Symbol { .. }) { STATIC } else { 0 }
        | if *row.found == Found::Missing { MISSING } else { 0 };
    bytes.u32(row.frames.0);
    bytes.u32(row.frames.1 - row.frames.0);
    bytes.u32(first as usize);
    bytes.u32(every as usize);
    bytes.u32(rows as usize);
    bytes.u32(mode as usize);
    bytes.u32(row.parts.0);
    bytes.u32(row.parts.1 - row.parts.0);
    bytes.u32(flags as usize);
    bytes.u32(spot.module);
    bytes.u64(spot.address);
    bytes.u64(spot.bytes);
    bytes.f64(period);
    let mut words = [0u64; NODE_WORDS];
    for node in nodes {
        if let Some(word) = words.get_mut(*node as usize / 64) {
            *word |= 1 << (node % 64);
        }
    }
    words.iter().for_each(|word| bytes.u64(*word));
    let at = if row.entry.at.is_empty() { String::new() } else { format!(" ({})", row.entry.at) };
    let name = shown::text(&one_line(&format!("{}{at}", row.entry.what)), Colours::None).into_owned();
    let mut end = name.len().min(NAME_BYTES - 1);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    bytes.field(&name.as_bytes()[..end], NAME_BYTES);
    bytes.0.resize(start + ENTRY_BYTES, 0);
}
