//! Fortran in free form: may the rounds of a loop run on several threads, and which OpenMP directives are around a line?

mod words;

use super::direction::is_negative;
use super::expression::{Expression, whole};
use super::polynomial::{Polynomial, Range as Values, tells_rounds_apart};
use super::regions::Directive;
use super::tokens::of_text;
use crate::Sources;
use std::ops::RangeInclusive;
pub(crate) use words::is_called;
use words::{begins_unit, ends_unit, is_do, is_end_do, is_name, without_comment, words};

const INTRINSICS: &[&str] = &[
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "log10", "sqrt", "abs", "min", "max",
    "floor", "ceiling", "nint", "int", "mod", "modulo", "real", "dble", "float", "sign", "cmplx", "aint", "anint", "hypot", "size", "kind",
];
/// Directives with a block that ends at `!$omp end ...`.
const REGIONS: &[&str] = &[
    "parallel",
    "single",
    "master",
    "masked",
    "sections",
    "section",
    "task",
    "critical",
    "workshare",
    "ordered",
    "target",
    "teams",
    "simd",
];

/// A Fortran file in free form, lines lowercased and without comments; lines from 1.
pub(crate) struct Fortran {
    pub lines: Vec<String>,
    code: Vec<String>,
}

/// A `do` loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Do {
    pub first: u32,
    pub last: u32,
    /// `None` for loops that do not count, or have a label.
    head: Option<Head>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Head {
    variable: String,
    low: String,
    high: String,
    has_step: bool,
    counts_down: bool,
}

/// Something open around a line.
enum Open {
    Loop(Option<Directive>),
    Region(String, Directive),
}

impl Fortran {
    pub fn read(sources: &dyn Sources, path: &str) -> Option<Self> {
        let is_free = [".f90", ".f95", ".f03", ".f08"].iter().any(|end| path.to_ascii_lowercase().ends_with(end));
        let lines = super::lines_of(sources, path).filter(|_| is_free)?;
        let code = lines.iter().map(|line| without_comment(line).trim().to_ascii_lowercase()).collect();
        Some(Self { lines, code })
    }

    /// A line's code, lowercased.
    pub fn code(&self, line: u32) -> &str {
        (line as usize).checked_sub(1).and_then(|index| self.code.get(index)).map_or("", String::as_str)
    }

    /// The code of the statement on a line, with the lines that it continues or that continue it.
    pub fn statement(&self, line: u32) -> String {
        let continues = |line: u32| self.code(line).ends_with('&');
        let mut at = (1..line).rev().take_while(|before| continues(*before)).last().unwrap_or(line);
        let mut code = String::new();
        loop {
            code.push_str(self.code(at).trim_matches('&'));
            if !continues(at) {
                return code;
            }
            at += 1;
        }
    }

    pub fn text(&self, line: u32) -> Option<&str> {
        self.lines.get((line as usize).checked_sub(1)?).map(String::as_str)
    }

    /// The lines of the program unit around a line, without procedures that it contains.
    pub fn unit(&self, line: u32) -> Option<RangeInclusive<u32>> {
        let first = (1..=line).rev().find(|at| begins_unit(self.code(*at)))?;
        let count = u32::try_from(self.code.len()).ok()?;
        let last = (first + 1..=count).find(|at| ends_unit(self.code(*at)))?;
        (last > line).then_some(first..=last)
    }

    /// The loops around a line (those whose first line it is too), outermost first.
    pub fn loops_on(&self, line: u32) -> Option<Vec<Do>> {
        let unit = self.unit(line)?;
        let mut open: Vec<u32> = Vec::new();
        let mut found: Vec<Do> = Vec::new();
        for at in unit {
            let code = self.code(at);
            if is_do(code) {
                open.push(at);
            } else if is_end_do(code) {
                let first = open.pop()?;
                if first <= line && line <= at {
                    found.push(Do { first, last: at, head: head(self.code(first)) });
                }
            }
        }
        found.sort_by_key(|one| one.first);
        open.is_empty().then_some(found)
    }

