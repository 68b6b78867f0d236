//! The bytes that each worker moves from and to each node under a layout, in sums over blocks of objects. Of a layout that differs from another one in
//! few objects, only the blocks of these are summed anew. So many placements, each of few objects, cost less than as many passes over all objects.
//!
//! A sum is that over the blocks in their order, whichever of them were known: figures have the same digits however they were reached.

use super::cells::{ObjectCells, Phase};
use super::layout::Layout;
use super::place::{Mix, Placed, Rule};
use super::{Placement, Program};
use firsttouch_model::traffic::Division;
use std::ops::Range;

/// With fewer objects there is one block: adding their cells up in their order is fast enough.
const FEW: usize = 256;
const MOST_BLOCKS: usize = 64;

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

/// The sums of one layout.
pub struct Sums {
    layout: Layout,
    /// By block: the bytes of its objects on each node, before any are moved.
    loads: Vec<Vec<f64>>,
    /// By phase and block: bytes by active worker and node.
    volumes: Vec<Vec<Vec<f64>>>,
    /// Some bytes do not fit on their node, so all volumes depend on all objects.
    is_moved: bool,
}

/// What is added up for one layout: the bytes by active worker and node of each phase of [`Program::phases`].
pub struct Volumes {
    pub phases: Vec<Vec<f64>>,
}

impl Program<'_> {
    /// The phases that are simulated.
    pub(super) fn phases(&self) -> Vec<Phase> {
        let mut phases = if self.is_dynamic() { vec![Phase::TeamOwned, Phase::TeamPool] } else { vec![Phase::Team] };
        if self.serial > 0.0 {
            phases.push(Phase::Serial);
        }
        phases
    }

    /// Sums up all objects. `bytes`: of each cell.
    pub(super) fn sums(&self, bytes: &[f64], layout: Layout) -> Sums {
        let loads: Vec<Vec<f64>> = (0..self.blocks.count()).map(|block| self.load_of(&layout, block)).collect();
        let placed = self.places.place(&self.total_load(&loads));
        let of_phase = |phase: Phase| (0..self.blocks.count()).map(|block| self.volume_of(bytes, &layout, &placed, phase, block)).collect();
        let volumes = self.phases().into_iter().map(of_phase).collect();
        Sums { is_moved: placed.is_moved(), layout, loads, volumes }
    }

    /// The bytes under a layout. `known`: the sums of another one, for the same bytes of cells.
    pub(super) fn volumes(&self, bytes: &[f64], known: &Sums, layout: &Layout) -> Volumes {
        let changed = self.changed(known, layout);
        let load = self.new_load(known, layout, &changed);
        let placed = self.places.place(&load);
        let is_known = |block: usize| !(changed[block] || placed.is_moved() || known.is_moved);
        let of_phase = |(phase, sums): (Phase, &Vec<Vec<f64>>)| {
            let mut all = vec![0.0; self.machine.nodes.len() * self.active.len()];
            for (block, sum) in sums.iter().enumerate() {
                if is_known(block) {
                    add(&mut all, sum);
                } else {
                    add(&mut all, &self.volume_of(bytes, layout, &placed, phase, block));
                }
            }
            all
        };
        Volumes { phases: self.phases().into_iter().zip(&known.volumes).map(of_phase).collect() }
    }

    /// Changes the sums to those of another layout.
    pub(super) fn change(&self, bytes: &[f64], sums: &mut Sums, layout: Layout) {
        let changed = self.changed(sums, &layout);
        let load = self.new_load(sums, &layout, &changed);
        let placed = self.places.place(&load);
        if placed.is_moved() || sums.is_moved {
            *sums = self.sums(bytes, layout);
            return;
        }
        for block in (0..self.blocks.count()).filter(|block| changed[*block]) {
            sums.loads[block] = self.load_of(&layout, block);
            for (phase, volumes) in self.phases().into_iter().zip(&mut sums.volumes) {
                volumes[block] = self.volume_of(bytes, &layout, &placed, phase, block);
            }
        }
        sums.layout = layout;
    }

    /// By block: whether the layouts differ in it.
    fn changed(&self, known: &Sums, layout: &Layout) -> Vec<bool> {
        let differing = known.layout.differing(layout);
        let mut changed = vec![differing.is_none(); self.blocks.count()];
        differing.into_iter().flatten().for_each(|object| changed[self.blocks.of(object)] = true);
        changed
    }

    fn new_load(&self, known: &Sums, layout: &Layout, changed: &[bool]) -> Vec<f64> {
        let mut load = vec![0.0; self.machine.nodes.len()];
        for (block, own) in known.loads.iter().enumerate() {
            if changed[block] {
                add(&mut load, &self.load_of(layout, block));
            } else {
                add(&mut load, own);
            }
        }
        load
    }

    fn total_load(&self, loads: &[Vec<f64>]) -> Vec<f64> {
        let mut load = vec![0.0; self.machine.nodes.len()];
        loads.iter().for_each(|own| add(&mut load, own));
        load
    }

    /// The objects of a block with the rules that place them.
    fn rules<'s>(&'s self, layout: &'s Layout, block: usize) -> impl Iterator<Item = (usize, &'s ObjectCells, Rule)> {
        let objects = self.blocks.objects(block);
        let rule = |(index, placement): (usize, Placement)| {
            let object = &self.cells.objects[index];
            (index, object, self.places.rule(index, object, placement))
        };
        objects.clone().zip(layout.range(objects)).map(rule)
    }

    fn load_of(&self, layout: &Layout, block: usize) -> Vec<f64> {
        let mut load = vec![0.0; self.machine.nodes.len()];
        self.rules(layout, block).for_each(|(index, object, rule)| self.places.load(index, object, rule, &mut load));
        load
    }

    fn volume_of(&self, bytes: &[f64], layout: &Layout, placed: &Placed<'_>, phase: Phase, block: usize) -> Vec<f64> {
        let nodes = self.machine.nodes.len();
        let mut volumes = vec![0.0; nodes * self.active.len()];
        for (_, object, rule) in self.rules(layout, block) {
            let cells = object.range.clone().map(|cell| (&self.cells.cells[cell], bytes[cell]));
            let stays = rule.stays(object.division == Division::Owned || object.is_tied);
            for (cell, bytes) in cells.filter(|(cell, bytes)| *bytes > 0.0 && phase.has(cell.serial, stays)) {
                let own = &mut volumes[self.among_active[cell.worker] * nodes..][..nodes];
                match placed.of(rule, cell) {
                    Mix::Node(node) => own[node] += bytes,
                    Mix::Spread(shares) => shares.iter().for_each(|(node, share)| own[*node] += bytes * share),
                }
            }
        }
        volumes
    }
}

fn add(all: &mut [f64], own: &[f64]) {
    all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
}
