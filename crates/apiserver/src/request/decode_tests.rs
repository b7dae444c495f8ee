//! Texts of refused bodies, and the three ways with unknown fields.

use api_types::core_v1::ConfigMap;

use super::*;

fn config_maps() -> &'static dyn Rules {
    kinds::find("", "v1", "configmaps").unwrap()
}

fn refused(media: MediaType, body: &str) -> String {
    decode_object(config_maps(), None, media, body.as_bytes()).err().map_or_else(String::new, |error| error.message)
}

#[test]
fn refused_bodies_say_why() {
    let json = |body| refused(MediaType::Json, body);
    let prefix = "the object provided is unrecognized (must be of type ConfigMap): ";
    assert_eq!(
        json(""),
        format!("{prefix}couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)")
    );
    assert!(json("hello").ends_with("(68656c6c6f)"), "{}", json("hello"));
    assert_eq!(
        json(r#"{"apiVersion": "a/b/c", "kind": "ConfigMap"}"#),
        format!("{prefix}unexpected GroupVersion string: a/b/c ({{\"apiVersion\": \"a/b/c\", \"kind\" ...)")
    );
    assert_eq!(
        json(r#"{"kind":"Secret","apiVersion":"v1"}"#),
        "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"
    );
    assert_eq!(
        json(r#"{"kind":"Deployment","apiVersion":"apps/v1"}"#),
        "the API version in the data (apps/v1) does not match the expected API version (v1)"
    );
    assert_eq!(
        json(r#"{"kind":"Foo","apiVersion":"v1"}"#),
        format!(
            "Foo in version \"v1\" cannot be handled as a ConfigMap: no kind \"Foo\" is registered for version \"v1\" in scheme {SCHEME:?}"
        )
    );
    let late = json(r#"{"data":[],"kind":"Secret","apiVersion":"v1"}"#);
    assert!(late.starts_with("Secret in version"), "the kind comes first, wherever it stands: {late}");
    assert!(json(r#"{"data":[]}"#).starts_with(
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal array into Go struct field"
    ));
    assert_eq!(
        refused(MediaType::Protobuf, "x"),
        format!("{prefix}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (78)")
    );
}

#[test]
fn unknown_fields_are_refused_or_warned_of() {
    let body = br#"{"metadata":{"name":"a","x":1},"data":{"b":"b"},"data":{"a":"c"}}"#;
    let decode = |strictness, warnings: &Warnings| {
        decode_kind::<ConfigMap>(MediaType::Json, body, strictness, warnings).map_err(|error| error.message)
    };
    let warnings = Warnings::default();
    assert_eq!(decode(Strictness::Ignore, &warnings).unwrap().data["a"], "c");
    let error = decode(Strictness::Strict, &warnings).unwrap_err();
    assert_eq!(
        error,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"metadata.x\", duplicate field \"data\""
    );
    assert!(decode(Strictness::Warn, &warnings).is_ok());
    let mut headers = http::HeaderMap::new();
    warnings.write(&mut headers);
    assert_eq!(headers.len(), 2);
}

#[test]
fn yaml_reads_like_json() {
    let body = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata:\n  k: v\n  k: w\n";
    let decoded = decode_object(config_maps(), None, MediaType::Yaml, body).unwrap();
    assert_eq!(decoded.object.downcast_ref::<ConfigMap>().unwrap().data["k"], "w");
    assert_eq!(decoded.problems, ["line 6: key \"k\" already set in map"]);
}

#[test]
fn refused_yaml_is_shown_as_it_was_sent() {
    let yaml = |body| refused(MediaType::Yaml, body);
    let prefix = "the object provided is unrecognized (must be of type ConfigMap): ";
    let broken = yaml("a: [");
    assert!(broken.starts_with(&format!("{prefix}yaml: line ")) && broken.ends_with(" (613a205b)"), "{broken}");
    assert_eq!(
        yaml("hello"),
        format!(
            "{prefix}couldn't get version/kind; json parse error: {} (68656c6c6f)",
            "json: cannot unmarshal string into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"
        )
    );
    assert!(
        yaml("apiVersion: a/b/c\nkind: ConfigMap\n")
            .ends_with("a/b/c (61706956657273696f6e3a20612f622f630a6b696e643a20436f6e666967 ...)")
    );
    // Nothing at all is an object without anything in it, as JSON's null is.
    for (media, body) in [(MediaType::Yaml, ""), (MediaType::Yaml, "# nothing\n"), (MediaType::Json, "null")] {
        assert_eq!(refused(media, body), "", "{body}");
    }
}

#[test]
fn custom_objects_may_say_that_they_are_something_else() {
    let expected = Expected { group: "g.io".into(), version: "v1".into(), kind: "Thing".into() };
    let refusal = |body: &str| {
        let mut object = api_machinery::object::Unstructured::new("g.io/v1", "Thing");
        let target = object.as_reflect_mut();
        decode_into(&expected, MediaType::Json, body.as_bytes(), target, true)
            .err()
            .map(|error| (error.code, error.message))
    };
    let version = "the API version in the data (g.io/v9) does not match the expected API version (g.io/v1)";
    let kind = "Other.g.io \"x\" is invalid: kind: Invalid value: \"Other\": must be Thing";
    let name = "Thing in version \"v1\" cannot be handled as a Thing: json: cannot unmarshal bool into Go struct field \
                ObjectMeta.name of type string";
    for (body, expected) in [
        (r#"{"kind":"Thing","apiVersion":"g.io/v1","metadata":{"name":"x"}}"#, None),
        (r#"{"kind":"Thing","apiVersion":"g.io/v9","metadata":{"name":"x"}}"#, Some((400, version))),
        (r#"{"kind":"Other","apiVersion":"g.io/v1","metadata":{"name":"x"}}"#, Some((422, kind))),
        (r#"{"kind":"Thing","apiVersion":"g.io/v1","metadata":{"name":true}}"#, Some((400, name))),
    ] {
        assert_eq!(refusal(body), expected.map(|(code, text)| (code, text.to_owned())), "{body}");
    }
}
