//! Compares walks over random assembled loops with an interpreter that executes them: each address of a walk is one that the loop accesses
//! in the iteration of the sample or in an adjacent one.

use crate::process::{CODE, STACK};
use firsttouch_decode::{Memory, Registers, Walker, X86};
use iced_x86::code_asm::*;
use std::collections::HashMap;

/// xorshift64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Registers that random code may write, by number. r13 points to the stored data, and r12 counts the iterations.
const POOL: [u64; 9] = [0, 1, 2, 3, 6, 7, 8, 9, 10];
const STORED: u64 = 0x5000_0000_0000;

#[derive(Clone, Copy, Debug)]
struct Place {
    base: u64,
    index: u64,
    scale: u64,
    displacement: i32,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    AddConstant(u64, i32),
    Add(u64, u64),
    Sub(u64, u64),
    Move(u64, u64),
    Move32(u64, u64),
    Lea(u64, Place),
    Shift(u64, u32),
    Mask(u64, i32),
    Multiply(u64, u64, i32),
    Load(u64, Place),
    Load32(u64, Place),
    LoadAdd(u64, Place),
    Store(Place, u64),
    /// Skips this many operations if the register has none of these bits set.
    Skip(u64, i32, usize),
}

fn random_op(random: &mut Random, left: usize) -> Op {
    let mut register = || POOL[random.below(POOL.len() as u64) as usize];
    let (a, b, c) = (register(), register(), register());
    let constant = random.below(200) as i32 - 100;
    let place = Place { base: b, index: c, scale: 1 << random.below(4), displacement: 8 * constant };
    match random.below(16) {
        0 | 1 => Op::AddConstant(a, constant),
        2 => Op::Add(a, b),
        3 => Op::Sub(a, b),
        4 => Op::Move(a, b),
        5 => Op::Move32(a, b),
        6 => Op::Lea(a, place),
        7 => Op::Shift(a, random.below(5) as u32),
        8 => Op::Mask(a, constant),
        9 => Op::Multiply(a, b, constant),
        10 => Op::Load(a, place),
        11 => Op::Load32(a, place),
        12 => Op::LoadAdd(a, place),
        13 | 14 => Op::Store(Place { base: 13, ..place }, a),
        _ if left > 1 => Op::Skip(a, constant, 1 + random.below(left as u64 - 1) as usize),
        _ => Op::Move(a, b),
    }
}

fn wide(number: u64) -> AsmRegister64 {
    [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15][number as usize]
}

fn narrow(number: u64) -> AsmRegister32 {
    [eax, ecx, edx, ebx, esp, ebp, esi, edi, r8d, r9d, r10d, r11d, r12d, r13d, r14d, r15d][number as usize]
}

fn memory(place: Place) -> AsmMemoryOperand {
    wide(place.base) + wide(place.index) * place.scale as i32 + place.displacement
}

/// The loop's bytes, and for each operation the address of the instruction that accesses memory, or else of its first instruction.
fn assemble(ops: &[Op]) -> (Vec<u8>, Vec<u64>) {
    let mut a = CodeAssembler::new(64).unwrap();
    let mut top = a.create_label();
    let mut labels: HashMap<usize, CodeLabel> = HashMap::new();
    let mut first = Vec::new();
    a.set_label(&mut top).unwrap();
    for (index, op) in ops.iter().enumerate() {
        if let Some(label) = labels.get_mut(&index) {
            a.set_label(label).unwrap();
        }
        first.push(a.instructions().len());
        match *op {
            Op::AddConstant(r, value) => a.add(wide(r), value),
            Op::Add(r, s) => a.add(wide(r), wide(s)),
            Op::Sub(r, s) => a.sub(wide(r), wide(s)),
            Op::Move(r, s) => a.mov(wide(r), wide(s)),
            Op::Move32(r, s) => a.mov(narrow(r), narrow(s)),
            Op::Lea(r, place) => a.lea(wide(r), qword_ptr(memory(place))),
            Op::Shift(r, by) => a.shl(wide(r), by),
            Op::Mask(r, value) => a.and(wide(r), value),
            Op::Multiply(r, s, value) => a.imul_3(wide(r), wide(s), value),
            Op::Load(r, place) => a.mov(wide(r), qword_ptr(memory(place))),
            Op::Load32(r, place) => a.movsxd(wide(r), dword_ptr(memory(place))),
            Op::LoadAdd(r, place) => a.add(wide(r), qword_ptr(memory(place))),
            Op::Store(place, r) => a.mov(qword_ptr(memory(place)), wide(r)),
            Op::Skip(r, bits, count) => {
                let label = labels.entry(index + count).or_insert_with(|| a.create_label());
                let label = *label;
                a.test(wide(r), bits).and_then(|()| a.je(label))
            }
        }
        .unwrap();
    }
    if let Some(label) = labels.get_mut(&ops.len()) {
        a.set_label(label).unwrap();
    }
    a.dec(r12).unwrap();
    a.jne(top).unwrap();
    let bytes = a.assemble(CODE).unwrap();
    let all: Vec<u64> = iced_x86::Decoder::with_ip(64, &bytes, CODE, 0).into_iter().map(|one| one.ip()).collect();
    (bytes, first.iter().map(|index| all[*index]).collect())
}

