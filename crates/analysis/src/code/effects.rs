//! What one round of a loop writes and reads.

use super::expression::{Expression, NUMBERS};
use super::header::Header;
use super::polynomial::{Polynomial, Range, tells_rounds_apart};
use super::pure::{is_harmless_macro, is_pure_call};
use super::regions::File;
use super::syntax::{Statement, Variable};
use std::collections::BTreeMap;

/// Which round an element belongs to: two accesses with the same mark are of the same round, or of different elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark(usize, Polynomial, Polynomial);

/// An access to an element: the path of the array (`p.x`), and the number of subscripts.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub root: String,
    pub subscripts: usize,
    /// `None` if several rounds may have the same element.
    pub mark: Option<Mark>,
    pub is_write: bool,
}

/// A local variable of the round.
#[derive(Clone, Debug)]
struct Local {
    /// What stands for it, if it never changes.
    value: Option<Expression>,
    is_reference: bool,
    is_array: bool,
}

/// The effects of a loop's body.
pub(super) struct Effects {
    variable: String,
    is_pointer: bool,
    locals: BTreeMap<String, Local>,
    changed: Vec<String>,
    /// The inner loops around the current statement: their variables, with ranges where known.
    inner: Vec<(String, Option<Range>)>,
    /// Variables of inner loops that are declared outside of the loop.
    pub private: Vec<String>,
    pub accesses: Vec<Access>,
    /// Variables that are read as a whole.
    pub names: Vec<String>,
    calls: Vec<(Expression, Vec<Expression>)>,
    /// Arrays whose elements get another size: vectors of vectors.
    rows: Vec<String>,
}

impl Effects {
    /// The effects of a body for the rounds of `variable`; `None` if something is not understood.
    pub fn of(file: &File, variable: &str, is_pointer: bool, body: &Statement) -> Option<Self> {
        let mut changed = Vec::new();
        collect_changed(body, &mut changed);
        let mut effects = Self {
            variable: variable.to_owned(),
            is_pointer,
            locals: BTreeMap::new(),
            changed,
            inner: Vec::new(),
            private: Vec::new(),
            accesses: Vec::new(),
            names: Vec::new(),
            calls: Vec::new(),
            rows: Vec::new(),
        };
        effects.statement(body)?;
        let written: Vec<String> = effects.accesses.iter().filter(|a| a.is_write).map(|a| a.root.clone()).collect();
        let are_pure = effects.calls.iter().all(|(callee, list)| is_pure_call(file, callee, list, &written));
        let are_harmless = effects.names.iter().all(|name| is_harmless_macro(file, name));
        let are_vectors = effects.rows.iter().all(|name| file.is_vector_of_vectors(name));
        (are_pure && are_harmless && are_vectors).then_some(effects)
    }

    /// The element of a range loop as a local reference: `x` of `for (double &x : v)` is an element of this round.
    pub fn of_each(file: &File, variable: &str, body: &Statement) -> Option<Self> {
        // An element of its own in each round: like a pointer that moves on.
        Self::of(file, variable, true, body)
    }

    fn statement(&mut self, one: &Statement) -> Option<()> {
        match one {
            Statement::Block(list) => list.iter().try_for_each(|one| self.statement(one)),
            Statement::If(test, yes, no) => {
                self.read(test)?;
                self.statement(yes)?;
                no.as_ref().map_or(Some(()), |no| self.statement(no))
            }
            Statement::For(inner) => {
                let mut header = Header::read(inner).filter(|header| !header.is_pointer)?;
                if header.variable == self.variable || self.inner.iter().any(|(name, _)| *name == header.variable) {
                    return None;
                }
                self.read(&header.low)?;
                self.read(&header.bound)?;
                if let Some(step) = &header.step {
                    self.read(step)?;
                }
                (header.low, header.bound) = (self.resolved(&header.low), self.resolved(&header.bound));
                if !header.is_declared && !self.locals.contains_key(&header.variable) {
                    self.private.push(header.variable.clone());
                }
                self.locals.remove(&header.variable);
                self.inner.push((header.variable.clone(), header.range()));
                self.statement(&inner.body)?;
                self.inner.pop();
                Some(())
            }
            Statement::Declaration(list) => list.iter().try_for_each(|variable| self.declare(variable)),
            Statement::Plain(expression) => self.evaluate(expression),
            Statement::Continue => Some(()),
            Statement::Each(_) | Statement::Return(_) | Statement::Other => None,
        }
    }

