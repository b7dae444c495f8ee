//! What pods and templates are warned of, by what they hold.

use api_types::core_v1::{EnvVar, LocalObjectReference};

use super::*;

#[test]
fn warns_of_what_has_no_effect() {
    let variable = |value: &str| EnvVar { name: "A".into(), value: value.into(), value_from: None };
    let env = vec![variable("1"), variable("$(A)2"), variable("3")];
    let mut spec = PodSpec { containers: vec![Container { env, ..Container::default() }], ..PodSpec::default() };
    spec.node_selector.insert("beta.kubernetes.io/os".into(), "linux".into());
    spec.image_pull_secrets = vec![LocalObjectReference::default()];
    let texts = of(&Path::new("template"), &ObjectMeta::default(), &spec);
    assert_eq!(
        texts,
        [
            "template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" \
             instead",
            "template.spec.imagePullSecrets[0].name: invalid empty name \"\"",
            "template.spec.containers[0].env[2]: hides previous definition of \"A\", which may be dropped when \
             using apply",
        ]
    );
    assert!(of(&Path::nil(), &ObjectMeta::default(), &spec)[0].starts_with("spec.nodeSelector["));
}

fn told(spec: &str) -> Vec<String> {
    let mut read = PodSpec::default();
    api_machinery::json::decode(spec.as_bytes(), &mut read).expect("a spec");
    of(&Path::nil(), &ObjectMeta::default(), &read)
}

#[test]
fn places() {
    let required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]";
    let preferred = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference";
    let null = "labelSelector: a null labelSelector results in matching no pod";
    let master = "node-role.kubernetes.io/master is use \"node-role.kubernetes.io/control-plane\" instead";
    for (spec, expected) in [
        (
            r#"{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                {"matchExpressions":[{"key":"node-role.kubernetes.io/master","operator":"Exists"}]}]}}}}"#,
            format!("{required}.matchExpressions[0].key: {master}"),
        ),
        (
            r#"{"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,
                "preference":{"matchExpressions":[{"key":"a","operator":"In","values":["b","-"]}]}}]}}}"#,
            format!("{preferred}.matchExpressions[0].values[1]: - is invalid, a valid label must be"),
        ),
        (
            r#"{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a"}]}}}"#,
            format!("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].{null}"),
        ),
        (
            r#"{"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,
                "podAffinityTerm":{"topologyKey":"a"}}]}}}"#,
            format!(
                "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.{null}"
            ),
        ),
        (r#"{"topologySpreadConstraints":[{"topologyKey":"a"}]}"#, format!("spec.topologySpreadConstraints[0].{null}")),
    ] {
        let found = told(spec);
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?} {expected}");
    }
}

