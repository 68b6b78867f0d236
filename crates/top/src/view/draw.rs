//! Draws the state of the screen.

use super::help::{KEYS, WORDS};
use super::state::{Page, Places, Prompt, View};
use super::tables::{Kind, Row, Tone, fitting};
use crate::batch::time;
use crate::cells;
use firsttouch_model::shown::one_line;
use firsttouch_monitor::Snapshot;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

/// Lines of a screen that has meters, and one that has a footer.
const WITH_METERS: u16 = 16;
const WITH_FOOTER: u16 = 8;
/// Nodes that have a meter of their own.
const METERS: usize = 4;
/// The width of a cell of the heat map.
const HEAT_CELL: u16 = 6;

/// The colours; without them (NO_COLOR), bold, dim and reversed letters do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    pub has_colours: bool,
}

impl Palette {
    fn coloured(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn of(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Dim => Style::new().add_modifier(Modifier::DIM),
            Tone::Good => self.coloured(Color::Green),
            Tone::Fair => self.coloured(Color::Yellow),
            Tone::Bad => self.coloured(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    fn title(self) -> Style {
        if self.has_colours { Style::new().fg(Color::Black).bg(Color::Green) } else { Style::new().add_modifier(Modifier::REVERSED) }
    }

    fn selection(self) -> Style {
        if self.has_colours { Style::new().fg(Color::Black).bg(Color::Cyan) } else { Style::new().add_modifier(Modifier::REVERSED) }
    }

    /// The background of a share in the heat map.
    fn heat(self, share: f64, is_local: bool) -> Style {
        if !self.has_colours {
            return if share >= 0.1 { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        }
        let steps: [u8; 5] = if is_local { [234, 22, 28, 34, 40] } else { [234, 52, 88, 124, 160] };
        let step = ((share * 8.0).ceil() as usize).min(4);
        Style::new().fg(Color::White).bg(Color::Indexed(steps[step]))
    }
}

/// Draws the screen, and notes where things are for the mouse.
pub fn draw(frame: &mut Frame<'_>, view: &mut View, palette: Palette) {
    let area = frame.area();
    if area.width == 0 || area.height == 0 {
        return;
    }
    view.places = Places::default();
    let mut lines = Lines { left: area };
    line(frame, lines.take(1), title(view));
    if area.height >= WITH_METERS {
        for meter in meters(view, area.width, palette) {
            line(frame, lines.take(1), meter);
        }
    }
    if area.height >= WITH_FOOTER {
        let footer = lines.take_last(1);
        line(frame, footer, keys(view, palette));
        // A long remark has two lines, where there is room.
        let remark = packed(&remark_of(view), ' ', area.width);
        let height = if remark.len() > 1 && area.height >= WITH_METERS { 2 } else { 1 };
        let mut places = Lines { left: lines.take_last(height) };
        for part in remark.into_iter().take(usize::from(height)) {
            line(frame, places.take(1), Line::styled(part, Style::new().add_modifier(Modifier::DIM)));
        }
        tabs(frame, lines.take(1), view, palette);
    }
    match view.page {
        Page::Table(kind) => table(frame, lines.left, view, kind, palette),
        Page::Heat => heat(frame, lines.left, view, palette),
    }
    if view.shows_help {
        help(frame, area);
    }
}

/// Takes lines from the top and the bottom of what is left.
struct Lines {
    left: Rect,
}

impl Lines {
    fn take(&mut self, count: u16) -> Rect {
        let height = count.min(self.left.height);
        let taken = Rect { height, ..self.left };
        self.left.y += height;
        self.left.height -= height;
        taken
    }

    fn take_last(&mut self, count: u16) -> Rect {
        let height = count.min(self.left.height);
        self.left.height -= height;
        Rect { y: self.left.y + self.left.height, height, ..self.left }
    }
}

fn line(frame: &mut Frame<'_>, area: Rect, text: Line<'_>) {
    if area.height > 0 {
        frame.render_widget(Paragraph::new(text), area);
    }
}

fn title(view: &View) -> Line<'static> {
    let snapshot = &view.snapshot;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut parts = vec![Span::styled("firsttouch top", bold)];
    if snapshot.schema.is_empty() {
        parts.push(Span::raw(format!(" - {}", reading(view))));
        return Line::from(parts);
    }
    parts.push(Span::raw(format!(" - {} {}", one_line(&snapshot.host), &time(snapshot.time_s)[11..19])));
    if view.is_paused && view.playback.is_none() {
        parts.push(Span::styled(" PAUSED", bold));
    }
    if view.has_ended {
        parts.push(Span::styled(" ENDED", bold));
    }
    if let Some(playback) = view.playback {
        let state = if view.is_paused { "" } else { " playing" };
        parts.push(Span::styled(format!(" RECORD {}/{}{state}", playback.at + 1, playback.count), bold));
    }
    let delay = view.delay.as_secs_f64();
    parts.push(Span::raw(format!("  window {} s  delay {delay} s  remote on {}", snapshot.window_s, one_line(&snapshot.machine.name))));
    Line::from(parts)
}

/// Why there is nothing to show.
fn reading(view: &View) -> &'static str {
    if view.playback.is_some() {
        "this record has no details here"
    } else if view.has_ended {
        "it ended before the first figures"
    } else {
        "reading..."
    }
}

/// `CPU [||||||    182.0/200%]`.
fn meter(name: &str, part: f64, text: &str, width: usize, palette: Palette) -> Vec<Span<'static>> {
    let inside = width.saturating_sub(name.len() + 3).max(text.len());
    let filled = ((inside as f64 * part.clamp(0.0, 1.0)).round() as usize).min(inside);
    let mut bar: Vec<char> = (0..inside).map(|at| if at < filled { '|' } else { ' ' }).collect();
    for (at, letter) in text.chars().rev().enumerate() {
        if let Some(cell) = inside.checked_sub(at + 1).and_then(|at| bar.get_mut(at)) {
            *cell = letter;
        }
    }
    let (full, rest) = bar.split_at(filled.min(bar.len()));
    let tone = if part > 0.9 {
        Tone::Bad
    } else if part > 0.6 {
        Tone::Fair
    } else {
        Tone::Good
    };
    vec![
        Span::raw(format!("{name} [")),
        Span::styled(full.iter().collect::<String>(), palette.of(tone)),
        Span::raw(rest.iter().collect::<String>()),
        Span::raw("] "),
    ]
}

/// A line for each of a few nodes, else one for the system; then the pressure and the cost.
fn meters(view: &View, width: u16, palette: Palette) -> Vec<Line<'static>> {
    let snapshot = &view.snapshot;
    let half = usize::from(width / 2);
    let one = |name: &str, cpus: usize, cpu: Option<f64>, total: Option<u64>, free: Option<u64>| {
        let used = total.zip(free).map(|(total, free)| total.saturating_sub(free));
        let (cpu, cpus) = (cpu.unwrap_or(0.0), cpus.max(1) as f64);
        let mut spans = meter(name, cpu / cpus, &format!("{:.0}/{:.0}%", 100.0 * cpu, 100.0 * cpus), half, palette);
        let part = used.zip(total).map_or(0.0, |(used, total)| used as f64 / total.max(1) as f64);
        spans.extend(meter(
            "mem",
            part,
            &format!("{}/{}", cells::known_size(used), cells::known_size(total)),
            half.saturating_sub(1),
            palette,
        ));
        Line::from(spans)
    };
    let mut lines: Vec<Line<'static>> = if (1..=METERS).contains(&snapshot.nodes.len()) {
        let nodes = snapshot.nodes.iter();
        nodes
            .map(|node| one(&format!("node {}", node.node), node.cpus, node.cpu, node.memory_total_bytes, node.memory_free_bytes))
            .collect()
    } else {
        let system = &snapshot.system;
        vec![one("all", system.cpus, system.cpu, system.memory_total_bytes, system.memory_free_bytes)]
    };
    let dim = Style::new().add_modifier(Modifier::DIM);
    lines.extend(packed(&costs(snapshot), ';', width).into_iter().map(|part| Line::styled(part, dim)));
    lines
}

