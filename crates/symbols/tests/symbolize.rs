//! Output of real compilers: functions, lines and inlined calls match the source.

use crate::common::{C, Workshop, line_of, offsets_of, stacks};
use firsttouch_symbols::{Line, LineSearch, Resolved, Symbolizer};
use std::path::Path;

fn assert_c_stacks(symbolizer: &mut Symbolizer, module: &Path, unstripped: &Path, what: &str) {
    let work = stacks(symbolizer, module, offsets_of(unstripped, "work"));
    let inlined = format!("fill:{} < work:{}", line_of(C, "FILL"), line_of(C, "CALL"));
    assert!(work.contains(&inlined), "{what}: {inlined} not in {work:?}");
    let main = stacks(symbolizer, module, offsets_of(unstripped, "main"));
    let plain = format!("main:{}", line_of(C, "MAIN"));
    assert!(main.contains(&plain), "{what}: {plain} not in {main:?}");
    assert!(symbolizer.has_line_info(module), "{what}");
    assert!(!symbolizer.is_stripped(module), "{what}");
}

#[test]
fn c_lines_and_inlined_functions() {
    let shop = Workshop::new();
    let variants: &[(&str, &[&str])] = &[
        ("gcc", &["-O2", "-g"]),
        ("gcc", &["-O2", "-g", "-gdwarf-4"]),
        ("gcc", &["-O2", "-g1"]),
        ("gcc", &["-O3", "-g", "-flto"]),
        ("gcc", &["-O2", "-g", "-gz=zlib"]),
        ("gcc", &["-O2", "-g", "-gz=zlib-gnu"]),
        ("gcc", &["-O2", "-g", "-no-pie", "-static"]),
        ("clang", &["-O2", "-g"]),
        ("clang", &["-O2", "-g", "-gdwarf-4"]),
        ("clang", &["-O2", "-gline-tables-only"]),
    ];
    for (compiler, flags) in variants {
        let what = format!("{compiler} {flags:?}");
        let Some(binary) = shop.build(compiler, flags, "demo.c", C, "demo") else { continue };
        let mut symbolizer = Symbolizer::new();
        assert_c_stacks(&mut symbolizer, &binary, &binary, &what);
        let file = symbolizer.resolve(&binary, offsets_of(&binary, "work").start)[0].file.clone().unwrap();
        assert!(file.ends_with("demo.c") && file.is_absolute(), "{what}: {file:?}");
    }
}

#[test]
fn zstd_compressed_sections() {
    let shop = Workshop::new();
    let Some(binary) = shop.build("gcc", &["-O2", "-g"], "demo.c", C, "demo") else { return };
    if shop.run("objcopy", &["--compress-debug-sections=zstd", "demo", "demo.zstd"]) {
        assert_c_stacks(&mut Symbolizer::new(), &shop.path("demo.zstd"), &binary, "zstd");
    }
}

#[test]
fn without_debug_information_functions_have_names() {
    let shop = Workshop::new();
    for compiler in ["gcc", "clang"] {
        let Some(binary) = shop.build(compiler, &["-O2"], "demo.c", C, "demo") else { continue };
        let mut symbolizer = Symbolizer::new();
        let work = stacks(&mut symbolizer, &binary, offsets_of(&binary, "work"));
        assert_eq!(work.into_iter().collect::<Vec<_>>(), ["work"]);
        assert!(!symbolizer.has_line_info(&binary) && !symbolizer.is_stripped(&binary));
    }
}

#[test]
fn stripped_files_have_exported_names_at_most() {
    let shop = Workshop::new();
    let Some(binary) = shop.build("gcc", &["-O2", "-g"], "demo.c", C, "demo") else { return };
    let Some(library) = shop.build("gcc", &["-O2", "-g", "-shared", "-fPIC"], "demo.c", C, "libdemo.so") else { return };
    if !shop.run("strip", &["-o", "bare", "demo"]) || !shop.run("strip", &["-o", "bare.so", "libdemo.so"]) {
        return;
    }
    let mut symbolizer = Symbolizer::new();
    let bare = shop.path("bare");
    assert!(symbolizer.resolve(&bare, offsets_of(&binary, "work").start).is_empty());
    assert!(symbolizer.is_stripped(&bare) && !symbolizer.has_line_info(&bare));
    let exported = stacks(&mut symbolizer, &shop.path("bare.so"), offsets_of(&library, "work"));
    assert_eq!(exported.into_iter().collect::<Vec<_>>(), ["work"]);
    assert!(symbolizer.is_stripped(&shop.path("bare.so")));
}

