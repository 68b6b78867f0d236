//! Builds small programs, and resolves every byte of a function.

use firsttouch_symbols::{Resolved, Symbolizer};
use object::{Object, ObjectSegment, ObjectSymbol};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A directory with sources and built files.
pub struct Workshop {
    directory: TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles `source` with `flags`; prints a message and returns `None` if the compiler is missing or does not support the flags.
    pub fn build(&self, compiler: &str, flags: &[&str], file: &str, source: &str, output: &str) -> Option<PathBuf> {
        let source_path = self.path(file);
        std::fs::write(&source_path, source).unwrap();
        let binary = self.path(output);
        let arguments = [&["-o", output], flags, &[file]].concat();
        run(Command::new(compiler).args(arguments).current_dir(self.directory.path())).then_some(binary)
    }

    /// Runs a tool in the directory; prints a message and returns false if it is missing or fails.
    pub fn run(&self, tool: &str, arguments: &[&str]) -> bool {
        run(Command::new(tool).args(arguments).current_dir(self.directory.path()))
    }
}

fn run(command: &mut Command) -> bool {
    match command.output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("SKIPPED: {command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
            false
        }
        Err(error) => {
            eprintln!("SKIPPED: cannot run {command:?}: {error}");
            false
        }
    }
}

/// The line of `source` that contains `marker`.
pub fn line_of(source: &str, marker: &str) -> u32 {
    let index = source.lines().position(|line| line.contains(marker)).unwrap();
    u32::try_from(index + 1).unwrap()
}

/// File offsets of a function's bytes, by its linker name or a part of it.
pub fn offsets_of(binary: &Path, name: &str) -> Range<u64> {
    let data = std::fs::read(binary).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let mut symbols = file.symbols().filter(|symbol| symbol.size() > 0 && symbol.kind() == object::SymbolKind::Text);
    let symbol = symbols.find(|symbol| symbol.name().unwrap() == name).or_else(|| {
        let mut symbols = file.symbols().filter(|symbol| symbol.size() > 0);
        symbols.find(|symbol| symbol.name().unwrap().contains(name))
    });
    let symbol = symbol.unwrap_or_else(|| panic!("no symbol {name} in {}", binary.display()));
    let (address, bytes) = (symbol.address(), symbol.size());
    let segment = file.segments().find(|s| (s.address()..s.address() + s.file_range().1).contains(&address)).unwrap();
    let start = address - segment.address() + segment.file_range().0;
    start..start + bytes
}

/// Every distinct stack over a range of offsets, as `function:line` joined by ` < `, innermost first.
pub fn stacks(symbolizer: &mut Symbolizer, module: &Path, offsets: Range<u64>) -> BTreeSet<String> {
    offsets.map(|offset| stack(&symbolizer.resolve(module, offset))).collect()
}

pub fn stack(frames: &[Resolved]) -> String {
    if let Some((last, others)) = frames.split_last() {
        assert!(!last.inlined && others.iter().all(|frame| frame.inlined), "{frames:?}");
    }
    let frame = |frame: &Resolved| match (&frame.function, frame.line) {
        (function, Some(line)) => format!("{}:{line}", function.as_deref().unwrap_or("?")),
        (function, None) => function.clone().unwrap_or_else(|| "?".to_owned()),
    };
    frames.iter().map(frame).collect::<Vec<_>>().join(" < ")
}

/// A C program with an inlined function that contains a loop, a static array, and a global array.
pub const C: &str = r#"#include <stdlib.h>
#include <stdio.h>
double field[50000];
static inline __attribute__((always_inline)) void fill(double *a, int n)
{
    for (int i = 0; i < n; i++)
        a[i] = i * 2.0; /*FILL*/
}
__attribute__((noinline)) void work(double *a, int n)
{
    fill(a, n); /*CALL*/
    puts("done");
}
int main(int argc, char **argv)
{
    static double grid[9000];
    work(field, 50000);
    work(grid, 9000); /*MAIN*/
    return (int)(field[argc] + grid[argc]);
}
"#;
