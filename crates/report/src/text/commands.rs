//! Command lines for the reader to copy: broken only where a shell takes the next line as part of the command.

use super::layout::width;

/// Columns that a continued line is indented by.
const DEEPER: usize = 2;

/// Commands that follow each other, each on success of the one before, as lines of at most `most` columns. A longer word stays whole: broken
/// it would be another word.
pub fn lines(commands: &[Vec<String>], most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, words) in commands.iter().enumerate() {
        let tail = if index + 1 < commands.len() { " &&" } else { "" };
        let mut line = String::new();
        for (at, word) in words.iter().enumerate() {
            let after = if at + 1 < words.len() { " \\" } else { tail };
            if line.trim_start().is_empty() || width(&line) + 1 + width(word) + width(after) <= most {
                line = if line.trim_start().is_empty() { line + word } else { format!("{line} {word}") };
            } else {
                lines.push(format!("{line} \\"));
                line = format!("{}{word}", " ".repeat(DEEPER));
            }
        }
        lines.push(format!("{line}{tail}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    /// Check that a line ends where the shell expects more of the command, and that long words stay whole.
    #[test]
    fn commands_are_broken_as_a_shell_reads_them() {
        let both = [command("plan a.ftp -o a.toml"), command("run --plan a.toml -- ./a one two")];
        assert_eq!(lines(&both, 80), ["plan a.ftp -o a.toml &&", "run --plan a.toml -- ./a one two"]);
        assert_eq!(lines(&both, 23), ["plan a.ftp -o a.toml &&", "run --plan a.toml -- \\", "  ./a one two"]);
        assert_eq!(lines(&both[..1], 12), ["plan a.ftp \\", "  -o a.toml"]);
        assert_eq!(lines(&[command("run 0123456789012345 b")], 10), ["run \\", "  0123456789012345 \\", "  b"]);
    }
}
