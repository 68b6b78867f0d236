use crate::raw;
use crate::team::Team;

/// The most parts that a partition may have.
pub const MAX_PARTS: usize = 1 << 20;

/// How the elements of an array are divided. Parts, chunks and bounds count elements, and divide as OpenMP's static schedules divide a
/// loop over the elements; [`Partition::in_rows_of`] makes rows the unit. The default is first touch, as for memory from `Vec`.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    kind: i32,
    unit: i32,
    parts: usize,
    chunk: usize,
    bounds: Vec<usize>,
    weights: Vec<f64>,
    node: i32,
    team: i32,
    row: usize,
}

impl Default for Partition {
    fn default() -> Self {
        Self::local()
    }
}

impl Partition {
    const fn of(kind: i32, unit: i32) -> Self {
        Self { kind, unit, parts: 0, chunk: 0, bounds: Vec::new(), weights: Vec::new(), node: 0, team: 0, row: 1 }
    }

    /// First touch decides.
    pub const fn local() -> Self {
        Self::of(raw::LOCAL, raw::THREADS)
    }

    /// Equal contiguous parts, one for each thread of the team. [`Partition::parts`] sets another number.
    pub const fn blocked() -> Self {
        Self::of(raw::BLOCKED, raw::THREADS)
    }

    /// Chunks of `chunk` elements, dealt to the threads in turn.
    pub const fn cyclic(chunk: usize) -> Self {
        let mut partition = Self::of(raw::CYCLIC, raw::THREADS);
        partition.chunk = chunk;
        partition
    }

    /// Part `i` is the elements from `bounds[i]` to before `bounds[i + 1]`.
    pub fn by_bounds(bounds: impl Into<Vec<usize>>) -> Self {
        let bounds = bounds.into();
        Self { parts: bounds.len().saturating_sub(1), bounds, ..Self::of(raw::BY_BOUNDS, raw::THREADS) }
    }

    /// Contiguous parts in proportion to the weights, for the nodes of this process in ascending order.
    pub fn weighted(weights: impl Into<Vec<f64>>) -> Self {
        let weights = weights.into();
        Self { parts: weights.len(), weights, ..Self::of(raw::WEIGHTED, raw::NODES) }
    }

    /// Pages in turn over all nodes that this process may use.
    pub const fn interleaved() -> Self {
        Self::of(raw::INTERLEAVED, raw::NODES)
    }

    /// All on one node, by the kernel's number.
    pub const fn bind(node: i32) -> Self {
        let mut partition = Self::of(raw::BIND, raw::NODES);
        partition.node = node;
        partition
    }

    pub(crate) const fn replicated() -> Self {
        Self::of(raw::REPLICATED, raw::NODES)
    }

    /// The same with `parts` parts (blocked, cyclic), at most [`MAX_PARTS`]. 0: as many as the team has threads.
    pub fn parts(self, parts: usize) -> Self {
        Self { parts, ..self }
    }

    /// The same with a row of `elements` elements as the unit of parts, chunks and bounds: for threads that work on whole rows. 0 counts as 1.
    pub fn in_rows_of(self, elements: usize) -> Self {
        Self { row: elements.max(1), ..self }
    }

    /// The same with its parts numbered by the nodes of this process, in ascending order.
    pub fn over_nodes(self) -> Self {
        Self { unit: raw::NODES, ..self }
    }

    /// The same for the threads of `team`.
    pub fn for_team(self, team: Team) -> Self {
        Self { unit: raw::THREADS, team: team.number(), ..self }
    }

    /// Calls `use_it` with the partition of `count` elements of `element_bytes` bytes. Sizes that overflow become a chunk or bounds
    /// that the library refuses.
    pub(crate) fn in_bytes<R>(&self, count: usize, element_bytes: usize, use_it: impl FnOnce(*const raw::Partition) -> R) -> R {
        let unit_bytes = self.row.saturating_mul(element_bytes);
        let (mut kind, mut parts) = (self.kind, self.parts);
        let mut bounds = self.bounds.clone();
        if kind == raw::BLOCKED {
            if parts == 0 {
                parts = if self.unit == raw::NODES { crate::nodes().len() } else { Team::of_number(self.team).threads() };
            }
            // By bounds, because equal parts in bytes can differ from equal parts in rows by many pages. Too many parts stay, so that the
            // library refuses them.
            if (1..=MAX_PARTS).contains(&parts) {
                kind = raw::BY_BOUNDS;
                bounds = static_bounds(count.div_ceil(self.row), parts);
            }
        }
        for bound in &mut bounds {
            *bound = bound.saturating_mul(unit_bytes);
        }
        let partition = raw::Partition {
            kind,
            unit: self.unit,
            parts,
            chunk: self.chunk.saturating_mul(unit_bytes),
            bounds: if bounds.is_empty() { std::ptr::null() } else { bounds.as_ptr() },
            weights: if self.weights.is_empty() { std::ptr::null() } else { self.weights.as_ptr() },
            node: self.node,
            team: self.team,
        };
        use_it(&partition)
    }
}

/// The borders of OpenMP's `schedule(static)` for a loop of `count` iterations: thread `i` works on `result[i]..result[i + 1]`. To divide
/// a slice in the same way for threads of your own.
///
/// # Panics
///
/// If `threads` is not 1 to [`MAX_PARTS`].
pub fn static_bounds(count: usize, threads: usize) -> Vec<usize> {
    assert!((1..=MAX_PARTS).contains(&threads), "cannot divide by {threads} threads: give 1 to 2^20");
    let (share, more) = (count / threads, count % threads);
    (0..=threads).map(|thread| thread * share + thread.min(more)).collect()
}
