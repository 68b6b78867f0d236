//! Calls of the crate firsttouch-alloc in Rust programs.

use crate::simulated::*;
use firsttouch_analysis::{Finding, analyse};

/// The finding on an array `name` that one thread touched and these use.
fn finding(text: &str, name: &'static str, user: Who) -> Finding {
    let mut thing = Thing::new(name, 64, Who::One(0), user);
    (thing.call, thing.site) = ("malloc", 100);
    let mut profile = World::new(4, vec![thing]).profile(3);
    let made = text.lines().position(|line| line.contains("// @")).unwrap() as u32 + 1;
    let used = text.lines().position(|line| line.contains("work(")).map_or(made, |at| at as u32 + 1);
    for (id, frame) in profile.sites.values_mut().flat_map(|site| site.frames.iter_mut().map(|frame| (site.id, frame))) {
        frame.file = Some("/src/main.rs".into());
        frame.line = Some(if id >= 2000 { used } else { made });
        frame.module = Some("/home/me/program".into());
    }
    analyse(&profile, &target(2), &Program(text.to_owned())).findings.into_iter().next().unwrap()
}

/// The call's changes as text, relative to their indentation; empty without one.
fn call(text: &str, name: &'static str) -> String {
    finding(text, name, Who::Block(0, 4)).library.map_or_else(String::new, |library| library.text)
}

/// A program with these statements in `main`, and a division of `a` among four threads.
fn program(statements: &str, division: &str) -> String {
    format!("const THREADS: usize = 4;\n\nfn main() {{\n    let n = 1000;\n    {statements} // @\n    {division}\n}}\n")
}

const SCOPED: &str = "std::thread::scope(|scope| for part in a.chunks_mut(n / THREADS) { scope.spawn(|| work(part)); });";

const PARTITION: &str = "let partition = firsttouch_alloc::Partition::blocked().parts(THREADS);";

/// Check the call for each way in which a vector is made.
#[test]
fn ways_to_make_a_vector() {
    let after = |argument: &str, name: &str| {
        format!(
            "insert after main.rs:5:\n  {PARTITION}\n  if let Err(error) = firsttouch_alloc::place({argument}, &partition) {{\n      \
             eprintln!(\"{name}: {{error}}\");\n  }}"
        )
    };
    for statement in [
        "let mut a = vec![0.0f64; n];",
        "let mut a: Vec<f64> = vec![0.0; n * 2];",
        "let mut a = vec![0.0f64; n].into_boxed_slice();",
        "let mut a: Vec<f64> = (0..n).map(|i| i as f64).collect();",
        "let mut a: Box<[f64]> = (0..n).map(|i| { let x = i; x as f64 }).collect();",
        "let mut a = (0..n).map(|i| i as f64).collect::<Vec<f64>>();",
        "let mut a: Vec<u8> = text.to_vec();",
    ] {
        assert_eq!(call(&program(statement, SCOPED), "a"), after("&mut a", "a"), "{statement}");
    }
    for statement in ["let mut a = Vec::with_capacity(n);", "let mut a = Vec::<f64>::with_capacity(n);"] {
        assert_eq!(call(&program(statement, SCOPED), "a"), after("a.spare_capacity_mut()", "a"), "{statement}");
    }
    assert_eq!(call(&program("self.grid.a = vec![0.0; n];", SCOPED), "self.grid.a"), after("&mut self.grid.a", "self.grid.a"));
    // The change makes it mutable.
    let expected = format!("in place of main.rs:5:\n  let mut a: Vec<f64> = b.clone(); // @\nand {}", after("&mut a", "a"));
    assert_eq!(call(&program("let a: Vec<f64> = b.clone();", SCOPED), "a"), expected);
}

