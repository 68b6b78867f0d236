//! Calls of the crate firsttouch-alloc: `place` directly after the statement that makes a vector, after the loop in which it grows, or in a block around
//! `vec![x; n]` in a longer expression. Pages that are there then move; those of `Vec::with_capacity` come to their nodes when they are written.

use super::super::edit::insert;
use super::{How, rust_threads};
use crate::code::expression::text_of;
use crate::code::regions::File;
use crate::code::rust::{Assignment, end_of_statement};
use crate::code::syntax::after_angles;
use crate::code::tokens::{Kind, Token, after_bracket};
use crate::findings::{Case, Context};
use crate::names::in_code;
use crate::{EditAction, FixEdit};
use std::ops::Range;

/// Names for the partition: the first one that the file does not use.
const VARIABLES: &[&str] = &["partition", "by_thread", "parts_by_thread"];
/// Calls at the end of an expression that return a new vector, or a boxed slice.
const MAKERS: &[&str] = &["collect", "to_vec", "clone", "repeat", INTO_SLICE];
const INTO_SLICE: &str = "into_boxed_slice";
/// Calls that make a vector longer.
const GROWING: &[&str] = &["push", "extend", "extend_from_slice", "append", "resize"];
/// Words of types whose elements have memory of their own: the object may be one of those.
const OWNERS: &[&str] = &["Vec", "vec", "Box", "String", "collect"];
/// Calls in an element or a size whose result may hold a lock until the end of the statement. A block would end it earlier.
const HOLDERS: &[&str] = &["lock", "read", "write", "borrow", "borrow_mut", "unwrap", "expect"];

pub(super) fn in_rust(context: &Context<'_>, case: &Case<'_>, how: How, path: &str, line: u32) -> Option<Vec<FixEdit>> {
    let file = File::read_rust(context.places.sources, path)?;
    let name = in_code(&case.view.name);
    let variable = VARIABLES.iter().find(|name| !file.has_word(name))?;
    let call = Call { case, how, file: &file, variable };
    match file.rust_assignment(line, name).and_then(|one| Some((vector(&file, &one)?, one))) {
        Some((memory, one)) => call.after(name, memory, &one),
        None => call.after_growth(name, line).or_else(|| call.around(name.rsplit('.').next()?, line)),
    }
}

/// What a new vector has.
#[derive(Clone, Copy)]
enum Memory {
    Elements,
    /// Room for elements: no page is touched.
    Room,
}

/// The memory of the vector that a statement makes; `None` if the source does not show that it makes one.
fn vector(file: &File, one: &Assignment) -> Option<Memory> {
    let kind = file.tokens.get(one.kind.clone())?;
    let value = file.tokens.get(one.value.clone())?;
    if let Some(end) = filled(value, 0) {
        let rest = text_of(value.get(end..)?);
        return (rest.is_empty() || rest == format!(".{INTO_SLICE}()")).then_some(Memory::Elements);
    }
    if let Some(open) = with_capacity(value) {
        return (after_bracket(value, open) == Some(value.len())).then_some(Memory::Room);
    }
    let open = (0..value.len()).rev().find(|at| after_bracket(value, *at) == Some(value.len()))?;
    let before = value.get(..open)?;
    let (maker, own) = match before.iter().rposition(|t| t.is("::")) {
        // `collect::<Vec<f64>>()`
        Some(at) if before.get(at + 1).is_some_and(|t| t.is("<")) && after_angles(before, at + 1) == Some(open) => {
            (at.checked_sub(1)?, before.get(at + 2..open - 1)?)
        }
        _ => (open.checked_sub(1)?, kind),
    };
    let makes = MAKERS.iter().any(|one| value.get(maker).is_some_and(|t| t.is(one))) && before.get(maker.checked_sub(1)?)?.is(".");
    let has_others = value.get(..maker)?.iter().any(is_owner);
    (makes && is_vector(own) && !has_others).then_some(Memory::Elements)
}

fn is_owner(token: &Token) -> bool {
    OWNERS.iter().any(|word| token.is(word))
}

/// `Vec<f64>`, `Box<[f64]>`: of elements that own no memory.
fn is_vector(kind: &[Token]) -> bool {
    let [first, open, inside @ .., close] = kind else { return false };
    let is_box = first.is("Box") && inside.first().is_some_and(|t| t.is("[")) && after_bracket(inside, 0) == Some(inside.len());
    (first.is("Vec") || is_box) && open.is("<") && close.is(">") && !inside.iter().any(is_owner)
}

