//! What feature gates and the emulated release change, on both sides.

mod identity;
mod nodes;
mod reads;
mod sessions;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use component_base::version::{BINARY, MinorVersion};
use component_base::zpages::{FLAGZ, STATUSZ};
use component_base::{Feature, Gates, Versions};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::harness::Api;
use crate::gates;

/// How many looks are taken at the same time: each needs a processor for most of its time.
const LOOKS_AT_ONCE: usize = 2;

/// A gate, how to see it, and what is seen with and without it.
struct Row {
    feature: Feature,
    see: fn(Gates) -> BoxFuture<'static, String>,
    on: &'static str,
    off: &'static str,
}

const ROWS: &[Row] = &[
    Row { feature: gates::API_SERVER_IDENTITY, see: |gates| Box::pin(own_leases(gates)), on: "1", off: "0" },
    Row {
        feature: gates::CREDENTIAL_TOKENS,
        see: |gates| Box::pin(rules_of("system:node", "serviceaccounts", gates)),
        on: "1",
        off: "0",
    },
    Row {
        feature: gates::EXTEND_WEBSOCKETS,
        see: |gates| Box::pin(sessions::with_a_node_that_translates(gates)),
        on: "proxied_to_kubelet",
        off: "translated_at_apiserver",
    },
    Row {
        feature: gates::LIST_SIZES,
        see: |gates| Box::pin(reads::seats(gates)),
        on: "as they weigh",
        off: "as they are few",
    },
    Row {
        feature: gates::POOL_STATUS,
        see: |gates| {
            let role = "system:controller:resourcepoolstatusrequest-controller";
            Box::pin(rules_of(role, "resourcepoolstatusrequests", gates))
        },
        on: "1",
        off: "0",
    },
    Row {
        feature: gates::SESSIONS_ARE_CREATED,
        see: |gates| Box::pin(sessions::of_somebody_who_may_read_them(gates)),
        on: "403",
        off: "404",
    },
    Row {
        feature: gates::STORAGE_READINESS,
        see: |gates| Box::pin(code("/readyz/poststarthook/storage-readiness", gates)),
        on: "200",
        off: "404",
    },
    Row {
        feature: gates::TRANSLATED_COMMANDS,
        see: |gates| Box::pin(sessions::command(gates)),
        on: "translated_at_apiserver",
        off: "proxied_to_kubelet",
    },
    Row {
        feature: gates::TUNNELLED_PORTS,
        see: |gates| Box::pin(sessions::ports(gates)),
        on: "translated_at_apiserver",
        off: "proxied_to_kubelet",
    },
    Row { feature: gates::UNKNOWN_GO_AWAY, see: |gates| Box::pin(sessions::unknown(gates)), on: "ends", off: "stays" },
    Row {
        feature: registry::LIST_FROM_SNAPSHOT,
        see: |gates| Box::pin(reads::second_page(gates)),
        on: "from the cache",
        off: "from the store",
    },
    Row { feature: registry::WATCH_LIST, see: |gates| Box::pin(reads::watch_list(gates)), on: "200", off: "422" },
    Row {
        feature: kinds::gates::RESIZE_INIT_CONTAINERS,
        see: |gates| Box::pin(resized_init(gates)),
        on: "200",
        off: "422",
    },
    Row { feature: gates::COMPRESS, see: |gates| Box::pin(encoding(gates)), on: "gzip", off: "" },
    Row { feature: gates::CBOR, see: |gates| Box::pin(form(gates)), on: "application/cbor", off: "application/json" },
    Row { feature: gates::CLAIM_RIGHTS, see: |gates| Box::pin(claim(gates)), on: "422", off: "200" },
    Row {
        feature: gates::CONSTRAINED_IMPERSONATION,
        see: |gates| Box::pin(identity::impersonated(gates)),
        on: "configmaps",
        off: "users",
    },
    Row {
        feature: gates::DETECT_INCONSISTENCY,
        see: |gates| Box::pin(compared(gates)),
        on: "caches are compared",
        off: "",
    },
    Row {
        feature: gates::ISSUER_EGRESS,
        see: |gates| Box::pin(identity::egress(gates)),
        on: "it starts",
        off: "egress selector is not supported",
    },
    // Of the keys of issuers two families tell.
    Row { feature: gates::JWKS_METRICS, see: |gates| Box::pin(identity::issuer_families(gates)), on: "4", off: "2" },
    Row {
        feature: gates::KMS_V1,
        see: |gates| Box::pin(super::encrypted::with_a_plug_in_of_version_one(gates)),
        on: "it starts",
        off: "KMSv1 is deprecated",
    },
    Row { feature: gates::MUTATING_POLICIES, see: |gates| Box::pin(changed(gates)), on: "changed", off: "sent" },
    Row { feature: gates::SUBJECT_UID, see: |gates| Box::pin(identity::uid(gates)), on: "u1", off: "" },
    Row { feature: gates::NODE_DECLARED_FEATURES, see: |gates| Box::pin(resized(gates)), on: "403", off: "200" },
    Row { feature: FLAGZ, see: |gates| Box::pin(code("/flagz", gates)), on: "200", off: "404" },
    Row { feature: STATUSZ, see: |gates| Box::pin(code("/statusz", gates)), on: "200", off: "404" },
    Row { feature: gates::COORDINATED, see: |gates| Box::pin(strategy(gates)), on: "OldestEmulationVersion", off: "" },
    Row {
        feature: gates::DEVICE_TAINT_RULES,
        see: |gates| Box::pin(rules_of("system:kube-scheduler", "devicetaintrules", gates)),
        on: "1",
        off: "0",
    },
    Row {
        feature: gates::WORKLOAD_WITH_JOB,
        see: |gates| Box::pin(rules_of("system:controller:job-controller", "workloads", gates)),
        on: "1",
        off: "0",
    },
    Row { feature: kinds::gates::MUTABLE_NODE_AFFINITY, see: |gates| Box::pin(moved(gates)), on: "200", off: "422" },
    Row { feature: registry::UNSAFE_DELETION, see: |gates| Box::pin(unread(gates)), on: "200", off: "500" },
    Row {
        feature: kinds::gates::COMPARING_TOLERATIONS,
        see: |gates| Box::pin(compared_numbers(gates)),
        on: "201",
        off: "422",
    },
    Row { feature: kinds::gates::POD_DELETION_COST, see: |gates| Box::pin(dear(gates)), on: "422", off: "201" },
    Row {
        feature: kinds::gates::RELAXED_SERVICE_NAMES,
        see: |gates| Box::pin(service(gates, "1a", "")),
        on: "201",
        off: "422",
    },
    Row {
        feature: kinds::gates::RESTART_ALL_CONTAINERS,
        see: |gates| Box::pin(restarted(gates)),
        on: "201",
        off: "422",
    },
    Row { feature: kinds::gates::HOST_NETWORK_USERS, see: |gates| Box::pin(own_users(gates)), on: "201", off: "422" },
    Row { feature: kinds::gates::SELINUX_MOUNT, see: |gates| Box::pin(labelled(gates)), on: "201", off: "422" },
    Row { feature: kinds::gates::SERVICE_CIDR_STATUS, see: |gates| Box::pin(network(gates)), on: "0", off: "1" },
    Row {
        feature: kinds::gates::SPREAD_SELECTORS_BY_LABEL_KEYS,
        see: |gates| Box::pin(spread(gates)),
        on: "hash",
        off: "",
    },
    Row {
        feature: kinds::gates::STRICT_ADDRESSES,
        see: |gates| Box::pin(service(gates, "a", r#""externalIPs":["192.0.02.1"],"#)),
        on: "422",
        off: "201",
    },
    // A job that is held and has begun before.
    Row {
        feature: kinds::gates::SUSPENDED_JOB_PLACING,
        see: |gates| Box::pin(held(gates, r#""nodeSelector":{"a":"b"}"#)),
        on: "200",
        off: "422",
    },
    Row {
        feature: kinds::gates::SUSPENDED_JOB_RESOURCES,
        see: |gates| {
            Box::pin(held(gates, r#""containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]"#))
        },
        on: "200",
        off: "422",
    },
    Row {
        feature: gates::INSECURE_KUBELET_REQUESTS,
        see: |gates| Box::pin(nodes::other_node(gates)),
        on: "201",
        off: "403",
    },
    Row { feature: gates::NODE_AUDIENCES, see: |gates| Box::pin(nodes::audiences(gates)), on: "403", off: "201" },
    Row { feature: gates::OPENAPI_ENUMS, see: |gates| Box::pin(choices(gates)), on: "Always", off: "" },
    Row { feature: gates::SPLIT_LOG_STREAMS, see: |gates| Box::pin(one_stream(gates)), on: "404", off: "422" },
    Row { feature: gates::STORAGE_VERSION_HASH, see: |gates| Box::pin(hashed(gates)), on: "xPOwRZ+Yhw8=", off: "" },
    Row {
        feature: gates::TOKEN_REQUEST_UID,
        see: |gates| Box::pin(nodes::token_of_another(gates)),
        on: "409",
        off: "201",
    },
    // The node that a pod has in mind once it is bound, and how somebody is answered who would change it afterwards.
    Row { feature: gates::CLEAR_NOMINATION, see: |gates| Box::pin(minded(gates)), on: " 422", off: "m 200" },
    Row { feature: gates::TOPOLOGY_LABELS, see: |gates| Box::pin(zone(gates)), on: "z", off: "" },
    Row { feature: gates::SHARDS, see: |gates| Box::pin(sharded(gates)), on: "some of all", off: "all" },
    Row { feature: gates::MANIFESTS, see: |gates| Box::pin(reserved(gates)), on: "422", off: "201" },
    Row { feature: gates::PEERS, see: |gates| Box::pin(code(PEER_HOOK, gates)), on: "200", off: "404" },
    Row { feature: kinds::gates::SCALE_TO_ZERO, see: |gates| Box::pin(to_zero(gates)), on: "201", off: "422" },
    Row { feature: gates::REMOTE_UID, see: |gates| Box::pin(identity::remote_uid(gates)), on: "u1", off: "" },
];

/// What tells peers where a server is.
const PEER_HOOK: &str = "/healthz/poststarthook/peer-endpoint-reconciler-controller";

/// How a path is answered, once the server has begun.
async fn code(path: &'static str, gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    api.wait_until_ready().await;
    api.get(path).await.code.to_string()
}

/// How somebody is answered who has an object deleted that cannot be read.
async fn unread(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let backend = api.server.cx().backend();
    let key = "/registry/configmaps/default/a".into();
    backend.txn(&key, storage::Expect::Absent, storage::Write::put("k8s\0garbage")).await.expect("a write");
    let body = r#"{"ignoreStoreReadErrorWithClusterBreakingPotential":true}"#;
    api.send("DELETE /api/v1/namespaces/default/configmaps/a", &[], body).await.code.to_string()
}

/// A pod with more of a spec, and of its container.
fn pod(meta: &str, spec: &str, container: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"p"{meta}}},"spec":{{{spec}"containers":[{{"name":"c","image":"i"{container}}}]}}}}"#
    )
}

async fn made(gates: Gates, path: &str, object: &str) -> super::harness::Answer {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    api.post(path, object).await
}

const PODS: &str = "/api/v1/namespaces/default/pods";

/// How a pod is answered that tolerates what is less.
async fn compared_numbers(gates: Gates) -> String {
    let spec = r#""tolerations":[{"key":"k","operator":"Lt","value":"5"}],"#;
    made(gates, PODS, &pod("", spec, "")).await.code.to_string()
}

/// How a pod is answered that has users of its own on the host's network.
async fn own_users(gates: Gates) -> String {
    made(gates, PODS, &pod("", r#""hostNetwork":true,"hostUsers":false,"#, "")).await.code.to_string()
}

/// How a pod is answered that wants its volumes mounted with its label.
async fn labelled(gates: Gates) -> String {
    let spec = r#""securityContext":{"seLinuxChangePolicy":"MountOption"},"#;
    made(gates, PODS, &pod("", spec, "")).await.code.to_string()
}

/// How a pod is answered whose cost is no number.
async fn dear(gates: Gates) -> String {
    let meta = r#","annotations":{"controller.kubernetes.io/pod-deletion-cost":"much"}"#;
    made(gates, PODS, &pod(meta, "", "")).await.code.to_string()
}

/// How a pod is answered whose container restarts all of it.
async fn restarted(gates: Gates) -> String {
    let rule = r#"{"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[1]}}"#;
    let container = format!(r#","restartPolicy":"Never","restartPolicyRules":[{rule}]"#);
    made(gates, PODS, &pod("", "", &container)).await.code.to_string()
}

/// What the server itself makes of the labels that a constraint of a pod names.
async fn spread(gates: Gates) -> String {
    let spec = r#""topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"k","whenUnsatisfiable":"DoNotSchedule",
        "labelSelector":{"matchLabels":{"a":"b"}},"matchLabelKeys":["hash"]}],"#;
    let answer = made(gates, PODS, &pod(r#","labels":{"a":"b","hash":"1"}"#, spec, "")).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    let selector = &answer.json()["spec"]["topologySpreadConstraints"][0]["labelSelector"];
    selector["matchExpressions"][0]["key"].as_str().unwrap_or_default().to_owned()
}

/// How a Service is answered.
async fn service(gates: Gates, name: &str, more: &str) -> String {
    let service = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{{more}"ports":[{{"port":80}}]}}}}"#);
    made(gates, "/api/v1/namespaces/default/services", &service).await.code.to_string()
}

/// How many conditions a network for Services is made with.
async fn network(gates: Gates) -> String {
    let network = r#"{"metadata":{"name":"n"},"spec":{"cidrs":["192.0.2.0/24"]},"status":{"conditions":[{"type":"Ready",
        "status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#;
    let answer = made(gates, "/apis/networking.k8s.io/v1/servicecidrs", network).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    answer.json()["status"]["conditions"].as_array().map_or(0, Vec::len).to_string()
}

/// How a change of the pods is answered of a job that had begun and is held.
async fn held(gates: Gates, change: &str) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = r#"{"metadata":{"name":"j"},"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never",
        "containers":[{"name":"c","image":"i"}]}}}}"#;
    let made = api.post(jobs, job).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let status = r#"{"status":{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Suspended","status":"True",
        "lastTransitionTime":"2026-01-01T00:00:00Z","lastProbeTime":"2026-01-01T00:00:00Z"}]}}"#;
    let begun = api.patch("merge-patch", &format!("{jobs}/j/status"), status).await;
    assert_eq!(begun.code, 200, "{}", begun.text);
    let change = format!(r#"{{"spec":{{"template":{{"spec":{{{change}}}}}}}}}"#);
    api.patch("merge-patch", &format!("{jobs}/j"), &change).await.code.to_string()
}

