//! Fixes for arrays that NumPy fills in one thread.
//!
//! First touch helps only if one thread has a part from its first write to its last use. A pool of Python's (`Executor.map`) hands each call to
//! whichever thread is free, so the fix numbers the threads.

use super::super::{Case, Context};
use super::at;
use crate::PartitionKind;
use crate::names::base;
use crate::python_package::package;
use crate::source_code::describe;
use firsttouch_model::TouchCause;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::generated_code::is_generated;
use firsttouch_model::rows::Frame;

/// What a fix can do where no change of the user's own source can divide the first touch.
const SPREAD: &str =
    "spread the pages of the program over the nodes: firsttouch run --interleave all -- CMD (all its memory, the well-placed as well)";
const POOLS: &str = "A pool (concurrent.futures, multiprocessing.pool) hands each call to whichever thread is free, so map() and submit() do not \
                     keep part and thread together";
const BLAS: &[&str] = &["openblas", "libmkl_", "libblis", "libatlas", "libflexiblas"];

/// Who can give each thread its part.
#[derive(Debug, PartialEq)]
enum Reach {
    /// The user's own source.
    Source,
    /// A parallel loop of Numba.
    Numba,
    /// No source of the user's: the array is made by this package, at this line.
    Package(String, String),
    /// It is used in a BLAS, which has threads of its own.
    Blas(String),
}

/// How the source makes an array, and so how its values come into the parts.
#[derive(Debug, PartialEq)]
enum Made {
    /// This function writes nothing: something else fills the array afterwards.
    Untouched(&'static str),
    /// All elements have this value.
    Constant(String),
    /// A random stream has one order: its values cannot be drawn in parts.
    Random,
    Computed,
}

pub(super) fn numpy(context: &Context<'_>, case: &Case<'_>) -> String {
    let name = case.view.name.as_str();
    let touched = touch(case);
    match reach(context, case) {
        Reach::Package(package, line) => {
            format!(
                "{package} makes this array itself ({line}): where it can take an array of yours without a copy, let each of your threads fill its part of \
                 that first; else {SPREAD}"
            )
        }
        Reach::Blas(library) => format!(
            "{library} uses {name}. If its own threads do (OPENBLAS_NUM_THREADS, MKL_NUM_THREADS, OMP_NUM_THREADS above 1), a program cannot say \
             which of them gets which part: {SPREAD}. If your threads call it, each with a part of its own, let each write its part first"
        ),
        Reach::Numba => {
            let (module, is_imported) = numba_of(context, case);
            for_numba(name, &touched, &made_by(case), (&module, is_imported))
        }
        Reach::Source => {
            let array = if is_element(case) { THE_ARRAY } else { in_code(name) };
            for_threads((name, array), &touched, &made_by(case), case.view.partition == PartitionKind::Block)
        }
    }
}

/// Whether no change of the user's source divides the first touch.
pub(super) fn is_out_of_reach(context: &Context<'_>, kind: FindingKind, case: &Case<'_>) -> bool {
    let is_numpy = kind == FindingKind::SerialFirstTouch && case.view.first_touch.cause == Some(TouchCause::Numpy);
    is_numpy && case.group.processes() == 1 && matches!(reach(context, case), Reach::Package(..) | Reach::Blas(_))
}

/// For an array that several threads touched, each other parts than it uses.
pub(super) fn same_thread(name: &str, used: &str) -> String {
    format!(
        "let each thread initialise the part of {name} that it uses{used}, and keep it: number the threads, and let thread i take part i both times. \
         {POOLS}; threading.Thread with a number does"
    )
}

fn reach(context: &Context<'_>, case: &Case<'_>) -> Reach {
    if let Some((package, line)) = package(context.places.frames(case.object.site)) {
        return Reach::Package(package, line);
    }
    let modules = || case.view.used_at.iter().filter_map(|place| place.module.as_deref());
    if let Some(library) = modules().next().map(base).filter(|name| BLAS.iter().any(|part| name.contains(part))) {
        return Reach::Blas(library.to_owned());
    }
    let of_numba = |frame: &Frame| [&frame.file, &frame.module].into_iter().flatten().any(|path| path.contains("/numba/"));
    let mut sites = context.profile.sites.values().filter(|site| site.process == case.object.process);
    let is_numba = modules().any(is_generated) && sites.any(|site| site.frames.iter().any(of_numba));
    if is_numba { Reach::Numba } else { Reach::Source }
}

fn made_by(case: &Case<'_>) -> Made {
    let text = case.view.allocated_at.as_ref().and_then(|place| place.text.as_deref()).unwrap_or_default();
    let function = case.view.first_touch.at.first().and_then(|place| place.function.as_deref()).unwrap_or_default();
    let made = made(value(statement(text, &case.view.name), &case.view.name), function);
    // numpy.zeros calls calloc: memory of malloc that is full of zeros was filled by something else.
    let is_other = made == Made::Untouched("numpy.zeros") && case.view.call.as_deref() == Some("malloc");
    if is_other { Made::Computed } else { made }
}

/// The statement of a line that assigns the array; the whole line if it shows none.
fn statement<'t>(line: &'t str, name: &str) -> &'t str {
    let assigns = |text: &&str| text.split_once('=').is_some_and(|(left, _)| left.split(',').any(|one| one.trim() == name));
    let code = line.split(" #").next().unwrap_or(line);
    code.split(';').find(assigns).unwrap_or(code)
}

