//! The fix for memory that a team initialises in other parts than it uses: what differs between the two loops, where the source shows it.

use super::super::{Case, Context, SERIAL};
use super::at;
use crate::CodeLocation;
use crate::code::expression::text_of;
use crate::code::regions::File;
use crate::code::tokens::{Kind, Token, after_bracket};
use crate::misplaced_part::misplaced_records;
use crate::names::Language;
use firsttouch_model::rows::Id;
use hashbrown::HashSet;

/// What differs between the loop that initialises an object and the one that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Difference {
    /// The clauses that divide their rounds.
    Clauses(String, String),
    Headers(String, String),
    Subscripts(String, String),
}

pub(super) fn same_division(context: &Context<'_>, case: &Case<'_>) -> String {
    let name = case.view.name.as_str();
    let misplacing = Misplacing::of(context, case);
    let touch = misplacing.as_ref().map(|one| &one.place).or(case.view.first_touch.at.first());
    let user = case.view.used_at.first();
    let (touched, used) = (at(touch), at(user));
    let read = |place: Option<&CodeLocation>| {
        let (path, line) = place.and_then(|place| place.file.as_deref().zip(place.line))?;
        let is_read = matches!(Language::of(path), Some(Language::C | Language::Cpp));
        Division::read(&File::read(context.places.sources, path).filter(|_| is_read)?, line, name)
    };
    let difference = read(touch).zip(read(user)).and_then(|(touch, user)| touch.difference(&user));
    match difference {
        Some(Difference::Subscripts(touch, user)) => format!(
            "let each round that initialises {name}{touched} write the elements that the same round of the loop that uses it takes{used}: both loops \
             have the same bounds and schedule, but the subscripts differ ({touch} and {user})"
        ),
        Some(Difference::Headers(touch, user)) => {
            format!("initialise {name}{touched} with the loop that uses it{used}: the bounds differ (for ({touch}) and for ({user}))")
        }
        Some(Difference::Clauses(touch, user)) => format!(
            "initialise {name}{touched} with the loop that uses it{used}: the directives differ ({touch} and {user}), and the schedule, its chunk and \
             the number of threads must be the same"
        ),
        None if misplacing.as_ref().is_some_and(|one| one.is_serial) => format!(
            "one thread initialises a part of {name}{touched}: divide that among the threads as the loop that uses it{used} does (same bounds, same \
             schedule and chunk, same number of threads)"
        ),
        None => format!(
            "initialise {name}{touched} with the loop that uses it{used}: same bounds, same schedule and chunk, same number of threads"
        ),
    }
}

/// The place in the code whose first touches lie wrong. Others may initialise other parts of the object as they are used.
struct Misplacing {
    place: CodeLocation,
    /// One worker made nearly all of these touches.
    is_serial: bool,
}

impl Misplacing {
    fn of(context: &Context<'_>, case: &Case<'_>) -> Option<Self> {
        let records = misplaced_records(case.subject, case.object.process, context.threads);
        let place = context.places.ranked(records.iter().map(|one| (one.site, one.pages))).into_iter().next()?;
        // All that this place touches, also where it is right.
        let touch = &case.subject.touch;
        let at_site = |site: Option<Id>| context.places.ranked(std::iter::once((site, 1.0))).into_iter().next();
        let is_there = |site: &Option<Id>| at_site(*site).is_some_and(|at| is_same(&at, &place));
        let sites: HashSet<Option<Id>> = touch.sites.keys().copied().filter(is_there).collect();
        let part = touch.of_part(touch.placed.iter().filter(|record| sites.contains(&record.site)).copied());
        Some(Self { is_serial: part.main_worker().is_some_and(|(_, share)| share >= SERIAL), place })
    }
}

fn is_same(one: &CodeLocation, other: &CodeLocation) -> bool {
    (&one.file, one.line, &one.function) == (&other.file, other.line, &other.function)
}

/// A directive that divides a loop as the runtime does by default: in one block for each thread.
const NO_CLAUSES: &str = "one without schedule, collapse and num_threads";

/// How a line's loop is divided among threads, and which elements it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Division {
    clauses: String,
    /// The header of the loop that is divided.
    header: String,
    /// The header and the subscripts with one name for the loop's variable.
    plain_header: String,
    subscripts: Vec<(String, String)>,
}

