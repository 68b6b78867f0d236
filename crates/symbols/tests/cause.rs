//! Stacks as in profiles, and the construct that touched the memory.

use firsttouch_model::TouchCause;
use firsttouch_model::rows::Frame;
use firsttouch_symbols::touch_cause;

const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
const EXE: &str = "/home/me/demo";
const NUMPY: &str = "/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.so";
const HEADER: &str = "/usr/include/c++/12/bits/stl_vector.h";

/// Stack, allocating call, line, cause.
type Case<'a> = (&'a [&'a str], Option<&'a str>, Option<&'a str>, TouchCause);

/// `module|function|file`; empty parts are unknown.
fn frame(text: &str) -> Frame {
    let mut parts = text.split('|').map(|part| (!part.is_empty()).then(|| part.to_owned()));
    let mut next = || parts.next().flatten();
    Frame { module: next(), function: next(), file: next(), ..Frame::default() }
}

#[test]
fn causes_of_touches() {
    use TouchCause::{Calloc, FortranAssignment, Io, Loop, MakeUnique, Memcpy, Memset, Numpy, Realloc, StdFill, StdVector, Unknown};
    let main = format!("{EXE}|main|/home/me/demo.c");
    let cpp = format!("{EXE}|main|/home/me/demo.cpp");
    let fortran = format!("{EXE}|prog|/home/me/demo.f90");
    let memset = format!("{LIBC}|__memset_avx512_unaligned_erms|");
    let memmove = format!("{LIBC}|__memmove_avx_unaligned_erms|");
    let unnamed = format!("{LIBC}||");
    let vector = |function: &str| format!("{EXE}|{function}|{HEADER}");
    let calloc = format!("{LIBC}|calloc|");
    let realloc = format!("{LIBC}|__libc_realloc|");
    let fread = format!("{LIBC}|fread|");
    let fill = vector("std::vector<double, std::allocator<double> >::_M_default_append");
    let construct = vector("std::vector<double, std::allocator<double> >::vector");
    let index = vector("std::vector<double, std::allocator<double> >::operator[]");
    let unqualified = format!("{EXE}|__uninit_default_n<double*, long unsigned int>|/usr/include/c++/12/bits/stl_uninitialized.h");
    let shared_construct = format!("{EXE}|std::_Construct<Tile>|/usr/include/c++/12/bits/stl_construct.h");
    let make_shared = format!("{EXE}|std::make_shared<Tile>|/usr/include/c++/12/bits/shared_ptr.h");
    let valarray = format!("{EXE}|std::__valarray_fill_construct<double>|/usr/include/c++/12/bits/valarray_array.h");
    let list_construct = format!("{EXE}|std::construct_at<Chunk>|/usr/include/c++/12/bits/stl_construct.h");
    let list = format!("{EXE}|std::__cxx11::list<Chunk>::emplace_back<>|/usr/include/c++/12/bits/stl_list.h");
    let numpy = format!("{NUMPY}|DOUBLE_fill|");
    let static_memset = format!("{EXE}|__memset_sse2|");
    let rust_fill = format!("{EXE}|fill|/rustc/5980/library/core/src/slice/mod.rs");
    let interpreter = "/usr/bin/python3.11|x|".to_owned();
    let python = "python|<module>|/home/me/model.py".to_owned();
    let stripped = format!("{EXE}||");
    let own_read = format!("{EXE}|read|/home/me/demo.c");
    let table: &[Case] = &[
        (&[&main], Some("malloc"), Some("    a[i] = i;"), Loop),
        (&[&main], Some("malloc"), None, Loop),
        (&[&stripped], None, None, Loop),
        (&[&main], None, Some("memset(a, 0, n);"), Memset),
        (&[&memset, &main], None, Some("memset(a, 0, n);"), Memset),
        (&[&memset, &main], None, None, Memset),
        (&[&static_memset, &main], None, None, Memset),
        (&[&memset, &main], None, Some("for (i = 0; i < n; i++)"), Loop),
        (&[&memset, &main], None, Some("    a[i][j] = 0;"), Loop),
        (&[&memset, &main], None, Some("    a[i] += 0; // memset"), Loop),
        (&[&memset, &main], None, Some("*p++ = 0;"), Loop),
        (&[&memset, &main], None, Some("*a = (struct grid){0};"), Memset),
        (&[&memmove, &main], None, Some("memcpy(a, b, n);"), Memcpy),
        (&[&memmove, &main], None, None, Memcpy),
        (&[&memmove, &main], None, Some("for (i = 0; i < n; i++) a[i] = b[i];"), Loop),
        (&[&unnamed, &main], None, Some("memset(a, 0, n);"), Memset),
        (&[&unnamed, &main], None, Some("memmove(a, b, n);"), Memcpy),
        (&[&unnamed, &main], None, Some("a = calloc(n, 8);"), Calloc),
        (&[&unnamed, &main], None, Some("a[i] = 0;"), Loop),
        (&[&unnamed, &main], None, None, Unknown),
        (&[&memset, &calloc, &main], Some("calloc"), Some("a = calloc(n, 8);"), Calloc),
        (&[&unnamed, &calloc, &main], Some("calloc"), None, Calloc),
        (&[&memmove, &realloc, &main], Some("realloc"), None, Realloc),
        (&[&unnamed, &main], Some("realloc"), Some("a = realloc(a, n);"), Realloc),
        (&[&fread, &main], None, None, Io),
        (&[&memmove, &fread, &main], None, Some("fread(a, 8, n, f);"), Io),
        (&[&unnamed, &main], None, Some("got = pread(fd, a, n, 0);"), Io),
        (&[&own_read, &main], None, Some("a[i] = 0;"), Loop),
        (&[&memset, &fill, &cpp], None, Some("std::vector<double> a(n);"), StdVector),
        (&[&construct, &cpp], None, None, StdVector),
        (&[&unqualified, &cpp], None, Some("a.resize(n);"), StdVector),
        (&[&index, &cpp], None, Some("a[i] = 1.0;"), Loop),
        (&[&index, &cpp], None, None, Loop),
        (&[&vector("std::fill<double*, double>"), &cpp], None, None, StdFill),
        (
            &[&unnamed, &vector("_ZSt9__fill_a1IPddE"), &vector("std::fill<double*, double>"), &cpp],
            None,
            Some("std::fill(a, b, T(0));"),
            StdFill,
        ),
        (&[&vector("std::__fill_a<double*, double>"), &vector("std::fill_n<double*>"), &unqualified, &cpp], None, None, StdVector),
        (&[&memset, &cpp], None, Some("std::fill(data_, data_ + n, 0);"), StdFill),
        (&[&unnamed, &vector("std::make_unique<double []>"), &cpp], None, Some("auto v = std::make_unique<double[]>(n * n);"), MakeUnique),
        (&[&memset, &cpp], None, Some("auto v = std::make_unique<double[]>(n * n);"), MakeUnique),
        (&[&memset, &fill, &vector("std::make_unique<std::vector<double> >"), &cpp], None, None, StdVector),
        (&[&shared_construct, &make_shared, &cpp], None, Some("auto t = std::make_shared<Tile>();"), MakeUnique),
        (&[&valarray, &cpp], None, Some("std::valarray<double> w(0.25, n);"), Loop),
        (&[&list_construct, &list, &cpp], None, Some("chunks.emplace_back();"), Loop),
        (&[&memmove, &vector("std::__copy_move<true>::__copy_m"), &cpp], None, None, Memcpy),
        (&[&memset, &cpp], None, Some("std::vector<double> a(n);"), StdVector),
        (&[&fortran], None, Some("  a = 0"), FortranAssignment),
        (&[&fortran], None, Some("  a(:,:) = x"), FortranAssignment),
        (&[&fortran], None, Some("  a(1:n, 2) = b(i) ! a(i) = 1"), FortranAssignment),
        (&[&fortran], None, Some("  x%field = 0.0d0"), FortranAssignment),
        (&[&fortran], None, Some("  if (n == 1) a = 0"), FortranAssignment),
        (&[&fortran], None, Some("  where (b > 0) a = b"), FortranAssignment),
        (&[&memset, &fortran], None, Some("  a = 0"), FortranAssignment),
        (&[&memset, &fortran], None, None, FortranAssignment),
        (&[&memset, &fortran], None, Some("    a(i) = 0"), Loop),
        (&[&fortran], None, Some("    a(i, j) = b(:)"), Loop),
        (&[&fortran], None, Some("    if (b(i) >= 0) a(i) = 1"), Loop),
        (&[&fortran], None, Some("    a(i)%y = 1"), Loop),
        (&[&fortran], None, Some("  a(i)%x=acc; a(i)%y=1; a(i)%k=i"), Loop),
        (&[&fortran], None, Some("    grid%cell(i, j)%rho = 1"), Loop),
        (&[&fortran], None, Some("    a(:)%y = 1"), FortranAssignment),
        (&[&fortran], None, Some("    a(:)%y(3) = 1"), FortranAssignment),
        (&[&memset, &fortran], None, Some("    block(i)%field = 0"), FortranAssignment),
        (&[&fortran], None, Some("  do i = 1, n"), Loop),
        (&[&fortran], None, Some("  allocate (t(n, n), source=start) ! filled"), FortranAssignment),
        (&[&fortran], Some("malloc"), Some("  if (x) ALLOCATE(a, stat = i, Source = b)"), FortranAssignment),
        (&[&fortran], None, Some("  allocate (t(n, n))"), Loop),
        (&[&fortran], None, Some("  deallocate (t, source=1)"), Loop),
        (&[&fortran], None, None, Loop),
        (&[&numpy, &interpreter, &python], Some("malloc"), Some("a = np.ones(n)"), Numpy),
        (&[&memset, &numpy, &interpreter, &python], None, Some("for a in b: a[:] = 0"), Numpy),
        (&[&fread, &numpy, &interpreter, &python], None, Some("a = np.fromfile(f)"), Io),
        (&[&numpy, "/usr/bin/python3.11|x|"], None, None, Numpy),
        (&[&memset, &numpy, "/usr/bin/python3.11|x|"], None, None, Numpy),
        (&[&rust_fill, &main], None, None, Loop),
        (&["|||"], None, None, Unknown),
        (&[], None, Some("a[i] = 0"), Unknown),
        (&[&main], None, Some("é]=]=[[((=)💥"), Loop),
        (&[&fortran], None, Some("((((é=)))=;="), Loop),
    ];
    let mut wrong = Vec::new();
    for (stack, call, line, expected) in table {
        let frames: Vec<Frame> = stack.iter().map(|text| frame(text)).collect();
        let found = touch_cause(&frames, *call, *line);
        if found != *expected {
            wrong.push(format!("{stack:?} {line:?}: found {}, expected {}", found.as_str(), expected.as_str()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
