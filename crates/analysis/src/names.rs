//! Names of objects as in the program's source, and the language of the source.

use crate::calls_on_lines::{CallsOnLines, python_value};
use crate::groups::Group;
use crate::instances;
use crate::pool::Pool;
use crate::python_package::{arena, package};
use crate::source_code::{CodeLocations, next_instruction};
use crate::target::PythonValue;
use firsttouch_model::generated_code::{UNNAMED, is_generated};
use firsttouch_model::rows::{Frame, Id, Object, ObjectKind, Profile};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The function may return its variable up to this many lines below the allocation.
const LINES_TO_RETURN: u32 = 40;

/// The name of a group of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The name that reports show.
    pub shown: String,
    /// The index among the objects of this name, in order of birth.
    pub ordinal: usize,
    /// The variable that the program's code assigns the object to; `None` if it is not known, or if the object has a name of its own.
    pub variable: Option<String>,
    /// The library that keeps it as a buffer of its own.
    pub library: Option<String>,
}

impl ObjectName {
    /// The variable, unless its name does not fit in the profile, which stores one name a line.
    #[must_use]
    pub fn storable_variable(&self) -> Option<&str> {
        self.variable.as_deref().filter(|name| !name.contains(['\t', '\n']))
    }
}

/// The name of each group.
///
/// The name is the object's own if it has one, else the variable that the allocating line assigns to; if it can be one of several variables of
/// that line, all of them (`a or b`). If the function only returns that
/// variable (`xmalloc`), the caller's variable is used, and so on outwards. Without a variable, the name is `heap object of function
/// (file:line)` with as much as is known, `heap object of module+offset`, or kind and address. If several objects have the same name, the
/// line of the innermost caller in which they differ is added, with the variable that holds the instance if that caller constructs one. Those that
/// no line distinguishes are numbered, the largest first.
#[must_use]
pub fn names(profile: &Profile, groups: &[Group], places: &CodeLocations<'_>) -> Vec<ObjectName> {
    let object = |group: &Group| &profile.objects[group.representative];
    let chains: Vec<Vec<Call<'_>>> = groups.iter().map(|group| chain(object(group).site, object(group).call.as_deref(), places)).collect();
    let calls = CallsOnLines::new(profile, places);
    // Use the stored names: the sources may have changed since the run.
    let kept = &profile.meta.variables;
    let uses_ucx = profile.objects.iter().any(|object| object.name.as_deref().is_some_and(|name| name.starts_with(UCX_FILE)));
    let name = |group: &Group, chain: &Vec<Call<'_>>| match &group.pool {
        Some(pool) if pool.sites.len() > 1 => of_several_sites(object(group), pool, places, &calls, kept),
        _ => match transport(object(group), uses_ucx) {
            Some(library) => buffer_of(library.to_owned()),
            None => name(&as_mapped(object(group), group), chain, places, &calls, kept),
        },
    };
    let mut list: Vec<ObjectName> = groups.iter().zip(&chains).map(|(group, chain)| name(group, chain)).collect();
    instances::distinguish(profile, groups, places, &mut list);
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&g| (object(&groups[g]).born_ns, object(&groups[g]).id));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for &g in &order {
        let count = seen.entry(list[g].shown.clone()).or_default();
        list[g].ordinal = *count;
        *count += 1;
    }
    // The largest keeps the plain name: before it came the smaller arrays of a vector that grew.
    order.sort_by_key(|&g| std::cmp::Reverse(groups[g].stride.saturating_mul(groups[g].rows as u64)));
    instances::number(&order, |g| object(&groups[g]).process, &mut list);
    list
}

/// A call on the way to an allocation: a frame of the program's own code, and the function it calls (`malloc`, or one of the program's).
pub(crate) struct Call<'a> {
    pub frame: &'a Frame,
    pub callee: &'a str,
    /// Whether a container of C++ makes the allocation for its elements.
    pub is_container: bool,
}

