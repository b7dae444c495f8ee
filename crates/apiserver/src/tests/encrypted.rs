//! Encryption at rest: what lies in the store, and what clients see.

use std::time::Duration;

use base::{Rng, TokioClock};
use bytes::Bytes;
use component_base::Gates;
use component_base::lifecycle::Lifecycle;
use component_base::reload::RELOAD_INTERVAL;
use server_api::kms::fake::{Fault, PluginProcess, serve_if_asked};

use super::harness::Api;
use crate::config::{EncryptionFile, ServerConfig};
use crate::server::Server;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const STORED_SECRET: &str = "/registry/secrets/default/s";
const IDENTITY: &str = "{identity: {}}";
const ONE: &str = "{aescbc: {keys: [{name: k1, secret: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}]}}";
const TWO: &str = "{aesgcm: {keys: [{name: k2, secret: AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=}]}}";

struct Fixture {
    directory: tempfile::TempDir,
    api: Api,
}

impl Fixture {
    async fn new(providers: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("encryption.yaml");
        write(&directory, providers);
        let api = Api::with(|config| config.storage.encryption = Some(EncryptionFile { path, follows: true })).await;
        Self { directory, api }
    }

    async fn becomes(&self, providers: &str) {
        write(&self.directory, providers);
        tokio::time::sleep(RELOAD_INTERVAL + Duration::from_secs(1)).await;
    }

    async fn stored(&self, key: &str) -> Bytes {
        self.api.server.cx().backend().get(&key.into()).await.expect("a read").kv.expect("it is there").value
    }

    /// Writes the secret as it is; gives its resource version.
    async fn rewritten(&self) -> String {
        let now = self.api.get(&format!("{SECRETS}/s")).await;
        let answer = self.api.put(&format!("{SECRETS}/s"), &now.text).await;
        assert_eq!(answer.code, 200, "{}", answer.text);
        answer.json()["metadata"]["resourceVersion"].to_string()
    }
}

fn write(directory: &tempfile::TempDir, providers: &str) {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [secrets, apples.example.com]\n  providers: [{providers}]\n"
    );
    std::fs::write(directory.path().join("encryption.yaml"), text).expect("a file");
}

fn contains(value: &[u8], text: &str) -> bool {
    value.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(start_paused = true)]
async fn only_what_the_file_names_is_encrypted() {
    let fixture = Fixture::new(ONE).await;
    let api = &fixture.api;
    let body = r#"{"metadata":{"name":"s"},"stringData":{"password":"open sesame"}}"#;
    assert_eq!(api.post(SECRETS, body).await.code, 201);
    api.config_map("m").await;
    let stored = fixture.stored(STORED_SECRET).await;
    assert!(stored.starts_with(b"k8s:enc:aescbc:v1:k1:"), "{stored:?}");
    assert!(!contains(&stored, "open sesame") && !contains(&stored, "password"), "{stored:?}");
    assert!(fixture.stored("/registry/configmaps/default/m").await.starts_with(b"k8s\0"));
    for path in [format!("{SECRETS}/s"), SECRETS.to_owned(), format!("{SECRETS}?resourceVersion=0")] {
        assert!(api.get(&path).await.text.contains("b3BlbiBzZXNhbWU="), "{path}");
    }
    let metrics = api.get("/metrics").await.text;
    let counted = "apiserver_storage_transformation_operations_total{resource=\"secrets\",status=\"OK\",\
                   transformation_type=\"to_storage\",transformer_prefix=\"k8s:enc:aescbc:v1:\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn keys_are_rotated_without_a_restart() {
    let fixture = Fixture::new(IDENTITY).await;
    let body = r#"{"metadata":{"name":"s"},"stringData":{"password":"open sesame"}}"#;
    assert_eq!(fixture.api.post(SECRETS, body).await.code, 201);
    assert!(contains(&fixture.stored(STORED_SECRET).await, "open sesame"));
    for (providers, prefix) in [
        (format!("{ONE}, {IDENTITY}"), "k8s:enc:aescbc:v1:k1:"),
        (format!("{TWO}, {ONE}"), "k8s:enc:aesgcm:v1:k2:"),
        (format!("{IDENTITY}, {TWO}"), "k8s\0"),
    ] {
        let before = fixture.rewritten().await;
        fixture.becomes(&providers).await;
        let after = fixture.rewritten().await;
        assert_ne!(before, after, "what lies there is stale");
        assert!(fixture.stored(STORED_SECRET).await.starts_with(prefix.as_bytes()), "{prefix}");
        assert_eq!(fixture.rewritten().await, after);
    }
    fixture.becomes("nonsense").await;
    assert_eq!(fixture.api.get(&format!("{SECRETS}/s")).await.code, 200, "a mistake leaves everything as it was");
}

