//! The runtime libraries of OpenMP.

/// How the files of the runtimes begin: of GCC, LLVM, Intel and NVIDIA.
const RUNTIMES: [&str; 4] = ["libgomp", "libomp", "libiomp", "libnvomp"];

/// Whether a file, without its directory, is a runtime library of OpenMP: `libgomp.so.1`, `libiomp5.so`, a wheel's `libgomp-a34b3233.so.1`.
#[must_use]
pub fn is_openmp_runtime(file: &str) -> bool {
    let ends = |rest: &str| rest.starts_with(|next: char| matches!(next, '.' | '-') || next.is_ascii_digit());
    RUNTIMES.iter().any(|name| file.strip_prefix(name).is_some_and(ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the runtimes of four compilers and of a Python wheel, and that other libraries of similar names are no runtimes.
    #[test]
    fn runtimes_are_known() {
        let runtimes = ["libgomp.so.1", "libgomp-a34b3233.so.1.0.0", "libomp.so", "libomp5.so", "libiomp5.so", "libnvomp.so"];
        assert!(runtimes.iter().all(|file| is_openmp_runtime(file)));
        assert!(!["libompitrace.so.40", "libopenblas.so", "gomp", "libomp", ""].iter().any(|file| is_openmp_runtime(file)));
    }
}