/// `let mut a = Vec::new();`, `let mut a: Vec<f64> = vec![];`
fn is_empty_vector(tokens: &[Token], declared: usize) -> bool {
    let text = end_of_statement(tokens, declared).and_then(|end| tokens.get(declared + 3..end - 1)).map(text_of).unwrap_or_default();
    let value = text.rsplit('=').next().unwrap_or_default();
    !["Vec<Vec<", "Box"].iter().any(|word| text.contains(word)) && (value.starts_with("Vec::") || value == "vec![]")
}

/// The position after `vec![x; n]` that begins at a token.
fn filled(tokens: &[Token], at: usize) -> Option<usize> {
    let is_macro = tokens.get(at)?.is("vec") && tokens.get(at + 1)?.is("!");
    let after = after_bracket(tokens, at + 2).filter(|_| is_macro)?;
    let inside = tokens.get(at + 3..after - 1)?;
    (inside.iter().any(|t| t.is(";")) && !inside.iter().any(is_owner)).then_some(after)
}

/// The bracket of `Vec::with_capacity(n)` or `Vec::<f64>::with_capacity(n)`.
fn with_capacity(value: &[Token]) -> Option<usize> {
    let after_path = |at: usize| value.get(at).filter(|t| t.is("::")).map(|_| at + 1);
    let mut at = after_path(usize::from(value.first()?.is("Vec"))).filter(|at| *at == 2)?;
    if value.get(at)?.is("<") {
        let after = after_angles(value, at)?;
        if value.get(at + 1..after - 1)?.iter().any(is_owner) {
            return None;
        }
        at = after_path(after)?;
    }
    value.get(at).is_some_and(|t| t.is("with_capacity")).then_some(at + 1)
}

/// A call that is to be written.
struct Call<'a> {
    case: &'a Case<'a>,
    how: How,
    file: &'a File,
    /// The variable that holds the partition.
    variable: &'a str,
}

