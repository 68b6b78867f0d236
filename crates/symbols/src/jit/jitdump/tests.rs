use super::*;

/// Writes a jitdump of either byte order.
struct Dump {
    bytes: Vec<u8>,
    is_swapped: bool,
}

impl Dump {
    fn new(is_swapped: bool) -> Self {
        let mut dump = Self { bytes: Vec::new(), is_swapped };
        for word in [MAGIC, 1, 40, 62, 0, 7] {
            dump.u32(word);
        }
        dump.u64(1).u64(0);
        dump
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        let value = if self.is_swapped { value.swap_bytes() } else { value };
        self.bytes.extend(value.to_ne_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        let value = if self.is_swapped { value.swap_bytes() } else { value };
        self.bytes.extend(value.to_ne_bytes());
        self
    }

    fn record(&mut self, kind: u32, body: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.bytes.len();
        self.u32(kind).u32(0).u64(99);
        body(self);
        let bytes = u32::try_from(self.bytes.len() - start).unwrap();
        let bytes = if self.is_swapped { bytes.swap_bytes() } else { bytes };
        self.bytes[start + 4..start + 8].copy_from_slice(&bytes.to_ne_bytes());
        self
    }

    fn load(&mut self, start: u64, bytes: u64, name: &str) -> &mut Self {
        self.record(CODE_LOAD, |dump| {
            dump.u32(7).u32(7).u64(start).u64(start).u64(bytes).u64(1);
            dump.bytes.extend(name.as_bytes());
            dump.bytes.push(0);
            dump.bytes.extend([0x90; 8]);
        })
    }

    fn lines(&mut self, code: u64, entries: &[(u64, u32, &[u8])]) -> &mut Self {
        self.record(DEBUG_INFO, |dump| {
            dump.u64(code).u64(entries.len() as u64);
            for (address, line, file) in entries {
                dump.u64(*address).u32(*line).u32(0);
                dump.bytes.extend(*file);
                dump.bytes.push(0);
            }
        })
    }

    fn moved(&mut self, from: u64, to: u64, bytes: u64) -> &mut Self {
        self.record(CODE_MOVE, |dump| {
            dump.u32(7).u32(7).u64(from).u64(from).u64(to).u64(bytes).u64(1);
        })
    }
}

/// A dump with every kind of record.
fn whole(is_swapped: bool) -> Dump {
    let mut dump = Dump::new(is_swapped);
    dump.lines(0x1000, &[(0x1000, 3, b"/home/me/a.py"), (0x1010, 4, SAME_FILE), (0x1008, 5, b"/home/me/b.py")])
        .load(0x1000, 0x20, "_ZN4grid4fillEPdi")
        .record(4, |dump| dump.bytes.extend([1; 24]))
        .lines(0x2000, &[(0x2040, 1, b"file:///home/me/f.js"), (0x2050, 2, b"\xa0\x12\x01"), (0x2060, 9, b"/f.js")])
        .load(0x2000, 0x30, "JS:*fill /home/me/f.js:1:14")
        .moved(0x1000, 0x5000, 0x20)
        .record(CLOSE, |_| {})
        .load(0x9000, 0x10, "after the end");
    dump
}

/// Check functions, lines and moves, in either byte order.
#[test]
fn records_of_either_byte_order() {
    for is_swapped in [false, true] {
        let parsed = parse(&whole(is_swapped).bytes).expect("a jitdump");
        assert_eq!((parsed.refused, parsed.is_whole), (0, true));
        let functions: Vec<(u64, u64, &str)> = parsed.pieces.iter().map(|p| (p.start, p.bytes, &*p.function)).collect();
        assert_eq!(functions, [(0x1000, 0x20, "grid::fill"), (0x2000, 0x30, "fill (f.js:1)"), (0x5000, 0x20, "grid::fill")]);
        let lines = |piece: &Piece| piece.lines.iter().map(|l| (l.offset, l.line, l.file.to_string())).collect::<Vec<_>>();
        let (a, b) = ("/home/me/a.py".to_owned(), "/home/me/b.py".to_owned());
        assert_eq!(lines(&parsed.pieces[0]), [(0, 3, a.clone()), (8, 5, b), (0x10, 4, a)]);
        // V8's addresses are 64 too large, and some of its file names are raw memory.
        assert_eq!(lines(&parsed.pieces[1]), [(0, 1, "/home/me/f.js".to_owned()), (0x20, 9, "/f.js".to_owned())]);
        assert_eq!(lines(&parsed.pieces[2]), lines(&parsed.pieces[0]));
    }
}

/// Check that other files are refused, and that of a damaged jitdump the records before the damage are read.
#[test]
fn malformed_dumps() {
    for other in [
        &b""[..],
        b"x",
        b"DTi",
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0",
        b"7f00 10 fill\n",
        &MAGIC.to_ne_bytes(),
        &whole(false).bytes[..11],
    ] {
        assert!(parse(other).is_err(), "{other:?}");
    }
    let mut small_header = Dump::new(false);
    small_header.bytes[8..12].copy_from_slice(&8u32.to_ne_bytes());
    assert!(parse(&small_header.bytes).is_err());
    let dump = whole(false).bytes;
    let mut pieces = 0;
    for length in 40..=dump.len() {
        let parsed = parse(&dump[..length]).expect("a header");
        assert!(parsed.pieces.len() >= pieces && parsed.pieces.len() <= 3, "{length}");
        pieces = parsed.pieces.len();
    }
    assert_eq!(pieces, 3);
    // Records that are sound as such, but say what cannot be.
    for (what, damage) in [
        (
            "no code",
            &(|dump: &mut Dump| {
                dump.load(0x3000, 0, "f");
            }) as &dyn Fn(&mut Dump),
        ),
        ("too much code", &|dump| {
            dump.load(0x3000, u64::MAX, "f");
        }),
        ("code at the end", &|dump| {
            dump.load(u64::MAX, 0x10, "f");
        }),
        ("no name", &|dump| {
            dump.load(0x3000, 0x10, "");
        }),
        ("nothing to move", &|dump| {
            dump.moved(0x1234, 0x6000, 0x10);
        }),
        ("short load", &|dump| {
            dump.record(CODE_LOAD, |dump| {
                dump.u64(1);
            });
        }),
        ("endless name", &|dump| {
            dump.record(CODE_LOAD, |dump| dump.bytes.extend([1; 60]));
        }),
        ("short move", &|dump| {
            dump.record(CODE_MOVE, |dump| {
                dump.u64(1);
            });
        }),
        ("short lines", &|dump| {
            dump.record(DEBUG_INFO, |dump| {
                dump.u64(1);
            });
        }),
    ] {
        let mut dump = Dump::new(false);
        damage(&mut dump);
        dump.load(0x1000, 0x10, "sound");
        let parsed = parse(&dump.bytes).expect("a header");
        assert_eq!((parsed.pieces.len(), parsed.refused), (1, 1), "{what}");
    }
    // More lines than there are.
    let mut dump = Dump::new(false);
    dump.record(DEBUG_INFO, |dump| {
        dump.u64(0x1000).u64(u64::MAX);
    })
    .load(0x1000, 0x10, "f");
    assert_eq!(parse(&dump.bytes).expect("a header").pieces.len(), 1);
    // A record that is smaller than its own header would never end.
    let mut dump = Dump::new(false);
    dump.u32(CODE_LOAD).u32(0).u64(0).load(0x1000, 0x10, "f");
    let parsed = parse(&dump.bytes).expect("a header");
    assert_eq!((parsed.pieces.len(), parsed.is_whole), (0, false));
}

/// Check that no damaged byte makes the parser panic or hang.
#[test]
fn damaged_bytes() {
    let sound = whole(false).bytes;
    for position in 0..sound.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut damaged = sound.clone();
            damaged[position] = value;
            let _ = parse(&damaged);
        }
    }
}
