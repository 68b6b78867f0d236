//! Finds the variable that an allocation is assigned to in its source line. A line without its context may be in any language, so this
//! recognises patterns and does not parse. If the result is uncertain, it is `None`.

mod declared;
mod explicit;
pub(crate) mod python;
mod text;

use text::Text;

/// An allocation on a line.
struct VariableCandidate {
    /// Its position, in characters.
    position: usize,
    /// What it is assigned to, if anything.
    name: Option<String>,
    /// Whether it can be the call that was asked for.
    fits: bool,
}

impl VariableCandidate {
    /// A variable that receives every allocation at this position.
    fn of(position: usize, name: String) -> Self {
        Self { position, name: Some(name), fits: true }
    }
}

/// The call of an allocation that a container of C++ makes for its elements, in the place of `malloc`: no variable is its own allocator's.
pub const CONTAINER: &str = "std::vector";

/// How many lines before and after may belong to the statement.
const STATEMENT_LINES: usize = 3;

/// The variable that an allocation on this line is assigned to. `call` is the function that made the object (`malloc`,
/// `calloc`, `realloc`, `aligned`, `mmap`, ..., or a function of the program that the line calls). `nth_on_line` counts all
/// allocations on the line from 0: compilers turn malloc into calloc, so the kind of call alone is ambiguous.
#[must_use]
pub fn variable_at_allocation(line_text: &str, call: &str, nth_on_line: usize) -> Option<String> {
    pick(candidates(&Text::new(line_text), call), nth_on_line)
}

/// As [`variable_at_allocation`], for a statement that may span several lines: `source[line_index]` (from 0) and up to three lines
/// before and after it. Of an `allocate` statement of Fortran that is continued, all lines count: gfortran gives the last of them to each of its
/// allocations.
#[must_use]
pub fn variable_near(source: &[&str], line_index: usize, call: &str, nth_on_line: usize) -> Option<String> {
    let line = source.get(line_index)?;
    if let Some(all) = continued_allocate(source, line_index) {
        return pick(all, nth_on_line);
    }
    if let Some(name) = variable_at_allocation(line, call, nth_on_line) {
        return Some(name);
    }
    let mut first = line_index;
    while first > 0 && line_index - first < STATEMENT_LINES && continues(source.get(first - 1)?, source.get(first)?) {
        first -= 1;
    }
    let mut last = line_index;
    while last - line_index < STATEMENT_LINES && source.get(last + 1).is_some_and(|next| continues(source[last], next)) {
        last += 1;
    }
    let mut joined = String::new();
    let mut own = 0..0;
    for (index, part) in source.iter().enumerate().take(last + 1).skip(first) {
        let start = joined.chars().count();
        joined.push_str(without_continuation(part));
        joined.push(' ');
        if index == line_index {
            own = start..joined.chars().count();
        }
    }
    let (here, elsewhere): (Vec<_>, Vec<_>) = candidates(&Text::new(&joined), call).into_iter().partition(|c| own.contains(&c.position));
    pick(if here.is_empty() { elsewhere } else { here }, nth_on_line)
}

/// The variable that the allocation at a column of this line (in bytes from 1) is assigned to: the last allocation or declared variable that begins there
/// or before. Compilers give the name of the function, the name of the variable, or the end of the expression. `None` if that is not certain.
#[must_use]
pub fn variable_at_column(line_text: &str, call: &str, column: u32) -> Option<String> {
    let text = Text::new(line_text);
    let place = line_text.char_indices().take_while(|(at, _)| *at < column as usize).count();
    // gfortran has one column for all allocations of a statement.
    if !declared::fortran(&text).is_empty() {
        return None;
    }
    let mut before: Vec<VariableCandidate> = candidates(&text, call).into_iter().filter(|one| one.position < place).collect();
    before.sort_by_key(|one| one.position);
    let last = before.pop()?;
    let is_one = before.last().is_none_or(|other| other.position < last.position);
    last.name.filter(|_| is_one && last.fits)
}

