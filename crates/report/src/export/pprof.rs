//! The format of pprof (github.com/google/pprof, proto/profile.proto), not compressed: readers accept that.

use super::limits::cut;
use super::protobuf::Message;
use super::{Counted, Export, function};
use firsttouch_model::rows::Frame;
use std::collections::{BTreeMap, HashMap};

/// Field numbers of `Profile`.
mod profile {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING: u32 = 6;
    pub const TIME_NANOS: u32 = 9;
    pub const DURATION_NANOS: u32 = 10;
    pub const COMMENT: u32 = 13;
    pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// Texts, functions and locations, each once, in the order of their first use.
#[derive(Default)]
struct Tables {
    strings: Vec<String>,
    string_ids: HashMap<String, u64>,
    functions: Vec<Message>,
    function_ids: HashMap<(String, String), u64>,
    locations: Vec<Message>,
    location_ids: HashMap<(u64, u32), u64>,
}

impl Tables {
    fn string(&mut self, text: &str) -> u64 {
        if let Some(id) = self.string_ids.get(text) {
            return *id;
        }
        let id = self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.string_ids.insert(text.to_owned(), id);
        id
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let key = (name.to_owned(), file.to_owned());
        if let Some(id) = self.function_ids.get(&key) {
            return *id;
        }
        let (name, file) = (self.string(name), self.string(file));
        let id = self.functions.len() as u64 + 1;
        let mut message = Message::default();
        message.number(1, id);
        message.number(2, name);
        message.number(3, name);
        message.number(4, file);
        self.functions.push(message);
        self.function_ids.insert(key, id);
        id
    }

    fn location(&mut self, frame: &Frame) -> u64 {
        let function = self.function(&function(frame), &frame.file.as_deref().map_or_else(String::new, |file| cut(file).into_owned()));
        let line = frame.line.unwrap_or(0);
        if let Some(id) = self.location_ids.get(&(function, line)) {
            return *id;
        }
        let id = self.locations.len() as u64 + 1;
        let mut at = Message::default();
        at.number(1, function);
        at.number(2, line.into());
        let mut message = Message::default();
        message.number(1, id);
        message.message(4, at);
        self.locations.push(message);
        self.location_ids.insert((function, line), id);
        id
    }
}

/// The values of samples that have the same stack and labels.
type Sums = [u64; Counted::ALL.len()];

#[must_use]
pub fn pprof(export: &Export<'_>) -> Vec<u8> {
    let objects = export.objects();
    let mut tables = Tables::default();
    tables.string("");
    let mut out = Message::default();
    for counted in Counted::ALL {
        let (name, unit) = counted.name();
        let mut kind = Message::default();
        kind.number(1, tables.string(name));
        kind.number(2, tables.string(unit));
        out.message(profile::SAMPLE_TYPE, kind);
    }
    // Stack, object, home, thread's node, thread.
    type Key = (Vec<u64>, u64, Option<u32>, u32, usize);
    let mut sums: BTreeMap<Key, Sums> = BTreeMap::new();
    for whole in export.whole() {
        let sample = whole.sample;
        let mut stack: Vec<u64> = export.stack(sample).iter().map(|frame| tables.location(frame)).collect();
        if stack.is_empty() {
            stack.push(tables.location(&Frame { function: Some("code not known".to_owned()), ..Frame::default() }));
        }
        let object = tables.string(&Export::object_name(&objects, sample.object));
        let sum = sums.entry((stack, object, sample.home, sample.thread_node, sample.thread)).or_default();
        for (sum, counted) in sum.iter_mut().zip(Counted::ALL) {
            *sum += whole.value(counted);
        }
    }
    let keys = ["object", "home_node", "using_node", "thread", "memory"].map(|key| tables.string(key));
    for ((stack, object, home, node, thread), values) in sums {
        let mut sample = Message::default();
        sample.numbers(1, &stack);
        sample.numbers(2, &values);
        let (home, memory) = match home {
            Some(home) => (home.to_string(), if home == node { "local" } else { "remote" }),
            None => ("not known".to_owned(), "not known"),
        };
        sample.message(3, label(keys[0], object));
        // As texts: readers drop labels with the number 0.
        for (key, value) in keys[1..].iter().zip([home.as_str(), &node.to_string(), &thread.to_string(), memory]) {
            sample.message(3, label(*key, tables.string(value)));
        }
        out.message(profile::SAMPLE, sample);
    }
    let comments: Vec<u64> = export.remarks().iter().map(|remark| tables.string(remark)).collect();
    let default = tables.string(Counted::RemoteAccesses.name().0);
    for location in std::mem::take(&mut tables.locations) {
        out.message(profile::LOCATION, location);
    }
    for function in std::mem::take(&mut tables.functions) {
        out.message(profile::FUNCTION, function);
    }
    for text in &tables.strings {
        out.bytes(profile::STRING, text.as_bytes());
    }
    out.number(profile::TIME_NANOS, export.start_unix_s.unwrap_or(0).saturating_mul(1_000_000_000));
    out.number(profile::DURATION_NANOS, (export.analysis.wall_s.max(0.0) * 1e9) as u64);
    out.numbers(profile::COMMENT, &comments);
    out.number(profile::DEFAULT_SAMPLE_TYPE, default);
    out.finish()
}

/// Whether a file begins as the files of [`pprof`] do: with a sample type, the texts 1 and 2.
#[must_use]
pub fn is_pprof(start: &[u8]) -> bool {
    start.starts_with(&[0x0a, 4, 8, 1, 16, 2])
}

fn label(key: u64, text: u64) -> Message {
    let mut label = Message::default();
    label.number(1, key);
    label.number(2, text);
    label
}
