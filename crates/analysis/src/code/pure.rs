//! Functions that only compute a value from their arguments, so that any thread may call them at any time.

use super::expression::{Expression, NUMBERS};
use super::regions::File;
use super::syntax::{Statement, statement};
use super::tokens::{Kind, Token, after_bracket};

/// Functions of the languages' libraries without side effects.
const MATHEMATICAL: &[&str] = &[
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
    "sqrt", "cbrt", "pow", "fabs", "abs", "labs", "fmin", "fmax", "floor", "ceil", "round", "trunc", "fmod", "hypot", "sinf", "cosf",
    "expf", "logf", "sqrtf", "powf", "fabsf", "erf", "fma",
];
/// Functions that call each other deeper are not followed.
const DEEPEST: usize = 3;

/// Whether a call changes nothing and reads nothing that the loop could write. `arrays`: what the loop writes.
pub(super) fn is_pure_call(file: &File, callee: &Expression, arguments: &[Expression], arrays: &[String]) -> bool {
    match callee {
        Expression::Name(name) => is_pure_function(file, name, arrays, 0),
        // `v.size()`
        Expression::Member(_, name) => name == "size" && arguments.is_empty(),
        _ => false,
    }
}

fn is_pure_function(file: &File, name: &str, arrays: &[String], depth: usize) -> bool {
    let plain = name.strip_prefix("std::").unwrap_or(name);
    let definitions = definitions(file, name);
    if definitions.is_empty() {
        let is_type = plain.split(' ').all(|word| NUMBERS.contains(&word) && word != "std");
        return (MATHEMATICAL.contains(&plain) || is_type) && file.macro_body(name).is_none();
    }
    let [(parameters, body)] = definitions.as_slice() else { return false };
    depth < DEEPEST && parameters_are_numbers(parameters) && computes(file, body, parameters, arrays, depth).is_some()
}

/// The parameters and the bodies of functions with this name.
fn definitions<'f>(file: &'f File, name: &str) -> Vec<(&'f [Token], &'f [Token])> {
    let list = &file.tokens;
    let at_name = list.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word && t.text == name);
    at_name
        .filter_map(|(at, _)| {
            let after = after_bracket(list, at + 1).filter(|_| list.get(at + 1).is_some_and(|t| t.is("(")))?;
            let open = if list.get(after).is_some_and(|t| t.is("const") || t.is("noexcept")) { after + 1 } else { after };
            let before = list.get(at.checked_sub(1)?)?;
            let is_typed =
                (before.kind == Kind::Word && before.text != "return" && before.text != "else") || before.is("*") || before.is("&");
            let body = open..after_bracket(list, open).filter(|_| is_typed && list.get(open).is_some_and(|t| t.is("{")))?;
            Some((list.get(at + 2..after - 1)?, list.get(body)?))
        })
        .collect()
}

fn parameters_are_numbers(parameters: &[Token]) -> bool {
    parameters.iter().all(|t| t.kind == Kind::Word || t.is(",") || t.is("::"))
}

/// `Some` if the body declares numbers and returns a value, and does nothing else.
fn computes(file: &File, body: &[Token], parameters: &[Token], arrays: &[String], depth: usize) -> Option<()> {
    let (Statement::Block(list), _) = statement(body, 0)? else { return None };
    let mut own: Vec<String> = parameters.iter().filter(|t| t.kind == Kind::Word).map(|t| t.text.clone()).collect();
    list.iter().try_for_each(|one| step(file, one, &mut own, arrays, depth))
}

fn step(file: &File, one: &Statement, own: &mut Vec<String>, arrays: &[String], depth: usize) -> Option<()> {
    let is_value = |e: &Expression, own: &[String]| is_value(file, e, own, arrays, depth).then_some(());
    match one {
        Statement::Block(list) => list.iter().try_for_each(|one| step(file, one, own, arrays, depth)),
        Statement::Declaration(list) => list.iter().try_for_each(|variable| {
            is_value(variable.value.as_ref()?, own)?;
            own.push(variable.name.clone());
            (!variable.is_pointer && !variable.is_reference).then_some(())
        }),
        Statement::Plain(Expression::Assign(_, left, right)) => {
            is_value(right, own)?;
            matches!(&**left, Expression::Name(name) if own.contains(name)).then_some(())
        }
        Statement::If(test, yes, no) => {
            is_value(test, own)?;
            step(file, yes, own, arrays, depth)?;
            no.as_ref().map_or(Some(()), |no| step(file, no, own, arrays, depth))
        }
        Statement::Return(Some(value)) => is_value(value, own),
        _ => None,
    }
}

