//! The back-to-front protobuf writer.

use std::cell::Cell;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
/// The first buffer of a thread; it holds most objects.
const INITIAL_BYTES: usize = 8 << 10;
/// A buffer larger than this is not kept for the thread's next message.
const MAX_KEPT_BYTES: usize = 256 << 10;

thread_local! {
    /// The buffer of the thread's last message: a new one would have to be zeroed and to grow each time.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A message in the making. Whatever is written goes in front of what is there.
#[derive(Debug)]
pub struct Encoder {
    /// The bytes written so far are at the end, from `start` on.
    buffer: Vec<u8>,
    start: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        let buffer = SPARE.take();
        Self { start: buffer.len(), buffer }
    }
}

impl Encoder {
    /// The bytes written so far, in a vector of just that size.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        let written = self.buffer[self.start..].to_vec();
        if self.buffer.len() <= MAX_KEPT_BYTES {
            SPARE.set(self.buffer);
        }
        written
    }

    /// How many bytes are written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Whether nothing is written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.slot(bytes.len()).copy_from_slice(bytes);
    }

    /// Takes the next `length` bytes in front for writing.
    #[inline]
    fn slot(&mut self, length: usize) -> &mut [u8] {
        if self.start < length {
            self.grow(length);
        }
        let end = self.start;
        self.start -= length;
        &mut self.buffer[self.start..end]
    }

    /// Makes room for `wanted` more bytes in front.
    #[cold]
    fn grow(&mut self, wanted: usize) {
        let used = self.len();
        let capacity = (used + wanted).next_power_of_two().max(INITIAL_BYTES);
        let mut larger = vec![0; capacity];
        larger[capacity - used..].copy_from_slice(&self.buffer[self.start..]);
        self.buffer = larger;
        self.start = capacity - used;
    }

    /// Writes a bare varint.
    #[inline]
    pub fn varint(&mut self, value: u64) {
        match value {
            0..0x80 => self.slot(1)[0] = low_bits(value),
            0x80..0x4000 => {
                let slot = self.slot(2);
                slot[0] = low_bits(value) | 0x80;
                slot[1] = low_bits(value >> 7);
            }
            _ => self.long_varint(value),
        }
    }

    fn long_varint(&mut self, mut value: u64) {
        let mut bytes = [0_u8; 10];
        let mut length = 0;
        loop {
            bytes[length] = low_bits(value);
            value >>= 7;
            if value == 0 {
                break;
            }
            bytes[length] |= 0x80;
            length += 1;
        }
        self.raw(&bytes[..=length]);
    }

    #[inline]
    fn tag(&mut self, number: u32, wire_type: u32) {
        self.varint(u64::from(number << 3 | wire_type));
    }

    /// Writes an integer field.
    pub fn int(&mut self, number: u32, value: i64) {
        self.varint(value.cast_unsigned());
        self.tag(number, VARINT);
    }

    /// Writes a truth value field.
    pub fn bool(&mut self, number: u32, value: bool) {
        self.int(number, i64::from(value));
    }

    /// Writes a double field.
    pub fn double(&mut self, number: u32, value: f64) {
        self.raw(&value.to_le_bytes());
        self.tag(number, FIXED64);
    }

    /// Writes a field of bytes or text.
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        let (tag, length) = (u64::from(number << 3 | BYTES), value.len() as u64);
        if tag < 0x80 && length < 0x80 {
            // Most fields are like this, and one look at the buffer is enough for them.
            let slot = self.slot(value.len() + 2);
            slot[0] = low_bits(tag);
            slot[1] = low_bits(length);
            slot[2..].copy_from_slice(value);
            return;
        }
        self.raw(value);
        self.varint(length);
        self.varint(tag);
    }

    /// Writes a message field with what `members` writes.
    pub fn message(&mut self, number: u32, members: impl FnOnce(&mut Self)) {
        let before = self.len();
        members(self);
        self.varint((self.len() - before) as u64);
        self.tag(number, BYTES);
    }
}

/// The seven bits of a varint's next byte.
fn low_bits(value: u64) -> u8 {
    (value & 0x7f) as u8
}
