//! May the rounds of a C or C++ loop run on several threads? Only if its source shows that none needs what another one writes:
//! - each round writes elements of its own, and variables that it declares itself;
//! - it reads what the loop writes in its own elements only;
//! - it calls nothing but functions that only compute a value, and does not leave the loop;
//! - the loop counts as OpenMP requires, and what it counts with is not used afterwards.

use super::effects::{Access, Effects};
use super::expression::{Expression, NUMBERS};
use super::header::Header;
use super::regions::File;
use super::syntax::{Each, For, Statement, statement};
use std::ops::Range;

/// A loop whose rounds may run on several threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// Variables that each thread needs for itself.
    pub private: Vec<String>,
    /// The arrays that it writes, as `p.x`.
    pub writes: Vec<String>,
}

/// The loop in a range of tokens; `None` if its rounds may depend on each other, or are not understood.
pub(crate) fn independent(file: &File, function: &Range<usize>, range: &Range<usize>) -> Option<Rounds> {
    if file.is_conditional(range) {
        return None;
    }
    let (rounds, effects) = match statement(&file.tokens, range.start)?.0 {
        Statement::For(one) => counted(file, function, &one)?,
        Statement::Each(one) => each(file, function, &one)?,
        _ => return None,
    };
    are_separate(file, function, &effects).then_some(rounds)
}

fn counted(file: &File, function: &Range<usize>, one: &For) -> Option<(Rounds, Effects)> {
    let header = Header::read(one)?;
    let effects = Effects::of(file, &header.variable, header.is_pointer, &one.body)?;
    // The bounds are read once by each thread: nothing may write them.
    let parts = [Some(&header.low), Some(&header.bound), header.step.as_ref()];
    let names: Vec<&str> = parts.into_iter().flatten().flat_map(Expression::names).collect();
    let writes: Vec<String> = effects.accesses.iter().filter(|a| a.is_write).map(|a| a.root.clone()).collect();
    let reads_elements = |one: &Expression| {
        let mut reads = false;
        one.visit(&mut |part| reads |= matches!(part, Expression::Index(..)) || matches!(part, Expression::Unary(o, _) if o == "*"));
        reads
    };
    let is_fixed = !parts.into_iter().flatten().any(reads_elements)
        && names.iter().all(|name| super::pure::is_harmless_macro(file, name))
        && (header.is_pointer || !names.iter().any(|name| writes.iter().any(|root| root == name && !calls_size(&header.bound))));
    let mut private = effects.private.clone();
    private.sort();
    private.dedup();
    let mut counters = private.clone();
    if !header.is_declared {
        counters.push(header.variable.clone());
    }
    let only_count = counters.iter().all(|name| file.only_counts(function, name));
    (is_fixed && only_count && !writes.is_empty()).then_some((Rounds { private, writes }, effects))
}

/// Whether a bound is `v.size()`: elements that are written do not change it.
fn calls_size(bound: &Expression) -> bool {
    let mut calls = false;
    bound.visit(&mut |part| {
        calls |= matches!(part, Expression::Call(callee, _) if matches!(&**callee, Expression::Member(_, name) if name == "size"))
    });
    calls
}

fn each(file: &File, function: &Range<usize>, one: &Each) -> Option<(Rounds, Effects)> {
    let variable = &one.variable;
    let Expression::Name(range) = &one.range else { return None };
    let types = file.declared_types(range);
    let is_vector = !types.is_empty() && types.iter().all(|kind| kind.contains("vector<") && !kind.contains("<bool>"));
    if !variable.is_reference || variable.kind.contains("const") || !is_vector || file.function(function.start + 1).is_none() {
        return None;
    }
    let effects = Effects::of_each(file, &variable.name, &one.body)?;
    let reads_range = effects.names.contains(range) || effects.accesses.iter().any(|a| a.root == *range);
    let private = effects.private.clone();
    let writes = vec![range.clone()];
    (private.is_empty() && !reads_range && effects.accesses.iter().any(|a| a.is_write)).then_some((Rounds { private, writes }, effects))
}

/// Whether no round reads or writes what another one writes.
fn are_separate(file: &File, function: &Range<usize>, effects: &Effects) -> bool {
    let written: Vec<&Access> = effects.accesses.iter().filter(|a| a.is_write).collect();
    written.iter().all(|write| {
        let last = last_name(&write.root);
        let is_bare = effects.names.iter().any(|name| *name == write.root || file_same(file, name, last));
        !is_bare
            && has_elements(file, write)
            && effects.accesses.iter().all(|other| {
                if other.root == write.root {
                    return other.mark == write.mark;
                }
                // A member of the structure whose elements are written, as `g.n` beside `g.x[i]`: other memory.
                if other.subscripts == 0 && !other.is_write {
                    return true;
                }
                let (first, name) = (first_name(&other.root), last_name(&other.root));
                let is_parameter = |root: &str| file.is_open_parameter(function, first_name(root));
                let is_known = !is_parameter(first) && !is_parameter(&write.root) || file.is_local(function, first_name(&write.root));
                // Members of one structure are different arrays.
                let is_member = first == first_name(&write.root) && first != name;
                !file.may_be_same(last, name) && (is_known || is_member)
            })
    })
}