/// Check that the call for a vector that grows comes after the loop that fills it, and not within one that uses it.
#[test]
fn vectors_that_grow() {
    let program = |before: &str, fill: &str, after: &str| {
        format!("const THREADS: usize = 4;\nfn main() {{\n    {before}\n{fill}\n    {after}\n    {SCOPED}\n}}\n")
    };
    let lines =
        |text: &str| finding(text, "a", Who::Block(0, 4)).library.map(|library| (library.edits[0].line, library.edits[0].text.join("\n")));
    let (made, loops) =
        ("let mut a = Vec::new();", "    for i in 0..n {\n        for j in 0..n {\n            a.push(1.0); // @\n        }\n    }");
    let (line, text) = lines(&program(made, loops, "")).unwrap();
    assert!(
        line == 8 && text.starts_with(&format!("    {PARTITION}\n    if let Err(error) = firsttouch_alloc::place(&mut a, &partition)")),
        "{text}"
    );
    assert_eq!(lines(&program("let mut a: Vec<f64> = vec![];", "    a.extend(values); // @", "")).map(|(line, _)| line), Some(4));
    for (before, fill) in [
        ("let mut a = Grid::new();", loops),
        ("let mut a: Vec<Vec<f64>> = Vec::new();", loops),
        (made, "    if x {\n        a.push(1.0); // @\n    }"),
        (made, "    b.a.push(1.0); // @"),
        (made, "    loop {\n        a.push(1.0); // @\n        work(&mut a);\n    }"),
        ("", "    for i in 0..n {\n        a.push(1.0); // @\n    }"),
    ] {
        assert_eq!(lines(&program(before, fill, "")), None, "{before} {fill}");
    }
    // The object is the element.
    let (line, text) = lines(&program(made, "    for i in 0..n {\n        a.push(vec![0.0; n]); // @\n    }", "")).unwrap();
    assert!(line == 5 && text.starts_with("        a.push({\n            let mut a = vec![0.0; n];\n"), "{text}");
}

/// Check the call in a longer expression, whose parts are evaluated as before.
#[test]
fn within_an_expression() {
    for (statement, name, before, vector, after) in [
        ("let a = Arc::new(vec![0.0f64; n]);", "a", "let a = Arc::new({", "vec![0.0f64; n]", "}); // @"),
        ("Grid { data: vec![0; n], n }", "grid.data", "Grid { data: {", "vec![0; n]", "}, n } // @"),
    ] {
        let own = name.rsplit('.').next().unwrap();
        let expected = format!(
            "in place of main.rs:5:\n  {before}\n      let mut {own} = {vector};\n      {PARTITION}\n      \
             if let Err(error) = firsttouch_alloc::place(&mut {own}, &partition) {{\n          eprintln!(\"{own}: {{error}}\");\n      }}\n      \
             {own}\n  {after}"
        );
        assert_eq!(call(&program(statement, SCOPED), name), expected, "{statement}");
    }
}

/// Check that there is no call where the source does not show the object's memory.
#[test]
fn nothing_is_made_up() {
    for statement in [
        "let mut a = make(n);",
        "let mut b = vec![0.0; n];",
        "let (mut a, mut b) = (vec![0.0; n], vec![1.0; n]);",
        "let mut a = vec![vec![0.0; n]; n];",
        "let mut a: Vec<Vec<f64>> = (0..n).map(|_| Vec::new()).collect();",
        "let mut a: Vec<f64> = read(vec![0u8; n]).iter().map(f).collect();",
        "let mut a: HashMap<u32, f64> = (0..n).map(f).collect();",
        "let mut a = vec![0.0, 1.0];",
        "let mut a = vec![0.0; n]; use_it(&mut a);",
        "let a = &mut vec![0.0; n];",
        "let a = Arc::new(vec![0.0; state.lock().unwrap().n]);",
        "a = vec![0.0; n];",
    ] {
        assert_eq!(call(&program(statement, SCOPED), "a"), "", "{statement}");
    }
    let inside = "macro_rules! make { ($n:expr) => { { let mut a = vec![0.0; $n]; // @\n a } } }\nfn main() { work(make!(9)); }\n";
    assert_eq!(call(inside, "a"), "");
}

