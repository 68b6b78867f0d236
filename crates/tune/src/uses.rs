//! The input: sampled accesses, by object.

/// One sampled access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    pub time_ns: u64,
    pub address: u64,
    /// The thread's id in the profile.
    pub thread: i64,
    /// The node that the thread ran on.
    pub node: u32,
    /// The node that the page is on now; `None` if that is not known.
    pub home: Option<u32>,
    /// CPU time that this access stands for.
    pub cpu_ns: f64,
}

/// An object, and the accesses to it in the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectUses {
    /// Its id in the profile.
    pub id: i64,
    pub name: String,
    /// Where it was allocated, `solver.c:41`.
    pub line: Option<String>,
    pub start: u64,
    pub bytes: u64,
    /// The unit that moves as a whole: a huge page if it consists of some, else a page.
    pub grain_bytes: u64,
    /// Why it is not placed, if nothing is to be gained (it fits in a core's cache).
    pub exempt: Option<String>,
    pub uses: Vec<Use>,
}

impl ObjectUses {
    /// The number of the unit that an address is in.
    #[must_use]
    pub fn grain(&self, address: u64) -> u64 {
        address / self.grain_bytes.max(1)
    }
}
