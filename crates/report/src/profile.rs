//! The line that `firsttouch profile` prints when the program has ended.

use crate::text::{counted_as, thousands};
use firsttouch_model::RecordingSummary;
use std::path::Path;

/// `8 threads, 6.2 s, 12,020 samples of registers, 1,904 accesses seen by watchpoints, 1,310 first touches (1 in 599 sampled) -> dgemv.ftp`
#[must_use]
pub fn profile_summary(summary: &RecordingSummary, output: &Path) -> String {
    let threads = if summary.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", thousands(summary.threads)) };
    let one_of = if summary.first_touches > 0 && summary.touch_weight > 1.5 * summary.first_touches as f64 {
        format!(" (1 in {} sampled)", thousands((summary.touch_weight / summary.first_touches as f64).round() as u64))
    } else {
        String::new()
    };
    format!(
        "{threads}, {:.1} s, {} of registers, {} seen by watchpoints, {}{one_of} -> {}",
        summary.wall_s,
        counted_as(summary.register_samples, "sample", "samples"),
        counted_as(summary.watch_hits, "access", "accesses"),
        counted_as(summary.first_touches, "first touch", "first touches"),
        output.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the summary line, with and without sampling.
    #[test]
    fn the_summary_is_one_line() {
        let mut one = RecordingSummary {
            threads: 8,
            wall_s: 6.21,
            register_samples: 12_020,
            watch_hits: 1904,
            first_touches: 1310,
            touch_weight: 784_690.0,
            ..RecordingSummary::default()
        };
        assert_eq!(
            profile_summary(&one, Path::new("dgemv.ftp")),
            "8 threads, 6.2 s, 12,020 samples of registers, 1,904 accesses seen by watchpoints, 1,310 first touches (1 in 599 sampled) -> dgemv.ftp"
        );
        (one.threads, one.touch_weight) = (1, 1310.0);
        let few = RecordingSummary { register_samples: 1, watch_hits: 1, first_touches: 1, touch_weight: 1.0, ..one };
        assert_eq!(
            profile_summary(&few, Path::new("x.ftp")),
            "1 thread, 6.2 s, 1 sample of registers, 1 access seen by watchpoints, 1 first touch -> x.ftp"
        );
        assert_eq!(
            profile_summary(&one, Path::new("x.ftp")),
            "1 thread, 6.2 s, 12,020 samples of registers, 1,904 accesses seen by watchpoints, 1,310 first touches -> x.ftp"
        );
    }
}