/// The value in a statement that assigns several at once (`a, b = np.zeros(n), np.ones(n)`); else the whole statement.
fn value<'t>(statement: &'t str, name: &str) -> &'t str {
    let assigned = statement.split_once('=').filter(|(left, _)| left.contains(','));
    let Some((left, right)) = assigned else { return statement };
    let (names, values) = (parts(left), parts(right));
    let at = names.iter().position(|one| one.trim() == name).filter(|_| names.len() == values.len());
    at.map_or(statement, |at| values[at])
}

/// The parts of a text between the commas that are in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let is_border = |c: char| {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        c == ',' && depth == 0
    };
    text.split(is_border).collect()
}

/// Functions of NumPy that make an array.
const MAKERS: [&str; 8] = ["empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like"];

fn made(statement: &str, touched_in: &str) -> Made {
    let calls = |name: &str| statement.contains(&format!("{name}("));
    // Of several, it is not known which made the array: what keeps its values is right for each.
    let makers = MAKERS.iter().map(|name| statement.matches(&format!("{name}(")).count()).sum::<usize>();
    match () {
        () if makers > 1 => Made::Computed,
        () if touched_in.contains("random") || statement.contains("random") || statement.contains("rng.") => Made::Random,
        () if ["empty", "empty_like"].into_iter().any(calls) => Made::Untouched("numpy.empty"),
        () if calls("zeros") => Made::Untouched("numpy.zeros"),
        () if calls("zeros_like") => Made::Constant("0".to_owned()),
        () if ["ones", "ones_like"].into_iter().any(calls) => Made::Constant("1".to_owned()),
        () => constant(statement).map_or(Made::Computed, Made::Constant),
    }
}

/// The number in `numpy.full(n, 1.5)`.
fn constant(statement: &str) -> Option<String> {
    let (_, rest) = statement.split_once(".full(")?;
    let value = rest.rsplit_once(')')?.0.rsplit(',').find(|one| !one.contains('='))?.trim();
    value.parse::<f64>().is_ok().then(|| value.to_owned())
}

/// Whether the variable holds the array in a list, a dictionary or a tuple.
fn is_element(case: &Case<'_>) -> bool {
    let text = case.view.allocated_at.as_ref().and_then(|place| place.text.as_deref()).unwrap_or_default();
    is_in_container(text, &case.view.name)
}

fn is_in_container(line: &str, name: &str) -> bool {
    let statement = statement(line, name);
    let value = value(statement, name);
    let value = if value == statement { statement.split_once('=').map_or("", |(_, value)| value) } else { value };
    value.trim_start().starts_with(['[', '{', '('])
}

/// `array`: what it is called in code. `is_block`: each thread's part is one block of the memory, so a slice of the first axis.
fn for_threads((name, array): (&str, &str), touched: &str, made: &Made, is_block: bool) -> String {
    let (what, value) = match made {
        Made::Untouched(function) => (
            format!(
                "{function} writes nothing, but then one thread fills {name}{touched}: let each thread write its own part of it before that, directly \
                 after the allocation"
            ),
            "0".to_owned(),
        ),
        Made::Constant(value) => (
            format!(
                "NumPy fills {name} in one thread{touched}: allocate it with numpy.empty (same shape and dtype), and let each thread write its own \
                 part of it, before it works on that part"
            ),
            value.clone(),
        ),
        Made::Random => (
            format!(
                "NumPy fills {name} in one thread{touched}, and the values of a random stream have an order, so they cannot be drawn in parts: \
                 {} (generators of their own, one a thread, with out=, would draw other values)",
                copied(array)
            ),
            "made[part]".to_owned(),
        ),
        Made::Computed => {
            (format!("NumPy fills {name} in one thread{touched}: {}, which keeps its values", copied(array)), "made[part]".to_owned())
        }
    };
    let lines = of_threads(array, &value, matches!(made, Made::Untouched(_)), is_block);
    let called = if array == THE_ARRAY && name != THE_ARRAY { format!(", and {THE_ARRAY} for the array") } else { String::new() };
    format!(
        "{what}. One thread must have a part from its first write to its last use, so number the threads. {POOLS}. With Barrier and Thread of \
         threading, T threads{called}:\n{lines}"
    )
}