/// The text in lines of this width, divided where this letter is.
fn packed(text: &str, at: char, width: u16) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive(at) {
        let length = part.trim_end().chars().count();
        match lines.last_mut().filter(|last| last.chars().count() + length <= usize::from(width)) {
            Some(last) => last.push_str(part),
            None => lines.push(part.trim_start().to_owned()),
        }
    }
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}

fn costs(snapshot: &Snapshot) -> String {
    let percent = |share: Option<f64>| share.map_or_else(cells::unknown, |share| format!("{:.1}%", 100.0 * share));
    let system = &snapshot.system;
    let mut text = format!(
        "{} processes, {} sampled; cost {}+{} CPU",
        system.processes,
        snapshot.cost.sampled,
        percent(snapshot.cost.own_cpu),
        percent(snapshot.cost.recorders_cpu)
    );
    if let Some(pressure) = system.pressure_memory.zip(system.pressure_cpu) {
        text += &format!("; waits: CPU {}, memory {}", percent(Some(pressure.1)), percent(Some(pressure.0)));
    }
    if snapshot.nodes.len() > 1 {
        text += &format!("; hinting {}/s, moved {}/s", cells::rate(system.hint_faults_per_s), cells::rate(system.pages_migrated_per_s));
    }
    text
}

fn tabs(frame: &mut Frame<'_>, area: Rect, view: &mut View, palette: Palette) {
    let (mut spans, mut at) = (Vec::new(), 0);
    view.places.tabs_row = area.y;
    for (index, page) in view.pages().iter().enumerate() {
        let text = format!(" {} ", View::title(*page));
        let width = text.len() as u16;
        view.places.tabs.push((at, at + width - 1, index));
        at += width + 1;
        spans.push(Span::styled(text, if *page == view.page { palette.title() } else { Style::new() }));
        spans.push(Span::raw(" "));
    }
    let head = view.close.map(|pid| close_words(pid, view));
    spans.push(Span::raw(head.unwrap_or_default()));
    line(frame, area, Line::from(spans));
}

