//! Memory that the allocating statement itself fills, in one thread: `new Cell[n]` runs the constructor of each element. Whatever comes after such a
//! statement comes too late to place the pages, and would write over values.

use super::super::{Case, Context};
use super::at;
use crate::code::expression::{NUMBERS, text_of};
use crate::code::regions::File;
use crate::code::tokens::{Token, after_bracket};
use crate::names::{Language, in_code};
use firsttouch_model::rows::Frame;

/// From this share of the touched pages on, the allocating statement counts as the one that touched the object.
const MOST: f64 = 0.5;

/// `Cell` and `n` of `new Cell[n]`.
#[derive(Debug, PartialEq, Eq)]
struct Elements {
    class: String,
    count: String,
}

/// What to do about an object whose allocating statement fills it; `None` if another statement does.
pub(super) fn words(context: &Context<'_>, case: &Case<'_>) -> Option<String> {
    is_filled_when_allocated(context, case).then(|| match elements(context, case) {
        Some(elements) => of_class(case, &elements),
        None => format!(
            "the statement that allocates {name} fills it too, in one thread{place}: separate the two, and let the threads that use it{used} fill it, \
             each its own part; or let a parallel loop write a zero to each page between the two. After the statement it is too late: that would write \
             over its values",
            name = case.view.name,
            place = at(case.view.allocated_at.as_ref()),
            used = at(case.view.used_at.first()),
        ),
    })
}

/// What to do about the elements of a class that `std::make_unique` makes; `None` if they are numbers, or not known.
pub(super) fn words_of_class(context: &Context<'_>, case: &Case<'_>) -> Option<String> {
    elements(context, case).map(|elements| of_class(case, &elements))
}

fn of_class(case: &Case<'_>, Elements { class, count }: &Elements) -> String {
    let name = in_code(&case.view.name);
    format!(
        "the constructors of all {class} run in one thread{place}, and afterwards it is too late: what is written there then changes values. Allocate \
         without them, by std::allocator<{class}>().allocate({count}), and let the threads that use it{used} construct the elements, each its own part, \
         if they do not depend on each other's order: in a parallel loop over i, new (&{name}[i]) {class}(). Free it accordingly, not by delete[] (a smart \
         pointer needs a deleter for that): {name}[i].~{destructor}() for each element, then std::allocator<{class}>().deallocate(pointer, {count})",
        place = at(case.view.allocated_at.as_ref()),
        used = at(case.view.used_at.first()),
        destructor = class.rsplit("::").next().unwrap_or(class).trim(),
    )
}

/// Whether the statement that allocates an object touches most of it: calls on its line do.
fn is_filled_when_allocated(context: &Context<'_>, case: &Case<'_>) -> bool {
    let Some(allocates) = case.view.allocated_at.as_ref().and_then(|place| place.file.as_deref().zip(place.line)) else { return false };
    let is_there = |frame: &Frame| frame.file.as_deref().zip(frame.line) == Some(allocates);
    // The innermost place is on that line too where a loop stands beside the allocation; of a class, where the compiler wrote the constructor.
    let innermost = usize::from(elements(context, case).is_none());
    let calls = |site| context.places.frames(site).iter().skip(innermost).any(is_there);
    let sites = &case.subject.touch.sites;
    let all: f64 = sites.values().sum();
    let own: f64 = sites.iter().filter(|(site, _)| calls(**site)).map(|(_, pages)| pages).sum();
    all > 0.0 && own >= MOST * all
}

fn elements(context: &Context<'_>, case: &Case<'_>) -> Option<Elements> {
    let (path, line) = case.view.allocated_at.as_ref().and_then(|place| place.file.as_deref().zip(place.line))?;
    let file = File::read(context.places.sources, path).filter(|_| Language::of(path) == Some(Language::Cpp))?;
    file.on_line(line).find_map(|index| of_new(&file.tokens, index).or_else(|| of_make_unique(&file.tokens, index)))
}

/// `new Cell[n]`
fn of_new(tokens: &[Token], index: usize) -> Option<Elements> {
    tokens.get(index).filter(|word| word.is("new"))?;
    let open = (index + 1..tokens.len()).find(|at| tokens.get(*at).is_some_and(|token| "[(){};=".contains(&token.text)))?;
    tokens.get(open).filter(|token| token.is("["))?;
    let count = tokens.get(open + 1..after_bracket(tokens, open)? - 1)?;
    of(tokens.get(index + 1..open)?, count)
}

/// `make_unique<Cell[]>(n)`
fn of_make_unique(tokens: &[Token], index: usize) -> Option<Elements> {
    tokens.get(index).filter(|word| word.is("make_unique"))?;
    tokens.get(index + 1).filter(|token| token.is("<"))?;
    let open = (index + 2..tokens.len()).find(|at| tokens.get(*at).is_some_and(|token| "[(){};".contains(&token.text)))?;
    let is_array = ["[", "]", ">", "("].iter().zip(tokens.get(open..)?).all(|(text, token)| token.is(text));
    let count = tokens.get(open + 4..after_bracket(tokens, open + 3).filter(|_| is_array)? - 1)?;
    of(tokens.get(index + 2..open)?, count)
}

/// The elements, if they are of a class.
fn of(class: &[Token], count: &[Token]) -> Option<Elements> {
    let is_number = class.iter().all(|token| token.is("::") || token.is("*") || NUMBERS.contains(&token.text.as_str()));
    (!class.is_empty() && !is_number && !count.is_empty()).then(|| Elements { class: text_of(class), count: text_of(count) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::regions::tests::file;

    /// Check which elements have constructors: those of a class, made by `new` or `make_unique`, and no numbers.
    #[test]
    fn elements_with_constructors() {
        let read = |statement: &str| {
            let one = file(&format!("void f() {{\n{statement}\n}}\n"));
            one.on_line(2).find_map(|index| of_new(&one.tokens, index).or_else(|| of_make_unique(&one.tokens, index)))
        };
        let of = |class: &str, count: &str| Some(Elements { class: class.to_owned(), count: count.to_owned() });
        assert_eq!(read("c = new Cell[n];"), of("Cell", "n"));
        assert_eq!(read("c = new mesh::Cell[n]();"), of("mesh::Cell", "n"));
        assert_eq!(read("auto c = std::make_unique<Cell[]>(n);"), of("Cell", "n"));
        assert_eq!(read("std::unique_ptr<Cell[]> c(new Cell[n]);"), of("Cell", "n"));
        for none in
            ["c = new double[n];", "c = new Cell(n);", "c = new Cell;", "auto c = std::make_unique<float[]>(n);", "c = new double*[n];"]
        {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
