//! Tunes one process: from what is seen of it to what is moved.

use crate::budget::Budget;
use crate::carry::Carrier;
use crate::decide::{Circumstances, Decision, Held, decide, usual_nodes, wandering};
use crate::outcome::Remote;
use crate::pattern::Pattern;
use crate::segments::{Target, segments, taken_over};
use crate::uses::{ObjectUses, Use};
use crate::worth::Distances;
use firsttouch_placement::move_pages::Mover;
use std::collections::BTreeMap;
use std::io;

#[derive(Clone, Debug)]
pub struct Settings {
    pub distances: Distances,
    /// Decide, and move nothing.
    pub dry_run: bool,
    /// When tuning began: decisions say how long after.
    pub began_ns: u64,
}

/// What is known of an object.
#[derive(Clone, Debug)]
pub struct Known {
    pub name: String,
    pub line: Option<String>,
    pub bytes: u64,
    pattern: Pattern,
    /// The decisions so far; in a dry run, those that hold now.
    pub decisions: Vec<Decision>,
    /// Why it stays at present.
    pub held: Option<Held>,
    /// The part of the accesses to it, in the last window.
    pub share: f64,
}

/// Tunes one process.
pub struct Tuner {
    settings: Settings,
    pub carrier: Carrier,
    pub objects: BTreeMap<i64, Known>,
    pub before: Option<Remote>,
    pub after: Option<Remote>,
    /// The part of the accesses in the last window by threads that were on another node than usual.
    pub wandering: f64,
    pub forecast: Option<Forecast>,
    /// The last time at which something was decided, moved, or changed.
    active_ns: Option<u64>,
    /// Accesses in the last window.
    pub seen: usize,
}

