//! Which proxies are believed, and what their headers say.

use super::*;
use crate::testing::{authority, client, clock, pool, request};

const HEADERS: &[(&str, &str)] = &[
    ("X-Remote-User", "alice"),
    ("X-Remote-Uid", "u1"),
    ("X-Remote-Group", "a"),
    ("X-Remote-Group", "b"),
    ("x-remote-extra-Acme.com%2fProject", "one"),
    ("x-remote-extra-Acme.com%2fProject", "two"),
    ("Accept", "*/*"),
];

#[tokio::test]
async fn only_trusted_and_listed_proxies_are_believed() {
    let ca = authority();
    let make = |names: &[&str]| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        FrontProxy::new(pool(&ca), clock(0), names, ProxyHeaders::default())
    };
    let proxy = client(&ca, "front-proxy-client", &[]);
    let asked = request("/", HEADERS);
    let user = make(&["front-proxy-client"]).authenticate(&asked, &proxy).await.unwrap().unwrap().user;
    assert_eq!((user.username.as_str(), user.uid.as_str()), ("alice", "u1"));
    assert_eq!(user.groups, ["a", "b"]);
    assert_eq!(user.extra["acme.com/project"].0, ["one", "two"]);
    assert!(make(&[]).authenticate(&asked, &proxy).await.unwrap().is_some());

    assert_eq!(make(&[]).authenticate(&asked, &[]).await, Ok(None), "headers without a certificate say nothing");
    assert_eq!(make(&[]).authenticate(&request("/", &[]), &proxy).await, Ok(None));
    let error = make(&["other"]).authenticate(&asked, &proxy).await.unwrap_err().to_string();
    assert_eq!(error, "x509: subject with cn=front-proxy-client is not in the allowed list");
    assert!(make(&[]).authenticate(&asked, &client(&authority(), "front-proxy-client", &[])).await.is_err());
}

#[tokio::test]
async fn whom_nobody_vouches_for_is_looked_at_last() {
    struct Certificates;

    #[async_trait]
    impl Authenticator for Certificates {
        async fn authenticate(
            &self,
            _: &Parts,
            peer: &[CertificateDer<'static>],
        ) -> Result<Option<Identity>, AuthnError> {
            if peer.len() == 1 { Ok(Some(Identity::default())) } else { Err(AuthnError::refused("two")) }
        }
    }

    let proxies = Arc::new(FrontProxy::new(pool(&authority()), clock(0), Vec::new(), ProxyHeaders::default()));
    let union = crate::Union::new(vec![Arc::clone(&proxies) as Arc<dyn Authenticator>, Arc::new(Certificates)]);
    let peer = client(&authority(), "ann", &[]);
    let named = request("/", HEADERS);
    let plain = request("/", &[("x-remote-user", ""), ("x-remote-group", "a")]);
    assert!(proxies.may_know(&named) && !proxies.may_know(&plain));
    assert!(union.authenticate(&plain, &peer).await.unwrap().is_some());
    // What it says against the certificate is said all the same, and first, where nobody accepts it.
    let two = [peer.clone(), peer].concat();
    for request in [plain, named] {
        let error = union.authenticate(&request, &two).await.unwrap_err().to_string();
        assert!(error.starts_with("[verifying certificate SN=") && error.ends_with(", two]"), "{error}");
    }
}

#[tokio::test]
async fn a_proxy_that_was_verified_is_known_until_the_bundle_says_otherwise() {
    let ca = authority();
    let pool = pool(&ca);
    let proxies = FrontProxy::new(Arc::clone(&pool), clock(0), Vec::new(), ProxyHeaders::default());
    let (asked, proxy) = (request("/", HEADERS), client(&ca, "front-proxy-client", &[]));
    for _ in 0..2 {
        assert!(proxies.authenticate(&asked, &proxy).await.unwrap().is_some());
    }
    pool.replace(pki::CaBundle::new(vec![authority().certificate().clone()]).unwrap());
    assert!(proxies.authenticate(&asked, &proxy).await.is_err());
}

#[test]
fn the_first_name_that_says_something_wins_and_all_are_removed() {
    let headers = ProxyHeaders {
        username: vec!["X-One".to_owned(), "X-Two".to_owned()],
        extra_prefixes: vec!["X-Remote-Extra-".to_owned(), "X-More-".to_owned()],
        ..ProxyHeaders::default()
    };
    let mut parts = request("/", &[("x-one", ""), ("x-two", "bob"), ("x-more-k", "v"), ("accept", "*/*")]);
    let user = headers.user(&parts.headers).unwrap();
    assert_eq!((user.username.as_str(), user.extra["k"].0.len()), ("bob", 1));
    headers.strip(&mut parts.headers);
    assert_eq!(parts.headers.keys().map(http::HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
}
