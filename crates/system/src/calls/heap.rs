//! The C library's heap.

/// Gives the memory that is free in the heap back to the system. Threads have heaps of their own, so what one of them freed stays unused
/// otherwise.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim only touches free memory of the heap, and locks what it looks at.
    unsafe {
        libc::malloc_trim(0);
    }
}
