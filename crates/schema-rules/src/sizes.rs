//! How large values may be: the figures that estimates are made of, as upstream has them. Sizes are those of JSON.

use schema::Structural;

/// The largest request.
const REQUEST_BYTES: u64 = 3 * 1024 * 1024;
/// The smallest string, list, map or object: two quotes or brackets.
pub(crate) const EMPTY: u64 = 2;
pub(crate) const NUMBER: u64 = 1;
pub(crate) const BOOL: u64 = 4;
const DATE: u64 = 12;
const SHORTEST_DURATION: u64 = 3;
const LONGEST_DURATION: u64 = 32;
const SHORTEST_DATE_TIME: u64 = 21;
const LONGEST_DATE_TIME: u64 = 32;
/// The most bytes of a character: lengths are stated in characters, and requests are bounded in bytes.
const CHARACTER_BYTES: u64 = 4;
/// What is written around a member of an object: two quotes, a colon and a comma.
pub(crate) const AROUND_MEMBER: u64 = 4;
/// What is written around an entry of a map, whose key may be empty: quotes, colon and comma of both.
const AROUND_ENTRY: u64 = 6;
/// What cannot be the value, of a request that is nothing else.
const AROUND_VALUE: u64 = 2;

/// The most characters of what may fill a whole request.
pub(crate) const LONGEST: u64 = REQUEST_BYTES - AROUND_VALUE;

/// How often a value of at least so many bytes can occur in a request.
pub(crate) fn occurrences(smallest: u64) -> u64 {
    REQUEST_BYTES / (smallest + 1)
}

/// The most items of a list without a limit.
pub(crate) fn items(smallest: u64) -> u64 {
    LONGEST / (smallest + 1)
}

/// The most entries of a map without a limit.
pub(crate) fn entries(smallest: u64) -> u64 {
    LONGEST / (smallest + AROUND_ENTRY)
}

/// The smallest and the largest size of a string.
pub(crate) fn string(schema: &Structural) -> (u64, u64) {
    match schema.rules.format.as_str() {
        "byte" => (EMPTY, schema.rules.max_length.unwrap_or(LONGEST)),
        "duration" => (SHORTEST_DURATION, LONGEST_DURATION),
        "date" => (DATE, DATE),
        "date-time" => (SHORTEST_DATE_TIME, LONGEST_DATE_TIME),
        _ => (EMPTY, text(schema)),
    }
}

fn text(schema: &Structural) -> u64 {
    let longest = schema.rules.allowed.iter().filter_map(|one| one.as_str()).map(|one| one.len() as u64).max();
    match schema.rules.max_length {
        Some(length) => length.saturating_mul(CHARACTER_BYTES),
        None if !schema.rules.allowed.is_empty() => longest.unwrap_or_default(),
        None => LONGEST,
    }
}
