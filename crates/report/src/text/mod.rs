//! The text report.

mod commands;
mod doubts;
pub mod finding;
mod kernel;
pub(crate) mod layout;
mod not_judged;
mod object_map;
mod owners;
pub(crate) mod paint;
pub(crate) mod place;
mod places;
pub(crate) mod ranks;
mod timeline;
mod unsettled;
pub(crate) mod words;

pub use timeline::timeline_text;
pub use words::{counted_as, thousands};

use finding::Advice;
use firsttouch_analysis::{Analysis, Cause, Coverage, CrossCheck, Finding, LostView, ObjectView, Verdict, Why};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::numactl::without_policy;
use firsttouch_model::rows::{Id, MOST_COMMANDS};
use firsttouch_model::shown::shell_word;
use firsttouch_model::{format_bytes, signal_words};
use firsttouch_plan::{Recommendation, Recommendations};
use firsttouch_predict::forecast::Forecast;
use firsttouch_predict::program::LEAST_GAIN;
use layout::{GLUE, clean, width, wrap};
use paint::Paint;
use places::Places;
use std::collections::{BTreeMap, BTreeSet};
use words::{count, interval, percent, times};

/// From this share on, the accesses that no verdict covers are named beside the remote fraction.
const MUCH_UNKNOWN: f64 = 0.2;
/// Smaller shares of the accesses are not named.
const LEAST_NAMED: f64 = 0.005;
/// An object with at most this part of remote accesses is well placed.
const FEW: f64 = 0.1;
/// A description has at least so many columns, also on a narrow terminal.
const LEAST_DESCRIPTION: usize = 20;
/// Well-placed objects that are named.
const MOST_WELL_PLACED: usize = 3;
/// Columns that a command is indented by.
const COMMAND: usize = 2;
/// The report has at least this width, also on a narrower terminal.
const LEAST_WIDTH: usize = 40;

/// The abilities of the reader's terminal: its width in columns, and whether it shows colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub width: usize,
    pub colour: bool,
}

/// The context of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The profile's path, as the user would write it on a command line.
    pub profile: String,
    /// The options with which the user asked for the judgement: `--machine`, `--pin`.
    pub options: Vec<String>,
    /// The number of nodes of the machine that the profile was taken on.
    pub recorded_nodes: usize,
    /// Whether the first line shows the command, threads and time (`profile` has already printed them).
    pub heading: bool,
    /// Whether the last line suggests further commands.
    pub more: bool,
    /// Whether the report repeats what its tables show in sentences, and lists the notes that change no verdict.
    pub verbose: bool,
    /// Printed before the first line: `firsttouch: ` if the program's own output surrounds the report.
    pub prefix: &'static str,
}

