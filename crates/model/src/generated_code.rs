//! Code that a program generates while it runs (Java, Node, numba): it is in no file, so it has no symbols that could be stripped.

/// The module of frames in generated code.
pub const MODULE: &str = "[generated code]";

/// What reports show for generated code that no perf map names.
pub const UNNAMED: &str = "generated code (no perf map)";

/// Whether a module, as the kernel or a profile names it, holds generated code: executable memory without a file of code behind it.
#[must_use]
pub fn is_generated(module: &str) -> bool {
    const MEMORY: &[&str] = &["//anon", "[anon", "[heap]", "[stack]", "/memfd:", "/dev/zero", "/SYSV", "anon_inode:", MODULE];
    module.is_empty() || MEMORY.iter().any(|start| module.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_holds_generated_code() {
        for module in ["", "//anon", "[anon:v8]", "/memfd:doublemapper (deleted)", "/dev/zero (deleted)", "/SYSV0000 (deleted)", MODULE] {
            assert!(is_generated(module), "{module}");
        }
        for module in ["[vdso]", "[vsyscall]", "/usr/bin/node", "/tmp/jit-7.dump", "python", "/usr/lib/libc.so.6"] {
            assert!(!is_generated(module), "{module}");
        }
    }
}
