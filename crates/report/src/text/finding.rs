//! One finding: the object, where it comes from, which threads use it, and the fix.

use super::layout::{clean, cut, cut_front, pad, width, wrap};
use super::paint::Paint;
use super::place::{place, within};
use super::words::{acting, by_lines, by_threads, by_users, hundredths, interval, percent, thousands, times};
use super::{Style, object_map};
use firsttouch_analysis::{CodeLocation, Finding, Interval, ObjectView, ResidentView};
use firsttouch_model::finding::FindingKind;
use firsttouch_model::format_bytes;
use firsttouch_model::generated_code::is_generated;
use firsttouch_model::rows::ObjectKind;
use firsttouch_model::{Estimate, TouchCause, Z95};
use firsttouch_plan::{Recommendation, Recommendations};
use firsttouch_predict::forecast::Expected;
use firsttouch_predict::program::LEAST_GAIN;

/// Columns of the row labels, including the indentation.
pub const LABEL: usize = 18;
const INDENT: usize = 3;
/// The least columns of an object's name beside what is known of it.
const LEAST_NAME: usize = 8;
/// The most columns for a place, and the least columns for a source line.
const MOST_PLACE: usize = 28;
const LEAST_TEXT: usize = 24;
/// The number of places listed under one label.
const MOST_PLACES: usize = 3;
/// The number of objects listed of those that are judged together.
const MOST_MEMBERS: usize = 12;
/// Gains below this are shown with two decimals.
const FINE: f64 = 0.1;
/// Places with less than this share are not listed.
const LEAST_SHARE: f64 = 0.05;

/// A row of the table of places: where the object was allocated, first touched and used.
pub struct LineRow {
    label: &'static str,
    place: String,
    text: String,
    remark: String,
}

/// `objects`: those that the finding is about. The lines are those of the first one.
pub fn finding(
    out: &mut Vec<String>,
    number: usize,
    finding: &Finding,
    objects: &[&ObjectView],
    advice: &Advice,
    verbose: bool,
    style: Style,
) {
    head(out, number, finding, objects, advice, style);
    if let Some(&object) = objects.first() {
        table(out, &rows(object), style);
        if objects.len() > 1 {
            labelled(out, "together", &members(objects), style);
        }
        if let Some(words) = object.resident.as_ref().and_then(|r| resident(r, object.policy.as_deref())) {
            labelled(out, "pages", &words, style);
        }
        object_map::push_map(out, &object.map, LABEL, style);
    }
    if let Some(ranks) = &advice.ranks {
        labelled(out, "ranks", ranks, style);
    }
    if verbose || !is_in_table(finding, objects) {
        labelled(out, "why", &finding.message, style);
    }
    if let Some(why_not) = &advice.why_not {
        labelled(out, "fix", why_not, style);
        if verbose {
            labelled(out, "elsewhere", &advice.fix, style);
        }
        return;
    }
    if advice.is_fix_worth || verbose {
        labelled(out, "fix", &advice.fix, style);
        if let Some(library) = finding.library.as_ref().filter(|library| !(advice.is_interleaving_no_faster && library.interleaves())) {
            labelled(out, "or", &format!("place it by libfirsttouch ({}); {}", library.needs, library.text), style);
        }
    }
    if let Some(plan) = &advice.plan {
        labelled(out, "plan", plan, style);
    }
}

/// What to do about a finding, in words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// The better gain of the fix and of the plan, if the machine's speeds are known.
    pub gain: Option<Expected>,
    /// Whether that is the fix's gain.
    pub is_of_fix: bool,
    /// Whether the fix in the source is worth it.
    pub is_fix_worth: bool,
    /// Whether its memory is predicted to be no faster interleaved than as it is.
    pub is_interleaving_no_faster: bool,
    /// The fix in the source.
    pub fix: String,
    /// Why the finding is not worth repairing on this machine.
    pub why_not: Option<String>,
    /// What a plan does; `None` if that is not known.
    pub plan: Option<String>,
    /// Which ranks of a job have it.
    pub ranks: Option<String>,
}

impl Advice {
    #[must_use]
    pub fn new(finding: &Finding, all: &Recommendations, one: Option<&Recommendation>) -> Self {
        let Some(one) = one else { return Self { is_fix_worth: true, fix: finding.fix.clone(), ..Self::default() } };
        let gain = one.gain().filter(|_| !all.is_assumed);
        Self {
            gain,
            is_of_fix: gain == one.of_fix,
            is_fix_worth: one.is_fix_worth,
            is_interleaving_no_faster: one.is_interleaving_no_faster(),
            fix: one.fix(finding).into_owned(),
            why_not: all.why_not(one),
            // A finding about the whole program has no objects that a plan could place.
            plan: (!one.objects.is_empty()).then(|| one.difference().unwrap_or_else(|| one.plan_words())),
            ranks: None,
        }
    }
}

