//! The user's own loop around a source line, for use in a fix.

use crate::Sources;
use crate::names::Language;

/// How far above a line its loop is looked for.
const LINES_ABOVE: u32 = 20;

/// The outermost loop header of the nest around a line, as far as indentation tells.
pub(super) fn enclosing_loop(sources: &dyn Sources, file: &str, line: u32, language: Language) -> Option<String> {
    let text = sources.line(file, line)?;
    let mut header = is_header(&text, language).then(|| text.trim().to_owned());
    let mut indent = indentation(&text);
    for above in (line.saturating_sub(LINES_ABOVE).max(1)..line).rev() {
        let Some(text) = sources.line(file, above) else { break };
        if text.trim().is_empty() || indentation(&text) >= indent {
            // A sibling, or a loop header without indented body directly above.
            if header.is_none() && is_header(&text, language) && indentation(&text) == indent && above + 1 == line {
                header = Some(text.trim().to_owned());
            }
            continue;
        }
        if !is_header(&text, language) {
            if matches!(text.trim(), "{" | "}") {
                continue;
            }
            break;
        }
        indent = indentation(&text);
        header = Some(text.trim().to_owned());
    }
    header
}

fn indentation(text: &str) -> usize {
    text.chars().take_while(|c| c.is_whitespace()).map(|c| if c == '\t' { 8 } else { 1 }).sum()
}

fn is_header(text: &str, language: Language) -> bool {
    let text = text.trim_start();
    match language {
        Language::C | Language::Cpp => ["for (", "for(", "while (", "while("].iter().any(|head| text.starts_with(head)),
        Language::Fortran => {
            let lower = text.to_ascii_lowercase();
            lower.starts_with("do ") && !lower.starts_with("do while")
        }
        Language::Rust | Language::Python => text.starts_with("for "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_profile::Frame;

    struct Text(&'static str);

    impl Sources for Text {
        fn line(&self, _: &str, line: u32) -> Option<String> {
            self.0.lines().nth(line as usize - 1).map(str::to_owned)
        }
        fn cause(&self, _: &[Frame], _: Option<&str>) -> String {
            String::new()
        }
        fn user_frame(&self, _: &[Frame]) -> Option<usize> {
            None
        }
        fn variable(&self, _: &str, _: u32, _: &str, _: usize) -> Option<String> {
            None
        }
    }

    /// Check that the outermost loop of the nest is found, and none where there is none.
    #[test]
    fn outermost_loop() {
        let c = Text(
            "void f(void)\n{\n    x = 1;\n    for (i = 0; i < m; i++) {\n        for (j = 0; j < n; j++)\n            A[i][j] = 0;\n    }\n}\n",
        );
        assert_eq!(enclosing_loop(&c, "", 6, Language::C).as_deref(), Some("for (i = 0; i < m; i++) {"));
        assert_eq!(enclosing_loop(&c, "", 3, Language::C), None);
        let f = Text("program p\n  do i = 1, n\n    a(i) = 0\n  end do\n");
        assert_eq!(enclosing_loop(&f, "", 3, Language::Fortran).as_deref(), Some("do i = 1, n"));
        assert_eq!(enclosing_loop(&f, "", 99, Language::Fortran), None);
    }
}
