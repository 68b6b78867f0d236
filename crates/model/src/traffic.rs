//! Memory traffic of a program, sample by sample: the input of predictions.

/// The traffic of a program on the machine it was judged on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    pub workers: Vec<Worker>,
    pub objects: Vec<ObjectTraffic>,
    /// Fraction of the sampled accesses to large objects whose page's node is unknown. They are not in `samples` of any object.
    pub unknown: f64,
    /// `None` if timer samples do not show it.
    pub computing: Option<Computing>,
    /// Fraction of the bytes whose number is a guess: the samples do not show how fast their loops go.
    pub guessed: f64,
}

/// The time of a program outside of the code that accesses its large objects. It is the same wherever these are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Computing {
    /// Its part of the run: of the time of a thread that works alone, and of the mean time of the threads of teams. In [0, 1).
    pub share: f64,
    /// Of the share.
    pub standard_error: f64,
    /// The timer samples that show it.
    pub samples: u64,
    /// Whether all memory was on the node of its users when it was measured: the machine that recorded it has one node.
    pub was_local: bool,
}

impl Computing {
    /// The 95 % interval of the share.
    #[must_use]
    pub fn interval(&self) -> [f64; 2] {
        [-1.0, 1.0].map(|sign| (self.share + sign * crate::Z95 * self.standard_error).clamp(0.0, 1.0))
    }
}

/// A worker: threads with successive lifetimes, which need only one core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worker {
    /// Indices of its threads, in order of birth.
    pub threads: Vec<usize>,
    /// The node it runs on.
    pub node: u32,
    /// Whether its threads did nothing, so that it needs no core.
    pub idle: bool,
    /// CPU time of its threads in seconds, if it was recorded.
    pub cpu_s: Option<f64>,
}

/// How threads divide an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Each part always has the same owner.
    Owned,
    /// All workers use all of it.
    Shared,
    /// Parts have changing owners, or no owner could be determined.
    DealtOut,
}

/// Whose work the accesses to an object without owners are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Tasks, which any thread may execute.
    OfAnyThread,
    /// Threads with different code use it, such as producers and consumers. It is taken to stay with each thread, although threads of one kind might
    /// take each other's.
    OfItsThread,
    /// Not known: the samples tell.
    AsSeen,
}

/// The traffic to one object, or to several that are one variable to the programmer.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectTraffic {
    /// The object's id in the profile.
    pub id: i64,
    pub name: String,
    /// Bytes alive at the same time.
    pub bytes: u64,
    pub division: Division,
    pub work: Work,
    /// No page has an owner, but each worker has the same parts every time: they are smaller than a page.
    pub has_fine_parts: bool,
    /// Workers whose shares do not differ significantly and are assumed to be equal.
    pub even: Vec<usize>,
    /// The number of adjacent objects in it: rows of equal size that were allocated one by one.
    pub rows: usize,
    /// The objects of the profile that it consists of, if they are few enough.
    pub members: Vec<Member>,
    /// Where each worker's part is, if a rule was recognised that also holds between the samples.
    pub parts: Option<Parts>,
    pub samples: Vec<TrafficSample>,
}

/// One of the objects that are one variable to the programmer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// Its id in the profile.
    pub object: i64,
    /// The positions of its first byte and of the end of its last one in the whole. Those that follow each other in time share them.
    pub range: [f64; 2],
}

/// The owner of each range of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// The partition repeats after this many bytes; `None` if it covers the whole object.
    pub period_bytes: Option<f64>,
    /// Where each part ends, as a fraction of the period; ascending, the last is 1.
    pub ends: Vec<f64>,
    /// The owner of each part.
    pub workers: Vec<usize>,
}

/// The traffic at one sampled address.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficSample {
    /// Position in the object, in [0, 1).
    pub position: f64,
    /// Samples of one round were taken at the same time.
    pub round: u64,
    /// The node its page is on.
    pub home: u32,
    /// The owner of the part it lies in, if each part has one.
    pub owner: Option<usize>,
    /// Whether a single worker used it while no team was active: outside parallel regions, or before its process had a second thread.
    pub serial: bool,
    /// Bytes that it represents, by worker.
    pub bytes: Vec<(usize, f64)>,
}

/// If the number of so many accesses is a guess, so is how much the program moves.
const MOST_GUESSED: f64 = 0.5;

impl Traffic {
    /// Whether how much the program moves, and how its loops compare, is a guess.
    #[must_use]
    pub fn is_guess(&self) -> bool {
        self.guessed > MOST_GUESSED
    }
}

impl TrafficSample {
    /// Bytes by all workers.
    #[must_use]
    pub fn volume(&self) -> f64 {
        self.bytes.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl ObjectTraffic {
    /// Samples from times when a team was active.
    pub fn of_team(&self) -> impl Iterator<Item = &TrafficSample> {
        self.samples.iter().filter(|sample| !sample.serial)
    }
}
