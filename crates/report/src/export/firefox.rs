//! The processed format of the Firefox Profiler (profiler.firefox.com, "Load a profile from file"): a track for each thread, counters for each node, and
//! markers for parallel regions.
//!
//! The tables come from the crate of samply's author. Its weights are 32 bits wide, so that the numbers of accesses are put in afterwards.

use super::limits::{self, MOST_ROWS};
use super::{Export, Whole, function};
use crate::text::place::place;
use firsttouch_analysis::pictures::Timeline;
use firsttouch_model::error::{Context, Result};
use firsttouch_model::rows::{Frame as StackFrame, Id};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags, MarkerFieldFormat, MarkerTiming, Profile,
    ReferenceTimestamp, SamplingInterval, StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp, WeightType,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The number that profiles give to the process: that of the program is not known to a report.
const PROCESS: u32 = 1;

/// A parallel region of one place in the code: from the first to the last time that it ran.
struct Region {
    name: StringHandle,
    text: StringHandle,
}

impl StaticSchemaMarker for Region {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "ParallelRegions";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.text}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name} {marker.data.text}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "text",
        label: "Regions",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _field: u32) -> StringHandle {
        self.text
    }

    fn number_field_value(&self, _field: u32) -> f64 {
        0.0
    }
}

/// The profile as JSON.
///
/// # Errors
/// When it is too large, or cannot be written as JSON.
pub fn firefox(export: &Export<'_>) -> Result<Value> {
    let start = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::from_secs(export.start_unix_s.unwrap_or(0)));
    let mut profile = Profile::new("firsttouch", start, SamplingInterval::from_millis(1));
    profile.set_product(&limits::name(&export.analysis.command.join(" ")));
    profile.set_symbolicated(true);
    let process = profile.add_process("program", PROCESS, at(0.0));
    let local = profile.add_category("local", CategoryColor::Blue);
    let remote = profile.add_category("remote", CategoryColor::Orange);
    let objects = export.objects();
    let mut by_thread: BTreeMap<usize, Vec<Whole<'_>>> = BTreeMap::new();
    for whole in export.whole() {
        by_thread.entry(whole.sample.thread).or_default().push(whole);
    }
    let stacks: BTreeSet<(usize, Option<Id>, Id)> =
        export.samples.list.iter().map(|sample| (sample.thread, sample.site, sample.object)).collect();
    let rows: usize = stacks.iter().map(|(_, site, _)| 1 + export.stack_of(*site).len()).sum();
    if rows > MOST_ROWS {
        return Err(limits::does_not_fit(&format!("their call stacks have more than {MOST_ROWS} frames")));
    }
    let mut weights = Vec::new();
    let mut first = None;
    for (index, samples) in &by_thread {
        let number = u32::try_from(*index).unwrap_or(u32::MAX);
        let thread = profile.add_thread(process, PROCESS + number, at(0.0), *index == 0);
        let node = export.analysis.threads.get(*index).map_or(0, |view| view.node);
        profile.set_thread_name(thread, &format!("thread {index} (node {node})"));
        profile.set_thread_samples_weight_type(thread, WeightType::Samples);
        first.get_or_insert(thread);
        for whole in samples {
            let sample = whole.sample;
            let category = if sample.is_remote() == Some(true) { remote } else { local };
            let name = format!("[{}]", Export::object_name(&objects, sample.object));
            let mut frames: Vec<FrameInfo> =
                export.stack(sample).iter().rev().map(|frame| labelled(&mut profile, &code(frame), CategoryHandle::OTHER)).collect();
            frames.push(labelled(&mut profile, &name, category));
            let stack = profile.intern_stack_frames(thread, frames.into_iter());
            profile.add_sample(thread, Timestamp::from_nanos_since_reference(sample.time_ns), stack, CpuDelta::ZERO, 1);
        }
        weights.push(samples.iter().map(|whole| whole.accesses).collect::<Vec<u64>>());
    }
    if let Some(timeline) = export.timeline {
        counters(&mut profile, process, timeline);
        if let Some(thread) = first {
            regions(&mut profile, thread, timeline);
        }
    }
    let mut json = serde_json::to_value(&profile).context("cannot write the profile as JSON")?;
    for (thread, weights) in weights.into_iter().enumerate() {
        json["threads"][thread]["samples"]["weight"] = weights.into();
    }
    json["meta"]["extra"] = serde_json::json!([{
        "label": "firsttouch",
        "entries": export.remarks().iter().enumerate().map(|(index, remark)| {
            serde_json::json!({ "label": format!("Remark {}", index + 1), "format": "string", "value": remark })
        }).collect::<Vec<_>>(),
    }]);
    Ok(json)
}

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_millis_since_reference(seconds * 1000.0)
}

