//! The fix for `serial-first-touch`. It depends on the construct that touched the memory, the language, and what divides the program's
//! work.

use super::container_fill::Fill;
use super::edit::Fix;
use super::runtime::ThreadTeam;
use super::{at, constructed, containers, fortran_arrays, numpy, parallel_loop, pretouch, replace, team};
use crate::findings::text::loop_after_call;
use crate::findings::{Case, Context};
use crate::names::Language;
use crate::partition::Order;
use crate::{CodeLocation, FixEdit, PartitionKind};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::ObjectKind;
use std::collections::BTreeSet;

/// The part of an object's accesses that a thread may make without being one of its users.
const STRAY: f64 = 0.01;

pub(super) fn serial(context: &Context<'_>, case: &Case<'_>, language: Option<Language>) -> Fix {
    let name = case.view.name.as_str();
    if case.subject.partition.kind == PartitionKind::Single {
        // A static array is there when the program begins.
        let allocate = if case.object.kind == ObjectKind::Static { "" } else { "allocate and " };
        return Fix::words(format!("let the thread that uses {name} {allocate}initialise it"));
    }
    if case.group.processes() > 1 && used_by_processes(context, case) < 2 {
        return Fix::words(format!(
            "let the threads that use {name}{} be the first to write it, each its own part; not another process all of it{}",
            at(used(case)),
            at(touch(case))
        ));
    }
    if case.group.processes() > 1 {
        return Fix::words(format!(
            "let each process be the first to write the part of {name} that it uses{}; not one process all of it{}",
            at(used(case)),
            at(touch(case))
        ));
    }
    let cause = case.view.first_touch.cause.unwrap_or(TouchCause::Unknown);
    match (cause, language) {
        (cause, _) if cause.is_population() => Fix::words(populated(case, cause)),
        (TouchCause::Numpy, _) => Fix::words(numpy::numpy(context, case)),
        (_, Some(Language::Rust)) => Fix::words(format!(
            "initialise {name} in the threads that use it, each its own part, divided like the loop that uses it (threads of a pool \
             that steals work, as rayon's, come to the parts in any order): Vec::with_capacity touches nothing, and each thread writes its part of \
             spare_capacity_mut()"
        )),
        (_, language) if grows_by_realloc(case) && language != Some(Language::Python) => Fix::words(regrown(case)),
        (TouchCause::Loop | TouchCause::Unknown, Some(Language::C | Language::Cpp | Language::Fortran))
            if let Some(words) = constructed::words(context, case) =>
        {
            Fix::words(words)
        }
        (TouchCause::MakeUnique, _) if let Some(words) = constructed::words_of_class(context, case) => Fix::words(words),
        _ if context.team(Some(case)) == ThreadTeam::Own && language != Some(Language::Python) => {
            Fix::words(by_threads(context, case, cause))
        }
        (_, None) => Fix::words(unnamed(case)),
        (_, Some(Language::Python)) => Fix::words(divide(case)),
        (_, Some(language)) => for_team(context, case, cause, language),
    }
}

/// Whether the memory grew while it was filled: then no loop goes through all of it that could be divided.
fn grows_by_realloc(case: &Case<'_>) -> bool {
    case.group.growth && case.object.call.as_deref() == Some("realloc")
}

fn regrown(case: &Case<'_>) -> String {
    format!(
        "{name} grows while one thread fills it, and realloc moves its pages along: allocate its final size at once, where that is known before, \
         and let the threads that use it initialise it, each the part that it uses{used}; else allocate new memory of that size once {name} is full, and let \
         the same threads copy it there",
        name = case.view.name,
        used = at(used(case)),
    )
}

/// The number of processes whose threads make more than strays of an object's accesses.
fn used_by_processes(context: &Context<'_>, case: &Case<'_>) -> usize {
    let used = case.subject.used_by.counting(|share| share.is_some_and(|share| share.value > STRAY));
    used.map(|(thread, _)| context.threads.list[thread].process).collect::<BTreeSet<_>>().len()
}

/// The kernel touched it in a call, for the thread that called.
fn populated(case: &Case<'_>, cause: TouchCause) -> String {
    let (name, place) = (case.view.name.as_str(), at(touch(case)));
    let then = format!("initialise {name} in the threads that use it, each its own part{}", at(used(case)));
    match cause {
        TouchCause::Mlock => format!(
            "mlock touches all of {name} in the thread that calls it{place}: {then}, and call mlock after that; or call mlock2 with MLOCK_ONFAULT, \
             which locks each page when a thread touches it"
        ),
        TouchCause::Mlockall => format!(
            "mlockall touches all memory in the thread that calls it, and with MCL_FUTURE in the thread that maps it{place}: {then}, and call \
             mlockall after that; or call it with MCL_ONFAULT too, which locks each page when a thread touches it"
        ),
        TouchCause::MadvPopulate => format!(
            "madvise with MADV_POPULATE_WRITE touches all of its range in the thread that calls it{place}: let each thread call it for its own part \
             of {name}, or leave it out and {then}"
        ),
        _ => format!("MAP_POPULATE makes mmap touch all of {name} in the thread that calls it{place}: leave it out, and {then}"),
    }
}

