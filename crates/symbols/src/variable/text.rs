//! A source line as characters, with literals and comments blanked out, and functions to navigate in it.

/// Longer lines are generated code, of which only the beginning is examined.
const LONGEST_LINE: usize = 2048;

/// Two views of one line, equally long.
pub(super) struct Text {
    original: Vec<char>,
    /// The contents of strings and comments are blanks here, so that only code looks like code.
    code: Vec<char>,
}

impl Text {
    pub(super) fn new(line: &str) -> Self {
        let original: Vec<char> = line.chars().take(LONGEST_LINE).collect();
        let mut code = original.clone();
        blank_literals_and_comments(&mut code);
        Self { original, code }
    }

    pub(super) fn len(&self) -> usize {
        self.code.len()
    }

    /// The character at a position; NUL outside the line.
    pub(super) fn at(&self, place: usize) -> char {
        self.code.get(place).copied().unwrap_or('\0')
    }

    /// The character before a position; NUL at the start.
    pub(super) fn before(&self, place: usize) -> char {
        place.checked_sub(1).map_or('\0', |before| self.at(before))
    }

    /// The source text of a range without blanks.
    pub(super) fn source(&self, start: usize, end: usize) -> String {
        self.original.get(start..end.max(start)).unwrap_or_default().iter().filter(|c| !c.is_whitespace()).collect()
    }

    /// The code of a range, with literals and comments blanked.
    pub(super) fn code(&self, start: usize, end: usize) -> String {
        self.code.get(start..end.max(start)).unwrap_or_default().iter().collect()
    }

    /// The position where a comment begins that ends the line; without a comment, the end of the line.
    pub(super) fn comment(&self, length: usize) -> usize {
        let is_code = |place: &usize| !self.at(*place).is_whitespace();
        let code_end = (0..length).rev().find(is_code).map_or(0, |last| last + 1);
        // Quotes that begin a literal are kept, so a line that ends with blanked text ends with a comment or a literal.
        match (code_end..length).find(|place| self.original.get(*place) == Some(&'#')) {
            Some(comment) => comment,
            None => length,
        }
    }

    /// The position after the last character before `place` that is not a blank.
    pub(super) fn skip_blanks_back(&self, mut place: usize) -> usize {
        while self.before(place).is_whitespace() {
            place -= 1;
        }
        place
    }

    /// The first position at or after `place` that is not a blank.
    pub(super) fn skip_blanks(&self, mut place: usize) -> usize {
        while self.at(place).is_whitespace() {
            place += 1;
        }
        place
    }

    /// The start of the word that ends at `end` (`end` itself if there is no word).
    pub(super) fn word_start(&self, mut end: usize) -> usize {
        while is_word(self.before(end)) {
            end -= 1;
        }
        end
    }

    /// The end of the word that starts at `start` (`start` itself if there is no word).
    pub(super) fn word_end(&self, mut start: usize) -> usize {
        while is_word(self.at(start)) {
            start += 1;
        }
        start
    }

    /// The position of the opening bracket for the one at `close`.
    pub(super) fn opening(&self, close: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for place in (0..=close).rev() {
            match self.at(place) {
                ')' | ']' | '}' => depth += 1,
                '(' | '[' | '{' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(place);
            }
        }
        None
    }

