//! Objects in every encoding. The first line of an input names the kind; what was read is written in every
//! encoding and read again, and is the same.

use api_machinery::object::Object;
use api_machinery::value::json_type;
use api_machinery::{cbor, json, protobuf, yaml};
use kinds::rules::Rules;
use rand::rngs::StdRng;
use serde_json::Value;

use super::{line_of, of_kind, text};
use crate::engine::{Answer, Target};
use crate::objects;

pub(super) const JSON: Target = Target {
    name: "json",
    words: &[
        "\"metadata\":{",
        "\"labels\":",
        "null",
        "true",
        "\\u0000",
        "\\ud800",
        "\"spec\":{\"containers\":[{",
        "\"kind\":\"Pod\"",
        "\"creationTimestamp\":",
        "\"resources\":{\"limits\":{\"cpu\":",
        "-0",
        "1E400",
        "},{",
        "\"managedFields\":[{\"fieldsV1\":{",
    ],
    made: Some(|rng| made(rng, |_, text| text.into_bytes())),
    inputs: 400,
    player: || {
        Box::new(|input| {
            let (rules, document) = of_kind(input);
            let mut object = rules.new_object();
            Answer::of(json::decode(document, object.as_reflect_mut()), |decoded| {
                kept(rules, &*object);
                decoded.problems.first().cloned().unwrap_or_default()
            })
        })
    },
};

pub(super) const YAML: Target = Target {
    name: "yaml",
    words: &[
        "&a ",
        "*a",
        "<<: ",
        "!!binary ",
        "!!str ",
        "? ",
        "|\n ",
        ">-\n ",
        "\t",
        "---\n",
        "...\n",
        "%YAML 1.1\n",
        "0o17",
        ".inf",
        "~",
    ],
    made: None,
    inputs: 300,
    player: || {
        Box::new(|input| {
            Answer::of(yaml::parse(text(input)), |mut document| {
                let own = json::encode_value(&document.value);
                let again = json::parse_value(&own).unwrap_or_else(|error| panic!("{own} cannot be read: {error}"));
                unsigned_as_floats(&mut document.value);
                assert_eq!(again, document.value, "what was read is written");
                document.duplicates.first().cloned().unwrap_or_default()
            })
        })
    },
};

/// Integers that need the bit of the sign are such in YAML, for errors to name, and floats in JSON.
fn unsigned_as_floats(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unsigned_as_floats),
        Value::Object(members) => members.values_mut().for_each(unsigned_as_floats),
        Value::Number(number) if number.is_u64() && !number.is_i64() => *value = number.as_f64().into(),
        _ => {}
    }
}

pub(super) const CBOR: Target = Target {
    name: "cbor",
    words: &["\u{a1}", "dkind", "japiVersion", "hmetadata", "\u{9f}", "\u{bf}", "\u{1b}", "\u{7f}", "\u{c2}"],
    made: Some(|rng| cbor::encode_value(&objects::any(rng).1)),
    inputs: 800,
    player: || {
        Box::new(|input| {
            Answer::of(cbor::parse_value(input), |value| {
                let again = cbor::parse_value(&cbor::encode_value(&value)).expect("what was written is read");
                assert_eq!(again, value, "what was read is written");
                let text = json::encode_value(&value);
                assert_eq!(json::parse_value(&text).as_ref(), Ok(&value), "in JSON, too");
                json_type(&value).to_owned()
            })
        })
    },
};

pub(super) const PROTOBUF: Target = Target {
    name: "protobuf",
    words: &["k8s\0", "\n\u{4}", "\u{12}", "\u{1a}\0", "\"\0", "v1", "Pod", "\u{7f}\u{7f}\u{7f}"],
    made: Some(|rng| {
        made(rng, |rules, text| {
            let mut object = rules.new_object();
            // What does not fit is left out.
            drop(json::decode(text.as_bytes(), object.as_reflect_mut()));
            protobuf::encode(object.as_reflect())
        })
    }),
    inputs: 400,
    player: || {
        Box::new(|input| {
            let (rules, document) = of_kind(input);
            let mut object = rules.new_object();
            let raw = match protobuf::is_enveloped(document) {
                true => match protobuf::open(document) {
                    Ok(envelope) => envelope.raw.to_vec(),
                    Err(error) => return Answer::Refused(error.to_string()),
                },
                false => document.to_vec(),
            };
            Answer::of(protobuf::decode(&raw, object.as_reflect_mut()), |()| {
                kept(rules, &*object);
                String::new()
            })
        })
    },
};

/// An object of any kind, as `encoded`.
fn made(rng: &mut StdRng, encoded: impl FnOnce(&dyn Rules, String) -> Vec<u8>) -> Vec<u8> {
    let (rules, object) = objects::any(rng);
    let mut input = line_of(rules).into_bytes();
    input.push(b'\n');
    input.extend(encoded(rules, object.to_string()));
    input
}

/// What was read is written in every encoding, and is read as the same.
fn kept(rules: &dyn Rules, object: &dyn Object) {
    let wire = protobuf::encode(object.as_reflect());
    let mut again = rules.new_object();
    protobuf::decode(&wire, again.as_reflect_mut()).expect("what was written is read: protobuf");
    assert_eq!(protobuf::encode(again.as_reflect()), wire, "protobuf to protobuf");
    // A time that is there and zero is null in JSON, as upstream's, and then not there.
    let Some(object) = from_json(rules, &object.to_json()) else { return };
    let text = object.to_json();
    let again = |text: &str| from_json(rules, text).map(|object| object.to_json());
    assert_eq!(again(&text).as_ref(), Some(&text), "JSON to JSON");
    let by_cbor = cbor::to_json(&object.to_cbor()).expect("what was written is read: CBOR");
    // What a client sent raw may say something twice, which only a text can.
    if !json::parse_value_strict(&text).is_ok_and(|(_, problems)| problems.is_empty()) {
        return;
    }
    // In CBOR members of what is raw have no order, and numbers no other digits than they need, and no sign if they are zero.
    let read = |text: &str| json::encode_value(&json::parse_value(text).expect("what was written is JSON"));
    let plain = |text: &str| read(&read(text));
    assert_eq!(again(&by_cbor).as_deref().map(plain), Some(plain(&text)), "CBOR to JSON");
}

/// Nothing where the text has a year that only protobuf can tell: upstream writes it so, too.
fn from_json(rules: &dyn Rules, text: &str) -> Option<Box<dyn Object>> {
    let mut object = rules.new_object();
    match json::decode(text.as_bytes(), object.as_reflect_mut()) {
        Ok(_) => Some(object),
        Err(error) if error.to_string().starts_with("parsing time ") => None,
        Err(error) => panic!("what was written is read: {error}: {text}"),
    }
}
