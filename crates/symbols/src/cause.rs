//! The construct that first touched memory, from the stack of the touch and the source line of the user's frame.

use crate::ownership::{Owner, base_name, is_standard_source, owner, text, user_frame_index};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::Frame;

/// The construct that touched memory, from the stack of the touch (leaf first), the call that allocated the object, and the source
/// line of [`crate::user_frame`].
#[must_use]
pub fn touch_cause(frames: &[Frame], call: Option<&str>, line_text: Option<&str>) -> TouchCause {
    let Some(leaf) = frames.first() else { return TouchCause::Unknown };
    let user = user_frame_index(frames);
    // Without a user frame, `user_frame` is the frame of a library; treat it as a library's.
    let is_user = |index: &usize| frames.get(*index).is_some_and(|frame| owner(frame) == Owner::User);
    let below = frames.get(..user.filter(is_user).unwrap_or(frames.len())).unwrap_or_default();
    let file = user.and_then(|index| frames.get(index)).map_or("", |frame| text(&frame.file));
    let line = line_text.unwrap_or_default();
    by_library(below, leaf).or_else(|| by_line(file, line, leaf, call)).unwrap_or_else(|| by_leaf(leaf))
}

/// The cause according to the library frames between the touch and the user's code.
fn by_library(below: &[Frame], leaf: &Frame) -> Option<TouchCause> {
    let called = |names: &[&str]| below.iter().any(|frame| names.contains(&plain_name(text(&frame.function))));
    let matches = |test: fn(&Frame) -> bool| below.iter().any(test) || test(leaf);
    if called(&["calloc"]) {
        Some(TouchCause::Calloc)
    } else if called(&["realloc", "reallocarray", "mremap"]) {
        Some(TouchCause::Realloc)
    } else if matches(reads) {
        Some(TouchCause::Io)
    } else if matches(|frame| text(&frame.module).contains("numpy") || text(&frame.module).contains("_multiarray_umath")) {
        Some(TouchCause::Numpy)
    } else if matches(is_maker) && !matches(is_of_vector) {
        Some(TouchCause::MakeUnique)
    } else if matches(fills_container) && (matches(is_of_vector) || !matches(is_of_other_container)) {
        Some(TouchCause::StdVector)
    } else if matches(fills_memory) {
        Some(TouchCause::StdFill)
    } else if matches(|frame| is_cpp_library(frame) && ["std::copy", "__copy_move"].iter().any(|name| text(&frame.function).contains(name)))
    {
        Some(TouchCause::Memcpy)
    } else {
        None
    }
}

/// `__libc_calloc` is `calloc`.
fn plain_name(function: &str) -> &str {
    let name = function.strip_prefix("__libc_").or_else(|| function.strip_prefix("__")).unwrap_or(function);
    name.strip_prefix("je_").or_else(|| name.strip_prefix("tc_")).or_else(|| name.strip_prefix("mi_")).unwrap_or(name)
}

fn reads(frame: &Frame) -> bool {
    const CALLS: &[&str] = &[
        "read",
        "pread",
        "pread64",
        "readv",
        "preadv",
        "preadv2",
        "fread",
        "fread_unlocked",
        "fgets",
        "getline",
        "getdelim",
        "recv",
        "recvfrom",
        "recvmsg",
        "scanf",
        "fscanf",
        "read_nocancel",
        "pread64_nocancel",
    ];
    const PARTS: &[&str] =
        &["_IO_file_read", "_IO_file_xsgetn", "_gfortran_st_read", "basic_istream", "basic_filebuf", "std::io::Read", "std::fs::"];
    let function = text(&frame.function);
    // The user's own function called `read` is not a system call.
    let is_call = frame.file.is_none() || owner(frame) == Owner::Runtime;
    (is_call && CALLS.contains(&plain_name(function))) || PARTS.iter().any(|part| function.contains(part))
}

fn is_cpp_library(frame: &Frame) -> bool {
    text(&frame.function).starts_with("std::") || text(&frame.file).contains("/c++/")
}

/// Constructors, growth and fills. Access (`operator[]`, `begin`) belongs to the user's loops.
fn fills_container(frame: &Frame) -> bool {
    const PARTS: &[&str] = &[
        "_M_fill",
        "_M_default",
        "_M_realloc",
        "_M_range_init",
        "_M_assign",
        "_M_insert",
        "_M_initialize",
        "uninitialized",
        "__uninit",
        "_Construct",
        "::construct",
        "__construct_at_end",
        "__append",
        "::resize",
        "::assign",
        "::push_back",
        "::emplace_back",
        "value_init",
    ];
    let function = text(&frame.function);
    // The name of a fill may contain the type of its target.
    is_cpp_library(frame) && !fills_memory(frame) && (PARTS.iter().any(|part| function.contains(part)) || is_constructor(function))
}

