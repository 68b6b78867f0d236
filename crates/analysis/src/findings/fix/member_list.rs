//! Memory that a constructor of C++ makes in the list of its members: `Grid(int n) : n_(n), data_(new double[n]) {`. The constructor's body is the
//! first place where a loop can stand.

use super::edit::insert;
use super::pretouch::{bound, factor, pure_text, touching_loop};
use super::team::Team;
use crate::code::expression::{NUMBERS, text_of};
use crate::code::regions::File;
use crate::code::tokens::{Kind, Token, after_bracket};
use crate::{EditAction, FixEdit};

/// A loop at the start of the constructor's body that places the pages of the member `name`, or of the only member of the line; `None` if the source does not show that nothing is
/// written there before. `team`: the one that uses the member.
pub(super) fn touched_in_body(file: &File, line: u32, name: &str, team: &Team) -> Option<Vec<FixEdit>> {
    let calls = file.on_line(line).filter(|at| file.tokens.get(*at).is_some_and(|t| t.is("new")));
    let members: Vec<Member> = calls.into_iter().filter_map(|at| member(file, at)).collect();
    // The object may be named by the variable that holds the instance.
    let Member { name, bytes, list, body } = match &members[..] {
        [only] => only,
        several => several.iter().find(|one| one.name == name)?,
    };
    let (list, body) = (*list, *body);
    let is_safe = !file.is_conditional(&(list..body)) && is_only_declared(file, name) && !is_parameter(file, list, name);
    if !is_safe || !file.directives_around(body + 1)?.is_empty() {
        return None;
    }
    let tokens = &file.tokens;
    let brace = tokens.get(body)?;
    let head = file.line(brace.line)?;
    let next = tokens.get(body + 1)?;
    let own: String = head.chars().take_while(|c| c.is_whitespace()).collect();
    let lines = |indent: &str| touching_loop(file, name, ("0", bytes), None, team, indent);
    if file.ends_line(body) {
        let indent = file.indent_before(body + 1).filter(|_| !next.is("}") && next.kind != Kind::Directive);
        let text = lines(indent.unwrap_or(&format!("{own}    ")))?;
        return Some(vec![insert(EditAction::InsertAfter, &file.path, brace.line, text)]);
    }
    // `Grid(int n) : data_(new double[n]) {}`
    let is_one_line = next.is("}") && file.ends_line(body + 1) && next.line == brace.line;
    // Changes for two members of the list would each replace its line.
    let is_alone = tokens.get(list..body)?.iter().filter(|t| t.is("new")).count() == 1;
    if !is_one_line || !is_alone {
        return None;
    }
    let text = [vec![head.get(..brace.end)?.to_owned()], lines(&format!("{own}    "))?, vec![format!("{own}{}", head.get(next.start..)?)]];
    Some(vec![insert(EditAction::Replace, &file.path, brace.line, text.concat())])
}

/// `name(new T[count])` in a list of members.
struct Member {
    name: String,
    bytes: String,
    /// The colon of the list, and the brace of the constructor's body.
    list: usize,
    body: usize,
}

/// The member with this `new`.
fn member(file: &File, at: usize) -> Option<Member> {
    let tokens = &file.tokens;
    let open = at.checked_sub(1)?;
    let own = at.checked_sub(2)?;
    let name = tokens.get(own).filter(|t| t.kind == Kind::Word)?.text.clone();
    let is_list = tokens.get(open).is_some_and(|t| t.is("(") || t.is("{"));
    let bracket = (at + 1..tokens.len()).find(|index| !tokens.get(*index).is_some_and(|t| t.kind == Kind::Word || t.is("::")))?;
    let element = tokens.get(at + 1..bracket).filter(|kind| !kind.is_empty())?;
    // Numbers are not initialised by `new T[n]`, but by `new T[n]()`.
    let is_number = element.iter().all(|t| t.is("::") || NUMBERS.contains(&t.text.as_str()));
    let after = after_bracket(tokens, bracket).filter(|_| tokens.get(bracket).is_some_and(|t| t.is("[")))?;
    let is_whole = after_bracket(tokens, open) == Some(after + 1);
    if !is_list || !is_number || !is_whole {
        return None;
    }
    let count = pure_text(file, tokens.get(bracket + 1..after - 1)?)?;
    let bytes = bound(&format!("{} * sizeof({})", factor(&count), text_of(element)));
    let (list, body) = (start_of_list(tokens, own)?, body_after(tokens, after + 1)?);
    // A parameter that is changed in the list gives another size in the body.
    let changes = |t: &Token| ["++", "--", "=", "+=", "-=", "move", "exchange"].iter().any(|mark| t.is(mark));
    (!tokens.get(list..body)?.iter().any(changes)).then_some(Member { name, bytes, list, body })
}

/// The colon before the list of members in which a member's name stands.
fn start_of_list(tokens: &[Token], mut member: usize) -> Option<usize> {
    loop {
        let before = member.checked_sub(1)?;
        let last = tokens.get(before.checked_sub(1)?)?;
        match tokens.get(before)?.text.as_str() {
            ":" if last.is(")") || last.is("noexcept") => return Some(before),
            "," if last.is(")") || last.is("}") => {
                let open = (0..before).rev().find(|open| {
                    tokens.get(*open).is_some_and(|t| t.is("(") || t.is("{")) && after_bracket(tokens, *open) == Some(before)
                })?;
                member = open.checked_sub(1).filter(|name| tokens.get(*name).is_some_and(|t| t.kind == Kind::Word))?;
            }
            _ => return None,
        }
    }
}

