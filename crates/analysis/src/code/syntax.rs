//! Statements of C and C++.

use super::expression::{Expression, NUMBERS, Reader, text_of};
use super::tokens::{Kind, Token, after_bracket};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Block(Vec<Statement>),
    For(Box<For>),
    /// `for (double &x : v)`
    Each(Box<Each>),
    If(Expression, Box<Statement>, Option<Box<Statement>>),
    Declaration(Vec<Variable>),
    Plain(Expression),
    Return(Option<Expression>),
    Continue,
    /// Anything else, for example `while`, `break`, or a directive.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct For {
    /// The assignment or declaration of the loop's variable.
    pub first: Statement,
    pub condition: Option<Expression>,
    pub step: Option<Expression>,
    pub body: Statement,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Each {
    pub variable: Variable,
    pub range: Expression,
    pub body: Statement,
}

/// A declared variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub name: String,
    /// The type, without `*`, `&` and the name.
    pub kind: String,
    pub is_pointer: bool,
    pub is_reference: bool,
    pub is_array: bool,
    pub value: Option<Expression>,
}

const NOT_READ: &[&str] = &[
    "while",
    "do",
    "switch",
    "case",
    "default",
    "goto",
    "break",
    "try",
    "catch",
    "throw",
    "asm",
    "__asm__",
    "static",
    "thread_local",
    "_Thread_local",
    "using",
    "typedef",
    "goto",
    "co_return",
    "extern",
    "volatile",
    "register",
    "delete",
];
const QUALIFIERS: &[&str] = &["const", "constexpr", "struct", "std", "::", "unsigned", "signed", "long", "short"];
/// Nesting of statements that is read.
const DEEPEST: usize = 40;

/// The statement that begins at a token, and the position after it. `None` if where it ends is not clear.
pub(crate) fn statement(tokens: &[Token], at: usize) -> Option<(Statement, usize)> {
    read(tokens, at, 0)
}

/// The position after the statement that begins at a token, whatever it is.
pub(crate) fn end_of(tokens: &[Token], at: usize) -> Option<usize> {
    end(tokens, at, 0)
}

fn end(tokens: &[Token], at: usize, depth: usize) -> Option<usize> {
    let token = tokens.get(at).filter(|_| depth <= DEEPEST)?;
    if token.kind == Kind::Directive {
        return end(tokens, at + 1, depth + 1);
    }
    let is_word = token.kind == Kind::Word;
    match token.text.as_str() {
        "{" => after_bracket(tokens, at),
        "for" | "while" | "switch" if is_word => end(tokens, after_bracket(tokens, at + 1)?, depth + 1),
        "do" if is_word => {
            let body = end(tokens, at + 1, depth + 1)?;
            let after = after_bracket(tokens, body + 1)?;
            tokens.get(after).filter(|t| t.is(";")).map(|_| after + 1)
        }
        "if" if is_word => {
            let open = if tokens.get(at + 1)?.is("constexpr") { at + 2 } else { at + 1 };
            let then = end(tokens, after_bracket(tokens, open)?, depth + 1)?;
            if tokens.get(then).is_some_and(|t| t.is("else")) { end(tokens, then + 1, depth + 1) } else { Some(then) }
        }
        _ => {
            let mut at = at;
            loop {
                let token = tokens.get(at)?;
                match token.text.as_str() {
                    _ if token.kind == Kind::Directive => return None,
                    "(" | "[" | "{" if token.kind == Kind::Mark => at = after_bracket(tokens, at)?,
                    ";" => return Some(at + 1),
                    ")" | "]" | "}" if token.kind == Kind::Mark => return None,
                    _ => at += 1,
                }
            }
        }
    }
}