/// A function of a container that has its elements in one block and takes a size.
fn is_of_vector(frame: &Frame) -> bool {
    let is_name = |name: &str| {
        ["std::vector", "std::deque", "std::_Vector_base", "std::_Deque_base", "std::__1::vector"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    let function = text(&frame.function);
    is_name(function)
        || !function.starts_with("std::")
            && ["stl_vector.h", "vector.tcc", "stl_deque.h", "deque.tcc"].contains(&base_name(text(&frame.file)))
}

/// A function of another container: it has no memory to reserve.
fn is_of_other_container(frame: &Frame) -> bool {
    const NAMES: &[&str] = &[
        "std::valarray",
        "std::_Array",
        "std::__valarray",
        "std::list",
        "std::__cxx11::list",
        "std::_List",
        "std::_Rb_tree",
        "std::_Hashtable",
        "std::map",
        "std::shared_ptr",
        "std::__shared",
    ];
    const FILES: &[&str] =
        &["valarray", "valarray_array.h", "stl_list.h", "list.tcc", "stl_tree.h", "hashtable.h", "shared_ptr.h", "shared_ptr_base.h"];
    let function = text(&frame.function);
    NAMES.iter().any(|start| function.starts_with(start)) || FILES.contains(&base_name(text(&frame.file)))
}

/// Functions that C++ containers use internally, and that programs also call directly.
fn fills_memory(frame: &Frame) -> bool {
    let function = text(&frame.function);
    let name = function.strip_prefix("std::").unwrap_or(function);
    is_cpp_library(frame) && (["fill", "__fill"].iter().any(|start| name.starts_with(start)) || function.starts_with("_ZSt9__fill"))
}

/// Functions that return cleared memory.
const MAKERS: &[&str] = &["make_unique<", "make_shared<"];

fn is_maker(frame: &Frame) -> bool {
    MAKERS.iter().any(|name| text(&frame.function).contains(name))
}

/// `std::vector<double, ...>::vector`.
fn is_constructor(function: &str) -> bool {
    let last = function.rsplit("::").next().unwrap_or_default();
    ["vector", "deque"].contains(&last) && function != "std::vector"
}

#[derive(PartialEq)]
enum Leaf {
    Fill,
    Copy,
    /// Frames without a name in the C library: it often lacks the names of its memset variants.
    Unnamed,
    Other,
}

fn kind_of(leaf: &Frame) -> Leaf {
    let function = text(&leaf.function);
    let contains = |names: &[&str]| names.iter().any(|name| function.contains(name));
    if owner(leaf) == Owner::User {
        Leaf::Other
    } else if contains(&["memset", "bzero"]) {
        Leaf::Fill
    } else if contains(&["memcpy", "memmove", "mempcpy", "bcopy"]) {
        Leaf::Copy
    } else if base_name(text(&leaf.module)).starts_with("libc.") && function.is_empty() {
        Leaf::Unnamed
    } else {
        Leaf::Other
    }
}

/// The cause according to the user's line. It takes precedence over memset, which the compiler may have made from a loop.
fn by_line(file: &str, line: &str, leaf: &Frame, call: Option<&str>) -> Option<TouchCause> {
    let kind = kind_of(leaf);
    if is_fortran_file(file) {
        return by_fortran_line(line, &kind);
    }
    let calls = |name: &str| line.contains(&format!("{name}("));
    if calls("memset") || calls("bzero") {
        Some(TouchCause::Memset)
    } else if calls("memcpy") || calls("memmove") {
        Some(TouchCause::Memcpy)
    } else if kind == Leaf::Unnamed && calls("calloc") {
        Some(TouchCause::Calloc)
    } else if kind == Leaf::Unnamed && calls("realloc") && call == Some("realloc") {
        Some(TouchCause::Realloc)
    } else if kind == Leaf::Unnamed && ["read", "pread", "fread", "recv"].iter().any(|name| calls(name)) {
        Some(TouchCause::Io)
    } else if kind != Leaf::Other && (line.contains("std::vector") || calls(".resize")) {
        Some(TouchCause::StdVector)
    } else if kind != Leaf::Other && (calls("std::fill") || calls("std::fill_n")) {
        Some(TouchCause::StdFill)
    } else if kind != Leaf::Other && MAKERS.iter().any(|name| line.contains(name)) {
        Some(TouchCause::MakeUnique)
    } else if is_loop(line) {
        Some(TouchCause::Loop)
    } else {
        None
    }
}

fn by_leaf(leaf: &Frame) -> TouchCause {
    match kind_of(leaf) {
        Leaf::Fill => TouchCause::Memset,
        Leaf::Copy => TouchCause::Memcpy,
        Leaf::Unnamed => TouchCause::Unknown,
        // Inlined code of the C++ and Rust standard libraries (iterators, operators) is part of a loop.
        Leaf::Other if owner(leaf) != Owner::Runtime || is_standard_source(text(&leaf.file)) => TouchCause::Loop,
        Leaf::Other => TouchCause::Unknown,
    }
}

/// The head of a loop, or an assignment to an element: `for (...)`, `a[i] = 0`, `a[i] += b[i]`, `*p++ = 0`.
fn is_loop(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let head = code.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| ["for", "while", "do"].contains(&word));
    let element = code.match_indices('=').any(|(at, _)| {
        let before = code.get(..at).unwrap_or_default().trim_end_matches(['+', '-', '*', '/', '|', '&', '^', '%']).trim_end();
        before.ends_with(']') || before.ends_with("++")
    });
    head || element
}

fn is_fortran_file(file: &str) -> bool {
    let extension = base_name(file).rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    ["f", "for", "ftn", "f77", "f90", "f95", "f03", "f08", "f18", "fpp"].contains(&extension.as_str())
}

fn by_fortran_line(line: &str, kind: &Leaf) -> Option<TouchCause> {
    let code = line.split('!').next().unwrap_or_default().trim().to_ascii_lowercase();
    let head = ["do ", "do,", "end do", "enddo", "forall"].iter().any(|word| code.starts_with(word));
    if head || code == "do" {
        return Some(TouchCause::Loop);
    }
    if allocates_and_fills(&code) {
        return Some(TouchCause::FortranAssignment);
    }
    let Some(assigned) = fortran_left_side(&code) else {
        // Without the source line, assume that a memset is an assignment and a store is a loop.
        return (*kind == Leaf::Fill).then_some(TouchCause::FortranAssignment);
    };
    // `a(i)` and `a(i)%y` are one element, `a(:, i)`, `a(:)%y` and `x%field` are sections or whole arrays. A component that is filled at once
    // (memset) is an array itself.
    let has_component = !assigned.ends_with(')');
    let is_element = assigned.contains('(') && !assigned.contains(':') && !(has_component && *kind == Leaf::Fill);
    Some(if is_element { TouchCause::Loop } else { TouchCause::FortranAssignment })
}

/// `allocate (a(n), source=x)`: the statement that allocates also assigns.
fn allocates_and_fills(code: &str) -> bool {
    let Some((_, arguments)) =
        code.split_once("allocate").filter(|(before, rest)| !before.ends_with("de") && rest.trim_start().starts_with('('))
    else {
        return false;
    };
    let after = |at: usize| arguments.get(at..).unwrap_or_default().trim_start().starts_with('=');
    let word = |at: usize| arguments.get(..at).is_some_and(|before| before.ends_with([',', ' ', '&']));
    arguments.match_indices("source").any(|(at, found)| word(at) && after(at + found.len()))
}

/// The text left of `=`: for `if (x == 1) a(i) = 0` it is `a(i)`.
fn fortran_left_side(code: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut start = 0;
    let mut previous = ' ';
    for (at, c) in code.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                let keyword = code.get(start..).is_some_and(|rest| rest.starts_with("if") || rest.starts_with("where"));
                let rest = code.get(at + 1..).unwrap_or_default();
                if depth == 0 && keyword && rest.trim_start().starts_with(|c: char| c.is_alphabetic()) {
                    start = at + 1;
                }
            }
            ';' if depth == 0 => start = at + 1,
            '=' if depth == 0 && !"=/<>".contains(previous) && !code.get(at + 1..).is_some_and(|rest| rest.starts_with(['=', '>'])) => {
                return code.get(start..at).map(str::trim).filter(|left| !left.is_empty());
            }
            _ => {}
        }
        previous = c;
    }
    None
}