/// For a program with OpenMP.
fn for_team(context: &Context<'_>, case: &Case<'_>, cause: TouchCause, language: Language) -> Fix {
    let name = case.view.name.as_str();
    let at_touch = at(touch(case));
    if context.is_touched_in_region(case) {
        return within_region(context, case, cause);
    }
    // Chunks that are dealt out in turn: their size is not known here.
    if case.subject.partition.kind == PartitionKind::BlockCyclic && case.subject.arrays_in_mapping(case.object.kind).is_none() {
        return Fix::words(match case.subject.touch.serial_rows {
            Some(rows) => format!(
                "initialise those {rows} of the {} allocations of {name} in parallel too{at_touch}, with the schedule and chunk of the loop that uses \
                 them{}, if the rounds do not need each other; else {}",
                case.group.rows,
                at(used(case)),
                before_values(case, "such a loop")
            ),
            None => {
                format!("initialise {name} in parallel{at_touch}, with the schedule and chunk of the loop that uses it{}", at(used(case)))
            }
        });
    }
    if has_whole_allocations(case) && cause != TouchCause::StdVector && (fills_at_once(cause) || is_touched_elsewhere(case)) {
        return Fix::words(by_allocation(case));
    }
    if parallel_loop::is_used_backwards(case) {
        return backwards(context, case, cause, language);
    }
    let (words, edits) = match cause {
        TouchCause::Memset | TouchCause::Memcpy => (
            format!("{cause} runs in one thread{at_touch}: let all threads do it, each a part of {name}"),
            replace::replaced(context, case, cause),
        ),
        TouchCause::StdFill => (
            format!("std::fill runs in one thread{at_touch}: let all threads do it, each a part of {name}"),
            replace::replaced(context, case, cause),
        ),
        TouchCause::StdVector => {
            let fill = Fill::of(context, case);
            let by_rows = || parallel_loop::divided(context, case, language).filter(|_| fill == Fill::Rows);
            let by_vector = || containers::vector(context, case).filter(|_| !matches!(fill, Fill::DividedRows | Fill::Deque));
            (fill.words(case), by_vector().or_else(by_rows))
        }
        TouchCause::MakeUnique => (
            format!("std::make_unique clears {name} in one thread: leave it uninitialised, and let all threads clear it"),
            containers::unique(context, case),
        ),
        TouchCause::FortranAssignment => {
            let edits = fortran_arrays::shared(context, case);
            (fortran_arrays::words(context, case, &at_touch, edits.is_some()), edits)
        }
        TouchCause::Realloc if loop_after_call(case.view).is_none() => (
            format!(
                "realloc moves {name} along with its pages{at_touch}: reserve all of it at once, and initialise it in the threads that use it"
            ),
            None,
        ),
        TouchCause::Calloc if loop_after_call(case.view).is_none() => (
            format!("calloc clears {name} in one thread{at_touch}: allocate it with malloc, and clear it in the threads that use it"),
            None,
        ),
        _ => (
            format!("initialise {name} in parallel, divided like the loop that uses it{}", at(used(case))),
            parallel_loop::divided(context, case, language),
        ),
    };
    if let Some(edits) = edits {
        return Fix::with(format!("{words}{}", team::unsaid(context, case, &edits)), edits);
    }
    if let Some(edits) = placed_before(context, case, cause) {
        return first_touched(context, case, edits);
    }
    match cause {
        TouchCause::StdVector => Fix::words(format!("{words}{}", Fill::of(context, case).otherwise(case))),
        TouchCause::Memset
        | TouchCause::Memcpy
        | TouchCause::StdFill
        | TouchCause::MakeUnique
        | TouchCause::FortranAssignment
        | TouchCause::Realloc
        | TouchCause::Calloc => Fix::words(words),
        _ => Fix::words(format!("{}{}", divide(case), beside(context, case))),
    }
}

/// What to do where the code that initialises the object initialises others too, which are used in other parts; empty if it does not.
pub(super) fn beside(context: &Context<'_>, case: &Case<'_>) -> String {
    context.used_otherwise_at_touch(case).map_or_else(String::new, |others| {
        format!(
            ". The same code initialises {others}: initialise {} in a loop of its own, or that memory gets wrong places",
            case.view.name
        )
    })
}

