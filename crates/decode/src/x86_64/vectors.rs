//! Contents of vector registers, as far as the emulated code loaded them from memory: the indices of gathers and scatters.

use super::numbers::sign_extended;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Bytes of the widest vector register.
pub const WIDEST: usize = 64;

/// Vector registers by number. A sample does not hold them, so all are unknown at first.
#[derive(Clone, Debug, Default)]
pub struct Vectors(Vec<(u8, Box<[u8; WIDEST]>)>);

impl Vectors {
    pub fn get(&self, register: Register) -> Option<&[u8; WIDEST]> {
        let number = number(register)?;
        self.0.iter().find(|(known, _)| *known == number).map(|(_, bytes)| &**bytes)
    }

    pub fn set(&mut self, register: Register, bytes: Option<[u8; WIDEST]>) {
        let Some(number) = number(register) else { return };
        self.0.retain(|(known, _)| *known != number);
        if let Some(bytes) = bytes {
            self.0.push((number, Box::new(bytes)));
        }
    }

    /// Makes registers unknown, by a mask of their numbers.
    pub fn forget(&mut self, mask: u32) {
        self.0.retain(|(known, _)| mask >> known & 1 == 0);
    }

    pub fn forget_all(&mut self) {
        self.0.clear();
    }
}

/// The number of a vector register, whatever its width.
fn number(register: Register) -> Option<u8> {
    register.is_vector_register().then(|| u8::try_from(register.full_register().number()).ok()).flatten()
}

/// What an instruction leaves in the vector register that it writes, if that can be computed: loads, moves and widened integers, which are
/// what compilers make indices of. `load` reads memory.
pub fn result(instruction: &Instruction, vectors: &Vectors, load: impl FnOnce(usize) -> Option<[u8; WIDEST]>) -> Option<[u8; WIDEST]> {
    if instruction.op_count() < 2 || instruction.has_op_mask() {
        return None;
    }
    let bytes = instruction.op_register(0).size();
    let source = |needed: usize, load: &mut dyn FnMut(usize) -> Option<[u8; WIDEST]>| match instruction.op_kind(1) {
        OpKind::Memory => load(needed),
        OpKind::Register => vectors.get(instruction.op_register(1)).copied(),
        _ => None,
    };
    let mut load = Some(load);
    let mut load = |needed: usize| load.take().and_then(|load| load(needed));
    match instruction.mnemonic() {
        Mnemonic::Movdqa
        | Mnemonic::Movdqu
        | Mnemonic::Movups
        | Mnemonic::Movaps
        | Mnemonic::Movupd
        | Mnemonic::Movapd
        | Mnemonic::Lddqu
        | Mnemonic::Vmovdqa
        | Mnemonic::Vmovdqu
        | Mnemonic::Vmovdqa32
        | Mnemonic::Vmovdqa64
        | Mnemonic::Vmovdqu8
        | Mnemonic::Vmovdqu16
        | Mnemonic::Vmovdqu32
        | Mnemonic::Vmovdqu64
        | Mnemonic::Vmovups
        | Mnemonic::Vmovaps
        | Mnemonic::Vmovupd
        | Mnemonic::Vmovapd
        | Mnemonic::Vlddqu => source(bytes, &mut load).map(|value| cut(value, bytes)),
        Mnemonic::Movq | Mnemonic::Vmovq => source(8, &mut load).map(|value| cut(value, 8)),
        Mnemonic::Movd | Mnemonic::Vmovd if instruction.op_kind(1) == OpKind::Memory => load(4).map(|value| cut(value, 4)),
        Mnemonic::Pmovsxdq | Mnemonic::Vpmovsxdq => source(bytes / 2, &mut load).map(|value| widened(&value, bytes, true)),
        Mnemonic::Pmovzxdq | Mnemonic::Vpmovzxdq => source(bytes / 2, &mut load).map(|value| widened(&value, bytes, false)),
        _ => None,
    }
}

fn cut(mut value: [u8; WIDEST], bytes: usize) -> [u8; WIDEST] {
    value[bytes.min(WIDEST)..].fill(0);
    value
}

/// 4-byte integers as 8-byte ones.
fn widened(value: &[u8; WIDEST], bytes: usize, is_signed: bool) -> [u8; WIDEST] {
    let mut wide = [0; WIDEST];
    for (lane, narrow) in wide[..bytes.min(WIDEST)].chunks_exact_mut(8).zip(value.chunks_exact(4)) {
        let number = u64::from(word(narrow));
        lane.copy_from_slice(&if is_signed { sign_extended(number, 4) } else { number }.to_le_bytes());
    }
    wide
}

fn word(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

/// The indices in a vector register, each of `bytes` (4 or 8) bytes, extended with their signs.
pub fn indices(value: &[u8; WIDEST], bytes: usize, lanes: usize) -> impl Iterator<Item = u64> + '_ {
    value.chunks_exact(bytes.max(4)).take(lanes).map(move |lane| match lane.try_into() {
        Ok(lane) => u64::from_le_bytes(lane),
        Err(_) => sign_extended(u64::from(word(lane)), 4),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that indices of both sizes keep their signs.
    #[test]
    fn indices_have_signs() {
        let mut value = [0; WIDEST];
        value[..4].copy_from_slice(&7i32.to_le_bytes());
        value[4..8].copy_from_slice(&(-2i32).to_le_bytes());
        assert_eq!(indices(&value, 4, 2).collect::<Vec<_>>(), [7, u64::MAX - 1]);
        let wide = widened(&value, 16, true);
        assert_eq!(indices(&wide, 8, 2).collect::<Vec<_>>(), [7, u64::MAX - 1]);
        let wide = widened(&value, 16, false);
        assert_eq!(indices(&wide, 8, 9).collect::<Vec<_>>()[..3], [7, 0xffff_fffe, 0]);
    }

    /// Check that a register is known by its number, whatever its width.
    #[test]
    fn registers_are_one_whatever_their_width() {
        let mut vectors = Vectors::default();
        vectors.set(Register::YMM3, Some([1; WIDEST]));
        assert!(vectors.get(Register::XMM3).is_some() && vectors.get(Register::ZMM3).is_some() && vectors.get(Register::XMM4).is_none());
        vectors.forget(1 << 3);
        assert!(vectors.get(Register::YMM3).is_none());
        vectors.set(Register::RAX, Some([1; WIDEST]));
        assert!(vectors.0.is_empty());
    }
}
