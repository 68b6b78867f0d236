//! What fills a container of C++ in one thread, and what to do about it in words.

use super::super::{Case, Context};
use super::{at, serial};
use crate::CodeLocation;

/// How the elements of a container are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// All at once: a constructor, `resize`, `assign`.
    AtOnce,
    /// One after another, by a member of this name.
    Appended(&'static str),
    /// Each of several vectors, which each belong to one thread.
    Rows,
    /// Each of several vectors, which are each divided among the threads.
    DividedRows,
    /// The blocks of a std::deque, which has no memory to reserve.
    Deque,
}

const APPENDING: &[&str] = &["push_back", "emplace_back"];

impl Fill {
    pub fn of(context: &Context<'_>, case: &Case<'_>) -> Self {
        let text = case.view.first_touch.at.first().and_then(|place| place.text.as_deref()).unwrap_or_default();
        let functions = || {
            let sites = case.subject.touch.sites.keys();
            sites.flat_map(|site| context.places.frames(*site)).filter_map(|frame| frame.function.as_deref())
        };
        Self::read(
            text,
            &|word| functions().any(|name| name.contains(word)),
            (case.group.rows > 1).then(|| serial::has_whole_allocations(case)),
        )
    }

    /// `line`: that touches first. `has_frame`: whether a function on the stack has a name with this part. `rows`: for several allocations, whether
    /// each belongs to one thread.
    fn read(line: &str, has_frame: &dyn Fn(&str) -> bool, rows: Option<bool>) -> Self {
        let calls = |name: &&&str| line.contains(&format!(".{name}(")) || line.contains(&format!("->{name}("));
        match rows {
            _ if has_frame("_Deque") || has_frame("std::deque") => Self::Deque,
            Some(true) => Self::Rows,
            Some(false) => Self::DividedRows,
            // The line may be without text, or have the call in a macro.
            None => {
                let called = APPENDING.iter().find(calls).or_else(|| APPENDING.iter().find(|name| has_frame(&format!("::{name}"))));
                called.map_or(Self::AtOnce, |name| Self::Appended(name))
            }
        }
    }

    /// For a program with OpenMP: what comes before the lines that do it.
    pub fn words(self, case: &Case<'_>) -> String {
        let (name, touched, rows) = (case.view.name.as_str(), at(touch(case)), case.group.rows);
        match self {
            Self::AtOnce => format!(
                "std::vector fills {name} in one thread{touched}: reserve its memory, and let all threads place its pages before the elements are made"
            ),
            Self::Appended(call) => format!(
                "{call} appends the elements of {name} in one thread{touched}: reserve memory for all of them, and let all threads place its pages \
                 before the first is appended"
            ),
            Self::Rows => format!(
                "one thread makes the elements of all {rows} vectors of {name}{touched}, and each vector is used by one thread: let that thread make \
                 its elements"
            ),
            Self::DividedRows => format!(
                "one thread makes the elements of all {rows} vectors of {name}{touched}, and the threads divide each vector: for each one, reserve its \
                 memory, and let all threads place its pages before the elements are made"
            ),
            Self::Deque => format!(
                "std::deque makes {name} of many blocks in one thread{touched}, and has no memory to reserve: use a std::vector, whose memory is one \
                 block, or let each thread fill a container of its own"
            ),
        }
    }

    /// What else to say where no lines do it; empty where the words say all.
    pub fn otherwise(self, case: &Case<'_>) -> String {
        match self {
            Self::AtOnce | Self::DividedRows => {
                "; or give it an allocator that does not initialise, and write the same values in the threads that use it, each its own part".to_owned()
            }
            Self::Appended(_) => {
                "; or make it with its final size and an allocator that does not initialise, and write the values in the threads that use it, each its \
                 own part"
                    .to_owned()
            }
            Self::Rows => format!(
                ". Give the outer container its size first, and divide the loop that makes the inner vectors like the one that uses them{}, with the \
                 same schedule: to reserve memory places none of it",
                at(used(case))
            ),
            Self::Deque => String::new(),
        }
    }

    /// For a program with its own threads: what to do instead.
    pub fn instead(self, case: &Case<'_>) -> String {
        let touched = at(touch(case));
        match self {
            Self::AtOnce | Self::DividedRows => {
                format!("use an allocator that does not initialise, since std::vector fills it in one thread{touched}")
            }
            Self::Appended(call) => {
                format!("make it with its final size and an allocator that does not initialise, in place of {call} in one thread{touched}")
            }
            Self::Rows => format!("do not make the elements of all {} vectors in one thread{touched}", case.group.rows),
            Self::Deque => {
                format!(
                    "use a std::vector with an allocator that does not initialise, in place of a std::deque that one thread fills{touched}"
                )
            }
        }
    }
}

fn touch<'c>(case: &'c Case<'_>) -> Option<&'c CodeLocation> {
    case.view.first_touch.at.first()
}

fn used<'c>(case: &'c Case<'_>) -> Option<&'c CodeLocation> {
    case.view.used_at.first()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that what appends is told from what fills at once, by the line or else by the stack, and that vectors of vectors and deques are told from
    /// vectors.
    #[test]
    fn fills_are_told_apart() {
        let of = |line: &str, stack: &str, rows| Fill::read(line, &|word| stack.contains(word), rows);
        assert_eq!(of("std::vector<double> a(n);", "std::vector<double>::vector", None), Fill::AtOnce);
        assert_eq!(of("list.push_back(i);", "", None), Fill::Appended("push_back"));
        assert_eq!(of("p->emplace_back(i);", "", None), Fill::Appended("emplace_back"));
        assert_eq!(of("ADD(list, i);", "std::vector<int>::push_back", None), Fill::Appended("push_back"));
        assert_eq!(of("a.assign(n, push_back(1));", "", None), Fill::AtOnce, "a function of the program");
        assert_eq!(of("rows[y].resize(n);", "", Some(true)), Fill::Rows);
        assert_eq!(of("rows.push_back(std::vector<double>(n));", "", Some(false)), Fill::DividedRows);
        assert_eq!(of("d.push_back(1);", "std::_Deque_base<double>::_M_create_nodes", None), Fill::Deque);
    }
}
