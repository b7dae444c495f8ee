//! Levels and labels from tables.

use api_types::core_v1::Pod;
use serde_json::{Value, json};
use std::sync::Arc;

use super::*;
use crate::Settings;
use crate::plugins::testing::{Fixture, create};

fn pod(spec: Value) -> Pod {
    let mut value = json!({"metadata": {"name": "x"}, "spec": {"containers": [{"name": "a"}]}});
    merge(&mut value["spec"], spec);
    api_machinery::object::from_value(&value).expect("a pod")
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn good() -> Value {
    json!({"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "a", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]})
}

fn namespace(labels: &[(&str, &str)]) -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = "ns".into();
    let label = |(name, value): &(&str, &str)| (format!("pod-security.kubernetes.io/{name}"), (*value).to_owned());
    namespace.metadata.labels = labels.iter().map(label).collect();
    namespace
}

fn attributes(resource: &str) -> Attributes {
    Attributes { namespace: "ns".into(), ..create("", resource) }
}

/// What a pod breaks of a level.
async fn refused(level: &str, spec: Value) -> String {
    let fixture = Fixture::default().with(vec![namespace(&[("enforce", level)])]);
    match fixture.validate(&ENTRY, &attributes("pods"), &pod(spec)).await {
        Ok(()) => String::new(),
        Err(error) => {
            assert_eq!(error.code, 403);
            error.message
        }
    }
}

#[tokio::test]
async fn baseline_forbids_what_reaches_out() {
    let container = |own: Value| {
        let mut container = json!({"name": "a"});
        merge(&mut container, own);
        json!({"containers": [container]})
    };
    let security = |own: Value| container(json!({"securityContext": own}));
    for (spec, expected) in [
        (json!({}), ""),
        (json!({"hostNetwork": true, "hostIPC": true}), "host namespaces (hostNetwork=true, hostIPC=true)"),
        (json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}), "hostPath volumes (volume \"v\")"),
        (
            container(json!({"ports": [{"hostPort": 80, "containerPort": 80}]})),
            "hostPort (container \"a\" uses hostPort 80)",
        ),
        (
            security(json!({"privileged": true})),
            "privileged (container \"a\" must not set securityContext.privileged=true)",
        ),
        (
            security(json!({"capabilities": {"add": ["SYS_ADMIN", "CHOWN"]}})),
            "non-default capabilities (container \"a\" must not include \"SYS_ADMIN\" in securityContext.capabilities.add)",
        ),
        (
            security(json!({"procMount": "Unmasked"})),
            "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            security(json!({"seLinuxOptions": {"type": "spc_t", "user": "u"}})),
            "seLinuxOptions (container \"a\" set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may not be set)",
        ),
        (
            json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
            "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")",
        ),
        (
            container(json!({"livenessProbe": {"httpGet": {"host": "10.0.0.1", "port": 80}}})),
            "probe or lifecycle host (container \"a\" uses probe or lifecycle host \"10.0.0.1\")",
        ),
    ] {
        let message = refused("baseline", spec).await;
        let expected = match expected {
            "" => String::new(),
            text => format!("pods \"x\" is forbidden: violates PodSecurity \"baseline:latest\": {text}"),
        };
        assert_eq!(message, expected);
        assert_eq!(refused("privileged", json!({"hostNetwork": true})).await, "");
    }
}

