//! The fix for memory that a team initialises in other parts than it uses: what differs between the two loops, where the source shows it.

use super::super::{Case, Context, SERIAL};
use super::at;
use super::by_loop::hits_at;
use crate::CodeLocation;
use crate::code::expression::text_of;
use crate::code::regions::File;
use crate::code::tokens::{Kind, Token, after_bracket};
use crate::judge::acting;
use crate::misplaced_part::misplaced_records;
use crate::names::Language;
use crate::partition::MIN_UNITS;
use crate::source_code::describe;
use firsttouch_model::rows::{Frame, Id};
use hashbrown::HashSet;

/// What differs between the loop that initialises an object and the one that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Difference {
    /// The loops whose rounds are divided: how many, and the header of the outermost one.
    Depths((u64, String), (u64, String)),
    /// The clauses that divide their rounds.
    Clauses(String, String),
    /// The directives divide the rounds of different loops around the same subscripts: the loops are in another order, or the directive is on another level.
    Orders(String, String),
    Headers(String, String),
    Subscripts(String, String),
    /// Directives and bounds read the same. What differs is a value, the number of threads, or the elements that a round takes.
    NotSeen,
}

pub(super) fn same_division(context: &Context<'_>, case: &Case<'_>) -> String {
    let name = case.view.name.as_str();
    let misplacing = Misplacing::of(context, case);
    let touch = misplacing.as_ref().map(|one| &one.place).or(case.view.first_touch.at.first());
    let user = case.view.used_at.first();
    let (touched, used) = (at(touch), at(user));
    let of_touch = || case.subject.touch.sites.keys().copied();
    let of_use = || case.hits.iter().flat_map(|hit| hit.sites.iter().map(|(site, _)| *site));
    let difference = || Division::at(context, name, touch, of_touch())?.difference(&Division::at(context, name, user, of_use())?);
    match difference() {
        Some(Difference::Subscripts(touch, user)) => format!(
            "let each round that initialises {name}{touched} write the elements that the same round of the loop that uses it takes{used}: the directives \
             and bounds of both loops read the same, but the subscripts differ ({touch} and {user})"
        ),
        Some(Difference::Depths(touch, user)) => {
            let divides = |(loops, header): &(u64, String)| match loops {
                1 => format!("the rounds of for ({header})"),
                loops => format!("the rounds of {loops} loops together, from for ({header}) on (collapse({loops}))"),
            };
            format!(
                "initialise {name}{touched} with the loops that use it{used}: that directive divides {}, this one {}; write the same directive before the \
                 same outer loop, with the same number of threads",
                divides(&user),
                divides(&touch)
            )
        }
        Some(Difference::Orders(touch, user)) => format!(
            "divide the same loop where {name} is initialised{touched} as where it is used{used}: there the directive divides the rounds of for ({user}), here \
             those of for ({touch}), and the subscripts are the same. Give both places the same order of loops, and the directive before the same one"
        ),
        Some(Difference::Headers(touch, of_use)) if user.is_some_and(|user| takes_a_part(context, case, user)) => {
            format!(
                "let each thread initialise the elements of {name}{touched} that it takes in the loop that uses it{used}. That loop goes through a part of \
                 {name} only (for ({of_use}), and this one for ({touch})): divide that part as it does, and initialise the rest beside it"
            )
        }
        Some(Difference::Headers(touch, user)) => {
            format!("initialise {name}{touched} with the loop that uses it{used}: the bounds differ (for ({touch}) and for ({user}))")
        }
        Some(Difference::Clauses(touch, user)) => format!(
            "initialise {name}{touched} with the loop that uses it{used}: the directives differ ({touch} and {user}), and the schedule, its chunk and \
             the number of threads must be the same"
        ),
        _ if misplacing.as_ref().is_some_and(|one| one.is_serial) => {
            let parts = misplacing.as_ref().map(|one| one.parts(name)).unwrap_or_default();
            format!(
                "one thread initialises {parts} among the threads as the loop that uses it{used} does (same bounds, same schedule and chunk, same number \
                 of threads)"
            )
        }
        found => {
            let (touching, using) = (acting(&case.subject.touch.by_worker).len(), case.subject.users(context.threads).len());
            unseen(name, (&touched, &used), (touching, using), found.is_some())
        }
    }
}

