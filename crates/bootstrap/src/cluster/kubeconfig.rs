//! Kubeconfigs with embedded certificates.

use std::path::Path;
use std::time::SystemTime;

use base::Rng;
use pki::layout::{Leaf, USERS};

use super::settings::{ClusterError, Layout, Settings, file_error};

const CLUSTER: &str = "kubernetes";
const MODE: u32 = 0o600;

/// What a kubeconfig says.
pub struct Kubeconfig {
    /// The API server's URL.
    pub server: String,
    /// The name of the user entry.
    pub user: String,
    /// The authority of the API server, as PEM.
    pub authority_pem: String,
    /// The client's certificate, as PEM.
    pub certificate_pem: String,
    /// The client's key, as PEM.
    pub key_pem: String,
}

impl Kubeconfig {
    /// The file's text.
    #[must_use]
    pub fn render(&self) -> String {
        let base64 = |pem: &str| api_machinery::json::base64_text(pem.as_bytes());
        let (user, server) = (&self.user, &self.server);
        format!(
            "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {}\n    server: {server}\n  name: \
             {CLUSTER}\ncontexts:\n- context:\n    cluster: {CLUSTER}\n    user: {user}\n  name: \
             {user}@{CLUSTER}\ncurrent-context: {user}@{CLUSTER}\nkind: Config\nusers:\n- name: {user}\n  user:\n    \
             client-certificate-data: {}\n    client-key-data: {}\n",
            base64(&self.authority_pem),
            base64(&self.certificate_pem),
            base64(&self.key_pem),
        )
    }
}

/// Writes the kubeconfigs of the control plane and of each node that are not there yet; says which it wrote.
///
/// # Errors
/// A certificate cannot be issued or a file not be written.
pub fn write_kubeconfigs(settings: &Settings, now: SystemTime, rng: &Rng) -> Result<Vec<String>, ClusterError> {
    let layout = Layout::new(&settings.root);
    let mut written = Vec::new();
    for user in USERS.iter().filter(|user| user.name != "kubelet.conf") {
        let path = layout.kubeconfig(user.path);
        if !path.exists() {
            write(settings, &layout, user, &settings.node_name(0), &path, now, rng)?;
            written.push(user.path.to_owned());
        }
    }
    for node in (0..settings.nodes).map(|index| settings.node_name(index)) {
        for user in USERS.iter().filter(|user| user.name == "kubelet.conf") {
            let path = layout.node(&node).join("etc/kubernetes").join(user.path);
            if !path.exists() {
                write(settings, &layout, user, &node, &path, now, rng)?;
                written.push(format!("{node}/{}", user.path));
            }
        }
    }
    Ok(written)
}

/// Writes the kubeconfigs of the control plane anew that are there, with new certificates; says which. Kubelets look after
/// their own.
///
/// # Errors
/// A certificate cannot be issued or a file not be written.
pub(super) fn renew_kubeconfigs(settings: &Settings, now: SystemTime, rng: &Rng) -> Result<Vec<String>, ClusterError> {
    let (layout, node) = (Layout::new(&settings.root), settings.node_name(0));
    let mut written = Vec::new();
    for user in USERS.iter().filter(|user| user.name != "kubelet.conf") {
        let path = layout.kubeconfig(user.path);
        if path.exists() {
            write(settings, &layout, user, &node, &path, now, rng)?;
            written.push(user.path.to_owned());
        }
    }
    Ok(written)
}

fn write(
    settings: &Settings,
    layout: &Layout,
    user: &Leaf,
    node: &str,
    path: &Path,
    now: SystemTime,
    rng: &Rng,
) -> Result<(), ClusterError> {
    let config = settings.pki(node);
    let identity = pki::issue_user(&layout.pki(), user, &config, now, rng)?;
    let authority = layout.pki().join("ca.crt");
    let authority_pem = std::fs::read_to_string(&authority).map_err(file_error("reading", &authority))?;
    let name = match user.common_name {
        pki::layout::CommonName::Fixed(name) => name.to_owned(),
        _ => format!("system:node:{node}"),
    };
    let kubeconfig = Kubeconfig {
        server: settings.api_url(),
        user: name,
        authority_pem,
        certificate_pem: identity.certificate_pem,
        key_pem: identity.key_pem,
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(file_error("creating", parent))?;
    }
    sys::fs::write_atomic(path, kubeconfig.render().as_bytes(), MODE).map_err(file_error("writing", path))
}