impl Call<'_> {
    pub fn line(&self) -> Option<(&'_ str, u32)> {
        self.frame.file.as_deref().zip(self.frame.line)
    }
}

/// The calls that made an object, innermost first: the allocation, and for each function that only returns the object, the call of that
/// function.
pub(crate) fn chain<'a>(site: Option<Id>, call: Option<&'a str>, places: &CodeLocations<'a>) -> Vec<Call<'a>> {
    let mut rest = places.frames(site);
    let Some(frame) = places.user_frame(rest) else { return Vec::new() };
    let is_container = rest.iter().take_while(|inner| !std::ptr::eq(*inner, frame)).last().is_some_and(is_of_container);
    let mut calls = vec![Call { frame, callee: call.unwrap_or_default(), is_container }];
    while let Some(last) = calls.last().filter(|last| returns_it(last, places)) {
        let Some(at) = rest.iter().position(|frame| std::ptr::eq(frame, last.frame)) else { break };
        let Some(function) = last.frame.function.as_deref().map(last_name).filter(|name| !name.is_empty()) else { break };
        rest = rest.get(at + 1..).unwrap_or_default();
        let Some(caller) = places.sources.user_frame(rest).and_then(|i| rest.get(i)).filter(|frame| frame.line.is_some()) else { break };
        calls.push(Call { frame: caller, callee: function, is_container: false });
    }
    calls
}

/// `std::vector<double>::vector`, `std::valarray<double>::resize`.
fn is_of_container(frame: &Frame) -> bool {
    let class = |function: &str| function.starts_with("std::") && ["vector", "valarray", "deque"].contains(&last_name(function));
    frame.function.as_deref().is_some_and(class)
}

/// `xmalloc at cls.cpp:29`: the program's outermost allocating function, and the line that calls it.
#[must_use]
pub fn made_by(object: &Object, places: &CodeLocations<'_>) -> Option<String> {
    let calls = chain(object.site, object.call.as_deref(), places);
    let (file, line) = calls.get(1..)?.last()?.line()?;
    Some(format!("{} at {}:{line}", calls.last()?.callee, base(file)))
}

/// `make` for `grid::make<double>`.
pub(crate) fn last_name(function: &str) -> &str {
    let plain = function.split(['<', '(', '.']).next().unwrap_or_default();
    plain.rsplit("::").next().unwrap_or_default()
}

/// Whether a function returns the result of the call: `return malloc(n);`, or `p = malloc(n); ... return p;`.
fn returns_it(call: &Call<'_>, places: &CodeLocations<'_>) -> bool {
    let Some((file, line)) = call.line() else { return false };
    let Some(text) = places.sources.line(file, line) else { return false };
    // An array within a longer expression (`return np.abs(v).max()`) is not what the function returns.
    if let Some(PythonValue::Unassigned(made)) = python_value(call, places).filter(|_| text.trim_start().starts_with("return ")) {
        return is_all_that_is_returned(&text, &made);
    }
    let Some(variable) = places.sources.variable(file, line, call.callee, 0) else {
        // The whole function may be on one line.
        return text.split([';', '{', '}']).any(|statement| statement.trim_start().starts_with("return "));
    };
    returns(file, line, &variable, places)
}

/// Whether a Python statement returns this expression itself, and not a part or an element of it. Expressions have no blanks, and long ones are shortened:
/// `f(...)`.
fn is_all_that_is_returned(statement: &str, made: &str) -> bool {
    let code = statement.split(" #").next().unwrap_or_default().trim().trim_start_matches("return");
    let returned: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let Some(callee) = made.strip_suffix("(...)") else { return returned == made || made == "an expression" };
    let arguments = returned.strip_prefix(callee).unwrap_or_default();
    let mut depth = 0_i32;
    let close = arguments.char_indices().find(|(_, c)| {
        depth += i32::from("([{".contains(*c)) - i32::from(")]}".contains(*c));
        depth == 0
    });
    arguments.starts_with('(') && close.is_some_and(|(at, _)| at + 1 == arguments.len())
}

