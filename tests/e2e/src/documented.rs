// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands that the documentation prints, and the outputs that it shows.

/// A command as printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Line of the page, from 1.
    pub line: usize,
    pub command: String,
    /// What the page shows as its output; empty without one.
    pub output: String,
}

/// First words of lines in code blocks that are commands for a reader.
const TOOLS: [&str; 10] =
    ["firsttouch", "target/release/firsttouch", "sudo", "make", "cargo", "mpirun", "lstopo", "sqlite3", "pip", "docker"];

/// All commands of a page: lines of code blocks (indented, or fenced, after `$ ` there), `run:` lines of workflows in them, and cells of
/// tables whose column is called `command`. SQL in a fenced block is a command for sqlite3, with the block that follows as its output.
#[must_use]
pub fn commands(page: &str) -> Vec<Printed> {
    let mut found: Vec<Printed> = Vec::new();
    let mut sql: Option<Printed> = None;
    for block in blocks(page) {
        if block.language == "sql" {
            sql = Some(Printed { line: block.line, command: block.lines.join("\n"), output: String::new() });
            continue;
        }
        let shown = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        if let Some(sql) = sql.take() {
            found.push(Printed { output: shown(&block.lines), ..sql });
            continue;
        }
        if block.language == "table" {
            found.extend(of_table(&block));
            continue;
        }
        let is_session = block.lines.iter().any(|line| line.starts_with("$ "));
        for (index, line) in block.lines.iter().enumerate() {
            let mut continued = 0;
            let command = match line.strip_prefix("$ ") {
                Some(command) => {
                    let (whole, lines) = joined(command, block.lines.get(index + 1..).unwrap_or_default());
                    continued = lines;
                    Some(whole)
                }
                None if is_session => None,
                None => in_block(line),
            };
            let rest = block.lines.get(index + 1 + continued..).unwrap_or_default();
            let end = rest.iter().position(|line| line.starts_with("$ ")).unwrap_or(rest.len());
            let output = if is_session { shown(&rest[..end]) } else { String::new() };
            found.extend(command.map(|command| Printed { line: block.line + index, command, output }));
        }
    }
    found
}

/// A command that `\` continues on the lines below it, and how many of them.
fn joined(command: &str, below: &[String]) -> (String, usize) {
    let mut whole = command.to_owned();
    let mut lines = 0;
    while let Some((start, line)) = whole.strip_suffix('\\').zip(below.get(lines)) {
        whole = format!("{}{}", start, line.trim_start());
        lines += 1;
    }
    (whole, lines)
}

struct Block {
    /// Line of the page of its first line.
    line: usize,
    /// Of a fenced block; `table` for a table.
    language: String,
    lines: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<String> = None;
    let mut is_open = false;
    for (index, line) in page.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(rest.trim().to_owned()) };
            is_open = false;
            continue;
        }
        let (language, text) = match &fence {
            Some(language) => (language.clone(), line),
            None if line.starts_with('|') => ("table".to_owned(), line),
            None => match line.strip_prefix("    ") {
                Some(text) => (String::new(), text),
                None => {
                    // A blank line may be within an indented block.
                    is_open &= line.trim().is_empty() && blocks.last().is_some_and(|block| block.language.is_empty());
                    continue;
                }
            },
        };
        if !is_open || blocks.last().is_none_or(|block| block.language != language) {
            blocks.push(Block { line: index + 1, language, lines: Vec::new() });
            is_open = true;
        }
        if let Some(block) = blocks.last_mut() {
            // Lines that were left out (blank ones) count, so that line numbers are right.
            while block.line + block.lines.len() < index + 1 {
                block.lines.push(String::new());
            }
            block.lines.push(text.to_owned());
        }
    }
    blocks
}

/// The command of a line in a block: without variables before it, its first word is a tool.
fn in_block(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = ["- run: ", "run: "].iter().find_map(|start| line.strip_prefix(start)).unwrap_or(line);
    let is_variable = |word: &str| word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    let tool = line.split(' ').find(|word| !is_variable(word))?;
    // `firsttouch: ` begins a message.
    TOOLS.contains(&tool).then(|| command(line))
}

/// Without the description in the next column.
fn command(line: &str) -> String {
    line.split("  ").next().unwrap_or(line).trim_end().to_owned()
}

