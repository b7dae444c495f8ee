//! Hashes of the FNV family, as Go's `hash/fnv` makes them: upstream names things by them, and sums up files.

use std::fmt;

const OFFSET_32: u32 = 0x811c_9dc5;
const PRIME_32: u32 = 0x0100_0193;
const OFFSET_64: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME_64: u64 = 0x0000_0100_0000_01b3;
const OFFSET_128: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME_128: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// 32-bit FNV-1a of what is written to it.
#[derive(Debug, Clone, Copy)]
pub struct Fnv32(u32);

impl Default for Fnv32 {
    fn default() -> Self {
        Self(OFFSET_32)
    }
}

impl Fnv32 {
    /// The hash with these bytes, too.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(PRIME_32)))
    }

    /// The hash of everything so far.
    #[must_use]
    pub fn value(self) -> u32 {
        self.0
    }
}

impl fmt::Write for Fnv32 {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        *self = self.with(text.as_bytes());
        Ok(())
    }
}

/// 64-bit FNV-1a of some bytes.
#[must_use]
pub fn fnv64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET_64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME_64))
}

/// 32-bit FNV-1a of some bytes.
#[must_use]
pub fn fnv32(bytes: &[u8]) -> u32 {
    Fnv32::default().with(bytes).value()
}

/// 32-bit FNV-1, which multiplies first.
#[must_use]
pub fn fnv32_of_old<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    parts.into_iter().flatten().fold(OFFSET_32, |hash, byte| hash.wrapping_mul(PRIME_32) ^ u32::from(*byte))
}

/// 128-bit FNV-1a of what is written to it.
#[derive(Debug, Clone, Copy)]
pub struct Fnv128(u128);

impl Default for Fnv128 {
    fn default() -> Self {
        Self(OFFSET_128)
    }
}

impl Fnv128 {
    /// The hash of everything so far.
    #[must_use]
    pub fn value(self) -> u128 {
        self.0
    }
}

impl fmt::Write for Fnv128 {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.bytes().fold(self.0, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME_128));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// The numbers are those of the reference implementation.
    #[test]
    fn hashes_are_those_of_the_family() {
        assert_eq!((fnv32(b""), fnv32(b"a"), fnv32(b"foobar")), (OFFSET_32, 0xe40c_292c, 0xbf9c_f968));
        assert_eq!(fnv32_of_old([&b"foo"[..], b"bar"]), 0x31f0_b262);
        let mut long = Fnv128::default();
        long.write_str("a").unwrap();
        assert_eq!(long.value(), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
