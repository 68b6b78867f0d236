//! Integers of fewer than eight bytes.

pub fn low_bits(bytes: usize) -> u64 {
    if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 }
}

/// Extends a value of `bytes` bytes with its sign.
pub fn sign_extended(value: u64, bytes: usize) -> u64 {
    let unused = 64 - 8 * bytes.clamp(1, 8) as u32;
    ((value << unused).cast_signed() >> unused).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check signs at the ends of each size.
    #[test]
    fn signs_are_extended() {
        assert_eq!(sign_extended(0x80, 1), 0xffff_ffff_ffff_ff80);
        assert_eq!(sign_extended(0x7fff, 2), 0x7fff);
        assert_eq!(sign_extended(0xffff_ffff, 4), u64::MAX);
        assert_eq!(sign_extended(5, 8), 5);
        assert_eq!((low_bits(1), low_bits(4), low_bits(8)), (0xff, 0xffff_ffff, u64::MAX));
    }
}