#[tokio::test(start_paused = true)]
async fn a_file_with_a_mistake_is_refused_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, "{}");
    let mut config = ServerConfig::in_memory(Vec::new());
    let path = directory.path().join("encryption.yaml");
    config.storage.encryption = Some(EncryptionFile { path, follows: false });
    let lifecycle = Lifecycle::new("kube-apiserver", TokioClock::shared(), Rng::seeded(7));
    let refused = Server::build(config, lifecycle).await.map(drop).expect_err("no provider").to_string();
    assert!(refused.starts_with("error while parsing file: resources[0].providers[0]: Invalid value"), "{refused}");
}

/// Serves as the plug-in of another test in a process of its own; alone it has nothing to do.
#[tokio::test]
async fn plugin_process() {
    serve_if_asked().await.expect("a socket");
}

/// Lets timers ring; what they begin speaks to a real process, which has no paused time.
async fn later(by: Duration) {
    tokio::time::pause();
    tokio::time::advance(by).await;
    tokio::time::resume();
}

/// Whether a server starts whose file names a plug-in of the deprecated version.
pub(super) async fn with_a_plug_in_of_version_one(gates: Gates) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, "{kms: {apiVersion: v1, name: p, endpoint: \"unix:///nowhere\"}}");
    let mut config = ServerConfig::in_memory(Vec::new());
    let path = directory.path().join("encryption.yaml");
    config.storage.encryption = Some(EncryptionFile { path, follows: false });
    let lifecycle = Lifecycle::new("kube-apiserver", TokioClock::shared(), Rng::seeded(7)).with_gates(gates);
    match Server::build(config, lifecycle).await {
        Ok(_) => "it starts".to_owned(),
        Err(error) => {
            let error = error.to_string();
            let part = "KMSv1 is deprecated";
            if error.contains(part) { part.to_owned() } else { error }
        }
    }
}

#[tokio::test]
async fn a_plug_in_keeps_the_keys() {
    let sockets = tempfile::tempdir().expect("a directory");
    let process = PluginProcess::start(sockets.path().join("kms.sock"), "tests::encrypted::plugin_process");
    process.serves().await;
    // However busy the machine is, and well within what a request may take.
    let kms = format!("{{kms: {{apiVersion: v2, name: p, timeout: 20s, endpoint: \"{}\"}}}}", process.url());
    let fixture = Fixture::new(&format!("{kms}, {IDENTITY}")).await;
    let api = &fixture.api;
    let body = r#"{"metadata":{"name":"s"},"stringData":{"password":"open sesame"}}"#;
    assert_eq!(api.post(SECRETS, body).await.code, 201);
    assert!(fixture.stored(STORED_SECRET).await.starts_with(b"k8s:enc:kms:v2:p:"));
    for path in ["/healthz/kms-providers", "/livez/kms-providers", "/readyz/kms-providers"] {
        assert_eq!(api.get(path).await.code, 200, "{path}");
    }
    let hook = "/readyz/poststarthook/start-encryption-provider-config-automatic-reload";
    assert_eq!(api.get(hook).await.code, 200);
    assert_eq!(api.get("/readyz/kms-provider-0").await.code, 404);

    // Another key: what lies there is stale, and written anew by whoever writes it as it is.
    let before = fixture.rewritten().await;
    assert_eq!(fixture.rewritten().await, before);
    process.behave("k2", Fault::None);
    later(Duration::from_secs(61)).await;
    assert_eq!(api.get("/readyz/kms-providers").await.code, 200);
    let after = fixture.rewritten().await;
    assert_ne!(after, before);
    assert_eq!(fixture.rewritten().await, after);

    // Without the plug-in reads go on; writes do for three minutes.
    drop(process);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(181)).await;
    let unwell = api.get("/readyz/kms-providers").await;
    assert_eq!(unwell.code, 500, "{}", unwell.text);
    let now = api.get(&format!("{SECRETS}/s")).await;
    assert!(now.text.contains("b3BlbiBzZXNhbWU="), "{}", now.text);
    let refused = api.post(SECRETS, r#"{"metadata":{"name":"t"}}"#).await;
    let (code, message) = refused.refusal();
    assert!(code == 500 && message.contains("encryptedDEKSource with keyID hash \"sha256:"), "{}", refused.text);
}
