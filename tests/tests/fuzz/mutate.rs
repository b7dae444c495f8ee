//! Inputs made of others: bytes and slices changed, texts put together, nesting without end.

use rand::rngs::StdRng;
use rand::{Rng, RngExt as _};

/// No input is longer, in bytes.
const LONGEST: usize = 64 * 1024;
/// The most changes at a time.
const CHANGES: usize = 6;
/// How deep one change nests, at most.
const DEEPEST: usize = 12_000;
/// Bytes that tend to matter: ends of ranges, and what starts lengths and tags.
const BYTES: [u8; 10] = [0, 1, 0x1f, 0x7f, 0x80, 0x9f, 0xbf, 0xfe, 0xff, b'"'];
/// Numbers that tend to matter.
const NUMBERS: [&str; 9] =
    ["0", "-1", "1e999", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "0.1", "1e-400", "1_0"];
/// What opens something that may hold the same again.
const OPENINGS: [&str; 12] =
    ["[", "{\"a\":", "(", "- ", "!", "-", "\u{81}", "\u{a1}a", "a.", "{\"items\":", "?: ", "{\"properties\":{\"a\":"];

/// Makes an input from one of the pool.
pub(crate) fn mutate(rng: &mut StdRng, pool: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut input = pick(rng, pool).cloned().unwrap_or_default();
    for _ in 0..rng.random_range(1..=CHANGES) {
        change(rng, &mut input, pool, words);
        input.truncate(LONGEST);
    }
    input
}

fn change(rng: &mut StdRng, input: &mut Vec<u8>, pool: &[Vec<u8>], words: &[&str]) {
    let at = rng.random_range(0..=input.len());
    match rng.random_range(0..10_u8) {
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
            let other = pick(rng, pool).cloned().unwrap_or_default();
            insert(input, at, &other[slice(rng, other.len())]);
        }
        5 => insert(input, at, pick(rng, &NUMBERS).copied().unwrap_or_default().as_bytes()),
        6 | 7 => insert(input, at, pick(rng, words).copied().unwrap_or_default().as_bytes()),
        8 => replace_number(rng, input),
        _ => {
            let opening = pick(rng, &OPENINGS).copied().unwrap_or_default();
            // Mostly little, and now and then too much.
            let times = 1 << rng.random_range(0..=DEEPEST.ilog2());
            insert(input, at, opening.repeat(times).as_bytes());
        }
    }
}

/// A random item.
fn pick<'a, T>(rng: &mut StdRng, items: &'a [T]) -> Option<&'a T> {
    (!items.is_empty()).then(|| &items[rng.random_range(0..items.len())])
}

/// A random part of something so long; mostly a short one.
fn slice(rng: &mut StdRng, length: usize) -> std::ops::Range<usize> {
    let start = rng.random_range(0..=length);
    let most = if rng.next_u32() % 4 == 0 { length - start } else { (length - start).min(16) };
    start..start + rng.random_range(0..=most)
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

/// Puts another number in the place of one.
fn replace_number(rng: &mut StdRng, input: &mut Vec<u8>) {
    let digits: Vec<usize> = (0..input.len()).filter(|at| input[*at].is_ascii_digit()).collect();
    let Some(&start) = pick(rng, &digits) else { return };
    let end = (start..input.len()).find(|at| !input[*at].is_ascii_digit()).unwrap_or(input.len());
    input.splice(start..end, pick(rng, &NUMBERS).copied().unwrap_or_default().bytes());
}
