//! The manual pages, generated from the command line's help (docs/man; a test keeps them up to date).

use crate::arguments::Arguments;
use crate::exit;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::fs;
use std::path::Path;

pub fn write(directory: &Path) -> Result<u8> {
    let cannot = || format!("cannot write manual pages to {}", directory.display());
    fs::create_dir_all(directory).with_context(cannot)?;
    clap_mangen::generate_to(Arguments::command(), directory).with_context(cannot)?;
    Ok(exit::DONE)
}
