//! Structure-aware mutators: they change values and keep the form, so that inputs get past the first check of a reader.

use crate::choice::Choice;
use libfuzzer_sys::fuzzer_mutate;

/// Values that a reader may not expect.
const VALUES: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "63",
    "64",
    "255",
    "256",
    "1023",
    "1024",
    "4096",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "0.0",
    "1e308",
    "-0.5",
];

/// Of text: changes a number or a word, or repeats, removes, swaps or joins lines. Half of the time, as libFuzzer does.
pub fn text(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut choice = Choice::new(seed);
    let changed = match std::str::from_utf8(&data[..size]) {
        Ok(text) if size > 0 && choice.below(2) == 0 => change(text, &mut choice),
        _ => return fuzzer_mutate(data, size, most),
    };
    put(data, changed.as_bytes(), most)
}

fn put(data: &mut [u8], bytes: &[u8], most: usize) -> usize {
    let size = bytes.len().min(most).min(data.len());
    data[..size].copy_from_slice(&bytes[..size]);
    size
}

fn change(text: &str, choice: &mut Choice) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let (at, other) = (choice.below(lines.len()), choice.below(lines.len()));
    match choice.below(8) {
        0 => lines.insert(other, lines[at].clone()),
        1 if lines.len() > 1 => drop(lines.remove(at)),
        2 => lines.swap(at, other),
        3 => lines[at] = lines[at].trim_end_matches('\n').to_owned(),
        kind => lines[at] = change_line(&lines[at], &lines[other].clone(), kind, choice),
    }
    lines.concat()
}

/// A run of letters or digits becomes another value, or one of another line.
fn change_line(line: &str, other: &str, kind: usize, choice: &mut Choice) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let tokens = |line: &str| -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        let mut start = None;
        for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
            match (is_part(c), start) {
                (true, None) => start = Some(at),
                (false, Some(from)) => {
                    all.push((from, at));
                    start = None;
                }
                _ => {}
            }
        }
        all
    };
    let (own, others) = (tokens(line), tokens(other));
    if own.is_empty() {
        return line.to_owned();
    }
    let (from, to) = own[choice.below(own.len())];
    let value = match kind {
        4 if !others.is_empty() => {
            let (from, to) = others[choice.below(others.len())];
            other[from..to].to_owned()
        }
        5 => line[from..to].repeat(1 + choice.below(3)),
        _ => VALUES[choice.below(VALUES.len())].to_owned(),
    };
    format!("{}{value}{}", &line[..from], &line[to..])
}

/// Of an ELF file after `head` bytes: changes the bytes of one section, so that all headers stay. One time in four, as libFuzzer does.
pub fn section(data: &mut [u8], size: usize, most: usize, seed: u32, head: usize) -> usize {
    let mut choice = Choice::new(seed);
    let sections = if size > head { sections(&data[head..size]) } else { Vec::new() };
    if sections.is_empty() || choice.below(4) == 0 {
        return fuzzer_mutate(data, size, most);
    }
    let (from, to) = sections[choice.below(sections.len())];
    let old = data[head + from..head + to].to_vec();
    let part = &mut data[head + from..head + to];
    let length = part.len();
    let kept = fuzzer_mutate(part, length, length);
    part[kept..].copy_from_slice(&old[kept..]);
    size
}

/// The sections of a 64-bit little-endian ELF file that have bytes in it.
fn sections(file: &[u8]) -> Vec<(usize, usize)> {
    let word = |at: usize, bytes: usize| -> Option<usize> {
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(file.get(at..at + bytes)?);
        usize::try_from(u64::from_le_bytes(value)).ok()
    };
    let table = || Some((word(0x28, 8)?, word(0x3a, 2)?, word(0x3c, 2)?));
    let Some((offset, each, count)) = table() else { return Vec::new() };
    let section = |index: usize| {
        let at = index.checked_mul(each)?.checked_add(offset)?;
        let (kind, from, bytes) = (word(at.checked_add(4)?, 4)?, word(at.checked_add(0x18)?, 8)?, word(at.checked_add(0x20)?, 8)?);
        let to = from.checked_add(bytes)?;
        (kind != 8 && bytes > 0 && to <= file.len()).then_some((from, to))
    };
    (0..count.min(200)).filter_map(section).collect()
}

