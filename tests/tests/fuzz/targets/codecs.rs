//! Objects in every encoding. The first line of an input says the kind, by its number; what was read is written in every
//! encoding and read again, and is the same.

use api_machinery::object::Object;
use api_machinery::{cbor, json, protobuf, yaml};

use super::{text, told};
use crate::engine::Target;

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
    player: || {
        Box::new(|input| {
            let (mut object, document) = numbered(input);
            match json::decode(document, object.as_reflect_mut()) {
                Err(error) => error.to_string(),
                Ok(decoded) => {
                    kept(&*object);
                    decoded.problems.first().cloned().unwrap_or_default()
                }
            }
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
    player: || {
        Box::new(|input| {
            told(yaml::parse(text(input)), |document| {
                let own = json::encode_value(&document.value);
                let again = json::parse_value(&own).unwrap_or_else(|error| panic!("{own} cannot be read: {error}"));
                assert_eq!(again, document.value, "what was read is written");
                document.duplicates.first().cloned().unwrap_or_default()
            })
        })
    },
};

pub(super) const CBOR: Target = Target {
    name: "cbor",
    words: &["\u{a1}", "dkind", "japiVersion", "hmetadata", "\u{9f}", "\u{bf}", "\u{1b}", "\u{7f}", "\u{c2}"],
    player: || {
        Box::new(|input| {
            told(cbor::parse_value(input), |value| {
                let again = cbor::parse_value(&cbor::encode_value(&value)).expect("what was written is read");
                assert_eq!(again, value, "what was read is written");
                told(cbor::to_json(input), |text| text.chars().take(1).collect())
            })
        })
    },
};

pub(super) const PROTOBUF: Target = Target {
    name: "protobuf",
    words: &["k8s\0", "\n\u{4}", "\u{12}", "\u{1a}\0", "\"\0", "v1", "Pod", "\u{7f}\u{7f}\u{7f}"],
    player: || {
        Box::new(|input| {
            let (mut object, document) = numbered(input);
            let raw = match protobuf::is_enveloped(document) {
                true => match protobuf::open(document) {
                    Ok(envelope) => envelope.raw.to_vec(),
                    Err(error) => return error.to_string(),
                },
                false => document.to_vec(),
            };
            told(protobuf::decode(&raw, object.as_reflect_mut()), |()| {
                kept(&*object);
                String::new()
            })
        })
    },
};

/// An empty object of the kind whose number the first line is, and the rest.
fn numbered(input: &[u8]) -> (Box<dyn Object>, &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (line, rest) = input.split_at(end);
    let number: usize = text(line).trim().parse().unwrap_or_default();
    let kinds: Vec<_> = kinds::all().collect();
    (kinds[number % kinds.len()].new_object(), rest.strip_prefix(b"\n").unwrap_or(rest))
}

/// What was read is written in every encoding, and is read as the same.
fn kept(object: &dyn Object) {
    let wire = protobuf::encode(object.as_reflect());
    let mut again = empty_like(object);
    protobuf::decode(&wire, again.as_reflect_mut()).expect("what was written is read: protobuf");
    assert_eq!(protobuf::encode(again.as_reflect()), wire, "protobuf to protobuf");
    let text = json::encode(object.as_reflect());
    let mut again = empty_like(object);
    let read = json::decode(text.as_bytes(), again.as_reflect_mut());
    read.unwrap_or_else(|error| panic!("what was written is read: {error}: {text}"));
    assert_eq!(json::encode(again.as_reflect()), text, "JSON to JSON");
}

fn empty_like(object: &dyn Object) -> Box<dyn Object> {
    let own = object.as_reflect().struct_type();
    let kind = kinds::all().find(|rules| std::ptr::eq(rules.table(), own) || rules.table().name == own.name);
    kind.expect("it is of some kind").new_object()
}