/// The word at an address that is never written: a small number, so that sums of such words differ from stored values.
fn word(address: u64) -> u64 {
    (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

fn bytes_at(address: u64, bytes: usize) -> u64 {
    let all = u128::from(word(address)) | u128::from(word(address.wrapping_add(8))) << 64;
    let value = (all >> (8 * (address % 8))) as u64;
    if bytes == 4 { value & 0xffff_ffff } else { value }
}

struct Data {
    code: Vec<u8>,
}

impl Memory for Data {
    fn code(&self, address: u64, bytes: &mut [u8]) -> usize {
        let Some(code) = address.checked_sub(CODE).and_then(|from| self.code.get(from as usize..)) else { return 0 };
        let count = code.len().min(bytes.len());
        bytes[..count].copy_from_slice(&code[..count]);
        count
    }

    fn then(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }

    fn now(&self, address: u64, bytes: &mut [u8]) -> bool {
        bytes.iter_mut().enumerate().for_each(|(index, byte)| *byte = bytes_at(address.wrapping_add(index as u64), 8) as u8);
        true
    }
}

/// One executed operation: the registers before it, and the address that it accesses.
struct Executed {
    registers: [u64; 16],
    address: Option<u64>,
}

/// Executes iterations of the loop. The result is by iteration and operation.
fn execute(ops: &[Op], mut r: [u64; 16], rounds: usize) -> Vec<Vec<Option<Executed>>> {
    let mut all = Vec::new();
    for _ in 0..rounds {
        let mut round: Vec<Option<Executed>> = (0..ops.len()).map(|_| None).collect();
        let mut index = 0;
        while let Some(op) = ops.get(index) {
            let address = |place: Place| {
                r[place.base as usize]
                    .wrapping_add(r[place.index as usize].wrapping_mul(place.scale))
                    .wrapping_add_signed(place.displacement.into())
            };
            let accessed = match *op {
                Op::Load(_, place) | Op::Load32(_, place) | Op::LoadAdd(_, place) | Op::Store(place, _) => Some(address(place)),
                _ => None,
            };
            round[index] = Some(Executed { registers: r, address: accessed });
            let next = |by: usize| index + by;
            let after = match *op {
                Op::Skip(s, bits, count) if r[s as usize] & i64::from(bits) as u64 == 0 => next(count),
                _ => next(1),
            };
            let result = match *op {
                Op::AddConstant(d, value) => Some((d, r[d as usize].wrapping_add_signed(value.into()))),
                Op::Add(d, s) => Some((d, r[d as usize].wrapping_add(r[s as usize]))),
                Op::Sub(d, s) => Some((d, r[d as usize].wrapping_sub(r[s as usize]))),
                Op::Move(d, s) => Some((d, r[s as usize])),
                Op::Move32(d, s) => Some((d, r[s as usize] & 0xffff_ffff)),
                Op::Lea(d, place) => Some((d, address(place))),
                Op::Shift(d, by) => Some((d, r[d as usize] << by)),
                Op::Mask(d, value) => Some((d, r[d as usize] & i64::from(value) as u64)),
                Op::Multiply(d, s, value) => Some((d, r[s as usize].wrapping_mul(i64::from(value) as u64))),
                Op::Load(d, place) => Some((d, bytes_at(address(place), 8))),
                Op::Load32(d, place) => Some((d, i64::from(bytes_at(address(place), 4) as u32 as i32) as u64)),
                Op::LoadAdd(d, place) => Some((d, r[d as usize].wrapping_add(bytes_at(address(place), 8)))),
                Op::Store(..) | Op::Skip(..) => None,
            };
            if let Some((register, value)) = result {
                r[register as usize] = value;
            }
            index = after;
        }
        r[12] = r[12].wrapping_sub(1);
        all.push(round);
    }
    all
}

/// Check walks of random loops against their execution.
#[test]
fn walks_agree_with_execution() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut agreed, mut walked, mut unknown, mut counted) = (0, 0, 0, 0);
    for trial in 0..1500 {
        let count = 3 + random.below(12) as usize;
        let ops: Vec<Op> = (0..count).map(|index| random_op(&mut random, count - index)).collect();
        let (code, at) = assemble(&ops);
        let data = Data { code };
        let mut registers = [0; 16];
        POOL.iter().for_each(|r| registers[*r as usize] = random.below(1 << 30));
        (registers[12], registers[13], registers[4]) = (1000, STORED, STACK);
        let rounds = execute(&ops, registers, 8);
        for _ in 0..6 {
            let (round, index) = (2 + random.below(4) as usize, random.below(count as u64) as usize);
            let Some(sampled) = &rounds[round][index] else { continue };
            let plan = X86.plan(&data, at[index]).unwrap();
            let walk = X86.walk(&plan, &Registers { instruction_pointer: at[index], general: sampled.registers }, &data);
            // The loop counts down in r12 behind all operations.
            let left = walk.around.expect("a loop").left;
            assert!(left.is_none_or(|left| left == 999 - round as u64), "trial {trial}, sampled {index} of {ops:#?}: {left:?}");
            counted += usize::from(left.is_some());
            walked += 1;
            unknown += walk.unknown;
            for operand in &walk.operands {
                let op = at.iter().position(|one| *one == operand.instruction).unwrap();
                let near = rounds[round - 1..=round + 1].iter().filter_map(|round| round[op].as_ref()?.address);
                let near: Vec<u64> = near.collect();
                assert!(
                    near.contains(&operand.address) || near.is_empty(),
                    "trial {trial}, sampled {index} of {ops:#?}\nround {round}: {operand:x?}, executed {near:x?}"
                );
                agreed += usize::from(!near.is_empty());
            }
        }
    }
    assert!(counted > walked * 9 / 10, "{counted} of {walked}");
    println!("{walked} walks, {agreed} addresses, {unknown} unknown");
    assert!(walked > 5000 && agreed > 10_000 && (unknown as usize) < agreed / 4, "{walked} walks, {agreed} addresses, {unknown} unknown");
}