/// Whether an expression only computes with the function's own variables and constants of the program.
fn is_value(file: &File, expression: &Expression, own: &[String], arrays: &[String], depth: usize) -> bool {
    let mut is_value = true;
    expression.visit(&mut |one| {
        is_value &= match one {
            Expression::Assign(..) | Expression::Postfix(..) => false,
            Expression::Unary(operator, _) => !["++", "--", "*", "&"].contains(&operator.as_str()),
            Expression::Call(callee, _) => match &**callee {
                Expression::Name(name) => is_pure_function(file, name, arrays, depth + 1),
                _ => false,
            },
            Expression::Name(name) => {
                own.contains(name) || (!arrays.contains(name) && is_harmless_macro(file, name) && !is_assigned(file, name))
            }
            Expression::Member(..) | Expression::Index(..) => false,
            _ => true,
        };
    });
    is_value
}

/// Whether a name is no macro of this file, or one for a value without side effects.
pub(super) fn is_harmless_macro(file: &File, name: &str) -> bool {
    file.macro_body(name).is_none_or(|body| {
        let is_call = |pair: &[Token]| {
            pair.first().is_some_and(|t| t.kind == Kind::Word && !NUMBERS.contains(&t.text.as_str()))
                && pair.get(1).is_some_and(|t| t.is("("))
        };
        let changes = |t: &Token| t.kind == Kind::Mark && ["=", "++", "--", "{", ";", "*=", "+=", "-="].contains(&t.text.as_str());
        !body.iter().any(changes) && !body.windows(2).any(is_call)
    })
}

/// Whether the file changes a variable after its declaration: `seed = ...`, `seed++`.
fn is_assigned(file: &File, name: &str) -> bool {
    let list = &file.tokens;
    list.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word && t.text == name).any(|(at, _)| {
        let is_changed = |t: &Token| ["+=", "-=", "*=", "/=", "^=", "|=", "&=", "%=", "<<=", ">>=", "++", "--"].contains(&t.text.as_str());
        let (before, after) = (at.checked_sub(1).and_then(|before| list.get(before)), list.get(at + 1));
        // A type before `=`: its declaration.
        let is_set = after.is_some_and(|t| t.is("=")) && before.is_some_and(|t| t.kind == Kind::Mark);
        is_set || after.is_some_and(is_changed) || before.is_some_and(|t| t.is("++") || t.is("--") || t.is("&"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::regions::tests::file;
    use super::*;

    /// Check which functions only compute a value.
    #[test]
    fn functions_that_compute() {
        let text = "#define SCALE 2.0\n#define NEXT seed++\nstatic unsigned seed = 1;\nstatic const double half = 0.5;\n\
                    static double value(size_t i) { double x = i * half; if (x > SCALE) return x; return sin(x); }\n\
                    static double twice(size_t i) { return 2 * value(i); }\n\
                    double draw(void) { seed = seed * 5 + 1; return seed; }\n\
                    double next(void) { return NEXT; }\ndouble now(void) { return seed; }\n\
                    double first(double *a) { return a[0]; }\ndouble counts(int i) { static int n = 0; return i; }\n\
                    double loops(int i) { return loops(i - 1); }\nvoid set() { seed = 3; }\n";
        let one = file(text);
        for name in ["value", "twice", "sin", "std::sqrt", "double"] {
            assert!(is_pure_function(&one, name, &[], 0), "{name}");
        }
        for name in ["draw", "next", "now", "first", "counts", "loops", "rand", "drand48", "set", "malloc"] {
            assert!(!is_pure_function(&one, name, &[], 0), "{name}");
        }
    }
}
