//! Tables for [`Quantity`].

use std::collections::HashSet;

use super::*;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn writes_the_canonical_text() {
    let cases = [
        ("0", "0"),
        ("0Mi", "0"),
        ("00", "0"),
        ("-0", "0"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("100e1", "1e3"),
        ("1e-3", "1e-3"),
        ("12.5e0", "12500e-3"),
        ("0.1Ki", "102400m"),
        ("0.0001Ki", "102400u"),
        ("12E", "12E"),
        ("1000k", "1M"),
        ("1023Ki", "1023Ki"),
        ("1024Ki", "1Mi"),
        ("512Mi", "512Mi"),
        ("8Ki", "8Ki"),
        ("0.125Ki", "128"),
        ("524288", "524288"),
        ("1000E", "1000E"),
        ("1e20", "100e18"),
        ("-1.5Gi", "-1536Mi"),
        ("16Ei", "9223372036854775807"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1.0000000001", "1000000001n"),
        ("123456789012345678901", "123456789012345678901"),
    ];
    for (text, expected) in cases {
        assert_eq!(quantity(text).to_string(), expected, "{text}");
    }
}

#[test]
fn keeps_typed_text_where_upstream_does() {
    let cases = [
        ("+5", "+5"),
        ("05", "05"),
        ("5.", "5."),
        ("1.500", "1.500"),
        ("5000", "5k"),
        ("1.5", "1500m"),
        (".500", "500m"),
        ("+8Ki", "8Ki"),
        ("+9Ki", "+9Ki"),
        ("1234567890123456789", "1234567890123456789"),
        ("+1234567890123456789", "1234567890123456789"),
        ("1E3", "1E3"),
    ];
    for (text, expected) in cases {
        assert_eq!(quantity(text).to_string(), expected, "{text}");
    }
}

/// What is written out can be read, however many zeros there are.
#[test]
fn wide_amounts_are_read_again() {
    for (text, written) in [
        ("9999992547750000027203685477500000000.1E", "9999992547750000027203685477500000000100P"),
        ("1e60", "1e60"),
        ("1000e1000", "10000e999"),
        ("10000000000000000000000000000000000000000000000000Ei", "9223372036854775807"),
        ("0.1000000000000000000000000000000000000000000000000Ki", "102400m"),
    ] {
        let read = Quantity::parse(text).unwrap();
        assert_eq!(read.to_string(), written);
        assert_eq!(Quantity::parse(written).unwrap(), read);
    }
    let zeros = "0".repeat(1_038);
    assert_eq!(Quantity::parse(&format!("1{zeros}")).unwrap().to_string(), format!("1{}E", &zeros[18..]));
    assert_eq!(Quantity::parse(&format!("1{zeros}0")).unwrap_err(), QuantityError::Numeric);
    assert_eq!(Quantity::parse(&format!("1{zeros}e3")).unwrap_err(), QuantityError::Numeric);
}

#[test]
fn refuses_what_is_no_quantity() {
    use QuantityError::{Format, Numeric, Suffix};
    let cases = [
        ("", Format),
        ("+", Format),
        ("m", Format),
        (" 1", Format),
        ("1 ", Format),
        ("aoeu", Format),
        ("1.1.M", Format),
        ("1+1.0M", Format),
        ("0.1am", Format),
        (".", Numeric),
        (".Mi", Numeric),
        ("1234567890123456789012345678901234567891", Numeric),
        ("1K", Suffix),
        ("0.1mi", Suffix),
        (".5i", Suffix),
        ("-3.01e-", Suffix),
        ("1e1001", Suffix),
        ("1k3", Suffix),
        ("1é", Format),
    ];
    for (text, expected) in cases {
        assert_eq!(Quantity::parse(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn rounds_values_away_from_zero() {
    let cases = [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("100m", 1, 100),
        ("1n", 1, 1),
        ("-1500m", -2, -1500),
        ("2Ki", 2048, 2_048_000),
        ("1e30", i64::MAX, i64::MAX),
        ("-1e30", i64::MIN, i64::MIN),
    ];
    for (text, value, milli) in cases {
        assert_eq!(quantity(text).value(), value, "{text}");
        assert_eq!(quantity(text).milli_value(), milli, "{text}");
    }
    assert_eq!(quantity("1.5").as_i64(), None);
    assert_eq!(quantity("1500m").as_f64(), 1.5);
    assert_eq!(quantity("2k").as_i64(), Some(2000));
}

#[test]
fn compares_by_amount() {
    let ascending = ["-1e30", "-1", "-1n", "0", "1n", "500m", "1", "1k", "1Ki", "1M", "1e900"];
    for pair in ascending.windows(2) {
        assert!(quantity(pair[0]) < quantity(pair[1]), "{pair:?}");
    }
    let equal = [("500m", "0.5"), ("1Ki", "1024"), ("1e3", "1k"), ("0", "0Mi"), ("1000000000n", "1")];
    for (left, right) in equal {
        assert_eq!(quantity(left), quantity(right));
        assert_eq!(HashSet::from([quantity(left), quantity(right)]).len(), 1);
    }
}

#[test]
fn adds_and_subtracts() {
    let cases = [
        ("1", "500m", "1500m", "500m"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1Gi", "1", "1073741825", "1073741823"),
        ("1Gi", "0", "1Gi", "1Gi"),
        ("5", "+5", "10", "0"),
        ("1e3", "1n", "1000000000001e-9", "999999999999e-9"),
    ];
    for (left, right, total, difference) in cases {
        let (mut plus, mut minus) = (quantity(left), quantity(left));
        plus.add(&quantity(right));
        minus.sub(&quantity(right));
        assert_eq!(plus.to_string(), total, "{left} + {right}");
        assert_eq!(minus.to_string(), difference, "{left} - {right}");
    }
    let mut huge = quantity("1e1000");
    huge.add(&quantity("1n"));
    assert!(huge >= quantity("1e1000"));
    let mut product = quantity("1500m");
    product.mul(4);
    assert_eq!(product.to_string(), "6");
}

#[test]
fn amounts_multiply() {
    for (amount, factor, expected) in [
        ("4", "2", "8"),
        ("1500m", "500m", "750m"),
        ("2Gi", "3", "6Gi"),
        ("3", "2Gi", "6442450944"),
        ("1n", "1m", "1n"),
        ("-1", "1500m", "-1500m"),
        ("0", "1e1000", "0"),
    ] {
        let mut product = quantity(amount);
        product.scale_by(&quantity(factor));
        assert_eq!(product.to_string(), expected, "{amount} * {factor}");
    }
    let mut huge = quantity("99999999999999999999999999999999999999e900");
    huge.scale_by(&quantity("99999999999999999999999999999999999999e900"));
    assert!(huge > quantity("1e1000"));
}

#[test]
fn rounds_up_to_milli() {
    let cases = [("1n", "1m", false), ("1500u", "2m", false), ("-1500u", "-2m", false), ("+5", "+5", true)];
    for (text, expected, exact) in cases {
        let mut rounded = quantity(text);
        assert_eq!(rounded.round_up_to_milli(), exact, "{text}");
        assert_eq!(rounded.to_string(), expected, "{text}");
    }
}

#[test]
fn canonical_text_reads_back_equal() {
    for mantissa in [1_i64, 7, 1000, 1024, 1536, 999_999, -2048] {
        for suffix in ["n", "u", "m", "", "k", "M", "G", "Ki", "Mi", "Gi", "e2", "e-4"] {
            let first = quantity(&format!("{mantissa}{suffix}"));
            let mut canonical = first.clone();
            canonical.mul(1);
            let second = quantity(&canonical.to_string());
            assert_eq!(first, second);
            assert_eq!(second.to_string(), canonical.to_string());
        }
    }
}
