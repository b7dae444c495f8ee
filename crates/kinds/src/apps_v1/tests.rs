//! What the kinds of apps/v1 are told, by what is wrong with them.

use api_machinery::object::Kind;
use api_machinery::reflect::Reflect;
use api_types::apps_v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};

use super::{daemon_set::DaemonSetRules, deployment::DeploymentRules};
use super::{replica_set::ReplicaSetRules, stateful_set::StatefulSetRules};
use crate::rules::{Endpoint, RuleContext, Rules, Typed, TypedRules};

const POD: &str = r#""template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
const SELECTOR: &str = r#""selector":{"matchLabels":{"a":"b"}}"#;

/// An object as the server sees it: decoded, with defaults.
fn object<R: TypedRules>(spec: &str) -> R::Object
where
    R::Object: Kind + Reflect,
{
    let mut object = R::Object::default();
    let text = format!(r#"{{"metadata":{{"name":"n","namespace":"s"}},"spec":{{{spec}}}}}"#);
    api_machinery::json::decode(text.as_bytes(), &mut object).expect("an object");
    Typed::<R>::new().set_defaults(&mut object);
    object
}

fn created<R: TypedRules>(spec: &str) -> Vec<String>
where
    R::Object: Kind + Reflect,
{
    R::validate(&RuleContext::default(), &object::<R>(spec)).iter().map(ToString::to_string).collect()
}

fn updated<R: TypedRules>(spec: &str, old: &str) -> Vec<String>
where
    R::Object: Kind + Reflect,
{
    let (new, old) = (object::<R>(spec), object::<R>(old));
    R::validate_update(&RuleContext::default(), Endpoint::Main, &new, &old).iter().map(ToString::to_string).collect()
}

#[test]
fn good_ones_pass() {
    let spec = format!("{SELECTOR},{POD}");
    let none: Vec<String> = Vec::new();
    assert_eq!(created::<DeploymentRules>(&spec), none);
    assert_eq!(created::<ReplicaSetRules>(&spec), none);
    assert_eq!(created::<StatefulSetRules>(&spec), none);
    assert_eq!(created::<DaemonSetRules>(&spec), none);
    assert_eq!(updated::<StatefulSetRules>(&format!(r#""replicas":3,{spec}"#), &spec), none);
}

#[test]
fn deployments() {
    for (spec, expected) in [
        (
            POD.to_owned(),
            &[
                "spec.selector: Required value",
                r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#,
            ][..],
        ),
        (
            format!(r#""selector":{{}},{POD}"#),
            &["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
        ),
        (
            format!(r#""replicas":-1,"selector":{{"matchLabels":{{"a":"c"}}}},{POD}"#),
            &[
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#,
            ],
        ),
        (
            format!(r#""strategy":{{"type":"X"}},{SELECTOR},{POD}"#),
            &[concat!(
                r#"spec.strategy: Unsupported value: {"Type":"X","RollingUpdate":null}: "#,
                r#"supported values: "Recreate", "RollingUpdate""#
            )],
        ),
        (
            format!(r#""strategy":{{"rollingUpdate":{{"maxSurge":0,"maxUnavailable":"0%"}}}},{SELECTOR},{POD}"#),
            &[concat!(
                r#"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": "#,
                "may not be 0 when `maxSurge` is 0"
            )],
        ),
        (
            format!(r#""strategy":{{"rollingUpdate":{{"maxUnavailable":"101%"}}}},{SELECTOR},{POD}"#),
            &[r#"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%"#],
        ),
        (
            format!(r#""progressDeadlineSeconds":5,"minReadySeconds":5,{SELECTOR},{POD}"#),
            &["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"],
        ),
    ] {
        assert_eq!(created::<DeploymentRules>(&spec), expected, "{spec}");
    }
    let never = POD.replace(r#""containers""#, r#""restartPolicy":"Never","activeDeadlineSeconds":1,"containers""#);
    assert_eq!(
        created::<DeploymentRules>(&format!("{SELECTOR},{never}")),
        [
            r#"spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#,
            concat!(
                "spec.template.spec.activeDeadlineSeconds: Forbidden: ",
                "activeDeadlineSeconds in ReplicaSet is not Supported"
            ),
        ]
    );
}

#[test]
fn selectors_do_not_change() {
    let old = format!(r#""selector":{{"matchExpressions":[{{"key":"a","operator":"Exists"}}]}},{POD}"#);
    let spec = format!("{SELECTOR},{POD}");
    let expected = [r#"spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable"#];
    assert_eq!(updated::<DeploymentRules>(&spec, &old), expected);
    assert_eq!(updated::<ReplicaSetRules>(&spec, &old), expected);
    assert_eq!(updated::<DaemonSetRules>(&spec, &old), expected);
    let of_set = updated::<StatefulSetRules>(&spec, &old);
    assert!(of_set.len() == 1 && of_set[0].starts_with("spec: Forbidden: updates to statefulset spec"), "{of_set:?}");
}

#[test]
fn daemon_sets() {
    let rolling = |surge: &str, unavailable: &str| {
        let rolling = format!(r#"{{"maxSurge":{surge},"maxUnavailable":{unavailable}}}"#);
        created::<DaemonSetRules>(&format!(r#""updateStrategy":{{"rollingUpdate":{rolling}}},{SELECTOR},{POD}"#))
    };
    let path = "spec.updateStrategy.rollingUpdate";
    let odd = created::<DaemonSetRules>(&format!(r#""updateStrategy":{{"type":"X"}},{SELECTOR},{POD}"#));
    assert!(odd[0].ends_with(r#"supported values: "RollingUpdate", "OnDelete""#), "{odd:?}");
    assert_eq!(rolling("1", "0"), Vec::<String>::new());
    assert_eq!(
        rolling("1", "1"),
        [format!("{path}.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero")]
    );
    assert_eq!(rolling("0", "0"), [format!("{path}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0")]);
}

#[test]
fn templates_of_daemon_sets_are_counted() {
    let spec = format!("{SELECTOR},{POD}");
    let rules = Typed::<DaemonSetRules>::new();
    let mut old: DaemonSet = object::<DaemonSetRules>(&spec);
    rules.prepare_create(&RuleContext::default(), &mut old);
    let count = |set: &DaemonSet| set.metadata.annotations["deprecated.daemonset.template.generation"].clone();
    assert_eq!(count(&old), "1");
    let mut new = old.clone();
    new.metadata.annotations.clear();
    new.spec.min_ready_seconds = 1;
    rules.prepare_update(&RuleContext::default(), Endpoint::Main, &mut new, &old);
    assert_eq!((count(&new).as_str(), new.metadata.generation), ("1", 2));
    new.spec.template.spec.containers[0].image = "j".into();
    rules.prepare_update(&RuleContext::default(), Endpoint::Main, &mut new, &old);
    assert_eq!((count(&new).as_str(), new.metadata.generation), ("2", 2));
}

#[test]
fn stateful_sets() {
    for (spec, expected) in [
        (
            r#""podManagementPolicy":"X""#,
            r#"spec.podManagementPolicy: Invalid value: "X": must be 'OrderedReady' or 'Parallel'"#,
        ),
        (
            r#""updateStrategy":{"type":"X"}"#,
            concat!(
                r#"spec.updateStrategy: Invalid value: {"Type":"X","RollingUpdate":null}: "#,
                "must be 'RollingUpdate' or 'OnDelete'"
            ),
        ),
        (r#""ordinals":{"start":-1}"#, "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"),
        (
            r#""volumeClaimTemplates":[{"metadata":{"name":"v"},"spec":{"resources":{"requests":{"storage":"1"}}}}]"#,
            "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
        ),
    ] {
        assert_eq!(created::<StatefulSetRules>(&format!("{spec},{SELECTOR},{POD}")), [expected], "{spec}");
    }
}

#[test]
fn statuses_must_add_up() {
    let mut old = Deployment::default();
    old.status.collision_count = Some(2);
    let mut new = old.clone();
    (new.status.updated_replicas, new.status.available_replicas, new.status.collision_count) = (1, -1, Some(1));
    let errors = DeploymentRules::validate_update(&RuleContext::default(), Endpoint::Status, &new, &old);
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "status.availableReplicas: Invalid value: -1: must be greater than or equal to 0",
            "status.updatedReplicas: Invalid value: 1: cannot be greater than status.replicas",
            "status.collisionCount: Invalid value: 1: cannot be decremented",
        ]
    );
    let mut set = StatefulSet::default();
    (set.status.replicas, set.status.available_replicas) = (1, 1);
    let errors =
        StatefulSetRules::validate_update(&RuleContext::default(), Endpoint::Status, &set, &StatefulSet::default());
    assert_eq!(
        errors.to_string(),
        "status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas"
    );
    let (set, mut full) = (ReplicaSet::default(), ReplicaSet::default());
    full.status.fully_labeled_replicas = 1;
    let errors = ReplicaSetRules::validate_update(&RuleContext::default(), Endpoint::Status, &full, &set);
    let expected = "status.fullyLabeledReplicas: Invalid value: 1: cannot be greater than status.replicas";
    assert_eq!(errors.to_string(), expected);
}

#[test]
fn names_that_make_bad_host_names_are_warned_of() {
    let mut deployment = object::<DeploymentRules>(&format!("{SELECTOR},{POD}"));
    deployment.metadata.name = "a.b".into();
    let warnings = DeploymentRules::warnings(&deployment, None);
    assert_eq!(
        warnings,
        [concat!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS ",
            "label is recommended: [must not contain dots]"
        )]
    );
    assert!(DeploymentRules::warnings(&deployment, Some(&deployment)).is_empty());
}

#[test]
fn strategies_of_sets_with_state() {
    let strategy = |text: &str| {
        let set = object::<StatefulSetRules>(text);
        let rolling = set.spec.update_strategy.rolling_update;
        (set.spec.update_strategy.type_, rolling.map(|rolling| rolling.partition))
    };
    for (text, expected) in [
        ("", ("RollingUpdate", Some(Some(0)))),
        (r#""updateStrategy":{"type":"RollingUpdate"}"#, ("RollingUpdate", None)),
        (r#""updateStrategy":{"type":"RollingUpdate","rollingUpdate":{}}"#, ("RollingUpdate", Some(Some(0)))),
        (r#""updateStrategy":{"type":"OnDelete"}"#, ("OnDelete", None)),
    ] {
        let (type_, partition) = strategy(text);
        assert_eq!((type_.as_str(), partition), expected, "{text}");
    }
}

#[test]
fn what_a_selector_may_not_do_is_told_before_what_it_misses() {
    let new = format!(r#""selector":{{"matchLabels":{{"x":"y"}}}},{POD}"#);
    assert_eq!(
        updated::<DaemonSetRules>(&new, &format!("{SELECTOR},{POD}")),
        [
            r#"spec.selector: Invalid value: {"matchLabels":{"x":"y"}}: field is immutable"#,
            r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#,
        ]
    );
    let bare = r#""template":{"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    let text = "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`";
    assert_eq!(created::<DaemonSetRules>(&format!("{SELECTOR},{bare}")), [text]);
}
