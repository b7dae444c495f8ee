use proptest::prelude::*;

use super::*;
use crate::meta::{DeleteOptions, ObjectMeta, Status};
use crate::object::{Object, Unstructured};

fn problems(text: &str) -> Problems {
    decode(text.as_bytes(), &mut ObjectMeta::default()).unwrap().problems
}

fn refusal(text: &str) -> String {
    decode(text.as_bytes(), &mut ObjectMeta::default()).unwrap_err().to_string()
}

#[test]
fn unknown_and_duplicate_names_are_reported_with_their_path() {
    for (text, expected) in [
        (r#"{"name":"a"}"#, vec![]),
        (r#"{"nme":"a"}"#, vec!["unknown field \"nme\""]),
        (r#"{"Name":"a"}"#, vec!["unknown field \"Name\""]),
        (r#"{"name":"a","name":"b"}"#, vec!["duplicate field \"name\""]),
        (r#"{"labels":{"a":"1","a":"2"}}"#, vec!["duplicate field \"labels.a\""]),
        (r#"{"labels":{"a":"1"},"labels":{"a":"2"}}"#, vec!["duplicate field \"labels\""]),
        (
            r#"{"labels":{"a":"1"},"labels":{"a":"2","a":"3"}}"#,
            vec!["duplicate field \"labels\"", "duplicate field \"labels.a\""],
        ),
        (
            r#"{"ownerReferences":[{"name":"x"},{"nam":"y","nam":"z"}]}"#,
            vec!["unknown field \"ownerReferences[1].nam\""],
        ),
    ] {
        assert_eq!(problems(text), expected, "{text}");
    }
}

#[test]
fn the_last_of_equal_names_wins() {
    let mut meta = ObjectMeta::default();
    decode(br#"{"name":"a","labels":{"k":"1"},"name":"b","labels":{"k":"2"}}"#, &mut meta).unwrap();
    assert_eq!((meta.name.as_str(), meta.labels["k"].as_str()), ("b", "2"));
}

#[test]
fn refusals_are_worded_as_upstream() {
    for (text, expected) in [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        (r#"{"name":"a"#, "unexpected end of JSON input"),
        ("{]", "invalid character ']' looking for beginning of object key string"),
        (r#"{"name" "a"}"#, "invalid character '\"' after object key"),
        (r#"{"name":"a" "b"}"#, "invalid character '\"' after object key:value pair"),
        (r#"{"name":tru}"#, "invalid character '}' in literal true (expecting 'e')"),
        (r#"{"name":"a"} x"#, "invalid character 'x' after top-level value"),
        (r#"{"finalizers":["a" "b"]}"#, "invalid character '\"' after array element"),
        (r#"{"generation":01}"#, "invalid character '1' after object key:value pair"),
        (r#"{"generation":1.}"#, "invalid character '}' after decimal point in numeric literal"),
        (r#"{"name":"\x"}"#, "invalid character 'x' in string escape code"),
        ("[]", "json: cannot unmarshal array into Go value of type v1.ObjectMeta"),
        (r#"{"name":1}"#, "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"),
        (
            r#"{"generation":1.5}"#,
            "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64",
        ),
        (
            r#"{"labels":["a"]}"#,
            "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        (
            r#"{"ownerReferences":{"a":1}}"#,
            "json: cannot unmarshal object into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference",
        ),
        (
            r#"{"ownerReferences":[{"controller":"yes"}]}"#,
            "json: cannot unmarshal string into Go struct field OwnerReference.ownerReferences.controller of type bool",
        ),
        (r#"{"uid":[]}"#, "json: cannot unmarshal array into Go struct field ObjectMeta.uid of type types.UID"),
        (
            r#"{"creationTimestamp":5}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.creationTimestamp of type string",
        ),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
}

#[test]
fn null_is_the_absence_of_a_value() {
    let mut options = DeleteOptions::default();
    decode(br#"{"gracePeriodSeconds":null,"preconditions":null,"dryRun":null}"#, &mut options).unwrap();
    assert_eq!(options, DeleteOptions::default());
    assert_eq!(encode(&options), "{}");
}

#[test]
fn zero_behind_a_pointer_is_written() {
    let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    assert_eq!(encode(&options), r#"{"gracePeriodSeconds":0}"#);
    assert_eq!(encode(&Status::default()), r#"{"metadata":{}}"#);
}

#[test]
fn kinds_are_told_once() {
    let mut options = DeleteOptions::default();
    let text = br#"{"kind":"DeleteOptions","apiVersion":"v1","kind":"DeleteOptions","apiVersion":"v1"}"#;
    let problems = decode(text, &mut options).unwrap().problems;
    assert_eq!(problems, ["duplicate field \"kind\"", "duplicate field \"apiVersion\""]);
}

#[test]
fn entries_without_bytes_are_entries() {
    let mut data = std::collections::BTreeMap::from([("a".to_owned(), crate::reflect::ByteString::default())]);
    data.insert("b".to_owned(), vec![1].into());
    let mut writer = Writer::default();
    writer.field(&data);
    assert_eq!(writer.into_string(), r#"{"a":"","b":"AQ=="}"#);
}

#[test]
fn strings_are_escaped_as_go_does() {
    let mut writer = Writer::default();
    writer.string("a<b>&\"\\\n\t\u{1}\u{2028}ü\u{7f}");
    assert_eq!(writer.into_string(), "\"a\\u003cb\\u003e\\u0026\\\"\\\\\\n\\t\\u0001\\u2028ü\u{7f}\"");
}

/// What is looked at eight bytes at a time is seen wherever it stands.
#[test]
fn every_character_is_escaped_or_not_wherever_it_stands() {
    let written = |text: &str| {
        let mut writer = Writer::default();
        writer.string(text);
        writer.into_string()
    };
    for symbol in (0..=0xff).chain([0x2027, 0x2028, 0x2029, 0x1_f600]).filter_map(char::from_u32) {
        let alone = written(&symbol.to_string());
        let escaped = alone.trim_start_matches('"').strip_suffix('"').expect("quotes");
        let escaped = if symbol == '"' { "\\\"" } else { escaped };
        assert_eq!(escaped.len() > symbol.len_utf8(), "\"\\<>&\u{2028}\u{2029}".contains(symbol) || symbol < ' ');
        for (before, after) in (0..20).flat_map(|before| (0..20).map(move |after| (before, after))) {
            let (before, after) = ("a".repeat(before), "z".repeat(after));
            assert_eq!(written(&format!("{before}{symbol}{after}")), format!("\"{before}{escaped}{after}\""));
        }
    }
}

#[test]
fn escapes_are_understood() {
    let value = parse_value(r#""\ud83d\ude00 \ud83d \u00e4 \/ \b""#).unwrap();
    assert_eq!(value, Value::from("😀 \u{fffd} ä / \u{8}"));
}

#[test]
fn numbers_keep_their_kind() {
    for (text, expected) in [
        ("1", "1"),
        ("-0", "0"),
        ("1.0", "1"),
        ("1e3", "1000"),
        ("1e21", "1e+21"),
        ("1e-7", "1e-7"),
        ("9223372036854775807", "9223372036854775807"),
        ("0.1", "0.1"),
    ] {
        assert_eq!(encode_value(&parse_value(text).unwrap()), expected, "{text}");
    }
    assert!(parse_value("1e999").is_err());
}

#[test]
fn nesting_is_bounded() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse_value(&deep(MAX_DEPTH)).is_ok());
    assert_eq!(parse_value(&deep(MAX_DEPTH + 1)).unwrap_err().to_string(), "exceeded max depth");
    assert_eq!(parse_value(&"[".repeat(1_400_000)).unwrap_err().to_string(), "exceeded max depth");
    let unknown = format!(r#"{{"x":{}}}"#, deep(10_001));
    assert_eq!(refusal(&unknown), "exceeded max depth");
}

#[test]
fn raw_text_is_kept_without_spaces() {
    let mut reader = Reader::new(" { \"a b\" : [ 1 , \"c \\\" d\" ] } ");
    assert_eq!(reader.read_raw().unwrap(), r#"{"a b":[1,"c \" d"]}"#);
}

#[test]
fn the_kind_of_a_document_is_found_anywhere_in_it() {
    let meta = read_type_meta(r#"{"spec":{"kind":"no"},"kind":"Pod","apiVersion":"v1"}"#).unwrap();
    assert_eq!((meta.kind.as_str(), meta.api_version.as_str()), ("Pod", "v1"));
    for (text, expected) in [
        (
            "[]",
            "array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
        ),
        (r#"{"kind":true}"#, "bool into Go struct field .kind of type string"),
        (r#"{"apiVersion":{}}"#, "object into Go struct field .apiVersion of type string"),
    ] {
        assert_eq!(read_type_meta(text).unwrap_err().to_string(), format!("json: cannot unmarshal {expected}"));
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            proptest::collection::btree_map(".*", inner, 0..8).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Whole doubles are written as integers, as Go does, so they come back as such.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same(a, b))
        }
        _ => one == other,
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in any_value()) {
        let text = encode_value(&value);
        let back = parse_value(&text).unwrap();
        prop_assert!(same(&back, &value), "{}", text);
        // A second reader agrees that it is JSON; it rounds doubles less carefully, so their values are not compared.
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
    }

    #[test]
    fn no_input_is_fatal(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes, &mut ObjectMeta::default());
        let _ = parse_value(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn cut_documents_are_refused(cut in 0_usize..60) {
        let text = r#"{"name":"a","labels":{"k":"v"},"finalizers":["x"],"generation":7}"#;
        let Some(part) = text.get(..cut) else { return Ok(()) };
        prop_assert!(decode(part.as_bytes(), &mut ObjectMeta::default()).is_err());
    }
}

/// Upstream knows a custom object as maps alone, its metadata, too.
#[test]
fn members_of_custom_objects_are_in_the_order_of_their_names() {
    let text = concat!(
        r#"{"alpha":1,"apiVersion":"example.com/v1","data":{"b":{"d":1,"c":2}},"kind":"Shirt","metadata":"#,
        r#"{"annotations":{"a":"b"},"creationTimestamp":"2025-02-21T12:38:19Z","generation":1,"managedFields":"#,
        r#"[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}},"manager":"m","#,
        r#""operation":"Update","time":"2025-02-21T12:38:19Z"}],"name":"s","namespace":"n","uid":"u"},"zeta":[]}"#
    );
    let (object, _) = Unstructured::from_json(text.as_bytes()).unwrap();
    let sorted = text.replace(r#"{"d":1,"c":2}"#, r#"{"c":2,"d":1}"#);
    assert_eq!((&object as &dyn Object).to_json(), sorted);
    assert_eq!((&object as &dyn Object).to_json_item(), sorted, "lists do not say what custom objects are");
    let bare = Unstructured::new("example.com/v1", "Shirt");
    assert_eq!((&bare as &dyn Object).to_json(), r#"{"apiVersion":"example.com/v1","kind":"Shirt","metadata":{}}"#);
}

#[test]
fn raw_parts_are_written_without_space_and_escaped() {
    for (sent, written) in [
        (r#"{"f:a":{"f:b":{}}}"#, r#"{"f:a":{"f:b":{}}}"#),
        ("{ \"a b\" :\t[ 1,\r\n\"\\\\\" , \"\\\" <\"] }", r#"{"a b":[1,"\\","\" \u003c"]}"#),
        ("{\"<&>\":\"\u{2028}\u{2030}\"}", "{\"\\u003c\\u0026\\u003e\":\"\\u2028\u{2030}\"}"),
    ] {
        let text = format!(r#"{{"managedFields":[{{"fieldsV1":{sent}}}]}}"#);
        let mut meta = ObjectMeta::default();
        decode(text.as_bytes(), &mut meta).unwrap();
        assert_eq!(encode(&meta), text.replace(sent, written));
    }
}
