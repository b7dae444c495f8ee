//! The configuration: defaults against upstream's, merging, refusals.

use component_base::Gates;
use serde_json::{Value, json};

use super::*;
use crate::plugins::{ALL, build_cx};

fn file(rest: &Value) -> Value {
    let mut value = json!({ "apiVersion": API_VERSION, "kind": KIND });
    value.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    value
}

fn refusal(rest: &Value) -> String {
    let checked = decode(&file(rest)).and_then(|configuration| {
        validate(&configuration, &Gates::default())?;
        Ok(configuration)
    });
    match checked {
        Err(error) => error.to_string(),
        Ok(configuration) => {
            build_profiles(&configuration, ALL, &build_cx()).err().map(|e| e.to_string()).unwrap_or_default()
        }
    }
}

#[test]
fn defaults_are_upstreams() {
    let data = test_facts::facts("config/KubeSchedulerConfiguration.json");
    let expected = data["defaults"].clone();
    let mut actual: Value = serde_json::from_str(&encode(&default_configuration())).unwrap();
    actual.as_object_mut().unwrap().retain(|key, _| expected.get(key).is_some());
    assert_eq!(actual, expected);
}

#[test]
fn plugins_come_and_go_with_their_features() {
    let names = |gates: &Gates| {
        let extra = json!({ "profiles": [{ "plugins": { "multiPoint": { "enabled": [{ "name": "Own" }] } } }] });
        let mut configuration = decode(&file(&extra)).unwrap();
        add_gated(&mut configuration, gates);
        let set = configuration.profiles.remove(0).plugins.unwrap().multi_point.enabled;
        set.into_iter().map(|plugin| plugin.name).skip(18).collect::<Vec<_>>()
    };
    let (declared, gangs) = ("NodeDeclaredFeatures", "GangScheduling");
    assert_eq!(names(&Gates::default()), ["DefaultBinder", declared, "Own"]);
    let feature = |name: &str| component_base::Feature::find(name).unwrap();
    assert_eq!(names(&Gates::default().with(feature(declared), false)), ["DefaultBinder", "Own"]);
    assert_eq!(names(&Gates::default().with(feature(gangs), true)), ["DefaultBinder", declared, "Own", gangs]);
}

#[test]
fn merging_keeps_places_and_order() {
    let value = file(&json!({ "profiles": [{ "plugins": { "multiPoint": {
        "disabled": [{ "name": "ImageLocality" }],
        "enabled": [{ "name": "NodeAffinity", "weight": 7 }],
    }, "filter": { "disabled": [{ "name": "NodePorts" }] }, "score": { "enabled": [{ "name": "InterPodAffinity" }] } } }] }));
    let configuration = decode(&value).unwrap();
    validate(&configuration, &Gates::default()).unwrap();
    let profile = build_profiles(&configuration, ALL, &build_cx()).unwrap().remove(0);
    let scores: Vec<_> = profile.score.iter().map(|at| (at.name, at.weight)).collect();
    assert_eq!(scores[..3], [("InterPodAffinity", 1), ("TaintToleration", 3), ("NodeAffinity", 7)]);
    assert!(!scores.iter().any(|(name, _)| *name == "ImageLocality"));
    assert!(!profile.filter.iter().any(|at| at.name == "NodePorts"));
    assert!(profile.pre_filter.iter().any(|at| at.name == "NodePorts"));
}

#[test]
fn an_affinity_that_matches_no_node_is_refused() {
    let added = |affinity: Value| {
        let args = json!({ "addedAffinity": affinity });
        json!({ "profiles": [{ "pluginConfig": [{ "name": "NodeAffinity", "args": args }] }] })
    };
    let cases = [
        (
            added(
                json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{}, { "matchExpressions": [
                { "key": "zone", "operator": "In", "values": ["a"] }, { "key": "zone", "operator": "Near" }] }] } }),
            ),
            "profiles[0].pluginConfig[0].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].\
             matchExpressions[1].operator: Unsupported value: \"Near\": supported values: \"DoesNotExist\", \"Exists\", \"Gt\", \"In\", \
             \"Lt\", \"NotIn\"",
        ),
        (
            added(json!({ "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": {
                "matchExpressions": [{ "key": "size", "operator": "Gt", "values": ["x"] }],
                "matchFields": [{ "key": "metadata.uid", "operator": "In", "values": ["a"] }] } }] })),
            "[profiles[0].pluginConfig[0].args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchExpressions[0]: \
             Invalid value: \"size\": values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer, \
             profiles[0].pluginConfig[0].args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchFields[0].key: \
             Unsupported value: \"metadata.uid\": supported values: \"metadata.name\"]",
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(refusal(&rest), expected, "{rest}");
    }
}

#[test]
fn refusals() {
    let plugins = |plugins: Value| json!({ "profiles": [{ "plugins": plugins }] });
    let cases = [
        (json!({ "nope": 1 }), "strict decoding error: unknown field \"nope\""),
        (json!({ "parallelism": 0 }), "parallelism: Invalid value: 0: should be an integer value greater than zero"),
        (
            json!({ "percentageOfNodesToScore": 101 }),
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        (
            json!({ "profiles": [{ "schedulerName": "a" }, { "schedulerName": "a" }] }),
            "profiles[1].schedulerName: Duplicate value: \"a\"",
        ),
        (
            json!({ "extenders": [{ "urlPrefix": "http://x", "prioritizeVerb": "rank" }] }),
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            json!({ "extenders": [{ "urlPrefix": "http://x", "managedResources": [{ "name": "example.com/a" }, { "name": "cpu" }] },
                { "urlPrefix": "http://y", "managedResources": [{ "name": "example.com/a" }] }] }),
            "[extenders[0].managedResources[1].name: Invalid value: \"cpu\": is an invalid extended resource name, \
             extenders[1].managedResources[0].name: Invalid value: \"example.com/a\": duplicate extender managed resource name]",
        ),
        (
            json!({ "extenders": [{ "urlPrefix": "http://x", "bindVerb": "b" }, { "urlPrefix": "http://y", "bindVerb": "b" }] }),
            "extenders: Invalid value: \"found 2 extenders implementing bind\": only one extender can implement bind",
        ),
        (
            json!({ "extenders": [{ "urlPrefix": "ftp://x" }] }),
            "initializing profiles: cannot create extender with URL \"ftp://x\": invalid server \"ftp://x\": the scheme must be \
             http or https",
        ),
        (
            plugins(json!({ "filter": { "enabled": [{ "name": "Nope" }] } })),
            "initializing profiles: creating profile for scheduler name default-scheduler: FilterPlugin \"Nope\" does not exist",
        ),
        (
            plugins(json!({ "filter": { "enabled": [{ "name": "ImageLocality" }] } })),
            "initializing profiles: creating profile for scheduler name default-scheduler: plugin \"ImageLocality\" does \
             not extend FilterPlugin plugin",
        ),
        (
            plugins(json!({ "bind": { "disabled": [{ "name": "*" }] } })),
            "initializing profiles: creating profile for scheduler name default-scheduler: at least one bind plugin is \
             needed for profile with scheduler name \"default-scheduler\"",
        ),
        (
            json!({ "profiles": [{ "pluginConfig": [{ "name": "InterPodAffinity", "args": { "hardPodAffinityWeight": 101 } }] }] }),
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(refusal(&rest), expected, "{rest}");
    }
    let other = decode(&json!({ "apiVersion": "v1", "kind": "Pod" })).unwrap_err().to_string();
    assert_eq!(other, "couldn't decode as KubeSchedulerConfiguration, got v1, Kind=Pod: ");
}