fn file_same(file: &File, name: &str, last: &str) -> bool {
    file.may_be_same(name, last)
}

fn first_name(root: &str) -> &str {
    root.split('.').next().unwrap_or(root)
}

fn last_name(root: &str) -> &str {
    root.rsplit('.').next().unwrap_or(root)
}

/// Whether different subscripts are different memory: true of arrays and pointers in C; in C++ the type must be known to be like that. Rows of
/// an array of pointers must have memory of their own.
fn has_elements(file: &File, write: &Access) -> bool {
    let name = last_name(&write.root);
    let is_cpp = !file.path.ends_with(".c") && !file.path.ends_with(".h");
    let types = file.declared_types(name);
    if file.is_pointer_to_array(name) {
        return true;
    }
    let is_array = |kind: &String| {
        let kind = kind.replace("restrict", "");
        let own = ["vector<", "array<", "span<"].iter().any(|holder| kind.contains(holder)) && !kind.contains("<bool>");
        let smart = kind.contains("_ptr<") && kind.contains("[]>");
        let auto = kind.contains("auto") && file.holds_new_memory(name);
        own || smart || auto || (!kind.contains('<') && (kind.contains('*') || kind.contains("[]")))
    };
    if is_cpp && (types.is_empty() || !types.iter().all(is_array)) {
        // The element of a range loop, or the pointer that counts.
        return write.mark.is_some() && write.subscripts <= 1 && types.iter().any(|kind| kind.ends_with('&') || kind.ends_with('*'));
    }
    if write.subscripts < 2 {
        return true;
    }
    let has_rows = |kind: &String| kind.contains("**") || kind.contains("*[]") || kind.contains("*>") || kind.contains("_ptr<");
    let is_plain = |kind: &String| NUMBERS.iter().any(|number| kind.contains(number)) || kind.contains("vector<");
    !types.is_empty() && types.iter().all(|kind| if has_rows(kind) { file.has_own_rows(name) } else { is_plain(kind) })
}

#[cfg(test)]
mod tests {
    use super::super::regions::tests::file;
    use super::*;

    /// The private variables of the first loop of a program, joined by blanks; `None` if its rounds may not be divided.
    fn private(text: &str, path: &str) -> Option<String> {
        let mut one = file(text);
        path.clone_into(&mut one.path);
        let at = one.tokens.iter().position(|t| t.is("for")).unwrap();
        let function = one.function(at).unwrap();
        let range = one.loops_in(&function).into_iter().next().unwrap();
        independent(&one, &function, &range).map(|rounds| rounds.private.join(" "))
    }

    fn c(before: &str, body: &str) -> Option<String> {
        private(&format!("void f(size_t n, double *restrict a) {{ int i, j, k; size_t m; {before}\n{body}\n}}\n"), "a.c")
    }

    /// Check that loops whose rounds are independent are recognised, with the variables that each thread needs for itself.
    #[test]
    fn independent_rounds() {
        for (before, body, expected) in [
            ("", "for (size_t l = 0; l < n; l++) a[l] = 0.5 * l;", ""),
            ("double *b;", "for (i = 0; i < n; i++) {\n  a[i] = i;\n  b[i] = sqrt(a[i]) + c[i - 1];\n}", ""),
            ("", "for (i = 0; i < m; i++) {\n  for (j = 0; j < n; j++)\n    a[i * n + j] = (double)(i + j);\n}", "j"),
            ("double A[10][20];", "for (int l = 0; l < m; ++l)\n  for (int q = 0; q < n; ++q)\n    A[l][q] += 1;", ""),
            ("double (*A)[n];", "for (int l = 0; l < m; ++l)\n  for (int q = 0; q < n; ++q)\n    A[l][q] = 1;", ""),
            ("struct s *p;", "for (int l = 0; l < n; l++) {\n  double x = 0.1 * l;\n  x += 1;\n  p->field[l] = x;\n}", ""),
            ("", "for (i = 0; i < m; i++) { double *row = a + i * n; for (j = 0; j < n; j++) row[j] = 1; }", "j"),
            ("", "for (i = 0; i < m; i++) { size_t at = i * n; for (j = 0; j < n; j++) { size_t k2 = at + j; a[k2] = 1; } }", "j"),
            ("", "for (double *p = a; p < a + n; p++) *p = 1;", ""),
            ("struct cell *g;", "for (i = 0; i < n; i++) { g[i].mass = 1; g[i].x = g[i].mass * 2; }", ""),
            ("", "for (i = 0; i < n; i++) { if (i % 2) continue; a[i] = 1; }", ""),
            ("", "for (i = 0; i < n; i++) a[n - 1 - i] = i < 3 ? 1 : 2;", ""),
            ("", "for (i = 0; i < nz; i++) for (j = 0; j < ny; j++) for (k = 0; k < nx; k++) a[(i * ny + j) * nx + k] = i;", "j k"),
            ("double *b = malloc(n);", "for (i = 0; i < n; i++) a[i] = b[i] = 0;", ""),
        ] {
            assert_eq!(c(before, body).as_deref(), Some(expected), "{body}");
        }
    }

