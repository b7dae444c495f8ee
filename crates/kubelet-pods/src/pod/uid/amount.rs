//! Quantities as upstream holds them in memory, which is what it prints: a scaled integer where the number is short enough,
//! else a decimal of any size, and the text where that was canonical (`resource.ParseQuantity`, `Quantity.RoundUp`).

use std::fmt::{self, Write};

const NANO: i32 = -9;
const MILLI: i32 = -3;
/// Digits that a decimal amount may have to be held as a scaled integer.
const SHORT_DIGITS: usize = 18;
const DECIMAL: &str = "DecimalSI";
const BINARY: &str = "BinarySI";
const EXPONENT: &str = "DecimalExponent";

/// A quantity in memory.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Amount {
    /// The scaled integer; zero beside a decimal.
    value: i64,
    scale: i32,
    decimal: Option<Decimal>,
    text: String,
    format: &'static str,
}

/// `unscaled / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    unscaled: u128,
    scale: i32,
}

/// What a suffix says.
#[derive(Clone, Copy)]
enum Suffix {
    Tens(i32, &'static str),
    Twos(u32),
}

/// The pieces of a number.
struct Number<'a> {
    negative: bool,
    /// Without leading zeros; `0` where nothing is left.
    integer: &'a str,
    fraction: &'a str,
    suffix: Suffix,
}

impl Amount {
    /// Reads a quantity that was accepted before. Numbers of more than 38 digits are read as nothing.
    pub(super) fn read(text: &str) -> Self {
        let text = text.trim();
        if text == "0" {
            return Self { text: text.to_owned(), format: DECIMAL, ..Self::default() };
        }
        let Some(number) = split(text) else { return Self::default() };
        short(&number, text).unwrap_or_else(|| long(&number).unwrap_or_default())
    }

    /// The same, rounded up to thousandths, as everything in lists of resources is.
    pub(super) fn rounded(self) -> Self {
        if let Some(decimal) = self.decimal {
            return Self { decimal: Some(decimal.at_scale(-MILLI)), text: String::new(), ..self };
        }
        if self.scale >= MILLI {
            return self;
        }
        let unit = 10_i64.saturating_pow(MILLI.abs_diff(self.scale));
        let whole = self.value / unit;
        let value = whole + if self.value % unit == 0 { 0 } else { self.value.signum() };
        Self { value, scale: MILLI, text: String::new(), ..self }
    }

    /// As `spew` prints it.
    pub(super) fn print(&self, out: &mut impl Write) -> fmt::Result {
        write!(out, "{{i:(resource.int64Amount){{value:(int64){} scale:(resource.Scale){}}} ", self.value, self.scale)?;
        out.write_str("d:(resource.infDecAmount){Dec:(*inf.Dec)")?;
        match self.decimal {
            None => out.write_str("<nil>")?,
            Some(decimal) => decimal.print(out)?,
        }
        write!(out, "}} s:(string){} Format:(resource.Format){}}}", self.text, self.format)
    }
}

impl Decimal {
    /// The same with so many digits after the point, rounded away from zero.
    fn at_scale(self, scale: i32) -> Self {
        let unit = 10_u128.saturating_pow(scale.abs_diff(self.scale));
        let unscaled =
            if scale >= self.scale { self.unscaled.saturating_mul(unit) } else { self.unscaled.div_ceil(unit) };
        Self { unscaled, scale, ..self }
    }

    fn print(&self, out: &mut impl Write) -> fmt::Result {
        write!(out, "{{unscaled:(big.Int){{neg:(bool){} abs:(big.nat)", self.negative)?;
        let (low, high) = (self.unscaled & u128::from(u64::MAX), self.unscaled >> 64);
        match (low, high) {
            (0, 0) => out.write_str("<nil>")?,
            (low, 0) => write!(out, "[{low}]")?,
            (low, high) => write!(out, "[{low} {high}]")?,
        }
        write!(out, "}} scale:(inf.Scale){}}}", self.scale)
    }
}