/// `4711 dgemv: 50% [49,51]`.
fn close_words(pid: i32, view: &View) -> String {
    match view.snapshot.detail.as_ref().filter(|detail| detail.pid == pid) {
        Some(detail) => format!(" {pid} {}: {} remote", one_line(&detail.name), cells::remote(&detail.remote)),
        None => format!(" {pid}: {}", reading(view)),
    }
}

/// What is said below the table: a message, a prompt, a filter, or why the selected row has no figure.
fn remark_of(view: &View) -> String {
    let filter = |text: &str| format!("filter: {text}");
    match (view.prompt, &view.message) {
        (Some(Prompt::Search), _) => return format!("search: {}_", view.search),
        (Some(Prompt::Filter), _) => return format!("filter: {}_", view.filter),
        (None, Some(message)) => return message.clone(),
        (None, None) => {}
    }
    let rows = view.rows();
    let selected = rows.get(view.selected(&rows)).and_then(|row| row.remark.clone());
    let doubts = || view.snapshot.detail.as_ref().filter(|_| view.close.is_some()).and_then(|detail| detail.doubts.first().cloned());
    let text = selected.or_else(doubts).or_else(|| view.snapshot.notes.first().cloned()).unwrap_or_default();
    if view.filter.is_empty() { text } else { format!("{}  {text}", filter(&view.filter)) }
}

fn keys(view: &View, palette: Palette) -> Line<'static> {
    let mut keys = vec![("F1", "Help"), ("Tab", "View")];
    keys.push(if view.close.is_some() { ("Esc", "Back") } else { ("Enter", "Threads, objects") });
    keys.extend([("/", "Search"), ("\\", "Filter"), ("<>", "Sort"), ("w", "Window")]);
    keys.push(if view.playback.is_some() { ("[ ]", "Step") } else { ("p", "Pause") });
    keys.push(("q", "Quit"));
    let spans = keys.into_iter().flat_map(|(key, word)| {
        [Span::styled(key, Style::new().add_modifier(Modifier::BOLD)), Span::styled(word, palette.selection()), Span::raw(" ")]
    });
    Line::from(spans.collect::<Vec<_>>())
}

fn table(frame: &mut Frame<'_>, area: Rect, view: &mut View, kind: Kind, palette: Palette) {
    if area.height == 0 {
        return;
    }
    let columns = fitting(kind.columns(), area.width);
    let order = view.order(kind);
    let mut at = area.x;
    let mut titles = String::new();
    for &(index, width) in &columns {
        let column = kind.columns()[index];
        // On a virtual machine, the nodes of threads are virtual ones.
        let is_virtual = view.snapshot.machine.is_virtual && (kind, column.title) == (Kind::Threads, "NODE");
        let title = if is_virtual { "VNODE" } else { column.title };
        // The column that rows are sorted by has a mark, if there is room for one.
        let mark = if index == order.column && title.len() < usize::from(width) { if order.descending { "v" } else { "^" } } else { "" };
        titles += &padded(&format!("{title}{mark}"), width, column.is_right);
        titles.push(' ');
        view.places.columns.push((at, at + width, index));
        at += width + 1;
    }
    let all = usize::from(area.width);
    view.places.titles = area.y;
    view.places.rows = area.height - 1;
    line(frame, Rect { height: 1, ..area }, Line::styled(padded(titles.trim_end(), area.width, false), palette.title()));
    let rows = view.rows();
    let (selected, shown) = (view.selected(&rows), usize::from(area.height - 1));
    // The selection stays in sight.
    view.first = view.first.min(selected).max((selected + 1).saturating_sub(shown.max(1))).min(rows.len().saturating_sub(1));
    for (line_at, row) in rows.iter().enumerate().skip(view.first).take(shown) {
        let is_selected = line_at == selected;
        let place = Rect { y: area.y + 1 + (line_at - view.first) as u16, height: 1, ..area };
        line(frame, place, row_line(row, &columns, kind, if is_selected { Some(palette.selection()) } else { None }, palette, all));
    }
    if rows.is_empty() && shown > 0 {
        let why = if view.filter.is_empty() {
            empty_words(view, kind)
        } else {
            "no row contains the text of the filter (Esc shows all)".to_owned()
        };
        line(frame, Rect { y: area.y + 1, height: 1, ..area }, Line::styled(why, Style::new().add_modifier(Modifier::DIM)));
    }
}