/// Check that the number of threads is the program's own expression, and left out where it is not sure.
#[test]
fn number_of_threads() {
    let parts = |text: &str| {
        let call = call(text, "a");
        let (_, rest) = call.split_once("Partition::blocked()").unwrap_or_else(|| panic!("{text}: {call}"));
        rest.split(';').next().unwrap_or_default().to_owned()
    };
    let made = "let mut a = vec![0.0; n];";
    for (division, expected) in [
        ("for t in 0..THREADS { scope.spawn(|| work(t)); }", ".parts(THREADS)"),
        ("let all: Vec<_> = (0..THREADS).map(|t| thread::spawn(move || work(t))).collect();", ".parts(THREADS)"),
        ("for part in a.chunks(n.div_ceil(4)) { scope.spawn(|| work(part)); }", ".parts(4)"),
        ("use rayon::prelude::*; let pool = ThreadPoolBuilder::new().num_threads(THREADS); a.par_chunks_mut(n / 64);", ".parts(THREADS)"),
        ("let size = n.div_ceil(THREADS); for part in a.chunks_mut(size) { scope.spawn(|| work(part)); }", ".parts(THREADS)"),
        // Not the number that the run had.
        ("for part in a.chunks_mut(n / 8) { scope.spawn(|| work(part)); }", ""),
        // Two numbers.
        ("for part in a.chunks_mut(n / 8) { for t in 0..THREADS { scope.spawn(|| work(part)); } }", ""),
        ("for t in 0..THREADS { work(t); }", ""),
        ("work(&mut a);", ""),
    ] {
        assert_eq!(parts(&program(made, division)), expected, "{division}");
    }
    let spawned = |head: &str, before: &str, after: &str| {
        format!(
            "fn run({head}) {{\n    {before}\n    {made} // @\n    {after}\n    for part in a.chunks_mut(n / workers) {{ s.spawn(|| work(part)); }}\n}}\n"
        )
    };
    for (text, expected) in [
        (spawned("n: usize, workers: usize", "", ""), ".parts(workers)"),
        (spawned("n: usize", "let workers = std::thread::available_parallelism().map_or(1, |n| n.get());", ""), ".parts(workers)"),
        (spawned("n: usize", "", "let workers = 4;"), ""),
        (spawned("n: usize", "let workers = 4;", "let workers = workers * 2;"), ""),
        (spawned("n: usize", "let mut workers = 4;", "workers = 2;"), ""),
        (spawned("n: usize", "{ let workers = 4; }", ""), ""),
        // Another function divides the work.
        (
            format!(
                "fn run(n: usize, workers: usize) {{\n    {made} // @\n}}\nfn sweep(workers: usize) {{ for t in 0..workers {{ spawn(t); }} }}\n"
            ),
            "",
        ),
        // A constant that `main` cannot name, and one of another type.
        (
            format!("mod of {{ const T: usize = 4; fn sweep() {{ for t in 0..T {{ spawn(t); }} }} }}\nfn run() {{\n    {made} // @\n}}\n"),
            "",
        ),
        (format!("const T: u32 = 4;\nfn run() {{\n    {made} // @\n    for t in 0..T {{ spawn(t); }}\n}}\n"), ""),
    ] {
        assert_eq!(parts(&text), expected, "{text}");
    }
}

/// Check that memory without owners is interleaved, and what the call needs: no team if nobody owns a part.
#[test]
fn without_owners() {
    let text = program("let mut a = vec![0.0; n];", SCOPED);
    let of = |user: Who| finding(&text, "a", user).library.unwrap();
    let (spread, divided) = (of(Who::Dynamic(0, 4, 1 << 16)), of(Who::Block(0, 4)));
    assert!(spread.interleaves() && spread.text.contains("let partition = firsttouch_alloc::Partition::interleaved();"), "{}", spread.text);
    for part in ["firsttouch-alloc = { path = \"bindings/rust\" }", "Partition::local()"] {
        assert!(spread.needs.contains(part) && divided.needs.contains(part), "{}", spread.needs);
    }
    assert!(divided.needs.contains("Team::default().join(THREAD, ") && !spread.needs.contains("join("), "{}", divided.needs);
}