impl Call<'_> {
    /// After the statement that gives the holder its value.
    fn after(&self, holder: &str, memory: Memory, one: &Assignment) -> Option<Vec<FixEdit>> {
        let Call { file, .. } = self;
        let (start, last) = (one.range.start, one.range.end - 1);
        let indent = file.indent_before(start).filter(|_| file.ends_line(last))?;
        if self.is_in_macro(&one.range) || !(one.is_new || holder.contains('.') || self.is_mutable(holder)) {
            return None;
        }
        let argument = match memory {
            Memory::Elements => format!("&mut {holder}"),
            Memory::Room => format!("{holder}.spare_capacity_mut()"),
        };
        let (first_line, last_line) = (file.tokens.get(start)?.line, file.tokens.get(last)?.line);
        let mut edits = Vec::new();
        if one.is_new && !one.is_mutable {
            let (before, after) = file.line(first_line)?.split_at_checked(file.tokens.get(start)?.end)?;
            edits.push(FixEdit {
                file: file.path.clone(),
                action: EditAction::Replace,
                line: first_line,
                last_line: first_line,
                text: vec![format!("{before} mut{after}")],
            });
        }
        edits.push(insert(EditAction::InsertAfter, &file.path, last_line, self.lines(indent, holder, &argument, start)));
        Some(edits)
    }

    /// After the outermost loop in which a variable grows that is declared before the loop, or after the statement that makes it longer.
    fn after_growth(&self, name: &str, line: u32) -> Option<Vec<FixEdit>> {
        let Call { file, case, .. } = self;
        let tokens = &file.tokens;
        let is = |at: usize, text: &str| tokens.get(at).is_some_and(|t| t.is(text));
        let grows = |at: &usize| is(*at, name) && is(at + 1, ".") && GROWING.iter().any(|call| is(at + 2, call)) && is(at + 3, "(");
        let at = file.on_line(line).find(grows).filter(|at| !at.checked_sub(1).is_some_and(|before| is(before, ".")))?;
        let declared = (0..at).rev().find(|at| is(*at, "let") && is(at + 1, "mut") && is(at + 2, name))?;
        let around = file.braces_around(at);
        let inner = around.strip_prefix(file.braces_around(declared).as_slice())?;
        let first = match inner.first() {
            None => at,
            Some(brace) => brace - file.head(*brace).len(),
        };
        let end = match inner.first() {
            None => end_of_statement(tokens, at)?,
            Some(brace) => after_bracket(tokens, *brace)?,
        };
        let is_loop = inner.is_empty() || ["for", "while", "loop"].iter().any(|word| is(first, word));
        let lines = tokens.get(first)?.line..=tokens.get(end - 1)?.line;
        let used_within =
            case.view.used_at.first().is_some_and(|place| {
                place.file.as_deref() == Some(file.path.as_str()) && place.line.is_some_and(|line| lines.contains(&line))
            });
        let indent = file.indent_before(first).filter(|_| file.ends_line(end - 1))?;
        // An element's own memory may be the object.
        let makes = |t: &Token| is_owner(t) || t.is("with_capacity") || MAKERS.iter().any(|word| t.is(word));
        let has_others = tokens.get(at..after_bracket(tokens, at + 3)?)?.iter().any(makes);
        if !is_loop || used_within || has_others || !is_empty_vector(tokens, declared) || self.is_in_macro(&(declared..end)) {
            return None;
        }
        let text = self.lines(indent, name, &format!("&mut {name}"), end);
        Some(vec![insert(EditAction::InsertAfter, &file.path, *lines.end(), text)])
    }

    /// In place of the one `vec![x; n]` of a line that names the variable or field before it: `Arc::new(vec![x; n])`, `Self { a: vec![x; n] }`.
    fn around(&self, name: &str, line: u32) -> Option<Vec<FixEdit>> {
        let Call { file, .. } = self;
        let on = file.on_line(line);
        let is_vec = |at: &usize| file.tokens.get(*at).is_some_and(|t| t.is("vec"));
        let mut macros = on.clone().filter(is_vec);
        let at = macros.next().filter(|_| macros.next().is_none())?;
        let after = filled(&file.tokens, at)?;
        let is_named = file.tokens.get(on.start..at)?.iter().any(|t| t.kind == Kind::Word && t.text == name);
        // Another vector of the line can be the object.
        let is_only = !file.tokens.get(on.clone())?.iter().any(|t| MAKERS.iter().any(|word| t.is(word) && *word != INTO_SLICE));
        let is_borrowed = file.tokens.get(at.checked_sub(1)?).is_some_and(|t| t.is("&") || t.is("mut"));
        let holds = file.tokens.get(at..after)?.iter().any(|t| HOLDERS.iter().any(|word| t.is(word)));
        let (first, last) = (file.tokens.get(at)?, file.tokens.get(after - 1)?);
        if !is_named || !is_only || is_borrowed || holds || last.line != line || self.is_in_macro(&on) || file.braces_around(at).is_empty()
        {
            return None;
        }
        let text = file.line(line)?;
        let indent: String = text.chars().take_while(|c| c.is_whitespace()).collect();
        let inner = format!("{indent}    ");
        let mut lines =
            vec![format!("{}{{", text.get(..first.start)?), format!("{inner}let mut {name} = {};", text.get(first.start..last.end)?)];
        lines.extend(self.lines(&inner, name, &format!("&mut {name}"), at));
        lines.push(format!("{inner}{name}"));
        lines.push(format!("{indent}}}{}", text.get(last.end..)?));
        Some(vec![FixEdit { file: file.path.clone(), action: EditAction::Replace, line, last_line: line, text: lines }])
    }

    /// The partition, and the call. A refusal is said, and the program runs on.
    fn lines(&self, indent: &str, holder: &str, argument: &str, at: usize) -> Vec<String> {
        let variable = self.variable;
        let partition = match self.how {
            How::Blocked => {
                let parts = rust_threads::threads(self.case, self.file, at).map(|threads| format!(".parts({threads})"));
                format!("blocked(){}", parts.unwrap_or_default())
            }
            How::Interleaved => "interleaved()".to_owned(),
        };
        vec![
            format!("{indent}let {variable} = firsttouch_alloc::Partition::{partition};"),
            format!("{indent}if let Err(error) = firsttouch_alloc::place({argument}, &{variable}) {{"),
            format!("{indent}    eprintln!(\"{holder}: {{error}}\");"),
            format!("{indent}}}"),
        ]
    }

    /// Whether the file declares a variable of this name as mutable. One that gets its first value after its declaration need not be.
    fn is_mutable(&self, name: &str) -> bool {
        let declares = |t: &Token| t.is("let") || t.is("(") || t.is(",");
        self.file.tokens.windows(3).any(|three| matches!(three, [before, word, own] if declares(before) && word.is("mut") && own.is(name)))
    }

    /// Whether code is the text of a macro.
    fn is_in_macro(&self, range: &Range<usize>) -> bool {
        let around = self.file.braces_around(range.start);
        let defines = |brace: &usize| self.file.head(*brace).iter().any(|t| t.is("macro_rules"));
        around.iter().any(defines) || self.file.tokens.get(range.clone()).is_none_or(|list| list.iter().any(|t| t.is("$")))
    }
}