/// The first value that descriptions know of a text.
async fn choices(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let document = api.get("/openapi/v3/api/v1").await.json();
    let spec = &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"];
    spec["properties"]["restartPolicy"]["enum"][0].as_str().unwrap_or_default().to_owned()
}

/// How somebody is answered who wants one stream of the log of a pod that is not there.
async fn one_stream(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    api.get(&format!("{PODS}/p/log?stream=Stderr")).await.code.to_string()
}

/// What discovery tells of the version in which pods are stored.
async fn hashed(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let list = api.get("/api/v1").await.json();
    let pods = list["resources"].as_array().and_then(|all| all.iter().find(|own| own["name"] == "pods").cloned());
    pods.expect("pods")["storageVersionHash"].as_str().unwrap_or_default().to_owned()
}

/// What a pod has of the zone of the node that it is bound to.
async fn zone(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    api.wait_until_ready().await;
    let node = r#"{"metadata":{"name":"n","labels":{"topology.kubernetes.io/zone":"z"}}}"#;
    assert_eq!(api.post("/api/v1/nodes", node).await.code, 201);
    api.get("/api/v1/nodes").await;
    assert_eq!(api.post(PODS, &pod("", "", "")).await.code, 201);
    let binding = r#"{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}"#;
    assert_eq!(api.post(&format!("{PODS}/p/binding"), binding).await.code, 201);
    let pod = api.get(&format!("{PODS}/p")).await.json();
    pod["metadata"]["labels"]["topology.kubernetes.io/zone"].as_str().unwrap_or_default().to_owned()
}

