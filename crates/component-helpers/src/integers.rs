//! Integers in texts, and what upstream says of texts that are none.

use std::num::{IntErrorKind, ParseIntError};

/// The integer that a text is.
///
/// # Errors
/// The text is none, or one of more than 64 bits; in the words of the reader that upstream uses.
pub fn parse(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {text:?}: {why}")
    })
}
