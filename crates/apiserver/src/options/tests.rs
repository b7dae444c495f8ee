//! The table as a whole, and what a usual line of flags makes of it.

use component_base::flags::{check_table, parse};

use super::*;
use crate::config::BackendConfig;

pub(super) const KUBEADM: &str = "--advertise-address=192.0.2.10 --allow-privileged=true --authorization-mode=Node,RBAC \
    --enable-bootstrap-token-auth=true --secure-port=6443 --service-account-issuer=https://kubernetes.default.svc \
    --service-account-signing-key-file=/sa.key --service-account-key-file=/sa.pub \
    --service-cluster-ip-range=10.96.0.0/12 --requestheader-group-headers=X-Remote-Group \
    --kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname";

pub(super) fn completed(line: &str) -> Result<crate::config::ServerConfig, String> {
    let options = parse(flags::ALL, line.split_whitespace().map(str::to_owned)).map_err(|error| error.to_string())?;
    complete(&options, &component_base::Gates::default()).map_err(|error| error.to_string())
}

#[test]
fn headers_of_uids_need_their_gate() {
    let line = format!("{KUBEADM} --requestheader-uid-headers=X-Remote-Uid");
    let options = parse(flags::ALL, line.split_whitespace().map(str::to_owned)).unwrap();
    let completed = |on: bool| {
        let gates = component_base::Gates::default().with(gates::REMOTE_UID, on);
        complete(&options, &gates).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(completed(true), Ok(()));
    let refused = "--requestheader-uid-headers requires the RemoteRequestHeaderUID feature to be enabled";
    assert!(completed(false).is_err_and(|error| error.contains(refused)));
}

#[test]
fn the_table_is_sound() {
    assert_eq!(check_table(flags::ALL), Vec::<String>::new());
}

#[test]
fn a_usual_line_is_understood() {
    let config = completed(KUBEADM).unwrap();
    assert_eq!(config.advertise_address.to_string(), "192.0.2.10");
    let types: Vec<_> = config.authorization.authorizers.authorizers.iter().map(|own| own.type_.as_str()).collect();
    assert_eq!(types, ["Node", "RBAC"]);
    assert!(config.authentication.anonymous.enabled);
    assert_eq!(config.service_accounts.api_audiences, ["https://kubernetes.default.svc"]);
    assert_eq!(config.services.first_address().unwrap().to_string(), "10.96.0.1");
    assert!(matches!(config.storage.backend, BackendConfig::Embedded(_)));
    assert_eq!(config.requests.max_in_flight, 400);
}

#[test]
fn every_problem_is_told() {
    let problems = completed("--tracing-config-file=/x --audit-log-path=- --audit-log-maxage=-3 --admission-control=NodeRestriction,Nothing --enable-admission-plugins=PodSecurity --coordinated-leadership-retry-period=10s --max-connection-bytes-per-sec=-1 --authorization-mode=ABAC,Foo --secure-port=0 --watch-cache-sizes=a")
        .unwrap_err();
    for part in [
        "unable to read tracing configuration from \"/x\"",
        "--audit-log-maxage -3 can't be a negative number",
        "admission-control plugin \"Nothing\" is unknown",
        "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive",
        "--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period",
        "--max-connection-bytes-per-sec can not be negative value",
        "authorization-mode ABAC's authorization policy file not passed",
        "authorization-mode \"Foo\" is not a valid mode",
        "--secure-port 0 must be between 1 and 65535",
        "invalid value of watch cache size: a",
        "--service-account-signing-key-file and --service-account-issuer are required flags",
        "service-account-issuer is a required flag",
    ] {
        assert!(problems.contains(part), "{part} in {problems}");
    }
    let key = KUBEADM.replace("--service-account-issuer=https://kubernetes.default.svc ", "");
    for some in [key.as_str(), "--service-account-issuer=https://kubernetes.default.svc", "--api-audiences=a"] {
        let problems = completed(some).unwrap_err();
        let text = "--service-account-issuer, and --api-audiences should be specified together";
        assert!(problems.contains(text) && !problems.contains("are required flags"), "{problems}");
    }
    let line = format!(
        "{KUBEADM} --authorization-mode=RBAC --authorization-mode=Node --service-account-issuer=https://kubernetes.default.svc \
        --request-timeout=-1s --livez-grace-period=-1s"
    );
    let problems = completed(&line).unwrap_err();
    for part in [
        "authorization-mode [\"Node\" \"RBAC\" \"RBAC\" \"Node\"] has mode specified more than once",
        "service-account-issuer \"https://kubernetes.default.svc\" is already specified",
        "--request-timeout can not be negative value",
        "--livez-grace-period can not be a negative value",
    ] {
        assert!(problems.contains(part), "{part} in {problems}");
    }
    assert_eq!(problems.matches("has mode specified more than once").count(), 1, "{problems}");
    let line = format!(
        "{KUBEADM} --runtime-config= --watch-cache=true \
        --audit-log-maxage=366 --kubelet-read-only-port=1"
    );
    assert!(completed(&line).is_ok(), "defaults are accepted: {:?}", completed(&line).err());
    let uncached = completed(&format!("{KUBEADM} --watch-cache=false")).unwrap().storage.uncached;
    assert!(uncached.contains("configmaps") && uncached.contains("deployments.apps"));
    let only = completed(&format!("{KUBEADM} --admission-control=NodeRestriction")).unwrap().admission.selection;
    assert_eq!(only.enabled, ["NodeRestriction"]);
    assert!(only.disabled.iter().any(|name| name == "NamespaceLifecycle"));
    let error = completed(&format!("{KUBEADM} --runtime-config=flowcontrol.apiserver.k8s.io/v1=false")).unwrap_err();
    let text =
        "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false conflicts with --enable-priority-and-fairness=true";
    assert!(error.contains(text), "{error}");
    let elsewhere = "--service-account-signing-endpoint=@signer";
    let error = completed(&format!("{KUBEADM} {elsewhere}")).unwrap_err();
    for flag in ["service-account-signing-key-file", "service-account-key-file"] {
        let text = "and service-account-signing-endpoint are mutually exclusive and cannot be set at the same time";
        assert!(error.contains(&format!("{flag} {text}")), "{error}");
    }
    let alone =
        KUBEADM.replace("--service-account-signing-key-file=/sa.key --service-account-key-file=/sa.pub", elsewhere);
    let accounts = completed(&alone).unwrap().service_accounts;
    assert_eq!((accounts.signing_endpoint.as_deref(), accounts.key_files.len()), (Some("@signer"), 0));
    let line = "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false --enable-priority-and-fairness=false";
    assert!(completed(&format!("{KUBEADM} {line}")).is_ok());
    let options = completed(KUBEADM.replace("Node,RBAC", "AlwaysAllow").as_str()).unwrap();
    assert!(!options.authentication.anonymous.enabled, "nobody may do everything without a name");
}

/// Every flag of upstream is there, in its section, with its default.
#[test]
fn flags_are_upstreams() {
    let facts = test_facts::facts("flags/kube-apiserver.json");
    let mut differences = Vec::new();
    for fact in facts["flags"].as_array().unwrap() {
        let name = fact["flag"].as_str().unwrap();
        let own = flags::ALL.iter().flat_map(|set| set.flags.iter().map(move |flag| (set.title, flag)));
        let Some((title, flag)) = own.into_iter().find(|(_, flag)| flag.name == name) else {
            differences.push(format!("--{name} is missing"));
            continue;
        };
        let section = fact["section"].as_str().unwrap_or(title);
        if section != title {
            differences.push(format!("--{name} is in {title}, not {section}"));
        }
        let default = written(&fact["default"]);
        let same_number = default.parse::<f64>().is_ok_and(|value| flag.default.parse() == Ok(value));
        if default != flag.default && !same_number {
            differences.push(format!("--{name} defaults to {}, not {default}", flag.default));
        }
        if fact["deprecated"] != serde_json::Value::Null && flag.deprecated.is_none() {
            differences.push(format!("--{name} is deprecated"));
        }
    }
    assert_eq!(differences, Vec::<String>::new());
}

/// A default as a user would write it.
fn written(default: &serde_json::Value) -> String {
    match default {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) if text == "[]" => String::new(),
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => items.iter().map(written).collect::<Vec<_>>().join(","),
        serde_json::Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key}={}", written(value))).collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
    }
}

