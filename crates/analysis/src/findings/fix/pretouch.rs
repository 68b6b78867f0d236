//! Places the pages of new memory before the program's own code writes it: a parallel loop that writes one byte of each page, directly after the
//! allocation. This keeps the program's values whatever its own code does then, because nothing has written there yet.

use super::super::{Case, Context};
use super::edit::insert;
use super::member_list;
use super::team::{self, Team};
use crate::code::expression::{NUMBERS, text_of, whole};
use crate::code::fortran::Fortran;
use crate::code::regions::File;
use crate::code::tokens::{Kind, Token, after_bracket};
use crate::names::{Language, in_code};
use crate::partition::Order;
use crate::{EditAction, FixEdit, PartitionKind};
use std::ops::Range;

/// Names for the loop's variable: the first one that the file does not use.
const VARIABLES: &[&str] = &["page", "at_byte", "page_start", "first_byte"];
/// The smallest page: a smaller step than a page writes some pages twice.
const PAGE: &str = "4096";
/// Statements after an allocation that may come before the check of its result.
const MOST_STATEMENTS: usize = 12;
const ALLOCATORS: &[&str] = &["malloc", "calloc", "aligned_alloc", "memalign", "mmap", "new"];

/// New memory: what holds it, as code, and its size in bytes.
struct New {
    holder: String,
    bytes: String,
    /// Whether the result may be null, and the program would run on.
    may_be_null: bool,
    is_mapping: bool,
}

/// The loop after the allocation; `None` if the source does not show where the memory begins, how large it is, and that it is new.
pub(super) fn pretouch(context: &Context<'_>, case: &Case<'_>) -> Option<Vec<FixEdit>> {
    let place = case.view.allocated_at.as_ref()?;
    let (path, line) = (place.file.as_deref()?, place.line?);
    // Several objects at a time: a loop in each would divide each of them among all threads.
    let is_block = case.subject.partition.kind == PartitionKind::Block;
    // Within a parallel region, the loop would have one thread.
    if context.is_allocated_in_region(case) {
        return None;
    }
    if !is_block || case.view.total_bytes >= case.view.bytes.saturating_mul(2) || case.group.pool.is_some() || case.group.processes() > 1 {
        return None;
    }
    match Language::of(path)? {
        Language::C | Language::Cpp => in_c(context, case, path, line),
        Language::Fortran => in_fortran(context, case, path, line),
        Language::Rust | Language::Python => None,
    }
}

fn in_c(context: &Context<'_>, case: &Case<'_>, path: &str, line: u32) -> Option<Vec<FixEdit>> {
    let file = File::read(context.places.sources, path)?;
    let name = in_code(&case.view.name);
    let Some((statement, new)) = allocation(&file, line, name) else {
        let team = Team::of(context, case, path, line)?;
        return member_list::touched_in_body(&file, line, name, &team);
    };
    if !file.directives_around(statement.start)?.is_empty() || file.is_conditional(&statement) {
        return None;
    }
    let (after, is_checked) = after_check(&file, &statement, name)?;
    let last = file.tokens.get(after - 1)?;
    if new.is_mapping && !is_checked {
        return None;
    }
    let guard = (new.may_be_null && !is_checked).then_some(new.holder.as_str());
    let first = file.tokens.get(statement.start)?;
    let indent: String = file.line(first.line)?.chars().take_while(|c| c.is_whitespace()).collect();
    let team = Team::of(context, case, path, first.line)?;
    let text = touching_loop(&file, &new.holder, ("0", &new.bytes), guard, &team, &indent)?;
    Some(vec![insert(EditAction::InsertAfter, path, last.line, text)])
}

/// New memory, and where a statement about it can stand: directly after the check of its result, or after the allocation.
pub(super) struct Fresh {
    pub holder: String,
    pub bytes: String,
    pub indent: String,
    pub last_line: u32,
}

/// The memory that a statement on `line` allocates for an object of this name.
pub(super) fn new_memory(file: &File, line: u32, name: &str) -> Option<Fresh> {
    let (statement, new) = allocation(file, line, name)?;
    if file.is_conditional(&statement) {
        return None;
    }
    let (after, is_checked) = after_check(file, &statement, name)?;
    if new.is_mapping && !is_checked {
        return None;
    }
    let first = file.tokens.get(statement.start)?;
    let indent = file.line(first.line)?.chars().take_while(|c| c.is_whitespace()).collect();
    Some(Fresh { holder: new.holder, bytes: new.bytes, indent, last_line: file.tokens.get(after - 1)?.line })
}

