//! Walks over code whose accesses are known: each loop is assembled here, and its addresses follow from its registers. One table of kinds of
//! loops, so it is one file.

use crate::assembled::{Code, RAX, RBX, RCX, RDI, RDX, RSI, code};
use crate::process::{CODE, Process, STACK};
use firsttouch_decode::{Access, Operand, Reach, Registers, Walk, Walker, X86};
use iced_x86::code_asm::*;

/// Check a dot product with a sample at each of its instructions: both addresses of the iteration, their strides, and the registers that
/// change.
#[test]
fn a_loop_is_known_from_each_of_its_instructions() {
    let code = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.movsd_2(xmm0, qword_ptr(rax + rcx * 8))?;
        a.mulsd(xmm0, qword_ptr(rdx))?;
        a.add(rdx, 8)?;
        a.addsd(xmm1, xmm0)?;
        a.add(rcx, 1)?;
        a.cmp(rcx, rsi)?;
        a.jne(top)
    });
    let (a, b, round) = (0x1000_0000, 0x2000_0000, 7);
    for index in 0..7 {
        let column = if index > 4 { round + 1 } else { round };
        let pointer = b + 8 * if index > 2 { round + 1 } else { round };
        let walk = code.walk(index, &[(RAX, a), (RCX, column), (RDX, pointer), (RSI, 1000)]);
        assert_eq!(code.addresses(&walk), [(0, a + 8 * round), (1, b + 8 * round)], "sampled at {index}");
        assert!(walk.operands.iter().all(|one| one.stride == Some(8) && one.access == Access::Read && one.bytes == 8 && !one.is_stack));
        let here = walk.operands.iter().any(|one| one.reach == Reach::Here);
        assert_eq!((walk.unknown, here), (0, index < 2));
        let around = walk.around.expect("a loop");
        assert_eq!((around.end, around.is_waiting), (code.at[6], false));
        let induction = around.induction.expect("rcx grows");
        assert_eq!((induction.register, induction.value, induction.step), (1, column, 1));
        assert_eq!(around.left, Some(1000 - round - 1), "sampled at {index}");
    }
}

/// Check that a loop with another way out says nothing of the rounds that follow, alone or in an outer loop, and that one with an arm does.
#[test]
fn a_loop_with_two_ways_out_has_no_known_end() {
    enum Other {
        Return,
        NextRow,
        Arm,
    }
    let left = |other: Other| {
        let code = code(|a| {
            let (mut row, mut top, mut out) = (a.create_label(), a.create_label(), a.create_label());
            a.set_label(&mut row)?;
            a.xor(ecx, ecx)?; // 0
            a.set_label(&mut top)?;
            a.cmp(qword_ptr(rax + rcx * 8), rdi)?; // 1
            a.je(out)?;
            a.inc(rdx)?;
            if matches!(other, Other::Arm) {
                a.set_label(&mut out)?;
            }
            a.inc(rcx)?; // 4
            a.cmp(rcx, rsi)?;
            a.jb(top)?;
            if !matches!(other, Other::Arm) {
                a.set_label(&mut out)?;
            }
            if matches!(other, Other::Return) {
                return a.ret();
            }
            a.add(rax, r8)?;
            a.cmp(rax, r9)?;
            a.jne(row)?;
            a.ret()
        });
        code.walk(4, &[(RAX, 0x10_0000), (RCX, 7), (RSI, 100), (RDI, 3), (8, 4096), (9, 0x20_0000)]).around.expect("a loop").left
    };
    assert_eq!(left(Other::Return), None);
    assert_eq!(left(Other::NextRow), None);
    assert_eq!(left(Other::Arm), Some(92));
}

/// Check that samples from one entry into a loop have the same mark, and samples from another entry a different one.
#[test]
fn entries_of_a_loop_are_told_by_what_stays() {
    let code = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.mov(qword_ptr(rax + rcx * 8), rbx)?;
        a.inc(rcx)?;
        a.cmp(rcx, rsi)?;
        a.jb(top)
    });
    let entry = |index: usize, row: u64, column: u64| code.walk(index, &[(RAX, row), (RCX, column), (RSI, 100)]).around.unwrap().entry;
    assert_eq!(entry(0, 0x1000, 1), entry(2, 0x1000, 50));
    assert_ne!(entry(0, 0x1000, 1), entry(0, 0x2000, 1));
}

