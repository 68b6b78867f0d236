//! Variables of a function that a loop counts with, and what else the function does with them; pointers that may lead to the same memory.

use super::regions::File;
use super::syntax::declaration;
use super::tokens::{Kind, Token};
use std::ops::Range;

impl File {
    /// Whether a function uses a variable for nothing but counting in `for` loops: so each thread may have its own, and its value afterwards
    /// does not matter. The variable is declared in the function, as an integer.
    pub(super) fn only_counts(&self, function: &Range<usize>, name: &str) -> bool {
        let counts = |one: &&Range<usize>| {
            let head = self.tokens.get(one.start + 2..one.end).unwrap_or_default();
            let first = head.split(|t| t.is(";")).next().unwrap_or_default();
            let at = first.iter().position(|t| t.is("="));
            at.and_then(|at| first.get(at.checked_sub(1)?)).is_some_and(|t| t.text == name)
        };
        let loops = self.loops_in(function);
        let loops: Vec<&Range<usize>> = loops.iter().filter(counts).collect();
        let others: Vec<usize> = self.uses_of(function, name).filter(|at| !loops.iter().any(|one| one.contains(at))).collect();
        let [only] = others.as_slice() else { return false };
        self.declared_as_integer(*only, name)
    }

    /// The tokens in a range that are this variable.
    fn uses_of(&self, range: &Range<usize>, name: &str) -> impl Iterator<Item = usize> {
        let is_it = move |at: &usize| {
            let token = self.tokens.get(*at);
            let before = at.checked_sub(1).and_then(|before| self.tokens.get(before));
            token.is_some_and(|t| t.kind == Kind::Word && t.text == name) && !before.is_some_and(|t| t.is(".") || t.is("->"))
        };
        range.clone().filter(is_it)
    }

    fn declared_as_integer(&self, at: usize, name: &str) -> bool {
        let Some(statement) = self.statement(at) else { return false };
        let Some(list) = self.tokens.get(statement.start..statement.end - 1).and_then(declaration) else { return false };
        let is_integer = |kind: &str| !["double", "float", "static", "auto"].iter().any(|word| kind.contains(word));
        list.iter().any(|v| v.name == name && !v.is_pointer && !v.is_reference && !v.is_array && is_integer(&v.kind))
    }

