//! Headers of C loops.

use super::expression::Expression;
use super::polynomial::{Polynomial, Range};
use super::syntax::{For, Statement};

/// A loop that counts, as OpenMP requires it.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub variable: String,
    pub is_declared: bool,
    pub is_pointer: bool,
    pub low: Expression,
    pub bound: Expression,
    /// `<`, `<=`, `>`, `>=`
    comparison: String,
    pub step: Option<Expression>,
    goes_up: bool,
}

impl Header {
    pub fn read(one: &For) -> Option<Self> {
        let (variable, low, is_declared, is_pointer, kind) = match &one.first {
            Statement::Declaration(list) => {
                let [only] = list.as_slice() else { return None };
                (only.name.clone(), only.value.clone()?, true, only.is_pointer, only.kind.as_str())
            }
            Statement::Plain(Expression::Assign(operator, left, right)) if operator == "=" => match &**left {
                Expression::Name(name) => (name.clone(), (**right).clone(), false, false, ""),
                _ => return None,
            },
            _ => return None,
        };
        let is_real = !is_pointer && ["double", "float"].iter().any(|real| kind.contains(real));
        let Some(Expression::Binary(comparison, left, bound)) = &one.condition else { return None };
        let counts = matches!(left.without_casts(), Expression::Name(name) if *name == variable);
        let (step, goes_up) = step(one.step.as_ref()?, &variable)?;
        let fits = if goes_up { ["<", "<="] } else { [">", ">="] }.contains(&comparison.as_str());
        let is_fixed = !bound.mentions(&variable) && !low.mentions(&variable) && bound.is_pure() && low.is_pure();
        (!is_real && counts && fits && is_fixed).then(|| Self {
            variable,
            is_declared,
            is_pointer,
            low,
            bound: (**bound).clone(),
            comparison: comparison.clone(),
            step,
            goes_up,
        })
    }

    /// The values of the variable; `None` if they are not polynomials.
    pub fn range(&self) -> Option<Range> {
        let (first, bound) = (Polynomial::of(&self.low)?, Polynomial::of(&self.bound)?);
        let one = Polynomial::number(if self.comparison.len() == 2 { 0 } else { 1 });
        let (low, high) = if self.goes_up { (first, bound.minus(&one)?) } else { (bound.plus(&one)?, first) };
        Some(Range { name: self.variable.clone(), low, high })
    }
}

/// The step, `None` for 1, and whether the loop counts up.
fn step(expression: &Expression, variable: &str) -> Option<(Option<Expression>, bool)> {
    let is_it = |one: &Expression| matches!(one, Expression::Name(name) if name == variable);
    match expression {
        Expression::Unary(operator, inner) | Expression::Postfix(operator, inner) if is_it(inner) => match operator.as_str() {
            "++" => Some((None, true)),
            "--" => Some((None, false)),
            _ => None,
        },
        Expression::Assign(operator, left, right) if is_it(left) && right.is_pure() && !right.mentions(variable) => match operator.as_str()
        {
            "+=" => Some((Some((**right).clone()), true)),
            "-=" => Some((Some((**right).clone()), false)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::syntax::statement;
    use super::super::tokens::of_text;
    use super::*;

    fn read(text: &str) -> Option<Header> {
        match statement(&of_text(text)?, 0)?.0 {
            Statement::For(one) => Header::read(&one),
            _ => None,
        }
    }

    /// Check which loops count as OpenMP requires.
    #[test]
    fn canonical_loops() {
        for text in [
            "for (size_t i = 0; i < n; i++) ;",
            "for (i = n - 1; i >= 0; --i) ;",
            "for (int i = 0; i < n; i += 2) ;",
            "for (double *p = a; p < a + n; p++) ;",
        ] {
            assert!(read(text).is_some(), "{text}");
        }
        for text in [
            "for (;;) ;",
            "for (double x = 0; x < 1; x += 0.1) ;",
            "for (i = 0; i < n; i *= 2) ;",
            "for (i = 0; i < f(n); i++) ;",
            "for (i = 0; i != n; i++) ;",
            "for (i = 0, j = 1; i < n; i++) ;",
            "for (i = 0; i < n && a[i]; i++) ;",
            "for (p = list; p; p = p->next) ;",
            "for (i = 0; i < n; i--) ;",
        ] {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
