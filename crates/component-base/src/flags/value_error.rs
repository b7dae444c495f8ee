//! Why a text is no value of a flag, in the words of Go's standard library and of pflag.

use crate::version::VersionError;

/// Why a text is no value of a flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Go's `strconv` does not understand it.
    #[error("strconv.{function}: parsing {text:?}: {fault}")]
    Number {
        /// The function of that package.
        function: &'static str,
        /// The text.
        text: String,
        /// What is wrong with it.
        fault: NumberFault,
    },
    /// It is no duration.
    #[error("time: invalid duration {0:?}")]
    Duration(String),
    /// A number in a duration has no unit.
    #[error("time: missing unit in duration {0:?}")]
    MissingUnit(String),
    /// A number in a duration has a unit that is none.
    #[error("time: unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
    /// A list has a quote where none may be.
    #[error("parse error on line 1, column {0}: bare \" in non-quoted field")]
    BareQuote(usize),
    /// A list has a field in quotes that does not end.
    #[error("parse error on line 1: extraneous or missing \" in quoted-field")]
    OpenQuote,
    /// It is no address.
    #[error("failed to parse IP: {0:?}")]
    Ip(String),
    /// A pair has no second half.
    #[error("malformed pair, expect string{0}string")]
    Pair(char),
    /// The process cannot say that it is this version.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The flag is given pairs, and is no map.
    #[error("--{0} does not hold pairs")]
    NoMap(&'static str),
}

/// What Go says of a text that is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberFault {
    /// It is not written as one.
    #[error("invalid syntax")]
    Syntax,
    /// It is too large or too small.
    #[error("value out of range")]
    Range,
}

impl ValueError {
    pub(super) fn number(function: &'static str, text: &str, fault: NumberFault) -> Self {
        Self::Number { function, text: text.to_owned(), fault }
    }
}