/// For memory whose parts the threads take in another order than that of their numbers: a parallel loop over it in order would place each part wrong.
fn backwards(context: &Context<'_>, case: &Case<'_>, cause: TouchCause, language: Language) -> Fix {
    let (name, used) = (case.view.name.as_str(), at(used(case)));
    if let Some(edits) = parallel_loop::divided(context, case, language) {
        let words = format!("initialise {name} in parallel, divided like the loop that uses it{used}");
        return Fix::with(format!("{words}{}", team::unsaid(context, case, &edits)), edits);
    }
    if let Some(edits) = placed_before(context, case, cause) {
        return first_touched(context, case, edits);
    }
    let fill =
        || Some(Fill::of(context, case)).filter(|fill| cause == TouchCause::StdVector && matches!(fill, Fill::AtOnce | Fill::Appended(_)));
    if let Some((fill, edits)) = fill().and_then(|fill| Some((fill, containers::vector(context, case)?))) {
        return Fix::with(fill.words(case), edits);
    }
    let why = match case.subject.partition.order() {
        Order::Descending => format!(
            "The loop that uses it{used} gives the beginning of {name} to the threads with the last numbers, so let the loop that initialises it have the \
             same direction and subscripts: one that goes through {name} in order would place each part on another thread's node"
        ),
        _ => format!(
            "The threads take its parts{used} in another order than that of their numbers, so let each initialise the part that it takes there: a loop that \
             goes through {name} in order would place most parts on other threads' nodes"
        ),
    };
    let beside = beside(context, case);
    Fix::words(format!("initialise {name} in parallel{}, each thread the part that it uses. {why}{beside}", at(touch(case))))
}

/// Whether nearly each of several allocations is used by one thread alone: then a single allocation is not to be divided.
pub(super) fn has_whole_allocations(case: &Case<'_>) -> bool {
    let (rows, stride) = (case.group.rows, case.group.stride.max(4));
    let owner = |row: usize, quarter: u64| case.subject.partition.owner(row as u64 * stride + stride / 4 * quarter);
    let is_whole = |row: &usize| owner(*row, 1).is_some() && owner(*row, 1) == owner(*row, 3);
    rows > 1 && case.group.pool.is_none() && 4 * (0..rows).filter(is_whole).count() >= 3 * rows
}

/// Whether one statement fills an allocation, so that the loop over the allocations is around it.
fn fills_at_once(cause: TouchCause) -> bool {
    matches!(cause, TouchCause::Memset | TouchCause::Memcpy | TouchCause::StdFill | TouchCause::FortranAssignment)
}

/// Whether another function than the one that allocates writes an allocation first.
fn is_touched_elsewhere(case: &Case<'_>) -> bool {
    let function = |place: Option<&CodeLocation>| place.and_then(|place| place.function.clone());
    let (allocated, touched) = (function(case.view.allocated_at.as_ref()), function(touch(case)));
    allocated.is_some() && touched.is_some() && allocated != touched
}

fn by_allocation(case: &Case<'_>) -> String {
    format!(
        "each of the {rows} allocations of {name} is used by one thread: let that thread initialise all of it. Divide the loop over the allocations that \
         initialises them{touch} as the one that uses them{used}, with the same schedule, and not the initialisation of a single one",
        rows = case.group.rows,
        name = case.view.name,
        touch = at(touch(case)),
        used = at(used(case)),
    )
}

/// The change that places the pages before the program's own code writes them.
fn placed_before(context: &Context<'_>, case: &Case<'_>, cause: TouchCause) -> Option<Vec<FixEdit>> {
    let is_allocator = matches!(cause, TouchCause::Realloc | TouchCause::StdVector | TouchCause::MakeUnique)
        || (cause == TouchCause::Calloc && loop_after_call(case.view).is_none());
    if is_allocator { None } else { pretouch::pretouch(context, case) }
}

/// For memory that one thread initialises within a parallel region (`single`, `master`, a section, a task), where no loop can be divided anew.
fn within_region(context: &Context<'_>, case: &Case<'_>, cause: TouchCause) -> Fix {
    if let Some(edits) = placed_before(context, case, cause) {
        return first_touched(context, case, edits);
    }
    if let Some(words) = fortran_arrays::in_workshare(context, case) {
        return Fix::words(words);
    }
    if context.nests_regions(case) {
        return Fix::words(format!(
            "one thread of a team initialises {name} within a parallel region{touch}. The program nests parallel regions, so that a parallel loop there \
             has a team too: divide it like the loop that uses it{used}, with as many threads, if the rounds do not need each other; else {earlier}. Bind the threads (OMP_PROC_BIND=spread,close OMP_PLACES=cores): teams that \
             are made anew run anywhere else",
            name = case.view.name,
            touch = at(touch(case)),
            used = at(used(case)),
            earlier = before_values(case, "such a loop"),
        ));
    }
    let before = before_values(case, "a parallel loop outside of the region");
    let earlier = if context.is_allocated_in_region(case) { format!("allocate it before the region, and {before}") } else { before };
    Fix::words(format!(
        "one thread initialises {name} within a parallel region{touch}, where a parallel loop would have one thread only: let all threads of \
         the region initialise it, outside of single, master, sections and tasks, divided like the loop that uses it{used}, if the rounds do not \
         need each other; else {earlier}",
        name = case.view.name,
        touch = at(touch(case)),
        used = at(used(case)),
    ))
}