/// Check that pointers in registers that calls keep are known on both sides of a call, and others are not.
#[test]
fn calls_keep_what_they_must() {
    let code = code(|a| {
        let (mut top, mut function) = (a.create_label(), a.create_label());
        a.set_label(&mut top)?;
        a.movsd_2(xmm0, qword_ptr(rbx))?;
        a.call(function)?;
        a.movsd_2(qword_ptr(rbx + 0x100), xmm0)?;
        a.mov(rdx, qword_ptr(rdi))?;
        a.add(rbx, 8)?;
        a.cmp(rbx, r12)?;
        a.jne(top)?;
        a.set_label(&mut function)?;
        a.ret()
    });
    let walk = code.walk(0, &[(RBX, 0x5000), (12, 0x9000), (RDI, 0x7000)]);
    assert_eq!(code.addresses(&walk)[..2], [(0, 0x5000), (1, STACK - 8)]);
    assert_eq!(code.addresses(&walk)[2..], [(2, 0x5100), (3, 0x7000)]);
    let reach = |walk: &Walk| walk.operands.iter().find(|one| one.instruction == code.at[3]).map(|one| one.reach);
    assert_eq!(reach(&walk), Some(Reach::Behind), "rdi may change in the call, so its value is that of the iteration before");
    let walk = code.walk(2, &[(RBX, 0x5000), (12, 0x9000), (RDI, 0x7000)]);
    assert_eq!(reach(&walk), Some(Reach::Ahead));
    let walk = code.walk(4, &[(RBX, 0x5000), (12, 0x9000), (RDI, 0x7000)]);
    assert!(code.addresses(&walk).contains(&(3, 0x7000)), "between the call and the sample nothing changes rdi: {walk:?}");
}

/// Check that an inner loop is not part of the loop, and that the values that it changes are unknown after it.
#[test]
fn inner_loops_are_left_out() {
    let code = code(|a| {
        let (mut outer, mut inner) = (a.create_label(), a.create_label());
        a.set_label(&mut outer)?;
        a.mov(rcx, qword_ptr(rbx))?; // 0
        a.set_label(&mut inner)?;
        a.add(rax, qword_ptr(rdx))?; // 1
        a.add(rdx, 8)?;
        a.dec(rcx)?;
        a.jne(inner)?; // 4
        a.mov(qword_ptr(rdx), rax)?; // 5
        a.mov(qword_ptr(rdi), rax)?; // 6
        a.add(rbx, 8)?;
        a.cmp(rbx, rsi)?;
        a.jne(outer)
    });
    let walk = code.walk(0, &[(RBX, 0x5000), (RDX, 0x6000), (RDI, 0x7000), (RSI, 0x9000)]);
    assert_eq!(code.addresses(&walk), [(0, 0x5000), (5, 0x6000), (6, 0x7000)]);
    let of_store = walk.operands.iter().find(|one| one.address == 0x6000).map(|one| one.reach);
    assert_eq!(
        of_store,
        Some(Reach::Behind),
        "after the sample, the inner loop changes rdx; the iteration before ended with the current value of rdx"
    );
    assert_eq!(walk.around.unwrap().end, code.at[9]);
    let walk = code.walk(7, &[(RBX, 0x5000), (RDX, 0x6000), (RDI, 0x7000), (RSI, 0x9000)]);
    assert_eq!(
        code.addresses(&walk),
        [(0, 0x5000), (5, 0x6000), (6, 0x7000)],
        "before the sample, back to the inner loop, all values are known"
    );
    let walk = code.walk(2, &[(RBX, 0x5000), (RDX, 0x6000), (RDI, 0x7000), (RSI, 0x9000)]);
    assert_eq!(code.addresses(&walk), [(1, 0x6000)], "for a sample inside it, the inner loop is the loop");
}

/// Check that the values that an inner while loop changes are unknown after it, although the shortest path skips it.
#[test]
fn inner_loops_with_the_test_on_top() {
    let code = code(|a| {
        let (mut outer, mut head, mut out) = (a.create_label(), a.create_label(), a.create_label());
        a.set_label(&mut outer)?;
        a.mov(rcx, qword_ptr(rbx))?; // 0
        a.set_label(&mut head)?;
        a.test(rcx, rcx)?;
        a.je(out)?;
        a.add(rdx, 8)?;
        a.dec(rcx)?;
        a.jmp(head)?;
        a.set_label(&mut out)?;
        a.mov(qword_ptr(rdx), rax)?; // 6
        a.add(rbx, 8)?;
        a.cmp(rbx, rsi)?;
        a.jne(outer)
    });
    let walk = code.walk(0, &[(RBX, 0x5000), (RDX, 0x6000), (RSI, 0x9000)]);
    assert_eq!(code.addresses(&walk), [(0, 0x5000), (6, 0x6000)]);
    assert_eq!(walk.operands.iter().map(|one| one.reach).collect::<Vec<_>>(), [Reach::Here, Reach::Behind]);
}