impl Division {
    /// The loop with a line that uses the array `name`; `None` if no directive divides it, or if that is not understood.
    fn read(file: &File, line: u32, name: &str) -> Option<Self> {
        let on = file.on_line(line);
        let directives = file.directives_around(on.start)?;
        let dividing = directives.iter().rposition(|one| one.has("for"))?;
        let clause = |word: &str| directives[..=dividing].iter().rev().find_map(|one| one.clause(word)).map(str::trim);
        // Without a schedule, compilers make one block for each thread.
        let schedule = clause("schedule").filter(|text| *text != "static");
        let words = [("schedule", schedule), ("collapse", clause("collapse")), ("num_threads", clause("num_threads"))];
        let said: Vec<String> = words.into_iter().filter_map(|(word, text)| Some(format!("{word}({})", text?))).collect();
        let clauses = if said.is_empty() { NO_CLAUSES.to_owned() } else { said.join(" ") };

        let is_around = |one: &std::ops::Range<usize>| {
            file.directives_around(one.start).is_some_and(|all| all.len() == dividing + 1) && one.start <= on.end
        };
        let one = file.loops_on(line).into_iter().find(is_around)?;
        let after = after_bracket(&file.tokens, one.start + 1)?;
        let head = file.tokens.get(one.start + 2..after - 1)?;
        let variable = &head.get(head.iter().position(|t| t.is("="))?.checked_sub(1)?).filter(|t| t.kind == Kind::Word)?.text;
        let plain = |list: &[Token]| {
            let words: Vec<Token> = list
                .iter()
                .map(|t| if t.kind == Kind::Word && t.text == *variable { Token { text: "i".into(), ..t.clone() } } else { t.clone() })
                .collect();
            text_of(&words)
        };
        let from = head.iter().position(|t| t.text == *variable)?;
        let array = name.split(['[', ' ']).next()?;
        let own = file.tokens.get(on.start.max(after)..on.end)?;
        let mut subscripts = Vec::new();
        for (index, token) in own.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word && t.text == array) {
            let open = index + 1;
            if own.get(open).is_some_and(|t| t.is("[")) {
                let mut end = after_bracket(own, open)?;
                while own.get(end).is_some_and(|t| t.is("[")) {
                    end = after_bracket(own, end)?;
                }
                let list = own.get(open..end)?;
                subscripts.push((plain(list), format!("{}{}", token.text, text_of(list))));
            }
        }
        Some(Self { clauses, header: text_of(head), plain_header: plain(head.get(from..)?), subscripts })
    }

    fn difference(&self, user: &Self) -> Option<Difference> {
        if self.clauses != user.clauses {
            return Some(Difference::Clauses(self.clauses.clone(), user.clauses.clone()));
        }
        if self.plain_header != user.plain_header {
            return Some(Difference::Headers(self.header.clone(), user.header.clone()));
        }
        let is_common = self.subscripts.iter().any(|(plain, _)| user.subscripts.iter().any(|(other, _)| other == plain));
        let (touch, use_) = (self.subscripts.first()?, user.subscripts.first()?);
        (!is_common).then(|| Difference::Subscripts(touch.1.clone(), use_.1.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::regions::tests::file;

    /// Check that directives are compared before headers, these before subscripts, and that names of variables make no difference.
    #[test]
    fn loops_are_compared() {
        let read = |clauses: &str, header: &str, body: &str| {
            let one = file(&format!("void f() {{\n#pragma omp parallel for {clauses}\n  for ({header})\n    {body}\n}}\n"));
            Division::read(&one, 4, "a")
        };
        let up = "long i = 0; i < n; i++";
        let base = read("schedule(static)", up, "a[i] = 0;").unwrap();
        let from = |clauses: &str, header: &str, body: &str| base.difference(&read(clauses, header, body).unwrap());
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(from("", "size_t k = 0; k < n; k++", "s += a[k] * b[k];"), None);
        let (one, other) = pair("a[i]", "a[n - 1 - k]");
        let Some(Difference::Subscripts(touch, user)) = from("", "long k = 0; k < n; k++", "a[n - 1 - k] += 1;") else { panic!() };
        assert_eq!((touch.replace(' ', ""), user.replace(' ', "")), (one, other.replace(' ', "")));
        assert!(matches!(from("", "long i = 1; i < n - 1; i++", "a[n - i] = 1;"), Some(Difference::Headers(..))));
        let Some(Difference::Clauses(touch, user)) = from("schedule(static, 8)", up, "a[i] = 1;") else { panic!() };
        assert_eq!((touch, user), pair(NO_CLAUSES, "schedule(static, 8)"));
        assert!(read("", "long i = 0; i < n; i++", "b[i] = 1;").is_some_and(|one| base.difference(&one).is_none()), "no subscript of a");
    }
}
