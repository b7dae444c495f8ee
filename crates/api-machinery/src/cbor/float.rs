//! Doubles in the shortest of three sizes that tells them exactly, and half ones back.

/// The bits that a number has in half precision, where that tells it exactly.
pub(super) fn half_bits(value: f32) -> Option<u16> {
    let bits = value.to_bits();
    let sign = bits >> 16 & 0x8000;
    let (exponent, fraction) = ((bits >> 23 & 0xff).cast_signed() - 127, bits & 0x007f_ffff);
    let magnitude = match exponent {
        -127 if fraction == 0 => 0,
        -14..=15 if fraction & 0x1fff == 0 => ((exponent + 15).cast_unsigned() << 10) | (fraction >> 13),
        -24..=-15 => {
            let (whole, shift) = (fraction | 0x0080_0000, (-1 - exponent).cast_unsigned());
            if whole & ((1 << shift) - 1) != 0 {
                return None;
            }
            whole >> shift
        }
        _ => return None,
    };
    u16::try_from(sign | magnitude).ok()
}

/// The number of half precision that these bits stand for.
pub(super) fn from_half_bits(bits: u16) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 0x1f, f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if bits & 0x3ff == 0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2_f64.powi(i32::from(exponent) - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_half_precision_tells_it_tells_exactly() {
        for (value, bits) in [
            (0.0, Some(0)),
            (-0.0, Some(0x8000)),
            (1.0, Some(0x3c00)),
            (1.5, Some(0x3e00)),
            (-4.0, Some(0xc400)),
            (65_504.0, Some(0x7bff)),
            (65_536.0, None),
            (5.960_464_5e-8, Some(1)),
            (6.103_515_6e-5, Some(0x0400)),
            (2.980_232_2e-8, None),
            (0.1, None),
        ] {
            assert_eq!(half_bits(value), bits, "{value}");
            if let Some(bits) = bits {
                assert_eq!(from_half_bits(bits).to_bits(), f64::from(value).to_bits(), "{value}");
            }
        }
        for bits in 0..=u16::MAX {
            let value = from_half_bits(bits);
            if value.is_finite() {
                #[expect(clippy::cast_possible_truncation, reason = "single precision tells whatever half does")]
                let single = value as f32;
                assert_eq!(half_bits(single), Some(bits));
            }
        }
    }
}