/// Check that only the values that a branch arm outside the walk changes are unknown after it.
#[test]
fn arms_that_are_not_walked() {
    let code = code(|a| {
        let (mut top, mut skip) = (a.create_label(), a.create_label());
        a.set_label(&mut top)?;
        a.cmp(qword_ptr(rax + rcx * 8), 0)?; // 0
        a.jle(skip)?;
        a.mov(qword_ptr(rdx), rcx)?; // 2
        a.add(rdx, 8)?;
        a.set_label(&mut skip)?;
        a.mov(qword_ptr(rdi + rcx * 8), rdx)?; // 4
        a.mov(rbx, qword_ptr(rdx))?; // 5
        a.inc(rcx)?;
        a.cmp(rcx, rsi)?;
        a.jne(top)
    });
    let set = [(RAX, 0x1000), (RCX, 2), (RDX, 0x6000), (RDI, 0x7000), (RSI, 50)];
    let walk = code.walk(0, &set);
    assert_eq!(code.addresses(&walk), [(0, 0x1010), (4, 0x7010), (5, 0x6000)]);
    let reach = walk.operands.iter().find(|one| one.address == 0x6000).map(|one| one.reach);
    assert_eq!(reach, Some(Reach::Behind), "the walk skips the arm, which may have changed rdx");
    let walk = code.walk(3, &set);
    assert_eq!(code.addresses(&walk), [(0, 0x1010), (2, 0x6000), (4, 0x7010), (5, 0x6008)], "from the arm, its own accesses are known");
}

/// Check loads through an index: in a register, in memory, and in the lanes of a gather.
#[test]
fn gathers_read_their_index() {
    let scalar = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.movsxd(r8, dword_ptr(rdx + rcx * 4))?;
        a.movsd_2(xmm0, qword_ptr(rax + r8 * 8))?;
        a.inc(rcx)?;
        a.cmp(rcx, rsi)?;
        a.jne(top)
    });
    let mut scalar = Code {
        process: Process { data: vec![(0x2000, (0..64i32).flat_map(|i| (3 * i).to_le_bytes()).collect())], ..scalar.process },
        at: scalar.at,
    };
    let set = [(RAX, 0x10_0000), (RCX, 5), (RDX, 0x2000), (RSI, 64)];
    assert_eq!(scalar.addresses(&scalar.walk(0, &set)), [(0, 0x2000 + 20), (1, 0x10_0000 + 8 * 15)]);
    let walk = scalar.walk(2, &[set.as_slice(), &[(8, 15)]].concat());
    assert_eq!(scalar.addresses(&walk), [(0, 0x2014), (1, 0x10_0000 + 8 * 15)]);
    assert_eq!(walk.operands.iter().map(|one| one.stride).collect::<Vec<_>>(), [Some(4), Some(24)]);
    scalar.process.data.clear();
    let walk = scalar.walk(0, &set);
    assert_eq!(scalar.addresses(&walk), [(0, 0x2014), (1, 0x10_0000)], "without the index, only the iteration before is known");

    let vector = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.vmovdqu(xmm2, xmmword_ptr(rdx + rcx * 4))?;
        a.vgatherdpd_3(ymm1, qword_ptr(rax + xmm2 * 8), ymm3)?;
        a.add(rcx, 4)?;
        a.cmp(rcx, rsi)?;
        a.jne(top)
    });
    let vector = Code {
        process: Process { data: vec![(0x2000, (0..64i32).flat_map(|i| (i * i).to_le_bytes()).collect())], ..vector.process },
        at: vector.at,
    };
    for index in [0, 1, 2, 4] {
        let column = if index > 2 { 8 } else { 4 };
        let walk = vector.walk(index, &[(RAX, 0x10_0000), (RCX, column), (RDX, 0x2000), (RSI, 64)]);
        let lanes: Vec<u64> =
            vector.addresses(&walk).into_iter().filter(|(index, _)| *index == 1).map(|(_, at)| (at - 0x10_0000) / 8).collect();
        let first = if index == 0 { 4 } else { 8 };
        assert_eq!(lanes, (first..first + 4).map(|i| i * i).collect::<Vec<_>>(), "sampled at {index}");
    }
}