fn labelled(profile: &mut Profile, text: &str, category: CategoryHandle) -> FrameInfo {
    let label = profile.intern_string(text);
    FrameInfo { frame: Frame::Label(label), category_pair: category.into(), flags: FrameFlags::empty() }
}

/// The function, with the file and the line if they are known.
fn code(frame: &StackFrame) -> String {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => {
            limits::name(&format!("{} ({}:{line})", function(frame), limits::cut(crate::text::place::file_name(file))))
        }
        _ => function(frame),
    }
}

/// Counters: what each node's memory gets of the accesses, what comes to it first, pages that move, and the bandwidth that the system counted.
fn counters(profile: &mut Profile, process: fxprof_processed_profile::ProcessHandle, timeline: &Timeline) {
    let nodes = timeline.bins.iter().map(|bin| bin.touched_bytes.len()).max().unwrap_or(0);
    let time = |index: usize| at(timeline.bin_s * (index as f64 + 0.5));
    for node in 0..nodes {
        let name = format!("accesses to node {node}");
        let counter = profile.add_counter(process, &name, "Memory", "Parts per million of the run's accesses in this stretch of time");
        let mut last = 0.0;
        for (index, bin) in timeline.bins.iter().enumerate() {
            let value = (1e6 * bin.share * bin.by_home.get(node).copied().unwrap_or(0.0)).round();
            profile.add_counter_sample(counter, time(index), value - last, u32::try_from(bin.samples).unwrap_or(u32::MAX));
            last = value;
        }
        let name = format!("first touches on node {node}");
        let counter = profile.add_counter(process, &name, "Memory", "Bytes first touched so far");
        for (index, bin) in timeline.bins.iter().enumerate() {
            let bytes = bin.touched_bytes.get(node).copied().unwrap_or(0.0).round();
            profile.add_counter_sample(counter, time(index), bytes, u32::from(bytes > 0.0));
        }
    }
    for (at, node) in timeline.measured.iter().flat_map(|measured| measured.nodes.iter().enumerate()) {
        let name = format!("bandwidth of node {node}");
        let counter = profile.add_counter(process, &name, "Memory", "MB/s by the system's counters: other programs count too");
        let mut last = 0.0;
        for (index, stretch) in timeline.measured.iter().flat_map(|measured| measured.stretches.iter().enumerate()) {
            let Some(value) = stretch.gb_per_s(at).map(|value| (1e3 * value).round()) else { continue };
            profile.add_counter_sample(counter, time(index), value - last, 1);
            last = value;
        }
    }
    if timeline.sees_moves {
        let counter = profile.add_counter(process, "pages moved", "Memory", "Pages seen on another node than before, so far");
        for (index, bin) in timeline.bins.iter().enumerate() {
            let moved = u32::try_from(bin.moved_pages).unwrap_or(u32::MAX);
            profile.add_counter_sample(counter, time(index), f64::from(moved), moved);
        }
    }
}

fn regions(profile: &mut Profile, thread: ThreadHandle, timeline: &Timeline) {
    for phase in &timeline.phases {
        let name = phase.at.as_ref().map_or_else(|| "parallel region".to_owned(), place);
        let text = format!("{} regions of {} threads, {:.3} s in all", phase.regions, phase.team_size, phase.total_s);
        let marker = Region { name: profile.intern_string(&name), text: profile.intern_string(&text) };
        profile.add_marker(thread, MarkerTiming::Interval(at(phase.first_s), at(phase.last_s)), marker);
    }
}