/// The report as text, lines of at most `style.width` columns, ending in a newline.
#[must_use]
pub fn text(
    analysis: &Analysis,
    forecast: Option<&Forecast>,
    recommendations: &Recommendations,
    context: &Context,
    style: Style,
) -> String {
    let style = Style { width: style.width.max(LEAST_WIDTH), ..style };
    let mut out = Vec::new();
    if context.heading {
        paragraph(&mut out, &heading(analysis, context), style);
    }
    let verdict = analysis.verdict();
    let colour = if matches!(verdict, Verdict::WellPlaced(_)) { Paint::Good } else { Paint::Bad };
    let sentence =
        format!("{}{} {}", context.prefix, verdict_words(analysis, forecast, recommendations, &verdict), judged_on(analysis, context));
    out.extend(wrap(&sentence, style.width).iter().map(|line| style.paint(colour, line)));
    out.push(String::new());
    ranks::push(&mut out, analysis, style);
    let places = Places::of(analysis);
    let mut is_worth = true;
    for (index, (one, recommended)) in recommendations.in_order(&analysis.findings).enumerate() {
        let advice = Advice::new(one, recommendations, recommended);
        if is_worth && advice.why_not.is_some() {
            is_worth = false;
            paragraph(&mut out, &format!("Not worth repairing on {}:", clean(&analysis.machine.name)), style);
        }
        let object = |id: i64| analysis.objects.iter().find(|object| object.id == id);
        // Those of other ranks are the same in the source.
        let own = one.objects().filter(|id| !one.in_ranks.contains(id));
        let objects: Vec<&ObjectView> = own.filter_map(object).collect();
        let shown = places.as_ref().and_then(|places| Some(places.view(objects.first()?)));
        let objects: Vec<&ObjectView> = shown.iter().chain(objects.into_iter().skip(usize::from(shown.is_some()))).collect();
        let advice = Advice { ranks: ranks::of_finding(analysis, one), ..advice };
        finding::finding(&mut out, index + 1, one, &objects, &advice, context.verbose, style);
        out.push(String::new());
    }
    owners::push(&mut out, analysis, style);
    for words in [well_placed(analysis), unsettled::sentences(analysis), buffers_of_libraries(analysis)].into_iter().flatten() {
        paragraph(&mut out, &words, style);
        out.push(String::new());
    }
    doubts::push_doubts(&mut out, analysis, context.verbose, style);
    if let Some(words) = kernel::sentences(analysis) {
        paragraph(&mut out, &words, style);
    }
    let covered = covered(analysis).map_or(String::new(), |covered| format!("{covered} "));
    paragraph(
        &mut out,
        &format!("{covered}{}{} {}", cross_checks(analysis), not_judged::sentences(analysis), lost(analysis, context.verbose)),
        style,
    );
    if context.more {
        if let Some(commands) = untouched(analysis, recommendations, context) {
            paragraph(&mut out, &format!("{}:", without_source(analysis, recommendations, context)), style);
            // Those of a job are parts of the launcher's command line, not a script.
            let scripts = if is_job(analysis) { commands.chunks(1) } else { commands.chunks(commands.len().max(1)) };
            let lines = scripts.flat_map(|script| commands::lines(script, style.width - COMMAND));
            out.extend(lines.map(|line| format!("{}{line}", " ".repeat(COMMAND))));
        }
        push_more(&mut out, analysis, context, style);
    }
    let mut text = out.join("\n").replace(GLUE, " ");
    text.push('\n');
    text
}

/// Breaks the lines that are longer than `most` columns; the others stay as they are.
#[must_use]
pub fn wrapped(text: &str, most: usize) -> String {
    let lines = text.lines().map(|line| if width(line) <= most { line.to_owned() } else { wrap(line, most).join("\n").replace(GLUE, " ") });
    lines.collect::<Vec<String>>().join("\n")
}

/// Names and what each of them is, in two columns; a description takes as many lines as it needs.
#[must_use]
pub fn described(pairs: &[(&str, &str)], most: usize) -> String {
    let column = pairs.iter().map(|(name, _)| width(name)).max().unwrap_or(0) + 2;
    let mut out = String::new();
    for (name, about) in pairs {
        let mut name = *name;
        for line in wrap(about, most.saturating_sub(column).max(LEAST_DESCRIPTION)) {
            out.push_str(&format!("{name:column$}{}\n", line.replace(GLUE, " ")));
            name = "";
        }
    }
    out
}

fn paragraph(out: &mut Vec<String>, text: &str, style: Style) {
    out.extend(wrap(text, style.width));
}

fn heading(analysis: &Analysis, context: &Context) -> String {
    let command = if analysis.is_attached() { "attached to a process".to_owned() } else { analysis.command.join(" ") };
    format!("{}: {}: {}", clean(&context.profile), clean(&command), facts(analysis))
}

