//! Allocations that are called by name (`malloc`, `new`, `vec!`, `np.zeros`), and what their result is assigned to.

use super::VariableCandidate;
use super::text::{Text, is_keyword, is_word};

/// Calls that allocate without "alloc" in their names.
const ALLOCATORS: &[&str] = &[
    "mmap",
    "mmap64",
    "mremap",
    "posix_memalign",
    "memalign",
    "new",
    "make_unique",
    "make_shared",
    "make_unique_for_overwrite",
    "vec",
    "with_capacity",
    "from_elem",
    "zeros",
    "ones",
    "empty",
    "full",
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "arange",
    "linspace",
    "fromfile",
    "loadtxt",
    "random",
    "strdup",
    "cudaMallocHost",
];

/// Methods that allocate memory for the object they are called on.
const TAKES: &[&str] = &["reset", "push_back", "emplace_back", "push", "insert", "append", "emplace"];

/// Variables that explicit allocations on this line are assigned to. `None` stands for an allocation without a variable, so that the
/// other allocations keep their index.
pub(super) fn candidates(text: &Text, call: &str) -> Vec<VariableCandidate> {
    let all = occurrences(text, call);
    // If the call is a function of the program, look only for that function.
    let exact: Vec<&Occurrence> = all.iter().filter(|occurrence| !is_family(call) && occurrence.word == call).collect();
    let chosen = if exact.is_empty() { all.iter().collect() } else { exact };
    let targets = chosen.iter().enumerate().map(|(number, occurrence)| VariableCandidate {
        position: occurrence.start,
        name: occurrence
            .argument_is_result(text)
            .or_else(|| target(text, occurrence.start, number))
            .or_else(|| occurrence.macro_argument(text)),
        fits: exact_or(call, |call| occurrence.is_for(call)),
    });
    targets.collect()
}

/// The calls that profiles record; any other name is a function of the program.
fn is_family(call: &str) -> bool {
    ["", "malloc", "calloc", "realloc", "aligned", "mmap", "mremap"].contains(&call)
}

fn exact_or(call: &str, fits: impl Fn(&str) -> bool) -> bool {
    !is_family(call) || fits(call)
}

struct Occurrence {
    /// Start of the whole path: `np.zeros`, `std::make_unique`.
    start: usize,
    /// Position after the word.
    end: usize,
    word: String,
}

impl Occurrence {
    fn is_for(&self, call: &str) -> bool {
        match call {
            "" => false,
            // However the library gets the memory.
            _ if self.word.starts_with("MPI_") => true,
            "aligned" => self.word.contains("align"),
            // Compilers merge malloc and a following memset into calloc.
            "calloc" if self.word == "malloc" => true,
            // C++, Rust and Python allocate through `malloc` too.
            "malloc" => !["calloc", "realloc", "mmap", "align"].iter().any(|other| self.word.contains(other)),
            call => self.word.contains(call),
        }
    }

    /// `posix_memalign(&a, ...)` returns its result through its first argument, MPI's calls through another one.
    fn argument_is_result(&self, text: &Text) -> Option<String> {
        let first = ["posix_memalign", "cudaMalloc", "hipMalloc"].iter().any(|name| self.word.contains(name));
        // MPI_Alloc_mem(size, info, &a), MPI_Win_allocate(size, unit, info, comm, &a, &win).
        let of_mpi = [("MPI_Alloc_mem", 2), ("MPI_Win_allocate", 4)].iter().find(|(name, _)| self.word.contains(name)).map(|(_, at)| *at);
        let at = if first { 0 } else { of_mpi? };
        let open = text.skip_blanks(self.end);
        let (_, end) = *text.split_commas(open + 1, text.closing(open)).get(at)?;
        let mut end = text.skip_blanks_back(end);
        // `(void**)(&a)`: look into the brackets.
        while text.before(end) == ')' && text.code(0, end).contains('&') && !is_word(text.before(end.saturating_sub(1))) {
            end = text.skip_blanks_back(end - 1);
        }
        let name = text.place_before(if text.before(end) == ')' && is_word(text.before(end - 1)) { end - 1 } else { end })?;
        Some(name.trim_start_matches(['*', '&']).to_owned())
    }