/// `module`: what the file calls Numba, and whether it imports it.
fn for_numba(name: &str, touched: &str, made: &Made, (module, is_imported): (&str, bool)) -> String {
    let what = match made {
        Made::Constant(_) => "allocate it with numpy.empty (same shape and dtype), and write its values".to_owned(),
        Made::Untouched(function) => format!("{function} writes nothing: before it is filled, write it"),
        Made::Random | Made::Computed => {
            format!("let made be the array as it is, allocate {name} with numpy.empty_like(made), and copy it")
        }
    };
    let array = shown_as(name);
    let value = match made {
        Made::Constant(value) => value,
        Made::Untouched(_) => "0",
        Made::Random | Made::Computed => "made[k]",
    };
    let more = if value == "made[k]" { ", made" } else { "" };
    let import = if is_imported { "" } else { "  import numba\n" };
    format!(
        "one thread fills {name}{touched}, and code that Numba makes uses it: {what} in a prange loop with the bounds of the one that uses it. Numba \
         then gives each thread the same part in both, if its threading layer is omp or workqueue (NUMBA_THREADING_LAYER); with tbb, threads may \
         take parts of others:\n{import}  @{module}.njit(parallel=True)\n  def fill_{array}({array}{more}):\n      for k in \
         {module}.prange({array}.shape[0]):\n          {array}[k] = {value}\n  fill_{array}({array}{more})"
    )
}

/// What the file of a line calls Numba, and whether it imports it under a name: `nb` of `import numba as nb`.
fn numba_of(context: &Context<'_>, case: &Case<'_>) -> (String, bool) {
    let places = case.view.allocated_at.iter().chain(&case.view.first_touch.at);
    let line = |path: &str, line: u32| context.places.sources.line(path, line);
    let imported = places.filter_map(|place| place.file.as_deref()).find_map(|path| {
        (1..=MOST_HEAD).map_while(|number| line(path, number)).find_map(|text| imported_as(&text, "numba").map(str::to_owned))
    });
    imported.map_or_else(|| ("numba".to_owned(), false), |name| (name, true))
}

/// The name that a statement imports a module under.
fn imported_as<'t>(text: &'t str, module: &str) -> Option<&'t str> {
    let code = text.split('#').next()?.trim();
    code.strip_prefix("import ")?.split(',').find_map(|one| match one.split_whitespace().collect::<Vec<_>>()[..] {
        [name] if name == module => Some(name),
        [name, "as", other] if name == module => Some(other),
        _ => None,
    })
}

fn copied(array: &str) -> String {
    format!("let made be the array as it is, {array} = numpy.empty_like(made), and let each thread copy its own part")
}

/// The lines of a thread that keeps its part.
fn of_threads(array: &str, value: &str, is_filled_later: bool, is_block: bool) -> String {
    let (count, then) = if is_filled_later {
        ("T + 1", format!("\n      ready.wait()  # the main thread waits, fills {array},\n      ready.wait()  # and waits again"))
    } else {
        ("T", "\n      ready.wait()".to_owned())
    };
    let part = if is_block {
        format!("slice(i * len({array}) // T, (i + 1) * len({array}) // T)")
    } else {
        format!("...  # the index of what thread i works on, as {array}[part]")
    };
    format!(
        "  def work(i):\n      part = {part}\n      {array}[part] = {value}{then}\n      \
         ...  # all work on {array}[part]\n  ready = Barrier({count})\n  threads = [Thread(target=work, args=[i]) for i in range(T)]"
    )
}

/// Names that the lines use themselves.
const OWN: &[&str] = &["work", "i", "k", "part", "ready", "threads", "T", "made", "fill", "numba", "slice", "range", "len"];

/// Lines of a Python file in which its imports begin.
const MOST_HEAD: u32 = 200;

/// An array that has no name in code.
const THE_ARRAY: &str = "a";

/// The name of a variable or an attribute in code; [`THE_ARRAY`] if it is not one that these lines can use.
fn in_code(name: &str) -> &str {
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_') && !part.starts_with(char::is_numeric);
    let is_own = name.split('.').next().is_some_and(|first| OWN.contains(&first));
    if name.split('.').all(is_name) && !is_own { name } else { THE_ARRAY }
}