    /// The position of the closing bracket for the one at `open`; the end of the line if there is none.
    pub(super) fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for place in open..self.len() {
            match self.at(place) {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return place;
            }
        }
        self.len()
    }

    /// The end of a template argument list that starts at `open` (`<`): the position after its `>`.
    pub(super) fn after_template(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for place in open..self.len() {
            match self.at(place) {
                '<' => depth += 1,
                '>' => depth = depth.checked_sub(1)?,
                ';' | '"' => return None,
                _ => {}
            }
            if depth == 0 {
                return Some(place + 1);
            }
        }
        None
    }

    /// The parts of a range between its commas; commas within brackets do not count.
    pub(super) fn split_commas(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut parts = Vec::new();
        let (mut from, mut place) = (start, start);
        while place < end {
            match self.at(place) {
                ',' => {
                    parts.push((from, place));
                    from = place + 1;
                }
                '(' | '[' | '{' => place = self.closing(place),
                '<' => place = self.after_template(place).filter(|after| *after <= end).map_or(place, |after| after - 1),
                _ => {}
            }
            place += 1;
        }
        parts.push((from, end));
        parts
    }

    /// Whether the `=` at `place` assigns (and does not compare, add or point).
    pub(super) fn assigns(&self, place: usize) -> bool {
        self.at(place) == '=' && !"=<>!+-*/%&|^:".contains(self.before(place)) && !"=>".contains(self.at(place + 1))
    }

    /// The variable of an assignment (or declaration) whose left side ends at `end`: `a`, `p->field`, `rows[i]`, `x%field`.
    pub(super) fn place_before(&self, end: usize) -> Option<String> {
        let end = self.skip_blanks_back(end);
        let mut start = end;
        loop {
            while matches!(self.before(start), ')' | ']') {
                start = self.opening(start - 1)?;
                // `(*a) [N]`
                let before = self.skip_blanks_back(start);
                if self.at(start) == '[' && matches!(self.before(before), ')' | ']') {
                    start = before;
                }
            }
            start = self.word_start(start);
            match (self.before(start.saturating_sub(1)), self.before(start)) {
                ('-', '>') | (':', ':') => start -= 2,
                (_, '.' | '%') => start -= 1,
                _ => break,
            }
        }
        let name = self.source(self.with_dereference(start), end);
        let name = name.strip_prefix("this->").unwrap_or(&name).trim_start_matches('.');
        let is_place = name.chars().any(is_word) && !name.starts_with(|c: char| c.is_ascii_digit() || c == ':');
        let declared = self.declared_variable(start, end);
        let name = declared.as_deref().unwrap_or(name);
        (is_place && !is_reserved(name)).then(|| name.to_owned())
    }

    /// The variable that a declaration declares, without its type and brackets: `C` of `double (*C)[N] = ...` and of `float(*C)[N] = ...`, `a` of
    /// `double *a[2] = ...`. Without a type before them, `(*C)[i]` and `a[2]` are elements: `None`.
    fn declared_variable(&self, start: usize, end: usize) -> Option<String> {
        let open = self.skip_blanks(self.word_end(start));
        let first = self.code(start, self.word_end(start));
        let inside = self.skip_blanks(open + 1);
        if self.at(open) == '(' && matches!(self.at(inside), '*' | '&') && open < end {
            let is_type = if first.is_empty() { self.has_type_before(start) } else { !is_keyword(&first) && self.begins_statement(start) };
            let name = self.without_qualifiers(inside);
            return (is_type && !name.is_empty()).then_some(name);
        }
        let is_array = !first.is_empty() && self.at(open) == '[' && self.before(self.skip_blanks_back(end)) == ']';
        let is_plain = is_array && (open..end).all(|place| !".>%".contains(self.at(place)));
        let mut before = self.skip_blanks_back(start);
        while matches!(self.before(before), '*' | '&') {
            before = self.skip_blanks_back(before - 1);
        }
        (is_plain && self.has_type_before(before)).then_some(first)
    }

    /// Whether the word before a place is a type. (`else a[i] = ...` is an assignment.)
    fn has_type_before(&self, place: usize) -> bool {
        let end = self.skip_blanks_back(place);
        let word = self.code(self.word_start(end), end);
        self.before(end) == '>' && self.before(end - 1) != '-' || (!word.is_empty() && (!is_keyword(&word) || is_kind_of_type(&word)))
    }

    fn begins_statement(&self, place: usize) -> bool {
        let end = self.skip_blanks_back(place);
        let word = self.code(self.word_start(end), end);
        "\0;{}(".contains(self.before(end)) || is_kind_of_type(&word)
    }

    /// `C` of `*restrict C`.
    fn without_qualifiers(&self, mut place: usize) -> String {
        loop {
            place = self.skip_blanks(place);
            let word = self.code(place, self.word_end(place));
            match (self.at(place), word.as_str()) {
                ('*' | '&', _) => place += 1,
                (_, "const" | "volatile" | "restrict" | "__restrict" | "__restrict__") => place = self.word_end(place),
                _ => return word,
            }
        }
    }

    /// `*out = ...` writes through a pointer, `double *out = ...` declares one.
    fn with_dereference(&self, start: usize) -> usize {
        let mut from = self.skip_blanks_back(start);
        let stars_end = from;
        while self.before(from) == '*' {
            from -= 1;
        }
        let before = self.before(self.skip_blanks_back(from));
        if from < stars_end && "\0;{}()".contains(before) { from } else { start }
    }
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Keywords that can appear in the position of a type or a variable.
pub(super) fn is_keyword(word: &str) -> bool {
    /// Keywords that are variable names in other languages; only the position shows which.
    const SOMEWHERE: &[&str] = &[
        "in", "and", "or", "not", "yield", "await", "print", "call", "def", "fn", "lambda", "import", "from", "use", "let", "mut", "class",
        "new", "delete", "public", "private", "using",
    ];
    is_reserved(word) || SOMEWHERE.contains(&word)
}

