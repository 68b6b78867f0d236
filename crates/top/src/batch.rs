//! A snapshot as text for logs, and as CSV.

use crate::cells::{self, Table};
use firsttouch_model::shown::one_line;
use firsttouch_monitor::{Detail, ProcessRow, Remote, Snapshot};

/// Processes that a text lists, those with most CPU first.
const LISTED: usize = 20;
/// Threads and objects that it lists.
const CLOSE_LISTED: usize = 16;

/// The snapshot as text.
#[must_use]
pub fn text(snapshot: &Snapshot) -> String {
    let mut lines = vec![heading(snapshot)];
    lines.extend(nodes(snapshot).lines());
    let mut listed: Vec<&ProcessRow> = snapshot.processes.iter().collect();
    listed.sort_by(|a, b| by_cpu(a, b));
    let left_out = listed.len().saturating_sub(LISTED);
    listed.truncate(LISTED);
    lines.push(String::new());
    lines.extend(processes(&listed, snapshot.time_s).lines());
    if left_out > 0 {
        lines.push(format!("  and {left_out} more with less CPU"));
    }
    for (row, why) in listed.iter().filter(|row| row.cpu.unwrap_or(0.0) >= 0.05).filter_map(|row| Some((row, row.remote.reason.as_ref()?)))
    {
        lines.push(format!("  process {}: no remote share: {why}", row.pid));
    }
    if let Some(detail) = &snapshot.detail {
        lines.extend(close(detail));
    }
    lines.push(String::new());
    lines.join("\n") + "\n"
}

/// More CPU first, then the lower number.
pub fn by_cpu(a: &ProcessRow, b: &ProcessRow) -> std::cmp::Ordering {
    b.cpu.unwrap_or(0.0).total_cmp(&a.cpu.unwrap_or(0.0)).then(a.pid.cmp(&b.pid))
}

/// `2026-11-26 10:40:02 UTC`.
#[must_use]
pub fn time(time_s: f64) -> String {
    let seconds = time_s.max(0.0) as u64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", rest / 3600, rest / 60 % 60, rest % 60)
}

fn heading(snapshot: &Snapshot) -> String {
    let system = &snapshot.system;
    let used = system.memory_total_bytes.zip(system.memory_free_bytes).map(|(total, free)| total.saturating_sub(free));
    format!(
        "{}  {}, remote judged on {}; last {} s: CPU {} of {}, memory {} of {}; firsttouch {} CPU, recorders {}",
        time(snapshot.time_s),
        one_line(&snapshot.host),
        one_line(&snapshot.machine.name),
        seconds(snapshot.covered_s()),
        system.cpu.map_or_else(cells::unknown, |cpu| format!("{cpu:.2}")),
        system.cpus,
        cells::long_size(used),
        cells::long_size(system.memory_total_bytes),
        percent(snapshot.cost.own_cpu),
        percent(snapshot.cost.recorders_cpu)
    )
}

/// `10`, `1.5`.
fn seconds(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(cells::unknown, |share| format!("{:.1} %", 100.0 * share))
}

fn nodes(snapshot: &Snapshot) -> Table {
    let columns = ["node", "CPUs", "CPU%", "used", "free", "hit/s", "miss/s", "foreign/s", "in", "out"].map(|title| (title, true)).to_vec();
    let row = |node: &firsttouch_monitor::NodeRow| {
        let used = node.memory_total_bytes.zip(node.memory_free_bytes).map(|(total, free)| total.saturating_sub(free));
        vec![
            node.node.to_string(),
            node.cpus.to_string(),
            cells::cpu(node.cpu),
            cells::known_size(used),
            cells::known_size(node.memory_free_bytes),
            cells::rate(node.hits_per_s),
            cells::rate(node.misses_per_s),
            cells::rate(node.foreign_per_s),
            cells::share(node.accesses_in),
            cells::share(node.accesses_out),
        ]
    };
    Table { columns, rows: snapshot.nodes.iter().map(row).collect() }
}

/// `time_s`: of the snapshot.
fn processes(rows: &[&ProcessRow], time_s: f64) -> Table {
    let columns = vec![
        ("PID", true),
        ("USER", false),
        ("CPU%", true),
        ("RES", true),
        ("THR", true),
        ("NODES", false),
        ("REMOTE", false),
        ("n", true),
        ("AGE", true),
        ("SOURCE", false),
        ("COMMAND", false),
    ];
    let row = |row: &&ProcessRow| {
        vec![
            row.pid.to_string(),
            row.user.clone(),
            cells::cpu(row.cpu),
            cells::size(row.resident_bytes),
            row.threads.to_string(),
            cells::by_node(row.nodes.as_ref()),
            cells::remote(&row.remote),
            if row.remote.share.is_some() { row.remote.samples.to_string() } else { cells::unknown() },
            row.remote.age_s(time_s).map_or_else(cells::unknown, |age| format!("{age:.0}s")),
            row.remote.source.clone().unwrap_or_else(cells::unknown),
            row.command.chars().take(60).collect::<String>() + if row.has_ended { " (has ended)" } else { "" },
        ]
    };
    Table { columns, rows: rows.iter().map(row).collect() }
}

