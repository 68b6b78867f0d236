//! Reads a profile once, and runs the stages on it.

use crate::excerpts::excerpts;
use crate::one_host;
use crate::unseekable::Readable;
use crate::{AnalysisRequest, ElfFiles, ErrorKind, FileSources, PipelineError, Result, is_pipe};
use firsttouch_analysis::pictures::{Pictures, SourceExcerpt, Wanted};
use firsttouch_analysis::{Analysis, Note, analyse, analyse_with_pictures};
use firsttouch_model::rows::metadata::Entry;
use firsttouch_model::rows::{Owner, Profile};
use firsttouch_plan::{Planned, Proposals, Recommendations, make, recommend};
use firsttouch_predict::forecast::{Decision, Forecast, ForecastError, ForecastMachine, ForecastOptions, choose, forecast};
use firsttouch_predict::machine::MachineModel;
use firsttouch_profile::Writer;
use firsttouch_profile::merge::{Found, find, is_directory};
use firsttouch_symbols::frames::symbolize_profile;
use std::cell::OnceCell;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// Whether a file is an SQLite database, which is the format of profiles. Reads nothing from a pipe. (For a directory with the
/// profiles of ranks, see [`is_directory_of_ranks`].)
#[must_use]
pub fn is_profile(path: &Path) -> bool {
    if is_pipe(path) {
        return false;
    }
    let mut start = [0; 16];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start == SQLITE
}

/// Whether a path is a directory with the profiles of the ranks of a job, which can take the place of a profile.
#[must_use]
pub fn is_directory_of_ranks(path: &Path) -> bool {
    is_directory(path) && find(&[path.to_owned()]).is_ok()
}

/// Reads a profile, or merges those of a directory, and adds lines to its frames if it has none.
///
/// # Errors
/// When the file is not a readable profile.
pub fn read_profile(path: &Path) -> Result<Profile> {
    read_by(path, firsttouch_profile::open)
}

/// Reads of a profile what a judgement needs.
fn read_to_judge(path: &Path) -> Result<Profile> {
    read_by(path, firsttouch_profile::open_to_judge)
}

fn read_by(path: &Path, open: fn(&Path) -> firsttouch_model::error::Result<Profile>) -> Result<Profile> {
    let cannot = |error: std::io::Error| match is_directory(path) {
        true => PipelineError::of(ErrorKind::Profile, error),
        false => PipelineError::because(ErrorKind::Profile, format!("cannot read {}", path.display()), error),
    };
    read(&Readable::profile(path).map_err(cannot)?, path, open)
}

/// `path`: how the user names it.
fn read(readable: &Readable, path: &Path, open: fn(&Path) -> firsttouch_model::error::Result<Profile>) -> Result<Profile> {
    let mut profile = open(readable.path()).map_err(|error| match readable.is_copy() {
        true => PipelineError::because(ErrorKind::Profile, format!("cannot use {}, which is a pipe", path.display()), error),
        false => PipelineError::of(ErrorKind::Profile, error),
    })?;
    if readable.is_copy() {
        profile.owner = Owner::Unknown;
    }
    if let Some(found) = readable.ranks() {
        note_empty_ranks(found, &mut profile);
    }
    symbolize_profile(&mut profile);
    profile.make_names_safe();
    Ok(profile)
}

/// Notes which ranks left nothing.
fn note_empty_ranks(found: &Found, profile: &mut Profile) {
    let names: Vec<String> = found.empty.iter().filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned())).collect();
    if !names.is_empty() {
        profile.meta.notes.push(format!("Nothing was recorded in: {}", names.join(", ")));
    }
}

/// A profile, its analysis on the requested machine, and the input of the later stages.
pub struct AnalysedProfile {
    pub profile: Profile,
    pub analysis: Analysis,
    /// What pictures show besides; `None` if it was not asked for.
    pub pictures: Option<Pictures>,
    /// The source code around the lines that the analysis names, if pictures were asked for.
    pub excerpts: Vec<SourceExcerpt>,
    /// The machine's numbers, if they are known.
    pub description: Option<MachineModel>,
    /// The requested machine and pinning, as options of a command.
    pub options: Vec<String>,
    /// The nodes of the machine, of a job on several hosts those of one.
    nodes: usize,
    /// The machine's nodes that have memory.
    memory_nodes: Vec<usize>,
    /// Whether the user gave a pinning.
    pin_was_named: bool,
    files: ElfFiles,
    machine: OnceCell<ForecastMachine>,
    forecast: OnceCell<std::result::Result<Forecast, ForecastError>>,
}

