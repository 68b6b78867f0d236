//! `firsttouch balancing`: its state, its tunables, and its effect on a command.

use super::{Lines, row};
use crate::text::Style;
use crate::text::words::thousands;
use crate::topology::table::Align::{Left, Right};
use firsttouch_model::system::{Balancing, LEAST_RUNS, Measured, Spread, are_apart};
use serde::Serialize;

/// The JSON of `firsttouch balancing` and its `on` and `off`.
#[derive(Serialize)]
pub struct BalancingJson<'a> {
    pub schema: &'static str,
    #[serde(flatten)]
    pub balancing: &'a Balancing,
}

impl<'a> BalancingJson<'a> {
    #[must_use]
    pub fn new(balancing: &'a Balancing) -> Self {
        Self { schema: "firsttouch.balancing/1", balancing }
    }
}

/// The JSON of `firsttouch balancing measure`.
#[derive(Serialize)]
pub struct MeasuredJson<'a> {
    pub schema: &'static str,
    pub command: &'a [String],
    pub nodes: usize,
    pub measured: &'a [Measured],
    /// Median time on / median time off.
    pub time_ratio: Option<f64>,
    /// Whether there are enough runs, and every run in one state was faster than every run in the other.
    pub separated: bool,
}

impl<'a> MeasuredJson<'a> {
    #[must_use]
    pub fn new(command: &'a [String], nodes: usize, measured: &'a [Measured; 2]) -> Self {
        let (ratio, separated) = compared(measured);
        Self { schema: "firsttouch.balancing-measure/1", command, nodes, measured, time_ratio: ratio, separated }
    }
}

/// The median time with balancing on over that with balancing off, and whether the times differ significantly: enough runs, in disjoint
/// ranges.
fn compared([on, off]: &[Measured; 2]) -> (Option<f64>, bool) {
    let ratio = (off.wall_s.median > 0.0).then(|| on.wall_s.median / off.wall_s.median);
    let times = |state: &Measured| state.runs.iter().map(|run| run.wall_s).collect::<Vec<f64>>();
    (ratio, are_apart(&times(on), &times(off)))
}

/// The state and the tunables as text.
#[must_use]
pub fn balancing_text(balancing: &Balancing, style: Style) -> String {
    let mut out = Lines::new(style);
    out.sentence(&match balancing.value {
        None if balancing.state == "unknown" => {
            "Whether NUMA balancing is on is not known: /proc/sys is not there (a chroot or container without /proc).".to_owned()
        }
        None => {
            "NUMA balancing is unavailable: this kernel does not have it (CONFIG_NUMA_BALANCING), or hides /proc/sys/kernel/numa_balancing."
                .to_owned()
        }
        Some(value) => format!("NUMA balancing is {} (kernel.numa_balancing = {value}).", balancing.state),
    });
    if balancing.nodes == 1 {
        out.sentence("There is one node: no page can be moved, and balancing can only cost time.");
    }
    if !balancing.tunables.is_empty() {
        out.gap();
        let mut rows = vec![row(["tunable", "value", "meaning"])];
        rows.extend(balancing.tunables.iter().map(|tunable| vec![tunable.name.clone(), thousands(tunable.value), tunable.meaning.clone()]));
        out.table(&rows, &[Left, Right, Left]);
    }
    out.doubts(&balancing.doubts);
    out.text()
}

/// The measurements as text.
#[must_use]
pub fn measured_text(command: &[String], nodes: usize, measured: &[Measured; 2], style: Style) -> String {
    let mut out = Lines::new(style);
    let name = command.first().map_or("the command", String::as_str);
    let runs = measured[0].runs.len();
    out.sentence(&format!("{name}, {runs} runs each with NUMA balancing on and off in turn: median [least, most]."));
    out.gap();
    let mut rows = vec![row(["balancing", "time, s", "hint faults", "of them local", "pages migrated"])];
    for state in measured {
        rows.push(vec![
            state.balancing.clone(),
            seconds(state.wall_s),
            counts(state.hint_faults),
            counts(state.hint_faults_local),
            counts(state.pages_migrated),
        ]);
    }
    out.table(&rows, &[Left, Left, Left, Left, Left]);
    out.gap();
    out.sentence(&verdict(measured));
    out.sentence("Hint faults and migrated pages are those of the whole machine, including other programs.");
    if nodes == 1 {
        out.sentence("There is one node: no page can be moved, so only the cost of balancing is measured.");
    }
    out.text()
}

fn verdict(measured: &[Measured; 2]) -> String {
    let (Some(ratio), separated) = compared(measured) else { return "Nothing was timed.".to_owned() };
    let change = 100.0 * (ratio - 1.0);
    let word = if change >= 0.0 { "longer" } else { "shorter" };
    let runs = measured[0].runs.len();
    if runs < LEAST_RUNS {
        format!("Too few runs for a verdict: {LEAST_RUNS} of each are needed (medians: {:.1} % {word} with balancing on).", change.abs())
    } else if separated {
        format!("With balancing on it takes {:.1} % {word}; the times of the two states do not overlap.", change.abs())
    } else {
        format!(
            "No difference shown: the times overlap (medians: {:.1} % {word} with balancing on). More --rounds may show one.",
            change.abs()
        )
    }
}

fn seconds(spread: Spread) -> String {
    format!("{:.3} [{:.3}, {:.3}]", spread.median, spread.min, spread.max)
}

fn counts(spread: Spread) -> String {
    // Counters are whole numbers; the median of two may end in .5.
    let word = |value: f64| thousands(value.round() as u64);
    format!("{} [{}, {}]", word(spread.median), word(spread.min), word(spread.max))
}