/// The variables of a Fortran `allocate` statement that continues on other lines; `None` for any other statement.
fn continued_allocate(source: &[&str], line_index: usize) -> Option<Vec<VariableCandidate>> {
    let code = |line: usize| source.get(line).map_or_else(String::new, |line| fortran_code(line));
    let joins = |line: usize, next: usize| code(line).ends_with('&') || code(next).starts_with('&');
    // Comments and blank lines may stand between the lines of a statement.
    let filled = |line: &usize| !code(*line).is_empty();
    let (mut first, mut last) = (line_index, line_index);
    while let Some(before) = (0..first).rev().find(filled).filter(|before| joins(*before, first)) {
        first = before;
    }
    while let Some(next) = (last + 1..source.len()).find(filled).filter(|next| joins(last, *next)) {
        last = next;
    }
    if first == last {
        return None;
    }
    let joined: Vec<String> = (first..=last).map(|line| without_continuation(&code(line)).to_owned()).collect();
    let found = declared::fortran(&Text::new(&joined.join(" ")));
    (!found.is_empty()).then_some(found)
}

/// A line without its comment and the blanks around it.
fn fortran_code(line: &str) -> String {
    let text = Text::new(line);
    let end = (0..text.len()).find(|place| text.at(*place) == '!').unwrap_or(text.len());
    line.chars().take(end).collect::<String>().trim().to_owned()
}

/// Tries the interpretations of the line from the most to the least specific, and returns the first that finds a variable.
fn candidates(text: &Text, call: &str) -> Vec<VariableCandidate> {
    let readings: [fn(&Text) -> Vec<VariableCandidate>; 5] =
        [declared::fortran, declared::growing, declared::member_initialisers, declared::declarations, declared::assignments];
    let implicit = || readings.iter().map(|reading| reading(text)).find(|found| !found.is_empty()).unwrap_or_default();
    if call == CONTAINER {
        // `rho(n, 1.0), flux(std::make_unique<double[]>(n))`: the second is no container.
        let explicit = explicit::candidates(text, "malloc");
        let is_other = |name: &Option<String>| explicit.iter().any(|one| one.name == *name);
        let own: Vec<VariableCandidate> = implicit().into_iter().filter(|one| !is_other(&one.name)).collect();
        if !own.is_empty() || explicit.is_empty() {
            return own;
        }
        return explicit::candidates(text, "malloc");
    }
    let explicit = explicit::candidates(text, call);
    if explicit.is_empty() { implicit() } else { explicit }
}

/// Picks the candidate with this index. If the line has only one variable, it is the answer for every index, because a constructor may
/// allocate more than once. If the call at the index is of the wrong kind, the count is wrong (small allocations are not recorded): take
/// the first call of the right kind.
fn pick(mut candidates: Vec<VariableCandidate>, number: usize) -> Option<String> {
    let index = if candidates.len() == 1 { 0 } else { number };
    let fitting = candidates.get(index)?.fits.then_some(index).or_else(|| candidates.iter().position(|candidate| candidate.fits));
    candidates.swap_remove(fitting.unwrap_or(index)).name
}

/// Whether `next` belongs to the same statement as `line`.
fn continues(line: &str, next: &str) -> bool {
    let length = line.chars().count();
    let code = Text::new(line).code(0, length);
    let (code, next) = (code.trim(), next.trim_start());
    if code.is_empty() || next.is_empty() || code.starts_with('#') {
        return false;
    }
    let opened = code.matches(['(', '[']).count() > code.matches([')', ']']).count();
    let open_end = code.ends_with(['=', ',', '(', '[', '+', '-', '*', '/', '&', '|', '?', '<', '>', '.', '\\']);
    let open_start = next.starts_with(['=', ')', ']', ',', '.', '?', '+', '*', '/', '&', '|', '<', '>', ':']) || next.starts_with("->");
    let ended = code.ends_with([';', '{', '}']);
    !ended && (opened || open_end || (open_start && !next.starts_with("//") && !next.starts_with("/*")))
}

/// Without Fortran's `&` at either end and the backslash of Python and C.
fn without_continuation(line: &str) -> &str {
    let line = line.trim();
    line.trim_start_matches('&').trim_end_matches(['&', '\\'])
}
