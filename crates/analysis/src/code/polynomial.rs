//! Sums of products of names, to compare subscripts: `i * n + j` and `j + n * i` are one polynomial.

use super::expression::Expression;
use std::collections::BTreeMap;

/// More terms are not calculated with.
const MOST_TERMS: usize = 32;

/// Factors, sorted, and their coefficient.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Polynomial(BTreeMap<Vec<String>, i64>);

impl Polynomial {
    /// The polynomial of an expression without side effects. Other operations on constants of a loop (`n / 2`) are factors of their own.
    pub fn of(expression: &Expression) -> Option<Self> {
        match expression.without_casts() {
            Expression::Number(text) => Some(Self::number(integer(text)?)),
            Expression::Name(name) => Some(Self::factor(name.clone())),
            Expression::Unary(operator, inner) if operator == "-" => Self::of(inner)?.times(&Self::number(-1)),
            Expression::Unary(operator, inner) if operator == "+" => Self::of(inner),
            Expression::Binary(operator, left, right) => match operator.as_str() {
                "+" => Self::of(left)?.plus(&Self::of(right)?),
                "-" => Self::of(left)?.plus(&Self::of(right)?.times(&Self::number(-1))?),
                "*" => Self::of(left)?.times(&Self::of(right)?),
                "/" | "<<" | ">>" | "%" | "**" => Some(Self::factor(format!("{expression:?}"))),
                _ => None,
            },
            member @ (Expression::Member(..) | Expression::Constant(_)) => Some(Self::factor(format!("{member:?}"))),
            call @ Expression::Call(..) if call.is_pure() => Some(Self::factor(format!("{call:?}"))),
            _ => None,
        }
    }

    pub fn number(value: i64) -> Self {
        Self(if value == 0 { BTreeMap::new() } else { BTreeMap::from([(Vec::new(), value)]) })
    }

    fn factor(name: String) -> Self {
        Self(BTreeMap::from([(vec![name], 1)]))
    }

    pub fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = self.0.clone();
        for (factors, coefficient) in &other.0 {
            let value = sum.get(factors).copied().unwrap_or(0).checked_add(*coefficient)?;
            if value == 0 {
                sum.remove(factors);
            } else {
                sum.insert(factors.clone(), value);
            }
        }
        (sum.len() <= MOST_TERMS).then_some(Self(sum))
    }

    pub fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.times(&Self::number(-1))?)
    }

    pub fn times(&self, other: &Self) -> Option<Self> {
        let mut product = Self::default();
        for (factors, coefficient) in &self.0 {
            for (more, other) in &other.0 {
                let mut all: Vec<String> = factors.iter().chain(more).cloned().collect();
                all.sort();
                product = product.plus(&Self(BTreeMap::from([(all, coefficient.checked_mul(*other)?)])))?;
            }
        }
        Some(product)
    }

    /// Its value, if it is a number.
    pub fn constant(&self) -> Option<i64> {
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// `(w, r)` so that it is `w * name + r`; `None` if the name occurs otherwise, for example squared or in a quotient.
    pub fn split(&self, name: &str) -> Option<(Self, Self)> {
        let (mut coefficient, mut rest) = (Self::default(), Self::default());
        for (factors, value) in &self.0 {
            let times = factors.iter().filter(|factor| *factor == name).count();
            let hidden = factors.iter().any(|factor| factor != name && mentions(factor, name));
            if times > 1 || hidden {
                return None;
            }
            let others: Vec<String> = factors.iter().filter(|factor| *factor != name).cloned().collect();
            let target = if times == 1 { &mut coefficient } else { &mut rest };
            target.0.insert(others, *value);
        }
        Some((coefficient, rest))
    }

    /// Whether a name occurs in it.
    pub fn mentions(&self, name: &str) -> bool {
        self.0.keys().flatten().any(|factor| factor == name || mentions(factor, name))
    }

    /// Whether no coefficient is negative.
    pub fn is_positive(&self) -> bool {
        !self.0.is_empty() && self.0.values().all(|value| *value > 0)
    }
}

/// Whether a factor that is an expression contains a name.
fn mentions(factor: &str, name: &str) -> bool {
    factor.contains(&format!("\"{name}\""))
}

