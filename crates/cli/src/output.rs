//! Output: results go to stdout, messages to stderr. All of it passes through `firsttouch_model::shown` here: names from a profile, a plan, a
//! machine file or the command line control neither the terminal nor a CI system.

use crate::terminal::style;
use anyhow::{Context, Result, anyhow};
use firsttouch_model::shown::{self, Colours};
use firsttouch_report::{Style, wrapped};
use firsttouch_system::launch::is_stdout_closed;
use serde_json::ser::{Formatter, Serializer};
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// Writes a text to stdout. A reader that has closed the pipe (`| head`) is not an error.
pub fn print(text: &str) -> Result<()> {
    print_or_end(text).map(|_| ())
}

/// As `print`, for one of several results. Returns false if the reader has closed the pipe.
pub fn print_or_end(text: &str) -> Result<bool> {
    write_stdout(&shown::text(text, colours(&io::stdout())))
}

/// As `print`, for our own text: help with the colours that clap gives it.
pub fn print_own(text: &str) -> Result<()> {
    write_stdout(text).map(|_| ())
}

fn write_stdout(text: &str) -> Result<bool> {
    if is_stdout_closed() && !text.is_empty() {
        return Err(closed());
    }
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

fn closed() -> anyhow::Error {
    anyhow!("cannot write to standard output: it is closed")
}

/// False if the reader has closed the pipe.
fn written(result: io::Result<()>) -> Result<bool> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        other => other.context("cannot write to standard output").map(|()| true),
    }
}

/// Writes JSON to stdout, indented. It is written while it is made: of thousands of threads and objects, it is larger than all else in memory.
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    if is_stdout_closed() {
        return Err(closed());
    }
    let mut lines = JsonLines { to: io::stdout().lock(), waiting: Vec::new() };
    match write_json(&mut lines, value) {
        Ok(()) => written(lines.write_all(b"\n").and_then(|()| lines.flush())),
        failed => written(failed),
    }
    .map(|_| ())
}

/// Writes JSON as serde_json's pretty printer does.
fn write_json(to: impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(to, Indented::default())).map_err(io::Error::from)
}

/// What begins a line of JSON: a comma, the end of the line before, and the indentation of a deep value.
const BEGINNING: &[u8; 66] = b",\n                                                                ";

/// As serde_json's `PrettyFormatter`, which writes each step of the indentation by itself: of a gigabyte of numbers, that is half of the time.
#[derive(Default)]
struct Indented {
    depth: usize,
    has_values: bool,
}

impl Indented {
    fn open<W: Write + ?Sized>(&mut self, to: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_values = false;
        to.write_all(bracket)
    }

    fn close<W: Write + ?Sized>(&mut self, to: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_values {
            self.line(to, true)?;
        }
        to.write_all(bracket)
    }

    fn line<W: Write + ?Sized>(&self, to: &mut W, is_first: bool) -> io::Result<()> {
        let end = (2 + 2 * self.depth).min(BEGINNING.len());
        to.write_all(&BEGINNING[usize::from(is_first)..end])?;
        (BEGINNING.len()..2 + 2 * self.depth).try_for_each(|_| to.write_all(b" "))
    }
}