impl AnalysedProfile {
    /// Reads a profile and analyses it.
    ///
    /// # Errors
    /// When the file is not a readable profile, or the pinning does not fit its machine.
    pub fn open(path: &Path, request: &AnalysisRequest) -> Result<Self> {
        Self::new(read_to_judge(path)?, request)
    }

    /// As [`AnalysedProfile::open`] for a file that may be a copy of the one that the user names.
    pub(crate) fn open_readable(readable: &Readable, path: &Path, request: &AnalysisRequest) -> Result<Self> {
        Self::new(read(readable, path, firsttouch_profile::open_to_judge)?, request)
    }

    /// Analyses a profile that was just recorded. `recorded` is the recorder's copy of the file at `path`; without it, the file is read.
    /// `cut`: why rows are missing in it, also if the file could not even take this.
    /// The names of variables are stored in the profile, because sources may change later. Failing to store them is not an error.
    ///
    /// # Errors
    /// As [`AnalysedProfile::open`].
    pub fn of_recording(recorded: Option<Profile>, cut: Option<&str>, path: &Path, request: &AnalysisRequest) -> Result<Self> {
        let mut profile = match recorded {
            Some(mut recorded) => {
                firsttouch_profile::thin(&mut recorded);
                recorded
            }
            None => read_to_judge(path)?,
        };
        if profile.meta.write_failure.is_none() {
            profile.meta.write_failure = cut.map(str::to_owned);
        }
        let analysed = Self::new(profile, request)?;
        let variables = &analysed.analysis.variables;
        if !variables.is_empty() {
            let _ = Writer::reopen(path).and_then(|writer| {
                writer.meta(Entry::Variables(variables))?;
                writer.finish()
            });
        }
        Ok(analysed)
    }

    /// Analyses a profile.
    ///
    /// # Errors
    /// When the pinning does not fit its machine, or the machine's description cannot be used.
    pub fn new(mut profile: Profile, request: &AnalysisRequest) -> Result<Self> {
        // The recorder's copy has the program's own names.
        profile.make_names_safe();
        let target = request.target_of(&profile)?;
        let mut sources = FileSources::new(firsttouch_native::SOURCES);
        if let Some(start) = profile.meta.start_unix_s {
            // The start is known only to the second.
            sources = sources.until(SystemTime::UNIX_EPOCH + Duration::from_secs(start.saturating_add(1).min(u64::from(u32::MAX))));
        }
        sources = sources.of(&profile);
        if !request.source_roots.is_empty() {
            sources = sources.found_in(request.source_roots.clone());
        }
        if request.hides_source {
            sources = sources.hidden();
        }
        let (mut analysis, pictures) = match request.pictures {
            Some(wanted) => {
                let (analysis, pictures) = analyse_with_pictures(&profile, &target, &sources, wanted);
                (analysis, Some(pictures))
            }
            None => (analyse(&profile, &target, &sources), None),
        };
        let excerpts = if request.pictures == Some(Wanted::Pictures) { excerpts(&analysis, &sources) } else { Vec::new() };
        analysis.notes.extend(sources.notes());
        let mut nodes = analysis.machine.nodes;
        if let Some((host, traffic)) = one_host::slowest(&analysis) {
            nodes = analysis.hosts[host].nodes;
            analysis.notes.push(Note::OneHost(analysis.hosts[host].name.clone()));
            analysis.traffic = traffic;
        }
        Ok(Self {
            description: request.description(&profile.machine)?,
            memory_nodes: if analysis.hosts.len() > 1 { (0..nodes).collect() } else { request.memory_nodes(&profile.machine, &target) },
            nodes,
            pin_was_named: request.names_pin(),
            options: request.options().to_vec(),
            files: ElfFiles::default(),
            machine: OnceCell::new(),
            forecast: OnceCell::new(),
            analysis,
            pictures,
            excerpts,
            profile,
        })
    }

