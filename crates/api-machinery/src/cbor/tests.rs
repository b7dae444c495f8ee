//! Items as upstream writes them, those that it reads, and those that nobody reads.

use proptest::prelude::*;

use super::*;
use crate::leaf::RawJson;
use crate::meta::{ObjectMeta, WatchEvent};
use crate::value::Value;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

/// Vectors of RFC 8949, appendix A, but for strings, which are byte strings.
#[test]
fn values_are_written_in_their_shortest_form() {
    for (json, expected) in [
        ("0", "00"),
        ("23", "17"),
        ("24", "1818"),
        ("1000", "1903e8"),
        ("1000000", "1a000f4240"),
        ("1000000000000", "1b000000e8d4a51000"),
        ("9223372036854775807", "1b7fffffffffffffff"),
        ("-1", "20"),
        ("-1000", "3903e7"),
        ("-9223372036854775808", "3b7fffffffffffffff"),
        ("1.5", "f93e00"),
        ("100000.5", "fa47c35040"),
        ("1.1", "fb3ff199999999999a"),
        ("true", "f5"),
        ("null", "f6"),
        (r#""a""#, "4161"),
        (r#"[1,[2,3]]"#, "8201820203"),
        // The shorter name comes first, whatever its letters.
        (r#"{"aa":1,"b":2,"a":{}}"#, "a34161a0416202426161 01"),
    ] {
        assert_eq!(hex(&encode_value(&value(json))), format!("d9d9f7{}", expected.replace(' ', "")), "{json}");
    }
}

#[test]
fn more_is_read_than_is_written() {
    for (hex, expected) in [
        ("d9d9f7d9d9f7a0", "{}"),
        ("6161", r#""a""#),
        ("7f616161626163ff", r#""abc""#),
        ("5f4161ff", r#""a""#),
        ("9f0102ff", "[1,2]"),
        ("bf6161f4ff", r#"{"a":false}"#),
        ("1900ff", "255"),
        ("f93c00", "1.0"),
        ("fa47c35040", "100000.5"),
        ("d64568656c6c6f", r#""aGVsbG8=""#),
        ("d54200ff", r#""AP8=""#),
        ("d74200ff", r#""00ff""#),
        ("c074323031332d30332d32315432303a30343a30305a", r#""2013-03-21T20:04:00Z""#),
        ("c11a514b67b0", r#""2013-03-21T20:04:00Z""#),
        ("c1fb41d452d9ec200000", r#""2013-03-21T20:04:00.500000Z""#),
        ("d82076687474703a2f2f7777772e6578616d706c652e636f6d", r#""http://www.example.com""#),
    ] {
        assert_eq!(parse_value(&bytes(hex)), Ok(value(expected)), "{hex}");
    }
}

#[test]
fn what_json_has_no_word_for_is_refused() {
    for (hex, expected) in [
        ("", "unexpected EOF"),
        ("a1", "unexpected EOF"),
        ("9f01", "unexpected EOF"),
        ("5b7fffffffffffffff00", "unexpected EOF"),
        ("9bffffffffffffffff", "unexpected EOF"),
        ("0000", "cbor: 1 bytes of extraneous data starting at index 1"),
        ("ff", "cbor: invalid initial byte 0xff"),
        ("1c", "cbor: invalid initial byte 0x1c"),
        ("5f6161ff", "cbor: invalid initial byte 0x61"),
        ("1b8000000000000000", "cbor: cannot unmarshal integer beyond 64 bits"),
        ("3b8000000000000000", "cbor: cannot unmarshal integer beyond 64 bits"),
        ("c249010000000000000000", "cbor: cannot unmarshal integer beyond 64 bits"),
        ("f97e00", "cbor: cannot unmarshal NaN or infinity"),
        ("fb7ff0000000000000", "cbor: cannot unmarshal NaN or infinity"),
        ("f7", "cbor: unrecognized simple value 23"),
        ("f8ff", "cbor: unrecognized simple value 255"),
        ("41ff", "cbor: invalid UTF-8 string"),
        ("a10101", "cbor: map key is not a string"),
        ("a2616101416102", "cbor: found duplicate map key \"a\""),
        ("d601", "cbor: inadmissible content of tag 22"),
        ("c001", "cbor: inadmissible content of tag 0"),
        ("c14161", "cbor: inadmissible content of tag 1"),
    ] {
        let error = parse_value(&bytes(hex)).unwrap_err();
        assert_eq!(error.to_string(), expected, "{hex}");
    }
    for open in [vec![0x81; MAX_DEPTH + 1], vec![0x9f; 1_000_000], [b"\xbf\x60".repeat(100_000), vec![0]].concat()] {
        assert_eq!(parse_value(&open), Err(CborError::TooDeep));
    }
    assert_eq!(parse_value(&vec![0xc6; 1_000_000]), Err(CborError::TooDeep));
    let mut long = vec![0x9f];
    long.resize(MAX_ENTRIES + 2, 0);
    assert_eq!(parse_value(&long), Err(CborError::TooLong));
}

#[test]
fn objects_within_keep_what_they_are() {
    let meta = ObjectMeta { name: "n".into(), generation: 3, ..ObjectMeta::default() };
    assert_eq!(hex(&encode(&meta)), "a2446e616d65416e4a67656e65726174696f6e03");
    let event = WatchEvent { type_: "ADDED".into(), object: RawJson::from_text(r#"{"b":1,"a":"x"}"#) };
    let value = parse_value(&encode(&event)).unwrap();
    assert_eq!(value, serde_json::json!({"type": "ADDED", "object": {"a": "x", "b": 1}}));
    let typed = parse_value(&encode_typed("K", "g/v1", &meta)).unwrap();
    assert_eq!(typed, serde_json::json!({"kind": "K", "apiVersion": "g/v1", "name": "n", "generation": 3}));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_as_the_same(value in any_value()) {
        prop_assert_eq!(parse_value(&encode_value(&value)).unwrap(), value);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        // Whatever could be read can be written, and read again.
        if let Ok(value) = parse_value(&bytes) {
            prop_assert_eq!(parse_value(&encode_value(&value)).unwrap(), value);
        }
    }
}