/// Whether the function around a line returns this variable below that line.
pub(crate) fn returns(file: &str, line: u32, variable: &str, places: &CodeLocations<'_>) -> bool {
    let Some(text) = places.sources.line(file, line) else { return false };
    let own = indentation(&text);
    if text.split([';', '{', '}']).skip(1).any(|statement| gives(statement, variable)) {
        return true;
    }
    for below in line + 1..=line.saturating_add(LINES_TO_RETURN) {
        let Some(text) = places.sources.line(file, below) else { return false };
        let code = text.split("//").next().unwrap_or_default().trim();
        if gives(code.trim_end_matches(['}', ' ']), variable) || (code == variable && Language::of(file) == Some(Language::Rust)) {
            return true;
        }
        // The function ends here.
        let ends = code.starts_with("return") && indentation(&text) <= own;
        if ends || (indentation(&text) == 0 && !code.is_empty() && !code.ends_with(':')) {
            return false;
        }
    }
    false
}

/// Whether a statement is `return variable`, ignoring brackets and casts.
fn gives(statement: &str, variable: &str) -> bool {
    let Some(value) = statement.trim().strip_prefix("return") else { return false };
    let value = value.trim_end_matches([';', ' ']);
    let plain = value.strip_suffix(variable).is_some_and(|before| {
        let before = before.trim();
        (before.is_empty() && value.starts_with(' ')) || (before.starts_with('(') && before.ends_with(')'))
    });
    plain || value.trim().trim_start_matches("std::move").strip_prefix('(').and_then(|v| v.strip_suffix(')')) == Some(variable)
}