/// The value of an integer literal.
fn integer(text: &str) -> Option<i64> {
    let text = text.trim_end_matches(['u', 'U', 'l', 'L', 'z', 'Z']).replace('\'', "");
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => None,
        None => text.parse().ok(),
    }
}

/// A variable that takes the values from `low` to `high`, both included.
pub(crate) struct Range {
    pub name: String,
    pub low: Polynomial,
    pub high: Polynomial,
}

/// Whether two rounds with different values of `variable` have different subscripts, whatever the values of the inner variables. Returns what
/// tells rounds apart: two subscripts with the same mark belong to the same round only.
///
/// The subscript is `w * variable + r`. Over the inner loops, `r` spans less than `w`: the sum over inner variables of (coefficient x (high -
/// low)) is at most `w - 1`.
pub(crate) fn tells_rounds_apart(subscript: &Polynomial, variable: &str, inner: &[Range]) -> Option<(Polynomial, Polynomial)> {
    let (mut width, mut rest) = subscript.split(variable)?;
    if width.constant().is_some_and(|width| width < 0) {
        let turned = |one: &Polynomial| one.times(&Polynomial::number(-1));
        (width, rest) = (turned(&width)?, turned(&rest)?);
    }
    let mut span = Polynomial::number(0);
    let mut base = rest.clone();
    for range in inner {
        let (coefficient, others) = base.split(&range.name)?;
        if coefficient == Polynomial::default() {
            continue;
        }
        if !coefficient.is_positive() {
            return None;
        }
        span = span.plus(&coefficient.times(&range.high.minus(&range.low)?)?)?;
        base = others.plus(&coefficient.times(&range.low)?)?;
    }
    // The bounds of inner loops may not change from round to round.
    let is_fixed = |one: &Polynomial| !one.mentions(variable) && !inner.iter().any(|range| one.mentions(&range.name));
    let spare = width.minus(&Polynomial::number(1))?.minus(&span)?;
    let fits = spare.constant().is_some_and(|spare| spare >= 0);
    (fits && is_fixed(&width) && is_fixed(&span) && is_fixed(&base)).then_some((width, base))
}

#[cfg(test)]
mod tests {
    use super::super::expression::whole;
    use super::super::tokens::of_text;
    use super::*;

    fn polynomial(text: &str) -> Option<Polynomial> {
        Polynomial::of(&whole(&of_text(text)?)?)
    }

    /// Check that equal polynomials are equal.
    #[test]
    fn equal_sums() {
        for (a, b) in [("i * n + j", "j + n * i"), ("(i + 1) * (i - 1)", "i * i - 1"), ("2 * i - i", "i"), ("(size_t)i * 2", "i + i")] {
            assert_eq!(polynomial(a), polynomial(b), "{a}");
        }
        assert_ne!(polynomial("n / 2 * 2"), polynomial("n"));
        for odd in ["a[i]", "f(i)", "i < 3", "1.5"] {
            assert_eq!(polynomial(odd), None, "{odd}");
        }
    }

    /// Check which subscripts differ from round to round of `i`, with j in [0, n) and k in [0, m).
    #[test]
    fn rounds_are_told_apart() {
        let range = |name: &str, high: &str| Range { name: name.to_owned(), low: Polynomial::number(0), high: polynomial(high).unwrap() };
        let inner = [range("j", "n - 1"), range("k", "m - 1")];
        let apart = |text: &str| tells_rounds_apart(&polynomial(text).unwrap(), "i", &inner).is_some();
        for text in [
            "i",
            "i + 1",
            "n - i",
            "i + n",
            "i * n + j",
            "(i * n + j) * m + k",
            "i * m * n + k * n + j",
            "j + n * i + c",
            "2 * i",
            "2 * i + 1",
        ] {
            assert!(apart(text), "{text}");
        }
        for text in [
            "j",
            "i + j",
            "i * j",
            "i / 2",
            "i % 8",
            "i * n",
            "i * m + j",
            "i * i",
            "i * n + j * 2",
            "i * n - j",
            "0",
            "2 * i + j",
            "i * (n + i) + j",
        ] {
            assert!(!apart(text), "{text}");
        }
    }
}
