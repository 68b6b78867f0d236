//! Runs of the published experiments on a machine of the model.

use crate::experiments::{Dgemv, Init, Iso3dfd, Kernel, Quantity, Ratio, Sockets};
use crate::machine::{MachineModel, Streams};
use crate::model::{Schedule, Seat, Simulation, Stretch, TeamError, Thread, simulate};
use crate::placement::{Layout, room};
use crate::seats;
use crate::units::{Bandwidth, Volume};

/// Traffic of iso3dfd that no cache can avoid, bytes per point: three arrays are read and one of them is written, four bytes each.
const ISO3DFD_BYTES: f64 = 16.0;
const ISO3DFD_WRITES: f64 = 0.25;
/// Actual traffic of each thread of a bandwidth run; the bandwidth does not depend on it.
const STREAMED: Volume = Volume(1e9);

type Result<T> = std::result::Result<T, TeamError>;

/// A predicted figure. For threads that are not pinned: the mean of the draws, and the range that contains 95 % of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    pub value: f64,
    pub range: Option<[f64; 2]>,
}

impl From<f64> for Predicted {
    fn from(value: f64) -> Self {
        Self { value, range: None }
    }
}

/// Seconds of a product, or the local fraction of its accesses, with threads that are not pinned.
///
/// # Errors
/// When this machine cannot have the team.
pub fn dgemv(machine: &MachineModel, run: &Dgemv) -> Result<Predicted> {
    let row = Volume(f64::from(run.m) * 8.0);
    let block = (run.m as usize).checked_div(run.threads).ok_or(TeamError::NoThreads)?;
    // The last thread takes the remainder.
    let bound = |thread: usize| if thread == run.threads { f64::from(run.m) } else { (thread * block) as f64 };
    let mut values = Vec::with_capacity(seats::DRAWS);
    for seats in seats::unpinned(machine, run.threads) {
        let volume = |thread: usize| row * (bound(thread + 1) - bound(thread));
        let touches: Vec<(usize, Volume)> = match run.init {
            Init::Serial => vec![(seats.first().map_or(0, |seat| seat.node), row * f64::from(run.m))],
            Init::Parallel => seats.iter().enumerate().map(|(thread, seat)| (seat.node, volume(thread))).collect(),
        };
        let layout = Layout::first_touched(machine, &touches, &mut room(machine));
        let team: Vec<Thread> = seats
            .iter()
            .enumerate()
            .map(|(thread, seat)| worker(*seat, layout.cut(row * bound(thread), row * bound(thread + 1)), 0.0))
            .collect();
        let outcome = simulate(machine, &team, Schedule::Static)?;
        values.push(match run.quantity {
            Quantity::Seconds => outcome.time.0,
            Quantity::LocalShare => 1.0 - outcome.remote_fraction,
        });
    }
    Ok(distribution(values))
}

fn distribution(mut values: Vec<f64>) -> Predicted {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values.get((part * values.len() as f64) as usize).copied().unwrap_or(f64::NAN);
    Predicted { value: values.iter().sum::<f64>() / values.len() as f64, range: Some([at(0.025), at(0.975)]) }
}

/// Million points per second of one process.
///
/// # Errors
/// When this machine cannot have the team.
pub fn iso3dfd(machine: &MachineModel, run: &Iso3dfd) -> Result<Predicted> {
    let traffic = Volume(run.points * ISO3DFD_BYTES);
    let team = |seats: &[Seat]| -> Vec<Thread> {
        let touches: Vec<(usize, Volume)> = match run.init {
            Init::Serial => vec![(seats.first().map_or(0, |seat| seat.node), traffic)],
            Init::Parallel => seats.iter().map(|seat| (seat.node, traffic * (1.0 / seats.len() as f64))).collect(),
        };
        // The arrays fit (12 bytes per point, once), but the traffic passes them in every iteration.
        let layout = Layout::first_touched(machine, &touches, &mut vec![f64::INFINITY; machine.nodes.len()]);
        let bound = |thread: usize| traffic * (thread as f64 / seats.len() as f64);
        let work = |thread: usize| layout.cut(bound(thread), bound(thread + 1));
        seats.iter().enumerate().map(|(thread, seat)| worker(*seat, work(thread), ISO3DFD_WRITES)).collect()
    };
    let socket = |node: usize| seats::on_node(machine, node, machine.nodes[node].cores);
    let threads: Vec<Thread> = match run.sockets {
        Sockets::One => team(&socket(0)),
        Sockets::Each => (0..machine.nodes.len()).flat_map(|node| team(&socket(node))).collect(),
        Sockets::All => team(&seats::compact(machine, machine.cores())),
    };
    let schedule = if run.dynamic { Schedule::Dynamic } else { Schedule::Static };
    Ok(Predicted::from(run.points / simulate(machine, &threads, schedule)?.time.0 / 1e6))
}