/// Keywords that stand before or in a type.
fn is_kind_of_type(word: &str) -> bool {
    ["struct", "union", "enum", "const", "static", "volatile", "unsigned", "auto", "void", "extern", "register"].contains(&word)
}

/// Words that are not variable names in any of these languages.
pub(super) fn is_reserved(word: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "return", "throw", "else", "case", "default", "if", "for", "while", "switch", "do", "goto", "typedef", "void", "struct", "sizeof",
        "auto", "const", "static",
    ];
    KEYWORDS.contains(&word)
}

fn blank_literals_and_comments(code: &mut [char]) {
    let mut place = 0;
    while let Some(&c) = code.get(place) {
        let next = code.get(place + 1).copied().unwrap_or('\0');
        let end = match (c, next) {
            ('"', _) => Some(closing_quote(code, place).unwrap_or(code.len())),
            ('\'', _) => closing_quote(code, place).filter(|end| is_literal(code, place, *end)),
            ('/', '/') => Some(code.len()),
            ('/', '*') => Some(end_of_comment(code, place)),
            // Python's comments, and C's directives, which contain no assignments.
            ('#', _) if place == 0 || code.get(place - 1).is_some_and(|before| before.is_whitespace()) => Some(code.len()),
            _ => None,
        };
        if let Some(end) = end {
            let end = end.min(code.len());
            code.iter_mut().take(end).skip(place).for_each(|c| *c = ' ');
            // Keep an empty pair of quotes to mark the literal.
            if c == '"' || c == '\'' {
                code[place] = '"';
            }
            place = end.max(place + 1);
        } else {
            place += 1;
        }
    }
}

/// The position after the quote that closes the one at `open`.
fn closing_quote(code: &[char], open: usize) -> Option<usize> {
    let quote = *code.get(open)?;
    let mut place = open + 1;
    loop {
        match *code.get(place)? {
            '\\' => place += 1,
            c if c == quote => return Some(place + 1),
            _ => {}
        }
        place += 1;
    }
}

/// A Rust lifetime does not start a literal: the text between two lifetimes is code.
fn is_literal(code: &[char], open: usize, end: usize) -> bool {
    let inside = code.get(open + 1..end - 1).unwrap_or_default();
    inside.len() <= 1 || inside.first() == Some(&'\\') || !inside.iter().any(|c| "<>(),;=".contains(*c))
}

fn end_of_comment(code: &[char], start: usize) -> usize {
    let closes = |place: &usize| code.get(*place) == Some(&'*') && code.get(place + 1) == Some(&'/');
    (start + 2..code.len()).find(closes).map_or(code.len(), |place| place + 2)
}