    /// The directives that apply to a line, outermost first; `None` if their ends are not clear.
    pub fn directives_around(&self, line: u32) -> Option<Vec<Directive>> {
        let unit = self.unit(line)?;
        let mut open: Vec<Open> = Vec::new();
        let mut pending: Option<Directive> = None;
        for at in *unit.start()..line {
            let code = self.code(at);
            if let Some(rest) = self.directive(at) {
                let directive = Directive::read_words(&rest)?;
                let first = directive.words.first().cloned().unwrap_or_default();
                if first == "end" {
                    let what = directive.words.get(1)?;
                    // `end parallel do` ends nothing that is open: its loop has ended.
                    let last = open.iter().rposition(|one| matches!(one, Open::Region(name, _) if name == what));
                    if let Some(last) = last.filter(|_| !directive.has("do")) {
                        open.truncate(last);
                    }
                } else if directive.has("do") {
                    pending = Some(directive);
                } else if REGIONS.contains(&first.as_str()) {
                    open.push(Open::Region(first, directive));
                }
            } else if is_do(code) {
                open.push(Open::Loop(pending.take()));
            } else if is_end_do(code) {
                let last = open.iter().rposition(|one| matches!(one, Open::Loop(..)))?;
                open.truncate(last);
            }
        }
        // A directive directly before this loop is its own.
        let own = pending.filter(|_| is_do(self.code(line)));
        let around = open.into_iter().filter_map(|one| match one {
            Open::Loop(directive) => directive,
            Open::Region(_, directive) => Some(directive),
        });
        Some(around.chain(own).collect())
    }

    /// The text of an OpenMP directive that begins on a line, with its continuation lines.
    fn directive(&self, line: u32) -> Option<String> {
        let of = |line: u32| {
            let text = self.text(line)?.trim().to_ascii_lowercase();
            text.strip_prefix("!$omp").map(|rest| rest.trim_start_matches('&').trim().to_owned())
        };
        let mut text = of(line)?;
        let mut at = line;
        while let Some(start) = text.strip_suffix('&').map(str::to_owned) {
            at += 1;
            text = format!("{start} {}", of(at)?);
        }
        Some(text)
    }

    /// Whether the rounds of a loop may run on several threads.
    pub fn is_independent(&self, one: &Do) -> bool {
        self.check(one).is_some()
    }

    fn check(&self, one: &Do) -> Option<()> {
        let unit = self.unit(one.first)?;
        let own = one.head.as_ref()?;
        if self.code.iter().any(|code| code.starts_with("equivalence")) || !self.only_counts(&unit, &own.variable) {
            return None;
        }
        let mut inner: Vec<(String, Option<Values>)> = Vec::new();
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for line in one.first + 1..one.last {
            let code = self.code(line);
            // A directive for the compiler, or conditional compilation.
            if self.text(line)?.trim_start().starts_with(['#']) || self.directive(line).is_some() {
                return None;
            }
            if code.is_empty() {
                continue;
            }
            if is_do(code) {
                let head = head(code).filter(|head| self.only_counts(&unit, &head.variable) && head.variable != own.variable)?;
                let values = head.values();
                [&head.low, &head.high].into_iter().try_for_each(|text| self.reads(&expression(text)?, &mut reads))?;
                inner.push((head.variable, values));
            } else if is_end_do(code) {
                inner.pop()?;
            } else {
                let (left, right) = code.split_once('=').filter(|(_, right)| !right.starts_with('='))?;
                let Expression::Call(array, subscripts) = expression(left)? else { return None };
                let name = path(&array).filter(|name| self.is_array(name))?;
                let mark = mark(&own.variable, &subscripts, &inner)?;
                let mut these = Vec::new();
                subscripts.iter().try_for_each(|one| self.reads(one, &mut these))?;
                self.reads(&expression(right)?, &mut these)?;
                reads.extend(these.into_iter().map(|(name, list)| (name, list.clone())));
                // The reads of this statement are compared with the ranges of its inner loops.
                for (name, list) in reads.drain(..) {
                    let mark = if list.is_empty() { None } else { self::mark(&own.variable, &list, &inner) };
                    writes.push((name, mark, false));
                }
                writes.push((name, Some(mark), true));
            }
        }
        let accesses = writes;
        let is_separate = accesses
            .iter()
            .filter(|(_, _, is_write)| *is_write)
            .all(|(name, mark, _)| accesses.iter().filter(|(other, ..)| other == name).all(|(_, other, _)| other == mark));
        (is_separate && accesses.iter().any(|(.., is_write)| *is_write)).then_some(())
    }

