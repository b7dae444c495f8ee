//! The text of quantities: grammar, which typed texts survive, and the canonical form.

use std::cmp::Ordering;
use std::fmt;

use super::{Format, MAX_BINARY_STEPS, NANO, Quantity, QuantityError, rescale};

/// Positive exponents beyond this are refused.
const MAX_EXPONENT: i32 = 1000;
/// The coarsest scale: that of the largest exponent, with as many zeros before it as an integer here has digits.
const MAX_SCALE: i32 = MAX_EXPONENT + 38;
/// Numbers with more digits are always written canonically.
const MAX_TYPED_DIGITS: usize = 18;
/// Binary amounts are capped here.
const MAX_BINARY_VALUE: i128 = i64::MAX as i128;

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// The suffix of each power of 1024.
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// A suffix, read.
#[derive(Clone, Copy)]
enum Unit {
    Decimal { exponent: i32, format: Format },
    Binary { steps: u32 },
}

/// The pieces of a text; leading zeros of the integer digits are gone.
struct Pieces<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    let pieces = split(text)?;
    let unit = read_unit(pieces.suffix)?;
    let (mantissa, fraction_digits) = read_digits(&pieces)?;
    let (magnitude, scale, format) = match unit {
        Unit::Decimal { exponent, format } => {
            let scale = exponent.saturating_sub(fraction_digits);
            if scale > MAX_SCALE {
                return Err(QuantityError::Numeric);
            }
            let (mantissa, scale) = at_least_nano(mantissa, scale);
            (mantissa, scale, format)
        }
        Unit::Binary { steps } => read_binary(mantissa, fraction_digits, steps),
    };
    let signed = if pieces.negative { -magnitude } else { magnitude };
    let keeps_text = keeps_typed_text(&pieces, unit, mantissa);
    Ok(Quantity { mantissa: signed, scale, format, typed: keeps_text.then(|| text.into()) })
}

fn split(text: &str) -> Result<Pieces<'_>, QuantityError> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (integer, after) = split_digits(rest);
    let (fraction, suffix, has_dot) = match after.strip_prefix('.') {
        Some(after) => {
            let (fraction, suffix) = split_digits(after);
            (fraction, suffix, true)
        }
        None => ("", after, false),
    };
    if integer.is_empty() && !has_dot {
        return Err(QuantityError::Format);
    }
    let letters_end = suffix.find(|c| !"eEinumkKMGTP".contains(c)).unwrap_or(suffix.len());
    let (_, exponent) = suffix.split_at(letters_end);
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    if integer.is_empty() && fraction.is_empty() {
        return Err(QuantityError::Numeric);
    }
    Ok(Pieces { negative, integer: integer.trim_start_matches('0'), fraction, suffix })
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn read_unit(suffix: &str) -> Result<Unit, QuantityError> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Ok(Unit::Decimal { exponent: *exponent, format: Format::DecimalSi });
    }
    if let Some(steps) = (0..).zip(BINARY_SUFFIXES).find_map(|(steps, name)| (name == suffix).then_some(steps)) {
        return Ok(Unit::Binary { steps });
    }
    let digits = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
    let exponent: i32 = digits.parse().map_err(|_| QuantityError::Suffix)?;
    if exponent > MAX_EXPONENT {
        return Err(QuantityError::Suffix);
    }
    Ok(Unit::Decimal { exponent, format: Format::DecimalExponent })
}

/// All digits as one integer, and how many of its digits are of the fraction. Where it would be too large, the zeros at its end
/// are left out, which may be more than the fraction has.
fn read_digits(pieces: &Pieces<'_>) -> Result<(i128, i32), QuantityError> {
    let digits = || pieces.integer.bytes().chain(pieces.fraction.bytes());
    let append = |sum: i128, byte: u8| sum.checked_mul(10)?.checked_add(i128::from(byte - b'0'));
    let read = |zeros: usize| {
        let count = (pieces.integer.len() + pieces.fraction.len()).checked_sub(zeros)?;
        let fraction = i32::try_from(pieces.fraction.len()).ok()?.checked_sub(i32::try_from(zeros).ok()?)?;
        Some((digits().take(count).try_fold(0, append)?, fraction))
    };
    let without_zeros = || read(digits().rev().take_while(|byte| *byte == b'0').count());
    read(0).or_else(without_zeros).ok_or(QuantityError::Numeric)
}

