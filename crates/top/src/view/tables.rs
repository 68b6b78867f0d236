//! The tables of the views: columns, rows, order and filter.

use crate::cells;
use firsttouch_monitor::{LEAST_SAMPLES, MappedMemory, NodeRow, ObjectRow, ProcessRow, Remote, Snapshot, ThreadRow};
use std::cmp::Ordering;

/// What a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Nodes,
    Processes,
    Threads,
    Objects,
    Mappings,
}

/// A column. Columns with a lower rank are left out first where the screen is narrow; the last column takes the width that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub title: &'static str,
    pub width: u16,
    pub is_right: bool,
    pub rank: u8,
}

const fn column(title: &'static str, width: u16, is_right: bool, rank: u8) -> Column {
    Column { title, width, is_right, rank }
}

const NODES: &[Column] = &[
    column("NODE", 4, true, 9),
    column("CPUS", 4, true, 6),
    column("CPU%", 6, true, 9),
    column("TOTAL", 6, true, 7),
    column("USED", 6, true, 8),
    column("FREE", 6, true, 8),
    column("HIT/s", 6, true, 5),
    column("MISS/s", 6, true, 5),
    column("FOREIGN/s", 9, true, 4),
    column("IN", 5, true, 5),
    column("OUT", 5, true, 5),
];
const PROCESSES: &[Column] = &[
    column("PID", 7, true, 9),
    column("USER", 8, false, 3),
    column("CPU%", 6, true, 9),
    column("RES", 5, true, 6),
    column("THR", 4, true, 4),
    column("NODES", 13, false, 5),
    column("REMOTE", 13, false, 8),
    column("n", 5, true, 2),
    column("SOURCE", 6, false, 1),
    column("COMMAND", 16, false, 9),
];
const THREADS: &[Column] = &[
    column("TID", 7, true, 9),
    column("S", 1, false, 3),
    column("CPU%", 6, true, 9),
    column("CPU", 4, true, 4),
    column("NODE", 5, true, 8),
    column("MOVES", 6, true, 2),
    column("ALLOWED", 9, false, 3),
    column("REMOTE", 6, true, 7),
    column("USES MOST", 16, false, 6),
    column("NAME", 8, false, 9),
];
const OBJECTS: &[Column] = &[
    column("SHARE", 6, true, 9),
    column("BYTES", 5, true, 6),
    column("PAGES ON", 13, false, 7),
    column("USED BY", 13, false, 7),
    column("REMOTE", 13, false, 8),
    column("n", 5, true, 2),
    column("LINE", 16, false, 3),
    column("OBJECT", 8, false, 9),
];
const MAPPINGS: &[Column] =
    &[column("RES", 5, true, 9), column("NODES", 20, false, 8), column("POLICY", 14, false, 4), column("MAPPING", 8, false, 9)];

impl Kind {
    #[must_use]
    pub fn columns(self) -> &'static [Column] {
        match self {
            Self::Nodes => NODES,
            Self::Processes => PROCESSES,
            Self::Threads => THREADS,
            Self::Objects => OBJECTS,
            Self::Mappings => MAPPINGS,
        }
    }

    /// The column that rows are sorted by at first, and whether the largest comes first.
    #[must_use]
    pub fn first_order(self) -> Order {
        match self {
            Self::Nodes => Order { column: 0, descending: false },
            Self::Processes | Self::Threads => Order { column: 2, descending: true },
            Self::Objects | Self::Mappings => Order { column: 0, descending: true },
        }
    }
}

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub column: usize,
    pub descending: bool,
}

/// How a cell looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    /// Uncertain, or not known.
    Dim,
    Good,
    Fair,
    Bad,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub text: String,
    /// What it is sorted by; without a number, by the text.
    pub number: Option<f64>,
    pub tone: Tone,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The number of the process, thread or object.
    pub key: i64,
    pub cells: Vec<Cell>,
    /// What is said of the selected row: why a figure is missing.
    pub remark: Option<String>,
}

fn number(text: String, number: Option<f64>) -> Cell {
    let tone = if number.is_none() { Tone::Dim } else { Tone::Plain };
    // What is not known comes last.
    Cell { text, number: Some(number.unwrap_or(-1.0)), tone }
}

fn words(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), number: None, tone: Tone::Plain }
}

