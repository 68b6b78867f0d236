//! Decides the owner of a frame's code: the user, a library, or the language runtime.

use firsttouch_model::generated_code::is_generated;
use firsttouch_model::mpi::is_mpi_library;
use firsttouch_model::openmp::is_openmp_runtime;
use firsttouch_model::rows::Frame;

/// Ordered from the most to the least relevant to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    User,
    /// An installed library or an interpreter: shown if there is no user code.
    Library,
    /// The C, C++, Fortran, Rust or OpenMP runtime, an allocator, or this profiler.
    Runtime,
}

/// The module name of frames of interpreted Python code.
const PYTHON: &str = "python";

/// The index of the first frame (leaf first) of user code; the user's Python code takes precedence over native code. Without user code: the
/// first frame of an installed library or an interpreter, then the first with a function name.
#[must_use]
pub fn user_frame(frames: &[Frame]) -> Option<&Frame> {
    user_frame_index(frames).and_then(|index| frames.get(index))
}

pub(crate) fn user_frame_index(frames: &[Frame]) -> Option<usize> {
    let owners: Vec<Owner> = frames.iter().map(owner).collect();
    let first = |wanted: Owner, named: bool| {
        let fits = |(frame, owner): (&Frame, &Owner)| *owner == wanted && (!named || frame.function.is_some());
        frames.iter().zip(&owners).position(fits)
    };
    // Python's frames are the callers of all native ones, which mostly belong to the interpreter and extensions.
    let python = || frames.iter().zip(&owners).position(|(frame, owner)| is_python(frame) && *owner == Owner::User);
    let anything = || frames.iter().position(|frame| frame.function.is_some());
    python()
        .or_else(|| first(Owner::User, true))
        .or_else(|| first(Owner::User, false))
        .or_else(|| first(Owner::Library, true))
        .or_else(anything)
}

/// The owner of a frame: by the source file if it is known, else by the function's name, else by the module.
pub(crate) fn owner(frame: &Frame) -> Owner {
    let (file, function, module) = (text(&frame.file), text(&frame.function), text(&frame.module));
    if file.is_empty() && function.is_empty() && module.is_empty() {
        return Owner::Runtime;
    }
    if is_python(frame) {
        let is_library = is_python_library(file) || PYTHON_INTERFACE.iter().any(|module| file.ends_with(module));
        return if is_library { Owner::Library } else { Owner::User };
    }
    if !module.is_empty() && is_generated(module) {
        return generated_owner(function, file);
    }
    if is_runtime_module(module) || is_standard_source(file) || is_runtime_function(function, file) {
        return Owner::Runtime;
    }
    if is_library_module(module) || file.contains("/.cargo/registry/") { Owner::Library } else { Owner::User }
}

/// The owner of code that was generated while the program ran; without a name it is most likely the program's.
fn generated_owner(function: &str, file: &str) -> Owner {
    const RUNTIME: &[&str] = &["Builtin:", "BytecodeHandler:", "Stub:", "RegExp:", "StubRoutines", "I2C/C2I", "vtable stub", "itable stub"];
    const LIBRARIES: &[&str] = &["java.", "javax.", "jdk.", "sun."];
    if RUNTIME.iter().any(|start| function.starts_with(start)) || ["Interpreter", "call_stub", "flush_icache_stub"].contains(&function) {
        return Owner::Runtime;
    }
    let is_library = LIBRARIES.iter().any(|start| function.starts_with(start)) || function.contains(" (node:");
    if is_library || (!file.is_empty() && is_python_library(file)) { Owner::Library } else { Owner::User }
}

/// Numerical libraries that keep buffers for themselves, by a part of their file names.
const WITH_OWN_BUFFERS: &[&str] = &["openblas", "libmkl_", "libblis", "libatlas", "libflexiblas", "libfftw3", "libarmpl", "libnvpl"];

