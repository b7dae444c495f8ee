//! What ingresses, their classes and network policies are told, by what is wrong with them.

use api_machinery::field_path::ErrorList;
use api_machinery::reflect::Reflect;
use api_types::networking_v1::{Ingress, IngressClass, NetworkPolicy};
use feature_gates::Gates;

use crate::rules::{Endpoint, RuleContext, TypedRules};

fn read<T: Default + Reflect>(text: &str) -> T {
    let mut object = T::default();
    api_machinery::json::decode(text.as_bytes(), &mut object).expect("an object");
    object
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn ingress(spec: &str) -> Ingress {
    read(&format!(r#"{{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","spec":{spec}}}"#))
}

fn path(path: &str, path_type: &str) -> String {
    let backend = r#""backend":{"service":{"name":"s","port":{"number":80}}}"#;
    format!(r#"{{"rules":[{{"http":{{"paths":[{{"path":"{path}","pathType":"{path_type}",{backend}}}]}}}}]}}"#)
}

fn backend(backend: &str) -> String {
    format!(r#"{{"defaultBackend":{backend}}}"#)
}

fn ingress_texts(spec: &str) -> Vec<String> {
    texts(&super::ingress_validation::validate(&ingress(spec), &Gates::default()))
}

#[test]
fn ingresses_route_something() {
    for (spec, expected) in [
        ("{}", &["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"][..]),
        (r#"{"rules":[{"host":"a.b"}]}"#, &[]),
        (
            r#"{"rules":[{"host":"1.2.3.4"}]}"#,
            &["spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address"],
        ),
        (r#"{"rules":[{"host":"*.a.b"}]}"#, &[]),
        (r#"{"rules":[{"http":{"paths":[]}}]}"#, &["spec.rules[0].http.paths: Required value"]),
        (
            r#"{"rules":[{"http":{"paths":[{"path":"/","backend":{}}]}}]}"#,
            &["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"],
        ),
    ] {
        assert_eq!(ingress_texts(spec), expected, "{spec}");
    }
    let found = ingress_texts(r#"{"rules":[{"host":"a_b"}],"ingressClassName":"A","tls":[{"secretName":"B"}]}"#);
    let fields: Vec<&str> = found.iter().filter_map(|text| text.split(": ").next()).collect();
    assert_eq!(fields, ["spec.rules[0].host", "spec.tls[0].secretName", "spec.ingressClassName"]);
}

#[test]
fn ingress_paths() {
    for (value, path_type, expected) in [
        ("/", "Prefix", &[][..]),
        ("", "Prefix", &["path: Invalid value: \"\": must be an absolute path"]),
        ("a", "Exact", &["path: Invalid value: \"a\": must be an absolute path"]),
        ("/a//b", "Exact", &["path: Invalid value: \"/a//b\": must not contain '//'"]),
        ("/a/../b", "Prefix", &["path: Invalid value: \"/a/../b\": must not contain '/../'"]),
        ("/a%2fb", "Prefix", &["path: Invalid value: \"/a%2fb\": must not contain '%2f'"]),
        ("/a/..", "Prefix", &["path: Invalid value: \"/a/..\": cannot end with '/..'"]),
        ("/a/.", "Prefix", &["path: Invalid value: \"/a/.\": cannot end with '/.'"]),
        ("", "ImplementationSpecific", &[]),
        ("/a//*", "ImplementationSpecific", &[]),
        ("a", "ImplementationSpecific", &["path: Invalid value: \"a\": must be an absolute path"]),
        (
            "/",
            "Regex",
            &["pathType: Unsupported value: \"Regex\": supported values: \"Exact\", \"ImplementationSpecific\", \
               \"Prefix\""],
        ),
    ] {
        let expected: Vec<String> = expected.iter().map(|text| format!("spec.rules[0].http.paths[0].{text}")).collect();
        assert_eq!(ingress_texts(&path(value, path_type)), expected, "{value} {path_type}");
    }
}

#[test]
fn ingress_backends() {
    for (text, expected) in [
        (r#"{"service":{"name":"s","port":{"name":"http"}}}"#, &[][..]),
        (r#"{"resource":{"apiGroup":"a.b","kind":"K","name":"n"}}"#, &[]),
        ("{}", &["spec.defaultBackend: Invalid value: \"\": resource or service backend is required"]),
        (
            r#"{"resource":{"kind":"","name":"n"},"service":{"name":"s"}}"#,
            &["spec.defaultBackend: Invalid value: \"\": cannot set both resource and service backends"],
        ),
        (
            r#"{"resource":{"kind":"","name":"a/b"}}"#,
            &[
                "spec.defaultBackend.resource.kind: Required value",
                "spec.defaultBackend.resource.name: Invalid value: \"a/b\": may not contain '/'",
            ],
        ),
        (
            r#"{"service":{"name":"","port":{"name":"a","number":1}}}"#,
            &[
                "spec.defaultBackend.service.name: Required value",
                "spec.defaultBackend: Invalid value: \"\": cannot set both port name & port number",
            ],
        ),
        (r#"{"service":{"name":"s"}}"#, &["spec.defaultBackend: Required value: port name or number is required"]),
        (
            r#"{"service":{"name":"s","port":{"number":70000}}}"#,
            &["spec.defaultBackend.service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive"],
        ),
    ] {
        assert_eq!(ingress_texts(&backend(text)), expected, "{text}");
    }
}

#[test]
fn ingress_classes_are_named_once() {
    let mut named = ingress(&path("/", "Prefix"));
    named.metadata.annotations.insert("kubernetes.io/ingress.class".into(), "a".into());
    let warning =
        "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead";
    assert_eq!(super::ingress::IngressRules::warnings(&named, None), [warning]);
    assert_eq!(super::ingress::IngressRules::warnings(&named, Some(&named)), Vec::<String>::new());
    named.spec.ingress_class_name = Some("b".into());
    let expected = "annotations.kubernetes.io/ingress.class: Invalid value: \"a\": must match `ingressClassName` when \
                    both are specified";
    assert_eq!(texts(&super::ingress_validation::validate(&named, &Gates::default())), [expected]);
    assert_eq!(
        texts(&super::ingress_validation::validate_update(&named, &named, &Gates::default())),
        Vec::<String>::new()
    );
}

#[test]
fn what_an_ingress_breaks_already_may_stay() {
    let bad = r#"{"tls":[{"secretName":"Bad"}],"rules":[{"host":"*.a.b","http":{"paths":[]}}]}"#;
    let old = ingress(bad);
    assert_eq!(ingress_texts(bad).len(), 2);
    assert_eq!(texts(&super::ingress_validation::validate_update(&old, &old, &Gates::default())), Vec::<String>::new());
}

#[test]
fn ingress_statuses() {
    let with =
        |ingress: &str| -> Ingress { read(&format!(r#"{{"status":{{"loadBalancer":{{"ingress":{ingress}}}}}}}"#)) };
    let old = with(r#"[{"ip":"010.0.0.1"}]"#);
    let new = with(r#"[{"ip":"010.0.0.1"},{"ip":"x"},{"hostname":"1.2.3.4"}]"#);
    let rules = |new: &Ingress| {
        super::ingress::IngressRules::validate_update(&RuleContext::default(), Endpoint::Status, new, &old)
    };
    assert_eq!(
        texts(&rules(&new)),
        [
            "status.loadBalancer.ingress[1].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or \
             2001:db8::ffff)",
            "status.loadBalancer.ingress[2].hostname: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address",
        ]
    );
    assert_eq!(
        super::ingress::IngressRules::status_warnings(&new),
        ["status.loadBalancer.ingress[0]: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\""]
    );
}

#[test]
fn classes() {
    let class = |spec: &str| -> IngressClass {
        read(&format!(r#"{{"apiVersion":"networking.k8s.io/v1","kind":"IngressClass","spec":{spec}}}"#))
    };
    let good = class(r#"{"controller":"a.b/c"}"#);
    for (spec, expected) in [
        (r#"{"controller":"a.b/c"}"#, &[][..]),
        (
            r#"{"controller":"a"}"#,
            &[
                "spec.controller: Invalid value: \"a\": field is immutable",
                "spec.controller: Invalid value: \"a\": must be a domain-prefixed path (such as \"acme.io/foo\")",
            ],
        ),
        (
            r#"{"controller":"a.b/c","parameters":{"kind":"K","name":"","scope":"Namespace"}}"#,
            &[
                "spec.parameters.name: Required value",
                "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
            ],
        ),
        (
            r#"{"controller":"a.b/c","parameters":{"kind":"K","name":"n","scope":"Cluster","namespace":"n"}}"#,
            &["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
        ),
        (
            r#"{"controller":"a.b/c","parameters":{"kind":"K","name":"n","scope":"Zone"}}"#,
            &["spec.parameters.scope: Unsupported value: \"Zone\": supported values: \"Cluster\", \"Namespace\""],
        ),
        (r#"{"controller":"a.b/c","parameters":{"kind":"K","name":"n"}}"#, &["spec.parameters.scope: Required value"]),
    ] {
        let new = class(spec);
        let errors = super::ingress_class::IngressClassRules::validate_update(
            &RuleContext::default(),
            Endpoint::Main,
            &new,
            &good,
        );
        assert_eq!(texts(&errors), expected, "{spec}");
    }
}

fn policy(spec: &str) -> NetworkPolicy {
    read(&format!(r#"{{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","spec":{spec}}}"#))
}

fn policy_texts(spec: &str, old: Option<&str>) -> Vec<String> {
    let old = old.map(policy);
    texts(&super::network_policy_validation::validate(
        &policy(spec).spec,
        old.as_ref().map(|old| &old.spec),
        &Gates::default(),
    ))
}

#[test]
fn policies() {
    for (spec, expected) in [
        (r#"{"podSelector":{}}"#, &[][..]),
        (
            r#"{"policyTypes":["Ingress","Odd"]}"#,
            &["spec.policyTypes[1]: Unsupported value: \"Odd\": supported values: \"Ingress\", \"Egress\""],
        ),
        (
            r#"{"policyTypes":["Ingress","Odd","Egress"]}"#,
            &["spec.policyTypes: Invalid value: [\"Ingress\",\"Odd\",\"Egress\"]: may not specify more than two \
               policyTypes"],
        ),
        (
            r#"{"ingress":[{"ports":[{"protocol":"ICMP"}]}]}"#,
            &["spec.ingress[0].ports[0].protocol: Unsupported value: \"ICMP\": supported values: \"TCP\", \"UDP\", \
               \"SCTP\""],
        ),
        (
            r#"{"egress":[{"ports":[{"port":80,"endPort":79},{"port":"a","endPort":1},{"endPort":1}]}]}"#,
            &[
                "spec.egress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`",
                "spec.egress[0].ports[1].endPort: Invalid value: 1: may not be specified when `port` is non-numeric",
                "spec.egress[0].ports[2].endPort: Invalid value: 1: may not be specified when `port` is not specified",
            ],
        ),
        (r#"{"ingress":[{"from":[{}]}]}"#, &["spec.ingress[0].from[0]: Required value: must specify a peer"]),
        (
            r#"{"egress":[{"to":[{"podSelector":{},"ipBlock":{"cidr":"10.0.0.0/8"}}]}]}"#,
            &["spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer"],
        ),
        (
            r#"{"ingress":[{"from":[{"ipBlock":{"cidr":""}}]}]}"#,
            &["spec.ingress[0].from[0].ipBlock.cidr: Required value"],
        ),
        (
            r#"{"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16","11.0.0.0/16","10.0.0.0/8"]}}]}]}"#,
            &[
                "spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: \"11.0.0.0/16\": must be a strict subset of \
                 `cidr`",
                "spec.ingress[0].from[0].ipBlock.except[2]: Invalid value: \"10.0.0.0/8\": must be a strict subset of \
                 `cidr`",
            ],
        ),
        (
            r#"{"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.1/8"}}]}]}"#,
            &[
                "spec.ingress[0].from[0].ipBlock.cidr: Invalid value: \"10.0.0.1/8\": must not have bits set beyond the \
               prefix length",
            ],
        ),
    ] {
        assert_eq!(policy_texts(spec, None), expected, "{spec}");
    }
}

#[test]
fn stored_blocks_pass_and_are_warned_of() {
    let spec = r#"{"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.1/8"}}]}]}"#;
    assert_eq!(policy_texts(spec, Some(spec)), Vec::<String>::new());
    assert_eq!(
        super::network_policy_validation::warnings(&policy(spec).spec),
        ["spec.ingress[0].from[0].ipBlock.cidr: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \
          \"10.0.0.0/8\" or \"10.0.0.1/32\"?)"]
    );
}

#[test]
fn a_class_that_changes_its_controller_is_told_that_first() {
    let class = |spec: &str| read::<IngressClass>(&format!(r#"{{"spec":{spec}}}"#));
    let update = |new: &str, old: &str| {
        let cx = RuleContext::default();
        texts(&super::ingress_class::IngressClassRules::validate_update(&cx, Endpoint::Main, &class(new), &class(old)))
    };
    assert_eq!(
        update("{}", r#"{"controller":"a.b/c"}"#),
        ["spec.controller: Invalid value: \"\": field is immutable", "spec.controller: Required value"]
    );
    // An empty namespace is there, and wrong.
    let parameters =
        r#"{"controller":"a.b/c","parameters":{"kind":"K","name":"n","scope":"Namespace","namespace":""}}"#;
    let found = update(parameters, parameters);
    assert!(
        found.len() == 1 && found[0].starts_with("spec.parameters.namespace: Invalid value: \"\": a lowercase"),
        "{found:?}"
    );
}