/// Whether the rows say all that the message does: who touched, who uses, and that one follows from the other.
fn is_in_table(finding: &Finding, objects: &[&ObjectView]) -> bool {
    use FindingKind::{IoFirstTouch, MismatchedPartition, SerialFirstTouch, SharedRead};
    let [object] = objects else { return false };
    matches!(finding.kind, SerialFirstTouch | MismatchedPartition | SharedRead | IoFirstTouch) && object.policy.is_none()
}

/// `m_y (1.7 MiB), m_z (1.7 MiB), and 8 more; the lines and the map are those of m_x`.
fn members(objects: &[&ObjectView]) -> String {
    let one = |object: &&ObjectView| format!("{} ({})", clean(&object.name), format_bytes(object.total_bytes));
    let named: Vec<String> = objects.iter().take(MOST_MEMBERS).map(one).collect();
    let more = objects.len().saturating_sub(MOST_MEMBERS);
    let more = if more > 0 { format!(", and {} more", thousands(more as u64)) } else { String::new() };
    format!("{}{more}; the lines above are those of {}", named.join(", "), clean(&objects[0].name))
}

fn head(out: &mut Vec<String>, number: usize, finding: &Finding, objects: &[&ObjectView], advice: &Advice, style: Style) {
    let size = match objects {
        [] => String::new(),
        [object] => format!("   {}", size(object)),
        several => format!("   {}", format_bytes(several.iter().map(|object| object.total_bytes).fold(0, u64::saturating_add))),
    };
    let number = format!("{number}. ");
    let before_kind = width(&number) + width(&size);
    let of_kind = 3 + width(finding.kind.as_str());
    // On a narrow terminal, the kind is on a line of its own.
    let is_narrow = before_kind + of_kind + LEAST_NAME > style.width;
    let fixed = if is_narrow { before_kind } else { before_kind + of_kind };
    let name = cut(&clean(&finding.object_name), style.width.saturating_sub(fixed).max(4));
    let left = fixed + width(&name);
    let right = match advice.gain {
        Some(gain) => gained(gain.gain, gain.interval, advice.is_of_fix),
        None if finding.object.is_none() => {
            format!("{} of all accesses remote {}", percent(finding.remote_fraction), interval(finding.interval))
        }
        None => format!("{} of its accesses remote {}", percent(finding.remote_fraction), interval(finding.interval)),
    };
    let kind = style.paint(Paint::Bad, finding.kind.as_str());
    let mut line = format!("{number}{}{size}", style.paint(Paint::Bold, &name));
    if is_narrow {
        out.push(std::mem::replace(&mut line, format!("{}{kind}", " ".repeat(INDENT))));
    } else {
        line += &format!("   {kind}");
    }
    if !is_narrow && left + 3 + width(&right) <= style.width {
        out.push(format!("{line}{}{right}", " ".repeat(style.width - left - width(&right))));
    } else {
        out.push(line);
        out.extend(wrap(&right, style.width - INDENT).into_iter().map(|line| format!("{}{line}", " ".repeat(INDENT))));
    }
}

/// `1.9x faster if fixed [1.6, 2.0]`, `1.9x faster by the plan [1.6, 2.0]`
pub fn gained(gain: f64, interval: Option<Interval>, by_fix: bool) -> String {
    let how = if by_fix { "if fixed" } else { "by the plan" };
    let fine = (gain - 1.0).abs() < FINE;
    let digits = if fine { hundredths } else { times };
    let range = interval.map_or(String::new(), |interval| format!(" {}", digits(interval)));
    match gain {
        gain if gain * LEAST_GAIN <= 1.0 => format!("{:.2}x slower {how}{range}", 1.0 / gain),
        gain if gain < LEAST_GAIN => format!("no gain predicted {how}{range}"),
        gain if fine => format!("{gain:.2}x faster {how}{range}"),
        gain => format!("{gain:.1}x faster {how}{range}"),
    }
}