/// The file name of a numerical library that allocated memory for itself: for its buffers, not on behalf of its caller (`fftw_malloc`).
#[must_use]
pub fn library_buffer(frames: &[Frame]) -> Option<&str> {
    let own = |frame: &Frame| owner(frame) != Owner::Runtime;
    let first = frames.iter().position(own).unwrap_or(frames.len());
    if let Some(runtime) = frames.get(..first).and_then(openmp_buffer) {
        return Some(runtime);
    }
    if let Some(library) = frames.get(first..).and_then(mpi_buffer) {
        return Some(library);
    }
    let module = frames.get(first)?.module.as_deref()?;
    let name = base_name(module);
    let is_known = name.contains(".so") && WITH_OWN_BUFFERS.iter().any(|part| name.contains(part));
    // The function that was called from outside.
    let entry = frames.get(first..)?.iter().take_while(|frame| frame.module.as_deref() == Some(module)).last()?;
    // OpenBLAS maps its buffers when it is loaded, and when it computes; functions of these names return memory.
    let returns_memory = ["fftw", "mkl_", "MKL_", "armpl_"].iter().any(|start| text(&entry.function).starts_with(start))
        && text(&entry.function).to_lowercase().contains("alloc");
    (is_known && !returns_memory).then_some(name)
}

/// The OpenMP runtime that keeps memory for its teams and tasks, from the frames between the allocation and the user's code. Its functions that return
/// memory (`omp_alloc`), and those that make threads, which have stacks, do not count.
fn openmp_buffer(frames: &[Frame]) -> Option<&str> {
    const RETURNING: &[&str] = &["omp_", "kmp_", "__kmpc_", "GOMP_"];
    let is_runtime = |frame: &&Frame| is_openmp_runtime(base_name(text(&frame.module)));
    let first = frames.iter().position(|frame| is_runtime(&frame))?;
    let (inner, outer) = frames.split_at_checked(first)?;
    let entry = outer.iter().take_while(is_runtime).last()?;
    let name = text(&entry.function);
    let is_of_team = name.contains("task") || !["alloc", "threadprivate"].iter().any(|part| name.contains(part));
    let returns_memory = RETURNING.iter().any(|start| name.starts_with(start)) && !is_of_team;
    let makes_thread = inner.iter().any(|frame| text(&frame.function).contains("pthread_create"));
    (!returns_memory && !makes_thread).then(|| base_name(text(&entry.module)))
}

/// The MPI library that keeps memory for messages and its own work, from the frames up to the user's code. Memory that it returns
/// (`MPI_Alloc_mem`, `MPI_Win_allocate`) does not count.
fn mpi_buffer(frames: &[Frame]) -> Option<&str> {
    let is_mpi = |frame: &&Frame| is_mpi_library(text(&frame.module));
    let entry = frames.iter().take_while(is_mpi).last()?;
    let returns_memory = ["Alloc_mem", "Win_allocate", "alloc_mem", "win_allocate"].iter().any(|part| text(&entry.function).contains(part));
    (!returns_memory).then(|| base_name(text(&entry.module)))
}

pub(crate) fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

/// The file's name without directories.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_runtime_module(module: &str) -> bool {
    const LIBRARIES: &[&str] = &[
        "libc.",
        "libc-",
        "libm.",
        "libm-",
        "libmvec",
        "libpthread",
        "libdl.",
        "librt.",
        "ld-",
        "ld.so",
        "libstdc++",
        "libc++",
        "libgcc_s",
        "libunwind",
        "libgfortran",
        "libquadmath",
        "libflang",
        "libFortran",
        "libimf",
        "libintlc",
        "libsvml",
        "libirng",
        "libifcore",
        "libifport",
        "libnvc",
        "libnvf",
        "libjemalloc",
        "libtcmalloc",
        "libmimalloc",
        "libnuma",
        "libmemkind",
        "libhwloc",
        "libasan",
        "libtsan",
        "libubsan",
        "libfirsttouch",
        "libfirst_touch",
        "firsttouch",
        "libstd-",
    ];
    let name = base_name(module);
    module.starts_with('[') || is_openmp_runtime(name) || LIBRARIES.iter().any(|library| name.starts_with(library))
}

