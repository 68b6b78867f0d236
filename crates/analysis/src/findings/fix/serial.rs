//! The fix for `serial-first-touch`. It depends on the construct that touched the memory, the language, and what divides the program's
//! work.

use super::lines::{arguments, bounds, elements, fortran_value, is_name, vector};
use super::{ThreadTeam, at, code};
use crate::findings::text::loop_after_call;
use crate::findings::{Case, Context};
use crate::names::{Language, in_code};
use crate::{CodeLocation, PartitionKind};
use firsttouch_model::TouchCause;

const PARALLEL_FOR: &str = "#pragma omp parallel for schedule(static)";

/// An allocator with which std::vector leaves numbers uninitialised.
const UNTOUCHED: &str = "template <class T> struct untouched : std::allocator<T> {\n  \
     template <class U> struct rebind { using other = untouched<U>; };\n  \
     template <class U> void construct(U *p) { ::new (p) U; }\n};";

pub(super) fn serial(context: &Context<'_>, case: &Case<'_>, language: Option<Language>) -> String {
    let name = case.view.name.as_str();
    if case.subject.partition.kind == PartitionKind::Single {
        return format!("let the thread that uses {name} allocate and initialise it");
    }
    if case.group.processes() > 1 {
        return format!(
            "let each process be the first to write the part of {name} that it uses{}; not one process all of it{}",
            at(used(case)),
            at(touch(case))
        );
    }
    let cause = case.view.first_touch.cause.unwrap_or(TouchCause::Unknown);
    let is_c = matches!(language, Some(Language::C | Language::Cpp));
    match (cause, language) {
        (TouchCause::Numpy, _) => format!(
            "NumPy fills {name} in one thread{}: allocate it with numpy.empty, and write the same values in the threads that use it, each its own \
             part (numpy.array_split)",
            at(touch(case))
        ),
        (_, Some(Language::Rust)) => format!(
            "initialise {name} in the threads that use it, each its own part, divided like the loop that uses it (threads of a pool \
             that steals work, as rayon's, come to the parts in any order): Vec::with_capacity touches nothing, and each thread writes its part of \
             spare_capacity_mut()"
        ),
        _ if context.team() == ThreadTeam::Own && language != Some(Language::Python) => by_threads(case, cause),
        (TouchCause::Calloc | TouchCause::Realloc, _) if is_c && loop_after_call(case.view).is_some() => format!(
            "write {name} first in the loop that uses it ({}){}",
            if cause == TouchCause::Calloc {
                "calloc itself touches nothing"
            } else {
                "or reserve all of it at once, so that realloc moves nothing"
            },
            code(&context.parallel_loop(case, language))
        ),
        (TouchCause::Calloc, _) if is_c => format!(
            "calloc clears {name} in one thread: allocate with malloc and clear it in a loop divided like the one that uses it{}",
            code(&calloc(case))
        ),
        (TouchCause::Memset, _) if is_c => format!(
            "memset runs in one thread{}: set {name} in a loop divided like the one that uses it{}",
            at(touch(case)),
            code(&memset(case))
        ),
        (TouchCause::Memcpy | TouchCause::Realloc, _) if is_c => format!(
            "{cause} runs in one thread{}: copy into {name} in a loop divided like the one that uses it, into memory nobody touched before{}",
            at(touch(case)),
            code(&memcpy(case))
        ),
        (TouchCause::StdVector, _) => format!(
            "std::vector fills {name} in one thread: give it an allocator that does not initialise, and fill it in a loop divided like \
             the one that uses it{}",
            code(&vector_code(case))
        ),
        (TouchCause::StdFill, _) => format!(
            "std::fill runs in one thread{}: set {name} in a loop divided like the one that uses it{}",
            at(touch(case)),
            code(&fill(case))
        ),
        (TouchCause::MakeUnique, _) => format!("{}{}", make_unique(case), code(&make_unique_code(case))),
        (TouchCause::FortranAssignment, _) => fortran(case),
        (_, None) => unnamed(case),
        _ => {
            let shown = context.parallel_loop(case, language);
            if context.may_depend(case, language) {
                format!(
                    "the rounds of the loop that initialises {name}{} may depend on each other, so that loop stays as it is: before it, let a \
                     parallel loop write {name} once, divided like the loop that uses it{}{}",
                    at(touch(case)),
                    at(used(case)),
                    code(&before(case))
                )
            } else if shown.is_empty() {
                format!(
                    "divide the loop that initialises {name}{} among the threads, like the one that uses it{}",
                    at(touch(case)),
                    at(used(case))
                )
            } else {
                format!("initialise {name} in parallel, divided like the loop that uses it{}", code(&shown))
            }
        }
    }
}

fn touch<'c>(case: &'c Case<'_>) -> Option<&'c CodeLocation> {
    case.view.first_touch.at.first()
}

fn used<'c>(case: &'c Case<'_>) -> Option<&'c CodeLocation> {
    case.view.used_at.first()
}

