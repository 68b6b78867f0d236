//! What is predicted for a program, and what that rests on.

use super::{Caps, Found, Predicted};
use crate::error::ModelError;
use crate::machine::Machine;

/// A comparison of placements.
pub struct Forecast {
    pub machine: Machine,
    /// Only the machine's nodes are known; its bandwidths are those of a median machine.
    pub is_assumed: bool,
    pub placements: Vec<Predicted>,
    pub error: ModelError,
    pub caps: Caps,
    pub write_share: f64,
    pub is_dynamic: bool,
    /// Threads that move anything at the same time.
    pub team: usize,
    /// Part of the traffic that flows while one thread works alone.
    pub serial: f64,
    /// Part of the traffic whose node is not known.
    pub unknown: f64,
    /// Names of objects whose users' shares were taken as equal.
    pub evened: Vec<String>,
    /// What the search through all combinations did, where it was asked for.
    pub found: Option<Found>,
}

impl Forecast {
    /// What was taken for true without evidence, a sentence each.
    #[must_use]
    pub fn assumptions(&self) -> Vec<String> {
        let percent = |part: f64| format!("{:.0} %", 100.0 * part);
        let mut list = Vec::new();
        if self.is_assumed {
            list.push(format!(
                "Of {} only the nodes are known: its controllers, cores and links compare as on the median machine of the catalogue, and \
                 every node has a link to every other.",
                self.machine.name
            ));
        }
        let assumed: Vec<&str> =
            self.machine.facts.iter().filter(|fact| fact.source.starts_with("assumed")).map(|fact| fact.what.as_str()).collect();
        if !self.is_assumed && !assumed.is_empty() {
            list.push(format!(
                "Of {} these numbers are assumed: {} (`firsttouch machines show` says how).",
                self.machine.name,
                assumed.join(", ")
            ));
        }
        list.push("Every access to a watched word moves 8 bytes of memory: what shared caches and reuse save is not seen.".to_owned());
        list.push(format!("{} of the traffic is written (--writes).", percent(self.write_share)));
        list.push(match self.caps {
            Caps::Recorded => "Threads compute as fast as when they were recorded, in CPU time: they moved far less than this machine's \
                               memory delivers (--caps)."
                .to_owned(),
            Caps::Auto | Caps::Machine => {
                "Threads wait for memory only: a core draws what the machine's description says (--caps).".to_owned()
            }
        });
        list.push(match self.is_dynamic {
            true => {
                "What no thread owns, which is most of the traffic, goes to whoever is free; parts with an owner stay that thread's work."
                    .to_owned()
            }
            false => "Threads work at the same time, each on its own part; the last to end ends all.".to_owned(),
        });
        if self.serial > 0.0 {
            list.push(format!(
                "{} of the traffic flows while one thread works alone (outside of parallel regions, or before there were other threads): it takes \
                 its own time, and stays serial wherever pages lie.",
                percent(self.serial)
            ));
        }
        if !self.evened.is_empty() {
            list.push(format!("Threads use equal parts of {}: their shares do not differ beyond chance.", self.evened.join(", ")));
        }
        if self.unknown > 0.005 {
            list.push(format!("{} of the traffic lies on pages of unknown nodes, and is left out.", percent(self.unknown)));
        }
        if let Some(found) = &self.found {
            list.push(format!(
                "The best combination is that of {} computed: the {} objects with most traffic in every placement, each by itself; others as the plan \
                 has them.",
                found.tried, found.objects
            ));
        }
        list
    }
}
