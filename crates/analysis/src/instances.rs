//! Objects of one name: which of several callers made each of them, and for the members of a class, which instance they belong to.

use crate::calls_on_lines::{Calls, place, variables};
use crate::groups::{Group, PYTHON};
use crate::names::{Call, ObjectName, base, in_code, last_name, returns};
use crate::source_code::CodeLocations;
use firsttouch_model::rows::{Frame, Id, Object, Profile};
use std::collections::BTreeMap;

/// Places added to a name, at most.
const MOST_PLACES: usize = 2;

/// Adds to each name that several objects of one process share the innermost line at which their stacks differ (`p (main.c:8)`), and the
/// variable of the instance that this line constructs (`data_ (of A, main.cpp:10)`). Those that still have one name get the line at which they
/// differ beside it, and so on; then that of a Python library (`model.fit(x) (_kmeans.py:1459)`), the one nearest to the program's own code.
pub(crate) fn distinguish(profile: &Profile, groups: &[Group], places: &CodeLocations<'_>, list: &mut [ObjectName]) {
    let object = |g: usize| &profile.objects[groups[g].representative];
    let has_stack = |g: usize| object(g).name.is_none() && !places.frames(object(g).site).is_empty();
    let mut same: BTreeMap<(Id, String), Vec<usize>> = BTreeMap::new();
    for (g, name) in list.iter().enumerate().filter(|(g, _)| has_stack(*g)) {
        same.entry((object(g).process, name.shown.clone())).or_default().push(g);
    }
    let mut open: Vec<(usize, Vec<usize>)> = same.into_values().map(|members| (0, members)).collect();
    while let Some((places_added, members)) = open.pop() {
        if members.len() < 2 || places_added == MOST_PLACES {
            continue;
        }
        let name = list[members[0]].shown.clone();
        let differ = |placed: &Vec<Option<String>>| placed.iter().any(|place| *place != placed[0]);
        let by_program = of_program(&name, &members, object, places).filter(differ);
        let Some(placed) = by_program.or_else(|| of_library(&members, object, places)) else { continue };
        let mut parts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (&g, place) in members.iter().zip(placed) {
            list[g].shown = place.map_or_else(|| name.clone(), |place| with_place(&name, &place));
            parts.entry(list[g].shown.clone()).or_default().push(g);
        }
        open.extend(parts.into_values().map(|part| (places_added + 1, part)));
    }
}

/// `p (main.c:8)`, `p (main.c:8, from main.c:12)`.
fn with_place(name: &str, place: &str) -> String {
    match name.strip_suffix(')').filter(|name| name.contains(" (")) {
        Some(open) => format!("{open}, from {place})"),
        None => format!("{name} ({place})"),
    }
}

/// The place in the program's own code by which each of these objects differs from others of its name; `None` if no place does.
fn of_program<'p>(
    name: &str,
    members: &[usize],
    object: impl Fn(usize) -> &'p Object,
    places: &CodeLocations<'_>,
) -> Option<Vec<Option<String>>> {
    let ways: Vec<Way<'_>> = members.iter().map(|&g| Way::new(object(g), places)).collect();
    let depth = depth_of_difference(&ways, places)?;
    let calls = calls_by_line(&ways, depth);
    let variable = in_code(name);
    let place = |way: &Way<'_>| {
        let line = way.line(depth)?;
        Some(match way.instance(depth, variable, &calls, places) {
            Some(variable) => format!("of {variable}, {line}"),
            None => line,
        })
    };
    Some(ways.iter().map(place).collect())
}

/// The same in Python libraries that the program's code called.
fn of_library<'p>(members: &[usize], object: impl Fn(usize) -> &'p Object, places: &CodeLocations<'_>) -> Option<Vec<Option<String>>> {
    let lines = |g: usize| -> Vec<String> {
        let frames = places.frames(object(g).site).iter().filter(|frame| frame.module.as_deref() == Some(PYTHON));
        let line = |frame: &Frame| Some(format!("{}:{}", base(frame.file.as_deref()?), frame.line?));
        let mut lines: Vec<String> = frames.filter_map(line).collect();
        lines.reverse();
        lines
    };
    let ways: Vec<Vec<String>> = members.iter().map(|&g| lines(g)).collect();
    let deepest = ways.iter().map(Vec::len).max()?;
    let depth = (0..deepest).find(|&depth| ways.iter().any(|way| way.get(depth) != ways[0].get(depth)))?;
    Some(ways.iter().map(|way| way.get(depth).cloned()).collect())
}

/// Numbers the objects of each process that still have one name, but for the first: `a`, `a (#2)`. `order`: the largest first, of equal ones the oldest.
pub(crate) fn number(order: &[usize], process: impl Fn(usize) -> Id, list: &mut [ObjectName]) {
    let mut seen: BTreeMap<(Id, String), usize> = BTreeMap::new();
    for &g in order {
        let count = seen.entry((process(g), list[g].shown.clone())).or_default();
        *count += 1;
        if *count > 1 {
            list[g].shown = match list[g].shown.strip_suffix(')').filter(|name| name.contains(" (")) {
                Some(open) => format!("{open}, #{count})"),
                None => format!("{} (#{count})", list[g].shown),
            };
        }
    }
}

/// The way to an allocation: the frames of the program's own code that have lines, innermost first.
struct Way<'a> {
    frames: Vec<&'a Frame>,
    born_ns: u64,
}