    fn declare(&mut self, variable: &Variable) -> Option<()> {
        let is_simple = variable.kind.split(|c: char| !(c.is_alphanumeric() || c == '_')).all(|word| {
            word.is_empty() || NUMBERS.contains(&word) || ["const", "constexpr", "auto"].contains(&word) || word.ends_with("_t")
        });
        // An object of a class: its constructor may do anything.
        if !is_simple && !variable.is_pointer && !variable.is_reference {
            return None;
        }
        if variable.name == self.variable || self.inner.iter().any(|(name, _)| *name == variable.name) {
            return None;
        }
        let mut value = None;
        if let Some(first) = &variable.value {
            let is_fixed = !self.changed.contains(&variable.name) || variable.is_reference;
            // A name for a place in an array: what is done with it counts as done to the array.
            let is_place = (variable.is_pointer || variable.is_reference) && is_fixed && !has_calls(first) && first.is_pure();
            if !is_place {
                self.read(first)?;
            }
            value = Some(self.resolved(first)).filter(|first| is_fixed && first.is_pure());
        }
        let local = Local { value, is_reference: variable.is_reference, is_array: variable.is_array };
        self.locals.insert(variable.name.clone(), local);
        Some(())
    }

    /// An expression as a statement.
    fn evaluate(&mut self, expression: &Expression) -> Option<()> {
        match expression {
            Expression::Assign(operator, left, right) => {
                // `a[i] = b[i] = 0`
                if matches!(**right, Expression::Assign(..)) {
                    self.evaluate(right)?
                } else {
                    self.read(right)?
                }
                if let (Expression::Assign(_, target, _), true) = (&**right, operator == "=") {
                    self.read(target)?;
                }
                self.write(left)
            }
            Expression::Unary(operator, inner) | Expression::Postfix(operator, inner) if operator == "++" || operator == "--" => {
                self.write(inner)
            }
            // `rows[y].resize(n)`: the elements of a row are the round's own.
            Expression::Call(callee, list) => match &**callee {
                Expression::Member(row, member)
                    if ["resize", "assign"].contains(&member.as_str()) && matches!(**row, Expression::Index(..)) =>
                {
                    list.iter().try_for_each(|one| self.read(one))?;
                    self.access(row, true)?;
                    self.rows.extend(self.accesses.last().map(|access| access.root.clone()));
                    Some(())
                }
                _ => self.read(expression),
            },
            _ => self.read(expression),
        }
    }

    fn write(&mut self, target: &Expression) -> Option<()> {
        if let Expression::Name(name) = target {
            let local = self.locals.get(name);
            if self.is_pointer && *name == self.variable {
                // The element of a range loop. A pointer that counts is changed by its header only.
                return self.access(&Expression::Unary("*".to_owned(), Box::new(target.clone())), true);
            }
            return match local {
                Some(local) if local.is_reference => self.write(&local.value.clone()?),
                Some(_) => Some(()),
                None => None,
            };
        }
        self.access(target, true)
    }

    /// Records what an expression reads.
    fn read(&mut self, expression: &Expression) -> Option<()> {
        match expression {
            Expression::Name(name) => {
                let is_own = *name == self.variable || self.locals.contains_key(name) || self.inner.iter().any(|(own, _)| own == name);
                if !is_own {
                    self.names.push(name.clone());
                }
                Some(())
            }
            Expression::Number(_) | Expression::Constant(_) => Some(()),
            Expression::Index(..) | Expression::Member(..) => self.access(expression, false),
            Expression::Unary(operator, inner) => match operator.as_str() {
                "++" | "--" => None,
                "*" => self.access(expression, false),
                "&" => self.access(inner, false),
                _ => self.read(inner),
            },
            Expression::Cast(_, inner) => self.read(inner),
            Expression::Binary(_, left, right) => {
                self.read(left)?;
                self.read(right)
            }
            Expression::Choice(a, b, c) => {
                self.read(a)?;
                self.read(b)?;
                self.read(c)
            }
            Expression::Call(callee, list) => {
                if let Expression::Member(object, _) = &**callee {
                    self.read(object)?;
                }
                self.calls.push(((**callee).clone(), list.clone()));
                list.iter().try_for_each(|one| self.read(one))
            }
            Expression::Assign(..) | Expression::Postfix(..) => None,
        }
    }

    fn access(&mut self, expression: &Expression, is_write: bool) -> Option<()> {
        let whole = self.resolved(expression);
        let (root, subscripts) = self.path(&whole)?;
        subscripts.iter().try_for_each(|one| self.read(one))?;
        if self.locals.get(&root).is_some_and(|local| local.is_array) {
            return Some(());
        }
        let mark = if self.is_pointer && (root == self.variable || root.starts_with(&format!("{}.", self.variable))) {
            let first = subscripts.first().is_none_or(|one| *one == Expression::Number("0".to_owned()));
            first.then(|| Mark(0, Polynomial::number(1), Polynomial::number(0)))
        } else {
            self.mark(&subscripts)
        };
        if is_write && mark.is_none() {
            return None;
        }
        self.accesses.push(Access { root, subscripts: subscripts.len(), mark, is_write });
        Some(())
    }

