//! The machine and the pinning that the user asks for.

use crate::pinnable_nodes::PinnableNodes;
use crate::requested_pin::RequestedPin;
use crate::{ErrorKind, PipelineError, RequestedMachine, Result, SourceRoot};
use firsttouch_analysis::pictures::Wanted;
use firsttouch_analysis::{Distribution, RankLayout};

/// The requested machine and pinning. The defaults are the profile's own machine (two virtual nodes if it has one node), and the default
/// pinning of the threads that did something.
#[derive(Default)]
pub struct AnalysisRequest {
    pub(crate) machine: Option<RequestedMachine>,
    pub(crate) pin: Option<RequestedPin>,
    /// Whether threads that did nothing take places too.
    pub(crate) place_all_threads: bool,
    /// Where the ranks of a job are.
    pub(crate) ranks: RankLayout,
    /// Whether the lines of source files are left out.
    pub(crate) hides_source: bool,
    /// Folders in which source files are looked for first.
    pub(crate) source_roots: Vec<SourceRoot>,
    /// What to compute for pictures, if anything.
    pub(crate) pictures: Option<Wanted>,
    options: Vec<String>,
}

impl AnalysisRequest {
    /// # Errors
    /// When the machine or the pinning is invalid, or they do not fit each other: a usage error. When a file with the machine cannot be used.
    pub fn parse(machine: Option<&str>, pin: Option<&str>) -> Result<Self> {
        let given = [("--machine", machine), ("--pin", pin)];
        let options = given.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?.to_owned()])).flatten().collect();
        let machine = machine.map(RequestedMachine::parse).transpose()?;
        let text = pin.unwrap_or_default();
        let pin = pin.map(RequestedPin::parse).transpose()?;
        if let (Some(machine), Some(pin)) = (&machine, pin.as_ref().and_then(RequestedPin::fixed)) {
            let seats = PinnableNodes::of(&machine.nodes);
            seats.map_or(Ok(()), |seats| seats.check(pin)).map_err(|reason| refused(format!("cannot use --pin '{text}': {reason}")))?;
        }
        Ok(Self { machine, pin, options, ..Self::default() })
    }

    /// Gives every thread a place, and spreads each process by itself.
    #[must_use]
    pub fn placing_all_threads(mut self) -> Self {
        self.place_all_threads = true;
        self.options.push("--place-all-threads".to_owned());
        self
    }

    /// Puts so many ranks of a job on each node, and ranks in this order, on a virtual machine.
    #[must_use]
    pub fn placing_ranks(mut self, per_node: Option<u32>, distribution: Option<Distribution>) -> Self {
        let per_node = per_node.map(|ranks| ranks as usize);
        let order = distribution.map(|distribution| if distribution == Distribution::Cyclic { "cyclic" } else { "block" });
        let words = [("--ranks-per-node", per_node.map(|ranks| ranks.to_string())), ("--distribution", order.map(str::to_owned))];
        self.options.extend(words.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten());
        self.ranks = RankLayout { per_node, distribution, hosts: Vec::new() };
        self
    }

    /// Leaves out the lines of source files.
    #[must_use]
    pub fn hiding_source(self) -> Self {
        Self { hides_source: true, ..self }
    }

    /// Computes what pictures show besides: finer maps, the run over time, and excerpts of source files.
    #[must_use]
    pub fn with_pictures(self) -> Self {
        Self { pictures: Some(Wanted::Pictures), ..self }
    }

    /// Keeps the samples one by one, for the formats of other tools.
    #[must_use]
    pub fn with_samples(self) -> Self {
        Self { pictures: Some(Wanted::Samples), ..self }
    }

    /// Looks for source files in these folders first (`--source-root`).
    ///
    /// # Errors
    /// When one is not a folder.
    pub fn with_sources_in(self, roots: &[String]) -> Result<Self> {
        Ok(Self { source_roots: roots.iter().map(|root| SourceRoot::parse(root)).collect::<Result<_>>()?, ..self })
    }

    /// The request as options of a command.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.options
    }

    #[must_use]
    pub fn names_pin(&self) -> bool {
        self.pin.is_some()
    }

    /// Whether the requested machine is one of which only the nodes are known.
    #[must_use]
    pub fn names_only_nodes(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.description.is_none())
    }
}

pub(crate) fn refused(message: String) -> PipelineError {
    PipelineError::new(ErrorKind::Request, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(machine: Option<&str>, pin: Option<&str>) -> Result<AnalysisRequest> {
        AnalysisRequest::parse(machine, pin)
    }

    /// Check that a wrong machine or pinning is refused, and that the error names it.
    #[test]
    fn refusals_name_the_cause() {
        for (machine, pin, message) in [
            (Some("virtual:65"), None, "cannot use machine 'virtual:65': virtual machines have 1 to 64 nodes"),
            (None, Some("nodes:0,x"), "cannot use --pin 'nodes:0,x': expected a number, found 'x' at character 9"),
            (Some("virtual:2"), Some("nodes:0,7"), "cannot use --pin 'nodes:0,7': node 7 does not exist: the machine has nodes 0-1"),
        ] {
            assert_eq!(request(machine, pin).err().unwrap().to_string(), message);
        }
    }
}
