//! What the kubelet's own API is served with.

use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_types::core_v1::Node;
use base::{Rng, SharedRng};
use client::Client;
use component_base::Lifecycle;
use component_base::tls::{CertFiles, ServingCerts};
use pki::{AltNames, Certificate, CertificateAuthority, CertificateSpec, KeyAlgorithm, Name, PrivateKey};

use super::request::Template;
use super::rotation::{deadline, obtain_surely, wait_until};
use super::store::Store;
use super::{CertificateError, SERVER};
use crate::config::Plan;
use crate::interfaces::NodeView;
use crate::metrics::KubeletMetrics;
use crate::node::NodeState;

const SIGNER: &str = "kubernetes.io/kubelet-serving";
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How often the node's addresses are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// The pair in `--cert-dir`, made once.
pub(crate) fn self_signed(plan: &Plan, rng: &Rng, now: SystemTime) -> Result<Arc<ServingCerts>, CertificateError> {
    let files = CertFiles { cert: plan.cert_dir.join("kubelet.crt"), key: plan.cert_dir.join("kubelet.key") };
    if let Ok(certs) = ServingCerts::load(Some(&files), &[]) {
        return Ok(certs);
    }
    let host = &plan.node.hostname;
    let stamp = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let authority_key = PrivateKey::generate(KeyAlgorithm::EcdsaP256)?;
    let authority = CertificateAuthority::create(&format!("{host}-ca@{stamp}"), authority_key, YEAR, now, rng)?;
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256)?;
    let mut alt_names = AltNames::default();
    alt_names.push_host(host);
    let spec = CertificateSpec::server(&format!("{host}@{stamp}"), alt_names, YEAR);
    let leaf = authority.issue(&spec, key.public_key(), now, rng)?;
    let chain = format!("{}{}", leaf.to_pem(), authority.certificate().to_pem());
    let failed = |path: &std::path::Path| {
        let path = path.display().to_string();
        move |source| CertificateError::File { what: "write", path, source }
    };
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&plan.cert_dir);
    made.map_err(failed(&plan.cert_dir))?;
    sys::fs::write_atomic(&files.key, key.to_pem()?.as_bytes(), 0o600).map_err(failed(&files.key))?;
    sys::fs::write_atomic(&files.cert, chain.as_bytes(), 0o644).map_err(failed(&files.cert))?;
    tracing::info!(cert = %files.cert.display(), "Using self-signed cert");
    Ok(ServingCerts::load(Some(&files), &[])?)
}

/// A pair that is asked for, again when it gets old or the node's addresses change. Handshakes fail until the first one
/// is there.
pub(crate) fn request_serving(
    plan: &Plan,
    lifecycle: &Lifecycle,
    client: &Client,
    node: Arc<NodeState>,
    metrics: &Arc<KubeletMetrics>,
) -> Result<Arc<ServingCerts>, CertificateError> {
    let certs = ServingCerts::empty();
    let store = Store::new(&plan.cert_dir, SERVER);
    if let Some(pair) = store.load() {
        certs.set_default(&pair.chain, &pair.key)?;
    }
    let keeper = Keeper {
        certs: certs.clone(),
        store,
        client: client.clone(),
        node,
        name: plan.node.name.clone(),
        names_are_enough: plan.dns_only_certificates,
        rng: lifecycle.rng().clone(),
        metrics: metrics.clone(),
    };
    lifecycle.tasks().spawn_cancellable("serving-certificate", async move { keeper.run().await });
    Ok(certs)
}

struct Keeper {
    certs: Arc<ServingCerts>,
    store: Store,
    client: Client,
    node: Arc<NodeState>,
    name: String,
    /// Whether a certificate is asked for before the node has an address, by its names alone.
    names_are_enough: bool,
    rng: SharedRng,
    metrics: Arc<KubeletMetrics>,
}

impl Keeper {
    async fn run(&self) {
        loop {
            let wanted = self.names().await;
            let leaf = self.store.load().and_then(|pair| pair.leaf().ok());
            let now = self.client.clock().wall();
            let before = leaf.as_ref().map(Certificate::not_before);
            if let Some(leaf) = leaf.filter(|leaf| leaf.alt_names().covers(&wanted) && now < leaf.not_after()) {
                let until = deadline(&leaf, &self.rng);
                tokio::select! {
                    () = wait_until(self.client.clock(), until) => {}
                    () = self.changed(&wanted) => continue,
                }
            }
            let template = Template {
                signer: SIGNER,
                subject: Name::new(&format!("system:node:{}", self.name), &["system:nodes".to_owned()]),
                alt_names: wanted,
                usage: "server auth",
                metrics: self.metrics.clone(),
            };
            let pair = obtain_surely(&self.client, &template).await;
            if let Some(lived) = before.and_then(|from| self.client.clock().wall().duration_since(from).ok()) {
                self.metrics.serving_certificate_life.with(&[]).observe(lived.as_secs_f64());
            }
            let kept = self.store.save(&pair, self.client.clock().wall());
            let used = self.certs.set_default(&pair.chain, &pair.key);
            if let Err(error) = kept.and(used.map_err(Into::into)) {
                tracing::error!(%error, "The new serving certificate cannot be used");
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    /// The node's names and addresses; waits until there are enough of them.
    async fn names(&self) -> AltNames {
        loop {
            if let Some(names) = self.present() {
                return names;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn present(&self) -> Option<AltNames> {
        names_of(&*self.node.node()?, self.names_are_enough)
    }

    async fn changed(&self, known: &AltNames) {
        while self.present().is_none_or(|names| known.covers(&names)) {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// The names and addresses of a node, where there is an address among them, or any is enough.
fn names_of(node: &Node, any_is_enough: bool) -> Option<AltNames> {
    let mut names = AltNames::default();
    let mut is_enough = false;
    for address in &node.status.addresses {
        is_enough |= any_is_enough || address.address.parse::<IpAddr>().is_ok();
        names.push_host(&address.address);
    }
    names.normalize();
    is_enough.then_some(names)
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::NodeAddress;

    use super::*;

    #[test]
    fn a_certificate_waits_for_an_address_unless_a_name_is_enough() {
        let node = |addresses: &[&str]| {
            let mut node = Node::default();
            let one = |address: &&str| NodeAddress { address: (*address).to_owned(), ..NodeAddress::default() };
            node.status.addresses = addresses.iter().map(one).collect();
            node
        };
        let cases: [(&[&str], bool, bool); 5] = [
            (&[], false, false),
            (&[], true, false),
            (&["host"], false, false),
            (&["host"], true, true),
            (&["host", "192.0.2.1"], false, true),
        ];
        for (addresses, any, expected) in cases {
            assert_eq!(names_of(&node(addresses), any).is_some(), expected, "{addresses:?} {any}");
        }
    }
}