/// Check that a linked list is followed through memory.
#[test]
fn lists_are_followed() {
    let code = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.add(rbx, qword_ptr(rax))?;
        a.mov(rax, qword_ptr(rax + 8))?;
        a.test(rax, rax)?;
        a.jne(top)
    });
    let nodes = vec![(0x5000u64, [0, 0x9000u64]), (0x9000, [0, 0x6000])];
    let data = nodes.into_iter().map(|(at, words)| (at, words.iter().flat_map(|word| word.to_le_bytes()).collect())).collect();
    let code = Code { process: Process { data, ..code.process }, at: code.at };
    assert_eq!(code.addresses(&code.walk(0, &[(RAX, 0x5000)])), [(0, 0x5000), (1, 0x5008)]);
    let walk = code.walk(2, &[(RAX, 0x9000)]);
    assert_eq!(code.addresses(&walk), [(0, 0x9000), (1, 0x9008)]);
    assert_eq!(walk.operands[0].stride, Some(0x6000 - 0x9000));
}

/// Check that unoptimised code finds an array whose pointer lies in the frame of a caller, beyond the copy of the stack, where rbp is a frame
/// pointer, and that what lies in the function's own frame is never read later than the sample.
#[test]
fn pointers_in_frames_of_callers() {
    let mut code = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.mov(rax, qword_ptr(rbp - 16))?;
        a.mov(rax, qword_ptr(rax))?;
        a.mov(rdx, qword_ptr(rbp - 8))?;
        a.movsd_2(xmm0, qword_ptr(rax + rdx * 8))?;
        a.add(qword_ptr(rbp - 8), 1)?;
        a.jmp(top)
    });
    const RBP: usize = 5;
    let (array, of_caller, frame) = (0x1000_0000, STACK + 1000, STACK + 64);
    let word = |value: u64| value.to_le_bytes();
    code.process.stack = vec![0; 64];
    code.process.stack[48..56].copy_from_slice(&word(of_caller));
    code.process.stack[56..64].copy_from_slice(&word(7));
    code.process.data = vec![(of_caller, word(array).to_vec())];
    let walk = code.walk(0, &[(RBP, frame)]);
    assert!(code.addresses(&walk).contains(&(3, array + 56)), "{walk:?}");
    // A larger frame: the copy does not reach its local variables.
    let frame = STACK + 600;
    code.process.data = vec![(of_caller, word(array).to_vec()), (frame - 16, [word(of_caller), word(7)].concat())];
    let walk = code.walk(0, &[(RBP, frame)]);
    assert!(!code.addresses(&walk).contains(&(3, array + 56)), "{walk:?}");
}

/// Check that a spilled pointer is read from the copy of the stack, that a store to its slot is respected, and that without a copy the
/// pointer is unknown.
#[test]
fn spilled_registers_are_read_from_the_stack() {
    let code = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.mov(rdx, qword_ptr(rsp + 16))?;
        a.mov(rax, qword_ptr(rdx))?;
        a.add(qword_ptr(rsp + 16), 8)?;
        a.dec(rcx)?;
        a.jne(top)
    });
    let set = [(RCX, 10), (RDX, 1)];
    let without = code.walk(0, &set);
    let data = without.operands.iter().find(|one| !one.is_stack).map(|one| (one.address, one.reach));
    assert_eq!(data, Some((1, Reach::Behind)), "the register still holds the pointer of the iteration before");
    let stack: Vec<u8> = [0u64, 0, 0x8000, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    let code = Code { process: Process { stack, ..code.process }, at: code.at };
    let walk = code.walk(0, &set);
    let data: Vec<&Operand> = walk.operands.iter().filter(|one| !one.is_stack).collect();
    assert_eq!((data.len(), data[0].address, data[0].stride), (1, 0x8000, Some(8)));
    assert_eq!(walk.operands.iter().filter(|one| one.is_stack && one.access == Access::Update).count(), 1);
}

/// Check string instructions: the current elements, and their strides.
#[test]
fn strings_are_loops_of_their_own() {
    let code = code(|a| {
        a.rep().movsq()?;
        a.rep().stosb()?;
        a.ret()
    });
    let walk = code.walk(0, &[(RSI, 0x5000), (RDI, 0x9000), (RCX, 100)]);
    let mut seen: Vec<_> = walk.operands.iter().map(|one| (one.address, one.access, one.stride)).collect();
    seen.sort_unstable_by_key(|one| one.0);
    assert_eq!(seen, [(0x5000, Access::Read, Some(8)), (0x9000, Access::Write, Some(8))]);
    assert!(walk.around.unwrap().induction.is_some());
    let walk = code.walk(1, &[(RDI, 0x9000), (RCX, 100)]);
    assert_eq!(
        walk.operands.iter().map(|one| (one.address, one.access, one.stride)).collect::<Vec<_>>(),
        [(0x9000, Access::Write, Some(1))]
    );
}