fn is_library_module(module: &str) -> bool {
    const INSTALLED: &[&str] = &["/usr/lib", "/lib/", "/lib64/", "/lib32/"];
    let name = base_name(module);
    // `/proc/PID/root` is the root of a container.
    let inside = module.strip_prefix("/proc/").and_then(|rest| rest.split_once("/root")).map_or(module, |(_, path)| path);
    INSTALLED.iter().any(|directory| inside.starts_with(directory))
        || ["/site-packages/", "/dist-packages/", "/numpy/"].iter().any(|part| module.contains(part))
        || name.starts_with("libpython")
        || is_interpreter(name)
        || is_generating_runtime(module)
}

/// Whether a file of native code is neither installed with the system, an interpreter or a package, nor a part of a language's runtime.
#[must_use]
pub fn is_own_module(module: &str) -> bool {
    let is_in_library_folder = || ["/lib/", "/lib64/"].iter().any(|folder| module.contains(folder));
    let is_installed =
        is_runtime_module(module) || is_library_module(module) || base_name(module).contains(".so") && is_in_library_folder();
    !is_installed
}

fn is_python(frame: &Frame) -> bool {
    frame.module.as_deref() == Some(PYTHON)
}

/// Installed packages, the standard library, and modules that are part of the interpreter.
#[must_use]
pub fn is_python_library(file: &str) -> bool {
    const PARTS: &[&str] = &["/site-packages/", "/dist-packages/", "/numpy/", "/lib/python3", "/lib64/python3"];
    let is_generated = || file.starts_with('<') && !TYPED.iter().any(|typed| file.starts_with(typed));
    file.is_empty() || is_generated() || PARTS.iter().any(|part| file.contains(part))
}

/// Runtimes that generate code: what the program does is in that code.
fn is_generating_runtime(module: &str) -> bool {
    ["/bin/node", "/bin/nodejs", "/bin/java", "/libnode.so", "/libjvm.so"].iter().any(|end| module.ends_with(end))
}