fn indentation(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

fn name(object: &Object, chain: &[Call<'_>], places: &CodeLocations<'_>, calls: &CallsOnLines, kept: &BTreeMap<Id, String>) -> ObjectName {
    if let Some(library) = places.sources.library_buffer(places.frames(object.site)) {
        return buffer_of(library);
    }
    if let Some(call) = chain.first().filter(|_| is_of_memory_resource(object, places)) {
        let line = call.line().map_or_else(String::new, |(file, line)| format!(" ({}:{line})", base(file)));
        return ObjectName { shown: format!("memory of a monotonic_buffer_resource{line}"), ordinal: 0, variable: None, library: None };
    }
    if let Some(interpreter) = arena(object.call.as_deref(), object.bytes, places.frames(object.site)) {
        let library = Some(interpreter.to_owned());
        return ObjectName { shown: format!("memory of {interpreter}"), ordinal: 0, variable: None, library };
    }
    let own = object.name.as_deref().filter(|name| !name.is_empty());
    let own = own.map(|name| if object.kind == ObjectKind::Mapping { of_any_run(name) } else { name.to_owned() });
    let found = if own.is_some() { Vec::new() } else { variables(object, chain, places, calls, kept) };
    let shown = own.or_else(|| one_of(&found)).or_else(|| expression(chain, places)).or_else(|| of_package(object, chain, places));
    let shown = shown.unwrap_or_else(|| without_variable(object, chain));
    let variable = if let [one] = found.as_slice() { Some(one.clone()) } else { None };
    ObjectName { shown, ordinal: 0, variable, library: None }
}

/// Whether C++'s `std::pmr::monotonic_buffer_resource` allocated the object, as a buffer for many variables: the line of the allocation is that of the
/// variable that came first. (Pool resources pass large requests on, so their memory may be one variable's.)
fn is_of_memory_resource(object: &Object, places: &CodeLocations<'_>) -> bool {
    let frames = places.frames(object.site);
    let Some(own) = places.user_frame(frames) else { return false };
    let mut functions = frames.iter().take_while(|frame| !std::ptr::eq(*frame, own)).filter_map(|frame| frame.function.as_deref());
    functions.any(|function| function.starts_with("std::") && function.contains("pmr::monotonic_buffer_resource::"))
}

/// The Python expression that made an object which no variable keeps: `np.arange(n)` in `c = np.sin(np.arange(n))`.
fn expression(chain: &[Call<'_>], places: &CodeLocations<'_>) -> Option<String> {
    match python_value(chain.last()?, places)? {
        PythonValue::Unassigned(text) => Some(text).filter(|text| !text.is_empty()),
        PythonValue::Assigned(_) => None,
    }
}

/// `heap object of sklearn (_classes.py:467)`, where no code of the program's own is on the stack.
fn of_package(object: &Object, chain: &[Call<'_>], places: &CodeLocations<'_>) -> Option<String> {
    chain.first().filter(|call| call.frame.file.is_none())?;
    let (package, line) = package(places.frames(object.site))?;
    let what = if object.kind == ObjectKind::Anonymous { "mapping".to_owned() } else { format!("{} object", object.kind.as_str()) };
    Some(format!("{what} of {package} ({line})"))
}

/// The object at the address that a process has it at. Shared memory has an address range of firsttouch's own (`shared_memory.rs`).
fn as_mapped<'a>(object: &'a Object, group: &Group) -> Cow<'a, Object> {
    match group.shared.get(&group.representative) {
        Some(sharing) => Cow::Owned(Object { address: sharing.address, ..object.clone() }),
        None => Cow::Borrowed(object),
    }
}

/// Blocks of several sites that lie between each other: `a and b`.
fn of_several_sites(
    object: &Object,
    pool: &Pool,
    places: &CodeLocations<'_>,
    calls: &CallsOnLines,
    kept: &BTreeMap<Id, String>,
) -> ObjectName {
    let of_site = |(site, call): &(Option<Id>, String)| {
        let one = Object { site: *site, call: Some(call.clone()), name: None, ..object.clone() };
        name(&one, &chain(*site, Some(call), places), places, calls, kept).shown
    };
    let mut names: Vec<String> = pool.sites.iter().map(of_site).collect();
    names.sort();
    names.dedup();
    ObjectName { shown: names.join(" and "), ordinal: 0, variable: None, library: None }
}

/// A longer list of variables is not written out.
const MOST_WRITTEN: usize = 8;

/// `a`; `a or b` if either can be it; `a1, a2, ... or a9 (one of 9)`.
fn one_of(variables: &[String]) -> Option<String> {
    match variables {
        [] => None,
        [one] => Some(one.clone()),
        [first, second, .., last] if variables.len() > MOST_WRITTEN => {
            Some(format!("{first}, {second}, ... or {last} (one of {})", variables.len()))
        }
        [others @ .., last] => Some(format!("{} or {last}", others.join(", "))),
    }
}

/// The variables in the sources that the object can be, else the stored one: the sources may be gone.
fn variables(
    object: &Object,
    chain: &[Call<'_>],
    places: &CodeLocations<'_>,
    calls: &CallsOnLines,
    kept: &BTreeMap<Id, String>,
) -> Vec<String> {
    let in_source =
        chain.iter().enumerate().rev().map(|(depth, call)| calls.variables(call, depth == 0, places)).find(|found| !found.is_empty());
    in_source.unwrap_or_else(|| object.site.and_then(|site| kept.get(&site).cloned()).into_iter().collect())
}

/// The name of an object that no variable is known for: where it was allocated.
fn without_variable(object: &Object, chain: &[Call<'_>]) -> String {
    let kind = object.kind.as_str();
    let Some(call) = chain.first() else { return format!("{kind} at {:#x}", object.address) };
    let kind = match object.kind {
        ObjectKind::Pool => "small blocks".to_owned(),
        // Of a file in memory, or of no file.
        ObjectKind::Anonymous => "mapping".to_owned(),
        _ => format!("{kind} object"),
    };
    let frame = call.frame;
    let line = call.line().map(|(file, line)| format!("{}:{line}", base(file)));
    let code = frame.module.as_deref().zip(frame.offset).map(|(module, _)| code_address(module, frame));
    match (&frame.function, line, code) {
        (Some(function), Some(line), _) => format!("{kind} of {function} ({line})"),
        (Some(function), None, Some(code)) => format!("{kind} of {function} ({code})"),
        (Some(function), None, None) => format!("{kind} of {function}"),
        (None, Some(line), _) => format!("{kind} of {line}"),
        (None, None, Some(code)) => format!("{kind} of {code}"),
        (None, None, None) => format!("{kind} at {:#x}", object.address),
    }
}

/// `program+0x1107`: an address that a disassembly lists (see [`next_instruction`]).
fn code_address(module: &str, frame: &Frame) -> String {
    if is_generated(module) {
        return if frame.function.is_some() { "generated code" } else { UNNAMED }.to_owned();
    }
    format!("{}+{:#x}", base(module), next_instruction(frame).unwrap_or_default())
}

pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name as it is in the code: without the line that was added to distinguish objects.
#[must_use]
pub fn in_code(name: &str) -> &str {
    name.split(" (").next().unwrap_or(name)
}

/// The languages for which fixes have code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cpp,
    Fortran,
    Rust,
    Python,
}

impl Language {
    /// The language according to the file's extension.
    #[must_use]
    pub fn of(file: &str) -> Option<Self> {
        let extension = file.rsplit('/').next()?.rsplit_once('.')?.1;
        Some(match extension {
            "c" | "h" => Self::C,
            "C" | "cc" | "cpp" | "cxx" | "c++" | "hpp" | "hh" | "hxx" | "H" => Self::Cpp,
            "rs" => Self::Rust,
            "py" => Self::Python,
            other => match other.to_ascii_lowercase().as_str() {
                "f" | "for" | "f77" | "f90" | "f95" | "f03" | "f08" | "ftn" => Self::Fortran,
                _ => return None,
            },
        })
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "c++",
            Self::Fortran => "fortran",
            Self::Rust => "rust",
            Self::Python => "python",
        }
    }
}

fn buffer_of(library: String) -> ObjectName {
    ObjectName { shown: format!("buffer of {library}"), ordinal: 0, variable: None, library: Some(library) }
}

/// What the names of UCX's segments begin with.
const UCX_FILE: &str = "/dev/shm/ucx_shm_";

/// The name of a mapping without what is another in each run: that the file was removed, and the random end that `mkstemp` and the like give a name.
fn of_any_run(name: &str) -> String {
    const RANDOM: usize = 6;
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    let Some((start, end)) = name.len().checked_sub(RANDOM).and_then(|at| name.split_at_checked(at)) else { return name.to_owned() };
    let is_file = start.rsplit('/').next().is_some_and(|file| !file.is_empty()) && start.contains('/');
    let is_random =
        end.bytes().all(|byte| byte.is_ascii_alphanumeric()) && end.bytes().any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    // A number at the end counts segments.
    let is_number = end.bytes().all(|byte| byte.is_ascii_digit());
    if is_file && is_random && !is_number { format!("{start}*") } else { name.to_owned() }
}

/// The library that passes messages between processes through a segment which the agent did not see being mapped, by the name of its file. UCX
/// uses System V segments too; a program that calls shmat itself is seen.
fn transport(object: &Object, uses_ucx: bool) -> Option<&'static str> {
    const FILES: &[(&str, &str)] = &[
        (UCX_FILE, "UCX"),
        ("/dev/shm/vader_segment", "Open MPI"),
        ("/dev/shm/sm_segment", "Open MPI"),
        ("/dev/shm/psm2_shm", "PSM2"),
        ("/dev/shm/psm3_shm", "PSM3"),
    ];
    let name = object.name.as_deref().filter(|_| object.kind == ObjectKind::Mapping)?;
    let of_ucx = (uses_ucx && name.starts_with("/SYSV00000000")).then_some("UCX");
    FILES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, library)| *library).or(of_ucx)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a function returns an array only if the array is all of what it returns.
    #[test]
    fn arrays_that_are_returned() {
        for (statement, made, expected) in [
            ("    return np.zeros(n, dtype=float)", "np.zeros(n,dtype=float)", true),
            ("return np.concatenate([a, b], axis=0)  # all", "np.concatenate(...)", true),
            ("    return max(float(np.abs(v * 2.0).max()) for _ in range(40))", "np.abs(v*2.0)", false),
            ("return np.concatenate([a, b]).sum()", "np.concatenate(...)", false),
            ("return (a + b) * c", "an expression", true),
        ] {
            assert_eq!(is_all_that_is_returned(statement, made), expected, "{statement}");
        }
    }

    /// Check that names of mappings are those of another run too, and that names without random ends stay.
    #[test]
    fn names_of_any_run() {
        for (name, expected) in [
            ("/dev/shm/mpich_shar_tmpAb12Cd (deleted)", "/dev/shm/mpich_shar_tmp*"),
            ("/dev/shm/mpich_shar_tmpX9x7aQ", "/dev/shm/mpich_shar_tmp*"),
            ("/dev/shm/solver-field", "/dev/shm/solver-field"),
            ("/dev/shm/part.000012", "/dev/shm/part.000012"),
            ("/dev/shm/A1b2C3", "/dev/shm/A1b2C3"),
            ("/SYSV00000000 (deleted)", "/SYSV00000000"),
            ("[heap]", "[heap]"),
            ("é", "é"),
        ] {
            assert_eq!(of_any_run(name), expected);
        }
    }

    /// Check that segments of transports are told from memory that a program shares by itself.
    #[test]
    fn segments_of_transports() {
        let mapping = |name: &str| Object {
            id: 1,
            process: 1,
            kind: ObjectKind::Mapping,
            call: None,
            name: Some(name.to_owned()),
            address: 0,
            bytes: 1 << 22,
            born_ns: 0,
            died_ns: None,
            site: None,
            thread: None,
        };
        assert_eq!(transport(&mapping("/dev/shm/ucx_shm_posix_5d4ebfb5 (deleted)"), true), Some("UCX"));
        assert_eq!(transport(&mapping("/SYSV00000000 (deleted)"), true), Some("UCX"));
        assert_eq!(transport(&mapping("/SYSV00000000 (deleted)"), false), None);
        assert_eq!(transport(&mapping("/dev/shm/mpich_shar_tmpx (deleted)"), true), None);
        assert_eq!(transport(&Object { kind: ObjectKind::Anonymous, ..mapping("/dev/shm/vader_segment.1") }, false), None);
    }

    /// Check that no variable is left out of a list, and that a long list is short.
    #[test]
    fn lists_of_variables() {
        let list = |count: usize| one_of(&(1..=count).map(|nth| format!("a{nth}")).collect::<Vec<_>>()).unwrap_or_default();
        assert_eq!([0, 1, 2, 3].map(list), ["", "a1", "a1 or a2", "a1, a2 or a3"]);
        assert_eq!(list(8), "a1, a2, a3, a4, a5, a6, a7 or a8");
        assert_eq!(list(9), "a1, a2, ... or a9 (one of 9)");
        assert_eq!(in_code(&list(9)), "a1, a2, ... or a9");
    }

    /// Check which statements return a variable.
    #[test]
    fn what_returns_a_variable() {
        for statement in ["return p;", " return (p)", "return (double *)p;", "return std::move(p);", "return   p ;"] {
            assert!(gives(statement, "p"), "{statement}");
        }
        for statement in ["return *p;", "return p + 1;", "return ip;", "return f(p);", "returnp;", "p", "return"] {
            assert!(!gives(statement, "p"), "{statement}");
        }
        for (function, name) in [("grid::make<double>", "make"), ("alloc_grid.constprop.0", "alloc_grid"), ("rs::fill", "fill"), ("", "")] {
            assert_eq!(last_name(function), name);
        }
    }
}
