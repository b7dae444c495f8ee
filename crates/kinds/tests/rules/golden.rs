//! Upstream's golden objects through every encoding of every kind, under each version's name.

use std::path::Path;

use api_machinery::json;
use api_machinery::protobuf;
use api_machinery::value::Value;
use kinds::rules::Rules;

/// Checks one kind against its golden pair; gives its name where there is none.
fn check(rules: &dyn Rules, dir: &Path) -> Option<String> {
    let info = rules.info();
    let group = if info.group.is_empty() { "core" } else { info.group };
    let name = format!("{group}.{}.{}", info.version, info.kind);
    let read = |ending: &str| std::fs::read(dir.join(format!("{name}.{ending}"))).ok();
    let (Some(text), Some(wire)) = (read("json"), read("pb")) else { return Some(name) };
    let api_version = info.api_version();

    let mut from_json = rules.new_object();
    let decoded = json::decode(&text, from_json.as_reflect_mut()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(decoded.problems, Vec::<String>::new(), "{name}: strict decoding");
    assert_eq!((decoded.type_meta.kind.as_str(), &decoded.type_meta.api_version), (info.kind, &api_version), "{name}");
    assert_eq!((from_json.kind(), &from_json.api_version()), (info.kind, &api_version), "{name}");
    let written = json::encode_typed(info.kind, &api_version, from_json.as_reflect());
    let [again, expected] =
        [written.as_bytes(), &text].map(|bytes| serde_json::from_slice::<Value>(bytes).expect("JSON"));
    assert_eq!(again, expected, "{name}: JSON to JSON");

    let envelope = protobuf::open(&wire).expect("an envelope");
    assert_eq!((envelope.kind.as_str(), &envelope.api_version), (info.kind, &api_version), "{name}");
    let mut from_wire = rules.new_object();
    protobuf::decode(envelope.raw, from_wire.as_reflect_mut()).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (road, object) in [("protobuf to protobuf", &from_wire), ("JSON to protobuf", &from_json)] {
        let sealed = protobuf::seal(&api_version, info.kind, |out| out.members(object.as_reflect()));
        assert!(sealed == wire, "{name}: {road}: {}", json::encode(object.as_reflect()));
    }
    assert_eq!(json::encode(from_wire.as_reflect()), json::encode(from_json.as_reflect()), "{name}: protobuf to JSON");
    None
}

#[test]
fn golden_objects_survive_every_road() {
    let Some(dir) = test_facts::outside("api-roundtrip") else { return };
    let unproven: Vec<String> = kinds::all().filter_map(|rules| check(rules, &dir)).collect();
    // Upstream has golden objects of the kinds of its own libraries only.
    let elsewhere = ["apiregistration.k8s.io.v1.APIService", "apiextensions.k8s.io.v1.CustomResourceDefinition"];
    assert_eq!(unproven, elsewhere, "kinds without a golden object");
}