/// `, exit status 3; samples: watch 1,904`
fn end_and_samples(analysis: &Analysis) -> String {
    let end = match analysis.exit_code {
        Some(_) if analysis.signal.is_some() => {
            analysis.signal.map_or_else(String::new, |signal| format!(", ended by {}", signal_words(signal)))
        }
        Some(0) => String::new(),
        Some(code) => format!(", exit status {code}"),
        None => ", end not recorded".to_owned(),
    };
    let samples: Vec<String> = analysis
        .evidence
        .iter()
        .filter(|e| e.available && e.samples > 0 && !matches!(e.source, EvidenceSource::Agent | EvidenceSource::Bandwidth))
        .map(|e| format!("{}{GLUE}{}", e.source, thousands(e.samples)))
        .collect();
    let samples = if samples.is_empty() { String::new() } else { format!("; samples: {}", samples.join(", ")) };
    format!("{end}{samples}")
}

/// The number of threads, the time, the end and the samples, as a report's first line has them.
pub(crate) fn facts(analysis: &Analysis) -> String {
    let ranks = ranks::heading(analysis).map_or_else(String::new, |ranks| format!("{ranks}, "));
    format!("{ranks}{}, {:.1} s{}", count(analysis.threads.len(), "thread"), analysis.wall_s, end_and_samples(analysis))
}

/// The verdict with the figures behind it: the first sentence of a report.
#[must_use]
pub fn verdict_sentence(analysis: &Analysis, forecast: Option<&Forecast>, recommendations: &Recommendations) -> String {
    verdict_words(analysis, forecast, recommendations, &analysis.verdict())
}

/// The machine that the report is about.
pub(crate) fn judged_on_sentence(analysis: &Analysis, context: &Context) -> String {
    judged_on(analysis, context)
}

/// What the kernel counted while the program ran.
pub(crate) fn kernel_sentences(analysis: &Analysis) -> Option<String> {
    kernel::sentences(analysis)
}

/// The heading of the commands that change the placement without the source. They change nothing on one node. In a job, the launcher's own command
/// line stays: its name and options are the user's.
pub(crate) fn without_source(analysis: &Analysis, recommendations: &Recommendations, context: &Context) -> String {
    let has_one_node = analysis.machine.virtual_machine && context.recorded_nodes == 1;
    let machine = if has_one_node { ", on a machine with several nodes" } else { "" };
    let job = match ranks::commands(analysis).len() {
        _ if !is_job(analysis) => "",
        2.. => " (in the launcher's command line, each of the last commands takes the place of its program)",
        _ => " (in the launcher's command line, the last command takes the place of the program)",
    };
    let nodes = analysis.machine.nodes.max(1);
    let remark = if recommendations.has_placed() {
        // With known speeds, each finding has its gain.
        let is_in_vain = |one: &Recommendation| one.of_plan.is_some_and(|expected| expected.gain < LEAST_GAIN);
        let mut placed = recommendations.list.iter().filter(|one| one.placed().next().is_some());
        let words = " (no gain is predicted at the relative speeds of the catalogue's median machine; on yours, it may differ)";
        if recommendations.is_assumed && placed.all(is_in_vain) { words.to_owned() } else { String::new() }
    } else {
        format!(
            " (its pages on all nodes in turn: no controller serves all of them, and {} % of the accesses stay remote)",
            100 * (nodes - 1) / nodes
        )
    };
    format!("Without touching the source{machine}{job}{remark}")
}

fn is_job(analysis: &Analysis) -> bool {
    analysis.ranks.iter().filter(|rank| rank.rank.is_some()).count() > 1
}

/// The commands that change the placement without the source.
pub(crate) fn commands_without_source(analysis: &Analysis, recommendations: &Recommendations, context: &Context) -> Vec<String> {
    untouched(analysis, recommendations, context).unwrap_or_default().iter().map(|words| words.join(" ")).collect()
}

/// `Judged on virtual:2 (recorded on one node).`
fn judged_on(analysis: &Analysis, context: &Context) -> String {
    let machine = &analysis.machine;
    let why = if machine.virtual_machine && context.recorded_nodes == 1 { " (recorded on one node)" } else { "" };
    format!("Judged on {}{why}.", clean(&machine.name))
}

