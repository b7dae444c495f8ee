//! Whose certificates are believed, by flags and by what the API servers of a cluster say.

use base::{TaskGroup, TokioClock};
use client::fake::FakeServer;

use super::*;
use crate::process::testing::{Authority, MAPS, publish};

#[test]
fn always_allowed_paths() {
    for (allowed, path, expected) in [
        ("/healthz", "/healthz", true),
        ("/healthz", "/healthz/ping", false),
        ("/healthz/*", "/healthz/ping", true),
        ("/healthz", "/metrics", false),
        ("*", "/metrics", true),
    ] {
        assert_eq!(covers(allowed, path), expected, "{allowed} {path}");
    }
}

fn options(lookup: Lookup) -> AccessOptions {
    AccessOptions {
        authentication_kubeconfig: String::new(),
        authorization_kubeconfig: String::new(),
        client_ca: String::new(),
        proxy_ca: String::new(),
        proxy_names: Vec::new(),
        proxy_headers: Default::default(),
        always_allow: Vec::new(),
        token_ttl: Duration::ZERO,
        allowed_ttl: Duration::ZERO,
        denied_ttl: Duration::ZERO,
        lookup,
        uids: Uids { of_subjects: true, of_headers: true },
    }
}

fn authority(name: &str) -> Authority {
    Authority::new(name, &TokioClock::shared())
}

/// Access of a process that asks this server.
fn access(server: &FakeServer, options: &AccessOptions) -> Arc<Access> {
    let cx = ClientCx::new(TokioClock::shared(), Rng::seeded(1), TaskGroup::new("test"));
    let made = Access::new(options, "test", &cx, &Rng::seeded(3), Some(&server.client()));
    Arc::new(made.expect("the flags are good").0)
}

async fn passes(access: &Access, request: http::Request<()>) -> bool {
    access.decide(&request.into_parts().0, None).await.is_ok()
}

