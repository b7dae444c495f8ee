//! The file from its text to the bytes in a store.

use std::path::Path;
use std::sync::Arc;

use api_machinery::gvk::GroupResource;
use base::{Rng, TaskGroup, TokioClock};
use bytes::Bytes;
use component_base::metrics::{Metrics, MetricsOptions};
use server_api::kms::fake::{Fault, PluginProcess};
use storage::{Key, TransformError, Transformer};

use crate::config::parse;
use crate::rules::Rules;
use crate::{EncryptionMetrics, Live, Surroundings};

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n";
/// 32 bytes each.
const ONE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const TWO: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

fn element(resources: &str, providers: &str) -> String {
    format!("- resources: [{resources}]\n  providers: [{providers}]\n")
}

fn keys(provider: &str, keys: &[(&str, &str)]) -> String {
    let keys: Vec<String> =
        keys.iter().map(|(name, secret)| format!("{{name: {name}, secret: \"{secret}\"}}")).collect();
    format!("{{{provider}: {{keys: [{}]}}}}", keys.join(", "))
}

fn surroundings(metrics: &Metrics) -> Surroundings {
    Surroundings {
        clock: TokioClock::shared(),
        rng: Rng::seeded(1),
        tasks: TaskGroup::new("test"),
        metrics: EncryptionMetrics::new(metrics, "me".into()),
        kms_v1: false,
    }
}

fn refused(text: &str) -> String {
    let parsed = parse(Path::new("file"), text, true);
    let around = surroundings(&Metrics::new(MetricsOptions::default()));
    parsed
        .map_err(|error| error.to_string())
        .and_then(|config| Rules::new(&config, &around).map(drop).map_err(|error| error.to_string()))
        .unwrap_err()
}

#[test]
fn mistakes_are_told_with_their_place() {
    let identity = "{identity: {}}";
    let in_first = |provider: &str| element("secrets", provider);
    let cases = [
        (String::new(), "resources: Required value: at least one resources is required"),
        (
            element("", identity),
            "resources[0].resources: Required value: at least one resources[0].resources is required",
        ),
        (
            element("secrets", ""),
            "resources[0].providers: Required value: at least one resources[0].providers is required",
        ),
        (in_first("{}"), "resources[0].providers[0]: Invalid value: {}: provider does not contain any of the expected"),
        (in_first("{identity: {}, aescbc: {keys: []}}"), "more than one provider specified in a single element"),
        (
            in_first("{aescbc: {keys: []}}"),
            "resources[0].providers[0].aescbc.keys: Required value: at least one keys is",
        ),
        (in_first(&keys("aesgcm", &[("\"\"", ONE)])), "aesgcm.keys[0].name: Required value: name is a mandatory field"),
        (in_first(&keys("aesgcm", &[("a", "")])), "aesgcm.keys[0].secret: Required value: secret is a mandatory field"),
        (in_first(&keys("aesgcm", &[("a", "?")])), "Invalid value: \"REDACTED\": secrets must be base64 encoded"),
        (
            in_first(&keys("aescbc", &[("a", "AAAA")])),
            "secret is not of the expected length, got 3, expected one of [16 24 32]",
        ),
        (in_first(&keys("secretbox", &[("a", "AAAA")])), "got 3, expected one of [32]"),
        (
            element("Secrets", identity),
            "resources[0].resources[0]: Invalid value: \"Secrets\": resource name should not",
        ),
        (element("\"*\"", identity), "use '*.' to encrypt all the resources from core API group or *.* to encrypt"),
        (element("serviceipallocations", identity), "resources which do not have REST API/s cannot be encrypted"),
        (element("events.events.k8s.io", identity), "Use 'events' instead in the config file"),
        (element("ingresses.extensions", identity), "'extensions' group has been removed"),
        (element("\"secrets.*\"", identity), "encrypting the same resource across groups is not supported"),
        (element("secrets, secrets", identity), "the same resource cannot be specified multiple times"),
        (element("secrets, \"*.\"", identity), "using overlapping resources such as 'secrets' and '*.'"),
        (element("pods, \"*.*\"", identity), "using overlapping resources"),
        (
            element("\"*.apps\"", identity) + &element("deployments.apps", identity),
            "resource \"deployments.apps\" is masked by earlier rule \"*.apps\"",
        ),
        (
            element("\"*.*\"", identity) + &element("\"*.\"", identity),
            "resource \"*.\" is masked by earlier rule \"*.*\"",
        ),
        ("- surprise: 1\n".to_owned(), "strict decoding error"),
    ];
    for (body, expected) in cases {
        let error = refused(&format!("{HEAD}{body}"));
        assert!(error.contains(expected), "{body}: {error}");
    }
    assert!(refused("").contains("encryption provider configuration file \"file\" is empty"));
    assert!(refused("a: [").contains("error decoding encryption provider configuration file \"file\": "));
    assert!(refused("apiVersion: v2\nkind: EncryptionConfig").contains("no kind \"EncryptionConfig\" is registered"));
}