/// Words for a difference that the source does not show. `read_alike`: the directives and bounds of both loops are known, and read the same.
fn unseen(name: &str, (touched, used): (&str, &str), (touching, using): (usize, usize), read_alike: bool) -> String {
    if touching != using && touching > 1 {
        return format!(
            "initialise {name}{touched} with as many threads as use it{used}, and with the same bounds, schedule and chunk: {touching} threads initialise \
             it, and {using} use it"
        );
    }
    let why = if read_alike {
        ". The directives and bounds of both loops read the same, so what differs is the elements that a round takes, or a value that they name"
    } else {
        ": that takes the same bounds, schedule and chunk, the same number of threads, and in each round the same elements"
    };
    format!("let each thread initialise the part of {name}{touched} that it takes in the loop that uses it{used}{why}")
}

/// A loop that goes through less than this part of what is used takes a part only.
const WHOLE: f64 = 0.85;

/// Whether a place uses a part of the object only: a loop like that one would leave the rest without values.
fn takes_a_part(context: &Context<'_>, case: &Case<'_>, place: &CodeLocation) -> bool {
    let span = |positions: &mut dyn Iterator<Item = u64>| {
        let (low, high) = positions.fold((u64::MAX, 0), |(low, high), position| (low.min(position), high.max(position)));
        high.saturating_sub(low) as f64
    };
    let own = hits_at(context, case, place);
    own.len() >= MIN_UNITS && span(&mut own.iter().map(|hit| hit.position)) < WHOLE * span(&mut case.hits.iter().map(|hit| hit.position))
}

/// A place with a smaller share of the misplaced pages is not named.
const LEAST_MISPLACED: f64 = 0.1;

/// The place in the code whose first touches lie wrong most of all. Others may initialise other parts of the object as they are used.
struct Misplacing {
    place: CodeLocation,
    /// One worker made nearly all of these touches.
    is_serial: bool,
    /// All places of which that is so, with a share of the misplaced pages that counts.
    serial: Vec<CodeLocation>,
}

impl Misplacing {
    fn of(context: &Context<'_>, case: &Case<'_>) -> Option<Self> {
        let records = misplaced_records(case.subject, case.object.process, context.threads);
        let places = context.places.ranked(records.iter().map(|one| (one.site, one.pages)));
        // All that a place touches, also where it is right.
        let touch = &case.subject.touch;
        let at_site = |site: Option<Id>| context.places.ranked(std::iter::once((site, 1.0))).into_iter().next();
        let is_serial = |place: &CodeLocation| {
            let is_there = |site: &Option<Id>| at_site(*site).is_some_and(|at| at.is_same_line(place));
            let sites: HashSet<Option<Id>> = touch.sites.keys().copied().filter(is_there).collect();
            let part = touch.of_part(touch.placed.iter().filter(|record| sites.contains(&record.site)).copied());
            part.main_worker().is_some_and(|(_, share)| share >= SERIAL)
        };
        let counting = || places.iter().filter(|place| place.share >= LEAST_MISPLACED);
        let serial = counting().filter(|place| is_serial(place)).cloned().collect();
        let place = places.first()?.clone();
        Some(Self { is_serial: is_serial(&place), serial, place })
    }

    /// `a part of A (a.c:7): divide that`, and the like for several places.
    fn parts(&self, name: &str) -> String {
        match self.serial.as_slice() {
            [] | [_] => format!("a part of {name}{}: divide that", at(Some(&self.place))),
            several => {
                let lines: Vec<String> = several.iter().map(describe).collect();
                format!("parts of {name} in {} places ({}): divide each of them", lines.len(), lines.join(", "))
            }
        }
    }
}

/// The place whose first touches put most of the misplaced pages where they are.
pub(crate) fn misplaced_at(context: &Context<'_>, case: &Case<'_>) -> Option<CodeLocation> {
    Some(Misplacing::of(context, case)?.place)
}

/// The fix for memory of which one thread initialises a part, in a program that makes its threads itself; `None` if several threads put the misplaced pages
/// where they are.
pub(super) fn divide_part(context: &Context<'_>, case: &Case<'_>, used: &str) -> Option<String> {
    let misplacing = Misplacing::of(context, case).filter(|one| one.is_serial)?;
    let parts = misplacing.parts(&case.view.name);
    Some(format!("one thread initialises {parts} among the threads that use it{used}: same bounds, same number of threads"))
}

/// A directive that divides a loop as the runtime does by default: in one block for each thread.
const NO_CLAUSES: &str = "one without schedule, collapse and num_threads";