impl<'a> Way<'a> {
    fn new(object: &Object, places: &CodeLocations<'a>) -> Self {
        let mut rest = places.frames(object.site);
        let mut frames = Vec::new();
        while let Some(at) = places.sources.user_frame(rest) {
            frames.extend(rest.get(at).filter(|frame| frame.file.is_some() && frame.line.is_some()));
            rest = rest.get(at + 1..).unwrap_or_default();
        }
        Self { frames, born_ns: object.born_ns }
    }

    fn line(&self, depth: usize) -> Option<String> {
        let frame = self.frames.get(depth)?;
        Some(format!("{}:{}", base(frame.file.as_deref()?), frame.line?))
    }

    fn file_and_line(&self, depth: usize) -> Option<(&'a str, u32)> {
        let frame = self.frames.get(depth)?;
        frame.file.as_deref().zip(frame.line)
    }

    /// The call at this depth of the next inner function.
    fn call(&self, depth: usize) -> Option<Call<'a>> {
        let callee = self.frames.get(depth.checked_sub(1)?)?.function.as_deref()?;
        // A constructor is called by the name of its class.
        let class = is_python_constructor(callee).then(|| callee.rsplit('.').nth(1)).flatten();
        Some(Call { frame: self.frames.get(depth)?, callee: class.unwrap_or_else(|| last_name(callee)), is_container: false })
    }

    /// The variable that holds the instance which the call at this depth constructs; `None` unless it is certain.
    fn instance(&self, depth: usize, member: &str, calls: &CallsByLine<'_>, places: &CodeLocations<'_>) -> Option<String> {
        let constructor = self.frames.get(depth.checked_sub(1)?)?;
        let makes = is_constructor(constructor.function.as_deref()?) || returns_owner(constructor, member, places);
        let call = self.call(depth).filter(|_| makes)?;
        match variables(&call, calls.get(&self.file_and_line(depth)?), places).as_slice() {
            [one] => Some(one.clone()),
            _ => None,
        }
    }
}

/// The innermost depth at which the lines differ; else one at which several variables of the same line are constructed.
fn depth_of_difference(ways: &[Way<'_>], places: &CodeLocations<'_>) -> Option<usize> {
    let deepest = ways.iter().map(|way| way.frames.len()).max().unwrap_or(0);
    let lines_differ = |depth: &usize| ways.iter().any(|way| way.line(*depth) != ways[0].line(*depth));
    let calls_differ = |depth: &usize| {
        let address = |way: &Way<'_>| way.frames.get(*depth).map(|frame| place(frame));
        let several = |way: &Way<'_>| way.call(*depth).is_some_and(|call| variables(&call, None, places).len() > 1);
        ways.iter().any(|way| address(way) != address(&ways[0])) && several(&ways[0])
    };
    (0..deepest).find(lines_differ).or_else(|| (0..deepest).find(calls_differ))
}

/// When the first object of each call was born, by the call's place.
type Births = BTreeMap<u64, Option<u64>>;
type CallsByLine<'a> = BTreeMap<(&'a str, u32), Calls>;

/// The calls at this depth on each line, in the order of the source.
fn calls_by_line<'a>(ways: &[Way<'a>], depth: usize) -> CallsByLine<'a> {
    let mut births: BTreeMap<(&str, u32), (bool, Births)> = BTreeMap::new();
    for way in ways {
        let Some((key, frame)) = way.file_and_line(depth).zip(way.frames.get(depth)) else { continue };
        let (is_python, births) = births.entry(key).or_default();
        *is_python |= frame.module.as_deref() == Some(PYTHON);
        let born = births.entry(place(frame)).or_insert(Some(u64::MAX));
        *born = born.map(|born| born.min(way.born_ns));
    }
    births.into_iter().map(|(key, (is_python, births))| (key, Calls::new(&births, is_python))).collect()
}

/// Functions that make an instance of a class: `Grid::Grid`, Rust's `Grid::new`, Python's `Grid.__init__`.
fn is_constructor(function: &str) -> bool {
    let plain = without_arguments(function);
    let mut parts = plain.rsplit("::");
    let (last, class) = (parts.next().unwrap_or_default(), parts.next());
    let is_rust = last == "new" || ["new_", "with_", "from_"].iter().any(|start| last.starts_with(start));
    is_python_constructor(function) || class.is_some_and(|class| class == last || (is_rust && !class.is_empty()))
}

fn is_python_constructor(function: &str) -> bool {
    function.ends_with(".__init__")
}

/// `grid::Grid::Grid` for `grid::Grid<double>::Grid(int)`.
fn without_arguments(function: &str) -> String {
    let mut depth = 0_usize;
    let mut plain = String::new();
    for c in function.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// Whether the function around an allocation returns what the member belongs to: `g->data = malloc(n); ... return g;`.
fn returns_owner(frame: &Frame, member: &str, places: &CodeLocations<'_>) -> bool {
    let owner = member.split_once("->").or_else(|| member.split_once('.')).map(|(owner, _)| owner);
    let line = frame.file.as_deref().zip(frame.line);
    owner.zip(line).is_some_and(|(owner, (file, line))| returns(file, line, owner, places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_construct() {
        for function in
            ["Grid::Grid", "grid::Grid<double>::Grid", "grid::Grid::Grid(int)", "demo::Grid::new", "Grid::with_size", "Grid.__init__"]
        {
            assert!(is_constructor(function), "{function}");
        }
        for function in ["main", "Grid::resize", "new", "std::vector<Grid::Grid>::push", "grid::make", "", "Grid.run", "<lambda>"] {
            assert!(!is_constructor(function), "{function}");
        }
    }
}