/// Which node a pod has in mind once it is bound, and what becomes of another one.
async fn minded(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    api.wait_until_ready().await;
    assert_eq!(api.post("/api/v1/nodes", r#"{"metadata":{"name":"n"}}"#).await.code, 201);
    assert_eq!(api.post(PODS, &pod("", "", "")).await.code, 201);
    let (path, status) = (format!("{PODS}/p"), format!("{PODS}/p/status"));
    let minds = |node: &str| format!(r#"{{"status":{{"nominatedNodeName":"{node}"}}}}"#);
    assert_eq!(api.patch("merge-patch", &status, &minds("m")).await.code, 200);
    let binding = r#"{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}"#;
    assert_eq!(api.post(&format!("{path}/binding"), binding).await.code, 201);
    let pod = api.get(&path).await.json();
    let changed = api.patch("merge-patch", &status, &minds("o")).await.code;
    format!("{} {changed}", pod["status"]["nominatedNodeName"].as_str().unwrap_or_default())
}

/// How somebody is answered who takes a name that files have to themselves.
async fn reserved(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    api.post(path, r#"{"metadata":{"name":"a.static.k8s.io"}}"#).await.code.to_string()
}

/// What lists are of that ask for a half of the namespaces each.
async fn sharded(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    api.wait_until_ready().await;
    let list = async |low: &str, high: &str| {
        let selector = format!("shardRange(object.metadata.uid,'0x{low}','0x{high}')");
        let escaped = selector.replace('\'', "%27").replace('(', "%28").replace(')', "%29").replace(',', "%2C");
        api.get(&format!("/api/v1/namespaces?shardSelector={escaped}")).await.json()
    };
    let (middle, end) = ("8000000000000000", "10000000000000000");
    let halves = [list("0000000000000000", middle).await, list(middle, end).await];
    let counts = halves.each_ref().map(|half| half["items"].as_array().map_or(0, Vec::len));
    let all = api.get("/api/v1/namespaces").await.json()["items"].as_array().map_or(0, Vec::len);
    let shown = &halves[1]["metadata"]["shardInfo"]["selector"];
    let expected = format!("shardRange(object.metadata.uid, '0x{middle}', '0x{end}')");
    match counts {
        [one, other] if one + other == all && *shown == expected => "some of all".to_owned(),
        [one, other] if one == all && other == all && shown.is_null() => "all".to_owned(),
        counts => format!("{counts:?} of {all}, {shown}"),
    }
}

/// How a volume is answered that is to be reached from another node.
async fn moved(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let volume = |node: &str| {
        format!(
            r#"{{"metadata":{{"name":"v"}},"spec":{{"capacity":{{"storage":"1Gi"}},"accessModes":["ReadWriteOnce"],
            "hostPath":{{"path":"/x"}},"nodeAffinity":{{"required":{{"nodeSelectorTerms":[{{"matchExpressions":[
            {{"key":"node","operator":"In","values":["{node}"]}}]}}]}}}}}}}}"#
        )
    };
    let made = api.post("/api/v1/persistentvolumes", &volume("a")).await;
    assert_eq!(made.code, 201, "{}", made.text);
    api.put("/api/v1/persistentvolumes/v", &volume("b")).await.code.to_string()
}

