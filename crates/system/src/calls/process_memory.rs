//! Reads the memory of another process. The process keeps running.

/// Reads from `address` of the process; returns how many bytes could be read, 0 if none.
#[must_use]
pub fn read(pid: i32, address: u64, bytes: &mut [u8]) -> usize {
    let Ok(start) = usize::try_from(address) else { return 0 };
    let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let theirs = libc::iovec { iov_base: start as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: `ours` describes `bytes`, which outlives the call; `theirs` is an address of the other process, which the kernel checks.
    let count = unsafe { libc::process_vm_readv(pid, &raw const ours, 1, &raw const theirs, 1, 0) };
    usize::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that memory is read as far as it is mapped, and that a wild address or process gives nothing.
    #[test]
    fn memory_is_read() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        let data = [1u8, 2, 3, 4];
        let mut read_back = [0u8; 4];
        assert_eq!((read(own, data.as_ptr() as u64, &mut read_back), read_back), (4, data));
        assert_eq!(read(own, 8, &mut read_back), 0);
        assert_eq!(read(own, u64::MAX - 2, &mut read_back), 0);
        assert_eq!(read(i32::MAX, data.as_ptr() as u64, &mut read_back), 0);
    }
}