    /// Collects the arrays that an expression reads, with their subscripts; `None` if it may call a function that does more than compute.
    fn reads(&self, expression: &Expression, found: &mut Vec<(String, Vec<Expression>)>) -> Option<()> {
        match expression {
            Expression::Name(name) => {
                // A whole array in an expression.
                found.push((name.clone(), Vec::new()));
                Some(())
            }
            Expression::Number(_) => Some(()),
            Expression::Call(callee, list) => {
                let name = path(callee)?;
                list.iter().try_for_each(|one| self.reads(one, found))?;
                if self.is_array(&name) {
                    found.push((name, list.clone()));
                    return Some(());
                }
                INTRINSICS.contains(&name.as_str()).then_some(())
            }
            Expression::Unary(_, one) => self.reads(one, found),
            Expression::Binary(_, left, right) => {
                self.reads(left, found)?;
                self.reads(right, found)
            }
            Expression::Member(..) => {
                found.push((path(expression)?, Vec::new()));
                Some(())
            }
            _ => None,
        }
    }

    /// Whether the file declares or allocates an array of this name, and never as a pointer.
    pub fn is_array(&self, name: &str) -> bool {
        let last = name.rsplit('.').next().unwrap_or(name);
        let declares = |code: &str| {
            let types = ["real", "integer", "double", "complex", "logical", "dimension", "common", "type"];
            let (attributes, list) = code.split_once("::").unwrap_or((code, code));
            let is_declaration = code.contains("::") || types.iter().any(|word| code.starts_with(word));
            let has_bounds = is_called(list, last) || (attributes.contains("dimension") && words(list).contains(last));
            (is_declaration && has_bounds) || (code.starts_with("allocate") && is_called(code, last))
        };
        let is_pointer = |code: &String| code.contains("pointer") && words(code).contains(last);
        self.code.iter().any(|code| declares(code)) && !self.code.iter().any(is_pointer)
    }

    /// Whether any unit of the file uses a module.
    pub fn uses_module(&self, name: &str) -> bool {
        self.code.iter().any(|code| code.strip_prefix("use ").is_some_and(|rest| words(rest).contains(name)))
    }