impl Formatter for Indented {
    fn begin_array<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.open(to, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.close(to, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, to: &mut W, is_first: bool) -> io::Result<()> {
        self.line(to, is_first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_values = true;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.open(to, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.close(to, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, to: &mut W, is_first: bool) -> io::Result<()> {
        self.line(to, is_first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_values = true;
        Ok(())
    }
}

/// So many bytes of JSON are written at once.
const BLOCK: usize = 64 << 10;

/// Writes whole lines of JSON as `shown::json` has them.
struct JsonLines<W> {
    to: W,
    waiting: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    fn pass_on(&mut self, lines: &[u8]) -> io::Result<()> {
        // Checking all at once is faster than looking for what is no text.
        let text = std::str::from_utf8(lines).map_or_else(|_| String::from_utf8_lossy(lines), Cow::Borrowed);
        self.to.write_all(shown::json(&text).as_bytes())
    }
}

impl<W: Write> Write for JsonLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= BLOCK
            && let Some(end) = self.waiting.iter().rposition(|byte| *byte == b'\n')
        {
            let lines = std::mem::take(&mut self.waiting);
            self.pass_on(&lines[..=end])?;
            // The room is used again.
            self.waiting = lines;
            self.waiting.drain(..=end);
        }
        Ok(bytes.len())
    }

    /// One call for each piece of a line: there is no rest that was not written.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes).map(|_| ())
    }

    fn flush(&mut self) -> io::Result<()> {
        let lines = std::mem::take(&mut self.waiting);
        self.pass_on(&lines)?;
        self.to.flush()
    }
}

/// JSON, indented.
pub fn json(value: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value).context("cannot write the result as JSON")?;
    Ok(shown::json(&text).into_owned() + "\n")
}

/// JSON in one line.
pub fn json_line(value: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string(value).context("cannot write the result as JSON")?;
    Ok(shown::json(&text).into_owned() + "\n")
}

/// Writes a result in a format of its own to the file the user named; `-` is stdout. An existing file of another kind is refused and left unchanged.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let text = &shown::format(text);
    if is_stdout(path) {
        return write_stdout(text).map(|_| ());
    }
    let cannot = || format!("cannot write {}", path.display());
    if is_another_kind(path, text).with_context(cannot)? {
        return Err(another_kind()).with_context(cannot);
    }
    std::fs::write(path, text.as_bytes()).with_context(cannot)
}

/// As [`write`], for large results: the file has either its old contents or all of the new ones, also if the disk is full.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    let text = &shown::format(text);
    if is_stdout(path) {
        return write_stdout(text).map(|_| ());
    }
    let is_alike = |start: &[u8]| is_alike(&String::from_utf8_lossy(start), text);
    replace_bytes(path, text.as_bytes(), is_alike)
}

/// As [`replace`], for results that are not text. `is_alike`: whether the first bytes of an existing file are those of the same format.
pub fn replace_bytes(path: &Path, bytes: &[u8], is_alike: impl Fn(&[u8]) -> bool) -> Result<()> {
    if is_stdout(path) {
        let mut stdout = io::stdout().lock();
        return written(stdout.write_all(bytes).and_then(|()| stdout.flush())).map(|_| ());
    }
    let cannot = || format!("cannot write {}", path.display());
    let start = start_of(path).with_context(cannot)?;
    if start.is_some_and(|start| !is_alike(&start)) {
        return Err(another_kind()).with_context(cannot);
    }
    let is_file = std::fs::metadata(path).map_or_else(|_| !path.is_symlink(), |file| file.is_file());
    if is_file { replace_whole(path, bytes) } else { std::fs::write(path, bytes) }.with_context(cannot)
}

/// Writes a file beside another one, and puts it in its place.
fn replace_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays, and what it points to is replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = target.with_file_name(name);
    let written = create_new(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        if let Ok(old) = std::fs::metadata(&target) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        std::fs::rename(&part, &target)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written
}

fn create_new(path: &Path) -> io::Result<std::fs::File> {
    std::fs::OpenOptions::new().write(true).create_new(true).open(path)
}