/// A parallel loop that writes one byte of each page from one offset to another: from the last page on, if the last threads use the beginning.
/// `guard`: what must not be null.
pub(super) fn touching_loop(
    file: &File,
    holder: &str,
    (from, to): (&str, &str),
    guard: Option<&str>,
    team: &Team,
    indent: &str,
) -> Option<Vec<String>> {
    let variable = VARIABLES.iter().find(|name| !file.has_word(name))?;
    let size = if file.has_word("size_t") { "size_t" } else { "unsigned long" };
    let size = if size == "size_t" && is_cpp(&file.path) && !has_plain_size_t(file) { "std::size_t" } else { size };
    let mut text: Vec<String> = guard.iter().map(|guard| format!("{indent}if ({guard})")).collect();
    let at = match (team.is_reversed, from) {
        (false, _) => (*variable).to_owned(),
        (true, "0") => format!("{to} - 1 - {variable}"),
        (true, _) => format!("{from} + {to} - 1 - {variable}"),
    };
    text.push(format!("{indent}#pragma omp parallel for{} schedule(static)", team.clause));
    text.push(format!("{indent}for ({size} {variable} = {from}; {variable} < {to}; {variable} += {PAGE})"));
    text.push(format!("{indent}    ((char *){holder})[{at}] = 0;"));
    Some(text)
}

/// Whether the file uses `size_t` without its namespace.
fn has_plain_size_t(file: &File) -> bool {
    file.tokens.windows(2).any(|pair| matches!(pair, [before, word] if word.is("size_t") && !before.is("::")))
}

pub(super) fn is_cpp(path: &str) -> bool {
    Language::of(path) == Some(Language::Cpp)
}

/// The statement that allocates an object of this name on a line.
fn allocation(file: &File, line: u32, name: &str) -> Option<(Range<usize>, New)> {
    let on = file.on_line(line);
    let first = on.start;
    let calls = on.filter(|at| file.tokens.get(*at).is_some_and(|t| t.kind == Kind::Word && ALLOCATORS.contains(&t.text.as_str())));
    calls.into_iter().find_map(|at| {
        // `std::unique_ptr<double[]> v(new double[n])`: the call is in brackets, the statement begins the line.
        let statement = file.statement(at).or_else(|| file.statement(first).filter(|one| one.contains(&at)))?;
        let new = if file.tokens.get(at)?.is("new") { of_new(file, &statement, at) } else { of_call(file, &statement, at) };
        let new = new.filter(|new| new.holder.trim_end_matches(".get()") == name)?;
        Some((statement, new))
    })
}

/// `p = malloc(n)`, `double *p = (double *)calloc(n, 8)`
fn of_call(file: &File, statement: &Range<usize>, at: usize) -> Option<New> {
    let tokens = &file.tokens;
    let after = after_bracket(tokens, at + 1).filter(|_| tokens.get(at + 1).is_some_and(|t| t.is("(")))?;
    let mut before = at;
    if tokens.get(before - 1)?.is("::") {
        before -= if tokens.get(before - 2)?.is("std") { 2 } else { 1 };
    }
    // A cast.
    if tokens.get(before - 1)?.is(")") {
        before = (statement.start..before).rev().find(|open| after_bracket(tokens, *open) == Some(before))?;
    } else if tokens.get(before - 1)?.is("(") && tokens.get(before - 2)?.is(">") {
        // `static_cast<double *>(malloc(n))`
        let angle = (statement.start..before).rev().find(|at| tokens.get(*at).is_some_and(|t| t.text.ends_with("_cast")))?;
        before = angle;
    }
    let holder = target(tokens, statement, before)?;
    let arguments = split(tokens.get(at + 2..after - 1)?);
    let texts: Vec<String> = arguments.iter().map(|one| pure_text(file, one)).collect::<Option<_>>()?;
    let call = tokens.get(at)?.text.as_str();
    let bytes = match (call, texts.as_slice()) {
        ("malloc", [bytes]) | ("aligned_alloc" | "memalign", [_, bytes]) => bytes.clone(),
        ("calloc", [count, size]) => format!("{} * {}", factor(count), factor(size)),
        // A file's pages must not be written.
        ("mmap", [_, bytes, _, flags, ..]) if flags.contains("MAP_ANON") => bytes.clone(),
        _ => return None,
    };
    let rest = tokens.get(after..statement.end)?;
    let last = holder.rsplit(['.', '>']).next()?.to_owned();
    let is_alone = !rest.iter().any(|t| t.text == last);
    let is_mapping = call == "mmap";
    is_alone.then(|| New { holder, bytes: bound(&bytes), may_be_null: true, is_mapping })
}