#[test]
fn separate_debug_files() {
    let shop = Workshop::new();
    let Some(binary) = shop.build("gcc", &["-O2", "-g", "-Wl,--build-id=0x0123456789abcdef"], "demo.c", C, "demo") else { return };
    let split = shop.run("objcopy", &["--only-keep-debug", "demo", "demo.debug"])
        && shop.run("objcopy", &["--strip-all", "--add-gnu-debuglink=demo.debug", "demo", "linked"])
        && shop.run("objcopy", &["--strip-all", "demo", "unlinked"]);
    if !split {
        return;
    }
    let (linked, unlinked, debug) = (shop.path("linked"), shop.path("unlinked"), shop.path("demo.debug"));
    assert_c_stacks(&mut Symbolizer::new(), &linked, &binary, "beside the file");

    std::fs::create_dir(shop.path(".debug")).unwrap();
    std::fs::rename(&debug, shop.path(".debug/demo.debug")).unwrap();
    assert_c_stacks(&mut Symbolizer::new(), &linked, &binary, "in .debug");

    let by_id = shop.path("root/.build-id/01/23456789abcdef.debug");
    std::fs::create_dir_all(by_id.parent().unwrap()).unwrap();
    std::fs::rename(shop.path(".debug/demo.debug"), &by_id).unwrap();
    let with_root = || Symbolizer::with_debug_roots(vec![shop.path("root")]);
    assert_c_stacks(&mut with_root(), &linked, &binary, "by build id");
    assert_c_stacks(&mut with_root(), &unlinked, &binary, "by build id, no link");
    assert!(Symbolizer::new().resolve(&unlinked, 0x1000).is_empty());

    // A debug file of another build is ignored.
    assert!(shop.build("gcc", &["-O1", "-g", "-Wl,--build-id=0xfedcba9876543210"], "demo.c", C, "other").is_some());
    assert!(shop.run("objcopy", &["--only-keep-debug", "other", by_id.to_str().unwrap()]));
    assert!(!with_root().has_line_info(&linked));
}

#[test]
fn separate_debug_files_without_build_id_are_checked_by_crc() {
    let shop = Workshop::new();
    let Some(binary) = shop.build("gcc", &["-O2", "-g", "-Wl,--build-id=none"], "demo.c", C, "demo") else { return };
    let split = shop.run("objcopy", &["--only-keep-debug", "demo", "demo.debug"])
        && shop.run("objcopy", &["--strip-all", "--add-gnu-debuglink=demo.debug", "demo", "linked"]);
    if split {
        assert_c_stacks(&mut Symbolizer::new(), &shop.path("linked"), &binary, "crc");
        assert!(shop.run("objcopy", &["--add-section", ".extra=demo.c", "demo.debug"]));
        assert!(!Symbolizer::new().has_line_info(&shop.path("linked")));
    }
}

const CPP: &str = r#"#include <vector>
#include <cstdio>
namespace grid {
template <typename T> __attribute__((noinline)) void touch(std::vector<T> &v, T x)
{
    for (auto &e : v)
        e += x; /*TOUCH*/
}
struct Field {
    std::vector<double> data_;
    __attribute__((noinline)) explicit Field(int n) : data_(n) {} /*MEMBER*/
};
}
int main(int argc, char **)
{
    grid::Field f(1000 * argc);
    grid::touch(f.data_, 1.0);
#pragma omp parallel for
    for (int i = 0; i < 1000; i++)
        f.data_[i] = i; /*PARALLEL*/
    std::printf("%f\n", f.data_[argc]);
}
"#;

#[test]
fn cpp_names_are_demangled() {
    let shop = Workshop::new();
    for (compiler, openmp) in [("g++", "-fopenmp"), ("clang++", "-g")] {
        let Some(binary) = shop.build(compiler, &["-O2", "-g", openmp], "demo.cpp", CPP, "demo") else { continue };
        let mut symbolizer = Symbolizer::new();
        let touch = stacks(&mut symbolizer, &binary, offsets_of(&binary, "touch"));
        let expected = format!("grid::touch<double>:{}", line_of(CPP, "TOUCH"));
        assert!(touch.contains(&expected), "{compiler}: {touch:?}");
        let member = stacks(&mut symbolizer, &binary, offsets_of(&binary, "FieldC"));
        let call = format!("grid::Field::Field:{}", line_of(CPP, "MEMBER"));
        assert!(member.iter().any(|stack| stack.ends_with(&call) && stack.contains("std::vector<double")), "{compiler}: {member:?}");
        if openmp == "-fopenmp" {
            let region = stacks(&mut symbolizer, &binary, offsets_of(&binary, "_omp_fn"));
            let line = format!("main._omp_fn.0:{}", line_of(CPP, "PARALLEL"));
            assert!(region.iter().any(|stack| stack.ends_with(&line)), "{region:?}");
        }
        if let Some(plain) = shop.build(compiler, &["-O2"], "demo.cpp", CPP, "plain") {
            let touch = stacks(&mut symbolizer, &plain, offsets_of(&plain, "touch"));
            assert_eq!(touch.into_iter().collect::<Vec<_>>(), ["grid::touch<double>"]);
        }
    }
}

