//! Names of objects: allocated through the program's own functions, several on a line, and without a variable.

use crate::simulated::*;
use firsttouch_analysis::{Analysis, PythonValue, Sources, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::{Frame, Process, Profile};

const SOURCE: &[&str] = &[
    "static double *alloc_grid(size_t n) {",
    "    double *p = malloc(n);",
    "    if (!p) exit(1);",
    "    return p;",
    "}",
    "int main(void) {",
    "    double *a = alloc_grid(n), *b = alloc_grid(n);",
    "    c = alloc_grid(n); keep(alloc_grid(n));",
    "    double *d = malloc(n), *e = malloc(n);",
    "    grid->data = malloc(n);",
    "    return 0;",
    "Grid::Grid(int n) : data_(new double[n]) {}",
    "    Grid A(n);",
    "    Grid B(n), C(n);",
    "    Field(size_t n_) : rho(n_, 1.0), flux(std::make_unique<double[]>(n_)), n(n_) {}",
    "    std::vector<double> rho; std::size_t n;",
];

/// Answers from `SOURCE`. Frames without a file belong to a library.
struct Text;

impl Sources for Text {
    fn line(&self, _: &str, line: u32) -> Option<String> {
        SOURCE.get((line as usize).checked_sub(1)?).map(|text| (*text).to_owned())
    }
    fn cause(&self, _: &[Frame], _: Option<&str>) -> TouchCause {
        TouchCause::Loop
    }
    fn user_frame(&self, frames: &[Frame]) -> Option<usize> {
        let is_library =
            |frame: &Frame| frame.module.as_deref() == Some("/usr/lib/libc.so.6") || frame.file.as_deref() == Some("/lib/fit.py");
        frames.iter().position(|frame| !is_library(frame))
    }
    fn variable(&self, _: &str, line: u32, call: &str, nth: usize) -> Option<String> {
        let names: &[&str] = match (line, call) {
            (2, _) => &["p"],
            (7, "alloc_grid") => &["a", "b"],
            (8, "alloc_grid") => &["c", ""],
            (9, _) => &["d", "e"],
            (10, _) => &["grid->data"],
            (12, _) => &["data_"],
            (13, "Grid") => &["A"],
            (14, "Grid") => &["B", "C"],
            (15, "std::vector") => &["rho", "n"],
            (15, _) => &["flux"],
            _ => &[],
        };
        names.get(nth).filter(|name| !name.is_empty()).map(|name| (*name).to_owned())
    }
    fn library_buffer(&self, frames: &[Frame]) -> Option<String> {
        let module = frames.first()?.module.as_deref()?;
        module.contains("libopenblas").then(|| "libopenblas.so.0".to_owned())
    }
    fn python_value(&self, _: &str, line: u32, column: usize) -> Option<PythonValue> {
        match (line, column) {
            (9, 4) => Some(PythonValue::Assigned("d".into())),
            (9, 27) => Some(PythonValue::Assigned("e".into())),
            (9, 31) => Some(PythonValue::Unassigned("np.ones(n)".into())),
            _ => None,
        }
    }
}

fn frame(function: &str, line: u32, address: u64) -> Frame {
    Frame {
        address,
        module: Some("/home/me/sim".into()),
        offset: Some(address - 1),
        function: Some(function.into()).filter(|name: &String| !name.is_empty()),
        file: (line > 0).then(|| "sim.c".into()),
        line: (line > 0).then_some(line),
        ..Frame::default()
    }
}

/// A profile whose objects were allocated by these stacks.
fn profile(stacks: &[Vec<Frame>]) -> Profile {
    let things = stacks.iter().map(|_| Thing::new("", 16, Who::One(0), Who::Block(0, 4))).collect();
    let mut profile = World::new(4, things).profile(7);
    for (i, stack) in stacks.iter().enumerate() {
        profile.objects[i].name = None;
        profile.sites.get_mut(&(100 + i as i64)).unwrap().frames.clone_from(stack);
    }
    profile
}

fn analysed(profile: &Profile) -> Analysis {
    analyse(profile, &target(2), &Text)
}

fn names(stacks: &[Vec<Frame>]) -> Vec<String> {
    let analysis = analysed(&profile(stacks));
    let mut list: Vec<(i64, String)> = analysis.objects.iter().map(|object| (object.id, object.name.clone())).collect();
    list.sort();
    list.into_iter().map(|(_, name)| name).collect()
}

/// A call of `alloc_grid` from a line of `main`.
fn grid(line: u32, address: u64) -> Vec<Frame> {
    vec![frame("alloc_grid", 2, 0x1107), frame("main", line, address), frame("main", 99, 0x9999)]
}

/// Check that for a function that only returns its allocation, the caller's variable is the name, chosen by the order of the calls on a line.
#[test]
fn through_wrappers() {
    assert_eq!(names(&[grid(7, 0x1208), grid(7, 0x1200), grid(8, 0x1300)]), ["b", "a", "c"]);
    // Without a variable at the caller, the function's own variable is the name, distinguished by the callers' lines.
    let unnamed = |line, address| vec![frame("alloc_grid", 2, 0x1107), frame("main", line, address)];
    assert_eq!(names(&[unnamed(11, 0x1400), unnamed(3, 0x1500)]), ["p (sim.c:11)", "p (sim.c:3)"]);
    // A function that keeps the allocation itself does not use the caller's variable.
    let kept = vec![frame("init", 10, 0x1107), frame("main", 7, 0x1200)];
    assert_eq!(names(&[kept]), ["grid->data"]);
}

/// Check that calls on one line are counted together, even if the compiler replaced some of them by other functions.
#[test]
fn several_on_a_line() {
    let mut profile = profile(&[vec![frame("main", 9, 0x1200)], vec![frame("main", 9, 0x1210)]]);
    profile.objects[1].call = Some("calloc".into());
    let analysis = analysed(&profile);
    assert_eq!(analysis.objects.iter().find(|object| object.id == 0).unwrap().name, "d");
    assert_eq!(analysis.objects.iter().find(|object| object.id == 1).unwrap().name, "e");
}

/// Check that the calls of a line are the same ones in all processes, wherever the loader put the program.
#[test]
fn several_on_a_line_of_several_processes() {
    let elsewhere = |address: u64| vec![Frame { address: address + 0x5555_0000, ..frame("main", 9, address) }];
    let stacks = [vec![frame("main", 9, 0x1200)], vec![frame("main", 9, 0x1210)], elsewhere(0x1200), elsewhere(0x1210)];
    let found = names(&stacks);
    assert!(
        found.iter().all(|name| ["d", "e"].contains(&name.as_str()) || name.starts_with("d (") || name.starts_with("e (")),
        "{found:?}"
    );
    assert!(found.iter().any(|name| name.starts_with('d')) && found.iter().any(|name| name.starts_with('e')), "{found:?}");
}

/// Check that where the compiler moved a line's first call behind the second, the order of execution decides, and that an object gets all
/// names that it can have if a call of its line is not in the profile.
#[test]
fn several_on_a_line_in_any_order() {
    let (first, second) = (vec![frame("main", 9, 0x1200)], vec![frame("main", 9, 0x1210)]);
    let mut moved = profile(&[first.clone(), second]);
    let name_of = |profile: &Profile, id: i64| analysed(profile).objects.iter().find(|object| object.id == id).unwrap().name.clone();
    moved.objects[0].born_ns = moved.objects[1].born_ns + 1;
    assert_eq!((name_of(&moved, 0), name_of(&moved, 1)), ("e".to_owned(), "d".to_owned()));
    assert_eq!(names(&[first]), ["d or e"]);
}

/// Check that two arrays of a Python line with the same native stack are two objects with their own names.
#[test]
fn several_on_a_line_of_python() {
    let python = |instruction| {
        let frame = Frame { module: Some("python".into()), offset: None, ..frame("build", 9, instruction) };
        vec![Frame { module: Some("/usr/lib/libc.so.6".into()), ..Frame::default() }, frame]
    };
    assert_eq!(names(&[python(20), python(50)]), ["d", "e"]);
    // With columns, each is named by its own statement, also if the line makes others that were not recorded.
    let at = |instruction, column| python(Frame::interpreted_address(Some(instruction), Some(column)));
    assert_eq!(names(&[at(50, 28)]), ["e"]);
    assert_eq!(names(&[at(50, 28), at(45, 32), at(20, 5)]), ["e", "np.ones(n)", "d"]);
    assert_eq!(names(&[at(50, 99)]), ["d or e"]);
    // Several statements, and no column: no name rather than a wrong one.
    let mut unknown = python(20);
    unknown[1].line = Some(8);
    assert_eq!(names(&[unknown]), ["heap object of build (sim.c:8)"]);
}

/// Check that a buffer which a library keeps for itself has the library's name, and not that of the variable on the line that calls the library; and
/// that it is no finding.
#[test]
fn buffers_of_libraries() {
    let own = |module: &str| {
        vec![Frame { module: Some(module.into()), offset: Some(1), ..frame("alloc_mmap", 0, 0x100) }, frame("main", 10, 0x1200)]
    };
    let judged = |module: &str| analysed(&profile(&[own(module)]));
    let (own, other) = (judged("/usr/lib/libopenblas.so.0"), judged("/usr/lib/libc.so.6"));
    assert_eq!(other.objects[0].name, "grid->data");
    assert_eq!((other.findings.len(), other.objects[0].library.as_deref()), (1, None));
    assert_eq!((own.objects[0].name.as_str(), own.objects[0].library.as_deref()), ("buffer of libopenblas.so.0", Some("libopenblas.so.0")));
    assert!(own.findings.is_empty() && own.objects[0].judged, "{:?}", own.findings);
}

/// Check that an arena of Python's interpreter has the interpreter's name and is no finding, and that an array which a package makes has the package's.
#[test]
fn memory_of_python() {
    let native = |module: &str| Frame { module: Some(module.into()), offset: Some(1), ..frame("PyDict_Copy", 0, 0x100) };
    let python = |file: &str| Frame { module: Some("python".into()), file: Some(file.into()), ..frame("fit", 467, 0x200) };
    let of = |module: &str, bytes| {
        let mut profile = profile(&[vec![native(module), python("/env/site-packages/sklearn/tree/_classes.py")]]);
        (profile.objects[0].call, profile.objects[0].bytes) = (Some("mmap".into()), bytes);
        analysed(&profile)
    };
    let size = profile(&[vec![native("/usr/bin/python3.11")]]).objects[0].bytes;
    let arena = of("/usr/bin/python3.11", 1 << 20);
    assert!(arena.findings.is_empty(), "{:?}", arena.findings);
    let named = |analysis: &Analysis| {
        let listed = analysis.objects.iter().map(|one| one.name.clone());
        listed.chain(analysis.not_judged.iter().map(|one| one.name.clone())).next().unwrap_or_default()
    };
    assert_eq!(named(&arena), "memory of python3.11");
    assert_eq!(named(&of("/usr/bin/python3.11", size)), "heap object of sklearn (_classes.py:467)");
    assert_eq!(named(&of("/env/site-packages/numpy/_multiarray_umath.so", size)), "heap object of sklearn (_classes.py:467)");
}

/// Check that the members of several instances of a class are named with the variables that hold the instances.
#[test]
fn instances_of_a_class() {
    let made = |line, address| vec![frame("Grid::Grid", 12, 0x1107), frame("main", line, address)];
    assert_eq!(names(&[made(13, 0x1200), made(11, 0x1300)]), ["data_ (of A, sim.c:13)", "data_ (sim.c:11)"]);
    // Two on one line.
    assert_eq!(names(&[made(14, 0x1200), made(14, 0x1300)]), ["data_ (of B, sim.c:14)", "data_ (of C, sim.c:14)"]);
    // A function that is no constructor uses the instance, but the line's variable is not the instance.
    let used = |line, address| vec![frame("Grid::resize", 12, 0x1107), frame("main", line, address)];
    assert_eq!(names(&[used(13, 0x1200), used(11, 0x1300)]), ["data_ (sim.c:13)", "data_ (sim.c:11)"]);
}

/// Check that no two objects of a process have one name: those that are made on one line are distinguished by the line that calls it, then by the
/// lines of a Python library that was called, the nearest first, and else by a number.
#[test]
fn no_two_objects_have_one_name() {
    let called = |inner, outer| {
        vec![
            frame("use", 10, 0x1100 + u64::from(inner)),
            frame("middle", inner, 0x1200 + u64::from(inner)),
            frame("main", outer, 0x1300 + u64::from(outer)),
        ]
    };
    assert_eq!(
        names(&[called(3, 11), called(3, 13), called(4, 11)]),
        ["grid->data (sim.c:3, from sim.c:11)", "grid->data (sim.c:3, from sim.c:13)", "grid->data (sim.c:4)"]
    );
    let library = |lines: [u32; 2]| {
        let inside = |line| Frame {
            module: Some("python".into()),
            file: Some("/lib/fit.py".into()),
            ..frame("fit", line, 0x1400 + u64::from(line))
        };
        let main =
            Frame { module: Some("python".into()), offset: None, ..frame("main", 9, Frame::interpreted_address(Some(45), Some(32))) };
        vec![inside(lines[0]), Frame { address: 0x1500 + u64::from(lines[1]), ..inside(lines[1]) }, main]
    };
    assert_eq!(
        names(&[library([5, 20]), library([6, 30]), library([7, 30])]),
        ["np.ones(n) (fit.py:20)", "np.ones(n) (fit.py:30, from fit.py:6)", "np.ones(n) (fit.py:30, from fit.py:7)"],
    );
    let same = || vec![frame("main", 10, 0x1200)];
    let mut twice = profile(&[same(), same()]);
    // Both are alive at the same time, but of different size: no rows of one object.
    twice.objects[1].bytes *= 2;
    let mut list: Vec<String> = analysed(&twice).objects.into_iter().map(|object| object.name).collect();
    list.sort();
    assert_eq!(list, ["grid->data", "grid->data (#2)"]);
}

/// Check that objects without a variable are distinguished by the address of their allocation: the instruction after the call.
#[test]
fn without_lines() {
    let main = |address| vec![frame("main", 0, address)];
    assert_eq!(names(&[main(0x1107), main(0x111b)]), ["heap object of main (sim+0x1107)", "heap object of main (sim+0x111b)"]);
    assert_eq!(names(&[vec![frame("", 0, 0x1107)]]), ["heap object of sim+0x1107"]);
}

/// Check that the message names the wrapper and its caller, and the process if there are several.
#[test]
fn messages_tell_callers_and_processes() {
    let mut profile = profile(&[grid(7, 0x1200), grid(8, 0x1300)]);
    let message = |profile: &Profile| analysed(profile).findings.iter().find(|f| f.object == Some(0)).unwrap().message.clone();
    assert!(message(&profile).starts_with("a or b (16 MiB, from alloc_grid at sim.c:7) was first"), "{}", message(&profile));
    profile.processes[0].exe = Some("/home/me/sim".into());
    profile.processes.push(Process { id: 2, pid: 200, parent: Some(1), exe: None, born_ns: 0, died_ns: None });
    profile.objects[1].process = 2;
    assert!(message(&profile).contains(") of process 100 (sim) was first"), "{}", message(&profile));
}

/// Check that of a vector and an array that one line makes, each gets its own name, and that a number that the line sets is no vector.
#[test]
fn containers_beside_other_allocations() {
    let inlined = |function: &str, address| Frame { file: Some("/usr/include/c++/12/x.h".into()), ..frame(function, 9, address) };
    let new = Frame { module: Some("/usr/lib/libc.so.6".into()), ..Frame::default() };
    let made = |inner: &[&str], address| {
        let mut stack = vec![new.clone()];
        stack.extend(inner.iter().map(|function| Frame { module: Some("/usr/lib/libc.so.6".into()), ..inlined(function, address) }));
        stack.extend([frame("Field::Field", 15, address), frame("main", 99, 0x9999)]);
        stack
    };
    let vector = made(&["std::_Vector_base<double>::_M_allocate", "std::vector<double, std::allocator<double> >::vector"], 0x1200);
    let unique = made(&["std::make_unique<double []>"], 0x1300);
    assert_eq!(names(&[vector, unique]), ["rho", "flux"]);
}