/// The verdict: `MISPLACED: `, `NOT JUDGED: ` or `No finding: `, with the figure behind it.
fn verdict_words(analysis: &Analysis, forecast: Option<&Forecast>, recommendations: &Recommendations, verdict: &Verdict) -> String {
    let repairs = &recommendations.list;
    let nothing =
        if !repairs.is_empty() && repairs.iter().all(|one| !one.worth.is_worth()) { ", but no repair is predicted to pay" } else { "" };
    match (verdict, remote(analysis)) {
        (Verdict::Findings, Some(remote)) => {
            format!("MISPLACED{nothing}: {remote}{}{}{}.", as_far_as_known(analysis), slowdown(forecast), how_much(analysis))
        }
        (Verdict::Findings, None) => format!("MISPLACED{nothing}{}.", how_much(analysis)),
        _ => no_finding(analysis, verdict),
    }
}

/// `; how much is not known: 38 samples are too few; profile a longer run`; empty if a limit could be checked.
fn how_much(analysis: &Analysis) -> String {
    let lacks = analysis.doubts().iter().find_map(Cause::lacking);
    lacks.map_or_else(String::new, |lacks| format!("; how much is not known: {lacks}"))
}

/// ` as far as known: 40 % of the accesses are to objects not judged`; empty if most accesses are covered.
fn as_far_as_known(analysis: &Analysis) -> String {
    let unknown = analysis.coverage.as_ref().map_or(0.0, |coverage| coverage.not_judged);
    if unknown < MUCH_UNKNOWN {
        return String::new();
    }
    format!(" as far as known: {} of the accesses seen are to objects that were not judged", percent(unknown))
}

/// ` (these receive 48 % of the accesses seen)`; empty if most accesses are covered.
fn of_the_accesses(analysis: &Analysis, judged: f64) -> String {
    let open = |coverage: &Coverage| coverage.not_judged + coverage.elsewhere.unwrap_or(0.0);
    match analysis.coverage.as_ref().is_some_and(|coverage| open(coverage) >= MUCH_UNKNOWN) {
        true => format!(" (these receive {} of the accesses seen)", percent(judged)),
        false => String::new(),
    }
}

/// `; predicted to take 1.9x as long as with the best placement [1.6, 2.0]`; empty without a forecast.
fn slowdown(forecast: Option<&Forecast>) -> String {
    let Some(prediction) = forecast.and_then(Forecast::prediction) else { return String::new() };
    format!("; predicted to take {:.1}x as long as with the best placement {}", prediction.slowdown, times(prediction.interval))
}

/// `49 % of accesses would be remote [47, 52]`
pub(crate) fn remote(analysis: &Analysis) -> Option<String> {
    let fraction = percent(analysis.remote_fraction?);
    let verb = if analysis.machine.virtual_machine { "would be" } else { "are" };
    let range = analysis.remote_interval.map_or(String::new(), |range| format!(" {}", interval(range)));
    Some(format!("{fraction} of accesses {verb} remote{range}"))
}