/// `double *p = new double[n]`, `std::unique_ptr<double[]> p(new double[n])`, `p.reset(new double[n])`
fn of_new(file: &File, statement: &Range<usize>, at: usize) -> Option<New> {
    let tokens = &file.tokens;
    let open = (at + 1..statement.end).find(|index| !tokens.get(*index).is_some_and(|t| t.kind == Kind::Word || t.is("::")))?;
    let element = tokens.get(at + 1..open).filter(|kind| !kind.is_empty())?;
    // Numbers are not initialised by `new T[n]`.
    let is_number = element.iter().all(|t| t.is("::") || NUMBERS.contains(&t.text.as_str()));
    let after = after_bracket(tokens, open).filter(|_| tokens.get(open).is_some_and(|t| t.is("[")))?;
    let ends = tokens.get(after).is_some_and(|t| t.is(";") || t.is(",") || t.is(")"));
    let count = pure_text(file, tokens.get(open + 1..after - 1)?)?;
    let bytes = format!("{} * sizeof({})", factor(&count), text_of(element));
    let before = tokens.get(at.checked_sub(1)?)?;
    let holder = if before.is("=") {
        target(tokens, statement, at)?
    } else if before.is("(") && tokens.get(after)?.is(")") && tokens.get(after + 1)?.is(";") {
        let name = tokens.get(at.checked_sub(2)?).filter(|t| t.kind == Kind::Word)?;
        let inside = tokens.get(statement.start..at)?;
        let is_smart = inside.iter().any(|t| t.text.ends_with("_ptr")) && inside.iter().any(|t| t.is("["));
        if name.is("reset") {
            format!("{}.get()", path_before(tokens, statement, at.checked_sub(3)?)?)
        } else if is_smart && name.text != "unique_ptr" && name.text != "shared_ptr" {
            format!("{}.get()", name.text)
        } else {
            return None;
        }
    } else {
        return None;
    };
    (is_number && ends).then(|| New { holder, bytes: bound(&bytes), may_be_null: false, is_mapping: false })
}

/// What is assigned to before `= value`, where the value begins at a token: `p`, `p->x`, `m.pressure`.
fn target(tokens: &[Token], statement: &Range<usize>, value: usize) -> Option<String> {
    let equals = value.checked_sub(1).filter(|at| tokens.get(*at).is_some_and(|t| t.is("=")))?;
    path_before(tokens, statement, equals)
}

/// The path of names that ends before a token.
fn path_before(tokens: &[Token], statement: &Range<usize>, end: usize) -> Option<String> {
    let mut at = end;
    while at > statement.start {
        let token = tokens.get(at - 1)?;
        let joins = token.is(".") || token.is("->");
        let follows_name = tokens.get(at).filter(|_| at < end).is_some_and(|t| t.kind == Kind::Word);
        if joins || (token.kind == Kind::Word && !follows_name) {
            at -= 1;
        } else {
            break;
        }
    }
    let path = tokens.get(at..end).filter(|path| path.first().is_some_and(|t| t.kind == Kind::Word))?;
    Some(text_of(path))
}

/// Arguments, separated by commas outside of brackets.
pub(super) fn split(tokens: &[Token]) -> Vec<&[Token]> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                parts.extend(tokens.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(tokens.get(start..).filter(|last| !last.is_empty()));
    parts
}

/// The source text of an expression that may be written twice: it changes nothing and calls nothing.
pub(super) fn pure_text(file: &File, tokens: &[Token]) -> Option<String> {
    let expression = whole(tokens)?;
    let is_harmless = expression.names().iter().all(|name| file.is_harmless(name));
    let (first, last) = (tokens.first()?, tokens.last()?);
    let text = file.line(first.line)?.get(first.start..last.end)?.to_owned();
    (expression.is_pure() && is_harmless && first.line == last.line).then_some(text)
}

/// Adds brackets if the text is not a factor of a product.
pub(super) fn factor(text: &str) -> String {
    let is_one = text.chars().all(|c| c.is_alphanumeric() || "_.[]* ".contains(c)) || text.starts_with("sizeof");
    if is_one { text.to_owned() } else { format!("({text})") }
}

/// Adds brackets if the text cannot stand beside `<`.
pub(super) fn bound(text: &str) -> String {
    let is_sum = text.chars().all(|c| c.is_alphanumeric() || "_.[]*() +-/>:".contains(c)) && !text.contains("> ") && !text.contains(">>");
    if is_sum { text.to_owned() } else { format!("({text})") }
}