    /// `ALLOC(a, n);`: a macro used as a statement most likely assigns to its first argument.
    fn macro_argument(&self, text: &Text) -> Option<String> {
        let is_macro = !self.word.chars().any(char::is_lowercase);
        let is_statement = "\0;{}".contains(text.before(text.skip_blanks_back(self.start)));
        let open = text.skip_blanks(self.end);
        let (start, end) = *text.split_commas(open + 1, text.closing(open)).first()?;
        let name = text.place_before(end)?;
        let is_whole = text.source(start, end) == name && name.starts_with(|c: char| is_word(c) && !c.is_ascii_digit());
        (is_macro && is_statement && is_whole && text.at(text.closing(open)) == ')').then_some(name)
    }
}

fn occurrences(text: &Text, call: &str) -> Vec<Occurrence> {
    let mut found = Vec::new();
    let mut place = 0;
    while place < text.len() {
        let end = text.word_end(place);
        if end > place {
            let word = text.code(place, end);
            let called = !is_family(call) && word == call && text.at(text.skip_blanks(end)) == '(';
            if called || allocates(text, &word, end) {
                found.push(Occurrence { start: path_start(text, place), end, word });
            }
            place = end;
        } else {
            place += 1;
        }
    }
    found
}

fn allocates(text: &Text, word: &str, end: usize) -> bool {
    if word == "new" {
        return text.at(end).is_whitespace() || text.at(end) == '(';
    }
    if word == "vec" {
        return text.at(end) == '!';
    }
    let named = ALLOCATORS.contains(&word) || (word.to_lowercase().contains("alloc") && !is_fortran_statement(text, word, end));
    let mut next = text.skip_blanks(end);
    if text.at(next) == ':' && text.at(next + 1) == ':' {
        next += 2; // Rust's turbofish
    }
    if text.at(next) == '<' {
        next = text.after_template(next).map_or(next, |after| text.skip_blanks(after));
    }
    named && text.at(next) == '('
}

/// Fortran's `allocate`, `deallocate` and `allocated` are not functions that return memory; C++'s `a.allocate(n)` is.
fn is_fortran_statement(text: &Text, word: &str, end: usize) -> bool {
    let lower = word.to_lowercase();
    let before = text.before(end - word.chars().count());
    ["deallocate", "allocated", "dealloc"].contains(&lower.as_str()) || (lower == "allocate" && !".:>".contains(before))
}

/// Includes the qualifiers of a name: `std::`, `np.`, `pool->`.
fn path_start(text: &Text, mut start: usize) -> usize {
    loop {
        let qualifier = match (text.before(start.saturating_sub(1)), text.before(start)) {
            (':', ':') | ('-', '>') => start - 2,
            (_, '.') => start - 1,
            _ => return start,
        };
        start = text.word_start(qualifier);
        if start == qualifier {
            return qualifier;
        }
    }
}

/// Searches to the left of an allocation for the assignment, field or declaration it belongs to.
fn target(text: &Text, start: usize, number: usize) -> Option<String> {
    let mut outermost = None;
    let mut place = start;
    while place > 0 {
        place -= 1;
        match text.at(place) {
            ')' | ']' => place = text.opening(place)?,
            '(' => outermost = Some(place),
            '{' if text.before(text.skip_blanks_back(place)) == '=' => {}
            '{' if declared(text, place).is_some() => outermost = Some(place),
            '}' | '{' | ';' => break,
            '=' if text.assigns(place) => return assigned(text, place, number),
            '=' if text.at(place + 1) == '>' => break, // a Rust match arm
            ':' if outermost.is_none() => {
                if let Some(field) = field(text, place, start) {
                    return Some(field);
                }
            }
            _ => {}
        }
    }
    declared(text, outermost?)
}