#[test]
fn mistakes_about_plug_ins_are_told() {
    let kms = |rest: &str| element("secrets", &format!("{{kms: {{{rest}}}}}"));
    let cases = [
        (kms("name: a, endpoint: \"unix:///x\", apiVersion: v2, cachesize: 3"), "cachesize is not supported in v2"),
        (
            kms("name: a, endpoint: \"http://x\", apiVersion: v2"),
            "unsupported scheme \"http\" for KMS provider, only unix",
        ),
        (kms("name: \"a:b\", endpoint: \"unix:///x\", apiVersion: v2"), "name a:b, must not contain ':'"),
        (kms("endpoint: \"unix:///x\", timeout: 0s"), "timeout should be a positive value"),
        (kms("name: a, endpoint: \"unix:///x\", apiVersion: v3"), "unsupported apiVersion apiVersion for KMS provider"),
        (kms("name: a, endpoint: \"unix:///x\""), "KMSv1 is deprecated and will only receive security updates going"),
        (kms("name: a, endpoint: \"unix:\", apiVersion: v2"), "invalid endpoint \"unix:\", expected unix:///path"),
        (
            kms("name: a, endpoint: \"unix:///x\", apiVersion: v2")
                + &kms("name: a, endpoint: \"unix:///y\", apiVersion: v2"),
            "resources[1].providers[0].kms.name: Invalid value: \"a\": duplicate KMS provider name a, names must be",
        ),
    ];
    for (body, expected) in cases {
        let error = refused(&format!("{HEAD}{body}"));
        assert!(error.contains(expected), "{body}: {error}");
    }
}

struct Fixture {
    directory: tempfile::TempDir,
    live: Arc<Live>,
    metrics: Arc<Metrics>,
}

impl Fixture {
    fn new(body: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.yaml");
        std::fs::write(&path, format!("{HEAD}{body}")).unwrap();
        let metrics = Metrics::new(MetricsOptions::default());
        let live = Live::load(&path, true, surroundings(&metrics)).unwrap();
        Self { directory, live, metrics }
    }

    fn becomes(&self, body: &str) {
        std::fs::write(self.directory.path().join("config.yaml"), format!("{HEAD}{body}")).unwrap();
    }

    fn of(&self, group: &str, resource: &str) -> Arc<dyn Transformer> {
        self.live.transformer(&GroupResource::named(group, resource))
    }
}

fn place() -> Key {
    "/registry/secrets/default/a".into()
}

async fn written(transformer: &Arc<dyn Transformer>) -> Bytes {
    transformer.on_write(&place(), &Bytes::from_static(b"words")).await.unwrap()
}

/// Whether it is stale.
async fn stale(transformer: &Arc<dyn Transformer>, stored: &Bytes) -> Result<bool, String> {
    let read = transformer.on_read(&place(), stored).await.map_err(|TransformError(why)| why)?;
    assert_eq!(&read.value[..], b"words");
    Ok(read.stale)
}

#[tokio::test]
async fn the_closest_rule_holds() {
    let body = element("secrets, configmaps", &keys("aesgcm", &[("exact", ONE)]))
        + &element("\"*.apps\"", &keys("secretbox", &[("group", ONE)]))
        + &element("\"*.*\"", &keys("aescbc", &[("all", ONE)]));
    let fixture = Fixture::new(&body);
    for (group, resource, prefix) in [
        ("", "secrets", "k8s:enc:aesgcm:v1:exact:"),
        ("", "pods", "k8s:enc:aescbc:v1:all:"),
        ("apps", "deployments", "k8s:enc:secretbox:v1:group:"),
        ("example.com", "secrets", "k8s:enc:aescbc:v1:all:"),
    ] {
        let transformer = fixture.of(group, resource);
        let stored = written(&transformer).await;
        assert!(stored.starts_with(prefix.as_bytes()), "{resource}: {stored:?}");
        assert_eq!(stale(&transformer, &stored).await, Ok(false));
    }
}

