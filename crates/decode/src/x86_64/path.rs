//! Which instructions are walked: the innermost loop around the sampled instruction, or the straight code around it.
//!
//! The innermost loop is the shortest way from the instruction back to itself. Two things are not on that way and still change registers:
//! an inner loop that the way passes by, and the arm of a branch that it does not take. Where such code joins the way again, what it
//! writes is forgotten.

use super::rest;
use super::state::CALLER_SAVED;
use super::strings::{element, is_repeated};
use crate::{Access, Memory};
use hashbrown::HashMap;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Longest x86 instruction.
const LONGEST: usize = 15;
/// Instructions that a search looks at, and that a straight way has.
const MOST_SEARCHED: usize = 600;
const MOST_STRAIGHT: usize = 96;
/// Bytes before an instruction that are decoded to find those that come before it.
const BYTES_BEFORE: usize = 64;
/// The first bytes of that window are decoded from few starts only, so they are not trusted.
const BYTES_UNSURE: u64 = 16;
/// Code at most so far before a loop leads into it: what comes from there has left the loop, and enters it again.
const BYTES_LEADING_IN: u64 = 512;

/// An access of an instruction to memory, with its address as a sum of registers.
#[derive(Clone, Debug)]
pub struct MemoryOperand {
    pub base: Register,
    pub index: Register,
    pub scale: u32,
    pub displacement: u64,
    pub is_relative: bool,
    pub bytes: u32,
    pub access: Access,
    /// Of gathers and scatters: bytes of an index, and how many there are.
    pub lanes: Option<(usize, usize)>,
}

/// An instruction on the way, and what is not known behind it.
#[derive(Clone, Debug)]
pub struct Step {
    pub instruction: Instruction,
    pub operands: Vec<MemoryOperand>,
    /// General registers that it writes, and those that code beside the way may have written when the way goes on behind it.
    pub writes: u16,
    pub forget: u16,
    pub vector_writes: u32,
    pub reads: u16,
    pub vector_reads: u32,
    /// Its value can reach an address.
    pub is_needed: bool,
    pub forget_vectors: bool,
    pub writes_memory: bool,
    /// It belongs to a loop inside the loop: its operands are seen by the samples taken there.
    pub is_inner: bool,
}

/// The instructions around an address.
#[derive(Clone, Debug)]
pub struct Plan {
    pub start: u64,
    /// From the sampled instruction on; once round where it is a loop.
    pub ahead: Vec<Step>,
    /// Those before it, nearest first; of a loop empty, since `ahead` holds them.
    pub behind: Vec<Step>,
    pub is_loop: bool,
    /// No other way round the loop is shorter, so that it is the way of all instructions on it.
    is_shortest: bool,
    /// The last instruction of the loop by address.
    pub end: u64,
    pub has_pause: bool,
    /// The instruction that decides whether another round follows, if nothing else does.
    pub comparison: Option<u64>,
}

impl Plan {
    /// The address of its first instruction, in the code that it was made from.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The instructions that have the same innermost loop.
    pub fn members(&self) -> impl Iterator<Item = u64> {
        let steps = if self.is_shortest { self.ahead.as_slice() } else { &[] };
        steps.iter().filter(|step| !step.is_inner).map(|step| step.instruction.ip())
    }

    /// Whether the code addresses local variables as those below rbp: then rbp may be a frame pointer.
    pub fn has_frame_pointer(&self) -> bool {
        let is_local = |operand: &MemoryOperand| {
            operand.base == Register::RBP && operand.index == Register::None && operand.displacement.cast_signed() < 0
        };
        self.ahead.iter().chain(&self.behind).flat_map(|step| &step.operands).any(is_local)
    }

    /// The plan of one of the members: the same loop, beginning there.
    #[must_use]
    pub fn beside(&self, start: u64) -> Option<Self> {
        let at = self.members().any(|member| member == start).then(|| self.ahead.iter().position(|step| step.instruction.ip() == start));
        let mut plan = Self { start, ..self.clone() };
        plan.ahead.rotate_left(at??);
        Some(plan)
    }
}

/// Instructions of a process, each decoded once a plan.
struct Code<'a> {
    memory: &'a dyn Memory,
    known: HashMap<u64, Option<Instruction>>,
}

