//! A recorder: a firsttouch process that attaches to a process, or starts one, and writes a profile; and the reader of that profile. It is a process
//! of its own so that nothing that goes wrong with it touches the view, and because the writer of a profile must not read it.

use firsttouch_model::rows::Profile;
use firsttouch_profile::LiveReader;
use firsttouch_system::calls::clock::monotonic_ns;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The words of the command that records: `PROGRAM ARGUMENTS... --output FILE --period-us N (--pid PID --parent PID | -- COMMAND...)`.
#[derive(Clone, Debug)]
pub struct RecorderCommand {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

/// A program that the recorder starts.
#[derive(Clone, Debug)]
pub struct Launch {
    pub command: Vec<OsString>,
    /// The file that gets its standard output and error; `None` throws them away.
    pub output: Option<PathBuf>,
}

/// What is recorded.
pub enum Recorded<'a> {
    Process(i32),
    Program(&'a Launch),
    /// A program that keeps the streams of this process.
    Foreground(&'a [OsString]),
}

pub struct Recorder {
    child: Child,
    /// Whether its end would leave a program unobserved that it started: it is not killed.
    is_launcher: bool,
    profile_file: PathBuf,
    messages: PathBuf,
    reader: Option<LiveReader>,
    /// The rows so far; old samples are dropped.
    pub profile: Profile,
    pub started_ns: u64,
    /// Why its profile cannot be read.
    pub failure: Option<String>,
}

impl Recorder {
    /// Starts it. `stem`: the path of its files, without their endings.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &RecorderCommand, recorded: &Recorded<'_>, period_us: u64, stem: &Path) -> io::Result<Self> {
        let (profile_file, messages) = (stem.with_extension("ftp"), stem.with_extension("txt"));
        let mut process = Command::new(&command.program);
        process.args(&command.arguments).arg("--output").arg(&profile_file).arg("--period-us").arg(period_us.to_string());
        match recorded {
            Recorded::Process(pid) => {
                process
                    .stdin(Stdio::null())
                    .args(["--pid", &pid.to_string(), "--parent", &std::process::id().to_string()])
                    .stdout(Stdio::null())
                    .stderr(File::create(&messages)?);
            }
            Recorded::Program(launch) => {
                let output = || match &launch.output {
                    Some(path) => File::options().append(true).create(true).open(path).map(Stdio::from),
                    None => Ok(Stdio::null()),
                };
                process.stdin(Stdio::null()).arg("--").args(&launch.command).stdout(output()?).stderr(output()?);
            }
            Recorded::Foreground(words) => {
                process.arg("--").args(*words);
            }
        }
        Ok(Self {
            child: process.spawn()?,
            is_launcher: !matches!(recorded, Recorded::Process(_)),
            profile_file,
            messages,
            reader: None,
            profile: Profile::default(),
            started_ns: monotonic_ns(),
            failure: None,
        })
    }

    #[must_use]
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Its status, once it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// What it said when it failed.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.messages).ok()?;
        let line = text.lines().find(|line| line.contains("error:"))?;
        Some(line.trim_start_matches("firsttouch: ").trim_start_matches("error: ").to_owned())
    }

    /// Brings the rows up to date. Returns whether there are new ones.
    pub fn refresh(&mut self, oldest_ns: u64) -> bool {
        if self.failure.is_some() {
            return false;
        }
        match self.read(oldest_ns) {
            Ok(changed) => changed,
            Err(why) => {
                self.failure = Some(why);
                false
            }
        }
    }

    fn read(&mut self, oldest_ns: u64) -> Result<bool, String> {
        let text = |error: firsttouch_model::Error| format!("{error:#}");
        if self.reader.is_none() && self.profile_file.exists() {
            self.reader = LiveReader::open(&self.profile_file).map_err(text)?;
        }
        let Some(reader) = &mut self.reader else { return Ok(false) };
        if !reader.refresh(&mut self.profile).map_err(text)? {
            return Ok(false);
        }
        let old = self.profile.samples.partition_point(|sample| sample.time_ns < oldest_ns);
        self.profile.samples.drain(..old);
        let first = self.profile.samples.first().map_or(i64::MAX, |sample| sample.id);
        let old = self.profile.sampled_accesses.partition_point(|access| access.sample < first);
        self.profile.sampled_accesses.drain(..old);
        self.profile.make_names_safe();
        Ok(true)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.is_launcher {
            return;
        }
        // It only observes: the kernel closes its events.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for end in ["", "-wal", "-shm", "-journal"] {
            let mut path = self.profile_file.clone().into_os_string();
            path.push(end);
            let _ = std::fs::remove_file(path);
        }
        let _ = std::fs::remove_file(&self.messages);
    }
}