/// The verdict without findings: `NOT JUDGED: ` or `No finding: `, and why.
fn no_finding(analysis: &Analysis, verdict: &Verdict) -> String {
    let remote = remote(analysis);
    let with_remote = remote.as_ref().map_or(String::new(), |remote| format!("{remote}, and "));
    // What it would have done later was not seen.
    let clear = match (analysis.exit_code, analysis.signal) {
        (Some(code), None) if code != 0 => format!("No finding until the program ended with status {code}"),
        _ => "No finding".to_owned(),
    };
    match verdict {
        Verdict::Findings => String::new(),
        Verdict::WellPlaced(Why::OneNode) => {
            format!("{clear}: {} has one node, so no memory can be remote.", clean(&analysis.machine.name))
        }
        Verdict::WellPlaced(Why::OneThread { processes: 1 }) => {
            format!("{clear}: the program has one thread, and its memory is where it runs.")
        }
        Verdict::WellPlaced(Why::OneThread { .. }) => {
            format!("{clear}: each process has one thread, and its memory is where it runs.")
        }
        Verdict::WellPlaced(Why::Judged { share }) => {
            format!("{clear}: {with_remote}no judged object is misplaced{}.", of_the_accesses(analysis, *share))
        }
        Verdict::WellPlaced(Why::Cached { share }) => {
            format!("{clear}: {} of the accesses seen are to objects that fit in a core's cache.", percent(*share))
        }
        Verdict::NotJudged(causes) => {
            let causes: Vec<String> = causes.iter().map(|cause| clean(&cause.to_string())).collect();
            let as_far = remote.map_or(String::new(), |remote| format!(" As far as seen, {remote}."));
            format!("NOT JUDGED: {}.{as_far}", causes.join("; and "))
        }
    }
}

/// An object whose interval reaches higher is not called well placed.
const SURE: f64 = 0.15;

/// Whether an object's remote share is small, and its interval excludes a large one; and it is not so near the limit that no verdict is certain.
fn is_well_placed_for_sure(object: &ObjectView) -> bool {
    object.remote_fraction.is_some_and(|remote| remote <= FEW)
        && !object.is_near_bar()
        && object.remote_interval.is_none_or(|[_, high]| high <= SURE)
}

/// `Well placed: next (30.5 MiB, 0 % remote), and 2 more.`: judged objects without a finding, those with the most accesses
/// first.
fn well_placed(analysis: &Analysis) -> Option<String> {
    let misplaced: BTreeSet<Id> = analysis.findings.iter().flat_map(Finding::objects).collect();
    let is_well_placed = |object: &&ObjectView| object.judged && !misplaced.contains(&object.id) && is_well_placed_for_sure(object);
    let mut judged: Vec<&ObjectView> =
        analysis.objects.iter().filter(is_well_placed).filter(|object| !place::is_internal(object)).collect();
    judged.sort_by(|a, b| b.access_share.unwrap_or(0.0).total_cmp(&a.access_share.unwrap_or(0.0)));
    let sets = ranks::alike(analysis, &judged);
    let one = |objects: &Vec<&ObjectView>| {
        let remote = percent(objects.iter().filter_map(|object| object.remote_fraction).fold(0.0, f64::max));
        let ranks = if objects.len() > 1 { format!(" at most, in {}", count(objects.len(), "rank")) } else { String::new() };
        let largest = objects.iter().map(|object| object.total_bytes).max().unwrap_or(0);
        format!("{} ({}, {remote} remote{ranks})", clean(&objects[0].name), format_bytes(largest))
    };
    let named: Vec<String> = sets.iter().take(MOST_WELL_PLACED).map(one).collect();
    let more = sets.len().saturating_sub(named.len());
    let more = if more > 0 { format!(", and {} more", thousands(more as u64)) } else { String::new() };
    (!named.is_empty()).then(|| format!("Well placed: {}{more}.", named.join(", ")))
}

/// `Own memory of libraries and interpreters, which a program cannot place: libscipy_openblas64_.so (96 MiB, 2.9 % of the accesses).`; `None` without such memory
/// that matter.
fn buffers_of_libraries(analysis: &Analysis) -> Option<String> {
    let mut by_library: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for object in analysis.objects.iter().filter(|object| object.hit_windows > 0 || object.access_share.is_some_and(|share| share > 0.0)) {
        if let Some(library) = object.library.as_deref() {
            let sum = by_library.entry(library).or_default();
            *sum = (sum.0.saturating_add(object.total_bytes), sum.1 + object.access_share.unwrap_or(0.0));
        }
    }
    by_library.retain(|_, (_, share)| *share >= LEAST_NAMED);
    let one = |(library, (bytes, share)): (&&str, &(u64, f64))| {
        format!("{} ({}, {} of the accesses)", clean(library), format_bytes(*bytes), percent(*share))
    };
    let named: Vec<String> = by_library.iter().map(one).collect();
    (!named.is_empty()).then(|| format!("Own memory of libraries and interpreters, which a program cannot place: {}.", named.join(", ")))
}

