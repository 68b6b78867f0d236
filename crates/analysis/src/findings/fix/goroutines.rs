//! Go runs goroutines on threads of its choice, and moves them. A goroutine that keeps a part of memory has to keep its thread.
//!
//! runtime.LockOSThread: https://pkg.go.dev/runtime#LockOSThread

use super::Fix;
use crate::findings::Case;
use firsttouch_model::finding::FindingKind;

/// The fix with what it needs in Go, if Go code touches or uses the object.
pub(super) fn goroutines(kind: FindingKind, case: &Case<'_>, fix: Fix) -> Fix {
    let places = case.view.used_at.iter().chain(&case.view.first_touch.at);
    let is_go = places.filter_map(|place| place.file.as_deref()).any(is_of_go);
    match needed(kind).filter(|_| is_go) {
        Some(words) => {
            let words = format!("{}. {words}", fix.words);
            fix.said(words)
        }
        None => fix,
    }
}

fn is_of_go(file: &str) -> bool {
    std::path::Path::new(file).extension().is_some_and(|extension| extension == "go")
}

fn needed(kind: FindingKind) -> Option<&'static str> {
    match kind {
        FindingKind::SerialFirstTouch | FindingKind::MismatchedPartition | FindingKind::IoFirstTouch | FindingKind::RecycledMemory => {
            Some("Go moves goroutines between threads: let each of them call runtime.LockOSThread() before it touches its part")
        }
        FindingKind::NoStablePartition | FindingKind::SharedRead => Some(
            "Go moves goroutines between threads, so parts that each goroutine has for itself look like parts that change hands, or that all threads \
             use: if they have such parts, let each goroutine call runtime.LockOSThread() first, then initialise its own part",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which files are Go's, and which findings say what Go needs.
    #[test]
    fn what_go_needs() {
        assert!(is_of_go("/src/main.go") && !is_of_go("/src/main.c") && !is_of_go("/src/go") && !is_of_go("/x/cargo"));
        let says = |kind| needed(kind).is_some_and(|words| words.contains("runtime.LockOSThread()"));
        assert!(says(FindingKind::SerialFirstTouch) && says(FindingKind::SharedRead) && says(FindingKind::NoStablePartition));
        assert!(!says(FindingKind::NodeFull) && !says(FindingKind::PolicyMismatch));
    }
}