/// How many rules of a default role are about a resource.
async fn rules_of(role: &'static str, resource: &'static str, gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    api.wait_until_ready().await;
    let role = api.get(&format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}")).await.json();
    let rules = role["rules"].as_array().into_iter().flatten();
    let about = |rule: &&serde_json::Value| {
        rule["resources"].as_array().is_some_and(|all| all.iter().any(|own| own == resource))
    };
    rules.filter(about).count().to_string()
}

/// How an autoscaler is answered that may leave nothing of its workload.
async fn to_zero(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let scaler = r#"{"metadata":{"name":"s"},"spec":{"minReplicas":0,"maxReplicas":2,"scaleTargetRef":{"apiVersion":
        "apps/v1","kind":"Deployment","name":"d"},"metrics":[{"type":"External","external":{"metric":{"name":"m"},
        "target":{"type":"Value","value":"1"}}}]}}"#;
    api.post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", scaler).await.code.to_string()
}

/// What is stored of the strategy of an election.
async fn strategy(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let lease = r#"{"metadata":{"name":"l"},"spec":{"strategy":"OldestEmulationVersion"}}"#;
    let made = api.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", lease).await.json();
    made["spec"]["strategy"].as_str().unwrap_or_default().to_owned()
}

/// How a large answer is encoded for a client that takes what is compressed.
async fn encoding(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let map = format!(r#"{{"metadata":{{"name":"large"}},"data":{{"text":"{}"}}}}"#, "x".repeat(200_000));
    assert_eq!(api.post("/api/v1/namespaces/default/configmaps", &map).await.code, 201);
    let line = "GET /api/v1/namespaces/default/configmaps/large";
    let answer = api.open(line, &[("accept-encoding", "gzip")], "").await;
    let encoding = answer.headers().get("content-encoding");
    encoding.map(|value| value.to_str().expect("a text").to_owned()).unwrap_or_default()
}

/// What somebody is told who allocates devices, and may only write a status.
async fn claim(gates: Gates) -> String {
    // With that one, what is written at the start would wait for the versions of its kinds.
    let switched = kinds::gates::SWITCHED.iter().filter(|own| **own != kinds::gates::STORAGE_VERSION_API);
    let all = switched.fold(gates, |all, own| all.with(*own, true));
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(all), |_| {}).await;
    super::device_claims::allocated_by_alice(&api, None).await.code.to_string()
}

