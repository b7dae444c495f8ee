//! Order, memory of errors, and when anonymous may answer.

use super::*;
use crate::bearer::{BearerHeader, WebSocketBearer};
use crate::client_certificate::{ClientCertificate, SubjectUid};
use crate::testing::{FewTokens, authority, client, clock, pool, request};
use crate::token_file::StaticTokens;

fn chain(anonymous: Option<Anonymous>) -> (Chain, Vec<CertificateDer<'static>>, Vec<CertificateDer<'static>>) {
    let ca = authority();
    let tokens: Arc<dyn TokenAuthenticator> = Arc::new(FewTokens);
    let members: Vec<Arc<dyn Authenticator>> = vec![
        Arc::new(ClientCertificate::new(pool(&ca), clock(0), SubjectUid::Parsed)),
        Arc::new(BearerHeader(Arc::clone(&tokens))),
        Arc::new(WebSocketBearer(tokens)),
    ];
    let (known, foreign) = (client(&ca, "carol", &["ops"]), client(&authority(), "mallory", &[]));
    (Chain::new(members, anonymous, vec!["api".to_owned()]), known, foreign)
}

#[tokio::test]
async fn the_first_success_wins_and_a_wrong_credential_is_never_anonymous() {
    let (chain, known, foreign) = chain(Some(Anonymous::default()));
    let none: Vec<CertificateDer<'static>> = Vec::new();
    let bearer = |token: &str| request("/api", &[("authorization", &format!("Bearer {token}"))]);
    let cases = [
        ("certificate first", bearer("good"), &known, Ok("carol")),
        ("bad certificate, good token", bearer("good"), &foreign, Ok("alice")),
        ("bad certificate alone", request("/api", &[]), &foreign, Err("verifying certificate SN=")),
        ("good certificate, bad token", bearer("bad"), &known, Ok("carol")),
        ("bad token", bearer("bad"), &none, Err("bad token")),
        ("unknown token", bearer("other"), &none, Err("invalid bearer token")),
        ("bad certificate and token", bearer("bad"), &foreign, Err("[verifying certificate SN=")),
        ("nothing", request("/api", &[]), &none, Ok("system:anonymous")),
        ("another scheme", request("/api", &[("authorization", "Basic eDp5")]), &none, Ok("system:anonymous")),
    ];
    for (name, request, peer, expected) in cases {
        match (chain.authenticate(&request, peer).await, expected) {
            (Ok(Some(identity)), Ok(user)) => {
                assert_eq!(identity.user.username, user, "{name}");
                let marker = if user == "system:anonymous" { "system:unauthenticated" } else { "system:authenticated" };
                assert_eq!(identity.user.groups.last().unwrap(), marker, "{name}");
            }
            (Err(error), Err(text)) => assert!(error.to_string().starts_with(text), "{name}: {error}"),
            (other, _) => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn anonymous_keeps_to_its_paths() {
    let (chain, ..) = chain(Some(Anonymous { paths: vec!["/livez".to_owned()] }));
    assert!(chain.authenticate(&request("/livez?verbose", &[]), &[]).await.unwrap().is_some());
    for path in ["/livez/etcd", "/api"] {
        assert_eq!(chain.authenticate(&request(path, &[]), &[]).await, Ok(None), "{path}");
    }
}

#[tokio::test]
async fn audiences_must_meet() {
    let (chain, ..) = chain(None);
    let mut asked = request("/api", &[("authorization", "Bearer good")]);
    asked.extensions.insert(RequestedAudiences(vec!["vault".to_owned()]));
    let identity = chain.authenticate(&asked, &[]).await.unwrap().unwrap();
    assert_eq!(identity.audiences, ["vault"]);

    struct Elsewhere;
    #[async_trait]
    impl TokenAuthenticator for Elsewhere {
        async fn authenticate_token(&self, _: &str, _: &[String]) -> Result<Option<Identity>, AuthnError> {
            Ok(Some(Identity { audiences: vec!["b".to_owned()], ..Identity::new("x", Vec::new()) }))
        }
    }
    let chain = Chain::new(vec![Arc::new(BearerHeader(Arc::new(Elsewhere)))], None, vec!["a".to_owned()]);
    let error = chain.authenticate(&request("/", &[("authorization", "bearer t")]), &[]).await.unwrap_err();
    assert_eq!(error.to_string(), r#"unable to match the audience: ["b"] , accepted: ["a"]"#);
}

#[tokio::test]
async fn the_loopback_token_is_the_server_itself() {
    let loopback = BearerHeader(Arc::new(StaticTokens::loopback("secret", "u1")));
    let chain = Chain::new(vec![Arc::new(loopback)], None, Vec::new());
    let identity =
        chain.authenticate(&request("/", &[("authorization", "Bearer secret")]), &[]).await.unwrap().unwrap();
    assert_eq!(identity.user.username, "system:apiserver");
    assert_eq!(identity.user.groups, ["system:authenticated", "system:masters"]);
}

#[tokio::test]
async fn token_sources_collect_errors_without_repeats() {
    let union = TokenUnion::new(vec![Arc::new(FewTokens), Arc::new(FewTokens)]);
    assert_eq!(union.authenticate_token("bad", &[]).await.unwrap_err().to_string(), "bad token");
    assert_eq!(union.authenticate_token("other", &[]).await, Ok(None));
    assert!(union.authenticate_token("good", &[]).await.unwrap().is_some());
}