/// `node 0 100 % when first asked, node 0 52 %, node 1 48 % at the end (192 pages asked about); ...`, then the
/// fraction that moved, as in `48 % of those asked again had moved [41, 55]`, and the policy. `None` on a machine with one node.
fn resident(view: &ResidentView, policy: Option<&str>) -> Option<String> {
    let nodes = |shares: &[f64]| {
        let some = shares.iter().enumerate().filter(|(_, share)| **share > 0.0);
        some.map(|(node, share)| format!("node {node} {}", percent(*share))).collect::<Vec<_>>().join(", ")
    };
    if view.nodes_last.len() < 2 {
        return None;
    }
    let moved = view.moved.as_ref().filter(|moved| moved.value > 0.0);
    let mut words = match moved {
        Some(moved) => format!(
            "{} when first asked, {} at the end ({} pages asked about); {} of those asked again had moved {}",
            nodes(&view.nodes_first),
            nodes(&view.nodes_last),
            thousands(view.pages),
            percent(moved.value),
            interval(moved.interval)
        ),
        None => format!("{} ({} pages asked about)", nodes(&view.nodes_last), thousands(view.pages)),
    };
    if let Some(policy) = policy.filter(|policy| !matches!(*policy, "default" | "local")) {
        words = format!("{words}; policy {policy}");
    }
    Some(words)
}

/// `2,000 x 31.2 KiB` for objects alive at the same time (`about` that many small blocks); `10 in turn, up to 32 MiB` if each replaced the one before.
fn size(object: &ObjectView) -> String {
    let bytes = format_bytes(object.bytes);
    match object.count {
        0 | 1 => bytes,
        many if object.kind == ObjectKind::Pool => format!("about {} x {bytes}", thousands(many as u64)),
        many if object.total_bytes > object.bytes => format!("{} x {bytes}", thousands(many as u64)),
        many => format!("{} in turn, up to {bytes}", thousands(many as u64)),
    }
}

/// The instruction at an address of code without a name.
#[derive(Clone, Copy, PartialEq)]
enum Address {
    /// The instruction that made the access.
    Itself,
    /// The instruction after the call or the access.
    After,
}

fn rows(object: &ObjectView) -> Vec<LineRow> {
    let mut rows = Vec::new();
    rows.push(match &object.allocated_at {
        Some(at) => {
            let function = at.function.as_ref().filter(|_| at.file.is_some());
            row("allocated", at, Address::After, function.map_or(String::new(), |function| within(function)))
        }
        None => LineRow { label: "allocated", place: String::new(), text: origin(object.kind).to_owned(), remark: String::new() },
    });
    let touch = &object.first_touch;
    let (touched, used) = (touch.by_thread.to_vec(), object.used_by_thread.to_vec());
    let by_lines = by_lines(touch);
    let mut by = by_lines.clone().unwrap_or_else(|| by_threads(&touched, touch.partition));
    by = match touch.serial_allocations {
        Some(count) => format!("{count} of {}, {by}", object.count),
        None if touch.of_misplaced_part => format!("its misplaced part, {by}"),
        None => by,
    };
    by += &not_using(&touched, &used);
    if touch.by_kernel >= 0.5 {
        by = format!("{by}, in the kernel (I/O)");
    }
    // calloc is the cause for who looks for the call, also where later code wrote the memory first: then the row does not say that calloc did.
    let did_it = |cause: &TouchCause| !matches!(cause, TouchCause::Loop | TouchCause::Unknown) && !is_behind_its_call(object);
    // The cause is that of one of the lines.
    if let Some(cause) = touch.cause.filter(|cause| did_it(cause) && by_lines.is_none()) {
        by = format!("{cause}, {by}");
    }
    places(&mut rows, "first touched", &touch.at, touching_address(object), by, "not seen");
    rows.extend(rows_of_use(object));
    rows
}

/// `, one does not use it`: where threads other than the users touched, and not one alone.
fn not_using(touched: &[f64], used: &[f64]) -> String {
    let (touching, using) = (acting(touched), acting(used));
    let idle = touching.iter().filter(|thread| !using.contains(thread)).count();
    match idle {
        _ if touching.len() < 2 || using.len() < 2 => String::new(),
        0 => String::new(),
        1 => ", one does not use it".to_owned(),
        _ => format!(", {idle} do not use it"),
    }
}

/// The lines that use the object, and how threads divide it.
pub fn rows_of_use(object: &ObjectView) -> Vec<LineRow> {
    let mut rows = Vec::new();
    let by = by_users(object);
    places(&mut rows, "used", &object.used_at, Address::After, by, "no accesses seen");
    rows
}

