//! Writes that mean to pass a policy by another door, and bodies that grow when they are read. `docs/vulnerabilities.md`
//! says which reports these are.

use serde_json::{Value, json};

use super::harness::{Answer, Api};
use super::hostile_paths::allow;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const NODE: (&str, &str) = ("authorization", "Bearer system:node:n1");
const ALICE: (&str, &str) = ("authorization", "Bearer alice");
const ADDRESS: &str = "203.0.113.7";

async fn made(api: &Api, path: &str, body: &Value) -> Value {
    let answer = api.post(path, &body.to_string()).await;
    assert_eq!(answer.code, 201, "{path}: {}", answer.text);
    // Plugins look at what is cached; a read waits until that is as new.
    api.get(path).await;
    answer.json()
}

async fn patched(api: &Api, who: (&str, &str), kind: &str, path: &str, body: &Value) -> Answer {
    let line = format!("PATCH {path}");
    api.send(&line, &[who, ("content-type", kind)], body.to_string()).await
}

/// The same change as every kind of patch: of `field`, which is a list, to `items`.
fn doors(kind: (&str, &str, &str), field: &[&str], items: &Value) -> Vec<(&'static str, Value)> {
    let nested = field.iter().rev().fold(items.clone(), |inner, name| json!({ *name: inner }));
    let mut applied = json!({"apiVersion": kind.0, "kind": kind.1, "metadata": {"name": kind.2}});
    applied.as_object_mut().unwrap().extend(nested.as_object().unwrap().clone());
    let pointer = format!("/{}", field.join("/"));
    vec![
        ("application/json-patch+json", json!([{"op": "add", "path": pointer, "value": items}])),
        ("application/merge-patch+json", nested.clone()),
        ("application/strategic-merge-patch+json", nested),
        ("application/apply-patch+yaml", applied),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_write_passes_admission() {
    let api = Api::with(|config| config.admission.selection.enabled.push("DenyServiceExternalIPs".to_owned())).await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let mut stored = made(&api, SERVICES, &service).await;
    let mut born = service.clone();
    (born["metadata"]["name"], born["spec"]["externalIPs"]) = (json!("t"), json!([ADDRESS]));
    let text = "Use of external IPs is denied by admission control";
    let refused = api.post(SERVICES, &born.to_string()).await;
    assert!(refused.code == 403 && refused.text.contains(text), "{refused:?}");
    let path = format!("{SERVICES}/s");
    let root = ("authorization", "Bearer root");
    for (kind, body) in doors(("v1", "Service", "s"), &["spec", "externalIPs"], &json!([ADDRESS])) {
        let query = if kind.contains("apply") { "?fieldManager=me&force=true" } else { "" };
        let refused = patched(&api, root, kind, &format!("{path}{query}"), &body).await;
        assert!(refused.code == 403 && refused.text.contains(text), "{kind}: {refused:?}");
        // The door of the status does not lead to the spec.
        patched(&api, root, kind, &format!("{path}/status{query}"), &body).await;
    }
    stored["spec"]["externalIPs"] = json!([ADDRESS]);
    stored["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let put = api.put(&path, &stored.to_string()).await;
    assert!(put.code == 403 && put.text.contains(text), "{put:?}");
    api.put(&format!("{path}/status"), &stored.to_string()).await;
    assert_eq!(api.get(&path).await.json()["spec"].get("externalIPs"), None);
}

#[tokio::test(start_paused = true)]
async fn external_addresses_are_warned_of_and_the_status_needs_a_right_of_its_own() {
    let api = Api::start().await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": [ADDRESS]}});
    let answer = api.post(SERVICES, &service.to_string()).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    assert!(answer.warnings().iter().any(|text| text.contains("externalIPs")), "{:?}", answer.warnings());
    allow(&api, "default", json!({"apiGroups": [""], "resources": ["services"], "verbs": ["*"]})).await;
    let claim = json!({"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}});
    let kind = "application/merge-patch+json";
    let refused = patched(&api, ALICE, kind, &format!("{SERVICES}/s/status"), &claim).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    let main = patched(&api, ALICE, kind, &format!("{SERVICES}/s"), &claim).await;
    assert_eq!(main.json()["status"]["loadBalancer"], json!({}), "{}", main.text);
}

#[tokio::test(start_paused = true)]
async fn ephemeral_containers_pass_the_policies_of_pods_and_bring_nothing_else() {
    let api = Api::start().await;
    let level = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    let namespace = "/api/v1/namespaces/default";
    assert_eq!(api.patch("merge-patch", namespace, &level.to_string()).await.code, 200);
    let pod =
        json!({"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    made(&api, PODS, &pod).await;
    let rule =
        json!({"apiGroups": [""], "resources": ["pods/ephemeralcontainers"], "verbs": ["get", "patch", "update"]});
    allow(&api, "default", rule).await;
    let path = format!("{PODS}/p/ephemeralcontainers");
    let privileged = json!({"name": "e", "image": "i", "securityContext": {"privileged": true}});
    for (kind, body) in doors(("v1", "Pod", "p"), &["spec", "ephemeralContainers"], &json!([privileged])) {
        let query = if kind.contains("apply") { "?fieldManager=me&force=true" } else { "" };
        let refused = patched(&api, ALICE, kind, &format!("{path}{query}"), &body).await;
        assert_eq!(refused.code, 403, "{kind}: {}", refused.text);
        // An apply that leaves out required fields may be refused for them first.
        assert!(refused.text.contains("violates PodSecurity"), "{kind}: {}", refused.text);
        assert_eq!(patched(&api, ALICE, kind, &format!("{PODS}/p"), &body).await.code, 403, "{kind}");
    }
    let mut wanted = api.get(&format!("{PODS}/p")).await.json();
    let before = wanted.clone();
    wanted["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i"}]);
    wanted["metadata"]["labels"] = json!({"stolen": "yes"});
    wanted["spec"]["volumes"] = json!([{"name": "v", "hostPath": {"path": "/"}}]);
    wanted["spec"]["securityContext"] = json!({"runAsUser": 0});
    wanted["spec"]["containers"][0]["image"] = json!("other");
    let put = api.send(&format!("PUT {path}"), &[ALICE], wanted.to_string()).await;
    let after = api.get(&format!("{PODS}/p")).await.json();
    assert_eq!((put.code, &after["spec"]["ephemeralContainers"][0]["name"]), (200, &json!("e")), "{}", put.text);
    for field in ["/metadata/labels", "/spec/volumes", "/spec/securityContext", "/spec/containers"] {
        assert_eq!(after.pointer(field), before.pointer(field), "{field}");
    }
}

async fn with_node() -> (Api, Value) {
    let api = Api::with(|config| config.admission.selection.enabled.push("NodeRestriction".to_owned())).await;
    api.wait_until_ready().await;
    made(&api, "/api/v1/nodes", &json!({"metadata": {"name": "n2"}})).await;
    let node = made(&api, "/api/v1/nodes", &json!({"metadata": {"name": "n1"}})).await;
    (api, node)
}

fn mirror(node: &Value) -> Value {
    let owner =
        json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "controller": true, "uid": node["metadata"]["uid"]});
    let metadata =
        json!({"name": "m", "ownerReferences": [owner], "annotations": {"kubernetes.io/config.mirror": "x"}});
    json!({"metadata": metadata, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
}

#[tokio::test(start_paused = true)]
async fn a_node_reaches_for_nothing_through_its_mirror_pods() {
    let (api, node) = with_node().await;
    let cases: [(&str, Value); 11] = [
        ("/spec/serviceAccountName", json!("default")),
        ("/spec/resourceClaims", json!([{"name": "c", "resourceClaimName": "x"}])),
        ("/spec/imagePullSecrets", json!([{"name": "s"}])),
        ("/spec/volumes", json!([{"name": "v", "secret": {"secretName": "s"}}])),
        ("/spec/volumes", json!([{"name": "v", "configMap": {"name": "s"}}])),
        ("/spec/volumes", json!([{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}])),
        ("/spec/volumes", json!([{"name": "v", "persistentVolumeClaim": {"claimName": "s"}}])),
        ("/spec/nodeName", json!("n2")),
        ("/metadata/ownerReferences", json!([])),
        ("/metadata/ownerReferences/0/name", json!("n2")),
        ("/metadata/annotations", json!({})),
    ];
    for (field, value) in cases {
        let mut pod = mirror(&node);
        let (parent, name) = field.rsplit_once('/').unwrap();
        match pod.pointer_mut(parent).unwrap() {
            Value::Object(object) => drop(object.insert(name.to_owned(), value.clone())),
            other => other[name] = value.clone(),
        }
        let refused = api.send(&format!("POST {PODS}"), &[NODE], pod.to_string()).await;
        assert_eq!(refused.code, 403, "{field} {value}: {}", refused.text);
    }
    let good = api.send(&format!("POST {PODS}"), &[NODE], mirror(&node).to_string()).await;
    assert_eq!(good.code, 201, "{}", good.text);
}

#[tokio::test(start_paused = true)]
async fn a_node_gives_itself_neither_owners_nor_labels_nor_another_nodes_things() {
    let (api, node) = with_node().await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "none"});
    let kind = "application/merge-patch+json";
    for body in [
        json!({"metadata": {"ownerReferences": [owner]}}),
        json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
        json!({"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}}),
        json!({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
        json!({"metadata": {"labels": {"foo.kubernetes.io/x": "y"}}}),
    ] {
        for path in ["/api/v1/nodes/n1", "/api/v1/nodes/n1/status"] {
            let refused = patched(&api, NODE, kind, path, &body).await;
            assert!(refused.code == 403 || path.ends_with("status"), "{path} {body}: {}", refused.text);
        }
    }
    let after = api.get("/api/v1/nodes/n1").await.json();
    for field in ["/metadata/ownerReferences", "/metadata/labels", "/spec/taints", "/metadata/uid"] {
        assert_eq!(after.pointer(field), node.pointer(field), "{field}");
    }
    for (line, body) in [
        ("PATCH /api/v1/nodes/n2", json!({"metadata": {"labels": {"a": "b"}}})),
        ("PATCH /api/v1/nodes/n2/status", json!({"status": {"phase": "x"}})),
        ("DELETE /api/v1/nodes/n2", json!({})),
        ("POST /api/v1/nodes", json!({"metadata": {"name": "n3"}})),
        ("POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", json!({"metadata": {"name": "n2"}})),
        ("PUT /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2", json!({"metadata": {"name": "n2"}})),
        ("GET /api/v1/namespaces/default/secrets/s", json!({})),
    ] {
        let kind = if line.starts_with("PATCH") { kind } else { "application/json" };
        let refused = api.send(line, &[NODE, ("content-type", kind)], body.to_string()).await;
        assert_eq!(refused.code, 403, "{line}: {}", refused.text);
    }
    api.delete("/api/v1/nodes/n1").await;
    let foreign = json!({"metadata": {"name": "n1", "labels": {"node-restriction.kubernetes.io/x": "y"}}});
    let refused = api.send("POST /api/v1/nodes", &[NODE], foreign.to_string()).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
}

#[tokio::test(start_paused = true)]
async fn endpoints_lead_to_no_host_of_their_own() {
    let api = Api::start().await;
    for address in [
        "127.0.0.1",
        "127.8.9.1",
        "::1",
        "169.254.169.254",
        "fe80::1",
        "224.0.0.1",
        "ff02::1",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
    ] {
        let family = if address.contains(':') { "IPv6" } else { "IPv4" };
        let slice = json!({"metadata": {"name": "s"}, "addressType": family, "endpoints": [{"addresses": [address]}]});
        let endpoints =
            json!({"metadata": {"name": "e"}, "subsets": [{"addresses": [{"ip": address}], "ports": [{"port": 1}]}]});
        let waiting = json!({"metadata": {"name": "e"}, "subsets": [{"notReadyAddresses": [{"ip": address}], "ports": [{"port": 1}]}]});
        for (path, body) in [
            ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice),
            ("/api/v1/namespaces/default/endpoints", endpoints),
            ("/api/v1/namespaces/default/endpoints", waiting),
        ] {
            let refused = api.post(path, &body.to_string()).await;
            assert_eq!(refused.code, 422, "{address} {path}: {}", refused.text);
        }
    }
}

/// Codes and texts as upstream's, since clients tell a bomb from a mistake by them.
#[tokio::test(start_paused = true)]
async fn json_patches_that_grow_are_refused_as_upstream_refuses_them() {
    let api = Api::start().await;
    api.config_map("a").await;
    let kind = [("content-type", "application/json-patch+json")];
    let many: Vec<_> = (0..10_001).map(|_| json!({"op": "test", "path": "/data/a", "value": "b"})).collect();
    let answer = api.send(&format!("PATCH {MAPS}/a"), &kind, json!(many).to_string()).await;
    assert_eq!(answer.code, 413, "{}", answer.text);
    assert!(answer.text.contains("The allowed maximum operations in a JSON patch is 10000"), "{}", answer.text);
    let copies: Vec<_> =
        (0..40).map(|index| json!({"op": "copy", "from": "/data", "path": format!("/data/k{index}")})).collect();
    let answer = api.send(&format!("PATCH {MAPS}/a"), &kind, json!(copies).to_string()).await;
    assert_eq!(answer.code, 422, "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn strangers_have_nothing_parsed() {
    let api = Api::start().await;
    let bomb: String = (1..9)
        .map(|level| format!("a{level}: &a{level} [*a{0},*a{0},*a{0},*a{0},*a{0},*a{0},*a{0},*a{0}]\n", level - 1))
        .collect();
    let bomb = format!("a0: &a0 [x,x,x,x,x,x,x,x]\n{bomb}");
    let deep = "[".repeat(1_400_000);
    let json = "application/json";
    for (kind, body) in
        [("application/yaml", bomb.as_str()), (json, deep.as_str()), ("application/yaml", deep.as_str())]
    {
        for (who, expected) in [("", 403), ("Bearer nobody", 401), ("Bearer root", 400)] {
            let answer =
                api.send(&format!("POST {REVIEWS}"), &[("authorization", who), ("content-type", kind)], body).await;
            assert_eq!(answer.code, expected, "{who} {kind}: {}", answer.text);
        }
        let answer = api.send(&format!("POST {MAPS}"), &[("content-type", kind)], body).await;
        assert_eq!(answer.code, 400, "{kind}: {}", answer.text);
    }
    // What is nested in the record of an apply is free-form.
    let fields = format!("{}1{}", "{\"f:a\":".repeat(10_001), "}".repeat(10_001));
    let record = format!(
        r#"[{{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}]"#
    );
    let body = format!(r#"{{"metadata":{{"name":"r","managedFields":{record}}},"data":{{"a":"b"}}}}"#);
    let answer = api.post(MAPS, &body).await;
    assert!((400..=422).contains(&answer.code), "{}", answer.text);
}

/// A WebSocket is opened by GET: who may only read must not run commands by it.
#[tokio::test(start_paused = true)]
async fn reading_is_not_enough_for_a_session() {
    let api = Api::start().await;
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}});
    made(&api, PODS, &pod).await;
    let resources = json!(["pods", "pods/exec", "pods/attach", "pods/portforward", "nodes/proxy"]);
    allow(&api, "", json!({"apiGroups": [""], "resources": resources, "verbs": ["get", "list", "watch"]})).await;
    let upgrade = [
        ALICE,
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "v4.channel.k8s.io"),
    ];
    for session in ["exec?command=ls&stdout=1", "attach?stdout=1", "portforward?ports=80"] {
        let refused = api.send(&format!("GET {PODS}/p/{session}"), &upgrade, "").await;
        assert!(refused.code == 403 && refused.text.contains("cannot create resource"), "{session}: {refused:?}");
    }
}