#[tokio::test]
async fn keys_are_rotated_while_it_runs() {
    let rules = |providers: &str| element("secrets", providers);
    let fixture = Fixture::new(&rules("{identity: {}}"));
    let secrets = fixture.of("", "secrets");
    let plain = written(&secrets).await;
    assert_eq!(&plain[..], b"words");

    // One key, and what was plain is still read.
    fixture.becomes(&rules(&(keys("aescbc", &[("k1", ONE)]) + ", {identity: {}}")));
    assert!(fixture.live.look_again().await.unwrap());
    assert!(!fixture.live.look_again().await.unwrap(), "nothing changed");
    let first = written(&secrets).await;
    assert_eq!((stale(&secrets, &plain).await, stale(&secrets, &first).await), (Ok(true), Ok(false)));

    // A second one of the same provider, then another provider before it.
    fixture.becomes(&rules(&keys("aescbc", &[("k2", TWO), ("k1", ONE)])));
    assert!(fixture.live.look_again().await.unwrap());
    assert_eq!(stale(&secrets, &first).await, Ok(true));
    let second = written(&secrets).await;
    fixture.becomes(&rules(&(keys("aesgcm", &[("k2", TWO)]) + ", " + &keys("aescbc", &[("k2", TWO)]))));
    assert!(fixture.live.look_again().await.unwrap());
    assert_eq!(stale(&secrets, &second).await, Ok(true));
    let no_key = "no matching key was found for the provided AES transformer".to_owned();
    assert_eq!(stale(&secrets, &first).await, Err(no_key));
    assert_eq!(stale(&secrets, &plain).await, Err("no matching prefix found".to_owned()));

    // A mistake leaves everything as it was, and is told of again.
    fixture.becomes("  - nonsense\n");
    for _ in 0..2 {
        assert!(fixture.live.look_again().await.unwrap_err().to_string().contains("error while parsing file: "));
    }
    assert_eq!(stale(&secrets, &written(&secrets).await).await, Ok(false));
}

#[tokio::test]
async fn what_was_moved_or_belongs_to_another_key_is_refused() {
    let two = keys("aesgcm", &[("k", TWO)]) + ", " + &keys("aesgcm", &[("k", ONE)]);
    let fixture = Fixture::new(&(element("secrets", &keys("aesgcm", &[("k", ONE)])) + &element("pods", &two)));
    let (secrets, pods) = (fixture.of("", "secrets"), fixture.of("", "pods"));
    let stored = written(&secrets).await;
    let moved = secrets.on_read(&"/registry/secrets/default/b".into(), &stored).await;
    assert_eq!(moved.unwrap_err().0, "cipher: message authentication failed");
    // Providers of the same kind share their prefix: each is tried.
    assert_eq!(stale(&pods, &stored).await, Ok(true));
    let unencrypted = fixture.of("", "services").on_read(&place(), &stored).await;
    assert_eq!(unencrypted.unwrap_err().0, "identity transformer tried to read encrypted data");
}

#[tokio::test]
async fn a_plug_in_must_be_well_before_it_is_used() {
    let fixture = Fixture::new(&element("secrets", "{identity: {}}"));
    assert_eq!(fixture.live.checks().len(), 1, "one check for all plug-ins that there may be");
    let socket = fixture.directory.path().join("kms.sock");
    let process = PluginProcess::start(socket, "kms::tests::plugin_process");
    process.behave("k1", Fault::Unwell);
    let url = process.url();
    fixture.becomes(&element(
        "secrets",
        &format!("{{kms: {{apiVersion: v2, name: p, endpoint: \"{url}\"}}}}, {{identity: {{}}}}"),
    ));
    let secrets = fixture.of("", "secrets");
    let plain = written(&secrets).await;
    let error = fixture.live.look_again().await.unwrap_err().to_string();
    assert!(error.contains("kmsv2 Provider p is not healthy, error: got unexpected healthz status"), "{error}");
    assert_eq!(&written(&secrets).await[..], b"words", "the former file is in force");

    process.behave("k1", Fault::None);
    assert!(fixture.live.look_again().await.unwrap());
    let stored = written(&secrets).await;
    assert!(stored.starts_with(b"k8s:enc:kms:v2:p:"), "{stored:?}");
    assert_eq!((stale(&secrets, &plain).await, stale(&secrets, &stored).await), (Ok(true), Ok(false)));
    process.behave("k2", Fault::None);

    let text = fixture.metrics.text();
    for line in [
        "reloads_total{apiserver_id_hash=\"me\",status=\"success\"} 1",
        "reloads_total{apiserver_id_hash=\"me\",status=\"failure\"} 1",
        "transformer_prefix=\"k8s:enc:kms:v2:p:\"} 1",
        "method_name=\"/v2.KeyManagementService/Encrypt\",provider_name=\"p\"",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(text.matches("apiserver_encryption_config_controller_last_config_info{").count(), 1, "{text}");
}