    /// Check that rounds which need each other, or that may, are not divided.
    #[test]
    fn dependent_rounds() {
        for (before, body) in [
            ("", "for (i = 0; i < n; i++) a[k++] = i;"),
            ("double *cur;", "for (i = 0; i < n; i++) *cur++ = i;"),
            ("", "for (i = 1; i < n; i++) a[i] = a[i - 1] + 1;"),
            ("double sum;", "for (i = 0; i < n; i++) { sum += w[i]; a[i] = sum; }"),
            ("", "for (i = 0; i < n; i++) a[i] = rand();"),
            ("", "for (i = 0; i < n; i++) a[index[i]] = i;"),
            ("", "for (i = 0; i < n; i++) {\n  k = rowstr[i]++;\n  a[k] = 1;\n}"),
            ("", "for (i = 0; i < n; i++) {\n  if (i == m) break;\n  a[i] = 0;\n}"),
            ("", "for (i = 0; i < n; i++) a[0] = i;"),
            ("", "for (i = 0; i < n; i++) {\n#ifdef X\n  a[i] = 0;\n#endif\n}"),
            ("", "for (i = 0; i < n; i++) state = a[i] = next(state);"),
            ("", "for (i = 0; i < n; i++) a[i / 2] = i;"),
            ("", "for (i = 0; i < n; i++) a[i % 8] += i;"),
            ("", "for (i = 0; i < m; i++) for (j = 0; j < n; j++) a[i + j] = i;"),
            ("", "for (i = 0; i < m; i++) for (j = 0; j <= n; j++) a[i * n + j] = i;"),
            ("double *b = a + 1;", "for (i = 0; i < n; i++) a[i] = b[i];"),
            ("", "for (i = 0; i < n; i++) { static double last; a[i] = last; last = i; }"),
            ("double **rows;", "for (i = 0; i < m; i++) for (j = 0; j < n; j++) rows[i][j] = 1;"),
            ("double tmp;", "for (i = 0; i < n; i++) { tmp = i; a[i] = tmp; }"),
            ("", "for (i = 0; i < n; i++) a[i] = i; k = i;"),
            ("double *p;", "for (i = 0; i < n; i++) { double *q = p; p = p + 1; *q = 0; }"),
            ("", "for (i = 0; i < n; i++) { a[i] = 1; n--; }"),
            ("", "for (i = 0; i < n; i++) { while (a[i]) a[i] = 0; }"),
            ("", "for (i = 0; i < a[0]; i++) a[i] = 1;"),
            ("", "for (float x = 0; x < n; x++) a[(int)x] = 1;"),
            ("", "for (i = 0; i < n; i++) printf(\"%d\", i);"),
            ("", "for (i = 0; i < n; i++) a[(char)i] = i;"),
            ("", "for (i = 0; i < n; i++) { int l = i; l = l / 2; a[l] = i; }"),
        ] {
            assert_eq!(c(before, body), None, "{before} {body}");
        }
    }

    /// Check C++: containers whose elements are separate, and those that are not, or not known.
    #[test]
    fn containers() {
        let of = |declared: &str, body: &str| {
            private(&format!("struct S {{ {declared}; size_t n; void f(); }};\nvoid S::f() {{\n{body}\n}}\n"), "a.cpp")
        };
        let plain = "for (std::size_t i = 0; i < v.size(); ++i) v[i] = 1.0;";
        for declared in ["std::vector<double> v", "double *v", "std::unique_ptr<double[]> v", "std::array<double, 100> v"] {
            assert_eq!(of(declared, plain).as_deref(), Some(""), "{declared}");
        }
        for declared in ["std::vector<bool> v", "std::map<int, double> v", "Field v", "std::unique_ptr<Field> v", ""] {
            assert_eq!(of(declared, plain), None, "{declared}");
        }
        let rows = "for (std::size_t y = 0; y < n; ++y) { v[y].resize(n); for (std::size_t x = 0; x < n; ++x) v[y][x] = x; }";
        assert_eq!(of("std::vector<std::vector<double>> v", rows).as_deref(), Some(""));
        for declared in ["std::vector<std::vector<bool>> v", "std::vector<std::vector<Cell>> v", "std::vector<Row> v"] {
            assert_eq!(of(declared, rows), None, "{declared}");
        }
        assert_eq!(of("std::vector<std::vector<double>> v", "for (std::size_t y = 0; y < n; ++y) v[0].resize(y);"), None);
        let range = "for (double &x : v) x = 0.5;";
        assert_eq!(of("std::vector<double> v", range).as_deref(), Some(""));
        for (declared, body) in [
            ("std::list<double> v", range),
            ("std::vector<double> v", "for (double x : v) x = 0;"),
            ("std::vector<double> v", "for (double &x : v) x = v[0];"),
            ("std::vector<double> v", "for (double &x : v) x = next++;"),
            ("std::vector<double> v", "for (double &x : v) v.push_back(x);"),
        ] {
            assert_eq!(of(declared, body), None, "{body}");
        }
    }
}