fn touch_line<'c>(case: &'c Case<'_>) -> &'c str {
    touch(case).and_then(|place| place.text.as_deref()).unwrap_or_default()
}

fn allocation_line<'c>(case: &'c Case<'_>) -> &'c str {
    case.view.allocated_at.as_ref().and_then(|place| place.text.as_deref()).unwrap_or_default()
}

/// A parallel loop that clears memory from malloc before the program's own loop writes it.
fn before(case: &Case<'_>) -> String {
    let name = in_code(&case.view.name);
    let count = allocated_elements(case).filter(|_| is_name(name) && name.chars().all(|c| c.is_alphanumeric() || c == '_'));
    count.map_or_else(String::new, |count| {
        format!("{PARALLEL_FOR}\nfor (size_t i = 0; i < {count}; i++) memset(&{name}[i], 0, sizeof {name}[i]);")
    })
}

/// For a program with its own threads: each thread initialises its own part.
fn by_threads(case: &Case<'_>, cause: TouchCause) -> String {
    let name = case.view.name.as_str();
    let at_touch = at(touch(case));
    let instead = match cause {
        TouchCause::Calloc if loop_after_call(case.view).is_none() => "allocate it with malloc: calloc clears it in one thread".to_owned(),
        TouchCause::Memset | TouchCause::Memcpy | TouchCause::StdFill => format!("leave out the {cause} in one thread{at_touch}"),
        TouchCause::StdVector => "use an allocator that does not initialise, since std::vector fills it in one thread".to_owned(),
        TouchCause::MakeUnique => make_unique(case),
        _ => format!("not all of it in one thread{at_touch}"),
    };
    let function = used(case).and_then(|place| place.function.as_deref()).map_or_else(String::new, |f| format!(" {f}()"));
    format!(
        "let each thread initialise its own part of {name} in its thread function{function}, with the bounds of the loop that uses it{}; {instead}. \
         Where a thread reads parts of others, wait until all are done (a barrier)",
        at(used(case))
    )
}

/// The number of elements that the allocating line requests.
pub(super) fn allocated_elements(case: &Case<'_>) -> Option<String> {
    elements(arguments(allocation_line(case), "malloc")?.first()?)
}

/// `p = malloc(...)` and a parallel loop that clears the memory.
fn calloc(case: &Case<'_>) -> String {
    let name = in_code(&case.view.name);
    let Some([count, size]) = arguments(allocation_line(case), "calloc").and_then(|list| <[String; 2]>::try_from(list).ok()) else {
        return String::new();
    };
    if !is_name(name) {
        return String::new();
    }
    let (count, size) = if count.starts_with("sizeof") { (size, count) } else { (count, size) };
    format!(
        "{name} = malloc({} * {size});\n{PARALLEL_FOR}\nfor (size_t i = 0; i < {count}; i++) memset(&{name}[i], 0, sizeof {name}[i]);",
        in_product(&count)
    )
}

/// Adds parentheses if the factor is a sum or another expression.
fn in_product(factor: &str) -> String {
    if factor.contains(['+', '-', '?', '<']) { format!("({factor})") } else { factor.to_owned() }
}

fn memset(case: &Case<'_>) -> String {
    match arguments(touch_line(case), "memset").as_deref() {
        Some([object, value, bytes]) if is_name(object) => {
            let loop_of =
                |count| format!("{PARALLEL_FOR}\nfor (size_t i = 0; i < {count}; i++) memset(&{object}[i], {value}, sizeof {object}[i]);");
            elements(bytes).map_or_else(String::new, loop_of)
        }
        _ => String::new(),
    }
}

fn memcpy(case: &Case<'_>) -> String {
    let line = touch_line(case);
    match arguments(line, "memcpy").or_else(|| arguments(line, "memmove")).as_deref() {
        Some([to, from, bytes]) if is_name(to) && is_name(from) => elements(bytes)
            .map_or_else(String::new, |count| format!("{PARALLEL_FOR}\nfor (size_t i = 0; i < {count}; i++) {to}[i] = {from}[i];")),
        _ => String::new(),
    }
}

/// The declaration with the allocator, and a parallel loop that writes the values of the old declaration.
fn vector_code(case: &Case<'_>) -> String {
    let name = in_code(&case.view.name);
    let lines = [allocation_line(case), touch_line(case)];
    let found = lines.iter().find_map(|line| vector(line, name)).filter(|_| is_name(name));
    match found {
        // The elements allocate memory themselves: the thread that will use an element creates it.
        Some(found) if found.element.contains("vector<") => found.value.map_or_else(String::new, |value| {
            let (element, size) = (found.element, found.size);
            format!(
                "std::vector<{element}> {name}({size});\n{PARALLEL_FOR}\nfor (size_t i = 0; i < {name}.size(); i++) {name}[i] = {value};"
            )
        }),
        Some(found) => {
            let (element, size) = (found.element, found.size);
            let value = found.value.unwrap_or_else(|| zero(&element));
            format!(
                "{UNTOUCHED}\nstd::vector<{element}, untouched<{element}>> {name}({size});\n{PARALLEL_FOR}\n\
                 for (size_t i = 0; i < {name}.size(); i++) {name}[i] = {value};"
            )
        }
        None => UNTOUCHED.to_owned(),
    }
}

