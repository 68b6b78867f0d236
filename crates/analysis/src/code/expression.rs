//! Expressions of C and C++, as far as subscripts and initialisations need them.

use super::tokens::{Kind, Token, after_bracket};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// A variable or function, with its namespace: `n`, `std::sqrt`.
    Name(String),
    Number(String),
    /// A string or character, or `sizeof ...`: a value that is constant while a loop runs.
    Constant(String),
    Member(Box<Expression>, String),
    Index(Box<Expression>, Box<Expression>),
    Call(Box<Expression>, Vec<Expression>),
    /// `-x`, `*p`, `&x`, `!x`, `++x`.
    Unary(String, Box<Expression>),
    /// `x++`
    Postfix(String, Box<Expression>),
    Binary(String, Box<Expression>, Box<Expression>),
    /// `=`, `+=`, ...
    Assign(String, Box<Expression>, Box<Expression>),
    Choice(Box<Expression>, Box<Expression>, Box<Expression>),
    Cast(String, Box<Expression>),
}

/// Types of numbers.
pub(crate) const NUMBERS: &[&str] = &[
    "double",
    "float",
    "int",
    "long",
    "unsigned",
    "signed",
    "size_t",
    "char",
    "short",
    "bool",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "ptrdiff_t",
    "ssize_t",
    "uintptr_t",
    "intptr_t",
    "std",
];
/// Types that hold every index.
const WIDE: &[&str] =
    &["int", "long", "unsigned", "size_t", "uint32_t", "uint64_t", "int32_t", "int64_t", "ptrdiff_t", "ssize_t", "std", "::"];

const LEVELS: &[&[&str]] =
    &[&["||"], &["&&"], &["|"], &["^"], &["&"], &["==", "!="], &["<", ">", "<=", ">="], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];
const ASSIGNMENTS: &[&str] = &["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="];
/// Nesting that is read. Deeper text is generated.
const DEEPEST: usize = 60;

/// Reads expressions from tokens.
pub(crate) struct Reader<'t> {
    pub tokens: &'t [Token],
    pub at: usize,
    depth: usize,
}

/// The expression of all tokens; `None` if they are something else.
pub(crate) fn whole(tokens: &[Token]) -> Option<Expression> {
    let mut reader = Reader::new(tokens, 0);
    let found = reader.expression()?;
    (reader.at == tokens.len()).then_some(found)
}

impl<'t> Reader<'t> {
    pub fn new(tokens: &'t [Token], at: usize) -> Self {
        Self { tokens, at, depth: 0 }
    }

    pub fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    pub fn next_is(&self, text: &str) -> bool {
        self.peek().is_some_and(|token| token.is(text))
    }

    /// Takes the next token if it is this one.
    pub fn take(&mut self, text: &str) -> bool {
        let is = self.next_is(text);
        self.at += usize::from(is);
        is
    }

