//! `firsttouch stat`

use crate::arguments::Stat;
use crate::exit::{self, unless_not_executed};
use crate::output::{Destination, Terminal, is_stdout, json_line, print_or_end, words};
use anyhow::{Context, Result};
use firsttouch_model::system::Counters;
use firsttouch_report::{Span, StatJson, WatchTable, stat_text};
use firsttouch_system::counters;
use firsttouch_system::launch::Commands;
use std::fs::File;
use std::io::{IsTerminal, Write, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

/// The default interval of --watch.
const WATCH: Duration = Duration::from_secs(1);
pub fn run(arguments: &Stat) -> Result<u8> {
    destination(arguments).check()?;
    if !arguments.program.is_empty() {
        return around_command(arguments);
    }
    if arguments.watch {
        return watch(arguments);
    }
    let (counters, span) = match arguments.interval {
        Some(time) => interval(&read(), time),
        None => (read(), Span::SinceBoot),
    };
    show(arguments, &counters, &span, Terminal::Stdout)?;
    Ok(exit::DONE)
}

fn destination(arguments: &Stat) -> Destination<'_> {
    Destination { json: arguments.json.as_deref(), output: arguments.output.as_deref() }
}

fn read() -> Counters {
    counters::read(Path::new("/"))
}

/// The growth of the counters from `before` until `time` has passed.
fn interval(before: &Counters, time: Duration) -> (Counters, Span) {
    let start = Instant::now();
    std::thread::sleep(time);
    let counters = read().since(before);
    (counters, Span::Interval { wall_s: start.elapsed().as_secs_f64() })
}

fn watch(arguments: &Stat) -> Result<u8> {
    let time = arguments.interval.unwrap_or(WATCH);
    let start = Instant::now();
    let on_screen = stdout().is_terminal();
    let file = arguments.json.as_deref().filter(|path| !is_stdout(path)).or(arguments.output.as_deref()).filter(|path| !is_stdout(path));
    let mut file = file.map(|path| File::create(path).with_context(|| format!("cannot write {}", path.display()))).transpose()?;
    let mut table = WatchTable::new();
    let mut shown = 0;
    let (mut before, mut since) = (read(), start);
    while arguments.count.is_none_or(|count| shown < count) {
        std::thread::sleep(time);
        let now = read();
        let counters = now.since(&before);
        let wall_s = since.elapsed().as_secs_f64();
        (before, since) = (now, Instant::now());
        let text = if arguments.json.is_some() {
            let span = Span::Interval { wall_s };
            json_line(&StatJson::new(&counters, &span))?
        } else {
            table.line(&counters, start.elapsed().as_secs_f64(), on_screen && file.is_none())
        };
        match &mut file {
            Some(file) => file.write_all(text.as_bytes()).context("cannot write the counts")?,
            // Stop when the reader has closed the pipe.
            None if !print_or_end(&text)? => break,
            None => {}
        }
        shown += 1;
    }
    Ok(exit::DONE)
}

fn around_command(arguments: &Stat) -> Result<u8> {
    let commands = Commands::new()?;
    let before = read();
    let ran = match commands.run(&arguments.program) {
        Ok(ran) => ran,
        Err(error) => return unless_not_executed(error),
    };
    let counters = read().since(&before);
    let span = Span::Command { command: words(&arguments.program), wall_s: ran.wall_s, exit_code: ran.exit_code };
    // The program has run, so firsttouch exits with its status, even if the result cannot be printed.
    if let Err(error) = show(arguments, &counters, &span, Terminal::Stderr) {
        crate::output::error(&error);
    }
    Ok(exit::of_program(ran.exit_code))
}

fn show(arguments: &Stat, counters: &Counters, span: &Span, terminal: Terminal) -> Result<()> {
    destination(arguments).show(&StatJson::new(counters, span), |style| stat_text(counters, span, style), terminal)
}