fn maybe(text: Option<&String>) -> Cell {
    text.map_or_else(|| Cell { tone: Tone::Dim, ..words(cells::UNKNOWN) }, words)
}

/// A remote share: below 10 % is good, above 30 % bad.
fn tone(share: f64) -> Tone {
    match share {
        share if share < 0.1 => Tone::Good,
        share if share < 0.3 => Tone::Fair,
        _ => Tone::Bad,
    }
}

fn remote(figure: &Remote, is_old: bool) -> Cell {
    let tone = if figure.is_uncertain() || is_old { Tone::Dim } else { figure.share.map_or(Tone::Dim, tone) };
    Cell { tone, ..number(cells::remote(figure), figure.share) }
}

fn node(row: &NodeRow) -> Row {
    let used = row.memory_total_bytes.zip(row.memory_free_bytes).map(|(total, free)| total.saturating_sub(free));
    let bytes = |bytes: Option<u64>| number(cells::known_size(bytes), bytes.map(|bytes| bytes as f64));
    let rate = |rate: Option<f64>| number(cells::rate(rate), rate);
    let share = |share: Option<f64>| number(cells::share(share), share);
    let misses = row.misses_per_s.unwrap_or(0.0) + row.foreign_per_s.unwrap_or(0.0);
    Row {
        key: row.node.into(),
        cells: vec![
            number(row.node.to_string(), Some(row.node.into())),
            number(row.cpus.to_string(), Some(row.cpus as f64)),
            number(cells::cpu(row.cpu), row.cpu),
            bytes(row.memory_total_bytes),
            bytes(used),
            bytes(row.memory_free_bytes),
            rate(row.hits_per_s),
            Cell { tone: if misses > 0.0 { Tone::Bad } else { Tone::Plain }, ..rate(row.misses_per_s) },
            rate(row.foreign_per_s),
            share(row.accesses_in),
            share(row.accesses_out),
        ],
        remark: (misses > 0.0).then(|| format!("node {}: memory was taken from another node than wanted, because one was full", row.node)),
    }
}

fn process(row: &ProcessRow, snapshot: &Snapshot) -> Row {
    let nodes = cells::by_node(row.nodes.as_ref());
    let why = row.remote.reason.as_ref().map(|why| format!("process {}: no remote share: {why}", row.pid));
    let covers = row.remote.covers.filter(|_| row.remote.share.is_some());
    let covers = covers.map(|covers| {
        let until = row.remote.age_s(snapshot.time_s).map_or_else(String::new, |age| format!(", the newest {age:.0} s ago"));
        format!(
            "process {}: the share covers {:.0} % of the accesses beyond caches; {} samples{until}",
            row.pid,
            100.0 * covers,
            row.remote.samples
        )
    });
    let mut cells = vec![
        number(row.pid.to_string(), Some(row.pid.into())),
        words(row.user.clone()),
        number(cells::cpu(row.cpu), row.cpu),
        number(cells::size(row.resident_bytes), Some(row.resident_bytes as f64)),
        number(row.threads.to_string(), Some(row.threads as f64)),
        Cell { tone: if row.nodes.is_none() { Tone::Dim } else { Tone::Plain }, ..words(nodes) },
        remote(&row.remote, row.remote.is_old(snapshot)),
        number(if row.remote.share.is_some() { row.remote.samples.to_string() } else { cells::unknown() }, Some(row.remote.samples as f64)),
        maybe(row.remote.source.as_ref()),
        words(row.command.clone()),
    ];
    if row.has_ended {
        cells.iter_mut().for_each(|cell| cell.tone = Tone::Dim);
    }
    Row { key: row.pid.into(), cells, remark: why.or(covers).or_else(|| row.nodes_unknown.clone()) }
}

