//! What plugs into the server: discovery, OpenAPI, reviews, and the objects that every cluster has.

use std::sync::Arc;
use std::time::Duration;

use base::{TaskGroup, TokioClock};
use serde_json::Value;
use storage::{Backend, Memory, MemoryOptions};

use super::harness::Api;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

async fn ready() -> Api {
    let api = Api::start().await;
    api.wait_until_ready().await;
    api
}

#[tokio::test(start_paused = true)]
async fn discovery_has_both_forms() {
    let api = Api::start().await;
    let core = api.get("/api").await;
    assert!(core.text.starts_with(r#"{"kind":"APIVersions","versions":["v1"]"#), "{}", core.text);
    let apps = api.get("/apis/apps/v1").await;
    assert!(
        apps.text.starts_with(r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1""#),
        "{}",
        apps.text
    );
    // The router knows the core API and the versions of built-in groups; the documents about groups have no router.
    for (path, code, text) in [
        ("GET /apis/nothing", 404, "404 page not found\n"),
        ("GET /apis/nothing/v1/things", 404, "404 page not found\n"),
        ("GET /api/v2", 404, r#"{"kind":"Status""#),
        ("DELETE /apis/apps/v9", 404, r#"{"kind":"Status""#),
        ("GET /apis/apps/v9/deployments", 404, r#"{"kind":"Status""#),
        ("POST /api", 405, r#"{"kind":"Status""#),
        ("DELETE /apis/apps/v1", 405, r#"{"kind":"Status""#),
        ("POST /apis", 200, r#"{"kind":"APIGroupList""#),
        ("DELETE /apis/apps/", 200, r#"{"kind":"APIGroup""#),
        ("GET /api/v1/namespaces/default/pods/%zz", 400, "400 Bad Request"),
    ] {
        let answer = api.send(path, &[], "").await;
        assert_eq!(answer.code, code, "{path}");
        assert!(answer.text.starts_with(text), "{path} {}", answer.text);
    }

    let all = api.send("GET /apis", &[("accept", AGGREGATED)], "").await;
    assert_eq!(all.json()["kind"], "APIGroupDiscoveryList");
    let names = [0, 1].map(|at| all.json()["items"][at]["metadata"]["name"].clone());
    assert_eq!(names, ["apiregistration.k8s.io", "apps"]);
    assert_eq!(all.headers["content-type"], "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let etag = all.headers["etag"].to_str().unwrap().to_owned();
    let again = api.send("GET /apis", &[("accept", AGGREGATED), ("if-none-match", &etag)], "").await;
    assert_eq!((again.code, again.text.as_str()), (304, ""));
}

#[tokio::test(start_paused = true)]
async fn openapi_documents_are_found_by_their_hash() {
    let api = Api::start().await;
    let index = api.get("/openapi/v3").await.json();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let found = api.get(&url).await;
    assert_eq!((found.code, &found.headers["cache-control"]), (200, &"public, immutable".parse().unwrap()));
    let moved = api.get("/openapi/v3/apis/apps/v1?hash=OLD").await;
    assert_eq!((moved.code, moved.headers["location"].to_str().unwrap()), (301, url.as_str()));
    let unknown = api.get("/openapi/v3/apis/nothing/v1").await;
    assert_eq!((unknown.code, unknown.text.as_str()), (404, ""));
    assert_eq!(api.send("GET /openapi/v2", &[("accept", "text/html")], "").await.code, 406);

    const OLD: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    const NEW: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
    for accept in [OLD, NEW] {
        let packed = api.send(&format!("GET {url}"), &[("accept", accept)], "").await;
        assert_eq!((packed.code, packed.headers["content-type"].to_str().unwrap()), (200, NEW));
        assert_eq!(packed.headers["etag"], found.headers["etag"], "one tag for both forms");
        assert!(packed.text.starts_with("\n\x053.0.0"), "{:?}", packed.text.get(..20));
    }
    let index = api.send("DELETE /openapi/v3", &[("accept", NEW)], "").await;
    let header = |name: &str| index.headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!((index.code, header("content-type"), header("etag")), (200, Some("text/plain; charset=utf-8"), None));
    assert_eq!(header("last-modified"), Some("Thu, 01 Jan 2026 00:00:00 GMT"));
    let known = api.send("GET /openapi/v3", &[("if-modified-since", "Thu, 01 Jan 2026 00:00:00 GMT")], "").await;
    assert_eq!(known.code, 304);
    for own in ["version", ".well-known/openid-configuration", "openid/v1/jwks"] {
        let document = api.get(&format!("/openapi/v3/{own}")).await.json();
        assert!(document["paths"][format!("/{own}/")]["get"]["operationId"].is_string(), "{own} {document}");
    }
    let packed = api.send(&format!("GET {url}"), &[("accept-encoding", "gzip")], "").await;
    assert_eq!((packed.headers.get("content-encoding"), packed.text == found.text), (None, true));
}

#[tokio::test(start_paused = true)]
async fn openapi_documents_come_in_parts() {
    let api = Api::start().await;
    for path in ["/openapi/v2", "/openapi/v3/apis/apps/v1"] {
        let line = format!("GET {path}");
        let whole = api.get(path).await;
        let length = whole.text.len();
        let etag = whole.headers["etag"].to_str().unwrap();
        let part = api.send(&line, &[("range", "bytes=2-5"), ("accept-encoding", "gzip")], "").await;
        assert_eq!((part.code, Some(part.text.as_str())), (206, whole.text.get(2..6)));
        assert_eq!(part.headers["content-range"], format!("bytes 2-5/{length}"));
        assert_eq!(part.headers["etag"], whole.headers["etag"]);
        let none = api.send(&line, &[("range", "bytes=999999999-")], "").await;
        assert_eq!((none.code, none.headers["content-range"].to_str().unwrap()), (416, &*format!("bytes */{length}")));
        for (tag, code) in [(etag, 206), ("\"other\"", 200)] {
            assert_eq!(api.send(&line, &[("range", "bytes=2-5"), ("if-range", tag)], "").await.code, code, "{tag}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn openapi_version_2_has_two_forms() {
    const OLD: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    const NEW: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let api = Api::start().await;
    let ask = async |headers: &[(&str, &str)]| api.send("GET /openapi/v2", headers, "").await;
    let json = ask(&[("accept", "")]).await;
    assert_eq!((json.code, &json.headers["content-type"]), (200, &"application/json".parse().unwrap()));
    let etag = json.headers["etag"].to_str().unwrap();
    let cases = [
        ("*/*", "application/json"),
        (OLD, NEW),
        (NEW, NEW),
        (&format!("{OLD};q=0.5,application/json;q=0.4"), NEW),
        (&format!("{OLD};q=0.5,application/json"), "application/json"),
        (&format!("{OLD}, */*"), NEW),
    ];
    for (accept, media) in cases {
        let answer = ask(&[("accept", accept)]).await;
        let found = [&answer.headers["content-type"], &answer.headers["etag"]].map(|value| value.to_str().unwrap());
        assert_eq!((answer.code, found), (200, [media, etag]), "{accept}");
        assert_eq!(answer.text.starts_with("\n\x032.0"), media == NEW, "{accept}");
    }
    let packed = ask(&[("accept", NEW), ("accept-encoding", "gzip")]).await;
    assert_eq!(packed.headers["content-encoding"], "gzip");
    let time = json.headers["last-modified"].to_str().unwrap();
    let known = [
        (vec![("if-none-match", etag)], 304),
        (vec![("if-none-match", "\"other\""), ("if-modified-since", time)], 200),
        (vec![("if-modified-since", time)], 304),
        (vec![("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT")], 200),
    ];
    for (headers, code) in known {
        assert_eq!(ask(&headers).await.code, code, "{headers:?}");
    }
    let refused = ask(&[("accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")]).await;
    assert_eq!((refused.code, refused.text.as_str()), (406, ""));
    assert_eq!(api.post("/openapi/v2", "").await.code, 405);
}

#[tokio::test(start_paused = true)]
async fn a_new_cluster_gets_what_every_cluster_has() {
    let api = ready().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    for path in [
        "/api/v1/namespaces/kube-system",
        "/api/v1/namespaces/kube-node-lease",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:basic-user",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/extension-apiserver-authentication-reader",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
    ] {
        let answer = api.get(path).await;
        assert_eq!(answer.code, 200, "{path}: {}", answer.text);
    }
    let service = api.get("/api/v1/namespaces/default/services/kubernetes").await.json();
    assert_eq!(service["spec"]["ports"][0]["port"], 443, "{service}");
    let slice = api.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").await.json();
    assert_eq!(slice["endpoints"].as_array().map(Vec::len), Some(1), "{slice}");
}

#[tokio::test(start_paused = true)]
async fn servers_that_listen_keep_leases() {
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let api = Api::with(|config| config.serving = Some(super::https::serving())).await;
    api.wait_until_ready().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let gone = r#"{"metadata":{"name":"apiserver-gone","labels":{"apiserver.kubernetes.io/identity":"kube-apiserver"}},
        "spec":{"holderIdentity":"x","leaseDurationSeconds":3600,"renewTime":"2020-01-01T00:00:00.000000Z"}}"#;
    assert_eq!(api.post(leases, gone).await.code, 201);
    let other = gone.replace("kube-apiserver", "other").replace("apiserver-gone", "another");
    assert_eq!(api.post(leases, &other).await.code, 201);
    let mut renewed = Value::Null;
    for count in [3, 2] {
        let all = api.get(leases).await.json();
        let items = all["items"].as_array().unwrap();
        assert_eq!(items.len(), count, "{all}");
        let own = items.iter().find(|lease| lease["spec"]["holderIdentity"] != "x").unwrap();
        let (name, spec) = (own["metadata"]["name"].as_str().unwrap(), &own["spec"]);
        assert!(name.starts_with("apiserver-"), "{own}");
        assert!(spec["holderIdentity"].as_str().unwrap().starts_with(&format!("{name}_")), "{own}");
        assert_eq!(own["metadata"]["labels"]["apiserver.kubernetes.io/identity"], "kube-apiserver");
        assert_ne!(spec["renewTime"], renewed, "{own}");
        renewed = spec["renewTime"].clone();
        tokio::time::sleep(Duration::from_secs(3700)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_hears_of_what_was_repaired() {
    let api = ready().await;
    let service = r#"{"metadata":{"name":"web"},"spec":{"type":"NodePort","ports":[{"port":80}]}}"#;
    let made = api.post("/api/v1/namespaces/default/services", service).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let port = made.json()["spec"]["ports"][0]["nodePort"].clone();
    let key = storage::Key::from("/registry/ranges/servicenodeports");
    api.server.cx().backend().txn(&key, storage::Expect::Any, storage::Write::Delete).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4 * 60)).await;
    let events = api.get("/apis/events.k8s.io/v1/namespaces/default/events").await.json();
    let of_service = |event: &&Value| event["regarding"]["name"] == "web";
    let events: Vec<&Value> = events["items"].as_array().unwrap().iter().filter(of_service).collect();
    let [event] = events.as_slice() else { panic!("one event about web: {events:?}") };
    let text = format!("Port {port} is not allocated; repairing");
    assert_eq!((event["reason"].as_str(), event["note"].as_str()), (Some("PortNotAllocated"), Some(text.as_str())));
    assert_eq!((event["type"].as_str(), event["action"].as_str()), (Some("Warning"), Some("PortAllocation")));
    assert_eq!(event["reportingController"], "portallocator-repair-controller", "{event}");
}

#[tokio::test(start_paused = true)]
async fn reviews_answer() {
    let api = Api::start().await;
    let ask = async |path: &str, spec: &str| {
        let answer = api.post(path, &format!(r#"{{"spec":{spec}}}"#)).await;
        (answer.code, answer.json())
    };
    let authorization = |name: &str| format!("/apis/authorization.k8s.io/v1/{name}");
    let authentication = |name: &str| format!("/apis/authentication.k8s.io/v1/{name}");
    let verb = r#""resourceAttributes":{"verb":"get","resource":"pods"}"#;
    let (code, answer) = ask(&authorization("selfsubjectaccessreviews"), &format!("{{{verb}}}")).await;
    assert_eq!((code, &answer["status"]["allowed"]), (201, &Value::from(true)), "{answer}");
    let (code, answer) = ask(&authorization("subjectaccessreviews"), &format!(r#"{{"user":"alice",{verb}}}"#)).await;
    assert_eq!((code, &answer["status"]["allowed"]), (201, &Value::from(false)), "{answer}");
    let (code, answer) = ask(&authorization("subjectaccessreviews"), r#"{"user":"alice"}"#).await;
    assert_eq!(code, 422, "{answer}");
    api.wait_until_ready().await;
    let (code, answer) = ask(&authorization("selfsubjectrulesreviews"), r#"{"namespace":"default"}"#).await;
    let rules = answer["status"]["resourceRules"].as_array().unwrap();
    let all = rules.iter().filter(|rule| rule["resources"][0] == "*").count();
    assert_eq!((code, all), (201, 1), "what roles grant, and nothing twice: {answer}");
    let (code, answer) = ask(&authentication("tokenreviews"), r#"{"token":"alice"}"#).await;
    assert_eq!((code, &answer["status"]["user"]["username"]), (201, &Value::from("alice")), "{answer}");
    let (code, answer) = ask(&authentication("tokenreviews"), r#"{"token":"mallory"}"#).await;
    assert_eq!((code, &answer["status"]["error"]), (201, &Value::from("invalid bearer token")), "{answer}");
    let foreign = r#"{"token":"alice","audiences":["vault"]}"#;
    let (code, answer) = ask(&authentication("tokenreviews"), foreign).await;
    assert_eq!((code, &answer["status"]["error"]), (201, &Value::from("invalid bearer token")), "{answer}");
    let (code, answer) = ask(&authentication("selfsubjectreviews"), "{}").await;
    assert_eq!((code, &answer["status"]["userInfo"]["username"]), (201, &Value::from("root")), "{answer}");
    assert_eq!(api.get(&authentication("tokenreviews")).await.code, 405);
}

#[tokio::test(start_paused = true)]
async fn streams_are_refused_before_a_node_is_asked() {
    let api = Api::start().await;
    assert_eq!(api.get("/api/v1/namespaces/default/pods/none/log").await.code, 404);
    let pod = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    let created = api.post("/api/v1/namespaces/default/pods", pod).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let path = "/api/v1/namespaces/default/pods/p";
    assert_eq!(api.get(&format!("{path}/log")).await.code, 204, "not scheduled yet");
    assert_eq!(api.get(&format!("{path}/log?tailLines=-1")).await.code, 422);
    let (code, text) = api.post(&format!("{path}/exec?command=ls&stdout=true"), "").await.refusal();
    assert_eq!((code, text.as_str()), (400, "pod p does not have a host assigned"));
    let (code, text) = api.post(&format!("{path}/exec?container=x"), "").await.refusal();
    assert_eq!((code, text.as_str()), (400, "container x is not valid for pod p"));
}

#[tokio::test(start_paused = true)]
async fn every_step_of_the_start_has_a_check() {
    let api = ready().await;
    for (name, code) in [
        ("start-apiserver-admission-initializer", 200),
        ("generic-apiserver-start-informers", 200),
        ("start-apiextensions-informers", 200),
        ("start-apiextensions-controllers", 200),
        ("crd-informer-synced", 200),
        ("start-kube-aggregator-informers", 200),
        ("apiservice-status-local-available-controller", 200),
        ("aggregator-reload-proxy-client-cert", 404),
    ] {
        for endpoint in ["healthz", "livez", "readyz"] {
            assert_eq!(api.get(&format!("/{endpoint}/poststarthook/{name}")).await.code, code, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_extension_servers_need_is_put_right_at_once() {
    let api = ready().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    assert_eq!(api.delete(path).await.code, 200);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(api.get(path).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn an_address_of_a_former_run_is_not_told_before_the_server_is_ready() {
    let tasks = TaskGroup::new("store");
    let backend: Arc<dyn Backend> = Memory::new(MemoryOptions::default(), TokioClock::shared(), &tasks);
    let start = |seed: u64, address: &'static str| {
        let backend = Arc::clone(&backend);
        async move { Api::over(&backend, seed, |config| config.advertise_address = address.parse().unwrap()).await }
    };
    let (former, other) = (start(1, "10.0.0.1").await, start(2, "10.0.0.2").await);
    let told = async |api: &Api| {
        let slice = api.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").await.json();
        let endpoints = slice["endpoints"].as_array().cloned().unwrap_or_default();
        endpoints.iter().map(|endpoint| endpoint["addresses"][0].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    former.wait_until_ready().await;
    other.wait_until_ready().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(told(&other).await, ["10.0.0.1", "10.0.0.2"]);
    drop(former);
    let again = start(3, "10.0.0.1").await;
    let mut seen = Vec::new();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        seen.push(told(&other).await.len());
    }
    again.wait_until_ready().await;
    assert!(seen.contains(&1), "{seen:?}");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(told(&other).await, ["10.0.0.1", "10.0.0.2"]);
}