impl Code<'_> {
    fn at(&mut self, address: u64) -> Option<Instruction> {
        let memory = self.memory;
        *self.known.entry(address).or_insert_with(|| {
            let mut bytes = [0; LONGEST];
            let readable = memory.code(address, &mut bytes).min(LONGEST);
            let instruction = Decoder::with_ip(64, &bytes[..readable], address, DecoderOptions::NONE).decode();
            (!instruction.is_invalid()).then_some(instruction)
        })
    }

    /// Where control can go behind an instruction, in this function. Calls return.
    fn successors(instruction: &Instruction) -> impl Iterator<Item = u64> + use<> {
        let (next, target) = (instruction.next_ip(), instruction.near_branch_target());
        let ways = match instruction.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => [Some(next), None],
            FlowControl::ConditionalBranch => [Some(next), Some(target)],
            FlowControl::UnconditionalBranch => [Some(target), None],
            _ => [None, None],
        };
        ways.into_iter().flatten()
    }

    /// The shortest way from `start` back to itself, each instruction once; `None` where there is none.
    fn cycle(&mut self, start: u64) -> Option<Vec<Instruction>> {
        let first = self.at(start)?;
        let mut from: HashMap<u64, u64> = HashMap::new();
        let mut queue = VecDeque::from([first]);
        while let Some(instruction) = queue.pop_front() {
            for next in Self::successors(&instruction) {
                if next == start {
                    let mut way = vec![instruction];
                    while let Some(before) = way.last().filter(|last| last.ip() != start).and_then(|last| from.get(&last.ip())) {
                        way.push(self.at(*before)?);
                    }
                    way.reverse();
                    return Some(way);
                }
                if from.len() < MOST_SEARCHED
                    && let hashbrown::hash_map::Entry::Vacant(entry) = from.entry(next)
                    && let Some(found) = self.at(next)
                {
                    entry.insert(instruction.ip());
                    queue.push_back(found);
                }
            }
        }
        None
    }

    /// The instructions from `start` to the next one that does not simply go on.
    fn straight(&mut self, start: u64) -> Vec<Instruction> {
        let mut way = Vec::new();
        let mut next = Some(start);
        while let Some(instruction) = next.filter(|_| way.len() < MOST_STRAIGHT).and_then(|address| self.at(address)) {
            way.push(instruction);
            next = match instruction.flow_control() {
                FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => Some(instruction.next_ip()),
                _ => None,
            };
        }
        way
    }

    /// The instructions before `end`, nearest first, up to one that does not simply go on. Instructions cannot be decoded backward: all starts
    /// in a window are decoded forward, and of those that arrive at `end`, the way that most of them take is followed.
    fn before(&mut self, end: u64) -> Vec<Instruction> {
        let Some(window) = end.checked_sub(BYTES_BEFORE as u64) else { return Vec::new() };
        let mut bytes = [0; BYTES_BEFORE];
        if self.memory.code(window, &mut bytes) < BYTES_BEFORE {
            return Vec::new();
        }
        // By the address behind an instruction: addresses of the instruction, and how many ways have it.
        let mut votes: HashMap<u64, BTreeMap<u64, u32>> = HashMap::new();
        for start in 0..BYTES_BEFORE {
            let mut decoder = Decoder::with_ip(64, &bytes[start..], window + start as u64, DecoderOptions::NONE);
            let mut way = Vec::new();
            while decoder.can_decode() && decoder.ip() < end {
                let instruction = decoder.decode();
                if instruction.is_invalid() {
                    break;
                }
                way.push((instruction.next_ip(), instruction.ip()));
            }
            if way.last().is_some_and(|(next, _)| *next == end) {
                way.iter().for_each(|(next, at)| *votes.entry(*next).or_default().entry(*at).or_default() += 1);
            }
        }
        let mut way = Vec::new();
        let mut behind = end;
        while behind >= window + BYTES_UNSURE
            && let Some((at, _)) = votes.get(&behind).and_then(|starts| starts.iter().max_by_key(|(_, count)| **count))
            && let Some(instruction) = self.at(*at).filter(|one| one.flow_control() == FlowControl::Next)
        {
            way.push(instruction);
            behind = *at;
        }
        way
    }

    /// What code beside the way writes between leaving it and coming back: positions on the way where it comes back, and the registers.
    /// Control that comes back from just before the loop has gone round an outer loop, so it is another entry and not another arm.
    fn detour(&mut self, way: &BTreeMap<u64, usize>, start: u64, info: &mut InstructionInfoFactory) -> Detour {
        let mut detour = Detour::default();
        let mut seen = BTreeSet::from([start]);
        let mut queue = VecDeque::from([(start, None)]);
        let head = way.keys().next().copied().unwrap_or(0);
        let leads_in = |from: u64| from < head && head - from <= BYTES_LEADING_IN;
        while let Some((address, from)) = queue.pop_front() {
            if let Some(index) = way.get(&address) {
                if !from.is_some_and(leads_in) {
                    detour.joins.insert(*index);
                }
                continue;
            }
            if seen.len() > MOST_SEARCHED {
                break;
            }
            let Some(instruction) = self.at(address) else { continue };
            let (general, vector) = writes(&instruction, info);
            detour.writes |= general;
            detour.writes_vectors |= vector != 0;
            let next = Self::successors(&instruction).filter(|next| way.contains_key(next) || seen.insert(*next));
            queue.extend(next.map(|next| (next, Some(address))));
        }
        detour
    }
}