    /// The declarations of this name, in any unit of the file.
    pub fn declared<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        let last = name.rsplit('.').next().unwrap_or(name);
        self.code.iter().map(String::as_str).filter(move |code| code.contains("::") && words(code).contains(last))
    }

    /// Whether a declaration says so, or none is in the file.
    pub fn is_allocatable(&self, name: &str) -> bool {
        let mut declarations = self.declared(name).peekable();
        declarations.peek().is_none() || declarations.any(|code| code.contains("allocatable"))
    }

    /// Whether an array of numbers is declared under this name.
    pub fn is_number(&self, name: &str) -> bool {
        let declarations: Vec<&str> = self.declared(name).collect();
        let is_number = |code: &&str| ["real", "integer", "complex", "double"].iter().any(|kind| code.starts_with(kind));
        !declarations.is_empty() && declarations.iter().all(is_number)
    }

    /// Whether a constant can be used on a line: the unit around the line, or the module or program around that, declares it.
    pub fn is_parameter_at(&self, line: u32, name: &str) -> bool {
        let declares = |code: &str| code.contains("parameter") && words(code).contains(name);
        let Some(unit) = self.unit(line) else { return false };
        if unit.clone().any(|at| declares(self.code(at))) {
            return true;
        }
        self.specification_around(&unit).iter().any(|at| declares(self.code(*at)))
    }

    /// The lines of declarations of the module or program that a unit is in.
    fn specification_around(&self, unit: &RangeInclusive<u32>) -> Vec<u32> {
        let is_scope = |code: &str| (code.starts_with("module ") && !code.starts_with("module procedure")) || code.starts_with("program ");
        let Some(scope) = (1..*unit.start()).rev().find(|at| is_scope(self.code(*at))) else { return Vec::new() };
        let mut inside = scope..*unit.start();
        let specification: Vec<u32> = inside.by_ref().take_while(|at| self.code(*at) != "contains").collect();
        let ended = |at: u32| self.code(at).starts_with("end module") || self.code(at).starts_with("end program");
        if inside.any(ended) { Vec::new() } else { specification }
    }

    /// The digits that the unit around a line, or the module around that, declares a constant to be: `4` of `integer, parameter :: n = 100, threads = 4`.
    pub fn number_of_parameter(&self, line: u32, name: &str) -> Option<&str> {
        let unit = self.unit(line)?;
        let around = self.specification_around(&unit);
        unit.chain(around).find_map(|at| {
            let (_, list) = self.code(at).split_once("::").filter(|(attributes, _)| attributes.contains("parameter"))?;
            let (_, value) = list.split(',').find_map(|one| one.split_once('=').filter(|(own, _)| own.trim() == name))?;
            let value = value.trim();
            (!value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())).then_some(value)
        })
    }

    /// Whether a loop's variable chooses elements on a line.
    pub fn is_indexed_by(&self, one: &Do, line: u32) -> bool {
        let Some(head) = &one.head else { return false };
        let lines = if is_do(self.code(line)) { one.first + 1..=one.last } else { line..=line };
        lines.into_iter().any(|line| {
            let code = self.code(line);
            code.split_once('(').is_some_and(|(_, inside)| !is_do(code) && words(inside).contains(head.variable.as_str()))
        })
    }

    /// Whether a loop goes through the array that a line writes from its end to its beginning: it counts down, or its variable has a minus sign in a
    /// subscript, but not both.
    pub fn is_mirrored(&self, one: &Do, line: u32) -> bool {
        let Some(head) = &one.head else { return false };
        let lines = if is_do(self.code(line)) { one.first + 1..=one.last } else { line..=line };
        let negative = |line: u32| {
            let Some((left, _)) = self.code(line).split_once('=').filter(|_| !is_do(self.code(line))) else { return false };
            of_text(left).is_some_and(|list| is_negative(&list, &head.variable))
        };
        head.counts_down != lines.into_iter().any(negative)
    }

    /// Whether the unit uses a variable for nothing but counting, and declares it.
    fn only_counts(&self, unit: &RangeInclusive<u32>, name: &str) -> bool {
        let declares = |code: &str| words(code).contains(name) && (code.starts_with("integer") && !code.contains("parameter"));
        let mut is_declared = false;
        for line in unit.clone() {
            let code = self.code(line);
            if !words(code).contains(name) {
                continue;
            }
            if declares(code) {
                is_declared = true;
                continue;
            }
            let counts = |one: &Do| one.head.as_ref().is_some_and(|head| head.variable == name);
            if !self.loops_on(line).is_some_and(|loops| loops.iter().any(counts)) {
                return false;
            }
        }
        // Procedures that the unit contains see its variables.
        let inside = self.code(*unit.end()) == "contains";
        let after = || self.code.iter().skip(*unit.end() as usize);
        is_declared && (!inside || !after().any(|code| words(code).contains(name)) || after().any(|code| declares(code)))
    }
}

