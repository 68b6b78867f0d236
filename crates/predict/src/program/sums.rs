//! The bytes that each worker moves from and to each node under a layout, in sums over blocks of objects. Of a layout that differs from another one in
//! few objects, only the blocks of these are summed anew. So many placements, each of few objects, cost less than as many passes over all objects.
//!
//! A sum is that over the blocks in their order, whichever of them were known: figures have the same digits however they were reached.

use super::cells::ObjectCells;
use super::place::{Mix, Placed, Rule};
use super::placements::Placements;
use super::{Placement, Program};
use crate::work;
use firsttouch_model::traffic::Division;
use std::ops::Range;

/// With fewer objects there is one block: adding their cells up in their order is fast enough.
const FEW: usize = 256;
const MOST_BLOCKS: usize = 256;

/// The objects of each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    objects: usize,
    /// Objects in a block; fewer in the last.
    size: usize,
}

impl Blocks {
    /// `cells`: of all objects; `sums`: figures in the sum of a block. Adding the sums of all blocks up must cost less than the cells do.
    pub fn new(objects: usize, cells: usize, sums: usize) -> Self {
        let most = (cells / 4 / sums.max(1)).min(MOST_BLOCKS);
        let blocks = if objects < FEW { 1 } else { objects.isqrt().min(most).max(1) };
        Self { objects, size: objects.div_ceil(blocks).max(1) }
    }

    pub fn count(self) -> usize {
        self.objects.div_ceil(self.size)
    }

    pub fn of(self, object: usize) -> usize {
        object / self.size
    }

    pub fn objects(self, block: usize) -> Range<usize> {
        block * self.size..((block + 1) * self.size).min(self.objects)
    }
}

/// By block and node: the bytes of the objects of a layout, before any are moved.
#[derive(Default)]
pub struct Loads(Vec<f64>);

/// A layout, and where its pages are. That does not depend on the bytes that are accessed.
pub struct Located<'a> {
    layout: &'a Placements,
    placed: Placed<'a>,
}

/// The sums of a layout.
#[derive(Default)]
pub struct Sums {
    /// By block and phase: bytes by active worker and node.
    volumes: Vec<Vec<f64>>,
}

/// How a layout differs from one whose sums are known: by block, whether it is to be summed anew.
pub struct Change(Vec<bool>);