/// Amounts finer than a nano are rounded up to whole nanos.
fn at_least_nano(mantissa: i128, scale: i32) -> (i128, i32) {
    match mantissa {
        0 => (0, 0),
        _ if scale < NANO => (rescale(mantissa, scale, NANO), NANO),
        _ => (mantissa, scale),
    }
}

fn read_binary(mantissa: i128, fraction_digits: i32, steps: u32) -> (i128, i32, Format) {
    let grown = mantissa.saturating_mul(1 << (10 * steps));
    if fraction_digits == 0 && (1..=MAX_BINARY_VALUE).contains(&grown) {
        return (grown, 0, Format::BinarySi);
    }
    let (value, scale) = at_least_nano(grown, -fraction_digits);
    let amount = Quantity::from_scaled(value, scale, Format::BinarySi);
    if amount.cmp_i64(i64::MAX) == Ordering::Greater {
        return (MAX_BINARY_VALUE, 0, Format::BinarySi);
    }
    let below_one = amount.sign() > 0 && amount.cmp_i64(1) == Ordering::Less;
    (value, scale, if below_one { Format::DecimalSi } else { Format::BinarySi })
}

/// Whether upstream writes this text back as typed instead of canonically.
fn keeps_typed_text(pieces: &Pieces<'_>, unit: Unit, mantissa: i128) -> bool {
    // Upstream counts a missing integer part as the digit 0.
    let digits = pieces.integer.len().max(1) + pieces.fraction.len();
    match unit {
        Unit::Decimal { exponent, .. } => {
            let scale = i64::from(exponent) - pieces.fraction.len() as i64;
            digits <= MAX_TYPED_DIGITS
                && scale >= i64::from(NANO)
                && scale % 3 == 0
                && !pieces.integer.is_empty()
                && !pieces.integer.chars().chain(pieces.fraction.chars()).rev().take(3).eq("000".chars())
        }
        Unit::Binary { steps } => {
            let room = 14_i64 - digits as i64 - i64::from(steps) * 3;
            pieces.fraction.is_empty() && room >= 0 && mantissa % 8 != 0
        }
    }
}

pub(super) fn write_canonical(quantity: &Quantity, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if quantity.is_zero() {
        return f.write_str("0");
    }
    if quantity.format == Format::BinarySi && quantity.scale == 0 && quantity.mantissa.unsigned_abs() >= 1024 {
        return write_binary(quantity.mantissa, f);
    }
    let below_a_kibi = quantity.cmp_i64(-1024) == Ordering::Greater && quantity.cmp_i64(1024) == Ordering::Less;
    match quantity.format {
        Format::BinarySi if below_a_kibi || !quantity.is_integer() => write_decimal(quantity, Format::DecimalSi, f),
        Format::BinarySi => write_binary(quantity.rounded(0), f),
        format => write_decimal(quantity, format, f),
    }
}

fn write_binary(value: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let steps = (value.trailing_zeros() / 10).min(MAX_BINARY_STEPS);
    let mantissa = value >> (10 * steps);
    write_integer(mantissa, f)?;
    f.write_str(BINARY_SUFFIXES.get(steps as usize).copied().unwrap_or_default())
}

/// Wide integers are slow to divide and to print, and almost none is wide.
fn write_integer(value: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match i64::try_from(value) {
        Ok(small) => f.write_str(itoa::Buffer::new().format(small)),
        Err(_) => write!(f, "{value}"),
    }
}

fn write_decimal(quantity: &Quantity, format: Format, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (mantissa, scale) = quantity.reduced();
    let exponent = match format {
        // Beyond what can be read the zeros are written out.
        Format::DecimalExponent => (scale - scale.rem_euclid(3)).min(MAX_EXPONENT - MAX_EXPONENT % 3),
        // Beyond the table as well; upstream drops them, which changes the amount.
        _ => (scale - scale.rem_euclid(3)).min(18),
    };
    write_integer(mantissa, f)?;
    for _ in exponent..scale {
        f.write_str("0")?;
    }
    match (format, exponent) {
        (_, 0) => Ok(()),
        (Format::DecimalExponent, _) => write!(f, "e{exponent}"),
        _ => {
            let suffix = DECIMAL_SUFFIXES.iter().find(|(_, power)| *power == exponent);
            f.write_str(suffix.map_or("", |(name, _)| name))
        }
    }
}
