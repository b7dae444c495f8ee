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
