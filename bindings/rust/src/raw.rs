//! The functions of firsttouch.h that the crate calls.

use std::ffi::{c_char, c_int, c_uint, c_void};

pub const LOCAL: i32 = 0;
pub const BLOCKED: i32 = 1;
pub const CYCLIC: i32 = 2;
pub const BY_BOUNDS: i32 = 3;
pub const INTERLEAVED: i32 = 4;
pub const WEIGHTED: i32 = 5;
pub const REPLICATED: i32 = 6;
pub const BIND: i32 = 7;

pub const THREADS: i32 = 0;
pub const NODES: i32 = 1;

/// FT_SMALL_BYTES: smaller blocks come from malloc.
pub const SMALL_BYTES: usize = 64 * 1024;

/// `struct ft_partition`.
#[repr(C)]
pub struct Partition {
    pub kind: i32,
    pub unit: i32,
    pub parts: usize,
    pub chunk: usize,
    pub bounds: *const usize,
    pub weights: *const f64,
    pub node: i32,
    pub team: i32,
}

/// `struct ft_verdict`.
#[repr(C)]
pub struct Verdict {
    pub pages: usize,
    pub present: usize,
    pub on_target: usize,
    pub border: usize,
    pub share: f64,
    pub node_pages: [usize; 64],
    pub error: c_int,
}

unsafe extern "C" {
    pub fn ft_alloc(bytes: usize, partition: *const Partition, flags: c_uint) -> *mut c_void;
    pub fn ft_free(pointer: *mut c_void);
    pub fn ft_place(pointer: *mut c_void, bytes: usize, partition: *const Partition, flags: c_uint) -> isize;
    pub fn ft_localise(pointer: *mut c_void, bytes: usize, partition: *const Partition) -> c_int;
    pub fn ft_replicate(pointer: *mut c_void) -> c_int;
    pub fn ft_local_copy(pointer: *const c_void) -> *mut c_void;
    pub fn ft_verify(pointer: *const c_void, bytes: usize, partition: *const Partition, verdict: *mut Verdict) -> c_int;
    pub fn ft_expect(pointer: *const c_void, bytes: usize, partition: *const Partition, share: f64) -> c_int;
    pub fn ft_report(
        text: *mut c_char,
        text_bytes: usize,
        name: *const c_char,
        pointer: *const c_void,
        bytes: usize,
        partition: *const Partition,
    ) -> usize;
    pub fn ft_team_join(team: c_int, thread: usize, threads: usize) -> c_int;
    pub fn ft_team_size(team: c_int) -> usize;
    pub fn ft_nodes(nodes: *mut c_int, capacity: usize) -> usize;
    pub fn ft_last_doubt() -> *const c_char;
    pub fn ft_clear_doubt();
    pub fn ft_version() -> *const c_char;
}