impl Head {
    fn values(&self) -> Option<Values> {
        let of = |text: &str| Polynomial::of(&expression(text)?);
        (!self.has_step).then_some(())?;
        Some(Values { name: self.variable.clone(), low: of(&self.low)?, high: of(&self.high)? })
    }
}

/// Tells the rounds apart by the last subscript that does: the one whose values are farthest apart in memory.
fn mark(variable: &str, subscripts: &[Expression], inner: &[(String, Option<Values>)]) -> Option<(usize, Polynomial, Polynomial)> {
    let unknown: Vec<&String> = inner.iter().filter(|(_, values)| values.is_none()).map(|(name, _)| name).collect();
    let known: Vec<Values> = inner
        .iter()
        .filter_map(|(_, values)| values.as_ref())
        .map(|one| Values { name: one.name.clone(), low: one.low.clone(), high: one.high.clone() })
        .collect();
    for (position, subscript) in subscripts.iter().enumerate().rev() {
        let polynomial = Polynomial::of(subscript).filter(|one| !unknown.iter().any(|name| one.mentions(name)));
        if let Some((width, base)) = polynomial.and_then(|one| tells_rounds_apart(&one, variable, &known)) {
            return Some((position, width, base));
        }
        // A subscript further out changes in the round: the round's elements are not together.
        if inner.iter().any(|(name, _)| subscript.mentions(name)) {
            return None;
        }
    }
    None
}

/// `u` of `u(i)`, `p.x` of `p%x(i)`.
fn path(expression: &Expression) -> Option<String> {
    match expression {
        Expression::Name(name) => Some(name.clone()),
        Expression::Member(inner, name) => Some(format!("{}.{name}", path(inner)?)),
        _ => None,
    }
}

/// A Fortran expression, in the form of C: only what both have is understood.
fn expression(text: &str) -> Option<Expression> {
    let is_logical =
        text.split('.').skip(1).any(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphabetic()) && part.len() > 1);
    if is_logical || text.contains(['\'', '"', '&', ';']) {
        return None;
    }
    let text = text.replace("**", "^").replace('%', ".").replace(' ', "").replace("(:", "(0").replace(",:", ",0");
    whole(&of_text(&text)?)
}