/// `The judged objects receive 96 % of the accesses seen, objects that fit in a core's cache 3 %, memory of no recorded object 1 %.`
fn covered(analysis: &Analysis) -> Option<String> {
    let coverage = analysis.coverage.as_ref().filter(|_| analysis.machine.nodes > 1 && analysis.has_teams())?;
    let parts = [
        ("objects that fit in a core's cache", coverage.cached),
        ("objects not judged", coverage.not_judged),
        ("memory of no recorded object", coverage.elsewhere.unwrap_or(0.0)),
    ];
    let others: String =
        parts.iter().filter(|(_, share)| *share >= LEAST_NAMED).map(|(what, share)| format!(", {what} {}", percent(*share))).collect();
    Some(format!("The judged objects receive {} of the accesses seen{others}.", percent(coverage.judged)))
}

/// `Watchpoints agree: 48 % [41, 56].`, or that their interval is too wide to compare. Sources that disagree are among the doubts.
fn cross_checks(analysis: &Analysis) -> String {
    let one = |check: &CrossCheck| {
        let name = match &check.evidence {
            EvidenceSource::Watch => "Watchpoints".to_owned(),
            EvidenceSource::Sample => "Samples of registers".to_owned(),
            EvidenceSource::Hint => "Hinting faults".to_owned(),
            other => format!("Samples of '{}'", clean(other.as_str())),
        };
        let figure = format!("{} remote {}", percent(check.remote_fraction), interval(check.interval));
        match (CrossCheck::is_precise(check.interval), check.agrees) {
            (false, _) => format!("{name} are too uncertain to compare: {figure}. "),
            (true, true) => format!("{name} agree: {figure}. "),
            (true, false) => String::new(),
        }
    };
    analysis.cross_checks.iter().map(one).collect()
}

/// A loss below this part of what a source saw is a number without its reason.
const LITTLE_LOST: f64 = 0.01;

/// Is a loss too small to change a figure: below [`LITTLE_LOST`] of what the source saw, or below half the standard error of their number?
fn is_little(lost: u64, seen: u64) -> bool {
    (lost as f64) < (LITTLE_LOST * seen as f64).max(0.5 * (seen as f64).sqrt())
}

/// `Lost samples: 3 of 2,712.` With the reasons where the loss of a source is not little, or where all details are wanted.
fn lost(analysis: &Analysis, is_verbose: bool) -> String {
    let total = analysis.lost.iter().map(|one| one.count).fold(0, u64::saturating_add);
    if analysis.write_failure.is_some() {
        return "How many samples were lost is not known: the profile could not be written to its end.".to_owned();
    }
    if total == 0 {
        return "Lost samples: 0.".to_owned();
    }
    let seen_by = |source: &EvidenceSource| {
        let own = analysis.evidence.iter().filter(|one| one.source == *source);
        own.fold(0, |sum: u64, one| sum.saturating_add(one.samples))
    };
    let losers = analysis.lost.iter().filter(|one| one.count > 0);
    let mut lost_by: BTreeMap<&EvidenceSource, u64> = BTreeMap::new();
    for one in losers.clone() {
        let sum = lost_by.entry(&one.source).or_default();
        *sum = sum.saturating_add(one.count);
    }
    let (little, much): (Vec<&LostView>, Vec<&LostView>) =
        losers.clone().partition(|one| !is_verbose && is_little(lost_by[&one.source], seen_by(&one.source)));
    if much.is_empty() {
        let seen = little.iter().map(|one| &one.source).collect::<BTreeSet<_>>().into_iter().map(seen_by).fold(0, u64::saturating_add);
        return format!("Lost samples: {} of {}.", thousands(total), thousands(seen.saturating_add(total)));
    }
    // The notes say why a source is not available.
    let is_said = |one: &LostView| {
        let own = analysis
            .evidence
            .iter()
            .filter(|evidence| evidence.source == one.source && !evidence.available && one.source != EvidenceSource::Bandwidth);
        !one.reason.is_empty() && own.into_iter().any(|evidence| evidence.detail.contains(&one.reason))
    };
    let part = |one: &LostView| {
        let reason = if is_said(one) { "not available, as said above".into() } else { clean(&one.reason) };
        format!("{} {}: {reason}", clean(one.source.as_str()), thousands(one.count))
    };
    let few = little.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count));
    let parts: Vec<String> = much.into_iter().map(part).chain((few > 0).then(|| format!("{} of other sources", thousands(few)))).collect();
    format!("Lost samples: {} ({}).", thousands(total), parts.join("; "))
}

