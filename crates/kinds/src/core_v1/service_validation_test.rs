//! What Services are told, by what is wrong with them, and what a change of type drops.

use super::*;
use crate::rules::TypedRules;

fn service(spec: &str) -> Service {
    let text = format!(r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"s"}},"spec":{spec}}}"#);
    let mut service = Service::default();
    api_machinery::json::decode(text.as_bytes(), &mut service).expect("a service");
    api_machinery::defaults::fill(&mut service);
    super::super::service::ServiceRules::set_defaults(&mut service);
    service
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn specs() {
    for (spec, expected) in [
        (r#"{"ports":[{"port":80}]}"#, &[][..]),
        (r#"{}"#, &["spec.ports: Required value"]),
        (r#"{"clusterIPs":["None"]}"#, &[]),
        (
            r#"{"type":"NodePort","clusterIPs":["None"],"ports":[{"port":80}]}"#,
            &["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
        ),
        (r#"{"type":"ExternalName"}"#, &["spec.externalName: Required value"]),
        (
            r#"{"ports":[{"port":80},{"port":80,"name":"b"}]}"#,
            &[
                "spec.ports[0].name: Required value",
                "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\
                 \"TargetPort\":0,\"NodePort\":0}",
            ],
        ),
        (
            r#"{"ports":[{"port":80,"nodePort":30000}]}"#,
            &["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        (
            r#"{"ports":[{"port":80}],"loadBalancerSourceRanges":["10.0.0.0/8"]}"#,
            &["spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        ),
        (
            r#"{"ports":[{"port":80}],"externalIPs":["127.0.0.1"]}"#,
            &["spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, \
               ::1/128)"],
        ),
    ] {
        assert_eq!(texts(&validate(&service(spec), None, &Gates::default())), expected, "{spec}");
    }
}

#[test]
fn ranges_in_annotations() {
    let with = |type_: &str, ranges: &str| {
        let mut service = service(&format!(r#"{{"type":"{type_}","ports":[{{"port":80}}]}}"#));
        service.metadata.annotations.insert(SOURCE_RANGES.into(), ranges.into());
        service
    };
    let at = "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]";
    for (type_, ranges, expected) in [
        ("LoadBalancer", " 10.0.0.0/8, 11.0.0.0/8 ", &[][..]),
        ("LoadBalancer", " ", &[]),
        ("ClusterIP", "10.0.0.0/8", &["Forbidden: may only be used when `type` is 'LoadBalancer'"]),
        (
            "LoadBalancer",
            "10.0.0.0/8,x",
            &["Invalid value: \"x\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"],
        ),
    ] {
        let expected: Vec<String> = expected.iter().map(|text| format!("{at}: {text}")).collect();
        assert_eq!(texts(&validate(&with(type_, ranges), None, &Gates::default())), expected, "{ranges}");
    }
    let stored = with("LoadBalancer", "x");
    assert_eq!(texts(&validate(&stored, Some(&stored), &Gates::default())), Vec::<String>::new());
}

#[test]
fn addresses_stay_and_types_change() {
    let old = service(
        r#"{"type":"NodePort","clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ports":[{"port":80,"nodePort":30080}]}"#,
    );
    let mut new = old.clone();
    new.spec.cluster_ips = vec!["10.0.0.2".into()];
    let found = texts(&validate_update(&new, &old, &Gates::default()));
    assert_eq!(found, ["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"]);

    let mut new = old.clone();
    new.spec.type_ = "ClusterIP".into();
    drop_other_types_fields(&mut new, &old);
    assert_eq!((new.spec.ports[0].node_port, new.spec.external_traffic_policy.as_str()), (0, ""));
    assert_eq!(texts(&validate_update(&new, &old, &Gates::default())), Vec::<String>::new());
}
