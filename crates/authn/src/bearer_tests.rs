//! Finding tokens, and removing them once they did their work.

use super::*;
use crate::testing::{FewTokens, request};

#[test]
fn the_header_is_split_on_single_spaces() {
    let cases = [
        ("Bearer abc", Bearer::Token("abc")),
        ("bEaReR abc", Bearer::Token("abc")),
        ("  Bearer abc  ", Bearer::Token("abc")),
        ("Bearer abc def", Bearer::Token("abc")),
        ("Bearer  abc", Bearer::ExtraSpace),
        ("Bearer", Bearer::None),
        ("Basic abc", Bearer::None),
        ("", Bearer::None),
    ];
    for (header, expected) in cases {
        let parts = request("/", &[("authorization", header)]);
        assert_eq!(bearer(&parts.headers), expected, "{header:?}");
        assert_eq!(ignored_header_warning(&parts.headers).is_some(), expected == Bearer::ExtraSpace);
    }
}

#[tokio::test]
async fn browsers_hide_the_token_among_subprotocols() {
    let authenticator = WebSocketBearer(Arc::new(FewTokens));
    let upgrade = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")];
    let token = |text: &str| format!("{SUBPROTOCOL_PREFIX}{}", URL_SAFE_NO_PAD.encode(text));
    let good = format!("v5.channel.k8s.io, {}", token("good"));
    let cases = [
        ("good", good.clone(), Ok(Some("alice"))),
        ("unknown", format!("v5,{}", token("other")), Err("invalid bearer token")),
        ("alone", token("good"), Err("missing additional subprotocol")),
        (
            "two",
            format!("{},{},v5", token("good"), token("good")),
            Err("multiple base64.bearer.authorization tokens specified"),
        ),
        (
            "padded",
            format!("v5,{SUBPROTOCOL_PREFIX}Z29vZA=="),
            Err("invalid base64.bearer.authorization token encoding"),
        ),
        ("not text", format!("v5,{SUBPROTOCOL_PREFIX}_w"), Err("invalid base64.bearer.authorization token")),
        ("none", "v5".to_owned(), Ok(None)),
    ];
    for (name, protocols, expected) in cases {
        let headers = [upgrade[0], upgrade[1], ("sec-websocket-protocol", protocols.as_str())];
        let got = authenticator.authenticate(&request("/", &headers), &[]).await;
        let got =
            got.map(|found| found.map(|identity| identity.user.username.clone())).map_err(|error| error.to_string());
        assert_eq!(got.as_ref().map(|user| user.as_deref()).map_err(String::as_str), expected, "{name}");
    }
    let plain = request("/", &[("sec-websocket-protocol", good.as_str())]);
    assert_eq!(authenticator.authenticate(&plain, &[]).await, Ok(None), "not an upgrade");
}

#[test]
fn credentials_are_removed_after_use() {
    let protocols = format!("v5, {SUBPROTOCOL_PREFIX}Z29vZA, v4");
    let mut parts = request(
        "/",
        &[
            ("authorization", "Bearer x"),
            ("x-remote-user", "mallory"),
            ("x-remote-extra-k", "v"),
            ("x-own-user", "mallory"),
            ("sec-websocket-protocol", &protocols),
            ("accept", "*/*"),
        ],
    );
    let configured = ProxyHeaders { username: vec!["X-Own-User".to_owned()], ..ProxyHeaders::default() };
    strip_credentials(&mut parts.headers, Some(&configured));
    assert_eq!(parts.headers.len(), 2);
    assert_eq!(parts.headers["sec-websocket-protocol"], "v5,v4");
}
