//! What threads do to memory, sample by sample: what evidence tells a model of machines.

/// The traffic of a program, placed on the machine it was judged on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    pub workers: Vec<Worker>,
    pub objects: Vec<ObjectTraffic>,
    /// Part of the sampled accesses to large objects whose page's node is not known; it is in no sample.
    pub unknown: f64,
}

/// A place that threads share one after another: what a machine has a core for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worker {
    /// Indices of its threads, in order of birth.
    pub threads: Vec<usize>,
    /// Where it sits on the machine.
    pub node: u32,
    /// CPU time of its threads, where that was recorded.
    pub cpu_s: Option<f64>,
}

/// How threads divide an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Each part has one owner for good.
    Owned,
    /// All use all of it.
    Shared,
    /// Parts go to whoever comes, or to none that could be told.
    DealtOut,
}

/// The traffic to one object (or to several that are one to the programmer).
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectTraffic {
    /// The profile's id.
    pub id: i64,
    pub name: String,
    /// Bytes alive at once.
    pub bytes: u64,
    pub division: Division,
    /// Workers whose shares of it cannot be told from equal ones, and are taken as equal.
    pub even: Vec<usize>,
    /// Objects that lie side by side in it: rows of equal size, of which each was allocated by itself.
    pub rows: usize,
    /// Where each worker's part is, if a rule that holds between the samples too was recognised.
    pub parts: Option<Parts>,
    pub samples: Vec<TrafficSample>,
}

/// Whose each stretch of an object is.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// The division repeats after so many bytes; without one, it is of the whole object.
    pub period_bytes: Option<f64>,
    /// Where each part ends, as a fraction of the whole; rising, the last is 1.
    pub ends: Vec<f64>,
    /// Whose it is, by part.
    pub workers: Vec<usize>,
}

/// What one sampled address tells.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficSample {
    /// Place in the object, in [0, 1).
    pub position: f64,
    /// Samples of one round were taken at the same time.
    pub round: u64,
    /// The node its page is on.
    pub home: u32,
    /// The worker whose part it lies in, where each part has one.
    pub owner: Option<usize>,
    /// One worker used it while no team was at work: outside of parallel regions, or before its process had a second thread.
    pub serial: bool,
    /// Bytes that it stands for, by worker.
    pub bytes: Vec<(usize, f64)>,
}

impl TrafficSample {
    /// Bytes by all workers.
    #[must_use]
    pub fn volume(&self) -> f64 {
        self.bytes.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl ObjectTraffic {
    /// Samples of the time when the team was at work.
    pub fn of_team(&self) -> impl Iterator<Item = &TrafficSample> {
        self.samples.iter().filter(|sample| !sample.serial)
    }
}