fn read(tokens: &[Token], at: usize, depth: usize) -> Option<(Statement, usize)> {
    let token = tokens.get(at)?;
    let after = end(tokens, at, depth)?;
    if token.kind == Kind::Directive {
        return Some((Statement::Other, after));
    }
    let found = match token.text.as_str() {
        "{" => {
            let (mut list, mut next) = (Vec::new(), at + 1);
            while next < after - 1 {
                let (one, end) = read(tokens, next, depth + 1)?;
                list.push(one);
                next = end;
            }
            Statement::Block(list)
        }
        ";" => Statement::Block(Vec::new()),
        "for" => for_loop(tokens, at, depth).unwrap_or(Statement::Other),
        "if" => condition(tokens, at, depth).unwrap_or(Statement::Other),
        "continue" => Statement::Continue,
        "return" if tokens.get(at + 1)?.is(";") => Statement::Return(None),
        "return" => super::expression::whole(tokens.get(at + 1..after - 1)?).map_or(Statement::Other, |e| Statement::Return(Some(e))),
        word if NOT_READ.contains(&word) => Statement::Other,
        _ => simple(tokens.get(at..after - 1)?),
    };
    Some((found, after))
}

/// A declaration or an expression, without its semicolon.
fn simple(tokens: &[Token]) -> Statement {
    declaration(tokens)
        .map(Statement::Declaration)
        .or_else(|| super::expression::whole(tokens).map(Statement::Plain))
        .unwrap_or(Statement::Other)
}

fn condition(tokens: &[Token], at: usize, depth: usize) -> Option<Statement> {
    let after = after_bracket(tokens, at + 1)?;
    let test = super::expression::whole(tokens.get(at + 2..after - 1)?)?;
    let (then, next) = read(tokens, after, depth + 1)?;
    let otherwise =
        if tokens.get(next).is_some_and(|t| t.is("else")) { Some(Box::new(read(tokens, next + 1, depth + 1)?.0)) } else { None };
    Some(Statement::If(test, Box::new(then), otherwise))
}

fn for_loop(tokens: &[Token], at: usize, depth: usize) -> Option<Statement> {
    let after = after_bracket(tokens, at + 1)?;
    let head = tokens.get(at + 2..after - 1)?;
    let body = read(tokens, after, depth + 1)?.0;
    let parts: Vec<&[Token]> = head.split(|token| token.is(";")).collect();
    match parts.as_slice() {
        [first, test, step] => {
            let expression = |tokens: &[Token]| if tokens.is_empty() { Some(None) } else { super::expression::whole(tokens).map(Some) };
            Some(Statement::For(Box::new(For { first: simple(first), condition: expression(test)?, step: expression(step)?, body })))
        }
        [one] => {
            let colon = one.iter().position(|token| token.is(":"))?;
            let [variable] = <[Variable; 1]>::try_from(declaration(one.get(..colon)?)?).ok()?;
            Some(Statement::Each(Box::new(Each { variable, range: super::expression::whole(one.get(colon + 1..)?)?, body })))
        }
        _ => None,
    }
}

/// The variables of a declaration, without its semicolon. `None` for other statements, and for types that are not read.
pub(crate) fn declaration(tokens: &[Token]) -> Option<Vec<Variable>> {
    let (kind, mut at) = type_of(tokens)?;
    let mut list = Vec::new();
    loop {
        let mut reader = Reader::new(tokens, at);
        let (mut is_pointer, mut is_reference) = (false, false);
        while reader.next_is("*")
            || reader.next_is("&")
            || reader.next_is("const")
            || reader.next_is("restrict")
            || reader.next_is("__restrict")
        {
            is_pointer |= reader.next_is("*");
            is_reference |= reader.next_is("&");
            reader.at += 1;
        }
        let name = reader.peek().filter(|token| token.kind == Kind::Word)?;
        reader.at += 1;
        let is_array = reader.next_is("[");
        while reader.next_is("[") {
            reader.at = after_bracket(tokens, reader.at)?;
        }
        let value = if reader.take("=") {
            if reader.next_is("{") {
                reader.at = after_bracket(tokens, reader.at)?;
                None
            } else {
                Some(reader.expression()?)
            }
        } else {
            None
        };
        list.push(Variable { name: name.text.clone(), kind: kind.clone(), is_pointer, is_reference, is_array, value });
        if reader.at == tokens.len() {
            return Some(list);
        }
        if !reader.take(",") {
            return None;
        }
        at = reader.at;
    }
}