    /// The subscript that tells rounds apart.
    fn mark(&self, subscripts: &[Expression]) -> Option<Mark> {
        let known: Vec<Range> = self
            .inner
            .iter()
            .filter_map(|(_, range)| range.as_ref())
            .map(|range| Range { name: range.name.clone(), low: range.low.clone(), high: range.high.clone() })
            .collect();
        let unknown = self.inner.iter().filter(|(_, range)| range.is_none()).map(|(name, _)| name);
        let unknown: Vec<&String> = unknown.chain(self.locals.keys()).collect();
        subscripts.iter().enumerate().find_map(|(position, subscript)| {
            let polynomial = Polynomial::of(subscript).filter(|one| !unknown.iter().any(|name| one.mentions(name)))?;
            let (width, base) = tells_rounds_apart(&polynomial, &self.variable, &known)?;
            Some(Mark(position, width, base))
        })
    }

    /// The path of an array, as `p.x`, and the subscripts of the element.
    fn path(&self, expression: &Expression) -> Option<(String, Vec<Expression>)> {
        let sum = |a: &Expression, b: &Expression| Expression::Binary("+".to_owned(), Box::new(a.clone()), Box::new(b.clone()));
        match expression {
            Expression::Name(name) => {
                let is_opaque = self.locals.get(name).is_some_and(|local| !local.is_array && local.value.is_none());
                (!is_opaque).then(|| (name.clone(), Vec::new()))
            }
            Expression::Member(inner, name) => {
                let (root, subscripts) = self.path(inner)?;
                // Members of an element belong to the element.
                Some(if subscripts.is_empty() { (format!("{root}.{name}"), subscripts) } else { (root, subscripts) })
            }
            Expression::Index(inner, index) => match &**inner {
                // `(a + i * n)[j]`
                Expression::Binary(operator, array, offset) if operator == "+" => {
                    self.path(&Expression::Index(array.clone(), Box::new(sum(offset, index))))
                }
                // `(&a[k])[j]`
                Expression::Unary(operator, element) if operator == "&" => match &**element {
                    Expression::Index(array, offset) => self.path(&Expression::Index(array.clone(), Box::new(sum(offset, index)))),
                    _ => None,
                },
                _ => {
                    let (root, mut subscripts) = self.path(inner)?;
                    subscripts.push((**index).clone());
                    Some((root, subscripts))
                }
            },
            Expression::Unary(operator, inner) if operator == "*" => {
                let zero = Expression::Number("0".to_owned());
                self.path(&Expression::Index(inner.clone(), Box::new(zero)))
            }
            _ => None,
        }
    }

    /// The expression with values in place of local variables that stand for one.
    fn resolved(&self, expression: &Expression) -> Expression {
        let mut found = expression.clone();
        for name in expression.names() {
            if let Some(value) = self.locals.get(name).and_then(|local| local.value.as_ref()) {
                found = found.with(name, value);
            }
        }
        found
    }
}

fn has_calls(expression: &Expression) -> bool {
    let mut has = false;
    expression.visit(&mut |part| has |= matches!(part, Expression::Call(..)));
    has
}

/// The names of all variables that are changed after their declaration.
fn collect_changed(one: &Statement, changed: &mut Vec<String>) {
    let mut of = |expression: &Expression| {
        expression.visit(&mut |part| {
            let target = match part {
                Expression::Assign(_, left, _) => Some(&**left),
                Expression::Unary(operator, inner) | Expression::Postfix(operator, inner) if operator == "++" || operator == "--" => {
                    Some(&**inner)
                }
                _ => None,
            };
            if let Some(Expression::Name(name)) = target {
                changed.push(name.clone());
            }
        });
    };
    match one {
        Statement::Block(list) => list.iter().for_each(|one| collect_changed(one, changed)),
        Statement::For(inner) => {
            inner.step.iter().for_each(&mut of);
            collect_changed(&inner.first, changed);
            collect_changed(&inner.body, changed);
        }
        Statement::Each(inner) => collect_changed(&inner.body, changed),
        Statement::If(test, yes, no) => {
            of(test);
            collect_changed(yes, changed);
            no.iter().for_each(|no| collect_changed(no, changed));
        }
        Statement::Plain(expression) => of(expression),
        Statement::Declaration(list) => list.iter().filter_map(|variable| variable.value.as_ref()).for_each(of),
        Statement::Return(_) | Statement::Continue | Statement::Other => {}
    }
}
