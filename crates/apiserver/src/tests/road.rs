//! The road itself: who gets in, in which order steps refuse, and what every answer carries.

use std::time::Duration;

use super::harness::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn steps_refuse_in_upstreams_order() {
    let api = Api::start().await;
    // A bad deadline comes before a bad token, that before a bad right, that before a bad path or body.
    let bad = [("authorization", "Bearer nobody")];
    let alice = [("authorization", "Bearer alice")];
    assert_eq!(api.send(&format!("GET {MAPS}?timeout=x"), &bad, "").await.code, 400);
    let unknown = api.send(&format!("GET {MAPS}"), &bad, "").await;
    assert_eq!(unknown.refusal(), (401, "Unauthorized".to_owned()));
    let refused = api.send("POST /api/v1/namespaces/default/things", &alice, "{").await;
    assert_eq!(refused.code, 403);
    assert_eq!(refused.headers["x-content-type-options"], "nosniff");
    let anonymous = api.send(&format!("GET {MAPS}"), &[("authorization", "")], "").await.refusal();
    let text = "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!(anonymous, (403, text.to_owned()));
    assert_eq!(
        api.send("GET /metrics", &alice, "").await.refusal(),
        (403, "forbidden: User \"alice\" cannot get path \"/metrics\"".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn roles_decide_at_once() {
    let api = Api::start().await;
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let role =
        r#"{"metadata":{"name":"reader"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}]}"#;
    assert_eq!(api.post(&format!("{group}/clusterroles"), role).await.code, 201);
    let binding = r#"{"metadata":{"name":"r"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},
        "subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}"#;
    assert_eq!(api.post(&format!("{group}/clusterrolebindings"), binding).await.code, 201);
    // The mirrors learn of it by a watch.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let alice = [("authorization", "Bearer alice")];
    assert_eq!(api.send(&format!("GET {MAPS}"), &alice, "").await.code, 200);
    assert_eq!(api.send(&format!("GET {MAPS}/a"), &alice, "").await.code, 403);
    let escalation = api.send(&format!("POST {group}/clusterroles"), &alice, role).await;
    assert_eq!(escalation.code, 403);
}

#[tokio::test(start_paused = true)]
async fn what_was_made_or_granted_just_now_is_handed_on() {
    let api = Api::start().await;
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let name = |name: &str| format!(r#""metadata":{{"name":"{name}"}}"#);
    let own = r#""rules":[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["create"]},
        {"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}]"#;
    assert_eq!(api.post(&format!("{group}/clusterroles"), &format!("{{{},{own}}}", name("own"))).await.code, 201);
    let binding = |kind: &str, role: &str| {
        format!(
            r#"{{{},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"{kind}","name":"{role}"}},
            "subjects":[{{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}}]}}"#,
            name(role)
        )
    };
    assert_eq!(api.post(&format!("{group}/clusterrolebindings"), &binding("ClusterRole", "own")).await.code, 201);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let alice = [("authorization", "Bearer alice")];
    let in_namespace = |resource: &str| format!("POST {group}/namespaces/default/{resource}");
    let role = |role: &str, of: &str| {
        let rules = format!(r#""rules":[{{"apiGroups":[""],"resources":["{of}"],"verbs":["list"]}}]"#);
        format!("{{{},{rules}}}", name(role))
    };
    for index in 0..5 {
        let fresh = format!("fresh-{index}");
        let made = api.send(&in_namespace("roles"), &alice, role(&fresh, "configmaps")).await;
        assert_eq!(made.code, 201, "{}", made.text);
        let bound = api.send(&in_namespace("rolebindings"), &alice, binding("Role", &fresh)).await;
        assert_eq!(bound.code, 201, "{}", bound.text);
    }
    // What alice was granted just now she hands on.
    for index in 0..5 {
        let (of, more) = (format!("kind-{index}"), format!("granted-{index}"));
        let made = api.post(&format!("{group}/namespaces/default/roles"), &role(&more, &of)).await;
        assert_eq!(made.code, 201, "{}", made.text);
        let bound = api.post(&format!("{group}/namespaces/default/rolebindings"), &binding("Role", &more)).await;
        assert_eq!(bound.code, 201, "{}", bound.text);
        let made = api.send(&in_namespace("roles"), &alice, role(&format!("handed-{index}"), &of)).await;
        assert_eq!(made.code, 201, "{}", made.text);
    }
    assert_eq!(api.post(&format!("{group}/namespaces/default/roles"), &role("more", "secrets")).await.code, 201);
    let refused = api.send(&in_namespace("rolebindings"), &alice, binding("Role", "more")).await.refusal();
    let text = "rolebindings.rbac.authorization.k8s.io \"more\" is forbidden: user \"alice\" (groups=[\"system:authenticated\"]) \
                is attempting to grant RBAC permissions not currently held:\n\
                {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"list\"]}";
    assert_eq!(refused, (403, text.to_owned()));
    for kind in ["Role", "ClusterRole"] {
        let missing = api.send(&in_namespace("rolebindings"), &alice, binding(kind, "none")).await.refusal();
        // The role is told as of the resource that is written.
        assert_eq!(missing, (404, "rolebindings.rbac.authorization.k8s.io \"none\" not found".to_owned()));
    }
}

/// Labels hand out, too: those of cluster roles have their rules gathered by others.
#[tokio::test(start_paused = true)]
async fn nobody_hands_out_what_they_do_not_hold() {
    let api = Api::start().await;
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let own = r#"{"metadata":{"name":"own"},"rules":[
        {"apiGroups":["rbac.authorization.k8s.io"],"resources":["*"],"verbs":["create","update","patch"]},
        {"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"resourceNames":["mine"],"verbs":["escalate"]}]}"#;
    let bound = r#"{"metadata":{"name":"own"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"own"},
        "subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}"#;
    assert_eq!(api.post(&format!("{group}/clusterroles"), own).await.code, 201);
    assert_eq!(api.post(&format!("{group}/clusterrolebindings"), bound).await.code, 201);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (grants, gathers) =
        ("is attempting to grant RBAC permissions not currently held", "must have cluster-admin privileges");
    let rules = r#""rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["list"]}]"#;
    let of = |kind: &str| format!(r#"{{"metadata":{{"name":"x"}},"roleRef":{{"kind":"{kind}","name":"view"}}}}"#);
    let role = |name: &str| format!(r#"{{"metadata":{{"name":"{name}","namespace":"default"}},{rules}}}"#);
    let gathering = |selectors: &str, rules: &str| {
        format!(r#"{{"metadata":{{"name":"g"}},"aggregationRule":{{"clusterRoleSelectors":[{selectors}]}},{rules}}}"#)
    };
    let (roles, bindings) = ("POST {group}/namespaces/default/roles", "POST {group}/namespaces/default/rolebindings");
    let (cluster_roles, admin) = ("POST {group}/clusterroles", "PATCH {group}/clusterroles/cluster-admin");
    for (what, request, body, code, text) in [
        ("a label", admin, r#"{"metadata":{"labels":{"a":"b"}}}"#.to_owned(), 403, grants),
        ("an annotation", admin, r#"{"metadata":{"annotations":{"a":"b"}}}"#.to_owned(), 403, grants),
        ("what a collector changes", admin, r#"{"metadata":{"finalizers":["a.b/c"]}}"#.to_owned(), 200, ""),
        ("a name that is not in the path", roles, role("mine"), 403, grants),
        ("one that is", "PUT {group}/namespaces/default/roles/mine", role("mine"), 201, ""),
        ("a kind that is none", bindings, of("Foo"), 500, "unsupported role reference kind: \"Foo\""),
        (
            "a role without namespace",
            "POST {group}/clusterrolebindings",
            of("Role"),
            400,
            "Namespace parameter required.",
        ),
        ("gathered", cluster_roles, gathering(r#"{"matchLabels":{"a":"b"}}"#, r#""rules":[]"#), 403, gathers),
        ("gathered, and more", cluster_roles, gathering(r#"{"matchLabels":{"a":"b"}}"#, rules), 403, grants),
        (
            "gathered from nothing",
            cluster_roles,
            gathering("", r#""rules":[]"#),
            422,
            "at least one clusterRoleSelector required",
        ),
    ] {
        let mut headers = vec![("authorization", "Bearer alice")];
        if request.starts_with("PATCH") {
            headers.push(("content-type", "application/merge-patch+json"));
        }
        let (answered, message) = api.send(&request.replace("{group}", group), &headers, body).await.refusal();
        assert!(answered == code && message.contains(text), "{what}: {answered} {message}");
    }
    let by_admin = api.post(&format!("{group}/namespaces/default/rolebindings"), &of("Foo")).await;
    assert_eq!(by_admin.code, 422, "who may do anything is told of the rule: {}", by_admin.text);
}

#[tokio::test(start_paused = true)]
async fn nodes_read_what_their_pods_need() {
    let api = Api::start().await;
    for name in ["used", "unused"] {
        api.config_map(name).await;
    }
    let pod = r#"{"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i",
        "envFrom":[{"configMapRef":{"name":"used"}}]}]}}"#;
    let made = api.post("/api/v1/namespaces/default/pods", pod).await;
    assert_eq!(made.code, 201, "{}", made.text);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let node = [("authorization", "Bearer system:node:n1")];
    assert_eq!(api.send(&format!("GET {MAPS}/used"), &node, "").await.code, 200);
    let refused = api.send(&format!("GET {MAPS}/unused"), &node, "").await;
    assert_eq!(refused.code, 403);
    assert!(refused.text.contains("no relationship found between node"), "{}", refused.text);
    assert_eq!(api.send("GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1", &node, "").await.code, 200);
    assert_eq!(api.send("GET /api/v1/pods", &node, "").await.code, 403);
}

#[tokio::test(start_paused = true)]
async fn acting_as_somebody_else() {
    let api = Api::start().await;
    let as_alice = [("impersonate-user", "alice")];
    let refused = api.send(&format!("GET {MAPS}"), &as_alice, "").await.refusal();
    assert!(refused.1.contains("User \"alice\" cannot list"), "{refused:?}");
    let without_user = api.send(&format!("GET {MAPS}"), &[("impersonate-group", "g")], "").await;
    assert_eq!(without_user.refusal(), (400, "requested [groups g] without impersonating a user name".to_owned()));
    let not_allowed = [("authorization", "Bearer alice"), ("impersonate-user", "root")];
    assert_eq!(
        api.send(&format!("GET {MAPS}"), &not_allowed, "").await.refusal(),
        (403, "configmaps is forbidden: User \"alice\" cannot impersonate-on:user-info:list resource \"configmaps\" in API group \"\" in the namespace \"default\"".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn every_answer_carries_its_id() {
    let api = Api::start().await;
    let own = api.send(&format!("GET {MAPS}"), &[("audit-id", "mine")], "").await;
    assert_eq!(own.headers["audit-id"], "mine");
    let made = api.get("/nowhere").await;
    assert_eq!(made.headers["audit-id"].len(), 36);
    assert_eq!(made.headers["cache-control"], "no-cache, private");
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_are_refused() {
    let api = Api::with(|config| {
        config.requests.fairness = false;
        config.requests.max_in_flight = 1;
    })
    .await;
    let alice = [("authorization", "Bearer alice")];
    let running = api.get("/test/slow");
    let meanwhile = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let refused = api.send(&format!("GET {MAPS}"), &alice, "").await;
        assert_eq!((refused.code, refused.text.as_str()), (429, "Too many requests, please try again later."));
        assert_eq!(refused.headers["retry-after"], "1");
        assert_eq!(api.get("/version").await.code, 200, "superusers repair overloaded servers");
    };
    let (slow, ()) = tokio::join!(running, meanwhile);
    assert_eq!(slow.refusal(), (504, "Timeout: request did not complete within the allotted timeout".to_owned()));
    assert_eq!(api.send(&format!("GET {MAPS}"), &alice, "").await.code, 403);
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_request() {
    let api = Api::start().await;
    let broken = api.get("/test/panic").await;
    assert_eq!(broken.code, 500);
    assert!(broken.text.starts_with("This request caused apiserver to panic."), "{}", broken.text);
    assert_eq!(api.get("/version").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn clients_may_ask_for_less_time() {
    let api = Api::start().await;
    let started = tokio::time::Instant::now();
    assert_eq!(api.get("/test/slow?timeout=2s").await.code, 504);
    assert_eq!(started.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_end_comes_in_stages() {
    let api = Api::start().await;
    api.wait_until_ready().await;
    let cx = std::sync::Arc::clone(api.server.cx());
    cx.health().begin_shutdown();
    assert_eq!((api.get("/readyz").await.code, api.get("/livez").await.code), (500, 200));
    cx.running.close();
    let late = api.get(MAPS).await;
    assert_eq!(late.refusal(), (503, "apiserver is shutting down".to_owned()));
    assert_eq!(late.headers["retry-after"], "1");
    cx.running.drained().await;
}

#[tokio::test(start_paused = true)]
async fn the_server_tells_about_itself() {
    let api = Api::start().await;
    api.wait_until_ready().await;
    api.get(MAPS).await;
    let metrics = api.get("/metrics").await;
    let line = r#"apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="configmaps",scope="namespace",subresource="",verb="LIST",version="v1"} 1"#;
    assert!(metrics.text.contains(line), "{}", metrics.text);
    assert_eq!(api.get("/version").await.json()["minor"], "36");
    assert!(api.get("/").await.text.contains("\"/readyz\""));
    assert!(api.get("/readyz?verbose").await.text.ends_with("readyz check passed\n"));
    assert_eq!(api.get("/healthz/ping").await.text, "ok");
    assert_eq!(api.get("/healthz/none").await.code, 404);
    assert_eq!(api.get("/healthz/").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn identities_and_decisions_are_counted() {
    let api = Api::start().await;
    let (alice, nobody) = ([("authorization", "Bearer alice")], [("authorization", "Bearer mallory")]);
    assert_eq!(api.send("GET /api/v1/pods", &alice, "").await.code, 403);
    assert_eq!(api.send("GET /api/v1/pods", &nobody, "").await.code, 401);
    assert_eq!(api.send("DELETE /metrics", &[], "").await.text, "metrics reset\n");
    let metrics = api.get("/metrics").await.text;
    for line in [
        "authentication_attempts{result=\"error\"} 1",
        "authentication_duration_seconds_count{result=\"error\"} 1",
        "authorization_attempts_total{result=\"no-opinion\"} 1",
        "authorization_duration_seconds_count{result=\"no-opinion\"} 1",
        "apiserver_authorization_decisions_total{decision=\"allowed\",name=\"rbac\",type=\"RBAC\"} 0",
        "apiserver_admission_step_admission_duration_seconds_count{operation=\"CREATE\",rejected=\"false\",type=\"admit\"}",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn certificates_that_end_soon_can_be_seen() {
    let (now, rng) = (base::TokioClock::shared().wall(), base::Rng::seeded(1));
    let key = || pki::PrivateKey::generate(pki::KeyAlgorithm::EcdsaP256).unwrap();
    let ca = pki::CertificateAuthority::create("ca", key(), Duration::from_secs(86_400), now, &rng).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ca.crt");
    std::fs::write(&file, ca.certificate().to_pem()).unwrap();
    let api = Api::with(|config| config.authentication.client_ca_file = Some(file)).await;
    let spec = pki::CertificateSpec::client("jane", &[], Duration::from_secs(3000));
    let leaf = ca.issue(&spec, key().public_key(), now, &rng).unwrap();
    let peer = client::Peer { certificates: vec![leaf.der().to_vec().into()], ..client::Peer::default() };
    let request = http::Request::get("/api/v1/pods").body(bytes::Bytes::new()).unwrap();
    assert_eq!(api.server.api().call(request, &peer).await.status(), 403);
    let metrics = api.get("/metrics").await.text;
    for line in [
        "apiserver_client_certificate_expiration_seconds_bucket{le=\"1800\"} 0",
        "apiserver_client_certificate_expiration_seconds_bucket{le=\"3600\"} 1",
        "apiserver_client_certificate_expiration_seconds_count 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

/// Every family that upstream has too is declared as upstream declares it.
#[tokio::test(start_paused = true)]
async fn metrics_are_upstreams() {
    let facts = test_facts::facts("metrics.json");
    let api = Api::start().await;
    api.config_map("a").await;
    let shown = api.get("/metrics").await.text;
    let declared = |word: &str, name: &str| -> Option<String> {
        let start = format!("# {word} {name} ");
        shown.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
    };
    let mut compared = 0;
    for fact in facts["metrics"].as_array().unwrap() {
        let name = fact["name"].as_str().unwrap();
        let (Some(help), Some(kind)) = (declared("HELP", name), declared("TYPE", name)) else { continue };
        // Those of every component are tested with it.
        if name.starts_with("kubernetes_") {
            continue;
        }
        compared += 1;
        assert!(help.starts_with(&format!("[{}] ", fact["stability"].as_str().unwrap())), "{name}: {help}");
        let expected = match fact["type"].as_str().unwrap().to_lowercase() {
            // How often it counts is its own affair.
            weighted if weighted == "timingratiohistogram" => "histogram".to_owned(),
            plain => plain,
        };
        assert!(kind == expected || expected == "custom", "{name}: {kind}");
        let texts = |member: &str| -> Vec<String> {
            let values = fact[member].as_array().into_iter().flatten();
            values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect()
        };
        let (labels, bounds) = series(&shown, name);
        let always = fact["constLabels"].as_object().into_iter().flatten().map(|(label, _)| label.clone());
        assert_eq!(labels, texts("labels").into_iter().chain(always).collect(), "{name}");
        let number = |text: &String| text.parse::<f64>().unwrap();
        if fact["buckets"].is_array() {
            let expected: Vec<f64> = texts("buckets").iter().map(number).collect();
            assert_eq!(bounds, expected, "{name}");
        }
    }
    assert!(compared > 20, "only {compared} families");
}

/// The labels of a family's first series, and the bounds of its buckets.
fn series(shown: &str, name: &str) -> (std::collections::BTreeSet<String>, Vec<f64>) {
    let (mut labels, mut bounds) = (std::collections::BTreeSet::new(), Vec::new());
    let mut first = None;
    for line in shown.lines() {
        let Some(rest) = line.strip_prefix(name) else { continue };
        let Some(inside) = rest.strip_prefix("_bucket{").or_else(|| rest.strip_prefix('{')) else { continue };
        let pairs: Vec<(&str, &str)> =
            inside.split("\"").collect::<Vec<_>>().chunks(2).filter(|c| c.len() == 2).map(|c| (c[0], c[1])).collect();
        let own: Vec<(String, String)> = pairs
            .iter()
            .map(|(key, value)| (key.trim_matches(|c| c == ',' || c == '=').to_owned(), (*value).to_owned()))
            .collect();
        let identity: Vec<_> = own.iter().filter(|(key, _)| key != "le").cloned().collect();
        if first.get_or_insert_with(|| identity.clone()) != &identity {
            break;
        }
        labels.extend(identity.into_iter().map(|(key, _)| key));
        let bound = own.iter().find(|(key, _)| key == "le").and_then(|(_, bound)| bound.parse().ok());
        bounds.extend(bound.filter(|bound: &f64| bound.is_finite()));
    }
    (labels, bounds)
}
