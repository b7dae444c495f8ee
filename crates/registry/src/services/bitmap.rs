//! Which numbers of a range are taken: a bit each, stored as upstream stores it, as one big-endian number.

use base::Rng;

use super::bands;

/// Taken numbers, counted from the range's base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bitmap {
    /// Bit n of byte n / 8.
    bytes: Vec<u8>,
    size: u32,
}

impl Bitmap {
    pub(crate) fn new(size: u32) -> Self {
        Self { bytes: vec![0; size.div_ceil(8) as usize], size }
    }

    /// Reads the stored form; bits past the size are dropped.
    pub(crate) fn decode(data: &[u8], size: u32) -> Self {
        let mut bitmap = Self::new(size);
        for (byte, stored) in bitmap.bytes.iter_mut().zip(data.iter().rev()) {
            *byte = *stored;
        }
        bitmap
    }

    /// The stored form: without leading zeros.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.bytes.iter().rev().copied().skip_while(|byte| *byte == 0).collect()
    }

    pub(crate) fn is_taken(&self, offset: u32) -> bool {
        self.bytes.get((offset / 8) as usize).is_some_and(|byte| byte & bit(offset) != 0)
    }

    /// Takes a number; says whether it was free.
    pub(crate) fn take(&mut self, offset: u32) -> bool {
        if offset >= self.size || self.is_taken(offset) {
            return false;
        }
        if let Some(byte) = self.bytes.get_mut((offset / 8) as usize) {
            *byte |= bit(offset);
        }
        true
    }

    pub(crate) fn free(&mut self, offset: u32) {
        if let Some(byte) = self.bytes.get_mut((offset / 8) as usize) {
            *byte &= !bit(offset);
        }
    }

    /// Takes some free number, in the order of the bands.
    pub(crate) fn take_any(&mut self, lower_band: u32, rng: &Rng) -> Option<u32> {
        let numbers = bands::numbers(self.size.into(), lower_band.into(), rng);
        let found = numbers.filter_map(|number| u32::try_from(number).ok()).find(|offset| !self.is_taken(*offset))?;
        self.take(found);
        Some(found)
    }

    /// How many are taken.
    pub(crate) fn count(&self) -> u32 {
        self.bytes.iter().map(|byte| byte.count_ones()).sum()
    }

    pub(crate) fn taken(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.size).filter(|offset| self.is_taken(*offset))
    }
}

fn bit(offset: u32) -> u8 {
    1 << (offset % 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_is_a_big_endian_number() {
        let mut bitmap = Bitmap::new(254);
        assert!(bitmap.take(0) && bitmap.take(9) && !bitmap.take(9) && !bitmap.take(254));
        assert_eq!(bitmap.encode(), [0b10, 0b1]);
        assert_eq!(Bitmap::decode(&bitmap.encode(), 254), bitmap);
        bitmap.free(9);
        assert_eq!(bitmap.taken().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn the_lower_band_is_the_last_resort() {
        let (mut bitmap, rng) = (Bitmap::new(64), Rng::seeded(5));
        for _ in 0..48 {
            assert!(bitmap.take_any(16, &rng).is_some_and(|offset| offset >= 16));
        }
        for _ in 0..16 {
            assert!(bitmap.take_any(16, &rng).is_some_and(|offset| offset < 16));
        }
        assert_eq!(bitmap.take_any(16, &rng), None);
    }
}
