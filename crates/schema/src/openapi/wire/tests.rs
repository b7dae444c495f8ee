//! What is written, read back.

use std::collections::BTreeMap;

use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::Kind;
use api_machinery::protobuf::{Decoder, WireValue};
use api_machinery::reflect::{Field, Shape};
use serde_json::json;

use super::*;
use crate::openapi::{Choices, Model, Resource, swagger, version_document};

type Fields<'a> = BTreeMap<u64, Vec<WireValue<'a>>>;

/// The fields of any message, by number.
fn fields(bytes: &[u8]) -> Fields<'_> {
    let (mut decoder, mut found) = (Decoder::new(bytes), Fields::new());
    while let Some((number, value)) = decoder.next().unwrap() {
        found.entry(number).or_default().push(value);
    }
    found
}

/// The JSON that was written as a message.
fn read(bytes: &[u8], message: &Message) -> Value {
    let (mut found, mut map) = (fields(bytes), Map::new());
    for (name, number, form) in message.fields {
        if let Some(values) = found.remove(&u64::from(*number)) {
            map.insert((*name).to_owned(), read_all(&values, *form));
        }
    }
    let extensions = (message.extensions != 0).then_some((message.extensions, Form::Any));
    for (number, form) in message.others.into_iter().chain(extensions) {
        for entry in found.remove(&u64::from(number)).unwrap_or_default() {
            let entry = fields(entry.bytes().unwrap());
            map.insert(entry[&u64::from(NAME)][0].text().unwrap(), read_all(&entry[&u64::from(VALUE)], form));
        }
    }
    assert!(found.is_empty(), "fields that nobody knows: {found:?}");
    map.into()
}

fn read_all(values: &[WireValue<'_>], form: Form) -> Value {
    match form {
        Form::Each(form) => values.iter().map(|value| read_one(value, *form)).collect(),
        _ => {
            assert_eq!(values.len(), 1, "a field that occurs once");
            read_one(&values[0], form)
        }
    }
}

fn read_one(value: &WireValue<'_>, form: Form) -> Value {
    let bytes = || value.bytes().unwrap();
    match form {
        Form::Text => value.text().unwrap().into(),
        Form::Flag => (value.int().unwrap() == 1).into(),
        Form::Count => value.int().unwrap().into(),
        Form::Number => match value {
            WireValue::Fixed64(bits) => f64::from_bits(*bits).into(),
            other => panic!("not a double: {other:?}"),
        },
        Form::Any => serde_json::from_str(&fields(bytes())[&u64::from(YAML)][0].text().unwrap()).unwrap(),
        Form::Each(_) => panic!("a list in a list"),
        Form::Within(inner, form) => {
            let found = fields(bytes());
            match (found.get(&u64::from(inner)).map(Vec::as_slice), form) {
                (None, _) => json!([]),
                (Some([one]), Form::Each(form)) => read_one(one, **form),
                (Some(values), form) => read_all(values, *form),
            }
        }
        Form::Message(message) if message.fields.is_empty() && message.others.is_none() => json!({}),
        Form::Message(message) => read(bytes(), message),
        Form::OneOf(alternatives) => {
            let found = alternatives.iter().find_map(|one| Some(read_one(&descend(*value, one.path)?, one.form)));
            found.expect("one of the alternatives")
        }
    }
}

fn descend<'a>(value: WireValue<'a>, path: &[u32]) -> Option<WireValue<'a>> {
    path.iter().try_fold(value, |value, number| fields(value.bytes().ok()?).get(&u64::from(*number))?.first().copied())
}

fn resource<T: Kind + Field>() -> Resource<'static> {
    let Shape::Struct(table) = T::shape() else { panic!("not a struct") };
    Resource {
        gvk: GroupVersionKind::new(T::TYPE.group, T::TYPE.version, T::TYPE.kind),
        group: T::TYPE.group,
        version: T::TYPE.version,
        name: T::TYPE.resource,
        parent_kind: T::TYPE.kind,
        subresource: "",
        namespaced: T::TYPE.namespaced,
        verbs: vec!["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"],
        returns_deleted: false,
        model: Some(Model::Table(table)),
    }
}

#[test]
fn the_whole_document_comes_back() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "required": ["size"], "title": "t", "description": "d", "x-kubernetes-map-type": "atomic",
        "externalDocs": {"url": "u", "description": "d"}, "example": {"a": [1]}, "minProperties": 1, "maxProperties": 2,
        "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 1.5, "maximum": 9.0, "exclusiveMinimum": true,
                "exclusiveMaximum": false, "multipleOf": 0.5},
            "x-name": {"type": "string", "pattern": "^a", "minLength": 1, "maxLength": 3, "enum": ["a", "ab"]},
            "list": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "uniqueItems": false,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            "free": {"type": "object", "additionalProperties": true},
            "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "all": {"allOf": [{"type": "object"}, {"required": ["a", "b"]}]},
        }
    }}});
    let custom = Resource {
        gvk: GroupVersionKind::new("stable.example.com", "v1", "CronTab"),
        model: Some(Model::Custom { name: "com.example.stable.v1.CronTab", schema: &schema }),
        group: "stable.example.com",
        name: "crontabs",
        parent_kind: "CronTab",
        ..resource::<api_types::core_v1::ConfigMap>()
    };
    use api_types::{apiextensions_v1, apps_v1, core_v1};
    let document = swagger(
        &[
            resource::<core_v1::Pod>(),
            resource::<apps_v1::Deployment>(),
            resource::<apiextensions_v1::CustomResourceDefinition>(),
            custom,
        ],
        Choices::Told,
    );
    let bytes = swagger_protobuf(&document);
    let (back, document) = (read(&bytes, &v2::DOCUMENT), document.to_value());
    let names = |value: &Value, key: &str| value[key].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for key in ["paths", "definitions"] {
        assert_eq!(names(&back, key), names(&document, key));
        for name in names(&document, key) {
            assert_eq!(back[key][&name], document[key][&name], "{key} {name}");
        }
    }
    assert_eq!(back, document);
}

