//! Which counter shows the progress of a loop.

use crate::assembled::{Code, RAX, RCX, RDI, RDX, RSI, code};
use crate::process::Process;
use firsttouch_decode::Induction;
use iced_x86::code_asm::*;

/// Check that the index which a gather loads shows no progress, although its step is constant here, wherever the sample is: the counter does, in a register
/// with a higher number.
#[test]
fn loaded_indices_show_no_progress() {
    let code = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.movsxd(rax, dword_ptr(rsi + rdx * 4))?;
        a.movsd_2(xmm0, qword_ptr(rdi + rax * 8))?;
        a.addsd(xmm1, xmm0)?;
        a.add(rdx, 1)?;
        a.cmp(rdx, rcx)?;
        a.jne(top)
    });
    let (indices, values) = (0x1000_0000u64, 0x2000_0000);
    let list: Vec<u8> = (0..64i32).flat_map(|i| (1000 * i).to_le_bytes()).collect();
    let code = Code { process: Process { data: vec![(indices, list)], ..code.process }, at: code.at };
    for index in 0..6 {
        let set = [(RSI, indices), (RDI, values), (RDX, if index > 3 { 8 } else { 7 }), (RAX, 7000), (RCX, 60)];
        let walk = code.walk(index, &set);
        let induction = walk.around.and_then(|around| around.induction).expect("a counter");
        assert_eq!((usize::from(induction.register), induction.step), (RDX, 1), "sampled at {index}");
        assert!(code.addresses(&walk).contains(&(1, values + 8 * 7000)), "sampled at {index}");
    }
}

/// Check the same in code that is not optimised, which keeps its counter on the stack and makes each address of it: the counter shows the progress, wherever
/// the sample is.
#[test]
fn counters_on_the_stack_show_progress() {
    let code = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.mov(rax, qword_ptr(rsp + 8))?;
        a.lea(rcx, qword_ptr(rax * 4))?;
        a.mov(rax, qword_ptr(rsp + 16))?;
        a.add(rax, rcx)?;
        a.mov(eax, dword_ptr(rax))?;
        a.cdqe()?;
        a.lea(rcx, qword_ptr(rax * 8))?;
        a.mov(rax, qword_ptr(rsp + 24))?;
        a.add(rax, rcx)?;
        a.movsd_2(xmm0, qword_ptr(rax))?;
        a.add(qword_ptr(rsp + 8), 1)?;
        a.cmp(qword_ptr(rsp + 8), rdx)?;
        a.jb(top)
    });
    let (indices, values) = (0x1000_0000u64, 0x2000_0000u64);
    let list: Vec<u8> = (0..64i32).flat_map(|i| (1000 * i).to_le_bytes()).collect();
    for index in 0..13 {
        let counter = if index > 10 { 8 } else { 7 };
        let stack: Vec<u8> = [0, counter, indices, values].iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let process = Process { code: code.process.code.clone(), stack, data: vec![(indices, list.clone())], ..Process::default() };
        let code = Code { process, at: code.at.clone() };
        // What the registers hold there.
        let (first, second) = match index {
            1 => (7, 0),
            2 => (7, 28),
            3 => (indices, 28),
            4 => (indices + 28, 28),
            5 | 6 => (7000, 28),
            7 => (7000, 56_000),
            8 => (values, 56_000),
            _ => (values + 56_000, 56_000),
        };
        let walk = code.walk(index, &[(RAX, first), (RCX, second), (RDX, 60)]);
        let induction = walk.around.and_then(|around| around.induction).expect("a counter");
        assert_eq!((induction.register, induction.value, induction.step), (Induction::ON_STACK, counter, 1), "sampled at {index}");
        assert!(code.addresses(&walk).iter().any(|(at, address)| *at == 9 && *address == values + 56_000), "sampled at {index}");
    }
}

/// Check that an inner loop which an outer one enters again and again keeps its strides and its progress: what the outer loop sets before
/// the inner loop begins is another entry, not another arm of the same round.
#[test]
fn an_outer_loop_does_not_hide_the_progress_of_the_inner_one() {
    let code = code(|a| {
        let (mut row, mut column, mut end) = (a.create_label(), a.create_label(), a.create_label());
        a.set_label(&mut row)?;
        a.xor(eax, eax)?;
        a.test(rcx, rcx)?;
        a.je(end)?;
        a.set_label(&mut column)?;
        a.movsd_2(xmm0, qword_ptr(rdx + rax * 8))?;
        a.mulsd(xmm0, qword_ptr(rsi + rax * 8))?;
        a.add(rax, 1)?;
        a.addsd(xmm1, xmm0)?;
        a.cmp(rcx, rax)?;
        a.jne(column)?;
        a.set_label(&mut end)?;
        a.movsd_2(qword_ptr(rdi), xmm1)?;
        a.add(rdi, 8)?;
        a.add(rdx, r8)?;
        a.cmp(rdi, r9)?;
        a.jne(row)?;
        a.ret()
    });
    for index in 3..9 {
        let walk = code.walk(index, &[(RAX, 10), (RCX, 1000), (RDX, 0x10_0000), (RSI, 0x20_0000), (RDI, 0x30_0000)]);
        assert_eq!(walk.operands.len(), 2);
        assert!(walk.operands.iter().all(|operand| operand.stride == Some(8)), "{index}: {walk:?}");
        let induction = walk.around.and_then(|around| around.induction);
        assert_eq!(induction.map(|one| (one.register, one.value, one.step)), Some((0, 10, 1)), "{index}");
    }
}
