//! What the watch windows sample: words x ns of every group within the watched span.

use crate::groups::{Group, SiteKey, site_key};
use firsttouch_model::rows::{Id, ObjectKind, Profile};
use hashbrown::HashMap;

/// The span of the run in which windows were drawn, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    watch_start: u64,
    end: u64,
}

impl Span {
    /// Reads it from the profile's metadata; if it is missing there, from the windows.
    #[must_use]
    pub(super) fn new(profile: &Profile) -> Self {
        let first = profile.windows.iter().map(|w| w.start_ns).min();
        let last = profile.windows.iter().map(|w| w.start_ns.saturating_add(w.round_ns.max(w.held_ns))).max();
        let watch_start = profile.meta.watch_start_ns.or(first).unwrap_or(0);
        Self { watch_start, end: profile.meta.end_ns.or(last).unwrap_or(watch_start) }
    }

    /// Words x ns by group, including those of folded objects (objects that came and went without any evidence on them).
    #[must_use]
    pub(super) fn exposures(&self, profile: &Profile, groups: &[Group]) -> Vec<f64> {
        let folded = folded(profile);
        let of_group = |group: &Group| {
            let exposure = |bytes: u64, born_ns: u64, died_ns: Option<u64>| {
                let (from, to) = (born_ns.max(self.watch_start), died_ns.unwrap_or(u64::MAX).min(self.end));
                (bytes / 8).max(1) as f64 * to.saturating_sub(from) as f64
            };
            let alive = group.members.iter().map(|i| match (group.shared.get(i), &profile.objects[*i]) {
                (Some(sharing), _) => sharing.mappings.iter().map(|m| exposure(m.bytes, m.born_ns, m.died_ns)).sum(),
                (None, own) => exposure(own.bytes, own.born_ns, own.died_ns),
            });
            let first = &profile.objects[group.representative];
            // No windows are held on small blocks.
            if first.kind == ObjectKind::Pool {
                return 0.0;
            }
            let site = first.site.and_then(|id| profile.sites.get(&id));
            let mut sizes: Vec<u64> = group.members.iter().map(|&i| profile.objects[i].bytes).collect();
            sizes.sort_unstable();
            sizes.dedup();
            let key = |bytes: u64| {
                let site = site?;
                Some((site.process, site_key(&site.frames), first.call.clone().unwrap_or_default(), bytes))
            };
            let gone = sizes.into_iter().filter_map(|bytes| folded.get(&key(bytes)?));
            alive.sum::<f64>() + gone.sum::<f64>()
        };
        groups.iter().map(of_group).collect()
    }
}

type FoldedKey = (Id, SiteKey, String, u64);

fn folded(profile: &Profile) -> HashMap<FoldedKey, f64> {
    let mut folded = HashMap::new();
    for row in profile.folded_objects.iter().filter(|f| f.word_ns.is_finite() && f.word_ns > 0.0) {
        if let Some(site) = profile.sites.get(&row.site).filter(|site| !site.frames.is_empty()) {
            *folded.entry((site.process, site_key(&site.frames), row.call.clone(), row.bytes)).or_insert(0.0) += row.word_ns;
        }
    }
    folded
}