/// `python3`, `python3.11`, ...
fn is_interpreter(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// Headers and sources that come with compilers.
pub(crate) fn is_standard_source(file: &str) -> bool {
    const DIRECTORIES: &[&str] =
        &["/c++/", "/bits/", "/usr/lib/gcc/", "/usr/lib/llvm", "/rustc/", "/rust/deps/", "/lib/rustlib/src/", "/sysdeps/"];
    DIRECTORIES.iter().any(|directory| file.contains(directory)) || file.starts_with("library/")
}

/// Runtime code that is linked into the program, or code whose file is unknown. A user function with such a name is recognised by its
/// source file, except within the namespaces of the standard libraries.
/// libfirsttouch and its interfaces, compiled into the program: the line of interest is the one that calls them.
fn is_placing(function: &str, file: &str) -> bool {
    const FOLDERS: &[&str] = &["/native/library/", "/bindings/rust/native/", "/firsttouch-alloc-"];
    const INTERFACES: &[&str] = &["firsttouch.h", "firsttouch.hpp", "firsttouch.f90"];
    let is_of_c = (function.starts_with("ft_") || function.starts_with("ftl_")) && FOLDERS.iter().any(|folder| file.contains(folder));
    is_of_c
        || INTERFACES.contains(&base_name(file))
        || ["firsttouch_alloc::", "<firsttouch_alloc::"].iter().any(|prefix| function.starts_with(prefix))
}

/// What Python calls a program that has no file. Other names in brackets are those of code that libraries generate, such as
/// `<__array_function__ internals>` (NumPy).
const TYPED: &[&str] = &["<stdin>", "<string>", "<console>", "<input>", "<ipython-input", "<doctest"];

/// The modules of the Python package, also where it is not installed.
const PYTHON_INTERFACE: &[&str] =
    &["/firsttouch/__init__.py", "/firsttouch/_arrays.py", "/firsttouch/_library.py", "/firsttouch/_partition.py"];

fn is_runtime_function(function: &str, file: &str) -> bool {
    const NAMESPACES: &[&str] = &[
        "std::",
        "__gnu_cxx::",
        "__cxxabiv1::",
        "core::",
        "alloc::",
        "<core::",
        "<alloc::",
        "<std::",
        "operator new",
        "operator delete",
        "__rust_alloc",
        "__rustc",
    ];
    const PREFIXES: &[&str] =
        &["GOMP_", "gomp_", "__kmp", "_gfortran", "_gfortrani", "__libc_", "_dl_", "_IO_", "__memset", "__memcpy", "__memmove", "ftl_"];
    const NAMES: &[&str] = &[
        "malloc",
        "calloc",
        "realloc",
        "free",
        "memset",
        "memcpy",
        "memmove",
        "mmap",
        "mmap64",
        "mremap",
        "munmap",
        "posix_memalign",
        "aligned_alloc",
        "memalign",
        "_start",
        "start_thread",
        "clone",
        "clone3",
        "__clone",
        "__clone3",
        "_int_malloc",
        "_int_realloc",
        "sysmalloc",
        // libfirsttouch.a without debugging information.
        "ft_alloc",
        "ft_realloc",
    ];
    is_placing(function, file)
        || NAMESPACES.iter().any(|prefix| function.starts_with(prefix))
        || (file.is_empty() && (PREFIXES.iter().any(|prefix| function.starts_with(prefix)) || NAMES.contains(&function)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(module: &str, function: &str, file: &str) -> Frame {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Frame { module: some(module), function: some(function), file: some(file), ..Frame::default() }
    }

    /// Check that buffers of numerical libraries are told from memory that they return, and from memory of other libraries.
    #[test]
    fn buffers_of_libraries() {
        const BLAS: &str = "/env/site-packages/numpy.libs/libscipy_openblas64_-32a4b2a6.so";
        let user = || frame("python", "<module>", "/home/me/mm.py");
        let (libc, main) = (|| frame("/lib/libc.so.6", "malloc", ""), || frame("/home/me/x", "main", "/home/me/x.c"));
        let libomp = |function| frame("/usr/lib/llvm-14/lib/libomp.so.5", function, "");
        for (stack, library) in [
            (
                vec![frame("/lib/libc.so.6", "mmap", ""), frame(BLAS, "alloc_mmap", ""), frame(BLAS, "cblas_dgemm64_", ""), user()],
                Some("libscipy_openblas64_-32a4b2a6.so"),
            ),
            (vec![frame(BLAS, "alloc_mmap", "")], Some("libscipy_openblas64_-32a4b2a6.so")),
            (
                vec![frame("/usr/lib/libfftw3.so.3", "fftw_plan_dft_2d", ""), frame("/home/me/x", "main", "/home/me/x.c")],
                Some("libfftw3.so.3"),
            ),
            (vec![frame("/usr/lib/libfftw3.so.3", "fftw_malloc", ""), frame("/home/me/x", "main", "/home/me/x.c")], None),
            (vec![frame("/usr/lib/libmkl_core.so", "mkl_serv_allocate", ""), frame("/usr/lib/libmkl_core.so", "mkl_malloc", "")], None),
            (vec![frame("/env/numpy/core/_multiarray_umath.so", "npy_alloc", ""), user()], None),
            (vec![frame("/home/me/x", "main", "/home/me/openblas.c")], None),
            (vec![frame("/lib/libc.so.6", "mmap", "")], None),
            (vec![], None),
            // Memory of OpenMP's teams and tasks; not what a program asks for, and no thread's stack.
            (vec![libc(), libomp("___kmp_allocate"), libomp("__kmpc_fork_call"), main()], Some("libomp.so.5")),
            (vec![libc(), libomp("__kmpc_omp_task_alloc"), main()], Some("libomp.so.5")),
            (
                vec![libc(), frame("/lib/libgomp.so.1", "gomp_new_team", ""), frame("/lib/libgomp.so.1", "GOMP_parallel", ""), main()],
                Some("libgomp.so.1"),
            ),
            (vec![libc(), libomp("omp_alloc"), main()], None),
            (vec![libc(), libomp("___kmp_thread_malloc"), libomp("__kmpc_alloc"), main()], None),
            (vec![libc(), libomp("__kmpc_threadprivate_cached"), main()], None),
            (vec![libc(), frame("/lib/libc.so.6", "pthread_create@GLIBC_2.34", ""), libomp("__kmpc_fork_call"), main()], None),
            (vec![libc(), main(), libomp("__kmp_invoke_microtask")], None),
            // Memory of MPI: its buffers, what it returns, and what a program allocates that MPI calls.
            (
                vec![
                    frame("/lib/libc.so.6", "mmap", ""),
                    frame("/usr/lib/openmpi/lib/openmpi3/mca_pml_ob1.so", "mca_pml_ob1_add_procs", ""),
                    frame("/usr/lib/libmpi.so.40", "MPI_Init", ""),
                    main(),
                ],
                Some("libmpi.so.40"),
            ),
            (vec![frame("/lib/libc.so.6", "mmap", ""), frame("/usr/lib/libmpich.so.12", "PMPI_Win_allocate_shared", ""), main()], None),
            (vec![libc(), main(), frame("/usr/lib/libmpi.so.40", "MPI_Reduce", ""), main()], None),
            // A program in a directory that is named after a library.
            (vec![libc(), frame("/home/me/builds/openmpi/ocean", "main", "/home/me/ocean.c"), main()], None),
        ] {
            assert_eq!(library_buffer(&stack), library, "{stack:?}");
        }
    }

    #[test]
    fn owners_of_frames() {
        use Owner::{Library, Runtime, User};
        for (module, function, file, expected) in [
            ("/home/me/dgemv", "main", "/home/me/dgemv.c", User),
            ("/home/me/dgemv", "", "", User),
            ("/home/me/dgemv", "main._omp_fn.0", "", User),
            ("/home/me/dgemv", "memset", "/home/me/mymem.c", User),
            ("/home/me/dgemv", "ft_alloc", "/build/firsttouch/native/library/alloc.c", Runtime),
            ("/home/me/dgemv", "ftl_map_block", "/build/firsttouch/native/library/alloc.c", Runtime),
            ("/home/me/dgemv", "ftl_allocate", "", Runtime),
            ("/home/me/dgemv", "ftl_map", "/home/me/.cargo/registry/src/x/firsttouch-alloc-1.0.0/native/alloc.c", Runtime),
            ("/home/me/dgemv", "firsttouch::first_touch_allocator<double>::allocate", "/usr/local/include/firsttouch.hpp", Runtime),
            ("/home/me/dgemv", "__firsttouch_MOD_allocate_real64_1", "/usr/local/share/firsttouch/fortran/firsttouch.f90", Runtime),
            ("/home/me/dgemv", "firsttouch_alloc::FtVec<T>::zeroed", "/home/me/alloc/src/vec.rs", Runtime),
            ("python", "empty", "/home/me/firsttouch/_arrays.py", Library),
            ("python", "main", "/home/me/firsttouch/main.py", User),
            ("/home/me/dgemv", "ft_alloc", "", Runtime),
            ("/home/me/dgemv", "ft_alloc", "/home/me/fourier.c", User),
            ("/home/me/dgemv", "main", "/home/me/native/library/main.c", User),
            ("/home/me/dgemv", "__memset_avx2_unaligned_erms", "", Runtime),
            ("/home/me/dgemv", "std::vector<double>::resize", "", Runtime),
            ("/home/me/dgemv", "vector", "/usr/include/c++/12/bits/stl_vector.h", Runtime),
            ("/home/me/dgemv", "demo::work", "/home/me/std::odd.rs", User),
            ("/home/me/dgemv", "fill", "/rustc/5980/library/core/src/slice/mod.rs", Runtime),
            ("/home/me/dgemv", "<alloc::vec::Vec<T> as x>::from_elem", "", Runtime),
            ("/home/me/dgemv", "ndarray::zeros", "/root/.cargo/registry/src/index/ndarray/lib.rs", Library),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", "", "", Runtime),
            ("/lib64/ld-linux-x86-64.so.2", "x", "", Runtime),
            ("/proc/12/root/usr/lib/libsomething.so", "x", "", Library),
            ("/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0", "x", "", Runtime),
            ("/usr/lib/x86_64-linux-gnu/libgfortran.so.5", "x", "", Runtime),
            ("/usr/lib/x86_64-linux-gnu/libopenblas.so.0", "dgemm", "", Library),
            ("/home/me/env/lib/python3.11/site-packages/numpy/core/_multiarray_umath.so", "x", "", Library),
            ("/usr/bin/python3.11", "x", "", Library),
            ("/home/me/python_like", "x", "", User),
            ("/opt/x/libfirsttouch_agent.so", "malloc", "/x/hooks.c", Runtime),
            ("[vdso]", "x", "", Runtime),
            ("", "", "", Runtime),
            ("", "", "/home/me/static.c", User),
            ("python", "main", "/home/me/model.py", User),
            ("python", "<module>", "<stdin>", User),
            ("python", "std::odd", "/home/me/lib/model.py", User),
            ("python", "ones", "/home/me/env/lib/python3.11/site-packages/numpy/core/numeric.py", Library),
            ("python", "run", "/usr/lib/python3.11/threading.py", Library),
            ("python", "x", "/usr/lib/python3/dist-packages/pkg/x.py", Library),
            ("python", "zeros", "/home/me/numpy/core/numeric.py", Library),
            ("python", "_find_and_load", "<frozen importlib._bootstrap>", Library),
            ("python", "public_api", "<__array_function__ internals>", Library),
            ("python", "<module>", "<string>", User),
            ("python", "fill", "<ipython-input-3-0a1b2c>", User),
            ("python", "x", "", Library),
            ("[generated code]", "", "", User),
            ("//anon", "", "", User),
            ("[generated code]", "fill (fill.js:1)", "", User),
            ("[generated code]", "Fill.fill", "", User),
            ("[generated code]", "java.lang.String.hashCode", "", Library),
            ("[generated code]", "setup (node:internal/process/pre_execution:165)", "", Library),
            ("[generated code]", "x", "/home/me/env/lib/python3.11/site-packages/numba/x.py", Library),
            ("[generated code]", "Builtin:FulfillPromise", "", Runtime),
            ("[generated code]", "Interpreter", "", Runtime),
            ("/opt/node/bin/node", "v8::base::OS::Allocate", "", Library),
            ("/opt/jdk/lib/server/libjvm.so", "os::reserve_memory", "", Library),
            ("/home/me/node", "main", "", User),
        ] {
            assert_eq!(owner(&frame(module, function, file)), expected, "{module} {function} {file}");
        }
    }

    #[test]
    fn the_users_frame_comes_first() {
        let libc = frame("/lib/libc.so.6", "memset", "");
        let numpy = frame("/usr/lib/python3/dist-packages/numpy/x.so", "fill", "");
        let unnamed_numpy = frame("/usr/lib/python3/dist-packages/numpy/x.so", "", "");
        let unnamed = frame("/home/me/libodd.so", "", "");
        let main = frame("/home/me/a", "main", "a.c");
        let pick = |frames: &[&Frame]| {
            let frames: Vec<Frame> = frames.iter().copied().cloned().collect();
            user_frame(&frames).cloned()
        };
        assert_eq!(pick(&[&libc, &numpy, &unnamed, &main]), Some(main.clone()));
        assert_eq!(pick(&[&libc, &numpy, &unnamed]), Some(unnamed.clone()));
        assert_eq!(pick(&[&libc, &unnamed_numpy, &numpy]), Some(numpy.clone()));
        assert_eq!(pick(&[&frame("/lib/libc.so.6", "", ""), &libc]), Some(libc.clone()));
        // Python: its frames follow the native ones, and take precedence over extensions in unusual folders.
        let numeric = frame("python", "ones", "/usr/lib/python3/dist-packages/numpy/core/numeric.py");
        let script = frame("python", "build", "/home/me/model.py");
        let module = frame("python", "<module>", "/home/me/model.py");
        let interpreter = frame("/opt/py/bin/python3.11", "_PyEval_EvalFrameDefault", "");
        assert_eq!(pick(&[&libc, &numpy, &interpreter, &numeric, &script, &module]), Some(script.clone()));
        assert_eq!(pick(&[&libc, &unnamed, &interpreter, &script, &module]), Some(script));
        assert_eq!(pick(&[&libc, &unnamed_numpy, &interpreter, &numeric]), Some(interpreter));
        assert_eq!(pick(&[&Frame::default()]), None);
        assert_eq!(pick(&[]), None);
    }
}
