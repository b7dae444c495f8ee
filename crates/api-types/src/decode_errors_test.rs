//! What clients are told of JSON that does not fit a kind: the way to the value and Go's name of what is wanted there.

use api_machinery::json::decode;
use api_machinery::reflect::Reflect;

use crate::apiextensions_v1::CustomResourceDefinition;
use crate::authorization_v1::SubjectAccessReview;
use crate::core_v1::{LimitRange, PersistentVolume, Pod};

fn refusal(text: &str, mut target: impl Reflect) -> String {
    decode(text.as_bytes(), &mut target).unwrap_err().to_string()
}

#[test]
fn named_types_are_told_by_their_names() {
    let limit = |member: &str| refusal(&format!(r#"{{"spec":{{"limits":[{{{member}}}]}}}}"#), LimitRange::default());
    let of_item = "json: cannot unmarshal bool into Go struct field LimitRangeItem.spec.limits";
    assert_eq!(limit(r#""type":true"#), format!("{of_item}.type of type v1.LimitType"));
    assert_eq!(limit(r#""max":true"#), format!("{of_item}.max of type v1.ResourceList"));
    let volume = |value: &str| {
        refusal(&format!(r#"{{"spec":{{"accessModes":{value}}}}}"#), PersistentVolume::default()).split_off(23)
    };
    let field = "into Go struct field PersistentVolumeSpec.spec.accessModes of type";
    assert_eq!(volume("\"x\""), format!("string {field} []v1.PersistentVolumeAccessMode"));
    assert_eq!(volume("[{}]"), format!("object {field} v1.PersistentVolumeAccessMode"));
    let review = |value: &str| refusal(&format!(r#"{{"spec":{{"extra":{value}}}}}"#), SubjectAccessReview::default());
    let field = "into Go struct field SubjectAccessReviewSpec.spec.extra of type";
    assert_eq!(review(r#"{"k":"v"}"#), format!("json: cannot unmarshal string {field} v1.ExtraValue"));
    assert_eq!(review(r#"{"k":[1]}"#), format!("json: cannot unmarshal number {field} string"));
}

#[test]
fn embedded_structs_are_part_of_the_way() {
    assert_eq!(
        refusal(r#"{"spec":{"hostPath":{"type":{}}}}"#, PersistentVolume::default()),
        "json: cannot unmarshal object into Go struct field \
         HostPathVolumeSource.spec.PersistentVolumeSource.hostPath.type of type v1.HostPathType"
    );
    let decoded = decode(br#"{"spec":{"hostPath":{"x":1}}}"#, &mut PersistentVolume::default()).unwrap();
    assert_eq!(decoded.problems, ["unknown field \"spec.hostPath.x\""]);
    assert_eq!(
        refusal(r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":"x"}}]}}"#, Pod::default()),
        "json: cannot unmarshal string into Go struct field \
         Probe.spec.containers.livenessProbe.ProbeHandler.httpGet of type v1.HTTPGetAction"
    );
}

#[test]
fn anything_may_stand_for_a_quantity_until_it_is_understood() {
    let expected = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    for value in ["true", "[]", "{}", r#"{"a":1}"#, "\"\""] {
        let text = format!(r#"{{"spec":{{"capacity":{{"storage":{value}}}}}}}"#);
        assert_eq!(refusal(&text, PersistentVolume::default()), expected, "{value}");
    }
}

#[test]
fn a_kind_that_came_twice_is_reported() {
    let decoded = decode(br#"{"kind":"Pod","apiVersion":"v1","kind":"Pod"}"#, &mut Pod::default()).unwrap();
    assert_eq!(decoded.problems, ["duplicate field \"kind\""]);
}

#[test]
fn unions_of_schemas_are_part_of_their_document() {
    let schema =
        |items: &str| format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{{"items":{items}}}}}}}]}}}}"#);
    assert_eq!(
        refusal(&schema(r#"{"maxLength":1000.0}"#), CustomResourceDefinition::default()),
        "json: cannot unmarshal number 1000.0 into Go struct field \
         JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.maxLength of type int64"
    );
    let decoded = decode(schema(r#"{"x":1}"#).as_bytes(), &mut CustomResourceDefinition::default()).unwrap();
    assert!(decoded.problems.is_empty(), "{:?}", decoded.problems);
}
