//! Whether a move earns its cost: CPU time that threads no longer wait for remote memory, in the time that the program will still use its
//! memory in this way, against the time that moving takes.

use std::collections::BTreeMap;

/// A move must gain this many times its cost. It doubles with each move that was undone by a change of the program's partition.
const MARGIN: f64 = 2.0;
/// The longest time that is expected to follow.
const LONGEST_S: f64 = 60.0;
/// The cost of moving until it was measured: 1 GiB/s, what one thread of a current server moves with move_pages (docs/migrate.md). The program may wait for as long.
const FIRST_S_PER_BYTE: f64 = 1.0 / (1u64 << 30) as f64;
/// The weight of the newest measurement.
const NEWEST: f64 = 0.3;

/// The kernel's distances between nodes (10 is local), by node of thread and node of page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distances(pub BTreeMap<(u32, u32), u32>);

impl Distances {
    /// Between nodes without a distance: that of most machines with two sockets.
    const USUAL: u32 = 21;

    /// The part of the time of a remote access that a local one saves. Distances are ratios of latencies (ACPI 6.5, 5.2.17).
    #[must_use]
    pub fn saved(&self, thread: u32, page: u32) -> f64 {
        if thread == page {
            return 0.0;
        }
        let distance = self.0.get(&(thread, page)).copied().filter(|distance| *distance > 10).unwrap_or(Self::USUAL);
        1.0 - 10.0 / f64::from(distance)
    }
}

/// The time that moving a byte takes, measured as moves are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    s_per_byte: f64,
}

impl Default for Rate {
    fn default() -> Self {
        Self { s_per_byte: FIRST_S_PER_BYTE }
    }
}

impl Rate {
    pub fn measured(&mut self, bytes: u64, seconds: f64) {
        // A call that moves little costs what a call costs.
        if bytes >= 1 << 20 && seconds > 0.0 {
            self.s_per_byte += NEWEST * (seconds / bytes as f64 - self.s_per_byte);
        }
    }

    #[must_use]
    pub fn cost_s(&self, bytes: f64) -> f64 {
        bytes * self.s_per_byte
    }
}

/// How long the present way of using an object will still last: as long as it has lasted so far, which is the best guess of a duration without
/// a scale. If earlier ways lasted for a time, and this one is younger, it is expected to last as long as they did; and less than that is gained: after
/// the change, the moved pages are misplaced for as long as it took to find out this time. The times are estimates, so that counts twice as much with
/// each move that a change undid: in the end, a program that changes again and again is left alone.
#[must_use]
pub fn expected_s(age_s: f64, usual_s: Option<f64>, undone: u32) -> f64 {
    match usual_s {
        Some(usual) if age_s < usual => usual - age_s - age_s * caution(undone),
        // Its change is due.
        Some(usual) if age_s < usual * (1.0 + caution(undone)) => 0.0,
        _ => age_s,
    }
    .clamp(0.0, LONGEST_S)
}

/// Whether a gain (CPU seconds a second) for so long is worth the cost. `undone`: earlier moves that a change of partition undid.
#[must_use]
pub fn earns(gain_rate: f64, expected_s: f64, cost_s: f64, undone: u32) -> bool {
    gain_rate * expected_s > MARGIN * caution(undone) * cost_s
}

fn caution(undone: u32) -> f64 {
    f64::from(undone.min(30)).exp2()
}