#[tokio::test]
async fn restricted_wants_to_be_told() {
    assert_eq!(refused("restricted", good()).await, "");
    let message = refused("restricted", json!({"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]})).await;
    assert_eq!(
        message,
        "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false \
         (container \"a\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities \
         (container \"a\" must set securityContext.capabilities.drop=[\"ALL\"]), restricted volume types (volume \"v\" \
         uses restricted volume type \"nfs\"), runAsNonRoot != true (pod or container \"a\" must set \
         securityContext.runAsNonRoot=true), seccompProfile (pod or container \"a\" must set \
         securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    let mut root = good();
    merge(&mut root, json!({"securityContext": {"runAsUser": 0}}));
    assert!(refused("restricted", root).await.ends_with("runAsUser=0 (pod must not set runAsUser=0)"));
}

#[tokio::test]
async fn who_enforces_is_warned_of_what_makes_pods() {
    let namespaces = vec![namespace(&[("enforce", "baseline"), ("enforce-version", "v1.30")])];
    let fixture = Fixture::default().with(namespaces);
    let mut attributes = attributes("deployments");
    attributes.group = "apps".into();
    let mut deployment = Deployment::default();
    deployment.spec.template.spec.host_pid = true;
    fixture.validate(&ENTRY, &attributes, &deployment).await.unwrap();
    assert_eq!(
        attributes.warnings.take(),
        ["would violate PodSecurity \"baseline:v1.30\": host namespaces (hostPID=true)"]
    );
}

#[tokio::test]
async fn labels_must_make_sense() {
    let fixture = Fixture::default();
    let bad = namespace(&[("enforce", "strict"), ("warn-version", "1.2")]);
    let error = fixture.validate(&ENTRY, &create("", "namespaces"), &bad).await.unwrap_err();
    assert_eq!(error.code, 422);
    assert!(error.message.contains("must be one of privileged, baseline, restricted"), "{}", error.message);
    assert!(error.message.contains("must be \"latest\" or \"v1.x\""), "{}", error.message);
    let update = Attributes { operation: Operation::Update, ..create("", "namespaces") };
    fixture.validate_update(&ENTRY, &update, &bad, &bad).await.unwrap();
}

#[tokio::test]
async fn existing_pods_are_warned_of_when_a_level_is_raised() {
    let mut reaching = pod(json!({"hostPID": true}));
    reaching.metadata.namespace = "ns".into();
    let mut other = reaching.clone();
    other.metadata.name = "y".into();
    let fixture = Fixture::default().with(vec![reaching, other]);
    let update = Attributes { operation: Operation::Update, name: "ns".into(), ..create("", "namespaces") };
    let (before, after) = (namespace(&[]), namespace(&[("enforce", "baseline")]));
    fixture.validate_update(&ENTRY, &update, &after, &before).await.unwrap();
    let warnings = update.warnings.take();
    assert_eq!(
        warnings,
        [
            "existing pods in namespace \"ns\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "x (and 1 other pod): host namespaces"
        ]
    );
}

fn config() -> Settings {
    let config = json!({
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": "baseline", "warn": "restricted"},
        "exemptions": {"usernames": ["boss"], "namespaces": ["free"], "runtimeClasses": ["kata"]},
    });
    let mut settings = Settings::default();
    settings.configured.put(Arc::new(PodSecurityConfig::read(&config).unwrap()));
    settings
}

#[tokio::test]
async fn a_configuration_has_defaults_and_exemptions() {
    let named = |name: &str, labels: &[(&str, &str)]| {
        let mut namespace = namespace(labels);
        namespace.metadata.name = name.into();
        namespace
    };
    let namespaces =
        vec![named("ns", &[]), named("free", &[]), named("open", &[("enforce", "privileged"), ("warn", "privileged")])];
    let fixture = Fixture::default().with(namespaces);
    let plugin = (ENTRY.build)(&config());
    for (namespace, user, spec, refused, warned) in [
        ("ns", "", json!({"hostNetwork": true}), true, false),
        ("ns", "", json!({}), false, true),
        ("ns", "", good(), false, false),
        ("open", "", json!({"hostNetwork": true}), false, false),
        ("free", "", json!({"hostNetwork": true}), false, false),
        ("ns", "boss", json!({"hostNetwork": true}), false, false),
        ("ns", "", json!({"hostNetwork": true, "runtimeClassName": "kata"}), false, false),
    ] {
        let mut attributes = Attributes { namespace: namespace.into(), ..create("", "pods") };
        Arc::make_mut(&mut attributes.user).username = user.into();
        let object = pod(spec.clone());
        let outcome = plugin.validate(&fixture.context(), &attributes, Some(&object), None).await;
        assert_eq!(outcome.is_err(), refused, "{namespace} {user} {spec}");
        assert_eq!(!attributes.warnings.take().is_empty(), warned, "{namespace} {user} {spec}");
    }
}

#[tokio::test]
async fn the_audit_log_is_told() {
    let labels = [("enforce", "baseline"), ("audit", "restricted")];
    let mut free = namespace(&[]);
    free.metadata.name = "free".into();
    let fixture = Fixture::default().with(vec![namespace(&labels), free]);
    let plugin = (ENTRY.build)(&config());
    for (space, user, spec, refused, expected) in [
        ("ns", "", good(), false, vec![("enforce-policy", "baseline:latest")]),
        ("ns", "boss", json!({"hostNetwork": true}), false, vec![("exempt", "user")]),
        ("free", "", json!({"hostNetwork": true}), false, vec![("exempt", "namespace")]),
        ("ns", "", json!({"runtimeClassName": "kata"}), false, vec![("exempt", "runtimeClass")]),
        (
            "ns",
            "",
            json!({"hostNetwork": true}),
            true,
            vec![("enforce-policy", "baseline:latest"), ("audit-violations", "")],
        ),
    ] {
        let mut attributes = Attributes { namespace: space.into(), ..create("", "pods") };
        Arc::make_mut(&mut attributes.user).username = user.into();
        let outcome = plugin.validate(&fixture.context(), &attributes, Some(&pod(spec.clone())), None).await;
        assert_eq!(outcome.is_err(), refused, "{space} {user} {spec}");
        let told = attributes.annotations.take();
        let keys: Vec<&str> = told.iter().map(|(key, _)| key.as_str()).collect();
        let wanted: Vec<String> = expected.iter().map(|(key, _)| format!("pod-security.kubernetes.io/{key}")).collect();
        assert_eq!(keys, wanted, "{space} {user} {spec}");
        for ((_, text), (key, wanted)) in told.iter().zip(&expected) {
            let violation = *key == "audit-violations"
                && text.starts_with("would violate PodSecurity \"restricted:latest\": host namespaces");
            assert!(text == wanted || violation, "{text}");
        }
    }
}

/// What the audit log is told, without what all keys have in front.
fn told(attributes: &Attributes) -> Vec<(String, String)> {
    let short = |(key, text): (String, String)| (key.replace("pod-security.kubernetes.io/", ""), text);
    attributes.annotations.take().into_iter().map(short).collect()
}

fn update(resource: &str) -> Attributes {
    Attributes { operation: Operation::Update, ..attributes(resource) }
}

#[tokio::test]
async fn where_all_is_privileged_the_audit_log_is_told_so_of_whatever_is_written() {
    let all =
        [("enforce", "privileged"), ("enforce-version", "v1.30"), ("warn", "privileged"), ("audit", "privileged")];
    let plugin = (ENTRY.build)(&config());
    let enforced = |text: &str| vec![("enforce-policy".to_owned(), text.to_owned())];
    let (same, exempt) = (pod(json!({})), pod(json!({"runtimeClassName": "kata"})));
    let other_image = pod(json!({"containers": [{"name": "a", "image": "b"}]}));
    for (name, labels, object, expected) in [
        ("no change that counts", &all[..], &same, enforced("privileged:latest")),
        ("another image", &all[..], &other_image, enforced("privileged:latest")),
        ("an exempt class", &all[..], &exempt, enforced("privileged:latest")),
        ("a warning is wanted", &all[..2], &same, vec![]),
        ("a warning is wanted, and another image", &all[..2], &other_image, enforced("privileged:v1.30")),
    ] {
        let (fixture, attributes) = (Fixture::default().with(vec![namespace(labels)]), update("pods"));
        plugin.validate(&fixture.context(), &attributes, Some(object), Some(&same)).await.unwrap();
        assert_eq!(told(&attributes), expected, "{name}");
    }
}

#[tokio::test]
async fn without_its_namespace_a_pod_is_refused_and_what_makes_pods_is_not() {
    let fixture = Fixture::default();
    let (of_pod, of_deployment) =
        (attributes("pods"), Attributes { group: "apps".into(), ..attributes("deployments") });
    let error = fixture.validate(&ENTRY, &of_pod, &pod(json!({}))).await.unwrap_err();
    let text = "Internal error occurred: failed to lookup namespace \"ns\"";
    assert_eq!((error.code, error.message.as_str()), (500, text));
    let why = "namespaces \"ns\" not found";
    assert_eq!(told(&of_pod), [("error".to_owned(), format!("{text}: {why}"))]);
    fixture.validate(&ENTRY, &of_deployment, &Deployment::default()).await.unwrap();
    assert_eq!(told(&of_deployment), [("error".to_owned(), format!("failed to lookup namespace \"ns\": {why}"))]);
}

#[tokio::test]
async fn labels_that_make_no_sense_are_for_the_audit_log() {
    let misread = |label: &str, value: &str, why: &str| {
        format!(
            "Failed to parse policy: metadata.labels[pod-security.kubernetes.io/{label}]: Invalid value: \"{value}\": {why}"
        )
    };
    let (level, version) = ("must be one of privileged, baseline, restricted", "must be \"latest\" or \"v1.x\"");
    let ready = pod(good());
    for (label, value, why, enforced) in [
        ("enforce", "strict", level, "restricted:latest"),
        ("audit", "strict", level, "privileged:latest"),
        ("warn-version", "1", version, "privileged:latest"),
    ] {
        let fixture = Fixture::default().with(vec![namespace(&[(label, value)])]);
        let error = ("error".to_owned(), misread(label, value, why));
        let of_pod = attributes("pods");
        fixture.validate(&ENTRY, &of_pod, &ready).await.unwrap();
        assert_eq!(told(&of_pod), [error.clone(), ("enforce-policy".to_owned(), enforced.to_owned())], "{label}");
        let of_deployment = Attributes { group: "apps".into(), ..attributes("deployments") };
        fixture.validate(&ENTRY, &of_deployment, &Deployment::default()).await.unwrap();
        assert_eq!(told(&of_deployment), [error], "{label}");
        let unchanged = update("pods");
        fixture.validate_update(&ENTRY, &unchanged, &ready, &ready).await.unwrap();
        assert_eq!(told(&unchanged), [], "{label}");
    }
}

#[tokio::test]
async fn labels_of_exempt_namespaces_do_nothing_and_say_so() {
    let plugin = (ENTRY.build)(&config());
    let labelled = |labels: &[(&str, &str)]| {
        let mut namespace = namespace(labels);
        namespace.metadata.name = "free".into();
        namespace
    };
    let text = |policy: &str| {
        vec![format!("namespace \"free\" is exempt from Pod Security, and the policy ({policy}) will be ignored")]
    };
    for (labels, expected) in [
        (&[][..], vec![]),
        (&[("enforce", "privileged"), ("warn", "privileged")], vec![]),
        (&[("enforce", "restricted"), ("enforce-version", "v1.30")], text("enforce=restricted:v1.30")),
        (&[("enforce", "baseline"), ("audit", "baseline")], text("enforce=baseline:latest, audit=baseline:latest")),
    ] {
        let attributes = Attributes { name: "free".into(), ..create("", "namespaces") };
        let context = Fixture::default().context();
        plugin.validate(&context, &attributes, Some(&labelled(labels)), None).await.unwrap();
        assert_eq!(attributes.warnings.take(), expected, "{labels:?}");
    }
}
