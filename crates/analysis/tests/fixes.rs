//! Fixes with the user's names and values, and for programs without OpenMP.

use crate::simulated::*;
use firsttouch_analysis::{Sources, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::Frame;

/// The source lines of one program that allocate, touch and use its array, and the cause of the first touch.
struct Program {
    cause: TouchCause,
    allocates: &'static str,
    touches: &'static str,
    uses: &'static str,
}

impl Sources for Program {
    fn line(&self, file: &str, line: u32) -> Option<String> {
        let text = match (file.split('.').next(), line) {
            (Some("alloc"), 110) => self.allocates,
            (Some("touch"), 20) => self.touches,
            (Some("use"), 30) => self.uses,
            _ => return None,
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
    let mut thing = Thing::new(name, 64, Who::One(0), Who::Block(0, 4));
    (thing.call, thing.site) = (call, 100);
    let mut profile = World::new(4, vec![thing]).profile(3);
    for frame in profile.sites.values_mut().flat_map(|site| &mut site.frames) {
        frame.file = frame.file.take().map(|file| format!("{}.{extension}", file.split('.').next().unwrap()));
        frame.module = module.map(str::to_owned);
    }
    analyse(&profile, &target(2), program).findings.first().unwrap().fix.clone()
}

/// Check that the code of a fix does the same as the user's line, with its names and values.
#[test]
fn names_and_values_are_the_users() {
    let lines = |cause, allocates, touches| Program { cause, allocates, touches, uses: "s = s + field(i, j)" };
    for (program, name, call, extension, expected) in [
        (
            lines(TouchCause::Memset, "", "memset(table, 1, len * sizeof *table);"),
            "table",
            "malloc",
            "c",
            "for (size_t i = 0; i < len; i++) memset(&table[i], 1, sizeof table[i]);",
        ),
        (
            lines(TouchCause::Calloc, "double *t = calloc(n + 1, sizeof *t);", ""),
            "t",
            "malloc",
            "c",
            "t = malloc((n + 1) * sizeof *t);\n  #pragma omp parallel for schedule(static)\n  \
             for (size_t i = 0; i < n + 1; i++) memset(&t[i], 0, sizeof t[i]);",
        ),
        (lines(TouchCause::Memcpy, "", "memcpy(c, b, n * sizeof *c);"), "c", "malloc", "c", "for (size_t i = 0; i < n; i++) c[i] = b[i];"),
        (
            lines(TouchCause::StdVector, "std::vector<double> x(n, 1.0);", ""),
            "x",
            "malloc",
            "cpp",
            "std::vector<double, untouched<double>> x(n);\n  #pragma omp parallel for schedule(static)\n  \
             for (size_t i = 0; i < x.size(); i++) x[i] = 1.0;",
        ),
        (
            lines(TouchCause::StdFill, "", "std::fill(data_, data_ + r * c, T(0));"),
            "data_",
            "malloc",
            "cpp",
            "for (size_t i = 0; i < r * c; i++) data_[i] = T(0);",
        ),
        (
            lines(TouchCause::MakeUnique, "auto v = std::make_unique<double[]>(n * n);", ""),
            "v",
            "malloc",
            "cpp",
            "std::unique_ptr<double[]> v(new double[n * n]);\n  #pragma omp parallel for schedule(static)\n  \
             for (size_t i = 0; i < n * n; i++) v[i] = 0;",
        ),
        (
            lines(TouchCause::FortranAssignment, "", "  field = 1.5d0"),
            "field",
            "malloc",
            "f90",
            "do j = 1, size(field, 2)\n    field(:, j) = 1.5d0\n  end do",
        ),
        (
            lines(TouchCause::FortranAssignment, "allocate(field(0:n))", "  field = other"),
            "field",
            "malloc",
            "f90",
            "replace it by a parallel loop, divided like the one that uses field",
        ),
        (
            lines(TouchCause::Loop, "", "for (int k = 0; k < m; k++) a[k] = k;"),
            "a",
            "malloc",
            "c",
            "\n  for (int k = 0; k < m; k++) a[k] = k;",
        ),
    ] {
        let fix = fix(&program, name, call, extension, Some("/usr/lib/libgomp.so.1"));
        assert!(fix.contains(expected), "{fix}\nlacks\n{expected}");
    }
}

/// Check that a fix invents nothing if the line does not show it: no `p`, no `n`, no value.
#[test]
fn nothing_is_made_up() {
    for cause in [
        TouchCause::Memset,
        TouchCause::Calloc,
        TouchCause::Memcpy,
        TouchCause::StdFill,
        TouchCause::MakeUnique,
        TouchCause::FortranAssignment,
        TouchCause::Loop,
    ] {
        let program = Program { cause, allocates: "", touches: "work(here);", uses: "" };
        let fix = fix(
            &program,
            "table",
            "malloc",
            if cause == TouchCause::FortranAssignment { "f90" } else { "cpp" },
            Some("/usr/lib/libgomp.so.1"),
        );
        assert!(!fix.contains('\n') && fix.contains("table"), "{cause}: {fix}");
    }
}

/// Check that the fix for a program without an OpenMP runtime uses the program's own threads.
#[test]
fn own_threads() {
    let program = Program { cause: TouchCause::Memset, allocates: "", touches: "memset(table, 1, n * 4);", uses: "s += table[i];" };
    let fix = fix(&program, "table", "malloc", "c", Some("/home/me/pt"));
    assert!(!fix.contains("#pragma"), "{fix}");
    assert!(fix.starts_with("let each thread initialise its own part of table in its thread function main()"), "{fix}");
    assert!(!fix.contains("[lo]"), "its bounds are not known: {fix}");
}