/// Defaults are doubles, whatever they were.
fn in_doubles(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.into_iter().map(in_doubles).collect(),
        Value::Object(map) => map.into_iter().map(|(name, value)| (name, in_doubles(value))).collect(),
        other => other,
    }
}

#[test]
fn version_3_comes_back() {
    use api_types::{apiextensions_v1, apps_v1, core_v1};
    let resources = [
        resource::<core_v1::Pod>(),
        resource::<apps_v1::Deployment>(),
        resource::<apiextensions_v1::CustomResourceDefinition>(),
    ];
    let document = in_doubles(version_document("apps", "v1", &resources, Choices::Told));
    let back = in_doubles(read(&version3_protobuf(&document), &v3::DOCUMENT));
    let of = |document: &Value, path: &str| document.pointer(path).unwrap().as_object().unwrap().clone();
    for part in ["/paths", "/components/schemas"] {
        for (name, value) in of(&document, part) {
            assert_eq!(of(&back, part).get(&name), Some(&value), "{part} {name}");
        }
    }
    assert_eq!(back, document);
}

#[test]
fn fields_of_version_3_have_gnostics_numbers() {
    let document = json!({
        "openapi": "3.0.0",
        "paths": {"/p": {"parameters": [{"in": "path", "name": "n", "schema": {"type": "string"}}], "patch": {
            "operationId": "id",
            "requestBody": {"content": {"a/b": {"schema": {"$ref": "#/components/schemas/M"}}}},
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
        }}},
        "components": {"schemas": {"M": {"type": "object", "default": {}, "properties": {
            "p": {"items": {"type": "string", "default": "d"}}}}},
            "securitySchemes": {"BearerToken": {"in": "header"}}},
    });
    let bytes = version3_protobuf(&document);
    let cases: [(&[u32], &str); 12] = [
        (&[1], "3.0.0"),
        (&[4, 1, 1], "/p"),
        (&[4, 1, 2, 10, 5], "id"),
        (&[4, 1, 2, 13, 1, 1], "n"),
        (&[4, 1, 2, 13, 1, 10, 1, 25], "string"),
        (&[4, 1, 2, 10, 7, 1, 2, 1, 2, 1, 2, 1], "#/components/schemas/M"),
        (&[4, 1, 2, 10, 8, 2, 2, 1, 1], "OK"),
        (&[4, 1, 2, 10, 13, 2, 2], "\"patch\"\n"),
        (&[5, 1, 1, 1], "M"),
        (&[5, 1, 1, 2, 1, 33], ""),
        (&[5, 1, 1, 2, 1, 31, 1, 2, 1, 30, 1, 1, 33, 3], "d"),
        (&[5, 7, 1, 2, 1, 4], "header"),
    ];
    for (path, text) in cases {
        let found = descend(WireValue::Bytes(&bytes), path).map(|value| value.text().unwrap());
        assert_eq!(found.as_deref(), Some(text), "{path:?}");
    }
}

/// The numbers themselves, where a table that is wrong would read what it wrote.
#[test]
fn fields_have_gnostics_numbers() {
    let document = Swagger::new(
        [(
            "/p".into(),
            json!({"patch": {
                "operationId": "id",
                "parameters": [{"in": "query", "name": "q", "type": "string", "uniqueItems": true},
                    {"in": "body", "name": "body", "schema": {"$ref": "#/definitions/M"}}],
                "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/M"}}},
                "x-kubernetes-action": "patch",
            }}),
        )],
        [("M".into(), json!({"type": "object", "properties": {"p": {"items": {"type": "string"}}}}))],
    );
    let bytes = swagger_protobuf(&document);
    let cases: [(&[u32], &str); 9] = [
        (&[1], "2.0"),
        (&[8, 2, 1], "/p"),
        (&[8, 2, 2, 8, 5], "id"),
        (&[8, 2, 2, 8, 8, 1, 2, 3, 4], "q"),
        (&[8, 2, 2, 8, 9, 1, 2, 1, 2, 1, 1], "#/definitions/M"),
        (&[8, 2, 2, 8, 13, 2, 2], "\"patch\"\n"),
        (&[9, 1, 1], "M"),
        (&[9, 1, 2, 22, 1], "object"),
        (&[9, 1, 2, 25, 1, 2, 23, 1, 22, 1], "string"),
    ];
    for (path, text) in cases {
        let found = descend(WireValue::Bytes(&bytes), path).map(|value| value.text().unwrap());
        assert_eq!(found.as_deref(), Some(text), "{path:?}");
    }
}