/// Whether [`write`] will be able to write a file: for commands that run a program first. Leaves no file behind.
pub fn can_be_written(path: &Path) -> Result<()> {
    if is_stdout(path) {
        return Ok(());
    }
    let known = std::fs::metadata(path);
    if known.as_ref().is_ok_and(|file| !file.is_file() && !file.is_dir()) {
        // Opening a pipe could wait for its reader.
        return Ok(());
    }
    let is_new = known.is_err() && !path.is_symlink();
    std::fs::OpenOptions::new().append(true).create(true).open(path).with_context(|| format!("cannot write {}", path.display()))?;
    if is_new {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// As [`can_be_written`]; an existing file must be of the same format as `text`.
pub fn can_be_replaced(path: &Path, text: &str) -> Result<()> {
    can_be_written(path)?;
    let cannot = || format!("cannot write {}", path.display());
    if !is_stdout(path) && is_another_kind(path, text).with_context(cannot)? {
        return Err(another_kind()).with_context(cannot);
    }
    Ok(())
}

/// Whether an existing file has contents that firsttouch would not have written there.
fn is_another_kind(path: &Path, text: &str) -> io::Result<bool> {
    Ok(start_of(path)?.is_some_and(|start| !is_alike(&String::from_utf8_lossy(&start), text)))
}

/// The first bytes of an existing file; `None` if there is no file, or an empty one, or something else than a file.
fn start_of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    const LOOKED_AT: u64 = 1 << 16;
    let known = match std::fs::metadata(path) {
        Ok(file) if file.is_file() && file.len() > 0 => std::fs::File::open(path)?,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut start = Vec::new();
    known.take(LOOKED_AT).read_to_end(&mut start)?;
    Ok(Some(start))
}

/// Whether one text could be an older version of the other: markup, JSON, TOML of one schema, or text with the same first word.
fn is_alike(old: &str, new: &str) -> bool {
    let first = |text: &str| text.trim_start().chars().next();
    let schema = |text: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix("schema")?.trim_start().strip_prefix('=').map(str::trim));
        line.map(|value| value.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned())
    };
    match first(new) {
        Some(mark @ ('<' | '{' | '[')) => first(old) == Some(mark),
        _ if schema(new).is_some() => schema(old) == schema(new),
        // GitHub's workflow commands have several first words, and a result may be empty.
        None | Some(':') => first(old).is_none_or(|mark| mark == ':'),
        _ => old.split_whitespace().next() == new.split_whitespace().next(),
    }
}

/// Where the result of a command that runs a program goes: `--json`, `--json=FILE`, `--output FILE`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Destination<'a> {
    pub json: Option<&'a Path>,
    pub output: Option<&'a Path>,
}

impl Destination<'_> {
    /// Checks before the program runs that the files can be written.
    pub fn check(&self) -> Result<()> {
        if let Some(path) = self.json {
            can_be_replaced(path, "{")?;
        }
        self.output.map_or(Ok(()), can_be_written)
    }

    /// Whether the text is shown too: JSON replaces it unless it goes to a file of its own.
    pub fn shows_text(&self) -> bool {
        self.json.is_none_or(|path| !is_stdout(path))
    }

    /// Writes the JSON, if it is asked for.
    pub fn write_json(&self, value: &impl serde::Serialize) -> Result<()> {
        let Some(path) = self.json else { return Ok(()) };
        let path = if is_stdout(path) { self.output.unwrap_or(path) } else { path };
        write(path, &json(value)?)
    }

    /// Writes the JSON, and the text unless the JSON replaces it. Without a file, the text goes to `terminal`.
    pub fn show(&self, value: &impl serde::Serialize, text: impl Fn(Style) -> String, terminal: Terminal) -> Result<()> {
        self.write_json(value)?;
        match self.output {
            _ if !self.shows_text() => Ok(()),
            Some(path) if is_stdout(path) => print(&text(style(&io::stdout()))),
            Some(path) => write(path, &shown::text(&text(Style { colour: false, ..style(&io::stdout()) }), Colours::None)),
            None => match terminal {
                Terminal::Stdout => print(&text(style(&io::stdout()))),
                Terminal::Stderr => {
                    tell(&text(style(&io::stderr())));
                    Ok(())
                }
            },
        }
    }
}

/// The stream for text: stdout belongs to the program if one runs.
#[derive(Clone, Copy, Debug)]
pub enum Terminal {
    Stdout,
    Stderr,
}

fn another_kind() -> anyhow::Error {
    anyhow!("another kind of file is already there: move it away, or choose another name")
}

pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// The words of a command line as text.
pub fn words(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Writes to stderr without a prefix. A failure cannot be reported, so it is ignored.
pub fn tell(text: &str) {
    write_stderr(&shown::text(text, colours(&io::stderr())));
}

fn colours(stream: &(impl IsTerminal + AsFd)) -> Colours {
    if style(stream).colour { Colours::Ours } else { Colours::None }
}

fn write_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Replaces the last line of the terminal.
pub fn replace_line(text: &str) {
    write_stderr(&format!("\r\x1b[K{}", shown::one_line(text)));
}

/// Writes an error to stderr.
pub fn error(error: &anyhow::Error) {
    let text = format!("error: {error:#}");
    // Below the first line are expressions with a mark, and whatever the name of a file has there: no other message.
    let indented = |line: &str| if line.starts_with(' ') { line.to_owned() } else { format!("  {line}") };
    let lines = text.lines().enumerate().map(|(at, line)| if at == 0 { line.to_owned() } else { indented(line) });
    messages(&lines.collect::<Vec<_>>().join("\n"));
}

/// Writes a message to stderr, as one line whatever names are in it.
pub fn message(text: &str) {
    messages(&shown::one_line(text.trim_end()));
}

/// Writes a message of several lines to stderr, with firsttouch's name before it.
pub fn messages(text: &str) {
    let text = format!("firsttouch: {}", text.trim_end());
    let stderr = io::stderr();
    // Programs that read messages, and people who search in them, want a sentence to be one line.
    let text = if stderr.is_terminal() { wrapped(&text, style(&stderr).width) } else { text };
    write_stderr(&shown::text(&format!("{text}\n"), Colours::None));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which existing files a result may replace.
    #[test]
    fn only_older_results_are_replaced() {
        let plan = "# Where memory goes\nschema = \"firsttouch.plan/1\"\nnodes = 2\n";
        for (old, new, alike) in [
            ("schema = 'firsttouch.plan/1' # mine\nnodes = 4\n", plan, true),
            ("#include <stdio.h>\nint main(void) { return 0; }\n", plan, false),
            ("SQLite format 3\0...", plan, false),
            ("schema = \"firsttouch.machine/1\"\n", plan, false),
            ("<?xml version='1.0'?><topology/>", "<svg/>", true),
            ("int main", "<svg/>", false),
            ("{\"old\": 1}", "{}", true),
            ("check passed", "check FAILED", true),
            ("void f(void);", "check FAILED", false),
            ("::error file=a.c::x", "::warning file=a.c::x", true),
            ("::error file=a.c::x", "", true),
            ("void f(void);", "", false),
        ] {
            assert_eq!(is_alike(old, new), alike, "{old:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let (source, fresh) = (folder.path().join("a.c"), folder.path().join("a.toml"));
        std::fs::write(&source, "int main(void) {}\n").unwrap();
        assert!(format!("{:#}", write(&source, plan).unwrap_err()).contains("another kind of file"));
        assert_eq!(std::fs::read_to_string(&source).unwrap(), "int main(void) {}\n");
        for _ in 0..2 {
            write(&fresh, plan).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&fresh).unwrap(), plan);
    }

    /// Check that JSON in parts is that in one piece, without control characters and without the commands of CI systems.
    #[test]
    fn json_is_written_in_lines() {
        let value: Vec<String> = (0..BLOCK / 16).map(|i| format!("{i} \u{202e} ##[error] \u{e9}")).collect();
        let deep =
            (0..40).fold(serde_json::json!([1, { "a": [] }, {}]), |value, depth| serde_json::json!([depth, { "of": [value], "no": {} }]));
        let value = serde_json::json!({ "list": value, "deep": deep, "none": null, "empty": [], "text": "[{,\n" });
        let mut lines = JsonLines { to: Vec::new(), waiting: Vec::new() };
        write_json(&mut lines, &value).unwrap();
        assert!(lines.to.len() > BLOCK, "{}", lines.to.len());
        lines.write_all(b"\n").and_then(|()| lines.flush()).unwrap();
        assert_eq!(String::from_utf8(lines.to).unwrap(), json(&value).unwrap());
    }
}