/// How a line's loop is divided among threads, and which elements it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Division {
    /// The clauses that divide the rounds as the directive says them, and the same without those that compilers take for granted.
    said: String,
    clauses: String,
    /// The loops whose rounds are divided together; `None` if the source does not say it as a number.
    loops: Option<u64>,
    /// The variable and the header of the loop that is divided.
    variable: String,
    header: String,
    /// The header with one name for the loop's variable.
    plain_header: String,
    subscripts: Vec<Subscript>,
}

/// A subscript: as the source says it with the array's name, with one name for the loop's variable, and the words in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Subscript {
    said: String,
    plain: String,
    words: Vec<String>,
}

impl Division {
    /// The loop around a place, or around a call of its function that one of these stacks shows.
    fn at(context: &Context<'_>, name: &str, place: Option<&CodeLocation>, sites: impl Iterator<Item = Option<Id>>) -> Option<Self> {
        let place = place?;
        let read = |(path, line): (&str, u32)| {
            let is_read = matches!(Language::of(path), Some(Language::C | Language::Cpp));
            Self::read(&File::read(context.places.sources, path).filter(|_| is_read)?, line, name)
        };
        let own = place.file.as_deref().zip(place.line)?;
        read(own).or_else(|| {
            let is_there = |frame: &Frame| frame.file.as_deref().zip(frame.line) == Some(own);
            let frames = sites.map(|site| context.places.frames(site)).find(|frames| frames.iter().any(is_there))?;
            let callers = frames.iter().skip_while(|frame| !is_there(frame)).skip(1);
            // The subscripts are those of the function that is called, by the names that it has for them.
            let found = callers.filter_map(|frame| frame.file.as_deref().zip(frame.line)).find_map(read)?;
            Some(Self { subscripts: Vec::new(), ..found })
        })
    }