/// What is stored of a field of a kind.
async fn field(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let set = r#"{"metadata":{"name":"s"},"spec":{"serviceName":"s","selector":{"matchLabels":{"a":"b"}},
        "updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}},
        "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#;
    let answer = api.post("/apis/apps/v1/namespaces/default/statefulsets", set).await;
    let stored = &answer.json()["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
    if stored.is_null() { String::new() } else { stored.to_string() }
}

/// What somebody is told who has a pod as a whole ask for more on a node that does not say that it can do that.
async fn resized(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    api.wait_until_ready().await;
    assert_eq!(api.post("/api/v1/nodes", r#"{"metadata":{"name":"n"}}"#).await.code, 201);
    let status = r#"{"status":{"allocatable":{"cpu":"4"},"capacity":{"cpu":"4"}}}"#;
    assert_eq!(api.patch("merge-patch", "/api/v1/nodes/n/status", status).await.code, 200);
    // A read waits until the cache is as new as the store.
    api.get("/api/v1/nodes").await;
    let pod = r#"{"metadata":{"name":"p"},"spec":{"nodeName":"n","resources":{"requests":{"cpu":"1"}},
        "containers":[{"name":"c","image":"i"}]}}"#;
    let pods = "/api/v1/namespaces/default/pods";
    let made = api.post(pods, pod).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let more = r#"{"spec":{"resources":{"requests":{"cpu":"2"}}}}"#;
    api.patch("merge-patch", &format!("{pods}/p/resize"), more).await.code.to_string()
}

/// How somebody is answered who has the init container of a pod ask for more, which is on no node yet.
async fn resized_init(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let container = |cpu: &str| format!(r#"{{"name":"i","image":"i","resources":{{"requests":{{"cpu":"{cpu}"}}}}}}"#);
    let spec = format!(r#""initContainers":[{}],"#, container("1"));
    let made = api.post(PODS, &pod("", &spec, "")).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let more = format!(r#"{{"spec":{{"initContainers":[{}]}}}}"#, container("2"));
    api.patch("strategic-merge-patch", &format!("{PODS}/p/resize"), &more).await.code.to_string()
}

/// How many leases say that an API server is there.
async fn own_leases(gates: Gates) -> String {
    let change = |config: &mut crate::config::ServerConfig| config.serving = Some(super::https::serving());
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), change).await;
    api.wait_until_ready().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let leases = api.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").await.json();
    let names = leases["items"].as_array().into_iter().flatten().map(|lease| &lease["metadata"]["name"]);
    names.filter(|name| name.as_str().is_some_and(|name| name.starts_with("apiserver-"))).count().to_string()
}

/// What a policy that changes config maps leaves of one.
async fn changed(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    super::policies::changed_by_a_policy(&api, "sent", "changed").await
}

/// Whether caches are compared with the store before ten minutes are over.
async fn compared(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    api.wait_until_ready().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let text = api.get("/metrics").await.text;
    let seen = text.lines().any(|line| line.starts_with("apiserver_storage_consistency_checks_total{"));
    if seen { "caches are compared".to_owned() } else { String::new() }
}

/// The form in which a client is answered that would like CBOR best.
async fn form(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let accept = [("accept", "application/cbor,application/json;q=0.9")];
    let answer = api.open("GET /api/v1/namespaces/default", &accept, "").await;
    answer.headers()["content-type"].to_str().expect("a text").to_owned()
}

#[test]
fn each_gate_can_be_switched_on() {
    assert_eq!((gates::KNOWN.out_of_reach(), gates::KNOWN.untold()), (vec![], vec![]));
}

#[test]
fn no_gate_has_one_side_only() {
    assert_eq!(gates::KNOWN.one_sided(), [""; 0]);
}

/// A look in a runtime of its own: the tasks of a server go on for as long as the runtime does, and each of them runs whenever
/// time passes for whoever looks later.
fn seen(row: &Row, side: bool) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on((row.see)(Gates::default().with(row.feature, side)))
}

#[test]
fn each_gate_changes_what_it_names() {
    // Those of kinds, clients, the log and metrics are seen in their own crates, each on both sides.
    let own = [component_base::logging::GATES, component_base::metrics::GATES];
    let others = [&[kinds::gates::SWITCHED, client::features::GATES], &own[..]].concat();
    let of_others = |feature: &Feature| others.iter().any(|list| list.contains(feature));
    let mut rows: Vec<Feature> = ROWS.iter().map(|row| row.feature).collect();
    rows.sort_unstable();
    let locked = |feature: &Feature| feature.gate().at(BINARY).is_some_and(|step| step.locked);
    let switches = gates::KNOWN.features().filter(|feature| gates::KNOWN.switches(*feature));
    let switches = switches.filter(|feature| !of_others(feature) && !locked(feature));
    assert_eq!(rows, switches.collect::<Vec<_>>(), "each switch has a row");
    assert_eq!(wrong_sides(), [""; 0]);
}

/// What is seen that is not expected. Looks share nothing, so several are taken at the same time.
fn wrong_sides() -> Vec<String> {
    let looks: Vec<_> = ROWS.iter().flat_map(|row| [(row, true, row.on), (row, false, row.off)]).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let look = || {
        while let Some((row, side, expected)) = looks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let seen = seen(row, *side);
            if seen != *expected {
                wrong.lock().push(format!("{}={side}: {seen} instead of {expected}", row.feature.name()));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..LOOKS_AT_ONCE {
            scope.spawn(look);
        }
    });
    wrong.into_inner()
}

#[tokio::test(start_paused = true)]
async fn the_gates_of_the_process_reach_the_rules_of_kinds() {
    let feature = kinds::gates::STATEFUL_SET_MAX_UNAVAILABLE;
    for (side, expected) in [(true, "2"), (false, "")] {
        assert_eq!(field(Gates::default().with(feature, side)).await, expected, "{side}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_version_tells_what_is_emulated() {
    let told = async |versions: Versions| {
        let api = Api::as_process(|lifecycle| lifecycle.with_versions(versions), |_| {}).await;
        let version = api.get("/version").await.json();
        let text = |member: &str| version[member].as_str().expect("a number").to_owned();
        ["minor", "emulationMinor", "minCompatibilityMinor"].map(text)
    };
    assert_eq!(told(Versions::default()).await, ["36", "36", "35"]);
    assert_eq!(told(Versions::emulating(MinorVersion::one(34))).await, ["36", "34", "33"]);
}
