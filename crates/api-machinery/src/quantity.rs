//! `Quantity`: a fixed-point number with a unit suffix, such as `500m` CPU or `2Gi` of memory.
//!
//! The value is exact: an integer mantissa times a power of ten. Two spellings of one number are equal, yet the
//! spelling of the request is kept where upstream keeps it, because it is what the next read shows.
//! Numbers need at most 38 significant digits and exponents up to 1000; upstream has no such bounds, and printing
//! what they exclude would take unbounded memory.
//! Concept: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

mod text;

/// The smallest step is one nano.
const NANO: i32 = -9;
/// Powers of 1024 that have a suffix (`Ki` to `Ei`).
const MAX_BINARY_STEPS: u32 = 6;

/// The family of suffixes a quantity is written with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `n u m k M G T P E`.
    #[default]
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`.
    BinarySi,
    /// `e3`.
    DecimalExponent,
}

/// A text that is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text as a whole does not follow the grammar.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number has no digits or too many.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// No such suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// An exact amount: `mantissa * 10^scale`, its suffix family, and the text it was read from where that is kept.
#[derive(Clone, Default)]
pub struct Quantity {
    mantissa: i128,
    scale: i32,
    format: Format,
    typed: Option<Box<str>>,
}

impl Quantity {
    /// Reads a quantity; the text must have no surrounding spaces.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        text::parse(text)
    }

    /// An integer amount.
    pub const fn from_value(value: i64, format: Format) -> Self {
        Self::from_scaled(value as i128, 0, format)
    }

    /// An amount in thousandths.
    pub const fn from_milli(value: i64, format: Format) -> Self {
        Self::from_scaled(value as i128, -3, format)
    }

    /// An amount in billionths.
    pub const fn from_nano(value: i64, format: Format) -> Self {
        Self::from_scaled(value as i128, NANO, format)
    }

    /// The amount `mantissa * 10^scale`.
    const fn from_scaled(mantissa: i128, scale: i32, format: Format) -> Self {
        Self { mantissa, scale, format, typed: None }
    }

    /// The text it is written as.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        self.typed.as_deref().map_or_else(|| Cow::Owned(self.to_string()), Cow::Borrowed)
    }

    /// The suffix family it is written with.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Whether the amount is zero.
    pub const fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// -1, 0 or 1.
    pub const fn sign(&self) -> i32 {
        match self.mantissa {
            0 => 0,
            1.. => 1,
            _ => -1,
        }
    }

    /// The integer at or next beyond the amount, away from zero; saturates.
    pub fn value(&self) -> i64 {
        saturate(self.rounded(0))
    }

    /// The number of thousandths at or next beyond the amount, away from zero; saturates.
    pub fn milli_value(&self) -> i64 {
        saturate(self.rounded(-3))
    }

    /// The amount as an integer, when it is one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        if self.is_integer() { i64::try_from(self.rounded(0)).ok() } else { None }
    }

    /// The nearest floating point number.
    pub fn as_f64(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an approximation is what is asked for")]
        let mantissa = self.mantissa as f64;
        if self.scale < 0 { mantissa / 10_f64.powi(-self.scale) } else { mantissa * 10_f64.powi(self.scale) }
    }

    /// Whether the amount has no fraction.
    pub fn is_integer(&self) -> bool {
        self.scale >= 0 || power_of_ten(self.scale.unsigned_abs()).is_some_and(|step| self.mantissa % step == 0)
    }

    /// Rounds up, away from zero, to thousandths: what defaulting does to every resource list of core/v1.
    /// Tells whether nothing was lost; the typed text is kept then.
    pub fn round_up_to_milli(&mut self) -> bool {
        if self.scale >= -3 {
            return true;
        }
        let rounded = Self::from_scaled(self.rounded(-3), -3, self.format);
        let exact = rounded == *self;
        if !exact {
            *self = rounded;
        }
        exact
    }

    /// Adds in place; a zero left side takes the suffix family of the right.
    pub fn add(&mut self, other: &Self) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.typed = None;
        let (mantissa, scale) = sum((self.mantissa, self.scale), (other.mantissa, other.scale));
        (self.mantissa, self.scale) = (mantissa, scale);
    }

    /// Subtracts in place; a zero left side takes the suffix family of the right.
    pub fn sub(&mut self, other: &Self) {
        let mut negated = other.clone();
        negated.neg();
        self.add(&negated);
    }

    /// Changes the sign in place.
    pub fn neg(&mut self) {
        self.typed = None;
        self.mantissa = self.mantissa.saturating_neg();
    }

    /// Multiplies in place by an integer; saturates.
    pub fn mul(&mut self, factor: i64) {
        self.typed = None;
        self.mantissa = self.mantissa.saturating_mul(i128::from(factor));
    }

    /// Multiplies in place by an amount, to the nano at or next beyond; saturates. The suffix family stays.
    pub fn scale_by(&mut self, factor: &Self) {
        self.typed = None;
        let ((own, own_scale), (other, other_scale)) = (self.reduced(), factor.reduced());
        let (mantissa, scale) = (own.saturating_mul(other), own_scale + other_scale);
        // Amounts have no smaller steps when they are written.
        (self.mantissa, self.scale) =
            if scale < NANO { (rescale(mantissa, scale, NANO), NANO) } else { (mantissa, scale) };
    }

    /// Compares with an integer.
    pub fn cmp_i64(&self, value: i64) -> Ordering {
        compare((self.mantissa, self.scale), (i128::from(value), 0))
    }

    /// The mantissa at `scale`, rounded away from zero and saturating.
    fn rounded(&self, scale: i32) -> i128 {
        rescale(self.mantissa, self.scale, scale)
    }

    /// Mantissa and scale without trailing decimal zeros, the same for equal amounts.
    fn reduced(&self) -> (i128, i32) {
        let (mut mantissa, mut scale) = (self.mantissa, self.scale);
        if mantissa == 0 {
            return (0, 0);
        }
        while mantissa % 10 == 0 {
            mantissa /= 10;
            scale += 1;
        }
        (mantissa, scale)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        compare((self.mantissa, self.scale), (other.mantissa, other.scale))
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.reduced().hash(state);
    }
}

impl std::str::FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.typed {
            Some(typed) => f.write_str(typed),
            None => text::write_canonical(self, f),
        }
    }
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn power_of_ten(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

/// The mantissa of the same amount at another scale: rounded away from zero when digits are lost, saturating.
fn rescale(mantissa: i128, from: i32, to: i32) -> i128 {
    let step = power_of_ten(from.abs_diff(to));
    if mantissa == 0 || from == to {
        return mantissa;
    }
    if from > to {
        let bound = if mantissa < 0 { i128::MIN } else { i128::MAX };
        return step.and_then(|step| mantissa.checked_mul(step)).unwrap_or(bound);
    }
    match step {
        Some(step) if mantissa % step == 0 => mantissa / step,
        Some(step) => mantissa / step + mantissa.signum(),
        None => mantissa.signum(),
    }
}

/// Adds two amounts at the finer of the two scales. Where that does not fit, the coarser scale is taken and the
/// finer amount is rounded away from zero: only beyond 38 digits.
fn sum(left: (i128, i32), right: (i128, i32)) -> (i128, i32) {
    match (left.0, right.0) {
        (0, _) => return right,
        (_, 0) => return left,
        _ => {}
    }
    let exact = |scale: i32| {
        let at = |(mantissa, from): (i128, i32)| power_of_ten(from.abs_diff(scale))?.checked_mul(mantissa);
        at(left)?.checked_add(at(right)?)
    };
    let finer = left.1.min(right.1);
    if let Some(total) = exact(finer) {
        return (total, finer);
    }
    let coarser = left.1.max(right.1);
    let total = rescale(left.0, left.1, coarser).saturating_add(rescale(right.0, right.1, coarser));
    (total, coarser)
}

fn compare(left: (i128, i32), right: (i128, i32)) -> Ordering {
    let by_sign = left.0.signum().cmp(&right.0.signum());
    if by_sign != Ordering::Equal || left.0 == 0 {
        return by_sign;
    }
    let by_size = compare_magnitudes((left.0.unsigned_abs(), left.1), (right.0.unsigned_abs(), right.1));
    if left.0 < 0 { by_size.reverse() } else { by_size }
}

/// Both mantissas are at least 1.
fn compare_magnitudes(left: (u128, i32), right: (u128, i32)) -> Ordering {
    let digits = |(mantissa, scale): (u128, i32)| i64::from(mantissa.ilog10()) + i64::from(scale);
    digits(left).cmp(&digits(right)).then_with(|| {
        // The leading digits stand at the same place, so the scales differ by less than 39.
        let step = 10_u128.checked_pow(left.1.abs_diff(right.1));
        let grown = |mantissa: u128| step.and_then(|step| mantissa.checked_mul(step)).unwrap_or(u128::MAX);
        match left.1.cmp(&right.1) {
            Ordering::Equal => left.0.cmp(&right.0),
            Ordering::Greater => grown(left.0).cmp(&right.0),
            Ordering::Less => left.0.cmp(&grown(right.0)),
        }
    })
}

#[cfg(test)]
mod tests;