impl Program<'_> {
    /// The phases that are simulated.
    pub(super) fn phases(&self) -> usize {
        1 + usize::from(self.is_dynamic()) + usize::from(self.serial > 0.0)
    }

    /// The phase of accesses: of a thread that works alone (the last phase, if it is simulated), or of the team. Of a dynamic team the first is what
    /// stays with its threads, the second what goes to the thread that has time.
    fn phase(&self, serial: bool, stays: bool) -> Option<usize> {
        match (serial, self.is_dynamic()) {
            (true, _) => (self.serial > 0.0).then(|| self.phases() - 1),
            (false, true) => Some(usize::from(!stays)),
            (false, false) => Some(0),
        }
    }

    /// The bytes of objects by node. `near`: those of another layout that are known.
    pub(super) fn loads(&self, layout: &Placements, near: Option<(&Placements, &Loads)>) -> Loads {
        let nodes = self.machine.nodes.len();
        let changed = near.map(|(near, loads)| (self.changed(near, layout), loads));
        let mut all = vec![0.0; self.blocks.count() * nodes];
        for (block, load) in all.chunks_mut(nodes.max(1)).enumerate() {
            match &changed {
                Some((changed, known)) if !changed[block] => load.copy_from_slice(&known.0[block * nodes..][..nodes]),
                _ => self.rules(layout, block).for_each(|(index, object, rule)| self.places.load(index, object, rule, load)),
            }
        }
        Loads(all)
    }

    /// Finds where the pages are. `loads`: those of the layout.
    pub(super) fn locate<'a>(&'a self, layout: &'a Placements, loads: &Loads) -> Located<'a> {
        let nodes = self.machine.nodes.len();
        let mut load = vec![0.0; nodes];
        loads.0.chunks(nodes.max(1)).for_each(|own| add(&mut load, own));
        Located { layout, placed: self.places.place(&load) }
    }

    /// What is to be summed anew of a layout where the sums of another one are known. If bytes do not fit on their nodes, all sums depend on all
    /// objects.
    pub(super) fn change(&self, known: &Located<'_>, to: &Located<'_>) -> Change {
        if known.placed.is_moved() || to.placed.is_moved() {
            return Change(vec![true; self.blocks.count()]);
        }
        Change(self.changed(known.layout, to.layout))
    }

    /// Sums up all objects. `bytes`: of each cell.
    pub(super) fn sums(&self, bytes: &[f64], at: &Located<'_>) -> Sums {
        Sums { volumes: (0..self.blocks.count()).map(|block| self.volume_of(bytes, at, block)).collect() }
    }

    /// The bytes by phase, active worker and node. `known`: the sums for the same bytes of cells of the layout that `change` starts from.
    pub(super) fn volumes(&self, bytes: &[f64], known: &Sums, change: &Change, at: &Located<'_>) -> Vec<f64> {
        let mut all = vec![0.0; self.phases() * self.machine.nodes.len() * self.active.len()];
        for (block, (sum, is_changed)) in known.volumes.iter().zip(&change.0).enumerate() {
            if *is_changed {
                add(&mut all, &self.volume_of(bytes, at, block));
            } else {
                add(&mut all, sum);
            }
        }
        all
    }

    /// Changes the sums to those of another layout.
    pub(super) fn update(&self, bytes: &[f64], sums: &mut Sums, change: &Change, at: &Located<'_>) {
        for (block, sum) in sums.volumes.iter_mut().enumerate().filter(|(block, _)| change.0[*block]) {
            *sum = self.volume_of(bytes, at, block);
        }
    }

    /// By block: whether the layouts differ in it.
    fn changed(&self, from: &Placements, to: &Placements) -> Vec<bool> {
        let differing = from.differing(to);
        let mut changed = vec![differing.is_none(); self.blocks.count()];
        differing.into_iter().flatten().for_each(|object| changed[self.blocks.of(object)] = true);
        changed
    }

    /// The objects of a block with the rules that place them.
    fn rules<'s>(&'s self, layout: &'s Placements, block: usize) -> impl Iterator<Item = (usize, &'s ObjectCells, Rule)> {
        let objects = self.blocks.objects(block);
        let rule = |(index, placement): (usize, Placement)| {
            work::step();
            let object = &self.cells.objects[index];
            (index, object, self.places.rule(index, object, placement))
        };
        objects.clone().zip(layout.range(objects)).map(rule)
    }

    fn volume_of(&self, bytes: &[f64], at: &Located<'_>, block: usize) -> Vec<f64> {
        let nodes = self.machine.nodes.len();
        let of_phase = nodes * self.active.len();
        let mut volumes = vec![0.0; self.phases() * of_phase];
        for (_, object, rule) in self.rules(at.layout, block) {
            let stays = rule.stays(object.division == Division::Owned || object.is_tied);
            let takers = if matches!(rule, Rule::ByUser) { &object.takers[..] } else { &[] };
            let mut dealt = 0.0;
            for cell in object.range.clone().filter(|cell| bytes[*cell] > 0.0) {
                let (cell, bytes) = (&self.cells.cells[cell], bytes[cell]);
                if !cell.serial && !takers.is_empty() {
                    dealt += bytes;
                    continue;
                }
                let Some(phase) = self.phase(cell.serial, stays) else { continue };
                let own = &mut volumes[phase * of_phase + self.among_active[cell.worker] * nodes..][..nodes];
                add_mix(own, &at.placed.of(rule, cell), bytes);
            }
            // Each gets an equal part, every time the same.
            if let Some(phase) = self.phase(false, stays).filter(|_| dealt > 0.0) {
                for &worker in takers {
                    let own = &mut volumes[phase * of_phase + self.among_active[worker] * nodes..][..nodes];
                    add_mix(own, &at.placed.of_worker(worker), dealt / takers.len() as f64);
                }
            }
        }
        volumes
    }
}

fn add_mix(own: &mut [f64], mix: &Mix<'_>, bytes: f64) {
    match mix {
        Mix::Node(node) => own[*node] += bytes,
        Mix::Spread(shares) => shares.iter().for_each(|(node, share)| own[*node] += bytes * share),
    }
}

fn add(all: &mut [f64], own: &[f64]) {
    all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
}

#[cfg(test)]
mod tests {
    use super::super::{Assumptions, Candidate, Caps};
    use super::*;
    use crate::machine::assumed;
    use crate::units::Volume;
    use firsttouch_model::traffic::{ObjectTraffic, Traffic, TrafficSample, Work, Worker};