impl Tuner {
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            carrier: Carrier::default(),
            objects: BTreeMap::new(),
            before: None,
            after: None,
            wandering: 0.0,
            forecast: None,
            active_ns: None,
            seen: 0,
        }
    }

    /// Takes the accesses of a window that ends now and lasts `window_ns` at most, and decides. Returns the number of new decisions.
    pub fn observe(&mut self, now_ns: u64, window_ns: u64, mut seen: Vec<ObjectUses>) -> usize {
        self.active_ns.get_or_insert(now_ns);
        let usual = usual_nodes(seen.iter().flat_map(|object| &object.uses));
        let all: Vec<Use> = seen.iter().flat_map(|object| object.uses.iter().copied()).collect();
        self.seen = all.len();
        self.wandering = wandering(&all, &usual);
        let cpu_ns: f64 = all.iter().map(|one| one.cpu_ns).sum();
        if cpu_ns > 0.0 {
            self.objects.values_mut().for_each(|known| known.share = 0.0);
        }
        let mut decided = 0;
        let mut times = Times::default();
        for object in &mut seen {
            let own_ns: f64 = object.uses.iter().map(|one| one.cpu_ns).sum();
            decided += self.judge(now_ns, window_ns, object, &usual, &mut times);
            if let Some(known) = self.objects.get_mut(&object.id) {
                known.share = if cpu_ns > 0.0 { own_ns / cpu_ns } else { 0.0 };
            }
        }
        self.forecast = times.forecast();
        if decided > 0 || self.carrier.is_busy() {
            self.active_ns = Some(now_ns);
        }
        decided
    }

    fn judge(&mut self, now_ns: u64, window_ns: u64, object: &mut ObjectUses, usual: &BTreeMap<i64, u32>, times: &mut Times) -> usize {
        let known = self.objects.entry(object.id).or_insert_with(|| Known {
            name: object.name.clone(),
            line: object.line.clone(),
            bytes: object.bytes,
            pattern: Pattern::default(),
            decisions: Vec::new(),
            held: None,
            share: 0.0,
        });
        // Names are looked up after an object was seen first.
        known.name.clone_from(&object.name);
        known.line.clone_from(&object.line);
        known.bytes = object.bytes;
        if known.pattern.changed(&object.uses) {
            self.carrier.cancel(object.id);
            self.active_ns = Some(now_ns);
        }
        let away = wandering(&object.uses, usual);
        let pattern = &mut known.pattern;
        object.uses.retain(|one| pattern.is_present(one));
        let mut parts = segments(object);
        let shared = parts.iter().filter(|part| matches!(part.target, Target::Several(_)));
        if let Some(time_ns) = shared.filter_map(|part| taken_over(&object.uses[part.uses.clone()])).max() {
            pattern.begin_at(time_ns);
            object.uses.retain(|one| pattern.is_present(one));
            parts = segments(object);
        }
        let age_s = pattern.age_s(now_ns);
        let given = Circumstances {
            distances: &self.settings.distances,
            rate: &self.carrier.rate,
            seen_s: age_s.min(window_ns as f64 / 1e9),
            age_s,
            usual_s: pattern.usual_s(),
            undone: pattern.undone,
            wandering: away,
        };
        let found = decide(object, &parts, &given);
        pattern.set_parts(parts);
        times.add(object, found.as_deref().unwrap_or_default());
        if self.carrier.is_moving(object.id) {
            return 0;
        }
        let found = match (found, self.carrier.gave_up(object.id)) {
            (Ok(_), Some(tries)) => Err(Held::CannotMove { tries }),
            (found, _) => found,
        };
        match found {
            Err(why) => {
                known.held = Some(why);
                if self.settings.dry_run {
                    known.decisions.clear();
                }
                0
            }
            Ok(mut decisions) => {
                known.held = None;
                let decided_s = now_ns.saturating_sub(self.settings.began_ns) as f64 / 1e9;
                decisions.iter_mut().for_each(|one| one.decided_s = decided_s);
                let count = decisions.len();
                if self.settings.dry_run {
                    let is_new = known.decisions.len() != count;
                    known.decisions = decisions;
                    return usize::from(is_new);
                }
                decisions.iter().for_each(|one| self.carrier.add(one));
                known.decisions.extend(decisions);
                pattern.moved();
                count
            }
        }
    }

    /// Moves what the budget allows now. The processes of a program have one budget.
    ///
    /// # Errors
    /// When the kernel refuses to move pages of this process.
    pub fn step(&mut self, budget: &mut Budget, mover: &dyn Mover, clock: &mut dyn FnMut() -> u64) -> io::Result<()> {
        self.carrier.step(budget, mover, clock)
    }

    /// Takes note of the share of remote accesses, as the analysis gives it, from a window in which nothing moved.
    pub fn note(&mut self, remote: Remote) {
        let moved = self.carrier.last_move_ns.is_some();
        *(if moved { &mut self.after } else { &mut self.before }) = Some(remote);
    }

    /// Whether nothing has been decided or moved for so long, while accesses were seen.
    #[must_use]
    pub fn is_settled(&self, now_ns: u64, quiet_ns: u64) -> bool {
        !self.carrier.is_busy() && self.active_ns.is_some_and(|active| now_ns.saturating_sub(active) >= quiet_ns)
    }

    /// Changes of partition so far, of the object that changed most often.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.objects.values().map(|known| known.pattern.changes()).max().unwrap_or(0)
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// What the decisions would change: shares of the CPU time at accesses to memory whose node is known, as it is and as it would be. The same accesses
/// with the same weights, so that the two can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// At remote accesses now, and after the decided moves.
    pub now: f64,
    pub after: f64,
    /// The part of all CPU time at accesses that both are of.
    pub known: f64,
}

/// CPU time at accesses, ns.
#[derive(Default)]
struct Times {
    all: f64,
    /// To memory whose node is known.
    known: f64,
    /// At remote ones now, and after the decided moves.
    remote: f64,
    left: f64,
}

impl Times {
    fn add(&mut self, object: &ObjectUses, decisions: &[Decision]) {
        for one in &object.uses {
            self.all += one.cpu_ns;
            let Some(home) = one.home else { continue };
            let now = f64::from(u8::from(home != one.node));
            let decided = decisions.iter().find(|decision| decision.spans.iter().any(|span| (span.start..span.end).contains(&one.address)));
            let after = match decided.map(|decision| &decision.target) {
                Some(Target::Node(node)) => f64::from(u8::from(*node != one.node)),
                Some(Target::Several(nodes)) => 1.0 - f64::from(u8::from(nodes.contains(&one.node))) / nodes.len().max(1) as f64,
                None => now,
            };
            self.known += one.cpu_ns;
            self.remote += now * one.cpu_ns;
            self.left += after * one.cpu_ns;
        }
    }

    fn forecast(&self) -> Option<Forecast> {
        (self.known > 0.0).then(|| Forecast { now: self.remote / self.known, after: self.left / self.known, known: self.known / self.all })
    }
}
