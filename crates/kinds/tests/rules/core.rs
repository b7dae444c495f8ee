//! Configuration, secrets, accounts, services, endpoints, events, namespaces, ranges and quotas.

use kinds::rules::Endpoint;

use super::{check_created, check_updated, created, kind, read, updated};

#[test]
fn config_maps() {
    check_created(
        "configmaps",
        &[
            (r#"{"data":{"a.b":"x"},"binaryData":{"c":"eA=="}}"#, &[]),
            (
                r#"{"data":{"":"x"}}"#,
                &[
                    "data[]: Invalid value: \"\": a valid config key must consist of alphanumeric characters, '-', '_' or \
                   '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
                   '[-._a-zA-Z0-9]+')",
                ],
            ),
            (r#"{"data":{"..":"x"}}"#, &["data[..]: Invalid value: \"..\": must not be '..'"]),
        ],
    );
    const KEPT: &str = "field is immutable when `immutable` is set";
    check_updated(
        "configmaps",
        &[
            (r#"{"data":{"a":"1"}}"#, r#"{"data":{"a":"2"}}"#, &[]),
            (r#"{"data":{"a":"1"}}"#, r#"{"data":{"a":"1"},"immutable":true}"#, &[]),
            (
                r#"{"data":{"a":"1"},"immutable":true}"#,
                r#"{"data":{"a":"2"}}"#,
                &[&format!("immutable: Forbidden: {KEPT}"), &format!("data: Forbidden: {KEPT}")],
            ),
            (
                r#"{"immutable":true}"#,
                r#"{"binaryData":{"a":"eA=="},"immutable":true}"#,
                &[&format!("binaryData: Forbidden: {KEPT}")],
            ),
            (r#"{"immutable":true}"#, r#"{"metadata":{"labels":{"a":"b"}},"immutable":true}"#, &[]),
        ],
    );
}

#[test]
fn secrets() {
    check_created(
        "secrets",
        &[
            (r#"{"stringData":{"a":"b"}}"#, &[]),
            (
                r#"{"type":"kubernetes.io/service-account-token"}"#,
                &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            ),
            (r#"{"type":"kubernetes.io/tls"}"#, &["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
            (
                r#"{"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"[]"}}"#,
                &[
                    "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": json: cannot unmarshal array into \
                   Go value of type map[string]interface {}",
                ],
            ),
            (r#"{"type":"kubernetes.io/dockercfg","stringData":{".dockercfg":"null"}}"#, &[]),
            // The text counts as data.
            (r#"{"type":"kubernetes.io/basic-auth","stringData":{"username":"u"}}"#, &[]),
        ],
    );
    check_updated(
        "secrets",
        &[
            (r#"{"type":"a"}"#, r#"{"type":"b"}"#, &["type: Invalid value: \"b\": field is immutable"]),
            (
                r#"{"immutable":true}"#,
                r#"{"stringData":{"a":"b"},"immutable":true}"#,
                &["data: Forbidden: field is immutable when `immutable` is set"],
            ),
        ],
    );
    let rules = kind("secrets");
    let pair = read(rules, r#"{"type":"kubernetes.io/tls","data":{"tls.crt":"","tls.key":""}}"#);
    assert_eq!(rules.warnings(&*pair, None), ["tls: failed to find any PEM data in certificate input"]);
}

#[test]
fn service_accounts() {
    let rules = kind("serviceaccounts");
    let text = r#"{"metadata":{"annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}}}"#;
    let account = read(rules, text);
    let expected = "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate \
                    namespaces to isolate access to mounted secrets";
    assert_eq!(rules.warnings(&*account, None), [expected]);
    assert_eq!(rules.warnings(&*account, Some(&*account)), Vec::<String>::new());
}

#[test]
fn namespaces() {
    let finalizer = "name is neither a standard finalizer name nor is it fully qualified";
    let text = r#"{"spec":{"finalizers":["mine"]}}"#;
    assert_eq!(created("namespaces", text), [format!("spec.finalizers: Invalid value: \"mine\": {finalizer}")]);
    assert_eq!(
        updated("namespaces", Endpoint::Other("finalize"), text, "{}"),
        [format!("spec.finalizers[0]: Invalid value: \"mine\": {finalizer}")]
    );
    assert_eq!(
        updated("namespaces", Endpoint::Status, r#"{"status":{"phase":"Terminating"}}"#, "{}"),
        ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"]
    );
    let rules = kind("namespaces");
    let mut namespace = read(rules, "{}");
    rules.prepare_create(&super::context(), &mut *namespace);
    assert_eq!(rules.field(&*namespace, "status.phase").as_deref(), Some("Active"));
}

#[test]
fn services() {
    check_created(
        "services",
        &[
            (r#"{"spec":{"ports":[{"port":80}]}}"#, &[]),
            (
                r#"{"spec":{"ports":[{"port":0,"targetPort":"A b"}]}}"#,
                &[
                    "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                    "spec.ports[0].targetPort: Invalid value: \"A b\": must contain only alpha-numeric characters (a-z, \
                     0-9), and hyphens (-)",
                ],
            ),
            (
                r#"{"spec":{"type":"Odd","ports":[{"port":80}]}}"#,
                &["spec.type: Unsupported value: \"Odd\": supported values: \"ClusterIP\", \"ExternalName\", \
                   \"LoadBalancer\", \"NodePort\""],
            ),
            (
                r#"{"spec":{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":90000}},"ports":[{"port":80}]}}"#,
                &[
                    "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 90000: must be greater than 0 and \
                   less than 86400",
                ],
            ),
            (
                r#"{"spec":{"externalTrafficPolicy":"Local","ports":[{"port":80}]}}"#,
                &["spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible \
                   services"],
            ),
            (
                r#"{"spec":{"internalTrafficPolicy":"Near","ports":[{"port":80}]}}"#,
                &["spec.internalTrafficPolicy: Unsupported value: \"Near\": supported values: \"Cluster\", \"Local\""],
            ),
            (
                r#"{"spec":{"trafficDistribution":"Near","ports":[{"port":80}]}}"#,
                &["spec.trafficDistribution: Unsupported value: \"Near\": supported values: \"PreferClose\", \
                   \"PreferSameZone\", \"PreferSameNode\""],
            ),
            (
                r#"{"spec":{"healthCheckNodePort":30000,"ports":[{"port":80}]}}"#,
                &["spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and \
                   `externalTrafficPolicy` is 'Local'"],
            ),
            (
                r#"{"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local","ports":[{"port":80}]}}"#,
                &["spec.healthCheckNodePort: Required value"],
            ),
            (r#"{"spec":{"type":"ExternalName","externalName":"a.b.","ports":[{"port":80}]}}"#, &[]),
            (
                r#"{"spec":{"type":"ExternalName","externalName":"A","clusterIPs":["1.2.3.4"]}}"#,
                &[
                    "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
                    "spec.externalName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case \
                     alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
                     'example.com', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                ],
            ),
            (
                r#"{"spec":{"loadBalancerClass":"a/b","ports":[{"port":80}]}}"#,
                &["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
            ),
        ],
    );
}

#[test]
fn services_that_change() {
    const CLUSTER: &str = r#"{"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"port":80}]}}"#;
    const DUAL: &str = r#"{"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"],"ipFamilies":["IPv4","IPv6"],"ipFamilyPolicy":"PreferDualStack","ports":[{"port":80}]}}"#;
    const BALANCER: &str =
        r#"{"spec":{"type":"LoadBalancer","loadBalancerClass":"a/b","ports":[{"port":80,"nodePort":30080}]}}"#;
    check_updated(
        "services",
        &[
            (
                CLUSTER,
                &CLUSTER.replace("10.0.0.1", "10.0.0.2"),
                &["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"],
            ),
            (CLUSTER, DUAL, &[]),
            (DUAL, CLUSTER, &[]),
            (
                DUAL,
                &CLUSTER.replace("SingleStack", "PreferDualStack"),
                &[
                    "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing the \
                 secondary clusterIP",
                    "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing the \
                 secondary ipFamily",
                ],
            ),
            (
                CLUSTER,
                &CLUSTER.replace("10.0.0.1", "None"),
                &["spec.clusterIPs[0]: Invalid value: [\"None\"]: may not change once set"],
            ),
            // What the old type had is dropped where it comes back unchanged.
            (CLUSTER, &CLUSTER.replace(r#""ports""#, r#""type":"ExternalName","externalName":"a.b","ports""#), &[]),
            (BALANCER, &BALANCER.replace("LoadBalancer\"", "ClusterIP\""), &[]),
            (
                BALANCER,
                &BALANCER.replace("a/b", "a/c"),
                &["spec.loadBalancerClass: Invalid value: \"a/c\": may not change once set"],
            ),
            (
                BALANCER,
                &BALANCER.replace("LoadBalancer\"", "ClusterIP\"").replace("30080", "30081"),
                &["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
            ),
        ],
    );
    assert_eq!(
        updated("services", Endpoint::Status, r#"{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}"#, CLUSTER),
        ["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"]
    );
    let ingress = r#"{"status":{"loadBalancer":{"ingress":[{"hostname":"1.2.3.4","ipMode":"VIP"}]}}}"#;
    assert_eq!(
        updated("services", Endpoint::Status, ingress, BALANCER),
        [
            "status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set",
            "status.loadBalancer.ingress[0].hostname: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address",
        ]
    );
}

#[test]
fn endpoints() {
    check_created(
        "endpoints",
        &[
            (r#"{"subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80}]}]}"#, &[]),
            (
                r#"{"subsets":[{"addresses":[{"ip":"x"}]}]}"#,
                &[
                    "subsets[0].addresses[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or \
                     2001:db8::ffff)",
                    "subsets[0].addresses[0].ip: Invalid value: \"x\": must be a valid IP address",
                ],
            ),
            (
                r#"{"subsets":[{"notReadyAddresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80},{"port":81,"name":"b"}]}]}"#,
                &["subsets[0].ports[0].name: Required value"],
            ),
        ],
    );
    // What is stored is not looked at again.
    check_updated("endpoints", &[(r#"{"subsets":[{}]}"#, r#"{"metadata":{"labels":{"a":"b"}},"subsets":[{}]}"#, &[])]);
}

#[test]
fn endpoint_slices() {
    const SLICE: &str = "discovery.k8s.io/endpointslices";
    check_created(
        SLICE,
        &[
            (r#"{"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}]}"#, &[]),
            ("{}", &["addressType: Required value"]),
            (
                r#"{"addressType":"IPv4","endpoints":[{"addresses":[]}],"ports":[{"port":1},{"port":2}]}"#,
                &[
                    "ports[1].name: Duplicate value: \"\"",
                    "endpoints[0].addresses: Required value: must contain at least 1 address",
                ],
            ),
            (
                r#"{"addressType":"IPv6","endpoints":[{"addresses":["FD00::1"]}]}"#,
                &["endpoints[0].addresses[0]: Invalid value: \"FD00::1\": must be in canonical form (\"fd00::1\")"],
            ),
        ],
    );
    check_updated(
        SLICE,
        &[
            (
                r#"{"addressType":"IPv4"}"#,
                r#"{"addressType":"IPv6"}"#,
                &["addressType: Invalid value: \"IPv6\": field is immutable"],
            ),
            (
                r#"{"addressType":"IPv4"}"#,
                r#"{"addressType":"x"}"#,
                &[
                    "addressType: Unsupported value: \"x\": supported values: \"FQDN\", \"IPv4\", \"IPv6\"",
                    "addressType: Invalid value: \"x\": field is immutable",
                ],
            ),
            (
                r#"{"addressType":"IPv4","endpoints":[{"addresses":[]}]}"#,
                r#"{"addressType":"IPv4","endpoints":[{"addresses":[]}],"metadata":{"labels":{"a":"b"}}}"#,
                &[],
            ),
        ],
    );
    let rules = kind(SLICE);
    let node = r#""deprecatedTopology":{"kubernetes.io/hostname":"node"}"#;
    let slice =
        |address: &str| format!(r#"{{"addressType":"IPv4","endpoints":[{{"addresses":["{address}"],{node}}}]}}"#);
    let (old, mut new) = (read(rules, &slice("10.0.0.1")), read(rules, &slice("10.0.0.2")));
    rules.prepare_update(&super::context(), Endpoint::Main, &mut *new, &*old);
    let text = api_machinery::json::encode(new.as_reflect());
    assert!(text.contains(r#""nodeName":"node""#) && !text.contains("deprecatedTopology"), "{text}");
}

#[test]
fn events() {
    let about = r#""involvedObject":{"kind":"Pod","namespace":"s","name":"p"}"#;
    assert_eq!(created("events", &format!("{{{about}}}")), Vec::<String>::new());
    assert_eq!(
        created("events", r#"{"involvedObject":{"namespace":"other"}}"#),
        ["involvedObject.namespace: Invalid value: \"other\": does not match event.namespace"]
    );
    let timed = format!(r#"{{{about},"eventTime":"2026-01-01T00:00:00.000000Z","reportingComponent":"a.b/c"}}"#);
    assert_eq!(
        created("events", &timed),
        ["reportingInstance: Required value", "action: Required value", "reason: Required value"]
    );
    const NEW: &str = r#"{"regarding":{"namespace":"s"},"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"a.b/c","reportingInstance":"i","action":"A","reason":"R","type":"Normal"}"#;
    check_created(
        "events.k8s.io/events",
        &[
            (NEW, &[]),
            (&NEW.replace("Normal", "Odd"), &["type: Invalid value: \"\": has invalid value: Odd"]),
            (
                &NEW.replace(r#""type""#, r#""deprecatedCount":1,"type""#),
                &["count: Invalid value: \"\": needs to be unset"],
            ),
            (
                &NEW.replace(r#""type""#, r#""series":{"count":1},"type""#),
                &["series.count: Invalid value: \"\": should be at least 2", "series.lastObservedTime: Required value"],
            ),
        ],
    );
    check_updated(
        "events.k8s.io/events",
        &[
            // Upstream looks at the reason twice.
            (NEW, &NEW.replace(r#""R""#, r#""S""#), &["reason: Invalid value: \"S\": field is immutable"; 2]),
            (
                NEW,
                &NEW.replace(r#""type""#, r#""note":"x","type""#),
                &["message: Invalid value: \"x\": field is immutable"],
            ),
        ],
    );
}

#[test]
fn limit_ranges() {
    let item = |item: &str| format!(r#"{{"spec":{{"limits":[{item}]}}}}"#);
    check_created(
        "limitranges",
        &[
            (&item(r#"{"type":"Container","max":{"cpu":"1"},"min":{"cpu":"100m"}}"#), &[]),
            (
                &item(r#"{"type":"Odd"}"#),
                &["spec.limits[0].type: Invalid value: \"Odd\": must be a standard limit type or fully qualified"],
            ),
            (
                &item(r#"{"type":"Pod","default":{"cpu":"1"}}"#),
                &["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
            ),
            (
                &item(r#"{"type":"PersistentVolumeClaim"}"#),
                &["spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but \
                   neither was provided"],
            ),
            (
                &item(r#"{"type":"Pod","min":{"cpu":"1"},"max":{"cpu":"2"},"maxLimitRequestRatio":{"cpu":"3"}}"#),
                &["spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"3\": ratio 3 is greater than max/min = \
                   2.000000"],
            ),
            (&item(r#"{"type":"Pod"},{"type":"Pod"}"#), &["spec.limits[1].type: Duplicate value: \"Pod\""]),
        ],
    );
}

#[test]
fn resource_quotas() {
    let spec = |spec: &str| format!(r#"{{"spec":{spec}}}"#);
    check_created(
        "resourcequotas",
        &[
            (&spec(r#"{"hard":{"cpu":"1","pods":"5","count/jobs.batch":"1"}}"#), &[]),
            (
                &spec(r#"{"hard":{"gold":"1"}}"#),
                &[
                    "spec.hard[gold]: Invalid value: \"gold\": must be a standard resource type or fully qualified",
                    "spec.hard[gold]: Invalid value: \"gold\": must be a standard resource for quota",
                ],
            ),
            (
                &spec(r#"{"hard":{"services":"1"},"scopes":["BestEffort"]}"#),
                &["spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource"],
            ),
            (
                &spec(r#"{"hard":{"pods":"1"},"scopes":["Terminating","NotTerminating"]}"#),
                &["spec.scopes: Invalid value: [\"Terminating\",\"NotTerminating\"]: conflicting scopes"],
            ),
            (
                &spec(
                    r#"{"hard":{"pods":"1"},"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In"}]}}"#,
                ),
                &["spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when \
                   `operator` is 'In' or 'NotIn' for scope selector"],
            ),
        ],
    );
    check_updated(
        "resourcequotas",
        &[
            (
                &spec(r#"{"hard":{"pods":"1"},"scopes":["BestEffort"]}"#),
                &spec(r#"{"hard":{"pods":"1"}}"#),
                &["spec.scopes: Invalid value: []: field is immutable"],
            ),
            (
                &spec(r#"{"hard":{"pods":"1"},"scopes":["BestEffort","PriorityClass"]}"#),
                &spec(r#"{"hard":{"pods":"2"},"scopes":["PriorityClass","BestEffort"]}"#),
                &[],
            ),
        ],
    );
    let rules = kind("resourcequotas");
    let quota = read(rules, &spec(r#"{"hard":{"requests.cpu":"2","limits.cpu":"1"}}"#));
    assert_eq!(rules.warnings(&*quota, None), ["ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"]);
}

#[test]
fn nodes() {
    let spec = |spec: &str| format!(r#"{{"spec":{spec}}}"#);
    check_created(
        "nodes",
        &[
            (&spec(r#"{"podCIDR":"10.0.0.0/24"}"#), &[]),
            (
                &spec(r#"{"podCIDRs":["10.0.0.0/24","10.0.1.0/24"]}"#),
                &[
                    "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.0.1.0/24\"]: may specify no more than one CIDR for \
                   each IP family",
                ],
            ),
            (
                &spec(
                    r#"{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","value":"b","effect":"NoSchedule"}]}"#,
                ),
                &["metadata.taints[1]: Duplicate value: \
                   {\"Key\":\"a\",\"Value\":\"b\",\"Effect\":\"NoSchedule\",\"TimeAdded\":null}: taints must be unique \
                   by key and effect pair"],
            ),
        ],
    );
    // The two ways to name the range of a node say the same.
    check_updated(
        "nodes",
        &[
            (&spec(r#"{"podCIDR":"10.0.0.0/24"}"#), &spec(r#"{"podCIDRs":["10.0.0.0/24"]}"#), &[]),
            (
                &spec(r#"{"podCIDR":"10.0.0.0/24"}"#),
                &spec(r#"{"podCIDR":"10.0.1.0/24","podCIDRs":["10.0.0.0/24"]}"#),
                &["spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid"],
            ),
            (
                &spec(r#"{"providerID":"a"}"#),
                &spec("{}"),
                &["spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid"],
            ),
        ],
    );
    let rules = kind("nodes");
    let node = read(rules, &spec(r#"{"podCIDR":"10.0.0.1/24"}"#));
    assert_eq!(
        rules.warnings(&*node, None),
        ["spec.podCIDRs[0]: CIDR value \"10.0.0.1/24\" is ambiguous in this context (should be \"10.0.0.0/24\" or \
          \"10.0.0.1/32\"?)"]
    );
}
