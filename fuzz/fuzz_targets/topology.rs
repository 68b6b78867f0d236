//! A machine's tree of /proc and /sys: the topology, and the machine as `profile` reads it.
#![no_main]

use firsttouch_fuzz::{Tree, mutate, rendered, sound};
use firsttouch_system::{MachineInfo, topology};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|input: &[u8]| {
    let tree = Tree::new(&[], input);
    if let Ok(topology) = topology::read(tree.path()) {
        sound(&topology);
        rendered(&topology);
    }
    let _ = MachineInfo::read(tree.path());
});