fn thread(row: &ThreadRow) -> Row {
    let node = row.judged_node.or(row.node);
    Row {
        key: row.tid.into(),
        cells: vec![
            number(row.tid.to_string(), Some(row.tid.into())),
            words(row.state.to_string()),
            number(cells::cpu(row.cpu), row.cpu),
            number(row.last_cpu.to_string(), Some(row.last_cpu.into())),
            number(node.map_or_else(cells::unknown, |node| node.to_string()), node.map(f64::from)),
            number(row.migrations.map_or_else(cells::unknown, |moves| moves.to_string()), row.migrations.map(|moves| moves as f64)),
            maybe(row.allowed_cpus.as_ref()),
            Cell { tone: row.remote.map_or(Tone::Dim, tone), ..number(cells::share(row.remote), row.remote) },
            maybe(row.hottest.as_ref()),
            words(row.name.clone()),
        ],
        remark: row.allowed_nodes.as_ref().map(|nodes| format!("thread {}: may use memory of nodes {nodes}", row.tid)),
    }
}

fn object(row: &ObjectRow) -> Row {
    let samples = row.remote.samples;
    let dim_if_few = |cell: Cell| if samples < LEAST_SAMPLES { Cell { tone: Tone::Dim, ..cell } } else { cell };
    let why = row.remote.reason.as_ref().map(|why| format!("{}: {why}", row.name));
    Row {
        key: row.id,
        cells: vec![
            dim_if_few(number(cells::share(row.share), row.share)),
            number(cells::size(row.bytes), Some(row.bytes as f64)),
            words(cells::shares_by_node(&row.pages_by_node)),
            dim_if_few(words(cells::shares_by_node(&row.users_by_node))),
            remote(&row.remote, false),
            dim_if_few(number(samples.to_string(), Some(samples as f64))),
            maybe(row.line.as_ref()),
            words(row.name.clone()),
        ],
        remark: Some(why.unwrap_or_else(|| format!("{}: {samples} samples", row.name))),
    }
}

fn mapping(row: &MappedMemory) -> Row {
    Row {
        key: row.id.cast_signed(),
        cells: vec![
            number(cells::size(row.resident_bytes), Some(row.resident_bytes as f64)),
            words(cells::by_node(Some(&row.nodes))),
            words(row.policy.clone()),
            words(row.name.clone()),
        ],
        remark: None,
    }
}

/// The rows of a table in their order. `filter`: rows that contain this text, in any case of letters.
#[must_use]
pub fn rows(kind: Kind, snapshot: &Snapshot, filter: &str, order: Order) -> Vec<Row> {
    let detail = snapshot.detail.as_ref();
    let mut rows: Vec<Row> = match kind {
        Kind::Nodes => snapshot.nodes.iter().map(node).collect(),
        Kind::Processes => snapshot.processes.iter().map(|row| process(row, snapshot)).collect(),
        Kind::Threads => detail.map_or_else(Vec::new, |detail| detail.threads.iter().map(thread).collect()),
        Kind::Objects => detail.map_or_else(Vec::new, |detail| detail.objects.iter().map(object).collect()),
        Kind::Mappings => detail.map_or_else(Vec::new, |detail| detail.mappings.iter().map(mapping).collect()),
    };
    rows.retain(|row| contains(row, filter));
    let compare = |a: &Row, b: &Row| {
        let (Some(one), Some(other)) = (a.cells.get(order.column), b.cells.get(order.column)) else { return Ordering::Equal };
        let by_value = match (one.number, other.number) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            _ => one.text.cmp(&other.text),
        };
        (if order.descending { by_value.reverse() } else { by_value }).then(a.key.cmp(&b.key))
    };
    rows.sort_by(compare);
    rows
}

/// Whether a cell of the row contains the text.
#[must_use]
pub fn contains(row: &Row, text: &str) -> bool {
    let text = text.to_lowercase();
    text.is_empty() || row.cells.iter().any(|cell| cell.text.to_lowercase().contains(&text))
}

/// The columns that fit into the width, as their places in the table, with their widths: the last one takes what is left.
#[must_use]
pub fn fitting(columns: &[Column], width: u16) -> Vec<(usize, u16)> {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let needed = |kept: &[usize]| kept.iter().map(|at| columns[*at].width + 1).sum::<u16>().saturating_sub(1);
    while kept.len() > 1 && needed(&kept) > width {
        let Some(&least) = kept.iter().rev().min_by_key(|at| columns[**at].rank) else { break };
        kept.retain(|at| *at != least);
    }
    let rest = width.saturating_sub(needed(&kept));
    let last = kept.last().copied();
    kept.into_iter().map(|at| (at, columns[at].width + if Some(at) == last && !columns[at].is_right { rest } else { 0 })).collect()
}