fn close(detail: &Detail) -> Vec<String> {
    let mut lines = vec![String::new(), format!("  process {} ({}):", detail.pid, detail.name)];
    let mut threads: Vec<&firsttouch_monitor::ThreadRow> = detail.threads.iter().collect();
    threads.sort_by(|a, b| b.cpu.unwrap_or(0.0).total_cmp(&a.cpu.unwrap_or(0.0)).then(a.tid.cmp(&b.tid)));
    let left_out = threads.len().saturating_sub(CLOSE_LISTED);
    threads.truncate(CLOSE_LISTED);
    let is_virtual = threads.iter().any(|thread| thread.judged_node.is_some());
    let node = if is_virtual { "VNODE" } else { "NODE" };
    let columns = vec![
        ("TID", true),
        ("CPU%", true),
        ("CPU", true),
        (node, true),
        ("ALLOWED", false),
        ("REMOTE", true),
        ("USES MOST", false),
        ("NAME", false),
    ];
    let row = |thread: &&firsttouch_monitor::ThreadRow| {
        vec![
            thread.tid.to_string(),
            cells::cpu(thread.cpu),
            thread.last_cpu.to_string(),
            thread.judged_node.or(thread.node).map_or_else(cells::unknown, |node| node.to_string()),
            thread.allowed_cpus.clone().unwrap_or_else(cells::unknown),
            cells::share(thread.remote),
            thread.hottest.clone().unwrap_or_else(cells::unknown),
            thread.name.clone(),
        ]
    };
    lines.extend(Table { columns, rows: threads.iter().map(row).collect() }.lines());
    if left_out > 0 {
        lines.push(format!("  and {left_out} more threads with less CPU"));
    }
    lines.extend(objects(detail).lines());
    if !detail.matrix.is_empty() {
        let row = |(node, row): (usize, &Vec<f64>)| {
            let cells = row.iter().map(|share| format!("{:>4.0} %", 100.0 * share)).collect::<Vec<_>>().join(" ");
            format!("  threads of node {node} access node 0, 1, ...: {cells}")
        };
        lines.push(format!("  accesses by node, of {} samples{}:", detail.remote.samples, uncertain(&detail.remote)));
        lines.extend(detail.matrix.iter().enumerate().map(row));
    }
    lines
}

fn uncertain(remote: &Remote) -> &'static str {
    if remote.is_uncertain() { ", uncertain" } else { "" }
}

fn objects(detail: &Detail) -> Table {
    let columns = vec![
        ("OBJECT", false),
        ("BYTES", true),
        ("SHARE", true),
        ("PAGES ON", false),
        ("USED BY", false),
        ("REMOTE", false),
        ("n", true),
        ("LINE", false),
    ];
    if detail.objects.is_empty() {
        let row = |one: &firsttouch_monitor::MappedMemory| {
            let dash = cells::unknown;
            let nodes = cells::by_node(Some(&one.nodes));
            vec![one.name.clone(), cells::size(one.resident_bytes), dash(), nodes, dash(), dash(), dash(), dash()]
        };
        let mut mappings: Vec<&firsttouch_monitor::MappedMemory> = detail.mappings.iter().collect();
        mappings.sort_by_key(|one| std::cmp::Reverse(one.resident_bytes));
        return Table { columns, rows: mappings.into_iter().take(CLOSE_LISTED).map(row).collect() };
    }
    let row = |object: &firsttouch_monitor::ObjectRow| {
        vec![
            object.name.clone(),
            cells::size(object.bytes),
            cells::share(object.share),
            cells::shares_by_node(&object.pages_by_node),
            cells::shares_by_node(&object.users_by_node),
            cells::remote(&object.remote),
            object.remote.samples.to_string(),
            object.line.clone().unwrap_or_else(cells::unknown),
        ]
    };
    let mut objects: Vec<&firsttouch_monitor::ObjectRow> = detail.objects.iter().collect();
    objects.sort_by(|a, b| b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)).then(a.id.cmp(&b.id)));
    Table { columns, rows: objects.into_iter().take(CLOSE_LISTED).map(row).collect() }
}

/// Snapshots as CSV (RFC 4180): a line for each process, after one line of titles.
#[derive(Default)]
pub struct CsvTable {
    /// The nodes that have columns: those of the first snapshot.
    nodes: Option<Vec<u32>>,
}