/// The brace of the body behind the rest of a list.
fn body_after(tokens: &[Token], mut at: usize) -> Option<usize> {
    while tokens.get(at)?.is(",") {
        let is_plain = tokens.get(at + 1)?.kind == Kind::Word && tokens.get(at + 2).is_some_and(|t| t.is("(") || t.is("{"));
        at = after_bracket(tokens, at + 2).filter(|_| is_plain)?;
    }
    tokens.get(at).is_some_and(|t| t.is("{")).then_some(at)
}

/// Whether outside of functions the name only stands in declarations and at the front of lists' members, so that nothing but the body can use it.
fn is_only_declared(file: &File, name: &str) -> bool {
    let named = file.tokens.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word && t.text == name);
    let declares = |at: usize| {
        let next = file.tokens.get(at + 1).map(|t| t.text.as_str()).unwrap_or_default();
        // `data_(new double[n])`, `data_{nullptr}`, `double *data_ = nullptr;`; not `fill(data_, n)`
        [";", ",", "=", "(", "{"].contains(&next) && !is_in_brackets(&file.tokens, at)
    };
    named.into_iter().all(|(at, _)| file.function(at).is_some() || declares(at))
}

/// Whether a bracket that began in the same declaration is open at a token.
fn is_in_brackets(tokens: &[Token], at: usize) -> bool {
    let mut closed = 0_usize;
    for token in tokens.iter().take(at).rev().filter(|t| t.kind == Kind::Mark) {
        match token.text.as_str() {
            ";" | "{" | "}" => return false,
            ")" => closed += 1,
            "(" if closed == 0 => return true,
            "(" => closed -= 1,
            _ => {}
        }
    }
    false
}

/// Whether a parameter of the constructor has the name: it hides the member.
fn is_parameter(file: &File, colon: usize, name: &str) -> bool {
    let tokens = &file.tokens;
    let close = (0..colon).rev().find(|at| tokens.get(*at).is_some_and(|t| t.is(")")));
    let parameters = close.and_then(|close| {
        let open = (0..close).rev().find(|open| after_bracket(tokens, *open) == Some(close + 1))?;
        tokens.get(open..close)
    });
    parameters.is_none_or(|list| list.iter().any(|t| t.is(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::regions::tests::file;

    /// The change for the member `u_` of a class with this constructor.
    fn change(constructor: &str) -> Option<String> {
        let text = format!(
            "class Grid {{\n    size_t n_;\n    double *u_, *v_;\npublic:\n{constructor}\n    void step() {{ v_[0] = u_[0]; }}\n}};\n"
        );
        let file = file(&text);
        let line = file.tokens.iter().find(|t| t.is("new"))?.line;
        let [edit] = &touched_in_body(&file, line, "u_", &Team::default())?[..] else { return None };
        let action = if edit.action == EditAction::Replace { "replace" } else { "after" };
        Some(format!("{action} {}: {}", edit.line, edit.text.join("|")))
    }

    /// Check the loop at the start of a body on several lines, on the next line, and on the list's own.
    #[test]
    fn loops_stand_in_the_body() {
        let first = "#pragma omp parallel for schedule(static)";
        let second = "for (size_t page = 0; page < n * sizeof(double); page += 4096)";
        let third = "    ((char *)u_)[page] = 0;";
        let with = |indent: &str| format!("{indent}{first}|{indent}{second}|{indent}{third}");
        let several = "    Grid(size_t n)\n        : n_(n), u_(new double[n]),\n          v_(new double[n]) {\n        n_++;\n    }";
        assert_eq!(change(several), Some(format!("after 7: {}", with("        "))));
        assert_eq!(change("  Grid(size_t n) : u_(new double[n])\n  {\n  }"), Some(format!("after 6: {}", with("      "))));
        let short = change("    Grid(size_t n) : n_(n), u_(new double[n]) {} // all");
        assert_eq!(
            short,
            Some(format!("replace 5: {}|{}|    }} // all", "    Grid(size_t n) : n_(n), u_(new double[n]) {", with("        ")))
        );
    }

    /// Check that no change is offered if something may have been written before, or if its size or its name mean something else in the body.
    #[test]
    fn uncertain_lists_are_left_alone() {
        for constructor in [
            "Grid(size_t n) : u_(new double[n]()) {\n}",
            "Grid(size_t n) : n_(n), u_{new double[n]} {\n}",
            "Grid(size_t n) : u_(new Cell[n]) {\n}",
            "Grid(size_t n) : u_(new double[n]), v_(fill(u_, n)) {\n}",
            "Grid(size_t n) : u_(new double[n]), n_(n++) {\n}",
            "Grid(size_t n) : u_(new double[count()]) {\n}",
            "Grid(size_t n, double *u_) : u_(new double[n]) {\n}",
            "Grid(size_t n) : u_(touched(new double[n])) {\n}",
            "Grid(size_t n) : u_(new double[n]) { n_ = n; }",
            "Grid(size_t n) : u_(new double[n]), v_(new double[n]) {}",
            "Grid(size_t n) : u_(new double[n])\n#if SMALL\n, n_(1)\n#endif\n{\n}",
            "double *w = fill(u_); Grid(size_t n) : u_(new double[n]) {\n}",
            "void f(bool b) { p = b ? x : u_(new double[n]); }",
        ] {
            assert_eq!(change(constructor), None, "{constructor}");
        }
    }
}
