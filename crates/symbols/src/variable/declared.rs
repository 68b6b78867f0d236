//! Allocations without an explicit call of an allocator: Fortran's `allocate`, C++ containers, plain assignments.

use super::VariableCandidate;
use super::explicit::assigned;
use super::text::{Text, is_keyword, is_reserved, is_word};

/// The variables of the Fortran `allocate` statements of a line.
pub(super) fn fortran(text: &Text) -> Vec<VariableCandidate> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = allocate_statement(text, from) {
        let code_end = (open..text.len()).find(|place| text.at(*place) == '!').unwrap_or(text.len());
        let end = text.closing(open).min(code_end);
        let parts = text.split_commas(open + 1, end);
        found.extend(parts.into_iter().filter_map(|(start, end)| fortran_object(text, start, end)));
        from = end.max(open + 1);
    }
    found
}

/// The bracket of the next `allocate (` behind a place, but not of one in a comment.
fn allocate_statement(text: &Text, from: usize) -> Option<usize> {
    let mut place = from;
    while place < text.len() {
        let end = text.word_end(place);
        if end == place {
            if from > 0 && text.at(place) == '!' {
                return None;
            }
            place += 1;
            continue;
        }
        let open = text.skip_blanks(end);
        if text.code(place, end).eq_ignore_ascii_case("allocate") && text.at(open) == '(' && !".:>".contains(text.before(place)) {
            return Some(open);
        }
        place = end;
    }
    None
}

/// `a(n)`, `x%field(n)`, `real(8) :: a(n)`; not `stat=ierr`.
fn fortran_object(text: &Text, start: usize, end: usize) -> Option<VariableCandidate> {
    let code = text.code(start, end);
    if (start..end).any(|place| text.at(place) == '=') {
        return None;
    }
    let start = code.find("::").map_or(start, |at| start + code.get(..at).map_or(0, |before| before.chars().count()) + 2);
    let mut from = text.skip_blanks(start);
    while text.at(from) == '&' {
        from = text.skip_blanks(from + 1);
    }
    let mut to = text.skip_blanks_back(end);
    while text.before(to) == '&' {
        to = text.skip_blanks_back(to - 1);
    }
    let bounds = if text.before(to) == ')' { text.opening(to - 1) } else { None };
    let name = text.source(from, bounds.unwrap_or(to).max(from));
    // If the statement is cut off within a bracket, the bounds remain.
    let name = if bounds.is_none() { name.split('(').next().unwrap_or_default().to_owned() } else { name };
    (name.chars().next().is_some_and(is_word)).then(|| VariableCandidate::of(from, name))
}

/// Methods that make a container allocate.
const GROWING: &[&str] = &[
    "resize",
    "reserve",
    "assign",
    "push_back",
    "emplace_back",
    "insert",
    "append",
    "extend",
    "push",
    "extend_from_slice",
    "shrink_to_fit",
    "setZero",
    "setConstant",
    "setOnes",
    "setRandom",
    "set_size",
    "zeros",
    "fill",
    "allocate",
];

/// `a.resize(n)`, `p->a.reserve(n)`.
pub(super) fn growing(text: &Text) -> Vec<VariableCandidate> {
    let mut found = Vec::new();
    for open in (0..text.len()).filter(|place| text.at(*place) == '(') {
        let start = text.word_start(open);
        let is_method = GROWING.contains(&text.code(start, open).as_str());
        let object = match (text.before(start.saturating_sub(1)), text.before(start)) {
            (_, '.') => start - 1,
            ('-', '>') => start - 2,
            _ => continue,
        };
        if let Some(name) = text.place_before(object).filter(|_| is_method) {
            found.push(VariableCandidate::of(start, name));
        }
    }
    found
}

/// Members that a C++ constructor initialises: `Grid(int n) : data_(n), more_{n} {}`.
pub(super) fn member_initialisers(text: &Text) -> Vec<VariableCandidate> {
    let Some(start) = initialiser_list(text) else { return Vec::new() };
    let mut found = Vec::new();
    let mut place = start;
    loop {
        let from = text.skip_blanks(place);
        let end = text.word_end(from);
        let mut open = text.skip_blanks(end);
        if text.at(open) == '<' {
            open = text.after_template(open).unwrap_or(open);
        }
        if end == from || !matches!(text.at(open), '(' | '{') {
            return found;
        }
        let close = text.closing(open);
        // `data_()` allocates nothing.
        if !text.code(open + 1, close).trim().is_empty() {
            found.push(VariableCandidate::of(from, text.source(from, end)));
        }
        place = text.skip_blanks(close + 1);
        if text.at(place) != ',' {
            return found;
        }
        place += 1;
    }
}

