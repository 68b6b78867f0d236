//! The source code around the lines that an analysis names, for the source view of pictures. It comes from the same files as the lines of a report,
//! under the same rules: only files that the profile recorded as sources, as they were, and that the profile's owner may read.

use crate::FileSources;
use firsttouch_analysis::pictures::SourceExcerpt;
use firsttouch_analysis::{Analysis, CodeLocation, ObjectView};
use std::collections::{BTreeMap, BTreeSet};

/// Lines before and after a named line.
const RADIUS: usize = 6;
/// Headers of the system and the compiler are not the reader's code.
const SYSTEM: &str = "/usr/";
/// Objects without a finding whose lines are shown: those with the most accesses.
const MOST_OBJECTS: usize = 12;
/// Lines of code in all excerpts together.
const MOST_LINES: usize = 1500;
/// The longest line that is shown, characters.
const LONGEST: usize = 240;

/// The excerpts for the objects of findings and those with the most accesses, by file and line.
#[must_use]
pub(crate) fn excerpts(analysis: &Analysis, sources: &FileSources) -> Vec<SourceExcerpt> {
    let found: BTreeSet<i64> = analysis.findings.iter().flat_map(firsttouch_analysis::Finding::objects).collect();
    let (of_findings, others): (Vec<&ObjectView>, Vec<&ObjectView>) =
        analysis.objects.iter().partition(|object| found.contains(&object.id));
    let mut files: BTreeMap<String, BTreeMap<u32, String>> = BTreeMap::new();
    let mut count = 0;
    for place in of_findings.into_iter().chain(others.into_iter().take(MOST_OBJECTS)).flat_map(places) {
        let (Some(file), Some(line)) = (&place.file, place.line) else { continue };
        if file.starts_with(SYSTEM) {
            continue;
        }
        let lines = files.entry(file.clone()).or_default();
        if count >= MOST_LINES || lines.contains_key(&line) && lines.contains_key(&(line + 1)) {
            continue;
        }
        for (number, text) in sources.around(file, line, RADIUS) {
            count += usize::from(lines.insert(number, text.chars().take(LONGEST).collect()).is_none());
        }
    }
    files.retain(|_, lines| !lines.is_empty());
    files.into_iter().map(|(file, lines)| SourceExcerpt { file, lines: lines.into_iter().collect() }).collect()
}

/// The lines that allocate, touch and use an object.
fn places(object: &ObjectView) -> impl Iterator<Item = &CodeLocation> {
    object.allocated_at.iter().chain(&object.first_touch.at).chain(&object.used_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the lines around a named one are found, also at the ends of a file, and that hidden sources give none.
    #[test]
    fn lines_around() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.c");
        std::fs::write(&path, "one\n\ttwo\nthree\n").unwrap();
        let file = path.to_str().unwrap();
        let sources = FileSources::new(&[("kernels/k.c", "a\nb\nc\n")]);
        let shown = |file: &str, line, radius| sources.around(file, line, radius);
        assert_eq!(shown(file, 1, 1), [(1, "one".to_owned()), (2, "        two".to_owned())]);
        assert_eq!(shown(file, 3, 1), [(2, "        two".to_owned()), (3, "three".to_owned())]);
        assert_eq!((shown(file, 4, 1), shown("/no/such.c", 1, 1), shown("/x/kernels/k.c", 9, 1)), (vec![], vec![], vec![]));
        assert_eq!(shown("/x/kernels/k.c", 3, 1), [(2, "b".to_owned()), (3, "c".to_owned())]);
        assert!(FileSources::new(&[]).hidden().around(file, 1, 1).is_empty());
    }
}