/// `data: vec![0.0; n]` within a Rust struct expression.
fn field(text: &Text, colon: usize, start: usize) -> Option<String> {
    let single = text.before(colon) != ':' && text.at(colon + 1) != ':';
    let adjacent = text.code(colon + 1, start).trim().is_empty();
    let name_start = text.word_start(colon);
    let before = text.before(text.skip_blanks_back(name_start));
    let name = text.source(name_start, colon);
    (single && adjacent && !name.is_empty() && "\0{,".contains(before) && !is_keyword(&name)).then_some(name)
}

/// `a(new double[n])`: a variable if a type precedes it, a member if `:` or `,` precedes it; `a.reset(...)` is `a`.
fn declared(text: &Text, open: usize) -> Option<String> {
    let end = text.skip_blanks_back(open);
    let name_start = text.word_start(end);
    let name = text.source(name_start, end);
    if name.is_empty() || is_keyword(&name) {
        return None;
    }
    if TAKES.contains(&name.as_str()) {
        let object = if text.before(name_start) == '.' { name_start - 1 } else { name_start.checked_sub(2)? };
        return text.place_before(object);
    }
    let type_end = text.skip_blanks_back(name_start);
    let before = text.before(type_end);
    let word = text.code(text.word_start(type_end), type_end);
    let after_colon = before == ':' && text.before(type_end - 1) != ':';
    let after_type =
        type_end < name_start && (is_word(before) || "*&>".contains(before)) && (word.is_empty() || !is_keyword(&word) || word == "auto");
    (after_colon || before == ',' || after_type).then_some(name)
}

/// The left side of the assignment at `equals`; for several variables, the one with this number.
pub(super) fn assigned(text: &Text, equals: usize, number: usize) -> Option<String> {
    let mut start = statement_start(text, equals);
    let mut end = equals;
    let code = text.code(start, equals);
    let is_let = code.trim_start().starts_with("let ");
    let is_rust = is_let || ["static ", "const "].iter().any(|word| code.trim_start().starts_with(word));
    if let Some(colon) = annotation(text, start, equals, is_rust) {
        end = colon;
    }
    if is_let {
        start = text.skip_blanks(text.skip_blanks(start) + 3);
    }
    end = text.skip_blanks_back(end);
    // `let (a, b) =`, `auto [a, b] =`
    let grouped = matches!(text.before(end), ')' | ']').then(|| text.opening(end - 1)).flatten();
    let structured = text.code(start, grouped.unwrap_or(start));
    let group =
        grouped.filter(|_| structured.trim().is_empty() || structured.trim().ends_with("auto") || structured.trim().ends_with("auto&"));
    let parts = match group {
        Some(open) if text.code(open, end).contains(',') => text.split_commas(open + 1, end - 1),
        _ => text.split_commas(start, end),
    };
    let simple = |(from, to): &(usize, usize)| !text.code(*from, *to).trim().contains(char::is_whitespace);
    let chosen = if parts.iter().all(simple) { parts.get(number).or(parts.last()) } else { parts.last() };
    text.place_before(chosen?.1)
}

/// The position of the colon in `a: Type =`.
fn annotation(text: &Text, start: usize, end: usize, is_rust: bool) -> Option<usize> {
    let mut place = start;
    while place < end {
        match text.at(place) {
            '(' | '[' | '{' => place = text.closing(place),
            ':' if text.at(place + 1) == ':' => place += 1,
            ':' => {
                let name = text.code(start, place);
                let plain = !name.trim().contains(char::is_whitespace) && !is_keyword(name.trim()) && !name.contains('?');
                return (is_rust || plain).then_some(place);
            }
            _ => {}
        }
        place += 1;
    }
    None
}

/// The position after the last `;`, `{`, `}`, enclosing bracket, or comma that follows an earlier assignment.
fn statement_start(text: &Text, end: usize) -> usize {
    let mut place = end;
    let mut comma = None;
    while place > 0 {
        match text.before(place) {
            ';' | '{' | '}' | '(' => return comma.filter(|_| text.before(place) == '(').unwrap_or(place),
            ')' | ']' => place = text.opening(place - 1).unwrap_or(place - 1),
            '=' if text.assigns(place - 1) => return comma.unwrap_or(place),
            ',' => {
                comma = comma.or(Some(place));
                place -= 1;
            }
            _ => place -= 1,
        }
    }
    0
}
