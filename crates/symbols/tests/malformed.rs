//! Damaged ELF files: every query returns, quickly.

use crate::common::{C, Workshop, offsets_of};
use firsttouch_symbols::{Symbolizer, static_objects};
use std::path::Path;
use std::time::{Duration, Instant};

/// A small random generator (xorshift64), so that a failure can be reproduced.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap()
    }
}

fn ask_everything(path: &Path, offsets: &[u64]) {
    let start = Instant::now();
    let mut symbolizer = Symbolizer::with_debug_roots(Vec::new());
    for offset in offsets {
        symbolizer.resolve(path, *offset);
    }
    symbolizer.has_line_info(path);
    symbolizer.is_stripped(path);
    if let Ok(statics) = static_objects(path, 0) {
        let _ = statics.bias(0x5555_5555_4000, 0);
        let _ = statics.bias(u64::MAX, u64::MAX);
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{} took {:?}", path.display(), start.elapsed());
}

const FORTRAN: &str = "program prog\n real(8) :: a(1000)\n common /blk/ a\n a = 1\n print *, a(3)\nend program\n";

/// Small binaries of several kinds, with offsets into their code.
fn binaries(shop: &Workshop) -> Vec<(Vec<u8>, Vec<u64>)> {
    let mut found = Vec::new();
    let mut add = |path: Option<std::path::PathBuf>, function: &str| {
        let Some(path) = path else { return };
        let code = offsets_of(&path, function);
        let offsets = code.step_by(7).chain([0, 1, 0x1000, 0x2000, u64::MAX]).collect();
        found.push((std::fs::read(path).unwrap(), offsets));
    };
    add(shop.build("gcc", &["-O2", "-g"], "demo.c", C, "gcc"), "work");
    add(shop.build("gcc", &["-O2", "-g", "-gdwarf-4", "-gz=zlib"], "demo.c", C, "zlib"), "work");
    add(shop.build("clang", &["-O2", "-g"], "demo.c", C, "clang"), "work");
    add(shop.build("gfortran", &["-O2", "-g"], "demo.f90", FORTRAN, "fortran"), "MAIN__");
    if shop.run("objcopy", &["--compress-debug-sections=zstd", "gcc", "zstd"]) {
        add(Some(shop.path("zstd")), "work");
    }
    found
}

#[test]
fn truncated_files() {
    let shop = Workshop::new();
    let Some((bytes, offsets)) = binaries(&shop).into_iter().next() else { return };
    let path = shop.path("damaged");
    for length in (0..bytes.len()).step_by(64) {
        std::fs::write(&path, &bytes[..length]).unwrap();
        ask_everything(&path, &offsets);
    }
}

#[test]
fn flipped_bytes() {
    let shop = Workshop::new();
    let rounds: usize = std::env::var("FIRSTTOUCH_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(200);
    for (number, (bytes, offsets)) in binaries(&shop).into_iter().enumerate() {
        for round in 0..rounds {
            let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (number * 1_000_003 + round + 1) as u64);
            let mut damaged = bytes.clone();
            // Damage headers, the section table, and the end of the file with DWARF and symbols.
            let (from, to) = match round % 4 {
                0 => (0x10, 0x40 + 56 * 12),
                1 => (bytes.len() - 64 * 38, bytes.len()),
                _ => (0x2000.min(bytes.len() / 2), bytes.len()),
            };
            for _ in 0..=random.below(16) {
                let place = from + random.below(to - from);
                damaged[place] = match random.below(3) {
                    0 => 0xff,
                    1 => damaged[place] ^ (1 << random.below(8)),
                    _ => u8::try_from(random.below(256)).unwrap(),
                };
            }
            // Use another file in each round, so that a failure can be examined.
            let path = shop.path(&format!("damaged.{number}.{round}"));
            std::fs::write(&path, &damaged).unwrap();
            ask_everything(&path, &offsets);
            std::fs::remove_file(&path).unwrap();
        }
    }
}