/// Check that a plan is valid for the same code at another address in another process.
#[test]
fn plans_move_with_their_code() {
    let code = code(|a| {
        let (mut top, mut word) = (a.create_label(), a.create_label());
        a.set_label(&mut top)?;
        a.mov(rdx, qword_ptr(word))?;
        a.mov(qword_ptr(rax), rdx)?;
        a.add(rax, 8)?;
        a.jmp(top)?;
        a.set_label(&mut word)?;
        a.nop()
    });
    let plan = X86.plan(&code.process, code.at[0]).unwrap();
    let moved = 0x7f00_0000_0000;
    let registers = Registers {
        instruction_pointer: code.at[0] + moved,
        general: {
            let mut general = [0; 16];
            general[0] = 0x5000;
            general[4] = STACK;
            general
        },
    };
    let walk = X86.walk(&plan, &registers, &Process { moved, ..code.process });
    let seen: Vec<(u64, u64)> = walk.operands.iter().map(|one| (one.instruction, one.address)).collect();
    assert!(seen.contains(&(code.at[0] + moved, code.at[4] + moved)) && seen.contains(&(code.at[1] + moved, 0x5000)), "{seen:x?}");
    assert_eq!(walk.around.unwrap().end, code.at[3] + moved);
}

/// Check that waiting loops are recognised: loops with a pause instruction, and loops that read one address.
#[test]
fn waiting_is_recognised() {
    let pause = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.pause()?;
        a.cmp(dword_ptr(rdi), 0)?;
        a.je(top)
    });
    let plain = code(|a| {
        let mut top = a.create_label();
        a.set_label(&mut top)?;
        a.mov(eax, dword_ptr(rdi))?;
        a.test(eax, eax)?;
        a.je(top)
    });
    for (code, index) in [(&pause, 0), (&pause, 1), (&plain, 0), (&plain, 2)] {
        assert!(code.walk(index, &[(RDI, 0x5000)]).around.unwrap().is_waiting);
    }
}

/// Check straight code: the accesses before and after a sample, as far as the registers determine them.
#[test]
fn straight_code_is_walked_both_ways() {
    let code = code(|a| {
        for _ in 0..80 {
            a.nop()?;
        }
        a.mov(rbx, qword_ptr(rdi))?; // 80
        a.add(rdi, 64)?;
        a.mov(rdx, qword_ptr(rsi))?; // 82
        a.mov(qword_ptr(rdi), rdx)?; // 83
        a.addsd(xmm0, qword_ptr(0x7000))?; // 84
        a.mov(rcx, qword_ptr(rdx))?; // 85
        a.ret()
    });
    let walk = code.walk(82, &[(RDI, 0x5040), (RSI, 0x6000)]);
    assert_eq!(code.addresses(&walk)[..4], [(80, 0x5000), (82, 0x6000), (83, 0x5040), (84, 0x7000)]);
    let fixed: Vec<u64> = walk.operands.iter().filter(|one| one.is_fixed).map(|one| one.address).collect();
    assert_eq!(fixed, [0x7000], "only the constant's address is in the code");
    assert!(walk.around.is_none() && walk.unknown == 1, "{walk:?}");
}

/// Check that bytes that are not code give no plan.
#[test]
fn what_is_no_code_has_no_plan() {
    let nothing = Process::default();
    assert!(X86.plan(&nothing, CODE).is_none());
    let invalid = Process { code: vec![0x06, 0x06], ..Process::default() };
    assert!(X86.plan(&invalid, CODE).is_none());
    assert!(X86.plan(&invalid, u64::MAX).is_none());
}

/// Check that walks over random bytes do not panic, and that a repeated walk gives the same result.
#[test]
fn random_code_does_no_harm() {
    let mut random = 0x1234_5678_9abc_def1u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut planned = 0;
    for _ in 0..3000 {
        let bytes: Vec<u8> = (0..200).map(|_| next() as u8).collect();
        let process = Process { code: bytes, stack: vec![1; 64], data: vec![(0, vec![2; 4096])], moved: 0 };
        let at = CODE + next() % 200;
        let Some(plan) = X86.plan(&process, at) else { continue };
        planned += 1;
        let mut registers = Registers { instruction_pointer: at, ..Registers::default() };
        registers.general.iter_mut().for_each(|value| *value = [0, 1, 4000, STACK, u64::MAX, next()][(next() % 6) as usize]);
        assert_eq!(X86.walk(&plan, &registers, &process), X86.walk(&plan, &registers, &process));
    }
    assert!(planned > 1000, "{planned}");
}
