//! Merges the profiles of a job, and says which ranks did not end well.

use super::{ROOT, this};
use anyhow::{Context, Result};
use firsttouch_capture::{Created, Output};
use firsttouch_model::rows::Profile;
use firsttouch_model::topology::format_list;
use firsttouch_model::{RecordingSummary, SIGTERM, consequence, signal_words};
use firsttouch_pipeline::merge::{find, merge_files};
use firsttouch_ranks::directory::{Ended, Recorder, State, missing, recorders};
use std::path::{Path, PathBuf};

/// The merged profile of a job.
pub struct Merged {
    /// Its file, claimed for this process until it is dropped.
    pub file: Created,
    /// The profiles of the ranks.
    pub directory: PathBuf,
    /// How the first rank ended that did not end well.
    pub failed: Option<Ended>,
    /// Why the profile of a rank is not whole, if one is not.
    pub cut: Option<String>,
    /// Ranks that did not end well, by what happened to them, a sentence each.
    pub notes: Vec<String>,
}

/// Merges what is in the directory of a job. `None` if no rank has a profile.
pub fn merge(directory: &Path, output: &Output) -> Result<Option<Merged>> {
    // Ranks that could not be started leave nothing behind.
    if !directory.exists() {
        return Ok(None);
    }
    let recorders = recorders(directory, Path::new(ROOT), &this()).with_context(|| format!("cannot read {}", directory.display()))?;
    let cannot = || format!("cannot merge the profiles in {}", directory.display());
    let Ok(found) = find(&[directory.to_owned()]) else { return Ok(None) };
    let file = merge_files(&found.files, output).with_context(cannot)?.created;
    let failed = recorders.iter().filter_map(|one| match &one.state {
        State::Ended(ended) if ended.exit_code != 0 => Some(ended),
        _ => None,
    });
    let failed = failed.min_by_key(|ended| (is_by_launcher(ended), consequence(ended.abort_status.is_some(), ended.signal))).cloned();
    let cut = recorders.iter().find_map(|one| match &one.state {
        State::Ended(ended) => ended.error.clone(),
        State::Died => Some("the recorder of a rank was killed".to_owned()),
        State::Runs => Some("a rank still ran".to_owned()),
    });
    Ok(Some(Merged { file, directory: directory.to_owned(), failed, cut, notes: notes(&recorders) }))
}

/// What happened to ranks, the same to several in one sentence.
fn notes(recorders: &[Recorder]) -> Vec<String> {
    let mut fates: Vec<(String, Vec<u32>)> = Vec::new();
    let mut add = |what: String, rank: Option<u32>| match fates.iter_mut().find(|(known, _)| *known == what) {
        Some((_, ranks)) => ranks.extend(rank),
        None => fates.push((what, rank.into_iter().collect())),
    };
    // Launchers end the other ranks of a job with SIGTERM when one has failed; who ended first is not always seen to be the launcher's work.
    let has_failed = |one: &Recorder| matches!(&one.state, State::Ended(ended) if is_failure(ended) || is_by_launcher(ended));
    let is_launchers = recorders.iter().any(has_failed);
    for one in recorders {
        let state = match &one.state {
            State::Ended(ended) if is_launchers && ended.signal == Some(SIGTERM) => {
                &State::Ended(Ended { by_launcher: true, ..ended.clone() })
            }
            state => state,
        };
        if let Some(what) = what_happened(state) {
            add(what, one.started.place.as_ref().map(|place| place.rank));
        }
    }
    for rank in missing(recorders) {
        add("not recorded: it did not start, or ended before it could be recorded".to_owned(), Some(rank));
    }
    fates.into_iter().map(|(what, ranks)| format!("{}: {what}", named(ranks))).collect()
}

/// Whether a launcher ended it because another rank had failed.
fn is_by_launcher(ended: &Ended) -> bool {
    ended.by_launcher && ended.abort_status.is_none()
}

/// Whether it failed by itself.
fn is_failure(ended: &Ended) -> bool {
    ended.abort_status.is_some() || (ended.exit_code != 0 && ended.signal != Some(SIGTERM))
}

