//! Writes a generated profile.

use firsttouch_model::error::Result;
use firsttouch_model::rows::Profile;
use firsttouch_model::rows::metadata::Entry;
use firsttouch_profile::Writer;
use std::path::Path;

/// Writes what [`crate::profile`] makes.
///
/// # Errors
/// If the file cannot be written.
pub fn write(profile: &Profile, path: &Path) -> Result<()> {
    let mut writer = Writer::create(path)?;
    metadata(profile, &writer)?;
    writer.machine(&profile.machine)?;
    profile.evidence.iter().try_for_each(|row| writer.evidence(row))?;
    profile.processes.iter().try_for_each(|row| writer.process(row))?;
    profile.threads.iter().try_for_each(|row| writer.thread(row))?;
    profile.thread_cpus.iter().try_for_each(|(&(thread, cpu), &seen)| writer.thread_cpu(thread, cpu, seen))?;
    profile.sites.values().try_for_each(|row| writer.site(row))?;
    profile.objects.iter().try_for_each(|row| writer.object(row))?;
    profile.pages.iter().try_for_each(|row| writer.page(row))?;
    profile.first_touches.iter().try_for_each(|row| writer.first_touch(row.clone()))?;
    profile.windows.iter().try_for_each(|row| writer.window(row))?;
    profile.accesses.iter().try_for_each(|row| writer.access(row))?;
    profile.samples.iter().try_for_each(|row| writer.sample(row.clone()))?;
    profile.sampled_accesses.iter().try_for_each(|row| writer.sampled_access(row.clone()))?;
    writer.keep();
    writer.finish()
}

fn metadata(profile: &Profile, writer: &Writer) -> Result<()> {
    let meta = &profile.meta;
    let always =
        [Entry::Command(&meta.command), Entry::Symbolized, Entry::ThreadsRanNs(meta.threads_ran_ns), Entry::Variables(&meta.variables)];
    let known = [
        meta.exit_code.map(Entry::ExitCode),
        meta.start_ns.map(Entry::StartNs),
        meta.end_ns.map(Entry::EndNs),
        meta.start_unix_s.map(Entry::StartUnixS),
        meta.min_size_bytes.map(Entry::MinSizeBytes),
        meta.tool_version.as_deref().map(Entry::ToolVersion),
        meta.mode.map(Entry::Mode),
        meta.trap_ns.map(Entry::TrapNs),
        meta.tick_ns.map(Entry::TickNs),
        meta.watch_start_ns.map(Entry::WatchStartNs),
    ];
    always.into_iter().chain(known.into_iter().flatten()).try_for_each(|entry| writer.meta(entry))
}
