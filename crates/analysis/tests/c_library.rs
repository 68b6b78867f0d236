//! Calls of libfirsttouch in C programs whose parallel regions have teams of a given size.

use crate::simulated::*;
use firsttouch_analysis::{LibraryFix, analyse};

/// The call for an array that one thread touched and four use, in a loop with this directive.
fn library(directive: &str, locals: &str) -> LibraryFix {
    let text = format!(
        "#include <stdlib.h>\ndouble sum(const double *a, long n, int team) {{\n    double s = 0;\n    {directive}\n    for (long i = 0; i < n; i++)\n        s += a[i]; \
         // use\n    return s;\n}}\nint main(void) {{\n    long n = 1 << 23;\n    {locals}\n    double *a = malloc(n * 8); // make\n    for (long i = 0; i < n; i++)\n        a[i] = next(); // touch\n    \
         return sum(a, n, 4) > 0;\n}}\n"
    );
    let mut thing = Thing::new("a", 64, Who::One(0), Who::Block(0, 4));
    (thing.call, thing.site) = ("malloc", 100);
    let mut profile = World::new(4, vec![thing]).profile(3);
    let line = |mark: &str| text.lines().position(|line| line.ends_with(mark)).unwrap() as u32 + 1;
    for (id, frame) in profile.sites.values_mut().flat_map(|site| site.frames.iter_mut().map(|frame| (site.id, frame))) {
        frame.file = Some("/src/main.c".into());
        frame.line = Some(if id >= 2000 {
            line("// use")
        } else if id >= 1000 {
            line("// touch")
        } else {
            line("// make")
        });
        frame.module = Some("/usr/lib/libgomp.so.1".into());
    }
    analyse(&profile, &target(2), &Program(text)).findings.into_iter().next().unwrap().library.expect("a call of the library")
}

/// Check that the team which joins, and the number of parts, are those of the region that uses the array: parts of a default team belong to other
/// threads.
#[test]
fn teams_of_a_given_size() {
    for (directive, locals, parts, join) in [
        ("#pragma omp parallel for reduction(+ : s)", "", "ft_blocked(0)", "ft_team_openmp(0) once before;"),
        ("#pragma omp parallel for reduction(+ : s) num_threads(4)", "", "ft_blocked(4)", "in a parallel region with num_threads(4);"),
        // `team` has no meaning where the memory is made: four threads used it.
        (
            "#pragma omp parallel for reduction(+ : s) num_threads(team)",
            "",
            "ft_blocked(4)",
            "in a parallel region with num_threads(team);",
        ),
        ("#pragma omp parallel for num_threads(T)", "enum { T = 4 };", "ft_blocked(", "in a parallel region with num_threads(T);"),
    ] {
        let library = library(directive, locals);
        assert!(library.text.contains(parts), "{directive}: {}", library.text);
        assert!(library.needs.contains(join), "{directive}: {}", library.needs);
        assert_eq!(library.needs.contains("ft_team_openmp"), !directive.contains("num_threads"), "{}", library.needs);
    }
}