#[test]
fn volumes_whose_files_lie_over_each_other() {
    let claim = r#"{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1500m"}}}"#;
    let ephemeral = format!(r#"{{"name":"v","ephemeral":{{"volumeClaimTemplate":{{"spec":{claim}}}}}}}"#);
    for (volume, expected) in [
        (
            r#"{"name":"v","configMap":{"name":"m","items":[{"key":"a","path":"d"},{"key":"b","path":"d/e"},{"key":"c","path":"dd"}]}}"#,
            &["volume \"v\" (ConfigMap \"m\"): overlapping paths: \"d/e\" with \"d\""][..],
        ),
        (
            r#"{"name":"v","secret":{"secretName":"s","items":[{"key":"a","path":"d/e"},{"key":"b","path":"d"}]}}"#,
            &["volume \"v\" (Secret \"s\"): overlapping paths: \"d\" with \"d/e\""],
        ),
        (
            r#"{"name":"v","projected":{"sources":[{"secret":{"name":"s","items":[{"key":"a","path":"t"}]}},
                {"serviceAccountToken":{"path":"t"}},{}]}}"#,
            &[
                "volume \"v\" (Projected): overlapping paths: \"t\" (ServiceAccountToken) with \"t\" (Secret \"s\")",
                "volume \"v\" (Projected) has no sources provided",
            ],
        ),
        (
            r#"{"name":"v","gitRepo":{"repository":"r"}}"#,
            &["spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
        ),
        (
            &ephemeral,
            &["spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value \
               \"1500m\" is invalid, must be an integer"],
        ),
    ] {
        assert_eq!(told(&format!(r#"{{"volumes":[{volume}]}}"#)), expected, "{volume}");
    }
    let token = r#"{"serviceAccountToken":{"path":"t"}}"#;
    let volume = format!(r#"{{"name":"v","projected":{{"sources":[{}]}}}}"#, [token; 40].join(","));
    let volumes = [volume.as_str(); 3].join(",");
    assert_eq!(told(&format!(r#"{{"volumes":[{volumes}]}}"#)).len(), 1000, "of all volumes together");
}

#[test]
fn ports_that_clash() {
    for (first, second, expected) in [
        (r#"{"containerPort":80}"#, r#"{"containerPort":81}"#, &[][..]),
        (
            r#"{"containerPort":80}"#,
            r#"{"containerPort":80}"#,
            &["spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]"],
        ),
        (
            r#"{"containerPort":80,"hostPort":80}"#,
            r#"{"containerPort":80}"#,
            &["spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[0]"],
        ),
        (
            r#"{"containerPort":80,"hostPort":80}"#,
            r#"{"containerPort":80,"hostPort":80,"hostIP":"10.0.0.1"}"#,
            &["spec.containers[1].ports[0]: dangerously ambiguous port definition with spec.containers[0].ports[0]"],
        ),
        (
            r#"{"containerPort":80,"hostPort":80,"hostIP":"10.0.0.2"}"#,
            r#"{"containerPort":80,"hostPort":80,"hostIP":"10.0.0.1"}"#,
            &[],
        ),
        (
            r#"{"containerPort":80,"name":"a"}"#,
            r#"{"containerPort":81,"name":"a"}"#,
            &["spec.containers[1].ports[0]: duplicate port name \"a\" with spec.containers[0].ports[0], services and \
               probes that select ports by name will use spec.containers[0].ports[0]"],
        ),
        (
            r#"{"containerPort":80}"#,
            r#"{"containerPort":81,"hostIP":"10.0.0.1","protocol":"TCP"}"#,
            &["spec.containers[1].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:81 \
               Protocol:TCP HostIP:10.0.0.1}"],
        ),
    ] {
        let spec = format!(r#"{{"containers":[{{"name":"a","ports":[{first}]}},{{"name":"b","ports":[{second}]}}]}}"#);
        assert_eq!(told(&spec), expected, "{spec}");
    }
    let same = vec![r#"{"containerPort":80}"#; 3000].join(",");
    assert_eq!(told(&format!(r#"{{"containers":[{{"name":"a","ports":[{same}]}}]}}"#)).len(), 1000);
}

#[test]
fn amounts_addresses_and_profiles() {
    for (spec, expected) in [
        (
            r#"{"overhead":{"memory":"100m"}}"#,
            "spec.overhead[memory]: fractional byte value \"100m\" is invalid, must be an integer",
        ),
        (
            r#"{"initContainers":[{"resources":{"limits":{"memory":"100m","cpu":"100m"}}}]}"#,
            "spec.initContainers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, must be an \
             integer",
        ),
        (
            r#"{"dnsConfig":{"nameservers":["010.0.0.1"]}}"#,
            "spec.dnsConfig.nameservers[0]: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\"",
        ),
        (
            r#"{"hostAliases":[{"ip":"FD00::1"}]}"#,
            "spec.hostAliases[0].ip: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")",
        ),
    ] {
        assert_eq!(told(spec), [expected], "{spec}");
    }
    let mut meta = ObjectMeta::default();
    meta.annotations.insert(SECCOMP_POD.into(), "runtime/default".into());
    let expected = "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the \
                    \"seccompProfile\" field instead";
    assert_eq!(of(&Path::nil(), &meta, &PodSpec::default()), [expected]);
    let mut spec = PodSpec::default();
    spec.security_context.get_or_insert_default().seccomp_profile.get_or_insert_default();
    assert_eq!(of(&Path::nil(), &meta, &spec), Vec::<String>::new());
}

#[test]
fn profiles_in_annotations() {
    use api_types::core_v1::{AppArmorProfile, SecurityContext};
    let key = format!("{APPARMOR}c");
    let meta = ObjectMeta { annotations: [(key.clone(), "unconfined".to_owned())].into(), ..ObjectMeta::default() };
    let mut spec =
        PodSpec { containers: vec![Container { name: "c".into(), ..Container::default() }], ..PodSpec::default() };
    let text = format!("annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead");
    assert_eq!(of(&Path::new("t"), &meta, &spec), [format!("t.metadata.{text}")]);
    let context: &mut SecurityContext = spec.containers[0].security_context.get_or_insert_default();
    context.app_armor_profile = Some(AppArmorProfile::default());
    assert_eq!(of(&Path::new("t"), &meta, &spec), Vec::<String>::new());
    assert_eq!(of_pod(&meta, &spec), [format!("metadata.{text}")]);
}