    /// The loop with a line that uses the array `name`; `None` if no directive divides it, or if that is not understood.
    fn read(file: &File, line: u32, name: &str) -> Option<Self> {
        let on = file.on_line(line);
        let directives = file.directives_around(on.start)?;
        let dividing = directives.iter().rposition(|one| one.has("for"))?;
        let clause = |word: &str| directives[..=dividing].iter().rev().find_map(|one| one.clause(word)).map(str::trim);
        let loops = clause("collapse").map_or(Some(1), |text| text.parse().ok());
        let said = ["schedule", "collapse", "num_threads"].map(|word| clause(word).map(|text| format!("{word}({text})")));
        // Without a schedule, compilers make one block for each thread.
        let divides = |one: &&String| !["schedule(static)", "collapse(1)"].contains(&one.as_str());
        let clauses = said.iter().flatten().filter(divides).cloned().collect::<Vec<_>>().join(" ");
        let said = said.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let said = if said.is_empty() { NO_CLAUSES.to_owned() } else { said };

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
        let mut all = Vec::new();
        for (index, token) in own.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word) {
            let open = index + 1;
            if own.get(open).is_some_and(|t| t.is("[")) {
                let mut end = after_bracket(own, open)?;
                while own.get(end).is_some_and(|t| t.is("[")) {
                    end = after_bracket(own, end)?;
                }
                let list = own.get(open..end)?;
                let words = list.iter().filter(|t| t.kind == Kind::Word).map(|t| t.text.clone()).collect();
                all.push((&token.text, Subscript { said: format!("{}{}", token.text, text_of(list)), plain: plain(list), words }));
            }
        }
        // A function may have another name for it, which is the only array of the line.
        let is_only = all.iter().all(|(name, _)| Some(*name) == all.first().map(|(first, _)| *first));
        let subscripts = all.iter().filter(|(name, _)| is_only || *name == array).map(|(_, subscript)| subscript.clone()).collect();
        Some(Self {
            said,
            clauses,
            loops,
            variable: variable.clone(),
            header: text_of(head),
            plain_header: plain(head.get(from..)?),
            subscripts,
        })
    }

    /// Whether a subscript is the same in both loops, and names the variables of both: other variables have other places in it.
    fn divides_another_loop(&self, user: &Self) -> bool {
        let names_both = |one: &Subscript| one.words.contains(&self.variable) && one.words.contains(&user.variable);
        // A function may have another name for the array.
        let brackets = |one: &Subscript| one.said.split_once('[').map(|(_, rest)| rest.to_owned());
        let is_common = |one: &Subscript| user.subscripts.iter().any(|other| brackets(other) == brackets(one));
        self.variable != user.variable && self.subscripts.iter().any(|one| names_both(one) && is_common(one))
    }

    fn difference(&self, user: &Self) -> Option<Difference> {
        if let (Some(touched), Some(used)) = (self.loops, user.loops)
            && touched != used
        {
            return Some(Difference::Depths((touched, self.header.clone()), (used, user.header.clone())));
        }
        if self.clauses != user.clauses {
            return Some(Difference::Clauses(self.said.clone(), user.said.clone()));
        }
        if self.divides_another_loop(user) {
            return Some(Difference::Orders(self.header.clone(), user.header.clone()));
        }
        if self.plain_header != user.plain_header {
            return Some(Difference::Headers(self.header.clone(), user.header.clone()));
        }
        let is_common = self.subscripts.iter().any(|one| user.subscripts.iter().any(|other| other.plain == one.plain));
        Some(match (self.subscripts.first(), user.subscripts.first()) {
            (Some(touch), Some(user)) if !is_common => Difference::Subscripts(touch.said.clone(), user.said.clone()),
            _ => Difference::NotSeen,
        })
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
        assert_eq!(from("", "size_t k = 0; k < n; k++", "s += a[k] * b[k];"), Some(Difference::NotSeen));
        let (one, other) = pair("a[i]", "a[n - 1 - k]");
        let Some(Difference::Subscripts(touch, user)) = from("", "long k = 0; k < n; k++", "a[n - 1 - k] += 1;") else { panic!() };
        assert_eq!((touch.replace(' ', ""), user.replace(' ', "")), (one, other.replace(' ', "")));
        assert!(matches!(from("", "long i = 1; i < n - 1; i++", "a[n - i] = 1;"), Some(Difference::Headers(..))));
        let Some(Difference::Clauses(touch, user)) = from("schedule(static, 8)", up, "a[i] = 1;") else { panic!() };
        assert_eq!((touch, user), pair("schedule(static)", "schedule(static, 8)"), "as the source says them");
        let Some(Difference::Clauses(touch, _)) =
            read("", up, "a[i] = 0;").and_then(|one| one.difference(&read("schedule(static, 8)", up, "a[i] = 1;")?))
        else {
            panic!()
        };
        assert_eq!(touch, NO_CLAUSES);
        let Some(Difference::Depths(touch, user)) = from("collapse(2) schedule(static)", up, "a[i] = 1;") else { panic!() };
        assert_eq!((touch.0, user.0), (1, 2));
        let nested = |header: &str| read("schedule(static)", header, "for (long k = 0; k < n; k++) a[(i * n + j) * n + k] = 0;").unwrap();
        let (rows, columns) = (nested("long i = 0; i < n; i++"), nested("long j = 0; j < n; j++"));
        assert!(matches!(rows.difference(&columns), Some(Difference::Orders(..))), "{rows:?} {columns:?}");
        assert_eq!(rows.difference(&rows), Some(Difference::NotSeen));
        assert_eq!(from("collapse( 1 )", up, "a[i] = 1;"), Some(Difference::NotSeen), "one loop either way");
        assert!(
            read("", "long i = 0; i < n; i++", "b[i] = 1;").is_some_and(|one| base.difference(&one) == Some(Difference::NotSeen)),
            "no subscript of a"
        );
    }

    /// Check that all places that misplace a part each are named, where there are several.
    #[test]
    fn places_that_misplace_are_named() {
        let place = |line: u32| CodeLocation { file: Some("a.c".into()), line: Some(line), ..CodeLocation::default() };
        let parts = |lines: &[u32]| {
            Misplacing { place: place(7), is_serial: true, serial: lines.iter().map(|line| place(*line)).collect() }.parts("A")
        };
        assert_eq!(parts(&[7]), "a part of A (a.c:7): divide that");
        assert_eq!(parts(&[7, 9]), "parts of A in 2 places (a.c:7, a.c:9): divide each of them");
    }

    /// Check that words for a difference that the source does not show claim none: teams of other sizes, loops that read alike, and loops that are
    /// not read.
    #[test]
    fn differences_that_are_not_seen() {
        let words = |counts, read_alike| unseen("a", (" (i.c:3)", " (u.c:9)"), counts, read_alike);
        assert!(words((2, 4), true).contains("2 threads initialise it, and 4 use it"));
        let alike = words((4, 4), true);
        assert!(
            alike.contains("read the same") && alike.contains("elements that a round takes") && !alike.contains("same schedule"),
            "{alike}"
        );
        let unknown = words((4, 4), false);
        assert!(unknown.contains("in each round the same elements") && !unknown.contains("read the same"), "{unknown}");
    }
}