/// The position after the allocation, and after the check that its result is not null; whether there is such a check.
fn after_check(file: &File, statement: &Range<usize>, name: &str) -> Option<(usize, bool)> {
    let tokens = &file.tokens;
    let last = name.rsplit(['.', '>']).next()?;
    let mentions =
        |range: &Range<usize>| tokens.get(range.clone()).is_some_and(|list| list.iter().any(|t| t.kind == Kind::Word && t.text == last));
    let mut at = statement.end;
    let mut end = statement.end;
    for _ in 0..MOST_STATEMENTS {
        let Some(next) = tokens.get(at) else { break };
        if next.kind == Kind::Directive || next.is("}") {
            break;
        }
        let Some(after) = crate::code::syntax::end_of(tokens, at) else { break };
        let range = at..after;
        if mentions(&range) {
            let checks = is_check(file, &range, last);
            if checks && file.ends_line(after - 1) {
                return Some((after, true));
            }
            break;
        }
        let list = tokens.get(range)?;
        let allocates = list.iter().any(|t| ALLOCATORS.contains(&t.text.as_str()));
        let is_plain = !list.iter().any(|t| t.is("return") || t.is("goto") || t.is("break") || t.is("continue"));
        let checks_another = next.is("if") && !is_plain;
        if !(allocates && is_plain || checks_another) {
            break;
        }
        at = after;
        // The loop cannot stand within a line.
        if !file.ends_line(end - 1) {
            end = after;
        }
    }
    file.ends_line(end - 1).then_some((end, false))
}

/// Whether a statement leaves if the memory was not obtained: `if (!a || !b) return 1;`, `assert(a);`
fn is_check(file: &File, range: &Range<usize>, name: &str) -> bool {
    let Some(list) = file.tokens.get(range.clone()) else { return false };
    let Some(first) = list.first() else { return false };
    if first.is("assert") {
        return !list.iter().any(|t| t.is("["));
    }
    let Some(after) = after_bracket(list, 1).filter(|_| first.is("if")) else { return false };
    let condition = list.get(2..after - 1).unwrap_or_default();
    let body = list.get(after..).unwrap_or_default();
    let leaves = ["return", "exit", "abort", "throw", "goto", "_exit", "die", "fatal", "MPI_Abort"];
    let is_null = |at: usize| {
        let path_start =
            (0..=at).rev().find(|before| !condition.get(*before).is_some_and(|t| t.kind == Kind::Word || t.is(".") || t.is("->")));
        let negated = path_start.and_then(|before| condition.get(before)).is_some_and(|t| t.is("!"));
        let nothing = |t: &Token| ["NULL", "nullptr", "0", "MAP_FAILED"].contains(&t.text.as_str());
        let compared = condition.get(at + 1).is_some_and(|t| t.is("==")) && condition.get(at + 2).is_some_and(nothing);
        negated || compared
    };
    let tests = condition.iter().enumerate().filter(|(_, t)| t.text == name).all(|(at, _)| is_null(at));
    let is_alone = !condition.iter().any(|t| t.is("&&"));
    tests
        && is_alone
        && condition.iter().any(|t| t.text == name)
        && body.iter().any(|t| leaves.contains(&t.text.as_str()))
        && !body.iter().any(|t| t.is("else"))
}

/// An assignment of zeros in parallel, directly after `allocate`.
fn in_fortran(context: &Context<'_>, case: &Case<'_>, path: &str, line: u32) -> Option<Vec<FixEdit>> {
    let file = Fortran::read(context.places.sources, path)?;
    let name = in_code(&case.view.name).to_ascii_lowercase();
    let code = file.code(line);
    let is_statement = code.starts_with("allocate") && code.ends_with(')') && !code.contains('=') && !code.contains(';');
    // A workshare goes through the array in order.
    let is_statement = is_statement && case.subject.partition.order() == Order::Ascending;
    if !is_statement || !file.is_array(&name) || !file.is_number(&name) || !file.directives_around(line)?.is_empty() {
        return None;
    }
    let text = file.text(line)?;
    let indent = text.get(..text.len() - text.trim_start().len())?;
    let team = team::size(context, case, path, line)?;
    let lines = vec![
        format!("{indent}!$omp parallel workshare{team}"),
        format!("{indent}{name} = 0"),
        format!("{indent}!$omp end parallel workshare"),
    ];
    Some(vec![insert(EditAction::InsertAfter, path, line, lines)])
}
