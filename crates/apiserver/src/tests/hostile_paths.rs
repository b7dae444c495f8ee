//! Paths and names that mean to lead somewhere else. `docs/vulnerabilities.md` says which reports these are.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::harness::{Answer, Api};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ALICE: (&str, &str) = ("authorization", "Bearer alice");
const ANONYMOUS: (&str, &str) = ("authorization", "");

/// Lets alice do something in the namespace `default`, or everywhere.
pub(super) async fn allow(api: &Api, namespace: &str, rule: serde_json::Value) {
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let (place, kind) = if namespace.is_empty() { ("", "Cluster") } else { ("/namespaces/default", "") };
    let lower = kind.to_lowercase();
    let role = json!({"metadata": {"name": "given"}, "rules": [rule]});
    let subject = json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"});
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": format!("{kind}Role"), "name": "given"});
    let binding = json!({"metadata": {"name": "given"}, "roleRef": reference, "subjects": [subject]});
    for (resource, body) in [("roles", role), ("rolebindings", binding)] {
        let made = api.post(&format!("{group}{place}/{lower}{resource}"), &body.to_string()).await;
        assert_eq!(made.code, 201, "{}", made.text);
    }
    // The mirrors learn of it by a watch.
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn define(api: &Api, plural: &str, kind: &str, scope: &str) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema}});
    let spec = json!({"group": "g.example.com", "scope": scope, "versions": [version],
        "names": {"plural": plural, "kind": kind}});
    let body = json!({"metadata": {"name": format!("{plural}.g.example.com")}, "spec": spec});
    let made = api.post(DEFINITIONS, &body.to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    for _ in 0..200 {
        if api.get(&format!("/apis/g.example.com/v1/{plural}")).await.code == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{plural} are never served");
}

async fn with_kinds() -> Api {
    let api = Api::start().await;
    api.wait_until_ready().await;
    for (plural, kind, scope) in [("rocks", "Rock", "Cluster"), ("as", "A", "Namespaced"), ("asb", "Asb", "Namespaced")]
    {
        define(&api, plural, kind, scope).await;
        let place = if scope == "Cluster" { "" } else { "/namespaces/default" };
        let body = json!({"apiVersion": "g.example.com/v1", "kind": kind, "metadata": {"name": "secret-x"}});
        let made = api.post(&format!("/apis/g.example.com/v1{place}/{plural}"), &body.to_string()).await;
        assert_eq!(made.code, 201, "{}", made.text);
    }
    api
}

/// Every verb on an object and on its collection.
async fn every_verb(api: &Api, who: (&str, &str), collection: &str) -> Vec<(String, Answer)> {
    let body = r#"{"apiVersion":"g.example.com/v1","kind":"Rock","metadata":{"name":"secret-x"}}"#;
    let mut answers = Vec::new();
    for (method, path) in [
        ("GET", collection.to_owned()),
        ("POST", collection.to_owned()),
        ("DELETE", collection.to_owned()),
        ("GET", format!("{collection}/secret-x")),
        ("PUT", format!("{collection}/secret-x")),
        ("PATCH", format!("{collection}/secret-x")),
        ("PUT", format!("{collection}/secret-x/status")),
        ("PATCH", format!("{collection}/secret-x/status")),
        ("DELETE", format!("{collection}/secret-x")),
    ] {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let line = format!("{method} {path}");
        let answer = api.send(&line, &[who, ("content-type", kind)], body).await;
        answers.push((line, answer));
    }
    answers
}

#[tokio::test(start_paused = true)]
async fn objects_of_no_namespace_are_not_found_through_one() {
    let api = with_kinds().await;
    // A role in a namespace names the kind, as its owner may: it must not be worth anything outside.
    allow(&api, "default", json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})).await;
    let root = ("authorization", "Bearer root");
    for who in [ALICE, root] {
        for collection in
            ["/apis/g.example.com/v1/namespaces/default/rocks", "/api/v1/namespaces/default/persistentvolumes"]
        {
            for (line, answer) in every_verb(&api, who, collection).await {
                assert_eq!(answer.code, 404, "{who:?} {line}: {}", answer.text);
            }
        }
    }
    // The other way round only collections of all namespaces are there, to be read.
    for (line, answer) in every_verb(&api, root, "/apis/g.example.com/v1/as").await {
        let is_list = line.starts_with("GET") && !line.contains("secret");
        assert_eq!(answer.code == 200, is_list, "{line}: {}", answer.text);
    }
    assert_eq!(api.get("/apis/g.example.com/v1/rocks/secret-x").await.code, 200, "all of it is still there");
    assert_eq!(api.get("/apis/g.example.com/v1/namespaces/default/as/secret-x").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn no_path_and_no_token_widens_a_list() {
    let api = with_kinds().await;
    allow(&api, "", json!({"apiGroups": ["g.example.com"], "resources": ["as"], "verbs": ["list", "get", "watch"]}))
        .await;
    let list = "/apis/g.example.com/v1/namespaces/default/as";
    assert_eq!(api.send(&format!("GET {list}"), &[ALICE], "").await.code, 200);
    let mut targets: Vec<String> =
        ["..", ".", "%2e%2e", "a%2f..", "default%2fas%2f..%2f..", "%00", "..%2fasb", "default%2f..%2f..%2fasb"]
            .iter()
            .flat_map(|namespace| {
                let namespaced = format!("/apis/g.example.com/v1/namespaces/{namespace}/as");
                [
                    namespaced.clone(),
                    format!("{namespaced}?watch=true&timeoutSeconds=1"),
                    format!("{namespaced}/secret-x"),
                ]
            })
            .collect();
    for start in ["/../asb", "../asb/default/secret-x", "b/default/secret-x", "./../asb", "x/../../asb", "\u{0}", "/"] {
        let token = json!({"v": "meta.k8s.io/v1", "rv": -1, "start": start}).to_string();
        let token = URL_SAFE_NO_PAD.encode(token);
        targets.push(format!("{list}?limit=5&continue={token}"));
        targets.push(format!("/apis/g.example.com/v1/as?limit=5&continue={token}"));
    }
    for target in targets {
        let answer = api.send(&format!("GET {target}"), &[ALICE], "").await;
        assert!(!answer.text.contains("Asb"), "{target}: {}", answer.text);
        // What passes for a list of an odd namespace is an empty one; a token only leads within the list itself.
        let is_empty = answer.json()["items"].as_array().is_some_and(Vec::is_empty);
        let is_own = target.contains("continue=");
        assert!(answer.code >= 400 || is_empty || is_own || target.contains("watch"), "{target}: {}", answer.text);
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_one_segment_of_a_key() {
    let api = Api::start().await;
    for name in ["a/b", "..", ".", "a\u{0}", "%2f", "../secrets/x", "a%2fb", "A", " a"] {
        let body = json!({"metadata": {"name": name}}).to_string();
        let made = api.post(MAPS, &body).await;
        assert_eq!(made.code, 422, "{name:?}: {}", made.text);
        let patched = format!("PATCH {MAPS}/x");
        let applied = api.send(&patched, &[("content-type", "application/apply-patch+yaml")], &body).await;
        assert!((400..500).contains(&applied.code), "{name:?}: {}", applied.text);
    }
    api.config_map("kept").await;
    for path in ["a%2f..%2fkept", "..%2fconfigmaps%2fkept", "%2e%2e", "kept%00", ".%2fkept"] {
        for method in ["GET", "DELETE", "PUT"] {
            let answer = api.send(&format!("{method} {MAPS}/{path}"), &[], "{}").await;
            assert!((400..500).contains(&answer.code), "{method} {path}: {}", answer.text);
        }
    }
    assert_eq!(api.get(&format!("{MAPS}/kept")).await.code, 200);
    let pod = r#"{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}"#;
    assert_eq!(api.post("/api/v1/namespaces/default/pods", pod).await.code, 201);
    for container in ["../../x", "..%2f..%2fx", "%00", "c%2f.."] {
        let answer = api.get(&format!("/api/v1/namespaces/default/pods/p/log?container={container}")).await;
        assert_eq!(answer.code, 400, "{container}: {}", answer.text);
    }
}

#[tokio::test(start_paused = true)]
async fn strangers_see_no_insides() {
    let api = Api::start().await;
    api.wait_until_ready().await;
    let paths = [
        "/debug/pprof",
        "/debug/pprof/",
        "/debug/pprof/heap",
        "/debug/pprof/profile",
        "/debug/pprof/trace",
        "/debug/pprof/cmdline",
        "/debug/pprof/goroutine?debug=2",
        "/debug/flags/v",
        "/debug/api_priority_and_fairness/dump_queues",
        "/debug/requests",
        "/debug/vars",
        "/debug",
        "/metrics",
        "/metrics/slis",
        "/metrics/cadvisor",
        "/configz",
        "/statusz",
        "/flagz",
        "/logs",
        "/logs/",
        "/logs/kube-apiserver.log",
        "/openapi/v2",
        "/openapi/v3",
        "/swagger.json",
        "/api/v1/componentstatuses",
        "/api/v1/nodes",
        "/api/v1/secrets",
        "/healthz/etcd",
        "/livez/ping",
        "/readyz/informer-sync",
        "/healthz?verbose",
        "/readyz/../metrics",
        "/healthz/../metrics",
        "//metrics",
        "/healthz%2f..%2fmetrics",
        "/test/panic",
        "/readyz/shutdown",
        "/.well-known/openid-configuration",
        "/openid/v1/jwks",
        "/apis",
    ];
    for path in paths {
        let answer = api.send(&format!("GET {path}"), &[ANONYMOUS], "").await;
        // The sums of the parts of health are for everybody, as upstream has it; single parts are not.
        let public = path.starts_with("/healthz?");
        assert_eq!([401, 403, 404].contains(&answer.code), !public, "{path}: {} {}", answer.code, answer.text);
    }
    for path in ["/healthz", "/livez", "/readyz", "/healthz?verbose", "/version"] {
        let answer = api.send(&format!("GET {path}"), &[ANONYMOUS], "").await;
        assert_eq!(answer.code, 200, "{path}: {}", answer.text);
        for inside in ["127.0.0.1", "Bearer", "password", "://", "panicked", "/etc/"] {
            assert!(!answer.text.contains(inside), "{path} tells {inside}: {}", answer.text);
        }
    }
}

/// What a client makes up must not become the name of a series.
#[tokio::test(start_paused = true)]
async fn made_up_words_make_no_series() {
    let api = Api::start().await;
    let round = async |round: u32| {
        for number in 0..40 {
            let word = format!("w{round}x{number}");
            let agent = ("user-agent", word.as_str());
            for line in [
                format!("GET /{word}"),
                format!("GET /api/v1/{word}"),
                format!("GET /apis/{word}/v1/{word}"),
                format!("GET /api/v1/namespaces/{word}/pods/{word}/{word}"),
                format!("{} {MAPS}", word.to_uppercase()),
                format!("GET {MAPS}?dryRun={word}&watch={word}&timeoutSeconds=1"),
            ] {
                for who in [("authorization", "Bearer root"), ANONYMOUS, ("authorization", "Bearer wrong")] {
                    api.send(&line, &[who, agent, ("content-type", &word), ("accept", &word)], "").await;
                }
            }
        }
        let text = api.get("/metrics").await.text;
        assert!(!text.contains(&format!("w{round}x")), "a client's word is in the metrics");
        // Histograms of sizes and times have all their buckets from the start.
        text.lines().filter(|line| !line.starts_with('#')).count()
    };
    let first = round(0).await;
    assert_eq!(round(1).await, first, "more words are not more series");
}

#[tokio::test(start_paused = true)]
async fn origins_are_matched_as_a_whole() {
    let api =
        Api::with(|config| config.requests.cors_allowed_origins = vec![regex::Regex::new(r"//ok\.com$").unwrap()])
            .await;
    for (origin, allowed) in [
        ("https://ok.com", true),
        ("https://evil-ok.com", false),
        ("https://ok.com.evil.org", false),
        ("https://okxcom", false),
        ("ok.com", false),
        ("null", false),
    ] {
        let answer = api.send("GET /version", &[("origin", origin)], "").await;
        assert_eq!(answer.headers.contains_key("access-control-allow-origin"), allowed, "{origin}");
    }
}