const FORTRAN: &str = r#"module grid_mod
  implicit none
  real(8) :: field(50000)
contains
  subroutine fill(n)
    integer, intent(in) :: n
    integer :: i
    do i = 1, n
      field(i) = i * 2.0d0 !FILL
    end do
  end subroutine
end module
subroutine external_one(a, n)
  integer :: n, i
  real(8) :: a(n)
  !$omp parallel do
  do i = 1, n
    a(i) = a(i) + 1 !PARALLEL
  end do
end subroutine
program prog
  use grid_mod
  call fill(50000)
  call external_one(field, 50000)
  print *, field(7) !MAIN
end program
"#;

#[test]
fn fortran_names_are_the_sources() {
    let shop = Workshop::new();
    let flags = ["-O2", "-g", "-fopenmp", "-fno-inline"];
    let Some(binary) = shop.build("gfortran", &flags, "demo.f90", FORTRAN, "demo") else { return };
    let mut symbolizer = Symbolizer::new();
    for (symbol, marker, function) in [
        ("__grid_mod_MOD_fill", "!FILL", "grid_mod::fill"),
        ("external_one_._omp_fn.0", "!PARALLEL", "external_one._omp_fn.0"),
        ("MAIN__", "!MAIN", "prog"),
    ] {
        let found = stacks(&mut symbolizer, &binary, offsets_of(&binary, symbol));
        let expected = format!("{function}:{}", line_of(FORTRAN, marker));
        assert!(found.contains(&expected), "{expected} not in {found:?}");
    }
    let Some(plain) = shop.build("gfortran", &["-O2", "-fno-inline"], "demo.f90", FORTRAN, "plain") else { return };
    for (symbol, function) in [("__grid_mod_MOD_fill", "grid_mod::fill"), ("MAIN__", "MAIN__")] {
        let found = stacks(&mut symbolizer, &plain, offsets_of(&plain, symbol));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [function]);
    }
}

const RUST: &str = r#"#[inline(always)]
fn fill(a: &mut [f64], x: f64) {
    for (i, e) in a.iter_mut().enumerate() {
        *e = i as f64 * x; // FILL
    }
}
#[inline(never)]
fn work(n: usize) -> Vec<f64> {
    let mut a = vec![1.0; n];
    fill(&mut a, n as f64); // CALL
    a
}
fn main() {
    println!("{}", work(std::env::args().count() * 1000)[3]);
}
"#;

#[test]
fn rust_names_are_demangled() {
    let shop = Workshop::new();
    for flags in [&["-O", "-g"][..], &["-O", "-g", "-Csymbol-mangling-version=v0"]] {
        let Some(binary) = shop.build("rustc", flags, "demo.rs", RUST, "demo") else { continue };
        let mut symbolizer = Symbolizer::new();
        let work = stacks(&mut symbolizer, &binary, offsets_of(&binary, "4work"));
        let expected = format!("demo::fill:{} < demo::work:{}", line_of(RUST, "FILL"), line_of(RUST, "CALL"));
        assert!(work.contains(&expected), "{expected} not in {work:?}");
    }
    // The standard library's own DWARF does not help the user.
    let Some(plain) = shop.build("rustc", &["-O"], "demo.rs", RUST, "plain") else { return };
    let mut symbolizer = Symbolizer::new();
    assert!(!symbolizer.has_line_info(&plain));
    let work = stacks(&mut symbolizer, &plain, offsets_of(&plain, "4work"));
    assert_eq!(work.into_iter().collect::<Vec<_>>(), ["demo::work"]);
}