    /// The types with which a name is declared anywhere in the file, as tokens before the name back to the start of its statement.
    pub(crate) fn declared_types(&self, name: &str) -> Vec<String> {
        let at_name = self.tokens.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word && t.text == name);
        let types = at_name.filter_map(|(at, _)| {
            let before = self.tokens.get(..at)?;
            let start = type_start(before)?;
            let text = super::expression::text_of(before.get(start..)?);
            let is_array = self.tokens.get(at + 1).is_some_and(|t| t.is("["));
            let typed = before.get(start)?.kind == Kind::Word && !NOT_TYPES.contains(&before.get(start)?.text.as_str());
            (typed && !text.is_empty()).then(|| if is_array { format!("{text}[]") } else { text })
        });
        types.collect()
    }

    /// Whether a name, as `p.x`, is a `std::vector<std::vector<T>>` wherever the file declares it, with numbers for T.
    pub(super) fn is_vector_of_vectors(&self, name: &str) -> bool {
        let types = self.declared_types(name.rsplit('.').next().unwrap_or(name));
        let is_it = |kind: &String| {
            let plain = kind.replace("std::", "");
            let element = plain.trim_end_matches(['&', ' ']).strip_prefix("vector<vector<").and_then(|rest| rest.strip_suffix(">>"));
            element.is_some_and(|element| element != "bool" && element.split(' ').all(|word| super::expression::NUMBERS.contains(&word)))
        };
        !types.is_empty() && types.iter().all(is_it)
    }

    /// Whether two names may lead to the same memory: one is assigned from the other, or both from a third, without an allocation.
    pub(super) fn may_be_same(&self, one: &str, other: &str) -> bool {
        if one == other {
            return false;
        }
        let (from_one, from_other) = (self.assigned_from(one), self.assigned_from(other));
        from_one.iter().any(|name| name == other || from_other.contains(name)) || from_other.iter().any(|name| name == one)
    }

    /// Names on the right of assignments to the bare variable, except in allocations.
    fn assigned_from(&self, name: &str) -> Vec<String> {
        let mut found = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            if token.kind != Kind::Word || token.text != name || !self.tokens.get(at + 1).is_some_and(|t| t.is("=")) {
                continue;
            }
            let rest = self.tokens.get(at + 2..).unwrap_or_default();
            let value = rest.split(|t| t.is(";") || t.is(",")).next().unwrap_or_default();
            let allocates =
                |t: &Token| ["malloc", "calloc", "alloc", "new", "mmap"].iter().any(|word| t.kind == Kind::Word && t.text.contains(word));
            if value.iter().any(allocates) || value.first().is_some_and(|t| t.kind == Kind::Number) {
                continue;
            }
            // Of `p->x` the member counts: `p->x` and `p->y` are different arrays.
            let is_structure = |at: usize| value.get(at + 1).is_some_and(|t| t.is("->") || t.is("."));
            let is_name = |t: &Token| t.kind == Kind::Word && !super::expression::NUMBERS.contains(&t.text.as_str());
            found.extend(value.iter().enumerate().filter(|(at, t)| is_name(t) && !is_structure(*at)).map(|(_, t)| t.text.clone()));
        }
        found
    }

    /// Whether a name that the file uses elsewhere means the same at the beginning of a line: it is declared before, outside of functions.
    pub(crate) fn is_visible_at(&self, line: u32, name: &str) -> bool {
        let at = self.on_line(line).start;
        let declared = self.tokens.iter().enumerate().take(at).any(|(index, token)| {
            let is_declared = token.kind == Kind::Word
                && token.text == name
                && self.function(index).is_none()
                && self.tokens.get(index + 1).is_some_and(|t| ["=", ",", "}", ";"].contains(&t.text.as_str()));
            let is_macro = token.kind == Kind::Directive && token.text.contains("define") && self.macro_body(name).is_some();
            is_declared || is_macro
        });
        let hides = self.function(at).is_some_and(|function| self.is_local(&function, name));
        declared && !hides
    }

    /// Whether a name is no macro of this file that does more than name a value.
    pub(crate) fn is_harmless(&self, name: &str) -> bool {
        super::pure::is_harmless_macro(self, name)
    }

    /// Whether a name is declared in the body of the function.
    pub(super) fn is_local(&self, function: &Range<usize>, name: &str) -> bool {
        self.uses_of(function, name).any(|at| {
            let before = self.tokens.get(function.start + 1..at).unwrap_or_default();
            let first = type_start(before).and_then(|start| before.get(start));
            first.is_some_and(|t| t.kind == Kind::Word && !NOT_TYPES.contains(&t.text.as_str()))
        })
    }

    /// Whether each row of an array of pointers is memory of its own: every assignment to `name[...]` allocates.
    pub(super) fn has_own_rows(&self, name: &str) -> bool {
        let mut rows = 0;
        for (at, token) in self.tokens.iter().enumerate() {
            if token.kind != Kind::Word || token.text != name || !self.tokens.get(at + 1).is_some_and(|t| t.is("[")) {
                continue;
            }
            let Some(after) = super::tokens::after_bracket(&self.tokens, at + 1) else { return false };
            if !self.tokens.get(after).is_some_and(|t| t.is("=")) {
                continue;
            }
            let value = self.tokens.get(after + 1..).unwrap_or_default().split(|t| t.is(";")).next().unwrap_or_default();
            if !value.iter().any(|t| ["malloc", "calloc", "aligned_alloc", "new"].contains(&t.text.as_str())) {
                return false;
            }
            rows += 1;
        }
        rows > 0
    }

    /// `double (*name)[n]`: its rows follow each other.
    pub(super) fn is_pointer_to_array(&self, name: &str) -> bool {
        self.tokens.windows(5).any(|w| matches!(w, [a, b, c, d, e] if a.is("(") && b.is("*") && c.text == name && d.is(")") && e.is("[")))
    }

    /// Whether the variable that is declared as `auto` is initialised with new memory or a vector.
    pub(super) fn holds_new_memory(&self, name: &str) -> bool {
        const MAKERS: &[&str] =
            &["new", "make_unique", "make_shared", "make_unique_for_overwrite", "vector", "malloc", "aligned_alloc", "calloc"];
        let starts = self.tokens.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word && t.text == name).filter_map(|(at, _)| {
            let auto = at.checked_sub(1).and_then(|before| self.tokens.get(before)).is_some_and(|t| t.is("auto") || t.is("*"));
            (auto && self.tokens.get(at + 1).is_some_and(|t| t.is("="))).then_some(at + 2)
        });
        let mut starts = starts.peekable();
        starts.peek().is_some()
            && starts.all(|at| {
                let value = self.tokens.get(at..).unwrap_or_default().split(|t| t.is(";")).next().unwrap_or_default();
                value.iter().any(|t| MAKERS.contains(&t.text.as_str()))
            })
    }

    /// Whether a name is a parameter of the function, without `restrict`.
    pub(super) fn is_open_parameter(&self, function: &Range<usize>, name: &str) -> bool {
        let head = self.head(function.start);
        let open = head.iter().position(|t| t.is("(")).unwrap_or(head.len());
        let parameters = head.get(open..).unwrap_or_default();
        parameters.split(|t| t.is(",")).any(|one| {
            let is_it = one.iter().any(|t| t.kind == Kind::Word && t.text == name);
            is_it && !one.iter().any(|t| t.text.contains("restrict"))
        })
    }
}

