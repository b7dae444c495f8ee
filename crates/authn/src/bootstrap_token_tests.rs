//! Every way a bootstrap token's Secret can fail to match is "no opinion".

use std::collections::BTreeMap;

use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::ByteString;

use super::*;
use crate::testing::{NOW_SECONDS, clock};

const TOKEN: &str = "abcdef.0123456789abcdef";

struct One(Secret);

#[async_trait]
impl Secrets for One {
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, LookupError> {
        if namespace == "broken" {
            return Err(LookupError("no".to_owned()));
        }
        let found = namespace == NAMESPACE && name == self.0.metadata.name;
        Ok(found.then(|| Arc::new(self.0.clone())))
    }
}

/// A data key and its value, or `None` to leave the key out.
type Change<'a> = (&'a str, Option<&'a str>);

fn secret(changes: &[Change<'_>]) -> Secret {
    let mut data: BTreeMap<String, ByteString> = [
        ("token-id", "abcdef"),
        ("token-secret", "0123456789abcdef"),
        ("usage-bootstrap-authentication", "true"),
        ("auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token,system:bootstrappers:a"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())))
    .collect();
    for (key, value) in changes {
        match value {
            Some(value) => data.insert((*key).to_owned(), ByteString(value.as_bytes().to_vec())),
            None => data.remove(*key),
        };
    }
    let metadata = ObjectMeta { name: "bootstrap-token-abcdef".to_owned(), ..ObjectMeta::default() };
    Secret { metadata, type_: SECRET_TYPE.to_owned(), data, ..Secret::default() }
}

async fn run(secret: Secret, token: &str) -> Option<Identity> {
    BootstrapTokens::new(Arc::new(One(secret)), clock(0)).authenticate_token(token, &[]).await.unwrap()
}

#[tokio::test]
async fn a_matching_secret_makes_a_bootstrapper() {
    let user = run(secret(&[]), TOKEN).await.unwrap().user;
    assert_eq!(user.username, "system:bootstrap:abcdef");
    assert_eq!(
        user.groups,
        ["system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:kubeadm:default-node-token"]
    );
    let plain = run(secret(&[("auth-extra-groups", None)]), TOKEN).await.unwrap().user;
    assert_eq!(plain.groups, ["system:bootstrappers"]);
    let later = Time::from_unix_seconds(NOW_SECONDS + 60).to_string();
    assert!(run(secret(&[("expiration", Some(&later))]), TOKEN).await.is_some());
}

#[tokio::test]
async fn anything_else_is_no_opinion() {
    let past = Time::from_unix_seconds(NOW_SECONDS - 1).to_string();
    let cases: [(&str, &[Change<'_>]); 8] = [
        ("other secret", &[("token-secret", Some("fedcba9876543210"))]),
        ("no secret", &[("token-secret", None)]),
        ("other id", &[("token-id", Some("abcdeg"))]),
        ("expired", &[("expiration", Some(&past))]),
        ("unreadable expiration", &[("expiration", Some("tomorrow"))]),
        ("not for authentication", &[("usage-bootstrap-authentication", Some("yes"))]),
        ("foreign group", &[("auth-extra-groups", Some("system:masters"))]),
        ("one foreign group", &[("auth-extra-groups", Some("system:bootstrappers:a,ops"))]),
    ];
    for (name, changes) in cases {
        assert_eq!(run(secret(changes), TOKEN).await, None, "{name}");
    }
    let mut deleting = secret(&[]);
    deleting.metadata.deletion_timestamp = Some(Time::from_unix_seconds(NOW_SECONDS));
    assert_eq!(run(deleting, TOKEN).await, None);
    let mut typed = secret(&[]);
    typed.type_ = "Opaque".to_owned();
    assert_eq!(run(typed, TOKEN).await, None);
    assert_eq!(run(secret(&[]), "ABCDEF.0123456789abcdef").await, None);
    assert_eq!(run(secret(&[]), "abcdez.0123456789abcdef").await, None);
}

#[test]
fn group_names_keep_to_the_reserved_prefix() {
    for (group, valid) in [
        ("system:bootstrappers:a", true),
        ("system:bootstrappers:a-b:c1", true),
        ("system:bootstrappers:", false),
        ("system:bootstrappers:a-", false),
        ("system:bootstrappers:A", false),
        ("system:bootstrappers", false),
    ] {
        assert_eq!(is_bootstrap_group(group), valid, "{group}");
    }
    assert!(is_bootstrap_group(&format!("system:bootstrappers:{}", "a".repeat(256))));
    assert!(!is_bootstrap_group(&format!("system:bootstrappers:{}", "a".repeat(257))));
}
