//! Machines with a description: of the catalogue, a TOML file, or one's own.

use anyhow::{Context, Result, anyhow};
use firsttouch_machine::TargetMachine;
use firsttouch_predict::machine::{self, Machine};
use std::path::{Path, PathBuf};

/// A machine that `--machine` names.
#[derive(Clone)]
pub enum Named {
    /// Its numbers are known.
    Described(Box<Machine>),
    /// Only its nodes are.
    Bare(TargetMachine),
}

impl Named {
    /// `virtual:N`, an hwloc XML file, a TOML file, or a name of the catalogue.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self> {
        if ends_with(text, "toml") {
            return Ok(Self::Described(Box::new(read(text)?)));
        }
        if text.starts_with("virtual:") || ends_with(text, "xml") || Path::new(text).is_file() {
            return Ok(Self::Bare(TargetMachine::parse(text)?));
        }
        let found = machine::names().find(|name| *name == text).map(machine::find);
        let unknown =
            || anyhow!("cannot use machine '{text}': expected virtual:N, an hwloc XML file, a description (.toml), or one of {}", names());
        Ok(Self::Described(Box::new(found.ok_or_else(unknown)??)))
    }
}

/// A file that describes a machine, or a name of the catalogue.
///
/// # Errors
/// A file that cannot be read or describes no machine; a name that is not in the catalogue.
pub fn read(name: &str) -> Result<Machine> {
    if !ends_with(name, "toml") {
        return Ok(machine::find(name)?);
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("cannot read the machine description {name}"))?;
    Machine::parse(&text).with_context(|| name.to_owned())
}

/// The catalogue's names, as a sentence has them.
pub fn names() -> String {
    machine::names().collect::<Vec<_>>().join(", ")
}

/// The user's own description of the machine of this name, if there is one: `machines/HOSTNAME.toml` in firsttouch's
/// configuration directory.
///
/// # Errors
/// When it is there and cannot be used.
pub fn own(hostname: &str) -> Result<Option<Machine>> {
    let Some(path) = own_path(hostname).filter(|path| path.is_file()) else { return Ok(None) };
    read(&path.display().to_string()).map(Some)
}

/// Where [`own`] looks.
pub fn own_path(hostname: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    let plain = !hostname.is_empty() && !hostname.contains('/');
    plain.then(|| folder.join("firsttouch/machines").join(format!("{hostname}.toml")))
}

fn ends_with(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case(ending))
}