/// The value of elements that are not given one.
fn zero(element: &str) -> String {
    let number = ["double", "float", "int", "long", "short", "char", "unsigned", "size_t", "bool"].iter().any(|n| element.contains(n));
    let plain = element.chars().all(|c| c.is_alphanumeric() || "_: ".contains(c));
    if number && plain { "0".to_owned() } else { format!("{element}()") }
}

fn fill(case: &Case<'_>) -> String {
    let list = arguments(touch_line(case), "fill_n").or_else(|| arguments(touch_line(case), "fill"));
    let [first, end, value] = list.as_deref().unwrap_or_default() else { return String::new() };
    if !is_name(first) || first.contains(['.', '(']) && first.contains("begin") {
        return String::new();
    }
    // `std::fill(a, a + n, v)`, `std::fill_n(a, n, v)`
    let count = match end.strip_prefix(first.as_str()).map(str::trim_start) {
        Some(rest) => rest.strip_prefix('+').map(str::trim),
        None => touch_line(case).contains("fill_n").then_some(end.as_str()),
    };
    count.map_or_else(String::new, |count| format!("{PARALLEL_FOR}\nfor (size_t i = 0; i < {count}; i++) {first}[i] = {value};"))
}

fn make_unique(case: &Case<'_>) -> String {
    format!(
        "std::make_unique clears {} in one thread: make it without, with new T[n] or std::make_unique_for_overwrite (C++20), and \
         initialise it in a loop divided like the one that uses it",
        case.view.name
    )
}

fn make_unique_code(case: &Case<'_>) -> String {
    let (name, line) = (in_code(&case.view.name), allocation_line(case));
    let Some((element, rest)) = line.split_once("make_unique<").and_then(|(_, rest)| rest.split_once("[]>")) else { return String::new() };
    let count = arguments(&format!("f{rest}"), "f").and_then(|list| list.into_iter().next()).filter(|count| !count.is_empty());
    let Some(count) = count.filter(|_| is_name(name)) else { return String::new() };
    // A member exists already.
    let is_declared = name.contains(['.', '>', '[', ':']) || line.trim_start().starts_with(name);
    let made = if is_declared {
        format!("{name}.reset(new {element}[{count}]);")
    } else {
        format!("std::unique_ptr<{element}[]> {name}(new {element}[{count}]);")
    };
    format!("{made}\n{PARALLEL_FOR}\nfor (size_t i = 0; i < {count}; i++) {name}[i] = {};", zero(element))
}

fn fortran(case: &Case<'_>) -> String {
    let name = case.view.name.as_str();
    let shown = fortran_value(touch_line(case), in_code(name)).and_then(|value| fortran_loop(case, &value)).unwrap_or_default();
    format!(
        "an array assignment runs in one thread{}: replace it by a parallel loop, divided like the one that uses {name}{}",
        at(touch(case)),
        code(&shown)
    )
}

/// A loop over the last dimension that sets `name`. The number of dimensions follows from the lines that allocate or use it.
pub(super) fn fortran_loop(case: &Case<'_>, value: &str) -> Option<String> {
    let name = Some(in_code(&case.view.name)).filter(|name| is_name(name))?;
    let uses = case.view.used_at.iter().filter_map(|place| place.text.as_deref());
    let bounds = std::iter::once(allocation_line(case)).chain(uses).find_map(|line| bounds(line, name))?;
    let rank = bounds.len();
    let from_one = |dimension: &str| if dimension.contains(':') { format!("lbound({name}, {rank})") } else { "1".to_owned() };
    let last = bounds.last()?;
    let allocated = case.view.allocated_at.as_ref().and_then(|place| place.text.as_deref()).is_some_and(|line| line.contains(':'));
    let first = if allocated { from_one(last) } else { "1".to_owned() };
    let end = if first == "1" { format!("size({name}, {rank})") } else { format!("ubound({name}, {rank})") };
    let index = ["i", "j", "k"].get(rank - 1).unwrap_or(&"l");
    let others = ":, ".repeat(rank - 1);
    Some(format!("!$omp parallel do schedule(static)\ndo {index} = {first}, {end}\n  {name}({others}{index}) = {value}\nend do"))
}

/// For an object whose source lines and language are unknown: where to look, and what to do for a better report.
fn unnamed(case: &Case<'_>) -> String {
    let place =
        |place: Option<&CodeLocation>| place.map_or_else(|| "a place that was not recorded".to_owned(), crate::source_code::describe);
    let (touch, used) = (place(touch(case)), place(used(case)));
    format!(
        "the code at {touch} writes it first, in one thread: divide that among the threads like the loop at {used}. A build with -g \
         would show the variable and both loops"
    )
}