#[test]
fn what_cannot_be_read_is_unknown() {
    let shop = Workshop::new();
    let mut symbolizer = Symbolizer::new();
    std::fs::write(shop.path("text"), "no ELF").unwrap();
    std::fs::write(shop.path("empty"), "").unwrap();
    assert!(shop.run("mkfifo", &["fifo"]));
    for name in ["missing", "text", "empty", "fifo", "."] {
        let path = shop.path(name);
        assert!(symbolizer.resolve(&path, 0).is_empty(), "{name}");
        assert!(!symbolizer.has_line_info(&path) && !symbolizer.is_stripped(&path), "{name}");
    }
    for name in ["[vdso]", "//anon", "/dev/zero (deleted)", ""] {
        assert!(symbolizer.resolve(Path::new(name), 0).is_empty(), "{name}");
    }
}

#[test]
fn a_module_is_read_once() {
    let shop = Workshop::new();
    let Some(binary) = shop.build("gcc", &["-O2", "-g"], "demo.c", C, "demo") else { return };
    let mut symbolizer = Symbolizer::new();
    let offsets = offsets_of(&binary, "work");
    let before = symbolizer.resolve(&binary, offsets.start);
    std::fs::remove_file(&binary).unwrap();
    assert_eq!(symbolizer.resolve(&binary, offsets.start), before);
    assert!(!symbolizer.resolve(&binary, offsets.end - 1).is_empty(), "units that were not read before can still be read");
    assert!(symbolizer.resolve(&binary, u64::MAX).is_empty());
}

const CLEARS: &str = "#include <string.h>
void clear(double *a, unsigned long n) {
    n *= 8;
    memset(a, 0, n); // jump
}
void either(double *a, double *b, unsigned long n) {
    if (n & 1)
        memset(a, 0, n);
    else
        memmove(a, b, n);
}
";

/// Check that a function that ends with a jump to memset is found from the call of it, with the line of the jump, in the same file and in another
/// one; and that no other function is named for it.
#[test]
fn functions_that_jump() {
    let workshop = Workshop::new();
    std::fs::write(workshop.path("clears.c"), CLEARS).unwrap();
    let main = "int main(int n, char **words) { static double a[999]; clear(a, n); either(a, a + 99, n); return a[7] != 0; }";
    let declared = format!("void clear(double *, unsigned long); void either(double *, double *, unsigned long);\n{main}");
    let included = format!("#include \"clears.c\"\n{main}");
    for (source, files) in [
        (declared, &["-O2", "-g", "-fno-inline", "-fno-ipa-cp", "clears.c"][..]),
        (included, &["-O2", "-g", "-fno-inline", "-fno-ipa-cp"][..]),
    ] {
        let Some(module) = workshop.build("gcc", files, "main.c", &source, "program") else { return };
        let mut symbolizer = Symbolizer::new();
        let mut above_main = |inner: &str| -> Vec<(String, Option<u32>)> {
            let found: Vec<Resolved> = offsets_of(&module, "main").flat_map(|offset| symbolizer.jumped(&module, offset, inner)).collect();
            assert!(found.iter().all(|frame| frame.inlined));
            found.into_iter().map(|frame| (frame.function.unwrap_or_default(), frame.line)).collect()
        };
        let memset = above_main("__memset_avx2_unaligned_erms");
        assert_eq!(memset, [("clear".to_owned(), Some(line_of(CLEARS, "// jump"))), ("either".to_owned(), Some(8))], "{source}");
        assert_eq!(above_main("__memmove_evex"), [("either".to_owned(), Some(10))]);
        assert_eq!(above_main("malloc"), []);
        // The C library has no name for the code: of a function with two jumps, the line at its beginning.
        let unnamed = above_main("");
        assert_eq!(unnamed[0], ("clear".to_owned(), Some(line_of(CLEARS, "// jump"))));
        assert!(unnamed[1].0 == "either" && unnamed.len() == 2 && matches!(unnamed[1].1, Some(6..=8)), "{unnamed:?}");
    }
}

const REGIONS: &str = "#include <string.h>
#include <omp.h>
int main(int n, char **words) {
    static char a[1 << 20], b[1 << 20];
#pragma omp parallel
    memset(a + omp_get_thread_num() * n, 0, n); // first
#pragma omp parallel
    memset(b + omp_get_thread_num() * n, 1, n); // second
    return a[7] + b[n];
}
";