impl CsvTable {
    /// The lines of a snapshot.
    #[must_use]
    pub fn lines(&mut self, snapshot: &Snapshot) -> String {
        let mut text = String::new();
        let nodes = self.nodes.get_or_insert_with(|| {
            let nodes: Vec<u32> = snapshot.nodes.iter().map(|node| node.node).collect();
            text = "time_s,window_s,pid,user,name,threads,cpu,resident_bytes".to_owned();
            nodes.iter().for_each(|node| text += &format!(",node{node}_bytes"));
            text += ",remote_share,remote_low,remote_high,remote_samples,remote_source,remote_covers,remote_reason,command,remote_age_s\n";
            nodes
        });
        for row in &snapshot.processes {
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let mut cells = vec![
                snapshot.time_s.to_string(),
                snapshot.window_s.to_string(),
                row.pid.to_string(),
                quoted(&row.user),
                quoted(&row.name),
                row.threads.to_string(),
                number(row.cpu),
                row.resident_bytes.to_string(),
            ];
            let bytes = |node: &u32| row.nodes.as_ref().map_or_else(String::new, |nodes| nodes.get(node).copied().unwrap_or(0).to_string());
            cells.extend(nodes.iter().map(bytes));
            cells.extend([
                number(row.remote.share),
                number(row.remote.interval.map(|[low, _]| low)),
                number(row.remote.interval.map(|[_, high]| high)),
                row.remote.samples.to_string(),
                quoted(row.remote.source.as_deref().unwrap_or_default()),
                number(row.remote.covers),
                quoted(row.remote.reason.as_deref().unwrap_or_default()),
                quoted(&row.command),
                number(row.remote.age_s(snapshot.time_s).map(|age| (10.0 * age).round() / 10.0)),
            ]);
            text += &cells.join(",");
            text.push('\n');
        }
        text
    }
}

/// A text as a field: one line, in quotes where it needs them. A spreadsheet takes no text for a formula.
fn quoted(text: &str) -> String {
    let line = one_line(text);
    let is_formula = line.starts_with(['=', '+', '-', '@']);
    if is_formula || line.contains([',', '"']) {
        format!("\"{}{}\"", if is_formula { "'" } else { "" }, line.replace('"', "\"\""))
    } else {
        line.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_monitor::NodeRow;
    use std::collections::BTreeMap;

    fn snapshot() -> Snapshot {
        let remote =
            Remote { share: Some(0.49), interval: Some([0.46, 0.52]), samples: 812, source: Some("sample".into()), ..Remote::default() };
        let remote = Remote { until_s: Some(1_795_689_595.0), ..remote };
        let row = |pid: i32, cpu, remote| ProcessRow {
            pid,
            user: "me".into(),
            name: "a,b".into(),
            command: "=a \"b\"".into(),
            cpu: Some(cpu),
            threads: 8,
            resident_bytes: 64 << 20,
            nodes: Some(BTreeMap::from([(0, 60 << 20), (1, 4 << 20)])),
            remote,
            ..ProcessRow::default()
        };
        Snapshot {
            time_s: 1_795_689_602.5,
            window_s: 10.0,
            host: "nine".into(),
            nodes: vec![NodeRow { node: 0, cpus: 2, cpu: Some(1.5), ..NodeRow::default() }, NodeRow { node: 1, ..NodeRow::default() }],
            processes: vec![row(7, 0.3, Remote::unknown("few samples")), row(9, 1.5, remote)],
            ..Snapshot::default()
        }
    }

    /// Check that the text has the busiest process first, with its figure, and the reason of one without.
    #[test]
    fn text_has_figures_and_reasons() {
        let text = text(&snapshot());
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in\n{text}"));
        assert!(at("150.0") < at(" 30.0"), "{text}");
        assert!(text.contains("49% [46,52]  812   8s  sample"), "{text}");
        assert!(text.contains("process 7: no remote share: few samples"), "{text}");
        assert!(text.contains("0:60M 1:4.0M") && text.contains("last 10 s:"), "{text}");
        let young = super::text(&Snapshot { seen_s: 1.503, ..snapshot() });
        assert!(young.contains("last 1.5 s:"), "{young}");
    }

    /// Check the columns of CSV, its quotes, and that unknown figures are empty.
    #[test]
    fn csv_is_quoted() {
        let mut table = CsvTable::default();
        let text = table.lines(&snapshot());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains(",node0_bytes,node1_bytes,remote_share,"), "{text}");
        assert_eq!(lines[1], "1795689602.5,10,7,me,\"a,b\",8,0.3,67108864,62914560,4194304,,,,0,,,few samples,\"'=a \"\"b\"\"\",");
        assert!(lines[2].contains(",0.49,0.46,0.52,812,sample,,") && lines[2].ends_with(",7.5"), "{text}");
        assert_eq!(table.lines(&snapshot()).lines().count(), 2, "titles once");
    }

    /// Check times, leap days included.
    #[test]
    fn times_are_utc() {
        for (seconds, expected) in
            [(0.0, "1970-01-01 00:00:00 UTC"), (951_782_400.0, "2000-02-29 00:00:00 UTC"), (1_795_689_602.9, "2026-11-26 10:40:02 UTC")]
        {
            assert_eq!(time(seconds), expected);
        }
    }
}