/// A page fault has the address of the instruction that touched. If that is in a library (memset), the address in the program is the return
/// address of the call.
fn touching_address(object: &ObjectView) -> Address {
    let itself = matches!(object.first_touch.cause, None | Some(TouchCause::Loop)) || is_behind_its_call(object);
    if itself { Address::Itself } else { Address::After }
}

/// Whether the cause is the allocating call, but other code touched the memory first.
fn is_behind_its_call(object: &ObjectView) -> bool {
    let call = object.call.as_deref().and_then(TouchCause::of_call);
    let offset = |place: Option<&CodeLocation>| place.and_then(|place| place.offset);
    let within_call = offset(object.first_touch.at.first()) == offset(object.allocated_at.as_ref());
    object.first_touch.cause.is_some() && object.first_touch.cause == call && !within_call
}

/// Adds the places under one label. A single place is on one line with the threads (`by`); several places follow a line with the threads,
/// each with its share.
fn places(rows: &mut Vec<LineRow>, label: &'static str, at: &[CodeLocation], address: Address, by: String, nothing: &str) {
    let at = &unnamed_together(at);
    let shown: Vec<&CodeLocation> =
        at.iter().enumerate().filter(|(i, place)| *i == 0 || place.share >= LEAST_SHARE).map(|(_, place)| place).collect();
    let shown = shown.get(..MOST_PLACES).unwrap_or(&shown);
    let rest = 1.0 - shown.iter().map(|place| place.share).sum::<f64>();
    match shown {
        [] => {
            let text = if by.is_empty() { nothing.to_owned() } else { "at a place that was not recorded".to_owned() };
            rows.push(LineRow { label, place: String::new(), text, remark: by });
        }
        [only] if rest <= LEAST_SHARE => rows.push(row(label, only, address, by)),
        several => {
            rows.push(LineRow { label, place: String::new(), text: by, remark: String::new() });
            let remark = |place: &CodeLocation| match place.alone {
                Some(thread) => format!("{} by thread {thread} alone", share_words(place.share, place.share_interval)),
                None => share_words(place.share, place.share_interval),
            };
            rows.extend(several.iter().map(|place| row("", place, address, remark(place))));
            if rest > LEAST_SHARE {
                let remark = share_words(rest, several.first().and_then(|first| interval_of_rest(first, rest)));
                rows.push(LineRow { label: "", place: "others".to_owned(), text: String::new(), remark });
            }
        }
    }
}

/// `60 % [55, 65]`; `60 %` if that is counted.
fn share_words(share: f64, estimated: Option<Interval>) -> String {
    estimated.map_or_else(|| percent(share), |estimated| format!("{} {}", percent(share), interval(estimated)))
}

/// The interval of the share of all other places, from as many samples as the first place has.
fn interval_of_rest(first: &CodeLocation, rest: f64) -> Option<Interval> {
    let [low, _] = first.share_interval?;
    let share = first.share;
    let logit = |p: f64| (p / (1.0 - p)).ln();
    let spread = (logit(share) - logit(low)).max(f64::MIN_POSITIVE);
    let samples = Z95 * Z95 / (spread * spread * share * (1.0 - share));
    let estimate = Estimate::fraction(rest, (rest * (1.0 - rest) / samples).sqrt(), samples.max(1.0) as u64);
    Some([estimate.low, estimate.high])
}

/// Generated code without names looks alike, at whatever address: one row for all of it.
fn unnamed_together(at: &[CodeLocation]) -> Vec<CodeLocation> {
    let is_unnamed = |at: &CodeLocation| at.file.is_none() && at.function.is_none() && at.module.as_deref().is_some_and(is_generated);
    let mut list: Vec<CodeLocation> = Vec::new();
    for one in at {
        match list.iter_mut().find(|first| is_unnamed(first) && is_unnamed(one)) {
            Some(first) => {
                first.share += one.share;
                let sum = |own: Interval, other: Interval| [own[0] + other[0], (own[1] + other[1]).min(1.0)];
                first.share_interval = first.share_interval.zip(one.share_interval).map(|(own, other)| sum(own, other));
            }
            None => list.push(one.clone()),
        }
    }
    list.sort_by(|a, b| b.share.total_cmp(&a.share));
    list
}

fn row(label: &'static str, at: &CodeLocation, address: Address, remark: String) -> LineRow {
    let text = match (&at.text, &at.function) {
        (Some(text), _) => text.trim().to_owned(),
        (None, Some(function)) if at.file.is_some() => within(function),
        _ => String::new(),
    };
    // The text already names the function.
    let remark = if remark == text { String::new() } else { remark };
    let is_generated = at.module.as_deref().is_some_and(is_generated);
    let unnamed = at.file.is_none() && at.function.is_none() && at.offset.is_some() && !is_generated;
    let place = if unnamed && address == Address::After { format!("before {}", place(at)) } else { place(at) };
    LineRow { label, place, text, remark }
}

