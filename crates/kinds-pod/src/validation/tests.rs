//! What templates and pods are told, by what is wrong with them.

use api_machinery::field_path::Path;
use api_types::core_v1::{Pod, PodTemplateSpec};
use feature_gates::Gates;

use super::{validate_pod, validate_pod_create, validate_template};

/// A pod as the server sees it: decoded, with defaults.
fn pod(spec: &str) -> Pod {
    let text = format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"n"}},"spec":{spec}}}"#);
    let mut pod = Pod::default();
    api_machinery::json::decode(text.as_bytes(), &mut pod).expect("a pod");
    api_machinery::defaults::fill(&mut pod);
    crate::defaults::set_defaults(&mut pod.spec);
    crate::defaults::set_pod_defaults(&mut pod);
    pod
}

/// The errors of a pod whose only container is `container` and whose other members are `rest`.
fn errors_of(container: &str, rest: &str) -> Vec<String> {
    let spec = format!(r#"{{"containers":[{{"name":"c","image":"i"{container}}}]{rest}}}"#);
    validate_pod_create(&pod(&spec), &Gates::default()).iter().map(ToString::to_string).collect()
}

#[test]
fn containers() {
    for (container, expected) in [
        ("", &[][..]),
        (r#","ports":[{"containerPort":0}]"#, &["spec.containers[0].ports[0].containerPort: Required value"]),
        (
            r#","ports":[{"containerPort":1,"name":"A"}]"#,
            &[
                "spec.containers[0].ports[0].name: Invalid value: \"A\": must contain only alpha-numeric characters \
                 (a-z, 0-9), and hyphens (-)",
                "spec.containers[0].ports[0].name: Invalid value: \"A\": must contain at least one letter (a-z)",
            ],
        ),
        (
            r#","ports":[{"containerPort":1,"hostPort":9},{"containerPort":2,"hostPort":9}]"#,
            &["spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//9\""],
        ),
        (r#","env":[{"name":""}]"#, &["spec.containers[0].env[0].name: Required value"]),
        (
            r#","env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"status.phase"}}}]"#,
            &[
                "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported \
               values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \
               \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
            ],
        ),
        (
            r#","volumeMounts":[{"name":"v","mountPath":"/d"}]"#,
            &["spec.containers[0].volumeMounts[0].name: Not found: \"v\""],
        ),
        (r#","livenessProbe":{}"#, &["spec.containers[0].livenessProbe: Required value: must specify a handler type"]),
        (
            r#","readinessProbe":{"httpGet":{"port":0},"tcpSocket":{"port":1}}"#,
            &[
                "spec.containers[0].readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, \
                 inclusive",
                "spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
            ],
        ),
        (
            r#","imagePullPolicy":"Sometimes""#,
            &["spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \
               \"IfNotPresent\", \"Never\""],
        ),
        (
            r#","securityContext":{"runAsUser":-1}"#,
            &["spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, \
               inclusive"],
        ),
    ] {
        assert_eq!(errors_of(container, ""), expected, "{container}");
    }
}

#[test]
fn resources() {
    for (resources, expected) in [
        (r#"{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"2"}}"#, &[][..]),
        (
            r#"{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}"#,
            &["requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"],
        ),
        (
            r#"{"requests":{"memory":"-1"}}"#,
            &["requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0"],
        ),
        (
            r#"{"requests":{"gold":"1"}}"#,
            &[
                "requests[gold]: Invalid value: \"gold\": must be a standard resource type or fully qualified",
                "requests[gold]: Invalid value: \"gold\": must be a standard resource for containers",
            ],
        ),
        (
            r#"{"requests":{"a.com/gpu":"1"}}"#,
            &["limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            r#"{"limits":{"a.com/gpu":"1500m"}}"#,
            &[
                "limits[a.com/gpu]: Invalid value: \"1500m\": must be an integer",
                "requests[a.com/gpu]: Invalid value: \"1500m\": must be an integer",
            ],
        ),
        (r#"{"limits":{"hugepages-2Mi":"4Mi","cpu":"1"}}"#, &[]),
        (
            r#"{"limits":{"hugepages-2Mi":"-2Mi","cpu":"1"}}"#,
            &[
                "limits[hugepages-2Mi]: Invalid value: \"-2Mi\": must be greater than or equal to 0",
                "requests[hugepages-2Mi]: Invalid value: \"-2Mi\": must be greater than or equal to 0",
            ],
        ),
    ] {
        let found = errors_of(&format!(r#","resources":{resources}"#), "");
        let at = "spec.containers[0].resources.";
        let expected: Vec<String> = expected.iter().map(|text| format!("{at}{text}")).collect();
        assert_eq!(found, expected, "{resources}");
    }
}

#[test]
fn the_rest_of_the_spec() {
    for (rest, expected) in [
        (
            r#","restartPolicy":"Often""#,
            &[
                "spec.restartPolicy: Unsupported value: \"Often\": supported values: \"Always\", \"OnFailure\", \"Never\"",
            ][..],
        ),
        (
            r#","activeDeadlineSeconds":0"#,
            &["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        ),
        (
            r#","tolerations":[{"key":"a","operator":"Exists","value":"b"}]"#,
            &["spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"],
        ),
        (
            r#","dnsPolicy":"None""#,
            &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        ),
        (
            r#","volumes":[{"name":"v","hostPath":{"path":"/a/../b"}},{"name":"v","emptyDir":{}}]"#,
            &["spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"],
        ),
        (
            r#","volumes":[{"name":"v","emptyDir":{},"secret":{"secretName":"s"}}]"#,
            &["spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            r#","nodeName":"n","schedulingGates":[{"name":"g"}]"#,
            &["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
        ),
        (
            r#","initContainers":[{"name":"c","image":"i","livenessProbe":{"exec":{"command":["a"]}}}]"#,
            &[
                "spec.initContainers[0].name: Duplicate value: \"c\"",
                "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without \
                 restartPolicy=Always",
            ],
        ),
        (
            r#","topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}]"#,
            &["spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"],
        ),
        (r#","os":{"name":"windows"},"hostPID":true"#, &["spec.hostPID: Forbidden: cannot be set for a windows pod"]),
        (
            r#","affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":""}]}}"#,
            &[
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required \
                 value: can not be empty",
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid \
                 value: \"\": name part must be non-empty",
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid \
                 value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and \
                 end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                 validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        ),
    ] {
        assert_eq!(errors_of("", rest), expected, "{rest}");
    }
}

#[test]
fn pods_need_containers_and_templates_take_no_ephemeral_ones() {
    let texts: Vec<String> =
        validate_pod_create(&pod(r#"{"containers":[]}"#), &Gates::default()).iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["spec.containers: Required value"]);
    let pod = pod(r#"{"containers":[{"name":"c","image":" i"}],"ephemeralContainers":[{"name":"d","image":"i"}]}"#);
    let created: Vec<String> = validate_pod_create(&pod, &Gates::default()).iter().map(ToString::to_string).collect();
    assert_eq!(
        created,
        [
            "spec.containers[0].image: Invalid value: \" i\": must not have leading or trailing whitespace",
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ]
    );
    let mut template = PodTemplateSpec { spec: pod.spec, ..PodTemplateSpec::default() };
    template.metadata.labels.insert("-".into(), "x".into());
    let path = Path::new("spec").child("template");
    let texts: Vec<String> =
        validate_template(&path, &template, None, &Gates::default()).iter().map(ToString::to_string).collect();
    assert!(texts[0].starts_with("spec.template.labels: Invalid value: \"-\""), "{texts:?}");
    let last = "spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template";
    assert_eq!((texts.len(), texts[1].as_str()), (2, last));
}

#[test]
fn what_is_stored_already_is_not_held_against_an_update() {
    let bad = r#"{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1","hugepages-2Mi":"3Mi"}}}]}"#;
    let spec = pod(bad).spec;
    let template = PodTemplateSpec { spec, ..PodTemplateSpec::default() };
    let path = Path::new("template");
    assert_eq!(validate_template(&path, &template, None, &Gates::default()).len(), 2);
    assert!(validate_template(&path, &template, Some(&template), &Gates::default()).is_empty());
}

/// Keys that a stored pod has beside its selector are held to the rules of its time.
#[test]
fn pods_with_users_of_their_own_on_the_hosts_network() {
    let spec = |rest: &str| pod(&format!(r#"{{"containers":[{{"name":"c","image":"i"}}],"hostUsers":false{rest}}}"#));
    let texts =
        |errors: api_machinery::field_path::ErrorList| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    let on = Gates::default().with(feature_gates::shared::HOST_NETWORK_USERS, true);
    let refused = ["spec.hostNetwork: Forbidden: when `hostUsers` is false"];
    let on_network = spec(r#","hostNetwork":true"#);
    assert_eq!(texts(validate_pod_create(&on_network, &Gates::default())), refused);
    assert!(validate_pod_create(&on_network, &on).is_empty());
    let kept = validate_pod(&on_network, Some(&on_network), &Gates::default());
    assert!(kept.is_empty(), "what is stored stays: {:?}", texts(kept));
    assert_eq!(texts(validate_pod(&on_network, Some(&spec("")), &Gates::default())), refused);
    let other = texts(validate_pod_create(&spec(r#","hostNetwork":true,"hostPID":true"#), &on));
    assert_eq!(other, ["spec.HostPID: Forbidden: when `hostUsers` is false"]);
}

#[test]
fn spread_keys_of_old_pods() {
    let spread = |labels: &str| {
        let constraint = format!(
            r#"{{"maxSkew":1,"topologyKey":"t","whenUnsatisfiable":"DoNotSchedule","labelSelector":{{"matchLabels":{labels},
               "matchExpressions":[{{"key":"k","operator":"Exists"}}]}},"matchLabelKeys":["k"]}}"#
        );
        let spec =
            format!(r#"{{"containers":[{{"name":"c","image":"i"}}],"topologySpreadConstraints":[{constraint}]}}"#);
        PodTemplateSpec { spec: pod(&spec).spec, ..PodTemplateSpec::default() }
    };
    let texts = |new: &PodTemplateSpec, old: Option<&PodTemplateSpec>| -> Vec<String> {
        validate_template(&Path::new("t"), new, old, &Gates::default()).iter().map(ToString::to_string).collect()
    };
    let (good, odd) = (spread("{}"), spread(r#"{"k":"v"}"#));
    let text = "Invalid value: \"k\": exists in both matchLabelKeys and labelSelector";
    let at = "t.spec.topologySpreadConstraints[0]";
    assert_eq!(texts(&good, None), Vec::<String>::new());
    assert_eq!(texts(&odd, None), [format!("{at}[0]: {text}")]);
    assert_eq!(texts(&good, Some(&odd)), [format!("{at}.matchLabelKeys[0]: {text}")]);
}

/// Where several rules fail, they fail in upstream's order, and none of them for the reason of another.
#[test]
fn one_mistake_is_told_once_and_in_order() {
    let context = r#","securityContext":{"appArmorProfile":{"type":"x","localhostProfile":"p"}}"#;
    let sources = r#""fieldRef":{"fieldPath":"metadata.name"},"secretKeyRef":{"name":"s","key":"k"}"#;
    let env = format!(r#","env":[{{"name":"A","value":"v","valueFrom":{{{sources}}}}}]"#);
    let restart = r#","restartPolicy":"x","livenessProbe":{}"#;
    for (container, expected) in [
        (
            context,
            &["spec.containers[0].securityContext.appArmorProfile.type: Unsupported value: \"x\": supported values: \
               \"Localhost\", \"RuntimeDefault\", \"Unconfined\""][..],
        ),
        (
            &env,
            &[
                "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
            ],
        ),
        (
            restart,
            &[
                "spec.containers[0].livenessProbe: Required value: must specify a handler type",
                "spec.containers[0].restartPolicy: Unsupported value: \"x\": supported values: \"Always\", \"Never\", \
                 \"OnFailure\"",
            ],
        ),
    ] {
        assert_eq!(errors_of(container, ""), expected, "{container}");
    }
    let spread =
        r#","topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"x","minDomains":1}]"#;
    assert_eq!(
        errors_of("", spread),
        [
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"x\": supported values: \
             \"DoNotSchedule\", \"ScheduleAnyway\"",
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if \
             whenUnsatisfiable=DoNotSchedule, not x",
        ]
    );
    assert_eq!(
        errors_of("", r#","resources":{"requests":{"odd":"1"},"claims":[{"name":"n"}]}"#),
        [
            "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level",
            "spec.resources.requests[odd]: Invalid value: \"odd\": must be a standard resource type or fully qualified",
            "spec.resources.claims[0]: Not found: \"n\": must be one of the names in pod.spec.resourceClaims which is empty",
        ]
    );
}

/// Some lists of values are printed sorted and some as upstream declares the values, and those behind a feature that is
/// off show only where they are asked for.
#[test]
fn values_are_listed_in_upstreams_order() {
    let toleration = |operator: &str| {
        let texts = errors_of("", &format!(r#","tolerations":[{{"key":"a","operator":"{operator}","effect":"x"}}]"#));
        texts.iter().map(|text| text.replace("spec.tolerations[0].", "")).collect::<Vec<_>>()
    };
    let effect = r#"effect: Unsupported value: "x": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#;
    assert_eq!(toleration("x"), [r#"operator: Unsupported value: "x": supported values: "Equal", "Exists""#, effect]);
    assert_eq!(
        toleration("Gt"),
        [r#"operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt""#, effect]
    );
    assert_eq!(
        errors_of(r#","terminationMessagePolicy":"x""#, r#","dnsPolicy":"x","preemptionPolicy":"x""#),
        [
            r#"spec.containers[0].terminationMessagePolicy: Unsupported value: "x": supported values: "File", "FallbackToLogsOnError""#,
            r#"spec.dnsPolicy: Unsupported value: "x": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None""#,
            r#"spec.preemptionPolicy: Unsupported value: "x": supported values: "PreemptLowerPriority", "Never""#,
        ]
    );
    assert_eq!(
        errors_of("", r#","securityContext":{"seLinuxChangePolicy":"MountOption"}"#),
        [
            r#"spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive""#
        ]
    );
}

#[test]
fn stop_signals_are_those_of_the_system() {
    for (os, stop, expected) in [
        ("", "SIGTERM", "spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty"),
        (r#","os":{"name":"linux"}"#, "SIGRTMIN+15", ""),
        (
            r#","os":{"name":"linux"}"#,
            "TERM",
            "spec.containers[0].lifecycle.stopSignal: Unsupported value: \"TERM\": supported values: \"SIGABRT\", ",
        ),
        (
            r#","os":{"name":"windows"}"#,
            "SIGHUP",
            "spec.containers[0].lifecycle.stopSignal: Unsupported value: \"SIGHUP\": supported values: \"SIGKILL\", \
             \"SIGTERM\"",
        ),
    ] {
        let found = errors_of(&format!(r#","lifecycle":{{"stopSignal":"{stop}"}}"#), os).join("; ");
        assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{stop}: {found}");
    }
}

/// What is wrong with the sources of a projected volume, the path of which is left out.
fn projected(sources: &str) -> Vec<String> {
    let rest = format!(r#","volumes":[{{"name":"v","projected":{{"sources":[{sources}]}}}}]"#);
    errors_of("", &rest).iter().map(|text| text.replace("spec.volumes[0].projected", "")).collect()
}

#[test]
fn bundles_of_trust_in_volumes() {
    let at = ".sources[0].clusterTrustBundle";
    for (bundle, expected) in [
        (r#""name":"a","path":"p""#, &[][..]),
        (r#""name":"a.b:c:d","path":"p""#, &[]),
        (r#""signerName":"a.b/c","labelSelector":{},"path":"p""#, &[]),
        (r#""path":"p""#, &[": Required value: either name or signerName must be specified"]),
        (
            r#""name":"a","signerName":"b","path":"../p""#,
            &[
                r#": Invalid value: {"Name":"a","SignerName":"b","LabelSelector":null,"Optional":null,"Path":"../p"}: only one of name and signerName may be used"#,
                r#".path: Invalid value: "../p": must not contain '..'"#,
            ],
        ),
        (
            r#""name":"-","labelSelector":{}"#,
            &[
                r#".name: Invalid value: "-": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must"#,
                r#".labelSelector: Invalid value: {}: labelSelector must be unset if name is specified"#,
                r#".path: Required value"#,
            ],
        ),
        (
            r#""signerName":"","labelSelector":{"matchExpressions":[{"key":"a","operator":"x"}]},"path":"p""#,
            &[
                ".signerName: Required value: must be a valid signer name",
                ".signerName: Required value",
                ".labelSelector.matchExpressions[0].operator: Invalid value: \"x\": not a valid selector operator",
            ],
        ),
    ] {
        let found = projected(&format!(r#"{{"clusterTrustBundle":{{{bundle}}}}}"#));
        let fits = |(found, expected): (&String, &&str)| found.starts_with(&format!("{at}{expected}"));
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(fits), "{bundle}: {found:#?}");
    }
}

#[test]
fn certificates_in_volumes() {
    let at = ".sources[0].podCertificate";
    for (certificate, expected) in [
        (r#""signerName":"a.b/c","keyType":"ED25519","credentialBundlePath":"p""#, &[][..]),
        (
            r#""signerName":"a.b/c","keyType":"DSA","keyPath":"..p","maxExpirationSeconds":3599"#,
            &[
                r#".keyType: Unsupported value: "DSA": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519""#,
                ".maxExpirationSeconds: Invalid value: 3599: if provided, maxExpirationSeconds must be >= 3600",
                r#".keyPath: Invalid value: "..p": must not start with '..'"#,
            ],
        ),
        (
            r#""signerName":"kubernetes.io/c","keyType":"ED25519","maxExpirationSeconds":86401,"userAnnotations":{"a":"b"}"#,
            &[
                r#".userAnnotations: Invalid value: "a": must be a domain-prefixed key (such as "acme.io/foo")"#,
                ".maxExpirationSeconds: Invalid value: 86401: if provided, maxExpirationSeconds must be <= 86400",
                ": Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
            ],
        ),
    ] {
        let found = projected(&format!(r#"{{"podCertificate":{{{certificate}}}}}"#));
        assert_eq!(found, expected.iter().map(|text| format!("{at}{text}")).collect::<Vec<_>>(), "{certificate}");
    }
}

/// Of a source that is several, each is looked at.
#[test]
fn files_of_volumes_are_written_once() {
    let certificate = r#"{"podCertificate":{"signerName":"a.b/c","keyType":"ED25519","keyPath":"p","certificateChainPath":"p"},"configMap":{"name":""}}"#;
    assert_eq!(
        projected(&format!(r#"{{"clusterTrustBundle":{{"name":"a","path":"p"}}}},{certificate}"#)),
        [
            ".sources[1].configMap.name: Required value",
            r#": Invalid value: "p": conflicting duplicate paths"#,
            r#": Invalid value: "p": conflicting duplicate paths"#,
            ".sources[1]: Forbidden: may not specify more than 1 volume type per source",
        ]
    );
}

#[test]
fn what_is_listed_and_what_is_compared() {
    assert_eq!(
        errors_of(
            r#","resources":{"claims":[{"name":"c"},{"name":"a"}]}"#,
            r#","resourceClaims":[{"name":"b","resourceClaimName":"x"},{"name":"a","resourceClaimName":"x"}]"#
        ),
        ["spec.containers[0].resources.claims[0]: Not found: \"c\": must be one of the names in \
          pod.spec.resourceClaims: a, b"]
    );
    let twice = r#","volumeMounts":[{"name":"v","mountPath":"/a"}],"volumeDevices":[{"name":"v","devicePath":"/a"},{"name":"v","devicePath":"/b"}]"#;
    let volume = r#","volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]"#;
    let found: Vec<String> =
        errors_of(twice, volume).iter().map(|text| text.replace("spec.containers[0].", "")).collect();
    assert_eq!(
        found,
        [
            "volumeMounts[0].name: Invalid value: \"v\": must not already exist in volumeDevices",
            "volumeDevices[0].name: Invalid value: \"v\": must not already exist in volumeMounts",
            "volumeDevices[0].devicePath: Invalid value: \"/a\": must not already exist as a path in volumeMounts",
            "volumeDevices[1].name: Invalid value: \"v\": must be unique",
            "volumeDevices[1].name: Invalid value: \"v\": must not already exist in volumeMounts",
        ],
        "the last of two devices with the same name counts"
    );
    let flexible = |key: &str| {
        let rest = format!(r#","volumes":[{{"name":"v","flexVolume":{{"driver":"d","options":{{"{key}":"x"}}}}}}]"#);
        errors_of("", &rest).len()
    };
    assert_eq!((flexible("x.k8s.io"), flexible("k8s.io/a"), flexible("ak8s.io")), (1, 1, 0));
    let initiator = |iqn: &str| {
        let rest = format!(r#","volumes":[{{"name":"v","iscsi":{{"targetPortal":"p","iqn":"{iqn}","lun":0}}}}]"#);
        errors_of("", &rest).len()
    };
    let names = ["iqn.2001-04.com.example:a", "iqn-iqn.2001-04.com.example:a", "iqn.2001-04.com.example:a,b"];
    assert_eq!(names.map(initiator), [0, 0, 1]);
    let field = r#","env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"['x']"}}}]"#;
    let found = errors_of(field, "").join("; ");
    assert!(found.ends_with("error converting fieldPath: field label not supported: ['x']"), "{found}");
}
