//! What upstream writes as JSON whatever `--storage-media-type` says: its bytes are read, and the same are written.

use super::*;

fn codec(group: &str, resource: &str) -> ObjectCodec {
    let rules = RulesRef::Static(kinds::find(group, "v1", resource).expect("a kind"));
    ObjectCodec { rules, media: StorageMedia::Protobuf }
}

fn definitions() -> ObjectCodec {
    codec("apiextensions.k8s.io", "customresourcedefinitions")
}

/// A stored definition of the group `example.com` with these members of the spec before and after the names.
fn stored(head: &str, tail: &str) -> String {
    let names = r#"{"plural":"shirts","singular":"shirt","shortNames":["shrt"],"kind":"Shirt","listKind":"ShirtList"}"#;
    format!(
        concat!(
            r#"{{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":"#,
            r#"{{"name":"shirts.example.com","uid":"u","generation":1,"creationTimestamp":"2025-02-21T12:38:19Z"}},"#,
            r#""spec":{{"group":"example.com",{head}"names":{names},{tail}}},"status":{{"conditions":[{{"type":"Established","#,
            r#""status":"True","lastTransitionTime":"2025-02-21T12:38:19Z","reason":"InitialNamesAccepted","#,
            r#""message":"the initial names have been accepted"}}],"acceptedNames":{names},"storedVersions":["v1"]}}}}"#,
            "\n"
        ),
        head = head,
        names = names,
        tail = tail
    )
}

const SCHEMA: &str = r#"{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object"}}}}"#;

fn spec_of(object: &dyn Object) -> serde_json::Value {
    serde_json::from_str::<serde_json::Value>(&object.to_json()).expect("JSON")["spec"].take()
}

/// What the versions have in common is stored once, and every version has it when it is read.
#[test]
fn a_definition_is_stored_in_its_first_form() {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).expect("JSON");
    let column = |member: &str| format!(r#"[{{"name":"Fruit","type":"string","{member}":".spec.color"}}]"#);
    let columns: serde_json::Value = serde_json::from_str(&column("jsonPath")).expect("JSON");
    let service = r#"{"service":{"namespace":"n","name":"s","path":"/p","port":443},"caBundle":"Y2E="}"#;
    for (tail, versions) in [
        (
            format!(
                r#""scope":"Namespaced","validation":{SCHEMA},"subresources":{{"status":{{}}}},"versions":[{{"name":"v1","served":true,"storage":true}}],"additionalPrinterColumns":{},"selectableFields":[{{"jsonPath":".spec.color"}}],"conversion":{{"strategy":"None"}},"preserveUnknownFields":false"#,
                column("JSONPath")
            ),
            serde_json::json!([{
                "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}},
                "additionalPrinterColumns": columns, "selectableFields": [{"jsonPath": ".spec.color"}],
            }]),
        ),
        (
            format!(
                r#""scope":"Cluster","validation":{SCHEMA},"versions":[{{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":{}}},{{"name":"v2","served":true,"storage":false,"deprecated":true}}],"conversion":{{"strategy":"Webhook","webhookClientConfig":{service},"conversionReviewVersions":["v1"]}},"preserveUnknownFields":false"#,
                column("JSONPath")
            ),
            serde_json::json!([
                {"name": "v1", "served": true, "storage": true, "schema": schema, "additionalPrinterColumns": columns},
                {"name": "v2", "served": true, "storage": false, "schema": schema, "deprecated": true},
            ]),
        ),
        (
            format!(
                r#""scope":"Cluster","versions":[{{"name":"v1","served":true,"storage":true,"schema":{SCHEMA}}},{{"name":"v2","served":true,"storage":false}}],"conversion":{{"strategy":"None"}},"preserveUnknownFields":true"#
            ),
            serde_json::json!([
                {"name": "v1", "served": true, "storage": true, "schema": schema},
                {"name": "v2", "served": true, "storage": false},
            ]),
        ),
    ] {
        let value = stored(r#""version":"v1","#, &tail);
        let mut read = definitions().read(value.as_bytes()).expect("it is upstream's");
        assert_eq!(read.api_version(), "apiextensions.k8s.io/v1");
        assert_eq!(spec_of(&*read)["versions"], versions);
        // A client sends what versions have in common with each of them.
        let mut sent = definitions().read(read.to_json().as_bytes()).expect("it is of the served version");
        for object in [&mut read, &mut sent] {
            assert_eq!(String::from_utf8_lossy(&definitions().encode(&mut **object)), value);
        }
    }
}

/// Definitions from before there were lists of versions, with the defaults of that time.
#[test]
fn a_definition_of_one_version_is_read() {
    let tail = format!(r#""scope":"","validation":{SCHEMA},"conversion":{{"strategy":"Webhook"}}"#);
    let read = definitions().read(stored(r#""version":"v1","#, &tail).as_bytes()).expect("it is upstream's");
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).expect("JSON");
    let spec = spec_of(&*read);
    assert_eq!(
        spec["versions"],
        serde_json::json!([{"name": "v1", "served": true, "storage": true, "schema": schema}])
    );
    assert_eq!((&spec["scope"], &spec["preserveUnknownFields"]), (&"Namespaced".into(), &true.into()));
    assert_eq!(spec["conversion"]["webhook"]["conversionReviewVersions"], serde_json::json!(["v1beta1"]));
}

#[test]
fn an_api_service_is_stored_as_json() {
    let value = concat!(
        r#"{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{"name":"v1.apps","uid":"u","#,
        r#""creationTimestamp":"2025-02-21T12:38:19Z"},"spec":{"group":"apps","version":"v1","#,
        r#""groupPriorityMinimum":17800,"versionPriority":15},"status":{"conditions":[{"type":"Available","#,
        r#""status":"True","lastTransitionTime":"2025-02-21T12:38:19Z","reason":"Local","#,
        r#""message":"Local APIServices are always available"}]}}"#,
        "\n"
    );
    let codec = codec("apiregistration.k8s.io", "apiservices");
    let mut read = codec.read(value.as_bytes()).expect("it is upstream's");
    assert_eq!(String::from_utf8_lossy(&codec.encode(&mut *read)), value);
}

/// The deepest schemas that are accepted can be read from the store, and as the messages that clients get.
#[test]
fn a_deep_definition_is_read_again() {
    const LEVELS: usize = 100;
    let (open, close) = (r#"{"type":"array","items":"#.repeat(LEVELS), "}".repeat(LEVELS));
    let schema = format!(r#"{{"openAPIV3Schema":{open}{{"type":"string"}}{close}}}"#);
    let tail = format!(
        r#""scope":"Cluster","validation":{schema},"versions":[{{"name":"v1","served":true,"storage":true}}],"conversion":{{"strategy":"None"}},"preserveUnknownFields":false"#
    );
    let value = stored(r#""version":"v1","#, &tail);
    let mut read = definitions().read(value.as_bytes()).expect("not too deep");
    assert_eq!(String::from_utf8_lossy(&definitions().encode(&mut *read)), value);
    let again = definitions().read(&read.to_protobuf()).expect("not too deep");
    assert_eq!(spec_of(&*again), spec_of(&*read));
}
