//! With which identity the kubelet talks to the API server.

use std::path::Path;
use std::sync::Arc;

use client::{
    CertSource, Client, ClientConfig, ClientCx, Cluster, Context, Kubeconfig, NamedCluster, NamedContext, NamedUser,
    Overrides, Trust, User,
};
use component_base::Lifecycle;
use pki::{AltNames, Certificate, Name};

use super::request::Template;
use super::rotation::{Rotation, obtain_surely};
use super::store::{Pair, Store};
use super::{CLIENT, CertificateError};
use crate::config::Plan;
use crate::metrics::KubeletMetrics;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const GROUP: &str = "system:nodes";

/// How to reach the API server.
pub(crate) struct ClientAccess {
    pub(crate) config: ClientConfig,
    /// Keeps the certificate valid, where that is wanted.
    pub(crate) rotation: Option<Rotation>,
}

/// The kubelet's configuration of its client; nothing for a kubelet on its own. Without a usable identity the first one
/// is asked for with the bootstrap credentials.
pub(crate) async fn client_config(
    plan: &Plan,
    lifecycle: &Lifecycle,
    metrics: &Arc<KubeletMetrics>,
) -> Result<Option<ClientAccess>, CertificateError> {
    if plan.kubeconfig.is_empty() {
        tracing::warn!("Standalone mode, no API client");
        return Ok(None);
    }
    let path = Path::new(&plan.kubeconfig);
    let store = Store::new(&plan.cert_dir, CLIENT);
    if !plan.bootstrap_kubeconfig.is_empty() && !is_usable(path, lifecycle) {
        bootstrap(plan, lifecycle, &store, metrics).await?;
    }
    let mut config = ClientConfig::from_kubeconfig_file(path)?;
    if !plan.config.rotate_certificates {
        return Ok(Some(ClientAccess { config, rotation: None }));
    }
    if store.load().is_none()
        && let Some(pair) = pair_of(&config)
    {
        store.save(&pair, lifecycle.clock().wall())?;
    }
    if store.load().is_some() {
        config.identity = CertSource::Files { cert: store.current(), key: store.current() };
    }
    let rotation = Rotation { store, template: template(&plan.node.name, metrics) };
    Ok(Some(ClientAccess { config, rotation: Some(rotation) }))
}

fn template(node: &str, metrics: &Arc<KubeletMetrics>) -> Template {
    Template {
        signer: SIGNER,
        subject: Name::new(&format!("system:node:{node}"), &[GROUP.to_owned()]),
        alt_names: AltNames::default(),
        usage: "client auth",
        metrics: metrics.clone(),
    }
}

/// The client certificate of a configuration.
fn pair_of(config: &ClientConfig) -> Option<Pair> {
    match &config.identity {
        CertSource::Pem { cert, key } => Some(Pair { chain: cert.clone(), key: key.clone() }),
        CertSource::Files { cert, key } => {
            Some(Pair { chain: std::fs::read(cert).ok()?, key: std::fs::read(key).ok()? })
        }
        CertSource::None | CertSource::Shared(_) => None,
    }
}

/// Whether a kubeconfig is there and its certificate, if it has one, is still valid.
fn is_usable(path: &Path, lifecycle: &Lifecycle) -> bool {
    let Ok(config) = ClientConfig::from_kubeconfig_file(path) else { return false };
    if matches!(config.identity, CertSource::None) {
        return true;
    }
    let Some(pair) = pair_of(&config) else { return false };
    let now = lifecycle.clock().wall();
    Certificate::all_from_pem(&pair.chain).is_ok_and(|chain| chain.first().is_some_and(|leaf| now < leaf.not_after()))
}

/// Gets the first certificate and writes the kubeconfig that uses it.
async fn bootstrap(
    plan: &Plan,
    lifecycle: &Lifecycle,
    store: &Store,
    metrics: &Arc<KubeletMetrics>,
) -> Result<(), CertificateError> {
    tracing::info!("Using bootstrap kubeconfig to generate TLS client cert, key and kubeconfig file");
    let file = Kubeconfig::read(&plan.bootstrap_kubeconfig)?;
    let config = ClientConfig::from_kubeconfig(&file, &Overrides::default())?.with_component("kubelet");
    // Connections made with the bootstrap token end with it.
    let tasks = lifecycle.tasks().child("bootstrap");
    let client = Client::new(config.clone(), ClientCx::of(lifecycle, tasks.clone()))?;
    let pair = obtain_surely(&client, &template(&plan.node.name, metrics)).await;
    store.save(&pair, lifecycle.clock().wall())?;
    tasks.cancel();
    write_kubeconfig(Path::new(&plan.kubeconfig), &config, &store.current())?;
    Ok(())
}

fn write_kubeconfig(path: &Path, config: &ClientConfig, current: &Path) -> Result<(), CertificateError> {
    let mut cluster = Cluster {
        server: config.server.clone(),
        tls_server_name: config.server_name.clone(),
        proxy_url: config.proxy_url.expose().clone(),
        ..Cluster::default()
    };
    match &config.trust {
        Trust::System => {}
        Trust::Pem(pem) => cluster.certificate_authority_data = pem.clone().into(),
        Trust::File(file) => cluster.certificate_authority = file.display().to_string(),
        Trust::Insecure => cluster.insecure_skip_tls_verify = true,
    }
    let current = current.display().to_string();
    let user = User { client_certificate: current.clone(), client_key: current, ..User::default() };
    let context = Context {
        cluster: "default-cluster".to_owned(),
        user: "default-auth".to_owned(),
        namespace: config.namespace.clone(),
        ..Context::default()
    };
    let file = Kubeconfig {
        clusters: vec![NamedCluster { name: "default-cluster".to_owned(), cluster }],
        users: vec![NamedUser { name: "default-auth".to_owned(), user }],
        contexts: vec![NamedContext { name: "default-context".to_owned(), context }],
        current_context: "default-context".to_owned(),
        ..Kubeconfig::default()
    };
    let text = api_machinery::json::encode_typed("Config", "v1", &file);
    let failed = |source| CertificateError::File { what: "write", path: path.display().to_string(), source };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    sys::fs::write_atomic(path, text.as_bytes(), 0o600).map_err(failed)
}
