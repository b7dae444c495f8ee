//! Objects that another release stored, each version of each kind: read, and written back as they are stored now. What is
//! expected is upstream's golden object of the current version, and of what differs the table below.

use std::path::Path;

use serde_json::{Value, json};

use super::*;

/// What an object of a version becomes that the current version's golden object is not. Others become the same.
fn differences(api_version: &str, kind: &str) -> Value {
    match (api_version, kind) {
        ("apps/v1beta1" | "extensions/v1beta1", "Deployment") => {
            json!({"metadata": {"annotations": {"deprecated.deployment.rollback.to": "1"}}})
        }
        ("extensions/v1beta1", "DaemonSet") => {
            json!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "5"}}})
        }
        ("autoscaling/v1", "HorizontalPodAutoscaler") => {
            let metric =
                |part: &str, percent: Value| json!([{"type": "Resource", "resource": {"name": "cpu", part: percent}}]);
            json!({
                "spec": {
                    "metrics": metric("target", json!({"type": "Utilization", "averageUtilization": 4})),
                    "behavior": null,
                },
                "status": {
                    "currentMetrics": metric("current", json!({"averageUtilization": 5})),
                    "conditions": null,
                },
            })
        }
        ("discovery.k8s.io/v1beta1", "EndpointSlice") => json!({"endpoints": {"0": {
            "zone": null,
            "deprecatedTopology": {"deprecatedTopologyKey": null, "topologyKey": "topologyValue"},
        }}}),
        ("events.k8s.io/v1" | "events.k8s.io/v1beta1", "Event") => json!({
            "count": 15,
            "eventTime": "2002-01-01T01:01:01.000002Z",
            "firstTimestamp": "2013-01-01T01:01:01Z",
            "lastTimestamp": "2014-01-01T01:01:01Z",
            "message": "noteValue",
            "reportingComponent": "reportingControllerValue",
            "series": {"count": 1, "lastObservedTime": "2002-01-01T01:01:01.000002Z"},
        }),
        ("extensions/v1beta1" | "networking.k8s.io/v1beta1", "Ingress") => {
            let service = json!({"name": "serviceNameValue", "port": {"name": "servicePortValue", "number": null}});
            json!({"spec": {
                "defaultBackend": {"service": service},
                "rules": {"0": {"http": {"paths": {"0": {"backend": {"service": service}}}}}},
            }})
        }
        ("node.k8s.io/v1alpha1", "RuntimeClass") => json!({"handler": "runtimeHandlerValue"}),
        ("resource.k8s.io/v1beta1", "ResourceClaim") => requests_of_five(),
        ("resource.k8s.io/v1beta1", "ResourceClaimTemplate") => json!({"spec": requests_of_five()}),
        // The version of a subject of another kind has no group.
        ("rbac.authorization.k8s.io/v1alpha1", "ClusterRoleBinding" | "RoleBinding") => {
            json!({"subjects": {"0": {"apiGroup": null}}})
        }
        _ => json!({}),
    }
}

/// The golden objects of the first version ask for one device more.
fn requests_of_five() -> Value {
    json!({"spec": {"devices": {"requests": {"0": {"exactly": {"count": 5}}}}}})
}

/// A merge patch whose objects also reach into lists, by index.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    for (key, change) in patch {
        match target {
            Value::Array(items) => merge(&mut items[key.parse::<usize>().expect("an index")], change),
            Value::Object(map) if change.is_null() => {
                map.remove(key);
            }
            Value::Object(map) => merge(map.entry(key).or_insert(Value::Object(Default::default())), change),
            _ => panic!("{key} has no members"),
        }
    }
}

fn golden(dir: &Path, api_version: &str, kind: &str, ending: &str) -> Option<Vec<u8>> {
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    std::fs::read(dir.join(format!("{group}.{version}.{kind}.{ending}"))).ok()
}

/// The versions beside the stored one in which objects of a kind may lie in a store.
fn other_versions(rules: &'static dyn Rules) -> Vec<String> {
    let (info, stored) = (rules.info(), |rules: &dyn Rules| {
        rules
            .info()
            .storage
            .map(|storage| (storage.group.to_owned(), storage.version.to_owned(), rules.info().resource.to_owned()))
    });
    let served = kinds::all().filter(|other| stored(*other) == stored(rules)).map(|other| other.info().api_version());
    let former = rules.former().iter().map(|former| former.api_version.to_owned());
    served.filter(|version| *version != info.api_version()).chain(former).collect()
}

#[test]
fn what_any_version_stored_is_read_and_written_back_as_it_is_stored_now() {
    let Some(dir) = test_facts::outside("api-roundtrip") else { return };
    let mut proven = 0;
    for rules in kinds::all() {
        let info = rules.info();
        let is_stored = info.storage.is_some_and(|own| (own.group, own.version) == (info.group, info.version));
        let Some(current) = golden(&dir, &info.api_version(), info.kind, "json").filter(|_| is_stored) else {
            continue;
        };
        let codec = ObjectCodec { rules: RulesRef::Static(rules), media: StorageMedia::Protobuf };
        for version in other_versions(rules) {
            let name = format!("{} of {version}", info.kind);
            let mut expected: Value = serde_json::from_slice(&current).expect("JSON");
            merge(&mut expected, &differences(&version, info.kind));
            let mut expected = codec.read(expected.to_string().as_bytes()).expect(&name);
            for ending in ["pb", "json"] {
                let Some(stored) = golden(&dir, &version, info.kind, ending) else { continue };
                let mut read = codec.read(&stored).unwrap_or_else(|error| panic!("{name}: {error}"));
                let [written, wanted] = [&mut read, &mut expected].map(|object| codec.encode(&mut **object));
                assert_eq!(read.to_json(), expected.to_json(), "{name}, {ending}");
                assert!(written == wanted, "{name}, {ending}");
                proven += 1;
            }
        }
    }
    assert!(proven > 80, "only {proven} were there");
}
