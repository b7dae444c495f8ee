//! Tables for field errors.

use super::*;

#[test]
fn errors_print_like_upstream() {
    let path = Path::new("spec").child("x");
    let cases = [
        (path.required(""), "spec.x: Required value"),
        (path.required("must be set"), "spec.x: Required value: must be set"),
        (path.forbidden("no"), "spec.x: Forbidden: no"),
        (path.invalid("a\"b", "bad"), r#"spec.x: Invalid value: "a\"b": bad"#),
        (path.invalid("", "bad"), r#"spec.x: Invalid value: "": bad"#),
        (path.invalid(-5, "bad"), "spec.x: Invalid value: -5: bad"),
        (path.invalid(true, "bad"), "spec.x: Invalid value: true: bad"),
        (path.invalid(None::<i32>, "bad"), "spec.x: Invalid value: null: bad"),
        (path.invalid(BadValue::named("a<b"), "bad"), r#"spec.x: Invalid value: "a\u003cb": bad"#),
        (path.invalid(BadValue::list(&["a", "b"]), "bad"), r#"spec.x: Invalid value: ["a","b"]: bad"#),
        (path.invalid(&Quantity::parse("0.1").unwrap(), "bad"), r#"spec.x: Invalid value: "100m": bad"#),
        (path.invalid(&IntOrString::from("5%"), "bad"), r#"spec.x: Invalid value: "5%": bad"#),
        (path.invalid(&IntOrString::Int(5), "bad"), "spec.x: Invalid value: 5: bad"),
        (path.type_invalid("x", "bad"), r#"spec.x: Invalid value: "x": bad"#),
        (path.not_supported("x", &["b", "a"]), r#"spec.x: Unsupported value: "x": supported values: "a", "b""#),
        (
            path.not_supported_in_order("x", &["b", "a"]),
            r#"spec.x: Unsupported value: "x": supported values: "b", "a""#,
        ),
        (path.not_supported::<&str>("x", &[]), r#"spec.x: Unsupported value: "x""#),
        (path.not_found("x"), r#"spec.x: Not found: "x""#),
        (path.duplicate("x"), r#"spec.x: Duplicate value: "x""#),
        (path.too_long(63), "spec.x: Too long: may not be more than 63 bytes"),
        (path.too_long(1), "spec.x: Too long: may not be more than 1 byte"),
        (path.too_long_characters(2), "spec.x: Too long: may not be more than 2 characters"),
        (path.too_short(1), "spec.x: Too short: must be at least 1 character"),
        (path.too_many(11, 10), "spec.x: Too many: 11: must have at most 10 items"),
        (path.too_few(0, 1), "spec.x: Too few: 0: must have at least 1 item"),
        (path.internal("boom"), "spec.x: Internal error: boom"),
        (Path::new("").forbidden("no"), "[]: Forbidden: no"),
    ];
    for (error, expected) in cases {
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn lists_join_distinct_texts() {
    let path = Path::new("a");
    let mut list = ErrorList::from(path.required(""));
    assert_eq!(list.to_string(), "a: Required value");
    list.push(path.required(""));
    assert_eq!(list.to_string(), "a: Required value");
    list.push_invalid(&path, "x", vec!["one".into(), "two".into()]);
    assert_eq!(list.to_string(), r#"[a: Required value, a: Invalid value: "x": one, a: Invalid value: "x": two]"#);
    assert_eq!(list.causes().len(), 4);
    let expected =
        Cause { reason: "FieldValueInvalid".into(), message: r#"Invalid value: "x": one"#.into(), field: "a".into() };
    assert_eq!(list.causes()[2], expected);
    assert!(ErrorList::new().into_result().is_ok());
    assert!(list.into_result().is_err());
}

/// What one request can make of errors is bounded, however its mistakes multiply.
#[test]
fn lists_take_errors_up_to_a_size() {
    let long = Path::new("a").invalid("x".repeat(1000), "");
    let mut errors = ErrorList::new();
    errors.extend(std::iter::repeat_n(long, 5000));
    assert!(errors.is_full());
    assert_eq!(errors.len(), (1 << 20) / 1003 + 1);
    let whole = ErrorList::from(Path::new("a").invalid("x".repeat(1 << 21), ""));
    assert_eq!(whole.len(), 1, "the first error is there however long it is");
}