#[derive(Default)]
struct Detour {
    joins: BTreeSet<usize>,
    writes: u16,
    writes_vectors: bool,
}

/// Finds the plan for a sample at `start`.
pub fn plan(memory: &dyn Memory, start: u64) -> Option<Plan> {
    let mut info = InstructionInfoFactory::new();
    let mut code = Code { memory, known: HashMap::new() };
    let first = code.at(start)?;
    // A repeated string instruction is a loop of its own.
    let repeats = is_repeated(&first);
    let cycle = if repeats { Some(vec![first]) } else { code.cycle(start) };
    let is_loop = cycle.is_some();
    let way = cycle.unwrap_or_else(|| code.straight(start));
    let head = way.iter().map(Instruction::ip).min().unwrap_or(start);
    let is_shortest = is_loop && !repeats && (head == start || code.cycle(head).is_some_and(|other| other.len() == way.len()));
    let mut ahead: Vec<Step> = way.iter().map(|instruction| step(instruction, &mut info)).collect();
    let ends_elsewhere = is_loop && !repeats && forget_detours(&mut code, &mut ahead, &mut info);
    let behind = if is_loop { Vec::new() } else { code.before(start).iter().map(|one| step(one, &mut info)).collect() };
    let end = way.iter().map(Instruction::ip).max().unwrap_or(start);
    Some(Plan {
        start,
        is_loop,
        is_shortest,
        end,
        comparison: if is_loop && !repeats && !ends_elsewhere { rest::comparison(&ahead, end) } else { None },
        has_pause: way.iter().any(|one| one.mnemonic() == Mnemonic::Pause),
        ahead,
        behind,
    })
}

/// Forgets what code beside the loop may have written, and marks the loops inside the loop.
///
/// Positions are counted from the head of the loop, its lowest address: control that comes back to a position before the branch has gone
/// round an inner loop, control that comes back behind it has taken another arm, and at the head begins another round.
/// Returns whether a branch before the last one leaves the loop: then the last one does not show how many rounds follow.
fn forget_detours(code: &mut Code<'_>, ahead: &mut [Step], info: &mut InstructionInfoFactory) -> bool {
    let way: BTreeMap<u64, usize> = ahead.iter().enumerate().map(|(index, step)| (step.instruction.ip(), index)).collect();
    let count = ahead.len();
    let head = way.values().next().copied().unwrap_or(0);
    let from_head = |index: usize| (index + count - head) % count;
    let last = way.last_key_value().map(|(address, _)| *address);
    let mut ends_elsewhere = false;
    for index in 0..count {
        let instruction = ahead[index].instruction;
        if instruction.flow_control() != FlowControl::ConditionalBranch {
            continue;
        }
        let follows = ahead[(index + 1) % count].instruction.ip();
        for other in Code::successors(&instruction).filter(|other| *other != follows) {
            let detour = code.detour(&way, other, info);
            ends_elsewhere |= detour.joins.is_empty() && Some(instruction.ip()) != last;
            for join in detour.joins {
                let members = from_head(join)..=from_head(index);
                let is_inner_loop = join != head && !members.is_empty() && !members.contains(&from_head(0));
                let at = if is_inner_loop { index } else { (join + count - 1) % count };
                let (mut writes, mut vectors) = (detour.writes, detour.writes_vectors);
                if is_inner_loop {
                    for member in members {
                        let step = &mut ahead[(member + head) % count];
                        step.is_inner = true;
                        writes |= step.writes;
                        vectors |= step.vector_writes != 0;
                    }
                }
                ahead[at].forget |= writes;
                ahead[at].forget_vectors |= vectors;
            }
        }
    }
    ends_elsewhere
}