/// The commands that make and apply a plan, or that interleave all memory if a plan would place nothing and that gains.
fn untouched(analysis: &Analysis, recommendations: &Recommendations, context: &Context) -> Option<Vec<Vec<String>>> {
    // A policy of numactl would replace the one that is advised.
    let words = |command: &[String]| without_policy(command).iter().map(|word| shell_word(&clean(word))).collect::<Vec<String>>();
    let programs: Vec<Vec<String>> = match ranks::commands(analysis) {
        all if all.len() > MOST_COMMANDS => vec![vec!["PROGRAM".to_owned()]],
        all if all.len() > 1 => all.into_iter().map(|(command, _)| words(command)).collect(),
        _ if analysis.command.is_empty() => vec![vec!["CMD".to_owned()]],
        _ => vec![words(&analysis.command)],
    };
    let run = |options: &[&str]| {
        let before: Vec<String> = ["firsttouch", "run"].iter().chain(options).chain(["--"].iter()).map(|word| (*word).to_owned()).collect();
        programs.iter().map(|program| [before.as_slice(), program].concat()).collect::<Vec<Vec<String>>>()
    };
    if analysis.is_attached() || !(recommendations.has_placed() || recommendations.is_spreading_advised()) {
        return None;
    }
    if !recommendations.has_placed() {
        return Some(run(&["--interleave", "all"]));
    }
    let profile = clean(&context.profile);
    let plan = shell_word(&format!("{}.toml", profile.strip_suffix(".ftp").or_else(|| profile.strip_suffix(".ftp.d")).unwrap_or(&profile)));
    let mut make = vec!["firsttouch".to_owned(), "plan".to_owned(), shell_word(&profile)];
    make.extend(options(context));
    make.extend(["-o".to_owned(), plan.clone()]);
    Some([vec![make], run(&["--plan", &plan])].concat())
}

/// `More: firsttouch report dgemv.ftp --verbose (also --json, --machine virtual:4)`
fn push_more(out: &mut Vec<String>, analysis: &Analysis, context: &Context, style: Style) {
    let mut words = vec!["More: firsttouch report".to_owned(), shell_word(&clean(&context.profile))];
    words.extend(options(context));
    words.extend((!context.verbose).then(|| "--verbose".to_owned()));
    let other = if analysis.machine.nodes == 4 { 8 } else { 4 };
    let also = format!("({}--json, --machine virtual:{other})", if context.verbose { "" } else { "also " });
    let mut lines = commands::lines(&[words], style.width);
    match lines.last_mut().filter(|line| width(line) + 1 + width(&also) <= style.width) {
        Some(last) => *last = format!("{last} {also}"),
        None => lines.push(format!("{}{also}", " ".repeat(COMMAND))),
    }
    out.extend(lines);
}

/// The options as words that follow a file on a command line.
fn options(context: &Context) -> Vec<String> {
    context.options.iter().map(|word| shell_word(&clean(word))).collect()
}
