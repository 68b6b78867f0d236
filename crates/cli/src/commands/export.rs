//! `firsttouch export`

use crate::arguments::{Export, Table, To, Value};
use crate::exit::usage;
use crate::output::{is_stdout, json_line, message, replace, replace_bytes};
use crate::profile_name::named_or_newest;
use crate::request::analysis_request;
use anyhow::{Context, Result, anyhow, bail};
use firsttouch_model::shown::{self, Colours};
use firsttouch_pipeline::{AnalysedProfile, is_directory_of_ranks, is_profile};
use firsttouch_report::counted_as;
use firsttouch_report::export::{self, Counted};
use std::borrow::Cow;
use std::io::{IsTerminal, stdout};
use std::path::Path;

pub fn run(arguments: &Export) -> Result<u8> {
    if arguments.value != Value::Accesses && arguments.to != To::Folded {
        return usage(Err(anyhow!("--value is for --to folded; the other formats have all values")));
    }
    if arguments.table != Table::Samples && arguments.to != To::Parquet {
        return usage(Err(anyhow!("--table is for --to parquet; the other formats have samples")));
    }
    let to = arguments.output.as_deref().unwrap_or(Path::new("-"));
    if is_stdout(to) && stdout().is_terminal() && matches!(arguments.to, To::Pprof | To::Parquet | To::Sqlite) {
        return usage(Err(anyhow!("this format is not text: name a file with -o, or redirect the output")));
    }
    let request = analysis_request(&arguments.judge)?.with_samples();
    let profile = named_or_newest(arguments.profile.as_deref(), "export")?;
    if arguments.to == To::Sqlite {
        return copy(&profile, to).map(|()| 0);
    }
    let analysed = AnalysedProfile::open(&profile, &request)?;
    let pictures = analysed.pictures.as_ref().context("internal error: the samples were not kept")?;
    let export = export::Export {
        analysis: &analysed.analysis,
        samples: &pictures.samples,
        timeline: pictures.timeline.as_ref(),
        start_unix_s: analysed.profile.meta.start_unix_s,
    };
    let cannot = || format!("cannot export {}", profile.display());
    match arguments.to {
        To::Folded => replace(to, &names_obeyed_by_nobody(&export::folded(&export, counted(arguments.value)).with_context(cannot)?)),
        To::Firefox => replace(to, &json_line(&export::firefox(&export).with_context(cannot)?)?),
        To::Callgrind => replace(to, &names_obeyed_by_nobody(&export::callgrind(&export))),
        To::Csv => replace(to, &names_obeyed_by_nobody(&export::csv(&export).with_context(cannot)?)),
        To::Pprof => replace_bytes(to, &export::pprof(&export), export::is_pprof),
        To::Parquet => {
            let table = match arguments.table {
                Table::Samples => export::parquet::samples(&export),
                Table::Objects => export::parquet::objects(&export),
            };
            replace_bytes(to, &table.with_context(cannot)?, export::parquet::is_parquet)
        }
        To::Sqlite => Ok(()),
    }?;
    if !is_stdout(to) {
        let rows = match arguments.table {
            Table::Samples => counted_as(pictures.samples.list.len() as u64, "sample", "samples"),
            Table::Objects => counted_as(analysed.analysis.objects.len() as u64, "object", "objects"),
        };
        message(&format!("{rows} -> {}", to.display()));
    }
    Ok(0)
}

/// Names in these formats are any text, so that one may be changed that is a command for a CI system. The same in a file as on standard output: the
/// file may be printed.
fn names_obeyed_by_nobody(text: &str) -> Cow<'_, str> {
    shown::text(text, Colours::None)
}

fn counted(value: Value) -> Counted {
    match value {
        Value::Accesses => Counted::Accesses,
        Value::RemoteAccesses => Counted::RemoteAccesses,
        Value::Bytes => Counted::Bytes,
        Value::RemoteBytes => Counted::RemoteBytes,
    }
}

/// The profile as it is.
fn copy(profile: &Path, to: &Path) -> Result<()> {
    if is_directory_of_ranks(profile) {
        let name = profile.display();
        bail!("cannot export {name}: it is a directory with several profiles; merge them first: firsttouch merge {name} -o FILE.ftp");
    }
    if !is_profile(profile) {
        bail!("cannot export {}: it is not a profile", profile.display());
    }
    let bytes = std::fs::read(profile).with_context(|| format!("cannot read {}", profile.display()))?;
    let replaces = !is_stdout(to) && is_profile(to);
    replace_bytes(to, &bytes, |old| old.starts_with(b"SQLite format 3\0"))?;
    if !is_stdout(to) {
        let replaced = if replaces { ", which replaces an older profile" } else { "" };
        message(&format!("a copy of {} -> {}{replaced}", profile.display(), to.display()));
    }
    Ok(())
}