fn split(text: &str) -> Option<Number<'_>> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (integer, rest) = digits(rest.trim_start_matches('0'));
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    let integer = if integer.is_empty() { "0" } else { integer };
    Some(Number { negative, integer, fraction, suffix: self::suffix(suffix)? })
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

fn suffix(text: &str) -> Option<Suffix> {
    Some(match text {
        "n" => Suffix::Tens(-9, DECIMAL),
        "u" => Suffix::Tens(-6, DECIMAL),
        "m" => Suffix::Tens(-3, DECIMAL),
        "" => Suffix::Tens(0, DECIMAL),
        "k" => Suffix::Tens(3, DECIMAL),
        "M" => Suffix::Tens(6, DECIMAL),
        "G" => Suffix::Tens(9, DECIMAL),
        "T" => Suffix::Tens(12, DECIMAL),
        "P" => Suffix::Tens(15, DECIMAL),
        "E" => Suffix::Tens(18, DECIMAL),
        "Ki" => Suffix::Twos(1),
        "Mi" => Suffix::Twos(2),
        "Gi" => Suffix::Twos(3),
        "Ti" => Suffix::Twos(4),
        "Pi" => Suffix::Twos(5),
        "Ei" => Suffix::Twos(6),
        _ => Suffix::Tens(text.strip_prefix(['e', 'E'])?.parse().ok()?, EXPONENT),
    })
}

/// As a scaled integer, if the number is short enough for one.
fn short(number: &Number<'_>, text: &str) -> Option<Amount> {
    let shifted = format!("{}{}", number.integer, number.fraction);
    let (factor, scale, format) = match number.suffix {
        Suffix::Tens(exponent, format) if shifted.len() <= SHORT_DIGITS => {
            (1, exponent.checked_sub(i32::try_from(number.fraction.len()).ok()?)?, format)
        }
        // A step of 1024 counts for three digits, of fourteen.
        Suffix::Twos(steps) if number.fraction.is_empty() && shifted.len() + 3 * steps as usize <= 14 => {
            (1_i64 << (10 * steps), 0, BINARY)
        }
        _ => return None,
    };
    if scale < NANO {
        return None;
    }
    let digits: i64 = shifted.parse().ok()?;
    let value = digits.checked_mul(factor)?;
    let canonical = match number.suffix {
        Suffix::Twos(_) => digits % 8 != 0,
        Suffix::Tens(..) => scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0'),
    };
    let text = if canonical { text.to_owned() } else { String::new() };
    Some(Amount { value: if number.negative { -value } else { value }, scale, decimal: None, text, format })
}

/// As a decimal: at most nanos, binary amounts at most the largest integer.
fn long(number: &Number<'_>) -> Option<Amount> {
    let digits: u128 = format!("{}{}", number.integer, number.fraction).parse().ok()?;
    let places = i32::try_from(number.fraction.len()).ok()?;
    let (unscaled, scale, mut format) = match number.suffix {
        Suffix::Tens(exponent, format) => (digits, places.checked_sub(exponent)?, format),
        Suffix::Twos(steps) => (digits.checked_mul(1 << (10 * steps))?, places, BINARY),
    };
    let mut decimal = Decimal { negative: number.negative, unscaled, scale };
    if unscaled != 0 {
        decimal = decimal.at_scale(-NANO);
    }
    let one = 10_u128.saturating_pow(decimal.scale.unsigned_abs());
    if format == BINARY && decimal.unscaled / one > u128::from(i64::MAX.unsigned_abs()) {
        decimal = Decimal { unscaled: u128::from(i64::MAX.unsigned_abs()), scale: 0, ..decimal };
    }
    if format == BINARY && !number.negative && decimal.unscaled > 0 && decimal.unscaled < one {
        format = DECIMAL;
    }
    Some(Amount { decimal: Some(decimal), format, ..Amount::default() })
}