fn what_happened(state: &State) -> Option<String> {
    match state {
        State::Ended(Ended { error: Some(error), .. }) => Some(format!("the profile is not whole: {error}")),
        State::Ended(Ended { abort_status: Some(status), .. }) => Some(format!("called MPI_Abort with status {status}")),
        State::Ended(Ended { signal: Some(signal), by_launcher: true, .. }) => {
            Some(format!("killed by the launcher ({})", signal_words(*signal)))
        }
        State::Ended(Ended { signal: Some(signal), .. }) => Some(format!("ended by {}", signal_words(*signal))),
        State::Ended(Ended { exit_code, .. }) if *exit_code != 0 => Some(format!("ended with exit status {exit_code}")),
        State::Ended(_) => None,
        State::Died => Some("the recorder was killed: the profile ends where it was written last".to_owned()),
        State::Runs => Some("did not end before the profiles were merged".to_owned()),
    }
}

/// `rank 3`, `ranks 0, 5-8`.
pub fn named(mut ranks: Vec<u32>) -> String {
    ranks.sort_unstable();
    ranks.dedup();
    match ranks[..] {
        [] => "a process".to_owned(),
        [one] => format!("rank {one}"),
        _ => format!("ranks {}", format_list(&ranks).replace(',', ", ")),
    }
}

/// What a merged profile holds, with the number of its ranks.
pub fn summary(profile: &Profile) -> (usize, RecordingSummary) {
    let samples = |name: &str| profile.evidence.iter().filter(|one| one.source == name).map(|one| one.samples).sum();
    let summary = RecordingSummary {
        threads: profile.threads.len() as u64,
        wall_s: profile.meta.wall_s(),
        register_samples: samples("sample"),
        watch_hits: samples("watch"),
        first_touches: samples("touch"),
        touch_weight: 0.0,
        lost: 0,
    };
    (profile.parts.len().max(1), summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::RankPlace;
    use firsttouch_ranks::directory::Started;

    /// Check the sentences on ranks that ended in several ways.
    #[test]
    fn ranks_that_failed_are_named() {
        let recorder = |rank, state| {
            let place = RankPlace { rank, size: 9, ..RankPlace::default() };
            let started = Started { place: Some(place), ..Started::default() };
            Recorder { label: rank.to_string(), profile: PathBuf::new(), started, state }
        };
        let ended = |exit_code, signal| State::Ended(Ended { exit_code, signal, ..Ended::default() });
        let full = State::Ended(Ended { error: Some("the disk is full".to_owned()), ..Ended::default() });
        let list = [
            recorder(0, ended(143, Some(15))),
            recorder(1, ended(3, None)),
            recorder(2, ended(143, Some(15))),
            recorder(3, ended(0, None)),
            recorder(4, ended(143, Some(15))),
            recorder(5, State::Died),
            recorder(6, full),
        ];
        assert_eq!(
            notes(&list),
            [
                "ranks 0, 2, 4: killed by the launcher (signal 15 (SIGTERM))",
                "rank 1: ended with exit status 3",
                "rank 5: the recorder was killed: the profile ends where it was written last",
                "rank 6: the profile is not whole: the disk is full",
                "ranks 7-8: not recorded: it did not start, or ended before it could be recorded",
            ]
        );
        let terminated = notes(&list.iter().filter(|one| one.label != "1").cloned().collect::<Vec<_>>());
        assert_eq!(terminated[0], "ranks 0, 2, 4: ended by signal 15 (SIGTERM)", "the job as a whole, as far as is known");
        assert_eq!(named(Vec::new()), "a process");
        let killed =
            |rank, by_launcher| recorder(rank, State::Ended(Ended { exit_code: 137, signal: Some(9), by_launcher, ..Ended::default() }));
        let others = notes(&[killed(0, true), killed(1, false), killed(2, true)]);
        assert_eq!(others[..2], ["ranks 0, 2: killed by the launcher (signal 9 (SIGKILL))", "rank 1: ended by signal 9 (SIGKILL)"]);
    }
}
