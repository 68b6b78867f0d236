//! Fixes with the user's names and values, and for programs without OpenMP.

use crate::simulated::*;
use firsttouch_analysis::{Sources, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::{Frame, Profile, Site};

/// The source lines of one program that allocate, touch and use its array, and the cause of the first touch.
struct Program {
    cause: TouchCause,
    /// Declarations of the file.
    declared: &'static str,
    allocates: &'static str,
    touches: &'static str,
    uses: &'static str,
}

impl Sources for Program {
    /// The line in a function of its own.
    fn line(&self, file: &str, line: u32) -> Option<String> {
        let (text, at) = match file.split('.').next() {
            Some("alloc") => (self.allocates, 110),
            Some("touch") => (self.touches, 20),
            Some("use") => (self.uses, 30),
            _ => return None,
        };
        let is_fortran = file.ends_with("f90");
        let (begin, end) = if is_fortran { ("subroutine s", "end subroutine") } else { ("void f(void) {", "}") };
        let declared = if is_fortran { "real, allocatable :: field(:, :)" } else { self.declared };
        let text = match line.checked_sub(at - 2) {
            None => "",
            Some(0) if is_fortran => begin,
            Some(0) => declared,
            Some(1) if is_fortran => declared,
            Some(1) => begin,
            Some(2) => text,
            Some(3) => end,
            Some(_) => return None,
        };
        Some(text.to_owned())
    }
    fn cause(&self, _: &[Frame], _: Option<&str>) -> TouchCause {
        self.cause
    }
    fn user_frame(&self, frames: &[Frame]) -> Option<usize> {
        (!frames.is_empty()).then_some(0)
    }
    fn variable(&self, _: &str, _: u32, _: &str, _: usize) -> Option<String> {
        None
    }
}

/// The fix for an array that one thread touched and four use, in files with this extension; frames name `module`.
fn fix(program: &Program, name: &'static str, call: &'static str, extension: &str, module: Option<&str>) -> String {
    first_fix(&filled_in_one_thread(name, call, extension, module), program)
}

/// A profile of an array that thread 0 fills and four threads use. Site 100 allocates it.
fn filled_in_one_thread(name: &'static str, call: &'static str, extension: &str, module: Option<&str>) -> Profile {
    let mut thing = Thing::new(name, 64, Who::One(0), Who::Block(0, 4));
    (thing.call, thing.site) = (call, 100);
    let mut profile = World::new(4, vec![thing]).profile(3);
    for frame in profile.sites.values_mut().flat_map(|site| &mut site.frames) {
        frame.file = frame.file.take().map(|file| format!("{}.{extension}", file.split('.').next().unwrap()));
        frame.module = module.map(str::to_owned);
    }
    profile
}

fn first_fix(profile: &Profile, program: &Program) -> String {
    analyse(profile, &target(2), program).findings.first().unwrap().fix.clone()
}

/// Check that a change does the same as the user's line, with its names and values.
#[test]
fn names_and_values_are_the_users() {
    let lines = |cause, allocates, touches| Program {
        cause,
        declared: "std::vector<double> v; double *a; double *data_; size_t n;",
        allocates,
        touches,
        uses: "s = s + field(i, j);",
    };
    for (program, name, extension, expected) in [
        (
            lines(TouchCause::Memset, "", "    memset(table, 1, len * sizeof *table);"),
            "table",
            "c",
            "; in place of touch.c:20:\n  #pragma omp parallel for schedule(static)\n  \
             for (size_t page = 0; page < len * sizeof *table; page += 4096)\n      \
             memset((char *)table + page, 1, len * sizeof *table - page < 4096 ? len * sizeof *table - page : 4096);",
        ),
        (
            lines(TouchCause::Memcpy, "", "memcpy(c, b + 3, n * 8);"),
            "c",
            "c",
            "memcpy((char *)c + page, (const char *)(b + 3) + page, n * 8 - page < 4096 ? n * 8 - page : 4096);",
        ),
        (
            lines(TouchCause::StdVector, "std::vector<double> x(n, 1.0);", ""),
            "x",
            "cpp",
            "in place of alloc.cpp:110:\n  std::vector<double> x;\n  x.reserve(n);\n  #pragma omp parallel for schedule(static)\n  \
             for (size_t page = 0; page < x.capacity() * sizeof(x[0]); page += 4096)\n      \
             ((char *)x.data())[page] = 0;\n  x.resize(n, 1.0);",
        ),
        (
            lines(TouchCause::StdVector, "v.resize(n * n);", ""),
            "v",
            "cpp",
            "insert before alloc.cpp:110:\n  v.reserve(n * n);\n  #pragma omp parallel for schedule(static)\n  \
             for (size_t page = v.size() * sizeof(v[0]); page < v.capacity() * sizeof(v[0]); page += 4096)",
        ),
        (
            lines(TouchCause::StdFill, "", "std::fill(data_, data_ + r * c, 0.5);"),
            "data_",
            "cpp",
            "for (std::size_t i = 0; i < r * c; i++)\n      data_[i] = 0.5;",
        ),
        (
            lines(TouchCause::MakeUnique, "m.v = std::make_unique<double[]>(n * n);", ""),
            "m.v",
            "cpp",
            "in place of alloc.cpp:110:\n  m.v = std::unique_ptr<double[]>(new double[n * n]);\n  #pragma omp parallel for schedule(static)\n  \
             for (std::size_t i = 0; i < n * n; i++)\n      m.v[i] = 0;",
        ),
        (
            lines(TouchCause::FortranAssignment, "", "  field = 1.5d0"),
            "field",
            "f90",
            "in place of touch.f90:20:\n  !$omp parallel workshare\n  field = 1.5d0\n  !$omp end parallel workshare",
        ),
        (
            lines(TouchCause::Loop, "a = malloc(n * sizeof *a);", "for (int k = 1; k < n; k++) a[k] = a[k - 1];"),
            "a",
            "c",
            "insert after alloc.c:110:\n  if (a)\n  #pragma omp parallel for schedule(static)\n  \
             for (size_t page = 0; page < n * sizeof *a; page += 4096)\n      ((char *)a)[page] = 0;",
        ),
        (
            lines(TouchCause::Loop, "a = malloc(n * sizeof *a);", "for (int k = 0; k < n; k++) a[k] = k;"),
            "a",
            "c",
            "; insert before touch.c:20:\n  #pragma omp parallel for schedule(static)",
        ),
    ] {
        let fix = fix(&program, name, "malloc", extension, Some("/usr/lib/libgomp.so.1"));
        assert!(fix.contains(expected), "{fix}\nlacks\n{expected}");
    }
}

/// Check that a fix changes nothing where the line does not show that this keeps what the program computes.
#[test]
fn nothing_is_made_up() {
    for (cause, name, allocates, touches) in [
        (TouchCause::Memset, "table", "", "work(here);"),
        (TouchCause::Memset, "table", "", "if (x) memset(table, 0, n);"),
        (TouchCause::Memset, "table", "", "memset(table, next(), n);"),
        (TouchCause::Memset, "table", "", "memset(table, 0, n--);"),
        (TouchCause::Memcpy, "table", "", "memmove(table, from, n);"),
        (TouchCause::Calloc, "table", "", "work(here);"),
        (TouchCause::StdFill, "table", "", "std::fill(table.begin(), table.end(), 0);"),
        (TouchCause::StdVector, "x", "const std::vector<double> x(n, 1.0);", ""),
        (TouchCause::StdVector, "x", "static std::vector<double> x(n, 1.0);", ""),
        (TouchCause::StdVector, "x", "std::vector<double> x(n), y(x.size());", ""),
        (TouchCause::StdVector, "x", "std::vector<bool> x(n);", ""),
        (TouchCause::StdVector, "x", "std::vector<Cell> x(n);", ""),
        (TouchCause::StdVector, "x", "std::vector<double> x(first.begin(), first.end());", ""),
        (TouchCause::StdVector, "x", "std::vector<double> x(count());", ""),
        (TouchCause::MakeUnique, "p", "auto p = std::make_unique<Cell[]>(n);", ""),
        (TouchCause::MakeUnique, "p", "use(std::make_unique<double[]>(n));", ""),
        (TouchCause::Loop, "a", "if (x) a = malloc(n);", "a[k++] = 1;"),
        (TouchCause::Loop, "a", "a = realloc(a, n);", "a[k++] = 1;"),
        (TouchCause::Loop, "a", "b = malloc(n);", "a[k++] = 1;"),
        (TouchCause::Loop, "a", "a = malloc(size());", "a[k++] = 1;"),
        (TouchCause::Loop, "a", "a = new Cell[n];", "a[k++] = 1;"),
        (TouchCause::Loop, "a", "a = new double[n]();", "a[k++] = 1;"),
        (TouchCause::Loop, "a", "a = mmap(0, n, 3, MAP_SHARED, file, 0);", "a[k++] = 1;"),
    ] {
        let program = Program { cause, declared: "", allocates, touches, uses: "" };
        let fix = fix(&program, name, "malloc", "cpp", Some("/usr/lib/libgomp.so.1"));
        assert!(!fix.contains('\n'), "{allocates} {touches}: {fix}");
    }
}

/// Check that the fix for a program without an OpenMP runtime uses the program's own threads.
#[test]
fn own_threads() {
    let program =
        Program { cause: TouchCause::Memset, declared: "", allocates: "", touches: "memset(table, 1, n * 4);", uses: "s += table[i];" };
    let fix = fix(&program, "table", "malloc", "c", Some("/home/me/pt"));
    assert!(!fix.contains("#pragma"), "{fix}");
    assert!(fix.starts_with("let each thread initialise its own part of table in its thread function (main(), or what calls it)"), "{fix}");
    assert!(!fix.contains("[lo]"), "its bounds are not known: {fix}");
}

/// Check that Python code which reads a file into new memory is not asked to touch the array before: it gets it when it is full.
#[test]
fn arrays_that_python_reads() {
    let program = Program {
        cause: TouchCause::Io,
        declared: "",
        allocates: "a = pickle.load(f)",
        touches: "a = pickle.load(f)",
        uses: "x += a[s].sum()",
    };
    let of = |extension: &str, is_one_call: bool| {
        let mut profile = filled_in_one_thread("a", "malloc", extension, Some("/home/me/pt"));
        if is_one_call {
            let frame = &mut profile.sites.get_mut(&100).unwrap().frames[0];
            (frame.file, frame.line) = (Some(format!("touch.{extension}")), Some(20));
        }
        first_fix(&profile, &program)
    };
    let loaded = of("py", true);
    assert!(loaded.starts_with("a is allocated and filled in one call (touch.py:20)"), "{loaded}");
    assert!(loaded.contains("a = numpy.empty_like(made)") && !loaded.contains("before it is read into"), "{loaded}");
    for other in [of("py", false), of("c", true)] {
        assert!(other.contains("before it is read into"), "{other}");
    }
}

/// Check that the call of the library says how the program's own threads join a team, or how OpenMP's do, never both.
#[test]
fn the_library_learns_the_team() {
    let program = Program {
        cause: TouchCause::Loop,
        declared: "#include <stdlib.h>",
        allocates: "table = malloc(n * 4);",
        touches: "table[k++] = 1;",
        uses: "s += table[i];",
    };
    let library_if = |module: &str, start_later: bool| {
        let mut thing = Thing::new("table", 64, Who::One(0), Who::Block(0, 4));
        (thing.call, thing.site) = ("malloc", 100);
        let mut profile = World::new(4, vec![thing]).profile(3);
        for frame in profile.sites.values_mut().flat_map(|site| &mut site.frames) {
            frame.module = Some(module.to_owned());
        }
        let born = profile.objects[0].born_ns;
        for thread in profile.threads.iter_mut().skip(1) {
            thread.born_ns = if start_later { born + 1 } else { born.saturating_sub(1) };
        }
        let found = analyse(&profile, &target(2), &program);
        let library = found.findings.first().and_then(|finding| finding.library.clone()).expect("a call of the library");
        (library.needs, library.text)
    };
    let library = |module: &str| library_if(module, false);
    let ((own, own_call), (openmp, call)) = (library("/home/me/pt"), library("/usr/lib/libgomp.so.1"));
    assert!(own_call.contains("ft_blocked(4)") && own.contains("4 threads used it in this run"), "{own_call} {own}");
    assert!(call.contains("ft_blocked(0)"), "{call}");
    assert!(own.contains("ft_team_join(0, THREAD, 4)") && !own.contains("openmp"), "{own}");
    assert!(openmp.contains("ft_team_openmp(0)") && !openmp.contains("join("), "{openmp}");
    // No thread but the first one exists where the memory is placed.
    let (later, _) = library_if("/home/me/pt", true);
    assert!(
        later.contains("none but the one that allocates has started at this line")
            && later.contains("when each of them has called ft_team_join(0, THREAD, 4)"),
        "{later}"
    );
    assert!(own.contains("ft_team_join(0, THREAD, 4) once in each, before"), "{own}");
}

/// Check that what appends elements is named, and not called a fill, in programs with OpenMP and with their own threads.
#[test]
fn elements_that_are_appended() {
    let program = |touches| Program { cause: TouchCause::StdVector, declared: "", allocates: "", touches, uses: "s += list[i];" };
    for (module, start) in [
        ("/usr/lib/libgomp.so.1", "push_back appends the elements of list in one thread (touch.cpp:20): reserve memory for all of them"),
        ("/home/me/pt", "let each thread initialise its own part of list"),
    ] {
        let appended = fix(&program("list.push_back(i);"), "list", "malloc", "cpp", Some(module));
        assert!(appended.starts_with(start) && appended.contains("push_back") && !appended.contains("fills"), "{appended}");
        let filled = fix(&program("list.resize(n);"), "list", "malloc", "cpp", Some(module));
        assert!(filled.contains("std::vector fills") && !filled.contains("push_back"), "{filled}");
    }
}

/// Check that no parallel loop is advised where one thread of a parallel region runs the code: it would have a team of one thread.
#[test]
fn within_a_parallel_region() {
    for (cause, touches) in [(TouchCause::Memset, "memset(a, 1, n);"), (TouchCause::Loop, "for (int i = 0; i < n; i++) a[i] = i;")] {
        let program = Program { cause, declared: "char *a; size_t n;", allocates: "a = malloc(n);", touches, uses: "s += a[i];" };
        let fix_with = |in_region: &[i64]| {
            let mut thing = Thing::new("a", 64, Who::One(0), Who::Block(0, 4));
            (thing.call, thing.site) = ("malloc", 100);
            let mut profile = World::new(4, vec![thing]).profile(3);
            for site in profile.sites.values_mut() {
                let caller = if in_region.contains(&(site.id / 1000)) { "main._omp_fn.0" } else { "main" };
                site.frames[0].function = Some("f".into());
                site.frames.push(Frame { function: Some(caller.into()), ..Frame::default() });
            }
            analyse(&profile, &target(2), &program).findings.first().unwrap().fix.clone()
        };
        let (outside, touched, all) = (fix_with(&[2]), fix_with(&[1, 2]), fix_with(&[0, 1, 2]));
        assert!(outside.contains("touch.c:20:\n") && outside.contains("#pragma"), "{outside}");
        assert!(touched.contains("insert after alloc.c:110:\n") && touched.contains("#pragma"), "{touched}");
        assert!(!all.contains('\n') && all.contains("within a parallel region (touch.c:20)"), "{all}");
        assert!(all.contains("allocate it before the region"), "{all}");
    }
}

/// Check that nested parallel regions, whose inner ones have teams, get a parallel loop; and regions within others without a team do not.
#[test]
fn within_nested_regions() {
    let program = Program { cause: TouchCause::Loop, declared: "", allocates: "a = f();", touches: "a[i] = i;", uses: "s += a[i];" };
    for inner_has_team in [true, false] {
        let mut thing = Thing::new("a", 64, Who::One(0), Who::Block(0, 4));
        (thing.call, thing.site) = ("malloc", 100);
        let mut profile = World::new(4, vec![thing]).profile(3);
        for site in profile.sites.values_mut() {
            let region = |number: usize| Frame { function: Some(format!("main._omp_fn.{number}")), ..Frame::default() };
            site.frames.extend([region(1), region(0)]);
        }
        let first = profile.threads[0].id;
        let second = profile.threads[1].id;
        profile.threads.iter_mut().skip(1).for_each(|thread| thread.parent = Some(first));
        if inner_has_team {
            profile.threads[3].parent = Some(second);
        }
        let fix = analyse(&profile, &target(2), &program).findings.first().unwrap().fix.clone();
        assert_eq!(fix.contains("The program nests parallel regions"), inner_has_team, "{fix}");
        assert_eq!(fix.contains("one thread only"), !inner_has_team, "{fix}");
    }
}

/// Check that neither another process with OpenMP, nor OpenMP in another part of the same process, makes the threads that use an object OpenMP's.
#[test]
fn openmp_elsewhere() {
    let program = Program { cause: TouchCause::Loop, declared: "", allocates: "", touches: "table[i] = i;", uses: "s += table[i];" };
    let frame = |module: &str, function: Option<&str>| Frame {
        module: Some(module.into()),
        function: function.map(str::to_owned),
        ..Frame::default()
    };
    let gomp = || vec![frame("/home/me/pt", Some("other._omp_fn.0")), frame("/usr/lib/libgomp.so.1", None), frame("/lib/libc.so.6", None)];
    let fix_with = |process: i64, change: &dyn Fn(&mut Vec<Frame>)| {
        let mut profile = World::new(4, vec![Thing::new("table", 64, Who::One(0), Who::Block(0, 4))]).profile(3);
        for site in profile.sites.values_mut() {
            site.frames.iter_mut().for_each(|frame| frame.module = Some("/home/me/pt".into()));
            if site.id >= 2000 {
                change(&mut site.frames);
            }
        }
        profile.sites.insert(9000, Site { id: 9000, process, frames: gomp() });
        analyse(&profile, &target(2), &program).findings.first().unwrap().fix.clone()
    };
    let started = |frames: &mut Vec<Frame>| {
        frames[0].function = Some("work".into());
        frames.push(frame("/lib/libc.so.6", None));
    };
    let own = "let each thread initialise its own part of table in its thread function";
    let other = fix_with(2, &|_| ());
    assert!(other.starts_with(own), "{other}");
    let part = fix_with(1, &started);
    assert!(part.starts_with(own), "{part}");
    // A stack that was cut off may belong to OpenMP.
    let cut = fix_with(1, &|_| ());
    assert!(!cut.starts_with(own), "{cut}");
    // OpenMP calls the code that uses it.
    let called = fix_with(1, &|frames| {
        started(frames);
        frames.insert(1, frame("/usr/lib/libgomp.so.1", None));
    });
    assert!(!called.starts_with(own), "{called}");
}

/// Check that the fix for threads that are made anew for every round does not initialise in their function, which would do so in every round.
#[test]
fn threads_of_every_round() {
    let program = Program { cause: TouchCause::Loop, declared: "", allocates: "", touches: "table[i] = i;", uses: "s += table[i];" };
    let fix_of = |rounds: u64| {
        // The users of each round are born when those of the round before end.
        let length = 9 * S / rounds;
        let round = |r: u64| Thing {
            from: S + r * length,
            until: S + (r + 1) * length - 2 * MS,
            user: Who::Block(1 + 4 * r as usize, 4),
            touch: (r == 0).then_some(Who::One(0)),
            address: Some(0x7000_0000_0000),
            ..Thing::new("table", 64, Who::One(0), Who::One(0))
        };
        let mut world = World::new(1, (0..rounds).map(round).collect());
        for r in 0..rounds {
            world.threads.extend((0..4).map(|t| (S + r * length + t, Some(S + (r + 1) * length - MS))));
        }
        let mut profile = world.profile(3);
        // All rounds use one object.
        profile.objects.truncate(1);
        profile.windows.iter_mut().for_each(|window| window.object = 0);
        profile.accesses.iter_mut().for_each(|access| access.site = Some(2000));
        for frame in profile.sites.values_mut().flat_map(|site| &mut site.frames) {
            (frame.module, frame.function) = (Some("/home/me/pt".into()), Some("work".into()));
        }
        let found = analyse(&profile, &target(2), &program);
        found.findings.first().unwrap_or_else(|| panic!("{rounds} rounds: {:?}", found.objects)).fix.clone()
    };
    let (once, often) = (fix_of(1), fix_of(4));
    assert!(
        once.starts_with("let each thread initialise its own part of table in its thread function (work(), or what calls it)"),
        "{once}"
    );
    assert!(often.contains("run it once, before the first of them") && often.contains("17 threads"), "{often}");
    assert!(!often.contains("in its thread function"), "{often}");
}