/// The name of a parameter for it.
fn shown_as(name: &str) -> &str {
    if name.contains('.') { THE_ARRAY } else { in_code(name) }
}

/// ` (a.py:8)`, or the function if no line is known; empty if neither is.
fn touch(case: &Case<'_>) -> String {
    let place = case.view.first_touch.at.first();
    let function = place.filter(|place| place.line.is_none()).and_then(|place| place.function.as_ref()).map(|_| place);
    function.flatten().map_or_else(|| at(place), |place| format!(" ({})", describe(place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check how the statement that makes an array is read; what is not certain is computed.
    #[test]
    fn statements() {
        let constant = |value: &str| Made::Constant(value.to_owned());
        for (line, name, touched_in, expected) in [
            ("a = np.ones(n)", "a", "", constant("1")),
            ("f = np.full(N, 3.0)           # main touches", "f", "", constant("3.0")),
            ("f = np.full((n, n), -1, dtype=np.int32)", "f", "", constant("-1")),
            ("f = np.full(n, x)", "f", "", Made::Computed),
            ("C = np.empty((2500, 2500))", "C", "cblas_matrixproduct", Made::Untouched("numpy.empty")),
            ("z = np.zeros(n)", "z", "", Made::Untouched("numpy.zeros")),
            ("z = np.zeros_like(y)", "z", "", constant("0")),
            ("r = np.random.rand(N)", "r", "", Made::Random),
            ("r = rng.normal(size=n)", "r", "", Made::Random),
            ("r = draw(n)", "r", "random_standard_uniform_fill", Made::Random),
            ("a = np.empty(n); b = np.ones(n)", "b", "", constant("1")),
            ("acc, src = np.zeros(n), np.ones(n)", "src", "", constant("1")),
            ("acc, src = np.zeros((n, 2)), np.full((n, 2), 7.5)", "src", "", constant("7.5")),
            ("acc, src = np.zeros(n), np.ones(n)", "acc", "", Made::Untouched("numpy.zeros")),
            ("src, acc = make(np.ones(n), np.zeros(n))", "src", "", Made::Computed),
            ("pair = [np.zeros(n), np.full(n, 5.0)]", "pair", "", Made::Computed),
            ("f = [np.full(n, 3.0) for _ in range(4)]", "f", "", Made::Computed),
            ("a = np.empty(n); b = np.arange(n)", "b", "", Made::Computed),
            ("a = np.ones(n)  # not random", "a", "", constant("1")),
            ("c = np.sin(np.arange(n))", "c", "", Made::Computed),
            ("", "a", "", Made::Computed),
        ] {
            assert_eq!(made(value(statement(line, name), name), touched_in), expected, "{line}");
        }
    }

    /// Check which variables hold the array in a container, and what it is called in code.
    #[test]
    fn names_in_code() {
        for (line, name, expected) in [
            ("d = {\"k\": np.full(N, 2.5)}", "d", true),
            ("lst = [np.full(n, 1.0) for k in range(4)]", "lst", true),
            ("x = 1; pair = (np.ones(n), np.ones(n))", "pair", true),
            ("a = np.ones(n)", "a", false),
            ("a, b = np.zeros(n), [np.ones(n)]", "a", false),
            ("a, b = np.zeros(n), [np.ones(n)]", "b", true),
            ("", "a", false),
        ] {
            assert_eq!(is_in_container(line, name), expected, "{line}");
        }
        assert_eq!(["box.field", "part", "part.x", "x y", "self.u[k]", "_a"].map(in_code), ["box.field", "a", "a", "a", "a", "_a"]);
        let element = for_threads(("d", THE_ARRAY), "", &Made::Constant("2.5".into()), true);
        assert!(element.contains("T threads, and a for the array:\n") && element.contains("a[part] = 2.5"), "{element}");
    }

    /// Check the words: what keeps the values, what binds a part to its thread, and no advice that the source follows already.
    #[test]
    fn words() {
        let values = for_threads(("r", in_code("r")), " (a.py:4)", &Made::Random, true);
        assert!(values.contains("cannot be drawn in parts") && values.contains("r = numpy.empty_like(made)"), "{values}");
        assert!(values.contains("\n      r[part] = made[part]\n      ready.wait()\n"), "{values}");
        assert!(["map() and submit() do not", "whichever thread is free"].iter().all(|text| values.contains(text)), "{values}");
        let empty = for_threads(("C", in_code("C")), "", &Made::Untouched("numpy.empty"), true);
        assert!(!empty.contains("allocate it with") && empty.contains("numpy.empty writes nothing"), "{empty}");
        // The lines have a `part` of their own.
        assert!(for_threads(("part", in_code("part")), "", &Made::Constant("2".into()), true).contains("\n      a[part] = 2\n"));
        let unnamed = "heap object of x (a.py:1)";
        assert!(for_threads((unnamed, in_code(unnamed)), "", &Made::Constant("2".into()), true).contains("\n      a[part] = 2\n"));
        assert!(for_threads((unnamed, in_code(unnamed)), "", &Made::Random, true).contains("as it is, a = numpy.empty_like(made)"));
        let elsewhere = for_threads(("F", in_code("F")), "", &Made::Constant("2".into()), false);
        assert!(elsewhere.contains("\n      part = ...  # the index of what thread i works on, as F[part]\n"), "{elsewhere}");
        let numba = for_numba("x", "", &Made::Constant("1".into()), ("nb", true));
        let lines = "\n  @nb.njit(parallel=True)\n  def fill_x(x):\n      for k in nb.prange(x.shape[0]):\n          x[k] = 1\n  fill_x(x)";
        assert!(numba.ends_with(lines) && !numba.contains("import"), "{numba}");
        let imports =
            ["import numba", "import numba as nb  # fast", "import numpy as np, numba as jit", "import numbers", "from numba import njit"];
        let found: Vec<Option<&str>> = imports.iter().map(|text| imported_as(text, "numba")).collect();
        assert_eq!(found, [Some("numba"), Some("nb"), Some("jit"), None, None]);
    }

    /// Check by the interpreter that the lines keep the values, whatever they are, and that the thread that writes a part first uses it.
    #[test]
    fn lines_run() {
        if std::process::Command::new("python3").arg("-c").arg("").output().is_err() {
            return;
        }
        for (made, before, after) in [
            (Made::Constant("2.5".into()), "", ""),
            (Made::Computed, "made = a; a = Array([None] * 10)", ""),
            (Made::Random, "made = a; a = Array([None] * 10)", ""),
            (Made::Untouched("numpy.empty"), "", "ready.wait(); a[slice(0, 10)] = expected; ready.wait()"),
        ] {
            let expected = if matches!(made, Made::Constant(_)) { "[2.5] * 10" } else { "[k * k for k in range(10)]" };
            let lines = for_threads(("a", in_code("a")), "", &made, true)
                .split_once('\n')
                .unwrap()
                .1
                .replace("      ...", "      used[i] = (get_ident(), a[part]) ");
            let code =
                format!("{PRELUDE}expected = {expected}\na = Array(expected)\n{before}\nif 1:\n{lines}\n{CHECK_STARTS}{after}\n{CHECK}");
            python(&code);
        }
        for made in [Made::Constant("2.5".into()), Made::Computed] {
            let (expected, arguments) = if made == Made::Computed { ("[k for k in range(10)]", "a, made") } else { ("[2.5] * 10", "a") };
            let text = for_numba("a", "", &made, ("numba", true));
            let lines = text.split_once('\n').unwrap().1;
            assert!(lines.ends_with(&format!("fill_a({arguments})")), "{lines}");
            python(&format!(
                "{PRELUDE}{NUMBA}expected = {expected}\nmade = expected\na = Array([None] * 10)\nif 1:\n{lines}\nassert a == expected, a\n"
            ));
        }
    }

    /// A list that a slice fills as NumPy's arrays are filled, so that the test needs no NumPy.
    const PRELUDE: &str = "from threading import Barrier, Thread, get_ident
class Array(list):
    shape = property(lambda self: (len(self),))
    def __setitem__(self, part, value):
        if isinstance(part, slice):
            wrote.setdefault((part.start, part.stop), get_ident())
            value = value if isinstance(value, list) else [value] * (part.stop - part.start)
        super().__setitem__(part, value)
wrote, used, T = {}, {}, 3
";
    const NUMBA: &str = "class numba:
    njit = staticmethod(lambda parallel: lambda function: function)
    prange = range
";
    const CHECK_STARTS: &str = "for one in threads: one.start()\n";
    const CHECK: &str = "for one in threads: one.join()
assert list(a) == list(expected), a
assert sorted(used) == [0, 1, 2] and len({thread for thread, _ in used.values()}) == 3
assert sum((part for _, (_, part) in sorted(used.items())), []) == list(expected), used
assert {wrote[i * 10 // T, (i + 1) * 10 // T] for i in range(T)} == {used[i][0] for i in range(T)}
for i in range(T): assert wrote[i * 10 // T, (i + 1) * 10 // T] == used[i][0]
";

    fn python(code: &str) {
        let output = std::process::Command::new("python3").arg("-c").arg(code).output().unwrap();
        assert!(output.status.success(), "{code}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}