fn head(code: &str) -> Option<Head> {
    let (variable, bounds) = code.strip_prefix("do")?.split_once('=')?;
    let variable = Some(variable.trim()).filter(|name| is_name(name))?;
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, c) in bounds.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(bounds.get(start..at)?.trim());
                start = at + 1;
            }
            ';' | '&' => return None,
            _ => {}
        }
    }
    parts.push(bounds.get(start..)?.trim());
    let [low, high, step @ ..] = parts.as_slice() else { return None };
    (step.len() < 2).then(|| Head {
        variable: variable.to_owned(),
        low: (*low).to_owned(),
        high: (*high).to_owned(),
        has_step: !step.is_empty(),
        counts_down: step.first().is_some_and(|step| step.starts_with('-')),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Fortran {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let code = lines.iter().map(|line| without_comment(line).trim().to_ascii_lowercase()).collect();
        Fortran { lines, code }
    }

    fn is_independent(body: &str) -> bool {
        let one = read(&format!(
            "subroutine s(n)\n  integer :: i, j, k, n\n  real(8) :: u(n, n), v(n), x\n  real(8), allocatable :: w(:)\n{body}\nend subroutine\n"
        ));
        let loops = one.loops_on(5).unwrap();
        one.is_independent(&loops[0])
    }

    /// Check that a statement is read with the lines that it continues, from any of them.
    #[test]
    fn statements_go_on_over_lines() {
        let file = read("x = 1\nallocate(u(0:n, 0:n), &  ! both\n  & v(n), &\n  w(n, n))\ny = 2\n");
        let whole = "allocate(u(0:n, 0:n),  v(n), w(n, n))";
        let words = |line: u32| file.statement(line).split_whitespace().collect::<Vec<_>>().join(" ");
        for line in 2..=4 {
            assert_eq!(words(line), whole.split_whitespace().collect::<Vec<_>>().join(" "), "line {line}");
        }
        assert_eq!((words(1).as_str(), words(5).as_str(), words(9).as_str()), ("x = 1", "y = 2", ""));
    }

    /// Check which loops may be divided.
    #[test]
    fn rounds() {
        for body in [
            "do j = 1, n\n do i = 1, n\n  u(i, j) = dble(i) ! first\n end do\nend do",
            "do i = 1, n\n v(i) = sqrt(1.0d0 * i) + w(i + 1)\nend do",
            "do j = 1, n\n u(:, j) = 0\nend do",
            "do j = 0, n - 1\n do i = 1, n\n  v(j * n + i) = i\n end do\nend do",
            "DO J = 1, N\n V(J) = V(J) + 1\nENDDO",
        ] {
            assert!(is_independent(body), "{body}");
        }
        for body in [
            "do i = 2, n\n v(i) = v(i - 1)\nend do",
            "do i = 1, n\n k = k + 1\n v(i) = k\nend do",
            "do i = 1, n\n call random_number(v(i))\nend do",
            "do i = 1, n\n v(i / 2) = 1\nend do",
            "do i = 1, n\n x = i\n v(i) = x\nend do",
            "do i = 1, n\n v(i) = f(i)\nend do",
            "do i = 1, n\n do j = 1, n\n  u(i, j) = 1\n end do\nend do",
            "do i = 1, n\n if (i == 3) exit\n v(i) = 1\nend do",
            "do i = 1, n\n v(i) = sum(v)\nend do",
            "do i = 1, n\n v(i) = 1\nend do\nk = i",
            "do concurrent (i = 1:n)\n v(i) = 1\nend do",
            "do while (k < n)\n v(k) = 1\nend do",
            "do i = 1, n\n v(i) = 1 + &\n  w(i)\nend do",
            "do i = 1, n\n v(nint(w(i))) = 1\nend do",
        ] {
            assert!(!is_independent(body), "{body}");
        }
    }

    /// Check which loops go through the array that they write from its end to its beginning.
    #[test]
    fn loops_that_go_backwards() {
        let mirrored = |head: &str, body: &str| {
            let one =
                read(&format!("subroutine s(n)\n  integer :: i, n\n  real(8) :: v(n), w(n)\n{head}\n{body}\nend do\nend subroutine\n"));
            let loops = one.loops_on(5).unwrap();
            one.is_mirrored(&loops[0], 5)
        };
        let (up, down) = ("do i = 1, n", "do i = n, 1, -1");
        assert!(!mirrored(up, "v(i) = w(n + 1 - i)") && mirrored(down, "v(i) = 0"));
        assert!(mirrored(up, "v(n + 1 - i) = i") && !mirrored(down, "v(n + 1 - i) = i"));
        assert!(!mirrored(up, "v(i - 1) = -i"));
    }

    /// Check the directives around lines.
    #[test]
    fn directives() {
        let one = read(
            "program p\n!$omp parallel num_threads(4) &\n!$omp& default(shared)\n do i = 1, n\n  a(i) = 1\n end do\n!$omp end parallel\n!$omp parallel do\n do i = 1, n\n  a(i) = 2\n end do\n!$omp end parallel do\n do i = 1, n\n  a(i) = 3\n end do\nend program\n",
        );
        let words = |line| one.directives_around(line).unwrap().iter().map(|d| d.words.join(" ")).collect::<Vec<_>>().join("|");
        assert_eq!([words(5), words(10), words(9), words(14)], ["parallel num_threads default", "parallel do", "parallel do", ""]);
    }
}
