//! What objects become when they are read: the defaults that hang on other fields. Those that stand alone are beside
//! the tables of fields (crate `api-types`).

use api_machinery::json;
use serde_json::{Value, json};

use super::{kind, read};

/// An object as it is after reading.
fn filled(name: &str, text: &str) -> Value {
    let object = read(kind(name), text);
    let text = json::encode_typed(object.kind(), &object.api_version(), object.as_reflect());
    serde_json::from_str(&text).expect("an object is JSON")
}

/// Rows of (what is read, where to look, what is there).
fn check(name: &str, rows: &[(&str, &str, Value)]) {
    for (text, pointer, expected) in rows {
        let object = filled(name, text);
        assert_eq!(object.pointer(pointer).unwrap_or(&Value::Null), expected, "{name} {text} {pointer}");
    }
}

#[test]
fn pods_and_templates() {
    check(
        "pods",
        &[
            (r#"{"spec":{}}"#, "/spec/enableServiceLinks", json!(true)),
            (r#"{"spec":{}}"#, "/spec/securityContext", json!({})),
            (r#"{"spec":{"volumes":[{"name":"v"}]}}"#, "/spec/volumes/0/emptyDir", json!({})),
            (
                r#"{"spec":{"volumes":[{"name":"v","image":{"reference":"a:1"}}]}}"#,
                "/spec/volumes/0/image/pullPolicy",
                json!("IfNotPresent"),
            ),
            (
                r#"{"spec":{"hostNetwork":true,"initContainers":[{"ports":[{"containerPort":5}]}]}}"#,
                "/spec/initContainers/0/ports/0/hostPort",
                json!(5),
            ),
            (
                r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}}"#,
                "/spec/containers/0/resources/requests",
                json!({"cpu": "1"}),
            ),
            (
                r#"{"spec":{"ephemeralContainers":[{"name":"e","image":"a"}]}}"#,
                "/spec/ephemeralContainers/0/imagePullPolicy",
                json!("Always"),
            ),
            (r#"{"spec":{"terminationGracePeriodSeconds":-5}}"#, "/spec/terminationGracePeriodSeconds", json!(1)),
            (
                r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":1},"periodSeconds":0}}]}}"#,
                "/spec/containers/0/livenessProbe",
                json!({"httpGet": {"path": "/", "port": 1, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10,
                    "successThreshold": 1, "failureThreshold": 3}),
            ),
        ],
    );
    let template = |spec: &str| format!(r#"{{"template":{{"spec":{spec}}}}}"#);
    let negative = template(r#"{"terminationGracePeriodSeconds":-5}"#);
    let limits = template(r#"{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}"#);
    check(
        "podtemplates",
        &[
            (&negative, "/template/spec/terminationGracePeriodSeconds", json!(-5)),
            (&negative, "/template/spec/enableServiceLinks", Value::Null),
            (&limits, "/template/spec/containers/0/resources/requests", Value::Null),
        ],
    );
}

#[test]
fn workloads() {
    let labels = r#"{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}"#;
    check(
        "replicationcontrollers",
        &[
            (labels, "/spec/selector", json!({"a": "b"})),
            (labels, "/metadata/labels", json!({"a": "b"})),
            (labels, "/spec/replicas", json!(1)),
        ],
    );
    let both = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
    check(
        "apps/deployments",
        &[
            ("{}", "/spec/strategy/rollingUpdate", both),
            (r#"{"spec":{"strategy":{"type":"Recreate"}}}"#, "/spec/strategy/rollingUpdate", Value::Null),
        ],
    );
    check(
        "apps/daemonsets",
        &[("{}", "/spec/updateStrategy/rollingUpdate", json!({"maxUnavailable": 1, "maxSurge": 0}))],
    );
    let rolling = "/spec/updateStrategy/rollingUpdate";
    check(
        "apps/statefulsets",
        &[
            ("{}", rolling, json!({"partition": 0})),
            (r#"{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}"#, rolling, Value::Null),
            (
                r#"{"spec":{"volumeClaimTemplates":[{}]}}"#,
                "/spec/volumeClaimTemplates/0",
                json!({"metadata": {},
                    "spec": {"resources": {}, "volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}),
            ),
        ],
    );
}

/// What jobs are filled in with is left out where a job is only a template.
#[test]
fn jobs() {
    check(
        "batch/jobs",
        &[
            (
                "{}",
                "/spec",
                json!({"parallelism": 1, "completions": 1, "backoffLimit": 6, "manualSelector": false, "suspend": false,
                    "completionMode": "NonIndexed", "podReplacementPolicy": "TerminatingOrFailed",
                    "template": filled("batch/jobs", "{}")["spec"]["template"]}),
            ),
            (r#"{"spec":{"parallelism":2}}"#, "/spec/completions", Value::Null),
            (r#"{"spec":{"backoffLimitPerIndex":1}}"#, "/spec/backoffLimit", json!(i32::MAX)),
            (r#"{"spec":{"podFailurePolicy":{}}}"#, "/spec/podReplacementPolicy", json!("Failed")),
            (r#"{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}"#, "/metadata/labels", json!({"a": "b"})),
        ],
    );
    let of_template = filled("batch/cronjobs", "{}")["spec"]["jobTemplate"].clone();
    let members: Vec<&String> = of_template["spec"].as_object().expect("a spec").keys().collect();
    assert_eq!(members, ["template"], "{of_template}");
    check(
        "batch/cronjobs",
        &[(
            r#"{"spec":{"jobTemplate":{"spec":{"podFailurePolicy":{"rules":[{"onPodConditions":[{"type":"T"}]}]}}}}}"#,
            "/spec/jobTemplate/spec/podFailurePolicy/rules/0/onPodConditions/0/status",
            json!("True"),
        )],
    );
}

#[test]
fn services() {
    let port = r#"{"spec":{"ports":[{"port":80}]}}"#;
    let balancer =
        r#"{"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"},{"hostname":"h"}]}}}"#;
    check(
        "services",
        &[
            (port, "/spec/ports/0/targetPort", json!(80)),
            (r#"{"spec":{"ports":[{"port":80,"targetPort":""}]}}"#, "/spec/ports/0/targetPort", json!(80)),
            (port, "/spec/internalTrafficPolicy", json!("Cluster")),
            (port, "/spec/externalTrafficPolicy", Value::Null),
            (r#"{"spec":{"externalIPs":["1.2.3.4"]}}"#, "/spec/externalTrafficPolicy", json!("Cluster")),
            (r#"{"spec":{"type":"NodePort"}}"#, "/spec/externalTrafficPolicy", json!("Cluster")),
            (r#"{"spec":{"type":"ExternalName"}}"#, "/spec/internalTrafficPolicy", Value::Null),
            (balancer, "/spec/allocateLoadBalancerNodePorts", json!(true)),
            (balancer, "/status/loadBalancer/ingress/0/ipMode", json!("VIP")),
            (balancer, "/status/loadBalancer/ingress/1/ipMode", Value::Null),
            (r#"{"spec":{"sessionAffinityConfig":{"clientIP":{}}}}"#, "/spec/sessionAffinityConfig", Value::Null),
            (
                r#"{"spec":{"sessionAffinity":"ClientIP"}}"#,
                "/spec/sessionAffinityConfig/clientIP/timeoutSeconds",
                json!(10800),
            ),
        ],
    );
}

#[test]
fn the_rest() {
    check("namespaces", &[("{}", "/metadata/labels", json!({"kubernetes.io/metadata.name": "n"}))]);
    check("nodes", &[(r#"{"status":{"capacity":{"cpu":"1"}}}"#, "/status/allocatable", json!({"cpu": "1"}))]);
    let range = r#"{"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},"min":{"memory":"1"}},{"type":"Pod","max":{"cpu":"2"}}]}}"#;
    check(
        "limitranges",
        &[
            (range, "/spec/limits/0/default", json!({"cpu": "2"})),
            (range, "/spec/limits/0/defaultRequest", json!({"cpu": "2", "memory": "1"})),
            (range, "/spec/limits/1/default", Value::Null),
        ],
    );
    check("resourcequotas", &[(r#"{"spec":{"hard":{"cpu":"1n"}}}"#, "/spec/hard/cpu", json!("1m"))]);
    check(
        "networking.k8s.io/networkpolicies",
        &[
            ("{}", "/spec/policyTypes", json!(["Ingress"])),
            (r#"{"spec":{"egress":[{}]}}"#, "/spec/policyTypes", json!(["Ingress", "Egress"])),
        ],
    );
    let class = r#"{"spec":{"parameters":{"kind":"K","name":"n"}}}"#;
    check("networking.k8s.io/ingressclasses", &[(class, "/spec/parameters/scope", json!("Cluster"))]);
    let bound = r#"{"roleRef":{"kind":"Role"},"subjects":[{"kind":"User"},{"kind":"ServiceAccount"}]}"#;
    check(
        "rbac.authorization.k8s.io/rolebindings",
        &[
            (bound, "/roleRef/apiGroup", json!("rbac.authorization.k8s.io")),
            (bound, "/subjects/0/apiGroup", json!("rbac.authorization.k8s.io")),
            (bound, "/subjects/1/apiGroup", Value::Null),
        ],
    );
    check(
        "discovery.k8s.io/endpointslices",
        &[(r#"{"ports":[{}]}"#, "/ports/0", json!({"name": "", "protocol": "TCP"}))],
    );
    let definition = r#"{"spec":{"names":{"kind":"Apple"},"conversion":{"webhook":{"clientConfig":{"service":{}}}}}}"#;
    check(
        "apiextensions.k8s.io/customresourcedefinitions",
        &[
            ("{}", "/spec/conversion", json!({"strategy": "None"})),
            (definition, "/spec/names/singular", json!("apple")),
            (definition, "/spec/names/listKind", json!("AppleList")),
            (definition, "/spec/conversion/webhook/clientConfig/service/port", json!(443)),
        ],
    );
}

/// What is stored is shown by the cache as it was written, and read with defaults elsewhere: both must be the same.
#[test]
fn what_is_prepared_needs_no_more_defaults() {
    // Upstream, too, gives a default to a field that its feature being off took away.
    let gates = kinds::gates::SWITCHED.iter().fold(feature_gates::Gates::default(), |all, own| all.with(*own, true));
    let cx = kinds::rules::RuleContext { gates, ..super::context() };
    for rules in kinds::all().filter(|rules| rules.info().storage.is_some()) {
        let info = rules.info();
        let template = r#"{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
        let texts = [
            "{}".to_owned(),
            format!(r#"{{"spec":{{"template":{template}}}}}"#),
            r#"{"spec":{"type":"LoadBalancer","resources":{"requests":{"storage":"1"}},"containers":[{"name":"c"}]}}"#
                .into(),
        ];
        for text in texts {
            let mut object = rules.new_object();
            if !api_machinery::json::decode(text.as_bytes(), object.as_reflect_mut())
                .is_ok_and(|one| one.problems.is_empty())
            {
                continue;
            }
            object.meta_mut().name = "n".into();
            object.meta_mut().uid = "u".into();
            rules.set_defaults(&mut *object);
            rules.prepare_create(&cx, &mut *object);
            let written = json::encode(object.as_reflect());
            rules.set_defaults(&mut *object);
            assert_eq!(written, json::encode(object.as_reflect()), "{}/{} {text}", info.group, info.resource);
        }
    }
}