/// The memory that a thread of a bandwidth run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// On the thread's own node.
    Own,
    /// All on one node.
    Node(usize),
    /// Page by page on the first nodes, as many as given.
    Interleaved(usize),
}

impl Memory {
    /// One thread's volume, by node.
    fn parts(self, seat: Seat) -> Vec<(usize, Volume)> {
        match self {
            Self::Own => vec![(seat.node, STREAMED)],
            Self::Node(node) => vec![(node, STREAMED)],
            Self::Interleaved(nodes) => (0..nodes).map(|node| (node, STREAMED * (1.0 / nodes as f64))).collect(),
        }
    }
}

/// GB/s as the kernel counts them, of threads in these seats.
///
/// # Errors
/// When this machine lacks the seats or the memory.
pub fn bandwidth(machine: &MachineModel, kernel: Kernel, seats: &[Seat], memory: Memory) -> Result<Predicted> {
    let (read, write, allocate) = kernel.streams();
    let streams = Streams { read, write, allocate: if machine.write_allocate { allocate } else { 0.0 } };
    let work = |seat: &Seat| vec![Stretch { parts: memory.parts(*seat) }];
    let team: Vec<Thread> = seats.iter().map(|seat| worker(*seat, work(seat), streams.write_share())).collect();
    let Simulation { time, .. } = simulate(machine, &team, Schedule::Static)?;
    let counted = STREAMED * (team.len() as f64 / streams.traffic_factor());
    Ok(Predicted::from((counted / time).gb_per_s()))
}

/// How many times as long the loop takes with its memory elsewhere as with own memory.
///
/// # Errors
/// When this machine lacks the seats or the memory.
pub fn ratio(machine: &MachineModel, run: &Ratio) -> Result<f64> {
    let (read, write, allocate) = run.kernel.streams();
    let streams = Streams { read, write, allocate: if machine.write_allocate { allocate } else { 0.0 } };
    let compute = run.thread_gb_per_s.map_or(Bandwidth::UNLIMITED, |rate| Bandwidth::from_gb_per_s(rate * streams.traffic_factor()));
    let time = |parts: &dyn Fn(Seat) -> Vec<(usize, Volume)>| -> Result<f64> {
        let on = |(node, threads): (usize, &usize)| seats::on_node(machine, node, *threads);
        let seats = run.threads.iter().enumerate().flat_map(on);
        let team: Vec<Thread> =
            seats.map(|seat| Thread { compute, ..worker(seat, vec![Stretch { parts: parts(seat) }], streams.write_share()) }).collect();
        Ok(simulate(machine, &team, Schedule::Static)?.time.0)
    };
    let over = run.interleave.clone().or_else(|| run.node.map(|node| vec![node])).unwrap_or_default();
    let elsewhere = |_: Seat| over.iter().map(|node| (*node, STREAMED * (1.0 / over.len() as f64))).collect();
    Ok(time(&elsewhere)? / time(&|seat| Memory::Own.parts(seat))?)
}

fn worker(seat: Seat, work: Vec<Stretch>, write_share: f64) -> Thread {
    Thread { seat, work, write_share, compute: Bandwidth::UNLIMITED }
}