    const WORKERS: usize = 4;

    fn traffic(objects: usize) -> Traffic {
        let sample = |object: usize, at: usize| TrafficSample {
            serial: at == 0,
            position: (at as f64 + 0.5) / 8.0,
            round: (object * 8 + at) as u64,
            home: 0,
            owner: Some(at % WORKERS),
            bytes: vec![(at % WORKERS, 1e9 + (object * at) as f64)],
        };
        let object = |index: usize| ObjectTraffic {
            id: 10 + index as i64,
            name: String::new(),
            bytes: 1 << 20,
            division: [Division::Owned, Division::Shared, Division::DealtOut][index % 3],
            work: Work::AsSeen,
            has_fine_parts: false,
            even: Vec::new(),
            rows: 1,
            members: Vec::new(),
            parts: None,
            samples: (0..8).map(|at| sample(index, at)).collect(),
        };
        let worker = |index: usize| Worker { threads: vec![index], node: (index % 2) as u32, idle: false, cpu_s: None };
        Traffic {
            workers: (0..WORKERS).map(worker).collect(),
            objects: (0..objects).map(object).collect(),
            unknown: 0.0,
            computing: None,
            guessed: 0.0,
        }
    }

    /// Check that blocks cover all objects once, and that few objects have one.
    #[test]
    fn blocks_cover_all_objects() {
        for objects in [0, 1, 255, 256, 1000, 99_999] {
            let blocks = Blocks::new(objects, 16 * objects, 8);
            let all: Vec<usize> = (0..blocks.count()).flat_map(|block| blocks.objects(block)).collect();
            assert_eq!(all, (0..objects).collect::<Vec<_>>());
            assert!(all.iter().all(|object| blocks.objects(blocks.of(*object)).contains(object)));
            assert_eq!(blocks.count() > 1, objects >= 256, "{objects}");
        }
    }

    /// Check that figures have the same digits whichever sums were known before, also where memory is full and bytes are moved.
    #[test]
    fn known_sums_change_no_digit() {
        let traffic = traffic(400);
        for room in [u64::MAX, 1 << 27] {
            let mut machine = assumed("equal", 2, 2).unwrap();
            machine.nodes.iter_mut().for_each(|node| node.memory = Some(Volume(room as f64)));
            let question = Assumptions { write_share: 0.2, caps: Caps::Machine, model_error: 0.0 };
            let program = Program::new(&machine, &traffic, vec![0, 1], question).unwrap();
            let mut trial = program.trial(Placements::all(Placement::AsIs)).unwrap();
            for step in 0..60 {
                let placement = [Placement::Interleave, Placement::Local, Placement::OneNode { node: 1 }, Placement::AsIs][step % 4];
                let tried = trial.with_all(&[(10 + (step * 37 % 400) as i64, placement)]).unwrap();
                let anew = program.trial(tried.layout.clone()).unwrap();
                assert_eq!((tried.ratio.to_bits(), tried.remote.to_bits()), (anew.ratio.to_bits(), anew.remote.to_bits()), "{step}");
                trial.accept(tried);
            }
        }
    }

    /// Check that choosing placements for all objects, and pricing each, looks at objects no more often than their number to the power of 3/2: four times
    /// as many are looked at eight times as often (sixteen times if each placement looks at all objects).
    #[test]
    fn many_placements_look_at_few_objects() {
        let machine = assumed("equal", 2, 2).unwrap();
        let steps_of = |objects: usize| {
            let traffic = traffic(objects);
            let question = Assumptions { write_share: 0.0, caps: Caps::Machine, model_error: 0.0 };
            let program = Program::new(&machine, &traffic, vec![0, 1], question).unwrap();
            let candidate =
                |object: i64| Candidate { object, others: Vec::new(), options: vec![Placement::ParallelFirstTouch, Placement::Interleave] };
            let candidates: Vec<Candidate> = (0..objects as i64).map(|index| candidate(10 + index)).collect();
            work::steps(|| {
                let choice = program.choose(&candidates).unwrap();
                assert!(choice.time_ratio < 1.0, "{choice:?}");
                let each = |id: &i64| program.layout(&[(*id, Placement::Interleave)].into());
                let layouts: Vec<Placements> = choice.placements.keys().map(each).collect();
                layouts.iter().for_each(|layout| assert!(program.outcome_of(layout).is_ok()));
            })
        };
        work::assert_growth("many placements", 9, steps_of, 300);
    }
}
