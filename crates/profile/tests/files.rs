use firsttouch_model::ErrorKind;
use firsttouch_model::rows::metadata::Entry;
use firsttouch_profile::{Writer, open};
use std::fs;

/// Check that the error for each kind of file that is not a profile has a kind, and says what the file is.
#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    let missing = open(&path).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(format!("{missing:#}").contains("No such file"), "{missing:#}");
    assert_eq!(open(folder.path()).unwrap_err().kind(), ErrorKind::InvalidInput);
    for contents in ["", "text", "SQLite format 3"] {
        fs::write(&path, contents).unwrap();
        let error = open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{contents}");
        assert!(error.to_string().contains("it is not a firsttouch profile"), "{error}");
    }
    // A file of the user is never overwritten.
    let refused = Writer::create(&path).err().unwrap();
    assert!(refused.to_string().ends_with("move it away or name another with -o"), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "SQLite format 3");
}

/// Check that a profile cut off anywhere is an error or is read, and never a panic.
#[test]
fn truncated_profiles() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    Writer::create(&path).unwrap().finish().unwrap();
    let whole = fs::read(&path).unwrap();
    for cut in (0..whole.len()).step_by(whole.len() / 40 + 1) {
        fs::write(&path, &whole[..cut]).unwrap();
        if let Err(error) = open(&path) {
            assert!(error.to_string().starts_with("cannot "), "{cut}: {error}");
        }
    }
}

/// Check that an older profile is restored if the new one is not kept.
#[test]
fn an_older_profile_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    let written = |exit_code| {
        let writer = Writer::create(&path).unwrap();
        writer.meta(Entry::ExitCode(exit_code)).unwrap();
        writer
    };
    written(1).finish().unwrap();
    written(2).withdraw();
    assert_eq!(open(&path).unwrap().meta.exit_code, Some(1));
    let mut newer = written(3);
    newer.keep();
    newer.finish().unwrap();
    assert_eq!(open(&path).unwrap().meta.exit_code, Some(3));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}