/// Check that a region that the OpenMP library called, and that ended with a jump to memset, is found from the call of the library, with the address and
/// the line of the jump.
#[test]
fn regions_that_jump() {
    let workshop = Workshop::new();
    let Some(module) = workshop.build("gcc", &["-O2", "-g", "-fopenmp"], "main.c", REGIONS, "program") else { return };
    let mut symbolizer = Symbolizer::new();
    let mut found = Vec::new();
    for offset in offsets_of(&module, "main") {
        if let Some((jump, frames)) = symbolizer.jumped_from_library(&module, offset, "") {
            assert_eq!(symbolizer.resolve(&module, jump), frames);
            assert!(symbolizer.jumped_from_library(&module, offset, "malloc").is_none());
            found.push((frames[0].function.clone().unwrap_or_default(), frames[0].line));
        }
    }
    let regions = [("main._omp_fn.0", "// first"), ("main._omp_fn.1", "// second")];
    assert_eq!(found, regions.map(|(name, line)| (name.to_owned(), Some(line_of(REGIONS, line)))));
}

/// A line with four copies of one call, and another call.
const COPIES: &str = "#include <stdlib.h>
void *keep[8];
int main(int argc, char **argv) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { keep[i] = malloc(argc * 8); keep[i + 4] = calloc(argc, 4); } // HERE
    return argv == 0;
}
";

/// Check that the copies of a call are found from one of them, without the other call in its line.
#[test]
#[cfg(target_arch = "x86_64")]
fn copies_of_a_call() {
    let shop = Workshop::new();
    for flags in [&["-O2", "-g"][..], &["-O2", "-g", "-gdwarf-4"], &["-O2", "-g", "-gno-column-info"]] {
        let Some(binary) = shop.build("gcc", flags, "copies.c", COPIES, "copies") else { continue };
        let mut search = LineSearch::open(&binary).unwrap();
        let line = [Line { function: "main".into(), file: "copies.c".into(), line: line_of(COPIES, "HERE") }];
        let bytes = std::fs::read(&binary).unwrap();
        // `call` with a relative target; text is mapped at one distance from its offset.
        let mut calls = std::collections::BTreeMap::<i64, Vec<u64>>::new();
        for offset in offsets_of(&binary, "main") {
            let at = usize::try_from(offset).unwrap();
            if bytes[at] == 0xe8 && search.is_at(offset, &line) {
                let target = i32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap());
                calls.entry(offset as i64 + 5 + i64::from(target)).or_default().push(offset);
            }
        }
        calls.retain(|_, calls| calls.len() == 4);
        assert_eq!(calls.len(), 2, "{flags:?}: {calls:x?}");
        let lists: Vec<&Vec<u64>> = calls.values().collect();
        for (own, other) in [(lists[0], lists[1]), (lists[1], lists[0])] {
            for call in own {
                // The frames of a stack are at the last byte of the call.
                let found = search.copies(call + 4, &line);
                let has = |call: &u64| found.iter().any(|(from, to)| (*from..*to).contains(&(call + 4)));
                let expected = !flags.contains(&"-gno-column-info");
                assert!(own.iter().all(|call| has(call) == expected) && !other.iter().any(has), "{flags:?}: {found:x?} {calls:x?}");
            }
        }
    }
}

const HISTOGRAM: &str = "#[unsafe(no_mangle)]
#[inline(never)]
pub fn count(values: &[u32], counts: &mut Vec<u64>) {
    for &value in values {
        counts[(value & 4095) as usize] += 1; // COUNT
    }
}
fn main() {
    let values: Vec<u32> = std::env::args().map(|word| word.len() as u32).collect();
    let mut counts = vec![0u64; 4096];
    count(&values, &mut counts);
    println!(\"{}\", counts[1]);
}
";

/// Check that loads to which the compiler gave line 0, because several lines have them, are on a line of the same function.
#[test]
fn code_without_a_line_has_that_of_the_code_beside_it() {
    let shop = Workshop::new();
    let Some(binary) = shop.build("rustc", &["-O", "-g", "--edition=2024"], "histogram.rs", HISTOGRAM, "histogram") else { return };
    let mut symbolizer = Symbolizer::new();
    let counting = line_of(HISTOGRAM, "COUNT");
    let mut at_count = 0;
    for offset in offsets_of(&binary, "count") {
        let frames = symbolizer.resolve(&binary, offset);
        assert!(frames.iter().all(|frame| frame.line.is_some()), "{offset:x}: {frames:?}");
        assert!(frames.last().unwrap().function.as_deref().is_some_and(|name| name.ends_with("count")), "{offset:x}: {frames:?}");
        at_count += usize::from(frames.iter().any(|frame| frame.line == Some(counting)));
    }
    assert!(at_count > 0, "code of line {counting}");
}