/// Until whoever follows has heard of everything.
async fn settled() {
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn certificates_are_believed_as_api_servers_say() {
    let (server, [first, second, proxies]) = (FakeServer::new(), ["first", "second", "proxies"].map(authority));
    let proxy = proxies.pem();
    let of_proxies = [
        ("requestheader-client-ca-file", proxy.as_str()),
        ("requestheader-allowed-names", r#"["front-proxy"]"#),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
    ];
    let said = |client_ca: &str| {
        let all: Vec<_> = of_proxies.into_iter().chain([("client-ca-file", client_ca)]).collect();
        publish(&server, &all);
    };
    said(&first.pem());
    let access = access(&server, &options(Lookup::Strict));
    assert!(!passes(&access, first.request("root", MASTERS)).await, "nobody has looked yet");
    assert!(access.follow_cluster().await.expect("it can be read"));
    for (what, request, expected) in [
        ("an administrator", first.request("root", MASTERS), true),
        ("somebody", first.request("alice", "users"), false),
        ("an administrator of others", second.request("root", MASTERS), false),
        ("a front proxy", proxies.proxied("front-proxy"), true),
        ("a front proxy of another name", proxies.proxied("other"), false),
        ("a client that says it is one", first.proxied("front-proxy"), false),
    ] {
        assert_eq!(passes(&access, request).await, expected, "{what}");
    }
    said(&second.pem());
    settled().await;
    assert!(passes(&access, second.request("root", MASTERS)).await, "it is followed");
    assert!(!passes(&access, first.request("root", MASTERS)).await);
    said("garbage");
    settled().await;
    assert!(passes(&access, second.request("root", MASTERS)).await, "what cannot be read changes nothing");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_those_of_an_api_server() {
    let server = FakeServer::new();
    let access = access(&server, &options(Lookup::Skipped));
    let forbidden = |reason: &str| {
        let text = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"#;
        let told = format!(r#""forbidden: User \"system:anonymous\" cannot get path \"/metrics\"{reason}""#);
        format!("{text}{told},\"reason\":\"Forbidden\",\"details\":{{}},\"code\":403}}\n")
    };
    let unauthorized = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\
                        \"message\":\"Unauthorized\",\"reason\":\"Unauthorized\",\"code\":401}\n";
    for (token, failures, code, start) in [
        (None, &[][..], 403, forbidden("")),
        (Some("nobody's"), &[], 401, unauthorized.to_owned()),
        (None, &[500], 500, "Internal Server Error: \"/metrics\": ".to_owned()),
    ] {
        server.fail_next("POST", failures);
        let mut request = http::Request::builder().uri("/metrics");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let parts = request.body(()).expect("a request").into_parts().0;
        let answer = access.refuse(&parts).await.expect("a refusal");
        let (status, kind) = (answer.status().as_u16(), answer.headers()["content-type"].clone());
        let body = http_body_util::BodyExt::collect(answer.into_body()).await.expect("a body").to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(status, code, "{text}");
        assert_eq!(kind, if code == 500 { "text/plain; charset=utf-8" } else { "application/json" });
        assert!(text.starts_with(&start), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn users_have_uids_as_the_gates_say() {
    let (server, clients, proxies) = (FakeServer::new(), authority("clients"), authority("proxies"));
    publish(
        &server,
        &[
            ("client-ca-file", &clients.pem()),
            ("requestheader-client-ca-file", &proxies.pem()),
            ("requestheader-username-headers", r#"["X-Remote-User"]"#),
            ("requestheader-uid-headers", r#"["X-Remote-Uid"]"#),
        ],
    );
    let mut proxied = proxies.proxied("front-proxy");
    proxied.headers_mut().insert("x-remote-uid", http::HeaderValue::from_static("u2"));
    let requests = [&["u1"][..], &[""], &["u1", "u2"]].map(|uids| clients.request_with_uids("alice", uids));
    let requests = requests.into_iter().chain([proxied]).map(|request| request.into_parts().0).collect::<Vec<_>>();
    for (of_subjects, of_headers, expected) in [
        (true, true, [Some("u1"), None, None, Some("u2")]),
        (false, true, [Some(""), Some(""), Some(""), Some("u2")]),
        (true, false, [Some("u1"), None, None, Some("")]),
    ] {
        let options = AccessOptions { uids: Uids { of_subjects, of_headers }, ..options(Lookup::Strict) };
        let access = access(&server, &options);
        assert!(access.follow_cluster().await.expect("it can be read"));
        for (request, uid) in requests.iter().zip(expected) {
            let found = access.user(request).await.ok().map(|user| user.uid);
            assert_eq!(found.as_deref(), uid, "{of_subjects} {of_headers}");
        }
    }
}

#[test]
fn headers_of_uids_need_their_gate() {
    let parsed = |flags: &[&str]| {
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        component_base::flags::parse(&[super::super::DELEGATION], flags).expect("flags")
    };
    let (plain, named) = (parsed(&[]), parsed(&["--requestheader-uid-headers=X-Remote-Uid"]));
    let problems = |options: &Options, gates: &Gates| {
        let mut errors = Errors::new();
        let uids = AccessOptions::from_options(options, gates, &mut errors).uids;
        let problems = errors.into_result().map_err(|invalid| invalid.problems().join("; ")).err();
        ([uids.of_subjects, uids.of_headers], problems.unwrap_or_default())
    };
    let off = |feature: Feature| Gates::default().with(feature, false);
    let refused = "--requestheader-uid-headers requires the RemoteRequestHeaderUID feature to be enabled";
    assert_eq!(problems(&named, &Gates::default()), ([true, true], String::new()));
    assert_eq!(problems(&named, &off(SUBJECT_UID)), ([false, true], String::new()));
    assert_eq!(problems(&plain, &off(REMOTE_UID)), ([true, false], String::new()));
    assert_eq!(problems(&named, &off(REMOTE_UID)), ([true, false], refused.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn flags_come_first() {
    let (server, [flagged, said]) = (FakeServer::new(), ["flag", "said"].map(authority));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ca.crt");
    std::fs::write(&file, flagged.pem()).expect("a file");
    publish(&server, &[("client-ca-file", &said.pem())]);
    let path = file.display().to_string();
    let by_flag = AccessOptions { client_ca: path.clone(), ..options(Lookup::Strict) };
    let own = access(&server, &by_flag);
    assert!(own.follow_cluster().await.expect("it can be read"), "of front proxies no flag says anything");
    assert!(passes(&own, flagged.request("root", MASTERS)).await);
    assert!(!passes(&own, said.request("root", MASTERS)).await);
    let requests = server.requests().len();
    for options in [AccessOptions { proxy_ca: path, ..by_flag }, options(Lookup::Skipped)] {
        assert!(!access(&server, &options).follow_cluster().await.expect("there is nothing to read"));
    }
    assert_eq!(server.requests().len(), requests, "nobody asks");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_looked_up_ends_the_process_or_counts_later() {
    let (server, authority) = (FakeServer::new(), authority("ca"));
    server.fail_next("GET", &[403]);
    let refused = access(&server, &options(Lookup::Strict)).follow_cluster().await;
    let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.starts_with("unable to load configmap based request-header-client-ca-file: "), "{text}");
    for (lookup, failures) in [(Lookup::Tolerant, &[403][..]), (Lookup::Strict, &[])] {
        server.remove(MAPS, "kube-system", "extension-apiserver-authentication");
        server.fail_next("GET", failures);
        let access = access(&server, &options(lookup));
        assert!(access.follow_cluster().await.expect("that is no mistake"), "{lookup:?}");
        assert!(!passes(&access, authority.request("root", MASTERS)).await, "{lookup:?}");
        publish(&server, &[("client-ca-file", &authority.pem())]);
        settled().await;
        assert!(passes(&access, authority.request("root", MASTERS)).await, "{lookup:?}");
    }
}