fn step(instruction: &Instruction, info: &mut InstructionInfoFactory) -> Step {
    let (writes, vector_writes) = writes(instruction, info);
    let (reads, vector_reads) = reads(instruction, info);
    let used = info.info(instruction);
    let mut writes_memory = false;
    let operands = used.used_memory().iter().filter_map(|memory| {
        let access = match memory.access() {
            OpAccess::Read | OpAccess::CondRead => Access::Read,
            OpAccess::Write | OpAccess::CondWrite => Access::Write,
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => Access::Update,
            _ => return None,
        };
        writes_memory |= access != Access::Read;
        // Thread-local data are nobody else's.
        if matches!(memory.segment(), Register::FS | Register::GS) {
            return None;
        }
        // Of a repeated string instruction, one element is one round.
        let bytes = if is_repeated(instruction) { element(instruction) } else { memory.memory_size().size() };
        let is_vector = memory.index().is_vector_register();
        Some(MemoryOperand {
            base: memory.base(),
            index: memory.index(),
            scale: memory.scale(),
            displacement: memory.displacement(),
            is_relative: instruction.is_ip_rel_memory_operand() && memory.base() == Register::None && memory.index() == Register::None,
            bytes: u32::try_from(bytes).unwrap_or(0),
            access,
            lanes: is_vector.then(|| lanes(instruction, memory.index(), bytes)),
        })
    });
    let operands = operands.collect();
    Step {
        instruction: *instruction,
        operands,
        writes,
        forget: 0,
        vector_writes,
        reads,
        vector_reads,
        is_needed: true,
        forget_vectors: false,
        writes_memory,
        is_inner: false,
    }
}

/// Bytes of an index of a gather or scatter, and the number of lanes.
fn lanes(instruction: &Instruction, index: Register, element: usize) -> (usize, usize) {
    use Mnemonic as M;
    let bytes = match instruction.mnemonic() {
        M::Vgatherdpd
        | M::Vgatherdps
        | M::Vpgatherdd
        | M::Vpgatherdq
        | M::Vscatterdpd
        | M::Vscatterdps
        | M::Vpscatterdd
        | M::Vpscatterdq => 4,
        _ => 8,
    };
    let data = (0..instruction.op_count())
        .filter(|operand| instruction.op_kind(*operand) == iced_x86::OpKind::Register)
        .map(|operand| instruction.op_register(operand))
        .find(|register| register.is_vector_register())
        .map_or(0, Register::size);
    (bytes, (index.size() / bytes).min(data / element.max(1)))
}

/// General and vector registers that an instruction writes.
fn writes(instruction: &Instruction, info: &mut InstructionInfoFactory) -> (u16, u32) {
    if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
        return (CALLER_SAVED, u32::MAX);
    }
    registers(instruction, info, |access| {
        matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    })
}

/// General and vector registers that an instruction reads.
fn reads(instruction: &Instruction, info: &mut InstructionInfoFactory) -> (u16, u32) {
    registers(instruction, info, |access| {
        matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    })
}

fn registers(instruction: &Instruction, info: &mut InstructionInfoFactory, is_meant: impl Fn(OpAccess) -> bool) -> (u16, u32) {
    let (mut general, mut vector) = (0, 0);
    for used in info.info(instruction).used_registers().iter().filter(|used| is_meant(used.access())) {
        let full = used.register().full_register();
        if full.is_gpr() {
            general |= 1 << full.number();
        } else if full.is_vector_register() {
            vector |= 1 << full.number();
        }
    }
    (general, vector)
}
