//! Static and global arrays of real programs, COMMON blocks included.

use crate::common::{C, Workshop, line_of};
use firsttouch_symbols::{StaticObject, static_objects};
use std::path::Path;

fn find(binary: &Path, name: &str) -> Option<StaticObject> {
    static_objects(binary, 1000).unwrap().objects.into_iter().find(|object| object.name == name)
}

#[test]
fn c_globals_and_function_statics() {
    let shop = Workshop::new();
    for (compiler, flags) in [("gcc", &["-O2", "-g"][..]), ("gcc", &["-O2"]), ("gcc", &["-O2", "-fcommon", "-no-pie"]), ("clang", &["-O1"])]
    {
        let Some(binary) = shop.build(compiler, flags, "demo.c", C, "demo") else { continue };
        assert_eq!(find(&binary, "field").unwrap().bytes, 400_000);
        let of_function = if compiler == "clang" { "main.grid" } else { "grid" };
        assert_eq!(find(&binary, of_function).unwrap().bytes, 72_000, "{compiler} {flags:?}");
        let large = static_objects(&binary, 100_000).unwrap();
        assert_eq!(large.objects.len(), 1);
        assert!(large.objects[0].members.is_empty());
    }
}

#[test]
fn sections_and_aliases() {
    const SOURCE: &str = "double data[1000] = {1};
extern double other[1000] __attribute__((alias(\"data\")));
static double local[1000] = {2};
extern double exported[1000] __attribute__((alias(\"local\")));
const double constant[1000] = {3};
__thread double own[1000];
double *const relocated[1000] = {data};
double use(int i) { return data[i] + local[i] + constant[i] + own[i] + *relocated[i]; }
int main(int argc, char **argv) { data[argc] = 1; local[argc] = 2; return (int)use(argc); }
";
    let shop = Workshop::new();
    let Some(binary) = shop.build("gcc", &["-O1", "-fPIE", "-pie"], "demo.c", SOURCE, "demo") else { return };
    let statics = static_objects(&binary, 1000).unwrap();
    let mut names: Vec<&str> = statics.objects.iter().map(|object| object.name.as_str()).collect();
    names.sort_unstable();
    assert!(names == ["data", "exported"] || names == ["exported", "other"], "{names:?}");
}

#[test]
fn large_model_arrays() {
    const SOURCE: &str = "double huge[100000]; int main(int argc, char **argv) { huge[argc] = 1; return (int)huge[0]; }";
    let shop = Workshop::new();
    let flags = ["-O1", "-mcmodel=medium", "-mlarge-data-threshold=1000"];
    let Some(binary) = shop.build("gcc", &flags, "demo.c", SOURCE, "demo") else { return };
    assert_eq!(find(&binary, "huge").unwrap().bytes, 800_000);
}

#[test]
fn a_stripped_program_has_its_sections() {
    let shop = Workshop::new();
    let Some(binary) = shop.build("gcc", &["-O1"], "demo.c", C, "demo") else { return };
    assert!(find(&binary, ".bss of demo").is_none(), "symbols cover it");
    let stripped = binary.with_file_name("bare");
    if !shop.run("strip", &["-o", "bare", "demo"]) {
        return;
    }
    let section = find(&stripped, ".bss of bare").unwrap();
    let arrays = [find(&binary, "field").unwrap(), find(&binary, "grid").unwrap()];
    for array in arrays {
        assert!(section.address <= array.address && array.address + array.bytes <= section.address + section.bytes, "{array:?}");
    }
}

#[test]
fn cpp_and_rust_names() {
    let shop = Workshop::new();
    let cpp = "namespace grid { double field[1000]; } int main(int c, char **) { static double own[2000]; own[c] = 1; grid::field[c] = 1; return (int)own[0]; }";
    if let Some(binary) = shop.build("g++", &["-O1"], "demo.cpp", cpp, "cpp") {
        assert!(find(&binary, "grid::field").is_some() && find(&binary, "main::own").is_some());
    }
    let rust = "mod grid { pub static mut FIELD: [f64; 1000] = [0.0; 1000]; } fn main() { unsafe { *(&raw mut grid::FIELD).cast::<f64>() = std::env::args().count() as f64; println!(\"{}\", (&raw const grid::FIELD).cast::<f64>().read_volatile()); } }";
    if let Some(binary) = shop.build("rustc", &["-O"], "demo.rs", rust, "rust") {
        assert!(find(&binary, "demo::grid::FIELD").is_some());
    }
}

const FORTRAN: &str = "module grid_mod
  real(8) :: field(50000)
end module
subroutine sub(n)
  integer :: n, k
  real(8) :: a(1000), b(20,30)
  common /blk/ a, b, k
  common w(7000)
  a = n
  b(1,1) = n
  k = n
  w = n
end subroutine
program prog
  use grid_mod
  real(8) :: a(1000), b(20,30)
  integer :: k
  common /blk/ a, b, k
  real(8), save :: own(9000)
  call sub(3)
  field = k
  own(k) = 3
  print *, field(7), a(1), b(1,1), own(k)
end program
";

#[test]
fn fortran_modules_and_common_blocks() {
    let shop = Workshop::new();
    for flags in [&["-O2", "-g"][..], &["-O2", "-g", "-gdwarf-4"], &["-O2", "-g", "-mcmodel=medium"]] {
        let Some(binary) = shop.build("gfortran", flags, "demo.f90", FORTRAN, "demo") else { continue };
        assert_eq!(find(&binary, "grid_mod::field").unwrap().bytes, 400_000, "{flags:?}");
        assert!(find(&binary, "own").is_some());
        let block = find(&binary, "/blk/").unwrap();
        let members: Vec<(&str, u64, u64)> = block.members.iter().map(|(name, offset, bytes)| (name.as_str(), *offset, *bytes)).collect();
        assert_eq!(members, [("a", 0, 8000), ("b", 8000, 4800), ("k", 12800, 4)], "{flags:?}");
        assert_eq!(block.member_at(8000), Some("b"));
        let blank = find(&binary, "//").unwrap();
        assert_eq!(blank.members, [("w".to_owned(), 0, 28_000)]);
    }
    let Some(plain) = shop.build("gfortran", &["-O2"], "demo.f90", FORTRAN, "plain") else { return };
    assert!(find(&plain, "blk_").unwrap().members.is_empty());
    let Some(_) = shop.build("gfortran", &["-O2", "-g"], "demo.f90", FORTRAN, "demo") else { return };
    if shop.run("objcopy", &["--only-keep-debug", "demo", "demo.debug"])
        && shop.run("objcopy", &["--strip-all", "--add-gnu-debuglink=demo.debug", "demo", "linked"])
    {
        assert_eq!(find(&shop.path("linked"), "/blk/").unwrap().members.len(), 3);
        assert!(find(&shop.path("linked"), "grid_mod::field").is_some());
    }
}

fn declared(binary: &Path, name: &str) -> Option<(String, u32)> {
    let object = find(binary, name).unwrap_or_else(|| panic!("no {name} among {:?}", static_objects(binary, 1000).unwrap().objects));
    let (file, line) = object.declared_at?;
    assert!(file.is_absolute(), "{}", file.display());
    Some((file.file_name().unwrap().to_str().unwrap().to_owned(), line))
}

#[test]
fn declarations_in_c() {
    const SOURCE: &str = "#include \"sub/field.h\"
static volatile double local[1000]; // local
extern volatile double field[1000];
volatile double field[1000] = {1}; // field
double twice(int i) {
  static volatile double own[1000]; // own
  own[i] += local[i]; return own[i] + field[i];
}
int main(int argc, char **argv) { local[argc] = 2; in_header[argc] = 2; return (int)twice(argc) + (int)in_header[argc + 1]; }
";
    let shop = Workshop::new();
    std::fs::create_dir(shop.path("sub")).unwrap();
    std::fs::write(shop.path("sub/field.h"), "\nstatic volatile double in_header[2000];\n").unwrap();
    for (compiler, flags) in [
        ("gcc", &["-O0", "-g"][..]),
        ("gcc", &["-O2", "-g"]),
        ("gcc", &["-O2", "-g", "-gdwarf-4"]),
        ("gcc", &["-O2", "-g", "-flto"]),
        ("clang", &["-O2", "-g"]),
        ("clang", &["-O0", "-g", "-gdwarf-4"]),
    ] {
        let Some(binary) = shop.build(compiler, flags, "demo.c", SOURCE, "demo") else { continue };
        let at = |marker| Some(("demo.c".to_owned(), line_of(SOURCE, marker)));
        assert_eq!(declared(&binary, "local"), at("// local"), "{compiler} {flags:?}");
        assert_eq!(declared(&binary, "field"), at("// field"), "{compiler} {flags:?}");
        let own = if compiler == "clang" { "twice.own" } else { "own" };
        assert_eq!(declared(&binary, own), at("// own"), "{compiler} {flags:?}");
        assert_eq!(declared(&binary, "in_header"), Some(("field.h".to_owned(), 2)), "{compiler} {flags:?}");
        let path = find(&binary, "in_header").unwrap().declared_at.unwrap().0;
        assert_eq!(path.canonicalize().unwrap(), shop.path("sub/field.h").canonicalize().unwrap());
    }
    let Some(plain) = shop.build("gcc", &["-O2"], "demo.c", SOURCE, "plain") else { return };
    assert_eq!(declared(&plain, "local"), None);
}

#[test]
fn declarations_in_cpp() {
    const SOURCE: &str = "namespace grid { namespace { volatile double hidden[1000]; } // hidden
extern volatile double field[1000];
volatile double field[1000]; // field
struct Solver { static volatile double shared[1000]; int step(int); }; }
volatile double grid::Solver::shared[1000]; // shared
int grid::Solver::step(int i) {
  static volatile double own[1000]; // own
  own[i] += field[i] + hidden[i]; return (int)own[i] + (int)shared[i];
}
int main(int argc, char **argv) { grid::hidden[argc] = grid::field[argc] = 2; return grid::Solver().step(argc); }
";
    let shop = Workshop::new();
    for (compiler, flags) in [("g++", &["-O2", "-g"][..]), ("g++", &["-O1", "-g", "-gdwarf-4"]), ("clang++", &["-O1", "-g"])] {
        let Some(binary) = shop.build(compiler, flags, "demo.cpp", SOURCE, "demo") else { continue };
        let at = |marker| Some(("demo.cpp".to_owned(), line_of(SOURCE, marker)));
        assert_eq!(declared(&binary, "grid::field"), at("// field"), "{compiler} {flags:?}");
        // clang only has the line in the class.
        let shared = if compiler == "clang++" { "struct Solver" } else { "// shared" };
        assert_eq!(declared(&binary, "grid::Solver::shared"), at(shared), "{compiler} {flags:?}");
        assert_eq!(declared(&binary, "grid::(anonymous namespace)::hidden"), at("// hidden"), "{compiler} {flags:?}");
        assert_eq!(declared(&binary, "grid::Solver::step(int)::own"), at("// own"), "{compiler} {flags:?}");
    }
}

#[test]
fn declarations_in_fortran() {
    let shop = Workshop::new();
    for flags in [&["-O2", "-g"][..], &["-O2", "-g", "-gdwarf-4"]] {
        let Some(binary) = shop.build("gfortran", flags, "demo.f90", FORTRAN, "demo") else { continue };
        let at = |marker| Some(("demo.f90".to_owned(), line_of(FORTRAN, marker)));
        assert_eq!(declared(&binary, "grid_mod::field"), at(":: field"), "{flags:?}");
        assert_eq!(declared(&binary, "own"), at(":: own"), "{flags:?}");
        let statics = static_objects(&binary, 1000).unwrap();
        let block = statics.objects.iter().find(|object| object.name == "/blk/").unwrap();
        assert!(block.declared_at.is_some(), "{flags:?}");
        let member = statics.declared_at(block.address + 8000).unwrap();
        assert!(member.0.ends_with("demo.f90") && FORTRAN.lines().nth(member.1 as usize - 1).unwrap().contains("a(1000)"), "{member:?}");
    }
}

#[test]
fn the_bias_puts_statics_where_the_program_has_them() {
    const SOURCE: &str = "#include <stdio.h>
double field[50000];
int main(void) {
  char line[4096];
  FILE *maps = fopen(\"/proc/self/maps\", \"r\");
  printf(\"%p\\n\", (void *)field);
  while (maps && fgets(line, sizeof line, maps)) fputs(line, stdout);
  return 0;
}
";
    let shop = Workshop::new();
    for flags in [&["-O1", "-pie", "-fPIE"][..], &["-O1", "-no-pie"], &["-O1", "-static-pie", "-fPIE"]] {
        let Some(binary) = shop.build("gcc", flags, "demo.c", SOURCE, "demo") else { continue };
        let output = String::from_utf8(std::process::Command::new(&binary).output().unwrap().stdout).unwrap();
        let (address, maps) = output.split_once('\n').unwrap();
        // A static program's heap may come before it.
        let map = maps.lines().find(|map| map.ends_with(binary.to_str().unwrap())).unwrap();
        let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let start = hex(map.split('-').next().unwrap());
        let offset = hex(map.split_whitespace().nth(2).unwrap());
        let statics = static_objects(&binary, 1000).unwrap();
        let field = statics.objects.iter().find(|object| object.name == "field").unwrap();
        let bias = statics.bias(start, offset).unwrap();
        assert_eq!(field.address.wrapping_add(bias), hex(address), "{flags:?}");
    }
}

#[test]
fn errors_name_the_file_and_the_cause() {
    let missing = static_objects(Path::new("/no/such/file"), 0).unwrap_err();
    assert!(format!("{missing:#}").contains("/no/such/file") && format!("{missing:#}").contains("No such file"), "{missing:#}");
    let text = static_objects(Path::new("Cargo.toml"), 0).unwrap_err();
    assert!(format!("{text:#}").contains("Cargo.toml"), "{text:#}");
}