/// The position after the colon of a constructor, or after the start of a continued list.
fn initialiser_list(text: &Text) -> Option<usize> {
    let first = text.skip_blanks(0);
    if matches!(text.at(first), ':' | ',') && text.at(first + 1) != ':' {
        return Some(first + 1);
    }
    let colon = (0..text.len()).find(|place| {
        let before = text.skip_blanks_back(*place);
        let after_parameters = text.before(before) == ')' || text.code(0, before).ends_with("noexcept");
        text.at(*place) == ':' && text.at(place + 1) != ':' && after_parameters
    })?;
    (!text.code(0, colon).contains(['?', '='])).then_some(colon + 1)
}

/// Variables declared with a constructor call: `std::vector<double> a(n), b(n, 0.0);`, `Matrix m{n, n};`.
pub(super) fn declarations(text: &Text) -> Vec<VariableCandidate> {
    statements(text).into_iter().flat_map(|(start, end)| declaration(text, start, end)).collect()
}

/// The parts between `;` and block braces at the start of a line.
fn statements(text: &Text) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let (mut start, mut place) = (0, 0);
    while place < text.len() {
        match text.at(place) {
            ';' => {
                found.push((start, place));
                start = place + 1;
            }
            '(' | '[' => place = text.closing(place),
            '{' | '}' if text.code(start, place).trim().is_empty() || text.before(text.skip_blanks_back(place)) == ')' => start = place + 1,
            '{' => place = text.closing(place),
            _ => {}
        }
        place += 1;
    }
    found.push((start, text.len()));
    found
}

fn declaration(text: &Text, start: usize, end: usize) -> Vec<VariableCandidate> {
    let Some(declarators) = after_type(text, start, end) else { return Vec::new() };
    let parts = text.split_commas(declarators, end).into_iter();
    parts.filter_map(|(from, to)| declarator(text, from, to)).collect()
}

/// Skips `static const std::vector<double> *`; `None` when no type starts here.
fn after_type(text: &Text, start: usize, end: usize) -> Option<usize> {
    const QUALIFIERS: &[&str] =
        &["static", "const", "constexpr", "thread_local", "extern", "volatile", "inline", "unsigned", "struct", "auto"];
    let mut place = text.skip_blanks(start);
    let mut word = text.code(place, text.word_end(place));
    while QUALIFIERS.contains(&word.as_str()) && word != "auto" {
        place = text.skip_blanks(text.word_end(place));
        word = text.code(place, text.word_end(place));
    }
    if word.is_empty() || (is_keyword(&word) && word != "auto") || word.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    loop {
        place = text.word_end(place);
        if text.at(place) == '<' {
            place = text.after_template(place)?;
        }
        if text.at(place) == ':' && text.at(place + 1) == ':' {
            place += 2;
            continue;
        }
        break;
    }
    let name = text.skip_blanks(place);
    let separated = name > place || matches!(text.at(place), '*' | '&');
    (separated && name < end).then_some(name)
}

fn declarator(text: &Text, start: usize, end: usize) -> Option<VariableCandidate> {
    let mut from = text.skip_blanks(start);
    while matches!(text.at(from), '*' | '&') {
        from = text.skip_blanks(from + 1);
    }
    let to = text.word_end(from);
    let open = text.skip_blanks(to);
    let is_word_first = to > from && !text.at(from).is_ascii_digit();
    let initialised = match text.at(open) {
        '(' | '{' => !text.code(open + 1, text.closing(open)).trim().is_empty() && open < end,
        '=' => text.assigns(open),
        _ => false,
    };
    let name = text.source(from, to);
    (is_word_first && initialised && !is_reserved(&name)).then(|| VariableCandidate::of(from, name))
}

/// The left side of the first assignment on the line; several variables (`a, b = ...`) are all candidates.
pub(super) fn assignments(text: &Text) -> Vec<VariableCandidate> {
    let mut place = 0;
    while place < text.len() {
        match text.at(place) {
            '(' | '[' => place = text.closing(place),
            '=' if text.assigns(place) => {
                let names: Vec<_> = (0..8).map_while(|number| assigned(text, place, number)).collect();
                let mut distinct = names;
                distinct.dedup();
                return distinct.into_iter().map(|name| VariableCandidate::of(place, name)).collect();
            }
            _ => {}
        }
        place += 1;
    }
    Vec::new()
}