/// As templates write flags that nobody filled in.
#[test]
fn flags_may_be_given_without_a_value() {
    let empty = "--storage-media-type= --endpoint-reconciler-type= --service-node-port-range= --audit-log-format= \
                 --storage-backend= --tls-min-version= --cert-dir= --audit-policy-file=";
    let config = completed(&format!("{KUBEADM} {empty}")).unwrap();
    assert_eq!(config.storage.media, registry::StorageMedia::Json, "as upstream's storage factory has it");
    assert_eq!(config.services.node_ports, (30_000, 32_767));
    assert_eq!(config.services.reconciler, crate::config::EndpointReconciler::Lease);
    assert!(config.serving.unwrap().limits.newcomers.is_some());
}

#[test]
fn some_resources_are_kept_in_another_etcd() {
    let line = format!(
        "{KUBEADM} --etcd-servers=http://a:2379 --etcd-servers-overrides=/events#http://b:2379;http://c:2379,apps/deployments#http://d:2379,example.org/pears#http://e:2379"
    );
    let elsewhere = completed(&line).unwrap().storage.elsewhere;
    let shown: Vec<_> = elsewhere.iter().map(|(name, etcd)| (name.to_string(), etcd.endpoints.join(" "))).collect();
    let expected = [("events", "http://b:2379 http://c:2379"), ("deployments.apps", "http://d:2379")];
    assert_eq!(shown, expected.map(|(name, servers)| (name.to_owned(), servers.to_owned())));
    for wrong in ["events#http://b", "/events", "/events#", "a/b/c#http://b", "/events#http://b#http://c"] {
        let error = completed(&format!("{KUBEADM} --etcd-servers-overrides={wrong}")).unwrap_err();
        assert!(
            error.contains("--etcd-servers-overrides invalid, must be of format: group/resource#servers"),
            "{wrong}: {error}"
        );
    }
    let error = completed(&format!("{KUBEADM} --egress-selector-config-file=/nowhere")).unwrap_err();
    assert!(error.contains("egress-selector-config-file /nowhere does not exist"), "{error}");
}
