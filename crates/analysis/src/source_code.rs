//! Places in the code where objects are allocated, first touched and used.

use crate::{CallLine, CodeLocation, Sources};
use firsttouch_model::Estimate;
use firsttouch_model::generated_code::{UNNAMED, is_generated};
use firsttouch_model::rows::{Frame, Id, Profile};
use std::collections::BTreeMap;

/// The number of places listed.
const MOST: usize = 5;

/// Finds the places in the code for sites.
pub struct CodeLocations<'a> {
    pub profile: &'a Profile,
    pub sources: &'a dyn Sources,
}

impl<'a> CodeLocations<'a> {
    /// The frames of a site.
    #[must_use]
    pub fn frames(&self, site: Option<Id>) -> &'a [Frame] {
        site.and_then(|id| self.profile.sites.get(&id)).map_or(&[], |site| &site.frames)
    }

    /// The user's own frame; else the first frame with a line; else the first with a function; else the leaf.
    #[must_use]
    pub fn user_frame<'f>(&self, frames: &'f [Frame]) -> Option<&'f Frame> {
        let own = self.sources.user_frame(frames).and_then(|i| frames.get(i));
        let lined = || frames.iter().find(|f| f.file.is_some() && f.line.is_some());
        own.or_else(lined).or_else(|| frames.iter().find(|f| f.function.is_some())).or_else(|| frames.first())
    }

    /// The place in the code that represents a site. None for an empty stack.
    #[must_use]
    pub fn place(&self, site: Option<Id>) -> Option<CodeLocation> {
        let frame = self.user_frame(self.frames(site))?;
        let text = frame.file.as_deref().zip(frame.line).and_then(|(file, line)| self.sources.line(file, line));
        Some(CodeLocation {
            file: frame.file.clone(),
            line: frame.line,
            function: frame.function.clone(),
            share: 1.0,
            share_interval: None,
            alone: None,
            text: text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()),
            module: frame.module.clone(),
            offset: next_instruction(frame),
            inlined_at: inlined_at(self.frames(site), frame),
        })
    }

    /// The same for weights of samples, so that the shares are estimates. Samples of unequal weight say less than as many of equal weight: the number
    /// that counts is (sum w)^2 / sum w^2 (Kish, Survey Sampling, 1965).
    #[must_use]
    pub fn estimated(&self, weights: impl Iterator<Item = (Option<Id>, f64)> + Clone) -> Vec<CodeLocation> {
        let (sum, squares) = weights.clone().fold((0.0, 0.0), |(sum, squares), (_, weight)| (sum + weight, squares + weight * weight));
        let samples = if squares > 0.0 { sum * sum / squares } else { 0.0 };
        self.sampled(weights, samples)
    }

    /// The same for shares that rest on so many samples.
    #[must_use]
    pub fn sampled(&self, weights: impl Iterator<Item = (Option<Id>, f64)>, samples: f64) -> Vec<CodeLocation> {
        let mut list = self.ranked(weights);
        for place in list.iter_mut().filter(|place| place.share < 1.0) {
            let error = (place.share * (1.0 - place.share) / samples.max(1.0)).sqrt();
            let estimate = Estimate::fraction(place.share, error, samples.max(1.0) as u64);
            place.share_interval = Some([estimate.low, estimate.high]);
        }
        list
    }

    /// Places with their shares, largest first. Sites on one line are merged; so are sites in one function without line numbers.
    #[must_use]
    pub fn ranked(&self, weights: impl Iterator<Item = (Option<Id>, f64)>) -> Vec<CodeLocation> {
        let mut by_site: BTreeMap<Option<Id>, f64> = BTreeMap::new();
        for (site, weight) in weights {
            *by_site.entry(site).or_default() += weight;
        }
        let total: f64 = by_site.values().sum();
        if total <= 0.0 || !total.is_finite() {
            return Vec::new();
        }
        type Key = (Option<String>, Option<u32>, Option<String>, Option<u64>);
        let mut by_place: BTreeMap<Key, CodeLocation> = BTreeMap::new();
        for (site, weight) in by_site {
            let Some(place) = self.place(site) else { continue };
            let unnamed = if place.line.is_none() && place.function.is_none() { place.offset } else { None };
            let key = (place.file.clone(), place.line, place.function.clone(), unnamed);
            let known = by_place.entry(key).or_insert_with(|| CodeLocation { share: 0.0, ..place.clone() });
            known.share += weight / total;
            // It is part of several functions.
            if known.inlined_at != place.inlined_at {
                known.inlined_at.clear();
            }
        }
        let mut list: Vec<CodeLocation> = by_place.into_values().collect();
        list.sort_by(|a, b| b.share.total_cmp(&a.share));
        list.truncate(MOST);
        list
    }
}

/// The lines of the calls by which a frame's function is part of another one.
fn inlined_at(frames: &[Frame], frame: &Frame) -> Vec<CallLine> {
    let own = frames.iter().position(|one| std::ptr::eq(one, frame)).unwrap_or(frames.len());
    let pairs = frames.get(own..).unwrap_or_default().windows(2);
    let callers = pairs.take_while(|pair| pair[0].inlined).map(|pair| &pair[1]);
    callers.map_while(|caller| Some(CallLine { file: caller.file.clone()?, line: caller.line? })).collect()
}

impl CodeLocation {
    /// Its file and line, and those of the calls by which its function is part of another one.
    pub fn lines(&self) -> impl Iterator<Item = (&str, u32)> {
        let own = self.file.as_deref().zip(self.line);
        own.into_iter().chain(self.inlined_at.iter().map(|call| (call.file.as_str(), call.line)))
    }

    /// Whether it is the same line of the same function as another place.
    #[must_use]
    pub(crate) fn is_same_line(&self, other: &Self) -> bool {
        (&self.file, self.line, &self.function) == (&other.file, other.line, &other.function)
    }
}

/// The smallest page size. Modules are mapped at page borders.
const PAGE: u64 = 4096;

/// Offset of a frame's code in its file, as a disassembly lists it. If the frame has the start of the instruction (the leaf of a page
/// fault), it is that instruction; else it is the instruction after it (a call's return address, the trap after an access), because the
/// length of the instruction before is unknown without decoding it. In the second case the frame's address is one byte less, inside the
/// instruction: addr2line needs this, but no disassembly lists it.
#[must_use]
pub fn next_instruction(frame: &Frame) -> Option<u64> {
    let offset = frame.offset?;
    let is_start = frame.address % PAGE == offset % PAGE;
    Some(if is_start { offset } else { offset.saturating_add(1) })
}

/// `file:line`, or the function, or module and offset.
#[must_use]
pub fn describe(place: &CodeLocation) -> String {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match (&place.file, place.line, &place.function) {
        (Some(file), Some(line), _) => format!("{}:{line}", base(file)),
        (_, _, Some(function)) => format!("{function}()"),
        _ => match (&place.module, place.offset) {
            (Some(module), _) if is_generated(module) => UNNAMED.to_owned(),
            (Some(module), Some(offset)) => format!("{}+{offset:#x}", base(module)),
            _ => "an unknown place".to_owned(),
        },
    }
}