/// New memory whose pages all threads place before the program's own code writes it.
pub(super) fn first_touched(context: &Context<'_>, case: &Case<'_>, edits: Vec<FixEdit>) -> Fix {
    let others = context.used_otherwise_at_touch(case);
    let words = format!(
        "let all threads place the pages of {} directly after its allocation{}; the code that writes it{} stays as it is{}",
        case.view.name,
        team::unsaid(context, case, &edits),
        at(touch(case)),
        others.map_or_else(String::new, |others| format!(", because it also initialises {others}"))
    );
    Fix::with(words, edits)
}

/// Where it is not known how the code can be divided.
fn divide(case: &Case<'_>) -> String {
    format!(
        "let the threads that use {name}{used} be the first to write it, each its own part: divide the code that initialises it{touch} like the loop \
         that uses it, if its rounds do not need each other; else {before}",
        name = case.view.name,
        used = at(used(case)),
        touch = at(touch(case)),
        before = before_values(case, "a parallel loop"),
    )
}

/// A loop that places the pages before the program writes its values there, where the code that does cannot be divided. Memory from an allocator holds
/// no values, or zeros (calloc).
fn before_values(case: &Case<'_>, what: &str) -> String {
    match case.object.kind {
        ObjectKind::Static => format!(
            "let {what} write to each of its pages at the start of the program, before anything else does, what is there already: zero, where it has no \
             initial values"
        ),
        _ => format!("let {what} write a zero to each page directly after the allocation, before anything else is written there"),
    }
}

fn touch<'c>(case: &'c Case<'_>) -> Option<&'c CodeLocation> {
    case.view.first_touch.at.first()
}

fn used<'c>(case: &'c Case<'_>) -> Option<&'c CodeLocation> {
    case.view.used_at.first()
}

/// For a program with its own threads: each thread initialises its own part.
fn by_threads(context: &Context<'_>, case: &Case<'_>, cause: TouchCause) -> String {
    let name = case.view.name.as_str();
    let at_touch = at(touch(case));
    let instead = match cause {
        TouchCause::Calloc if loop_after_call(case.view).is_none() => "allocate it with malloc: calloc clears it in one thread".to_owned(),
        TouchCause::Memset | TouchCause::Memcpy | TouchCause::StdFill => format!("leave out the {cause} in one thread{at_touch}"),
        TouchCause::StdVector => Fill::of(context, case).instead(case),
        TouchCause::MakeUnique => "make it without std::make_unique, which clears it in one thread".to_owned(),
        _ => format!("not all of it in one thread{at_touch}"),
    };
    let user = used(case).and_then(|place| place.function.as_deref()).filter(|name| has_name(name));
    let start = context.start_routine(case).filter(|name| has_name(name));
    let function = start.or(user);
    if let Some(threads) = context.followers(case) {
        let (what, not) = match function {
            Some(function) => (format!("threads that are made as those of {function}()"), format!("{function}() itself")),
            None => ("threads that are made as those that use it".to_owned(), "the function of those threads".to_owned()),
        };
        return format!(
            "write a function that initialises one thread's part of {name}, with the bounds of the loop that uses it{}, and let {what} run it once, \
             before the first of them; {instead}. Do not initialise it in {not}: {threads} threads ran in turn, and each would overwrite what those \
             before it computed",
            at(used(case))
        );
    }
    let place = match (start, user) {
        // The loop of a pool's workers knows nothing of the data.
        (Some(start), Some(user)) if start != user => format!("in code that the threads of {start}() run before {user}()"),
        (Some(start), _) => format!("in its thread function {start}()"),
        // It may be a function that the thread function calls.
        (None, Some(user)) => format!("in its thread function ({user}(), or what calls it)"),
        (None, None) => "in its thread function".to_owned(),
    };
    format!(
        "let each thread initialise its own part of {name} {place}, with the bounds of the loop that uses it{}; {instead}. Where a thread reads parts of \
         others, wait until all are done (a barrier)",
        at(used(case))
    )
}

/// Whether a function has a name that the source shows: lambdas and closures have none, and of classes with an `operator()` debug information names the operator
/// only.
fn has_name(function: &str) -> bool {
    function != "operator()"
        && !["{lambda", "<lambda", "'lambda", "$_", "{{closure}}", "{closure#"].iter().any(|mark| function.contains(mark))
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