/// Why a table has no rows.
fn empty_words(view: &View, kind: Kind) -> String {
    let why = view.snapshot.detail.as_ref().and_then(|detail| detail.remote.reason.clone());
    match kind {
        Kind::Objects => why.unwrap_or_else(|| "no samples yet".to_owned()),
        Kind::Mappings => "its mappings are not read yet, or may not be read".to_owned(),
        _ => reading(view).to_owned(),
    }
}

fn row_line(row: &Row, columns: &[(usize, u16)], kind: Kind, selection: Option<Style>, palette: Palette, width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    for &(index, width) in columns {
        let Some(cell) = row.cells.get(index) else { continue };
        let style = selection.unwrap_or_else(|| palette.of(cell.tone));
        spans.push(Span::styled(padded(shortened(kind, index, &cell.text, width), width, kind.columns()[index].is_right), style));
        spans.push(Span::styled(" ", selection.unwrap_or_default()));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::styled(" ".repeat(width.saturating_sub(used)), selection.unwrap_or_default()));
    Line::from(spans)
}

/// A command line that is too long begins with the program's name instead of its path.
fn shortened(kind: Kind, column: usize, text: &str, width: u16) -> &str {
    if kind != Kind::Processes || column + 1 != kind.columns().len() || text.chars().count() <= usize::from(width) {
        return text;
    }
    let program = text.split(' ').next().unwrap_or(text);
    program.rfind('/').filter(|at| at + 1 < program.len()).map_or(text, |at| &text[at + 1..])
}

/// The text in this width: cut, or filled with spaces.
fn padded(text: &str, width: u16, is_right: bool) -> String {
    let width = usize::from(width);
    let length = text.chars().count();
    if length > width {
        let kept: String = text.chars().take(width.saturating_sub(1)).collect();
        return if width == 0 { String::new() } else { format!("{kept}~") };
    }
    if is_right { format!("{text:>width$}") } else { format!("{text:<width$}") }
}

/// Which node accesses which.
fn heat(frame: &mut Frame<'_>, area: Rect, view: &View, palette: Palette) {
    let detail = view.snapshot.detail.as_ref();
    let Some(detail) = detail.filter(|detail| !detail.matrix.is_empty()) else {
        let why = detail.and_then(|detail| detail.remote.reason.clone()).unwrap_or_else(|| "no samples yet".to_owned());
        line(frame, area, Line::raw(format!("no figures: {why}")));
        return;
    };
    let mut lines = Lines { left: area };
    line(frame, lines.take(1), Line::raw("share of the accesses by threads of a node (down) to memory of a node (across)"));
    let most = usize::from(area.width.saturating_sub(8) / HEAT_CELL).max(1);
    let title: String = (0..detail.matrix.len().min(most)).map(|node| format!("{node:>5} ")).collect();
    line(frame, lines.take(1), Line::raw(format!("        {title}   n = {}", detail.remote.samples)));
    let dim = if detail.remote.is_uncertain() { palette.of(Tone::Dim) } else { Style::new() };
    for (node, row) in detail.matrix.iter().enumerate() {
        let mut spans = vec![Span::raw(format!("{node:>6}  "))];
        for (other, &share) in row.iter().enumerate().take(most) {
            spans.push(Span::styled(format!("{:>4.0}% ", 100.0 * share), palette.heat(share, node == other).patch(dim)));
        }
        line(frame, lines.take(1), Line::from(spans));
    }
    if detail.matrix.len() > most {
        line(frame, lines.take(1), Line::raw(format!("nodes {most} to {} do not fit", detail.matrix.len() - 1)));
    }
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let mut text: Vec<Line<'static>> = vec![Line::styled("firsttouch top: keys", Style::new().add_modifier(Modifier::BOLD))];
    let width = KEYS.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    text.extend(KEYS.iter().map(|(key, words)| Line::raw(format!("  {key:<width$}  {words}"))));
    text.push(Line::raw(""));
    text.extend(WORDS.iter().map(|words| Line::raw(format!("  {words}"))));
    text.push(Line::raw(""));
    text.push(Line::raw("  any key goes back"));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text), area);
}

#[cfg(test)]
mod tests {
    use super::packed;

    /// Check that no line is longer than the width if its parts are not, and that nothing is lost.
    #[test]
    fn long_lines_are_divided() {
        assert_eq!(packed("one; two; three", ';', 10), ["one; two;", "three"]);
        assert_eq!(packed("one; two; three", ';', 80), ["one; two; three"]);
        assert_eq!(packed("a bc d", ' ', 4), ["a bc", "d"]);
        assert!(packed("", ' ', 4).is_empty() && packed("long", ' ', 0) == ["long"]);
    }
}