fn origin(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Static => "static or global array",
        ObjectKind::Stack => "a thread's stack",
        ObjectKind::File => "a mapped file",
        ObjectKind::Anonymous => "mapped by the program",
        ObjectKind::Mapping => "a mapping; its allocation was not seen",
        ObjectKind::Pool => "at many places in the code",
        ObjectKind::Heap => "its allocation was not seen",
    }
}

pub fn table(out: &mut Vec<String>, rows: &[LineRow], style: Style) {
    let widest = |cell: fn(&LineRow) -> &str| rows.iter().map(|row| width(cell(row))).max().unwrap_or(0);
    let room = style.width.saturating_sub(LABEL);
    let text_wanted = rows.iter().filter(|row| !row.place.is_empty()).map(|row| width(&row.text)).max().unwrap_or(0);
    // If no source line is known, the place may use all the room.
    let most_place = if text_wanted == 0 { room } else { MOST_PLACE.min(room / 2) };
    let place_columns = widest(|row| &row.place).min(most_place);
    let after_place = room.saturating_sub(place_columns + 2);
    let remark_columns = widest(|row| &row.remark);
    // All remarks are in one column beside the source lines if they fit, else each is beside its own line, or below it.
    let in_column = after_place >= text_wanted.min(LEAST_TEXT) + 2 + remark_columns;
    let text_columns = text_wanted.min(if in_column { after_place - 2 - remark_columns } else { after_place });
    for row in rows {
        let label = pad(&format!("{}{}", " ".repeat(INDENT), row.label), LABEL);
        let place = pad(&cut_front(&clean(&row.place), place_columns), place_columns);
        // Without a place (a static array), the text uses the place's columns too.
        let (place, columns) = if row.place.is_empty() && row.remark.is_empty() {
            (String::new(), room)
        } else if row.place.is_empty() && place_columns > 0 {
            (String::new(), place_columns + 2 + text_columns)
        } else {
            (if text_columns > 0 { format!("{place}  ") } else { place }, text_columns)
        };
        let text = cut(&clean(&row.text), columns);
        let remark = clean(&row.remark);
        let label = style.paint(Paint::Faint, &label);
        let fits = width(&place) + width(&text) + 2 + width(&remark) <= room;
        if !in_column && fits && !remark.is_empty() {
            push(out, format!("{}  {remark}", format!("{label}{place}{text}").trim_end()));
        } else if in_column {
            push(out, format!("{label}{place}{}  {remark}", pad(&text, columns)));
        } else {
            push(out, format!("{label}{place}{text}"));
            for line in wrap(&remark, room) {
                push(out, format!("{}{line}", " ".repeat(LABEL)));
            }
        }
    }
}

fn push(out: &mut Vec<String>, line: String) {
    out.push(line.trim_end().to_owned());
}

fn labelled(out: &mut Vec<String>, label: &str, text: &str, style: Style) {
    for (index, line) in wrap(text, style.width.saturating_sub(LABEL)).into_iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        let label = style.paint(Paint::Faint, &pad(&format!("{}{label}", " ".repeat(INDENT)), LABEL));
        push(out, format!("{label}{line}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that rows of generated code that nothing distinguishes are one row, with the sum of their shares.
    #[test]
    fn generated_code_is_one_row() {
        let place = |module: &str, function: Option<&str>, offset, share| CodeLocation {
            module: Some(module.to_owned()),
            function: function.map(str::to_owned),
            offset: Some(offset),
            share,
            ..CodeLocation::default()
        };
        let at = [
            place("/bin/a", Some("main"), 1, 0.3),
            place("[generated code]", None, 2, 0.25),
            place("[generated code]", Some("f"), 3, 0.2),
            place("[generated code]", None, 4, 0.25),
        ];
        let mut rows = Vec::new();
        places(&mut rows, "used", &at, Address::Itself, "2 threads".to_owned(), "");
        let shown: Vec<String> =
            rows.iter().map(|row| format!("{} {}", row.place, row.remark).replace(super::super::layout::GLUE, " ")).collect();
        assert_eq!(shown, [" ", "generated code (no perf map) 50 %", "main() 30 %", "f() 20 %"]);
    }
}
