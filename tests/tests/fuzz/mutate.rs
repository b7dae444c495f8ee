//! Inputs made of others: bytes, words and bracketed parts changed, documents put together, nesting without end.

use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::documents;

/// Stands in a word for another one.
pub(crate) const HOLE: char = '◦';

/// The most changes at a time; mostly it is one.
const CHANGES: u32 = 6;
/// How deep words are put into the holes of words.
const WORD_DEPTH: u32 = 4;
/// How often one change repeats something, at most, as a power of two.
const REPEATS: u32 = 14;
/// Bytes that tend to matter: ends of ranges, and what starts lengths and tags.
const BYTES: [u8; 10] = [0, 1, 0x1f, 0x7f, 0x80, 0x9f, 0xbf, 0xfe, 0xff, b'"'];
/// Numbers that tend to matter.
const NUMBERS: [&str; 9] =
    ["0", "-1", "1e999", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "0.1", "1e-400", "1_0"];
/// What opens something that may hold the same again.
const OPENINGS: [&str; 12] =
    ["[", "{\"a\":", "(", "- ", "!", "-", "\u{81}", "\u{a1}a", "a.", "{\"items\":", "?: ", "{\"properties\":{\"a\":"];

/// Makes inputs of others.
pub(crate) struct Mutator<'p> {
    pub(crate) pool: &'p [Vec<u8>],
    pub(crate) words: &'p [&'p str],
    /// No input gets longer, in bytes.
    pub(crate) longest: usize,
}

impl Mutator<'_> {
    /// The input, changed: mostly little.
    pub(crate) fn changed(&self, rng: &mut StdRng, mut input: Vec<u8>) -> Vec<u8> {
        for _ in 0..CHANGES {
            if rng.random_range(0..4_u8) == 0 || !documents::change(rng, &mut input, self) {
                self.change(rng, &mut input);
            }
            input.truncate(self.longest);
            if rng.random_range(0..3_u8) > 0 {
                break;
            }
        }
        input
    }

    fn change(&self, rng: &mut StdRng, input: &mut Vec<u8>) {
        let at = rng.random_range(0..=input.len());
        match rng.random_range(0..14_u8) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << rng.random_range(0..8_u8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = pick(rng, &BYTES).copied().unwrap_or_default();
                }
            }
            2 => drop(input.drain(slice(rng, input.len()))),
            3 => {
                let copy = input[slice(rng, input.len())].to_vec();
                insert(input, at, &copy);
            }
            4 => {
                let other = self.other(rng);
                insert(input, at, &other[slice(rng, other.len())]);
            }
            5 => insert(input, at, pick(rng, &NUMBERS).copied().unwrap_or_default().as_bytes()),
            6 | 7 => insert(input, at, self.word(rng, WORD_DEPTH).as_bytes()),
            8 => replace_number(rng, input),
            9 | 10 => drop(input.splice(token(input, at), self.word(rng, WORD_DEPTH).into_bytes())),
            11 | 12 => {
                let other = self.other(rng);
                let from = token(other, rng.random_range(0..=other.len()));
                input.splice(token(input, at), other[from].iter().copied());
            }
            _ => self.repeat(rng, input, at),
        }
    }

    /// Something many times, one in the other or one after the other: mostly few, and now and then too many.
    fn repeat(&self, rng: &mut StdRng, input: &mut Vec<u8>, at: usize) {
        let times = 1 << rng.random_range(0..=REPEATS);
        let what = match rng.random_range(0..3_u8) {
            0 => pick(rng, &OPENINGS).copied().unwrap_or_default().as_bytes().to_vec(),
            1 => self.word(rng, 1).into_bytes(),
            _ => input[token(input, at)].to_vec(),
        };
        let times = times.min(self.longest / what.len().max(1));
        insert(input, at, &what.repeat(times));
    }

    pub(crate) fn other(&self, rng: &mut StdRng) -> &[u8] {
        pick(rng, self.pool).map(Vec::as_slice).unwrap_or_default()
    }

    /// A word, with others in its holes.
    pub(crate) fn word(&self, rng: &mut StdRng, depth: u32) -> String {
        let word = pick(rng, self.words).copied().unwrap_or_default();
        let mut parts = word.split(HOLE);
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            match depth {
                0 => text.push('1'),
                _ => text += &self.word(rng, depth - 1),
            }
            text += part;
        }
        text
    }
}

/// A random item.
pub(crate) fn pick<'a, T>(rng: &mut StdRng, items: &'a [T]) -> Option<&'a T> {
    (!items.is_empty()).then(|| &items[rng.random_range(0..items.len())])
}

/// A random part of something so long; mostly a short one.
fn slice(rng: &mut StdRng, length: usize) -> std::ops::Range<usize> {
    let start = rng.random_range(0..=length);
    let most = if rng.random_range(0..4_u8) == 0 { length - start } else { (length - start).min(16) };
    start..start + rng.random_range(0..=most)
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

/// The part of a text that means one thing at a place: a name, a number, what is quoted or in brackets, or a single byte.
fn token(input: &[u8], at: usize) -> std::ops::Range<usize> {
    let Some(first) = input.get(at) else { return at..at };
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let rest = &input[at + 1..];
    let length = match first {
        b'"' | b'\'' => rest.iter().position(|byte| byte == first).map_or(0, |end| end + 1),
        b'(' | b'[' | b'{' => bracketed(rest),
        byte if is_word(byte) => {
            let start = input[..at].iter().rposition(|byte| !is_word(byte)).map_or(0, |before| before + 1);
            let end = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
            return start..at + 1 + end;
        }
        _ => 0,
    };
    at..at + 1 + length
}

/// How much there is up to the bracket that closes one; nothing where none does.
fn bracketed(rest: &[u8]) -> usize {
    let mut depth = 1_u32;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    0
}

/// Puts another number in the place of one.
fn replace_number(rng: &mut StdRng, input: &mut Vec<u8>) {
    let digits: Vec<usize> = (0..input.len()).filter(|at| input[*at].is_ascii_digit()).collect();
    let Some(&start) = pick(rng, &digits) else { return };
    let end = (start..input.len()).find(|at| !input[*at].is_ascii_digit()).unwrap_or(input.len());
    input.splice(start..end, pick(rng, &NUMBERS).copied().unwrap_or_default().bytes());
}
