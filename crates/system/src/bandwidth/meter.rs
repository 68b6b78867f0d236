//! Readings of counters, and what they grew by.

use std::collections::BTreeMap;

/// A counter's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Value {
    pub count: u64,
    /// For how long the event was enabled, and for how long it counted: less if several share the hardware's counters. 0 for other counters.
    pub enabled_ns: u64,
    pub running_ns: u64,
}

impl Value {
    /// The growth since an earlier value. `None` if the counter was reset, or did not count meanwhile.
    fn since(self, before: Self) -> Option<f64> {
        // A counter that wraps at 64 bits has grown by the difference; a counter that was reset would have grown by almost all of them.
        let grown = self.count.wrapping_sub(before.count);
        let (enabled, running) = (self.enabled_ns.checked_sub(before.enabled_ns)?, self.running_ns.checked_sub(before.running_ns)?);
        match (enabled, running) {
            _ if grown >= 1 << 63 => None,
            (0, 0) => Some(grown as f64),
            (_, 0) => None,
            (enabled, running) => Some(grown as f64 * (enabled as f64 / running as f64)),
        }
    }
}

/// A counter that can be read.
pub trait Count {
    /// `None` if it has no value now.
    fn value(&self) -> Option<Value>;
}

/// A constant.
impl Count for Value {
    fn value(&self) -> Option<Value> {
        Some(*self)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Read,
    Write,
    /// Of resctrl: all, and the part whose memory is on the CPUs' own node.
    Total,
    Local,
}

pub struct Counter {
    pub what: What,
    pub bytes_per_count: f64,
    pub count: Box<dyn Count>,
}

/// What a node's counters grew by between two readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    pub node: u32,
    pub from_ns: u64,
    pub to_ns: u64,
    pub bytes: u64,
    /// Of memory controllers: reads.
    pub read_bytes: Option<u64>,
    /// Of resctrl: bytes from memory of the CPUs' own node.
    pub local_bytes: Option<u64>,
}

struct NodeMeter {
    counters: Vec<Counter>,
    last: Option<(u64, Vec<Value>)>,
}

/// The counters of all nodes.
pub struct Meter {
    source: &'static str,
    detail: String,
    nodes: BTreeMap<u32, NodeMeter>,
}

impl Meter {
    pub(super) fn new(source: &'static str, detail: String, counters: Vec<(u32, Counter)>) -> Self {
        let mut nodes: BTreeMap<u32, NodeMeter> = BTreeMap::new();
        for (node, counter) in counters {
            nodes.entry(node).or_insert_with(|| NodeMeter { counters: Vec::new(), last: None }).counters.push(counter);
        }
        Self { source, detail, nodes }
    }

    /// `uncore` or `resctrl`.
    #[must_use]
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// What is read, in words.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Reads all counters. A node whose counters do not all have a value is left out; its next reading covers the time since its last.
    pub fn read(&mut self, now_ns: u64) -> Vec<Grown> {
        self.nodes.iter_mut().filter_map(|(node, meter)| meter.read(*node, now_ns)).collect()
    }
}

impl NodeMeter {
    fn read(&mut self, node: u32, now_ns: u64) -> Option<Grown> {
        let values = self.counters.iter().map(|counter| counter.count.value()).collect::<Option<Vec<Value>>>()?;
        let (from_ns, before) = self.last.replace((now_ns, values.clone()))?;
        if from_ns >= now_ns {
            return None;
        }
        let mut sums: BTreeMap<u8, f64> = BTreeMap::new();
        for ((counter, value), before) in self.counters.iter().zip(values).zip(before) {
            *sums.entry(counter.what as u8).or_default() += value.since(before)? * counter.bytes_per_count;
        }
        let sum = |what: What| sums.get(&(what as u8)).map(|bytes| bytes.round() as u64);
        let count = |what: What| self.counters.iter().filter(|counter| counter.what == what).count();
        let parts = [What::Read, What::Write, What::Total].into_iter().filter_map(sum);
        Some(Grown {
            node,
            from_ns,
            to_ns: now_ns,
            bytes: parts.fold(0, u64::saturating_add),
            read_bytes: sum(What::Read),
            local_bytes: sum(What::Local).filter(|_| count(What::Local) == count(What::Total)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Fake(Rc<Cell<Option<Value>>>);

    impl Count for Fake {
        fn value(&self) -> Option<Value> {
            self.0.get()
        }
    }

    fn count(count: u64) -> Option<Value> {
        Some(Value { count, ..Value::default() })
    }

    fn meter(counters: &[(u32, What, &Fake)]) -> Meter {
        let counter = |what, fake: &Fake| Counter { what, bytes_per_count: 64.0, count: Box::new(fake.clone()) };
        Meter::new("uncore", String::new(), counters.iter().map(|(node, what, fake)| (*node, counter(*what, fake))).collect())
    }

    fn grown(meter: &mut Meter, now: u64) -> Vec<(u32, u64, u64, Option<u64>)> {
        meter.read(now).into_iter().map(|grown| (grown.node, grown.from_ns, grown.bytes, grown.read_bytes)).collect()
    }

    /// Check that growth is summed by node, that a counter that wraps goes on, and that one that is reset or has no value leaves its node out.
    #[test]
    fn growth_by_node() {
        let (read, write, other) = (Fake::default(), Fake::default(), Fake::default());
        let mut meter = meter(&[(0, What::Read, &read), (0, What::Write, &write), (3, What::Read, &other)]);
        let set = |values: [Option<Value>; 3]| [&read, &write, &other].into_iter().zip(values).for_each(|(fake, value)| fake.0.set(value));
        set([count(u64::MAX), count(0), count(5)]);
        assert_eq!(grown(&mut meter, 10), []);
        set([count(1), count(3), count(5)]);
        assert_eq!(grown(&mut meter, 20), [(0, 10, 320, Some(128)), (3, 10, 0, Some(0))]);
        set([count(2), None, count(4)]);
        assert_eq!(grown(&mut meter, 30), [], "one has no value, the other was reset");
        set([count(3), count(3), count(6)]);
        assert_eq!(grown(&mut meter, 40), [(0, 20, 128, Some(128)), (3, 30, 128, Some(128))]);
        assert_eq!(grown(&mut meter, 40), [], "no time has passed");
    }

    /// Check that counts of a shared counter stand for the whole time, and that an event which did not count gives nothing.
    #[test]
    fn shared_counters_are_scaled() {
        let at = |count, enabled_ns, running_ns| Value { count, enabled_ns, running_ns };
        assert_eq!(at(300, 200, 110).since(at(200, 100, 60)), Some(200.0));
        assert_eq!(at(200, 200, 60).since(at(200, 100, 60)), None);
        assert_eq!(at(200, 50, 60).since(at(200, 100, 60)), None);
    }

    /// Check that the local part is known only if every domain of the node has it.
    #[test]
    fn local_parts() {
        let (total, local, second) = (Fake::default(), Fake::default(), Fake::default());
        let set = |value| [&total, &local, &second].into_iter().for_each(|fake| fake.0.set(value));
        let mut whole = meter(&[(0, What::Total, &total), (0, What::Local, &local)]);
        let mut part = meter(&[(0, What::Total, &total), (0, What::Local, &local), (0, What::Total, &second)]);
        set(count(0));
        assert!(whole.read(1).is_empty() && part.read(1).is_empty());
        set(count(2));
        let found = |meter: &mut Meter| meter.read(2).into_iter().map(|one| (one.bytes, one.local_bytes)).collect::<Vec<_>>();
        assert_eq!((found(&mut whole), found(&mut part)), (vec![(128, Some(128))], vec![(256, None)]));
    }
}
