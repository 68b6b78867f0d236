//! The libraries of MPI.

/// How the files begin that an MPI library consists of, and those that carry its messages.
const LIBRARIES: [&str; 10] =
    ["libmpi", "libopen-pal", "libopen-rte", "libpmix", "libprrte", "mca_", "libucp", "libucs", "libuct", "libfabric"];

/// Whether a file belongs to an MPI library: `/lib/libmpi.so.40`, `/usr/lib/openmpi/mca_btl_vader.so`, `libfabric.so.1`.
#[must_use]
pub fn is_mpi_library(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    // A program may lie in a directory of that name, too.
    let is_plugin = file.contains(".so") && (path.contains("/openmpi/") || path.contains("/pmix"));
    is_plugin || LIBRARIES.iter().any(|name| file.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the files of Open MPI, MPICH and the libraries below them count as MPI, and that programs and other libraries do not.
    #[test]
    fn libraries_are_known() {
        let libraries = [
            "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.6",
            "/usr/lib/x86_64-linux-gnu/libmpich.so.12",
            "/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3/mca_btl_vader.so",
            "/usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so.2",
            "libopen-pal.so.40",
            "libucp.so.0",
            "libfabric.so.1",
        ];
        assert!(libraries.iter().all(|path| is_mpi_library(path)));
        assert!(!["/home/u/openmpi/solver", "/lib/libm.so.6", "/opt/lib/libgomp.so.1", ""].iter().any(|path| is_mpi_library(path)));
    }
}
