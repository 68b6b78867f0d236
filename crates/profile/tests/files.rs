use firsttouch_model::ErrorKind;
use firsttouch_model::rows::metadata::Entry;
use firsttouch_profile::{Output, Writer, open};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Writes a profile with this exit status, and leaves it open.
fn written(output: &Output, exit_code: i32) -> firsttouch_model::error::Result<Writer> {
    let mut writer = Writer::create_at(output)?;
    writer.meta(Entry::ExitCode(exit_code)).unwrap();
    writer.flush().unwrap();
    Ok(writer)
}

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

/// Check that many runs that start at once with one name leave one profile, whether they go on or withdraw, and nothing else.
#[test]
fn runs_that_start_at_once_leave_one_profile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    let output = Output::File(path.clone());
    written(&output, 0).unwrap().finish().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let output = &output;
            scope.spawn(move || {
                for round in 0..100 {
                    match written(output, 1000 * thread + round) {
                        Ok(writer) if round % 3 != 0 => writer.withdraw(),
                        Ok(mut writer) => {
                            writer.keep();
                            writer.finish().unwrap();
                        }
                        Err(error) => assert!(error.to_string().contains("another firsttouch is writing it"), "{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(names(folder.path()), ["p.ftp"]);
    let last = open(&path).unwrap().meta.exit_code.unwrap();
    assert!(last % 1000 % 3 == 0, "{last} withdrew");
}

/// Check that a run that withdraws replaces no profile that was created since, and loses no older one.
#[test]
fn withdrawing_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    let output = Output::File(path.clone());
    written(&output, 1).unwrap().finish().unwrap();
    let second = written(&output, 2).unwrap();
    // The user removes it while it is written.
    ["p.ftp", "p.ftp-wal", "p.ftp-shm"].iter().for_each(|name| fs::remove_file(folder.path().join(name)).unwrap());
    let third = written(&output, 3).unwrap();
    second.withdraw();
    third.finish().unwrap();
    assert_eq!(open(&path).unwrap().meta.exit_code, Some(3));
    assert_eq!(names(folder.path()), ["p.ftp", "p.ftp.1"]);
    assert_eq!(open(&folder.path().join("p.ftp.1")).unwrap().meta.exit_code, Some(1));
}

/// Check that the last records of a killed run are kept with its profile, also where they cannot be merged into it.
#[test]
fn an_unmerged_log_goes_with_its_profile() {
    let folder = tempfile::tempdir().unwrap();
    let [path, killed] = ["p.ftp", "killed"].map(|name| folder.path().join(name));
    let running = written(&Output::File(killed.clone()), 7).unwrap();
    for suffix in ["", "-wal"] {
        fs::copy(killed.with_file_name(format!("killed{suffix}")), path.with_file_name(format!("p.ftp{suffix}"))).unwrap();
    }
    running.withdraw();
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM meta;").unwrap();
    let output = Output::Default { name: OsString::from("p"), folders: vec![folder.path().to_owned()] };
    let next = written(&output, 8).unwrap();
    assert!(names(folder.path()).contains(&"p.ftp.1-wal".to_owned()), "{:?}", names(folder.path()));
    drop(reader);
    next.finish().unwrap();
    assert_eq!(open(&folder.path().join("p.ftp.1")).unwrap().meta.exit_code, Some(7));
    assert_eq!(open(&path).unwrap().meta.exit_code, Some(8));
}

/// Check that a profile that could not be written to its end keeps the rows of earlier flushes, says why and what is missing, and is one file.
#[test]
fn abandoned_profiles_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ftp");
    let writer = written(&Output::File(path.clone()), 7).unwrap();
    writer.meta(Entry::EndNs(9)).unwrap();
    let abandoned = writer.abandon("disk is full");
    let half = open(&path).unwrap().meta;
    assert_eq!((half.write_failure.as_deref(), half.missing_rows), (Some("disk is full"), 0));
    abandoned.finish(3);
    let meta = open(&path).unwrap().meta;
    assert_eq!((meta.exit_code, meta.end_ns, meta.missing_rows), (Some(7), None, 3));
    assert_eq!(names(folder.path()), ["p.ftp"]);
}
