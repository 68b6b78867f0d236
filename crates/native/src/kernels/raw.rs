//! Declarations shared with C: native/kernels/kernel.h.

/// `FT_STREAM_TEMPORAL`
pub const TEMPORAL: u32 = 16;

/// `struct ft_kernel_options`
#[repr(C)]
pub struct RawOptions {
    pub sizes: [u64; 3],
    pub blocks: [u64; 3],
    pub iterations: u64,
    pub repetitions: u64,
    pub chunk: u64,
    pub threads: u32,
    pub initialisation: u32,
    pub schedule: u32,
    pub form: u32,
    pub variant: u32,
    pub huge_pages: u32,
}

/// `struct ft_kernel_result`
#[repr(C)]
pub struct RawResult {
    pub worst_error: f64,
    pub wrong_at: u64,
    pub bytes: u64,
    pub threads: u32,
    pub form: u32,
    pub cpus: [u64; 16],
    pub page_nodes: [i8; 64],
}

unsafe extern "C" {
    pub fn ft_dgemv(options: *const RawOptions, seconds: *mut f64, result: *mut RawResult) -> i32;
    pub fn ft_dmvm(options: *const RawOptions, seconds: *mut f64, result: *mut RawResult) -> i32;
    pub fn ft_stream(options: *const RawOptions, seconds: *mut f64, result: *mut RawResult) -> i32;
    pub fn ft_chase(options: *const RawOptions, seconds: *mut f64, result: *mut RawResult) -> i32;
    pub fn ft_iso3dfd(options: *const RawOptions, seconds: *mut f64, result: *mut RawResult) -> i32;
}

/// One of the kernels.
pub type Function = unsafe extern "C" fn(*const RawOptions, *mut f64, *mut RawResult) -> i32;