/// x86-64 instructions as compilers write them in loops.
const INSTRUCTIONS: [&[u8]; 28] = [
    &[0x48, 0x83, 0xc0, 0x08],                         // add rax, 8
    &[0x48, 0x39, 0xd0],                               // cmp rax, rdx
    &[0xf2, 0x0f, 0x10, 0x00],                         // movsd xmm0, [rax]
    &[0xf2, 0x0f, 0x11, 0x04, 0xc7],                   // movsd [rdi+rax*8], xmm0
    &[0xf2, 0x0f, 0x58, 0x44, 0xc6, 0x08],             // addsd xmm0, [rsi+rax*8+8]
    &[0x66, 0x0f, 0x6f, 0x04, 0x07],                   // movdqa xmm0, [rdi+rax]
    &[0xc5, 0xfd, 0x10, 0x04, 0x07],                   // vmovupd ymm0, [rdi+rax]
    &[0xc4, 0xe2, 0xfd, 0xb8, 0x04, 0x06],             // vfmadd231pd ymm0, ymm0, [rsi+rax]
    &[0x62, 0xf1, 0xfd, 0x48, 0x10, 0x44, 0x07, 0x01], // vmovupd zmm0, [rdi+rax+64]
    &[0x62, 0xf2, 0xfd, 0x49, 0x93, 0x04, 0xc7],       // vgatherqpd zmm0{k1}, [rdi+zmm0*8]
    &[0x8b, 0x04, 0x97],                               // mov eax, [rdi+rdx*4]
    &[0x89, 0x04, 0x24],                               // mov [rsp], eax
    &[0x48, 0x8d, 0x04, 0xcd, 0, 0, 0, 0],             // lea rax, [rcx*8]
    &[0x48, 0x8b, 0x05, 0x10, 0, 0, 0],                // mov rax, [rip+16]
    &[0x48, 0xff, 0xc9],                               // dec rcx
    &[0x48, 0x63, 0xc2],                               // movsxd rax, edx
    &[0xf3, 0x48, 0xab],                               // rep stosq
    &[0xf3, 0xa4],                                     // rep movsb
    &[0xf0, 0x48, 0x0f, 0xc1, 0x07],                   // lock xadd [rdi], rax
    &[0x48, 0xf7, 0xf1],                               // div rcx
    &[0x48, 0x0f, 0x45, 0xc2],                         // cmovne rax, rdx
    &[0x50],                                           // push rax
    &[0x58],                                           // pop rax
    &[0xe8, 0, 0, 0, 0],                               // call the next
    &[0xc3],                                           // ret
    &[0x0f, 0x1f, 0x44, 0, 0],                         // nop
    &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0],    // mov rax, fs:[0x28]
    &[0x48, 0x69, 0xc0, 0x40, 0x42, 0x0f, 0],          // imul rax, rax, 1000000
];

/// Of code after `head` bytes: inserts whole instructions, and jumps back so that there is a loop. One time in four, as libFuzzer does.
pub fn code(data: &mut [u8], size: usize, most: usize, seed: u32, head: usize) -> usize {
    let mut choice = Choice::new(seed);
    if size < head || choice.below(4) == 0 {
        return fuzzer_mutate(data, size, most);
    }
    let mut code = data[head..size].to_vec();
    let at = choice.below(code.len() + 1);
    let inserted: Vec<u8> = match choice.below(4) {
        // A conditional jump to an earlier instruction.
        0 => vec![0x75, (-(choice.below(100) as i64) - 2) as u8],
        1 => vec![0x0f, 0x85, (-(choice.below(200) as i64)) as u8, 0xff, 0xff, 0xff],
        _ => INSTRUCTIONS[choice.below(INSTRUCTIONS.len())].to_vec(),
    };
    if choice.below(3) == 0 {
        code.truncate(at);
        code.extend(inserted);
    } else {
        code.splice(at..at, inserted);
    }
    head + put(&mut data[head..], &code, most.saturating_sub(head))
}