/// The type that a declaration begins with, and the position after it.
fn type_of(tokens: &[Token]) -> Option<(String, usize)> {
    let mut at = 0;
    let mut has_name = false;
    loop {
        let token = tokens.get(at)?;
        let text = token.text.as_str();
        if QUALIFIERS.contains(&text) {
            has_name |= ["unsigned", "signed", "long", "short"].contains(&text);
            at += 1;
        } else if token.kind == Kind::Word && (NUMBERS.contains(&text) || !has_name) && !is_the_variable(tokens, at, has_name) {
            has_name = true;
            at += 1;
            if tokens.get(at).is_some_and(|t| t.is("<")) {
                at = after_angles(tokens, at)?;
            }
        } else {
            break;
        }
    }
    let is_type = has_name && tokens.get(at).is_some_and(|t| t.kind == Kind::Word || t.is("*") || t.is("&"));
    // `a * b` may be a product: a declaration of a pointer has a value, or is the only thing.
    is_type.then(|| (text_of(tokens.get(..at).unwrap_or_default()), at)).filter(|_| follows_a_name(tokens, at))
}

/// Whether the word at a position is the declared variable, because a type came before it and nothing follows that a type would need.
fn is_the_variable(tokens: &[Token], at: usize, has_name: bool) -> bool {
    has_name && tokens.get(at + 1).is_none_or(|t| t.kind == Kind::Mark && !t.is("*") && !t.is("&") && !t.is("<"))
}

/// Whether a declared name follows: a word, and then nothing, `=`, `,`, `[`.
fn follows_a_name(tokens: &[Token], at: usize) -> bool {
    let mut at = at;
    let is_mark = |t: &Token| ["*", "&", "const", "restrict", "__restrict"].contains(&t.text.as_str());
    while tokens.get(at).is_some_and(is_mark) {
        at += 1;
    }
    tokens.get(at).is_some_and(|t| t.kind == Kind::Word) && tokens.get(at + 1).is_none_or(|t| t.is("=") || t.is(",") || t.is("["))
}

/// The position after the `>` that closes the `<` at `open`.
pub(crate) fn after_angles(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "<" => depth += 1,
            ">" => depth = depth.checked_sub(1)?,
            ">>" => depth = depth.checked_sub(2)?,
            ";" | "{" | "}" => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tokens::of_text;
    use super::*;

    fn one(text: &str) -> Option<Statement> {
        Some(statement(&of_text(text)?, 0)?.0)
    }

    /// Check that declarations are told from expressions.
    #[test]
    fn declarations() {
        for (text, expected) in [
            ("double x = 0.1 * i;", "x"),
            ("const size_t k = i * n + j, l;", "k l"),
            ("double *row = A + i * n;", "row"),
            ("auto &cell = grid[i];", "cell"),
            ("unsigned long long seed = 1;", "seed"),
            ("struct cell *c = &cells[i];", "c"),
            ("std::size_t at = i;", "at"),
            ("float a[4];", "a"),
            ("real_t y = 2;", "y"),
            ("unsigned i = 0;", "i"),
            ("std::vector<double> v;", "v"),
        ] {
            let Some(Statement::Declaration(list)) = one(text) else { panic!("{text}: {:?}", one(text)) };
            assert_eq!(list.iter().map(|v| v.name.as_str()).collect::<Vec<_>>().join(" "), expected, "{text}");
        }
        for text in ["a[i] = 0;", "x += 2;", "f(x);", "a = b * c;", "p->x = 1;"] {
            assert!(matches!(one(text), Some(Statement::Plain(_))), "{text}: {:?}", one(text));
        }
        for text in ["static int k = 0;", "while (x) y = 1;", "break;", "goto end;"] {
            assert_eq!(one(text), Some(Statement::Other), "{text}");
        }
    }

    /// Check loops and where statements end.
    #[test]
    fn loops_and_ends() {
        assert!(matches!(one("for (size_t i = 0; i < n; i++) a[i] = 0;"), Some(Statement::For(_))));
        assert!(matches!(one("for (auto &x : v) { x = 1; }"), Some(Statement::Each(_))));
        let tokens = of_text("if (a) { b(); } else c(); do x(); while (y); z();").unwrap();
        let next = end_of(&tokens, 0).unwrap();
        assert!(tokens[next].is("do"));
        assert!(tokens[end_of(&tokens, next).unwrap()].is("z"));
        for odd in ["for (", "if (x", "{", "}", "x", "for (;;)", "do x(); while", ""] {
            assert_eq!(one(odd), None, "{odd}");
        }
    }
}
