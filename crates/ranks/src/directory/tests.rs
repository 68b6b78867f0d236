use super::*;
use std::sync::Barrier;

fn started(rank: u32, host: &str) -> Started {
    let this = Process::this(Path::new("/"));
    let place = RankPlace { rank, size: 8, launcher: "Open MPI".to_owned(), ..RankPlace::default() };
    Started { process: Process { host: host.to_owned(), ..this }, place: Some(place), recorded: None }
}

fn seen(directory: &Path) -> Vec<Recorder> {
    recorders(directory, Path::new("/"), &Process::this(Path::new("/"))).unwrap()
}

/// Check that ranks of several jobs that begin at the same time, on two hosts, among old directories and other files, find one directory a job, that no
/// two have one file, and that of each job one rank merges, when all have ended.
#[test]
fn ranks_that_race_find_their_job() {
    for round in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("solver.ftp.d");
        if round % 2 == 0 {
            join(&name, "an old job", &started(0, "a")).unwrap();
            fs::create_dir(folder.path().join("solver.2.ftp.d")).unwrap();
            fs::write(folder.path().join("solver.2.ftp.d/notes"), "mine").unwrap();
            fs::write(folder.path().join("solver.3.ftp.d"), "a file").unwrap();
        }
        let barrier = Barrier::new(24);
        let found: Vec<(usize, PathBuf, PathBuf, bool)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..24)
                .map(|number| {
                    let (name, barrier) = (&name, &barrier);
                    scope.spawn(move || {
                        let started = started(number / 3, ["a", "b"][number as usize % 2]);
                        let job = number as usize % 3;
                        barrier.wait();
                        let seat = join(name, &format!("job {job}"), &started).unwrap();
                        barrier.wait();
                        seat.end(&Ended::default()).unwrap();
                        let is_last = is_complete(&seen(&seat.directory)) && may_merge(&seat.directory, &started.process);
                        (job, seat.directory.clone(), seat.profile(), is_last)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let files: BTreeSet<&PathBuf> = found.iter().map(|one| &one.2).collect();
        assert_eq!(files.len(), 24);
        for job in 0..3 {
            let ranks: Vec<_> = found.iter().filter(|one| one.0 == job).collect();
            assert!(ranks.iter().all(|one| one.1 == ranks[0].1), "{ranks:?}");
            assert_eq!(ranks.iter().filter(|one| one.3).count(), 1, "{ranks:?}");
            assert_eq!(names(&ranks[0].1).unwrap().iter().filter(|name| name.starts_with("job")).count(), 1);
        }
        assert!(!folder.path().join("solver.2.ftp.d/job").exists() || round % 2 == 1);
    }
}

/// Check that a rank that runs a second program goes to a directory of its own, which the other ranks find as well, and to none that is merged.
#[test]
fn a_second_program_has_another_directory() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("x.ftp.d");
    let at = |rank| join(&name, "job", &started(rank, "a")).unwrap().directory;
    assert_eq!([at(0), at(1)], [name.clone(), name.clone()]);
    let second = folder.path().join("x.2.ftp.d");
    assert_eq!([at(1), at(0)], [second.clone(), second.clone()]);
    assert!(may_merge(&second, &started(0, "a").process));
    assert_eq!(at(5), name);
    fs::write(name.join("merged-by"), "").unwrap();
    assert_eq!(at(6), folder.path().join("x.3.ftp.d"));
}

/// Check what is known of ranks that ended, died, run here or elsewhere, and never began.
#[test]
fn ranks_have_states() {
    let folder = tempfile::tempdir().unwrap();
    let directory = make(&folder.path().join("x.ftp.d"), "job", &Process::this(Path::new("/"))).unwrap();
    let sit = |started: &Started| join_existing(&directory, started).unwrap();
    let killed = Ended { exit_code: 137, signal: Some(9), ..Ended::default() };
    sit(&started(2, "a")).end(&killed).unwrap();
    let mut gone = started(0, "a");
    gone.process.start += 1;
    sit(&gone);
    sit(&started(5, "a"));
    let mut elsewhere = started(4, "b");
    elsewhere.process.numbers = "another host".to_owned();
    sit(&elsewhere);
    let again = sit(&started(2, "a"));
    assert_eq!(again.profile(), directory.join("rank-2.2.ftp"));
    let helper = sit(&Started { place: None, ..started(0, "node-7") });
    assert!(helper.profile().file_name().unwrap().to_string_lossy().starts_with("rank-unknown-node-7-"));
    let found = seen(&directory);
    let states: Vec<(&str, &State)> = found.iter().map(|one| (one.label.as_str(), &one.state)).collect();
    assert_eq!(states[..4], [("0", &State::Died), ("2", &State::Ended(killed)), ("2.2", &State::Runs), ("4", &State::Runs)]);
    assert_eq!(missing(&found), [1, 3, 6, 7]);
    assert!(!is_complete(&found));
    let some = Recorder { started: Started { recorded: Some(vec![2, 3, 9]), ..started(2, "a") }, state: State::Died, ..found[1].clone() };
    assert_eq!(missing(std::slice::from_ref(&some)), [3]);
    assert_eq!(missing(&[]), [0; 0]);
}

/// Check that a recorder that gives up leaves nothing behind, and that a file which is half written is no state.
#[test]
fn recorders_give_up() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("ranks");
    let [one, other] = [0, 1].map(|rank| join(&name, "job", &started(rank, "a")).unwrap());
    fs::write(name.join("started-3"), "{\"proc").unwrap();
    assert!(seen(&name).iter().any(|one| one.label == "3" && one.state == State::Runs));
    fs::remove_file(name.join("started-3")).unwrap();
    one.leave();
    assert!(name.exists());
    other.leave();
    assert!(!name.exists());
    assert_eq!(numbered(&name, 2), folder.path().join("ranks.2"));
}
