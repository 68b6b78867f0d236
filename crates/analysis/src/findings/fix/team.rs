//! The team of threads that uses an object. A loop that initialises it needs a team of the same size.

use super::super::{Case, Context};
use crate::FixEdit;
use crate::code::fortran::Fortran;
use crate::code::regions::{Directive, File};
use crate::code::tokens::{Kind, of_text};
use crate::names::Language;
use crate::partition::Order;

/// The directives around the line that uses the object, outermost first; empty if the source does not show them.
pub(super) fn directives_at_use(context: &Context<'_>, case: &Case<'_>) -> Vec<Directive> {
    loop_at_use(context, case).map_or_else(Vec::new, |(_, directives)| directives)
}

/// The line that uses the object, or that of the inlined call in which it does, that has directives around it, and these.
pub(super) fn loop_at_use<'c>(context: &Context<'_>, case: &'c Case<'_>) -> Option<((&'c str, u32), Vec<Directive>)> {
    let sources = context.places.sources;
    let directives = |file: &str, line: u32| match Language::of(file)? {
        Language::C | Language::Cpp => File::read(sources, file).and_then(|read| read.directives_around(read.on_line(line).start)),
        Language::Fortran => Fortran::read(sources, file).and_then(|read| read.directives_around(line)),
        _ => None,
    };
    let mut found = case.view.used_at.first()?.lines().filter_map(|(file, line)| Some(((file, line), directives(file, line)?)));
    found.find(|(_, directives)| !directives.is_empty())
}

/// What a change does not say, where the team's size is an expression that has no meaning at the change.
pub(super) fn unsaid(context: &Context<'_>, case: &Case<'_>, edits: &[FixEdit]) -> String {
    let directives = directives_at_use(context, case);
    let clause = directives.iter().rev().filter(|one| one.has("parallel")).find_map(|one| one.clause("num_threads"));
    let is_said = edits.iter().flat_map(|edit| &edit.text).any(|line| line.contains("num_threads("));
    clause.filter(|_| !is_said).map_or_else(String::new, |text| format!(", with as many threads as use it (num_threads({text}))"))
}

/// ` num_threads(THREADS)` where the team that uses the object is of that size; empty if that expression may mean something else at `line`.
pub(super) fn size(context: &Context<'_>, case: &Case<'_>, file: &str, line: u32) -> Option<String> {
    let directives = directives_at_use(context, case);
    let Some(text) = directives.iter().rev().filter(|one| one.has("parallel")).find_map(|one| one.clause("num_threads")) else {
        return Some(String::new());
    };
    let at_use = case.view.used_at.first().and_then(|place| place.file.as_deref());
    let words: Vec<String> = of_text(text)?.into_iter().filter(|t| t.kind == Kind::Word).map(|t| t.text).collect();
    let is_simple = of_text(text)?.iter().all(|t| matches!(t.kind, Kind::Word | Kind::Number));
    let sources = context.places.sources;
    if let Some(number) = number_at_use(context, case, file, line, text) {
        return Some(format!(" num_threads({number})"));
    }
    let is_known = words.is_empty()
        || at_use == Some(file)
            && match Language::of(file)? {
                Language::Fortran => {
                    let read = Fortran::read(sources, file)?;
                    words.iter().all(|word| read.is_parameter_at(line, word))
                }
                _ => {
                    let read = File::read(sources, file)?;
                    words.iter().all(|word| read.is_visible_at(line, word))
                }
            };
    Some(if is_simple && is_known { format!(" num_threads({text})") } else { String::new() })
}

/// The value of a Fortran constant that the unit which uses the object declares, and the unit around `line` does not.
fn number_at_use(context: &Context<'_>, case: &Case<'_>, file: &str, line: u32, text: &str) -> Option<String> {
    let place = case.view.used_at.first()?;
    let (at, used) = place.file.as_deref().zip(place.line)?;
    let name = text.trim().to_ascii_lowercase();
    let read =
        |file: &str| matches!(Language::of(file), Some(Language::Fortran)).then(|| Fortran::read(context.places.sources, file)).flatten();
    if read(file)?.is_parameter_at(line, &name) && at == file {
        return None;
    }
    read(at)?.number_of_parameter(used, &name).map(str::to_owned)
}

/// The team that uses an object, for a loop that places its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Team {
    /// ` num_threads(THREADS)`, or empty.
    pub clause: String,
    /// Whether its last threads use the beginning of the object.
    pub is_reversed: bool,
}

impl Team {
    /// `None` if no loop through the object gives each thread its part.
    pub fn of(context: &Context<'_>, case: &Case<'_>, path: &str, line: u32) -> Option<Self> {
        let order = case.subject.partition.order();
        let clause = size(context, case, path, line)?;
        (order != Order::Mixed).then_some(Self { clause, is_reversed: order == Order::Descending })
    }
}

/// Whether the loop that uses the object is divided in parts that the order of its rounds gives, each thread one part.
pub(super) fn uses_one_loop(directives: &[Directive]) -> bool {
    !directives.iter().any(|one| one.clause("collapse").is_some_and(|text| text.trim() != "1"))
}