    /// The number of nodes of the machine that the profile was taken on.
    #[must_use]
    pub fn recorded_nodes(&self) -> usize {
        self.profile.machine.node_cpus.len()
    }

    /// The forecast for a report: only if the machine's numbers are known and the evidence is enough for a prediction.
    ///
    /// # Errors
    /// When the model fails.
    pub fn report_forecast(&self) -> Result<Option<&Forecast>> {
        if self.description.is_none() {
            return Ok(None);
        }
        let machine = self.machine()?;
        match self.forecast_from(machine, &self.proposals(machine)) {
            Ok(forecast) => Ok(Some(forecast)),
            Err(ForecastError::NotPredictable(_)) => Ok(None),
            Err(error) => Err(PipelineError::of(ErrorKind::Forecast, error.clone())),
        }
    }

    /// The cost of each placement on the machine, or on a machine of equal nodes if only the number of nodes is known.
    ///
    /// # Errors
    /// When the evidence is not enough for a prediction.
    pub fn predict(&self, options: ForecastOptions) -> Result<Forecast> {
        let machine = self.machine()?;
        self.compute(machine, &self.proposals(machine), options).map_err(|error| PipelineError::of(ErrorKind::Forecast, error))
    }

    /// A plan with a policy for each object of a finding, unless the policy is predicted to cost time. `made_from` is the name of the
    /// profile.
    ///
    /// # Errors
    /// When the model fails.
    pub fn plan(&self, made_from: &str) -> Result<Planned> {
        let machine = self.machine()?;
        let proposals = self.proposals(machine);
        make(&self.profile, &self.analysis, &proposals, self.forecast_from(machine, &proposals), made_from)
            .map_err(|error| PipelineError::of(ErrorKind::Forecast, error))
    }

    /// What to do about each finding, in the source and by a plan. Gains have intervals if the machine's numbers are known; else they are only
    /// chosen by, because intervals cost several times as much as the rest of a report.
    ///
    /// # Errors
    /// When the model fails.
    pub fn recommendations(&self) -> Result<Recommendations> {
        let machine = self.machine()?;
        let proposals = self.proposals(machine);
        let has_forecast = self.description.is_some() || self.forecast.get().is_some();
        let decision: std::result::Result<Decision, ForecastError> = if has_forecast {
            self.forecast_from(machine, &proposals).map(|forecast| forecast.decision.clone()).map_err(Clone::clone)
        } else {
            choose(&self.analysis.traffic, machine, &proposals.candidates(), &self.analysis.remedies(), ForecastOptions::default())
        };
        let decision = match &decision {
            Ok(decision) => Ok(decision),
            Err(ForecastError::NotPredictable(why)) => Err(why.to_string()),
            Err(error) => return Err(PipelineError::of(ErrorKind::Forecast, error.clone())),
        };
        Ok(recommend(&self.analysis, &proposals, decision))
    }

    fn proposals(&self, machine: &ForecastMachine) -> Proposals<'_> {
        Proposals::new(&self.profile, &self.analysis, machine, self.pin_was_named, &self.files)
    }

    fn compute(
        &self,
        machine: &ForecastMachine,
        proposals: &Proposals<'_>,
        options: ForecastOptions,
    ) -> std::result::Result<Forecast, ForecastError> {
        forecast(&self.analysis.traffic, machine, &proposals.candidates(), &self.analysis.remedies(), options)
    }

    /// Computes the forecast on the first call.
    fn forecast_from(&self, machine: &ForecastMachine, proposals: &Proposals<'_>) -> std::result::Result<&Forecast, &ForecastError> {
        self.forecast.get_or_init(|| self.compute(machine, proposals, ForecastOptions::default())).as_ref()
    }

    /// The machine to compute with: the described one, else one of equal nodes.
    fn machine(&self) -> Result<&ForecastMachine> {
        if let Some(machine) = self.machine.get() {
            return Ok(machine);
        }
        let nodes = self.memory_nodes.clone();
        let machine = match &self.description {
            Some(machine) => ForecastMachine::described(machine.clone(), nodes),
            None => ForecastMachine::assumed(&self.analysis.machine.name, self.nodes, &self.analysis.traffic, nodes)
                .map_err(|error| PipelineError::of(ErrorKind::Machine, error))?,
        };
        Ok(self.machine.get_or_init(|| machine))
    }
}
