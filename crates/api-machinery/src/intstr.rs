//! `IntOrString`: a field that holds a number or a text, such as a port or `maxUnavailable: 25%`.

use std::fmt;

use crate::quote::{go_quote, integer_problem};

/// A 32-bit number or a text; a text that looks like a number stays a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IntOrString {
    /// A number.
    Int(i32),
    /// A text: a name, or a percentage.
    Str(String),
}

/// Which way a share of a total is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the next lower integer.
    Down,
    /// To the next higher integer.
    Up,
}

/// A text that is not a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PercentError {
    /// It does not end in `%`.
    #[error("invalid value for IntOrString: invalid type: string is not a percentage")]
    NotPercent,
    /// What stands before `%` is not an integer.
    #[error(
        "invalid value for IntOrString: invalid value {}: strconv.Atoi: parsing {}: {problem}",
        go_quote(text),
        go_quote(number)
    )]
    Number {
        /// The whole text.
        text: String,
        /// The text before the sign.
        number: String,
        /// Go's words for what is wrong.
        problem: &'static str,
    },
}

impl IntOrString {
    /// The number, or the text read as one, or 0.
    pub fn int_value(&self) -> i32 {
        match self {
            Self::Int(value) => *value,
            Self::Str(text) => text.parse().unwrap_or(0),
        }
    }

    /// The percentage that a text such as `25%` states; `None` for a number.
    pub fn percent(&self) -> Result<Option<i64>, PercentError> {
        let Self::Str(text) = self else { return Ok(None) };
        let number = text.strip_suffix('%').ok_or(PercentError::NotPercent)?;
        let parsed = number.parse().map_err(|error| PercentError::Number {
            text: text.clone(),
            number: number.to_owned(),
            problem: integer_problem(&error),
        })?;
        Ok(Some(parsed))
    }

    /// The number itself, or the stated share of `total`, rounded as asked; saturates at the bounds of i32.
    pub fn scaled(&self, total: i32, rounding: Rounding) -> Result<i32, PercentError> {
        let Some(percent) = self.percent()? else { return Ok(self.int_value()) };
        let product = i128::from(percent) * i128::from(total);
        let floor = product.div_euclid(100);
        let share = match rounding {
            Rounding::Up if product.rem_euclid(100) != 0 => floor + 1,
            _ => floor,
        };
        Ok(i32::try_from(share).unwrap_or(if share < 0 { i32::MIN } else { i32::MAX }))
    }
}

impl Default for IntOrString {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl From<i32> for IntOrString {
    fn from(value: i32) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::Str(text.to_owned())
    }
}

impl From<String> for IntOrString {
    fn from(text: String) -> Self {
        Self::Str(text)
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Str(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_percentages() {
        let cases = [
            ("25%", 10, 2, 3),
            ("0%", 10, 0, 0),
            ("100%", 10, 10, 10),
            ("-25%", 10, -3, -2),
            ("150%", 3, 4, 5),
            ("9000000000000000000%", i32::MAX, i32::MAX, i32::MAX),
        ];
        for (text, total, down, up) in cases {
            let value = IntOrString::from(text);
            assert_eq!(value.scaled(total, Rounding::Down), Ok(down), "{text}");
            assert_eq!(value.scaled(total, Rounding::Up), Ok(up), "{text}");
        }
        assert_eq!(IntOrString::Int(7).scaled(100, Rounding::Up), Ok(7));
    }

    #[test]
    fn errors_read_as_upstream() {
        let cases = [
            ("5", "invalid value for IntOrString: invalid type: string is not a percentage"),
            ("x%", r#"invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax"#),
            ("%", r#"invalid value for IntOrString: invalid value "%": strconv.Atoi: parsing "": invalid syntax"#),
            (
                "99999999999999999999%",
                "invalid value for IntOrString: invalid value \"99999999999999999999%\": strconv.Atoi: parsing \
                 \"99999999999999999999\": value out of range",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(IntOrString::from(text).percent().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_numeric_text_stays_a_text() {
        let text = IntOrString::from("5");
        assert_eq!(text, IntOrString::Str("5".into()));
        assert_eq!((text.int_value(), text.to_string()), (5, "5".into()));
        assert_eq!(IntOrString::default(), IntOrString::Int(0));
    }
}
