//! The clients of webhooks, one for each place that is asked.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use admission::Lookup;
use admission::webhook::{Address, CallError, Caller, Target};
use async_trait::async_trait;
use base::SharedRng;
use bytes::Bytes;
use client::{Client, ClientConfig, ClientCx, ClientError, Request, TransportError, Trust};
use component_base::metrics::{Desc, Metrics, Stability};
use egress::{EgressSelector, EgressType};
use http::Method;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::credentials::WebhookCredentials;
use super::{failure, service};
use crate::outdated_certificates::OutdatedCertificates;

/// As many clients are kept as upstream keeps; the one that was not used for longest goes.
const MAX_CLIENTS: usize = 200;
/// An object of the largest size that the store takes, as a patch in base64, twice over.
pub(crate) const ADMISSION_ANSWER_BYTES: usize = 8 << 20;
/// Some times what conversion asks about at once, as objects may grow.
pub(crate) const CONVERSION_ANSWER_BYTES: usize = 64 << 20;
/// No question may take longer, whatever is asked for.
const MAX_TIME: Duration = Duration::from_secs(30);
const COMPONENT: &str = "kube-apiserver-admission";
const WITHOUT_NAMES: Desc = Desc::new(
    "apiserver_webhooks_x509_missing_san_total",
    "Certificates of webhooks that were refused because they have no names beside the subject's.",
    Stability::Alpha,
);
const SHA1: Desc = Desc::new(
    "apiserver_webhooks_x509_insecure_sha1_total",
    "Certificates of webhooks that were refused because they are signed over SHA-1.",
    Stability::Alpha,
);

/// What the clients of all webhooks share.
#[derive(Clone)]
pub(crate) struct WebhookSurroundings {
    /// Where Services and their endpoints are looked up.
    pub(crate) lookup: Arc<dyn Lookup>,
    /// Who connects.
    pub(crate) egress: EgressSelector,
    /// What was wrong with certificates.
    pub(crate) certificates: OutdatedCertificates,
}

impl WebhookSurroundings {
    /// With the families that tell of certificates.
    pub(crate) fn new(lookup: &Arc<dyn Lookup>, egress: &EgressSelector, metrics: &Metrics) -> Self {
        let certificates = OutdatedCertificates::new(metrics, &WITHOUT_NAMES, &SHA1);
        Self { lookup: Arc::clone(lookup), egress: egress.clone(), certificates }
    }
}

/// Brings questions to webhooks over HTTPS.
pub(crate) struct WebhookClients {
    lookup: Arc<dyn Lookup>,
    credentials: WebhookCredentials,
    egress: EgressSelector,
    cx: ClientCx,
    max_answer_bytes: usize,
    certificates: OutdatedCertificates,
    clients: Mutex<HashMap<Key, Kept>>,
}

/// What tells clients apart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    /// Host and port, as certificates and credentials name the webhook.
    host: String,
    port: u16,
    ca_bundle: Vec<u8>,
    /// Where connections go instead.
    dialled: Option<(String, u16)>,
}

/// Bundles are long, and those of one place mostly one: they are only compared.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.host, self.port, &self.dialled).hash(state);
    }
}

struct Kept {
    client: Client,
    used: Instant,
}

/// A webhook's address, taken apart.
struct Location {
    host: String,
    port: u16,
    /// The URL without a query, for messages.
    url: String,
    path: String,
}

impl WebhookClients {
    /// `max_answer_bytes` are read of an answer, and no more.
    pub(crate) fn new(
        around: &WebhookSurroundings,
        credentials: WebhookCredentials,
        cx: ClientCx,
        max_answer_bytes: usize,
    ) -> Self {
        let WebhookSurroundings { lookup, egress, certificates } = around.clone();
        Self { lookup, credentials, egress, cx, max_answer_bytes, certificates, clients: Mutex::default() }
    }

