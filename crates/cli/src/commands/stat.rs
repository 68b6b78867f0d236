//! `firsttouch stat`

use crate::arguments::Stat;
use crate::exit::{self, unless_not_executed};
use crate::output::{message, print, print_json, print_or_end, tell, words};
use crate::terminal::style;
use anyhow::{Context, Result};
use firsttouch_model::system::Counters;
use firsttouch_report::{Span, StatJson, Style, stat_text};
use firsttouch_system::counters;
use firsttouch_system::launch::Commands;
use std::io::{IsTerminal, stderr, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

/// The default interval of --watch.
const WATCH: Duration = Duration::from_secs(1);
/// Moves the cursor to the first line and clears what is below (ECMA-48: CUP, ED).
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

pub fn run(arguments: &Stat) -> Result<u8> {
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
    if arguments.json {
        print_json(&StatJson::new(&counters, &span))?;
    } else {
        print(&stat_text(&counters, &span, style(&stdout())))?;
    }
    Ok(exit::DONE)
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
    let on_screen = stdout().is_terminal();
    let mut shown = 0;
    while arguments.count.is_none_or(|count| shown < count) {
        let (counters, span) = interval(&read(), time);
        let text = if arguments.json {
            serde_json::to_string(&StatJson::new(&counters, &span)).context("cannot write the result as JSON")? + "\n"
        } else {
            let text = stat_text(&counters, &span, style(&stdout()));
            if on_screen { format!("{CLEAR}{text}") } else { text + "\n" }
        };
        // Stop when the reader has closed the pipe.
        if !print_or_end(&text)? {
            break;
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
    if let Err(error) = show(&counters, &span, arguments.json, style(&stderr())) {
        message(&format!("error: {error:#}"));
    }
    Ok(exit::of_program(ran.exit_code))
}

fn show(counters: &Counters, span: &Span, json: bool, style: Style) -> Result<()> {
    if json {
        return print_json(&StatJson::new(counters, span));
    }
    tell(&stat_text(counters, span, style));
    Ok(())
}