    /// An expression without a comma operator.
    pub fn expression(&mut self) -> Option<Expression> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let left = self.choice()?;
        let operator = self.peek().filter(|t| t.kind == Kind::Mark && ASSIGNMENTS.contains(&t.text.as_str()));
        let found = match operator {
            Some(operator) => {
                self.at += 1;
                Expression::Assign(operator.text.clone(), Box::new(left), Box::new(self.expression()?))
            }
            None => left,
        };
        self.depth -= 1;
        Some(found)
    }

    fn choice(&mut self) -> Option<Expression> {
        let condition = self.binary(0)?;
        if !self.take("?") {
            return Some(condition);
        }
        let yes = self.expression()?;
        if !self.take(":") {
            return None;
        }
        Some(Expression::Choice(Box::new(condition), Box::new(yes), Box::new(self.expression()?)))
    }

    fn binary(&mut self, level: usize) -> Option<Expression> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.peek().filter(|t| t.kind == Kind::Mark && operators.contains(&t.text.as_str())) {
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = Expression::Binary(operator.text.clone(), Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expression> {
        self.depth += 1;
        let token = self.peek().filter(|_| self.depth <= DEEPEST)?;
        let found = if token.kind == Kind::Mark && ["-", "+", "!", "~", "*", "&", "++", "--"].contains(&token.text.as_str()) {
            self.at += 1;
            Expression::Unary(token.text.clone(), Box::new(self.unary()?))
        } else if token.is("sizeof") {
            self.size_of()?
        } else if token.is("(") {
            match self.cast_type() {
                Some((text, after)) => {
                    self.at = after;
                    Expression::Cast(text, Box::new(self.unary()?))
                }
                None => self.postfix()?,
            }
        } else {
            self.postfix()?
        };
        self.depth -= 1;
        Some(found)
    }

    /// `sizeof x`, `sizeof(x)`, `sizeof *x`: not evaluated, so constant.
    fn size_of(&mut self) -> Option<Expression> {
        let from = self.at;
        self.at += 1;
        if self.next_is("(") {
            self.at = after_bracket(self.tokens, self.at)?;
            // `sizeof (a)[0]` is rare and not read.
            if self.next_is("[") || self.next_is(".") || self.next_is("->") {
                return None;
            }
        } else {
            self.unary()?;
        }
        Some(Expression::Constant(text_of(self.tokens.get(from..self.at)?)))
    }

    /// The type in brackets before an operand: `(double)`, `(struct cell *)`.
    fn cast_type(&self) -> Option<(String, usize)> {
        let after = after_bracket(self.tokens, self.at)?;
        let inside = self.tokens.get(self.at + 1..after - 1)?;
        let is_type = |token: &Token| match token.kind {
            Kind::Word => true,
            Kind::Mark => matches!(token.text.as_str(), "*" | "::" | "&"),
            _ => false,
        };
        let first = inside.first().filter(|first| first.kind == Kind::Word)?;
        let is_known = NUMBERS.contains(&first.text.as_str()) || ["const", "struct", "void"].contains(&first.text.as_str());
        let is_pointer = inside.last()?.is("*");
        let named = |name: &str| name.ends_with("_t") || name == "real" || name == "FLOAT";
        let operand = self.tokens.get(after).is_some_and(|t| t.kind != Kind::Mark || t.is("("));
        let alone = inside.len() == 1 && named(&first.text) && operand;
        (inside.iter().all(is_type) && (is_known || (is_pointer && inside.len() > 1) || alone)).then(|| (text_of(inside), after))
    }

    fn postfix(&mut self) -> Option<Expression> {
        let mut found = self.primary()?;
        loop {
            let Some(token) = self.peek().filter(|t| t.kind == Kind::Mark) else { return Some(found) };
            match token.text.as_str() {
                "[" => {
                    self.at += 1;
                    let index = self.expression()?;
                    if !self.take("]") {
                        return None;
                    }
                    found = Expression::Index(Box::new(found), Box::new(index));
                }
                "(" => found = Expression::Call(Box::new(found), self.arguments()?),
                "." | "->" => {
                    self.at += 1;
                    let name = self.peek().filter(|t| t.kind == Kind::Word)?;
                    self.at += 1;
                    // Through a pointer or not: the same path either way.
                    found = Expression::Member(Box::new(found), name.text.clone());
                }
                "++" | "--" => {
                    self.at += 1;
                    found = Expression::Postfix(token.text.clone(), Box::new(found));
                }
                _ => return Some(found),
            }
        }
    }

    /// The arguments in the brackets that follow.
    pub fn arguments(&mut self) -> Option<Vec<Expression>> {
        if !self.take("(") {
            return None;
        }
        let mut list = Vec::new();
        while !self.take(")") {
            list.push(self.expression()?);
            if !self.take(",") && !self.next_is(")") {
                return None;
            }
        }
        Some(list)
    }

    fn primary(&mut self) -> Option<Expression> {
        let token = self.peek()?;
        self.at += 1;
        match token.kind {
            Kind::Number => Some(Expression::Number(token.text.clone())),
            Kind::Text => Some(Expression::Constant(token.text.clone())),
            Kind::Mark if token.text == "(" => {
                let found = self.expression()?;
                self.take(")").then_some(found)
            }
            Kind::Word if token.text.ends_with("_cast") => {
                let name = token.text.clone();
                let kind = self.in_angles()?;
                let mut list = self.arguments()?.into_iter();
                let operand = list.next().filter(|_| name == "static_cast" || name == "reinterpret_cast")?;
                list.next().is_none().then(|| Expression::Cast(kind, Box::new(operand)))
            }
            Kind::Word
                if ["new", "delete", "throw", "return", "operator", "alignof", "typeid", "co_await"].contains(&token.text.as_str()) =>
            {
                None
            }
            Kind::Word => {
                let mut name = token.text.clone();
                while self.next_is("::") {
                    self.at += 1;
                    let part = self.peek().filter(|t| t.kind == Kind::Word)?;
                    self.at += 1;
                    name = format!("{name}::{}", part.text);
                }
                if name == "this" { self.take("->").then(|| self.primary())? } else { Some(Expression::Name(name)) }
            }
            _ => None,
        }
    }

    /// The text between `<` and its `>`.
    fn in_angles(&mut self) -> Option<String> {
        if !self.take("<") {
            return None;
        }
        let from = self.at;
        while self.peek()?.kind == Kind::Word || self.next_is("::") || self.next_is("*") || self.next_is("&") {
            self.at += 1;
        }
        let text = text_of(self.tokens.get(from..self.at)?);
        self.take(">").then_some(text)
    }
}

/// The tokens as text, with blanks between words only.
pub(crate) fn text_of(tokens: &[Token]) -> String {
    let mut text = String::new();
    let mut before: Option<&Token> = None;
    for token in tokens {
        let both = |kind: Kind| kind == Kind::Word || kind == Kind::Number;
        if before.is_some_and(|before| both(before.kind) && both(token.kind)) {
            text.push(' ');
        }
        text.push_str(&token.text);
        before = Some(token);
    }
    text
}

impl Expression {
    /// Calls `see` with this expression and all that it contains.
    pub fn visit<'e>(&'e self, see: &mut dyn FnMut(&'e Expression)) {
        see(self);
        match self {
            Self::Name(_) | Self::Number(_) | Self::Constant(_) => {}
            Self::Member(a, _) | Self::Unary(_, a) | Self::Postfix(_, a) | Self::Cast(_, a) => a.visit(see),
            Self::Index(a, b) | Self::Binary(_, a, b) | Self::Assign(_, a, b) => {
                a.visit(see);
                b.visit(see);
            }
            Self::Choice(a, b, c) => {
                a.visit(see);
                b.visit(see);
                c.visit(see);
            }
            Self::Call(a, list) => {
                a.visit(see);
                list.iter().for_each(|one| one.visit(see));
            }
        }
    }

    /// The variables and functions in it.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.visit(&mut |one| {
            if let Self::Name(name) = one {
                names.push(name.as_str());
            }
        });
        names
    }

    pub fn mentions(&self, name: &str) -> bool {
        self.names().contains(&name)
    }

    /// Whether evaluating it changes nothing and calls nothing but `size()` of a container.
    pub fn is_pure(&self) -> bool {
        let mut is_pure = true;
        self.visit(&mut |one| {
            is_pure &= match one {
                Self::Assign(..) | Self::Postfix(..) => false,
                Self::Unary(operator, _) => operator != "++" && operator != "--",
                Self::Call(callee, list) => list.is_empty() && matches!(&**callee, Self::Member(_, name) if name == "size"),
                _ => true,
            }
        });
        is_pure
    }

    /// Replaces a name by an expression.
    pub fn with(&self, name: &str, value: &Expression) -> Expression {
        let each = |one: &Expression| Box::new(one.with(name, value));
        match self {
            Self::Name(own) if own == name => value.clone(),
            Self::Name(_) | Self::Number(_) | Self::Constant(_) => self.clone(),
            Self::Member(a, member) => Self::Member(each(a), member.clone()),
            Self::Index(a, b) => Self::Index(each(a), each(b)),
            Self::Call(a, list) => Self::Call(each(a), list.iter().map(|one| one.with(name, value)).collect()),
            Self::Unary(operator, a) => Self::Unary(operator.clone(), each(a)),
            Self::Postfix(operator, a) => Self::Postfix(operator.clone(), each(a)),
            Self::Binary(operator, a, b) => Self::Binary(operator.clone(), each(a), each(b)),
            Self::Assign(operator, a, b) => Self::Assign(operator.clone(), each(a), each(b)),
            Self::Choice(a, b, c) => Self::Choice(each(a), each(b), each(c)),
            Self::Cast(kind, a) => Self::Cast(kind.clone(), each(a)),
        }
    }

    /// The expression without casts to integers that hold every index.
    pub fn without_casts(&self) -> &Expression {
        match self {
            Self::Cast(kind, inner) if words(kind).all(|word| WIDE.contains(&word)) => inner.without_casts(),
            Self::Call(callee, list) => match (&**callee, list.as_slice()) {
                // `size_t(i)`
                (Self::Name(name), [one]) if words(name).all(|word| WIDE.contains(&word)) => one.without_casts(),
                _ => self,
            },
            _ => self,
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tokens::of_text;
    use super::*;

    fn read(text: &str) -> Option<Expression> {
        whole(&of_text(text)?)
    }

    /// Check the structure of expressions by what they contain.
    #[test]
    fn expressions() {
        for text in [
            "A[i * n + j] = (double)(i + j)",
            "p->x[i] += 0.5 * sqrt(y)",
            "k = rowstr[j]++",
            "a[i] = i < 3 ? 1 : b(2)",
            "x = sizeof *p * n",
            "x = sizeof(double) * n",
            "static_cast<std::size_t>(i) * width_ + x",
            "this->v[i] = std::sin(i)",
            "*cur++ = x",
        ] {
            assert!(read(text).is_some(), "{text}");
        }
        for text in ["", "a b", "a[", "f(", "new double[n]", "[&] { }", "a ? b", "static_cast<>(", "a = = b"] {
            assert_eq!(read(text), None, "{text}");
        }
        let assigned = read("A[i * n + j] = (double)(i + j)").unwrap();
        assert_eq!(assigned.names(), ["A", "i", "n", "j", "i", "j"]);
        assert!(!assigned.is_pure() && read("n * sizeof *a").unwrap().is_pure() && !read("n++ * 8").unwrap().is_pure());
        assert!(read("v.size() * 8").unwrap().is_pure() && !read("f(n)").unwrap().is_pure());
    }

    /// Check that deep nesting ends without an overflow of the stack.
    #[test]
    fn deep_nesting_is_refused() {
        assert_eq!(read(&"(".repeat(5000)), None);
        assert_eq!(read(&"-".repeat(5000)), None);
    }
}