const NOT_TYPES: &[&str] = &["return", "else", "delete", "new", "case", "goto", "throw", "sizeof", "typedef", "using"];

/// Where a type begins that ends before a name; `None` if no type is there.
fn type_start(before: &[Token]) -> Option<usize> {
    let mut at = before.len();
    let mut depth = 0_usize;
    while let Some(token) = at.checked_sub(1).and_then(|last| before.get(last)) {
        match token.text.as_str() {
            ">" => depth += 1,
            ">>" => depth += 2,
            "<" => depth = depth.checked_sub(1)?,
            "*" | "&" | "::" | "[" | "]" => {}
            "," | "(" | ")" if depth > 0 => {}
            _ if token.kind == Kind::Word || (depth > 0 && token.kind == Kind::Number) => {}
            _ => break,
        }
        at -= 1;
    }
    (depth == 0 && at < before.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::super::regions::tests::file;

    /// Check which variables only count.
    #[test]
    fn counters() {
        let one = file(
            "int f(int p) {\n  int i, j, k, l;\n  double x;\n  for (i = 0; i < 3; i++) for (k = 0; k < 2; k++) a[i] = k;\n  for (j = 0; j < 3; j++) ;\n  b = j;\n  for (x = 0; ;) ;\n  for (p = 0; ;) ;\n  g(&l);\n  for (l = 0; ;) ;\n}\n",
        );
        let function = one.function(40).unwrap();
        let which: Vec<&str> = ["i", "j", "k", "l", "x", "p", "q"].into_iter().filter(|name| one.only_counts(&function, name)).collect();
        assert_eq!(which, ["i", "k"]);
    }

    /// Check types of declarations, and pointers to the same memory.
    #[test]
    fn types_and_aliases() {
        let one = file(
            "std::vector<bool> flags(n);\nstruct s { std::map<int, double> m; double *x, y[4]; };\nvoid f(double *a) {\n  double *b = a + 1;\n  double *c = malloc(8);\n  c = d;\n  x * 3;\n  double *e = p->e, *g = p->g, *h = p->e + 1;\n}\n",
        );
        assert_eq!(one.declared_types("flags"), ["std::vector<bool>"]);
        assert_eq!(one.declared_types("m"), ["std::map<int,double>"]);
        assert_eq!(one.declared_types("b"), ["double*"]);
        assert!(one.may_be_same("a", "b") && one.may_be_same("c", "d") && !one.may_be_same("a", "c"));
        assert!(!one.may_be_same("e", "g") && one.may_be_same("e", "h"));
    }
}
