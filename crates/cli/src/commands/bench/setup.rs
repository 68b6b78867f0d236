//! From the command line to a run of a kernel.

use crate::arguments::{How, Init, Kernel as Arguments, Simd, Stream as StreamArguments};
use anyhow::Result;
use firsttouch_native::{Form, Initialisation, Kernel, Operation, Run, Stream};
use firsttouch_system::topology;
use std::collections::BTreeMap;
use std::path::Path;

/// Of the free memory, this part at most is taken by an array whose size nobody named.
const PART_OF_MEMORY: u64 = 10;
/// Where no cache is known.
const USUAL_CACHE: u64 = 32 << 20;

pub struct Setup<'a> {
    pub run: Run,
    pub sizes: BTreeMap<String, u64>,
    /// The sizes in words.
    pub shape: String,
    /// What one iteration is called.
    pub iteration: &'static str,
    pub how: &'a How,
}

pub fn of(arguments: &Arguments, available: u64) -> Result<Setup<'_>> {
    Ok(match arguments {
        Arguments::Dgemv(a) => {
            let kernel = if a.tuned { Kernel::DgemvTuned } else { Kernel::Dgemv };
            setup(kernel, &[("m", a.m), ("n", a.n)], a.iterations, "product", &a.how)
        }
        Arguments::Dmvm(a) => setup(Kernel::Dmvm, &[("m", a.m), ("n", a.n)], a.iterations, "product", &a.how),
        Arguments::Copy(a) => stream(Operation::Copy, a, available),
        Arguments::Scale(a) => stream(Operation::Scale, a, available),
        Arguments::Add(a) => stream(Operation::Add, a, available),
        Arguments::Triad(a) => stream(Operation::Triad, a, available),
        Arguments::Read(a) => stream(Operation::Read, a, available),
        Arguments::Write(a) => stream(Operation::Write, a, available),
        Arguments::Schoenauer(a) => stream(Operation::Schoenauer, a, available),
        Arguments::Chase(a) => {
            let lines = a.lines.unwrap_or_else(|| limited(8 * last_level_cache(), available) / 64);
            let setup = setup(Kernel::Chase, &[("lines", lines)], a.iterations, "load", &a.how);
            Setup { shape: format!("{lines} lines"), ..setup }
        }
        Arguments::Iso3dfd(a) => {
            let mut setup = setup(Kernel::Iso3dfd, &[("n1", a.n1), ("n2", a.n2), ("n3", a.n3)], a.iterations, "time step", &a.how);
            for (block, (name, asked)) in
                setup.run.blocks.iter_mut().zip([("n1_block", a.n1_block), ("n2_block", a.n2_block), ("n3_block", a.n3_block)])
            {
                *block = asked.unwrap_or(0);
                setup.sizes.extend(asked.map(|asked| (name.to_owned(), asked)));
            }
            setup
        }
    })
}

fn stream(operation: Operation, a: &StreamArguments, available: u64) -> Setup<'_> {
    let elements = a.elements.unwrap_or_else(|| limited(4 * last_level_cache(), available) / 8);
    let kernel = Kernel::Stream(Stream { operation, temporal: a.temporal });
    let setup = setup(kernel, &[("elements", elements)], a.iterations, "sweep", &a.how);
    Setup { shape: format!("{elements} elements{}", if a.temporal { ", stores through the caches" } else { "" }), ..setup }
}

fn setup<'a>(kernel: Kernel, sizes: &[(&str, u64)], iterations: u64, iteration: &'static str, how: &'a How) -> Setup<'a> {
    let mut all = [1; 3];
    for (size, (_, value)) in all.iter_mut().zip(sizes) {
        *size = *value;
    }
    Setup {
        run: Run {
            kernel,
            sizes: all,
            blocks: [0; 3],
            iterations,
            repetitions: how.repetitions,
            threads: 0,
            initialisation: match how.init {
                Init::Serial => Initialisation::Serial,
                Init::Parallel => Initialisation::Parallel,
                Init::Mismatched => Initialisation::Mismatched,
                Init::Blocked => Initialisation::Blocked,
            },
            schedule: how.schedule,
            form: match how.simd {
                Simd::Auto => Form::Best,
                Simd::Portable => Form::Portable,
                Simd::Avx2 => Form::Avx2,
                Simd::Avx512 => Form::Avx512,
            },
            huge_pages: how.huge_pages,
        },
        sizes: sizes.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        shape: sizes.iter().map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(" x "),
        iteration,
        how,
    }
}

/// An array's bytes where the user named none.
fn limited(bytes: u64, available: u64) -> u64 {
    if available == 0 { bytes } else { bytes.min(available / PART_OF_MEMORY) }.max(64 * 64)
}

/// The largest cache of the machine, bytes.
fn last_level_cache() -> u64 {
    let topology = topology::read(Path::new("/")).ok();
    let caches = topology.iter().flat_map(|topology| &topology.caches);
    caches.map(|cache| cache.size_bytes).max().filter(|bytes| *bytes > 0).unwrap_or(USUAL_CACHE)
}