    fn client(&self, key: Key) -> Result<Client, CallError> {
        let now = self.cx.clock.monotonic();
        let mut clients = self.clients.lock();
        if let Some(kept) = clients.get_mut(&key) {
            kept.used = now;
            return Ok(kept.client.clone());
        }
        let client = self.connect(&key).map_err(CallError::Client)?;
        if clients.len() >= MAX_CLIENTS
            && let Some(oldest) = clients.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone())
        {
            clients.remove(&oldest);
        }
        clients.insert(key, Kept { client: client.clone(), used: now });
        Ok(client)
    }

    fn connect(&self, key: &Key) -> Result<Client, String> {
        let host = if key.host.contains(':') { format!("[{}]", key.host) } else { key.host.clone() };
        let trust = if key.ca_bundle.is_empty() { Trust::System } else { Trust::Pem(key.ca_bundle.clone()) };
        let config = ClientConfig { trust, ..ClientConfig::for_server(format!("https://{host}:{}", key.port)) };
        let config = self.credentials.apply(config, &key.host, key.port)?;
        let config =
            ClientConfig { connect_to: key.dialled.clone(), max_answer_bytes: self.max_answer_bytes, ..config };
        // What stands behind a Service is in the cluster; what a URL names is wherever it is.
        let kind = if key.dialled.is_some() { EgressType::Cluster } else { EgressType::ControlPlane };
        let cx = self.cx.clone().through(Arc::clone(self.egress.of(kind)));
        let client = Client::new(config.with_component(COMPONENT).with_rate(-1.0, 0), cx);
        client.map_err(|error| format!("unable to load root certificates: {error}"))
    }

    fn failed(&self, url: &str, error: &ClientError) -> CallError {
        if let ClientError::Transport { source: TransportError::Handshake { source, .. }, .. } = error {
            self.certificates.note_failure(source);
        }
        failure::of_call(url, error)
    }

    fn rng(&self) -> &SharedRng {
        &self.cx.rng
    }
}

/// Takes an address apart.
fn location(address: &Address) -> Result<Location, CallError> {
    match address {
        Address::Service { namespace, name, port, path } => {
            let host = format!("{name}.{namespace}.svc");
            let path = if path.is_empty() { "/".to_owned() } else { path.clone() };
            Ok(Location { url: format!("https://{host}:{port}{path}"), host, port: *port, path })
        }
        Address::Url(url) => {
            let invalid = |why: &dyn std::fmt::Display| CallError::Client(format!("Unparsable webhook URL: {why}"));
            let uri: http::Uri = url.parse().map_err(|error| invalid(&error))?;
            let host = uri.host().ok_or_else(|| invalid(&"it has no host"))?;
            if uri.scheme_str() != Some("https") {
                return Err(invalid(&"it is not https"));
            }
            let path = uri.path().to_owned();
            let url = if url.ends_with(&path) { url.clone() } else { format!("{url}/") };
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            Ok(Location { host, port: uri.port_u16().unwrap_or(443), url, path })
        }
    }
}

#[async_trait]
impl Caller for WebhookClients {
    async fn call(&self, target: &Target, question: Bytes, limit: Duration) -> Result<Bytes, CallError> {
        let limit = limit.min(MAX_TIME);
        let location = location(&target.address)?;
        let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
        let url = format!("{}?timeout={seconds}s", location.url);
        let dialled = match &target.address {
            Address::Url(_) => None,
            Address::Service { namespace, name, port, .. } => {
                let found =
                    service::locate(&*self.lookup, self.egress.cluster(), self.rng(), namespace, name, *port).await;
                Some(found.map_err(|why| failure::of_post(&url, &why))?)
            }
        };
        let Location { host, port, path, .. } = location;
        let client = self.client(Key { host, port, ca_bundle: target.ca_bundle.clone(), dialled })?;
        let request = Request::new(Method::POST, path)
            .accept("application/json, */*")
            .body("application/json", question)
            .query("timeout", format!("{seconds}s"))
            .timeout(limit);
        let answer = client.send(request).await.map_err(|error| self.failed(&url, &error))?;
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        // What a redirect leads to is not asked: it could be anybody on the server's own network.
        Err(failure::of_post(&url, &format!("unexpected answer {}", answer.status)))
    }
}
