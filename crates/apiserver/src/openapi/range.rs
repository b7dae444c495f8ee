//! Parts of documents: the header `Range`, one range at a time (RFC 9110). A client that asks for several at once gets
//! the whole, as servers may answer.

use std::ops::Range;

/// What a client is to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    Whole,
    Part(Range<usize>),
    /// There is no such part.
    Nothing,
}

/// Reads the header for a document of `length` bytes.
pub(super) fn wanted(header: Option<&str>, length: usize) -> Wanted {
    let Some(header) = header.filter(|header| !header.contains(',')) else { return Wanted::Whole };
    let Some((from, to)) = header.strip_prefix("bytes=").and_then(|range| range.trim().split_once('-')) else {
        return Wanted::Nothing;
    };
    let part = match (from.parse::<usize>(), to.parse::<usize>()) {
        (Err(_), Ok(last)) if from.is_empty() && last > 0 => Some(length.saturating_sub(last)..length),
        (Ok(first), Err(_)) if to.is_empty() => Some(first..length),
        (Ok(first), Ok(last)) if first <= last => Some(first..last.saturating_add(1).min(length)),
        _ => None,
    };
    part.filter(|part| !part.is_empty()).map_or(Wanted::Nothing, Wanted::Part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_the_end() {
        let cases = [
            (None, Wanted::Whole),
            (Some("bytes=0-3"), Wanted::Part(0..4)),
            (Some("bytes=8-"), Wanted::Part(8..10)),
            (Some("bytes=8-99"), Wanted::Part(8..10)),
            (Some("bytes=-3"), Wanted::Part(7..10)),
            (Some("bytes=-99"), Wanted::Part(0..10)),
            (Some("bytes=0-1,3-4"), Wanted::Whole),
            (Some("bytes=10-"), Wanted::Nothing),
            (Some("bytes=4-3"), Wanted::Nothing),
            (Some("bytes=-0"), Wanted::Nothing),
            (Some("bytes=-"), Wanted::Nothing),
            (Some("lines=1-2"), Wanted::Nothing),
            (Some("bytes=a-b"), Wanted::Nothing),
        ];
        for (header, expected) in cases {
            assert_eq!(wanted(header, 10), expected, "{header:?}");
        }
    }
}
