//! Serving certificates that the cluster's authority vouches for: those of kubelets, as files of their nodes, and those of
//! addons that are asked through the API server, as Secrets. Each is kept until it ends soon.

use std::path::Path;
use std::time::{Duration, SystemTime};

use api_machinery::reflect::ByteString;
use api_types::core_v1::Secret;
use base::Rng;
use client::Client;
use pki::{AltNames, Certificate, ClientIdentity};
use serde_json::json;

use super::addons;
use super::settings::{ClusterError, Layout, Settings, file_error};

/// What lasts no longer than this is issued anew.
const LEAST_LEFT: Duration = Duration::from_secs(30 * 86_400);
const MODE: u32 = 0o600;
/// Addons that the API server asks, by the names of their Services, in the namespace of addons. The Secret has the name of the
/// Service, and `-tls`.
const SERVICES: [&str; 1] = ["metrics-server"];
const NAMESPACE: &str = "kube-system";

/// What is issued, when, and with what chance.
#[derive(Clone, Copy)]
pub(super) struct Issuing<'a> {
    pub(super) settings: &'a Settings,
    pub(super) now: SystemTime,
    pub(super) rng: &'a Rng,
}

impl Issuing<'_> {
    fn server(&self, common_name: &str, hosts: &[String]) -> Result<ClientIdentity, ClusterError> {
        let (layout, mut names) = (Layout::new(&self.settings.root), AltNames::default());
        hosts.iter().for_each(|host| names.push_host(host));
        let config = self.settings.pki(&self.settings.node_name(0));
        Ok(pki::issue_server(&layout.pki(), common_name, names, &config, self.now, self.rng)?)
    }

    /// Whether a certificate can be kept.
    fn lasts(&self, pem: &[u8]) -> bool {
        let certificates = Certificate::all_from_pem(pem).unwrap_or_default();
        certificates.first().is_some_and(|own| own.not_after() > self.now + LEAST_LEFT)
    }

    /// Writes the certificates of kubelets that are not there or end soon; says which.
    pub(super) fn kubelets(&self) -> Result<Vec<String>, ClusterError> {
        let mut written = Vec::new();
        for index in 0..self.settings.nodes {
            let node = self.settings.node_name(index);
            let [certificate, key] = kubelet_files(&Layout::new(&self.settings.root), &node);
            if key.exists() && std::fs::read(&certificate).is_ok_and(|pem| self.lasts(&pem)) {
                continue;
            }
            let hosts = [node.clone(), self.settings.node_address(index).to_string(), "127.0.0.1".to_owned()];
            let issued = self.server(&format!("system:node:{node}"), &hosts)?;
            write(&key, &issued.key_pem)?;
            write(&certificate, &issued.certificate_pem)?;
            written.push(format!("{node}/kubelet-serving"));
        }
        Ok(written)
    }

    /// Makes the Secrets of addons that are not there or end soon.
    pub(super) async fn addons(&self, client: &Client) -> Result<(), ClusterError> {
        for service in SERVICES {
            let name = format!("{service}-tls");
            let known = client.namespaced::<Secret>(NAMESPACE).get_opt(&name).await;
            let known =
                known.map_err(|source| ClusterError::Api { action: format!("reading Secret {name}"), source })?;
            let kept = known.as_ref().and_then(|secret| secret.data.get("tls.crt"));
            if kept.is_some_and(|ByteString(pem)| self.lasts(pem)) {
                continue;
            }
            let host = format!("{service}.{NAMESPACE}.svc");
            let hosts = [format!("{host}.{}", self.settings.dns_domain), host.clone()];
            let issued = self.server(&host, &hosts)?;
            let base64 = |pem: &str| api_machinery::json::base64_text(pem.as_bytes());
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"k8s-app": service}},
                "data": {"tls.crt": base64(&issued.certificate_pem), "tls.key": base64(&issued.key_pem)},
            });
            addons::apply_one(client, secret).await?;
        }
        Ok(())
    }
}

/// Where a kubelet's serving certificate and its key are.
pub(super) fn kubelet_files(layout: &Layout, node: &str) -> [std::path::PathBuf; 2] {
    let directory = layout.kubelet(node).join("pki");
    ["kubelet-serving.crt", "kubelet-serving.key"].map(|file| directory.join(file))
}

fn write(path: &Path, text: &str) -> Result<(), ClusterError> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(file_error("creating", parent))?;
    }
    sys::fs::write_atomic(path, text.as_bytes(), MODE).map_err(file_error("writing", path))
}

#[cfg(test)]
mod tests {
    use base::SystemClock;

    use super::*;

    #[test]
    fn kubelets_are_vouched_for_by_the_cluster_and_keep_their_certificates() {
        let root = tempfile::tempdir().unwrap();
        let settings = Settings { nodes: 2, ..Settings::new(&root.path().join("cluster")) };
        let (clock, rng) = (SystemClock::shared(), Rng::seeded(1));
        super::super::certificates(&settings, &clock, &rng).unwrap();
        let issuing = Issuing { settings: &settings, now: clock.wall(), rng: &rng };
        assert_eq!(issuing.kubelets().unwrap(), ["node-1/kubelet-serving", "node-2/kubelet-serving"]);
        assert_eq!(issuing.kubelets().unwrap(), Vec::<String>::new(), "they are kept");
        let layout = Layout::new(&settings.root);
        let authority = std::fs::read(layout.pki().join("ca.crt")).unwrap();
        let authority = Certificate::one_from_pem(&authority).unwrap();
        let [path, _] = kubelet_files(&layout, "node-2");
        let certificate = Certificate::one_from_pem(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(certificate.issuer(), authority.subject());
        assert!(certificate.alt_names().ips.contains(&settings.node_address(1)), "{:?}", certificate.alt_names());
        let later = Issuing { now: certificate.not_after() - LEAST_LEFT, ..issuing };
        assert_eq!(later.kubelets().unwrap().len(), 2, "what ends soon is issued anew");
    }
}