fn of_table(block: &Block) -> Vec<Printed> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let Some(column) = block.lines.first().and_then(|line| cells(line).iter().position(|name| name == "command")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (index, line) in block.lines.iter().enumerate().skip(2) {
        let cell = cells(line).get(column).cloned().unwrap_or_default();
        let quoted = cell.split('`').skip(1).step_by(2).filter(|text| text.starts_with("firsttouch "));
        found.extend(quoted.map(|text| Printed { line: block.line + index, command: text.to_owned(), output: String::new() }));
    }
    found
}

/// The words of an output without figures: numbers are `#`, and rows of symbols are left out.
#[must_use]
pub fn shape(output: &str) -> Vec<String> {
    let is_picture = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| ["map", "thread", "node"].contains(word)).take(8).peekable();
        words.peek().is_some() && words.all(|word| word.len() < 3 && word.chars().all(|c| c.is_ascii_digit() || ".*".contains(c)))
    };
    let mut shape = Vec::new();
    for word in output.lines().filter(|line| !is_picture(line)).flat_map(str::split_whitespace) {
        let mut text = String::new();
        let mut in_number = false;
        for c in word.chars() {
            let continues = in_number && ",.".contains(c);
            if c.is_ascii_digit() {
                if !in_number {
                    text.push('#');
                }
                in_number = true;
            } else if !continues {
                in_number = false;
                text.push(c);
            }
        }
        shape.push(text);
    }
    shape
}

/// The part of the words of `shown` that are in `actual` too, in the same order.
#[must_use]
pub fn agreement(shown: &[String], actual: &[String]) -> f64 {
    let mut best = vec![0usize; actual.len() + 1];
    for word in shown {
        let mut before = 0;
        for (at, other) in actual.iter().enumerate() {
            let diagonal = std::mem::replace(&mut before, best[at + 1]);
            best[at + 1] = if word == other { diagonal + 1 } else { best[at + 1].max(best[at]) };
        }
    }
    best[actual.len()] as f64 / shown.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
Text with `firsttouch inline`.

    make demo     # the whole story

    OMP_NUM_THREADS=2 firsttouch report a.ftp         with a description
    firsttouch: a message

      - run: firsttouch check

```
$ firsttouch profile -- \\
    ./a
firsttouch: 8 threads
firsttouch looks like a command
```

| command | page |
|---|---|
| `firsttouch ps PID`, `firsttouch maps PID` ([page](a.md)) | `firsttouch other` |

| option | when |
|---|---|
| `firsttouch no` | |

```sql
SELECT 1
FROM a;
```

gives

    id  kind
    1   heap
";

    /// Check that all commands of a page are found, and nothing else.
    #[test]
    fn commands_are_found() {
        let found: Vec<(usize, String, String)> = commands(PAGE).into_iter().map(|one| (one.line, one.command, one.output)).collect();
        let expected = [
            (3, "make demo", ""),
            (5, "OMP_NUM_THREADS=2 firsttouch report a.ftp", ""),
            (8, "firsttouch check", ""),
            (11, "firsttouch profile -- ./a", "firsttouch: 8 threads\nfirsttouch looks like a command\n"),
            (19, "firsttouch ps PID", ""),
            (19, "firsttouch maps PID", ""),
            (26, "SELECT 1\nFROM a;", "id  kind\n1   heap\n"),
        ];
        let expected: Vec<(usize, String, String)> = expected.iter().map(|(l, c, o)| (*l, (*c).to_owned(), (*o).to_owned())).collect();
        assert_eq!(found, expected);
    }

    /// Check that figures and pictures do not count in a comparison, and words do.
    #[test]
    fn shapes_are_compared() {
        let shown =
            shape("8 threads, 6.2 s [44, 56]\n   map            thread 0 0 1 1\n                  node   0 0 0 0\nLost samples: 0.");
        assert_eq!(shown, ["#", "threads,", "#", "s", "[#", "#]", "Lost", "samples:", "#"]);
        let actual = shape("1,234 threads,\n7 s [1, 2]\nmore Lost samples: 17.");
        assert!((agreement(&shown, &actual) - 1.0).abs() < 1e-9);
        assert!(agreement(&shown, &shape("8 threads, 6.2 s [44, 56]")) < 0.7);
    }
}
