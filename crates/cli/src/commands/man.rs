//! The manual pages, generated from the command line's help (docs/man; a test keeps them up to date).

use crate::arguments::Arguments;
use crate::exit;
use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::path::Path;

const SOURCE: &str = concat!("firsttouch ", env!("CARGO_PKG_VERSION"));
/// Paragraphs of the help that have a section of their own: how they begin, and the section.
const SECTIONS: [(&str, &str); 2] = [("Examples:", "EXAMPLES"), ("Exit status", "EXIT STATUS")];

pub fn write(directory: &Path) -> Result<u8> {
    let cannot = || format!("cannot write manual pages to {}", directory.display());
    fs::create_dir_all(directory).with_context(cannot)?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    write_pages(&command, directory).with_context(cannot)?;
    Ok(exit::DONE)
}

fn write_pages(command: &Command, directory: &Path) -> std::io::Result<()> {
    for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        write_pages(one, directory)?;
    }
    let man = Man::new(command.clone()).source(SOURCE).manual("firsttouch");
    let mut page = Vec::new();
    man.render(&mut page)?;
    let page = with_our_sections(&String::from_utf8_lossy(&page), command);
    fs::write(directory.join(man.get_filename()), page)
}

/// Replaces the synopsis by the usage, and the section EXTRA by sections of their own.
fn with_our_sections(page: &str, command: &Command) -> String {
    let mut text = String::new();
    for section in page.split_inclusive('\n').fold(Vec::<String>::new(), |mut sections, line| {
        match sections.last_mut().filter(|_| !line.starts_with(".SH ")) {
            Some(last) => last.push_str(line),
            None => sections.push(line.to_owned()),
        }
        sections
    }) {
        match section.lines().next().unwrap_or_default() {
            ".SH SYNOPSIS" => text.push_str(&synopsis(command)),
            ".SH EXTRA" => text.push_str(&after_help(command)),
            _ => text.push_str(&section),
        }
    }
    text
}

fn synopsis(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]).control("nf", []);
    for line in usage.trim_start_matches("Usage:").lines() {
        roff.text([roman(line.trim())]);
    }
    roff.control("fi", []);
    roff.to_roff()
}

fn after_help(command: &Command) -> String {
    let help = command.get_after_long_help().or_else(|| command.get_after_help()).map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    for paragraph in help.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let found = SECTIONS.iter().find(|(start, _)| paragraph.starts_with(start));
        roff.control("SH", [found.map_or("NOTES", |(_, section)| section)]);
        if found.is_some_and(|(start, _)| *start == "Examples:") {
            roff.control("nf", []);
            paragraph.lines().skip(1).for_each(|line| {
                roff.text([roman(line.trim_start())]);
            });
            roff.control("fi", []);
        } else {
            let text = paragraph.strip_prefix("Exit status: ").unwrap_or(paragraph);
            roff.text([roman(text.trim())]);
        }
    }
    roff.to_roff()
}
