//! What a server is told in confidence is written down nowhere, however much it is to write.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::stage::Stage;

/// What somebody stores.
const VALUE: &str = "marked-value-8c1f44";
/// What somebody tries to come in with.
const WRONG_TOKEN: &str = "marked-wrong-token-19ab03";
/// What the server shows to a webhook.
const WEBHOOK_TOKEN: &str = "marked-webhook-token-77d2e0";
/// What stored values are encrypted with.
const KEY: &str = "marked-key-of-just-32-bytes-long";
/// The secret half of a bootstrap token.
const BOOTSTRAP: &str = "marked0123456789";
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";

fn encryption() -> String {
    let key = STANDARD.encode(KEY);
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  \
         providers:\n  - aescbc: {{keys: [{{name: k, secret: {key}}}]}}\n"
    )
}

/// Nobody listens there: what the server says of that must not say whom it came with.
fn webhook() -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: \
         \"https://127.0.0.1:9/review\", insecure-skip-tls-verify: true}}}}]\nusers: [{{name: u, user: {{token: \
         {WEBHOOK_TOKEN}}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    )
}

#[tokio::test]
async fn nothing_confidential_is_written_at_the_highest_verbosity() {
    let Some(mut stage) = Stage::new() else { return };
    for (file, text) in
        [("audit.yaml", POLICY.to_owned()), ("encryption.yaml", encryption()), ("webhook.conf", webhook())]
    {
        stage.write(file, &text);
    }
    let flags = [
        "--v=10".to_owned(),
        stage.flag("audit-policy-file", "audit.yaml"),
        stage.flag("audit-log-path", "audit.log"),
        stage.flag("encryption-provider-config", "encryption.yaml"),
        stage.flag("authentication-token-webhook-config-file", "webhook.conf"),
    ];
    let server = stage.start("front", &flags).await;
    stage.ok(server, &format!("create secret generic marked --from-literal=password={VALUE}"), "").await;
    stage.ok(server, "patch secret marked --type=merge -p {\"metadata\":{\"labels\":{\"a\":\"b\"}}}", "").await;
    let bootstrap = format!(
        "--type=bootstrap.kubernetes.io/token --from-literal=token-id=abcdef --from-literal=token-secret={BOOTSTRAP}"
    );
    let bootstrap = format!("create secret generic bootstrap-token-abcdef -n kube-system {bootstrap}");
    stage.ok(server, &bootstrap, "").await;
    stage.ok(server, "get secrets -A -o yaml", "").await;
    stage.ok(server, "create serviceaccount worker", "").await;
    let issued = stage.ok(server, "create token worker", "").await;
    for token in [WRONG_TOKEN, &issued, "abcdef.marked0123456789"] {
        // Whether they are let in is not what this is about. The first one is asked of the webhook.
        drop(stage.kubectl_as(token, server, "get secrets", "").await);
    }
    let metrics = stage.ok(server, "get --raw /metrics", "").await;
    let events = stage.ok(server, "get events -A -o yaml", "").await;
    let read = |name: &str| std::fs::read_to_string(stage.file(name)).expect("a file that the server writes");
    let written = [
        ("the log", read("front.log")),
        ("the audit log", read("audit.log")),
        ("metrics", metrics),
        ("events", events),
    ];
    let signature = issued.rsplit('.').next().unwrap_or_default().to_owned();
    let account_key = read("sa.key").lines().nth(1).unwrap_or_default().to_owned();
    let plain = [VALUE, WRONG_TOKEN, WEBHOOK_TOKEN, KEY, BOOTSTRAP].map(str::to_owned);
    let encoded = [VALUE, KEY, BOOTSTRAP].map(|text| STANDARD.encode(text));
    for secret in plain.iter().chain(&encoded).chain([&signature, &account_key]) {
        assert!(secret.len() >= 16, "{secret:?} could be anywhere");
        for (place, text) in &written {
            let line = text.lines().find(|line| line.contains(secret.as_str()));
            assert_eq!(line, None, "{place} tells {secret:?}");
        }
    }
    assert!(written[0].1.lines().count() > 100, "little was written: {}", written[0].1);
    assert!(written[1].1.contains("bootstrap-token-abcdef"), "{}", written[1].1);
    stage.stop().await;
}
