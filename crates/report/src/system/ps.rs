//! `firsttouch ps`: threads, where they run, and where their process's memory is.

use super::{Lines, by_node, known, row};
use crate::text::Style;
use crate::text::layout::{clean, cut};
use crate::text::words::{count, thousands};
use crate::topology::table::Align::{Left, Right};
use firsttouch_model::format_bytes;
use firsttouch_model::system::{MemoryUse, ProcessThreads, Thread};
use firsttouch_model::topology::format_list;
use serde::Serialize;

/// The JSON of `firsttouch ps`.
#[derive(Serialize)]
pub struct PsJson<'a> {
    pub schema: &'static str,
    pub processes: &'a [ProcessThreads],
}

impl<'a> PsJson<'a> {
    #[must_use]
    pub fn new(processes: &'a [ProcessThreads]) -> Self {
        Self { schema: "firsttouch.ps/1", processes }
    }
}

/// The widest thread name: the kernel limits names to 15 bytes.
const NAME: usize = 15;
/// The widest thread name if the columns of balancing need the space.
const NARROW_NAME: usize = 12;

/// The processes as text.
#[must_use]
pub fn ps_text(processes: &[ProcessThreads], style: Style) -> String {
    let mut out = Lines::new(style);
    for process in processes {
        let threads = count(process.threads.len(), "thread");
        out.heading(&clean(&format!("{} ({}): {threads}, {}", process.name, process.pid, resident(&process.memory))));
        if let Some(nodes) = process.memory.nodes.as_ref().filter(|nodes| !nodes.is_empty()) {
            out.sentence(&format!("memory: {}", by_node(nodes)));
        }
        threads_table(&mut out, &process.threads);
        out.doubts(&process.doubts);
    }
    out.text()
}

/// `1.2 GiB resident and 4 MiB in hugetlbfs, 3 MiB swapped out`.
pub(super) fn resident(memory: &MemoryUse) -> String {
    // Kernel threads and processes that have ended have no memory.
    let Some(rss) = memory.rss_bytes else { return "no memory of its own".to_owned() };
    let mut text = format!("{} resident", format_bytes(rss));
    if let Some(bytes) = memory.hugetlb_bytes.filter(|bytes| *bytes > 0) {
        text += &format!(" and {} in hugetlbfs", format_bytes(bytes));
    }
    if let Some(bytes) = memory.swap_bytes.filter(|bytes| *bytes > 0) {
        text += &format!(", {} swapped out", format_bytes(bytes));
    }
    text
}

fn threads_table(out: &mut Lines, threads: &[Thread]) {
    if threads.is_empty() {
        return;
    }
    let balanced = threads
        .iter()
        .any(|thread| thread.preferred_node.is_some() || thread.hint_faults.as_ref().is_some_and(|faults| !faults.is_empty()));
    let mut header = row(["TID", "name", "state", "CPU", "node", "CPU time", "moved"]);
    let mut aligns = vec![Right, Left, Left, Right, Right, Right, Right];
    if balanced {
        header.extend(row(["prefers", "hint faults"]));
        aligns.extend([Right, Left]);
    }
    header.push("may run on".to_owned());
    aligns.push(Left);
    let mut rows = vec![header];
    for thread in threads {
        let mut cells = vec![
            thread.tid.to_string(),
            cut(&clean(&thread.name), if balanced { NARROW_NAME } else { NAME }),
            state(thread.state),
            thread.cpu.to_string(),
            known(thread.node, |node| node.to_string()),
            format!("{:.1} s", thread.cpu_ms as f64 / 1000.0),
            known(thread.migrations, thousands),
        ];
        if balanced {
            cells.push(thread.preferred_node.map_or("-".to_owned(), |node| node.to_string()));
            cells.push(most_faults(thread));
        }
        cells.push(known(thread.allowed_cpus.as_ref(), |cpus| format_list(cpus)));
        rows.push(cells);
    }
    out.headed_table(&rows, &aligns);
}

/// `75 % on 1`: the node with the most hinting faults.
fn most_faults(thread: &Thread) -> String {
    let faults = thread.hint_faults.iter().flatten();
    let sum: f64 = faults.clone().map(|(_, count)| *count as f64).sum();
    let most = faults.max_by_key(|(_, count)| **count);
    most.map_or("-".to_owned(), |(node, count)| format!("{:.0} % on {node}", 100.0 * *count as f64 / sum.max(1.0)))
}

fn state(letter: char) -> String {
    match letter {
        'R' => "running",
        'S' => "sleeping",
        'D' => "waiting",
        'T' | 't' => "stopped",
        'Z' | 'X' | 'x' => "ended",
        'I' => "idle",
        other => return clean(&other.to_string()),
    }
    .to_owned()
}
